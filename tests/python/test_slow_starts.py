"""CUBIC with a generation's slow start, loaded into the kernel: against the simulation. Root."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from conftest import PATIENCE_S, UNEXPLAINED, Command, start_command, until
from emulated import busiest, iperf, printed, skip_without_bpf, stages

needs_bpf = skip_without_bpf()
# What is loaded is seen by the whole machine: one after another.
pytestmark = pytest.mark.xdist_group("slow-starts")

# A clean path: HyStart ends at about 1 BDP, 167 segments, and the buffer never overflows, although
# without HyStart the kernel's writer sends up to 9.4 MB.
WIRE = f"""
[run]
duration_s = 2.5
[emulation]
slow_start = "profile"
{stages(20, 20, rate_mbps=50, queue_packets=8000)}\
[[flow]]
id = "download"
kind = "bulk"
congestion = "cubic"
profile = "linux-6.18"
"""
RTT_S = 0.04

GENERATIONS = {
    "air_4.19": ["slow_start=hystart-4.19"],
    "air_4.19.131": ["slow_start=hystart-4.19", "hystart.falling_minimum_exits=false"],
    "air_4.19_both": [
        "slow_start=hystart-4.19",
        "hystart.falling_minimum_exits=false",
        "hystart.late_reset=false",
    ],
    "air_5.6": ["slow_start=hystart-5.6"],
    "air_5.8": ["slow_start=hystart-5.8"],
    "air_5.16": ["slow_start=hystart-5.16"],
    "air_6.14": ["slow_start=hystart-6.14"],
    "air_hystartpp": ["slow_start=hystart++"],
    "air_none": ["slow_start=none"],
}
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


def _ours() -> set[str]:
    return {name for name in AVAILABLE.read_text().split() if name.startswith("air_")}


def _flow(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    return busiest(printed(done))


@pytest.mark.real_clock
@needs_bpf
@pytest.mark.parametrize("name", GENERATIONS)
def test_slow_start_ends_where_the_simulations_does(
    airpath_command: Command, wire: Path, name: str
) -> None:
    """By a program that chooses it, so that the kernel's own generation is ours too."""
    sets = [word for key in GENERATIONS[name] for word in ("--set", f"flow.0.{key}")]
    simulated = _flow(airpath_command("run", *UNEXPLAINED, str(wire), "--json", *sets))[
        "slow_start_exit"
    ]
    for _ in range(3):
        done = airpath_command(
            *("emulate", *UNEXPLAINED, str(wire), "--json", "--server", "exec iperf3 -s", *sets),
            *("--", "iperf3", "-c", "server", "-R", "-t", "2", "-J", "-C", name),
        )
        emulated = _flow(done)
        wrong = _wrong(simulated, emulated["slow_start_exit"])
        # A machine that stops for longer breaks a train, whose gaps are 2 ms at most.
        directions = printed(done)["emulation"]["directions"].values()
        if not wrong or all(direction["lateness_us"]["max"] < 1000 for direction in directions):
            break
    assert iperf(done.stderr)["end"]["sender_tcp_congestion"] == name
    assert emulated["congestion"] == name
    assert emulated["goodput_mbps"] > 35
    assert not wrong, wrong


def _wrong(simulated: dict[str, Any] | None, found: dict[str, Any] | None) -> str | None:
    """How the kernel's end of slow start is another one than the simulated; None if it is not."""
    both = f"simulated {simulated}, emulated {found}"
    if simulated is None or found is None:
        return None if simulated is found else both
    # One round is as long as the window takes on the link; iperf3 has a word with its server first.
    round_s = max(RTT_S, found["cwnd_segments"] * 1500 * 8 / 50e6)
    agrees = (
        found["reason"] == simulated["reason"]
        and found["cwnd_segments"] == pytest.approx(simulated["cwnd_segments"], rel=0.2)
        and found["time_s"] - RTT_S == pytest.approx(simulated["time_s"], abs=round_s)
    )
    return None if agrees else both


