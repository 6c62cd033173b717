"""Addresses that say nothing of whose they are, and keep their prefixes.

Two addresses that begin with the same bits do so afterwards too, as in Crypto-PAn (Xu, Fan, Ammar
and Moon 2002): whether a bit is inverted depends on a key and on the bits before it. The function
of the key is BLAKE2 here.

>>> hide = Anonymiser(bytes(32))
>>> one, two = hide.text("10.45.0.2 10.45.0.3").split()
>>> one.split(".")[:3] == two.split(".")[:3], "10.45" in one
(True, False)
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
import secrets
from pathlib import Path
from typing import Any

from airpath.base.files import read_within
from airpath.errors import InputError, reason

KEY_BYTES = 32
_ADDRESS = re.compile(
    r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?!\d)"
    r"|(?<![0-9A-Za-z:])[0-9A-Fa-f]*:[0-9A-Fa-f:]*:[0-9A-Fa-f:]*(?:(?:\d{1,3}\.){3}\d{1,3}(?!\d))?"
)
_MAC = re.compile(r"(?<![\w:])(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}(?![\w:])")


def key_of(file: Path) -> bytes:
    """The key in a file, so that several calls hide an address by the same one.

    Raises ``InputError`` for a file that cannot be read or is shorter than 16 bytes.
    """
    try:
        content = read_within(file)
    except OSError as error:
        raise InputError(f"cannot read {file}: {reason(error)}") from None
    if len(content) < 16:
        raise InputError(
            f"{file}: a key has at least 16 bytes, and here are {len(content)}; "
            "`head -c 32 /dev/urandom` makes one"
        )
    return hashlib.blake2b(content, digest_size=KEY_BYTES).digest()


class Anonymiser:
    """Replaces addresses in texts and documents; without a key by one of its own."""

    def __init__(self, key: bytes | None = None) -> None:
        self._key = secrets.token_bytes(KEY_BYTES) if key is None else key
        self._known: dict[str, str] = {}

    def text(self, text: str) -> str:
        """The text with other addresses of IPv4 and IPv6; names of hosts stay."""
        return _ADDRESS.sub(self._replaced, _MAC.sub("00:00:00:00:00:00", text))

    def document(self, value: Any) -> Any:
        """A document with other addresses in all of its texts and keys."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.document(key): self.document(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.document(one) for one in value]
        return value

    def _replaced(self, found: re.Match[str]) -> str:
        shown = found.group()
        if shown not in self._known:
            self._known[shown] = self._other(shown)
        return self._known[shown]

    def _other(self, shown: str) -> str:
        # A colon that ends a sentence's part is none of the address.
        stem = shown if shown.endswith("::") else shown.rstrip(":.")
        try:
            address = ipaddress.ip_address(stem)
        except ValueError:
            return shown
        if stem == "::" or address.is_unspecified:
            return shown
        mapped = getattr(address, "ipv4_mapped", None)
        if mapped is not None:
            return f"::ffff:{self.address(mapped)}{shown[len(stem) :]}"
        return f"{self.address(address)}{shown[len(stem) :]}"

    def address(
        self, address: ipaddress.IPv4Address | ipaddress.IPv6Address
    ) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
        """The other address of the same version."""
        width, bits = address.max_prefixlen, int(address)
        inverted = 0
        for length in range(width):
            prefix = bits >> (width - length)
            said = f"{width} {length} {prefix}".encode()
            bit = hashlib.blake2b(said, key=self._key, digest_size=1).digest()[0] & 1
            inverted = inverted << 1 | bit
        return type(address)(bits ^ inverted)
