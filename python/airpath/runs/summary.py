"""The document that ``airpath run --json`` prints and ``summary.json`` holds.

``airpath.runs.document.RunDocument`` is its type and describes each figure.

``findings`` are causes that were taken away, the largest first, and then what bounds the run.
``gain`` is what the advice obtained. ``tried`` lists every change: that which took a cause away,
its advice, and what did not help, with the figure that changed most; ``score`` and ``gain`` are
null where it could not be tried. ``breakdowns`` say where the time of each flow went, with the
first seed: parts of the mean RTT, or of UDP's one-way delay, in milliseconds, and of what the
slowest link could have carried, in Mb/s (docs/concepts/breakdown.md). ``explained`` is null where
the run was not explained, and its ``because`` says why nothing could be tried (emulated runs).

After an emulation ``pings`` also has what a ping printed, with the id ``programs/NAME``, and a flow
that iperf3 ran has ``printed``: {"tool", "program", "bytes", "goodput_mbps"} as iperf3 saw it.

``run.duration_s`` is how long the run lasted on its own clock, the virtual or the real one: not
how long it took (``wall_s``); of several seeds it is the sum.

``run.partial`` says why the run is not whole: one sentence for each thing that is missing, none if
nothing is.

With several seeds every figure is the mean over the seeds that have it, ``run`` also has
``repeat`` and ``seeds``, and each flow, ping and link has two more objects of the same shape as
its figures: ``ci95`` with ``[low, high]`` (null below two values) and ``values`` with one entry
a seed (null where a seed has none). ``slow_start_exit.reason`` is then the commonest one. In
emulations, connections of programs are matched without the client's port, and have the id of the
first run. ``run.invalid`` lists emulated runs that did not count.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from airpath.analysis.statistics import mean_interval
from airpath.errors import InputError

if TYPE_CHECKING:
    from airpath import _core
    from airpath.base.json import Json
    from airpath.runs.document import Figures, RunDocument, RunHead

Entry: TypeAlias = Mapping[str, Any]
"""An entry of a section; its figures are looked up by name."""
CLIENT_PORTS = 32_768
"""Lowest port that Linux gives to a client (``net.ipv4.ip_local_port_range``, ip(7))."""
_PORT = re.compile(r":(\d{1,5})(?=\s|$)")
SECTIONS = ("flows", "groups", "pings", "links", "fairness", "proxies", "radio")


def of_result(
    result: _core.Result, scenario: _core.Scenario, identifier: str, wall_s: float
) -> RunDocument:
    """Document of one simulation, before it is explained."""
    from airpath import _core

    core = result.summary
    return {
        "run": {
            "id": identifier,
            "version": _core.__version__,
            "seed": core["seed"],
            "scenario_sha256": scenario.sha256,
            "wall_s": round(wall_s, 6),
            "duration_s": core["duration_s"],
            "events": core["events"],
            "partial": [],
        },
        "flows": core["flows"],
        "groups": core.get("groups", []),
        "pings": core["pings"],
        "links": core["links"],
        "fairness": core["fairness"],
        "proxies": core["proxies"],
        "radio": core["radio"],
        "findings": [],
        "tried": [],
        "breakdowns": [],
        "explained": None,
    }


def entries(document: Figures, section: str) -> Sequence[Entry]:
    """What a section of a document lists, ``flows`` or ``links``; nothing if it is missing."""
    found: Sequence[Entry] = cast("Json", document).get(section, [])
    return found


def combine(documents: list[RunDocument], identifier: str, wall_s: float) -> RunDocument:
    """One document of several seeds; of a single one it is that one."""
    first = documents[0]
    run: RunHead = {**first["run"], "id": identifier, "wall_s": round(wall_s, 6)}
    if len(documents) == 1:
        return {**first, "run": run}
    run["events"] = sum(document["run"]["events"] for document in documents)
    run["duration_s"] = math.fsum(document["run"]["duration_s"] for document in documents)
    run["repeat"] = len(documents)
    run["seeds"] = [document["run"]["seed"] for document in documents]
    run["partial"] = [
        f"seed {document['run']['seed']}: {because}"
        for document in documents
        for because in document["run"]["partial"]
    ]
    combined: Json = {
        section: [_combine_entry(same) for same in _aligned(documents, section)]
        for section in SECTIONS
    }
    combined |= {"findings": [], "tried": [], "breakdowns": [], "explained": None}
    return cast("RunDocument", {"run": run, **combined})


def modern(document: Json) -> Json:
    """Return a document with today's names and sections.

    ``duration_s`` was once called ``simulated_s``, and sections came one after the other.
    """
    document = {**{section: [] for section in (*SECTIONS[1:], "tried")}, **document}
    run = document.get("run")
    if not isinstance(run, dict):
        return document
    named = {{"simulated_s": "duration_s"}.get(key, key): value for key, value in run.items()}
    return {**document, "run": {"partial": [], **(run if "duration_s" in run else named)}}


def lookup(summary: Figures, path: str) -> Any:
    """Value at ``flow.0.goodput_mbps``, ``ping.0.rtt_ms.p50`` or ``radio.0.mcs_mean``."""
    section, index, *rest = path.split(".")
    sections = cast("Json", summary)
    place: Any = sections[section if section in sections else f"{section}s"][int(index)]
    for key in rest:
        place = None if place is None else place[key]
    return place


def number(value: Any, path: str) -> float:
    """Take what ``lookup`` found at a path as a number."""
    if not isinstance(value, int | float):
        raise InputError(f"metric {path} has no value in this run")
    return float(value)


def to_json(document: object) -> str:
    """Strict JSON: what is not a number is null, and a name that is no UTF-8 has escapes."""
    text = json.dumps(_finite(document), indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    return text.encode(errors="backslashreplace").decode()


def write_json(path: Path, document: object) -> None:
    """Write strict JSON to a file."""
    path.write_text(to_json(document), encoding="utf-8")


def _aligned(documents: Sequence[RunDocument], section: str) -> list[list[Entry]]:
    """Group the entries of several documents by ``id``; a missing entry is empty."""
    found: dict[tuple[str, int], list[Entry]] = {}
    for index, document in enumerate(documents):
        count: Counter[str] = Counter()
        for entry in entries(document, section):
            name = without_client_port(str(entry["id"]))
            same = found.setdefault((name, count[name]), [{} for _ in documents])
            same[index] = entry
            count[name] += 1
    return list(found.values())


def without_client_port(flow: str) -> str:
    """Return a connection's name without the client's port, which differs from run to run.

    >>> without_client_port("tcp4 ue:49152 server:5201")
    'tcp4 ue:* server:5201'
    """
    return _PORT.sub(lambda found: ":*" if int(found[1]) >= CLIENT_PORTS else found[0], flow)


def _combine_entry(entries: Sequence[Entry]) -> Entry:
    means: dict[str, object] = {}
    bounds: dict[str, object] = {}
    values: dict[str, object] = {}
    for key in _keys(entries):
        column = [entry.get(key) for entry in entries]
        if key == "dropped_packets":
            # A reason that a seed lacks is a count of zero, not a gap.
            reasons = _keys(row or {} for row in column)
            column = [{reason: (row or {}).get(reason, 0) for reason in reasons} for row in column]
        mean, bound, value = _combine_value(column)
        if key == "completed_s" and None in column:
            # The mean of the seeds in which it completed is no completion time.
            mean = bound = None
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


def _keys(rows: Iterable[Mapping[str, object]]) -> list[str]:
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
