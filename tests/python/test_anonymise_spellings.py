"""Drawn addresses and identities, in every spelling and every field, are in no output."""

from __future__ import annotations

import base64
import ipaddress
import json
import os
import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

import captures
from airpath.diagnose.anonymise import Anonymiser
from airpath_dev.fuzzed.check import SEEDS
from test_flent_pings import DATA as FLENT

SEED = int(os.environ.get("PROPTEST_RNG_SEED", "7")) % 2**32
IPV4 = (
    "{0}", "{pad}", "[{0}]", "{0}:5201", "{0}.5201", "http://{0}/x", "a.{0}.b", "eth0.{0}",
    "ip-{dash}.lan", "of_{low}_5201", "::ffff:{0}", "[::FFFF:{0}]:5201", "tcp6:::ffff:{0}",
    "::ffff:{pad}", "::{0}", "::ffff:{hex}", "0:0:0:0:0:ffff:{hex}", "64:ff9b::{0}",
    "64:ff9b::{hex}", "::ffff:0:{0}", "2002:{hex}::1", "to::ffff:{0}:80", "{0}%eth0", "12:30:{0}",
)  # fmt: skip
IPV6 = (
    "{0}", "{full}", "{upper}", "[{0}]:5201", "{0}%eth0", "http://[{0}]:80/", "http://%5B{url}%5D/",
    "tcp6:{0}", "{name}.ipv6-literal.net", "of_{low}.pcap", "{nibbles}.ip6.arpa", "From {0}: no",
    "a.{0}.b", "{0},{0}",
)  # fmt: skip
MAC = (
    "{0}", "{upper}", "{dash}", "{low}", "{cisco}", "{bare}", "enx{bare}", "enx{bare}:5201:",
    "lladdr:{0}", "ether {0}.", "{short}",
)  # fmt: skip
DIGITS = (
    "{0}", "imsi-{0}", "imei:{0}", "SUPI imsi-{0}", "sim {0}.", "a_{0}.pcap", "+{0}", "{0}@nai",
)  # fmt: skip


def ipv4(draw: Random) -> dict[str, str]:
    """The parts of its spellings."""
    octets = [draw.randint(100, 223), *(draw.randint(11, 255) for _ in range(3))]
    each = [str(octet) for octet in octets]
    high, low = octets[0] << 8 | octets[1], octets[2] << 8 | octets[3]
    return {
        "0": ".".join(each), "pad": ".".join(one.zfill(3) for one in each), "dash": "-".join(each),
        "low": "_".join(each), "hex": f"{high:x}:{low:x}",
    }  # fmt: skip


def ipv6(draw: Random) -> dict[str, str]:
    """Spellings of an IPv6 address, often with zeros or a MAC address inside (RFC 4291, A)."""
    bits = 0x20010DB8 << 96 | draw.getrandbits(96)
    if draw.random() < 0.5:
        bits &= ~(0xFFFF_FFFF_FFFF << 32)
    elif draw.random() < 0.5:
        bits = bits >> 64 << 64 | (draw.getrandbits(24) << 40 | 0xFFFE << 24 | draw.getrandbits(24))
    address = ipaddress.IPv6Address(bits)
    return {
        "0": str(address), "full": address.exploded, "upper": str(address).upper(),
        "url": str(address).replace(":", "%3A"), "name": str(address).replace(":", "-"),
        "low": str(address).replace(":", "_"), "nibbles": address.reverse_pointer[:63],
    }  # fmt: skip


def mac(draw: Random) -> dict[str, str]:
    """Spellings of a MAC address."""
    each = [f"{draw.randrange(256):02x}" for _ in range(5)] + ["0a"]
    bare = "".join(each)
    return {
        "0": ":".join(each), "upper": ":".join(each).upper(), "dash": "-".join(each),
        "low": "_".join(each), "cisco": ".".join(bare[at : at + 4] for at in (0, 4, 8)),
        "bare": bare, "short": ":".join(one.lstrip("0") or "0" for one in each),
    }  # fmt: skip


def digits(draw: Random) -> dict[str, str]:
    """An IMSI of a test network, or an IMEI."""
    return {"0": "00101" + "".join(draw.choice("0123456789") for _ in range(draw.choice((9, 10))))}


