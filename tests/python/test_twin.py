"""``airpath twin``: both drivers compared. The kernel's side needs root."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from airpath.base.toml import parse_toml
from airpath.drivers import emulate, simulate
from airpath.drivers.options import EmulationOptions, SimulationOptions
from airpath.twin import compare
from airpath.twin.comparable import (
    HAND_UP_MS,
    HAND_UP_SEGMENT_MS,
    HOST_JITTER_MS,
    HOST_MS,
    INTERFACE_MBPS,
    PHASES_S,
    PING_MS,
    READER_MS,
    SERVER_MS,
    START_MS,
    WAKE_MS,
    make_comparable,
    nearest_profile,
    with_interfaces,
)
from conftest import Command
from emulated import needs, stages
from real_clock import on_time

needs_root = needs()

CLOCK_MONOTONIC_COARSE = 6
"""Of clock_getres(2): its resolution is the kernel's tick."""

# The queue is never full: who finds the last place is a matter of microseconds.
WIRE = f"""
[run]
duration_s = 3
{stages(20, 20, rate_mbps=20, queue_packets=1000)}\
[[flow]]
id = "download"
kind = "bulk"
[[flow]]
id = "ping"
kind = "ping"
interval_ms = 100
# After slow start, whose end is a matter of microseconds.
start_s = 1
"""

# The UE has a connection after two seconds.
HSPA = f"""
[run]
duration_s = 2.3
{stages(10, 10)}\
[radio]
preset = "umts-hspa"
[[radio.ue]]
name = "a"
[[flow]]
id = "upload"
kind = "bulk"
direction = "up"
"""


def test_each_seed_meets_another_phase_and_a_simulated_host_takes_time() -> None:
    comparable = make_comparable("nr-n78", ["run.duration_s=1"], release="6.18.1")
    starts = set()
    for index in range(5):
        simulated, emulated = (parse_toml(side.resolved_toml) for side in comparable.of_seed(index))
        for key, value in (("host_delay_ms", HOST_MS), ("host_jitter_ms", HOST_JITTER_MS)):
            assert simulated["radio"].pop(key) == value
            assert emulated["radio"].pop(key) == 0
        down = emulated["path"]["down"][0]
        interface = simulated["path"]["down"].pop(0)
        assert (interface["stage"], interface["rate_mbps"]) == ("link", INTERFACE_MBPS)
        assert simulated["path"]["down"][0].pop("delay_ms") == down.pop("delay_ms") + SERVER_MS
        # A SYN at the edge of a slot is in time for none that a real one reaches.
        # A ping is there first.
        begins = [PING_MS if flow["kind"] == "ping" else START_MS for flow in emulated["flow"]]
        began = [[flow.pop("start_s") for flow in side["flow"]] for side in (simulated, emulated)]
        for side, wake in ((simulated, WAKE_MS), (emulated, 0)):
            senders = [flow for flow in side["flow"] if flow["kind"] != "ping"]
            assert senders
            assert all(flow["ack"].pop("wake_ms") == wake for flow in senders)
        for flow in simulated["flow"]:
            if flow["kind"] != "ping" and flow["direction"] == "down":
                assert flow.pop("application") == {"read_delay_ms": READER_MS}
                assert flow["aggregation"].pop("hand_up_ms") == HAND_UP_MS
                assert flow["aggregation"].pop("hand_up_segment_ms") == HAND_UP_SEGMENT_MS
        for late, start, begin in zip(*began, begins, strict=True):
            assert late == pytest.approx(start + begin / 1e3, abs=1e-9)
        assert simulated == emulated
        starts |= set(began[1])
    assert len(starts) == 5
    assert max(starts) < PHASES_S


def test_a_simulated_host_takes_time_to_send_a_window(tmp_path: Path) -> None:
    wire = tmp_path / "wire.toml"
    wire.write_text(f"[run]\nduration_s = 1\n{stages(10, 10)}[[flow]]\nid = 'a'\nkind = 'bulk'\n")
    both = make_comparable(str(wire), release="6.18.1").of_seed(0)
    simulated, emulated = (parse_toml(side.resolved_toml)["path"] for side in both)
    for way in ("down", "up"):
        interface, *rest = simulated[way]
        assert (interface["stage"], interface["rate_mbps"]) == ("link", INTERFACE_MBPS)
        assert [stage["stage"] for stage in rest] == [stage["stage"] for stage in emulated[way]]
    # Behind a radio, a UE's host meets the radio first.
    text = "[[path.down]]\nstage = 'x'\n[[path.up]]\n"
    assert with_interfaces(text, radio=True).count("[[path.") == 3
    assert with_interfaces("[radio]\n", radio=True) == "[radio]\n"


