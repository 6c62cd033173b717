"""What tools print is told rightly: each form that was once read wrongly, and what is said."""

from __future__ import annotations

import json
import re
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
import pytest

from airpath.causes import tools
from airpath.diagnose import datagrams
from airpath.diagnose.files import diagnose
from airpath.diagnose.together import is_one_case, together
from airpath.diagnose.told import told_by
from airpath.errors import InputError
from airpath.readers import iperf, ping, ss
from airpath.readers.recognise import Recognised, recognise

if TYPE_CHECKING:
    from airpath.causes.rank import BlameDocument
    from airpath.documents import SequenceReport

VERBOSE = """\
iperf 3.12
Linux ue 6.1.0 #1 SMP x86_64
Control connection MSS 1348
Time: Fri, 27 Nov 2026 19:0{minute}:14 GMT
Connecting to host 10.0.0.1, port 5201
      Cookie: aaa
      TCP MSS: 1348 (default)
[  5] local 10.45.0.2 port 40000 connected to 10.0.0.1 port 5201
Starting Test: protocol: TCP, 1 streams, 131072 byte blocks, omitting 0 seconds, 2 second test
[ ID] Interval           Transfer     Bitrate         Retr  Cwnd
[  5]   0.00-1.00   sec  2.50 MBytes  21.0 Mbits/sec    3    352 KBytes
[  5]   1.00-2.00   sec  2.38 MBytes  19.9 Mbits/sec    2    300 KBytes
Test Complete. Summary Results:
[  5]   0.00-2.00   sec  4.88 MBytes  20.5 Mbits/sec    5             sender
[  5]   0.00-2.04   sec  4.80 MBytes  19.9 Mbits/sec                  receiver
"""
VERBOSE_AT_SERVER = """\
Server listening on 5201 (test #1)
Time: Fri, 27 Nov 2026 19:0{minute}:14 GMT
Accepted connection from 10.45.0.2, port 39998
[  5] local 10.0.0.1 port 5201 connected to 10.45.0.2 port 40000
[  5]   0.00-1.00   sec  2.50 MBytes  21.0 Mbits/sec
[  5]   0.00-1.04   sec  2.50 MBytes  20.6 Mbits/sec                  receiver
"""


@pytest.mark.parametrize("form", [VERBOSE, VERBOSE_AT_SERVER])
def test_the_time_of_iperf3_v_is_of_the_test_that_follows_it(form: str) -> None:
    head, first = form.split("Time: ", maxsplit=1)[0], form.replace("{minute}", "7")
    time, line = (one + "\n" for one in first.removeprefix(head).splitlines()[:2])
    earlier = first.replace(time + line, line + time)
    for text in (first, earlier, first.replace("Server listening", "iperf 3.12\nServer listening")):
        output = iperf.read(text + text.replace("19:07", "19:08"))
        assert [one.start_time_s for one in output.tests] == [1795806434.0, 1795806494.0]
        assert [len(one.connections) for one in output.tests] == [1, 1]
        assert output.remarks == []


ROUNDED = """\
[  5]   0.00-1.00   sec  0.00 GBytes  0.11 GBytes/sec    0   0.00 GBytes
[  5]   1.00-2.00   sec  0 MBytes  94 Mbits/sec    0   0 MBytes
[  5]   2.00-3.00   sec  0 MBytes  94 Mbits/sec    0   0 MBytes
"""
NOT_MEASURED = {
    "start": {"test_start": {"protocol": "TCP"}},
    "intervals": [
        {"streams": [{"start": at, "end": at + 1, "bytes": 9 << 20, "snd_cwnd": 0, "rtt": rtt}]}
        for at, rtt in enumerate([0, 40000, 0])
    ],
}


