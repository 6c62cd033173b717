"""Captures that mislead: closed windows, clocks, copies, roles, and traffic that fills no path."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import captures
from airpath import _core
from airpath.diagnose.files import FileDocument, diagnose
from airpath.errors import InputError

ACK, SYN, RST = captures.ACK, captures.SYN, 4
Packets = list[tuple[int, bytes]]
SEGMENT = 1000
SECOND = 1_000_000


def _stamped(at: int, up: bool, seq: int, ack: int, size: int = 0) -> tuple[int, bytes]:
    """A segment whose timestamp is the millisecond at which it was sent."""
    stamp = struct.pack(">BBBBII", 1, 1, 8, 10, at // 1000 + 5, 1)
    return at, captures.tcp(up, seq, ack, ACK, size, stamp)


def _windowed(packet: bytes, window: int) -> bytes:
    return packet[:34] + struct.pack(">H", window) + packet[36:]


def _bulk(seconds: int = 4) -> Packets:
    """A download of 1000 bytes each ms, seen next to the server, 30 ms from the client."""
    packets = list(captures.download(0, None))
    for number in range(seconds * 1000):
        at = 40_000 + number * 1000
        packets.append(_stamped(at, False, 1 + number * SEGMENT, 1, SEGMENT))
        packets.append(_stamped(at + 30_130, True, 1, 1 + (number + 1) * SEGMENT))
    return sorted(packets)


def _diagnosed(tmp_path: Path, packets: Packets) -> FileDocument:
    return diagnose(str(captures.write(tmp_path / "a.pcap", packets)))


def _kinds(document: FileDocument) -> list[str]:
    return [one["kind"] for one in document["statements"]]


def _text(document: FileDocument) -> str:
    return "\n".join(one["text"] for one in document["statements"])


def _closing(probe: Callable[[int, int], bytes], count: int = 7) -> Packets:
    """60 segments, then a window of 0, and probes that find it closed."""
    packets = list(captures.download(60, None))
    end, at = 1 + 60 * SEGMENT, 60_000
    packets.append((at, _windowed(captures.tcp(True, 1, end, ACK), 0)))
    for doubled in range(count):
        at += 300_000 << doubled
        packets.append((at, probe(end, 1)))
        packets.append((at + 30_000, _windowed(captures.tcp(True, 1, end, ACK), 0)))
    return packets


@pytest.mark.parametrize(
    "probe",
    [
        lambda end, ack: captures.tcp(False, end, ack, ACK, 1),
        lambda end, ack: captures.tcp(False, end - 1, ack, ACK),
    ],
    ids=["a byte (RFC 9293 3.8.6.1)", "none (Linux)"],
)
def test_probes_of_a_closed_window_are_no_losses(
    tmp_path: Path, probe: Callable[[int, int], bytes]
) -> None:
    document = _diagnosed(tmp_path, _closing(probe))
    server: Any = document["capture"]["flows"][0]["tcp"]["from_server"]  # type: ignore[index]
    assert (server["retransmissions"]["packets"], server["window_probes"]) == (0, 7)
    assert server["limits"]["receive_window_s"] > 0.95 * document["capture"]["duration_s"]
    assert not {"retransmissions", "stall"}.intersection(_kinds(document))
    (cause,) = document["causes"]["causes"]
    assert "does not read" in cause["evidence"]


def test_the_byte_of_a_probe_that_was_taken_is_no_gap(tmp_path: Path) -> None:
    packets = _closing(lambda end, ack: captures.tcp(False, end, ack, ACK, 1), 2)
    end, at = 2 + 60 * SEGMENT, 2 * SECOND
    packets.append((at, captures.tcp(True, 1, end, ACK)))
    packets.append((at + 100, captures.tcp(False, end, 1, ACK, SEGMENT)))
    packets.append((at + 30_100, captures.tcp(True, 1, end + SEGMENT, ACK)))
    report: Any = _core.read_capture(captures.write(tmp_path / "a.pcap", packets))
    server = report["flows"][0]["tcp"]["from_server"]
    assert report["missed"]["unseen_bytes"] == 0
    assert server["acked_bytes"] == 60 * SEGMENT + SEGMENT
    assert server["out_of_order_packets"] == server["retransmissions"]["packets"] == 0


def test_a_fit_to_what_was_held_back_says_so(cli: Any, tmp_path: Path) -> None:
    packets = _closing(lambda end, ack: captures.tcp(False, end, ack, ACK, 1))
    code, _, err = cli("fit", str(captures.write(tmp_path / "a.pcap", packets)))
    assert code == 2
    assert "a.pcap: flow 0 was too slow to show the rate of its path" in err


@pytest.mark.parametrize(("size", "apart"), [(100, 10_000), (6_000, 40_000), (14_000, 11_600)])
def test_regular_writing_is_not_bound_by_the_path(tmp_path: Path, size: int, apart: int) -> None:
    packets = list(captures.download(0, None))
    offset = 1
    for number in range(400):
        at, left = 100_000 + number * apart, size
        while left:
            part = min(left, SEGMENT)
            packets.append((at, captures.tcp(False, offset, 1, ACK, part)))
            at, left, offset = at + 20, left - part, offset + part
        packets.append((at + 37_000, captures.tcp(True, 1, offset, ACK)))
    causes = _diagnosed(tmp_path, sorted(packets))["causes"]
    assert causes["verdict"] != "bound"
    assert "capacity limits" not in causes["because"]
    assert causes["causes"] or any(
        told in causes["because"] for told in ("sets the rate", "no queue is visible")
    )


def _echo(number: int, reply: bool = False) -> bytes:
    hosts = (captures.SERVER[0], captures.CLIENT[0]) if reply else (
        captures.CLIENT[0], captures.SERVER[0])  # fmt: skip
    body = struct.pack(">BBHHH", 0 if reply else 8, 0, 0, 77, number) + bytes(48)
    return captures.ip(body, 1, *hosts)


def _expired(request: bytes) -> bytes:
    body = struct.pack(">BBHI", 11, 0, 0, 0) + request[:28]
    return captures.ip(body, 1, bytes([10, 0, 9, 9]), captures.CLIENT[0])


def test_echoes_that_routers_answer_are_not_lost(tmp_path: Path) -> None:
    packets: Packets = []
    for number in range(60):
        at, request = number * 200_000, _echo(number)
        reply = _expired(request) if number % 3 else _echo(number, reply=True)
        packets += [(at, request), (at + 20_000, reply)]
    document = _diagnosed(tmp_path, packets)
    assert document["causes"]["causes"] == []
    assert "all 20 echo requests were answered" in _text(document)


def test_replies_alone_are_no_unanswered_requests(tmp_path: Path) -> None:
    packets = [(number * SECOND, _echo(number, reply=True)) for number in range(20)]
    document = _diagnosed(tmp_path, packets)
    assert document["capture"]["flows"][0]["client"] == "10.0.0.1"
    assert document["causes"]["causes"] == []
    assert "only one direction" in _text(document)


def test_requests_that_the_end_of_the_capture_cut_off_are_not_lost(tmp_path: Path) -> None:
    trip = 3_200_000
    packets = [(number * SECOND, _echo(number)) for number in range(20)]
    packets += [(at + trip, _echo(number, reply=True)) for number, (at, _) in enumerate(packets)]
    document = _diagnosed(tmp_path, [one for one in sorted(packets) if one[0] < 20 * SECOND])
    assert document["causes"]["causes"] == []
    icmp: Any = document["capture"]["flows"][0]["icmp"]
    assert (icmp["unanswered"], icmp["outstanding"]) == (0, 3)


def _in_both(packets: Packets) -> Packets:
    """Each packet with data twice, 0.3 ms apart."""
    again = [(at + 300, one) for at, one in packets if len(one) > 500]
    return sorted([*packets, *again])


def test_copies_of_one_direction_are_left_out(tmp_path: Path) -> None:
    packets = [*_bulk(1)]
    once, twice = _diagnosed(tmp_path, packets), _diagnosed(tmp_path, _in_both(packets))
    assert twice["capture"]["skipped"]["copy"] == 1000
    assert [one["from_server"] for one in twice["capture"]["flows"]] == [
        one["from_server"] for one in once["capture"]["flows"]
    ]
    assert "retransmissions" not in _kinds(twice)


def test_what_a_receiver_reports_twice_is_no_copy(tmp_path: Path) -> None:
    """The network duplicates all data, and each second one is reported (RFC 2883)."""
    packets = list(captures.download(0, None))
    for number in range(200):
        at, first = 40_000 + number * 1000, 1 + number * SEGMENT
        segment = _stamped(at, False, first, 1, SEGMENT)
        packets += [segment, (at + 300, segment[1])]
        sack = struct.pack(">BBBBII", 1, 1, 5, 10, first, first + SEGMENT)
        packets.append(_stamped(at + 200, True, 1, first + SEGMENT))
        packets.append((at + 400, captures.tcp(True, 1, first + SEGMENT, ACK, 0, sack)))
    report: Any = _core.read_capture(captures.write(tmp_path / "a.pcap", packets))
    assert "copy" not in report["skipped"]


@pytest.mark.parametrize("step", [15_625, 500_000])
def test_a_coarse_clock_is_said_and_nothing_is_inferred(tmp_path: Path, step: int) -> None:
    packets = [(at // step * step, one) for at, one in _bulk(6)]
    document = _diagnosed(tmp_path, packets)
    assert document["capture"]["clock_step_s"] == pytest.approx(step / SECOND)
    assert (document["causes"]["verdict"], document["causes"]["causes"]) == ("inconclusive", [])
    assert "steps of" in document["causes"]["because"]
    assert not {"ack-batches", "bursts", "pacing", "stall"}.intersection(_kinds(document))


def test_a_fine_clock_has_no_step(tmp_path: Path) -> None:
    report = _core.read_capture(captures.write(tmp_path / "a.pcap", _bulk(1)))
    assert report["clock_step_s"] is None


@pytest.mark.parametrize("by", [2, 1_000_000_000])
def test_a_clock_that_was_set_forward_is_told_by_timestamps(tmp_path: Path, by: int) -> None:
    packets = [(at + (by * SECOND if at > 2 * SECOND else 0), one) for at, one in _bulk()]
    document = _diagnosed(tmp_path, packets)
    assert f"went forward by {by} s at 2 s" in document["causes"]["because"]
    assert document["causes"]["causes"] == []
    assert "stall" not in _kinds(document)


def test_a_silence_of_the_path_is_no_step_of_the_clock(tmp_path: Path) -> None:
    """What waited for 2 s arrives late; the hosts' timestamps go on."""
    packets = _bulk()
    late = [(max(at, 4 * SECOND) if 2 * SECOND < at < 4 * SECOND else at, one)
            for at, one in packets]  # fmt: skip
    document = _diagnosed(tmp_path, late)
    assert "clock" not in _kinds(document)


