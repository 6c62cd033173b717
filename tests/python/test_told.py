"""What several tools tell of one test, second by second."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airpath.causes.tools import LIMITS, Told, blame, features
from airpath.diagnose import outputs
from airpath.diagnose.told import as_delivered, seconds_of_socket, streams_of_test, told_by
from airpath.readers import iperf, ss
from airpath.readers.recognise import recognise
from conftest import Command

_SEGMENT = 1448


def _interval(at: float, step: float, bytes_: int, sender: bool) -> dict[str, Any]:
    told = {"socket": 5, "start": at, "end": at + step, "bytes": bytes_, "omitted": False}
    if sender:
        told |= {"retransmits": 2, "snd_cwnd": 20 * _SEGMENT, "rtt": 40_000}
    return told | {"bits_per_second": 8 * bytes_ / step, "sender": sender}


def _document(seconds: float, step: float, *, sender: bool = True) -> dict[str, Any]:
    count = round(seconds / step)
    rows = [_interval(at * step, step, round(1e6 * step), sender) for at in range(count)]
    total = {"start": 0, "end": seconds, "seconds": seconds, "bytes": round(1e6 * seconds)}
    total["bits_per_second"] = 8e6
    ends = {"local_host": "10.0.0.1", "local_port": 40000, "remote_host": "10.0.0.2"}
    return {
        "start": {
            "connected": [ends | {"socket": 5, "remote_port": 5201}],
            "version": "iperf 3.12",
            "timestamp": {"timesecs": 1_700_000_000},
            "test_start": {"protocol": "TCP", "num_streams": 1, "reverse": 0},
        },
        "intervals": [{"streams": [one], "sum": one} for one in rows],
        "end": {"sum_sent": total | {"retransmits": 2 * count}, "sum_received": total},
    }


def _streams(document: dict[str, Any]) -> list[np.ndarray]:
    (test,) = iperf.read(json.dumps(document), "iperf3").tests
    return streams_of_test(test)


def test_a_second_has_what_its_intervals_have() -> None:
    (whole,) = _streams(_document(6, 1))
    assert whole.shape == (6, 4)
    assert whole[2].tolist() == [1e6, 2, 20 * _SEGMENT, 40]
    (parts,) = _streams(_document(6, 0.1))
    assert parts.shape == (6, 4)
    assert parts[:, 0] == pytest.approx(1e6)
    assert parts[:, 1] == pytest.approx(20)
    # An interval of five seconds is told per second, and a rest of a second is left out.
    (long,) = _streams(_document(20, 5))
    assert long.shape == (4, 4)
    assert long[:, 0] == pytest.approx(1e6)
    assert _streams(_document(2.2, 0.1))[0].shape == (2, 4)


def test_the_far_end_tells_what_arrived() -> None:
    document = _document(4, 1)
    far = _document(4, 1, sender=False)
    for one in far["intervals"]:
        one["streams"][0]["bytes"] = 900_000
    document["server_output_json"] = far
    (both,) = _streams(document)
    assert both[:, 0] == pytest.approx(900_000)
    assert both[:, 1] == pytest.approx(2)
    # From the receiver alone, nothing is known of the sender.
    (alone,) = _streams(far)
    assert np.isnan(alone[:, 1:]).all()


def test_a_senders_writes_are_no_deliveries() -> None:
    """12 MB fill the buffer, then 20 Mb/s leave in steps of ten blocks of 128 kB."""
    step = 10 * 131_072
    cumulated = np.floor((2.5e6 * np.arange(1, 11) + 12e6) / step) * step
    written = np.diff(cumulated, prepend=0)
    assert written[0] > 14e6
    delivered = as_delivered(written, 25e6)
    assert delivered.sum() == pytest.approx(25e6)
    assert delivered == pytest.approx(2.5e6, rel=0.2)
    # What arrived is not known: the first second is no faster than the best other one.
    assert as_delivered(written, None).max() < 3.5e6
    # Other writes are not smoothed.
    uneven = np.array([1e6, 0.0, 3e6, 1.5e6])
    assert as_delivered(uneven, None) == pytest.approx(uneven)


_BUFFERED = """\
Connecting to host 10.0.0.1, port 5201
[  5] local 10.45.0.2 port 41234 connected to 10.0.0.1 port 5201
[ ID] Interval           Transfer     Bitrate         Retr  Cwnd
[  5]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec    0   14.1 KBytes
[  5]   1.00-2.00   sec  2.50 MBytes  21.0 Mbits/sec    0   14.1 KBytes
{still}- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-10.00  sec  3.75 MBytes  3.15 Mbits/sec    0             sender
[  5]   0.00-14.20  sec   {arrived}                  receiver

