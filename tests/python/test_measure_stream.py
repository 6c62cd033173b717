"""TCP streams over loopback and a router: bytes, options in force, TCP_INFO against ss."""

from __future__ import annotations

import itertools
import json
import random
import re
import socket
import struct
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from airpath.errors import InputError
from airpath.measure import stream, tcp_info
from airpath.measure.control import ProtocolError
from airpath.measure.outcome import _ecn
from airpath.measure.stream import Options, StreamReport
from measured_paths import FAR, FAR6, Routed, needs_namespaces, routed, within

Sides = tuple[socket.socket, socket.socket]


def transfer(
    options: Options,
    duration_s: float,
    *,
    upwards: bool = True,
    host: str = "127.0.0.1",
    path: Routed | None = None,
    **limits: Any,
) -> tuple[StreamReport, StreamReport]:
    """Run one stream; the sender's and the receiver's report."""
    near_role: stream.Role = "sender" if upwards else "receiver"
    far_role: stream.Role = "receiver" if upwards else "sender"

    def call(at: str, function: Callable[[], socket.socket]) -> socket.socket:
        return function() if path is None else within(getattr(path, at), function)

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = call("far", lambda: socket.create_server((host, 0), family=family))
    place = host, listener.getsockname()[1]
    near = call("near", lambda: stream.connect(place, options, near_role, timeout_s=5))
    far, _ = listener.accept()
    listener.close()
    stream.accepted(far, options, far_role)
    sender, receiver = (near, far) if upwards else (far, near)
    stop = threading.Event()
    begin = time.monotonic()
    reports: list[StreamReport] = []
    thread = threading.Thread(
        target=lambda: reports.append(
            stream.receive(receiver, stop, begin=begin, most_s=duration_s + 5)
        )
    )
    thread.start()
    sent = stream.send(sender, duration_s, stop, begin=begin, **limits)
    thread.join()
    return sent, reports[0]


@needs_namespaces
@pytest.mark.parametrize(
    ("rule", "arrives", "marked"),
    [(None, True, False), ("not-ect", False, False), ("ce", True, True)],
)
def test_ecn_is_what_the_kernels_say(rule: str | None, arrives: bool, marked: bool) -> None:
    """A router that leaves ECN's bits alone, clears them, or marks everything."""
    with routed() as path:
        path.near.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/tcp_ecn")
        if rule is not None:
            path.nft(f"forward ip ecn ect0 ip ecn set {rule}")
        sent, received = transfer(Options(pacing_mbps=20), 0.3, host=FAR, path=path)
        found = _ecn([sent], [received])
        assert found["negotiated"]
        assert found["arrives"] is arrives
        assert (found["marked_segments"] > 0) is marked
    plain = _ecn(*([one] for one in transfer(Options(pacing_mbps=20), 0.1)))
    asks = stream.setting("ipv4/tcp_ecn") == 1
    assert plain["negotiated"] is asks


def test_a_far_end_may_say_anything_of_ecn() -> None:
    odd = StreamReport(options_in_force={"ecn": "yes", "ecn_seen": 1, "delivered_ce": "many"})
    assert _ecn([odd], [odd]) == {"negotiated": False, "arrives": False, "marked_segments": 0}


def test_both_ends_count_the_same_bytes() -> None:
    for upwards in (True, False):
        sent, received = transfer(Options(pacing_mbps=200), 0.3, upwards=upwards)
        assert sent.error is None
        assert received.error is None
        assert received.bytes >= sent.bytes > 0
        # What was in the buffers at the end is discarded; what was under way may have arrived.
        assert received.bytes - sent.bytes < 1 << 20
        assert sent.info
        assert not received.info
        assert not sent.arrived
        times, counts = zip(*received.arrived, strict=True)
        assert list(times) == sorted(set(times))
        assert list(counts) == sorted(set(counts))
        assert counts[-1] == received.bytes
        assert times[-1] == received.duration_s


