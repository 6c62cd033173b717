"""What real captures contain: copies, ICMP errors, cut headers, and flows without a fault."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import captures
from airpath import _core
from airpath.diagnose.files import FileDocument, diagnose
from airpath.readers.flows import stream as direction

ICMP, UDP = 1, 17
HOST, PEER, ROUTER = bytes([10, 45, 0, 2]), bytes([192, 0, 2, 1]), bytes([10, 45, 0, 1])
ACK, SYN = captures.ACK, captures.SYN
Packets = Iterator[tuple[int, bytes]]


def _icmp(source: bytes, destination: bytes, kind: int, code: int, rest: bytes) -> bytes:
    return captures.ip(bytes([kind, code, 0, 0]) + rest, ICMP, source, destination)


def _ping(number: int, size: int = 56) -> bytes:
    return _icmp(HOST, PEER, 8, 0, struct.pack(">HH", 77, number) + bytes(size))


def _error(about: bytes, kind: int, code: int, mtu: int = 0) -> bytes:
    return _icmp(ROUTER, HOST, kind, code, struct.pack(">HH", 0, mtu) + about[:28])


def _texts(document: FileDocument) -> str:
    return "\n".join(one["text"] for one in document["statements"])


def _causes(document: FileDocument) -> list[str]:
    return [one["causes"][0] for one in document["causes"]["causes"]]


def test_pings_that_are_too_large_name_the_mtu(tmp_path: Path) -> None:
    packets = []
    for number in range(20):
        ping = _ping(number, 1472)
        packets += [(number * 10**6, ping), (number * 10**6 + 3000, _error(ping, 3, 4, 1400))]
    document = diagnose(str(captures.write(tmp_path / "a.pcap", packets)))
    assert _causes(document) == ["mtu"]
    assert "1400 bytes" in document["causes"]["causes"][0]["evidence"]
    assert "10.45.0.1 answered its packets with fragmentation-needed 20 times" in _texts(document)


@pytest.mark.parametrize(("kind", "code"), [(3, 1), (3, 3), (3, 13), (11, 0), (12, 0)])
def test_pings_that_errors_answer_are_on_no_one_way_path(
    tmp_path: Path, kind: int, code: int
) -> None:
    packets = []
    for number in range(20):
        ping = _ping(number)
        packets += [(number * 10**6, ping), (number * 10**6 + 3000, _error(ping, kind, code))]
    document = diagnose(str(captures.write(tmp_path / "a.pcap", packets)))
    assert _causes(document) == []
    assert "10.45.0.1 answered its packets with" in _texts(document)
    # Without the errors the path is silent.
    silent = diagnose(str(captures.write(tmp_path / "b.pcap", packets[::2])))
    assert _causes(silent) == ["one-way-path"]


def test_errors_about_datagrams_are_no_pings(tmp_path: Path) -> None:
    packets = []
    for number in range(12):
        body = struct.pack(">HHHH", 8805, 8805, 28, 0) + bytes([number] * 20)
        datagram = captures.ip(body, UDP, HOST, PEER)
        packets += [(number * 10**6, datagram), (number * 10**6 + 500, _error(datagram, 3, 3))]
    document = diagnose(str(captures.write(tmp_path / "a.pcap", packets)))
    assert _causes(document) == []
    assert "port-unreachable 12 times" in _texts(document)


def test_a_syn_that_an_error_answers_is_on_no_one_way_path(tmp_path: Path) -> None:
    syn = captures.tcp(True, 0, 0, SYN, options=captures.SYN_OPTIONS)
    error = captures.ip(
        bytes([3, 13, 0, 0, 0, 0, 0, 0]) + syn[:28], ICMP, ROUTER, captures.CLIENT[0]
    )
    packets = [(at * 10**6, one) for at in (0, 1, 3, 7) for one in (syn, error)]
    document = diagnose(str(captures.write(tmp_path / "a.pcap", packets)))
    assert _causes(document) == []
    silent = diagnose(str(captures.write(tmp_path / "b.pcap", packets[::2])))
    assert _causes(silent) == ["one-way-path"]


@pytest.mark.parametrize(
    ("syns_s", "syn_acks_s", "ack_s", "causes"),
    [
        ([0], [1.2], 1.22, ["rrc-promotion"]),
        # The first SYN or its answer was lost; the second one waited 1 or 3 s.
        ([0, 1], [1.02], 1.02, []),
        ([0, 3], [3.02], 3.02, []),
        # The second SYN waits for the promotion, too.
        ([0, 1], [1.5], 1.5, ["rrc-promotion"]),
        # The SYN is here: its sender is connected.
        ([0], [0, 0.3], 0.32, []),
    ],
)
def test_a_handshake_that_lost_a_packet_is_no_promotion(
    tmp_path: Path, syns_s: list[float], syn_acks_s: list[float], ack_s: float, causes: list[str]
) -> None:
    """Round trips of 20 ms after the handshake."""
    options = captures.SYN_OPTIONS
    times = [(at, captures.tcp(True, 0, 0, SYN, options=options)) for at in syns_s]
    times += [(at, captures.tcp(False, 0, 1, SYN | ACK, options=options)) for at in syn_acks_s]
    times.append((ack_s, captures.tcp(True, 1, 1, ACK)))
    for number in range(5):
        at, first = ack_s + 0.1 + 0.1 * number, 1 + 100 * number
        times.append((at, captures.tcp(True, first, 1, ACK, 100)))
        times.append((at + 0.02, captures.tcp(False, 1, first + 100, ACK)))
    packets = [(round(at * 10**6), one) for at, one in sorted(times, key=lambda one: one[0])]
    assert _causes(diagnose(str(captures.write(tmp_path / "a.pcap", packets)))) == causes


def test_a_lost_syn_ack_is_no_promotion_where_data_only_comes_in(tmp_path: Path) -> None:
    """Captured next to the client: the path is longer than any round trip in the capture."""
    options = captures.SYN_OPTIONS
    times = [(at, captures.tcp(True, 0, 0, SYN, options=options)) for at in (0, 1.03)]
    times += [(1.13, captures.tcp(False, 0, 1, SYN | ACK, options=options))] * 2
    times.append((1.14, captures.tcp(True, 1, 1, ACK)))
    for number in range(5):
        at, first = 1.3 + 0.1 * number, 1 + 100 * number
        times.append((at, captures.tcp(False, first, 1, ACK, 100)))
        times.append((at + 0.00007, captures.tcp(True, 1, first + 100, ACK)))
    packets = [(round(at * 10**6), one) for at, one in times]
    assert _causes(diagnose(str(captures.write(tmp_path / "a.pcap", packets)))) == []


def test_copies_are_left_out_and_told_of(tmp_path: Path) -> None:
    """Pings as `tcpdump -i any` has them: in at one interface, out at another."""
    data = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 113)
    for number in range(20):
        reply = _icmp(PEER, HOST, 0, 0, struct.pack(">HH", 77, number) + bytes(56))
        for late, packet in ((0, _ping(number)), (30_000, reply)):
            for copy in range(2):
                link = struct.pack(">HHHQH", 4 * copy, 1, 6, copy, 0x0800)
                head = struct.pack("<IIII", number, late + 3 * copy, len(link + packet),
                                   len(link + packet))  # fmt: skip
                data += head + link + packet
    file = tmp_path / "any.pcap"
    file.write_bytes(data)
    document = diagnose(str(file))
    assert _causes(document) == []
    assert "Each packet was captured twice" in _texts(document)
    assert "the 40 copies are left out" in _texts(document)
    assert "all 20 echo requests were answered" in _texts(document)


def _same(packet: bytes) -> bytes:
    return packet


def _in_gtp_u(packet: bytes) -> bytes:
    """A G-PDU without an extension: LTE's."""
    datagram = struct.pack(">BBHI", 0x30, 255, len(packet), 7) + packet
    head = struct.pack(">HHHH", 2152, 2152, 8 + len(datagram), 0)
    return captures.ip(head + datagram, UDP, bytes([10, 9, 0, 1]), bytes([10, 9, 0, 2]))


