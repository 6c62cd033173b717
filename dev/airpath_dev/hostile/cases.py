"""Each case: what a program does inside an emulation, and how that has to end.

A run ends with a whole result, or with one that says why it is partial. Nothing is left behind.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .host import host

SCAN = Path(__file__).with_name("scan.py")
BOMB = Path(__file__).with_name("bomb.py")
RAW = Path(__file__).with_name("raw.py")
MEASURED = Path(__file__).with_name("measured.py")

WIRE = """
[[path.down]]
stage = "delay"
delay_ms = 5
[[path.up]]
stage = "delay"
delay_ms = 5
[[flow]]
kind = "bulk"
"""


FLOOD = WIRE.replace(
    'kind = "bulk"',
    'kind = "udp"\ndirection = "up"\nrate_mbps = 100000\npacket_bytes = 100\nduration_s = 1',
)

LOUD = """
[[program]]
name = "loud"
command = "head -c {size}M /dev/zero"
"""

KEPT_BYTES = 64 << 20
"""Of what a program writes."""

MOST_BYTES = 300_000_000
"""Of memory, whatever happens inside."""


@dataclass
class Ended:
    """How a run ended."""

    code: int
    said: str
    summary: dict[str, Any]
    out: Path
    peak_bytes: int
    """Of memory, that it or a process that it waited for had at most."""

    @property
    def emulation(self) -> dict[str, Any]:
        """The summary's part on the emulation."""
        section: dict[str, Any] = self.summary["emulation"]
        return section

    @property
    def partial(self) -> list[str]:
        """Why the result is partial."""
        because: list[str] = self.summary["run"]["partial"]
        return because

    def is_partial(self, *words: str) -> bool:
        """Whether a sentence with these words says so, to the user and in the result."""
        found = [one for one in self.partial if all(word in one for word in words)]
        # Lines are broken at the width of a terminal.
        said = " ".join(self.said.split())
        return bool(found) and all(f"partial, because {one}" in said for one in found)


@dataclass(frozen=True)
class Case:
    """One of them."""

    name: str
    command: str
    """Runs in a shell at the first UE; empty: the scenario's flows or programs are all there is."""
    check: Callable[[Ended], None]
    """Raises AssertionError."""
    server: str = ""
    """Runs in a shell at the server before."""
    options: tuple[str, ...] = ()
    scenario: str = WIRE
    seconds: float = 120.0
    """It has to end within."""
    disk: str = ""
    """Size of a file system for the result."""


def run(case: Case, place: Path) -> Ended:
    """Run it in an empty directory. Raises AssertionError if something is left."""
    (place / "hostile.toml").write_text(case.scenario)
    mark = f"airpath-hostile-{os.getpid()}-{case.name}"
    disk = place / "disk"
    disk.mkdir()
    out = disk / "run"
    with _mounted(disk, case.disk):
        return _run(case, place, out, mark)


