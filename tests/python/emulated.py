"""What tests of emulation share: what the machine must have, paths, and looks at what went on."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from airpath.emulation import doctor

PACKAGES = {
    "curl": "curl",
    "ip": "iproute2",
    "iperf3": "iperf3",
    "nft": "nftables",
    "ping": "iputils-ping",
    "tcpdump": "tcpdump",
    "tcptrace": "tcptrace",
    "tshark": "tshark",
}


def _missing(programs: tuple[str, ...]) -> str | None:
    if os.geteuid() != 0:
        return "root is needed for namespaces and TUN devices"
    if not Path("/dev/net/tun").exists():
        return "/dev/net/tun is missing (modprobe tun)"
    lacking = [PACKAGES[name] for name in programs if shutil.which(name) is None]
    return f"apt-get install {' '.join(lacking)}" if lacking else None


Test = TypeVar("Test", bound=Callable[..., object])


def skip_without(*programs: str) -> pytest.MarkDecorator:
    """Skip without root, TUN devices or one of the programs, and say so."""
    reason = _missing(programs)
    return pytest.mark.skipif(reason is not None, reason=reason or "")


def needs(*programs: str) -> Callable[[Test], Test]:
    """Likewise, and the test is on the real clock: it emulates."""

    def mark(test: Test) -> Test:
        marked: Test = pytest.mark.real_clock(skip_without(*programs)(test))
        return marked

    return mark


needs_root = needs("ip", "iperf3", "ping", "curl")


@functools.cache
def skip_without_bpf() -> pytest.MarkDecorator:
    """Skip where no program may be loaded into the kernel; finding out takes a moment."""
    bpf = next(found for found in doctor.examine() if found.name == "bpf")
    return pytest.mark.skipif(not bpf.found, reason=f"BPF: {bpf.detail} ({bpf.remedy})")


def stages(down_ms: float, up_ms: float, *, rate_mbps: float = 0, queue_packets: int = 0) -> str:
    """A scenario's path: delays, after a link downwards if it has a rate."""
    link = f"""\
[[path.down]]
stage = "link"
rate_mbps = {rate_mbps}
queue_packets = {queue_packets}
"""
    return f"""\
{link if rate_mbps else ""}\
[[path.down]]
stage = "delay"
delay_ms = {down_ms}
[[path.up]]
stage = "delay"
delay_ms = {up_ms}
"""


DELAYS = f"""
{stages(15, 10)}\
[[flow]]
kind = "bulk"
congestion = "reno"
profile = "linux-6.18"
"""


def printed(done: subprocess.CompletedProcess[str]) -> Any:
    """Return what ``--json`` printed; the machine may have been late."""
    assert done.returncode in (0, 3), done.stderr
    return json.loads(done.stdout)


def busiest(document: dict[str, Any]) -> dict[str, Any]:
    """Return the flow that delivered most."""
    flows: list[dict[str, Any]] = document["flows"]
    return max(flows, key=lambda flow: flow["bytes_delivered"])


def iperf(said: str) -> dict[str, Any]:
    """Return iperf3's own document, amid what else was written."""
    found: dict[str, Any] = json.JSONDecoder().raw_decode(said[said.index("{") :])[0]
    return found


def pcapng(file: Path) -> tuple[list[str], list[tuple[int, int, bytes]]]:
    """Names of the interfaces of a pcapng file; interface, nanoseconds and bytes of each packet."""
    data = file.read_bytes()
    names, packets, at = [], [], 0
    while at < len(data):
        kind, length = struct.unpack_from("<II", data, at)
        assert struct.unpack_from("<I", data, at + length - 4) == (length,)
        if kind == 1:
            code, size = struct.unpack_from("<HH", data, at + 16)
            assert code == 2
            names.append(data[at + 20 : at + 20 + size].decode())
        elif kind == 6:
            place, high, low, size, original = struct.unpack_from("<IIIII", data, at + 8)
            assert size == original
            frame = data[at + 28 : at + 28 + size]
            # An Ethernet header, which says only whether IPv4 or IPv6 follows.
            assert frame[12:14] == {4: b"\x08\x00", 6: b"\x86\xdd"}[frame[14] >> 4]
            packets.append((place, high << 32 | low, frame[14:]))
        at += length
    return names, packets


def ones_complement(data: bytes) -> int:
    """Sum of RFC 1071."""
    data += b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def processes(mark: str) -> list[str]:
    """Processes beside our own whose command line has the mark."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdecimal() and int(place.name) != os.getpid():
            with contextlib.suppress(OSError):
                if mark.encode() in (place / "cmdline").read_bytes():
                    found.append(f"process {place.name}")
    return found


def networks(process: str = "[0-9]*") -> set[str]:
    """Network namespaces of a process's threads, or of everybody's."""
    found = set()
    for place in Path("/proc").glob(f"{process}/task/[0-9]*/ns/net"):
        with contextlib.suppress(OSError):
            found.add(str(place.readlink()))
    return found
