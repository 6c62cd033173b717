"""Transfers as hosts capture them: segments that offload joined, and what is said before."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

import numpy as np
import pytest

import airpath
import captures
from airpath import _core
from airpath.causes.apart import begun, taken_apart
from airpath.causes.features import features
from airpath.causes.rank import read_groups
from airpath.diagnose.files import diagnose
from airpath.fitting.observed import Observed, arrays, observe
from airpath.fitting.path import estimate
from airpath_dev.causes.view import Damage, _damaged, _points
from airpath_dev.planted.draft import Pick

FULL = 1448
"""MSS 1460 less the timestamps of both SYNs."""


def _opened() -> Iterator[tuple[int, bytes]]:
    yield 0, captures.tcp(True, 0, 0, captures.SYN, options=captures.SYN_OPTIONS)
    syn_ack = captures.SYN | captures.ACK
    yield 20_000, captures.tcp(False, 0, 1, syn_ack, options=captures.SYN_OPTIONS)
    yield 20_010, captures.tcp(True, 1, 1, captures.ACK)


def _upload(
    count: int, each: int, cookie: int = 0, lost: Collection[int] = ()
) -> Iterator[tuple[int, bytes]]:
    """Packets of ``each`` segments, of which some are lost; captured next to the client."""
    yield from _opened()
    at, number = 30_000, 1
    if cookie:
        yield at, captures.tcp(True, 1, 1, captures.ACK, cookie)
        yield at + 20_000, captures.tcp(False, 1, 1 + cookie, captures.ACK)
        at, number = at + 200_000, 1 + cookie
    for packet in range(count):
        begin = number + packet * each * FULL
        end = begin + each * FULL
        at += 25_000
        yield at, captures.tcp(True, begin, 1, captures.ACK, each * FULL)
        for segment in range(packet * each, (packet + 1) * each):
            if segment in lost:
                gap = number + segment * FULL
                yield at + 20_000, captures.tcp(False, 1, gap, captures.ACK)
                yield at + 22_000, captures.tcp(True, gap, 1, captures.ACK, FULL)
                at += 25_000
        yield at + 20_000, captures.tcp(False, 1, end, captures.ACK)


def _seen(file: Path) -> Observed:
    report = _core.read_capture(file)
    (flow,) = report["flows"]
    (segments,) = _core.read_flows(file, [(flow["id"], True)], 10_000)
    return arrays(str(file), report, flow, "client", segments)


def test_joined_segments_are_taken_apart(tmp_path: Path) -> None:
    seen = _seen(captures.write(tmp_path / "joined.pcap", _upload(20, 4, lost=[9])))
    assert seen.payload.max() == 4 * FULL
    whole = taken_apart(seen)
    assert set(whole.payload) == {FULL}
    assert len(whole.sent) == 81
    first = ~whole.is_again
    assert whole.offset[first].tolist() == (np.arange(80) * FULL).tolist()
    # Of the packet with the lost segment only that one was sent again.
    assert np.flatnonzero(whole.sent_again).tolist() == [9]
    assert int(whole.size.sum()) > int(seen.size.sum())
    # Those that were never joined stay as they are.
    plain = _seen(captures.write(tmp_path / "plain.pcap", _upload(20, 1)))
    assert taken_apart(plain) is plain


def test_lost_segments_of_joined_packets_are_no_lost_packets(tmp_path: Path) -> None:
    """Their sizes say nothing, for every packet arrived in part."""
    lost = range(1, 80, 4)
    file = captures.write(tmp_path / "parts.pcap", _upload(20, 4, lost=lost))
    report = _core.read_capture(file)
    (group,) = read_groups(file, report)
    assert np.flatnonzero(group.main.lost & ~group.main.seen.is_again).size == len(lost)
    assert group.main.too_large is None
    assert features(group, report)["loss"] > -1


def test_segments_without_the_handshake_have_the_usual_size(tmp_path: Path) -> None:
    packets = list(_upload(20, 3, lost=[7]))[3:]
    packets += [(at + 600_000, one) for at, one in _alone()]
    seen = _seen(captures.write(tmp_path / "late.pcap", packets))
    assert seen.stream["options"] is None
    assert set(taken_apart(seen).payload) == {FULL}


def _alone() -> Iterator[tuple[int, bytes]]:
    for number in range(5):
        begin = 1 + (60 + number) * FULL
        yield number * 25_000, captures.tcp(True, begin, 1, captures.ACK, FULL)
        yield number * 25_000 + 20_000, captures.tcp(False, 1, begin + FULL, captures.ACK)


def test_a_transfer_begins_with_its_first_full_segment(tmp_path: Path) -> None:
    """iperf3's client first sends a cookie of 37 bytes, and waits."""
    seen = _seen(captures.write(tmp_path / "cookie.pcap", _upload(20, 1, cookie=37)))
    assert begun(seen).sent[0] - seen.sent[0] == pytest.approx(225)
    assert begun(seen).payload.min() == FULL
    plain = _seen(captures.write(tmp_path / "plain.pcap", _upload(20, 1)))
    assert begun(plain) is plain