@contextmanager
def _mounted(disk: Path, size: str) -> Iterator[None]:
    if not size:
        yield
        return
    words = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)]
    subprocess.run(words, check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def _run(case: Case, place: Path, out: Path, mark: str) -> Ended:
    server = ("--server", case.server) if case.server else ()
    command = ("--", "sh", "-c", case.command) if case.command else ()
    words = ("emulate", "hostile.toml", "--user", "root", "--out", str(out))
    before = host(mark, place) | {"file run"}
    report = place / "ended.json"
    with tempfile.TemporaryFile() as said:
        airpath = [sys.executable, "-m", "airpath", *words, *case.options, *server, *command]
        subprocess.run(
            [sys.executable, str(MEASURED), str(case.seconds), str(report), *airpath],
            cwd=place,
            env={**os.environ, "AIRPATH_HOSTILE": mark},
            stdout=said,
            stderr=subprocess.STDOUT,
            check=True,
        )
        said.seek(0)
        text = said.read().decode(errors="replace")
    how = json.loads(report.read_text())
    report.unlink()
    code, peak_bytes = how["code"], how["peak_bytes"]
    assert code is not None, f"it did not end within {case.seconds:.0f} s:\n{text}"
    left = host(mark, place) - before
    assert not left, f"left on the host: {', '.join(sorted(left))}"
    assert (out / "summary.json").exists(), f"no result, exit code {code}:\n{text}"
    document = json.loads((out / "summary.json").read_text())
    ended = Ended(code, text, document, out, peak_bytes)
    case.check(ended)
    assert peak_bytes < MOST_BYTES, f"{peak_bytes / 1e6:.0f} MB of memory"
    return ended


def cases(full: bool = True) -> list[Case]:
    """All of them; without ``full`` in their shorter form."""
    flows = 100_000 if full else 4_000
    size = 2000 if full else 40
    output = 5000 if full else 200
    forks = 500 if full else 100
    return [
        Case(
            "mtu",
            "ip link set air0 mtu 9000; ping -4 -c 3 -i 0.2 -s 5000 -W 1 -M do server; exit 0",
            lambda ended: _oversized(ended, 3, 5028),
            server="ip link set air0 mtu 9000",
        ),
        Case(
            "mtu, packet socket",
            "ip link set air0-wire mtu 60000; ip link set air0 mtu 60000; "
            "ping -4 -c 3 -i 0.2 -s 20000 -W 1 -M do server; exit 0",
            lambda ended: _oversized(ended, 3, 20028),
            options=("--set", "emulation.io=packet"),
        ),
        Case(
            "raw GSO",
            f"{sys.executable} {RAW} 4000 40000 && ping -4 -c 2 -i 0.2 server",
            lambda ended: _oversized(ended, 1, 4040),
        ),
        Case(
            "raw GSO, one byte a segment",
            f"{sys.executable} {RAW} 1 20000 || true; ping -4 -c 2 -i 0.2 server",
            _goes_on,
        ),
        Case(
            "device deleted",
            "ping -4 -c 2 -i 0.2 server; ip link del air0; sleep 0.5",
            lambda ended: _gone(ended, "ue", "2 received"),
        ),
        Case(
            "device deleted, packet socket",
            "ping -4 -c 2 -i 0.2 server; ip link del air0; sleep 0.5",
            lambda ended: _gone(ended, "ue", "2 received"),
            options=("--set", "emulation.io=packet"),
        ),
        Case(
            "the server's device deleted",
            "sleep 0.5; ping -4 -c 2 -i 0.2 -W 1 server; exit 0",
            lambda ended: _gone(ended, "server", "0 received"),
            server="ip link del air0",
        ),
        Case(
            "full disk during a capture",
            f"iperf3 -c server -n {size}M >&2 && ping -4 -c 2 -i 0.2 server",
            _capture_ends,
            server="exec iperf3 -s",
            options=("--capture",),
            disk="12m",
        ),
        Case(
            "port scan",
            f"{sys.executable} {SCAN} {flows} 4000; ping -4 -c 2 -i 0.2 server",
            lambda ended: _scanned(ended, flows),
        ),
        Case(
            "gigabytes of output",
            "",
            lambda ended: _loud(ended, output << 20),
            scenario=WIRE + LOUD.format(size=output),
        ),
        Case(
            "unattainable rate",
            "",
            _too_fast,
            options=("--flows", "--set", "run.duration_s=3"),
            scenario=FLOOD,
        ),
        Case(
            "fork bomb",
            f"{sys.executable} {BOMB} {forks} && ping -4 -c 2 -i 0.2 server",
            _goes_on,
        ),
    ]


def _gone(ended: Ended, end: str, said: str) -> None:
    assert ended.code in (1, 3), ended.said
    assert said in ended.said, ended.said
    assert ended.is_partial(f"the device of `{end}` was gone after"), ended.said


def _capture_ends(ended: Ended) -> None:
    _goes_on(ended)
    assert ended.is_partial("the capture ends after", "No space left"), ended.said
    assert (ended.out / "flows.parquet").exists()
    # Whole packets, to the end.
    packets = subprocess.run(
        ["tcpdump", "-n", "-r", str(ended.out / "capture.pcapng")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "truncated" not in packets.stderr, packets.stderr
    assert f"after {len(packets.stdout.splitlines())} packets" in ended.partial[0]


def _loud(ended: Ended, wrote: int) -> None:
    assert ended.code == 0, ended.said
    (program,) = ended.emulation["programs"]
    assert (ended.out / program["stdout"]).stat().st_size == KEPT_BYTES
    assert program["dropped"]["stdout"]["bytes"] == wrote - KEPT_BYTES, program
    assert "bytes of stdout are not kept" in " ".join(ended.said.split()), ended.said


def _too_fast(ended: Ended) -> None:
    # Nobody is on time then.
    assert ended.code in (0, 1, 3), ended.said
    (failed,) = ended.emulation["failed_flows"]
    assert "rate not reached" in failed["because"], failed
    assert "rate not reached" in ended.said, ended.said


def _scanned(ended: Ended, flows: int) -> None:
    _goes_on(ended)
    seen, rows = ended.emulation["flows"], ended.summary["flows"]
    assert flows <= seen <= flows + 10, seen
    assert len(rows) <= 1001, len(rows)
    # The rows have every datagram, one way or another.
    assert sum(row["segments_sent"] for row in rows if row["kind"] != "bulk") >= 0.9 * flows
    assert "share the row `others`" in " ".join(ended.said.split()), ended.said
    assert not ended.partial, ended.partial


def _oversized(ended: Ended, packets: int, largest: int) -> None:
    assert ended.code in (1, 3), ended.said
    up = ended.emulation["directions"]["up"]
    assert (up["oversized"], up["largest_bytes"]) == (packets, largest), up
    assert ended.is_partial("up", f"{packets} packet", f"{largest} bytes"), ended.said


def _goes_on(ended: Ended) -> None:
    assert ended.code in (int(bool(ended.partial)), 3), ended.said
    assert "2 received" in ended.said, ended.said
