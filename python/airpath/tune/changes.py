"""Changes that settings make to this host: made, noticed and undone one by one.

Each change says what is there before it and after it, as text. What is there decides what an undo
does, so that it does not matter where an apply was killed.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from airpath.base.text import printable
from airpath.errors import AirpathError, reason
from airpath.runs.directories import replaced_file
from airpath.tune.settings import Cubic, Route, Setting, Shaper, Sysctl, ifb

if TYPE_CHECKING:
    from airpath.emulation.machine import Machine

SYSCTL_FILE = "/etc/sysctl.d/90-airpath.conf"
TMPFILES_FILE = "/etc/tmpfiles.d/90-airpath.conf"
_HEAD = "# Written by `airpath tune --apply`; `airpath tune --undo` removes it.\n"
_ALLOWED = "net.ipv4.tcp_allowed_congestion_control"


BEFORE, AFTER, PARTLY = "before", "after", "partly"
"""What a change finds: nothing of it, all of it, or what a killed `--apply` left."""


class Change(Protocol):
    """A change of the host."""

    def state(self, machine: Machine) -> str:
        """Return ``before``, ``after``, ``partly``, or what is there instead."""

    def make(self, machine: Machine) -> None:
        """Make it."""

    def undo(self, machine: Machine) -> None:
        """Restore what was there before."""

    def name(self) -> str:
        """Return what is changed, in words."""


@dataclass(frozen=True)
class Value:
    """A file below /proc or /sys that holds a parameter."""

    file: str
    before: str
    """The file's content, byte for byte."""
    after: str

    def state(self, machine: Machine) -> str:
        """Return ``before``, ``after``, or the value."""
        order = sorted if self.file == _sysctl_file(_ALLOWED) else list
        there, before, after = (
            order((text or "").split())
            for text in (machine.read(self.file), self.before, self.after)
        )
        if there == before:
            return BEFORE
        return AFTER if there == after else " ".join(there)

    def make(self, machine: Machine) -> None:
        """Write the new value; the kernel may refuse it."""
        self._write(machine, self.after)

    def undo(self, machine: Machine) -> None:
        """Write the old value."""
        self._write(machine, self.before)

    def name(self) -> str:
        """Return the file."""
        return self.file

    def _write(self, machine: Machine, value: str) -> None:
        try:
            machine.at(self.file).write_text(f"{value.strip()}\n")
        except OSError as error:
            raise AirpathError(f"cannot set {self.file} to {value}: {reason(error)}") from None


@dataclass(frozen=True)
class NewFile:
    """A file that is not there before."""

    file: str
    content: str

    def state(self, machine: Machine) -> str:
        """Return ``before`` without the file, ``after`` with its content, else ``another``."""
        try:
            there = machine.at(self.file).read_bytes()
        except FileNotFoundError:
            return BEFORE
        except OSError as error:
            return reason(error)
        return AFTER if there == self.content.encode() else "another content"

    def make(self, machine: Machine) -> None:
        """Write it; whoever reads it finds all of it or nothing."""
        with replaced_file(machine.at(self.file)) as aside:
            aside.write_text(self.content)
            aside.chmod(0o644)

    def undo(self, machine: Machine) -> None:
        """Remove it."""
        try:
            machine.at(self.file).unlink(missing_ok=True)
        except OSError as error:
            raise AirpathError(f"cannot remove {self.file}: {reason(error)}") from None

    def name(self) -> str:
        """Return the file."""
        return self.file


@dataclass(frozen=True)
class DefaultRoute:
    """Attributes of the default route."""

    before: str
    """As ``ip route show default`` prints it."""
    after: str

    def state(self, machine: Machine) -> str:
        """Return ``before``, ``after``, or the route."""
        there = default_route(machine)
        if sorted(there.split()) == sorted(self.before.split()):
            return BEFORE
        return AFTER if sorted(there.split()) == sorted(self.after.split()) else there

    def make(self, machine: Machine) -> None:
        """Change it in place, so that no packet is without a route."""
        done(machine, f"ip route change {self.after}")

    def undo(self, machine: Machine) -> None:
        """Change it back."""
        done(machine, f"ip route change {self.before}")

    def name(self) -> str:
        """Return what is changed."""
        return "the default route"


