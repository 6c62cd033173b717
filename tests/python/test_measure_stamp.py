"""STAMP packets against a decode by hand, probers and reflectors over loopback and a router."""

from __future__ import annotations

import hashlib
import itertools
import random
import socket
import statistics
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest

from airpath.errors import AirpathError
from airpath.measure import stamp
from airpath.measure.prober import Prober
from measured_paths import FAR, FAR6, ROUTER, Relay, mtu, needs_namespaces, routed, within

SECRET = bytes(range(32))
SSID = 0x1234


@contextmanager
def reflecting(
    sock: socket.socket, secret: bytes = SECRET
) -> Iterator[tuple[stamp.Reflector, stamp.Session]]:
    """A reflector with a session, in a thread."""
    reflector, session = stamp.Reflector(sock), stamp.Session(secret, SSID)
    reflector.add(session)
    stop = threading.Event()
    thread = threading.Thread(target=reflector.run, args=(stop,))
    thread.start()
    try:
        yield reflector, session
    finally:
        stop.set()
        thread.join()
        sock.close()


def place_of(reflector: stamp.Reflector) -> tuple[str, int]:
    """Host and port of a reflector."""
    host, port = reflector._sock.getsockname()[:2]
    return str(host), int(port)


def by_hand(key: bytes, data: bytes) -> bytes:
    """HMAC-SHA-256 from its definition (RFC 2104 2), truncated to 128 bits."""
    block = key.ljust(64, b"\0")
    inner = hashlib.sha256(bytes(one ^ 0x36 for one in block) + data).digest()
    return hashlib.sha256(bytes(one ^ 0x5C for one in block) + inner).digest()[:16]


def test_a_senders_packet_is_that_of_rfc_8762() -> None:
    """Figure 4 of RFC 8762 with the SSID of RFC 8972, byte by byte."""
    key = stamp.mac_key(SECRET)
    at = datetime(2026, 3, 4, 5, 6, 7, 250_000, tzinfo=UTC)
    time_ns = int(at.timestamp()) * 10**9 + 250_000_000
    packet = stamp.blank()
    written = stamp.Packet(0xA1B2C3D4, stamp.STAMP, 0, 0, time_ns, 0x2001, SSID)
    stamp.write(packet, key, written)
    since_1900 = int((at - datetime(1900, 1, 1, tzinfo=UTC)).total_seconds())
    expected = (
        bytes.fromhex("a1b2c3d4")
        + bytes(12)
        + since_1900.to_bytes(4, "big")
        + bytes.fromhex("40000000")  # a quarter of a second
        + bytes.fromhex("2001")
        + bytes.fromhex("1234")
        + bytes(68)
    )
    assert packet[:96] == expected
    assert packet[96:] == by_hand(key, expected)
    assert len(packet) == 112
    assert stamp.decode(packet) == written


def test_a_reflected_packet_is_that_of_rfc_8762() -> None:
    """What the reflector sends, at the offsets of figure 6, with the octets of the request."""
    with reflecting(stamp.bound("127.0.0.1", 0)) as (reflector, session):
        near = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        near.settimeout(5)
        near.connect(place_of(reflector))
        for number, size in enumerate((112, 116, 400)):
            request = stamp.blank(size)
            stamp.write(request, session.key, stamp.Packet(77, 0, 0, 0, 123_456_789, 0x2001, SSID))
            before = time.time()
            near.send(request)
            reply = near.recv(65536)
            after = time.time()
            assert len(reply) == size
            assert reply[96:112] == by_hand(session.key, reply[:96])
            assert struct.unpack_from("!I", reply, 0) == (number,)
            zero = (*range(4, 16), *range(28, 32), *range(40, 48), *range(52, 64))
            assert not any(reply[at] for at in (*zero, *range(74, 80), *range(81, 96)))
            for at in (16, 32):
                seconds, fraction = struct.unpack_from("!II", reply, at)
                unix = seconds - 2_208_988_800 + fraction / 2**32
                assert before - 0.01 <= unix <= after + 0.01
            assert struct.unpack_from("!Q", reply, 32) <= struct.unpack_from("!Q", reply, 16)
            assert struct.unpack_from("!HH", reply, 24) == (0x2001, SSID)
            # The sender's number, time and error estimate; the TTL of a packet that no router saw.
            assert reply[48:52] == request[:4]
            assert reply[64:74] == request[16:26]
            assert reply[80] == 64
            if size > 112:
                # Extra Padding of RFC 8972 4.1: recognised, with its content.
                assert request[112:114] == b"\x80\x01"
                assert reply[112:114] == b"\x00\x01"
                assert struct.unpack_from("!H", reply, 114) == (size - 116,)
                assert reply[114:] == request[114:]
        near.close()