def test_two_arrivals_in_intervals_of_their_own_are_two_entries() -> None:
    """The first arrival is the last of its interval as well."""
    ours, theirs = socket.socketpair()
    stop = threading.Event()

    def two() -> None:
        for _ in range(2):
            theirs.send(b"x")
            time.sleep(3 * stream.INTERVAL_S)
        theirs.close()

    thread = threading.Thread(target=two)
    thread.start()
    received = stream.receive(ours, stop)
    thread.join()
    assert [count for _, count in received.arrived] == [1, 2]


@pytest.mark.real_clock
def test_entries_are_about_10_ms_apart_and_the_rate_is_the_pacing_rate() -> None:
    sent, received = transfer(Options(pacing_mbps=80), 1.0)
    assert sent.duration_s == pytest.approx(1.0, abs=0.05)
    for times in ([at for at, _ in received.arrived], [info.time_s for info in sent.info]):
        # After 10 ms an entry waits for the next burst: at most 64 kB, 6.6 ms at this rate.
        assert 60 <= len(times) <= 102
        assert max(later - one for one, later in itertools.pairwise(times)) < 0.05
    middle = [(at, count) for at, count in received.arrived if 0.3 < at < 0.95]
    (first, before), (last, after) = middle[0], middle[-1]
    # Pacing counts headers too.
    assert (after - before) * 8e-6 / (last - first) == pytest.approx(80, rel=0.05)
    assert sent.info[-1].pacing_rate_mbps == pytest.approx(80, rel=0.01)


@pytest.mark.parametrize("upwards", [True, False])
def test_options_are_in_force(upwards: bool) -> None:
    options = Options(congestion="reno", pacing_mbps=50, mss_bytes=1000, window_bytes=300_000)
    sent, received = transfer(options, 0.3, upwards=upwards)
    at_sender, at_receiver = sent.options_in_force, received.options_in_force
    assert at_sender["congestion"] == "reno"
    assert at_sender["pacing_mbps"] == 50
    assert at_sender["send_buffer_bytes"] == 600_000
    assert at_receiver["receive_buffer_bytes"] == 600_000
    assert at_receiver["pacing_mbps"] is None
    # Timestamps take 12 bytes of it.
    assert at_sender["mss_bytes"] == 988
    # The window is more than the buffer's size without the kernel's overhead, up to twice that.
    window = max(info.snd_wnd or 0 for info in sent.info)
    assert 200_000 < window <= 600_000


def test_without_options_they_are_the_systems() -> None:
    sent, _ = transfer(Options(), 0.2)
    names = stream._sysctl("ipv4/tcp_congestion_control")
    assert [sent.options_in_force["congestion"]] == names
    assert sent.options_in_force["pacing_mbps"] is None


def test_a_refused_option_is_named_with_what_is_available() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    place = listener.getsockname()
    with pytest.raises(stream.OptionError) as refused:
        stream.connect(place, Options(congestion="nosuch"), "sender", timeout_s=5)
    text = str(refused.value)
    assert text.startswith("congestion = nosuch: ")
    assert "available: " in text
    assert set(text.split("available: ")[1].split(", ")) == set(stream.available())
    # A receiver's congestion control does not matter.
    stream.connect(place, Options(congestion="nosuch"), "receiver", timeout_s=5).close()
    listener.close()


def test_a_buffer_that_the_system_caps_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """As for who is not root: no SO_RCVBUFFORCE."""
    monkeypatch.setattr(stream, "_SO_RCVBUFFORCE", 9999)
    monkeypatch.setattr(stream, "_SO_SNDBUFFORCE", 9999)
    listener = socket.create_server(("127.0.0.1", 0))
    most = {
        "sender": int(stream._sysctl("core/wmem_max")[0]),
        "receiver": int(stream._sysctl("core/rmem_max")[0]),
    }
    roles: tuple[stream.Role, ...] = ("sender", "receiver")
    for role in roles:
        options = Options(window_bytes=most[role] + 4096)
        with pytest.raises(stream.OptionError) as refused:
            stream.connect(listener.getsockname(), options, role, timeout_s=5)
        name = "wmem_max" if role == "sender" else "rmem_max"
        assert f"is at most {most[role]} (net.core.{name})" in str(refused.value)
        assert f"window_bytes = {most[role] + 4096}: SO_" in str(refused.value)
        fits = Options(window_bytes=most[role])
        stream.connect(listener.getsockname(), fits, role, timeout_s=5).close()
    listener.close()


