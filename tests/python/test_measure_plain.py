"""`airpath measure` without `airpath serve`: against `iperf3 -s`, hostile servers, pings alone."""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airpath.errors import AirpathError, InputError
from airpath.measure import echo, iperf3, path_mtu, plain
from airpath.measure.causes import name
from airpath.measure.control import Peer, ProtocolError
from airpath.measure.measurement import resumed
from airpath.measure.outcome import record
from airpath.measure.plain import Iperf3Session, PingSession
from airpath.measure.plan import Known, Phase, Plan, Treatment, draw, draw_idle, usual
from airpath.measure.stream import Options, StreamReport
from conftest import start, until
from emulated import needs
from measured_paths import (
    FAR,
    FAR6,
    NEAR,
    NEAR6,
    ROUTER,
    Routed,
    mtu,
    needs_namespaces,
    routed,
    within,
)
from test_measure_causes import HEALTHY, effect

AIRPATH = [sys.executable, "-m", "airpath"]
needs_iperf3 = pytest.mark.skipif(shutil.which("iperf3") is None, reason="apt-get install iperf3")


def may_ping() -> bool:
    """Whether this user may send ICMP echoes."""
    with suppress(AirpathError):
        echo.connected("127.0.0.1").close()
        return True
    return False


needs_pings = pytest.mark.skipif(not may_ping(), reason="net.ipv4.ping_group_range, or root")


def free_port(host: str = "127.0.0.1") -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.bind((host, 0))
        return int(sock.getsockname()[1])


def listens(peer: Peer) -> bool:
    """Whether iperf3 has printed nothing but listens; a connection would disturb it."""
    table = "tcp6" if ":" in peer[0] else "tcp"
    wanted = f":{peer[1]:04X} "
    lines = Path(f"/proc/net/{table}").read_text().splitlines()
    return any(wanted in line.split(maxsplit=1)[1][:60] and " 0A " in line for line in lines)


@contextmanager
def iperf3_server(*options: str, host: str = "127.0.0.1") -> Iterator[int]:
    """A plain `iperf3 -s`: its port."""
    port = free_port(host)
    served = start(
        ["iperf3", "-s", "-B", host, "-p", str(port), *options], stdout=subprocess.DEVNULL
    )
    assert until(lambda: listens((host, port)), 10)
    try:
        yield port
    finally:
        served.kill()
        served.wait()


def tcp(
    direction: str,
    treatment: Treatment | None = None,
    duration_s: float = 0.4,
    most: int = 20 << 20,
) -> Phase:
    way: Any = direction
    return Phase(0, 0, "tcp", way, treatment or Treatment("base"), duration_s, most, 0.05)


# --- The protocol against a hostile server ----------------------------------------------------

Script = Callable[[socket.socket], None]


@contextmanager
def scripted(script: Script) -> Iterator[Peer]:
    """A server that treats each connection as the script says, after its cookie."""
    listener = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def serve() -> None:
        while not over.is_set():
            with suppress(OSError):
                sock, _ = listener.accept()
                threading.Thread(target=treat, args=(sock,), daemon=True).start()

    def treat(sock: socket.socket) -> None:
        with sock, suppress(OSError, struct.error):
            sock.settimeout(5)
            sock.recv(iperf3.COOKIE_BYTES, socket.MSG_WAITALL)
            script(sock)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listener.getsockname()
    finally:
        over.set()
        listener.close()


def state(*states: int) -> bytes:
    return struct.pack(f"{len(states)}b", *states)


def parameters_of(sock: socket.socket) -> dict[str, Any]:
    (length,) = struct.unpack("!I", sock.recv(4, socket.MSG_WAITALL))
    found: dict[str, Any] = json.loads(sock.recv(length, socket.MSG_WAITALL))
    return found


def until_results(sock: socket.socket) -> None:
    """What a right server does, until it sends its results."""
    sock.sendall(state(9))
    parameters_of(sock)
    sock.sendall(state(10, 1, 2))
    assert sock.recv(1) == state(4)
    sock.sendall(state(13))
    parameters_of(sock)


