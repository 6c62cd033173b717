"""How many NATs there are between the ends, as far as addresses tell, and how long they remember.

The server says which address it sees. If that is not this host's own, datagrams whose TTL ends on
the way show the routers' addresses in the ICMP errors that come back. Shared address space (RFC
6598) is used only between a customer's NAT and the operator's: a router with such an address,
between an end and a view that both have others, stands between two NATs. If the address that the
server sees answers at the first hop, there is one NAT. Other private addresses tell nothing.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack

from airpath.base.text import digits
from airpath.measure import stamp
from airpath.measure.control import Peer
from airpath.measure.document import Hop, Nats

_MOST_HOPS = 12
"""NATs are at the customer's end of a path, at most a few hops inside the operator's network."""
_TRIES, _WAIT_S = 2, 0.5
_CLOSED_PORT = 33434
"""The first port of traceroute: nobody answers there, so a host says that it is closed."""
_SHARED = ipaddress.ip_network("100.64.0.0/10")
_TIME_EXCEEDED = (("icmp", 11), ("icmp6", 3))
_LEAST_SILENCE_S, _STEP = 2.0, 1.15
"""The lifetime is known to 15 %: each silence is longer than the one before by this factor."""
_ANSWER_S = 1.0
_HELLOS = 3


def between(near: Peer, seen_as: Peer, server: Peer, secret: bytes, ssid: int) -> Nats:
    """Find the NATs of an IPv4 path; ``near`` and ``seen_as``: one connection at both ends.

    Where both are the same address, nothing is sent.
    """
    own, outside = _plain(near[0]), _plain(seen_as[0])
    found: Nats = {
        "own": own,
        "seen_as": outside,
        "port_kept": near[1] == seen_as[1],
        "least": 0,
        "most": 0,
        "reason": "the server sees this host's own address",
        "hops": [],
        "binding_s": None,
    }
    if own == outside:
        return found
    packet = stamp.blank()
    key = stamp.mac_key(secret)
    at_ns = time.time_ns()
    stamp.write(packet, key, stamp.Packet(0, stamp.STAMP, 0, 0, at_ns, stamp.ERROR_ESTIMATE, ssid))
    hops, _ = _traced(server, packet)
    _, outermost = _traced((outside, _CLOSED_PORT), b"")
    told = _told(own, outside, [one["address"] for one in hops], outermost)
    return {**found, "hops": hops, "least": told[0], "most": told[1], "reason": told[2]}


def _told(
    own: str, outside: str, hops: Sequence[str | None], outermost: int | None
) -> tuple[int, int | None, str]:
    """The least and the most number of NATs, None: unknown; and why."""
    shared = next((one for one in hops if one is not None and is_shared(one)), None)
    if shared is not None and not is_shared(own) and not is_shared(outside):
        return 2, None, (
            f"the router {shared} has a shared address (100.64.0.0/10, RFC 6598), which is neither "
            f"this host's {own} nor {outside}, which the server sees"
        )  # fmt: skip
    if outermost == 1:
        return 1, 1, f"{outside}, which the server sees, answers at the first hop"
    why = f"the server sees {outside} instead of {own}"
    inside = [one for one in hops if one is not None and ipaddress.ip_address(one).is_private]
    if outermost is not None:
        why += f", which answers at hop {outermost}"
    if inside:
        why += f"; the routers' private addresses ({', '.join(inside)}) prove no further NAT"
    elif not any(hops):
        why += "; no router reported its address"
    return 1, None, why


def is_shared(address: str) -> bool:
    """Whether an address is of the space between customers' and operators' NATs (RFC 6598)."""
    return ipaddress.ip_address(address) in _SHARED


def _plain(address: str) -> str:
    return address.removeprefix("::ffff:").partition("%")[0]


def _traced(to: Peer, packet: bytes | bytearray) -> tuple[list[Hop], int | None]:
    """The routers on the way, and the least TTL with which the destination answered."""
    with ExitStack() as stack:
        inboxes = []
        for ttl in range(1, _MOST_HOPS + 1):
            try:
                sock = stack.enter_context(stamp.connected(*to))
            except OSError:
                # There is no route.
                return [], None
            level, option = (
                (socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS)
                if sock.family == socket.AF_INET6
                else (socket.IPPROTO_IP, socket.IP_TTL)
            )
            sock.setsockopt(level, option, ttl)
            inboxes.append((ttl, sock, stamp.Inbox(sock)))
        hops: dict[int, str | None] = {}
        reached: set[int] = set()
        for _ in range(_TRIES):
            for ttl, sock, _inbox in inboxes:
                if ttl not in hops and ttl not in reached:
                    stamp.transmitter(sock)(bytearray(packet))
            end = time.monotonic() + _WAIT_S
            while time.monotonic() < end and not _is_known(hops, reached):
                for ttl, _sock, inbox in inboxes:
                    inbox.wait(0)
                    if inbox.read() is not None:
                        reached.add(ttl)
                    for error in inbox.errors:
                        if (error.origin, error.type) in _TIME_EXCEEDED:
                            hops[ttl] = error.who
                        elif error.who == _plain(to[0]):
                            reached.add(ttl)
                time.sleep(0.01)
        last = min(reached, default=None)
    count = max(hops, default=0) if last is None else last - 1
    return [{"ttl": ttl, "address": hops.get(ttl)} for ttl in range(1, count + 1)], last


def _is_known(hops: Mapping[int, str | None], reached: Collection[int]) -> bool:
    """Whether the destination answered, and all routers before it."""
    return bool(reached) and all(ttl in hops for ttl in range(1, min(reached)))


def silences(most_s: float) -> list[float]:
    """The silences that are tried, in seconds, up to the longest."""
    found = [min(_LEAST_SILENCE_S, most_s)]
    while found[-1] * _STEP <= most_s:
        found.append(found[-1] * _STEP)
    return found


def binding(
    server: Peer,
    key: bytes,
    ssid: int,
    first_phase: int,
    most_s: float,
    ask: Callable[[], int],
    stop: threading.Event,
) -> list[float | None]:
    """How many seconds of silence a binding of UDP survives, and how many it does not.

    Flows that have spoken with the server fall silent at once, each for another time; then ``ask``
    makes the server send to the next of them and returns the number of its phase, from
    ``first_phase``. The second is None if the binding outlives ``most_s``.
    """
    alive_s: float | None = None
    with ExitStack() as stack:
        flows = []
        for place, silence_s in enumerate(silences(most_s)):
            sock = stack.enter_context(stamp.connected(*server))
            flows.append((silence_s, sock, stamp.Inbox(sock)))
            for _ in range(_HELLOS):
                stamp.hello(sock, key, ssid, first_phase + place)
                time.sleep(0.002)
        time.sleep(0.2)
        began = time.monotonic()
        for silence_s, _sock, inbox in flows:
            while inbox.read() is not None:
                pass
            stop.wait(max(0.0, began + silence_s - time.monotonic()))
            phase = ask()
            if not _arrives(inbox, key, ssid, phase):
                return [alive_s, silence_s]
            alive_s = silence_s
    return [alive_s, None]


def _arrives(inbox: stamp.Inbox, key: bytes, ssid: int, phase: int) -> bool:
    end = time.monotonic() + _ANSWER_S
    while (left := end - time.monotonic()) > 0:
        if not inbox.wait(left):
            continue
        while (received := inbox.read()) is not None:
            if stamp.decode_valid(received, key, ssid, phase, stamp.LOAD_DOWN) is not None:
                return True
    return False


def sentence(found: Nats) -> str:
    """How many NATs there are and why, and how long bindings live."""
    least, most = found["least"], found["most"]
    if least == 0:
        said = f"no NAT: {found['reason']}"
    else:
        number = {1: "one NAT", 2: "two NATs"}[least]
        said = f"{number if least == most else 'at least ' + number}: {found['reason']}"
    lives = found["binding_s"]
    if lives is not None:
        alive, gone = lives
        if gone is None:
            said += f"; a silent UDP binding lives for more than {digits(alive or 0.0)} s"
        elif alive is None:
            said += f"; a silent UDP binding lives for less than {digits(gone)} s"
        else:
            said += f"; a silent UDP binding lives for {digits(alive)} to {digits(gone)} s"
    return said
