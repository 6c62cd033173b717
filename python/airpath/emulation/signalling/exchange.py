"""What a UE and its network exchange, whichever the technology."""

from __future__ import annotations

import hashlib
import ipaddress
import logging
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING

from airpath.emulation.signalling import aka
from airpath.emulation.signalling.asn1 import Encoder

if TYPE_CHECKING:
    from airpath.emulation.attach import Attempt, Session

CORE = "10.78.0.1"
"""Address of MME or AMF and of the gateway: the node ``core`` (crates/emu, tunnel.rs)."""
BASE_STATION = "10.78.0.2"
TEID_UP, TEID_DOWN = 0x2000_0000, 0x1000_0000
"""Tunnel endpoints of gateway and base station, to which the UE's number is added."""

AREA = 1
"""Tracking area code."""
CELL = 1
"""Identity of the cell in which UEs attach: the first one."""

NO_LIMIT_BPS = 10**10
"""UE-AMBR where the subscription has none: the highest bit rate of S1AP (TS 36.413 9.2.1.19)."""

THREE_DIGITS = {"302", "334", *map(str, range(310, 317))}
"""MCCs of Canada, Mexico and the United States, whose MNCs have three digits (ITU-T E.212)."""

UPLINK, DOWNLINK = True, False

NO_KEY, FIRST_KEY = (0, 7), (0, 0)
"""NAS key set identifiers (TS 24.301 9.9.3.21, TS 24.501 9.11.3.32)."""
CIPHERED, NEW_INTEGRITY, NEW_CIPHERED = 2, 3, 4
"""Security header types (TS 24.301 9.3.1, TS 24.501 9.3). Ciphering is null."""

STEPS = 7
"""Steps of an attach or a registration after its first message."""


@dataclass(frozen=True)
class Step:
    """A message, and whether the base station sent it."""

    up: bool
    pdu: bytes = field(repr=False)


@dataclass(frozen=True)
class Exchange:
    """All messages of one UE, by phase.

    ``attach`` begins with the RRC connection; its message after ``STEPS`` would complete it.
    ``session`` ends when the session is established, ``detach`` begins when it ends.
    """

    attach: list[Step]
    session: list[Step]
    detach: list[Step]


@dataclass(frozen=True)
class Ue:
    """A UE as the messages name it."""

    attempt: Attempt = field(repr=False)
    number: int
    """From 1, in the order of the scenario."""
    seed: int

    @property
    def imsi(self) -> str:
        """IMSI of the USIM."""
        return self.attempt.ue["imsi"]

    @property
    def apn(self) -> str:
        """Data network that the UE requests."""
        return self.attempt.ue["apn"]

    @property
    def plmn(self) -> str:
        """MCC and MNC of the home network, which serves the UE."""
        return self.imsi[: 6 if self.imsi[:3] in THREE_DIGITS else 5]

    @property
    def teids(self) -> tuple[bytes, bytes]:
        """TEIDs of gateway and base station."""
        return (TEID_UP + self.number).to_bytes(4), (TEID_DOWN + self.number).to_bytes(4)

    @property
    def temporary(self) -> int:
        """M-TMSI or 5G-TMSI."""
        return int.from_bytes(self.drawn("TMSI", 4))

    def drawn(self, what: str, length: int) -> bytes:
        """Draw bytes from the run's seed."""
        text = f"signalling {self.seed} {self.imsi} {what}"
        return hashlib.sha256(text.encode()).digest()[:length]

    def vector(self) -> aka.Vector:
        """Authentication vector of the core, from the subscriber's K and OPc."""
        subscriber = self.attempt.subscriber
        if subscriber is None:
            raise ValueError("an unknown UE is not authenticated")
        key, opc = bytes.fromhex(subscriber.key), bytes.fromhex(subscriber.opc)
        return aka.vector(key, opc, self.drawn("RAND", 16))