def test_a_reader_that_the_scenario_describes_stays_as_it_is() -> None:
    def simulated(said: str) -> dict[str, Any]:
        comparable = make_comparable("nr-n78", [f"flow.0.{said}"], release="6.18.1")
        flow: dict[str, Any] = parse_toml(comparable.of_seed(0)[0].resolved_toml)["flow"][0]
        return flow

    assert simulated("application.read_delay_ms=2")["application"] == {"read_delay_ms": 2}
    slow = simulated("read_rate_mbps=8")
    assert slow["read_rate_mbps"] == 8
    assert "application" not in slow


def test_a_woken_reader_finds_some_of_a_slots_bursts(core: Any) -> None:
    def acknowledgements(*sets: str) -> int:
        cell = ["run.duration_s=2", "run.ack_table=true", "radio.channel.sinr_db=2"]
        own = ["profile=linux-6.18", *sets]
        run = simulate.run("nr-n78", [*cell, *(f"flow.0.{one}" for one in own)])
        return run.acks.height

    woken = "application.read_delay_ms=0.015"
    alone, all_at_once = acknowledgements(), acknowledgements(woken)
    some = acknowledgements(woken, "aggregation.hand_up_ms=0.014")
    assert all_at_once < some < alone
    # Each is there before the reader wakes, and then again nobody waits.
    assert acknowledgements("aggregation.hand_up_ms=0.002") == pytest.approx(alone, rel=0.1)


@pytest.mark.parametrize(
    ("release", "profile", "exact"),
    [
        ("6.18.44-generic", "linux-6.18", True),
        ("6.1.0-28-amd64", "linux-6.1", True),
        ("6.6.87", "linux-6.1", False),
        ("7.0.1", "linux-6.18", False),
        ("4.4.0", "linux-4.19", False),
    ],
)
def test_the_profile_is_the_newest_that_the_kernel_may_be(
    release: str, profile: str, exact: bool
) -> None:
    names = ["rfc", "linux-4.19", "linux-6.18", "linux-6.1", "macos-10.5"]
    assert nearest_profile(release, names) == (profile, exact)


def test_both_sides_are_told_the_same(core: Any, wire: Path) -> None:
    comparable = make_comparable(str(wire), release="6.18.1")
    toml = comparable.scenario.resolved_toml
    assert comparable.reasons == {}
    assert 'profile = "linux-6.18"' in toml
    # As much as the emulation hands to the kernel at once.
    assert "aggregation.max_bytes = 65535" in toml
    alone = make_comparable(str(wire), ["emulation.coalesce_bytes=0"], release="6.18.1")
    assert "aggregation.max_bytes = 0" in alone.scenario.resolved_toml


@pytest.mark.parametrize(
    ("release", "sets", "own", "said"),
    [
        ("6.18.1", [], True, "its profile is rfc, the kernel is 6.18.1"),
        ("6.19.0", [], False, "there is no profile of Linux 6.19.0; linux-6.18 is the nearest"),
        ("6.18.1", ['flow.0.slow_start="hystart++"'], False, "slow_start is hystart++"),
        ("6.18.1", ["flow.0.ack.delay_ms=100"], False, "ack.delay_ms is 100"),
    ],
)
def test_what_cannot_be_compared_is_said(
    core: Any, wire: Path, release: str, sets: list[str], own: bool, said: str
) -> None:
    comparable = make_comparable(str(wire), sets, own_profiles=own, release=release)
    assert said in comparable.reasons["download"]


def _judged(simulated: list[float | None], emulated: list[float | None], limit: float) -> str:
    return compare._judged("flow", "goodput", "Mb/s", simulated, emulated, limit).verdict


def test_a_verdict_is_about_the_means() -> None:
    assert _judged([9.0, 11.0], [9.8, 11.0], 0.05) == compare.AGREES
    assert _judged([10.0], [10.6], 0.05) == compare.DIFFERS
    assert _judged([10.0], [None], 0.05) == compare.DIFFERS
    assert _judged([None], [None], 0.05) == compare.NOT_COMPARABLE
    assert _judged([0.0], [0.0], 0.05) == compare.AGREES


@pytest.mark.skipif(os.geteuid() == 0, reason="this is about not being root")
def test_without_root_it_says_so(airpath_command: Command, wire: Path) -> None:
    done = airpath_command("twin", str(wire))
    assert done.returncode == 1
    assert "root" in done.stderr


def _syns_after_ms(capture: Path) -> list[float]:
    """When the UE's SYN is retransmitted, from the first one."""
    syns = "tcp.flags.syn==1 && tcp.flags.ack==0 && frame.interface_id==1"
    command = ["tshark", "-r", str(capture), "-n", "-Y", syns, "-T", "fields"]
    done = subprocess.run(
        [*command, "-e", "frame.time_relative"], capture_output=True, text=True, check=True
    )
    first, *more = (float(line) for line in done.stdout.split())
    return [1e3 * (time - first) for time in more]