@pytest.mark.parametrize("text", [ROUNDED, json.dumps(NOT_MEASURED)])
def test_a_window_or_a_round_trip_of_0_is_unknown(text: str, tmp_path: Path) -> None:
    rows = iperf.read(text).tests[0].streams
    assert {one.cwnd_bytes for one in rows} == {None}
    assert {one.rtt_us for one in rows} <= {None, 40000}
    assert all(one.bytes > 9_000_000 for one in rows)
    file = tmp_path / "iperf3"
    file.write_text(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert diagnose(str(file))["causes"]["verdict"]


def test_features_take_zeros_of_windows_and_round_trips_as_unknown() -> None:
    zeros = np.array([[1e6, 0.0, 0.0, 0.0], [1e6, 0.0, 9e4, 20.0], [1e6, 0.0, 9e4, 20.0]])
    unknown = np.where(zeros == 0, [0, 0, np.nan, np.nan], zeros)
    found, same = (tools.features(tools.Told([one])) for one in (zeros, unknown))
    assert list(found) == list(same)
    assert np.array_equal(list(found.values()), list(same.values()), equal_nan=True)


FPING_Q = """\
192.0.2.1 : xmt/rcv/%loss = 10/9/10%, min/avg/max = 40.1/45.2/90.1
192.0.2.2 : xmt/rcv/%loss = 10/0/100%
"""


def test_the_counts_of_fping_are_no_round_trips() -> None:
    first, second = ping.read(FPING_Q).document()["runs"]
    assert (first["sent"], first["lost"]) == (10, 1)
    assert first["rtt_ms"] == {"min": 40.1, "mean": 45.2, "max": 90.1}
    assert (second["sent"], second["lost"], second["rtt_ms"]) == (10, 10, None)


@pytest.mark.parametrize("total", ["", "192.0.2.1 : xmt/rcv/%loss = 20/19/5%, min/avg/max = 1/2/3"])
def test_each_interval_of_fping_is_counted_once(total: str) -> None:
    row = "192.0.2.1 : xmt/rcv/%loss = 10/{}%, min/avg/max = 40.1/45.2/90.1\n"
    text = f"[19:07:14]\n{row.format('9/10')}[19:07:24]\n{row.format('10/0')}{total}\n"
    document = ping.read(text).document()
    assert (document["sent"], document["lost"], len(document["runs"])) == (20, 1, 2)


def test_all_round_trips_of_fping_are_read() -> None:
    first, second = ping.read("192.0.2.1 : 23.1 24.2 - 25.0 -\nfd00::2 : - -\n").runs
    assert [one.rtt_ms for one in first.replies] == [23.1, 24.2, 25.0]
    assert (first.sent, first.lost, first.errors[0]) == (5, 2, (2, ping.NO_ANSWER))
    assert (second.address, second.sent, second.lost) == ("fd00::2", 2, 2)
    with pytest.raises(InputError):
        ping.read("Total : 5 6 7\n")


LIKE_PING = {
    "owping": "--- owping statistics from [ue]:8760 to [srv]:8761 ---\n"
    "100 sent, 3 lost (3.000%), 0 duplicates\n"
    "one-way delay min/median/max = 20.1/22.3/40.1 ms, (err=0.5 ms)\n",
    "paping": "paping v1.5.5 - Copyright\n\nConnecting to 192.0.2.1 on TCP 443:\n\n"
    "Connected to 192.0.2.1: time=44.09ms protocol=TCP port=443\nConnection timed out\n\n"
    "Connection statistics:\n\tAttempted = 2, Connected = 1, Failed = 1 (50.00%)\n",
    "tcping": "TCPinging 192.0.2.1 on port 443\n"
    "Reply from 192.0.2.1 (192.0.2.1) on port 443 TCP_conn=1 time=44.9 ms\n\n"
    "--- 192.0.2.1 (192.0.2.1) TCPing statistics ---\n"
    "3 probes transmitted on port 443 | 2 received, 33.33% packet loss\n",
    "tcping, which": "Ping tcp://192.0.2.1:443(192.0.2.1:443) connected - time=44.95ms\n\n"
    "Ping statistics tcp://192.0.2.1:443\n\t3 probes sent.\n",
    "line 3 looks like the output of tcping": "\n** Pinging continuously. **\n"
    "Probing 192.0.2.1:443/tcp - Port is open - time=44.953ms\n\n"
    "Ping statistics for 192.0.2.1:443\n     2 successful, 1 failed.  (33.33% fail)\n",
    "PsPing": "PsPing v2.12 - PsPing - ping, latency, bandwidth measurement utility\n\n"
    "Pinging 192.0.2.1 with 32 bytes of data:\n5 iterations (warmup 1) ping test:\n"
    "Reply from 192.0.2.1: 44.95ms\n\nPing statistics for 192.0.2.1:\n"
    "  Sent = 4, Received = 3, Lost = 1 (25% loss),\n",
    "nping": "Starting Nping 0.7.93 ( https://nmap.org/nping ) at 2026-11-27 19:07 UTC\n"
    "SENT (0.0375s) ICMP [192.0.2.2 > 192.0.2.1 Echo request (type=8/code=0) id=1 seq=1]\n",
    "arping": "ARPING 192.0.2.1\n60 bytes from aa:bb:cc:dd:ee:ff (192.0.2.1): index=0 "
    "time=5.023 msec\n\n--- 192.0.2.1 statistics ---\n"
    "3 packets transmitted, 2 packets received,  33% unanswered (0 extra)\n",
    "httping": "PING 192.0.2.1:80 (/):\nconnected to 192.0.2.1:80 (320 bytes), seq=0 time= 90 ms\n"
    "--- http://192.0.2.1/ ping statistics ---\n2 connects, 2 ok, 0.00% failed, time 2181ms\n",
    "fping's list": "192.0.2.1 is alive (45.1 ms)\n192.0.2.2 is unreachable\n",
}
PING = """\
PING 192.0.2.9 (192.0.2.9) 56(84) bytes of data.
64 bytes from 192.0.2.9: icmp_seq=1 ttl=57 time=20 ms
--- 192.0.2.9 ping statistics ---
1 packets transmitted, 1 received, 0% packet loss, time 0ms
"""


@pytest.mark.parametrize("what", LIKE_PING)
def test_what_is_like_ping_is_named_and_not_counted(what: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text(LIKE_PING[what])
    with pytest.raises(InputError, match=f"{what}.*ping -D"):
        diagnose(str(file))
    file.write_text(PING + LIKE_PING[what] + PING)
    document = diagnose(str(file))
    assert (document["ping"]["sent"], document["ping"]["lost"]) == (2, 0)
    remarks = [one["text"] for one in document["statements"] if one["kind"] == "remark"]
    assert what.startswith("fping") or "which is not read" in "".join(remarks)


HEAD = """\
Connecting to host 192.0.2.1, port 5201
[  5] local 198.51.100.2 port 40000 connected to 192.0.2.1 port 5201
"""
STUCK = [("85.0 KBytes   696 Kbits", "2   1.41 KBytes")] + [
    ("0.00 Bytes  0.00 bits", "1   1.41 KBytes")
] * 4
"""The rates and windows of a client behind an MTU black hole."""


def _rows(rows: Sequence[tuple[str, str]]) -> str:
    return "".join(
        f"[  5]   {at}.00-{at + 1}.00   sec  {rate}/sec    {rest}\n"
        for at, (rate, rest) in enumerate(rows)
    )


def _said(text: str, tmp_path: Path) -> tuple[dict[str, str], bool]:
    """The statements by kind, and whether causes were inferred."""
    file = tmp_path / "file"
    file.write_text(text)
    document = diagnose(str(file))
    return {one["kind"]: one["text"] for one in document["statements"]}, "causes" in document


NOTHING = "[  5]   0.00-5.04   sec  0.00 Bytes  0.00 bits/sec                  receiver\n"
SENT = "[  5]   0.00-5.00   sec  85.0 KBytes   139 Kbits/sec    4             sender\n"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (HEAD + _rows(STUCK) + SENT + NOTHING, "nothing-arrived"),
        (HEAD + _rows([(rate, "") for rate, _ in STUCK]) + SENT + NOTHING, "nothing-arrived"),
        (HEAD.replace("\n[", "\nReverse mode, remote host 192.0.2.1 is sending\n[")
         + _rows([("0.00 Bytes  0.00 bits", "")] * 5) + SENT + NOTHING, "nothing-arrived"),
        (HEAD.replace("Connecting to host 192.0.2.1,", "Accepted connection from 192.0.2.1,")
         + _rows([("0.00 Bytes  0.00 bits", "")] * 5) + NOTHING, "nothing-arrived"),
        (HEAD + _rows(STUCK), "stood-still"),
        (HEAD + _rows(STUCK) + SENT + NOTHING + "iperf3: interrupt - the client has terminated\n",
         "stood-still"),
    ],
)  # fmt: skip
def test_where_a_standstill_is_seen_nothing_is_inferred(
    text: str, kind: str, tmp_path: Path
) -> None:
    said, inferred = _said(text, tmp_path)
    assert "an outage or an MTU black hole" in said[kind]
    assert not {"nothing-arrived", "stood-still"} - {kind} & set(said)
    assert "sender-counts-writes" not in said
    assert not inferred


