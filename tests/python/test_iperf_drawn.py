"""Tests of iperf are drawn, written as iperf 2 and iperf3 write them, and read back."""

from __future__ import annotations

import json
import math
import os
import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from airpath.diagnose.files import diagnose
from airpath.errors import InputError
from airpath.readers import iperf
from airpath.readers.lines import decoded

CLIENT, SERVER = "198.51.100.2", "192.0.2.1"
RULE = "- - - - - - - - - - - - - - - - - - - - - - - - -"
START = 1795806434


@dataclass
class Drawn:
    """One direction of a run: for each stream, the bytes of each second."""

    udp: bool
    reverse: bool
    streams: list[list[int]]
    again: list[list[int]] = field(default_factory=list)
    """Segments retransmitted, or datagrams lost."""
    sent: list[list[int]] = field(default_factory=list)
    """Datagrams."""

    @property
    def seconds(self) -> int:
        return len(self.streams[0])

    @property
    def bytes(self) -> int:
        return sum(map(sum, self.streams))

    @property
    def mbps(self) -> float:
        return 8e-6 * self.bytes / self.seconds


def _draw(pick: random.Random, udp: bool, reverse: bool = False) -> Drawn:
    streams, seconds = pick.choice((1, 1, 2, 3)), pick.randint(2, 6)

    def table(most: int) -> list[list[int]]:
        return [[pick.randint(0, most) for _ in range(seconds)] for _ in range(streams)]

    moved = [[pick.randint(20_000, 10**8) for _ in range(seconds)] for _ in range(streams)]
    return Drawn(udp, reverse, moved, table(20), [[100 for _ in row] for row in moved])