@pytest.mark.parametrize("by", [2, 3600])
def test_a_clock_that_was_set_back_is_said(tmp_path: Path, by: int) -> None:
    start = 5000 * SECOND
    packets = [(start + at - (by * SECOND if at > 2 * SECOND else 0), one) for at, one in _bulk()]
    document = _diagnosed(tmp_path, packets)
    assert f"set back once, by up to {by} s" in document["causes"]["because"]
    assert document["causes"]["causes"] == []


def test_records_a_few_places_off_are_sorted(tmp_path: Path) -> None:
    packets, drawn = _bulk(), random.Random(2)
    order = sorted(range(len(packets)), key=lambda at: at + drawn.randint(0, 6))
    shuffled = _diagnosed(tmp_path, [packets[at] for at in order])
    report = shuffled["capture"]
    assert report["sorted_packets"] > 1000
    assert report["backward_times"] == 0
    plain = _diagnosed(tmp_path, packets)
    assert report["flows"] == plain["capture"]["flows"]
    assert shuffled["causes"] == plain["causes"]


def test_a_damaged_file_out_of_order_says_where_it_breaks(tmp_path: Path) -> None:
    file = captures.write(tmp_path / "a.pcap", [_bulk(1)[at] for at in (1, 0, 2, 4, 3)])
    file.write_bytes(file.read_bytes() + b"\1\2\3")
    report = _core.read_capture(file)
    assert report["packets"] == 5
    assert "3 bytes left" in (report["damaged"] or "")


