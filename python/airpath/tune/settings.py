"""Settings of a Linux host, as lines to be read and as changes that can be made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

End = Literal["ue", "server"]
Direction = Literal["down", "up"]
Role = Literal["sender", "receiver"]

LINKS: dict[Direction, str] = {"down": "downlink", "up": "uplink"}
HOSTS: dict[End, str] = {"ue": "the UE's host", "server": "the server"}


@dataclass(frozen=True)
class Sysctl:
    """A kernel parameter of the network namespace (ip-sysctl)."""

    end: End
    key: str
    value: str
    kind: ClassVar[Literal["sysctl"]] = "sysctl"

    def lines(self) -> list[str]:
        """Return the line for a file in /etc/sysctl.d."""
        return [f"{self.key} = {self.value}"]


@dataclass(frozen=True)
class Cubic:
    """A parameter of the module tcp_cubic, which holds for all namespaces."""

    end: End
    name: str
    value: str
    kind: ClassVar[Literal["module"]] = "module"

    @property
    def file(self) -> str:
        """Where the kernel has it."""
        return f"/sys/module/tcp_cubic/parameters/{self.name}"

    def lines(self) -> list[str]:
        """Return the line for a file in /etc/tmpfiles.d (tmpfiles.d(5))."""
        return [f"w {self.file} - - - - {self.value}"]


@dataclass(frozen=True)
class Route:
    """An attribute of the default route (ip-route(8))."""

    end: End
    attribute: Literal["initcwnd", "advmss"]
    value: int
    kind: ClassVar[Literal["route"]] = "route"

    def lines(self) -> list[str]:
        """Return the command; a router on the path can limit segments instead."""
        line = f"ip route change default … {self.attribute} {self.value}"
        if self.attribute == "advmss":
            clamp = f"tcp flags syn tcp option maxseg size set {self.value}"
            line += f" (or at a router: nft add rule inet filter forward {clamp})"
        return [line]


@dataclass(frozen=True)
class Shaper:
    """A token bucket (tbf) with FQ-CoDel inside, at the host behind the modem."""

    end: End
    direction: Direction
    rate_mbps: float
    burst_bytes: int
    target_ms: float
    interval_ms: float
    kind: ClassVar[Literal["tc"]] = "tc"

    def lines(self, device: str = "DEV") -> list[str]:
        """Return the commands; what arrives is redirected to an ifb device first."""
        if self.direction == "up":
            return self._queues(device)
        inside = ifb(device)
        return [
            f"ip link add {inside} type ifb",
            f"ip link set {inside} up",
            f"tc qdisc add dev {device} handle ffff: ingress",
            f"tc filter add dev {device} parent ffff: protocol all matchall "
            f"action mirred egress redirect dev {inside}",
            *self._queues(inside),
        ]

    def _queues(self, device: str) -> list[str]:
        # The limit of tbf is that of its inner queue, which FQ-CoDel replaces.
        return [
            f"tc qdisc add dev {device} root handle 1: tbf rate {self.rate_mbps * 1e3:.0f}kbit "
            f"burst {self.burst_bytes} latency 1s",
            f"tc qdisc add dev {device} parent 1: handle 10: fq_codel "
            f"target {self.target_ms:.3g}ms interval {self.interval_ms:.3g}ms noecn",
        ]


Setting = Sysctl | Cubic | Route | Shaper


def ifb(device: str) -> str:
    """Return the name of the device that shapes what arrives at ``device``; 15 bytes at most."""
    return f"air-{device}"[:15]
