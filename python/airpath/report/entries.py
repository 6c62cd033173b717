"""The summary's figures as tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airpath.base.text import count, digits, milliseconds, percent, rate
from airpath.plots.figure import Table
from airpath.runs.describe import INCOMPLETE, ordered
from airpath.runs.summary import Entry
from airpath.runs.summary import entries as entries_of

if TYPE_CHECKING:
    from airpath.runs.results import Run

_PAIR = 2
_TIMES = 2
"""From this factor on, "3 times" is clearer than "+200 %"."""
_WHOLE = 9.5
"""Percent that are shown without decimals."""
_WIDEST = 4
"""More entries than this are rows instead of columns."""
MOST_ENTRIES = 50
"""Of a section. Those with the largest figures are listed, and the others are one entry."""
_BY = ("bytes_delivered", "throughput_mbps", "sent")
_SUMS = (
    "bytes_delivered", "goodput_mbps", "packets_lost", "retransmitted_segments", "rto_count",
    "streams", "sent", "lost", "throughput_mbps", "prbs_per_s", "harq_retransmissions",
    "lost_blocks", "rlc_retransmissions", "grants", "scheduling_requests", "buffer_status_reports",
)  # fmt: skip
"""Figures of which a sum says something."""


def _exit(value: Entry) -> str:
    return (
        f"{digits(value['time_s'])} s, {count(value['cwnd_segments'])} segments, {value['reason']}"
    )


def _drops(value: Mapping[str, float]) -> str:
    return ", ".join(f"{key.replace('_', ' ')} {count(n)}" for key, n in value.items()) or "none"


def _seconds(value: float) -> str:
    return f"{digits(value)} s"


_RTT = (
    ("RTT, minimum", "rtt_ms.min", milliseconds),
    ("RTT, median", "rtt_ms.p50", milliseconds),
    ("RTT, 95 %", "rtt_ms.p95", milliseconds),
    ("RTT, 99 %", "rtt_ms.p99", milliseconds),
)
_FIGURES: dict[str, tuple[tuple[str, str, Callable[[Any], str]], ...]] = {
    "flows": (
        ("goodput", "goodput_mbps", rate),
        ("goodput, steady", "steady_mbps", rate),
        ("completed after", "completed_s", _seconds),
        *_RTT,
        ("one-way delay, median", "delay_ms.p50", milliseconds),
        ("one-way delay, 95 %", "delay_ms.p95", milliseconds),
        ("jitter", "jitter_ms", milliseconds),
        ("packets lost", "packets_lost", count),
        ("retransmitted segments", "retransmitted_segments", count),
        ("time-outs (RTO)", "rto_count", count),
        ("end of slow start", "slow_start_exit", _exit),
    ),
    "groups": (
        ("streams", "streams", count),
        ("goodput", "goodput_mbps", rate),
        ("Jain's index", "jain_index", digits),
    ),
    "pings": (("sent", "sent", count), ("lost", "lost", count), *_RTT),
    "links": (
        ("throughput", "throughput_mbps", rate),
        ("capacity", "capacity_mbps", rate),
        ("busy", "utilisation", percent),
        ("queue delay, median", "queue_delay_ms.p50", milliseconds),
        ("queue delay, 95 %", "queue_delay_ms.p95", milliseconds),
        ("queue delay, longest", "queue_delay_ms.max", milliseconds),
        ("dropped packets", "dropped_packets", _drops),
    ),
    "radio": (
        ("throughput", "throughput_mbps", rate),
        ("PRBs per second", "prbs_per_s", digits),
        ("MCS, mean", "mcs_mean", digits),
        ("BLER", "bler", percent),
        ("HARQ retransmissions", "harq_retransmissions", count),
        ("blocks lost", "lost_blocks", count),
        ("RLC retransmissions", "rlc_retransmissions", count),
        ("padding", "padding", percent),
        ("grants", "grants", count),
        ("scheduling requests", "scheduling_requests", count),
        ("buffer status reports", "buffer_status_reports", count),
        ("awake", "awake", percent),
    ),
    "fairness": (("Jain's index", "jain_index", digits),),
}
_COMPARED = {
    "flows": ("goodput", "completed after", "RTT, median", "RTT, 99 %", "one-way delay, median",
              "packets lost", "retransmitted segments", "time-outs (RTO)"),
    "groups": ("goodput", "Jain's index"),
    "pings": ("RTT, median", "RTT, 99 %", "lost"),
    "fairness": ("Jain's index",),
}  # fmt: skip


def tables(run: Run) -> list[Table]:
    """Every figure of every flow, ping, link and UE: one column each, or one row."""
    made = []
    for section in ("flows", "groups", "pings", "links", "radio"):
        entries = _largest([e for e in _entries(run, section) if section != "flows" or _carries(e)])
        if entries:
            heads = [str(entry["id"]) for entry in entries]
            made.append(_table(section, heads, _rows(section, [*entries])))
    return made


def compared(runs: Sequence[Run], labels: Sequence[str]) -> Table:
    """What matters of each flow and ping: one column a run, and how much the others differ.

    Two runs have a column for the change; of more, each says it relative to the first.
    """
    rows = []
    for section, wanted in _COMPARED.items():
        by_run = [{str(e["id"]): e for e in _entries(run, section)} for run in runs]
        listed = (_largest(_entries(run, section)) for run in runs)
        for name in dict.fromkeys(str(e["id"]) for entries in listed for e in entries):
            same = [entries.get(name) for entries in by_run]
            if section == "flows" and not any(map(_carries, same)):
                continue
            named = _rows(section, same)
            rows += [
                [f"{name}: {row[0]}", *row[1:], *_changes(section, row[0], same)]
                for row in named
                if row[0] in wanted
            ]
    changes = ["change"] if len(labels) == _PAIR else [f"{label}: change" for label in labels[1:]]
    return Table(["", *labels, *changes], rows)


def _changes(section: str, figure: str, entries: Sequence[Entry | None]) -> list[str]:
    """By how much each entry's figure differs from the first one's."""
    path = next(path for name, path, _ in _FIGURES[section] if name == figure)
    before, *others = (_at(entry or {}, path) for entry in entries)
    return [_change(before, after) for after in others]


def _change(before: Any, after: Any) -> str:
    """``+12 %``, ``9.1 times``; empty without both."""
    if not isinstance(before, int | float) or not isinstance(after, int | float):
        return ""
    if before == after:
        return "same"
    if before <= 0 or after < 0:
        return f"{after - before:+.3g}"
    factor = after / before
    if factor >= _TIMES:
        return f"{digits(factor)} times"
    percents = 100 * (factor - 1)
    return f"{percents:+.0f} %" if abs(percents) >= _WHOLE else f"{percents:+.2g} %"


def _entries(run: Run, section: str) -> Sequence[Entry]:
    return ordered(run.summary) if section == "flows" else entries_of(run.summary, section)


def _largest(entries: Sequence[Entry]) -> Sequence[Entry]:
    """What is listed of a section; of very many entries the largest, and one for the others."""
    if len(entries) <= MOST_ENTRIES:
        return entries
    by = next((key for key in _BY if key in entries[0]), "id")
    ranked = sorted(range(len(entries)), key=lambda at: -_number(entries[at].get(by)))
    others = [entries[at] for at in ranked[MOST_ENTRIES:]]
    total: dict[str, object] = {
        key: sum(_number(entry.get(key)) for entry in others)
        for key in _SUMS
        if any(entry.get(key) is not None for entry in others)
    }
    total |= {"id": f"{count(len(others))} others, in sum", "kind": "others"}
    return [*(entries[at] for at in sorted(ranked[:MOST_ENTRIES])), total]


def _number(value: Any) -> float:
    return value if isinstance(value, int | float) else 0.0


def _carries(entry: Entry | None) -> bool:
    return entry is not None and entry["kind"] != "ping"


def _table(section: str, heads: list[str], rows: list[list[str]]) -> Table:
    table = [[section, *heads], *rows]
    if len(heads) > _WIDEST:
        table = [list(column) for column in zip(*table, strict=True)]
    return Table(table[0], table[1:])


def _rows(section: str, entries: Sequence[Entry | None]) -> list[list[str]]:
    """One row a figure that any of the entries has."""
    rows = [
        [name, *(_cell(entry or {}, path, words) for entry in entries)]
        for name, path, words in _FIGURES[section]
    ]
    return [row for row in rows if any(row[1:])]


def _cell(entry: Entry, path: str, words: Callable[[Any], str]) -> str:
    value, bounds = _at(entry, path), _at(entry.get("ci95") or {}, path)
    if value is None:
        unfinished = path == "completed_s" and entry.get("kind") == "file"
        return INCOMPLETE if unfinished else ""
    half = f" ± {words((bounds[1] - bounds[0]) / 2)}" if isinstance(bounds, list) else ""
    return words(value) + half


def _at(entry: Any, path: str) -> Any:
    for key in path.split("."):
        entry = entry.get(key) if isinstance(entry, Mapping) else None
    return entry