def test_what_was_in_flight_when_a_capture_began_is_not_missing(tmp_path: Path) -> None:
    begun = [one for one in _bulk(2) if one[0] > SECOND]
    # An acknowledgement comes first.
    begun = begun[next(at for at, one in enumerate(begun) if len(one[1]) < 500) :]
    document = _diagnosed(tmp_path, begun)
    assert document["capture"]["missed"]["unseen_bytes"] == 0
    # Without the opening the lower port is the server's, whoever is seen first.
    assert document["capture"]["flows"][0]["server_port"] == captures.SERVER[1]


def test_one_direction_alone_tells_of_no_pacing(tmp_path: Path) -> None:
    document = _diagnosed(tmp_path, [one for one in _bulk() if len(one[1]) > 500])
    assert "pacing" not in _kinds(document)
    assert "Only one direction of flow 0" in document["causes"]["because"]


def _alive(size: int, answered: bool) -> Iterator[tuple[int, bytes]]:
    for number in range(20):
        at = number * 45 * SECOND
        yield at, captures.tcp(False, 500, 100, ACK, size)
        if answered:
            yield at + 40_000, captures.tcp(True, 100, 501, ACK)


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.filterwarnings("error")
def test_keep_alives_are_no_data(tmp_path: Path, size: int) -> None:
    document = _diagnosed(tmp_path, list(_alive(size, answered=True)))
    assert not {"retransmissions", "capture-incomplete"}.intersection(_kinds(document))
    assert document["causes"]["causes"] == []


