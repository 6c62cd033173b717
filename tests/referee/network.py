"""Two network namespaces with a TUN device each, and nothing left of them afterwards."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from types import TracebackType

SERVER_ADDRESS = "10.77.0.1"
UE_ADDRESS = "10.77.0.2"
DEVICE = "air0"

QUEUE_PACKETS = 20_000
"""TUN drops silently when its queue is full."""

_NAME = re.compile(r"airpath-(\d+)-(?:server|ue)")


class NetworkError(Exception):
    """A command failed: what, and why."""


def missing() -> str | None:
    """Why this machine cannot run the referee; ``None`` if it can."""
    if os.geteuid() != 0:
        return "root is needed for namespaces and TUN devices"
    if not Path("/dev/net/tun").exists():
        return "/dev/net/tun is missing (modprobe tun)"
    for program in ("ip", "sysctl"):
        if shutil.which(program) is None:
            return f"`{program}` is missing (apt-get install iproute2 procps)"
    probe = f"airpath-{os.getpid()}-ue"
    try:
        _run("ip", "netns", "add", probe)
        _run("ip", "netns", "delete", probe)
    except NetworkError as error:
        return f"network namespaces are not allowed here: {error}"
    return None


def remove_leftovers() -> list[str]:
    """Remove namespaces of runs that were killed; their names."""
    names = [line.split()[0] for line in _run("ip", "netns", "list").splitlines() if line.strip()]
    dead = [
        name
        for name in names
        if (match := _NAME.fullmatch(name)) and not Path(f"/proc/{match[1]}").exists()
    ]
    for name in dead:
        _run("ip", "netns", "delete", name)
    return dead


class Network:
    """A server's and a UE's namespace; the way between them is the forwarder's business."""

    def __init__(self, sysctls: dict[str, str]) -> None:
        self.server = f"airpath-{os.getpid()}-server"
        self.ue = f"airpath-{os.getpid()}-ue"
        self._sysctls = {"net.ipv6.conf.all.disable_ipv6": "1", **sysctls}
        self._made: list[str] = []

    def __enter__(self) -> Network:
        try:
            self._make(self.server, SERVER_ADDRESS, UE_ADDRESS)
            self._make(self.ue, UE_ADDRESS, SERVER_ADDRESS)
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.remove()

    def remove(self) -> None:
        """Delete both; their devices go with them."""
        while self._made:
            subprocess.run(
                ["ip", "netns", "delete", self._made.pop()], capture_output=True, check=False
            )

    def command(self, namespace: str, *command: str) -> list[str]:
        """``command`` inside a namespace."""
        return ["ip", "netns", "exec", namespace, *command]

    def _make(self, namespace: str, address: str, peer: str) -> None:
        self._made.append(namespace)
        _run("ip", "netns", "add", namespace)
        settings = [f"{key}={value}" for key, value in self._sysctls.items()]
        _run("ip", "netns", "exec", namespace, "sysctl", "--quiet", "--write", *settings)
        for line in (
            "link set lo up",
            f"tuntap add dev {DEVICE} mode tun",
            f"link set {DEVICE} mtu 1500 txqueuelen {QUEUE_PACKETS} up",
            f"address add {address} peer {peer} dev {DEVICE}",
        ):
            _run("ip", "-n", namespace, *line.split())


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NetworkError(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return done.stdout
