"""Who may still try to prove himself: addresses that sent wrong proofs, and connections that wait.

Both tables are bounded, whatever arrives.
"""

from __future__ import annotations

import ipaddress
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from airpath.measure.control import Peer, spelled

WRONG_PROOFS = 3
"""An address that sent this many is refused."""
REFUSED_S = 60.0
"""How long after its last wrong proof."""
MOST_ADDRESSES = 1024
"""Addresses that are remembered; the one that failed longest ago is forgotten first."""
MOST_LINES = 10
"""Lines about refused peers that are shown within ``LINES_S``; others are only counted."""
LINES_S = 10.0


def network(peer: Peer) -> str:
    """Return what counts as one address: an IPv4 address, or an IPv6 network (/64)."""
    found = ipaddress.ip_address(peer[0].partition("%")[0])
    if found.version == 4:
        return str(found)
    return str(ipaddress.ip_network((int(found) >> 64 << 64, 64)))


@dataclass
class _Failures:
    count: int
    last_s: float


class Refusals:
    """Addresses that sent wrong proofs."""

    def __init__(self) -> None:
        self._failures: OrderedDict[str, _Failures] = OrderedDict()

    def __len__(self) -> int:
        return len(self._failures)

    def note(self, peer: Peer, now_s: float) -> None:
        """Count a wrong proof."""
        name = network(peer)
        known = self._failures.pop(name, None)
        if known is None or now_s - known.last_s > REFUSED_S:
            known = _Failures(0, now_s)
        self._failures[name] = _Failures(known.count + 1, now_s)
        if len(self._failures) > MOST_ADDRESSES:
            self._failures.popitem(last=False)

    def forget(self, peer: Peer) -> None:
        """Forget the wrong proofs of an address that sent a right one."""
        self._failures.pop(network(peer), None)

    def refuses(self, peer: Peer, now_s: float) -> bool:
        """Whether an address sent so many wrong proofs that it is not answered now."""
        known = self._failures.get(network(peer))
        if known is None or now_s - known.last_s > REFUSED_S:
            return False
        return known.count >= WRONG_PROOFS


def to_make_room(waiting: list[Peer]) -> int:
    """Return which connection ends for a new one: the oldest of the address with the most.

    ``waiting``: peers of connections that have not proved themselves, the oldest first. One address
    alone cannot keep all others out.
    """
    names = [network(peer) for peer in waiting]
    counts = Counter(names)
    most = max(counts.values())
    return next(at for at, name in enumerate(names) if counts[name] == most)


class Narration:
    """Lines about refused peers; no flood of peers floods the log."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._shown = self._hidden = 0
        self._since_s = float("-inf")

    def refused(self, peer: Peer, why: str, now_s: float) -> None:
        """Say who was refused and why, or only count it."""
        self.line(f"{spelled(peer)} refused: {why}", now_s)

    def line(self, text: str, now_s: float) -> None:
        """Say something, or only count it if too much was said."""
        self.flush(now_s)
        if self._shown >= MOST_LINES:
            self._hidden += 1
            return
        self._shown += 1
        self._say(text)

    def flush(self, now_s: float) -> None:
        """Say how many were not shown, once per ``LINES_S``."""
        if now_s - self._since_s < LINES_S:
            return
        if self._hidden:
            self._say(f"{self._hidden} more connections were refused")
        self._shown = self._hidden = 0
        self._since_s = now_s