def _rate(bps: float, unit: str) -> str:
    """A rate as iperf prints it; ``unit`` is its -f, and nothing chooses one."""
    units = "KMGT"
    if unit.isupper():
        rate, name = bps / 8 / 1024 ** (units.index(unit) + 1), f"{unit}Bytes/sec"
    else:
        power = units.index(unit.upper()) + 1 if unit else min(3, int(math.log10(bps)) // 3)
        rate, name = bps / 1000**power, f"{('', *units)[power]}bits/sec"
    return f"{rate:.{2 if rate < 9.995 else 1 if rate < 99.95 else 0}f} {name}"


def _iperf3(run: list[Drawn], unit: str, server: bool, tail: bool) -> Iterator[str]:
    """The text of iperf3, of a client or of a server; of two directions with their roles."""
    both = len(run) > 1
    if server:
        yield f"Accepted connection from {CLIENT}, port 40000"
    else:
        yield f"Connecting to host {SERVER}, port 5201"
        if run[0].reverse and not both:
            yield f"Reverse mode, remote host {SERVER} is sending"
    ids: list[tuple[int, Drawn, int]] = []
    for one in run:
        for at in range(len(one.streams)):
            ids.append((5 + 2 * len(ids), one, at))
    for stream, _, _ in ids:
        ends = (SERVER, 5201, CLIENT, 40000 + stream)
        ends = ends if server else ends[2:] + ends[:2]
        yield f"[{stream:3}] local {ends[0]} port {ends[1]} connected to {ends[2]} port {ends[3]}"
    udp = run[0].udp
    sends = run[0].reverse is server
    columns = "Retr  Cwnd" if sends else ""
    if udp:
        columns = "Total Datagrams" if sends else "Jitter    Lost/Total Datagrams"
    role = "[Role]" if both else ""
    yield f"[ ID]{role} Interval           Transfer     Bitrate         {columns}"

    def row(key: str, one: Drawn, start: int, end: int, moved: int, rest: str) -> str:
        role = f"[{'TX' if one.reverse is server else 'RX'}-{'S' if server else 'C'}]"
        rate = 8 * moved / (end - start)
        return (
            f"[{key:>3}]{role if both else ''} {start:6.2f}-{end:<6.2f} sec  "
            f"{moved} Bytes  {_rate(rate, unit)}  {rest}"
        )

    def figures(one: Drawn, again: int, sent: int, arrives: bool) -> str:
        if one.udp and not arrives:
            return f"{sent}  "
        if one.udp:
            return f"0.125 ms  {again}/{sent} ({100 * again / sent:.2g}%)  "
        return "" if arrives else f"{again:3}    256 KBytes       "

    for second in range(run[0].seconds):
        for stream, one, at in ids:
            arrives = one.reverse is not server
            rest = figures(one, one.again[at][second], one.sent[at][second], arrives)
            yield row(str(stream), one, second, second + 1, one.streams[at][second], rest)
        if len(run[0].streams) > 1:
            for one in run:
                moved = sum(stream[second] for stream in one.streams)
                yield row("SUM", one, second, second + 1, moved, "")
            yield RULE
    if not tail:
        return
    yield RULE
    for end in ("sender", "receiver"):
        for one in run:
            if server and (end == "sender") is not one.reverse:
                continue  # A server tells its own end only.
            rows = [(str(stream), [at]) for stream, each, at in ids if each is one]
            if len(rows) > 1:
                rows.append(("SUM", list(range(len(rows)))))
            for key, which in rows:
                moved, again, sent = (
                    sum(sum(table[at]) for at in which)
                    for table in (one.streams, one.again, one.sent)
                )
                rest = "" if end == "receiver" else f"{again:3}"
                if one.udp:
                    lost = again if end == "receiver" else 0
                    rest = f"0.125 ms  {lost}/{sent} ({100 * lost / sent:.2g}%)"
                yield row(key, one, 0, one.seconds, moved, f"{rest}             {end}")
    if not server:
        yield ""
        yield "iperf Done."


def _iperf2(run: list[Drawn], unit: str, server: bool, tail: bool) -> Iterator[str]:
    """The text of iperf 2, one direction; ``tail``: with totals."""
    (one,) = run
    kind = "UDP" if one.udp else "TCP"
    yield "-" * 60
    yield (
        f"Server listening on {kind} port 5001"
        if server
        else (f"Client connecting to {SERVER}, {kind} port 5001")
    )
    yield "-" * 60
    ids = [3 + at for at in range(len(one.streams))]
    for stream in ids:
        ends = (SERVER, 5001, CLIENT, 40000 + stream)
        ends = ends if server else ends[2:] + ends[:2]
        yield f"[{stream:3}] local {ends[0]} port {ends[1]} connected with {ends[2]} port {ends[3]}"
    yield "[ ID] Interval       Transfer     Bandwidth"

    def row(key: str, start: int, end: float, moved: int, rest: str) -> str:
        rate = _rate(8 * moved / (end - start), unit)
        return f"[{key:>3}] {start:4.1f}-{end:4.1f} sec  {moved} Bytes  {rate}  {rest}"

    def figures(again: int, sent: int) -> str:
        if one.udp:
            return f"0.500 ms {again:4}/{sent:5} ({100 * again / sent:.2g}%)" if server else ""
        return "" if server else f"20/0 {again:10}      120K/40000(60) us  65"

    for second in range(one.seconds):
        for at, stream in enumerate(ids):
            rest = figures(one.again[at][second], one.sent[at][second])
            yield row(str(stream), second, second + 1, one.streams[at][second], rest)
        if len(ids) > 1:
            moved = sum(stream[second] for stream in one.streams)
            yield row("SUM", second, second + 1, moved, "")
    if not tail:
        return
    for at, stream in enumerate(ids):
        moved, again, sent = (sum(table[at]) for table in (one.streams, one.again, one.sent))
        yield row(str(stream), 0, one.seconds, moved, figures(again, sent))
    if len(ids) > 1:
        again, sent = (sum(map(sum, table)) for table in (one.again, one.sent))
        rest = figures(again, sent) if one.udp else "" if server else f"20/0{again:10}"
        yield row("SUM", 0, one.seconds, one.bytes, rest)
    if one.udp and not server:
        for at, stream in enumerate(ids):
            moved, again, sent = (sum(table[at]) for table in (one.streams, one.again, one.sent))
            yield f"[{stream:3}] Sent {sent} datagrams"
            yield f"[{stream:3}] Server Report:"
            rest = f"0.500 ms {again:4}/{sent:5} ({100 * again / sent:.2g}%)"
            yield row(str(stream), 0, one.seconds, moved, rest)


def _json(run: list[Drawn]) -> dict[str, Any]:
    """What iperf3 -J writes at the client."""
    streams = [
        (5 + 2 * number, one, at)
        for number, (one, at) in enumerate(
            (one, at) for one in run for at in range(len(one.streams))
        )
    ]
    end: dict[str, Any] = {}
    for one in run:
        which = "_bidir_reverse" if len(run) > 1 and one.reverse else ""
        total = {
            "start": 0,
            "end": one.seconds,
            "bytes": one.bytes,
            "bits_per_second": 1e6 * one.mbps,
        }
        again = {"retransmits": sum(map(sum, one.again))}
        end[f"sum_sent{which}"] = {**total, **again}
        end[f"sum_received{which}"] = total
    # Debian's 3.12 does not say so.
    both = {"bidir": int(len(run) > 1)} if run[0].bytes % 2 else {}
    return {
        "start": {
            "connected": [{"socket": stream} for stream, _, _ in streams],
            "version": "iperf 3.17" if both else "iperf 3.12",
            "timestamp": {"timesecs": START},
            "connecting_to": {"host": SERVER, "port": 5201},
            "test_start": {
                "protocol": "TCP", "reverse": int(len(run) == 1 and run[0].reverse), **both,
            },
        },
        "intervals": [
            {"streams": [
                {"socket": stream, "start": second, "end": second + 1,
                 "bytes": one.streams[at][second], "bits_per_second": 8 * one.streams[at][second],
                 "retransmits": one.again[at][second], "sender": not one.reverse}
                for stream, one, at in streams
            ]}
            for second in range(run[0].seconds)
        ],
        "end": end,
    }  # fmt: skip


def _runs(pick: random.Random, udp: bool, both: bool) -> list[list[Drawn]]:
    runs = []
    for _ in range(pick.choice((1, 1, 2, 3))):
        first = _draw(pick, udp, not both and pick.random() < 0.5)
        run = [first]
        if both:
            other = _draw(pick, udp, True)
            other.streams = [(row * first.seconds)[: first.seconds] for row in other.streams]
            other.again = [(row * first.seconds)[: first.seconds] for row in other.again]
            other.sent = [[100] * first.seconds for _ in other.sent]
            run.append(other)
        runs.append(run)
    return runs


def _check(read: iperf.IperfOutput, runs: list[list[Drawn]], said: str, whole: bool) -> None:
    expected = [(at, one) for at, run in enumerate(runs) for one in run]
    assert [(one.run, one.reverse) for one in read.tests] == [
        (at, one.reverse) for at, one in expected
    ], said
    for test, (_, one) in zip(read.tests, expected, strict=True):
        row = test.document()
        assert row["goodput_mbps"] == pytest.approx(one.mbps, rel=6e-3), said
        assert row["bytes"] == one.bytes, said
        assert row["streams"] == len(one.streams), said
        assert row["complete"] is whole, said
        assert row["error"] is None, said
        if row["packets_lost"] is not None:
            assert row["packets_lost"] == sum(map(sum, one.again)), said
            assert row["packets"] == sum(map(sum, one.sent)), said
        if row["retransmissions"] is not None:
            assert row["retransmissions"] == sum(map(sum, one.again)), said
    assert read.runs == len(runs)


STAMPS = ("", "", "%a %b %d %H:%M:%S %Y ", "[%H:%M:%S] ", "%s ", "%d/%b/%Y:%H:%M:%S | ", "T+ ")
"""iperf3 --timestamps takes any format."""


def _pick() -> random.Random:
    return random.Random(f"iperf {os.environ.get('PROPTEST_RNG_SEED', '7')}")


@pytest.mark.parametrize("tool", ["iperf3", "iperf3 --bidir", "iperf2"])
@pytest.mark.parametrize("udp", [False, True])
def test_text_is_read_back(tool: str, udp: bool) -> None:
    pick = _pick()
    for _ in range(40):
        server, tail = pick.random() < 0.5, pick.random() < 0.7
        both = tool.endswith("bidir")
        runs = _runs(pick, udp, both)
        if tool == "iperf2":
            for run in runs:
                run[0].reverse = False
        unit = pick.choice(("", "", "k", "m", "g", "K", "M", "G", "T"))
        write = _iperf2 if tool == "iperf2" else _iperf3
        lines = [line for run in runs for line in write(run, unit, server, tail)]
        stamp = pick.choice(STAMPS)
        stamped = [
            time.strftime(stamp.replace("%s", str(START + at)), time.gmtime(START + at)) + line
            for at, line in enumerate(lines)
        ]
        text = pick.choice(("\n", "\r\n")).join(stamped)
        encoding = pick.choice(("utf-8", "utf-16"))
        read = iperf.read(decoded(text.encode(encoding)))
        assert {one.tool for one in read.tests} == {tool.partition(" ")[0]}
        assert {one.protocol for one in read.tests} == {"UDP" if udp else "TCP"}, text
        _check(read, runs, text, tail)


@pytest.mark.parametrize("both", [False, True])
def test_json_is_read_back(both: bool) -> None:
    pick = _pick()
    for _ in range(40):
        runs = _runs(pick, False, both)
        documents = [_json(run) for run in runs]
        if pick.random() < 0.5:
            texts = [json.dumps(one, indent=pick.choice((None, "\t"))) for one in documents]
        else:
            texts = [
                "\n".join(
                    json.dumps({"event": event, "data": data})
                    for event, data in [
                        ("start", one["start"]),
                        *(("interval", each) for each in one["intervals"]),
                        ("end", one["end"]),
                    ]
                )
                for one in documents
            ]
        between = pick.choice(("\n", "\r\n", "\nFri Nov 27 19:07:14 UTC 2026\n", "\n$ iperf3 -J\n"))
        text = between.join(texts)
        _check(iperf.read(text), runs, text, True)


def test_json_that_is_cut_short_has_what_is_whole() -> None:
    document = json.dumps(_json(_runs(_pick(), False, False)[0]), indent="\t")
    whole = json.dumps(_json([_draw(_pick(), False)]), indent="\t")
    counts = set()
    for at in range(0, len(document), 7):
        text = document[:at]
        try:
            read = iperf.read(text)
        except InputError:
            continue
        else:
            counts.add(len(read.tests[0].streams))
            assert len(iperf.read(f"{text}\n{whole}").tests) == 2
    assert len(counts) > 1


def test_a_server_that_was_interrupted_did_not_fail(tmp_path: Path) -> None:
    run = [_draw(_pick(), False)]
    text = "\n".join(["Server listening on 5201 (test #1)", *_iperf3(run, "", True, True),
                      "Server listening on 5201 (test #2)",
                      "^Ciperf3: interrupt - the server has terminated"])  # fmt: skip
    file = tmp_path / "server.txt"
    file.write_text(text)
    document = diagnose(str(file))
    assert (document["iperf3"]["runs"], document["iperf3"]["error"]) == (1, None)
    assert document["iperf3"]["complete"]
    assert [one["kind"] for one in document["statements"]] == ["iperf3", "remark"]
    assert "ended by a signal" in document["statements"][1]["text"]


def test_cron_s_log_has_a_run_each_also_where_one_failed(tmp_path: Path) -> None:
    pick = _pick()
    first, second = [_draw(pick, False)], [_draw(pick, False)]
    file = tmp_path / "cron.log"
    file.write_text(
        "\n".join(
            ["Fri Nov 27 19:00:01 UTC 2026", *_iperf3(first, "", False, True),
             "Fri Nov 27 20:00:01 UTC 2026",
             "iperf3: error - unable to connect to server: Connection refused",
             "Fri Nov 27 21:00:01 UTC 2026", *_iperf3(second, "", False, True)]
        )
    )  # fmt: skip
    document = diagnose(str(file))
    tests: Any = document["iperf3"]["tests"]
    assert [one["error"] for one in tests] == [
        None, "unable to connect to server: Connection refused", None,
    ]  # fmt: skip
    assert tests[2]["start_time_s"] - tests[0]["start_time_s"] == 7200
    assert document["iperf3"]["bytes"] == first[0].bytes + second[0].bytes
    assert document["iperf3"]["goodput_mbps"] == pytest.approx(
        8e-6 * (first[0].bytes + second[0].bytes) / (first[0].seconds + second[0].seconds)
    )
    text = document["statements"][0]["text"]
    assert text.startswith("3 runs: ")
    assert text.endswith("; 1 failed.")


def test_the_server_s_output_is_not_another_run() -> None:
    run = [_draw(_pick(), False)]
    mine = list(_iperf3(run, "", False, True))[:-2]
    theirs = ["", "Server output:", "Server listening on 5201 (test #1)",
              *_iperf3(run, "", True, True), "", "iperf Done."]  # fmt: skip
    _check(iperf.read("\n".join([*mine, *theirs])), [run], "", True)


def test_an_interrupted_client_says_what_it_sent() -> None:
    run = [_draw(_pick(), False)]
    lines = [line for line in _iperf3(run, "", False, True) if "receiver" not in line][:-2]
    lines += ["[  5]   0.00-3.00   sec  0.00 Bytes  0.00 bits/sec                  receiver",
              "iperf3: interrupt - the client has terminated"]  # fmt: skip
    (test,) = iperf.read("\n".join(lines)).tests
    assert (test.error, test.received) == (None, None)
    assert test.document()["bytes"] == run[0].bytes
    assert any("ended by a signal" in remark for remark in test.remarks)


def test_only_a_summary_is_enough() -> None:
    run = [_draw(_pick(), False)]
    lines = [
        line for line in _iperf3(run, "", False, True) if line.endswith(("sender", "receiver"))
    ]
    row = iperf.read("\n".join(lines)).document()
    assert (row["bytes"], row["streams"], row["complete"]) == (
        run[0].bytes,
        len(run[0].streams),
        True,
    )


STUCK = """\
Connecting to host 192.0.2.1, port 5201
[  5] local 198.51.100.2 port 40000 connected to 192.0.2.1 port 5201
[  5]   0.00-1.00   sec  85.0 KBytes   696 Kbits/sec    2   {window} KBytes
[  5]   1.00-2.00   sec  0.00 Bytes  0.00 bits/sec    1   {window} KBytes
[  5]   2.00-3.00   sec  0.00 Bytes  0.00 bits/sec    0   {window} KBytes
[  5]   3.00-4.00   sec  {last} Bytes  0.00 bits/sec    1   {window} KBytes
"""


def test_a_test_that_stands_still_is_told(tmp_path: Path) -> None:
    file = tmp_path / "iperf3.txt"
    said = {}
    for window, last in (("1.41", "0.00"), ("141", "0.00"), ("1.41", "9.00")):
        file.write_text(STUCK.format(window=window, last=last))
        document = diagnose(str(file))
        said[window, last] = {one["kind"]: one["text"] for one in document["statements"]}
    one_segment = said["1.41", "0.00"]["stood-still"]
    assert one_segment.startswith("From 1 s, no data moved for 3 s, with a congestion window")
    assert "MTU black hole" in one_segment
    # With such a window the next write may only wait until the send buffer has room.
    assert "stood-still" not in said["141", "0.00"]
    assert said["1.41", "9.00"]["stood-still"].startswith("From 1 s, no data moved for 2 s")
    file.write_text(STUCK.format(window="1.41", last="0.00").replace("0.00 Bytes", "9.00 Bytes"))
    assert "stood-still" not in {one["kind"] for one in diagnose(str(file))["statements"]}


CSV_TCP = """\
20261127190714,198.51.100.2,40000,192.0.2.1,5001,3,0.0-1.0,2621440,20971520
20261127190715,198.51.100.2,40000,192.0.2.1,5001,3,1.0-2.0,2621440,20971520
20261127190715,198.51.100.2,40000,192.0.2.1,5001,3,0.0-2.0,5242880,20900000
"""
CSV_UDP = """\
20261127190715,198.51.100.2,40000,192.0.2.1,5001,3,0.0-10.0,1312710,1050000
20261127190715,192.0.2.1,5001,198.51.100.2,40000,3,0.0-10.0,1136310,909000,0.500,120,893,13.4,0
"""
BOTH = """\
------------------------------------------------------------
Client connecting to 192.0.2.1, TCP port 5001 with pid 9 (1 flows)
------------------------------------------------------------
[  1] local 198.51.100.2 port 40000 connected with 192.0.2.1 port 5001 (full-duplex)
[ ID] Interval       Transfer     Bandwidth
[ *1] 0.00-1.00 sec  12.5 MBytes   105 Mbits/sec
[  1] 0.00-1.00 sec  1.25 MBytes  10.5 Mbits/sec
[FD1] 0.00-1.00 sec  13.8 MBytes   115 Mbits/sec
[ *1] 0.00-1.01 sec  12.5 MBytes   104 Mbits/sec
[  1] 0.00-1.01 sec  1.25 MBytes  10.4 Mbits/sec
[FD1] 0.00-1.01 sec  13.8 MBytes   114 Mbits/sec
"""
DUAL = """\
Server listening on TCP port 5001
Client connecting to 192.0.2.1, TCP port 5001
[  4] local 198.51.100.2 port 40000 connected with 192.0.2.1 port 5001
[  5] local 198.51.100.2 port 5001 connected with 192.0.2.1 port 50000
[  4]  0.0-10.0 sec  12.5 MBytes  10.4 Mbits/sec
[  5]  0.0-10.1 sec   125 MBytes   104 Mbits/sec
"""
BOUNCED = """\
[  1] local 198.51.100.2 port 40000 connected with 192.0.2.1 port 5001 (bb len/hold=100/0)
[ ID] Interval        Transfer    Bandwidth         BB cnt=avg/min/max/stdev  Rtry  Cwnd/RTT    RPS
[  1] 0.00-1.00 sec  1.95 KBytes  16.0 Kbits/sec    10=40.123/38.1/45.2/1.1 ms  2   14K/40000 us  24 rps
[  1] 0.00-1.05 sec  1.95 KBytes  15.2 Kbits/sec    10=40.123/38.1/45.2/1.1 ms  2   14K/40000 us  24 rps
"""  # noqa: E501
IN_FLIGHT = """\
[  1] local 198.51.100.2%eth0 port 40000 connected with 192.0.2.1 port 5001 (MSS=1448) (sock=3)
[ ID] Interval  Transfer  Bandwidth  Write/Err  Rtry  InF(pkts)/Cwnd(pkts)/RTT(var)  NetPwr
[  1] 0.0000-1.0000 sec  2.50 MBytes  21.0 Mbits/sec  20/0  0  100K(70)/120K(85)/40000(60) us  65
[  1] 1.0000-2.0000 sec  2.50 MBytes  21.0 Mbits/sec  20/0  3  100K(70)/120K(85)/40000(60) us  65
[  1] 0.0000-2.0100 sec  5.00 MBytes  20.9 Mbits/sec  40/0  3  100K(70)/120K(85)/40000(60) us  65
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (CSV_TCP, [(False, 20.9, None, None)]),
        (CSV_UDP, [(False, 0.909, None, 120)]),
        (BOTH, [(False, 10.4, None, None), (True, 104, None, None)]),
        (DUAL, [(False, 10.4, None, None), (True, 104, None, None)]),
        (BOUNCED, [(False, 0.0152, 2, None)]),
        (IN_FLIGHT, [(False, 20.9, 3, None)]),
    ],
    ids=["csv", "csv of udp", "full-duplex", "dual test", "bounceback", "bytes in flight"],
)
def test_other_forms_of_iperf_2_are_read(
    text: str, expected: list[tuple[bool, float, int | None, int | None]]
) -> None:
    read = iperf.read(text)
    rows: list[Any] = [one.document() for one in read.tests]
    keys = ("reverse", "goodput_mbps", "retransmissions", "packets_lost")
    assert [tuple(row[key] for key in keys) for row in rows] == expected
    assert {(row["tool"], row["complete"]) for row in rows} == {("iperf2", True)}
    cwnd = [one.cwnd_bytes for one in read.tests[0].streams]
    assert cwnd == ([120 * 1024] * 2 if text == IN_FLIGHT else [14 * 1024] if text == BOUNCED else
                    [None] * len(cwnd))  # fmt: skip
    assert rows[0]["answer_ms"] == (40.123 if text == BOUNCED else None)


def test_a_server_of_iperf_2_takes_several_clients_at_a_time() -> None:
    head = "[  {0}] local 192.0.2.1 port 5001 connected with 198.51.100.{0} port 4000{0}\n"
    row = "[  {}]  {}.0- {}.0 sec  {} Bytes  1.00 Mbits/sec\n"
    text = (
        "Server listening on TCP port 5001\n" + head.format(4) + row.format(4, 0, 1, 1000)
        + head.format(5) + row.format(4, 1, 2, 1000) + row.format(5, 0, 1, 300)
        + row.format(4, 0, 2, 2000) + row.format(5, 1, 2, 300) + row.format(5, 0, 2, 600)
    )  # fmt: skip
    read = iperf.read(text)
    assert [(one.document()["bytes"], one.complete) for one in read.tests] == [
        (2000, True), (600, True),
    ]  # fmt: skip


def test_datagrams_that_were_sent_are_no_retransmissions() -> None:
    run = [_draw(_pick(), True)]
    row = iperf.read("\n".join(_iperf3(run, "", False, False))).document()
    sent = None if run[0].reverse else sum(map(sum, run[0].sent))
    assert (row["protocol"], row["retransmissions"]) == ("UDP", None)
    assert row["packets"] == sent


def test_a_report_that_did_not_come_is_said() -> None:
    run = [_draw(_pick(), True)]
    lines = list(_iperf2(run, "", False, True))
    lines = lines[: next(at for at, line in enumerate(lines) if "Server Report" in line)]
    read = iperf.read(
        "\n".join([*lines, "[  3] WARNING: did not receive ack of last datagram after 10 tries."])
    )
    assert "the server's report is missing: what arrived is not known" in read.remarks
    assert read.document()["packets_lost"] is None
