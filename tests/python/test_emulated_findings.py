"""Causes of emulated runs: recorded flows are simulated, and causes are tried there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

import airpath
from airpath.diagnose import emulated
from airpath.runs import describe
from airpath.runs.results import Run


def recorded(
    goodput_mbps: float,
    failed: list[Any] | None = None,
    invalid: str | None = None,
    samples: pl.DataFrame | None = None,
    **changes: Any,
) -> Run:
    """What an emulation of `small-window` might have left: one download of 10 s."""
    flow = {
        "id": "flow-0", "kind": "bulk", "direction": "down", "ue": None, "congestion": "cubic",
        "goodput_mbps": goodput_mbps, "bytes_delivered": round(goodput_mbps * 10e6 / 8), **changes,
    }  # fmt: skip
    row = {"flow": "flow-0", "start_ns": 0, "end_ns": 10_000_000_000}
    summary: Any = {
        "flows": [flow],
        "pings": [],
        "run": {},
        "findings": [],
        "tried": [],
        "explained": None,
        "emulation": {
            "failed_flows": failed or [],
            "valid": invalid is None,
            "invalid_because": invalid,
        },
    }
    return Run(summary, {"seeds": [1]}, "", Recorded(pl.DataFrame([row]), samples))


def because(run: Run) -> str | None:
    """Why nothing could be tried."""
    explained = run.summary["explained"]
    assert explained is not None
    return explained["because"]


class Recorded:
    def __init__(self, flows: pl.DataFrame, samples: pl.DataFrame | None) -> None:
        self.tables = {"flows": flows, "samples": samples}

    def table(self, seed: int, name: str) -> pl.DataFrame | None:
        return self.tables.get(name)


LOSSY = "random-loss"


def test_a_recorded_flow_is_simulated_and_its_cause_found() -> None:
    scenario = airpath.load(LOSSY)
    like = airpath.run(LOSSY, {"run.duration_s": 10, "flow.0.profile": "linux-6.18"})
    run = recorded(like.summary["flows"][0]["goodput_mbps"] or 0.0)
    emulated.add(run, scenario, "quick", own_flows=False)
    assert because(run) is None
    assert run.findings[0]["cause"] == "random-loss"


def test_where_the_simulation_differs_nothing_is_tried() -> None:
    run = recorded(90.0)
    emulated.add(run, airpath.load(LOSSY), "quick", own_flows=False)
    assert run.findings == []
    why = because(run) or ""
    assert "flow-0 is simulated with" in why
    assert "was recorded with 90 Mb/s" in why
    assert describe.answer(run.summary) == [f"nothing could be tried: {why}"]


def test_a_run_without_flows_says_so() -> None:
    run = recorded(5.0, kind="others")
    emulated.add(run, airpath.load(LOSSY), "quick", own_flows=False)
    assert "no flow was recorded" in (because(run) or "")


def test_a_failed_flow_is_no_measurement_to_explain() -> None:
    run = recorded(90.0, failed=[{"id": "flow-0", "because": "no connection"}])
    emulated.add(run, airpath.load(LOSSY), "quick", own_flows=True)
    assert because(run) == "the flow flow-0 failed: no connection"


def test_own_flows_need_no_stand_in(tmp_path: Path) -> None:
    scenario = airpath.load("bufferbloat")
    run = airpath.run(scenario, out=tmp_path / "run")
    run.summary["emulation"] = {"failed_flows": []}
    emulated.add(run, scenario, "quick", own_flows=True)
    assert run.findings[0]["cause"] == "bufferbloat"
    assert Run.open(tmp_path / "run").findings == run.findings


def test_a_window_that_held_a_recorded_flow_back_bounds_its_stand_in() -> None:
    """As after `iperf3 -w 64K` over `small-window`: 45 segments of window, all under way."""
    samples = pl.DataFrame(
        [{"flow": "flow-0", "receive_window_segments": 45, "inflight_segments": 45}] * 8
    )
    run = recorded(5.0, samples=samples)
    emulated.add(run, airpath.load("small-window"), "quick", own_flows=False)
    assert because(run) is None
    first = run.findings[0]
    assert first["cause"] == "receive-window"
    assert first["gain"]
    assert first["gain"]["after"] > 3 * first["gain"]["before"]
    assert first["set"] is None
    assert "the flow is COMMAND's and not the scenario's" in (first["advice"] or "")


def test_a_window_that_held_nothing_back_is_left_alone() -> None:
    samples = pl.DataFrame(
        [{"flow": "flow-0", "receive_window_segments": 45, "inflight_segments": 20}] * 8
    )
    run = recorded(5.0, samples=samples)
    emulated.add(run, airpath.load("small-window"), "quick", own_flows=False)
    assert "is simulated with" in (because(run) or "")


def test_own_flows_may_be_nearer_to_their_own_profile() -> None:
    """The kernel gave 5.0 Mb/s: the profile of 6.18 leaves out how it exceeds a small buffer."""
    run = recorded(5.0, id="download")
    emulated.add(run, airpath.load("small-window"), "quick", own_flows=True)
    assert because(run) is None
    assert run.findings[0]["cause"] in ("send-buffer", "receive-window")


def test_a_host_that_was_too_late_is_the_cause() -> None:
    run = recorded(0.5, invalid="packets left 12 ms late")
    emulated.add(run, airpath.load("bufferbloat"), "quick", own_flows=False)
    (finding,) = run.findings
    assert finding["cause"] == "emulation-host"
    assert "packets left 12 ms late" in finding["evidence"]
    assert finding["set"] is None
    assert "no settings" in (finding["advice"] or "")
    gain = describe.removed(finding, run.summary["tried"])
    assert gain
    assert (gain["flow"], gain["before"], gain["seeds"]) == ("flow-0", 0.5, 3)
    assert gain["after"] > 1.5
    assert describe.answer(run.summary)[0] == "largest cause: emulation host (emulation)"


def test_a_late_run_without_flows_has_its_cause_too() -> None:
    run = recorded(0.5, kind="others", invalid="packets left 12 ms late")
    emulated.add(run, airpath.load("bufferbloat"), "quick", own_flows=False)
    assert [finding["cause"] for finding in run.findings] == ["emulation-host"]
    assert run.summary["tried"][0]["gain"] is None
