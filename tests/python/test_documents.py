"""What the core returns is what its types in Python say, key by key."""

from __future__ import annotations

import types
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest

from airpath import _core, scenario
from airpath.emulation import document
from airpath.emulation.config import EmulationConfig
from airpath.runs.document import CoreSummary, Explanation, VariantRow
from emulated import needs_root

RADIO = "lte-20"


def misfits(value: Any, kind: Any, here: str = "it") -> list[str]:
    """What of a value is not as its type says."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        each = [misfits(value, one, here) for one in inner]
        return [] if [] in each else each[0]
    if hasattr(kind, "__required_keys__"):
        hints = get_type_hints(kind)
        if not isinstance(value, dict):
            return [f"{here} is no {kind.__name__}: {value!r}"]
        missing = sorted(kind.__required_keys__ - set(value))
        unknown = sorted(set(value) - set(hints))
        found = [f"{here} lacks {key}" for key in missing]
        found += [f"{here}.{key} is not in {kind.__name__}" for key in unknown]
        for key in value.keys() & hints.keys():
            found += misfits(value[key], hints[key], f"{here}.{key}")
        return found
    if origin is list:
        whole = isinstance(value, list)
        each = [misfits(one, inner[0], f"{here}[]") for one in value] if whole else []
        return [one for found in each for one in found] if whole else [f"{here} is no list"]
    if origin is tuple:
        whole = isinstance(value, list | tuple) and len(value) == len(inner)
        each = [misfits(*pair, here) for pair in zip(value, inner, strict=True)] if whole else []
        return [one for found in each for one in found] if whole else [f"{here} is no {kind}"]
    if origin is dict:
        whole = isinstance(value, dict)
        each = [misfits(one, inner[1], f"{here}[]") for one in value.values()] if whole else []
        return [one for found in each for one in found] if whole else [f"{here} is no dict"]
    if kind is object:
        return []
    allowed = (int, float) if kind is float else kind
    return [] if isinstance(value, allowed) else [f"{here} is {value!r}, not {kind}"]


@pytest.mark.parametrize(
    ("value", "kind", "found"),
    [
        ({"min": 1.0}, document.Lateness, 5),
        ({"p50": 1, "p99": 1.5, "p99_9": 2.0, "max": 3.0}, document.Lateness, 0),
        ({"p50": "1", "p99": 1.5, "p99_9": 2.0, "max": 3.0}, document.Lateness, 1),
        (None, document.Lateness | None, 0),
        ([["a", 1], ["b", "c"]], list[tuple[str, int]], 1),
        ({"a": [1, None]}, dict[str, list[int]], 1),
    ],
)
def test_misfits_are_found(value: Any, kind: Any, found: int) -> None:
    assert len(misfits(value, kind)) == found


@pytest.mark.parametrize("name", ["two-flows", "proxy", RADIO, "handover", "udp"])
def test_figures_of_a_run(name: str) -> None:
    loaded = scenario.load(name, ["run.duration_s=3"])
    assert misfits(_core.simulate(loaded, 1).summary, CoreSummary) == []


def test_flows_of_several_streams() -> None:
    loaded = scenario.load("wire", ["run.duration_s=1", "flow.0.streams=2"])
    summary = _core.simulate(loaded, 1).summary
    assert [group["streams"] for group in summary.get("groups", [])] == [2]
    assert misfits(summary, CoreSummary) == []


def test_findings_and_variants() -> None:
    loaded = scenario.load("random-loss", ["run.duration_s=5"])
    found = _core.explain(loaded, 1, 1, "quick", 2, [])
    assert found["findings"]
    assert misfits(found, Explanation) == []
    rows = _core.compare(loaded, [["path.down.1.probability=0"]], [1, 2], 2)
    assert rows
    assert misfits(rows, list[VariantRow]) == []


@needs_root
def test_what_an_emulation_leaves_and_shows() -> None:
    sets = ["run.duration_s=2", "emulation.gtpu=true"]
    loaded = scenario.load(RADIO, sets)
    monitor = _core.Monitor()
    config = EmulationConfig(flows=True, parity=True, monitor=monitor, servers=["sleep 1"])
    left = _core.emulate(loaded, 1, config)
    assert misfits(left.report, document.Report, "report") == []
    assert misfits(left.environment, document.Environment, "environment") == []
    assert misfits(left.failed, list[document.FailedFlow], "failed") == []
    assert misfits(left.sockets, list[document.FlowSockets], "sockets") == []
    assert misfits(left.parity, document.Parity, "parity") == []
    assert misfits(left.programs, list[document.ProgramReport], "programs") == []
    assert misfits(left.result.summary, CoreSummary, "summary") == []
    assert misfits(monitor.snapshot(), document.Snapshot, "snapshot") == []
    assert left.sockets
    assert left.environment["tunnel"] is not None
