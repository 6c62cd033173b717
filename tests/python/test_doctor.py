"""``airpath doctor``: what it says of machines that lack something."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from airpath.emulation import doctor
from airpath.emulation.machine import Machine
from conftest import Command

ROOT = Path(__file__).parents[2]
FULL_RIGHTS = "CapEff:\t000001ffffffffff\n"
NO_RIGHTS = "CapEff:\t0000000000000000\n"
PUNCTUAL = '{"real_time": true, "p50": 4.0, "p99": 50.0, "max": 90.0}'
CLOCKS = "sys/devices/system/clocksource/clocksource0"


@dataclass(frozen=True)
class Fake(Machine):
    """A machine of files in a directory, with these programs."""

    programs: tuple[str, ...] = (
        *("ip", "unshare", "nft", "ping", "iperf3", "curl", "tcpdump", "tshark"),
        *("ss", "ethtool", "jq", "bpftool"),
    )
    unshare: tuple[int, str] = (0, "")
    wakes: str = PUNCTUAL
    ping: str = "ping from iputils 20240905\n"
    ran: list[list[str]] = field(default_factory=list)

    def which(self, program: str) -> str | None:
        return f"/bin/{program}" if program in self.programs else None

    def run(self, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
        self.ran.append(list(words))
        if words[0] == "/bin/unshare":
            return subprocess.CompletedProcess(words, self.unshare[0], "", self.unshare[1])
        if words[0] == "/bin/ping":
            return subprocess.CompletedProcess(words, 0, self.ping, "")
        assert words[0] == sys.executable
        return subprocess.CompletedProcess(words, 0, self.wakes, "")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Files of a machine that has everything."""
    files = {
        "proc/self/status": FULL_RIGHTS,
        "dev/net/tun": "",
        "dev/cpu_dma_latency": "",
        "proc/sys/net/ipv4/tcp_available_congestion_control": "reno cubic bbr\n",
        f"{CLOCKS}/current_clocksource": "tsc\n",
        f"{CLOCKS}/available_clocksource": "tsc hpet acpi_pm\n",
        "sys/kernel/btf/vmlinux": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def _found(name: str, machine: Machine) -> doctor.Finding:
    return next(found for found in doctor.examine(machine) if found.name == name)


def test_a_machine_that_has_everything(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_built_with_bpf", lambda: True)
    monkeypatch.setattr("platform.release", lambda: "6.8.0-41-generic")
    findings = doctor.examine(Fake(root))
    lacking = [found for found in findings if not found.found and found.name != "processors"]
    assert lacking == []
    document = doctor.as_json(findings)
    assert document["simulate"]
    assert document["emulate"]


def test_whatever_is_missing_has_a_cost(root: Path) -> None:
    for file in sorted(root.rglob("*")):
        if file.is_file():
            file.unlink()
    for found in doctor.examine(Fake(root, programs=(), wakes="")):
        assert found.found or found.cost, found.name


@pytest.mark.parametrize(
    ("program", "package"),
    [
        ("ip", "iproute2"),
        ("nft", "nftables"),
        ("ping", "iputils-ping"),
        ("tshark", "tshark"),
        ("bpftool", "bpftool"),
    ],
)
def test_a_missing_program_has_its_package(root: Path, program: str, package: str) -> None:
    others = tuple(name for name in Fake(root).programs if name != program)
    machine = Fake(root, programs=others)
    assert _found(program, machine).remedy == f"apt-get install {package}"
    assert bool(doctor.as_json(doctor.examine(machine))["emulate"]) == (program != "ip")


def test_pings_are_told_apart(root: Path) -> None:
    found = _found("ping", Fake(root, ping="ping (GNU inetutils) 2.4\n"))
    assert (found.found, found.remedy) == (False, "apt-get install iputils-ping")
    assert found.detail == "/bin/ping (inetutils)"


def test_an_ordinary_user_where_user_namespaces_are_allowed(root: Path) -> None:
    (root / "proc/self/status").write_text(NO_RIGHTS)
    machine = Fake(root)
    assert _found("root", machine).remedy == "run airpath with sudo"
    assert _found("namespaces", machine).detail.endswith("inside a user namespace")
    assert "--user" in machine.ran[0]
    assert doctor.as_json(doctor.examine(machine))["emulate"]


def test_ubuntu_since_23_10(root: Path) -> None:
    (root / "proc/self/status").write_text(NO_RIGHTS)
    sysctl = root / "proc/sys/kernel/apparmor_restrict_unprivileged_userns"
    sysctl.parent.mkdir(parents=True)
    sysctl.write_text("1\n")
    machine = Fake(root, unshare=(1, "unshare: write failed /proc/self/uid_map"))
    found = _found("namespaces", machine)
    assert "AppArmor" in found.detail
    assert found.remedy is not None
    assert "userns," in found.remedy
    assert not doctor.as_json(doctor.examine(machine))["emulate"]


def test_without_tun_emulation_is_slower_and_not_impossible(root: Path) -> None:
    (root / "dev/net/tun").unlink()
    found = _found("tun", Fake(root))
    assert (found.found, found.remedy) == (False, "modprobe tun")
    assert doctor.as_json(doctor.examine(Fake(root)))["emulate"]


def test_a_machine_that_wakes_up_late(root: Path) -> None:
    late = '{"real_time": false, "p50": 80.0, "p99": 2400.0, "max": 9000.0}'
    machine = Fake(root, wakes=late)
    assert "2400 us (p99)" in _found("wake-ups", machine).detail
    assert not _found("wake-ups", machine).found
    assert "rtprio" in str(_found("real-time priority", machine).remedy)
    assert not _found("real-time priority", Fake(root, wakes="nothing")).found


def test_processors_that_may_not_be_kept_awake(root: Path) -> None:
    device = root / "dev/cpu_dma_latency"
    assert _found("idle processors", Fake(root)).found
    assert device.read_bytes() == b"", "only asked"
    device.unlink()
    missing = _found("idle processors", Fake(root))
    assert (missing.found, missing.remedy) == (False, "in a container, give it the device")


def test_a_slow_clock_has_a_better_one(root: Path) -> None:
    (root / CLOCKS / "current_clocksource").write_text("hpet\n")
    assert str(_found("clock source", Fake(root)).remedy).startswith("echo tsc | sudo tee ")
    (root / CLOCKS / "available_clocksource").write_text("hpet acpi_pm\n")
    assert _found("clock source", Fake(root)).remedy is None


def test_congestion_controls_are_modules(root: Path) -> None:
    file = root / "proc/sys/net/ipv4/tcp_available_congestion_control"
    file.write_text("reno cubic\n")
    found = _found("congestion controls", Fake(root))
    assert (found.remedy, found.found) == ("modprobe tcp_bbr", False)


def test_bpf_takes_a_kernel_a_build_and_rights(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_built_with_bpf", lambda: True)
    assert _found("bpf", Fake(root)).found
    (root / "proc/self/status").write_text(NO_RIGHTS)
    assert _found("bpf", Fake(root)).remedy == "run airpath with sudo"
    monkeypatch.setattr(doctor, "_built_with_bpf", lambda: False)
    assert "built without" in _found("bpf", Fake(root)).detail
    (root / "sys/kernel/btf/vmlinux").unlink()
    assert "BTF" in str(_found("bpf", Fake(root)).remedy)


@pytest.mark.parametrize(
    ("release", "good"), [("6.18.44-fc-v595", True), ("5.4.0", True), ("4.19.0-27-amd64", False)]
)
def test_kernels(root: Path, monkeypatch: pytest.MonkeyPatch, release: str, good: bool) -> None:
    monkeypatch.setattr("platform.release", lambda: release)
    assert _found("system", Fake(root)).found == good


@pytest.mark.real_clock
def test_the_wake_ups_are_measured() -> None:
    """The real thing: never early, and no sleep of 1 ms takes a second."""
    done = Machine().run([sys.executable, "-c", doctor.WAKES])
    said = json.loads(done.stdout)
    assert 0 <= said["p50"] <= said["p99"] <= said["max"] < 1e6


PROGRAMS = {
    *("bpftool", "chromium", "curl", "dig", "editcap", "ethtool", "flent", "fping", "git", "ip"),
    *(
        "iperf3",
        "iw",
        "jq",
        "make",
        "mmcli",
        "mtr",
        "nc",
        "netperf",
        "nft",
        "node",
        "npm",
        "nslookup",
    ),
    *(
        "nsenter",
        "nuttcp",
        "ping",
        "pip",
        "podman",
        "docker",
        "socat",
        "ss",
        "ssh",
        "sudo",
        "sysctl",
    ),
    *("tc", "tcpdump", "tcptrace", "tracepath", "traceroute", "tshark", "unshare", "wget"),
}
"""What is a program where it may also be a word: this must not depend on what a machine has."""
OURS = {
    *("airpath", ".venv/bin/airpath", ".venv/bin/python", "tools/setup"),
    *("cd", "do", "done", "echo", "set", "source", "timeout", "true", "while"),
    *("git", "make", "npm", "pip", "python", "python3", "sudo"),
    *("docker", "nuttcp", "tc", "tcptrace"),
}
"""What guides name that `doctor` need not know: airpath's own, the shell's, what made airpath, and
what no guide runs."""


def _named() -> set[str]:
    """Programs that guides and README run in examples or name."""
    named: set[str] = set()
    for guide in (*(ROOT / "docs/guides").glob("*.md"), ROOT / "README.md"):
        text = guide.read_text(encoding="utf-8")
        blocks = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        lines = [line for block in blocks for line in block.splitlines()]
        lines += re.findall(r"^    (?:# )?(\S.*)$", text, re.MULTILINE)
        for line in lines:
            starts = [line, *re.split(r" -- |\| |&& |--server '|netns exec \S+ ", line)[1:]]
            starts += re.findall(r'^command = "(.*)"', line)
            words = [start.removeprefix("exec ").split(" ")[0] for start in starts if start]
            # In a block of output or of Python the first word is no program of this machine.
            named.update(word for word in words[1:] if re.fullmatch(r"[a-z][\w.-]+", word))
            named.update(PROGRAMS.intersection(words[:1]))
        spans = re.findall(r"`([a-z][^`\n]*)`", text)
        named.update(PROGRAMS.intersection(span.split()[0] for span in spans))
    return named - OURS


def test_every_program_of_the_guides_is_known(root: Path) -> None:
    named = _named()
    assert {"ping", "iperf3", "curl", "tcpdump", "tshark", "ip", "nft", "jq"} <= named
    known = {found.name for found in doctor.examine(Fake(root))}
    assert named <= known
    # Each says which package has it.
    for found in doctor.examine(Fake(root, programs=("unshare",))):
        if found.name in named:
            assert found.remedy is not None
            assert found.remedy.startswith("apt-get install ")
            assert found.cost


def test_the_command(airpath_command: Command) -> None:
    done = airpath_command("doctor", "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    names = [found["name"] for found in document["findings"]]
    assert len(names) == len(set(names)) > 12
    text = airpath_command("doctor").stdout
    assert all(name in text for name in names)
    for found in document["findings"]:
        # Each call measures wake-ups itself: on a busy machine one finds them late, the other not.
        assert found["found"] or found["name"] == "wake-ups" or found["cost"] in text
