from __future__ import annotations

from typing import Any

import pytest

from airpath.base import text
from airpath.runs import describe


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (4.357, "4.36 Mb/s"), (0.43, "430 kb/s"), (0.0622, "62.2 kb/s"), (0, "0 Mb/s"),
        (205.4, "205 Mb/s"), (1234.0, "1.23 Gb/s"), (99.96, "100 Mb/s"), (None, "no rate"),
    ],
)  # fmt: skip
def test_rate(value: float | None, words: str) -> None:
    assert text.rate(value) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [(61.4, "61 ms"), (0.312, "0.312 ms"), (9.99, "9.99 ms"), (1240, "1.24 s"), (None, "none")],
)
def test_milliseconds(value: float | None, words: str) -> None:
    assert text.milliseconds(value) == words


def test_counts_and_sizes() -> None:
    assert text.count(4.0) == "4"
    assert text.count(2.5) == "2.5"
    assert text.count(1_234_567) == "1,234,567"
    assert text.digits(1205.2) == "1205"
    assert text.size(65_536) == "65.5 kB"
    assert text.size(812) == "812 B"
    assert text.percent(0.004) == "0.4 %"
    assert text.plural(2, "loss") == "2 losses"


FLOW: Any = {
    "id": "download", "kind": "bulk", "direction": "down", "congestion": "cubic",
    "profile": "linux-6.1", "goodput_mbps": 4.36, "rtt_ms": {"p50": 61.2},
    "retransmitted_segments": 0, "rto_count": 0, "completed_s": None,
    "limited_s": {"cwnd": 8.8, "receive_window": 1.2, "send_buffer": 0.0, "application": 0.0},
}  # fmt: skip


def test_moments_are_written_as_people_do() -> None:
    assert text.moment("2026-11-29T14:55:06+00:00") == "2026-11-29 14:55:06 UTC"
    assert text.moment("2026-11-29T14:55:06+01:00") == "2026-11-29T14:55:06+01:00"


def test_one_sentence_a_flow() -> None:
    assert describe.flow_sentence(FLOW) == (
        "download: 4.36 Mb/s down (cubic, endpoints: linux-6.1), RTT 61 ms median, "
        "12 % of the time limited by the receive window"
    )


def test_a_flow_that_never_started() -> None:
    flow: Any = {**FLOW, "goodput_mbps": None}
    assert describe.flow_sentence(flow) == "download: did not start"


def test_a_file_says_how_long_it_took() -> None:
    flow: Any = {**FLOW, "kind": "file", "completed_s": 1.6, "bytes_delivered": 10_000_000}
    assert "10 MB in 1.60 s" in describe.flow_sentence(flow)


def test_udp_says_what_was_lost() -> None:
    flow: Any = {
        "id": "voice", "kind": "udp", "direction": "up", "congestion": None, "profile": None,
        "goodput_mbps": 0.064, "packets_sent": 1000, "packets_lost": 4,
        "delay_ms": {"p50": 30.9}, "jitter_ms": 0.21,
    }  # fmt: skip
    assert describe.flow_sentence(flow) == (
        "voice: 64 kb/s up, 0.4 % lost, one-way delay 31 ms median, jitter 0.21 ms"
    )


def test_a_ping_without_reply() -> None:
    ping: Any = {"id": "ping", "sent": 10, "lost": 10, "rtt_ms": None}
    assert describe.ping_sentence(ping) == "ping: 10 sent, 10 lost, no reply"
    ping["lost"] = 9
    assert describe.ping_sentence(ping) == (
        "ping: 10 sent, 9 lost, 1 still on the way at the end, no reply"
    )


def test_a_proxy_names_its_window_and_its_legs() -> None:
    assert "limited by the proxy's receive window" in describe.flow_sentence(FLOW, proxied=True)
    summary: Any = {"flows": [FLOW], "proxies": [{"id": "download"}]}
    assert describe.leg_name("download", summary) == "download, server to proxy"
    assert describe.leg_name("download@proxy", summary) == "download, proxy to UE"
    assert describe.leg_name("ping", summary) == "ping"


def test_a_breakdown_says_which_limits_it_leaves_out() -> None:
    part: Any = {"part": "host", "place": "down.1.modem", "ms": 43.0, "share": 1.0}
    flow: Any = {
        "goodput_mbps": {"capacity": 470.0, "place": "down.2.link", "goodput": 70.0, "parts": []},
        "rtt_ms": {"mean": 43.0, "parts": [part]}, "delay_ms": None,
    }  # fmt: skip
    summary: Any = {"findings": [{"cause": "modem-ceiling", "subject": "down.1.modem"}]}
    goodput, rtt = describe.breakdown_parts(flow, summary)
    assert goodput[1] == "470 Mb/s at down.2.link, without the packet-rate limit of down.1.modem"
    assert rtt[2][0][0] == "modem (down.1.modem)"
