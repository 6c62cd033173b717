"""The set of paths over which congestion controls are judged, and what runs over each.

A result can only be compared with one of the same set: whatever changes here or in ``paths``
changes ``SET``.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

SET = "2"
"""The set's version, to cite."""

PATHS = Path(__file__).with_name("paths")

DURATION_S = 6.0
"""A run: long enough for some round trips after slow start on each path. Slow changes, as those of
BBR's minimum RTT every 10 s, are beyond it."""

FROM_S = 2.5
"""Figures are taken from here on: slow start takes less on each path. UEs are connected from the
start, since a promotion would be in every sender's figures."""

PING_MS = 50
"""Between two pings: 70 in a run."""

HOST_PEERS = ("cubic", "bbr")
"""The congestion controls of the host beside which each is judged."""

ITSELF = "itself"

PROFILE = "linux-6.18"
"""What the ends are told besides: the defaults of that kernel, on whichever one this runs."""


class Case(NamedTuple):
    """A path, and what each congestion control meets there besides running alone."""

    path: str
    peers: tuple[str, ...]


CASES = (
    Case("wire", (*HOST_PEERS, ITSELF)),
    Case("lte", ("cubic",)),
    Case("nr", ()),
    Case("hspa", ()),
    Case("lossy", ()),
    Case("bloated", ("cubic",)),
    Case("policed", ()),
)


def scenario(path: str, *, pair: bool) -> str:
    """Return the scenario of a path as text: its flows are ``tested``, ``peer`` and ``ping``."""
    flows = ["tested", "peer"] if pair else ["tested"]
    bulk = "".join(
        f'\n[[flow]]\nid = "{flow}"\nkind = "bulk"\nprofile = "{PROFILE}"\n' for flow in flows
    )
    ping = f'\n[[flow]]\nid = "ping"\nkind = "ping"\ninterval_ms = {PING_MS}\nstart_s = {FROM_S}\n'
    text = (PATHS / f"{path}.toml").read_text(encoding="utf-8")
    return f"{text}\n[run]\nduration_s = {DURATION_S}\n{bulk}{ping}"
