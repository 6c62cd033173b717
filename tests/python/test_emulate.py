"""``airpath emulate``: real programs over the model. Most of it needs root, and says so."""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from airpath.diagnose.files import diagnose
from airpath.documents import CaptureReport
from airpath.readers.flows import tcp_of
from conftest import PATIENCE_S, UNEXPLAINED, Command, start_command, until
from emulated import (
    DELAYS,
    iperf,
    needs,
    needs_root,
    networks,
    ones_complement,
    pcapng,
    printed,
    processes,
    skip_without,
)

WIRE = DELAYS


def _emulate(command: Command, scenario: object, *words: str, **options: Any) -> Any:
    """Run ``words`` over a scenario; its document, once it ended well."""
    arguments = [f"--{name}={value}" for name, value in options.items()]
    done = command("emulate", *UNEXPLAINED, str(scenario), "--json", *arguments, "--", *words)
    return printed(done), done.stderr


@needs_root
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("true",), 0),
        (("sh", "-c", "exit 7"), 7),
        (("sh", "-c", "kill -TERM $$"), 143),
        (("no-such-program",), 1),
    ],
)
def test_the_exit_code_is_the_commands(
    airpath_command: Command, wire: Path, words: tuple[str, ...], code: int
) -> None:
    done = airpath_command("emulate", str(wire), "--", *words)
    assert done.returncode == code, done.stderr
    if code == 1:
        assert "no-such-program" in done.stderr
        assert not (wire.parent / "runs").exists() or not any((wire.parent / "runs").iterdir())


@skip_without()
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("proxy", "--", "true"), "down.2.proxy"),
        (("two-flows", "--set", "flow.0.congestion=bbr3", "--", "true"), "reno, cubic, bbr"),
        (("two-flows", "--at", "nowhere", "--", "true"), "its hosts are server, ue"),
    ],
)
def test_what_cannot_be_emulated_is_refused(
    airpath_command: Command, arguments: tuple[str, ...], said: str
) -> None:
    done = airpath_command("emulate", *arguments)
    assert done.returncode == 2
    assert said in done.stderr


@needs_root
def test_a_run_beyond_its_bound_does_not_count(airpath_command: Command, wire: Path) -> None:
    done = airpath_command(
        *("emulate", str(wire), "--set", "emulation.lateness_bound_ms=0.000001", "--json"),
        *("--", "ping", "-q", "-c", "5", "-i", "0.01", "server"),
    )
    assert done.returncode == 3, done.stderr
    emulation = json.loads(done.stdout)["emulation"]
    assert not emulation["valid"]
    assert "bound" in emulation["invalid_because"]
    # The command's own failure is more important.
    bound = ("--set", "emulation.lateness_bound_ms=0.000001")
    script = "ping -q -c 3 -i 0.01 server; exit 5"
    assert airpath_command("emulate", str(wire), *bound, "--", "sh", "-c", script).returncode == 5


@needs_root
@pytest.mark.parametrize("version", ["-4", "-6"])
def test_a_ping_takes_the_time_of_the_path(
    airpath_command: Command, wire: Path, version: str
) -> None:
    document, said = _emulate(
        airpath_command, wire, "ping", version, "-c", "20", "-i", "0.02", "server"
    )
    match = re.search(r"= ([\d.]+)/", said)
    assert match, said
    # 15 ms down, 10 ms up, and the machine's own time.
    assert 25.0 <= float(match[1]) < 26.0
    for counts in document["emulation"]["directions"].values():
        assert counts["entered"] == counts["left"] == 20


@needs_root
@pytest.mark.parametrize("keep", [True, False])
def test_processors_stay_awake_as_long_as_it_runs(
    airpath_command: Command, wire: Path, *, keep: bool
) -> None:
    """Linux says there how long a processor may take to wake up."""
    device = Path("/dev/cpu_dma_latency")
    if not os.access(device, os.W_OK):
        pytest.skip(f"{device} is missing or may not be written")
    before = device.read_bytes()
    document, said = _emulate(
        *(airpath_command, wire, "od", "-An", "-td4", "-N4", str(device)),
        set=f"emulation.keep_awake={str(keep).lower()}",
    )
    emulation = document["emulation"]
    assert emulation["processors_awake"] == keep
    assert any(line.split() == ["0"] for line in said.splitlines()) == keep
    assert device.read_bytes() == before


