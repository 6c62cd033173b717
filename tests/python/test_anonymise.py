"""Addresses are hidden: none of the input is in any output, and prefixes stay."""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

import captures
from airpath.diagnose.anonymise import Anonymiser

PING = """PING host (192.0.2.77) 56(84) bytes of data.
64 bytes from 192.0.2.77: icmp_seq=1 ttl=64 time=20.1 ms
64 bytes from 192.0.2.77: icmp_seq=2 ttl=64 time=20.3 ms
"""
IPERF3 = """Connecting to host 192.0.2.78, port 5201
[  5] local 198.51.100.9 port 40000 connected to 192.0.2.78 port 5201
[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-10.00  sec  11.9 MBytes  10.0 Mbits/sec    3             sender
[  5]   0.00-10.04  sec  11.8 MBytes  9.86 Mbits/sec                  receiver
"""
SS = """ESTAB 0 0 198.51.100.9:5201 [2001:db8::7]:40000
\t cubic wscale:7,7 rto:240 rtt:38.2/2.1 mss:1448 cwnd:60 bytes_sent:9000000 minrtt:30 busy:9000ms
"""
ADDRESSES = ("192.0.2.77", "192.0.2.78", "198.51.100.9", "2001:db8::7", "10.0.0.1", "10.0.0.2")


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    texts = {"to-192.0.2.77.txt": PING, "iperf3.txt": IPERF3, "ss.txt": SS}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    capture = captures.write(tmp_path / "of_10.0.0.1_5201.pcap", captures.download())
    refused = tmp_path / "refused-192.0.2.78.txt"
    refused.write_text("hello\n")
    return [*(str(tmp_path / name) for name in texts), str(capture), str(refused)]


def _has(text: str, address: str) -> bool:
    at = text.find(address)
    while at >= 0:
        # 10.0.0.1 is no part of 10.0.0.17.
        if not text[at + len(address) : at + len(address) + 1].isdigit():
            return True
        at = text.find(address, at + 1)
    return False


@pytest.mark.parametrize("json_", [False, True])
def test_no_address_of_the_input_is_in_any_output(cli: Any, files: list[str], json_: bool) -> None:
    options = ["--json"] if json_ else []
    code, out, err = cli("diagnose", *files, *options)
    assert code == 2
    shown = [address for address in ADDRESSES if _has(out + err, address)]
    assert {"192.0.2.77", "10.0.0.1", "10.0.0.2"} <= set(shown), "it is there to be hidden"
    code, out, err = cli("diagnose", *files, "--anonymise", *options)
    assert code == 2
    assert [address for address in ADDRESSES if _has(out + err, address)] == []


def test_a_key_hides_an_address_by_the_same_one(cli: Any, files: list[str], tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(bytes(range(32)))
    once, again = (
        json.loads(cli("diagnose", files[3], "--json", "--anonymise-key", str(key))[1])
        for _ in range(2)
    )
    other = json.loads(cli("diagnose", files[3], "--json", "--anonymise")[1])
    client = [one["files"][0]["capture"]["flows"][0]["client"] for one in (once, again, other)]
    assert client[0] == client[1] != client[2]
    key.write_bytes(b"short")
    code, _, err = cli("diagnose", files[3], "--anonymise-key", str(key))
    assert code == 2
    assert "a key must have at least 16 bytes, but this file has 5" in err


def test_prefixes_stay_and_nothing_else() -> None:
    draw = Random(7)
    hide = Anonymiser(b"k" * 32)
    for kind, width in ((ipaddress.IPv4Address, 32), (ipaddress.IPv6Address, 128)):
        for _ in range(30):
            common = draw.randrange(width)
            first = draw.getrandbits(width)
            below = width - common
            second = first >> below << below | draw.getrandbits(below)
            hidden = [int(hide.address(kind(one))) for one in (first, second)]
            assert (first ^ second).bit_length() == (hidden[0] ^ hidden[1]).bit_length()


def test_what_is_no_address_stays() -> None:
    text = "at 12:30:05 UTC, iperf 3.12, 0.00-10.00 sec, cwnd:60, 1.5.2"
    assert Anonymiser(bytes(32)).text(text) == text
