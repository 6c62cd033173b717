"""What ping and iperf3 print is read: each system's own words, cut short, failed, hostile."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airpath.emulation import printed
from airpath.errors import InputError
from airpath.readers import iperf, iperf_text, ping, recognise

IPUTILS = """\
PING server (10.1.0.2) 56(84) bytes of data.
[1700000000.100000] 64 bytes from server (10.1.0.2): icmp_seq=1 ttl=64 time=20.1 ms
[1700000001.100000] 64 bytes from server (10.1.0.2): icmp_seq=2 ttl=64 time=30.3 ms
[1700000001.200000] 64 bytes from server (10.1.0.2): icmp_seq=2 ttl=64 time=31.0 ms (DUP!)
no answer yet for icmp_seq=3
From 10.1.0.1 icmp_seq=4 Destination Host Unreachable

--- server ping statistics ---
4 packets transmitted, 2 received, +1 duplicates, +1 errors, 50% packet loss, time 3005ms
rtt min/avg/max/mdev = 20.100/25.200/30.300/5.100 ms
"""
BUSYBOX = """\
PING 10.1.0.2 (10.1.0.2): 56 data bytes
64 bytes from 10.1.0.2: seq=0 ttl=64 time=1.250 ms

--- 10.1.0.2 ping statistics ---
2 packets transmitted, 1 packets received, 50% packet loss
round-trip min/avg/max = 1.250/1.250/1.250 ms
"""
MACOS = """\
PING 10.1.0.2 (10.1.0.2): 56 data bytes
Request timeout for icmp_seq 0
64 bytes from 10.1.0.2: icmp_seq=1 ttl=64 time=12.345 ms

--- 10.1.0.2 ping statistics ---
2 packets transmitted, 1 packets received, 50.0% packet loss
round-trip min/avg/max/stddev = 12.345/12.345/12.345/0.000 ms
"""
BSD6 = """\
PING6(56=40+8+8 bytes) fd00::1 --> fd00::2
16 bytes from fd00::2, icmp_seq=0 hlim=64 time=3.500 ms

--- fd00::2 ping6 statistics ---
1 packets transmitted, 1 packets received, 0.0% packet loss
round-trip min/avg/max/std-dev = 3.500/3.500/3.500/0.000 ms
"""
WINDOWS = """\

Pinging example.net [10.1.0.2] with 32 bytes of data:
Reply from 10.1.0.2: bytes=32 time=14ms TTL=117
Request timed out.
Reply from 10.1.0.2: bytes=32 time<1ms TTL=117

Ping statistics for 10.1.0.2:
    Packets: Sent = 3, Received = 2, Lost = 1 (33% loss),
Approximate round trip times in milli-seconds:
    Minimum = 0ms, Maximum = 14ms, Average = 7ms
"""
GERMAN = """\

Ping wird ausgeführt für 10.1.0.2 mit 32 Bytes Daten:
Antwort von 10.1.0.2: Bytes=32 Zeit=14ms TTL=117
Zeitüberschreitung der Anforderung.

Ping-Statistik für 10.1.0.2:
    Pakete: Gesendet = 2, Empfangen = 1, Verloren = 1
    (50% Verlust),
