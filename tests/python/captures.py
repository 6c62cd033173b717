"""Captures made by hand, and what tshark says of any."""

from __future__ import annotations

import struct
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CLIENT, SERVER = (bytes([10, 0, 0, 1]), 40000), (bytes([10, 0, 0, 2]), 443)
SYN, ACK = 2, 16
MSS = 1000
SYN_OPTIONS = bytes([2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7])


def ip(body: bytes, protocol: int, source: bytes, destination: bytes) -> bytes:
    """An IPv4 packet."""
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0x4000, 64, protocol, 0)
    return head + source + destination + body


def tcp(up: bool, seq: int, ack: int, flags: int, payload: int = 0, options: bytes = b"") -> bytes:
    """A TCP segment within IPv4; up: from the client."""
    source, destination = (CLIENT, SERVER) if up else (SERVER, CLIENT)
    words = (5 + len(options) // 4) << 4
    head = struct.pack(">HHIIBBHHH", source[1], destination[1], seq, ack, words, flags, 500, 0, 0)
    return ip(head + options + b"SECRET" * (payload // 6) + b"x" * (payload % 6), 6,
              source[0], destination[0])  # fmt: skip


def download(segments: int = 20, lost: int | None = 5) -> Iterator[tuple[int, bytes]]:
    """Times in microseconds and packets: the server is 20 ms away, the client 10 ms."""
    yield 0, tcp(True, 0, 0, SYN, options=SYN_OPTIONS)
    yield 20_000, tcp(False, 0, 1, SYN | ACK, options=SYN_OPTIONS)
    yield 30_000, tcp(True, 1, 1, ACK)
    for segment in range(segments):
        if segment != lost:
            yield 40_000 + segment * 100, tcp(False, 1 + segment * MSS, 1, ACK, MSS)
    edge = segments if lost is None else lost
    for segment in range(segments):
        yield 50_000 + segment * 100, tcp(True, 1, 1 + min(segment + 1, edge) * MSS, ACK)
    if lost is not None:
        yield 80_000, tcp(False, 1 + lost * MSS, 1, ACK, MSS)
        yield 90_000, tcp(True, 1, 1 + segments * MSS, ACK)


def in_gtp_u(packet: bytes) -> bytes:
    """The packet in a G-PDU with a PDU session container: 44 bytes in front of it."""
    extension = bytes([0, 0, 0, 0x85, 1, 0, 9, 0])
    header = struct.pack(">BBHI", 0x34, 255, len(extension) + len(packet), 7)
    datagram = header + extension + packet
    head = struct.pack(">HHHH", 2152, 2152, 8 + len(datagram), 0)
    return ip(head + datagram, 17, bytes([10, 9, 0, 1]), bytes([10, 9, 0, 2]))


def write(path: Path, packets: Iterator[tuple[int, bytes]]) -> Path:
    """A pcap file of Ethernet frames."""
    data = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    for micros, packet in packets:
        frame = bytes(12) + b"\x08\x00" + packet
        length = len(frame)
        data += struct.pack("<IIII", micros // 10**6, micros % 10**6, length, length) + frame
    path.write_bytes(data)
    return path


_FIELDS = (
    "tcp.stream", "ip.src", "ipv6.src", "ip.dst", "ipv6.dst", "tcp.srcport", "tcp.dstport",
    "ip.len", "ip.hdr_len", "ipv6.plen", "tcp.hdr_len", "tcp.len", "tcp.nxtseq", "tcp.ack",
    "tcp.analysis.ack_rtt", "tcp.analysis.retransmission", "tcp.analysis.out_of_order",
    "tcp.analysis.keep_alive", "tcp.options.sack_le",
)  # fmt: skip


@dataclass
class Stream:
    """A TCP stream as tshark has it. ``ends`` are address and port of both."""

    ends: frozenset[tuple[str, int]]
    rows: list[dict[str, str]]

    def count(self, *fields: str) -> int:
        """Packets that have one of the fields."""
        return sum(any(row[field] for field in fields) for row in self.rows)

    @property
    def payload(self) -> int:
        """Bytes of payload as the headers have them, where they are IPv4's; else as tshark has."""
        total = 0
        for row in self.rows:
            if row["ip.len"] and not row["ipv6.plen"] and int(row["ip.len"]) > 0:
                total += int(row["ip.len"]) - int(row["ip.hdr_len"]) - int(row["tcp.hdr_len"])
            else:
                total += int(row["tcp.len"] or 0)
        return total

    @property
    def rtts_ms(self) -> list[float]:
        """The round trips that acknowledgements end."""
        field = "tcp.analysis.ack_rtt"
        return sorted(float(row[field]) * 1e3 for row in self.rows if row[field])

    @property
    def is_plain(self) -> bool:
        """Nothing came twice, late or selectively acknowledged; ACKs end where segments do."""
        if self.count("tcp.analysis.retransmission", "tcp.analysis.out_of_order",
                      "tcp.options.sack_le"):  # fmt: skip
            return False
        sent: dict[tuple[str, str], set[str]] = defaultdict(set)
        for row in self.rows:
            sent[row["tcp.srcport"], row["ip.src"]].add(row["tcp.nxtseq"])
        return all(
            row["tcp.ack"] in {"", "0"} | sent[row["tcp.dstport"], row["ip.dst"]]
            for row in self.rows
        )


def tshark(path: Path) -> list[Stream]:
    """The TCP streams of a capture; of what is in tunnels the innermost."""
    command = ["tshark", "-r", str(path), "-n", "-Y", "tcp", "-T", "fields", "-E", "occurrence=l"]
    for field in _FIELDS:
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    streams: dict[int, list[dict[str, str]]] = defaultdict(list)
    for line in done.stdout.splitlines():
        row = dict(zip(_FIELDS, line.split("\t"), strict=True))
        streams[int(row["tcp.stream"])].append(row)
    return [Stream(_ends(rows[0]), rows) for _, rows in sorted(streams.items())]


def _ends(row: dict[str, str]) -> frozenset[tuple[str, int]]:
    source = row["ipv6.src"] or row["ip.src"]
    destination = row["ipv6.dst"] or row["ip.dst"]
    return frozenset({(source, int(row["tcp.srcport"])), (destination, int(row["tcp.dstport"]))})


def matched(
    streams: list[Stream], flows: list[dict[str, Any]]
) -> Iterator[tuple[Stream, dict[str, Any]]]:
    """Each stream with the flow of the same ends; those of the same ends in their order."""
    by_ends: dict[frozenset[tuple[str, int]], list[dict[str, Any]]] = defaultdict(list)
    for flow in flows:
        ends = {(flow["client"], flow["client_port"]), (flow["server"], flow["server_port"])}
        by_ends[frozenset(ends)].append(flow)
    for stream in streams:
        yield stream, by_ends[stream.ends].pop(0)
    assert not any(by_ends.values())
