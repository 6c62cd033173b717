"""Files that are not read: what they look like, and what to give instead.

Nothing of their content is repeated: it may be anybody's file.
"""

from __future__ import annotations

import csv
import re

from airpath.readers.lines import numbered

_CAPTURE = "airpath reads captures that tcpdump -w writes"
_PING = "airpath reads the output of ping -D"
_TEST = "airpath reads the output of iperf3 -J"
_UNPACK = "unpack it and give its contents"
_MAGIC = (
    (b"%PDF-", "a PDF", "give the text or the capture itself"),
    (b"PK\x03\x04", "a zip archive", _UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK),
    (b"Rar!\x1a\x07", "a rar archive", _UNPACK),
    (b"\xfd7zXZ\x00", "compressed by xz", "airpath reads gzip and zstd"),
    (b"BZh", "compressed by bzip2", "airpath reads gzip and zstd"),
    (b"\x04\x22\x4d\x18", "compressed by lz4", "airpath reads gzip and zstd"),
    (b"PAR1", "a Parquet file", "`airpath query` reads the tables of a run"),
    (b"SQLite format 3\x00", "an SQLite database", _CAPTURE),
    (b"GMBU", "a capture of Microsoft Network Monitor", "editcap -F pcapng converts it"),
    (b"snoop\x00\x00\x00", "a capture of snoop", "editcap -F pcapng converts it"),
    (b"XCP\x00", "a capture of NetXray", "editcap -F pcapng converts it"),
    (b"\x89PNG", "a picture", "give the text or the capture itself"),
    (b"\xff\xd8\xff", "a picture", "give the text or the capture itself"),
    (b"\x7fELF", "a program", _CAPTURE),
)
_CAPTURES = tuple(
    mark + version
    for mark, version in (
        (b"\xd4\xc3\xb2\xa1", b"\x02\x00\x04\x00"),
        (b"\xa1\xb2\xc3\xd4", b"\x00\x02\x00\x04"),
        (b"\x4d\x3c\xb2\xa1", b"\x02\x00\x04\x00"),
        (b"\xa1\xb2\x3c\x4d", b"\x00\x02\x00\x04"),
    )
)
"""How a pcap file begins: its magic number and its version."""
_HTTP = "a capture of the transfer tells why it was slow"
_LIKE_PING = tuple(
    (re.compile(pattern), f"the output of {what}")
    for pattern, what in (
        (r"^-{3} (?:o|t)wping statistics from ", "owping, which measures one way"),
        (r"^paping v\d|^Connect(?:ing|ed) to \S+(?: on TCP \d+:$|: time=\S+ protocol=)",
         "paping, which opens TCP connections"),
        (r"^TCPinging \S+ on port|^(?:Reply|No reply) from .{1,300} on port \d+ TCP_conn=|"
         r"^-{3} .{1,300} TCPing statistics -|^Ping tcp://|^Ping statistics tcp://|"
         r"^Probing \S+:\d+/\w+ - |^Ping statistics for \S+:\d{1,5}$",
         "tcping, which opens TCP connections"),
        (r"^PsPing v\d|^TCP (?:connect|latency|roundtrip|bandwidth)\b.{0,60} (?:to|for) \S+:\d+:$",
         "PsPing"),
        (r"^Starting Nping |^(?:SENT|RCVD) \(\d+\.\d+s\) ", "nping"),
        (r"^ARPING |^Unicast reply from \S+ \[|\([^()\s]{1,60}\): index=\d+ time=",
         "arping, which does not go over IP"),
        (r"^PING \S+:\d+ \(\S*\):$|^connected to \S+ \(\d+ bytes\), seq=",
         "httping, which asks a web server"),
    )
)  # fmt: skip
"""Tools that print what looks like ping's, of other things."""
_ANY_LIKE_PING = re.compile("|".join(f"(?:{one.pattern})" for one, _ in _LIKE_PING))
_LINES = tuple(
    (re.compile(pattern), what, instead)
    for pattern, what, instead in (
        (r"^\S+ is (?:alive(?: \([\d.]+ ms\))?|unreachable)$",
         "fping's list of which hosts answer", "airpath reads the output of fping -c and ping -D"),
        (r"(?i)^\s*<(?:!doctype|html|\?xml|head\b|body\b)", "HTML or XML", "give the text itself"),
        (r"My traceroute|^HOST: .*Loss%|^Start: \d{4}-\d\d-\d\d", "mtr's report", _PING),
        (r"^Mtr_Version,|^[xhpd] \d{1,3} \S+(?: \d+)?$", "mtr's report", _PING),
        (r"^Source +Destination +IPV4Address", "the output of Test-Connection",
         "airpath reads the output of ping"),
        (r"^(?:DATA|LOAD|SUMMARY|HEADER|DATA_HEADER); ?\d{4}-\d\d-\d\d", "cake-autorate's log",
         "airpath reads the output of ping -D and of iperf3 -J"),
        (r"^#kernel$|^(?:Ip|Tcp|TcpExt|Udp)\w+ +\d+ +\d+\.\d$|^(?:Ip|Tcp|TcpExt|Udp):$",
         "counters of the kernel (nstat, netstat -s)", "airpath reads ss -ti and captures"),
        (r"^megabytes=\d", "the output of nuttcp -fparse", "airpath reads nuttcp without it"),
        (r"^ *\d{1,9}\.\d+- ?\d{1,9}\.\d+ +sec +\d", "iperf's rows without their IDs",
         "give the whole output"),
        (r"^[\da-fA-F]{4,8} +(?:[\da-fA-F]{2} +){8}", "a hex dump", "text2pcap converts it"),
        (r'^ *"_index": "packets-', "tshark's JSON", _CAPTURE),
        (r"^traceroute6? to |^tracert\b|^ *\d{1,2} +(?:(?:<?\d{1,5} \S{1,4}|\*) +){3}",
         "the output of traceroute", _PING),
        (r"^ *\d{1,2}(?:\?:|:) .*\b(?:pmtu \d|asymm)", "the output of tracepath", _PING),
        (r"^(?:\d{4}-\d\d-\d\d )?(?:\d\d:\d\d:\d\d|\d{10})\.\d{6} (?:\S+ +(?:In|Out) +)?"
         r"(?:IP6?|ARP)\b", "text that tcpdump printed", _CAPTURE),
        (r"^ *\d{1,9} +\d{1,10}\.\d{3,9} +\S+ +(?:\u2192|->) +\S+ +\S+", "text that tshark printed",
         _CAPTURE),
        (r"^MIGRATED |^Recv +Send +Send\b|^Socket +Message +Elapsed|\bnetperf\b",
         "the output of netperf", _TEST),
        (r"[Ss]peedtest|^Hosted by .* km\]|^(?:Download|Upload): +\d+\.\d+ Mbit/s",
         "a speed test in a browser or speedtest-cli", _TEST),
        (r"^ *% Total +% Received|\b(?:time_total|time_starttransfer|speed_download)\b",
         "the output of curl", _HTTP),
        (r"^--\d{4}-\d\d-\d\d .*--  (?:https?|ftp):|^HTTP request sent, awaiting",
         "the output of wget", _HTTP),
        (r"^\[ *\d{1,9}\.\d{6}\] ", "the kernel's log (dmesg)",
         "airpath reads ss -ti and captures"),
        (r"^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ [\w./-]+(?:\[\d+\])?: ", "a system's log",
         "airpath reads ss -ti and captures"),
        (r"^Usage: iperf3? |^iperf3?: parameter error", "iperf's help", _TEST),
        (r"^Usage: ping |^ping: (?:usage|invalid)", "ping's help", _PING),
        (r"^Active Internet connections|^Proto +Recv-Q +Send-Q", "the output of netstat",
         "airpath reads ss -ti"),
        (r"^qdisc \S+ \S+: ", "the output of tc", "airpath reads ss -ti and captures"),
        (r"^(?:\d+: )?\w[\w@.-]*: (?:flags=|<[A-Z_,-]+> mtu )", "a list of interfaces",
         "airpath reads ss -ti and captures"),
        (r"^NIC statistics:|^Settings for \w+:", "the output of ethtool",
         "airpath reads ss -ti and captures"),
        (r"^\[\[?(?:run|path|radio|flow|profile|program|emulation)\b[\w.]*\]\]?\s*$",
         "a scenario", "`airpath run FILE` runs it"),
        (r"^\[(?:study|campaign|sweep|axes|base)\b", "a campaign or a study",
         "`airpath sweep` and `airpath reproduce` take them"),
        (r"^From: |^Return-Path: |^Received: from ", "an email", "give its attachment"),
    )
)  # fmt: skip
_JSON = tuple(
    (re.compile(rf"\s*\{{\s*(?:{pattern})"), what, instead)
    for pattern, what, instead in (
        (r'"version"\s*:\s*\{\s*"irtt"', "irtt's JSON", _PING),
        (r'"report"\s*:\s*\{\s*"mtr"', "mtr's JSON", _PING),
        (r'"type"\s*:\s*"result"|"download"\s*:', "a speed test's JSON", _TEST),
    )
)
_MOST_LINES = 200
_TABLE_LINES = 3


