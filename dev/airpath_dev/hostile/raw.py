"""Run inside: sends one raw TCP packet through ``air0`` that the kernel is told to segment."""

from __future__ import annotations

import socket
import struct
import sys

SOL_PACKET = 263
PACKET_VNET_HDR = 15
NEEDS_CSUM, GSO_TCPV4 = 1, 1
ETHERNET = bytes([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0])


def sum16(data: bytes) -> int:
    """Sum of RFC 1071, complemented."""
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def packet(payload: int) -> bytes:
    """A TCP segment from the first UE to the server."""
    addresses = socket.inet_aton("10.77.1.1") + socket.inet_aton("10.77.0.1")
    header = struct.pack(">BBHHHBBH", 0x45, 0, 40 + payload, 1, 0, 64, 6, 0) + addresses
    header = header[:10] + struct.pack(">H", sum16(header)) + header[12:]
    tcp = struct.pack(">HHIIBBHHH", 4000, 5000, 1, 1, 0x50, 0x10, 1000, 0, 0)
    return header + tcp + bytes(payload)


def main() -> None:
    """``raw.py SEGMENT_BYTES PAYLOAD``."""
    segment, payload = int(sys.argv[1]), int(sys.argv[2])
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800)) as raw:
        raw.bind(("air0", 0x0800))
        raw.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        # A TUN device has no Ethernet header.
        link = ETHERNET if raw.getsockname()[3] == 1 else b""
        start = len(link) + 20
        said = struct.pack("=BBHHHH", NEEDS_CSUM, GSO_TCPV4, start + 20, segment, start, 16)
        raw.send(said + link + packet(payload))


if __name__ == "__main__":
    main()