def answering(data: bytes, then: Callable[[socket.socket], object] = lambda _: None) -> Script:
    def script(sock: socket.socket) -> None:
        sock.sendall(data)
        then(sock)

    return script


def resulting(data: bytes) -> Script:
    def script(sock: socket.socket) -> None:
        until_results(sock)
        sock.sendall(data)
        time.sleep(0.5)

    return script


def announced(text: bytes) -> bytes:
    return struct.pack("!I", len(text)) + text


def whole_test(peer: Peer, patience_s: float = 0.3) -> iperf3.Results:
    with iperf3.Test(peer, patience_s) as test:
        test.begin(iperf3.parameters(Options(), 1, 1.0, down=False))
        test.await_running()
        return test.results(iperf3.own_results([(0, 0)], 0.0, None), 1)


def slept(_: socket.socket) -> None:
    time.sleep(2)


STREAM = {"id": 1, "bytes": 7, "retransmits": 3, "start_time": 0, "end_time": 1.5}
GOOD: dict[str, Any] = {
    "sender_has_retransmits": 1,
    "congestion_used": "cubic",
    "streams": [STREAM],
}


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (slept, "does not answer as iperf3 does"),
        (answering(b""), "closed the connection"),
        (answering(state(-1)), "is busy"),
        (answering(state(-2) + struct.pack("!ii", 142, 0)), "authorised users"),
        (answering(state(-2) + struct.pack("!ii", 37, 0)), "--server-max-duration"),
        (answering(state(-2) + struct.pack("!ii", -7, 0)), "iperf3's error -7"),
        (answering(state(-2)), "without a reason"),
        (answering(state(11)), "was stopped"),
        (answering(b"SSH-2.0-OpenSSH_9.2\r\n"), "does not speak iperf3's protocol"),
        (answering(state(9, 9)), "state 9 instead of 10"),
        (answering(state(9, 10, 2)), "state 2 instead of 1"),
        (answering(state(9, 10), slept), "does not answer as iperf3 does"),
        (resulting(struct.pack("!I", 0xFFFFFFFF)), "4294967295 bytes"),
        (resulting(struct.pack("!I", 0)), "announces results of 0 bytes"),
        (resulting(struct.pack("!I", 9000)), "does not answer as iperf3 does"),
        (resulting(announced(b"[" * 9000)), "not JSON"),
        (resulting(announced(b"\xff{}")), "not JSON"),
        (resulting(announced(b'{"streams": [{"id": NaN}]}')), "not JSON"),
        (resulting(announced(b"[1]")), "not an object"),
        (resulting(announced(json.dumps(GOOD).encode()) + state(2)), "state 2 instead of 14"),
    ],
)
def test_a_hostile_server_is_refused_in_time(script: Script, said: str) -> None:
    began = time.monotonic()
    with scripted(script) as peer, pytest.raises(AirpathError) as refused:
        whole_test(peer)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
    assert time.monotonic() - began < 2.5


def test_a_server_that_trickles_is_not_waited_for() -> None:
    def script(sock: socket.socket) -> None:
        until_results(sock)
        sock.sendall(struct.pack("!I", 1000))
        for _ in range(100):
            sock.sendall(b" ")
            time.sleep(0.05)

    began = time.monotonic()
    with scripted(script) as peer, pytest.raises(ProtocolError, match="does not answer"):
        whole_test(peer, 0.5)
    assert time.monotonic() - began < 2