def test_times_survive_ntp_to_the_nanosecond() -> None:
    chance = random.Random(1)
    for _ in range(2000):
        # To 2106, beyond the era of NTP that ends in 2036.
        time_ns = chance.randrange(0, 2**32 * 10**9)
        assert stamp.from_ntp(stamp.to_ntp(time_ns)) == time_ns
    assert stamp.to_ntp(0) == 2_208_988_800 << 32
    # RFC 5905 figure 4: 8 February 2036 is the first day of era 1, at 6 h 28 min 16 s on the 7th.
    era = int(datetime(2036, 2, 7, 6, 28, 16, tzinfo=UTC).timestamp()) * 10**9
    assert stamp.to_ntp(era) == 0


def test_nothing_is_said_to_what_is_not_valid() -> None:
    """Every single bit of the covered part and of the HMAC counts."""
    chance = random.Random(2)
    with reflecting(stamp.bound("127.0.0.1", 0)) as (reflector, session):
        near = stamp.connected(*place_of(reflector))
        right = stamp.blank(120)
        stamp.write(right, session.key, stamp.Packet(1, 0, 0, 0, time.time_ns(), 1, SSID))
        wrong: list[bytes | bytearray] = [
            b"",
            b"x",
            right[:111],
            bytes(112),
            chance.randbytes(112),
            chance.randbytes(1400),
        ]
        for bit in range(112 * 8):
            changed = bytearray(right)
            changed[bit // 8] ^= 1 << bit % 8
            wrong.append(changed)
        for kind in range(8, 256):
            other = stamp.blank()
            stamp.write(other, session.key, stamp.Packet(1, kind, 0, 0, 0, 1, SSID))
            wrong.append(other)
        for data in wrong:
            near.send(data)
        near.send(right)
        inbox = stamp.Inbox(near)
        received: list[stamp.Received] = []
        end = time.monotonic() + 5
        while not received and time.monotonic() < end:
            if inbox.wait(0.2):
                received = list(iter(inbox.read, None))
        time.sleep(0.2)
        assert inbox.read() is None
        assert [len(one.data) for one in received] == [120]
        assert session.reflected == 1
        # A changed bit of the SSID makes it a session that does not exist.
        assert session.invalid == 112 * 8 - 16
        near.close()


def test_replies_are_limited() -> None:
    with reflecting(stamp.bound("127.0.0.1", 0)) as (reflector, session):
        session._bucket = stamp._Bucket(100.0)
        near = stamp.connected(*place_of(reflector))
        packet = stamp.blank()
        stamp.write(packet, session.key, stamp.Packet(1, 0, 0, 0, 0, 1, SSID))
        for _ in range(500):
            near.send(packet)
        deadline = time.monotonic() + 5
        while session.reflected + session.limited < 500 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert session.reflected + session.limited == 500
        assert 10 <= session.reflected < 100
        near.close()


def test_the_address_of_a_test_is_that_of_the_newest_hello() -> None:
    """A HELLO that somebody repeats from elsewhere redirects nothing."""
    with reflecting(stamp.bound("127.0.0.1", 0)) as (reflector, session):
        place = place_of(reflector)
        near, later, thief = (stamp.connected(*place) for _ in range(3))
        stop = threading.Event()
        with pytest.raises(
            AirpathError, match=r"no UDP datagram of phase 5 arrived within 0\.05 s"
        ):
            session.address(5, 0.05, stop)
        stamp.hello(near, session.key, SSID, 5)
        assert session.address(5, 5, stop) == near.getsockname()
        old = stamp.blank()
        stamp.write(old, session.key, stamp.Packet(1, stamp.HELLO, 5, 0, 0, 1, SSID))
        thief.send(old)
        time.sleep(0.1)
        assert session.address(5, 5, stop) == near.getsockname()
        stamp.hello(later, session.key, SSID, 5)
        deadline = time.monotonic() + 5
        while session.address(5, 5, stop) != later.getsockname() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert session.address(5, 5, stop) == later.getsockname()
        for sock in (near, later, thief):
            sock.close()


@pytest.mark.real_clock
def test_a_prober_over_loopback() -> None:
    with reflecting(stamp.bound("", 0)) as (reflector, _session):
        port = place_of(reflector)[1]
        for host in ("127.0.0.1", "::1"):
            near = stamp.connected(host, port)
            begin = time.monotonic()
            prober = Prober(near, SECRET, SSID, begin=begin, size_bytes=200)
            prober.start(0.01)
            time.sleep(0.5)
            seen = prober.stop()
            near.close()
            assert seen.sent == len(seen.replies)
            assert 40 <= seen.sent <= 51
            assert (seen.lost, seen.duplicates, seen.invalid, seen.unsent) == ([], 0, 0, 0)
            assert [reply.sequence for reply in seen.replies] == list(range(seen.sent))
            assert {reply.size_bytes for reply in seen.replies} == {200}
            gaps = [
                later.sent_s - one.sent_s
                for one, later in zip(seen.replies, seen.replies[1:], strict=False)
            ]
            assert statistics.median(gaps) == pytest.approx(0.01, abs=0.002)
            for reply in seen.replies:
                assert 0 < reply.rtt_ms < 50
                # One clock here, so the directions add up.
                assert reply.out_ms is not None
                assert reply.back_ms is not None
                assert reply.out_ms + reply.back_ms == pytest.approx(reply.rtt_ms, abs=0.5)
                assert reply.out_ms > 0
                assert reply.back_ms > 0


def test_poisson_intervals_are_drawn_from_the_seed() -> None:
    with reflecting(stamp.bound("127.0.0.1", 0)) as (reflector, _session):
        near = stamp.connected(*place_of(reflector))
        prober = Prober(near, SECRET, SSID)
        prober.start(0.002, exponential=True, seed=3)
        time.sleep(0.5)
        seen = prober.stop()
        near.close()
        sent = [reply.sent_s for reply in seen.replies]
        gaps = [later - one for one, later in itertools.pairwise(sent)]
        assert len(gaps) > 60
        # The standard deviation of exponential intervals is their mean.
        assert statistics.pstdev(gaps) > 0.4 * statistics.fmean(gaps)


def test_losses_duplicates_and_reordering_are_counted_by_direction() -> None:
    """A relay with a known script; the numbers of the reflector tell the directions apart."""

    def up(number: int) -> tuple[int, ...]:
        # 10 and 11 are lost; 20 is repeated; 30 leaves after 31.
        return {10: (), 11: (), 20: (20, 20), 30: (), 31: (31, 30)}.get(number, (number,))

    def down(number: int) -> tuple[int, ...]:
        # What comes back: 41 is lost there, counted as the reflector does.
        return {41: ()}.get(number, (number,))

    with reflecting(stamp.bound("127.0.0.1", 0)) as (reflector, _session):
        place = place_of(reflector)
        with Relay(place, up, down) as relay:
            near = stamp.connected("127.0.0.1", relay.port)
            prober = Prober(near, SECRET, SSID, patience_s=0.3)
            prober.start(0.002)
            while len(prober.replies) < 60:
                time.sleep(0.01)
            seen = prober.stop()
            near.close()
            assert seen.duplicates == 1
            assert seen.reordered == 1
            assert seen.invalid == 0
            # Two were lost before and one came twice: the reflector's 41 answers the sender's 42.
            assert [(one.sequence, one.direction) for one in seen.lost] == [
                (10, "out"),
                (11, "out"),
                (42, "back"),
            ]
            assert seen.sent == len(seen.replies) + 3
            times = {reply.sequence: reply.sent_s for reply in seen.replies}
            assert times[9] < seen.lost[0].sent_s < seen.lost[1].sent_s < times[12]


def test_a_mirror_and_a_forger_are_no_reflectors() -> None:
    """Own packets that return, and replies with another key, are not replies."""
    mirror = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    mirror.bind(("127.0.0.1", 0))
    mirror.settimeout(5)
    near = stamp.connected("127.0.0.1", mirror.getsockname()[1])
    prober = Prober(near, SECRET, SSID, patience_s=0.2)
    prober.start(0.02)
    for _ in range(5):
        data, address = mirror.recvfrom(2000)
        mirror.sendto(data, address)
        forged = bytearray(data)
        packet = stamp.decode(data)
        reflected = stamp.Reflected(packet.time_ns, packet.sequence, packet.time_ns, 1, 64)
        stamp.write_reflected(forged, b"guess", packet, reflected)
        mirror.sendto(forged, address)
    seen = prober.stop()
    assert seen.replies == []
    assert seen.invalid == 10
    assert len(seen.lost) == seen.sent >= 5
    near.close()
    mirror.close()


def test_nobody_there_is_loss_and_the_icmp_error_is_kept() -> None:
    closed = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    closed.bind(("127.0.0.1", 0))
    near = stamp.connected("127.0.0.1", closed.getsockname()[1])
    closed.close()
    prober = Prober(near, SECRET, SSID, patience_s=0.1)
    prober.start(0.02)
    time.sleep(0.2)
    seen = prober.stop()
    near.close()
    assert seen.replies == []
    assert seen.sent + seen.unsent >= 5
    error = seen.errors[0]
    assert (error.origin, error.type, error.code, error.who) == ("icmp", 3, 3, "127.0.0.1")


@needs_namespaces
def test_ttl_and_icmp_errors_behind_a_router() -> None:
    """IPv4 and IPv6 at one dual-stack socket; the router's ICMP errors reach the reflector."""
    with routed() as path:
        far = within(path.far, lambda: stamp.bound("", 0))
        with reflecting(far) as (reflector, session):
            port = far.getsockname()[1]
            mtu(path.router, "n0", 1300)
            for phase, host, mapped in ((1, FAR, True), (3, FAR6, False)):
                near = within(path.near, lambda host=host: stamp.connected(host, port))  # type: ignore[misc]
                stamp.hello(near, session.key, SSID, phase)
                time.sleep(0.05)
                inbox = stamp.Inbox(near)
                assert inbox.wait(5)
                answer = inbox.read()
                assert answer is not None
                assert answer.ttl == 63
                assert stamp.decode_reflected(answer.data).ttl == 63
                # From far to near a datagram of 1,350 bytes does not fit through the router.
                address = session.address(phase, 5, threading.Event())
                assert stamp.header_bytes(address) == (28 if mapped else 48)
                since = time.monotonic()
                assert reflector.send(bytes(1350 - stamp.header_bytes(address)), address) is None
                deadline = time.monotonic() + 5
                while not reflector.errors(address, since) and time.monotonic() < deadline:
                    time.sleep(0.02)
                (error,) = reflector.errors(address, since)
                assert error.mtu == 1300
                assert (error.type, error.code) == ((3, 4) if mapped else (2, 0))
                assert error.who == ROUTER[host]
                # The path works as before.
                stamp.hello(near, session.key, SSID, phase + 1)
                assert session.address(phase + 1, 5, threading.Event()) == address
                near.close()
