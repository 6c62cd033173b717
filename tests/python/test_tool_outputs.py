"""What tools print is told rightly: each form that was once read wrongly, and what is said."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

from airpath.causes import tools
from airpath.diagnose.files import diagnose
from airpath.readers import iperf

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