def test_random_bytes_never_hang_or_crash() -> None:
    generator = random.Random(3)
    for _ in range(60):
        data = generator.randbytes(generator.randrange(1, 60))
        script = generator.choice([answering, resulting])(state(9)[: generator.randrange(2)] + data)
        with scripted(script) as peer, suppress(AirpathError):
            whole_test(peer, 0.2)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"streams": None}, "streams is not a list"),
        ({"streams": []}, "streams has 0 entries"),
        ({"streams": [7]}, "streams is not an object"),
        ({"streams": [{**STREAM, "id": 3}]}, "expected 1"),
        ({"streams": [{**STREAM, "bytes": -1}]}, "bytes must be"),
        ({"streams": [{**STREAM, "bytes": 1e300}]}, "bytes must be"),
        ({"streams": [{**STREAM, "end_time": "soon"}]}, "end_time must be"),
        ({"streams": [{"id": 1, "bytes": 7, "retransmits": 3}]}, "too old"),
        ({"congestion_used": 7}, "congestion_used is not text"),
    ],
)
def test_results_name_the_field_that_is_wrong(changed: dict[str, object], said: str) -> None:
    with pytest.raises(ProtocolError, match=said):
        iperf3.results({**GOOD, **changed}, 1)


def test_what_a_server_does_not_count_is_unknown_and_not_zero() -> None:
    assert iperf3.results(GOOD, 1).streams[0].retransmits == 3
    for counts in (-1, 0, (1 << 64) - 1, None, "1"):
        found = iperf3.results({**GOOD, "sender_has_retransmits": counts}, 1)
        assert found.streams[0].retransmits is None
    row = {"id": 1, "bytes": 7, "retransmits": (1 << 64) - 1, "start_time": 0, "end_time": 1}
    assert iperf3.results({**GOOD, "streams": [row]}, 1).streams[0].retransmits is None
    odd = iperf3.results({**GOOD, "congestion_used": "\x1b[2J", "server_output_text": 5}, 1)
    assert (odd.congestion, odd.seen_as) == (None, None)


def test_the_address_is_in_the_servers_output() -> None:
    text = "-----\nAccepted connection from 192.0.2.7, port 40400\n[  5] local …"
    assert iperf3.results({**GOOD, "server_output_text": text}, 1).seen_as == "192.0.2.7"


def test_the_parameters_of_a_test() -> None:
    options = Options(congestion="bbr", pacing_mbps=16, window_bytes=1 << 20)
    down = iperf3.parameters(options, 2, 3.2, down=True)
    assert (down["reverse"], down["time"], down["parallel"]) == (True, 5, 2)
    # Paced per stream, in blocks of a millisecond.
    assert (down["fqrate"], down["bandwidth"], down["len"]) == (8_000_000, 8_000_000, 1448)
    assert (down["congestion"], down["window"]) == ("bbr", 1 << 20)
    up = iperf3.parameters(Options(pacing_mbps=16), 1, 3.0, down=False)
    assert "reverse" not in up
    # This end paces, and an earlier test may have left a rate at the server.
    assert (up["fqrate"], up["bandwidth"]) == (0, 0)
    assert iperf3.numbers(4) == [1, 3, 4, 5]


# --- iperf3 itself ----------------------------------------------------------------------------


def buffered_bytes() -> int:
    """Return how many bytes the two sockets of a connection hold at most, once tuned."""
    kept = [Path(f"/proc/sys/net/ipv4/tcp_{kind}mem").read_text().split()[2] for kind in "rw"]
    return sum(map(int, kept))


@needs_iperf3
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_transfers_with_iperf3(host: str) -> None:
    with iperf3_server(host=host) as port, Iperf3Session(host, port, lambda _: None) as session:
        you = session.welcome.you
        assert you is not None
        assert you[0] == session.near[0] == host
        assert session.handshake_ms is not None
        assert "cubic" in session.welcome.host["congestion"]  # type: ignore[operator]
        for direction in ("down", "up"):
            outcome = session.run(tcp(direction), None, 20 << 20)
            figures = record(outcome)["figures"]
            assert outcome.errors == []
            assert figures is not None
            assert outcome.capped
            # What is in flight when a far sender is told to stop still arrives.
            above = buffered_bytes() if direction == "down" else 0.02 * (20 << 20)
            assert 0.89 * (20 << 20) <= figures["carried_bytes"] <= (20 << 20) + above
            assert figures["congestion"] is not None
            if may_ping():
                assert outcome.probes is not None
        several = session.run(tcp("down", Treatment("s", streams=4)), None, 20 << 20)
        assert [len(several.senders), len(several.receivers), several.errors] == [4, 4, []]
        small = session.run(tcp("down", Treatment("m", Options(mss_bytes=1000))), None, 20 << 20)
        mss = small.receivers[0].options_in_force["mss_bytes"]
        assert isinstance(mss, int)
        assert mss <= 1000