def _in_ip6(packet: bytes) -> bytes:
    """The same segment over IPv6; its direction is that of the ports."""
    sixth = captures.ip6(packet[20:], 6)
    from_client = packet[20:22] == struct.pack(">H", captures.CLIENT[1])
    return sixth if from_client else sixth[:8] + sixth[24:40] + sixth[8:24] + sixth[40:]


_AROUND: dict[str, Callable[[bytes], bytes]] = {
    "IPv4": _same,
    "IPv6": _in_ip6,
    "GTP-U": _in_gtp_u,
    "GTP-U of NR": captures.in_gtp_u,
    "IPv6 in GTP-U": lambda packet: _in_gtp_u(_in_ip6(packet)),
    "IPv6 in GTP-U of NR": lambda packet: captures.in_gtp_u(_in_ip6(packet)),
}


@pytest.mark.parametrize("around", _AROUND)
@pytest.mark.parametrize("snap", [64, 68, 96, 128])
def test_the_advice_on_cut_headers_is_enough(tmp_path: Path, around: str, snap: int) -> None:
    packets = [(at, _AROUND[around](one)) for at, one in captures.download(30)]
    whole = _core.read_capture(captures.write(tmp_path / "whole.pcap", packets))
    cut = _core.read_capture(captures.write(tmp_path / "cut.pcap", packets, snap))
    if cut["cut_headers"] is None:
        assert cut["flows"] == whole["flows"]
        return
    document = diagnose(str(tmp_path / "cut.pcap"))
    enough = cut["cut_headers"]["snap_bytes"]
    assert enough > snap
    assert f"tcpdump -s {max(128, enough)}" in _texts(document)
    again = _core.read_capture(captures.write(tmp_path / "again.pcap", packets, enough))
    assert again["cut_headers"] is None
    assert again["flows"] == whole["flows"]


