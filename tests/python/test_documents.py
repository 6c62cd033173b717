"""What the core returns is what its types in Python say, key by key."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

import pytest

from airpath import _core, documents, scenario
from airpath.base.shapes import Length, MisfitError, Range, fitted
from airpath.documents import Explanation, Metric, RunSummary, VariantRow
from airpath.drivers.options import EmulationOptions
from airpath.runs import describe
from emulated import needs_root

RADIO = "lte-20"


def misfit(value: Any, kind: Any) -> str | None:
    """The first thing in a value that is not as its type says, or that the type does not have."""
    try:
        fitted(value, kind, exact=True)
    except MisfitError as fault:
        return str(fault)
    return None


@pytest.mark.parametrize(
    ("value", "kind", "found"),
    [
        ({"min": 1.0}, documents.Lateness, "p50 is missing"),
        ({"p50": 1, "p99": 1.5, "p99_9": 2.0, "max": 3.0}, documents.Lateness, None),
        (
            {"p50": 1, "p99": 1.5, "p99_9": 2.0, "max": 3.0, "min": 0.0},
            documents.Lateness,
            "min is not in Lateness",
        ),
        (
            {"p50": "1", "p99": 1.5, "p99_9": 2.0, "max": 3.0},
            documents.Lateness,
            "p50 is '1'; expected a number",
        ),
        (None, documents.Lateness | None, None),
        (
            [["a", 1], ["b", "c"]],
            list[tuple[str, int]],
            "[1][1] is 'c'; expected a whole number",
        ),
        ({"a": [1, None]}, dict[str, list[int]], "a[1] is null; expected a whole number"),
        (True, float, "the document is true; expected a number"),
        (float("nan"), float, "the document is nan; expected a number up to 2^64"),
        (10**50, int, "the document is larger than 2^70; expected a whole number up to 2^64"),
        ("\ud800", str, "the document is '\\ud800'; expected text in UTF-8"),
        ("left", Literal["up", "down"], "the document is 'left'; expected up, down"),
        ([1.0], Annotated[list[float], Length(2, 2)], "the document has 1 items; expected 2"),
        (-1, Annotated[float, Range(0)] | None, "the document is -1; expected a number from 0 to "
         "1.84467e+19, or null"),
    ],
)  # fmt: skip
def test_misfits_are_found(value: Any, kind: Any, found: str | None) -> None:
    assert misfit(value, kind) == found


def test_what_may_be_null_may_be_missing_in_what_is_read() -> None:
    """An older version did not write it."""
    assert fitted({"id": "a"}, documents.AckGaps) == {"id": "a", "gap_ms": None}
    assert fitted({"id": "a", "new": 1}, documents.AckGaps)["new"] == 1
    assert misfit({"id": "a"}, documents.AckGaps) == "gap_ms is missing"
    with pytest.raises(MisfitError, match="id is missing"):
        fitted({"gap_ms": None}, documents.AckGaps)


@pytest.mark.parametrize("name", ["two-flows", "proxy", RADIO, "handover", "udp"])
def test_figures_of_a_run(name: str) -> None:
    loaded = scenario.load(name, ["run.duration_s=3"])
    assert misfit(_core.simulate(loaded, 1).summary, RunSummary) is None


def test_flows_of_several_streams() -> None:
    loaded = scenario.load("wire", ["run.duration_s=1", "flow.0.streams=2"])
    summary = _core.simulate(loaded, 1).summary
    assert [group["streams"] for group in summary.get("groups", [])] == [2]
    assert misfit(summary, RunSummary) is None


def test_findings_and_variants() -> None:
    sets = ["run.duration_s=5", "path.down.1.probability=0"]
    loaded = scenario.load("random-loss", sets[:1])
    found = _core.explain(loaded, 1, 1, "quick", 2, [])
    assert found["findings"]
    assert misfit(found, Explanation) is None
    rows = _core.compare(loaded, [scenario.load("random-loss", sets)], [1, 2], 2)
    assert rows
    assert misfit(rows, list[VariantRow]) is None


@needs_root
def test_what_an_emulation_leaves_and_shows() -> None:
    sets = ["run.duration_s=2", "emulation.gtpu=true"]
    loaded = scenario.load(RADIO, sets)
    monitor = _core.Monitor()
    command = ["sleep", "3"]
    options = EmulationOptions(command=command, flows=True, parity=True, monitor=monitor)
    left = _core.emulate(loaded, options)
    assert misfit(left.report, documents.Report) is None
    assert misfit(left.environment, documents.Environment) is None
    assert misfit(left.failed, list[documents.FailedFlow]) is None
    assert misfit(left.sockets, list[documents.FlowSockets]) is None
    assert misfit(left.parity, documents.Parity) is None
    assert misfit(left.programs, list[documents.ProgramReport]) is None
    assert misfit(left.result.summary, RunSummary) is None
    assert misfit(monitor.snapshot(), documents.Snapshot) is None
    assert left.sockets
    assert left.environment["tunnel"] is not None


def test_every_metric_has_a_name_and_a_unit() -> None:
    """What is read of a directory has no other."""
    assert set(get_args(Metric)) == describe._NAMES.keys() == describe._UNITS.keys()