class NasSecurity:
    """NAS security context: counts messages, and computes their authentication codes."""

    def __init__(self, key: bytes, bearer: int) -> None:
        """Start with both NAS COUNTs at 0; ``bearer`` identifies the NAS connection."""
        self._key, self._bearer = key, bearer
        self._counts = {UPLINK: 0, DOWNLINK: 0}

    def protect(self, message: bytes, *, up: bool) -> tuple[int, bytes]:
        """Return a message's sequence number and message authentication code."""
        count = self._counts[up]
        self._counts[up] += 1
        numbered = bytes([count]) + message
        code = aka.integrity_code(self._key, count, self._bearer, numbered, downlink=not up)
        return count, code


class Messages(ABC):
    """Messages of one UE, in the order in which they must be made: what both technologies share.

    ``S1AP`` or ``NGAP`` carry NAS, whose messages of mobility management have names with ``PREFIX``
    and a security header named ``HEADER``.
    """

    PREFIX: str
    HEADER: str

    def __init__(self, ue: Ue, protocol: ModuleType, mobility: ModuleType) -> None:
        """Take pycrate's modules of the protocol and of mobility management."""
        from pycrate_mobile.TS24008_IE import PLMN

        self._ue, self._encoder, self._mobility = ue, Encoder(protocol), mobility
        plmn = PLMN()
        plmn.encode(ue.plmn)
        self._plmn = bytes(plmn.to_bytes())
        self._security: NasSecurity

    @abstractmethod
    def exchange(self) -> Exchange:
        """All of them, until the UE is refused or has detached."""

    @abstractmethod
    def _ids(self) -> dict[str, object]: ...

    @abstractmethod
    def _location(self) -> dict[str, object]: ...

    def _plain(self, name: str, **elements: object) -> bytes:
        """NAS message of mobility management."""
        return bytes(getattr(self._mobility, self.PREFIX + name)(val=elements).to_bytes())

    def _protected(self, message: bytes, up: bool, header: int = CIPHERED) -> bytes:
        """NAS message with its sequence number and message authentication code."""
        count, code = self._security.protect(message, up=up)
        outer = {self.HEADER: {"SecHdr": header}, "MAC": code, "Seqn": count, "NASMessage": message}
        return self._plain("SecProtNASMessage", **outer)

    def _up(self, message: bytes) -> Step:
        elements = {**self._ids(), "NAS-PDU": message, **self._location()}
        return Step(UPLINK, self._encoder.pdu("UplinkNASTransport", elements))

    def _down(self, message: bytes) -> Step:
        elements = {**self._ids(), "NAS-PDU": message}
        return Step(DOWNLINK, self._encoder.pdu("DownlinkNASTransport", elements))

    def _procedure(
        self,
        name: str,
        request: Mapping[str, object],
        response: Mapping[str, object],
        words: tuple[str, str] = ("Request", "Response"),
    ) -> list[Step]:
        """What the network asks of the base station, and its answer."""
        asked = self._encoder.pdu(name + words[0], request)
        answered = self._encoder.pdu(name + words[1], response, "successfulOutcome")
        return [Step(DOWNLINK, asked), Step(UPLINK, answered)]

    def _release(self, cause: str) -> list[Step]:
        name = self._encoder.name
        pair = {key[0].lower() + key[1:]: number for key, number in self._ids().items()}
        command = {f"UE-{name}-IDs": (f"uE-{name}-ID-pair", pair), "Cause": ("nas", cause)}
        return self._procedure("UEContextRelease", command, self._ids(), ("Command", "Complete"))


def ambr_bps(session: Session) -> tuple[int, int]:
    """UE-AMBR for downlink and uplink."""
    return _bps(session.ambr_down_mbps), _bps(session.ambr_up_mbps)


def bits(address: str) -> tuple[int, int]:
    """IPv4 address as pycrate's BIT STRING."""
    return int(ipaddress.IPv4Address(address)), 32


def silence(name: str) -> None:
    """Silence the warning of a module of pycrate that it lacks what ``aka`` computes."""
    logging.getLogger(name).setLevel(logging.ERROR)


def _bps(mbps: float | None) -> int:
    return NO_LIMIT_BPS if mbps is None else min(round(mbps * 1e6), NO_LIMIT_BPS)