def of_bytes(data: bytes) -> str | None:
    """What a file that is no text looks like, and what to give instead; None: it is a text."""
    for magic, what, instead in _MAGIC:
        if data.startswith(magic):
            return f"this is {what}, which `airpath diagnose` does not read; {instead}"
    head = data[:4096]
    begins = [at for mark in _CAPTURES if (at := head.find(mark)) > 0]
    if begins:
        return (
            f"a capture begins at byte {min(begins)}, behind something else: `tail -c "
            f"+{min(begins) + 1}` gives the capture alone"
        )
    odd = sum(byte < 9 or 13 < byte < 27 or 27 < byte < 32 for byte in head)
    if head and odd > len(head) // 10:
        return "this is binary data, but not a capture (pcap, pcapng)"
    return None


def like_ping(line: str) -> str | None:
    """What a line is of, where it is of a tool that is like ping and is not read.

    >>> like_ping("TCPinging 10.0.0.1 on port 443")
    'the output of tcping, which opens TCP connections'
    """
    if not _ANY_LIKE_PING.search(line):
        return None
    return next(what for pattern, what in _LIKE_PING if pattern.search(line))


def of_json(text: str) -> str | None:
    """What a JSON document looks like that is not read, and what to give instead."""
    for pattern, what, instead in _JSON:
        if pattern.match(text):
            return f"this looks like {what}, which `airpath diagnose` does not read; {instead}"
    return None


