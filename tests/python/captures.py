"""Captures made by hand."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

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


TUNNEL_BYTES = 44
"""What `in_gtp_u` puts before a packet."""


def wrapped(pcap: bytes, depth: int) -> bytes:
    """A pcap file of Ethernet frames (small machines' order) with so many tunnels in each."""
    data, at = pcap[:24], 24
    while at < len(pcap):
        seconds, fraction, kept, length = struct.unpack_from("<IIII", pcap, at)
        frame = pcap[at + 16 : at + 16 + kept]
        # Lengths in the headers are those of the whole packets.
        packet = frame[14:] + bytes(length - kept)
        for _ in range(depth):
            packet = in_gtp_u(packet)
        more = TUNNEL_BYTES * depth
        data += struct.pack("<IIII", seconds, fraction, kept + more, length + more)
        data += frame[:14] + packet[: kept - 14 + more]
        at += 16 + kept
    return data


def ip6(body: bytes, protocol: int) -> bytes:
    """An IPv6 packet."""
    ends = bytes([0xFD, *bytes(14), 1, 0xFD, *bytes(14), 2])
    return struct.pack(">IHBB", 0x60000000, len(body), protocol, 64) + ends + body


def write(path: Path, packets: Iterable[tuple[int, bytes]], snap: int = 65535) -> Path:
    """A pcap file of Ethernet frames, each cut to this many bytes."""
    data = bytearray(struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    for micros, packet in packets:
        kind = b"\x08\x00" if packet[0] >> 4 == 4 else b"\x86\xdd"
        frame = bytes(12) + kind + packet
        kept = frame[:snap]
        data += struct.pack("<IIII", micros // 10**6, micros % 10**6, len(kept), len(frame)) + kept
    path.write_bytes(data)
    return path
