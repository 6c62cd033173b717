"""Gateways between two interfaces of the host: checks, changes of the host, and reports."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, NotRequired, TypedDict

from airpath.base.text import printable
from airpath.emulation import host_changes
from airpath.emulation.host_changes import Change
from airpath.emulation.machine import Machine
from airpath.errors import AirpathError, InputError

if TYPE_CHECKING:
    from airpath.documents import GatewayReport
    from airpath.emulation.document import GatewayEntry


@dataclass(frozen=True, kw_only=True)
class Gateway:
    """Two interfaces of the host, and the devices behind each UE."""

    inside: str
    """The interface on the UEs' side."""
    server: str
    """The interface on the servers' side."""
    devices: Sequence[tuple[str, str]] = ()
    """UEs by name, each with the MAC or IP address of a device. All other devices are behind the
    first UE."""
    duration_s: float | None = None
    """How long the gateway runs; None: until SIGINT, SIGTERM or SIGHUP."""
    default_route: bool = False
    """Whether an interface may carry the host's default route."""

    @classmethod
    def parse(
        cls, text: str, devices: Sequence[str], duration_s: float | None, *, default_route: bool
    ) -> Gateway:
        """Read ``UE_IF:SERVER_IF``, and ``NAME=DEVICE`` for each device."""
        inside, colon, server = text.partition(":")
        if not (inside and colon and server) or ":" in server:
            raise InputError(
                f"--gateway {text}: write UE_IF:SERVER_IF, two interfaces of this host"
            )
        pairs = []
        for device in devices:
            name, equals, address = device.partition("=")
            if not (name and equals and address):
                raise InputError(
                    f"--gateway-ue {device}: write NAME=DEVICE, a UE of the scenario and the MAC "
                    "or IP address of a device"
                )
            pairs.append((name, address))
        return cls(
            inside=inside,
            server=server,
            devices=pairs,
            duration_s=duration_s,
            default_route=default_route,
        )


@dataclass(frozen=True)
class Interface:
    """An interface of the host, as ``ip -json`` describes it."""

    name: str
    up: bool
    carrier: bool
    mtu: int
    kind: str
    master: str | None
    addresses: tuple[str, ...]
    """Addresses of the host at this interface, except link-local ones."""


def interfaces(machine: Machine) -> dict[str, Interface]:
    """Return the interfaces of this network namespace, by name."""
    found = {}
    for one in _ip(machine, "address", "show"):
        flags = one["flags"]
        addresses = tuple(
            f"{entry['local']}/{entry['prefixlen']}"
            for entry in one["addr_info"]
            if entry["scope"] != "link" and "local" in entry
        )
        found[one["ifname"]] = Interface(
            one["ifname"],
            up="UP" in flags,
            carrier="LOWER_UP" in flags,
            mtu=one["mtu"],
            kind=one["link_type"],
            master=one.get("master"),
            addresses=addresses,
        )
    return found


def default_routes(machine: Machine) -> set[str]:
    """Return the interfaces that carry a default route."""
    routes = [
        *_ip(machine, "-4", "route", "show", "default"),
        *_ip(machine, "-6", "route", "show", "default"),
    ]
    hops: list[_Hop] = [hop for route in routes for hop in route.get("nexthops", ())]
    return {one["dev"] for one in [*routes, *hops] if "dev" in one}


class _Address(TypedDict):
    """An address, as ``ip -json`` describes it."""

    local: NotRequired[str]
    prefixlen: int
    scope: str


class _Hop(TypedDict):
    """One of a route's next hops."""

    dev: NotRequired[str]


class _Shown(_Hop):
    """An interface or a route, as ``ip -json`` describes it."""

    ifname: str
    flags: list[str]
    mtu: int
    link_type: str
    master: NotRequired[str]
    addr_info: list[_Address]
    nexthops: NotRequired[list[_Hop]]


def _ip(machine: Machine, *words: str) -> list[_Shown]:
    program = machine.which("ip")
    if program is None:
        raise AirpathError("`ip` is missing: apt-get install iproute2")
    done = machine.run([program, "-json", *words])
    if done.returncode:
        raise AirpathError(f"ip {' '.join(words)}: {done.stderr.strip()}")
    # Older versions print nothing if there is no result, and empty objects if one does not match.
    shown: list[_Shown] = json.loads(done.stdout or "[]")
    return [one for one in shown if one]


