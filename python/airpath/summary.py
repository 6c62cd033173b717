"""The document that ``airpath run --json`` prints and ``summary.json`` holds.

::

    {"run": {"id", "version", "seed", "scenario_sha256", "wall_s", "simulated_s", "events",
             "partial": [sentence]},
     "flows": [{"id", "kind", "direction", "congestion", "profile", "goodput_mbps",
                "rtt_ms": {"min", "mean", "p50", "p95", "p99"},
                "self_inflicted_delay_ms", "power", "retransmitted_segments", "rto_count",
                "steady_mbps", "converged_after_s",
                "completed_s", "limited_s": {…}, "slow_start_exit": {…} or null}],
     "pings": [{"id", "sent", "lost", "rtt_ms": {"min", "mean", "mdev", "p50", "p95", "p99"}}],
     "links": [{"id", "throughput_mbps", "capacity_mbps", "utilisation", "queue_delay_ms": {…},
                "dropped_packets": {reason: count}}],
     "fairness": [{"id": "down" or "up", "flows", "jain_index"}],
     "proxies": [{"id", "proxy", "direction", "congestion", "profile", "bytes_received",
                  "bytes_acked", "buffered_bytes_max", "rtt_ms": {…}, "retransmitted_segments",
                  "rto_count", "limited_s": {…}, "slow_start_exit": {…} or null}],
     "radio": [{"id": "UE.down" or "UE.up", "throughput_mbps", "prbs_per_s", "mcs_mean", "bler",
                "harq_retransmissions", "lost_blocks", "rlc_retransmissions", "padding", "grants",
                "scheduling_requests", "buffer_status_reports", "random_accesses",
                "marked_packets", "awake"}],
     "findings": [{"cause", "subject", "confidence", "evidence", "advice", "gain"}]}

``run.partial`` says why the run is not whole: one sentence for each thing that is missing, none if
nothing is.

With several seeds every figure is the mean over the seeds that have it, ``run`` also has
``repeat`` and ``seeds``, and each flow, ping and link has two more objects of the same shape as
its figures: ``ci95`` with ``[low, high]`` (null below two values) and ``values`` with one entry
a seed (null where a seed has none). ``slow_start_exit.reason`` is then the commonest one.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airpath.analysis.statistics import mean_interval
from airpath.errors import InputError

if TYPE_CHECKING:
    from airpath import _core

Document = dict[str, Any]
_SECTIONS = ("flows", "pings", "links", "fairness", "proxies", "radio")


def of_result(
    result: _core.Result, scenario: _core.Scenario, identifier: str, wall_s: float
) -> Document:
    """Document of one simulation; findings included."""
    from airpath import _core, diagnose
    from airpath.results import result_table

    facts = result.summary
    document: Document = {
        "run": {
            "id": identifier,
            "version": _core.__version__,
            "seed": facts["seed"],
            "scenario_sha256": scenario.sha256,
            "wall_s": round(wall_s, 6),
            "simulated_s": facts["simulated_s"],
            "events": facts["events"],
            "partial": [],
        },
        **{section: facts.get(section, []) for section in _SECTIONS},
    }
    document["findings"] = diagnose.diagnose(document, lambda name: result_table(result, name))
    return document


def combine(documents: list[Document], identifier: str, wall_s: float) -> Document:
    """One document of several seeds; of a single one it is that one."""
    from airpath import diagnose

    first = documents[0]
    run = {**first["run"], "id": identifier, "wall_s": round(wall_s, 6)}
    if len(documents) == 1:
        return {**first, "run": run}
    run["events"] = sum(document["run"]["events"] for document in documents)
    run["simulated_s"] = math.fsum(document["run"]["simulated_s"] for document in documents)
    run["repeat"] = len(documents)
    run["seeds"] = [document["run"]["seed"] for document in documents]
    run["partial"] = [
        f"seed {document['run']['seed']}: {because}"
        for document in documents
        for because in document["run"]["partial"]
    ]
    combined: Document = {"run": run}
    for section in _SECTIONS:
        entries = [document[section] for document in documents]
        combined[section] = [_combine_entry(list(same)) for same in zip(*entries, strict=True)]
    combined["findings"] = diagnose.combine([document["findings"] for document in documents])
    return combined


def look_up(summary: Document, path: str) -> Any:
    """Value at ``flow.0.goodput_mbps``, ``ping.0.rtt_ms.p50`` or ``radio.0.mcs_mean``."""
    section, index, *rest = path.split(".")
    place: Any = summary[section if section in summary else f"{section}s"][int(index)]
    for key in rest:
        place = None if place is None else place[key]
    return place


def number(value: Any, path: str) -> float:
    """Take what ``look_up`` found at a path as a number."""
    if not isinstance(value, int | float):
        raise InputError(f"metric {path} has no value in this run")
    return float(value)


def to_json(document: object) -> str:
    """Strict JSON: what is not a number is null."""
    return json.dumps(_finite(document), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def write_json(path: Path, document: object) -> None:
    """Write strict JSON to a file."""
    path.write_text(to_json(document), encoding="utf-8")


def _combine_entry(entries: list[dict[str, Any]]) -> dict[str, Any]:
    means: dict[str, Any] = {}
    bounds: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for key in _keys(entries):
        column = [entry.get(key) for entry in entries]
        if key == "dropped_packets":
            # A reason that a seed lacks is a count of zero, not a gap.
            reasons = _keys(row or {} for row in column)
            column = [{reason: (row or {}).get(reason, 0) for reason in reasons} for row in column]
        mean, bound, value = _combine_value(column)
        means[key] = mean
        if value is not None:
            bounds[key], values[key] = bound, value
    return {**means, "ci95": bounds, "values": values}


def _combine_value(values: list[Any]) -> tuple[Any, Any, Any]:
    """Mean, interval and the values; the last two are None for what is no figure."""
    present = [value for value in values if value is not None]
    if present and all(isinstance(value, dict) for value in present):
        means, bounds, each = {}, {}, {}
        rows = [value or {} for value in values]
        for key in _keys(rows):
            means[key], bound, value = _combine_value([row.get(key) for row in rows])
            if value is not None:
                bounds[key], each[key] = bound, value
        return means, bounds, each
    if present and all(_is_figure(value) for value in present):
        interval = mean_interval([float(value) for value in present])
        return interval.mean, interval.bounds, values
    if not present:
        return None, None, None
    return Counter(map(str, present)).most_common(1)[0][0], None, None


def _keys(rows: Iterable[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(key for row in rows for key in row))


def _is_figure(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _finite(value: object) -> object:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