@pytest.mark.real_clock
@needs_bpf
def test_a_flow_has_its_profiles(airpath_command: Command, wire: Path, tmp_path: Path) -> None:
    """5.16's delay test ends slow start where the kernel's own, of 6.14, goes on to a train."""
    out = tmp_path / "run"
    done = airpath_command(
        *("emulate", *UNEXPLAINED, str(wire), "--flows", "--json", "--out", str(out)),
        *("--set", "flow.0.slow_start=hystart-5.16", "--set", "run.ack_table=true"),
    )
    assert _flow(done)["slow_start_exit"]["reason"] == "delay"
    # The acknowledgement that ended slow start shows what was compared; later ones show nothing.
    acks = pl.read_parquet(out / "acks.parquet")
    *_, last = acks.filter(pl.col("round_samples").is_not_null()).to_dicts()
    exits = pl.read_parquet(out / "events.parquet").filter(kind="slow_start_exit")
    assert [last["time_ns"]] == exits["time_ns"].to_list()
    assert last["round_samples"] == 8
    assert last["round_min_rtt_ms"] > last["round_rtt_threshold_ms"]
    assert last["ack_train_ms"] < last["ack_train_limit_ms"]
    environment = json.loads((out / "provenance.json").read_text())["emulation"]
    assert environment["ends"][0]["congestion"] == "air_5.16"
    assert sorted(environment["slow_starts"]) == sorted(GENERATIONS)
    assert environment["ends"][0]["hystart"]["TCPHystartTrainDetect"] == 0
    assert not _ours()


@pytest.mark.real_clock
@needs_bpf
def test_hystart_pp_shows_its_rounds(airpath_command: Command, wire: Path, tmp_path: Path) -> None:
    """CSS begins as the round's minimum reaches the threshold, and that is its baseline."""
    out = tmp_path / "run"
    keys = ("flow.0.slow_start=hystart++", "run.ack_table=true", "run.duration_s=1")
    done = airpath_command(
        *("emulate", *UNEXPLAINED, str(wire), "--flows", "--json", "--out", str(out)),
        *(word for key in keys for word in ("--set", key)),
    )
    assert _flow(done)["congestion"] == "air_hystartpp"
    threshold, minimum = pl.col("round_rtt_threshold_ms"), pl.col("round_min_rtt_ms")
    acks = pl.read_parquet(out / "acks.parquet").filter(pl.col("css").is_not_null())
    assert acks["ack_train_ms"].is_null().all()
    css = acks.with_columns(before=threshold.shift(1), was=pl.col("css").shift(1)).filter("css")
    first = css.filter(~pl.col("was"))
    assert first.height >= 1
    assert first.filter((minimum >= pl.col("before")) & (minimum == threshold)).height >= 1
    assert css.filter("was", threshold == pl.col("before")).height > 100


ACCEPTS = """
import socket
server = socket.create_server(("0.0.0.0", 5001))
connection, _ = server.accept()
while connection.recv(1 << 16):
    pass
"""

STOPS = """
import os, socket
socket.create_connection(("10.77.0.1", 5001)).sendall(bytes(2_000_000))
os._exit(0)
"""


@needs_bpf
def test_a_connection_that_still_had_to_send_ends_with_the_run(
    airpath_command: Command, wire: Path
) -> None:
    """Else it keeps its congestion control in the kernel until that gives it up, after minutes."""
    wire.write_text(wire.read_text() + 'direction = "up"\nslow_start = "hystart-5.16"\n')
    before = _orphans()
    done = airpath_command(
        *("emulate", *UNEXPLAINED, str(wire), "--set", "path.up.0.delay_ms=500"),
        *("--server", f"exec {sys.executable} -c {shlex.quote(ACCEPTS)}"),
        *("--", sys.executable, "-c", STOPS),
    )
    assert done.returncode in (0, 3), done.stderr
    # Those of others come and go.
    assert until(lambda: _orphans() <= before, 20), (before, _orphans())


def _orphans() -> int:
    """TCP connections of the whole machine that no program has."""
    words = Path("/proc/net/sockstat").read_text().split()
    return int(words[words.index("orphan") + 1])


@needs_bpf
def test_a_switch_that_no_generation_has_is_refused(airpath_command: Command, wire: Path) -> None:
    sets = ("--set", "flow.0.slow_start=hystart-5.8", "--set", "flow.0.hystart.delay=false")
    done = airpath_command("emulate", str(wire), *sets, "--", "true")
    assert done.returncode == 2
    assert "`download`" in done.stderr
    assert "hystart-5.8" in done.stderr
    assert not _ours()


@pytest.mark.real_clock
@needs_bpf
def test_two_runs_do_not_collide_and_leave_nothing(wire: Path) -> None:
    def start() -> subprocess.Popen[bytes]:
        words = ("emulate", str(wire), "--", "sleep", "60")
        return start_command(*words, cwd=wire.parent, stderr=subprocess.DEVNULL)

    runs = [start()]
    try:
        assert until(lambda: len(_ours()) == len(GENERATIONS))
        runs.append(start())
        assert until(lambda: len(_ours()) == 2 * len(GENERATIONS))
        runs[0].kill()
        runs[0].wait(timeout=PATIENCE_S)
        second = {f"{name}_2" for name in GENERATIONS}
        assert until(lambda: _ours() == second), _ours()
    finally:
        for run in runs:
            run.kill()
            run.wait(timeout=PATIENCE_S)
    assert until(lambda: not _ours()), _ours()
