"""What cannot be read is named for what it looks like, without a word of what is in it."""

# ruff: noqa: RUF001

from __future__ import annotations

from pathlib import Path

import pytest

from airpath.diagnose.files import diagnose
from airpath.errors import InputError

SECRET = "s3cret-word"


@pytest.mark.parametrize(
    ("content", "what", "instead"),
    [
        ("Start: 2026-11-27T19:07:14+0000\nHOST: ue      Loss%   Snt   Last\n", "mtr", "ping -D"),
        ("traceroute to 192.0.2.1 (192.0.2.1), 30 hops max\n 1  192.0.2.9  20.1 ms  21 ms  19 ms\n",
         "traceroute", "ping -D"),
        ("\nТрассировка маршрута к 192.0.2.1\n\n  1    <1 мс    <1 мс     *     192.0.2.9\n",
         "line 4 looks like the output of traceroute", "ping -D"),
        (" 1?: [LOCALHOST]                      pmtu 1500\n", "tracepath", "ping -D"),
        ("19:07:14.123456 IP 192.0.2.1.40000 > 192.0.2.2.80: Flags [S], seq 1, length 0\n",
         "tcpdump printed", "tcpdump -w"),
        ("1774416531.123456 eth0  In  IP6 fd00::1 > fd00::2: ICMP6, echo reply, id 1, seq 1\n",
         "tcpdump printed", "tcpdump -w"),
        ("    1 0.000000000    192.0.2.1 → 192.0.2.2     ICMP 98 Echo (ping) reply  "
         "id=0x1, seq=1/256, ttl=57\n", "tshark printed", "tcpdump -w"),
        ("MIGRATED TCP STREAM TEST from 0.0.0.0 () port 0 AF_INET to host () port 0\n", "netperf",
         "iperf3 -J"),
        ("Retrieving speedtest.net configuration...\nDownload: 93.1 Mbit/s\n", "speed test",
         "iperf3 -J"),
        ("time_connect: 0.05\ntime_total: 2.1\n", "line 2 looks like the output of curl",
         "capture"),
        ("--2026-11-27 19:07:14--  http://192.0.2.1/file\n", "wget", "capture"),
        ("[    0.000000] Linux version 6.1\n", "the kernel's log", "ss -ti"),
        ("Nov 27 19:07:14 host kernel: something\n", "a system's log", "ss -ti"),
        ('{"version":{"irtt":"0.9.1"},"stats":{}}\n', "irtt's JSON", "ping -D"),
        ('{"report":{"mtr":{"src":"ue"}}}\n', "mtr's JSON", "ping -D"),
        ('{"download": 93120000.1, "ping": 45.12}\n', "a speed test's JSON", "iperf3 -J"),
        ("Mtr_Version,Start_Time,Status,Host,Hop\nMTR.0.95,1795806434,OK,x,1\n", "mtr", "ping -D"),
        ("x 0 33000\nh 0 192.0.2.1\np 0 23100 33000\n", "mtr", "ping -D"),
        ("Source        Destination     IPV4Address  Bytes\n", "Test-Connection", "ping"),
        ("SUMMARY; 2026-11-27-19:07:14; 1795806434.123; 18000\n", "cake-autorate", "ping -D"),
        ("Tcp:\n    12 active connection openings\n", "counters of the kernel", "ss -ti"),
        ("#kernel\nTcpRetransSegs                  4821               0.0\n", "nstat", "ss -ti"),
        ("megabytes=22.5000 real_seconds=2.01 rate_Mbps=93.9\n", "nuttcp -fparse", "without"),
        ("0.00-1.00 sec 1.25 MBytes 10.5 Mbits/sec 0 120 KBytes\n", "without their IDs", "whole"),
        ("0000  02 00 00 00 00 02 02 00 00 00 00 01 08 00 45 00   ..............E.\n",
         "a hex dump", "text2pcap"),
        ('[\n  {\n    "_index": "packets-2026-11-27",\n', "tshark's JSON", "tcpdump -w"),
        ("<!DOCTYPE html>\n<html></html>\n", "HTML", "the text"),
        ("Usage: iperf3 [-s|-c host] [options]\n", "iperf's help", "iperf3 -J"),
        ("Active Internet connections (w/o servers)\nProto Recv-Q Send-Q\n", "netstat", "ss -ti"),
        ('[[path.down]]\nstage = "link"\nrate_mbps = 20\n', "a scenario", "airpath run"),
        ("time,rsrp,sinr\n1,-90,10\n2,-91,11\n", "a table (CSV)", "RTT [ms]"),
        ("0\n1\n5\n9\n", "a trace of delivery opportunities", "link of a scenario"),
        (b"%PDF-1.7\n\x00\x01", "a PDF", "the text"),
        (b"PK\x03\x04\x14\x00", "a zip archive", "unpack"),
        (b"7z\xbc\xaf\x27\x1c\x00", "a 7z archive", "unpack"),
        (b"\xfd7zXZ\x00", "compressed by xz", "gzip"),
        (b"BZh91AY", "compressed by bzip2", "gzip"),
        (b"GMBU\x00\x02", "Network Monitor", "editcap"),
        (bytes(range(256)) * 9, "binary data", "capture"),
        ("Hello, my connection is slow.\nCan you help?\n", "neither a capture", "no line was rec"),
        ("This shortens the ping: CoDel gives 63 ms.\n", "neither a capture", "no line was rec"),
        ("", "the file is empty", "the file is empty"),
        (" \n\ufeff\n", "the file is empty", "the file is empty"),
    ],
)  # fmt: skip
def test_it_is_named_for_what_it_looks_like(
    tmp_path: Path, content: str | bytes, what: str, instead: str
) -> None:
    file = tmp_path / "file"
    data = content if isinstance(content, bytes) else content.encode()
    if data.strip(b" \n\xef\xbb\xbf") and "trace" not in what and "table" not in what:
        data += SECRET.encode()
    file.write_bytes(data)
    with pytest.raises(InputError) as refused:
        diagnose(str(file))
    said = str(refused.value)
    assert said.startswith(f"{file}: ")
    assert what in said
    assert instead in said
    assert SECRET not in said
    assert "\n" not in said


def test_what_another_tool_printed_in_the_same_file_is_said(tmp_path: Path) -> None:
    file = tmp_path / "both.txt"
    file.write_text(
        "64 bytes from 192.0.2.1: icmp_seq=1 ttl=57 time=20 ms\n"
        "[  5]   0.00-10.00  sec   112 MBytes  94.1 Mbits/sec    7             sender\n"
    )
    document = diagnose(str(file))
    assert document["kind"] == "ping"
    assert document["statements"][-1]["text"].startswith("The file also has output of iperf3")