"""
FRENCH_LINUX = """\
PING 10.1.0.2 (10.1.0.2) 56(84) bytes of data.
64 bytes from 10.1.0.2: icmp_seq=1 ttl=64 time=20,5 ms
"""


@pytest.mark.parametrize(
    ("text", "counts", "rtts", "payload"),
    [
        (IPUTILS, (4, 2), [20.1, 30.3], 56),
        (BUSYBOX, (2, 1), [1.25], 56),
        (MACOS, (2, 1), [12.345], 56),
        (BSD6, (1, 1), [3.5], 8),
        (WINDOWS, (3, 2), [14.0, 1.0], 32),
        (GERMAN, (2, 1), [14.0], 32),
        (FRENCH_LINUX, (1, 1), [20.5], 56),
    ],
    ids=["iputils", "busybox", "macos", "bsd6", "windows", "german", "french"],
)
def test_each_ping_is_read(
    text: str, counts: tuple[int, int], rtts: list[float], payload: int
) -> None:
    for written in (text, text.replace("\n", "\r\n")):
        (read,) = ping.read(written).runs
        assert (read.sent, read.received) == counts
        assert [one.rtt_ms for one in read.replies if not one.duplicate] == rtts
        assert read.payload_bytes == payload
        assert read.complete == (text is not FRENCH_LINUX)


@pytest.mark.parametrize(
    "text",
    [
        "root:*:19487:0:99999:7:::\ndaemon:*:19487:0:99999:7:::\n",
        "Routes to 10.0.0.1 with 32 hops:\nfirst\nsecond\n",
        "Timings of 10.0.0.1 within 32 rounds:\nseq=1 took=12 ms\nseq=2 took=13 ms\n",
        "limits: a = 3, b = 2, c = 1\n",
    ],
    ids=["password file", "no answer", "a log with numbers", "settings"],
)
def test_what_only_begins_like_a_ping_of_windows_is_none(text: str) -> None:
    with pytest.raises(InputError, match="no line is from ping"):
        ping.read(text)


def test_a_ping_tells_times_duplicates_and_errors() -> None:
    (read,) = ping.read(IPUTILS).runs
    assert [one.time_s for one in read.replies] == [1700000000.1, 1700000001.1, 1700000001.2]
    assert [one.duplicate for one in read.replies] == [False, False, True]
    assert read.errors == [(3, "no answer in time"), (4, "Destination Host Unreachable")]
    row = ping.read(IPUTILS).row()
    assert row == {
        "sent": 4,
        "lost": 2,
        "rtt_ms": pytest.approx(
            {
                "min": 20.1,
                "mean": 25.2,
                "mdev": 5.1,
                "p50": 20.1,
                "p95": 30.3,
                "p99": 30.3,
                "max": 30.3,
            }
        ),
    }


def test_a_ping_cut_short_is_counted_from_its_lines() -> None:
    read = ping.read(IPUTILS.split("From 10.1.0.1", maxsplit=1)[0])
    assert [(one.sent, one.received, one.complete) for one in read.runs] == [(3, 2, False)]
    assert "statistics are missing" in read.remarks[0]


def test_the_sequence_number_of_a_long_ping_begins_again() -> None:
    lines = [f"64 bytes from 10.1.0.2: icmp_seq={seq % 65536} ttl=64 time=1.0 ms"
             for seq in (65534, 65535, 65536, 65537)]  # fmt: skip
    read = ping.read("\n".join([IPUTILS.splitlines()[0], *lines]))
    assert [one.seq for one in read.replies] == [65534, 65535, 65536, 65537]
    assert not any(one.duplicate for one in read.replies)


TEXT = """\
Connecting to host server, port 5201
Reverse mode, remote host server is sending
[  5] local 10.0.0.2 port 40000 connected to 10.1.0.2 port 5201
[ ID] Interval           Transfer     Bitrate         Retr  Cwnd
[  5]   0.00-1.00   sec  1.00 MBytes  8.39 Mbits/sec    3    128 KBytes       (omitted)
[  5]   0.00-1.00   sec  2.00 MBytes  16.8 Mbits/sec    7    256 KBytes
[  5]   1.00-2.00   sec  2.00 MBytes  16.8 Mbits/sec    0    256 KBytes
- - - - - - - - - - - - - - - - - - - - - - - - -
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-2.00   sec  4.20 MBytes  17.6 Mbits/sec    7             sender
[  5]   0.00-2.00   sec  4.00 MBytes  16.8 Mbits/sec                  receiver

