"""The kernel's TCP through the path model, in namespaces; skipped where those are not to be had."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest

import conftest
from conftest import PATIENCE_S, until
from referee import forwarder, network, packets
from referee.kernel import Child
from referee.network import DEVICE, UE_ADDRESS, Network

TESTS = Path(__file__).resolve().parents[1]
SECONDS = 6
ROW = ("--only", "cubic", "--rate", "20", "--rtt", "20", "--buffer", "1", "--loss", "0")

DELAY = """
[[path.down]]
stage = "delay"
delay_ms = {down}
[[path.up]]
stage = "delay"
delay_ms = {up}
[[flow]]
kind = "ping"
"""
LINK = """
[[path.down]]
stage = "link"
rate_mbps = 100
queue_packets = 5_000
[[flow]]
kind = "ping"
"""
WAIT = "input()"
PING = f"""
import json, os, socket, struct, time
os.nice(-10)
with socket.socket(type=socket.SOCK_RAW, proto=socket.IPPROTO_ICMP) as s:
    s.connect(("{UE_ADDRESS}", 0))
    s.settimeout(1)
    times = []
    for n in range(100):
        start = time.monotonic()
        # Echo request, identifier 1; RFC 1071's sum of these three words.
        s.send(struct.pack("!BBHHH", 8, 0, 0xFFFF - 0x0801 - n, 1, n))
        s.recv(2000)
        times.append(1000 * (time.monotonic() - start))
        time.sleep(0.003)
print(json.dumps({{"times": times}}))
"""
FLOOD = f"""
import contextlib, socket, time
with socket.socket(type=socket.SOCK_DGRAM) as s:
    s.connect(("{UE_ADDRESS}", 9))
    for n in range(14_000):
        with contextlib.suppress(ConnectionRefusedError):
            s.send(b"x" * 1472)
time.sleep(1.5)
print("{{}}")
"""


@pytest.fixture(scope="module")
def program() -> Path:
    """The forwarder; without root, TUN or namespaces the test is skipped."""
    if reason := network.missing():
        pytest.skip(reason)
    try:
        return forwarder.build()
    except forwarder.BuildError as error:
        pytest.skip(str(error))


def start(program: Path, out: Path, *options: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "AIRPATH_REFEREE": str(program)}
    command = [sys.executable, "-m", "referee", *ROW, "--repeat", "1", *options]
    return conftest.start(
        [*command, "--out", str(out), "--page", str(out / "referee.md"), "--json"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def namespaces(pid: int) -> list[str]:
    listed = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=True)
    return [line for line in listed.stdout.splitlines() if line.startswith(f"airpath-{pid}-")]


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def running(pids: list[int]) -> list[int]:
    """Those that are there and no zombies."""

    def state(pid: int) -> str:
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return "gone"

    return [pid for pid in pids if state(pid) not in {"gone", "Z"}]


@pytest.mark.real_clock
def test_one_row(program: Path, tmp_path: Path) -> None:
    process = start(program, tmp_path, "--duration", str(SECONDS))
    out, complaint = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, complaint
    (stored,) = (json.loads(file.read_text()) for file in tmp_path.glob("*.json"))
    assert 10 < stored["goodput_mbps"] < 20
    assert stored["intact"]
    assert stored["received_bytes"] == stored["written_bytes"] > 0
    forwarder = stored["forwarder"]
    directions = forwarder["directions"].values()
    assert all(direction["lateness_us"]["p99"] > 0 for direction in directions)
    gone = sum(each["left"] + sum(each["dropped"].values()) for each in directions)
    assert sum(each["entered"] for each in directions) == gone + forwarder["inside"]
    assert namespaces(process.pid) == []
    if stored["invalid"]:
        # A busy machine: said, and kept out of the table.
        assert "does not count" in complaint
        assert json.loads(out) == []
        return
    (row,) = json.loads(out)
    assert row["goodput_mbps"]["simulated"]
    assert "| cubic | 20 | 20 | 1 | 0 | 1 |" in (tmp_path / "referee.md").read_text()


@pytest.mark.real_clock
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_leaves_nothing(
    program: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    process = start(program, tmp_path, "--duration", "30")
    assert until(lambda: len(children(process.pid)) == 3)
    started = children(process.pid)
    process.send_signal(number)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code
    assert namespaces(process.pid) == []
    assert running(started) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.real_clock
def test_what_a_killed_run_leaves_is_removed(program: Path, tmp_path: Path) -> None:
    process = start(program, tmp_path, "--duration", "30")
    assert until(lambda: len(children(process.pid)) == 3)
    started = children(process.pid)
    process.kill()
    process.communicate(timeout=PATIENCE_S)
    assert until(lambda: not running(started))
    assert len(namespaces(process.pid)) == 2
    assert len([name for name in network.remove_leftovers() if f"-{process.pid}-" in name]) == 2
    assert namespaces(process.pid) == []


def forward(
    program: Path, tmp_path: Path, scenario: str, server: str, ue: str
) -> tuple[dict[str, Any], dict[str, Any], Path]:
    """Run two scripts at the two ends: what the server's printed, the report, the log."""
    (tmp_path / "path.toml").write_text(scenario)
    log = tmp_path / "packets"
    with Network({}) as net:
        ends = ("--server", f"{net.server}:{DEVICE}", "--ue", f"{net.ue}:{DEVICE}")
        logged = ("--log", str(log), "--log-records", "200000")
        with Child([str(program), str(tmp_path / "path.toml"), *ends, *logged]) as middle:
            middle.await_word("ready")
            with Child(net.command(net.ue, sys.executable, "-c", ue)):
                time.sleep(0.5)
                with Child(net.command(net.server, sys.executable, "-c", server)) as asking:
                    printed = asking.result()
            return printed, middle.result(), log