def check(gateway: Gateway, machine: Machine) -> list[Interface]:
    """Return both interfaces, that of the UEs first.

    Raises ``InputError`` if an interface cannot be used.
    """
    if gateway.inside == gateway.server:
        raise InputError(
            f"--gateway {gateway.inside}:{gateway.server}: these are the same interface; name one "
            "for the devices and another for the servers"
        )
    if not machine.may_make_namespaces():
        raise AirpathError("--gateway needs root: run it with sudo")
    there = interfaces(machine)
    chosen = []
    for name in (gateway.inside, gateway.server):
        if name not in there:
            known = ", ".join(other for other in there if there[other].kind == "ether")
            raise InputError(
                f"--gateway: there is no interface `{name}`; the Ethernet interfaces of this "
                f"host: {known or 'none'}"
            )
        chosen.append(there[name])
    for one in chosen:
        if one.kind != "ether":
            raise InputError(f"--gateway: `{one.name}` is not an Ethernet interface ({one.kind})")
        if one.master is not None:
            raise InputError(
                f"--gateway: `{one.name}` is a port of `{one.master}`, which also forwards; remove "
                f"it from there: `ip link set {one.name} nomaster`"
            )
        if not one.up:
            raise InputError(f"--gateway: `{one.name}` is down: `ip link set {one.name} up`")
    inside, server = chosen
    if inside.mtu != server.mtu:
        raise InputError(
            f"--gateway: `{inside.name}` has an MTU of {inside.mtu} bytes and `{server.name}` one "
            f"of {server.mtu}; both need the same MTU: `ip link set {server.name} mtu {inside.mtu}`"
        )
    routed = default_routes(machine) & {inside.name, server.name}
    if routed and not gateway.default_route:
        raise InputError(
            f"--gateway: `{min(routed)}` carries the default route of this host. The host's own "
            "traffic would continue and bypass the model, but airpath would read all frames of "
            "that network; add --yes to use the interface"
        )
    return chosen


@contextmanager
def prepared(gateway: Gateway, machine: Machine | None = None) -> Iterator[list[Change]]:
    """Check the interfaces, announce changes, and make them as long as the context lasts."""
    machine = machine or Machine()
    chosen = check(gateway, machine)
    said = [
        f"gateway: changes of a killed run are undone: {sentence}"
        for left in host_changes.left(machine)
        if left.interface in (gateway.inside, gateway.server) and left.is_here()
        if (sentence := left.undo()) is not None
    ]
    changes = [host_changes.needed(one.name) for one in chosen]
    for sentence in [*said, *_announced(gateway, chosen, changes)]:
        sys.stderr.write(printable(sentence) + "\n")
    sys.stderr.flush()
    with host_changes.made(changes, machine):
        yield changes


def _announced(
    gateway: Gateway, chosen: Sequence[Interface], changes: Sequence[Change]
) -> Iterator[str]:
    until = "Ctrl-C" if gateway.duration_s is None else f"{gateway.duration_s:g} s are over"
    yield (
        f"gateway: devices at {gateway.inside} reach the network at {gateway.server} through the "
        f"model, until {until}"
    )
    for change in changes:
        for offload in change.offloads:
            yield f"gateway: {change.interface}: {offload} is off during the run (now on)"
    yield (
        "gateway: both interfaces are in promiscuous mode during the run; addresses, routes, "
        "sysctls and firewall rules of this host stay as they are"
    )
    for one in chosen:
        if one.addresses:
            yield (
                f"gateway: {one.name} has addresses of this host ({', '.join(one.addresses)}); "
                "traffic to and from them bypasses the model"
            )
        if not one.carrier:
            yield f"gateway: {one.name} has no carrier; connect a device or a network to it"


def entry(gateway: Gateway, changes: Sequence[Change], report: GatewayReport) -> GatewayEntry:
    """Return the summary's entry about a gateway."""
    return {
        "inside": gateway.inside,
        "server": gateway.server,
        "devices": [{"ue": name, "device": device} for name, device in gateway.devices],
        "changed": {change.interface: list(change.offloads) for change in changes},
        **report,
    }


def sentences(gateway: GatewayEntry) -> list[str]:
    """Report frames that did not pass although they should have."""
    said = []
    for direction, beside in gateway["beside"].items():
        at = gateway["server"] if direction == "down" else gateway["inside"]
        if beside["tagged"]:
            said.append(
                f"{direction}: {beside['tagged']} frames with a VLAN tag did not pass; name the "
                f"interface of the VLAN, such as {at}.10, instead of {at}"
            )
        if beside["refused"]:
            said.append(
                f"{direction}: the kernel refused to send {beside['refused']} frames beside the "
                "model"
            )
    return said
