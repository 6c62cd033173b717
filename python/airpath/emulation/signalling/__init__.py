"""What base station and core signal while UEs attach and detach, for the capture of an emulation.

The messages follow from the outcome of ``airpath.emulation.attach``; nobody exchanges them. Their
times follow the events ``attach_start``, ``attach_complete``, ``session_established`` and
``detach``. RES, AUTN and the keys that protect NAS are computed from K and OPc; RAND, temporary
identities and SCTP's numbers are drawn from the run's seed. pycrate encodes S1AP, NGAP and NAS.
"""

from __future__ import annotations

import hashlib
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.emulation.signalling import capture
from airpath.emulation.signalling.exchange import BASE_STATION, CORE, STEPS, Step, Ue
from airpath.emulation.signalling.sctp import Association, Peer
from airpath.runs.directories import cannot_write

if TYPE_CHECKING:
    from airpath import _core
    from airpath.emulation.attach import Attempt

_NEEDED = ("pycrate_mobile", "cryptography")

Packets = list[tuple[int, bytes]]
"""Times in nanoseconds from the model's time 0, and packets, in order."""


@dataclass(frozen=True)
class Signalling:
    """Signalling of the UEs that attach to a core network."""

    core: _core.CoreNetwork
    attempts: Sequence[Attempt] = field(repr=False)
    seed: int

    @classmethod
    def of(
        cls, core: _core.CoreNetwork | None, attempts: Sequence[Attempt], seed: int
    ) -> Signalling | None:
        """Signalling with a core network, if there is one."""
        return None if core is None else cls(core, attempts, seed)

    @property
    def protocol(self) -> str:
        """Protocol between base station and core."""
        return "NGAP" if self.core["access"] == "nr" else "S1AP"

    @property
    def lacks(self) -> str | None:
        """Why a capture cannot have it; None: it can."""
        if all(find_spec(name) for name in _NEEDED):
            return None
        return (
            f"the capture lacks {self.protocol} and NAS, which need pycrate: pip install "
            "'airpath[core]'"
        )

    def add(self, file: Path, zero_ns: int, end_ns: int) -> None:
        """Add that of a run to its capture.

        ``zero_ns`` is the model's time 0 in nanoseconds since 1970, ``end_ns`` the model's time at
        the end. Raises OSError; the capture then stays as it is.
        """
        before, after = self.packets(end_ns)
        capture.add(file, self._interface, _since(zero_ns, before), _since(zero_ns, after))

    def write_refusal(self, file: Path, began_ns: int) -> None:
        """Write a capture of UEs of which the last one is refused; attach began then."""
        before, _ = self.packets(0)
        try:
            capture.create(file, self._interface, _since(began_ns + self._ahead_ns, before))
        except OSError as error:
            raise cannot_write(file, error) from None

    def packets(self, end_ns: int) -> tuple[Packets, Packets]:
        """Return the packets before time 0, and those from the end of the run on."""
        from airpath.emulation.signalling import lte, nr

        technology = nr if self.core["access"] == "nr" else lte
        connected, pace = self.core["rrc_setup_ms"], self.core["attach_ms"] / STEPS
        attached = connected + self.core["attach_ms"]
        before: list[tuple[float, Step]] = []
        after: list[tuple[float, Step]] = []
        for number, attempt in enumerate(self.attempts, 1):
            made = technology.Messages(Ue(attempt, number, self.seed)).exchange()
            each = self.core["session_ms"] / max(len(made.session), 1)
            before += ((connected + pace * index, step) for index, step in enumerate(made.attach))
            before += (
                (attached + each * index, step) for index, step in enumerate(made.session, 1)
            )
            after += ((pace * index, step) for index, step in enumerate(made.detach))
        association = _association(technology.PORT, technology.PROTOCOL, self.seed)

        def sent(steps: list[tuple[float, Step]], begin_ns: int) -> Packets:
            return [
                (begin_ns + _ns(at_ms), packet)
                for at_ms, step in sorted(steps, key=lambda timed: timed[0])
                for packet in association.send(step.pdu, up=step.up)
            ]

        return sent(before, -self._ahead_ns), sent(after, end_ns)

    @property
    def _interface(self) -> str:
        return "n2" if self.core["access"] == "nr" else "s1-mme"

    @property
    def _ahead_ns(self) -> int:
        """How long before time 0 UEs begin to attach."""
        core = self.core
        return _ns(core["rrc_setup_ms"] + core["attach_ms"] + core["session_ms"])


def _association(port: int, protocol: int, seed: int) -> Association:
    drawn = hashlib.sha256(f"signalling {seed} SCTP".encode()).digest()
    tags = [int.from_bytes(drawn[at : at + 4]) for at in range(0, 16, 4)]

    def peer(address: str, tag: int, tsn: int) -> Peer:
        return Peer(ipaddress.IPv4Address(address).packed, port, tag, tsn)

    return Association(peer(BASE_STATION, tags[0], tags[1]), peer(CORE, tags[2], tags[3]), protocol)


def _ns(milliseconds: float) -> int:
    return round(milliseconds * 1e6)


def _since(zero_ns: int, timed: Packets) -> Packets:
    return [(zero_ns + time_ns, packet) for time_ns, packet in timed]