@dataclass(frozen=True)
class Queue:
    """A shaper at a device that has no queue discipline of its own there."""

    device: str
    """The device that shapes: for what arrives an ifb device."""
    arrives_at: str
    """The device whose arriving packets are shaped; empty: it shapes what ``device`` sends."""
    commands: list[str]

    def state(self, machine: Machine) -> str:
        """Return ``before``, ``after``, ``partly``, or what is there instead."""
        parts = [self._root(machine), *([self._ingress(machine)] if self.arrives_at else [])]
        foreign = [one for one in parts if one not in (BEFORE, AFTER, PARTLY)]
        if foreign:
            return ", ".join(foreign)
        return parts[0] if len(set(parts)) == 1 else PARTLY

    def make(self, machine: Machine) -> None:
        """Run the commands."""
        for command in self.commands:
            done(machine, command)

    def undo(self, machine: Machine) -> None:
        """Remove the shaper; the kernel attaches its default queue discipline again."""
        if not self.arrives_at:
            if self._root(machine) != BEFORE:
                done(machine, f"tc qdisc del dev {self.device} root")
            return
        if self._ingress(machine) != BEFORE:
            done(machine, f"tc qdisc del dev {self.arrives_at} ingress")
        if self._root(machine) != BEFORE:
            done(machine, f"ip link del {self.device}")

    def name(self) -> str:
        """Return what is changed."""
        return f"the queue discipline of {self.arrives_at or self.device}"

    def _root(self, machine: Machine) -> str:
        queues = _queues(machine, self.device)
        root = next((one for one in queues if "root" in one), None)
        if root is None or (root[2] == "0:" and not self.arrives_at):
            return BEFORE
        if root[2] == "0:":
            # An ifb device that has no shaper yet.
            return PARTLY
        if root[1:3] != ["tbf", "1:"]:
            return f"{root[1]} {root[2]}"
        return AFTER if any(one[1:3] == ["fq_codel", "10:"] for one in queues) else PARTLY

    def _ingress(self, machine: Machine) -> str:
        queues = _queues(machine, self.arrives_at)
        found = [one for one in queues if one[1] in ("ingress", "clsact")]
        if not found:
            return BEFORE
        words = ["tc", "filter", "show", "dev", self.arrives_at, "parent", "ffff:"]
        shown = machine.run(words).stdout
        if found[0][1] == "ingress" and f"dev {self.device}" in shown:
            return AFTER
        return PARTLY if found[0][1] == "ingress" and not shown.strip() else "another ingress"


def default_route(machine: Machine) -> str:
    """Return the default route; empty if there is none, or more than one."""
    lines = machine.run(["ip", "route", "show", "default"]).stdout.splitlines()
    return lines[0].strip() if len(lines) == 1 else ""


def default_device(machine: Machine) -> str:
    """Return the device of the default route; empty if there is none."""
    words = default_route(machine).split()
    return words[words.index("dev") + 1] if "dev" in words[:-1] else ""


def planned(settings: Sequence[Setting], device: str, machine: Machine) -> list[Change]:
    """Return the changes that settings need, without making them.

    Raises ``AirpathError`` if this host has something of its own there.
    """
    sysctls = [one for one in settings if isinstance(one, Sysctl)]
    cubic = [one for one in settings if isinstance(one, Cubic)]
    routes = [one for one in settings if isinstance(one, Route)]
    changes: list[Change] = []
    if sysctls:
        lines = [line for one in sysctls for line in one.lines()]
        changes.append(NewFile(SYSCTL_FILE, _HEAD + "".join(f"{line}\n" for line in lines)))
    if cubic:
        lines = [line for one in cubic for line in one.lines()]
        changes.append(NewFile(TMPFILES_FILE, _HEAD + "".join(f"{line}\n" for line in lines)))
    for sysctl in sysctls:
        changes += _sysctl(sysctl, machine)
    changes += [_value(one.file, one.value, machine) for one in cubic]
    changes += [_route(routes, machine)] if routes else []
    changes += [_queue(one, device, machine) for one in settings if isinstance(one, Shaper)]
    for change in changes:
        if (there := change.state(machine)) not in (BEFORE, AFTER):
            raise AirpathError(f"{change.name()} prevents the change: {printable(there)}")
        if isinstance(change, NewFile) and there == AFTER:
            raise AirpathError(f"{change.file} exists already: remove it first")
    return changes