@needs_iperf3
def test_a_far_sender_is_known_by_what_its_server_says() -> None:
    with iperf3_server() as port, Iperf3Session("127.0.0.1", port, lambda _: None) as session:
        kept = record(session.run(tcp("down"), None, 20 << 20))
        figures, samples = kept["figures"], kept["samples"]
        assert figures is not None
        assert samples is not None
        assert isinstance(figures["retransmitted_segments"], int)
        assert figures["limited"] == {}
        assert set(samples["cwnd_segments"]) | set(samples["srtt_ms"]) == {None}
        assert {tuple(row[1:]) for stream in kept["seconds"] for row in stream} <= {(None,) * 3}


@needs_iperf3
def test_the_servers_congestion_control_is_chosen_and_given_back() -> None:
    with iperf3_server() as port:
        with Iperf3Session("127.0.0.1", port, lambda _: None) as session:
            usual_ = session._usual
            other = next(one for one in ("reno", "cubic") if one != usual_)
            treated = tcp("down", Treatment(other, Options(congestion=other)))
            for phase, used in ((treated, other), (tcp("down"), usual_), (treated, other)):
                figures = record(session.run(phase, None, 1 << 20))["figures"]
                assert figures is not None
                assert figures["congestion"] == used
            missing = tcp("down", Treatment("no", Options(congestion="nonesuch")))
            refused = session.run(missing, None, 1 << 20)
            assert f"the server used {usual_} instead of nonesuch" in str(refused.errors)
            assert not refused.receivers
            session.run(treated, None, 1 << 20)
        # Up to 3.18 iperf3 keeps it for the tests of others.
        with Iperf3Session("127.0.0.1", port, lambda _: None, explores=False) as session:
            assert session._usual == usual_


@needs_iperf3
@pytest.mark.real_clock
def test_the_server_is_paced() -> None:
    with iperf3_server() as port, Iperf3Session("127.0.0.1", port, lambda _: None) as session:
        for direction in ("down", "up"):
            phase = tcp(direction, duration_s=1.0)
            figures = record(session.run(phase, 40.0, 20 << 20))["figures"]
            assert figures is not None
            assert figures["steady_mbps"] == pytest.approx(40, rel=0.06)


@needs_iperf3
def test_a_busy_server_and_a_closed_port_are_said() -> None:
    with iperf3_server() as port:
        words = ["iperf3", "-c", "127.0.0.1", "-p", str(port), "-t", "20", "-b", "1M"]
        other = start([*words, "--forceflush"], stdout=subprocess.PIPE)
        # Its test has begun: whoever asked before would have taken its place.
        assert other.stdout is not None
        assert any(b"connected to" in line for line in other.stdout)
        done = measured("127.0.0.1", "--far", "iperf3", "--port", str(port))
        other.kill()
    assert done.returncode == 1
    assert f"error: 127.0.0.1:{port} is busy: its iperf3 is running another test" in done.stderr
    done = measured("127.0.0.1", "--far", "iperf3", "--port", str(free_port()))
    assert done.returncode == 1
    assert "Connection refused; is `iperf3 -s` running there?" in done.stderr


@needs_iperf3
def test_a_server_that_is_killed_is_said_and_leaves_no_whole_looking_phase() -> None:
    port = free_port()
    served = start(["iperf3", "-s", "-p", str(port)], stdout=subprocess.DEVNULL)
    assert until(lambda: listens(("::", port)) or listens(("0.0.0.0", port)), 10)
    with Iperf3Session("127.0.0.1", port, lambda _: None) as session:
        for direction in ("down", "up"):
            if served.poll() is not None:
                served = start(["iperf3", "-s", "-p", str(port)], stdout=subprocess.DEVNULL)
                assert until(lambda: listens(("::", port)), 10)
            phase = tcp(direction, Treatment("p", Options(pacing_mbps=8)), duration_s=20)
            killer = threading.Timer(0.7, served.kill)
            killer.start()
            began = time.monotonic()
            outcome = session.run(phase, None, 50 << 20)
            killer.join()
            served.wait()
            assert time.monotonic() - began < 8
            assert outcome.errors
            assert record(outcome)["figures"] is None


