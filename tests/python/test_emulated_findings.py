"""Causes of emulated runs: recorded flows are simulated, and causes are tried there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import airpath
from airpath.base.toml import parse_toml
from airpath.diagnose import emulated, stand_in
from airpath.runs import describe
from airpath.runs.results import Run
from conftest import Command
from emulated import needs, printed
from real_clock import on_time


def recorded(
    goodput_mbps: float,
    failed: list[Any] | None = None,
    invalid: str | None = None,
    samples: pl.DataFrame | None = None,
    command: str = "iperf3 -c server",
    lasted_s: float = 10,
    **changes: Any,
) -> Run:
    """What an emulation of `small-window` might have left: one download of 10 s."""
    flow = {
        "id": "flow-0", "kind": "bulk", "direction": "down", "ue": None, "congestion": "cubic",
        "goodput_mbps": goodput_mbps, "bytes_delivered": round(goodput_mbps * lasted_s * 1e6 / 8),
        **changes,
    }  # fmt: skip
    row = {"flow": flow["id"], "start_ns": 0, "end_ns": round(lasted_s * 1e9)}
    return emulation([flow], [row], failed, invalid, samples, command)


def emulation(
    flows: list[dict[str, Any]],
    rows: list[dict[str, Any]],
    failed: list[Any] | None = None,
    invalid: str | None = None,
    samples: pl.DataFrame | None = None,
    command: str = "",
    pings: list[dict[str, Any]] | None = None,
    programs: list[dict[str, Any]] | None = None,
) -> Run:
    """What is left of an emulation, as far as it is explained by that."""
    summary: Any = {
        "flows": flows,
        "pings": pings or [],
        "run": {"duration_s": 30.0},
        "findings": [],
        "tried": [],
        "explained": None,
        "emulation": {
            "failed_flows": failed or [],
            "valid": invalid is None,
            "invalid_because": invalid,
            "command": command.split(),
            "servers": [],
            "programs": programs or [],
        },
    }
    schema = {"flow": pl.String, "start_ns": pl.Int64, "end_ns": pl.Int64}
    record: Any = {"seeds": [1]}
    return Run(summary, record, "", Recorded(pl.DataFrame(rows, schema), samples))


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
    assert "the goodput of flow-0 is" in why
    assert "90 Mb/s in the recording" in why
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
    section: Any = {
        "failed_flows": [], "valid": True, "invalid_because": None, "directions": {},
        "parity": None, "ack_gaps": None,
    }  # fmt: skip
    run.summary["emulation"] = section
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
    assert first["gain"]["before"] is not None
    assert first["gain"]["after"] is not None
    assert first["gain"]["after"] > 3 * first["gain"]["before"]
    assert first["set"] is None
    assert "the scenario did not open this connection" in (first["advice"] or "")


def test_a_window_that_held_nothing_back_is_left_alone() -> None:
    samples = pl.DataFrame(
        [{"flow": "flow-0", "receive_window_segments": 30, "inflight_segments": 20}] * 8
    )
    # What a window of 30 segments lets through; the small buffer of the scenario lets 4.4 Mb/s.
    run = recorded(3.3, samples=samples)
    emulated.add(run, airpath.load("small-window"), "quick", own_flows=False)
    assert "in the simulation and" in (because(run) or "")


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
    assert "(simulated; the scenario is deterministic, so one run is enough)" in finding["evidence"]
    assert finding["set"] is None
    assert "No key of the scenario does that" in (finding["advice"] or "")
    gain = describe.removed(finding, run.summary["tried"])
    assert gain
    assert (gain["flow"], gain["before"], gain["seeds"]) == ("flow-0", 0.5, 3)
    assert gain["after"] is not None
    assert gain["after"] > 1.5
    assert describe.answer(run.summary)[0] == (
        "largest limit on goodput of flow-0: emulation-host (emulation)"
    )


def test_a_late_host_that_changed_nothing_is_no_cause() -> None:
    like = airpath.run(LOSSY, {"run.duration_s": 10, "flow.0.profile": "linux-6.18"})
    goodput = like.summary["flows"][0]["goodput_mbps"] or 0.0
    run = recorded(goodput, invalid="packets left 0.6 ms late")
    emulated.add(run, airpath.load(LOSSY), "quick", own_flows=False)
    assert run.findings[0]["cause"] == "random-loss"
    assert "emulation-host" not in [finding["cause"] for finding in run.findings]
    (host,) = [one for one in run.summary["tried"] if one["cause"] == "emulation-host"]
    assert "packets left 0.6 ms late" in host["outcome"]


def test_a_late_host_is_no_cause_where_packets_in_time_give_no_more() -> None:
    run = recorded(90.0, invalid="packets left 12 ms late")
    emulated.add(run, airpath.load(LOSSY), "quick", own_flows=False)
    assert run.findings == []
    assert "in the simulation and" in (because(run) or "")


def test_a_late_run_without_flows_has_its_cause_too() -> None:
    run = recorded(0.5, kind="others", invalid="packets left 12 ms late")
    emulated.add(run, airpath.load("bufferbloat"), "quick", own_flows=False)
    assert [finding["cause"] for finding in run.findings] == ["emulation-host"]
    assert run.summary["tried"][0]["gain"] is None


def test_the_kernel_of_own_flows_is_told_what_the_flows_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As the emulation told it (`crates/emu/src/host/profile.rs`); the rest is the kernel's own."""
    monkeypatch.setattr("platform.release", lambda: "6.18.2-generic")
    first, late, as_it_is = stand_in.own(airpath.load("jitter-reorder")).scenarios
    flow = parse_toml(first.resolved_toml)["flow"][0]
    assert flow["profile"] == "linux-6.18"
    assert (flow["ack"]["dsack"], flow["rto"]["min_ms"]) == (False, 1000)
    assert (flow["recovery"]["undo_by_dsack"], flow["cubic"]["arithmetic"]) == (True, "linux")
    # Since 6.17 the kernel has RACK, whatever it is told.
    assert flow["recovery"]["loss_detection"] == "rack"
    # The kernel doubles SO_SNDBUF, and half of this was asked for.
    assert flow["send_buffer_bytes"] == 16_777_216
    # A reader that wakes up late finds nothing that was pushed alone.
    assert flow["ack"]["pushed_at_once"]
    assert not parse_toml(late.resolved_toml)["flow"][0]["ack"]["pushed_at_once"]
    assert parse_toml(as_it_is.resolved_toml)["flow"][0]["profile"] == "rfc"
    monkeypatch.setattr("platform.release", lambda: "6.1.0")
    first = stand_in.own(airpath.load("jitter-reorder")).scenarios[0]
    assert parse_toml(first.resolved_toml)["flow"][0]["recovery"]["loss_detection"] == "sack"


