"""UEs attach to a core network and get a session, or are refused with a 3GPP cause.

LTE: attach with a default bearer (TS 23.401 5.3.2). NR: registration and a PDU session (TS 23.502
4.2.2.2, 4.3.2.2). The keys decide, without Milenage: the network's AUTN is right for a UE, and the
UE's RES for the network, exactly if both have the same K and OPc.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from airpath.emulation import keys
from airpath.emulation.oam import Subscriber, subscribers
from airpath.emulation.session import Session
from airpath.errors import AirpathError

if TYPE_CHECKING:
    from airpath import _core

__all__ = ["AttachError", "Attempt", "Refusal", "Session", "attach", "attempts", "sessions"]


class AttachError(AirpathError):
    """The network rejects a UE."""


@dataclass(frozen=True)
class Refusal:
    """Where a procedure ends for a UE, and why."""

    step: Literal["identity", "authentication", "session"]
    cause: int
    """EMM or 5GMM cause; if the session is refused, ESM or 5GSM cause."""
    sentence: str


@dataclass(frozen=True)
class Attempt:
    """What came of a UE's wish to attach: a session or a refusal."""

    ue: _core.CoreUe = field(repr=False)
    """With its K and OPc."""
    subscriber: Subscriber | None = field(repr=False)
    """None: the network does not know the IMSI."""
    outcome: Session | Refusal


@dataclass(frozen=True)
class _Words:
    """Procedures, protocols and causes of one technology."""

    attach: str
    session: str
    mobility: str
    management: str
    network_name: str
    unknown: tuple[int, str]
    """Cause for an IMSI that the network does not know."""


_LTE = _Words(
    "attach",
    "PDN connectivity",
    "EMM",
    "ESM",
    "APN",
    # TS 29.272 annex A: DIAMETER_ERROR_USER_UNKNOWN
    (8, "EPS services and non-EPS services not allowed"),
)
_NR = _Words(
    "registration",
    "PDU session establishment",
    "5GMM",
    "5GSM",
    "DNN",
    # TS 29.524 4: 404 USER_NOT_FOUND
    (7, "5GS services not allowed"),
)


def attach(core: _core.CoreNetwork) -> list[Session]:
    """Let every UE attach, in the order of the scenario.

    Raises ``AttachError`` for the first that may not, ``InputError`` without a subscribers file.
    """
    return sessions(attempts(core))


def attempts(core: _core.CoreNetwork) -> list[Attempt]:
    """Let UEs attach in the order of the scenario, until one is refused.

    Raises ``InputError`` without a subscribers file.
    """
    words = _NR if core["access"] == "nr" else _LTE
    known = {each.imsi: each for each in subscribers.read(Path(core["subscribers"]))}
    hosts = ipaddress.IPv4Network(core["pool"]).hosts()
    next(hosts)  # The gateway's.
    made = []
    for ue in keys.completed(core):
        made.append(_attempt(ue, known.get(ue["imsi"]), hosts, core, words))
        if isinstance(made[-1].outcome, Refusal):
            break
    return made


def sessions(attempts: Sequence[Attempt]) -> list[Session]:
    """Return the sessions; raises ``AttachError`` if a UE was refused."""
    found = []
    for attempt in attempts:
        if isinstance(attempt.outcome, Refusal):
            who = f"UE '{attempt.ue['name']}' (IMSI {attempt.ue['imsi']})"
            raise AttachError(f"{who}: {attempt.outcome.sentence}")
        found.append(attempt.outcome)
    return found


def _attempt(
    ue: _core.CoreUe,
    subscriber: Subscriber | None,
    hosts: Iterator[ipaddress.IPv4Address],
    core: _core.CoreNetwork,
    words: _Words,
) -> Attempt:
    if subscriber is None:
        return Attempt(ue, None, _unknown(core, words))
    refusal = _unlike(ue, subscriber, core, words) or _no_network(ue, subscriber, core, words)
    address = None if refusal else next(hosts, None)
    if address is None:
        return Attempt(ue, subscriber, refusal or _exhausted(core, words))
    attached_ms = core["rrc_setup_ms"] + core["attach_ms"]
    session = Session(
        index=ue["index"],
        ue=ue["name"],
        imsi=ue["imsi"],
        address=str(address),
        apn=ue["apn"],
        qci=subscriber.qci,
        qfi=subscriber.qfi if words is _NR else None,
        ambr_down_mbps=subscriber.ambr_down_mbps,
        ambr_up_mbps=subscriber.ambr_up_mbps,
        attached_ms=attached_ms,
        established_ms=attached_ms + core["session_ms"],
    )
    return Attempt(ue, subscriber, session)


def _unknown(core: _core.CoreNetwork, words: _Words) -> Refusal:
    cause, meaning = words.unknown
    return Refusal(
        "identity",
        cause,
        f"{words.attach} rejected, {words.mobility} cause #{cause} ({meaning}): "
        f"the IMSI is not in {core['subscribers']}; `airpath subscriber add` adds it",
    )


def _unlike(
    ue: _core.CoreUe, subscriber: Subscriber, core: _core.CoreNetwork, words: _Words
) -> Refusal | None:
    if (ue["key"], ue["opc"]) == (subscriber.key, subscriber.opc):
        return None
    # TS 24.301 5.4.2.6 c, TS 24.501 5.4.1.3.6 c: the UE finds the MAC in AUTN wrong.
    return Refusal(
        "authentication",
        20,
        f"authentication failure, {words.mobility} cause #20 (MAC failure): "
        f"`key` or `opc` of the UE does not match the subscriber's in {core['subscribers']}",
    )


def _no_network(
    ue: _core.CoreUe, subscriber: Subscriber, core: _core.CoreNetwork, words: _Words
) -> Refusal | None:
    """APNs are compared as host names are (TS 23.003 9.1)."""
    asked = ue["apn"].lower()
    if asked != core["apn"].lower():
        return _no_session(
            words,
            27,
            f"missing or unknown {words.network_name}",
            f"it requests '{ue['apn']}', but there is only '{core['apn']}' (`core.apn`)",
        )
    if asked != subscriber.apn.lower():
        return _no_session(
            words,
            33,
            "requested service option not subscribed",
            f"it requests '{ue['apn']}', but its subscription has '{subscriber.apn}'",
        )
    return None


def _exhausted(core: _core.CoreNetwork, words: _Words) -> Refusal:
    return _no_session(
        words,
        26,
        "insufficient resources",
        f"all addresses of the pool {core['pool']} are in use; enlarge `core.pool`",
    )


def _no_session(words: _Words, cause: int, meaning: str, why: str) -> Refusal:
    return Refusal(
        "session",
        cause,
        f"{words.session} rejected, {words.management} cause #{cause} ({meaning}): {why}",
    )
