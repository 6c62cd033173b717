"""Figures of a measurement over the emulation, against captures at both ends of the same test."""

from __future__ import annotations

import itertools
import json
import math
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from airpath.measure import responsiveness, stamp
from conftest import UNEXPLAINED, Command
from emulated import needs

TOKEN = "0123456789abcdef0123456789abcdef"
_LATE = 3
"""Exit code of an emulation whose packets were late: this machine could not judge."""

NEAR = """
import json, sys, time
from airpath.measure.outcome import record
from airpath.measure.plan import UDP_BYTES, Phase, Treatment
from airpath.measure.responsiveness import responsiveness
from airpath.measure.session import Session

def udp(number, rate_mbps):
    phase = Phase(number, 0, "udp", "down", Treatment("udp"), 1.0, 10**8, size_bytes=UDP_BYTES)
    return record(session.run(phase, rate_mbps, 10**8))

def loaded():
    treatment = Treatment("streams-4", streams=4)
    phase = Phase(0, 0, "tcp", "down", treatment, 4.0, 10**8, request_gap_s=0.05)
    began = time.time() - session.now()
    found = record(session.run(phase, None, 10**8))
    together = responsiveness("down", 4, [found["responses"]])
    return {"began": began, "record": found, "responsiveness": together}

with Session("server", 5212, sys.argv[1]) as session:
    print(json.dumps(eval(sys.argv[2])))
"""


@dataclass
class Captured:
    """What a test at the near end returned, and the captures of both ends."""

    found: Any
    near: Path
    far: Path
    late: bool
    """Whether this machine was too busy to keep the path's times."""


def captured(
    command: Command, place: Path, scenario: str, expression: str, filter_: str
) -> Captured:
    """Run an expression of ``NEAR`` over the emulation while tcpdump captures at both ends."""
    (place / "path.toml").write_text(scenario)
    (place / "near.py").write_text(NEAR)
    (place / "token").touch(0o600)
    (place / "token").write_text(TOKEN)
    near, far = place / "near.pcap", place / "far.pcap"
    dump = "tcpdump -i any -s 256 -B 16384 -U --time-stamp-precision=nano"
    server = f"{sys.executable} -m airpath serve --user root --token-file {place}/token"
    # The kernel hands packets to tcpdump after a second at the latest.
    script = (
        f"{dump} -w {near} {filter_} 2>{place}/said & sleep 1; "
        f"{sys.executable} {place}/near.py {TOKEN} '{expression}' >{place}/found; sleep 1.5; "
        "kill $!"
    )
    done = command(
        *("emulate", *UNEXPLAINED, str(place / "path.toml"), "--no-live", "--user", "root"),
        *("--server", f"{dump} -w {far} {filter_} & exec {server}", "--", "sh", "-c", script),
    )
    assert (place / "found").read_text(), done.stderr
    found = json.loads((place / "found").read_text())
    return Captured(found, near, far, late=done.returncode == _LATE)


def fields(capture: Path, filter_: str, *names: str) -> Iterator[list[str]]:
    """Fields of the packets of a capture, as tshark has them."""
    each = [word for name in names for word in ("-e", name)]
    words = ["tshark", "-n", "-r", str(capture), "-Y", filter_, "-T", "fields", *each]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        yield line.split("\t")


def nanoseconds(text: str) -> int:
    """A time as tshark prints it."""
    seconds, _, rest = text.partition(".")
    return int(seconds) * 10**9 + int(rest.ljust(9, "0"))


@dataclass
class Datagram:
    """A datagram of a load in a capture."""

    sequence: int
    phase: int
    stamped_ns: int
    """The sender's timestamp inside, as RFC 3550 uses it."""
    at_ns: int


def load(capture: Path) -> list[Datagram]:
    """Datagrams of a load downwards, in the order of the capture."""
    found = []
    wanted = "udp.srcport == 5212 && udp.length > 1000"
    for at, payload in fields(capture, wanted, "frame.time_epoch", "udp.payload"):
        packet = stamp.decode(bytes.fromhex(payload[:96]))
        if packet.kind == stamp.LOAD_DOWN:
            found.append(Datagram(packet.sequence, packet.phase, packet.time_ns, nanoseconds(at)))
    return found


def jitter(arrived: Sequence[Datagram]) -> float:
    """RFC 3550 6.4.1, in ms."""
    found = 0.0
    for one, other in itertools.pairwise(arrived):
        change = (other.at_ns - one.at_ns) - (other.stamped_ns - one.stamped_ns)
        found += (abs(change) / 1e6 - found) / 16
    return found


ROUGH = """
title = "Losses, jitter that reorders, and a queue that overflows at 12 Mb/s"
[run]
duration_s = 10
[[path.down]]
stage = "link"
rate_mbps = 12
queue_packets = 20
[[path.down]]
stage = "delay"
delay_ms = 10
jitter_ms = 3
keep_order = false
[[path.down]]
stage = "loss"
probability = 0.01
[[path.up]]
stage = "delay"
delay_ms = 10
[[flow]]
kind = "bulk"
"""