iperf Done.
"""
_STILL = "".join(
    f"[  5]  {at:2}.00-{at + 1}.00  sec  0.00 Bytes  0.00 bits/sec    0   {{cwnd}} KBytes\n"
    for at in range(2, 10)
)


@pytest.mark.parametrize(
    ("cwnd", "arrived", "said"),
    [
        # A slow uplink: the socket has no room for a write of 1.25 MB.
        ("28.3", "89.8 KBytes  51.8 Kbits/sec", ["iperf3", "sender-counts-writes"]),
        # One segment in flight: an outage, whatever the buffer holds.
        ("1.41", "89.8 KBytes  51.8 Kbits/sec", ["iperf3", "sender-counts-writes", "stood-still"]),
        # All of it arrived, at a rate at which a write fits in each 5 s.
        ("28.3", "3.75 MBytes  2.21 Mbits/sec", ["iperf3"]),
    ],
)
def test_a_full_send_buffer_is_no_standstill(cwnd: str, arrived: str, said: list[str]) -> None:
    text = _BUFFERED.format(still=_STILL.format(cwnd=cwnd), arrived=arrived)
    output = iperf.read(text)
    assert [one.kind for one in outputs.statements(output)] == said
    (seconds,) = streams_of_test(output.tests[0])
    assert seconds[:, 0].sum() == pytest.approx(output.tests[0].received.bytes, rel=0.01)  # type: ignore[union-attr]


def test_a_rate_that_was_asked_for_is_no_fault_of_the_path() -> None:
    document = _document(8, 1)
    document["start"]["test_start"]["target_bitrate"] = 8_000_000
    told = told_by([iperf.read(json.dumps(document))])
    assert told is not None
    found = blame(told)
    assert [one.cause for one in found.suspects] == ["application-limited"]
    assert found.suspects[0].confidence is None
    document["start"]["test_start"]["target_bitrate"] = 16_000_000
    missed = told_by([iperf.read(json.dumps(document))])
    assert missed is not None
    assert all("-b" not in one.evidence for one in blame(missed).suspects)


def test_snapshots_of_ss_are_seconds_too() -> None:
    rows = []
    for at in range(12):
        rows.append(f"2026-01-01T00:00:{at:02}Z")
        rows.append("ESTAB 0 0 10.0.0.1:40000 10.0.0.2:5201")
        rows.append(
            f"\t cubic wscale:7,7 rto:240 rtt:40/2 mss:{_SEGMENT} cwnd:20"
            f" bytes_acked:{at * 500_000} busy:{at * 1000 + 1}ms"
            f" rwnd_limited:{at * 250}ms(25%) retrans:0/{at}"
        )
    output = ss.read("\n".join(rows), "ss")
    (socket,) = output.connections
    seconds = seconds_of_socket(socket)
    assert seconds.shape == (11, 4)
    assert seconds[3].tolist() == pytest.approx([500_000, 1, 20 * _SEGMENT, 40])
    told = told_by([output])
    assert told is not None
    assert told.limited["receive_window"] == pytest.approx(0.25, abs=0.01)


def test_features_of_what_is_not_told_are_unknown() -> None:
    (whole,) = _streams(_document(6, 1))
    known = features(Told([whole]))
    assert known["cwnd_segments"] == pytest.approx(np.log10(20))
    assert known["again_seconds"] == 1
    assert all(np.isnan(known[f"limited_{name}"]) for name in LIMITS)
    assert np.isnan(known["ping_50"])
    unknown = whole.copy()
    unknown[:, 1:] = np.nan
    assert np.isnan(features(Told([unknown]))["again"])


def test_tools_are_judged_together(tmp_path: Path, airpath_command: Command) -> None:
    (tmp_path / "test.json").write_text(json.dumps(_document(8, 1)))
    replies = [
        f"[{1_700_000_000 + at / 2:.6f}] 64 bytes from 10.0.0.2: icmp_seq={at + 1} ttl=64 "
        f"time={20 + at % 3} ms"
        for at in range(16)
    ]
    ping = ["PING 10.0.0.2 (10.0.0.2) 56(84) bytes of data.", *replies]
    (tmp_path / "ping.txt").write_text("\n".join(ping) + "\n")
    told = told_by([recognise(str(tmp_path / one)).output for one in ("test.json", "ping.txt")])  # type: ignore[misc]
    assert told is not None
    assert told.ping is not None
    assert told.ping.trips_ms[0] == 20
    alone = json.loads(airpath_command("diagnose", "test.json", "--json").stdout)
    assert "causes" in alone["files"][0]
    done = airpath_command("diagnose", "test.json", "ping.txt", "--json")
    both = json.loads(done.stdout)
    # There is one answer, of all files.
    assert not any("causes" in one for one in both["files"])
    assert both["together"]["causes"]["verdict"] in ("named", "unknown", "bound")
    # Two tests are two cases, each with its own answer.
    (tmp_path / "again.json").write_text(json.dumps(_document(8, 1)))
    words = ("test.json", "again.json", "ping.txt", "--json")
    two = json.loads(airpath_command("diagnose", *words).stdout)
    assert ["causes" in one for one in two["files"]] == [True, True, False]
    assert two["together"] is None or two["together"]["causes"] is None
    # UDP is no test of TCP, and a second is none either.
    datagrams = _document(8, 1)
    datagrams["start"]["test_start"]["protocol"] = "UDP"
    for number, one in enumerate((datagrams, _document(1, 1))):
        (tmp_path / f"{number}.json").write_text(json.dumps(one))
        said = json.loads(airpath_command("diagnose", f"{number}.json", "--json").stdout)
        assert "causes" not in said["files"][0]
