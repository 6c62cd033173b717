"""UEs attach to a core network and get a session, or are refused with a 3GPP cause.

LTE: attach with a default bearer (TS 23.401 5.3.2). NR: registration and a PDU session (TS 23.502
4.2.2.2, 4.3.2.2). Milenage is not computed: the network's AUTN is right for a UE, and the UE's RES
for the network, exactly if both have the same K and OPc.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.emulation import keys
from airpath.emulation.oam import Subscriber, subscribers
from airpath.emulation.session import Session
from airpath.errors import AirpathError

if TYPE_CHECKING:
    from airpath import _core

__all__ = ["AttachError", "Session", "attach"]


class AttachError(AirpathError):
    """The network rejects a UE."""


@dataclass(frozen=True)
class _Words:
    """Procedures, protocols and causes of one technology."""

    attach: str
    session: str
    mobility: str
    management: str
    network_name: str
    unknown: str
    """Cause for an IMSI that the network does not know."""


_LTE = _Words(
    "attach",
    "PDN connectivity",
    "EMM",
    "ESM",
    "APN",
    # TS 29.272 annex A: DIAMETER_ERROR_USER_UNKNOWN
    "#8 (EPS services and non-EPS services not allowed)",
)
_NR = _Words(
    "registration",
    "PDU session establishment",
    "5GMM",
    "5GSM",
    "DNN",
    # TS 29.524 4: 404 USER_NOT_FOUND
    "#7 (5GS services not allowed)",
)


def attach(core: _core.CoreNetwork) -> list[Session]:
    """Let every UE attach, in the order of the scenario.

    Raises ``AttachError`` for the first that may not, ``InputError`` without a subscribers file.
    """
    words = _NR if core["access"] == "nr" else _LTE
    known = {each.imsi: each for each in subscribers.read(Path(core["subscribers"]))}
    hosts = ipaddress.IPv4Network(core["pool"]).hosts()
    next(hosts)  # The gateway's.
    attached_ms = core["rrc_setup_ms"] + core["attach_ms"]
    sessions = []
    for ue in keys.completed(core):
        subscriber = _authenticated(ue, known.get(ue["imsi"]), core, words)
        _check_network(ue, subscriber, core, words)
        address = next(hosts, None)
        if address is None:
            raise _refused(
                ue,
                f"{words.session} rejected, {words.management} cause #26 (insufficient resources)",
                f"all addresses of the pool {core['pool']} are in use; enlarge `core.pool`",
            )
        sessions.append(
            Session(
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
        )
    return sessions


def _authenticated(
    ue: _core.CoreUe, subscriber: Subscriber | None, core: _core.CoreNetwork, words: _Words
) -> Subscriber:
    if subscriber is None:
        raise _refused(
            ue,
            f"{words.attach} rejected, {words.mobility} cause {words.unknown}",
            f"the IMSI is not in {core['subscribers']}; `airpath subscriber add` adds it",
        )
    if (ue["key"], ue["opc"]) != (subscriber.key, subscriber.opc):
        # TS 24.301 5.4.2.6 c, TS 24.501 5.4.1.3.6 c: the UE finds the MAC in AUTN wrong.
        raise _refused(
            ue,
            f"authentication failure, {words.mobility} cause #20 (MAC failure)",
            f"`key` or `opc` of the UE does not match the subscriber's in {core['subscribers']}",
        )
    return subscriber


def _check_network(
    ue: _core.CoreUe, subscriber: Subscriber, core: _core.CoreNetwork, words: _Words
) -> None:
    """APNs are compared as host names are (TS 23.003 9.1)."""
    asked = ue["apn"].lower()
    if asked != core["apn"].lower():
        raise _refused(
            ue,
            f"{words.session} rejected, {words.management} cause #27 "
            f"(missing or unknown {words.network_name})",
            f"it requests '{ue['apn']}', but there is only '{core['apn']}' (`core.apn`)",
        )
    if asked != subscriber.apn.lower():
        raise _refused(
            ue,
            f"{words.session} rejected, {words.management} cause #33 "
            "(requested service option not subscribed)",
            f"it requests '{ue['apn']}', but its subscription has '{subscriber.apn}'",
        )


def _refused(ue: _core.CoreUe, what: str, why: str) -> AttachError:
    return AttachError(f"UE '{ue['name']}' (IMSI {ue['imsi']}): {what}: {why}")