@needs_root
@pytest.mark.parametrize("streams", [1, 4])
@pytest.mark.parametrize("direction", ["down", "up"])
@pytest.mark.parametrize("congestion", ["cubic", "bbr", "reno"])
@pytest.mark.parametrize("scenario", ["lte-20", "nr-n78"])
def test_iperf3(
    airpath_command: Command, scenario: str, congestion: str, direction: str, streams: int
) -> None:
    """The kernel sends with what the scenario's flow says, no faster than the cell can."""
    sets = [f"flow.0.direction={direction}", f"flow.0.congestion={congestion}"]
    reverse = ["-R"] if direction == "down" else []
    done = airpath_command(
        *("emulate", *UNEXPLAINED, scenario, "--json", "--server", "exec iperf3 -s"),
        *(word for one in sets for word in ("--set", one)),
        *("--", "iperf3", "-c", "server", "-t", "1", "-J", "-P", str(streams), *reverse),
    )
    assert done.returncode in (0, 3), done.stderr
    end = iperf(done.stderr)["end"]
    assert end["sender_tcp_congestion"] == congestion
    document = json.loads(done.stdout)
    # The first UE's buffers come first.
    link = next(link for link in document["links"] if link["id"].endswith(direction))
    goodput = end["sum_received"]["bits_per_second"] / 1e6
    assert 1.0 < goodput < link["capacity_mbps"]
    for counts in document["emulation"]["directions"].values():
        inside = counts["entered"] - counts["left"] - sum(counts["dropped"].values())
        assert 0 <= inside <= document["emulation"]["inside"]
        assert counts["refused"] == 0


@needs_root
def test_udp_arrives_at_its_rate(airpath_command: Command) -> None:
    done = airpath_command(
        *("emulate", *UNEXPLAINED, "lte-20", "--json", "--server", "exec iperf3 -s"),
        *("--", "iperf3", "-c", "server", "-u", "-b", "20M", "-t", "2", "-R", "-J"),
    )
    assert done.returncode in (0, 3), done.stderr
    total = iperf(done.stderr)["end"]["sum"]
    assert total["lost_percent"] < 1.0
    assert total["bits_per_second"] == pytest.approx(20e6, rel=0.05)


@needs_root
@pytest.mark.parametrize("scenario", ["lte-20", "nr-n78"])
def test_a_file_arrives_as_it_was(airpath_command: Command, tmp_path: Path, scenario: str) -> None:
    """20 MB by curl from a web server."""
    data = random.Random(1).randbytes(20_000_000)
    (tmp_path / "data").write_bytes(data)
    server = f"exec {sys.executable} -m http.server --directory {tmp_path} 8000"
    done = airpath_command(
        *("emulate", *UNEXPLAINED, scenario, "--json", "--server", server),
        *("--", "curl", "-sS", "-o", str(tmp_path / "copy"), "http://server:8000/data"),
    )
    assert done.returncode in (0, 3), done.stderr
    copy = (tmp_path / "copy").read_bytes()
    assert hashlib.sha256(copy).digest() == hashlib.sha256(data).digest()
    down = json.loads(done.stdout)["emulation"]["directions"]["down"]
    assert down["entered_bytes"] > len(data)


@needs_root
def test_the_run_directory_is_one(airpath_command: Command, tmp_path: Path) -> None:
    done = airpath_command(
        *(
            "emulate",
            *UNEXPLAINED,
            "nr-n78",
            "--out",
            str(tmp_path / "run"),
            "--server",
            "exec iperf3 -s",
        ),
        *("--", "iperf3", "-c", "server", "-t", "1"),
    )
    assert done.returncode in (0, 3), done.stderr
    record = json.loads((tmp_path / "run/provenance.json").read_text())
    assert record["driver"] == "emulate"
    server, ue = record["emulation"]["ends"][:2]
    assert record["emulation"]["kernel"] == os.uname().release
    assert server["name"] == "server"
    assert ue["sysctls"]["tcp_no_metrics_save"] == "1"
    assert ue["counters"]["OutSegs"] > 100
    radio = pl.read_parquet(tmp_path / "run/radio.parquet")
    assert radio.filter(pl.col("direction") == "up")["scheduling_requests"].sum() > 0
    links = pl.read_parquet(tmp_path / "run/links.parquet")
    assert links.filter(pl.col("throughput_mbps") > 10).height > 0
    report = airpath_command("report", str(tmp_path / "run"), "-o", str(tmp_path / "r.html"))
    assert report.returncode == 0, report.stderr


