"""What this machine can do, what is missing, and how to get it."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

CONGESTION = ("reno", "cubic", "bbr")


@dataclass(frozen=True)
class Finding:
    """One thing that was looked for."""

    name: str
    needed_for: str
    found: bool
    detail: str
    """What was found, or why not."""
    remedy: str | None = None
    """What to do; None if nothing is missing, or nothing helps."""


def examine() -> list[Finding]:
    """Look at everything; changes nothing that lasts."""
    checks: tuple[Callable[[], Finding], ...] = (
        _system,
        _compiled,
        _browser_free_charts,
        _root,
        _tun,
        _namespaces,
        _program("ip", "iproute2", "emulation: sets up its interfaces"),
        _program("iperf3", "iperf3", "emulation: tests and benches"),
        _program("nft", "nftables", "emulation with NAT of the kernel's"),
        _real_time,
        _congestion,
        _bpf,
        _processors,
    )
    return [check() for check in checks]


def as_json(findings: list[Finding]) -> dict[str, object]:
    """The document that ``airpath doctor --json`` prints."""
    return {
        "simulate": all(found.found for found in findings if "simulation" in found.needed_for),
        "emulate": all(found.found for found in findings if found.name in _EMULATION),
        "findings": [asdict(found) for found in findings],
    }


_EMULATION = ("system", "extension", "root", "tun", "namespaces", "ip")


def _system() -> Finding:
    linux = sys.platform == "linux"
    detail = f"{platform.system()} {platform.release()} on {platform.machine()}"
    remedy = None if linux else "use a Linux machine, virtual or not"
    return Finding("system", "emulation", linux, detail, remedy)


def _compiled() -> Finding:
    try:
        from airpath import _core
    except ImportError as error:
        return Finding("extension", "simulation, emulation", False, str(error), "make build")
    return Finding("extension", "simulation, emulation", True, f"airpath {_core.__version__}")


def _browser_free_charts() -> Finding:
    found = importlib.util.find_spec("vl_convert") is not None
    detail = "vl-convert is there" if found else "vl-convert is missing"
    remedy = None if found else "pip install vl-convert-python"
    return Finding("charts", "charts as SVG and PNG", found, detail, remedy)


def _root() -> Finding:
    root = os.geteuid() == 0
    detail = "root" if root else f"user {os.geteuid()}"
    return Finding("root", "emulation", root, detail, None if root else "run it with sudo")


def _tun() -> Finding:
    path = "/dev/net/tun"
    try:
        os.close(os.open(path, os.O_RDWR))
    except OSError as error:
        remedy = "modprobe tun" if not Path(path).exists() else "run it as root"
        return Finding("tun", "emulation", False, f"{path}: {error.strerror}", remedy)
    return Finding("tun", "emulation", True, path)


def _namespaces() -> Finding:
    name, purpose = "namespaces", "emulation"
    if (unshare := shutil.which("unshare")) is None:
        remedy = "apt-get install util-linux"
        return Finding(name, purpose, False, "`unshare` is missing, so it is not known", remedy)
    done = subprocess.run(  # noqa: S603 - constant words
        [unshare, "--net", "--mount", "--pid", "--fork", "true"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        remedy = "run it as root; in a container, with --privileged"
        return Finding(name, purpose, False, done.stderr.strip(), remedy)
    return Finding(name, purpose, True, "network, mount and PID namespaces")


def _program(program: str, package: str, purpose: str) -> Callable[[], Finding]:
    def check() -> Finding:
        path = shutil.which(program)
        remedy = None if path else f"apt-get install {package}"
        return Finding(program, purpose, path is not None, path or "not found", remedy)

    return check


def _real_time() -> Finding:
    name, purpose = "real-time priority", "emulation that is not late"
    child = "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))"
    words = [sys.executable, "-c", child]
    done = subprocess.run(words, capture_output=True, check=False)  # noqa: S603 - constant words
    if done.returncode != 0:
        return Finding(name, purpose, False, "not allowed", "run it as root, or ulimit -r 50")
    return Finding(name, purpose, True, "SCHED_FIFO is allowed")


def _congestion() -> Finding:
    name, purpose = "congestion controls", "emulation: reno, cubic, bbr"
    file = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    try:
        there = file.read_text().split()
    except OSError as error:
        return Finding(name, purpose, False, f"{file}: {error.strerror}")
    missing = [each for each in CONGESTION if each not in there]
    remedy = f"modprobe {' '.join(f'tcp_{each}' for each in missing)}" if missing else None
    return Finding(name, purpose, not missing, ", ".join(there), remedy)


def _bpf() -> Finding:
    name, purpose = "bpf", "emulation that sees every acknowledgement"
    try:
        from airpath._core import __bpf__ as built
    except ImportError as error:
        return Finding(name, purpose, False, str(error), "make build")
    if not built:
        remedy = "apt-get install clang libelf-dev zlib1g-dev pkg-config make, then make build"
        return Finding(name, purpose, False, "airpath was built without it", remedy)
    types = Path("/sys/kernel/btf/vmlinux")
    if not types.exists():
        detail = f"{types} is missing: the kernel was built without CONFIG_DEBUG_INFO_BTF"
        return Finding(name, purpose, False, detail, "use another kernel")
    if os.geteuid() != 0:
        return Finding(name, purpose, False, "only root may", "run it with sudo")
    return Finding(name, purpose, True, str(types))


def _processors() -> Finding:
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    enough = count >= 2
    remedy = None if enough else "the forwarder wants a processor to itself"
    return Finding("processors", "emulation that is not late", enough, str(count), remedy)