def of_text(text: str) -> str | None:
    """What a text looks like and in which line, and what to give instead; None: like nothing."""
    first: list[tuple[int, str]] = []
    for number, line in numbered(text):
        if not line.strip():
            continue
        if what := like_ping(line.strip()):
            looks = f"line {number} looks like {what}"
            return f"{looks}: `airpath diagnose` does not read it; {_PING}"
        for pattern, what, instead in _LINES:
            if pattern.search(line):
                looks = f"line {number} looks like {what}"
                return f"{looks}, which `airpath diagnose` does not read; {instead}"
        first.append((number, line))
        if len(first) == _MOST_LINES:
            break
    if len(first) >= _TABLE_LINES and all(line.isdigit() for _, line in first):
        return (
            f"line {first[0][0]} looks like a trace of delivery opportunities, which airpath "
            "does not read here; a link of a scenario can use it as its file"
        )
    for mark, name in ((",", "CSV"), (";", "CSV"), ("\t", "TSV")):
        rows = csv.reader((line for _, line in first[:10]), delimiter=mark)
        columns = {len(row) for row in rows}
        if len(first) >= _TABLE_LINES and len(columns) == 1 and columns.pop() > 1:
            return (
                f"line {first[0][0]} looks like a table ({name}), which airpath does not "
                "read; it needs commas and a column of round trips called RTT [ms]"
            )
    return None
