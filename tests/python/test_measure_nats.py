"""NATs between the ends: none, one and two of them, made with nftables."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from airpath.measure.nats import _told, is_shared, sentence, silences
from airpath.measure.serve import Server, ServerOptions
from airpath.measure.session import Session
from hosts import Host, pair
from measured_paths import needs_namespaces, within

TOKEN = "0123456789abcdef0123456789abcdef"
HOME, OUTSIDE = "192.168.7", "203.0.113"


@pytest.mark.parametrize(
    ("own", "outside", "hops", "outermost", "told"),
    [
        ("192.168.7.1", "203.0.113.1", ["192.168.7.254", "100.64.0.1"], None, (2, None)),
        ("192.168.7.1", "203.0.113.1", ["192.168.7.254", None, "100.127.9.1"], 2, (2, None)),
        ("192.168.7.1", "203.0.113.1", ["192.168.7.254"], 1, (1, 1)),
        ("192.168.7.1", "203.0.113.1", ["192.168.7.254", "10.0.0.1"], 2, (1, None)),
        # A UE in shared space has one NAT; a server there sees the outside of one.
        ("100.70.0.5", "203.0.113.1", ["100.64.0.1"], None, (1, None)),
        ("192.168.7.1", "100.64.0.2", ["192.168.7.254", "100.64.0.1"], None, (1, None)),
        ("192.168.7.1", "203.0.113.1", [], None, (1, None)),
    ],
)
def test_addresses_tell_how_many(
    own: str, outside: str, hops: list[str | None], outermost: int | None, told: Any
) -> None:
    found = _told(own, outside, hops, outermost)
    assert found[:2] == told
    assert found[2]


def test_shared_space_is_that_of_rfc_6598() -> None:
    edges = ("100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0", "fd77::1")
    assert [is_shared(one) for one in edges] == [False, True, True, False, False]


def test_silences_grow_by_steps_up_to_the_longest() -> None:
    found = silences(600)
    assert found[0] == 2
    assert 520 < found[-1] <= 600
    # The far end remembers 64 flows of a session.
    assert len(found) < 64


@dataclass
class Chain:
    """A near end, NATs, and a far end, each behind the one before."""

    near: Host
    nats: list[Host]
    far: Host


@contextmanager
def chained(links: list[str], translating: list[bool]) -> Iterator[Chain]:
    """Hosts in a row; ``links``: the networks between them, whose routers end in 254."""
    hosts = [Host() for _ in range(len(links) + 1)]
    for at, network in enumerate(links):
        pair(hosts[at], "out", hosts[at + 1], "in")
        hosts[at].ip("address", "add", f"{network}.1/24", "dev", "out")
        hosts[at + 1].ip("address", "add", f"{network}.254/24", "dev", "in")
        if at < len(links) - 1:
            hosts[at].ip("route", "add", "default", "via", f"{network}.254")
    for router, translates in zip(hosts[1:-1], translating, strict=True):
        router.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        if translates:
            router.run("nft", "add", "table", "ip", "t")
            words = "add chain ip t post { type nat hook postrouting priority 100; }"
            router.run("nft", *words.split())
            router.run("nft", *["add", "rule", "ip", "t", "post", "oifname", "out", "masquerade"])
    yield Chain(hosts[0], hosts[1:-1], hosts[-1])


@contextmanager
def measured(chain: Chain, address: str) -> Iterator[Server]:
    """A server at the far end."""
    server = within(chain.far, lambda: Server(TOKEN, ServerOptions(address, 0), lambda _: None))
    with server.running():
        yield server


@needs_namespaces
@pytest.mark.parametrize(
    ("links", "translating", "least", "most", "reason"),
    [
        ([HOME, OUTSIDE], [True], 1, 1, "answers at the first hop"),
        ([HOME, "100.64.0", OUTSIDE], [True, True], 2, None, "100.64.0.254"),
        ([HOME, "10.9.9", OUTSIDE], [True, True], 1, None, "prove no further NAT"),
    ],
)
def test_two_nats_are_told_from_one(
    links: list[str], translating: list[bool], least: int, most: int | None, reason: str
) -> None:
    with chained(links, translating) as chain, measured(chain, f"{OUTSIDE}.254") as server:

        def near() -> Any:
            with Session(f"{OUTSIDE}.254", server.address[1], TOKEN) as session:
                return session.nats()

        found = within(chain.near, near)
    assert (found["own"], found["seen_as"]) == (f"{HOME}.1", f"{OUTSIDE}.1")
    assert (found["least"], found["most"]) == (least, most)
    assert reason in found["reason"]
    assert [one["address"] for one in found["hops"]] == [f"{one}.254" for one in links[:-1]]
    assert reason in sentence(found)


@needs_namespaces
@pytest.mark.real_clock
def test_a_binding_lives_as_long_as_the_router_keeps_it() -> None:
    with (
        chained([HOME, OUTSIDE], [True]) as chain,
        measured(chain, f"{OUTSIDE}.254") as server,
    ):
        for name in ("udp_timeout", "udp_timeout_stream"):
            path = f"/proc/sys/net/netfilter/nf_conntrack_{name}"
            chain.nats[0].run("sh", "-c", f"echo 3 > {path}")

        def near() -> Any:
            with Session(f"{OUTSIDE}.254", server.address[1], TOKEN) as session:
                return session.binding(10), session.nats()

        (alive, gone), found = within(chain.near, near)
    # Conntrack counts in seconds.
    assert 2 <= alive < 4.1
    assert 2.9 < gone <= 4.1
    found["binding_s"] = [alive, gone]
    assert "lives for" in sentence(found)


def test_without_a_nat_nothing_is_sent() -> None:
    with (
        Server(TOKEN, ServerOptions("127.0.0.1", 0), lambda _: None).running() as server,
        Session("127.0.0.1", server.address[1], TOKEN) as session,
    ):
        before = threading.active_count()
        found = session.nats()
        assert found is not None
        assert (found["least"], found["most"], found["hops"]) == (0, 0, [])
        assert sentence(found) == "no NAT: the server sees this host's own address"
        # Other tests of this process may have left threads.
        assert threading.active_count() <= before
        assert session.binding(2.5) == [pytest.approx(2.3), None]
