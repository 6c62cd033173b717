"""What this machine can do, what is missing, what that costs, and how to get it."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass

from airpath.emulation import host_changes, rootless
from airpath.emulation.machine import Machine
from airpath.errors import AirpathError, reason

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
    """The result of one check."""

    name: str
    needed_for: str
    found: bool
    detail: str
    """What was found, or why not."""
    remedy: str | None = None
    """What to do; None if nothing is missing, or if no remedy is known."""
    cost: str | None = None
    """What does not work, or does not work well, without it."""


Check = Callable[[Machine], "Finding | tuple[Finding, ...]"]


def examine(machine: Machine | None = None) -> list[Finding]:
    """Run all checks. This takes half a second and changes nothing permanently."""
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


def undo(machine: Machine | None = None) -> list[str]:
    """Restore what killed gateways left changed; return a sentence on each interface."""
    said, failed = [], []
    for left in host_changes.left(machine or Machine()):
        try:
            sentence = left.undo()
        except OSError as error:
            failed.append(f"{left.interface}: {reason(error)}; `airpath doctor --undo` needs root")
        except AirpathError as error:
            failed.append(str(error))
        else:
            said += [sentence] if sentence else []
    if failed:
        raise AirpathError("\n".join([*failed, *said]))
    return said


def _left_behind(machine: Machine) -> tuple[Finding, ...]:
    """Report what a killed gateway left changed; there is no finding if nothing is left."""
    left = host_changes.left(machine)
    if not left:
        return ()
    names = ", ".join(one.interface for one in left)
    return (
        Finding(
            *("interfaces", "interfaces as they were", False),
            f"a gateway that was killed left its record of {names}",
            "airpath doctor --undo",
            "offloads that the gateway switched off may still be off",
        ),
    )


_EMULATION = ("system", "extension", "namespaces", "ip")
"""Emulation does not work without these; without the others it is worse."""


def _system(machine: Machine) -> Finding:
    del machine
    linux = sys.platform == "linux"
    release = platform.release()
    detail = f"{platform.system()} {release} on {platform.machine()}"
    cost = "airpath can simulate, but not emulate"
    if not linux:
        return Finding(
            "system",
            "emulation",
            False,
            detail,
            "use a Linux machine; a virtual machine will do",
            cost,
        )
    if _version(release) < OLDEST_KERNEL:
        oldest = ".".join(map(str, OLDEST_KERNEL))
        return Finding("system", "emulation", False, detail, f"use Linux {oldest} or later", cost)
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
            *("make build", "airpath does not work"),
        )
    return Finding("extension", "simulation, emulation", True, f"airpath {_core.__version__}")


def _charts(machine: Machine) -> Finding:
    del machine
    found = importlib.util.find_spec("vl_convert") is not None
    detail = "vl-convert is installed" if found else "vl-convert is missing"
    remedy = None if found else "pip install vl-convert-python"
    return Finding(
        "charts", "charts as SVG and PNG", found, detail, remedy, "charts are only in HTML reports"
    )


def _root(machine: Machine) -> Finding:
    root = machine.may_make_namespaces()
    detail = "CAP_SYS_ADMIN and CAP_NET_ADMIN" if root else f"user {os.geteuid()}"
    cost = "emulation runs in a user namespace: no BPF, no real-time priority, late packets"
    return Finding(
        *("root", "emulation at its best", root, detail),
        *(None if root else "run airpath with sudo", cost),
    )


def _namespaces(machine: Machine) -> Finding:
    name, purpose, cost = "namespaces", "emulation", "airpath cannot emulate"
    if (unshare := machine.which("unshare")) is None:
        remedy = "apt-get install util-linux"
        why = "not known, because `unshare` is missing"
        return Finding(name, purpose, False, why, remedy, cost)
    root = machine.may_make_namespaces()
    user = [] if root else ["--user", "--map-root-user"]
    done = machine.run([unshare, *user, "--net", "--mount", "--pid", "--fork", "true"])
    if done.returncode == 0:
        kinds = "network, mount and PID namespaces"
        return Finding(name, purpose, True, kinds if root else f"{kinds}, inside a user namespace")
    if root:
        remedy = "in a container, start the container with --privileged"
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
        remedy = "run airpath as root, or chmod 666 /dev/net/tun" if there else "modprobe tun"
        detail = f"{path}: {error.strerror}"
        return Finding("tun", "emulation at full speed", False, detail, remedy, cost)
    return Finding("tun", "emulation at full speed", True, path)


def _wakes(machine: Machine) -> tuple[Finding, ...]:
    """Real-time priority, and how late a sleeping program wakes up with it or without."""
    purpose = "punctual emulation"
    cost = "other programs delay packets by milliseconds, and runs may be invalid"
    done = machine.run([sys.executable, "-c", WAKES])
    try:
        said = json.loads(done.stdout)
        real_time, p50, p99, most = (said[key] for key in ("real_time", "p50", "p99", "max"))
    except (ValueError, KeyError, TypeError):
        detail = done.stderr.strip() or "this could not be measured"
        return (Finding("real-time priority", purpose, False, detail, None, cost),)
    priority = Finding(
        *("real-time priority", purpose, real_time),
        "SCHED_FIFO is allowed" if real_time else "not allowed",
        None if real_time else "run airpath as root, or put `USER - rtprio 50` into limits.conf",
        cost,
    )
    punctual = p99 <= WAKE_BOUND_US
    wakes = Finding(
        *("wake-ups", purpose, punctual),
        f"{'with SCHED_FIFO' if real_time else 'without priority'} late by {p50:.0f} us (p50), "
        f"{p99:.0f} us (p99), {most:.0f} us (max) in 300 sleeps",
        None
        if punctual
        else "use a machine without other work or other guests, or set a larger "
        "emulation.lateness_bound_ms",
        f"runs are invalid if more than 1 % of the packets leave later than {WAKE_BOUND_US:.0f} us",
    )
    return priority, wakes


def _clock(machine: Machine) -> Finding:
    name, purpose = "clock source", "punctual emulation"
    place = "/sys/devices/system/clocksource/clocksource0"
    now = machine.read(f"{place}/current_clocksource")
    there = (machine.read(f"{place}/available_clocksource") or "").split()
    cost = "each reading of the clock is a system call or a slow device, so throughput is lower"
    if now is None:
        return Finding(name, purpose, False, "not known", None, cost)
    good = now in GOOD_CLOCKS
    better = next((clock for clock in GOOD_CLOCKS if clock in there), None)
    remedy = None
    if not good and better is not None:
        remedy = f"echo {better} | sudo tee {place}/current_clocksource"
    return Finding(name, purpose, good, now, remedy, cost)


def _congestion(machine: Machine) -> Finding:
    name, purpose = "congestion controls", "emulation with reno, cubic and bbr"
    there = (machine.sysctl("net.ipv4.tcp_available_congestion_control") or "").split()
    missing = [each for each in CONGESTION if each not in there]
    remedy = f"modprobe {' '.join(f'tcp_{each}' for each in missing)}" if missing else None
    cost = f"flows with {', '.join(missing)} cannot be emulated" if missing else None
    return Finding(name, purpose, not missing, ", ".join(there) or "not known", remedy, cost)


def _bpf(machine: Machine) -> Finding:
    """Kernel types, rights, and whether the extension was built with it."""
    name, purpose = "bpf", "emulation with a row for each ACK and airpath's congestion controls"
    cost = "the kernel's TCP has no row for each ACK, because its counters are polled"
    if not machine.at("/sys/kernel/btf/vmlinux").exists():
        remedy = "use a kernel with CONFIG_DEBUG_INFO_BTF=y"
        return Finding(name, purpose, False, "/sys/kernel/btf/vmlinux is missing", remedy, cost)
    if not _built_with_bpf():
        remedy = "apt-get install clang libelf-dev zlib1g-dev pkg-config make, then make build"
        return Finding(name, purpose, False, "the extension was built without BPF", remedy, cost)
    if not machine.may_make_namespaces():
        return Finding(name, purpose, False, "only root may load it", "run airpath with sudo", cost)
    return Finding(name, purpose, True, "the kernel has BTF, and the extension was built with BPF")


def _built_with_bpf() -> bool:
    """Whether programs inside the kernel are built into the extension."""
    try:
        from airpath._core import __bpf__
    except ImportError:
        return False
    return __bpf__


def _idle(machine: Machine) -> Finding:
    """Whether emulation can keep idle processors awake (emulation.keep_awake)."""
    name, purpose = "idle processors", "punctual emulation"
    try:
        # Until something is written there, nothing is asked for.
        os.close(os.open(machine.at(LATENCY), os.O_WRONLY))
    except OSError as error:
        there = machine.at(LATENCY).exists()
        return Finding(
            *(name, purpose, False, f"they sleep: {LATENCY}: {error.strerror}"),
            "run airpath as root" if there else "in a container, give it the device",
            "packets wait until a processor wakes up, tens of microseconds in a virtual machine",
        )
    return Finding(name, purpose, True, f"emulation keeps them awake: {LATENCY}")


def _processors(machine: Machine) -> Finding:
    del machine
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    enough = count >= 2
    remedy = None if enough else "use a machine with two processors or more"
    cost = "the thread that moves the packets shares its processor with the programs"
    return Finding("processors", "punctual emulation", enough, str(count), remedy, cost)


def _program(program: str, package: str, purpose: str, cost: str) -> Check:
    def check(machine: Machine) -> Finding:
        path = machine.which(program)
        remedy = None if path else f"apt-get install {package}"
        return Finding(program, purpose, path is not None, path or "not found", remedy, cost)

    return check


def _ping(machine: Machine) -> Finding:
    """Whose ping it is: that of inetutils lacks options, and prints no time of each reply."""
    path = machine.which("ping")
    told = "" if path is None else machine.run([path, "-V"]).stdout
    enough = "iputils" in told
    other = "inetutils" if "inetutils" in told else "not of iputils"
    found = "not found" if path is None else path if enough else f"{path} ({other})"
    remedy = None if enough else "apt-get install iputils-ping"
    cost = "examples with ping do not work"
    return Finding("ping", "examples of the guides, and tests", enough, found, remedy, cost)


_CHECKS: tuple[Check, ...] = (
    _system,
    _compiled,
    _charts,
    _root,
    _namespaces,
    _tun,
    _program("ip", "iproute2", "emulation", "airpath cannot emulate: ip sets up the interfaces"),
    _wakes,
    _clock,
    _processors,
    _idle,
    _left_behind,
    _congestion,
    _bpf,
    _program("nft", "nftables", "emulation with a NAT", "scenarios with a NAT cannot be emulated"),
    _ping,
    _program(
        "iperf3",
        "iperf3",
        "examples of the guides, tests, benchmarks",
        "examples with iperf3 do not work",
    ),
    _program("curl", "curl", "examples of the guides, and tests", "examples with curl do not work"),
    _program("tcpdump", "tcpdump", "packet captures inside an emulation", "--capture still works"),
    _program("tshark", "tshark", "reading captures, and tests", "captures are not cross-checked"),
    _program("ss", "iproute2", "examples of the guides", "look at sockets by other means"),
    _program("ethtool", "ethtool", "examples of the guides", "interfaces keep their settings"),
    _program("jq", "jq", "examples of the guides", "read their JSON by other means"),
    _program("bpftool", "bpftool", "tests of BPF programs", "tests of BPF programs do not run"),
)
