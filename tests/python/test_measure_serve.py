"""``airpath serve``: whom it serves, what it refuses, what it bounds."""

from __future__ import annotations

import configparser
import json
import os
import random
import resource
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from airpath.base.quantities import rate_from, size_from, time_from
from airpath.errors import AirpathError, InputError
from airpath.measure import control, datagrams, far, guard, path_mtu, stamp, stream
from airpath.measure import serve as serving
from airpath.measure.control import Channel, Key, ProtocolError, Welcome
from airpath.measure.serve import Server, ServerOptions
from conftest import start, start_command, until

TOKEN = "a-token-for-tests-only"
SEED = 5212
NEAR = "127.0.0.1"
OTHER = "127.0.0.2"


class Far:
    """A server that runs, and what it narrated."""

    def __init__(self, server: Server, said: list[str]) -> None:
        self.server, self.said = server, said
        self.port = server.address[1]

    def connect(self, token: str = TOKEN, host: str = NEAR) -> tuple[Channel, Key, Welcome]:
        return control.connect(host, self.port, token, 5.0)

    @contextmanager
    def session(self, host: str = NEAR) -> Iterator[Near]:
        channel, key, welcome = self.connect(host=host)
        try:
            yield Near(channel, key, welcome)
        finally:
            channel.close()

    def raw(self, source: str = NEAR) -> socket.socket:
        sock = socket.create_connection((NEAR, self.port), 5.0, source_address=(source, 0))
        sock.settimeout(5.0)
        return sock


def open_stream(peer: control.Peer, key: Key, phase: int, at: int) -> socket.socket:
    """Open a data connection and say which stream it is."""
    sock = socket.create_connection(peer, 5)
    sock.sendall(control.stream_line(key, phase, at))
    return sock


class Near:
    """A session's near end."""

    def __init__(self, channel: Channel, key: Key, welcome: Welcome) -> None:
        self.channel, self.key, self.welcome = channel, key, welcome
        self._requests = 0

    def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        """Send a request and return the answer to it."""
        self._requests += 1
        self.channel.send({"do": do, "id": self._requests, **fields})
        return self.answer()

    def answer(self) -> dict[str, Any]:
        answer = self.channel.receive(10.0)
        assert answer["id"] == self._requests
        return answer

    def streams(self, phase: int, count: int) -> list[socket.socket]:
        return [open_stream(self.channel.peer, self.key, phase, at) for at in range(count)]

    def tcp(self, phase: int, direction: str, count: int, **fields: Any) -> dict[str, Any]:
        """Run a phase of TCP; the far end's report, with what the near end saw."""
        ready = self.ask(
            "tcp",
            phase=phase,
            direction=direction,
            streams=count,
            **{"duration_s": 0.1, **fields},
        )
        assert ready.get("ready"), ready
        sockets = self.streams(phase, count)
        seen: list[int] = []

        def carry(sock: socket.socket) -> None:
            control.await_start(sock, 5.0)
            stop = threading.Event()
            if direction == "down":
                seen.append(stream.receive(sock, stop, most_s=10.0).bytes)
            else:
                seen.append(stream.send(sock, 0.1, stop).bytes)

        threads = [threading.Thread(target=carry, args=(sock,)) for sock in sockets]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return {**self.answer(), "seen": sum(seen)}


@contextmanager
def served(host: str | None = NEAR, **options: Any) -> Iterator[Far]:
    said: list[str] = []
    server = Server(TOKEN, ServerOptions(host, 0, **options), said.append)
    with server.running():
        yield Far(server, said)


@pytest.fixture
def there() -> Iterator[Far]:
    """A server with the usual limits."""
    with served() as found:
        yield found


