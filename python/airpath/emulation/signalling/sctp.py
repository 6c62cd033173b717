"""An SCTP association (RFC 9260) over IPv4, as packets with an Ethernet header."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

ETHERNET = bytes.fromhex("020000000002 020000000001 0800")
"""The header that all packets of a capture have (crates/capture, pcapng.rs)."""

_WINDOW = 1 << 17
"""Advertised receiver window in bytes; far more than a message has."""
_STREAM = 1
"""Stream of UE-associated signalling; stream 0 is for the nodes themselves (TS 36.412 7)."""
_DATA, _SACK = 0, 3
_WHOLE = 3
"""Flags of a message in one chunk: it begins and ends there."""
_SCTP = 132
_DO_NOT_FRAGMENT = 0x4000
_HOPS = 64


@dataclass
class Peer:
    """One end of the association, and what it has sent."""

    address: bytes
    port: int
    tag: int
    """Verification tag of packets to it."""
    tsn: int
    """Number of its next chunk."""
    messages: int = field(default=0, init=False)


@dataclass
class Association:
    """Two ends, between which each message is acknowledged at once."""

    base_station: Peer
    core: Peer
    protocol: int
    """Payload protocol identifier."""

    def send(self, payload: bytes, *, up: bool) -> list[bytes]:
        """Return the packet with a message, and the one that acknowledges it."""
        sender, receiver = (self.base_station, self.core) if up else (self.core, self.base_station)
        data = struct.pack(">IHHI", sender.tsn, _STREAM, sender.messages & 0xFFFF, self.protocol)
        sack = struct.pack(">IIHH", sender.tsn, _WINDOW, 0, 0)
        sender.tsn = (sender.tsn + 1) & 0xFFFFFFFF
        sender.messages += 1
        return [
            _packet(sender, receiver, _chunk(_DATA, _WHOLE, data + payload)),
            _packet(receiver, sender, _chunk(_SACK, 0, sack)),
        ]


def _chunk(kind: int, flags: int, value: bytes) -> bytes:
    head = bytes([kind, flags]) + (4 + len(value)).to_bytes(2)
    return head + value + bytes(-len(value) % 4)


def _packet(sender: Peer, receiver: Peer, chunk: bytes) -> bytes:
    ports = struct.pack(">HHI", sender.port, receiver.port, receiver.tag)
    # RFC 9260 appendix A: the checksum's bytes are sent in reverse.
    checksum = struct.pack("<I", _crc32c(ports + bytes(4) + chunk))
    length = 20 + len(ports) + len(checksum) + len(chunk)
    ip = struct.pack(">BBHHHBB", 0x45, 0, length, 0, _DO_NOT_FRAGMENT, _HOPS, _SCTP)
    addresses = sender.address + receiver.address
    return ETHERNET + ip + _internet_checksum(ip + addresses) + addresses + ports + checksum + chunk


def _internet_checksum(words: bytes) -> bytes:
    """RFC 1071."""
    total: int = sum(struct.unpack(f">{len(words) // 2}H", words))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return (total ^ 0xFFFF).to_bytes(2)


def _crc32c(data: bytes) -> int:
    """CRC-32C with the reflected polynomial (RFC 9260 appendix A)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF
