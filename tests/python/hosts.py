"""Three hosts for tests of a gateway, each in a network namespace: a device, the gateway's host and
a server. The namespaces have no names, so they do not outlive the test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from conftest import command_environment, start, until

INSIDE, OUTSIDE = "ue0", "net0"
"""The gateway's interfaces: to the device, and to the server."""
SPAN_S = 600
"""No namespace lasts longer than this, whatever ends the test."""


class Host:
    """A network namespace that a sleeping process holds."""

    def __init__(self) -> None:
        mine = Path("/proc/self/ns/net").readlink()
        self._holder = start(["unshare", "--net", "sleep", str(SPAN_S)])
        place = Path(f"/proc/{self.process}/ns/net")
        assert until(lambda: place.readlink() != mine)
        assert until(lambda: b"sleep" in Path(f"/proc/{self.process}/cmdline").read_bytes()[:5])
        self.ip("link", "set", "lo", "up")

    @property
    def process(self) -> int:
        """The process that holds the namespace."""
        return self._holder.pid

    def words(self, *words: str) -> list[str]:
        """Return the command line that runs ``words`` here."""
        return ["nsenter", f"--net=/proc/{self.process}/ns/net", "--", *words]

    def run(self, *words: str, check: bool = True, timeout: float = 120) -> str:
        """Run a program; return its standard output."""
        done = subprocess.run(
            self.words(*words), capture_output=True, text=True, timeout=timeout, check=False
        )
        assert not check or done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def start(self, *words: str, **options: Any) -> subprocess.Popen[Any]:
        """Start a program that does not outlive the test."""
        return start(self.words(*words), **options)

    def ip(self, *words: str) -> str:
        """Run ``ip``."""
        return self.run("ip", *words)

    def python(self, text: str, *arguments: str) -> str:
        """Run a Python program; return its standard output."""
        return self.run(sys.executable, "-c", text, *arguments)

    def airpath(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """Run ``airpath ARGUMENTS`` here."""
        words = self.words(sys.executable, "-m", "airpath", *arguments)
        return subprocess.run(
            words,
            cwd=cwd,
            env=command_environment(),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def start_airpath(self, *arguments: str, cwd: Path, **options: Any) -> subprocess.Popen[Any]:
        """Start ``airpath ARGUMENTS`` here; ``nsenter`` execs it, so the process is airpath's."""
        words = (sys.executable, "-m", "airpath", *arguments)
        return self.start(*words, cwd=cwd, env=command_environment(), **options)

    def addresses(self, interface: str) -> list[str]:
        """Return the addresses of an interface."""
        shown = json.loads(self.ip("-j", "address", "show", "dev", interface))
        return [entry["local"] for entry in shown[0]["addr_info"]]

    def mac(self, interface: str) -> str:
        """Return the MAC address of an interface."""
        return str(json.loads(self.ip("-j", "link", "show", "dev", interface))[0]["address"])


def pair(one: Host, name: str, other: Host, other_name: str) -> None:
    """Connect two hosts by a cable: a veth pair."""
    words = ("link", "add", name, "type", "veth", "peer", "name", other_name)
    one.ip(*words, "netns", str(other.process))
    for host, interface in ((one, name), (other, other_name)):
        # No duplicate address detection: it takes a second.
        host.run("sh", "-c", f"echo 0 > /proc/sys/net/ipv6/conf/{interface}/accept_dad")
        host.ip("link", "set", interface, "up")

    def connected(host: Host, interface: str) -> bool:
        shown = json.loads(host.ip("-j", "address", "show", "dev", interface))[0]
        known = [one for one in shown["addr_info"] if not one.get("tentative")]
        return shown["operstate"] == "UP" and len(known) == 1

    # Each interface then has its link-local address, and nothing changes by itself any more.
    assert until(lambda: connected(one, name) and connected(other, other_name))


@contextmanager
def three() -> Iterator[tuple[Host, Host, Host]]:
    """Return a device with ``eth0``, the gateway's host, and a server with ``eth0``."""
    device, host, server = Host(), Host(), Host()
    pair(host, INSIDE, device, "eth0")
    pair(host, OUTSIDE, server, "eth0")
    yield device, host, server


def state(host: Host, interfaces: Sequence[str] = (INSIDE, OUTSIDE)) -> dict[str, object]:
    """Everything of a host that a gateway could change."""
    shown: dict[str, object] = {
        words: json.loads(host.ip("-j", *words.split()) or "[]")
        for words in ("-d address", "-4 route show table all", "-6 route show table all", "rule")
    }
    for address in shown["-d address"]:  # type: ignore[attr-defined]
        for entry in address["addr_info"]:
            # Lifetimes count down while the test runs.
            entry.pop("valid_life_time", None)
            entry.pop("preferred_life_time", None)
    shown["nft"] = host.run("nft", "list", "ruleset")
    # What congestion controls there are is the whole machine's, and other tests load some.
    sysctls = (
        f"cd /proc/sys/net && grep -rs . {SYSCTLS} | grep -Ev '/tcp_(available|allowed)_' | sort"
    )
    shown["sysctls"] = host.run("sh", "-c", sysctls)
    shown["offloads"] = {name: json.loads(host.python(OFFLOADS, name)) for name in interfaces}
    return shown


SYSCTLS = "ipv4/ip_forward ipv4/conf ipv4/tcp_* ipv6/conf netfilter core"

OFFLOADS = """
import json, sys
from airpath.emulation.host_changes import Offloads
print(json.dumps(Offloads(sys.argv[1]).requested()))
"""


def set_offload(host: Host, interface: str, **states: bool) -> None:
    """Switch offloads of an interface on or off; ``_`` in a name stands for ``-``."""
    named = {name.replace("_", "-"): state for name, state in states.items()}
    text = (
        "import sys, json\nfrom airpath.emulation.host_changes import Offloads\n"
        "Offloads(sys.argv[1]).request(json.loads(sys.argv[2]))"
    )
    host.python(text, interface, json.dumps(named))


def is_root() -> bool:
    """Whether namespaces can be made."""
    return os.geteuid() == 0