@needs_root
def test_a_capture_has_every_place_and_the_models_times(
    airpath_command: Command, wire: Path
) -> None:
    out = wire.parent / "run"
    began = time.time_ns()
    done = airpath_command(
        *("emulate", *UNEXPLAINED, str(wire), "--capture", "--json", "--out", str(out), "--server"),
        *("exec iperf3 -s", "--", "iperf3", "-c", "server", "-4", "-R", "-n", "2M"),
    )
    directions = printed(done)["emulation"]["directions"]
    names, packets = pcapng(out / "capture.pcapng")
    assert names == ["server", "ue"]
    count = sum(counts["entered"] + counts["left"] for counts in directions.values())
    assert len(packets) == count
    seen: dict[bytes, list[tuple[int, int]]] = {}
    for place, at, packet in packets:
        assert ones_complement(packet[:20]) == 0xFFFF
        pseudo = packet[12:20] + bytes([0, 6]) + (len(packet) - 20).to_bytes(2, "big")
        assert ones_complement(pseudo + packet[20:]) == 0xFFFF
        assert began <= at <= time.time_ns()
        seen.setdefault(packet, []).append((place, at))
    pairs = [sorted(places) for places in seen.values() if len(places) == 2]
    assert len(pairs) > 1000
    # 15 ms down and 10 ms up, to the nanosecond.
    assert {ue - server for (_, server), (_, ue) in pairs} == {15_000_000, -10_000_000}


@needs("ip", "iperf3", "tcpdump", "tshark", "tcptrace")
def test_every_tool_opens_a_capture(airpath_command: Command, wire: Path) -> None:
    """All of libpcap's tools read all points, and Wireshark's tells them apart."""
    out = wire.parent / "run"
    done = airpath_command(
        *("emulate", *UNEXPLAINED, str(wire), "--capture", "--json", "--out", str(out), "--server"),
        *("exec iperf3 -s", "--", "iperf3", "-c", "server", "-R", "-n", "200k"),
    )
    directions = printed(done)["emulation"]["directions"]
    count = sum(counts["entered"] + counts["left"] for counts in directions.values())
    capture = str(out / "capture.pcapng")

    def reads(*words: str) -> str:
        read = subprocess.run(words, capture_output=True, text=True, check=True, cwd=out)
        return read.stdout

    lines = reads("tcpdump", "-n", "-r", capture).splitlines()
    assert len(lines) == count
    assert all(" IP " in line or " IP6 " in line for line in lines)
    points = reads("tshark", "-r", capture, "-T", "fields", "-e", "frame.interface_name")
    assert set(points.split()) == {"server", "ue"}
    assert len(points.split()) == count
    broken = ("tcp.analysis.lost_segment || _ws.malformed",)
    assert not reads("tshark", "-r", capture, "-Y", f"({broken[0]}) && frame.interface_id == 0")
    assert f"{count} packets seen" in reads("tcptrace", "-n", capture)
    _is_diagnosed(diagnose(capture)["capture"], count)


@needs("ip", "iperf3")
def test_a_capture_tells_what_the_kernel_records(airpath_command: Command, tmp_path: Path) -> None:
    """At the server: as many segments retransmitted, and as many of them after time-outs."""
    scenario, out = tmp_path / "lossy.toml", tmp_path / "run"
    delay, loss = 'stage = "delay"\ndelay_ms = 20\n', 'stage = "loss"\nprobability = 0.03\n'
    stages = [("down", delay), ("down", loss), ("up", delay)]
    text = "".join(f"[[path.{way}]]\n{stage}" for way, stage in stages)
    scenario.write_text(f'[run]\nduration_s = 20\n{text}[[flow]]\nkind = "bulk"\n')
    done = airpath_command(
        *("emulate", *UNEXPLAINED, str(scenario), "--capture", "--json", "--out", str(out)),
        *("--server", "exec iperf3 -s", "--", "iperf3", "-c", "server", "-4", "-R", "-n", "2M"),
    )
    recorded = max(printed(done)["flows"], key=lambda flow: flow["bytes_delivered"])
    assert recorded["retransmitted_segments"] > 20
    capture: Any = diagnose(str(out / "capture.pcapng"))["capture"]
    assert capture["interfaces"][0]["name"] == "server"
    at_server = [flow for flow in capture["flows"] if flow["interface"] == 0 and flow["tcp"]]
    flow = max(at_server, key=lambda flow: int(flow["from_server"]["bytes"]))
    seen = flow["tcp"]["from_server"]["retransmissions"]
    assert seen["segments"] == recorded["retransmitted_segments"]
    assert bool(seen["timeout"]) == bool(recorded["rto_count"])