@needs("tcpdump", "tshark")
def test_udp_is_what_captures_at_both_ends_show(airpath_command: Command, tmp_path: Path) -> None:
    """Loss and reordering to the datagram, jitter to a thousandth."""
    test = captured(airpath_command, tmp_path, ROUGH, "[udp(0, 6.0), udp(1, 14.0)]", "udp")
    sent, arrived = load(test.far), load(test.near)
    phases = sorted({one.phase for one in sent})
    assert len(phases) == len(test.found) == 2
    for phase, record in zip(phases, test.found, strict=True):
        assert not record["errors"]
        left = {one.sequence for one in sent if one.phase == phase}
        came = [one for one in arrived if one.phase == phase]
        udp = record["udp"]
        assert udp["sent"] == len(left) > 400
        assert udp["lost"] == len(left - {one.sequence for one in came}) > 0
        newest = list(itertools.accumulate((one.sequence for one in came), max))
        assert udp["reordered"] == sum(
            one.sequence < most for one, most in zip(came, newest, strict=True)
        )
        assert udp["jitter_ms"] == pytest.approx(jitter(came), rel=1e-3)
        delays = [one.at_ns - one.stamped_ns for one in came]
        assert udp["delay_ms"]["max"] == pytest.approx((max(delays) - min(delays)) / 1e6, abs=1e-3)
    below, above = (one["udp"] for one in test.found)
    assert below["reordered"] > 50
    # Three sevenths of a queue's overflow, and one in a hundred.
    assert above["lost"] / above["sent"] > 0.1 > below["lost"] / below["sent"]


DEEP = """
title = "A queue of 60 packets at 10 Mb/s"
[run]
duration_s = 10
[[path.down]]
stage = "link"
rate_mbps = 10
queue_packets = 60
[[path.down]]
stage = "delay"
delay_ms = 10
[[path.up]]
stage = "delay"
delay_ms = 10
[[flow]]
kind = "bulk"
"""


def trimmed(values: Sequence[float]) -> float:
    """The mean of the lowest 95 %."""
    kept = sorted(values)[: math.ceil(0.95 * len(values))]
    return sum(kept) / len(kept)


@needs("tcpdump", "tshark")
def test_responsiveness_is_what_captures_show(airpath_command: Command, tmp_path: Path) -> None:
    """Within a tenth of the definition of draft-ietf-ippm-responsiveness-09, TCP only."""
    test = captured(airpath_command, tmp_path, DEEP, "loaded()", "tcp")
    record, found = test.found["record"], test.found["responsiveness"]
    assert not record["errors"]
    begin_s = test.found["began"] + record["started_s"] + record["figures"]["ramp_s"]
    end_s = test.found["began"] + record["started_s"] + 4.0
    # Handshakes and requests, from the capture at the near end.
    at: dict[str, dict[str, float]] = {}
    names = ("tcp.stream", "frame.time_epoch", "tcp.srcport", "tcp.flags.syn", "tcp.len")
    for stream, time, source, syn, length in fields(test.near, "tcp.port == 5212", *names):
        first = at.setdefault(stream, {})
        end = "far" if source == "5212" else "near"
        kind = "syn" if syn in ("1", "True") else "data" if int(length) else "other"
        first.setdefault(f"{end} {kind}", float(time))
        first["bytes"] = first.get("bytes", 0.0) + int(length)
    requests = [
        one
        for one in at.values()
        if one["bytes"] < 1000 and "far data" in one and begin_s <= one["near syn"] <= end_s
    ]
    handshakes = [1000 * (one["far syn"] - one["near syn"]) for one in requests]
    answers = [1000 * (one["far data"] - one["near data"]) for one in requests]
    # Round trips of the load, from the capture at the sender.
    columns = ("frame.time_epoch", "tcp.dstport", "tcp.analysis.ack_rtt", "tcp.stream")
    carried: dict[str, list[float]] = {}
    for time, to, trip, stream in fields(test.far, "tcp.analysis.ack_rtt", *columns):
        if to == "5212" and begin_s <= float(time) <= end_s:
            carried.setdefault(stream, []).append(1000 * float(trip))
    trips = [trip for one in carried.values() if len(one) > 100 for trip in one]
    # As many as a figure needs: how long the load takes to settle differs.
    assert len(handshakes) >= responsiveness._LEAST
    assert len(trips) > 500
    if test.late:
        pytest.skip("this machine is too busy to time round trips in Python")
    foreign = 60_000 / ((trimmed(handshakes) + trimmed(answers)) / 2)
    loaded = 60_000 / trimmed(trips)
    assert found["foreign_rpm"] == pytest.approx(foreign, rel=0.1)
    assert found["loaded_rpm"] == pytest.approx(loaded, rel=0.1)
    assert found["rpm"] == pytest.approx((foreign + loaded) / 2, rel=0.1)
    # The queue holds 72 ms, the path takes 20 ms.
    assert 400 < found["rpm"] < 2000