Parts = Callable[[Random], dict[str, str]]
KINDS: tuple[tuple[Parts, tuple[str, ...]], ...] = (
    (ipv4, IPV4),
    (ipv6, IPV6),
    (mac, MAC),
    (digits, DIGITS),
)


class Drawn:
    """Addresses as they were drawn, and what must not be seen of them."""

    def __init__(self, draw: Random) -> None:
        self.draw = draw
        self.hidden: list[str] = []

    def text(self) -> str:
        """One in some spelling."""
        made, forms = self.draw.choice(KINDS)
        return self.of(made, self.draw.choice(forms))

    def of(self, made: Parts, form: str) -> str:
        """One in that spelling."""
        parts = made(self.draw)
        self.hidden += parts.values()
        return form.format(*[parts["0"]], **{key: one for key, one in parts.items() if key != "0"})

    def name(self) -> str:
        """One that a file can be named by."""
        return self.text().replace("/", "_")

    def packed(self) -> bytes:
        """The bytes of an IPv4 address."""
        parts = ipv4(self.draw)
        self.hidden += parts.values()
        return ipaddress.IPv4Address(parts["0"]).packed

    def left(self, output: str) -> list[str]:
        """Those that an output has, as text or as bytes."""
        plain = output.lower()
        texts = {one.lower() for one in self.hidden}
        found = [
            one
            for one in texts
            if one in plain and re.search(rf"(?<![0-9a-f]){re.escape(one)}(?![0-9a-f])", plain)
        ]
        packed = [ipaddress.ip_address(one).packed for one in texts if _is_address(one)]
        blobs = [output.encode(errors="surrogateescape")]
        blobs += [
            base64.b64decode(one)
            for one in re.findall(r'"((?:[A-Za-z0-9+/]{4}){6,}={0,2})"', output)
        ]
        return found + [one.hex() for one in packed if any(one in blob for blob in blobs)]


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def everywhere(value: Any, drawn: Drawn) -> Any:
    """A document in which texts that no reader needs are addresses."""
    if isinstance(value, dict):
        return {key: everywhere(one, drawn) for key, one in value.items()}
    if isinstance(value, list):
        return [everywhere(one, drawn) for one in value]
    if isinstance(value, str) and re.search(
        r"\d\.\d+\.\d+\.\d|host|iperf|Linux|cell|tcp_1up|%", value
    ):
        return f"{drawn.text()} {value}" if "iperf" in value else drawn.text()
    return value


def option(code: int, value: bytes) -> bytes:
    """Of a pcapng block."""
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)


def block(kind: int, body: bytes) -> bytes:
    """Of pcapng."""
    length = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + length + body + length


def capture(drawn: Drawn) -> bytes:
    """Names and comments with addresses; a download in plain and one inside GTP-U."""

    def words(code: int) -> bytes:
        return option(code, drawn.text().encode())

    one, two, outer, other = (drawn.packed() for _ in range(4))
    comment = words(1)
    data = block(
        0x0A0D0D0A,
        struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1) + comment + words(2) + words(3) + words(4),
    )
    for _ in range(2):
        address = option(4, drawn.packed() + b"\xff\xff\xff\0") + option(
            6, bytes(drawn.draw.randbytes(6))
        )
        data += block(1, struct.pack("<HHI", 1, 0, 0) + words(2) + words(3) + address + words(1))
    for number, (time, packet) in enumerate(captures.download(40)):
        for interface in range(2):
            sent = captures.in_gtp_u(packet) if interface else packet
            for old, new in (
                ((10, 0, 0, 1), one),
                ((10, 0, 0, 2), two),
                ((10, 9, 0, 1), outer),
                ((10, 9, 0, 2), other),
            ):
                sent = sent.replace(bytes(old), new)
            frame = drawn.draw.randbytes(12) + b"\x08\x00" + sent
            head = struct.pack("<IIIII", interface, 0, time, len(frame), len(frame))
            more = comment if number == 3 else b""
            data += block(6, head + frame + bytes(-len(frame) % 4) + more)
    names = option(1, one + drawn.text().encode() + b"\0") + bytes(4)
    return data + block(4, names)