def _sysctl(sysctl: Sysctl, machine: Machine) -> list[Change]:
    found: list[Change] = []
    if sysctl.key == "net.ipv4.tcp_congestion_control":
        # The kernel adds the default control to the list of those that everybody may use.
        file = _sysctl_file(_ALLOWED)
        allowed = (machine.read(file) or "").split()
        if sysctl.value not in allowed and os.access(machine.at(file), os.W_OK):
            found.append(_value(file, " ".join([*allowed, sysctl.value]), machine))
    return [*found, _value(_sysctl_file(sysctl.key), sysctl.value, machine)]


def _sysctl_file(key: str) -> str:
    return f"/proc/sys/{key.replace('.', '/')}"


def _value(file: str, after: str, machine: Machine) -> Value:
    before = machine.read(file)
    if before is None:
        raise AirpathError(f"this kernel has no {file}")
    return Value(file, before, after)


def _route(routes: Sequence[Route], machine: Machine) -> DefaultRoute:
    before = default_route(machine)
    if not before:
        raise AirpathError(
            "this host has no default route, or several: set "
            + " ".join(f"{one.attribute} {one.value}" for one in routes)
            + " on the route yourself"
        )
    words = before.split()
    for one in routes:
        if one.attribute in words:
            at = words.index(one.attribute)
            del words[at : at + 2]
        words += [one.attribute, str(one.value)]
    return DefaultRoute(before, " ".join(words))


def _queue(shaper: Shaper, device: str, machine: Machine) -> Queue:
    if not device:
        raise AirpathError("this host has no default route: name the modem's device (--device DEV)")
    if not _queues(machine, device):
        raise AirpathError(f"there is no device {device}")
    inside = ifb(device)
    if shaper.direction == "down" and _queues(machine, inside):
        raise AirpathError(f"the device {inside} exists already")
    shapes, arrives_at = (inside, device) if shaper.direction == "down" else (device, "")
    return Queue(shapes, arrives_at, shaper.lines(device))


def _queues(machine: Machine, device: str) -> list[list[str]]:
    """Return the queue disciplines of a device, a list of words each; none if it is not there."""
    shown = machine.run(["tc", "qdisc", "show", "dev", device]).stdout
    return [line.split() for line in shown.splitlines() if line.startswith("qdisc ")]


def done(machine: Machine, command: str) -> None:
    """Run a command; raises ``AirpathError`` with what it said."""
    ran = machine.run(command.split())
    if ran.returncode:
        said = " ".join(ran.stderr.split()) or f"exit code {ran.returncode}"
        raise AirpathError(f"`{command}` failed: {printable(said)}")


_KINDS: dict[str, type[Value | NewFile | DefaultRoute | Queue]] = {
    "value": Value,
    "file": NewFile,
    "route": DefaultRoute,
    "queue": Queue,
}


def document(change: Change) -> dict[str, object]:
    """Return a change for the record."""
    kind = next(name for name, each in _KINDS.items() if isinstance(change, each))
    return {"kind": kind, **vars(change)}


def from_document(entry: Any) -> Change:
    """Return a change from the record. Raises ``KeyError`` or ``TypeError`` if it is none."""
    kind = _KINDS[entry["kind"]]
    return kind(**{key: value for key, value in entry.items() if key != "kind"})
