"""Addresses and identities that say nothing of whose they are; addresses keep their prefixes.

Two addresses that begin with the same bits do so afterwards too, as in Crypto-PAn (Xu, Fan, Ammar
and Moon 2002): whether a bit is inverted depends on a key and on the bits before it. The function
of the key is BLAKE2 here.

Everything passes as text, so an address is found in any field, whatever its spelling, and always
becomes the same one:

- IPv4: ``10.45.0.2``, ``010.045.000.002``, in names also ``10-45-0-2`` and ``10_45_0_2``;
- IPv6 (RFC 4291 2.2, RFC 5952), also as URLs and the name service have it, or with ``-`` or ``_``
  for colons in names;
- IPv4 inside IPv6: mapped, compatible (RFC 4291 2.5.5), translated (RFC 2765), NAT64 (RFC 6052) and
  6to4 (RFC 3056);
- MAC addresses with colons, dashes, underscores or dots, and without any;
- identities of subscribers and their devices (TS 23.003): IMSI, IMEI, MSISDN and ICCID.

>>> hide = Anonymiser(bytes(32))
>>> one, two = hide.text("10.45.0.2 10.45.0.3").split()
>>> one.split(".")[:3] == two.split(".")[:3], "10.45" in one
(True, False)
>>> hide.text("[::FFFF:a2d:2]:80") == f"[::ffff:{one}]:80"
True
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
import secrets
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

from airpath.base.files import read_private
from airpath.errors import InputError, reason

KEY_BYTES = 32
Document = TypeVar("Document")
Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_HEX = "[0-9A-Fa-f]"
_FOUND = re.compile(
    rf"""
    # A MAC address with other signs, or none. Interfaces are named so: enx001122334455.
    (?P<mac>
        (?<! {_HEX} ) {_HEX}{{2}} (?P<sign> [-_] ) {_HEX}{{2}} (?: (?P=sign) {_HEX}{{2}} ){{4}}
        (?! {_HEX} )
        | (?<! [0-9A-Za-z] ) {_HEX}{{4}} \. {_HEX}{{4}} \. {_HEX}{{4}} (?! [0-9A-Za-z] )
        | (?: (?<= enx ) | (?<= wlx ) | (?<= wwx ) ) {_HEX}{{12}} (?! {_HEX} )
        | (?<! [0-9A-Za-z] ) (?= [0-9]* [A-Fa-f] ) {_HEX}{{12}} (?! [0-9A-Za-z] ) )
    # An IMSI has 14 or 15 digits, an IMEI 15 or 16, an ICCID up to 20, behind 89.
    | (?P<digits>
        (?<! [0-9] ) (?<! [0-9]\. ) (?: [0-9]{{14,16}} | 89[0-9]{{16,18}} ) (?! [0-9] )
        | \+ [0-9] (?: [ -]? [0-9] ){{7,14}} (?! [0-9] )
        | (?i: (?<= imsi) | (?<= imei) | (?<= supi) | (?<= suci) | (?<= gpsi) | (?<= iccid)
            | (?<= msisdn) | (?<= tel:) ) [^0-9A-Za-z]{{0,3}} [0-9] [0-9-]{{4,}} )
    # Groups between colons: IPv6, which may end as IPv4 does, or a MAC address.
    | (?P<groups> (?<! {_HEX} ) {_HEX}* (?: : {_HEX}* ){{2,}}
        (?: (?: \.[0-9]{{1,3}} ){{3}} (?! [0-9] ) )? )
    # IPv6 in a name: global, of a site or of a link, so that it begins with four digits.
    | (?P<name> (?<! [0-9A-Za-z] ) [23Ff] {_HEX}{{3}}
        (?: (?= [0-9A-Fa-f-]{{0,40}} -- ) (?: -{{1,2}} {_HEX}{{1,4}} ){{0,7}} -{{0,2}}
            | (?= [0-9A-Fa-f_]{{0,40}} __ ) (?: _{{1,2}} {_HEX}{{1,4}} ){{0,7}} _{{0,2}}
            | (?: - {_HEX}{{1,4}} ){{7}} | (?: _ {_HEX}{{1,4}} ){{7}} )
        (?! [0-9A-Za-z] ) )
    # IPv6 in the name service (RFC 3596 2.5).
    | (?P<nibbles> (?<! [0-9A-Za-z] ) (?: {_HEX} \. ){{31}} {_HEX} (?! [0-9A-Za-z] ) )
    # IPv4.
    | (?P<numbers> (?<! [0-9] ) [0-9]+
        (?: (?: \.[0-9]+ ){{3,}} | (?: -[0-9]+ ){{3,}} | (?: _[0-9]+ ){{3,}} ) )
    """,
    re.VERBOSE,
)
_OF_A_URL = {"%3a": ":", "%5b": "[", "%5d": "]"}

_MAPPED, _TRANSLATED, _NAT64 = (
    int(ipaddress.IPv6Address(prefix)) for prefix in ("::ffff:0:0", "::ffff:0:0:0", "64:ff9b::")
)
_6TO4 = 0x2002


def key_of(file: Path) -> bytes:
    """The key in a file, so that several calls hide an address by the same one.

    Raises ``InputError`` for a file that cannot be read or is shorter than 16 bytes.
    """
    try:
        content = read_private(file)
    except OSError as error:
        raise InputError(f"cannot read {file}: {reason(error)}") from None
    if len(content) < 16:
        raise InputError(
            f"{file}: a key must have at least 16 bytes, but this file has {len(content)}; "
            "`head -c 32 /dev/urandom` makes one"
        )
    return hashlib.blake2b(content, digest_size=KEY_BYTES).digest()


class Anonymiser:
    """Replaces addresses in texts and documents; without a key by one of its own."""

    def __init__(self, key: bytes | None = None) -> None:
        self._key = secrets.token_bytes(KEY_BYTES) if key is None else key
        self.address = lru_cache(maxsize=1 << 16)(self._address)

    def text(self, text: str) -> str:
        """The text with other addresses and identities; names of hosts stay."""
        plain = re.sub("(?i)%(?:3a|5b|5d)", lambda sign: _OF_A_URL[sign.group().lower()], text)
        return _FOUND.sub(self._replaced, plain)

    def document(self, value: Document) -> Document:
        """A document with other addresses in all of its texts and keys."""
        return cast("Document", self._hidden(value))

    def _hidden(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self._hidden(key): self._hidden(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self._hidden(one) for one in value]
        return value

    def _replaced(self, found: re.Match[str]) -> str:
        shown = found.group()
        match found.lastgroup:
            case "groups":
                # A group that continues a word is none: tcp6:2001:db8::1.
                before = found.string[found.start() - 1 : found.start()]
                return self._groups(shown, in_word=before.isalpha())
            case "name":
                sign = "-" if "-" in shown else "_"
                return self._groups(shown.replace(sign, ":"), in_word=False).replace(":", sign)
            case "nibbles":
                address = ipaddress.IPv6Address(int(shown.replace(".", "")[::-1], 16))
                return ".".join(f"{int(self.address(address)):032x}"[::-1])
            case "numbers":
                before = found.string[found.start() - 1 : found.start()]
                return self._numbers(shown, in_word=before.isalpha())
            case "digits":
                return self._digits(shown)
        return self._mac(shown)

    def _groups(self, shown: str, *, in_word: bool) -> str:
        """Each IPv6 or MAC address among groups between colons, the longest first."""
        groups = shown.split(":")
        at = 1 if in_word else 0
        shown_groups = groups[:at]
        while at < len(groups):
            length, other = self._first(groups[at : at + 9])
            shown_groups.append(other if length else self.text(groups[at]))
            at += length or 1
        return ":".join(shown_groups)

    def _first(self, groups: list[str]) -> tuple[int, str]:
        """How many groups, from the first one on, are an address, and the other one."""
        if groups[:3] == ["", "", ""]:
            # A port of any address: :::5201.
            return 3, "::"
        for length in range(len(groups), 2, -1):
            some = groups[:length]
            address = _ipv6(some) if "" in some or length in (7, 8) else None
            if address is not None and not address.is_unspecified:
                return length, _text(self.address(address))
        mac = groups[:6]
        if len(mac) == 6 and all(1 <= len(group) <= 2 for group in mac):
            return 6, self._mac(":".join(group.zfill(2) for group in mac))
        return 0, ""

    def _numbers(self, shown: str, *, in_word: bool) -> str:
        """Each IPv4 address among numbers between signs."""
        sign = shown.lstrip("0123456789")[0]
        numbers = shown.split(sign)
        # In eth0.10.45.0.2 the first number belongs to the name.
        at = 1 if in_word and len(numbers) > 4 else 0
        kept = numbers[:at]
        while at < len(numbers):
            four = numbers[at : at + 4]
            if len(four) == 4 and all(len(one) <= 3 and int(one) <= 255 for one in four):
                address = ipaddress.IPv4Address(".".join(str(int(one)) for one in four))
                if not address.is_unspecified:
                    kept.append(str(self.address(address)).replace(".", sign))
                    at += 4
                    continue
            kept.append(numbers[at])
            at += 1
        return sign.join(kept)

    def _address(self, address: Address) -> Address:
        """The other address of the same version; of IPv4 inside IPv6 only that part."""
        width, bits = address.max_prefixlen, int(address)
        if width == 128:
            place = _place_of_ipv4(bits)
            if place is not None:
                inside = ipaddress.IPv4Address(bits >> place & 0xFFFF_FFFF)
                other = int(self.address(inside))
                return ipaddress.IPv6Address(bits ^ (int(inside) ^ other) << place)
        inverted = 0
        for length in range(width):
            prefix = bits >> (width - length)
            inverted = inverted << 1 | self._drawn(f"{width} {length} {prefix}", 1) & 1
        return type(address)(bits ^ inverted)

    def _mac(self, shown: str) -> str:
        """Another MAC address, locally administered (IEEE 802 8.4), with the same signs."""
        plain = re.sub("[^0-9A-Fa-f]", "", shown).lower()
        other = iter(f"02{self._drawn(f'mac {plain}', 5):010x}")
        return re.sub("[0-9A-Fa-f]", lambda _: next(other), shown)

    def _digits(self, shown: str) -> str:
        """Other digits, as many."""
        plain = re.sub("[^0-9]", "", shown)
        number = self._drawn(f"digits {plain}", 16) % 10 ** len(plain)
        other = iter(f"{number:0{len(plain)}}")
        return re.sub("[0-9]", lambda _: next(other), shown)

    def _drawn(self, said: str, size: int) -> int:
        """Bytes that the key and a text decide; always the same number of them."""
        digest = hashlib.blake2b(said.encode(), key=self._key, digest_size=size).digest()
        return int.from_bytes(digest, "big")


def _text(address: Address) -> str:
    """An address as text; with IPv4 inside as RFC 5952 5 recommends."""
    bits = int(address)
    if address.version == 6 and _place_of_ipv4(bits) == 0:
        start = str(ipaddress.IPv6Address(bits >> 32 << 32)).removesuffix("0:0")
        return f"{start}{ipaddress.IPv4Address(bits & 0xFFFF_FFFF)}"
    return str(address)


def _ipv6(groups: list[str]) -> ipaddress.IPv6Address | None:
    """The address of groups between colons; the last one may be IPv4, also with zeros before."""
    *first, last = groups
    if "." in last:
        last = ".".join(str(int(number)) for number in last.split("."))
    try:
        return ipaddress.IPv6Address(":".join([*first, last]))
    except ValueError:
        return None


def _place_of_ipv4(bits: int) -> int | None:
    """By how many bits an IPv4 address inside an IPv6 one is shifted."""
    if bits >> 112 == _6TO4:
        return 80
    inside = bits & 0xFFFF_FFFF
    # Compatible; shorter ones are ::, ::1 and similar.
    if bits == inside >= 1 << 16 or bits - inside in (_MAPPED, _TRANSLATED, _NAT64):
        return 0
    return None