def test_a_stream_of_most_bytes_ends_when_they_are_acknowledged() -> None:
    sent, received = transfer(Options(), 5.0, most_bytes=3_000_001)
    assert (sent.bytes, received.bytes) == (3_000_001, 3_000_001)
    assert sent.duration_s < 3
    assert received.error is None


def test_a_receiver_stops_at_its_bounds() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    for how in ("stop", "most_bytes", "most_s"):
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
        stop = threading.Event()
        args = near, 10.0, threading.Event()
        thread = threading.Thread(target=stream.send, args=args, daemon=True)
        thread.start()
        if how == "stop":
            threading.Timer(0.2, stop.set).start()
        begin = time.monotonic()
        report = stream.receive(
            far,
            stop,
            most_bytes=1_000_000 if how == "most_bytes" else None,
            most_s=0.2 if how == "most_s" else None,
        )
        assert time.monotonic() - begin < 2
        assert report.bytes > 0
        assert report.error is None
        # The sender sees the reset, and ends too.
        thread.join(5)
        assert not thread.is_alive()
    listener.close()


def test_an_end_that_goes_away_is_said() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    near = socket.create_connection(listener.getsockname())
    far, _ = listener.accept()
    stream.reset(near)
    nothing = stream.receive(far, threading.Event())
    assert nothing.bytes == 0
    assert nothing.error == "receiving failed: Connection reset by peer"
    near = socket.create_connection(listener.getsockname())
    far, _ = listener.accept()
    stream.reset(near)
    report = stream.send(far, 5.0, threading.Event())
    assert report.error is not None
    assert report.error.startswith("sending failed: ")
    assert report.duration_s < 2
    listener.close()


# --- TCP_INFO ---------------------------------------------------------------------------------

SS = {
    "cwnd_segments": r"\bcwnd:(\d+)",
    "ssthresh_segments": r"\bssthresh:(\d+)",
    "rtt_ms": r"\brtt:([\d.]+)/",
    "rttvar_ms": r"\brtt:[\d.]+/([\d.]+)",
    "min_rtt_ms": r"\bminrtt:([\d.]+)",
    "retrans_total": r"\bretrans:\d+/(\d+)",
    "mss_bytes": r"\bmss:(\d+)",
    "bytes_acked": r"\bbytes_acked:(\d+)",
    "bytes_retrans": r"\bbytes_retrans:(\d+)",
    "busy_ms": r"\bbusy:(\d+)ms",
    "rwnd_limited_ms": r"\brwnd_limited:(\d+)ms",
    "sndbuf_limited_ms": r"\bsndbuf_limited:(\d+)ms",
    "snd_wnd": r"\bsnd_wnd:(\d+)",
    "reord_seen": r"\breord_seen:(\d+)",
    "dsack_dups": r"\bdsack_dups:(\d+)",
}
"""How ss says each figure; what is zero it leaves out."""