def test_a_standstill_that_ends_is_an_outage(tmp_path: Path) -> None:
    moves = ("12.5 MBytes   105 Mbits", "0   300 KBytes")
    said, inferred = _said(HEAD + _rows([*STUCK[1:], *[moves] * 4][2:]), tmp_path)
    assert "stood-still" not in said
    said, inferred = _said(HEAD + _rows([moves, *STUCK[1:], *[moves] * 3]), tmp_path)
    assert said["stood-still"].endswith("retransmissions do not arrive, as in an outage.")
    assert inferred


def _black_hole(first: int, received: int, error: str | None = None) -> dict[str, object]:
    stream = {"snd_cwnd": 1448, "retransmits": 1, "rtt": 40000, "sender": True}
    intervals = [
        {"streams": [{"start": at, "end": at + 1, "bytes": 0 if at else first, **stream}]}
        for at in range(6)
    ]
    end = {
        "sum_sent": {"start": 0, "end": 6, "bytes": first, "retransmits": 6},
        "sum_received": {"start": 0, "end": 6.04, "bytes": received},
    }
    start = {"test_start": {"protocol": "TCP"}}
    document: dict[str, object] = {"start": start, "intervals": intervals, "end": end}
    return document if error is None else {**document, "error": error}


def test_a_total_of_0_is_one_where_results_were_exchanged(tmp_path: Path) -> None:
    said, inferred = _said(json.dumps(_black_hole(87040, 0)), tmp_path)
    assert "nothing-arrived" in said
    assert ("remark" in said, inferred) == (False, False)
    said, inferred = _said(json.dumps(_black_hole(0, 0)), tmp_path)
    assert "nothing-arrived" in said
    assert ("remark" in said, inferred) == (False, False)
    interrupted = _black_hole(87040, 0, "interrupt - the client has terminated")
    (test,) = iperf.read(json.dumps(interrupted)).tests
    assert test.received is None
    assert test.remarks[0].startswith("sum_received is 0, although intervals are not")
    said, inferred = _said(json.dumps(interrupted), tmp_path)
    assert "black hole" in said["stood-still"]
    assert not inferred


