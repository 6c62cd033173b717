"""What tools print is told rightly: each form that was once read wrongly, and what is said."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from airpath.causes import tools
from airpath.diagnose.files import diagnose
from airpath.errors import InputError
from airpath.readers import iperf, ping

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