def measured(*options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*AIRPATH, "measure", *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **variables},
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--far", "ping", "--port", "7"), "--far ping has no transfers: leave out --port"),
        (("--far", "ping", "--direction", "up"), "leave out --direction"),
        (("--far", "ping", "--until", "5%"), "leave out --until"),
        (
            ("--far", "iperf3", "--token-file", "token"),
            "iperf3 servers take no token: leave out --token-file",
        ),
        (("--far", "ping", "--time", "3s", "--plan"), "too little for 2 blocks of idle phases"),
    ],
)
def test_bad_use_is_refused(options: Sequence[str], said: str) -> None:
    done = measured("192.0.2.1", *options)
    assert done.returncode == 2
    assert said in done.stderr.replace("\n", " ")


@pytest.mark.parametrize("far", ["iperf3", "ping"])
def test_a_plan_sends_nothing(far: str, tmp_path: Path) -> None:
    done = measured("192.0.2.1", "--far", far, "--plan", "--seed", "1")
    assert done.returncode == 0, done.stderr
    assert "of 500 MB" in done.stdout
    assert ("tcp" in done.stdout) == (far == "iperf3")
    assert not list(tmp_path.iterdir())


# --- Plans ------------------------------------------------------------------------------------


def test_a_plan_keeps_to_what_the_far_end_allows() -> None:
    both: Any = ["down", "up"]
    treatments = usual({"cubic", "bbr"})
    echoed = draw(4, treatments, both, 90, 500_000_000, Known(probing="echo"))
    silent = draw(4, treatments, both, 90, 500_000_000, Known(probing="none"))
    assert [one.direction for one in echoed.phases if one.kind == "mtu"] == ["up"]
    assert {one.kind for one in silent.phases} == {"tcp"}
    assert {one.probe_gap_s for one in silent.phases} == {None}
    for plan in (echoed, silent):
        assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