def test_a_sender_that_wrote_nothing_is_no_black_hole(tmp_path: Path) -> None:
    idle = [("0.00 Bytes  0.00 bits", "0   33.9 KBytes")] * 5
    idle_sent = SENT.replace("85.0 KBytes   139 K", "0.00 Bytes  0.00 ").replace(" 4 ", " 0 ")
    text = HEAD + _rows(idle) + idle_sent + NOTHING
    said, inferred = _said(text, tmp_path)
    assert said["nothing-arrived"].startswith(
        "No data moved in 5.04 s, and nothing was retransmitted"
    )
    assert not inferred


UDP = """\
Connecting to host 192.0.2.1, port 5201
[  5] local 198.51.100.2 port 40000 connected to 192.0.2.1 port 5201
[  5]   0.00-1.00   sec   129 KBytes  1.05 Mbits/sec  94
[  5]   1.00-2.00   sec   128 KBytes  1.05 Mbits/sec  93
[  5]   0.00-2.00   sec   257 KBytes  1.05 Mbits/sec  0.000 ms  0/187 (0%)  sender
[  5]   0.00-2.04   sec  {}  0.210 ms  {}  receiver
"""


def test_datagrams_that_do_not_arrive_are_told_of(tmp_path: Path) -> None:
    for rate, lost, text in (
        ("180 KBytes  723 Kbits/sec", "56/187 (30%)", "29.95% of the datagrams did not arrive"),
        ("0.00 Bytes  0.00 bits/sec", "0/0 (0%)", "No datagram arrived"),
    ):
        said, _ = _said(UDP.format(rate, lost), tmp_path)
        assert said["udp-loss"].startswith(text)
        assert lost[:2] in said["iperf3"] or "187 packets lost of 187" in said["iperf3"]
    said, _ = _said(UDP.format("257 KBytes  1.05 Mbits/sec", "0/187 (0%)"), tmp_path)
    assert "udp-loss" not in said
    interrupted = UDP.format("0.00 Bytes  0.00 bits/sec", "0/0 (0%)")
    said, _ = _said(interrupted + "iperf3: interrupt - the client has terminated\n", tmp_path)
    assert "udp-loss" not in said