# --- Sessions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_session_of_each_kind_of_phase(host: str) -> None:
    with served(None) as there, there.session(host) as near:
        assert near.welcome.you == near.channel.here
        assert near.welcome.here == (host, there.port)
        assert near.welcome.session == near.key.session
        assert "reno" in near.welcome.host["congestion"]  # type: ignore[operator]
        down = near.tcp(1, "down", 2, options={"congestion": "reno", "pacing_mbps": 100})
        assert 0 < sum(one["bytes"] for one in down["streams"]) <= 100e6 / 8 * 0.5
        assert {one["options_in_force"]["congestion"] for one in down["streams"]} == {"reno"}
        up = near.tcp(2, "up", 2)
        assert sum(one["bytes"] for one in up["streams"]) > 0
        assert not any(one["error"] for one in (*down["streams"], *up["streams"]))
        secret, ssid = near.key.secret, near.welcome.ssid
        stop = threading.Event()
        with stamp.connected(*near.channel.peer) as sock:
            for phase, direction in ((3, "down"), (4, "up")):
                fields = {"rate_mbps": 2, "size_bytes": 500, "duration_s": 0.2}
                load = datagrams.Load.from_json({"phase": phase, "direction": direction, **fields})
                assert near.ask("udp", phase=phase, direction=direction, **fields)["ready"]
                if direction == "down":
                    report = datagrams.near_receive(sock, secret, ssid, load, stop)
                    sent = datagrams.Sent.from_json(near.answer()["sent"])
                else:
                    sent = datagrams.near_send(sock, secret, ssid, load, stop)
                    report = datagrams.UdpReport.from_json(near.answer()["udp"])
                assert 0 < report.received <= sent.datagrams
            assert near.ask("mtu", phase=5, direction="down")["ready"]

            def ask(sizes: Any) -> path_mtu.Probed:
                near.channel.send({"id": 5, "sizes": list(sizes)})
                return path_mtu.Probed.from_json(near.answer())

            found = path_mtu.near_mtu_down(sock, secret, ssid, 5, ask, stop)
            assert found.path_bytes == 1500
            near.channel.send({"do": "stop", "id": 5})
            assert near.answer()["event"] == "done"
        near.channel.send({"do": "bye"})
        assert until(lambda: there.server.sessions == 0, 5)
    assert any("TCP down, 2 streams" in line for line in there.said)
    assert there.said[-1].endswith("done")


def test_a_phase_can_be_ended_early_and_the_session_goes_on(there: Far) -> None:
    with there.session() as near:
        assert near.ask("tcp", phase=1, direction="up", streams=1, duration_s=30)["ready"]
        (sock,) = near.streams(1, 1)
        control.await_start(sock, 5.0)
        assert "still runs" in near.ask("tcp", phase=2, direction="up", streams=1)["error"]
        near._requests = 1
        near.channel.send({"do": "stop", "id": 1})
        assert near.answer()["event"] == "done"
        sock.close()
        assert near.tcp(2, "down", 1)["seen"] > 0


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        ({"do": "shell"}, "do is not one of"),
        ({"do": "tcp", "direction": "left"}, "direction"),
        ({"do": "tcp", "streams": 0}, "streams is 0, but must be from 1 to 32"),
        ({"do": "tcp", "streams": 33}, "streams is 33, but must be from 1 to 32"),
        ({"do": "tcp", "streams": True}, "streams is not a whole number"),
        ({"do": "tcp", "duration_s": 61}, "duration_s is 61, but must be from 0.01 to 60"),
        ({"do": "tcp", "duration_s": 60, "streams": 11}, "streams times duration_s is 660"),
        ({"do": "tcp", "duration_s": 1e400}, "duration_s"),
        ({"do": "tcp", "duration_s": "1"}, "duration_s is not a number"),
        ({"do": "tcp", "options": {"congestion": "../x"}}, "congestion"),
        ({"do": "tcp", "options": {"window_bytes": 1 << 40}}, "window_bytes"),
        ({"do": "tcp", "options": []}, "options"),
        ({"do": "tcp", "phase": 7}, "phase = 7 is not higher"),
        ({"do": "udp", "rate_mbps": -1, "size_bytes": 500}, "rate_mbps"),
        ({"do": "udp", "rate_mbps": 1, "size_bytes": 500, "duration_s": 61}, "duration_s"),
        (
            {"do": "udp", "rate_mbps": 9e4, "size_bytes": 60_000, "duration_s": 9},
            "but the session has",
        ),
        ({"do": "sizes", "sizes": [1500]}, "no phase waits for sizes"),
        ({"do": "sizes", "sizes": [7]}, "sizes"),
    ],
)
def test_requests_that_are_refused_name_the_field(
    there: Far, request_: dict[str, Any], error: str
) -> None:
    with there.session() as near:
        assert near.tcp(7, "down", 1, duration_s=0.02)["event"] == "done"
        usual = {"phase": 8, "direction": "down", "streams": 1, "duration_s": 1}
        fields = {**usual, **request_}
        if fields["duration_s"] == float("inf"):
            with pytest.raises(ValueError, match="JSON"):
                near.ask(fields.pop("do"), **fields)
            return
        assert error in near.ask(fields.pop("do"), **fields)["error"]
        assert near.tcp(9, "up", 1)["event"] == "done"


