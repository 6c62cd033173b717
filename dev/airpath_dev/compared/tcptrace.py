"""What tcptrace says of the connections of a capture, by end."""

from __future__ import annotations

import gzip
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .tshark import Address

_HOST = re.compile(r"^\s*host (\w+):\s+(\S+):(\d+)$")
_FIGURE = re.compile(r"^(.+?):\s+(\S+)(?: \w+)?$")
_HALF = re.compile(r"^\s{5}(.+?):\s+(\S+)(?:\s(?:ms|secs|bytes|pkts|times|Bps))?\s+(.+?):\s+(\S+)")


@dataclass(frozen=True)
class Connection:
    """Figures of each end, under tcptrace's names."""

    ends: tuple[Address, Address]
    figures: tuple[dict[str, str], dict[str, str]]


def tcptrace(path: Path) -> list[Connection] | None:
    """The connections; None where it cannot read the file."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "plain"
        raw = path.read_bytes()
        file.write_bytes(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)
        if file.read_bytes()[:4] == b"\x0a\x0d\x0d\x0a":
            # It does not know pcapng.
            plain = Path(place) / "pcap"
            command = ["editcap", "-F", "pcap", str(file), str(plain)]
            if subprocess.run(command, capture_output=True, check=False).returncode != 0:
                return None
            file = plain
        done = subprocess.run(
            ["tcptrace", "-n", "-l", "-r", str(file)],
            capture_output=True, text=True, errors="replace", check=False,
        )  # fmt: skip
    if done.returncode != 0:
        return None
    return [
        _connection(text) for text in done.stdout.split("TCP connection ")[1:] if "host" in text
    ]


def _connection(text: str) -> Connection:
    ends: list[Address] = []
    figures: tuple[dict[str, str], dict[str, str]] = ({}, {})
    for line in text.splitlines():
        if host := _HOST.match(line):
            ends.append((host[2], int(host[3])))
        elif half := _HALF.match(line):
            figures[0][half[1]], figures[1][half[3]] = half[2], half[4]
    return Connection((ends[0], ends[1]), figures)