@pytest.mark.parametrize("header", ["number", "rtp", "iperf3", "iperf3-64"])
def test_the_number_that_counts_datagrams_is_named_in_words(header: str) -> None:
    numbers = {
        "header": header, "expected": 100, "lost": 3, "longest_gap": 1, "out_of_order": 0,
        "duplicates": 0, "jitter_ms": None,
    }  # fmt: skip
    text = datagrams._numbers(cast("SequenceReport", numbers))
    assert re.search(r"by the (number with which each begins|sequence numbers of \w+), at", text)
    assert "of number" not in text
    assert "iperf3-64" not in text


SOCKET = """\
{at}
ESTAB {unread} 0 192.0.2.1:{port} 198.51.100.2:40001
\t cubic rtt:40.5/10 mss:1348 cwnd:100 bytes_sent:{sent} bytes_acked:{sent} segs_out:{segments}\
 bytes_received:{received} rcv_space:14480 unacked:20 minrtt:40.1
"""


def _socket(at: int, second: int, *, port: int = 5201, unread: int = 0, sends: bool = True) -> str:
    moved = second * 2_500_000
    return SOCKET.format(
        at=1795806430 + at, port=port, unread=unread, segments=second * 1800 + 2,
        sent=moved if sends else 38, received=0 if sends else moved,
    )  # fmt: skip


@pytest.mark.parametrize("ports", [(5201, 5201), (5201, 5202)])
def test_connections_one_after_the_other_are_not_added(ports: tuple[int, int]) -> None:
    text = "".join(
        _socket(10 * place + second, second, port=port)
        for place, port in enumerate(ports)
        for second in range(5)
    )
    told = told_by([ss.read(text)])
    assert told is not None
    assert [round(float(np.median(one[:, 0]))) for one in told.streams] == [2_500_000]
    together = "".join(_socket(at, at, port=port) for at in range(5) for port in (5201, 5202))
    told = told_by([ss.read(together)])
    assert told is not None
    assert len(told.streams) == 2


def test_an_application_that_does_not_read_is_told_of(tmp_path: Path) -> None:
    for unread, known in ((6291456, True), (4000, False)):
        text = "".join(_socket(at, at, unread=unread, sends=False) for at in range(5))
        said, _ = _said(text, tmp_path)
        assert ("application-limited" in said) is known
    text = "".join(_socket(at, at, unread=6291456 * (at == 3), sends=False) for at in range(5))
    assert "application-limited" not in _said(text, tmp_path)[0]


DEAD = """\
{state} 0 1444000 192.0.2.1:5201 198.51.100.2:40001
\t cubic rto:51200 backoff:{timeouts} mss:1448 cwnd:1 bytes_sent:180000 bytes_retrans:11584\
 bytes_acked:160000 segs_out:140 lastack:90000 busy:120000ms {unacked} retrans:1/8 lost:10
"""


def test_a_connection_that_nothing_answers_is_told_of(tmp_path: Path) -> None:
    said, _ = _said(DEAD.format(state="ESTAB", timeouts=8, unacked="unacked:10"), tmp_path)
    assert "8 timeouts in a row" in said["unanswered"]
    assert "the last acknowledgement came 90 s before" in said["unanswered"]
    assert "retransmissions" not in said
    said, _ = _said(DEAD.format(state="ESTAB", timeouts=1, unacked="unacked:10"), tmp_path)
    assert "unanswered" not in said
    # The persist timer of a closed window counts too, but has nothing outstanding.
    said, _ = _said(DEAD.format(state="ESTAB", timeouts=8, unacked=""), tmp_path)
    assert "unanswered" not in said
    opening = "SYN-SENT 0 1 192.0.2.1:5201 198.51.100.2:40001\n\t cubic rto:8000 backoff:3 mss:524 "
    said, _ = _said(f"{opening}cwnd:1 segs_out:4 retrans:1/3 lost:1\n", tmp_path)
    assert "4 segments that should open it had no answer" in said["unanswered"]
    assert "retransmitted" not in said["ss"]