@pytest.mark.real_clock
def test_a_plain_delay_is_what_a_ping_sees(program: Path, tmp_path: Path) -> None:
    def ping(down: float, up: float) -> float:
        path = DELAY.format(down=down, up=up)
        asked, report, _ = forward(program, tmp_path, path, PING, WAIT)
        assert report["directions"]["down"]["entered"] == report["directions"]["up"]["left"]
        assert min(asked["times"]) > down + up
        return float(median(asked["times"]))

    # What waking the two ends adds depends on the machine, and is in both.
    assert ping(7, 13) - ping(1, 2) == pytest.approx(17, abs=0.3)


@pytest.mark.real_clock
def test_a_link_sends_at_its_rate(program: Path, tmp_path: Path) -> None:
    _, report, path = forward(program, tmp_path, LINK, FLOOD, WAIT)
    assert report["directions"]["down"]["dropped"]["queue_full"] > 0
    log = packets.read(path)
    left = log[(log["direction"] == packets.DOWN) & (log["point"] == packets.OUT)]["time"]
    # The queue alone keeps the link busy for 0.6 s.
    middle = left[(left > left[0] + 1e8) & (left < left[0] + 5e8)]
    rate = (len(middle) - 1) * 1500 * 8e3 / float(middle[-1] - middle[0])
    assert rate == pytest.approx(100, rel=0.01)


def record(time_ms: float, direction: int, point: int, **fields: int) -> tuple[Any, ...]:
    values = dict.fromkeys(packets.RECORD.names or (), 0)
    values |= {"time": int(time_ms * 1e6), "direction": direction, "point": point, **fields}
    return tuple(values[name] for name in packets.RECORD.names or ())


def test_figures_of_a_small_log() -> None:
    down, up, isn = packets.DOWN, packets.UP, 2**32 - 1500
    log = [record(0, down, packets.IN, flags=packets.SYN, seq=isn)]

    def data(time_ms: float, index: int, point: int = packets.IN) -> None:
        seq = (isn + 1 + 1000 * index) % 2**32
        log.append(record(time_ms, down, point, seq=seq, payload=1000, flags=packets.ACK))

    def ack(time_ms: float, segments: int) -> None:
        number = (isn + 1 + 1000 * segments) % 2**32
        for at, point in ((time_ms - 10, packets.IN), (time_ms, packets.OUT)):
            log.append(record(at, up, point, ack=number, flags=packets.ACK))

    for index in range(4):
        data(20 + index, index)
    data(22, 2, packets.QUEUE_FULL)
    ack(50, 2)  # 30 ms after the first of the two was sent
    ack(53, 2)  # a duplicate: no sample
    data(60, 2)
    ack(85, 4)  # sent twice: 25 ms after it was last sent
    records = np.array(log, dtype=packets.RECORD)
    figures = packets.analyse(records, 1.0)
    assert figures["segments_sent"] == 5
    assert figures["retransmitted_segments"] == 1
    assert figures["rtt_ms"] is not None
    assert (figures["rtt_ms"]["min"], figures["rtt_ms"]["max"]) == (25, 30)
    assert figures["rtt_ms"]["count"] == 2
    assert figures["dropped"] == {"loss": 0, "queue_full": 1}
    assert figures["goodput_mbps"] == pytest.approx(4000 * 8 / 1e6)
