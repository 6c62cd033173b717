"""Captures of a measurement's own streams, and what they show."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from airpath import _core
from airpath.causes.model import ANY, packaged
from airpath.causes.rank import MODEL
from airpath.measure import packets, shown
from airpath.measure.causes import CAPACITY, leaning, name
from airpath.measure.control import ProtocolError
from airpath.measure.document import Shown
from airpath.measure.packets import Packets
from airpath.measure.plan import BASE, Phase, Treatment
from airpath.measure.session import Session
from test_measure_causes import HEALTHY, effect

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="captures need root")


@pytest.fixture
def capture() -> Iterator[Packets]:
    with closing(Packets()) as opened:
        yield opened


def exchange(family: socket.AddressFamily, port: int, sent: int) -> tuple[int, int]:
    """Send to a listener of this port on the loopback; return both ports."""
    here = "::1" if family == socket.AF_INET6 else "127.0.0.1"
    with socket.create_server((here, port), family=family) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection((here, port)) as near, listener.accept()[0] as far:
            for _ in range(sent):
                near.sendall(b"x" * 1000)
                far.recv(1000, socket.MSG_WAITALL)
            return near.getsockname()[1], port


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


@needs_root
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_port_is_captured_and_nothing_else(
    capture: Packets, tmp_path: Path, family: socket.AddressFamily
) -> None:
    port = free_port()
    with capture.capturing(port, True) as taken:
        near, _ = exchange(family, port, 50)
        exchange(family, 0, 50)
    (tmp_path / "file.pcap").write_bytes(taken())
    report = _core.read_capture(tmp_path / "file.pcap")
    (flow,) = report["flows"]
    assert (flow["client_port"], flow["server_port"]) == (near, port)
    assert flow["tcp"]
    # Each packet once, although the loopback shows it twice; and with its options.
    assert flow["tcp"]["from_client"]["data_bytes"] == 50_000
    assert flow["tcp"]["from_client"]["retransmissions"]["packets"] == 0
    assert flow["tcp"]["from_client"]["options"]
    assert report["backward_times"] == 0


@needs_root
def test_one_capture_at_a_time_and_the_next_one_is_new(capture: Packets) -> None:
    port = free_port()
    with capture.capturing(port, True) as taken:
        exchange(socket.AF_INET, port, 3)
        with capture.capturing(port, True) as other:
            pass
    assert other() == b""
    first = taken()
    assert len(first) > 1000
    with capture.capturing(port, True) as taken:
        pass
    assert len(taken()) == len(packets.pcap(np.zeros((0, 256), np.uint8)))


@needs_root
def test_a_long_capture_is_its_beginning(
    capture: Packets, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(packets, "MOST_PACKETS", 256)
    port = free_port()
    with capture.capturing(port, True) as taken:
        exchange(socket.AF_INET, port, 500)
    (tmp_path / "file.pcap").write_bytes(taken())
    report = _core.read_capture(tmp_path / "file.pcap")
    assert report["packets"] <= 256
    assert report["flows"][0]["tcp"]


@needs_root
def test_without_memory_for_it_a_capture_is_empty(
    capture: Packets, monkeypatch: pytest.MonkeyPatch
) -> None:
    port = free_port()
    with monkeypatch.context() as less:
        less.setattr(packets, "MOST_PACKETS", (1 << 32) - 1)
        with capture.capturing(port, True) as taken:
            exchange(socket.AF_INET, port, 3)
    assert taken() == b""
    with capture.capturing(port, True) as taken:
        exchange(socket.AF_INET, port, 3)
    assert len(taken()) > 1000


@needs_root
def test_a_capture_can_be_used_after_root_is_given_up(tmp_path: Path) -> None:
    opened = Packets()
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)
        port = free_port()
        with opened.capturing(port, True) as taken:
            exchange(socket.AF_INET, port, 20)
        os.write(write, str(len(taken())).encode())
        os._exit(0)
    os.waitpid(child, 0)
    opened.close()
    assert int(os.read(read, 20)) > 1000
    os.close(read)
    os.close(write)


def test_without_the_right_captures_are_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> socket.socket:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(socket, "socket", refuse)
    with closing(Packets()) as opened:
        assert "not permitted" in opened.refused
        with opened.capturing(5, True) as taken:
            pass
        assert taken() == b""


def test_what_is_no_capture_shows_nothing() -> None:
    assert shown.judged(b"", [1]) is None
    assert shown.judged(b"\xff" * 500, [1]) is None
    assert shown.judged(packets.pcap(np.zeros((0, 256), np.uint8)), [1]) is None


# --- From captures to causes ----------------------------------------------------------------------


def opinion(cause: str, sure: float, any_cause: float = 0.99) -> Shown:
    every = dict.fromkeys(packaged(MODEL).forests, 0.001)
    return {
        "probabilities": {**every, ANY: any_cause, cause: sure},
        "causes": [{"cause": cause, "cost": 0.5, "evidence": "It is seen.", "advice": "Do it."}],
    }


def test_captures_are_pooled_by_their_odds() -> None:
    found = shown.pooled([opinion("handover", 0.9), opinion("handover", 0.5)])
    assert found["handover"] == pytest.approx(0.75)  # odds of 9 and 1: 3
    assert shown.pooled([]) == {}


def test_what_no_treatment_removes_is_inferred() -> None:
    seen = replace(HEALTHY, shown=[opinion("handover", 0.9), opinion("handover", 0.6)])
    (first,) = name(seen)
    assert first.cause == "handover"
    assert first.confidence == pytest.approx(0.786, abs=0.001)
    assert "inferred" in first.evidence


def test_what_a_treatment_removed_is_not_overruled() -> None:
    several = replace(HEALTHY.rate["streams-4"], factor=3.0, low=2.5, high=3.5, after=30.0)
    seen = replace(
        HEALTHY,
        rate={**HEALTHY.rate, "streams-4": several},
        limited={"receive_window": 0.9, "send_buffer": 0.0},
        shown=[opinion("handover", 0.9)],
    )
    assert [one.cause for one in name(seen)] == ["receive-window"]


def test_unlikely_causes_are_not_named() -> None:
    (one,) = name(replace(HEALTHY, shown=[opinion("handover", 0.3, 0.4)]))
    assert one.cause == CAPACITY


def test_what_is_unknown_has_likeliest_causes() -> None:
    seen = replace(HEALTHY, shown=[opinion("handover", 0.3)])
    (first, sure), *_ = leaning(seen)
    assert first == "handover"
    assert sure == pytest.approx(0.3)
    assert leaning(replace(HEALTHY, shown=[opinion("handover", 0.9)])) == []
    assert leaning(HEALTHY) == []


@pytest.mark.parametrize(
    ("cause", "left", "named"),
    [
        ("policer", 0.001, "policer"),
        ("policer", 0.9, CAPACITY),
        ("random-loss", 0.9, "random-loss"),
        ("random-loss", 0.001, CAPACITY),
    ],
)
def test_a_treatment_overrules_what_captures_make_likely(
    cause: str, left: float, named: str
) -> None:
    loss = {"paced": effect("paced", left, 0.01)}
    seen = replace(HEALTHY, loss=loss, shown=[opinion(cause, 0.9)])
    assert [one.cause for one in name(seen)] == [named]


@pytest.mark.parametrize(("least_ms", "named"), [(24.9, False), (15.0, True), (None, True)])
def test_a_ue_that_does_not_sleep_on_an_idle_path_has_no_drx(
    least_ms: float | None, named: bool
) -> None:
    """Sparse probes take 25 ms, which is no wait if the smallest of them takes as long."""
    seen = replace(
        HEALTHY, sparse=replace(HEALTHY.sparse, least_ms=least_ms), shown=[opinion("drx", 0.9)]
    )
    assert ("drx" in [one.cause for one in name(seen)]) is named


@pytest.mark.parametrize(
    ("shown", "named"),
    [
        ([], ["random-loss"]),
        ([opinion("random-loss", 0.4)], ["random-loss"]),
        # What is retransmitted was not lost.
        ([opinion("reordering", 0.9)], ["reordering"]),
        ([opinion("reordering", 0.4)], []),
    ],
)
def test_captures_tell_why_segments_are_retransmitted(shown: list[Shown], named: list[str]) -> None:
    seen = replace(
        HEALTHY,
        rate={**HEALTHY.rate, "bbr": effect("bbr", 3.0), "streams-4": effect("streams-4", 1.0)},
        loss={"paced": effect("paced", 0.95, 0.01)},
        base_loss=0.01,
        shown=shown,
    )
    assert [one.cause for one in name(seen)] == named


def test_the_length_of_the_test_is_no_cause() -> None:
    (one,) = name(replace(HEALTHY, shown=[opinion("test-too-short", 0.9)]))
    assert one.cause == CAPACITY


@pytest.mark.parametrize(
    "damage",
    [
        {"probabilities": {"handover": 2.0}, "causes": []},
        {"probabilities": [], "causes": []},
        {"probabilities": {}, "causes": [{"cause": 3}]},
        "much",
    ],
)
def test_what_the_far_end_sends_is_checked(damage: object) -> None:
    with pytest.raises(ProtocolError, match="the far end's capture is damaged"):
        shown.from_json(damage)


# --- The far end's rights -------------------------------------------------------------------------


@needs_root
@pytest.mark.real_clock
def test_a_server_with_the_right_captures_and_gives_it_up(tmp_path: Path) -> None:
    raw = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=+net_raw")
    python = (*raw, "--ambient-caps=+net_raw", sys.executable)
    if subprocess.run([*python, "-c", "import airpath"], check=False).returncode:
        pytest.skip("an ordinary user cannot run airpath here")
    token = "0123456789abcdef" * 2
    (tmp_path / "token").write_text(token)
    for place, mode in ((tmp_path / "token", 0o400), (tmp_path, 0o500)):
        os.chown(place, 65534, 65534)
        place.chmod(mode)
    options = ["--host", "127.0.0.1", "--port", "0", "--token-file", "token"]
    with subprocess.Popen(
        [*python, "-m", "airpath", "serve", *options, "--most-rate", "20Mb/s"],
        stdout=subprocess.PIPE, text=True, cwd=tmp_path,
    ) as server:  # fmt: skip
        try:
            assert server.stdout
            words = server.stdout.readline().split()
            status = Path(f"/proc/{server.pid}/status").read_text()
            assert "CapEff:\t0000000000000000" in status
            assert "CapPrm:\t0000000000000000" in status
            with Session("127.0.0.1", int(words[words.index("--port") + 1]), token) as near:
                phase = Phase(1, 0, "tcp", "down", Treatment(BASE), 1.5, 1 << 30)
                outcome = near.run(phase, None, 1 << 30)
        finally:
            server.kill()
    assert set(outcome.shown) == {"near", "far"}
    assert outcome.packets


def test_captures_overrule_a_slow_start_that_something_else_explains() -> None:
    slow = replace(HEALTHY, base_loss=0.0, goodput={"bbr": effect("bbr", 1.5)}, ramp_s=2.0)
    assert name(slow)[0].cause == "slow-start-exit"
    assert name(replace(slow, shown=[opinion("drx", 0.2)]))[0].cause == "slow-start-exit"
    assert name(replace(slow, shown=[opinion("ack-starvation", 0.9)]))[0].cause == "ack-starvation"


def test_a_cause_that_was_seen_is_not_inferred_again_by_another_name() -> None:
    """From packets alone sleep, grants and held acknowledgements look alike."""
    seen = replace(
        HEALTHY,
        sparse=replace(HEALTHY.sparse, waits=(50.0, 20.0, 0.5)),
        idle_ms={"keep-alive": effect("keep-alive", 1.0, 70.0)},
        loaded_ms={"paced": effect("paced", 0.8, 88.0)},
        shown=[opinion("drx", 0.9)],
    )
    first, *others = name(seen)
    assert first.cause == "ack-batching"
    assert first.confidence == pytest.approx(0.9)
    assert "drx" not in [one.cause for one in others]
