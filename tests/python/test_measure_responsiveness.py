"""Round trips per minute, and who may have a request answered."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from airpath.measure.control import Key, stream_line
from airpath.measure.document import Responses
from airpath.measure.plan import BASE, Known, Phase, Treatment, draw, usual
from airpath.measure.responsiveness import REQUESTS, Requester, responsiveness, trimmed_mean
from airpath.measure.serve import Server, ServerOptions
from airpath.measure.session import Session

TOKEN = "0123456789abcdef0123456789abcdef"


def test_the_mean_leaves_out_the_largest_twentieth() -> None:
    assert trimmed_mean([*[10.0] * 19, 1e6]) == 10.0
    # What is not answered is as late as a request may be.
    assert trimmed_mean([10.0, None]) == pytest.approx((10 + 3000) / 2)


def test_both_kinds_of_probes_count_alike() -> None:
    """The formula of the draft for TCP only, with figures worked out by hand."""
    found: Responses = {
        "sent_s": [0.0] * 20,
        "tcp_ms": [40.0] * 20,
        "request_ms": [60.0] * 20,
        "loaded_ms": [100.0] * 40,
    }
    one = responsiveness("down", 4, [found])
    assert one is not None
    assert (one["foreign_rpm"], one["loaded_rpm"]) == (1200, 600)
    assert one["rpm"] == 900
    few: Responses = {**found, "tcp_ms": [40.0] * 5}
    assert responsiveness("down", 4, [few]) is None


def test_requests_go_beside_the_treatment_with_most_connections() -> None:
    for count, name in ((6, "streams-4"), (3, BASE)):
        treatments = usual({"cubic", "bbr"}, "cubic")[:count]
        plan = draw(1, treatments, ["down"], 90, 10**9)
        asked = {one.treatment.name for one in plan.phases if one.request_gap_s is not None}
        assert asked == {name}
    # A thousand bytes each are at most 5 % of a slow path.
    slow = draw(1, treatments, ["down"], 90, 10**9, Known(0.4))
    assert max(one.request_gap_s or 0.0 for one in slow.phases) == pytest.approx(0.4)


@pytest.mark.real_clock
def test_a_request_is_answered_once_and_only_in_its_phase() -> None:
    with (
        Server(TOKEN, ServerOptions("127.0.0.1", 0), lambda _: None).running() as server,
        Session("127.0.0.1", server.address[1], TOKEN) as session,
    ):
        key = session._key
        assert asked(server, key, 1, REQUESTS) == b""
        phase = Phase(0, 0, "tcp", "down", Treatment(BASE), 1.0, 10**6)
        answers: list[bytes] = []

        def ask() -> None:
            time.sleep(0.3)
            answers.extend(asked(server, key, 1, REQUESTS + at) for at in (5, 5, 4, 6))
            wrong = Key(b"w" * 32, key.session)
            answers.append(asked(server, wrong, 1, REQUESTS + 9))

        thread = threading.Thread(target=ask)
        thread.start()
        session.run(phase, 1.0, 10**6)
        thread.join()
        # The second and the third have a number that was used up; the last proves nothing.
        assert answers == [b"+", b"", b"", b"+", b""]


def asked(server: Server, key: Key, phase: int, number: int) -> bytes:
    with socket.create_connection(("127.0.0.1", server.address[1]), 2) as sock:
        sock.sendall(stream_line(key, phase, number))
        try:
            return sock.recv(10)
        except ConnectionResetError:
            return b""


@pytest.mark.real_clock
def test_a_server_that_does_not_answer_does_not_delay_the_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        peer = silent.getsockname()[:2]
        requester = Requester(peer, Key(b"k" * 32, "0" * 16), 1, time.monotonic(), 0.1)
        requester.start()
        time.sleep(0.3)
        begin = time.monotonic()
        found = requester.stop()
        assert time.monotonic() - begin < 1
        assert found["tcp_ms"] == []