def test_a_phase_whose_streams_do_not_all_join_is_given_up(
    there: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(far, "JOIN_S", 0.3)
    with there.session() as near:
        assert near.ask("tcp", phase=1, direction="down", streams=2, duration_s=1)["ready"]
        (sock,) = near.streams(1, 1)
        assert "1 of 2 streams joined" in near.answer()["error"]
        with pytest.raises(ProtocolError):
            control.await_start(sock, 5.0)
        sock.close()


# --- Who does not prove himself ---------------------------------------------------------------


def test_three_wrong_tokens_shut_an_address_out_and_no_other(there: Far) -> None:
    for _ in range(3):
        with pytest.raises(ProtocolError, match="refused the connection: wrong token"):
            there.connect("not-the-token-of-this-server")
    with pytest.raises(ProtocolError, match="closed the connection"):
        there.connect()
    key, sock = handshake(there, OTHER)
    assert key is not None
    sock.close()
    assert "127.0.0.1" in there.said[0]
    assert any("too many wrong proofs" in line for line in there.said)


def test_who_has_a_session_keeps_it_when_others_at_its_address_guess(there: Far) -> None:
    with there.session() as near:
        for _ in range(4):
            with pytest.raises(ProtocolError):
                there.connect("not-the-token-of-this-server")
        assert near.tcp(1, "down", 2)["seen"] > 0


def handshake(there: Far, source: str) -> tuple[Key | None, socket.socket]:
    """Prove the token from an address."""
    sock = there.raw(source)
    sock.sendall(control.hello_line(b"n" * 16))
    with sock.makefile("rb") as lines:
        nonce = bytes.fromhex(json.loads(lines.readline())["nonce"])
        key = control.session_key(TOKEN, b"n" * 16, nonce)
        sock.sendall(json.dumps({"proof": key.proof("near")}).encode() + b"\n")
        proven = key.proves("far", json.loads(lines.readline())["proof"])
    return key if proven else None, sock


def hostile_line(chance: random.Random) -> bytes:
    """What a hostile peer says first."""
    kind = chance.randrange(6)
    if kind == 0:
        return chance.randbytes(chance.randrange(4000))
    if kind == 1:
        return b""
    if kind == 2:
        return b"GET / HTTP/1.1\r\nHost: \x1b]0;owned\x07\r\n\r\n"
    line = bytearray(control.hello_line(chance.randbytes(16)))
    if kind == 3:
        line[chance.randrange(len(line))] = chance.randrange(256)
    if kind == 4:
        key = control.session_key("guess" * 4, b"n" * 16, b"f" * 16)
        line = bytearray(control.stream_line(key, 1, 0))
    more = chance.choice([b"", b'{"proof":"' + b"0" * 64 + b'"}\n', chance.randbytes(500)])
    return bytes(line) + more


def test_a_thousand_hostile_connections_get_no_more_than_they_sent(
    there: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounded connections, threads and memory; who knows the token gets in meanwhile."""
    monkeypatch.setattr(guard, "WRONG_PROOFS", 1 << 30)
    chance = random.Random(SEED)
    before = threading.active_count(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    most_waiting = most_threads = sent = received = 0
    open_: list[socket.socket] = []
    for number in range(1000):
        sock = there.raw()
        line = hostile_line(chance)
        with suppress(OSError):
            sock.sendall(line)
        sent += len(line)
        open_.append(sock)
        most_waiting = max(most_waiting, there.server.waiting)
        most_threads = max(most_threads, threading.active_count())
        if number % 250 == 249:
            key, proven = handshake(there, OTHER)
            assert key is not None
            proven.close()
        if len(open_) > 200:
            received += left_over(open_.pop(0))
    received += sum(map(left_over, open_))
    assert 0 < received <= sent
    traffic = there.server.traffic
    assert 0 < traffic.sent <= traffic.received
    assert most_waiting <= serving.MOST_WAITING
    assert most_threads <= before[0] + 4
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before[1] < 30_000
    assert until(lambda: there.server.waiting == 0, 10)
    assert len(there.said) < 100
    assert not any("\x1b" in line for line in there.said)


def left_over(sock: socket.socket) -> int:
    """Close a connection; how many bytes had arrived."""
    count = 0
    sock.setblocking(False)
    with sock, suppress(OSError):
        while data := sock.recv(1 << 16):
            count += len(data)
    return count


def test_one_address_does_not_keep_others_out(there: Far) -> None:
    """Of those that have not proved themselves, the oldest of the address with the most leaves."""
    other = there.raw(OTHER)
    many = [there.raw() for _ in range(3 * serving.MOST_WAITING)]
    assert until(
        lambda: any("its place was needed for other connections" in line for line in there.said), 5
    )
    other.sendall(control.hello_line(b"n" * 16))
    assert b"nonce" in other.recv(1000)
    for sock in (other, *many):
        sock.close()


def test_who_says_nothing_or_is_slow_is_dropped(
    there: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "PROOF_S", 0.3)
    silent, slow = there.raw(), there.raw()
    slow.sendall(control.hello_line(b"n" * 16))
    assert b"nonce" in slow.recv(1000)
    for _ in range(20):
        with suppress(OSError):
            slow.send(b" ")
        time.sleep(0.03)
    assert silent.recv(10) == b""
    with suppress(ConnectionResetError):
        assert slow.recv(10) == b""
    assert there.server.waiting == 0
    silent.close()
    slow.close()


def test_a_recorded_session_cannot_be_played_again(there: Far) -> None:
    """Neither the whole of it, nor its streams."""
    recorded: list[bytes] = []
    listener = socket.create_server((NEAR, 0))
    relay = threading.Thread(target=record, args=(listener, there.port, recorded), daemon=True)
    relay.start()
    channel, key, _ = control.connect(NEAR, listener.getsockname()[1], TOKEN, 5.0)
    near = Near(channel, key, _)
    assert near.ask("tcp", phase=1, direction="down", streams=1, duration_s=0.05)["ready"]
    peer = (NEAR, there.port)
    line = control.stream_line(key, 1, 0)
    with open_stream(peer, key, 1, 0) as sock:
        control.await_start(sock, 5.0)
        stream.receive(sock, threading.Event(), most_s=5.0)
    assert near.answer()["event"] == "done"
    for _ in range(2):
        with there.raw() as sock:
            sock.sendall(line)
            assert sock.recv(10) == b""
    channel.close()
    assert until(lambda: there.server.sessions == 0, 10)
    relay.join()
    listener.close()
    script = b"".join(recorded)
    assert script.count(b"\n") == 3
    with there.raw() as sock:
        sock.sendall(script)
        answer = b""
        with suppress(ConnectionResetError):
            while data := sock.recv(1000):
                answer += data
    lines = answer.splitlines()
    assert json.loads(lines[-1]) == {"error": "wrong token"}
    assert there.server.sessions == 0


def record(listener: socket.socket, port: int, sent: list[bytes]) -> None:
    """Relay one connection and keep what the near end sends."""
    near, _ = listener.accept()
    with near, socket.create_connection((NEAR, port)) as far_end:

        def back() -> None:
            with suppress(OSError):
                while data := far_end.recv(1 << 16):
                    near.sendall(data)

        thread = threading.Thread(target=back)
        thread.start()
        with suppress(OSError):
            while data := near.recv(1 << 16):
                sent.append(data)
                far_end.sendall(data)
            far_end.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_streams_without_the_right_proof_are_refused(there: Far) -> None:
    with there.session() as near:
        assert near.ask("tcp", phase=1, direction="down", streams=2, duration_s=0.1)["ready"]
        key = near.key
        wrong = Key(b"x" * 32, key.session)
        other_stream = control.stream_line(key, 1, 0).replace(b'"stream":0', b'"stream":1')
        lines = [
            control.stream_line(wrong, 1, 0),
            other_stream,
            control.stream_line(key, 2, 0),
            control.stream_line(key, 1, 2),
            control.stream_line(key, 1, 0) + b"too early",
            control.stream_line(Key(key.secret, "0" * 16), 1, 0),
        ]
        for line in lines:
            with there.raw(OTHER) as sock:
                sock.sendall(line)
                with suppress(ConnectionResetError):
                    assert sock.recv(10) == b""
        sockets = near.streams(1, 2)
        with there.raw(OTHER) as sock:
            sock.sendall(control.stream_line(key, 1, 1))
            assert sock.recv(10) == b""
        for sock in sockets:
            control.await_start(sock, 5.0)
            sock.close()
        assert near.answer()["event"] == "done"


# --- UDP --------------------------------------------------------------------------------------


def test_datagrams_without_the_right_hmac_get_no_answer(there: Far) -> None:
    chance = random.Random(SEED)
    with there.session() as near, stamp.connected(NEAR, there.port) as sock:
        right, ssid = stamp.mac_key(near.key.secret), near.welcome.ssid
        reflector = there.server._reflector
        for number in range(2000):
            packet = stamp.blank(chance.choice([112, 112, 500]))
            key = chance.choice([right, chance.randbytes(32)])
            who = chance.choice([ssid, 0, chance.randrange(1 << 16)])
            kind = chance.randrange(10)
            fields = stamp.Packet(number, kind, 1, 0, time.time_ns(), stamp.ERROR_ESTIMATE, who)
            stamp.write(packet, key, fields)
            if key == right:
                packet[chance.randrange(112)] ^= 1 << chance.randrange(8)
            with suppress(OSError):
                sock.send(
                    chance.choice([bytes(packet), chance.randbytes(chance.randrange(1, 1400))])
                )
        packet = stamp.blank(300)
        stamp.write(packet, right, stamp.Packet(0, stamp.STAMP, 0, 0, 1, 1, ssid))
        time.sleep(0.2)
        sock.send(packet)
        sock.setblocking(True)
        sock.settimeout(5.0)
        answer = sock.recv(2000)
        assert len(answer) == 300
        assert stamp.is_valid(answer, right)
        sock.settimeout(0.1)
        with pytest.raises(TimeoutError):
            sock.recv(2000)
        assert reflector is there.server._reflector


def test_a_test_with_udp_is_sent_only_to_the_address_of_the_session(there: Far) -> None:
    """Whoever relays a valid datagram from elsewhere turns no test against another address."""
    with there.session() as near:
        fields = {"rate_mbps": 5, "size_bytes": 500, "duration_s": 0.2}
        assert near.ask("udp", phase=1, direction="down", **fields)["ready"]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind((OTHER, 0))
            sock.connect((NEAR, there.port))
            stamp.hello(sock, stamp.mac_key(near.key.secret), near.welcome.ssid, 1)
            answer = near.answer()
            assert answer["sent"]["datagrams"] == 0
            assert "UDP arrives from 127.0.0.2" in answer["sent"]["error"]
            sock.settimeout(0.2)
            assert len(sock.recv(2000)) == 112  # The answer to its HELLO.
            with pytest.raises(TimeoutError):
                sock.recv(2000)


# --- Limits -----------------------------------------------------------------------------------


def test_sessions_data_rate_and_time_are_limited() -> None:
    with served(sessions=2, data_bytes=3_000_000, rate_mbps=80, session_s=2.5) as there:
        with there.session() as near:
            limits = near.welcome.limits
            assert (limits.rate_mbps, limits.data_bytes, limits.phase_s) == (40, 3_000_000, 2.5)
            full = pytest.raises(ProtocolError, match="all 2 sessions are in use")
            with there.session(), full:
                there.connect()
            error = near.ask("udp", phase=3, direction="up", rate_mbps=41, size_bytes=500,
                             duration_s=0.1)["error"]  # fmt: skip
            assert "rate_mbps is 41" in error
            down = near.tcp(4, "down", 2, duration_s=0.4, options={"pacing_mbps": 1000})
            # Linux does not pace the first ten segments, each of 64 KiB over loopback.
            assert 0 < down["seen"] <= 40e6 / 8 * 0.4 * 1.1 + 2 * 10 * (1 << 16)
            up = near.tcp(5, "up", 1)
            assert sum(one["bytes"] for one in up["streams"]) <= 40e6 / 8 * 0.105 + (1 << 18) + (
                1 << 22
            )
            for phase in range(6, 20):
                answer = near.ask("tcp", phase=phase, direction="down", streams=1, duration_s=0.5)
                if "error" in answer:
                    break
                (sock,) = near.streams(phase, 1)
                control.await_start(sock, 5.0)
                stream.receive(sock, threading.Event(), most_s=5.0)
                near.answer()
            assert "has reached its data limit (3.00 MB)" in answer["error"]
            with pytest.raises(control.EndedError):
                near.channel.receive(5.0)
        assert until(lambda: any("its time limit is reached" in line for line in there.said), 5)


def test_a_silent_session_ends(there: Far, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(far, "SILENT_S", 0.2)
    monkeypatch.setattr(far, "_TICK_S", 0.05)
    with there.session() as near, pytest.raises(control.EndedError):
        near.channel.receive(5.0)
    assert until(lambda: any("silent for" in line for line in there.said), 5)


def test_whoever_breaks_the_protocol_after_the_proof_loses_the_session(there: Far) -> None:
    chance = random.Random(SEED)
    for junk in (b"x" * 70_000, chance.randbytes(1000) + b"\n", b"\n", b"0" * 32 + b" {}\n"):
        key, sock = handshake(there, NEAR)
        assert key is not None
        with suppress(OSError):
            sock.sendall(junk)
        assert until(lambda: there.server.sessions == 0, 5)
        sock.close()
    for message in ({"do": "tcp"}, {"id": "1"}, {"id": True, "do": "tcp"}):
        with there.session() as near:
            near.channel.send(message)
            with pytest.raises(control.EndedError):
                near.channel.receive(5.0)


KILLED = """
import socket, sys, time
from airpath.measure import control
channel, key, _ = control.connect("127.0.0.1", int(sys.argv[1]), sys.argv[2], 5)
channel.send({"do": "tcp", "id": 1, "phase": 1, "direction": sys.argv[3], "streams": 2,
              "duration_s": 50})
channel.receive(5)
socks = [socket.create_connection(channel.peer, 5) for _ in range(2)]
for at, sock in enumerate(socks):
    sock.sendall(control.stream_line(key, 1, at))
for sock in socks:
    control.await_start(sock, 5)
print("started", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("direction", ["down", "up"])
def test_the_session_of_a_killed_near_end_is_over(there: Far, direction: str) -> None:
    words = [sys.executable, "-c", KILLED, str(there.port), TOKEN, direction]
    near = start(words, stdout=subprocess.PIPE, text=True)
    assert near.stdout is not None
    assert near.stdout.readline() == "started\n"
    assert there.server.sessions == 1
    near.kill()
    near.wait()
    assert until(lambda: there.server.sessions == 0, 10)
    assert "session over" in there.said[-1]
    assert until(lambda: not any("stream" in one.name for one in threading.enumerate()), 5)


def test_tables_are_bounded() -> None:
    refusals = guard.Refusals()
    for number in range(3000):
        for _ in range(3):
            refusals.note((f"2001:db8:{number:x}::{number:x}", 1), 0.0)
    assert len(refusals) == guard.MOST_ADDRESSES
    assert refusals.refuses(("2001:db8:bb7::ffff", 9), 1.0)  # All of a /64 are one.
    assert not refusals.refuses(("2001:db8:1::1", 9), 1.0)
    assert not refusals.refuses(("2001:db8:bb7::1", 9), guard.REFUSED_S + 1)


# --- The command ------------------------------------------------------------------------------


def begun(place: Path, *words: str) -> tuple[subprocess.Popen[str], str]:
    """Start the command; its line on stdout."""
    running = start_command(
        "serve", "--host", NEAR, "--port", "0", *words,
        cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert running.stdout is not None
    return running, running.stdout.readline().strip()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_prints_a_token_serves_and_ends_at_once(
    tmp_path: Path, number: signal.Signals
) -> None:
    running, token = begun(tmp_path)
    assert len(token) == 26
    port = next(
        int(line.split()[1].rpartition(":")[2], 16)
        for line in Path(f"/proc/{running.pid}/net/udp").read_text().splitlines()[1:]
        if inode_of(running.pid, line.split()[9])
    )
    channel, _, welcome = control.connect(NEAR, port, token, 10.0)
    status = Path(f"/proc/{running.pid}/status").read_text()
    if os.geteuid() == 0:
        assert "Uid:\t0" not in status
        assert "CapEff:\t0000000000000000" in status
    assert welcome.you == channel.here
    began = time.monotonic()
    running.send_signal(number)
    out, err = running.communicate(timeout=20)
    assert time.monotonic() - began < 5
    assert running.returncode == 128 + number
    assert out == ""
    assert token not in err
    assert "Traceback" not in err
    assert f"listening on TCP and UDP port {port}" in err
    assert "the server ended" in err
    channel.close()


def inode_of(process: int, inode: str) -> bool:
    """Whether a process has a socket."""
    links = Path(f"/proc/{process}/fd").iterdir()
    return any(str(link.readlink()) == f"socket:[{inode}]" for link in links)


def test_with_a_token_file_it_prints_what_the_near_end_types(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.touch(mode=0o600)
    file.write_text(TOKEN)
    running, line = begun(tmp_path, "--token-file", "token")
    words = shlex.split(line)
    assert words[:4] == ["airpath", "measure", NEAR, "--port"]
    assert words[5:] == ["--token-file", "token"]
    control.connect(NEAR, int(words[4]), TOKEN, 10.0)[0].close()
    running.send_signal(signal.SIGINT)
    assert TOKEN not in running.communicate(timeout=20)[1]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--token-file", "open"], "other users can read or change token file open; chmod 600"),
        (["--token-file", "none"], "cannot read token file none: No such file or directory"),
        (["--most-data", "much"], "--most-data much: expects a size such as 500MB"),
        (["--most-rate", "10MB/s"], "--most-rate 10MB/s: expects a rate such as 100Mb/s"),
        (["--most-time", "0s"], "--most-time 0s: expects a time such as 90s"),
        (["--host", "192.0.2.1"], "cannot listen on 192.0.2.1:5212: Cannot assign"),
    ],
)
def test_bad_options_are_named(
    cli: Callable[..., tuple[int, str, str]],
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    message: str,
) -> None:
    # It would be this process that becomes nobody.
    monkeypatch.setattr("airpath.cli.serve._drop_rights", pytest.fail)
    Path("open").write_text(TOKEN)
    Path("open").chmod(0o644)
    code, out, err = cli("serve", *words)
    assert code in (1, 2)
    assert out == ""
    assert message in err


def test_a_port_in_use_is_said() -> None:
    with served() as there, pytest.raises(AirpathError, match="Address already in use"):
        Server(TOKEN, ServerOptions(NEAR, there.port), print)


def test_quantities() -> None:
    sizes = {"500MB": 500_000_000, "2 GB": 2_000_000_000, "64KiB": 65_536, "7b": 7}
    assert {text: size_from(text, "-x") for text in sizes} == sizes
    rates = {"100Mb/s": 100, "1.5Gbit/s": 1500, "800 kbit": 0.8, "20Mbps": 20}
    assert {text: rate_from(text, "-x") for text in rates} == rates
    assert time_from("2h", "-x") == 7200
    for text in ("", "1", "GB", "-1GB", "1e3MB", "nanGB"):
        with pytest.raises(InputError, match="-x"):
            size_from(text, "-x")


# --- Units ------------------------------------------------------------------------------------

OPTIONS = (
    "--host",
    "192.0.2.7",
    "--sessions",
    "2",
    "--most-rate",
    "0.5Gbit/s",
    "--most-data",
    "5GB",
)


@pytest.fixture
def unit(cli: Callable[..., tuple[int, str, str]]) -> Callable[[str], str]:
    """Print a unit with options; no token but Kubernetes' is in it."""

    def printed(kind: str) -> str:
        Path("token").touch(mode=0o600)
        Path("token").write_text(TOKEN)
        code, out, err = cli("serve", *OPTIONS, "--token-file", "token", "--print", kind)
        assert (code, err) == (0, "")
        assert TOKEN not in out
        return out

    return printed


def serves_with(words: list[str], cli: Callable[..., tuple[int, str, str]], token: str) -> None:
    """Whether the command of a unit is one that airpath understands."""
    assert words[:2][-1] == "serve"
    assert words[words.index("--token-file") + 1] == token
    given = ["token" if word == token else word for word in words[1:]]
    assert cli(*given, "--print", "docker")[0] == 0
    assert words[words.index("--most-rate") + 1] == "500Mb/s"
    assert words[words.index("--most-data") + 1] == "5000000000B"


def test_the_unit_for_systemd(
    unit: Callable[[str], str], cli: Callable[..., tuple[int, str, str]], tmp_path: Path
) -> None:
    text = unit("systemd")
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    service = parser["Service"]
    serves_with(shlex.split(service["ExecStart"]), cli, "${CREDENTIALS_DIRECTORY}/token")
    assert service["DynamicUser"] == service["NoNewPrivileges"] == "yes"
    assert service["ProtectSystem"] == "strict"
    assert service["CapabilityBoundingSet"] == service["AmbientCapabilities"] == "CAP_NET_RAW"
    assert service["LoadCredential"] == "token:/etc/airpath/token"
    if not (program := shutil.which("systemd-analyze")):
        return
    file = tmp_path / "airpath-serve.service"
    file.write_text(text.replace(shlex.split(service["ExecStart"])[0], "/bin/true"))
    done = subprocess.run([program, "verify", file], capture_output=True, text=True, check=False)
    about = [line for line in done.stderr.splitlines() if "airpath-serve" in line]
    assert about == []


def test_the_unit_for_docker(
    unit: Callable[[str], str], cli: Callable[..., tuple[int, str, str]]
) -> None:
    lines = [line for line in unit("docker").splitlines() if not line.startswith("#")]
    steps = dict(line.split(" ", 1) for line in lines)
    assert steps["USER"] == "65534:65534"
    serves_with(json.loads(steps["ENTRYPOINT"]), cli, "/run/secrets/airpath/token")


def test_the_unit_for_kubernetes(
    unit: Callable[[str], str], cli: Callable[..., tuple[int, str, str]]
) -> None:
    import base64

    yaml = pytest.importorskip("yaml")
    secret, deployment, service = yaml.safe_load_all(unit("kubernetes"))
    assert base64.b64decode(secret["data"]["token"]).decode() == TOKEN
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    serves_with(container["command"], cli, "/run/secrets/airpath/token")
    assert pod["volumes"][0]["secret"] == {"secretName": "airpath-token", "defaultMode": 0o440}
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert {port["protocol"] for port in service["spec"]["ports"]} == {"TCP", "UDP"}