@pytest.mark.skipif(
    time.clock_getres(CLOCK_MONOTONIC_COARSE) != 0.004,
    reason="the profile has the ticks of a kernel of 250 Hz",
)
@needs("tshark")
def test_the_kernels_coarse_timers_fire_when_the_simulated_ones_do(
    core: Any, tmp_path: Path
) -> None:
    # Until the UE has a connection a SYN goes out three times.
    scenario = tmp_path / "hspa.toml"
    scenario.write_text(HSPA)
    comparable = make_comparable(str(scenario))
    simulated, emulated = comparable.of_seed(0)
    place = tmp_path / "simulated"
    simulate.execute(simulated, SimulationOptions(seed=1, out=place, capture=True))
    expected = _syns_after_ms(place / "capture.pcapng")
    assert len(expected) == 2
    # Runs of one process: time 0 stands at the same place of the wheel in each.
    for attempt in range(2):
        out = tmp_path / f"emulated-{attempt}"
        options = EmulationOptions(seed=1, out=out, flows=True, parity=True, capture=True)
        done = emulate.emulate(emulated, options)
        on_time(dict(done.summary))
        seen = _syns_after_ms(out / "capture.pcapng")
        # One is a tick of 4 ms late now and then; the next place of the wheel is 32 ms later.
        assert seen == pytest.approx(expected, abs=5.0)


@needs_root
def test_a_wire_agrees_and_another_delay_does_not(
    airpath_command: Command, wire: Path, tmp_path: Path
) -> None:
    page = tmp_path / "twin.html"
    for attempt in range(3):
        out = tmp_path / f"twin-{attempt}"
        report = ("--json", "--report", str(page))
        done = airpath_command("twin", str(wire), "--out", str(out), *report)
        document = json.loads(done.stdout)
        figures = {(figure["flow"], figure["figure"]): figure for figure in document["figures"]}
        # An end that stops for a millisecond breaks HyStart's train: slow start ends a round later.
        if figures["download", "exit cwnd"]["verdict"] == "agrees":
            break
    assert done.returncode == 0, done.stdout
    assert document["twin"]["parity"]["1"]["same"]
    assert document["twin"]["parity"]["1"]["left"] > 5000
    for name in ("goodput", "RTT p50", "RTT p95", "slow-start exit", "exit cwnd"):
        assert figures["download", name]["verdict"] == "agrees"
    assert figures["ping", "RTT p50"]["verdict"] == "agrees"
    assert "both sides" in page.read_text(encoding="utf-8").lower()

    # What is complete is kept: only the comparison is made again.
    emulated = out / "seed-1" / "emulated" / "summary.json"
    before = emulated.stat().st_mtime_ns
    again = airpath_command("twin", str(wire), "--out", str(out), "--json")
    assert json.loads(again.stdout) == document
    assert emulated.stat().st_mtime_ns == before
    other = airpath_command("twin", str(wire), "--set", "run.duration_s=2", "--out", str(out))
    assert other.returncode == 2
    assert "holds another twin" in other.stderr

    # The kernel over 40 ms, the simulation over 60 ms.
    simulated = out / "seed-1" / "simulated"
    shutil.rmtree(simulated)
    longer = make_comparable(str(wire), ["path.up.0.delay_ms=40"])
    simulate.execute(longer.scenario, SimulationOptions(out=simulated))
    wrong = airpath_command("twin", str(wire), "--out", str(out), "--json")
    assert wrong.returncode == 1
    document = json.loads(wrong.stdout)
    figures = {(figure["flow"], figure["figure"]): figure for figure in document["figures"]}
    assert document["twin"]["verdict"] == "differs"
    assert figures["ping", "RTT p50"]["verdict"] == "differs"
    assert figures["download", "slow-start exit"]["verdict"] == "differs"


@needs_root
def test_a_machine_that_is_too_late_is_not_averaged_in(
    airpath_command: Command, wire: Path, tmp_path: Path
) -> None:
    out = tmp_path / "twin"
    sets = ("emulation.lateness_bound_ms=0.000001", "run.duration_s=1.2")
    done = airpath_command(
        *("twin", str(wire), "--out", str(out), "--json"),
        *(word for one in sets for word in ("--set", one)),
    )
    assert done.returncode == 3, done.stderr
    document = json.loads(done.stdout)
    assert document["twin"]["verdict"] == "invalid"
    assert len(document["twin"]["invalid"]["1"]) == 3
    assert document["figures"] == []
    assert sorted(path.name for path in (out / "seed-1").iterdir()) == [
        "invalid-1",
        "invalid-2",
        "invalid-3",
        "simulated",
    ]