COMPOSED = """\
client-1  | Connecting to host 192.0.2.1, port 5201
client-1  | [  5] local 198.51.100.2 port 40000 connected to 192.0.2.1 port 5201
client-1  | [  5]   0.00-1.00   sec  10.0 MBytes  83.9 Mbits/sec    4    300 KBytes
server-1  | Accepted connection from 198.51.100.2, port 39998
server-1  | [  5] local 192.0.2.1 port 5201 connected to 198.51.100.2 port {port}
server-1  | [  5]   0.00-1.00   sec  9.80 MBytes  82.2 Mbits/sec
client-1  | [  5]   1.00-2.00   sec  10.0 MBytes  83.9 Mbits/sec    4    300 KBytes
server-1  | [  5]   1.00-2.00   sec  9.80 MBytes  82.2 Mbits/sec
client-1  | [  5]   0.00-2.00   sec  20.0 MBytes  83.9 Mbits/sec    8             sender
client-1  | [  5]   0.00-2.04   sec  19.6 MBytes  80.6 Mbits/sec                  receiver
server-1  | [  5]   0.00-2.04   sec  19.6 MBytes  80.6 Mbits/sec                  receiver
client-1  | iperf Done.
"""


@pytest.mark.parametrize("form", ["{}  | ", "[pod/{}/iperf] "])
def test_logs_of_several_programs_are_read_apart(form: str) -> None:
    text = COMPOSED.format(port=40009)
    for name in ("client-1", "server-1"):
        text = text.replace(f"{name}  | ", form.format(name))
    output = iperf.read(text)
    assert [(one.server, len(one.streams), one.complete) for one in output.tests] == [
        (False, 2, True), (True, 2, True),
    ]  # fmt: skip
    assert output.remarks == []
    pings = "".join(
        f"{name}  | 64 bytes from {name}: icmp_seq={seq} ttl=57 time={seq} ms\n"
        for seq in range(1, 4)
        for name in ("a.example", "b.example")
    )
    assert [(run.sent, run.address) for run in ping.read(pings).runs] == [
        (3, "a.example"), (3, "b.example"),
    ]  # fmt: skip


def test_both_ends_of_a_test_are_one() -> None:
    (test,) = iperf.read(COMPOSED.format(port=40000)).tests
    assert not test.server
    assert test.far is not None
    assert [one.bytes for one in test.far.streams] == [round(9.8 * (1 << 20))] * 2


def _json_test(tmp_path: Path, *, server: bool, cookie: str = "c1") -> Recognised:
    ends = ["192.0.2.1", 5201, "198.51.100.2", 40000 + server]
    local = dict(zip(["local_host", "local_port", "remote_host", "remote_port"],
                     ends if server else ends[2:] + ends[:2], strict=True))  # fmt: skip
    figures = {"sender": False} if server else {"snd_cwnd": 500_000, "rtt": 180_000}
    start = {
        "connected": [{"socket": 5, **local}], "cookie": cookie,
        "timestamp": {"timesecs": 1795806434}, "test_start": {"protocol": "TCP"},
        **({"accepted_connection": {}} if server else {}),
    }  # fmt: skip
    intervals = [
        {"streams": [{"socket": 5, "start": at, "end": at + 1, "bytes": 2_500_000, **figures}]}
        for at in range(10)
    ]
    total = {"start": 0, "end": 10, "bytes": 25_000_000, "bits_per_second": 2e7}
    document = {"start": start, "intervals": intervals, "end": {"sum_received": total}}
    file = tmp_path / ("server.json" if server else "client.json")
    file.write_text(json.dumps(document))
    return recognise(str(file))


def _json_ping(
    tmp_path: Path, *, loaded_ms: float | None = 180.0, to: str = "192.0.2.1"
) -> Recognised:
    """Two echo requests a second, from 5 s before the test to 10 s after it."""
    lines = [f"PING {to} ({to}) 56(84) bytes of data."]
    for seq in range(1, 51):
        sent = 1795806429 + seq / 2
        rtt = loaded_ms if 1795806434 <= sent <= 1795806444 else 40.0
        if rtt is not None:
            lines.append(f"[{sent + rtt / 1000:.6f}] 64 bytes from {to}: icmp_seq={seq} ttl=57 "
                         f"time={rtt} ms")  # fmt: skip
    file = tmp_path / "ping.txt"
    file.write_text("\n".join(lines) + "\n")
    return recognise(str(file))


def _joined(*files: Recognised) -> tuple[dict[str, str], BlameDocument]:
    found = together(files)
    assert found is not None
    assert found["causes"] is not None
    return {one["kind"]: one["text"] for one in found["statements"]}, found["causes"]


def test_two_files_of_the_ends_of_a_test_are_one_case(tmp_path: Path) -> None:
    files = [_json_test(tmp_path, server=server) for server in (False, True)]
    assert is_one_case(files)
    said, causes = _joined(*files)
    assert "the server's end of the test in" in said["two-ends"]
    assert causes["verdict"]
    said, _ = _joined(*files, _json_ping(tmp_path))
    assert said["delay-under-load"].startswith(files[0].name)
    other = _json_test(tmp_path, server=True, cookie="c2")
    assert not is_one_case([files[0], other])