def documents(text: str) -> Iterator[Any]:
    """Each of the JSON documents that follow one another."""
    decoder, rest = json.JSONDecoder(), text.strip()
    while rest:
        document, end = decoder.raw_decode(rest)
        yield document
        rest = rest[end:].lstrip()


def files(place: Path, drawn: Drawn) -> Iterator[Path]:
    """A file of each kind, its name and its texts with addresses."""
    for number, seed in enumerate(sorted(SEEDS.iterdir())):
        text = seed.read_bytes().decode(errors="replace")
        if text.startswith("{"):
            text = "\n".join(json.dumps(everywhere(one, drawn)) for one in documents(text))
        else:
            text = re.sub(
                r"192\.0\.2\.\d+|::1|127\.0\.0\.1|(?<=PING )\S+", lambda _: drawn.text(), text
            )
        file = place / f"{number}-{drawn.name()}.txt"
        file.write_text(text)
        yield file
    file = place / f"{drawn.name()}.json"
    file.write_text(json.dumps(everywhere(FLENT, drawn)))
    yield file
    file = place / f"{drawn.name()}.pcapng"
    file.write_bytes(capture(drawn))
    yield file
    file = place / f"{drawn.name()}.missing"
    yield file


def test_no_spelling_is_in_any_output(cli: Any, tmp_path: Path) -> None:
    for number in range(2):
        drawn = Drawn(Random(SEED + number))
        place = tmp_path / f"{number}" / drawn.name()
        place.mkdir(parents=True)
        names = [str(file) for file in files(place, drawn)]
        said = f"PROPTEST_RNG_SEED={SEED} draws the same"
        plain = "".join(str(one) for one in cli("diagnose", *names, "--json"))
        assert drawn.left(plain), "there is something to hide"
        for options in ((), ("--json",)):
            outputs = cli("diagnose", *names, "--anonymise", *options)
            assert drawn.left("".join(str(one) for one in outputs)) == [], said
        report = tmp_path / f"{number}.html"
        for one in (names[0], names[-2]):
            code, out, err = cli("diagnose", one, "--anonymise", "--report", str(report))
            assert code == 0, err
            assert drawn.left(out + err + report.read_text()) == [], said
        # A file that is missing is refused, and not by its name.
        code, out, err = cli("diagnose", names[-1], "--anonymise", "--report", str(report))
        assert code == 2
        assert drawn.left(out + err) == [], said


@pytest.mark.parametrize(("made", "forms"), KINDS)
def test_an_address_has_one_pseudonym_in_all_spellings(made: Parts, forms: tuple[str, ...]) -> None:
    draw = Random(SEED)
    hide = Anonymiser(draw.randbytes(32))
    for _ in range(50):
        parts = made(draw)
        other = hide.text(parts["0"])
        assert other != parts["0"]
        if made is ipv4:
            plain = {**parts, "0": other, "pad": other, "dash": other.replace(".", "-"),
                     "low": other.replace(".", "_")}  # fmt: skip
            plain["hex"] = other
        elif made is ipv6:
            address = ipaddress.IPv6Address(other)
            plain = {key: str(address) for key in parts}
            plain |= {"url": other, "name": other.replace(":", "-"), "low": other.replace(":", "_"),
                      "nibbles": address.reverse_pointer[:63]}  # fmt: skip
        elif made is mac:
            each = other.split(":")
            bare = "".join(each)
            plain = dict.fromkeys(parts, other)
            plain |= {"dash": "-".join(each), "low": "_".join(each), "bare": bare,
                      "cisco": ".".join(bare[at : at + 4] for at in (0, 4, 8))}  # fmt: skip
        else:
            plain = {"0": other}
        for form in forms:
            if form.startswith("2002:"):
                continue
            shown = hide.text(
                form.format(parts["0"], **{k: v for k, v in parts.items() if k != "0"})
            )
            expected = form.format(plain["0"], **{k: v for k, v in plain.items() if k != "0"})
            for short, long in (
                ("%5B", "["),
                ("%5D", "]"),
                ("FFFF", "ffff"),
                ("0:0:0:0:0:ffff", "::ffff"),
            ):
                expected = expected.replace(short, long)
            assert shown == expected, form