def test_a_plan_of_pings_keeps_to_time_and_data() -> None:
    generator = random.Random(8)
    drawn = 0
    for seed in range(200):
        time_s = 10 ** generator.uniform(0, 3)
        data_bytes = round(10 ** generator.uniform(4, 9))
        try:
            plan = draw_idle(seed, time_s, data_bytes)
        except InputError:
            continue
        drawn += 1
        assert plan.duration_s() <= time_s + 1e-6
        assert plan.most_bytes() <= data_bytes
        assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan
        pairs = [one for one in plan.phases if one.kind == "idle"]
        assert {one.block for one in pairs} == set(range(len(pairs) // 2))
        assert pairs[0].quiet_s > 0
    assert drawn > 80


# --- Pings ------------------------------------------------------------------------------------


def test_a_checksum_by_hand() -> None:
    # The example of RFC 1071 3: the sum is ddf2.
    assert echo.checksum(bytes.fromhex("0001f203f4f5f6f7")) == 0xFFFF - 0xDDF2
    request = bytes.fromhex("0800000012340001") + b"x"
    whole = request[:2] + struct.pack("!H", echo.checksum(request)) + request[4:]
    assert echo.checksum(whole) == 0


@needs_pings
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_echoes_are_paired_and_others_are_ignored(host: str) -> None:
    with echo.connected(host) as sock, echo.connected(host) as beside:
        pinger, other = echo.Pinger(sock, patience_s=0.5), echo.Pinger(beside, patience_s=0.5)
        other.start(0.004)
        pinger.start(0.01)
        time.sleep(0.3)
        found, _ = pinger.stop(), other.stop()
    assert found.sent >= 15
    assert [one.sequence for one in found.replies] == list(range(found.sent))
    assert (found.lost, found.invalid, found.duplicates) == ([], 0, 0)
    assert all(0 < one.rtt_ms < 100 for one in found.replies)
    assert {one.out_ms for one in found.replies} == {None}


@needs_pings
def test_echoes_of_strangers_are_no_replies() -> None:
    with echo.connected("127.0.0.1") as sock:
        own = echo.Echo(sock)
        request = own.request(5, 77)
        header = b"\x45" + bytes(19) if sock.type == socket.SOCK_RAW else b""
        reply = bytes([0, *request[1:]])
        assert own.reply(header + reply) == (5, 77, len(reply))
        assert own.reply(header + bytes(request)) is None
        assert echo.Echo(sock).reply(header + reply) is None
        generator = random.Random(1)
        for _ in range(500):
            assert own.reply(generator.randbytes(generator.randrange(80))) is None


@needs_namespaces
@pytest.mark.parametrize(("host", "six"), [(FAR, False), (FAR6, True)])
def test_the_path_mtu_by_echoes(host: str, six: bool) -> None:
    with routed() as path:
        mtu(path.router, "f0", 1400)

        def search() -> path_mtu.MtuReport:
            with echo.connected(host) as sock:
                prober = echo.EchoProber(sock)
                return path_mtu.search_up(prober, 1500, threading.Event())

        found = within(path.near, search)
        assert (found.path_bytes, found.too_large_bytes) == (1400, 1401)
        assert {one.mtu for one in found.icmp} == {1400}
        assert {one.version for one in found.icmp} == {6 if six else 4}
        path.nft()
        path.router.run("nft", "add chain inet t out { type filter hook output priority 0; }")
        for what in ("icmp type destination-unreachable", "icmpv6 type packet-too-big"):
            path.router.run("nft", f"add rule inet t out {what} drop")
        silent = within(path.near, search)
        assert (silent.path_bytes, silent.is_black_hole) == (1400, True)


def test_who_may_not_ping_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = socket.socket

    def refusing(family: int, kind: int, protocol: int = 0) -> socket.socket:
        if protocol in echo._PROTOCOLS.values():
            raise PermissionError
        return opened(family, kind, protocol)

    monkeypatch.setattr(socket, "socket", refusing)
    with pytest.raises(AirpathError, match="ping_group_range"):
        PingSession("127.0.0.1")


@needs_namespaces
def test_a_host_that_answers_no_ping_is_told_and_iperf3_goes_on() -> None:
    with routed() as path:
        path.nft("forward icmp type echo-request drop")
        path.far.start("iperf3", "-s", stdout=subprocess.DEVNULL)
        assert until(lambda: ":5201" in path.far.run("ss", "-Htln"), 10)

        def pings() -> str:
            with pytest.raises(AirpathError) as refused:
                PingSession(FAR)
            return str(refused.value)

        assert f"{FAR} answers no ICMP echo" in within(path.near, pings)

        def transfer() -> tuple[str | None, Any, Sequence[str]]:
            with Iperf3Session(FAR, 5201, lambda _: None) as session:
                outcome = session.run(tcp("down"), None, 1 << 20)
                idle = Phase(0, 0, "idle", None, Treatment("base"), 0.1, 0, 0.05)
                return session.unprobed, record(outcome), session.run(idle, None, 0).errors

        unprobed, kept, errors = within(path.near, transfer)
        assert unprobed
        assert (kept["probes"], kept["errors"]) == (None, [])
        assert kept["figures"]["carried_bytes"] > 0
        assert errors == [unprobed]


@pytest.mark.real_clock
@needs_namespaces
@needs_iperf3
def test_a_nat_is_seen_by_the_servers_output() -> None:
    with routed() as path:
        path.nft()
        path.router.run("nft", "add chain inet t post { type nat hook postrouting priority 100; }")
        path.router.run("nft", "add rule inet t post oifname f0 masquerade")
        path.far.start("iperf3", "-s", stdout=subprocess.DEVNULL)
        assert until(lambda: ":5201" in path.far.run("ss", "-Htln"), 10)

        def addresses() -> tuple[Any, str, list[str]]:
            with Iperf3Session(FAR, 5201, lambda _: None) as session:
                errors = [
                    error
                    for direction in ("down", "up")
                    for error in session.run(tcp(direction), None, 2 << 20).errors
                ]
                return session.welcome.you, session.near[0], errors

        you, near, errors = within(path.near, addresses)
        assert (you[0], near, errors) == (ROUTER[FAR], NEAR, [])


def test_streams_stay_open_for_the_end_only_while_their_data_lasts() -> None:
    slow, fast = StreamReport(bytes=10_000, duration_s=2.0), StreamReport(900_000, 2.0)
    assert plain._hold_s(slow, "receiver", 1, 1_000_000) > 100
    assert plain._hold_s(fast, "receiver", 1, 1_000_000) == pytest.approx(0.05 / 0.9 * 2)
    assert plain._hold_s(replace(fast, bytes=980_000), "receiver", 1, 1_000_000) < 0.05
    # Nothing is left to send.
    assert plain._hold_s(replace(fast, bytes=1_000_000), "sender", 1, 1_000_000) >= 1
    assert plain._hold_s(StreamReport(), "receiver", 1, 1_000_000) >= 1


def test_round_trips_alone_claim_no_direction() -> None:
    asleep = replace(
        HEALTHY, idle_out=None, idle_ms={"keep-alive": effect("keep-alive", 0.5, 60.0)}
    )
    assert "do not show the direction" in name(asleep)[0].evidence
    assert name(asleep)[0].cause == "drx"
    for direction in ("down", "up"):
        full = replace(
            HEALTHY,
            direction=direction,
            loaded_out=None,
            loaded_ms={"paced": effect("paced", 0.05, 800.0)},
        )
        assert name(full)[0].cause == "bufferbloat"
        assert "do not show the direction" in name(full)[0].evidence


def test_unknown_losses_are_no_evidence() -> None:
    gains = {"bbr": effect("bbr", 1.6)}
    unknown = replace(HEALTHY, base_loss=None, rate=gains, goodput=gains, ramp_s=None)
    assert {one.cause for one in name(unknown)} <= {"link-capacity"}


# --- Whole measurements -----------------------------------------------------------------------


def limited(path: Routed, rate: str) -> None:
    """Limit both directions at the router; the queue is short."""
    for interface in ("n0", "f0"):
        words = f"tc qdisc add dev {interface} root tbf rate {rate} burst 30kb latency 10ms"
        path.router.run(*words.split())


def carried(path: Routed) -> int:
    """Bytes that the near end's interface sent and received so far."""
    text = path.near.run("cat", "/proc/net/dev")
    fields = next(line for line in text.splitlines() if "eth0" in line).split()
    return int(fields[1]) + int(fields[9])


@needs_namespaces
@needs_iperf3
def test_a_measurement_over_ipv6_alone_keeps_its_promise(tmp_path: Path) -> None:
    with routed() as path:
        for host, interface in ((path.near, "eth0"), (path.far, "eth0")):
            host.ip("-4", "address", "flush", "dev", interface)
        limited(path, "20mbit")
        path.far.start("iperf3", "-s", stdout=subprocess.DEVNULL)
        assert until(lambda: ":5201" in path.far.run("ss", "-Htln"), 10)
        before = carried(path)
        out = tmp_path / "run"
        near = [*AIRPATH, "measure", FAR6, "--far", "iperf3", "--direction", "both"]
        done = json.loads(
            path.near.run(
                *near, "--time", "24s", "--data", "28MB", "--seed", "3", "--json", "--out", str(out)
            )
        )
        # The interface also counts Ethernet headers, 1 % of a packet.
        assert carried(path) - before <= 1.01 * 28_000_000
        measured_ = done["measured"]
        assert (measured_["far"], measured_["near_seen_as"]) == ("iperf3", NEAR6)
        assert {one["direction"] for one in measured_["rates"]} == {"down", "up"}
        assert [one["path_bytes"] for one in measured_["mtu"]] == [1500]
        assert not any(one["errors"] for one in measured_["phases"])
    with pytest.raises(InputError, match="measured with --far iperf3, not ping"):
        resumed(out, FAR6, "ping")


@needs_namespaces
@needs_iperf3
@pytest.mark.real_clock
def test_rates_are_those_of_iperf3() -> None:
    with routed() as path:
        limited(path, "50mbit")
        path.far.start("iperf3", "-s", stdout=subprocess.DEVNULL)
        assert until(lambda: ":5201" in path.far.run("ss", "-Htln"), 10)
        words = f"iperf3 -c {FAR} -t 2 -J -C cubic".split()
        theirs = {
            "up": json.loads(path.near.run(*words))["end"]["sum_received"]["bits_per_second"],
            "down": json.loads(path.near.run(*words, "-R"))["end"]["sum_received"][
                "bits_per_second"
            ],
        }

        def ours() -> dict[str, float]:
            with Iperf3Session(FAR, 5201, lambda _: None) as session:
                found = {}
                for direction in ("up", "down"):
                    treatment = Treatment("cubic", Options(congestion="cubic"))
                    phase = tcp(direction, treatment, 2.0, 50 << 20)
                    figures = record(session.run(phase, None, 50 << 20))["figures"]
                    assert figures is not None
                    found[direction] = figures["goodput_mbps"]
                return found

        for direction, mbps in within(path.near, ours).items():
            assert mbps == pytest.approx(theirs[direction] / 1e6, rel=0.03)


POLICED = """
[run]
duration_s = 60
[[path.down]]
stage = "policer"
rate_mbps = 20
burst_bytes = 25000
excess = "drop"
[[path.down]]
stage = "delay"
delay_ms = 12
[[path.up]]
stage = "delay"
delay_ms = 12
[[flow]]
kind = "bulk"
"""

ASLEEP = """
[run]
duration_s = 60
[[path.down]]
stage = "delay"
delay_ms = 30
[[path.up]]
stage = "delay"
delay_ms = 30
[radio]
preset = "nr-fdd-20"
any_timer_value = true
[radio.drx]
enabled = true
long_cycle_ms = 320
on_duration_ms = 5
inactivity_ms = 20
[radio.rrc]
enabled = false
[[flow]]
kind = "ping"
"""


def emulated(place: Path, text: str, server: Sequence[str], *options: str) -> dict[str, Any]:
    """The summary of a measurement over an emulated path."""
    scenario, out = place / "path.toml", place / "run"
    shutil.rmtree(out, ignore_errors=True)
    shutil.rmtree(place / "emulated", ignore_errors=True)
    scenario.write_text(text)
    variables = [f"--env={one}" for one in ("PYTHONPATH",) if one in os.environ]
    done = subprocess.run(
        [
            *AIRPATH, "emulate", str(scenario), "--no-live", "--user", "root", *variables,
            "--out", str(place / "emulated"), "--explain", "off", *server, "--",
            *AIRPATH, "measure", "server", *options, "--out", str(out),
        ],
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode in (0, 3), done.stderr
    assert (out / "twin.toml").exists()
    found: dict[str, Any] = json.loads((out / "summary.json").read_text())
    found["told"] = done.stderr
    return found


@needs("ip", "iperf3")
def test_a_planted_policer_is_found_with_iperf3_alone(tmp_path: Path) -> None:
    options = ("--far", "iperf3", "--time", "22s", "--seed", "1")
    found = emulated(tmp_path, POLICED, ("--server", "iperf3 -s"), *options)
    assert [one["cause"] for one in found["findings"]] == ["policer"], found["told"]


@needs("ip")
def test_planted_drx_is_found_by_pings_alone(tmp_path: Path) -> None:
    found = emulated(tmp_path, ASLEEP, (), "--far", "ping", "--time", "24s", "--seed", "2")
    (finding,) = found["findings"]
    assert (finding["cause"], finding["subject"]) == ("drx", "idle"), found["told"]
    assert "do not show the direction" in finding["evidence"]
    assert not found["run"]["partial"]
    assert found["flows"] == []