def test_a_queue_that_a_ping_saw_is_the_first_cause(tmp_path: Path) -> None:
    test = _json_test(tmp_path, server=False)
    said, causes = _joined(test, _json_ping(tmp_path))
    assert "bufferbloat" in said
    assert "other-address" not in said
    names = [name for one in causes["causes"] for name in one["causes"]]
    assert names[0] == "bufferbloat"
    assert not {"send-buffer", "receive-window", "application-limited"} & set(names)
    said, causes = _joined(test, _json_ping(tmp_path, loaded_ms=41.0))
    assert "bufferbloat" not in said
    assert "a ping" not in causes["because"]
    said, _ = _joined(test, _json_ping(tmp_path, to="203.0.113.9"))
    assert "203.0.113.9, which is not an end of the test" in said["other-address"]


def test_pings_that_are_lost_under_load_are_told_of(tmp_path: Path) -> None:
    said, _ = _joined(_json_test(tmp_path, server=False), _json_ping(tmp_path, loaded_ms=None))
    assert re.search(r"; (\d\d) of the \1 echo requests of \S+ had no reply during that time, "
                     r"and 0 of \d\d without load", said["loss-under-load"])  # fmt: skip
    assert "no-overlap" not in said


WINDOWS_LARGE = """\
Pinging 192.0.2.1 with 1472 bytes of data:
{}
{}

Ping statistics for 192.0.2.1:
    Packets: Sent = 2, Received = {}, Lost = {} (100% loss),
"""


@pytest.mark.parametrize(
    "error",
    [
        "Packet needs to be fragmented but DF set.",
        "Paket müsste fragmentiert werden, DF-Flag ist jedoch gesetzt.",
        "Требуется фрагментация пакета, но установлен запрещающий флаг.",
    ],
)
def test_windows_says_that_a_packet_is_too_large(error: str, tmp_path: Path) -> None:
    said, _ = _said(WINDOWS_LARGE.format(error, error, 0, 2), tmp_path)
    assert said["mtu"].startswith("Packets of 1500 bytes exceed an MTU on the path")
    assert error in said["ping-errors"]
    router = f"Reply from 192.0.2.9: {error}"
    assert "mtu" in _said(WINDOWS_LARGE.format(router, error, 1, 1), tmp_path)[0]
    timeout = "Request timed out."
    assert "mtu" not in _said(WINDOWS_LARGE.format(timeout, timeout, 0, 2), tmp_path)[0]


def _sized(payload: int, answered: bool, to: str = "192.0.2.1") -> str:
    reply = f"{payload + 8} bytes from {to}: icmp_seq=1 ttl=57 time=45.1 ms\n" if answered else ""
    return (
        f"PING {to} ({to}) {payload}({payload + 28}) bytes of data.\n{reply}\n"
        f"--- {to} ping statistics ---\n1 packets transmitted, {answered:d} received, "
        f"{100 * (not answered)}% packet loss, time 0ms\n"
    )


def test_sizes_that_have_no_reply_are_a_black_hole(tmp_path: Path) -> None:
    loop = [(1272, True), (1372, True), (1422, False), (1472, False)]
    said, _ = _said("".join(_sized(*one) for one in loop), tmp_path)
    assert (
        "up to 1400 bytes had replies, but packets of 1450 bytes or more" in said["mtu-black-hole"]
    )
    for other in ([*loop, (1472, True)], loop[:3], loop[2:]):
        said, _ = _said("".join(_sized(*one) for one in other), tmp_path)
        assert "mtu-black-hole" not in said
    text = "".join(_sized(size, ok, "192.0.2.1" if ok else "192.0.2.2") for size, ok in loop)
    assert "mtu-black-hole" not in _said(text, tmp_path)[0]


PLAIN = HEAD + _rows([("1.25 MBytes  10.5 Mbits", "4   120 KBytes")] * 3)
TOTALS = "".join(
    f"[  5]   0.00-3.00   sec  3.75 MBytes  10.5 Mbits/sec  {rest}\n"
    for rest in ("12             sender", "               receiver")
)