def test_keep_alives_without_an_answer_are_told_of(tmp_path: Path) -> None:
    packets = list(captures.download(20, None))
    last = captures.tcp(False, 20 * SEGMENT, 1, ACK)
    packets += [((60 + 15 * number) * SECOND, last) for number in range(9)]
    assert "last 9 keep-alives of the server" in _text(_diagnosed(tmp_path, packets))


def test_a_refusal_and_an_opening_that_stays_open_are_named(tmp_path: Path) -> None:
    syn = captures.tcp(True, 0, 0, SYN, options=captures.SYN_OPTIONS)
    refused = [(0, syn), (100, captures.tcp(False, 0, 1, RST | ACK))]
    assert "refused the connection to port 443" in _text(_diagnosed(tmp_path, refused))
    answer = captures.tcp(False, 0, 1, SYN | ACK, options=captures.SYN_OPTIONS)
    again = [(at * SECOND + late, one) for at in (0, 1, 3, 7) for late, one in ((0, syn),
             (100, answer))]  # fmt: skip
    assert "SYN-ACK was sent 4 times" in _text(_diagnosed(tmp_path, again))


def test_error_indications_of_gtp_u_are_named(tmp_path: Path) -> None:
    message = struct.pack(">BBHIHBB", 0x32, 26, 4, 0, 0, 0, 0)
    datagram = struct.pack(">HHHH", 2152, 2152, 8 + len(message), 0) + message
    packet = captures.ip(datagram, 17, bytes([10, 9, 0, 1]), bytes([10, 9, 0, 2]))
    document = _diagnosed(tmp_path, [(at * SECOND, packet) for at in range(5)])
    assert "Error Indication was sent 5 times" in _text(document)


def test_files_that_were_joined_or_have_a_banner_say_what_to_do(tmp_path: Path) -> None:
    file = captures.write(tmp_path / "a.pcap", list(captures.download()))
    data = file.read_bytes()
    file.write_bytes(data + data)
    report = _core.read_capture(file)
    assert "mergecap" in (report["damaged"] or "")
    assert report["duration_s"] < 1
    file.write_bytes(b"tcpdump: listening on any\n" + data)
    with pytest.raises(InputError, match=r"tail -c \+27"):
        diagnose(str(file))


def test_lost_fragments_are_told_of(tmp_path: Path) -> None:
    first = bytearray(_echo(1))
    first[6:8] = struct.pack(">H", 0x2000)
    document = _diagnosed(tmp_path, [(0, bytes(first)), (SECOND, _echo(2))])
    assert document["capture"]["incomplete_packets"] == 1
    assert "Not every fragment of" in _text(document)