def test_keys_that_no_kernel_can_be_told_are_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.release", lambda: "6.18.2")
    sets = {"flow.0.slow_start": "none", "flow.0.recovery.undo_by_dsack": False}
    flow = parse_toml(
        stand_in.own(airpath.load("jitter-reorder", sets)).scenarios[0].resolved_toml
    )["flow"][0]
    assert (flow["slow_start"], flow["recovery"]["undo_by_dsack"]) == ("hystart-6.14", True)
    flow = parse_toml(
        stand_in.own(airpath.load("jitter-reorder", {**sets, "emulation.slow_start": "profile"}))
        .scenarios[0]
        .resolved_toml
    )["flow"][0]
    assert flow["slow_start"] == "none"


def test_how_flows_share_is_compared_by_their_sum_and_evenness() -> None:
    """As Linux 6.18 shared the queue of `two-flows`; simulated they share it less evenly."""
    flows = [
        {
            "id": name, "kind": "bulk", "direction": "down", "congestion": name,
            "goodput_mbps": rate, "bytes_delivered": round(rate * 15e6),
        }
        for name, rate in (("cubic", 11.5), ("reno", 7.7))
    ]  # fmt: skip
    rows = [{"flow": name, "start_ns": 0, "end_ns": 120 * 10**9} for name in ("cubic", "reno")]
    run = emulation(flows, rows)
    emulated.add(run, airpath.load("two-flows"), "quick", own_flows=True)
    assert because(run) is None
    # The removal comes first, then what else was tried against it.
    tried, *_ = (one for one in run.summary["tried"] if one["cause"] == "congestion-control")
    assert tried["gain"]
    assert tried["gain"]["metric"] == "jain_index"
    assert tried["gain"]["before"] is not None
    assert tried["gain"]["after"] is not None
    assert tried["gain"]["after"] > tried["gain"]["before"]
    flows[1]["goodput_mbps"] = 3.0
    run = emulation(flows, rows)
    emulated.add(run, airpath.load("two-flows"), "quick", own_flows=True)
    assert "the goodput of all flows down is" in (because(run) or "")


def test_a_transfer_of_no_timed_program_is_a_file() -> None:
    """As after `curl` of 1 MB over `file-download`: it asks a round trip before it is answered."""
    run = recorded(
        12.0, command="curl -o /dev/null http://server/page", lasted_s=0.667,
        id="tcp ue:40312 server:80",
    )  # fmt: skip
    emulated.add(run, airpath.load("file-download"), "quick", own_flows=False)
    assert because(run) is None
    first = run.findings[0]
    assert first["cause"] == "slow-start"
    assert first["gain"] is None or first["gain"]["metric"] == "completed_s"


def test_who_connected_opens_the_flow_that_stands_in() -> None:
    """A NAT lets a download in only if the UE has opened it."""
    nats = {"path.up.2.inward_refreshes": True}
    given = airpath.load("double-nat", nats)
    like = airpath.run("double-nat", nats).summary["flows"][0]
    run = recorded(
        like["goodput_mbps"] or 0.0, kind="udp", lasted_s=120, id="udp ue:40312 server:5201",
        packets_sent=24_000, packets_lost=0, congestion=None,
    )  # fmt: skip
    stands = stand_in.of_programs(run, given)
    flow = parse_toml(stands.scenarios[0].resolved_toml)["flow"][0]
    assert (flow["direction"], flow["opened_by"]) == ("down", "receiver")


