"""UDP at a rate against other counts, and path MTU behind routers that say so or do not."""

from __future__ import annotations

import errno
import itertools
import json
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from airpath.errors import InputError
from airpath.measure import datagrams, path_mtu, stamp
from airpath.measure.control import ProtocolError
from airpath.measure.datagrams import Load, Meter, Sent, UdpReport
from airpath.measure.path_mtu import IcmpReport, MtuReport, Probed, Tried
from measured_paths import (
    FAR,
    FAR6,
    NEAR,
    NEAR6,
    ROUTER,
    Relay,
    Routed,
    mtu,
    needs_namespaces,
    routed,
    within,
)

SECRET = b"s" * 32
SSID = 77


@contextmanager
def reflecting(sock: socket.socket) -> Iterator[tuple[stamp.Reflector, stamp.Session]]:
    """A reflector with a session, in a thread."""
    reflector, session = stamp.Reflector(sock), stamp.Session(SECRET, SSID)
    reflector.add(session)
    stop = threading.Event()
    thread = threading.Thread(target=reflector.run, args=(stop,), daemon=True)
    thread.start()
    try:
        yield reflector, session
    finally:
        stop.set()
        thread.join()
        sock.close()


@pytest.fixture(autouse=True)
def _short_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A receiver takes a load for over after less silence than over a radio network."""
    monkeypatch.setattr(datagrams, "_SILENCE_S", 0.3)


class Background:
    """A call in a thread, and its result."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._results: list[Any] = []
        self._thread = threading.Thread(
            target=lambda: self._results.append(function(*arguments)), daemon=True
        )
        self._thread.start()

    def result(self) -> Any:
        self._thread.join(30)
        return self._results[0]


def measured(
    reflector: stamp.Reflector, session: stamp.Session, near: socket.socket, load: Load
) -> UdpReport:
    """Run a load test between two ends of this process."""
    stop = threading.Event()
    if load.direction == "up":
        far = Background(datagrams.far_receive, session, load, stop)
        sent = datagrams.near_send(near, SECRET, SSID, load, stop)
        report: UdpReport = far.result().with_sent(sent)
        return report
    far = Background(datagrams.far_send, reflector, session, load, stop)
    report = datagrams.near_receive(near, SECRET, SSID, load, stop)
    return report.with_sent(far.result())


# --- The meter --------------------------------------------------------------------------------


def arrivals(seed: int) -> tuple[int, list[tuple[int, int, int]]]:
    """Randomly drawn arrivals: number of datagrams, and sequence, time sent, time of arrival."""
    chance = random.Random(seed)
    count = chance.randrange(1, 400)
    found = []
    for sequence in range(count):
        sent_ns = 10**18 + sequence * 1_000_000
        if chance.random() < 0.15:
            continue
        for _ in range(2 if chance.random() < 0.1 else 1):
            delay_ns = 30_000_000 + int(chance.expovariate(1 / 3e6))
            found.append((sequence, sent_ns, sent_ns + delay_ns))
    found.sort(key=lambda one: one[2])
    return count, found