def test_what_was_cut_from_a_syn_is_not_known(tmp_path: Path) -> None:
    """54 bytes are all up to the options: neither scale nor segment size is known."""
    file = captures.write(tmp_path / "cut.pcap", captures.download(60, None), 54)
    (flow,) = _core.read_capture(file)["flows"]
    server = direction(flow, "server")
    assert server["options"] is not None
    assert server["options"]["cut"]
    assert server["window"] is None or server["window"]["max_bytes"] is None
    assert server["larger_than_mss"] == 0
    assert server["acked_bytes"] == 60_000
    named = _causes(diagnose(str(file)))
    assert not {"receive-window", "application-limited", "send-buffer"} & set(named)


def test_a_constant_third_word_is_no_counter_of_iperf3(tmp_path: Path) -> None:
    def stream(counts: bool) -> Packets:
        for number in range(200):
            words = struct.pack(">III", 1_700_000_000, number * 1000, number + 1 if counts else 9)
            body = struct.pack(">HHHH", 5001, 5201, 8 + 100, 0) + words + bytes(88)
            yield number * 1000, captures.ip(body, UDP, HOST, PEER)

    sequences: list[Any] = []
    for counts in (True, False):
        file = captures.write(tmp_path / "a.pcap", stream(counts))
        report: Any = _core.read_capture(file)
        (flow,) = report["flows"]
        sequences.append(flow["udp"]["from_client"]["sequence"])
    assert sequences[0]["header"] == "iperf3"
    assert sequences[1] is None


