"""What this machine can do, what is missing, what that costs, and how to get it."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass

from airpath.emulation import rootless
from airpath.emulation.machine import Machine

CONGESTION = ("reno", "cubic", "bbr")
OLDEST_KERNEL = (5, 4)
"""What emulation calls is as old: CLONE_PIDFD 5.2, PACKET_IGNORE_OUTGOING 4.20."""

GOOD_CLOCKS = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter")
"""Clock sources that are read without leaving the processor."""

WAKE_BOUND_US = 500.0
"""The default of emulation.lateness_bound_ms."""

LATENCY = "/dev/cpu_dma_latency"
"""Where Linux is asked to let no processor sleep, as long as the file is open."""

WAKES = f"""
import json, os, time
try:
    awake = open("{LATENCY}", "wb", buffering=0)
    awake.write(bytes(4))
except OSError:
    pass
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    real_time = True
except OSError:
    real_time = False
late = []
for _ in range(300):
    due = time.monotonic_ns() + 1_000_000
    time.sleep(0.001)
    late.append((time.monotonic_ns() - due) / 1e3)
late.sort()
said = dict(real_time=real_time, p50=late[150], p99=late[297], max=late[-1])
print(json.dumps(said))
"""
"""A program that sleeps 300 times for 1 ms, with real-time priority and idle processors awake if it
may have that: how late it woke up, in microseconds."""


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
    cost: str | None = None
    """What does not work, or not well, without it."""


Check = Callable[[Machine], "Finding | tuple[Finding, ...]"]


def examine(machine: Machine | None = None) -> list[Finding]:
    """Look at everything; changes nothing that lasts. Takes half a second."""
    machine = machine or Machine()
    found: list[Finding] = []
    for check in _CHECKS:
        result = check(machine)
        found += result if isinstance(result, tuple) else (result,)
    return found


def as_json(findings: list[Finding]) -> dict[str, object]:
    """The document that ``airpath doctor --json`` prints."""
    return {
        "simulate": all(found.found for found in findings if "simulation" in found.needed_for),
        "emulate": all(found.found for found in findings if found.name in _EMULATION),
        "findings": [asdict(found) for found in findings],
    }


_EMULATION = ("system", "extension", "namespaces", "ip")
"""Without these there is no emulation; without others it is worse."""


def _system(machine: Machine) -> Finding:
    del machine
    linux = sys.platform == "linux"
    release = platform.release()
    detail = f"{platform.system()} {release} on {platform.machine()}"
    cost = "no emulation, only simulation"
    if not linux:
        return Finding(
            "system", "emulation", False, detail, "use a Linux machine, virtual or not", cost
        )
    if _version(release) < OLDEST_KERNEL:
        oldest = ".".join(map(str, OLDEST_KERNEL))
        return Finding("system", "emulation", False, detail, f"Linux {oldest} or later", cost)
    return Finding("system", "emulation", True, detail)


def _version(release: str) -> tuple[int, int]:
    major, minor, *_ = [*release.split("."), "0", "0"]
    digits = ("".join(c for c in part if c.isdigit()) or "0" for part in (major, minor))
    first, second = (int(part) for part in digits)
    return first, second


def _compiled(machine: Machine) -> Finding:
    del machine
    try:
        from airpath import _core
    except ImportError as error:
        return Finding(
            *("extension", "simulation, emulation", False, str(error)),
            *("make build", "nothing works"),
        )
    return Finding("extension", "simulation, emulation", True, f"airpath {_core.__version__}")


def _charts(machine: Machine) -> Finding:
    del machine
    found = importlib.util.find_spec("vl_convert") is not None
    detail = "vl-convert is there" if found else "vl-convert is missing"
    remedy = None if found else "pip install vl-convert-python"
    return Finding("charts", "charts as SVG and PNG", found, detail, remedy, "HTML only")


def _root(machine: Machine) -> Finding:
    root = machine.may_make_namespaces()
    detail = "CAP_SYS_ADMIN and CAP_NET_ADMIN" if root else f"user {os.geteuid()}"
    cost = "emulation inside a user namespace: no BPF, no real-time priority, late packets"
    return Finding(
        *("root", "emulation at its best", root, detail),
        *(None if root else "run it with sudo", cost),
    )


def _namespaces(machine: Machine) -> Finding:
    name, purpose, cost = "namespaces", "emulation", "no emulation"
    if (unshare := machine.which("unshare")) is None:
        remedy = "apt-get install util-linux"
        why = "`unshare` is missing, so it is not known"
        return Finding(name, purpose, False, why, remedy, cost)
    root = machine.may_make_namespaces()
    user = [] if root else ["--user", "--map-root-user"]
    done = machine.run([unshare, *user, "--net", "--mount", "--pid", "--fork", "true"])
    if done.returncode == 0:
        kinds = "network, mount and PID namespaces"
        return Finding(name, purpose, True, kinds if root else f"{kinds}, as a user")
    if root:
        remedy = "in a container: run it with --privileged"
        return Finding(name, purpose, False, done.stderr.strip(), remedy, cost)
    why, remedy = rootless.refusal(machine, PermissionError(1, done.stderr.strip()))
    return Finding(name, purpose, False, why, remedy, cost)


def _tun(machine: Machine) -> Finding:
    path = "/dev/net/tun"
    cost = "emulation uses packet sockets, which are slower"
    try:
        os.close(os.open(machine.at(path), os.O_RDWR))
    except OSError as error:
        there = machine.at(path).exists()
        remedy = "run it as root, or chmod 666 /dev/net/tun" if there else "modprobe tun"
        detail = f"{path}: {error.strerror}"
        return Finding("tun", "emulation at full speed", False, detail, remedy, cost)
    return Finding("tun", "emulation at full speed", True, path)


def _wakes(machine: Machine) -> tuple[Finding, ...]:
    """Real-time priority, and how late a sleeping program wakes up with it or without."""
    purpose = "emulation that is not late"
    cost = "other programs delay the forwarder by milliseconds: runs may be invalid"
    done = machine.run([sys.executable, "-c", WAKES])
    try:
        said = json.loads(done.stdout)
        real_time, p50, p99, most = (said[key] for key in ("real_time", "p50", "p99", "max"))
    except (ValueError, KeyError, TypeError):
        detail = done.stderr.strip() or "it could not be measured"
        return (Finding("real-time priority", purpose, False, detail, None, cost),)
    priority = Finding(
        *("real-time priority", purpose, real_time),
        "SCHED_FIFO is allowed" if real_time else "not allowed",
        None if real_time else "run it as root, or a line `USER - rtprio 50` in limits.conf",
        cost,
    )
    punctual = p99 <= WAKE_BOUND_US
    wakes = Finding(
        *("wake-ups", purpose, punctual),
        f"{'SCHED_FIFO' if real_time else 'no priority'}: late by {p50:.0f} us (p50), "
        f"{p99:.0f} us (p99), {most:.0f} us (max) of 300",
        None
        if punctual
        else "a machine of its own, fewer virtual ones beside it; or a larger "
        "emulation.lateness_bound_ms",
        f"more than 1 % of the packets leave later than {WAKE_BOUND_US:.0f} us: invalid runs",
    )
    return priority, wakes


def _clock(machine: Machine) -> Finding:
    name, purpose = "clock source", "emulation that is not late"
    place = "/sys/devices/system/clocksource/clocksource0"
    now = machine.read(f"{place}/current_clocksource")
    there = (machine.read(f"{place}/available_clocksource") or "").split()
    cost = "each look at the clock is a system call or a slow device: less throughput"
    if now is None:
        return Finding(name, purpose, False, "not known", None, cost)
    good = now in GOOD_CLOCKS
    better = next((clock for clock in GOOD_CLOCKS if clock in there), None)
    remedy = None
    if not good and better is not None:
        remedy = f"echo {better} | sudo tee {place}/current_clocksource"
    return Finding(name, purpose, good, now, remedy, cost)


def _congestion(machine: Machine) -> Finding:
    name, purpose = "congestion controls", "emulation: reno, cubic, bbr"
    there = (machine.sysctl("net.ipv4.tcp_available_congestion_control") or "").split()
    missing = [each for each in CONGESTION if each not in there]
    remedy = f"modprobe {' '.join(f'tcp_{each}' for each in missing)}" if missing else None
    cost = f"flows with {', '.join(missing)} cannot be emulated" if missing else None
    return Finding(name, purpose, not missing, ", ".join(there) or "not known", remedy, cost)


def _bpf(machine: Machine) -> Finding:
    """Kernel types, rights, and whether the extension was built with it."""
    name, purpose = "bpf", "emulation: a row per ACK, congestion controls of our own"
    cost = "no rows per ACK of the kernel's TCP; its counters are polled instead"
    if not machine.at("/sys/kernel/btf/vmlinux").exists():
        remedy = "a kernel with CONFIG_DEBUG_INFO_BTF=y"
        return Finding(name, purpose, False, "/sys/kernel/btf/vmlinux is missing", remedy, cost)
    if not _built_with_bpf():
        remedy = "apt-get install clang libelf-dev zlib1g-dev pkg-config make, then make build"
        return Finding(name, purpose, False, "the extension was built without it", remedy, cost)
    if not machine.may_make_namespaces():
        return Finding(name, purpose, False, "only for root", "run it with sudo", cost)
    return Finding(name, purpose, True, "BTF of the kernel, and the extension has it")


def _built_with_bpf() -> bool:
    """Whether programs inside the kernel are built into the extension."""
    try:
        from airpath._core import __bpf__
    except ImportError:
        return False
    return __bpf__


def _idle(machine: Machine) -> Finding:
    """Whether emulation can keep idle processors awake (emulation.keep_awake)."""
    name, purpose = "idle processors", "emulation that is not late"
    try:
        # Until something is written there, nothing is asked for.
        os.close(os.open(machine.at(LATENCY), os.O_WRONLY))
    except OSError as error:
        there = machine.at(LATENCY).exists()
        return Finding(
            *(name, purpose, False, f"they sleep: {LATENCY}: {error.strerror}"),
            "run it as root" if there else "in a container: give it the device",
            "packets wait for a processor to wake up, in a virtual machine tens of microseconds",
        )
    return Finding(name, purpose, True, f"emulation keeps them awake: {LATENCY}")


def _processors(machine: Machine) -> Finding:
    del machine
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    enough = count >= 2
    remedy = None if enough else "a machine with two processors or more"
    cost = "the forwarder shares its processor with the programs"
    return Finding("processors", "emulation that is not late", enough, str(count), remedy, cost)


def _program(program: str, package: str, purpose: str, cost: str) -> Check:
    def check(machine: Machine) -> Finding:
        path = machine.which(program)
        remedy = None if path else f"apt-get install {package}"
        return Finding(program, purpose, path is not None, path or "not found", remedy, cost)

    return check


_CHECKS: tuple[Check, ...] = (
    _system,
    _compiled,
    _charts,
    _root,
    _namespaces,
    _tun,
    _program("ip", "iproute2", "emulation", "no emulation: it sets up the interfaces"),
    _wakes,
    _clock,
    _processors,
    _idle,
    _congestion,
    _bpf,
    _program("nft", "nftables", "emulation with NAT of the kernel's", "no kernel NAT"),
    _program("ping", "iputils-ping", "emulation: guides and tests", "no round trip at hand"),
    _program("iperf3", "iperf3", "emulation: tests and benches", "no load generator at hand"),
    _program("curl", "curl", "emulation: guides and tests", "no download at hand"),
    _program("tcpdump", "tcpdump", "looking at packets inside", "captures are made by --capture"),
    _program("tshark", "tshark", "looking into captures", "captures are not cross-checked"),
    _program("jq", "jq", "looking into JSON in the guides' examples", "read it by other means"),
    _program("bpftool", "bpftool", "looking at BPF programs", "only tests use it"),
)