@needs_namespaces
def test_tcp_info_is_what_ss_says() -> None:
    """A socket with losses, read when it is idle again, so that both see the same."""
    with routed() as path:
        path.nft("forward ip daddr 10.78.0.1 tcp dport 5999 numgen random mod 50 0 counter drop")
        listener = within(path.far, lambda: socket.create_server((FAR, 5999)))
        options = Options(window_bytes=200_000)
        near = within(
            path.near, lambda: stream.connect((FAR, 5999), options, "sender", timeout_s=5)
        )
        far, _ = listener.accept()
        receiver = threading.Thread(
            target=stream.receive, args=(far, threading.Event()), daemon=True
        )
        receiver.start()
        near.sendall(random.Random(1).randbytes(3_000_000))
        deadline = time.monotonic() + 20
        while stream._unacknowledged(near) and time.monotonic() < deadline:
            time.sleep(0.01)
        # A probe for the tail or a delayed acknowledgement may follow.
        time.sleep(0.3)
        info = stream.read_info(near)
        said = path.near.run("ss", "-tinH", "dport", "=", ":5999")
        again = stream.read_info(near)
        assert info == again
        found = {key: re.search(pattern, said) for key, pattern in SS.items()}
        for key, match in found.items():
            mine = getattr(info, key)
            assert (mine or 0) == pytest.approx(float(match[1]) if match else 0, abs=1e-3), key
        rates = {"pacing_rate_mbps": "pacing_rate", "delivery_rate_mbps": "delivery_rate"}
        for key, name in rates.items():
            match = re.search(rf"\b{name} (\d+)bps", said)
            assert match, said
            assert getattr(info, key) == pytest.approx(float(match[1]) / 1e6, rel=1e-6), key
        # The router counts what it dropped, and TCP sent it again.
        dropped = path.dropped()
        assert dropped > 5
        assert (info.retrans_total or 0) >= dropped * 0.9
        assert info.bytes_acked == 3_000_001
        assert info.unacked_segments == 0
        assert info.notsent_bytes == 0
        assert found["bytes_retrans"]
        assert found["busy_ms"]
        near.close()
        receiver.join()
        listener.close()


def test_tcp_info_of_other_kernels() -> None:
    """Fields beyond what the kernel filled are unknown; more fields at the end do not matter."""
    numbers = struct.pack(
        "=8B24I4Q6I4Q2I2Q4I",
        *(1, 3, *range(6)),
        *(1000, 1001, 1448, 1003, 12, 1005, 2, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014),
        *(41_500, 7_250, 0x7FFFFFFF, 64, 1460, 3, 1021, 1022, 9),
        *(2**64 - 1, 1, 123_456_789_012, 1),
        *(1, 1, 5000, 40_000, 1, 1),
        *(12_500_000, 3_000_000, 2_000_000, 1_000_000),
        *(1, 1),
        *(1, 14_480),
        *(4, 5, 6, 65_535),
    )
    assert len(numbers) == 232
    info = tcp_info.parse_info(numbers + bytes(range(24)), 1.5)
    assert info == tcp_info.Info(
        time_s=1.5, cwnd_segments=64, ssthresh_segments=None, rtt_ms=41.5, rttvar_ms=7.25,
        min_rtt_ms=40.0, unacked_segments=12, retrans_total=9, lost=2, mss_bytes=1448,
        bytes_acked=123_456_789_012, bytes_retrans=14_480, notsent_bytes=5000,
        delivery_rate_mbps=100.0, pacing_rate_mbps=None, busy_ms=3000.0, rwnd_limited_ms=2000.0,
        sndbuf_limited_ms=1000.0, snd_wnd=65_535, dsack_dups=4, reord_seen=5, state=3,
    )  # fmt: skip
    # Linux 3.9 ended with tcpi_total_retrans, 4.9 with tcpi_delivery_rate.
    old = tcp_info.parse_info(numbers[:104])
    assert old.retrans_total == 9
    assert (old.bytes_acked, old.min_rtt_ms, old.snd_wnd, old.busy_ms) == (None,) * 4
    middle = tcp_info.parse_info(numbers[:168])
    assert (middle.delivery_rate_mbps, middle.min_rtt_ms) == (100.0, 40.0)
    assert (middle.busy_ms, middle.bytes_retrans) == (None, None)


