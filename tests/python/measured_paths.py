"""Paths for tests of measurements: two hosts and a router between them, and a relay that harms."""

from __future__ import annotations

import ctypes
import os
import select
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import pytest

from hosts import Host, is_root, pair

Result = TypeVar("Result")

needs_namespaces = pytest.mark.skipif(not is_root(), reason="root is needed for namespaces")

NEAR, FAR = "10.77.0.1", "10.78.0.1"
NEAR6, FAR6 = "fd77::1", "fd78::1"
ROUTER = {NEAR: "10.77.0.254", FAR: "10.78.0.254", NEAR6: "fd77::fe", FAR6: "fd78::fe"}
"""The router's address on the side of each host."""

_CLONE_NEWNET = 0x40000000


def within(host: Host, function: Callable[[], Result]) -> Result:
    """Call a function in a host's network namespace; sockets that it opens stay there."""
    results: list[Result] = []
    errors: list[BaseException] = []

    def call() -> None:
        # A namespace belongs to a thread, and this one ends with the call.
        descriptor = os.open(f"/proc/{host.process}/ns/net", os.O_RDONLY)
        try:
            assert ctypes.CDLL(None, use_errno=True).setns(descriptor, _CLONE_NEWNET) == 0
            results.append(function())
        except BaseException as error:
            errors.append(error)
        finally:
            os.close(descriptor)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


@dataclass
class Routed:
    """``near.eth0`` to ``router.n0``, and ``router.f0`` to ``far.eth0``."""

    near: Host
    router: Host
    far: Host

    def nft(self, *rules: str) -> None:
        """Add rules for what the router forwards."""
        self.router.run("nft", "add", "table", "inet", "t")
        words = "add chain inet t forward { type filter hook forward priority 0; }"
        self.router.run("nft", *words.split())
        for rule in rules:
            self.router.run("nft", *f"add rule inet t {rule}".split())

    def dropped(self) -> int:
        """Packets that the counter of the router's rule has."""
        ruleset = self.router.run("nft", "list", "ruleset")
        return int(ruleset.split("counter packets ")[1].split()[0])


@contextmanager
def routed() -> Iterator[Routed]:
    """A router between two hosts, IPv4 and IPv6, MTU 1500."""
    path = Routed(Host(), Host(), Host())
    pair(path.router, "n0", path.near, "eth0")
    pair(path.router, "f0", path.far, "eth0")
    for host, interface, address, address6 in (
        (path.near, "eth0", NEAR, NEAR6),
        (path.far, "eth0", FAR, FAR6),
        (path.router, "n0", ROUTER[NEAR], ROUTER[NEAR6]),
        (path.router, "f0", ROUTER[FAR], ROUTER[FAR6]),
    ):
        host.ip("address", "add", f"{address}/24", "dev", interface)
        host.ip("-6", "address", "add", f"{address6}/64", "dev", interface, "nodad")
        # Otherwise a packet of 64 KiB crosses the router, and is lost as one.
        host.ip("link", "set", interface, "gso_max_segs", "1")
    for name in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
        path.router.run("sh", "-c", f"echo 1 > /proc/sys/net/{name}")
    for host, mine, mine6 in ((path.near, NEAR, NEAR6), (path.far, FAR, FAR6)):
        host.ip("route", "add", "default", "via", ROUTER[mine])
        host.ip("-6", "route", "add", "default", "via", ROUTER[mine6])
    yield path


class Relay:
    """A UDP relay that drops, repeats and holds back datagrams by their number in a direction.

    ``up`` and ``down`` say what becomes of the nth datagram: a list of the numbers, counted from 0,
    of datagrams that leave when it arrives.
    """

    def __init__(
        self,
        far: tuple[str, int],
        up: Callable[[int], Sequence[int]] = lambda number: (number,),
        down: Callable[[int], Sequence[int]] = lambda number: (number,),
    ) -> None:
        self._inside = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._inside.bind(("127.0.0.1", 0))
        self._outside = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._outside.connect(far)
        for sock in (self._inside, self._outside):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self._rules = {"up": up, "down": down}
        self.seen: dict[str, list[bytes]] = {"up": [], "down": []}
        self._near: tuple[str, int] | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    @property
    def port(self) -> int:
        """Where the near end sends."""
        return int(self._inside.getsockname()[1])

    def __enter__(self) -> Relay:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._inside.close()
        self._outside.close()

    def _run(self) -> None:
        while not self._stop.is_set():
            readable, _, _ = select.select([self._inside, self._outside], [], [], 0.05)
            for sock in readable:
                data, address = sock.recvfrom(65536)
                direction = "up" if sock is self._inside else "down"
                if direction == "up":
                    self._near = address
                seen = self.seen[direction]
                seen.append(data)
                for number in self._rules[direction](len(seen) - 1):
                    if direction == "up":
                        self._outside.send(seen[number])
                    elif self._near is not None:
                        self._inside.sendto(seen[number], self._near)


def mtu(host: Host, interface: str, size: int) -> None:
    """Set the MTU of an interface."""
    host.ip("link", "set", interface, "mtu", str(size))