def _is_diagnosed(capture: CaptureReport, count: int) -> None:
    """Each flow is at both points, and the round trips of the two make up the path's."""
    assert (capture["packets"], capture["skipped"]) == (count, {})
    assert capture["missed"]["acks_of_unseen"] == 0
    flows = [flow for flow in capture["flows"] if flow["protocol"] == "tcp"]
    assert {flow["interface"] for flow in flows} == {0, 1}
    by_id = {flow["id"]: flow for flow in flows}
    for flow in flows:
        (other,) = (by_id[one] for one in flow["same_as"])
        assert other["interface"] != flow["interface"]
        # The command ends while the last packets are on their way.
        packets = flow["from_server"]["packets"] - other["from_server"]["packets"]
        assert abs(packets) <= 10
        handshakes = [tcp_of(one)["handshake_ms"] or 0.0 for one in (flow, other)]
        # 15 ms down and 10 ms up: the UE sends first and last.
        assert all(25.0 <= handshake < 60.0 for handshake in handshakes)


def _start(scenario: Path, *words: str, servers: tuple[str, ...] = ()) -> subprocess.Popen[bytes]:
    options = [word for line in servers for word in ("--server", line)]
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    arguments = ("emulate", *UNEXPLAINED, str(scenario), *options, "--", *words)
    return start_command(*arguments, cwd=scenario.parent, **streams)


@needs_root
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 9), (signal.SIGINT, 8)])
def test_signals_are_the_commands(wire: Path, sent: signal.Signals, code: int) -> None:
    ready = wire.parent / "ready"
    script = f"trap 'exit 9' TERM; trap 'exit 8' INT; touch {ready}; while :; do sleep 0.05; done"
    running = _start(wire, "sh", "-c", script)
    assert until(ready.exists)
    running.send_signal(sent)
    _, said = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == code, said.decode()
    assert b"run directory" in said


EVERYTHING = """
[emulation]
gtpu = true
slow_start = "%(slow_start)s"
[[path.up]]
stage = "nat"
[[path.down]]
stage = "nat"
[radio]
preset = "lte-20"
[[flow]]
kind = "bulk"
profile = "linux-4.19"
[[program]]
command = ": %(mark)s; exec ping -q -i 0.05 server"
at = "ue-0"
"""
"""Two namespaces of the core, a NAT's, the ends'; programs, and a congestion control of ours."""


def _struct_ops() -> set[str]:
    """Those in the kernel, by ``bpftool``; none where it is missing."""
    if shutil.which("bpftool") is None:
        return set()
    listed = subprocess.run(
        ["bpftool", "-j", "struct_ops", "list"], capture_output=True, text=True, check=True
    )
    return {str(entry) for entry in json.loads(listed.stdout or "[]")}


@needs_root
@pytest.mark.parametrize("scenario", ["wire", "everything"])
def test_nothing_is_left_when_it_is_killed(wire: Path, scenario: str) -> None:
    from airpath import _core

    mark = f"airpath-mark-{os.getpid()}"
    if scenario == "everything":
        if shutil.which("nft") is None:
            pytest.skip("apt-get install nftables")
        slow_start = "profile" if _core.__bpf__ else "kernel"
        wire.write_text(EVERYTHING % {"mark": mark, "slow_start": slow_start})
    names_before = {path.name for path in Path("/run/netns").glob("*")}
    devices_before = {path.name for path in Path("/sys/class/net").iterdir()}
    networks_before, controls_before = networks(), _struct_ops()
    draw = random.Random(5)
    script = f": {mark}; sleep 1001 & setsid sleep 1002 & wait"
    for _ in range(5):
        # Two beside each other: neither may take what is the other's.
        both = [
            _start(wire, "sh", "-c", script, servers=(f": {mark}; exec iperf3 -s",))
            for _ in range(2)
        ]
        first, second = sorted(draw.uniform(0.1, 1.5) for _ in both)
        for running, pause in zip(both, (first, second - first), strict=True):
            time.sleep(pause)
            running.kill()
        for running in both:
            running.communicate(timeout=PATIENCE_S)
    assert until(lambda: not processes(mark)), processes(mark)
    assert until(lambda: networks() <= networks_before), networks() - networks_before
    assert until(lambda: _struct_ops() <= controls_before), _struct_ops() - controls_before
    assert {path.name for path in Path("/run/netns").glob("*")} == names_before
    assert {path.name for path in Path("/sys/class/net").iterdir()} == devices_before
    # What a killed process cannot remove, the next run does.
    after = _start(wire, "true")
    after.communicate(timeout=PATIENCE_S)
    assert after.returncode in (0, 3)
    assert not list((wire.parent / "runs").glob("*.partial-*"))