def _talk(port: int, apart: int, answers: int) -> Packets:
    """One side writes 200 bytes now and then, and has nothing more to say."""
    ends = [captures.ip(b"", 6, HOST, PEER)[12:20], captures.ip(b"", 6, PEER, HOST)[12:20]]

    def segment(up: bool, seq: int, ack: int, flags: int, size: int, options: bytes = b"") -> bytes:
        ports = (port, 443) if up else (443, port)
        words = (5 + len(options) // 4) << 4
        head = struct.pack(">HHIIBBHHH", *ports, seq, ack, words, flags, 500, 0, 0)
        body = head + options + bytes(size)
        return captures.ip(body, 6, ends[not up][:4], ends[not up][4:])

    yield 0, segment(True, 0, 0, SYN, 0, captures.SYN_OPTIONS)
    yield 500, segment(False, 0, 1, SYN | ACK, 0, captures.SYN_OPTIONS)
    yield 600, segment(True, 1, 1, ACK, 0)
    for number in range(answers):
        at = 10_000 + number * apart
        yield at, segment(True, 1 + 200 * number, 1, ACK, 200)
        yield at + 500, segment(False, 1, 201 + 200 * number, ACK, 0)


def test_who_has_nothing_to_send_shares_no_path_and_is_bound_by_none(tmp_path: Path) -> None:
    talks = [*_talk(50_000, 90_000, 300), *_talk(50_001, 1_000_000, 27)]
    document = diagnose(str(captures.write(tmp_path / "a.pcap", sorted(talks))))
    assert _causes(document) == []
    assert "capacity is what bounds" not in document["causes"]["because"]
    assert "nothing to send" in document["causes"]["because"]


def test_a_handshake_alone_is_blamed_for_nothing(tmp_path: Path) -> None:
    opening = list(captures.download(0, None))
    assert _causes(diagnose(str(captures.write(tmp_path / "a.pcap", opening)))) == []


def test_segments_above_a_size_that_never_arrive_are_too_large(tmp_path: Path) -> None:
    packets = list(captures.download(0, None))
    at, offset = 40_000, 1
    for _ in range(40):
        packets.append((at, captures.tcp(False, offset, 1, ACK, 2 * 1400)))
        # It is lost, and what it held arrives in two parts, after a time-out.
        for part in (0, 1400):
            packets.append((at + 250_000 + part, captures.tcp(False, offset + part, 1, ACK, 1400)))
            answer = captures.tcp(True, 1, offset + part + 1400, ACK)
            packets.append((at + 290_000 + part, answer))
        at, offset = at + 300_000, offset + 2 * 1400
    document = diagnose(str(captures.write(tmp_path / "a.pcap", sorted(packets))))
    assert _causes(document) == ["offload"]
    assert "2800 bytes or more were lost" in document["causes"]["causes"][0]["evidence"]


def test_silence_behind_a_full_window_is_the_receivers(tmp_path: Path) -> None:
    """Its window closes, it does not read for two seconds, and then opens it again."""

    def ack(number: int, window: int) -> bytes:
        plain = bytearray(captures.tcp(True, 1, number, ACK))
        plain[34:36] = struct.pack(">H", window)
        return bytes(plain)

    packets = list(captures.download(0, None))
    at, offset = 40_000, 1
    for _ in range(8):
        for segment in range(8):
            packets.append((at + segment * 100, captures.tcp(False, offset, 1, ACK, 1000)))
            offset += 1000
            room = 500 if segment < 7 else 0
            packets.append((at + 30_000 + segment * 100, ack(offset, room)))
        packets.append((at + 2_000_000, ack(offset, 500)))
        at += 2_000_100
    document = diagnose(str(captures.write(tmp_path / "a.pcap", sorted(packets))))
    assert _causes(document)[0] == "application-limited"
    assert "radio-link-failure" not in _causes(document)
    assert "handover" not in _causes(document)


@pytest.mark.parametrize("arguments", [["diagnose"], ["fit"], ["query", "select 1 from flows"]])
def test_an_empty_capture_is_read_or_refused(
    cli: Any, tmp_path: Path, arguments: list[str]
) -> None:
    file = captures.write(tmp_path / "empty.pcap", [])
    code, _, err = cli(*arguments, str(file))
    assert code in (0, 2)
    assert "Traceback" not in err
    assert (code == 2) is bool(err)


def _bytes_read() -> int:
    """Bytes that this process has read so far, by the kernel's count (proc_pid_io(5))."""
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return int(lines[0].removeprefix("rchar: "))


def test_a_capture_is_read_once_for_its_report_and_once_for_its_packets(tmp_path: Path) -> None:
    file = captures.write(tmp_path / "a.pcap", sorted(captures.download(segments=20_000)))
    size = file.stat().st_size
    # What diagnoses load is not the capture's.
    first = diagnose(str(captures.write(tmp_path / "b.pcap", captures.download())))
    assert first["capture"]["flows"]
    before = _bytes_read()
    document = diagnose(str(file))
    assert document["capture"]["packets"] > 20_000
    assert 2 * size <= _bytes_read() - before < 2.5 * size
    # A file that was written to since is another one.
    captures.write(file, captures.download(segments=200))
    again = diagnose(str(file))
    assert again["capture"]["packets"] < 1000
    assert again["causes"] != document["causes"]


def test_packets_are_not_read_behind_the_last_that_are_kept(tmp_path: Path) -> None:
    file = captures.write(tmp_path / "a.pcap", sorted(captures.download(segments=20_000)))
    whole = _core.read_capture(file)
    (flow,) = whole["flows"]
    before = _bytes_read()
    (read,) = _core.read_flows(file, [(flow["id"], False)], 100)
    assert read["cut"]
    assert len(read["sent_ns"]) == 8 * 100
    assert _bytes_read() - before < file.stat().st_size / 2