@pytest.mark.parametrize(
    "text",
    [
        f"{{noformat}}\n{PLAIN}{{noformat}}\n",
        PLAIN.replace("  ", "\t"),
        "<pre>" + (PLAIN + TOTALS).replace("\n", "<br>\n") + "</pre>\n",
        "".join(
            json.dumps({"log": f"{line}\n", "stream": "stdout", "time": f"2026-11-27T19:07:{at}Z"})
            + "\n"
            for at, line in enumerate(PLAIN.splitlines(), 13)
        ),
    ],
)
def test_what_a_page_or_a_log_puts_around_lines_is_no_part_of_them(
    text: str, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.write_text(text)
    (test,) = diagnose(str(file))["iperf3"]["tests"]
    assert (test["streams"], test["bytes"], test["retransmissions"]) == (1, 3 * 1310720, 12)
    assert test["start_time_s"] in (None, 1795806434.0)


def test_documents_of_an_array_and_of_a_log_are_read() -> None:
    one = json.dumps(_black_hole(87040, 87040), indent=1)
    for text in (f"[{one},\n{one}]\n", f"[{one}, {one}]", f"[\n{one}\n,\n{one}\n]\n"):
        output = iperf.read(text)
        assert [len(test.streams) for test in output.tests] == [6, 6]
        assert output.remarks == []
    document = _black_hole(1000, 1000)
    events: list[tuple[str, object]] = [("start", document["start"])]
    events += [("interval", each) for each in cast("list[object]", document["intervals"])]
    events.append(("end", document["end"]))
    for before in ("2026-11-27T19:07:14.123456789Z ", "iperf-1  | ",
                   "2026-11-27T19:07:14.123456789Z stdout F "):  # fmt: skip
        text = "".join(
            f"{before}{json.dumps({'event': event, 'data': data})}\n" for event, data in events
        )
        (test,) = iperf.read(text).tests
        assert (len(test.streams), test.complete) == (6, True)


@pytest.mark.real_clock
@pytest.mark.parametrize(
    "row",
    [
        "64 bytes from 192.0.2.1: icmp_seq={} ttl=57 time=1.{} ms\n",
        "{}\nESTAB 0 0 192.0.2.1:1 192.0.2.2:2\n\t cubic rtt:40/1 mss:9 cwnd:9 bytes_acked:{}\n",
        "[  5]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec    {}    12{} KBytes\n",
    ],
)
def test_ten_times_the_text_takes_no_more_than_ten_times_the_time(row: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    took: list[float] = []
    for count in (1000, 10_000):
        file.write_text("".join(row.format(at, at) for at in range(count)))
        rounds = []
        for _ in range(3):
            began = time.process_time()
            diagnose(str(file))
            rounds.append(time.process_time() - began)
        took.append(min(rounds))
    # What is quadratic takes a hundred times the time.
    assert took[1] < 30 * took[0] + 0.2


def test_ping_of_a_router_has_no_other_mark(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text(
        "!!.!!\nSuccess rate is 80 percent (4/5), round-trip min/avg/max = 40/44/48 ms\n"
    )
    assert diagnose(str(file))["ping"]["lost"] == 1


def test_of_several_tests_the_judged_one_is_named(tmp_path: Path) -> None:
    small = PLAIN + "iperf Done.\n"
    said, inferred = _said(small + small.replace("1.25 M", "2.25 M") + small, tmp_path)
    assert inferred
    assert said["judged-test"].startswith("Causes are inferred for test 2 of 3, which moved")
    assert "judged-test" not in _said(small, tmp_path)[0]


HUAWEI = """\
  PING 192.0.2.1: 56  data bytes, press CTRL_C to break
    Reply from 192.0.2.1: bytes=56 Sequence=1 ttl=57 time=45 ms
    Request time out
    Reply from 192.0.2.1: bytes=56 Sequence=3 ttl=57 time=47 ms

  --- 192.0.2.1 ping statistics ---
    3 packet(s) transmitted
    2 packet(s) received
    33.33% packet loss
    round-trip min/avg/max = 45/46/47 ms
"""


def test_ping_of_huawei_is_read() -> None:
    (run,) = ping.read(HUAWEI).runs
    assert (run.sent, run.received, run.complete, run.payload_bytes) == (3, 2, True, 56)
    assert [(one.seq, one.rtt_ms, one.address) for one in run.replies] == [
        (1, 45.0, "192.0.2.1"), (3, 47.0, "192.0.2.1"),
    ]  # fmt: skip
    assert run.printed["mean"] == 46