WINDOW = """
[run]
duration_s = 8
[[path.down]]
stage = "link"
rate_mbps = 100
[[path.down]]
stage = "delay"
delay_ms = 20
[[path.up]]
stage = "delay"
delay_ms = 20
[[flow]]
kind = "bulk"
profile = "linux-6.18"
window_bytes = 40_000
"""


def test_acknowledgements_of_each_round_trip_are_no_batches(tmp_path: Path) -> None:
    """A window of 40 kB leaves at once, and so do its acknowledgements."""
    (tmp_path / "window.toml").write_text(WINDOW)
    airpath.run(str(tmp_path / "window.toml"), out=tmp_path / "run", capture=True)
    raw = np.fromfile(tmp_path / "run" / "capture.pcapng", dtype=np.uint8)
    file = tmp_path / "server.pcapng"
    file.write_bytes(_damaged(next(_points(raw)), Damage(), Pick("none")))
    assert estimate(observe(str(file))).batch_ms is None
    (group,) = read_groups(file, _core.read_capture(file))
    assert group.main.path.batch_ms is None
    assert group.base_ms == pytest.approx(40, rel=0.05)


def test_a_whole_capture_has_its_first_packet(tmp_path: Path) -> None:
    airpath.run("wire", {"run.duration_s": 1}, out=tmp_path / "run", capture=True)
    raw = np.fromfile(tmp_path / "run" / "capture.pcapng", dtype=np.uint8)
    for damage in (Damage(), Damage(noise_ms=0.05), Damage(joined=True, noise_ms=0.05)):
        file = tmp_path / "one.pcapng"
        file.write_bytes(_damaged(next(_points(raw)), damage, Pick("one")))
        (group,) = read_groups(file, _core.read_capture(file))
        assert None not in group.main.seen.handshake
        assert group.main.segment_bytes == FULL


def test_a_window_of_unknown_scale_and_a_send_buffer_are_one_suspect(tmp_path: Path) -> None:
    """A capture that begins after the handshake shows a limit, and not whose it is."""
    airpath.run("small-window", out=tmp_path / "run", capture=True, explain="off")
    server = next(_points(np.fromfile(tmp_path / "run" / "capture.pcapng", dtype=np.uint8)))
    found = []
    for late in (0.0, 0.2):
        file = tmp_path / f"{late}.pcapng"
        file.write_bytes(_damaged(server, Damage(late=late), Pick("late")))
        found.append(diagnose(str(file))["causes"]["causes"])
    assert found[0][0]["causes"] == ["receive-window"]
    [only] = found[1]
    assert set(only["causes"]) == {"receive-window", "send-buffer"}
    assert "unknown whether the receive window had room" in only["evidence"]
    assert "the receive window was full" not in only["evidence"]