def test_what_ping_printed_is_simulated_as_pings() -> None:
    """As after `ping -i 1.05 -c 20` from the server over `nr-drx`: it finds the UE asleep."""
    like = airpath.run("nr-drx", {"flow.1.enabled": False}).summary["pings"][0]
    row = {"id": "programs/command", "sent": 19, "lost": 0, "rtt_ms": like["rtt_ms"]}
    program = {
        "name": "command", "at": "server", "command": "ping -i 1.05 -c 19 ue",
        "started_s": 0.0, "ended_s": 19.0, "printed": {"tool": "ping", **row},
    }  # fmt: skip
    run = emulation([], [], command="ping -i 1.05 -c 19 ue", pings=[row], programs=[program])
    emulated.add(run, airpath.load("nr-drx"), "quick", own_flows=False)
    assert because(run) is None
    assert run.findings[0]["cause"] == "drx"
    gain = describe.removed(run.findings[0], run.summary["tried"])
    assert gain
    assert gain["flow"] == "programs/command"


def test_medians_of_few_pings_differ_by_chance() -> None:
    """Of 12 pings that find a UE asleep the medians of two runs are 60 ms apart; 400 are not."""
    few = {"id": "ping", "sent": 12, "lost": 0, "rtt_ms": {"p50": 148.0, "mdev": 77.0}}
    many = few | {"sent": 400}
    for simulated, agrees in ((few, True), (many, False)):
        recorded: Any = {"flows": [], "pings": [simulated | {"rtt_ms": {"p50": 209.0}}]}
        of_seeds: Any = [{"flows": [], "pings": [simulated]} for _ in range(3)]
        assert (emulated._delays_differ(recorded, of_seeds) is None) == agrees


@needs("ip", "ping")
def test_a_user_pings_and_is_told_the_cause_and_where_the_time_went(
    airpath_command: Command, tmp_path: Path
) -> None:
    """As in the guide, from the server: it finds the UE asleep."""
    out = str(tmp_path / "run")
    ping = ["ping", "-i", "1.05", "-c", "12", "ue"]
    done = airpath_command("emulate", "nr-drx", "--at", "server", "--out", out, "--", *ping)
    assert done.returncode in (0, 3), done.stderr
    assert "12 packets transmitted" in done.stdout
    assert ": drx (radio.drx)" in done.stderr
    assert "RTT of programs/command" in done.stderr
    assert "asleep (DRX)" in done.stderr


@needs("ip")
def test_the_kernel_is_explained_by_what_it_was_told(
    airpath_command: Command, tmp_path: Path
) -> None:
    """Without timestamps and D-SACK it takes reordering for loss, as its stand-in does."""
    sets = ["--set", "flow.0.options.timestamps=false", "--set", "run.duration_s=8"]
    out = str(tmp_path / "run")
    done = airpath_command("emulate", "jitter-reorder", "--flows", "--json", "--out", out, *sets)
    document = on_time(printed(done))
    assert document["explained"]["because"] is None
    assert document["findings"][0]["cause"] == "reordering"


def _small_window(**limits: float) -> Run:
    """An emulation of a small window, of which the kernel counted these limits."""
    like = airpath.run("small-window", {"run.duration_s": 10})
    flow = like.summary["flows"][0]
    counted = dict.fromkeys(("cwnd", "pacing", "receive_window", "send_buffer", "application"), 0.0)
    run = recorded(flow["goodput_mbps"] or 0.0, id=flow["id"], limited_s=counted | limits)
    scenario = airpath.load("small-window", {"run.duration_s": 10})
    emulated.add(run, scenario, "quick", own_flows=True)
    return run


def test_what_the_kernel_counted_goes_before_a_simulation() -> None:
    agreed = _small_window(receive_window=9.5, cwnd=0.5)
    first = agreed.summary["findings"][0]
    assert first["cause"] == "receive-window"
    assert first["evidence"].startswith("The kernel counted 95 % of the time of ")
    differs = _small_window(receive_window=0.6, cwnd=9.4)
    assert "receive-window" not in [one["cause"] for one in differs.summary["findings"]]
    (told,) = [one for one in differs.summary["tried"] if "no gain is predicted" in one["outcome"]]
    assert (told["cause"], told["gain"]) == ("receive-window", None)


@needs("ip")
def test_an_emulated_flow_has_the_limits_that_the_kernel_counted(airpath_command: Command) -> None:
    sets = ["--set", "run.duration_s=6"]
    done = airpath_command(
        "emulate", "small-window", "--flows", "--json", "--explain", "off", *sets
    )
    (flow,) = on_time(printed(done))["flows"]
    limited = flow["limited_s"]
    buffers = limited["receive_window"] + limited["send_buffer"]
    assert buffers > 0.7 * sum(limited.values())
    assert sum(limited.values()) == pytest.approx(6, rel=0.1)