iperf Done.
"""
DOCUMENT = {
    "start": {
        "connected": [
            {"socket": 5, "local_host": "10.0.0.2", "local_port": 40000,
             "remote_host": "10.1.0.2", "remote_port": 5201}
        ],
        "version": "iperf 3.12",
        "test_start": {"protocol": "TCP", "reverse": 1, "omit": 1, "num_streams": 1},
    },
    "intervals": [
        {"streams": [{"socket": 5, "start": 0, "end": 1, "bytes": 1048576,
                      "bits_per_second": 8388608, "omitted": True, "sender": False}]},
        {"streams": [{"socket": 5, "start": 0, "end": 2, "bytes": 4194304,
                      "bits_per_second": 16777216, "omitted": False, "sender": False}]},
    ],
    "end": {
        "sum_sent": {"start": 0, "end": 2, "bytes": 4400000, "bits_per_second": 17600000,
                     "retransmits": 7, "sender": False},
        "sum_received": {"start": 0, "end": 2, "bytes": 4194304, "bits_per_second": 16777216},
    },
}  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        TEXT.replace("\n", "\r\n"),
        "".join(f"drive-7:  {line}\n" for line in TEXT.splitlines()),
        "".join(f"[2026-01-02T03:04:05.6+0100] {line}\n" for line in TEXT.splitlines()),
        json.dumps(DOCUMENT),
        json.dumps(DOCUMENT, indent="\t") + "\n",
    ],
    ids=["text", "crlf", "title", "times", "json", "indented"],
)
def test_iperf3_says_the_same_as_text_and_as_json(text: str) -> None:
    output = iperf.read(text)
    (read,) = output.tests
    said = output.document()
    assert said["goodput_mbps"] == pytest.approx(16.8, rel=2e-3)
    assert (said["bytes"], said["retransmissions"], said["streams"]) == (4194304, 7, 1)
    assert (said["protocol"], said["reverse"], said["complete"]) == ("TCP", True, True)
    assert read.connections == [iperf.Connection(5, "10.0.0.2", 40000, "10.1.0.2", 5201)]
    assert sum(one.bytes for one in read.counted()) == 4194304


def test_udp_has_losses_and_jitter() -> None:
    text = (
        "Connecting to host server, port 5201\n"
        "[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams\n"
        "[  5]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec  0.125 ms  12/1000 (1.2%)  \n"
        "[  5]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec  0.000 ms  0/1000 (0%)  sender\n"
        "[  5]   0.00-1.00   sec  1.24 MBytes  10.4 Mbits/sec  0.125 ms  12/1000 (1.2%)  receiver\n"
    )
    said: Any = iperf.read(text).document()
    assert (said["protocol"], said["packets"], said["packets_lost"]) == ("UDP", 1000, 12)
    assert said["jitter_ms"] == 0.125
    total = {"start": 0, "end": 1, "bytes": 1000, "bits_per_second": 8000, "jitter_ms": 0.5,
             "lost_packets": 5, "packets": 10}  # fmt: skip
    old = {"start": {"test_start": {"protocol": "UDP"}}, "intervals": [], "end": {"sum": total}}
    (read,) = iperf.read(json.dumps(old)).tests
    assert read.received is not None
    assert read.received.bytes == 500, "up to 3.10 the sum has what was sent and what was lost"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '{"start": {"version": "iperf 3.1',
            "line 1: iperf3's JSON ends in the middle of a string",
        ),
        ('{"start":\n', "line 1: iperf3's JSON ends, and no complete interval precedes it. Run"),
        ('{"start" 3}', "line 1: iperf3's JSON is broken, and no complete interval precedes it"),
    ],
)
def test_json_without_a_complete_interval_says_where_it_ends(text: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        iperf.read(text)
    assert said in str(refused.value)
    assert "Unterminated" not in str(refused.value)


def test_a_directory_is_not_read_but_what_to_name_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        recognise.recognise(str(tmp_path))
    wanted = f"{tmp_path} is a directory: name the files in it, e.g. {tmp_path}/*.pcap"
    assert str(refused.value) == wanted


def test_what_precedes_the_end_of_cut_json_is_used() -> None:
    rate = {"start": 0, "end": 1, "seconds": 1, "bytes": 1000, "bits_per_second": 8000}
    one = {"streams": [{"socket": 5, **rate}], "sum": rate}
    whole = json.dumps({"start": {}, "intervals": [one, one], "end": {}})
    output = iperf.read(whole[: whole.rindex('"streams"')].replace('"intervals"', '\n"intervals"'))
    remarks = [*output.of_file, *output.tests[0].remarks]
    assert remarks[0] == "iperf3's JSON ends at line 2; what is complete was used"
    assert "iperf3's totals are missing: the test or its output was cut short" in remarks
    assert output.tests[0].document()["bytes"] == 1000


def test_what_iperf3_could_not_tell_is_said() -> None:
    (cut,) = iperf.read(TEXT.split("- - -", maxsplit=1)[0]).tests
    assert not cut.complete
    assert "totals are missing" in cut.remarks[0]
    assert cut.document()["bytes"] == 4194304
    (failed,) = iperf.read(
        '{"start": {}, "intervals": [], "end": {}, "error": "server is busy"}'
    ).tests
    assert (failed.error, failed.complete) == ("server is busy", False)
    assert iperf.read("iperf3: error - unable to connect\n").error == "unable to connect"
    twice = iperf.read(json.dumps(DOCUMENT) + "\nmore")
    assert "text after the last" in twice.remarks[0]
    nothing = {**DOCUMENT, "end": {**DOCUMENT["end"], "sum_received": {"bytes": 0}}}  # type: ignore[dict-item]
    (old,) = iperf.read(json.dumps(nothing)).tests
    assert old.received is None
    assert "sum_received is 0" in old.remarks[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no output of iperf3 or iperf found"),
        ("\x1b[A", "no output of iperf3 or iperf found"),
        ('{"start": {"connected"', "JSON ends, and no complete interval"),
        ('{"a": 1}', 'no "start", no "error"'),
        ('{"start": [1], "end": 3}', "not have iperf3's structure"),
    ],
)
def test_what_is_not_iperf3_is_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as refused:
        iperf.read(text, "test.json")
    assert str(refused.value).startswith("test.json: ")
    assert "\n" not in str(refused.value)


def _refused(read: Callable[[str], Any], text: str) -> str | None:
    """Why a text is refused; None: it is read."""
    try:
        read(text).document()
    except InputError as error:
        return str(error)
    return None


def test_damaged_texts_are_read_or_refused() -> None:
    seed = int(os.environ.get("PROPTEST_RNG_SEED", "7")) % 2**32
    draw = random.Random(seed)
    originals = [IPUTILS, BUSYBOX, MACOS, BSD6, WINDOWS, GERMAN, TEXT, json.dumps(DOCUMENT)]
    for _ in range(2000):
        text = list(draw.choice(originals))
        for _ in range(draw.randint(1, 8)):
            at = draw.randrange(len(text))
            match draw.randrange(3):
                case 0:
                    del text[at : at + draw.randint(1, 40)]
                    text = text or [" "]
                case 1:
                    text[at] = chr(draw.choice([0, 9, 10, 34, 45, 48, 57, 91, 123, 0xFFFD]))
                case _:
                    text.insert(at, str(draw.choice([10**400, -1, "nan", "1e999", "[SUM]"])))
        for read in (ping.read, iperf.read):
            refused = _refused(read, "".join(text))
            assert "\n" not in (refused or "")


def test_tools_are_recognised_and_matched_with_their_flows(tmp_path: Path) -> None:
    (tmp_path / "p").write_text(IPUTILS)
    (tmp_path / "i").write_text(json.dumps(DOCUMENT))
    (tmp_path / "s").write_text("Server listening on 5201 (test #1)\n" + TEXT)
    names = {"p": "ping", "i": "load", "s": "server", "gone": "gone"}
    document: Any = {
        "flows": [{"id": "tcp4 ue:40000 server:5201"}, {"id": "tcp4 ue:40001 server:5201"}],
        "pings": [],
        "emulation": {
            "programs": [{"name": name, "stdout": path} for path, name in names.items()]
            + [{"name": "command", "stdout": None}]
        },
    }
    printed.add(document, tmp_path)
    programs = {one["name"]: one["printed"] for one in document["emulation"]["programs"]}
    assert programs["ping"]["tool"] == "ping"
    assert programs["load"]["tool"] == "iperf3"
    assert programs["server"] is programs["gone"] is programs["command"] is None
    assert [row["id"] for row in document["pings"]] == ["programs/ping"]
    carried, other = document["flows"]
    assert carried["printed"] == {
        "tool": "iperf3",
        "program": "load",
        "bytes": 4194304,
        "goodput_mbps": pytest.approx(16.78, rel=1e-3),
    }
    assert "printed" not in other


@pytest.mark.parametrize("folder", ["ping-jc", "ping-5g", "iperf3-json", "iperf3-text",
                                    "iperf3-wan", "m2ho-iperf3"])  # fmt: skip
def test_outputs_of_real_networks(folder: str) -> None:
    """Each is read or refused in one line; pings agree with what ping itself counted."""
    root = os.environ.get("AIRPATH_OUTPUTS")
    if not root:
        pytest.skip("AIRPATH_OUTPUTS does not name the folder of outputs of real networks")
    read = 0
    for path in sorted(Path(root, folder).iterdir()):
        opener = gzip.open if path.suffix == ".gz" else open
        with opener(path, "rt", errors="replace") as file:
            text = file.read()
        for reader in (ping.read, iperf.read):
            if (refused := _refused(reader, text)) is not None:
                assert "\n" not in refused
                continue
            read += 1
            output = reader(text)
            if not isinstance(output, ping.PingOutput) or output.remarks:
                continue
            for run in output.runs:
                own = [one.rtt_ms for one in run.replies]
                if not run.printed or len(own) != run.received:
                    # Edited by those who published it, or ping's mean has duplicates.
                    continue
                assert sum(own) / len(own) == pytest.approx(
                    run.printed["mean"], rel=0.01, abs=0.001
                )
    assert read > 0


def test_lines_of_another_tool_are_searched_for_no_pattern(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Long files are another tool's; a pattern takes ten times as long as a word."""
    searched: list[str] = []

    class Counted:
        def __init__(self, pattern: re.Pattern[str]) -> None:
            self.pattern = pattern

        def __getattr__(self, method: str) -> Any:
            def call(line: str, *more: Any) -> Any:
                searched.append(line)
                return getattr(self.pattern, method)(line, *more)

            return call

    patterns = {name: one for name, one in vars(iperf_text).items() if isinstance(one, re.Pattern)}
    for name, pattern in patterns.items():
        monkeypatch.setattr(iperf_text, name, Counted(pattern))
    replies = "64 bytes from 192.0.2.1: icmp_seq=1 ttl=57 time=20.1 ms\n" * 100
    with pytest.raises(InputError):
        iperf_text.read(replies)
    assert searched == []
    row = "[  5]   0.00-1.00   sec  1.00 MBytes  8.39 Mbits/sec\n"
    iperf_text.read(f"Connecting to host a, port 5201\n{row}")
    assert len(searched) >= 2