@needs_namespaces
def test_a_mss_is_limited_in_both_directions_on_an_ethernet_path() -> None:
    with routed() as path:
        for host in (FAR, FAR6):
            for upwards in (True, False):
                options = Options(mss_bytes=1200, pacing_mbps=20)
                sent, _ = transfer(options, 0.2, upwards=upwards, host=host, path=path)
                assert sent.error is None
                assert sent.options_in_force["mss_bytes"] == 1188


# --- JSON -------------------------------------------------------------------------------------


def test_a_report_survives_json() -> None:
    sent, received = transfer(Options(pacing_mbps=50), 0.3)
    for report in (sent, received):
        line = json.dumps(report.to_json(), allow_nan=False)
        again = StreamReport.from_json(json.loads(line))
        assert (again.bytes, again.error) == (report.bytes, None)
        assert again.options_in_force == report.options_in_force
        assert len(again.info) == len(report.info)
        assert len(again.arrived) == len(report.arrived)
        for one, other in zip(again.arrived, report.arrived, strict=True):
            assert one == pytest.approx(other, abs=1e-5)
        for mine, theirs in zip(again.info, report.info, strict=True):
            assert mine == pytest.approx(theirs, abs=1e-5)
        few = StreamReport.from_json(report.to_json(most=7))
        assert len(few.arrived) <= 7
        assert len(few.info) <= 7
        if report.arrived:
            assert few.arrived[-1][1] == report.bytes


def test_a_long_stream_is_downsampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "MOST_ENTRIES", 20)
    sent, received = transfer(Options(pacing_mbps=50), 0.6)
    for entries in (received.arrived, sent.info):
        assert 10 <= len(entries) <= 20
    assert received.arrived[-1][1] == received.bytes
    assert sent.info[-1].time_s > 0.4


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "options is not an object"),
        ({"congestion": 5}, "congestion has the wrong type"),
        ({"congestion": "a b"}, "is not the name of a congestion control"),
        ({"congestion": "x" * 16}, "is not the name of a congestion control"),
        ({"pacing_mbps": True}, "pacing_mbps has the wrong type"),
        ({"pacing_mbps": float("nan")}, "pacing_mbps is nan, but must be"),
        ({"pacing_mbps": -1}, "pacing_mbps is -1, but must be"),
        ({"mss_bytes": 10}, "mss_bytes is 10, but must be from 88 to 32767"),
        ({"mss_bytes": 1e3}, "mss_bytes has the wrong type"),
        ({"window_bytes": 1 << 40}, "window_bytes is "),
        ({"nagle": 1}, "'nagle' is not an option"),
    ],
)
def test_options_of_a_peer_are_checked(value: object, said: str) -> None:
    with pytest.raises(ProtocolError, match=re.escape(said)):
        Options.from_json(value)


def test_options_survive_json() -> None:
    options = Options("bbr", 12.5, 1400, 1 << 20)
    assert Options.from_json(json.loads(json.dumps(options.to_json()))) == options
    assert Options().to_json() == {}
    with pytest.raises(InputError, match="window_bytes is 1, but must be from 4096 to"):
        Options(window_bytes=1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"bytes": -1}, "bytes must be a whole number"),
        ({"bytes": "9"}, "bytes must be a whole number"),
        ({"duration_s": float("inf")}, "duration_s must be a number"),
        ({"arrived": 3}, "arrived is not an object"),
        ({"arrived": {"time_s": [1.0], "bytes": []}}, "the columns of arrived differ in length"),
        ({"arrived": {"time_s": ["1"], "bytes": [1]}}, "arrived.time_s has an entry"),
        ({"info": {"time_s": [0.0] * 20_001}}, "info.time_s is not a list of at most 20000"),
        ({"error": 3}, "error is not text"),
        ({"options_in_force": []}, "options_in_force is not an object"),
    ],
)
def test_a_report_of_a_peer_is_checked(change: dict[str, Any], said: str) -> None:
    whole = {**StreamReport(bytes=1).to_json(), **change}
    with pytest.raises(ProtocolError, match=re.escape(said)):
        StreamReport.from_json(whole)