@pytest.mark.parametrize("seed", range(40))
def test_the_meter_counts_as_the_definitions_say(seed: int) -> None:
    """Randomly drawn losses, duplicates and delays; each figure computed again from all of them."""
    count, found = arrivals(seed)
    load = Load(1, "up", rate_mbps=0.8, size_bytes=200, duration_s=max(0.01, count * 0.002))
    meter = Meter(load)
    for sequence, sent_ns, arrived_ns in found:
        meter.take(stamp.Packet(sequence, stamp.LOAD_UP, 1, 0, sent_ns, 1, SSID), 200, arrived_ns)
    report = meter.report(Sent(count, 1.0))
    unique: list[tuple[int, int, int]] = []
    for one in found:
        if one[0] not in [other[0] for other in unique]:
            unique.append(one)
    assert report.received == len(unique)
    assert report.bytes == 200 * len(unique)
    assert report.duplicates == len(found) - len(unique)
    missing = sorted(set(range(count)) - {one[0] for one in unique})
    assert report.lost == len(missing)
    listed = [
        number for first, length in report.loss_bursts for number in range(first, first + length)
    ]
    assert listed == missing
    # Bursts are as long as they can be.
    starts = {first for first, _ in report.loss_bursts}
    assert not any(first + length in starts for first, length in report.loss_bursts)
    if not unique:
        assert report.error == "no datagram arrived"
        return
    late = sum(any(earlier[0] > one[0] for earlier in unique[:at]) for at, one in enumerate(unique))
    assert report.reordered == late
    jitter = 0.0
    for one, following in itertools.pairwise(unique):
        difference = (following[2] - one[2]) - (following[1] - one[1])
        jitter += (abs(difference) / 1e6 - jitter) / 16
    assert report.jitter_ms == pytest.approx(jitter, abs=1e-3)
    delays = sorted((one[2] - one[1]) / 1e6 for one in unique)
    assert report.delay_variation_ms["max"] == pytest.approx(delays[-1] - delays[0], abs=1e-3)
    middle = delays[min(len(delays) - 1, len(delays) // 2)] - delays[0]
    assert report.delay_variation_ms["p50"] == pytest.approx(middle, abs=1e-3)
    bins: dict[int, list[float]] = {}
    for _, sent_ns, arrived_ns in unique:
        place = (arrived_ns - unique[0][2]) // 10**8
        bins.setdefault(place, []).append((arrived_ns - sent_ns) / 1e6 - delays[0])
    assert len(report.rate_mbps) == len(report.delay_ms) == max(bins) + 1
    for place, (rate, delay) in enumerate(zip(report.rate_mbps, report.delay_ms, strict=True)):
        inside = bins.get(place)
        assert rate == pytest.approx(len(inside or []) * 200 * 8e-6 / 0.1, abs=1e-3)
        expected = sum(inside) / len(inside) if inside else None
        assert delay == (expected if expected is None else pytest.approx(expected, abs=1e-3))
    assert UdpReport.from_json(json.loads(json.dumps(report.to_json()))) == report


def test_the_meter_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sequence numbers beyond the load, and times of arrival far away, take no memory."""
    monkeypatch.setattr(datagrams, "_MOST_SAMPLES", 100)
    meter = Meter(Load(1, "up", 10, 1200, 1.0))
    for sequence in (2**32 - 1, 10**6):
        meter.take(stamp.Packet(sequence, stamp.LOAD_UP, 1, 0, 0, 1, SSID), 1200, 10**18)
    for sequence in range(1000):
        at = 10**18 + sequence * 10**6 * (10**9 if sequence == 999 else 1)
        meter.take(stamp.Packet(sequence, stamp.LOAD_UP, 1, 0, at, 1, SSID), 1200, at + 5)
    report = meter.report()
    assert report.received == 1000
    assert len(report.rate_mbps) <= datagrams._MOST_BINS
    assert len(meter._transits) <= 100
    assert report.delay_variation_ms["max"] == 0


# --- Over sockets -----------------------------------------------------------------------------


@pytest.mark.real_clock
@pytest.mark.parametrize(("direction", "host"), [("up", "::1"), ("down", "127.0.0.1")])
def test_a_load_arrives_at_its_rate(direction: datagrams.Direction, host: str) -> None:
    with reflecting(stamp.bound("", 0)) as (reflector, session):
        near = stamp.connected(host, reflector._sock.getsockname()[1])
        load = Load(3, direction, rate_mbps=20, size_bytes=1000, duration_s=0.6)
        report = measured(reflector, session, near, load)
        near.close()
        assert report.error is None
        assert (report.lost, report.duplicates, report.reordered) == (0, 0, 0)
        assert report.sent == report.received == pytest.approx(1500, abs=30)
        assert report.bytes == 1000 * report.received
        assert report.duration_s == pytest.approx(0.6, abs=0.05)
        whole = report.rate_mbps[1:5]
        assert sum(whole) / len(whole) == pytest.approx(20, rel=0.1)
        assert report.jitter_ms < 5


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_load_through_a_relay_has_the_losses_of_the_script(
    direction: datagrams.Direction,
) -> None:
    """What the relay dropped, repeated and held back is what the report says."""
    chance = random.Random(7)
    what = [chance.choice("...........lldh") for _ in range(5000)]

    def script(number: int) -> list[int]:
        leave = {"l": [], "h": [], "d": [number, number], ".": [number]}[what[number]]
        # One that was held back leaves after the next that is not lost or held.
        held = number - 1
        while leave and held >= 0 and what[held] in "lh":
            leave = [*leave, *([held] if what[held] == "h" else [])]
            held -= 1
        return leave

    with reflecting(stamp.bound("127.0.0.1", 0)) as (reflector, session):
        place = "127.0.0.1", reflector._sock.getsockname()[1]
        rules: dict[str, Any] = {}
        if direction == "up":
            rules["up"] = script
        else:
            # The first datagrams downwards answer HELLO.
            rules["down"] = lambda number: _shifted(relays[0], script, number)
        relays: list[Relay] = []
        with Relay(place, **rules) as relay:
            relays.append(relay)
            near = stamp.connected("127.0.0.1", relay.port)
            load = Load(4, direction, rate_mbps=4, size_bytes=500, duration_s=0.4)
            report = measured(reflector, session, near, load)
            near.close()
            passed = [
                one for one in relay.seen[direction] if one[4] in (stamp.LOAD_UP, stamp.LOAD_DOWN)
            ]
    assert report.sent == len(passed) > 200
    said = what[: len(passed)]
    # What is held back at the end never leaves.
    held_at_end = 0
    for one in reversed(said):
        if one not in "lh":
            break
        held_at_end += one == "h"
    assert report.lost == said.count("l") + held_at_end
    assert report.duplicates == said.count("d")
    assert report.reordered == said.count("h") - held_at_end


def _shifted(relay: Relay, script: Callable[[int], list[int]], number: int) -> list[int]:
    """The script for load datagrams, by their number among themselves."""
    seen = relay.seen["down"]
    if seen[number][4] != stamp.LOAD_DOWN:
        return [number]
    places = [at for at, data in enumerate(seen) if data[4] == stamp.LOAD_DOWN]
    return [places[leaving] for leaving in script(len(places) - 1)]


@pytest.mark.real_clock
@needs_namespaces
@pytest.mark.parametrize("host", [FAR, FAR6])
def test_losses_are_those_that_the_router_counted(host: str) -> None:
    with routed() as path:
        rule = f"forward {'ip6' if ':' in host else 'ip'} daddr {host} udp dport 5212"
        # HELLO is smaller and passes.
        path.nft(f"{rule} meta length > 900 numgen random mod 10 0 counter drop")
        far = within(path.far, lambda: stamp.bound("", 5212))
        with reflecting(far) as (reflector, session):
            near = within(path.near, lambda: stamp.connected(host, 5212))
            load = Load(2, "up", rate_mbps=16, size_bytes=1000, duration_s=0.5)
            report = measured(reflector, session, near, load)
            near.close()
        assert 500 < (report.sent or 0) <= 1000
        assert report.lost == path.dropped() > 20
        assert sum(length for _, length in report.loss_bursts) == report.lost


def test_a_load_without_a_peer_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datagrams, "PATIENCE_S", 0.2)
    with reflecting(stamp.bound("127.0.0.1", 0)) as (reflector, session):
        stop = threading.Event()
        load = Load(9, "up", 1, 500, 0.2)
        begin = time.monotonic()
        assert datagrams.far_receive(session, load, stop).error == "no datagram arrived"
        sent = datagrams.far_send(reflector, session, replace(load, direction="down"), stop)
        assert sent.error == "no UDP datagram of phase 9 arrived within 0.2 s"
        near = stamp.connected("127.0.0.1", reflector._sock.getsockname()[1])
        report = datagrams.near_receive(near, SECRET, SSID, replace(load, direction="down"), stop)
        assert report.error == "no datagram arrived"
        near.close()
        assert time.monotonic() - begin < 3


@needs_namespaces
def test_a_datagram_that_the_interface_refuses_is_an_error() -> None:
    """Loopback takes 65,536 bytes; an interface with 1,500 does not take 2,000."""
    with routed() as path:
        near = within(path.near, lambda: stamp.connected(FAR, 5212))
        load = Load(1, "up", 1, 2000, 0.2)
        sent = datagrams.near_send(near, SECRET, SSID, load, threading.Event())
        near.close()
        assert sent.datagrams == 0
        assert sent.error == "sending a datagram of 2000 bytes failed: Message too long"


def test_another_phase_and_another_key_do_not_count() -> None:
    with reflecting(stamp.bound("127.0.0.1", 0)) as (reflector, session):
        near = stamp.connected("127.0.0.1", reflector._sock.getsockname()[1])
        stop = threading.Event()
        load = Load(3, "up", 1, 500, 0.3)
        far = Background(datagrams.far_receive, session, load, stop)
        time.sleep(0.05)
        datagrams.near_send(near, SECRET, SSID, replace(load, phase=4), stop)
        datagrams.near_send(near, b"wrong", SSID, load, stop)
        sent = datagrams.near_send(near, SECRET, SSID, load, stop)
        report = far.result().with_sent(sent)
        near.close()
        assert report.received == sent.datagrams > 50
        assert report.duplicates == 0


# --- Path MTU ---------------------------------------------------------------------------------


Found = dict[str, tuple[MtuReport, MtuReport]]


def found(path: Routed, *hosts: str) -> Found:
    """The path MTU up and down to each address of the far end, all measured at once."""
    far = within(path.far, lambda: stamp.bound("", 5212))
    stop = threading.Event()

    def up(host: str, phase: int) -> MtuReport:
        near = within(path.near, lambda: stamp.connected(host, 5212))
        with near:
            return path_mtu.near_mtu_up(near, SECRET, SSID, phase, stop)

    def down(host: str, phase: int) -> MtuReport:
        near = within(path.near, lambda: stamp.connected(host, 5212))

        def ask(sizes: Any) -> Probed:
            probed = path_mtu.far_mtu_send(reflector, session, phase, sizes, stop)
            return Probed.from_json(json.loads(json.dumps(probed.to_json())))

        with near:
            return path_mtu.near_mtu_down(near, SECRET, SSID, phase, ask, stop)

    with reflecting(far) as (reflector, session):
        running = {
            host: (Background(up, host, 2 * at), Background(down, host, 2 * at + 1))
            for at, host in enumerate(hosts)
        }
        return {host: (one.result(), other.result()) for host, (one, other) in running.items()}


def pings(path: Routed, host: str, size: int) -> bool:
    """Whether ping gets an answer from the far end with DF and an IP packet of this size."""
    payload = size - (48 if ":" in host else 28)
    words = f"ping -n -c 1 -W 1 -M do -s {payload} {host}".split()
    return ", 0% packet loss" in path.near.run(*words, check=False)


@pytest.mark.real_clock
@needs_namespaces
def test_a_router_that_says_so() -> None:
    """A link of 1,400 bytes behind the router; downwards the far end's own interface has it."""
    with routed() as path:
        mtu(path.router, "f0", 1400)
        mtu(path.far, "eth0", 1400)
        for host, (up, down) in found(path, FAR, FAR6).items():
            assert (up.path_bytes, up.too_large_bytes, up.error) == (1400, 1401, None)
            said = {
                FAR: IcmpReport(ROUTER[NEAR], 4, 3, 4, 1400),
                FAR6: IcmpReport(ROUTER[NEAR6], 6, 2, 0, 1400),
            }
            assert up.icmp == [said[host]]
            assert not up.is_black_hole
            assert not any(one.refused for one in up.tried)
            assert (down.path_bytes, down.too_large_bytes, down.error) == (1400, 1401, None)
            assert down.icmp == []
            assert not down.is_black_hole
            assert all(one.refused for one in down.tried if one.size_bytes > 1400)
            assert pings(path, host, 1400)
            assert not pings(path, host, 1401)


@pytest.mark.real_clock
@needs_namespaces
def test_a_black_hole() -> None:
    """A router that drops in silence, with other limits in the two directions."""
    with routed() as path:
        for family, far, near in (("ip", FAR, NEAR), ("ip6", FAR6, NEAR6)):
            path.nft(
                f"forward {family} daddr {far} meta length > 1373 drop",
                f"forward {family} daddr {near} meta length > 1437 drop",
            )
        for host, (up, down) in found(path, FAR, FAR6).items():
            assert (up.path_bytes, up.too_large_bytes, up.error) == (1373, 1374, None)
            # An echo of ping needs both directions, so it finds the smaller limit.
            assert (down.path_bytes, down.too_large_bytes, down.error) == (1437, 1438, None)
            assert up.is_black_hole
            assert down.is_black_hole
            assert (up.icmp, down.icmp) == ([], [])
            assert pings(path, host, 1373)
            assert not pings(path, host, 1374)


@pytest.mark.real_clock
@needs_namespaces
def test_downwards_the_routers_error_reaches_the_far_end() -> None:
    with routed() as path:
        mtu(path.router, "n0", 1420)
        mtu(path.near, "eth0", 1420)
        up, down = found(path, FAR)[FAR]
        assert down.path_bytes == 1420
        # The far end's socket is one of IPv6, which is for IPv4 too.
        assert down.icmp == [IcmpReport(ROUTER[FAR], 4, 3, 4, 1420)]
        assert not down.is_black_hole
        assert up.path_bytes == 1420
        assert all(one.refused for one in up.tried if one.size_bytes > 1420)


@pytest.mark.real_clock
def test_a_size_may_be_lost_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A relay drops the first two probes of each size, in both directions."""
    monkeypatch.setattr(path_mtu, "_PATIENCE_S", 0.1)
    monkeypatch.setattr(path_mtu, "_AFTER_S", 0.1)

    def third(direction: str, kind: int, number: int) -> list[int]:
        seen = relays[0].seen[direction]
        if seen[number][4] != kind:
            return [number]
        same = [one for one in seen if one[4] == kind and len(one) == len(seen[number])]
        return [number] if len(same) == 3 else []

    with reflecting(stamp.bound("127.0.0.1", 0)) as (reflector, session):
        stop = threading.Event()
        relays: list[Relay] = []
        with Relay(
            reflector._sock.getsockname(),
            up=lambda number: third("up", stamp.PROBE_UP, number),
            down=lambda number: third("down", stamp.PROBE_DOWN, number),
        ) as relay:
            relays.append(relay)
            near = stamp.connected("127.0.0.1", relay.port)
            up = path_mtu.near_mtu_up(near, SECRET, SSID, 1, stop)

            def ask(sizes: Any) -> Probed:
                return path_mtu.far_mtu_send(reflector, session, 2, sizes, stop)

            down = path_mtu.near_mtu_down(near, SECRET, SSID, 2, ask, stop)
            near.close()
    for report in (up, down):
        assert report.path_bytes == 1500
        assert all(one.sent == path_mtu.TRIES and one.arrived for one in report.tried)
        assert not report.is_black_hole


def test_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_mtu, "_PATIENCE_S", 0.1)
    monkeypatch.setattr(path_mtu, "_AFTER_S", 0.05)
    closed = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    closed.bind(("127.0.0.1", 0))
    near = stamp.connected("127.0.0.1", closed.getsockname()[1])
    report = path_mtu.near_mtu_up(near, SECRET, SSID, 1, threading.Event())
    assert (report.path_bytes, report.error) == (None, "no probe was answered")
    none = path_mtu.near_mtu_down(
        near, SECRET, SSID, 1, lambda sizes: Probed({}, [], [], "refused"), threading.Event()
    )
    assert (none.path_bytes, none.error) == (None, "refused")
    near.close()
    closed.close()


def test_an_error_of_an_earlier_probe_does_not_refuse_a_size() -> None:
    """The kernel reports an ICMP error once, by whatever is sent next."""
    answers = [errno.EMSGSIZE, errno.EMSGSIZE, None]
    assert path_mtu._probe(lambda _: answers.pop(0), bytearray(1))
    assert answers == []
    assert not path_mtu._probe(lambda _: errno.EMSGSIZE, bytearray(1))


@pytest.mark.parametrize("limit", [576, 577, 600, 1279, 1280, 1345, 1411, 1499, 1500, 9000])
def test_the_search_finds_every_limit_in_few_rounds(limit: int) -> None:
    rounds: list[list[int]] = []

    def tried(sizes: Any) -> dict[int, Tried]:
        rounds.append(list(sizes))
        return {size: Tried(size, 3, size <= limit, refused=False) for size in sizes}

    result = path_mtu._search(tried, 576, 1500, threading.Event())
    assert path_mtu._largest(result) == min(limit, 1500)
    assert len(rounds) <= 4
    assert all(len(one) <= 20 for one in rounds)
    sizes = [size for one in rounds for size in one]
    assert len(sizes) == len(set(sizes))


# --- JSON -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rate_mbps": 0}, "rate_mbps is 0, but must be"),
        ({"rate_mbps": float("nan")}, "rate_mbps must be a number"),
        ({"size_bytes": 111}, "size_bytes is 111, but must be from 112 to 65507"),
        ({"size_bytes": 500.5}, "size_bytes must be a whole number"),
        ({"direction": "left"}, 'direction is "down" or "up"'),
        ({"duration_s": 4000}, "duration_s is 4000, but must be"),
        ({"phase": -1}, "phase must be a whole number"),
        ({"rate_mbps": 100_000, "size_bytes": 112}, "at most 20000000 datagrams"),
    ],
)
def test_a_load_of_a_peer_is_checked(change: dict[str, Any], said: str) -> None:
    right = {"phase": 1, "direction": "up", "rate_mbps": 5, "size_bytes": 500, "duration_s": 9.5}
    assert Load.from_json({**right, "id": 3}) == Load(1, "up", 5, 500, 9.5)
    with pytest.raises(ProtocolError, match=said):
        Load.from_json({**right, **change})
    assert issubclass(ProtocolError, Exception)
    assert not issubclass(ProtocolError, InputError)


@pytest.mark.parametrize(
    "change",
    [
        {"received": -1},
        {"highest": -2},
        {"loss_bursts": [[1]]},
        {"loss_bursts": [[1, 2]] * 5001},
        {"rate_mbps": [-1]},
        {"delay_variation_ms": {}},
        {"error": []},
    ],
)
def test_a_report_of_a_peer_is_checked(change: dict[str, Any]) -> None:
    report = Meter(Load(1, "up", 5, 500, 1)).report().to_json()
    assert UdpReport.from_json(report).error == "no datagram arrived"
    with pytest.raises(ProtocolError):
        UdpReport.from_json({**report, **change})


def test_sizes_of_a_peer_are_checked() -> None:
    assert path_mtu.sizes_from_json({"sizes": [1280, 1500]}) == [1280, 1500]
    for wrong in (None, [100], [70_000], ["1"], [True], [1280] * 300):
        with pytest.raises(ProtocolError):
            path_mtu.sizes_from_json({"sizes": wrong})
