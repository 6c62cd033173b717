"""Applies settings to this host and restores what was there, byte for byte.

As with a gateway's changes (docs/adr/0121), everything is recorded before anything is changed, and
the record is locked meanwhile. It survives a reboot, because the settings do.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from airpath.base.text import printable
from airpath.emulation.host_changes import locked, network
from airpath.emulation.machine import Machine
from airpath.errors import AirpathError, reason
from airpath.tune import changes
from airpath.tune.changes import AFTER, BEFORE, PARTLY, Change
from airpath.tune.settings import Setting

DIRECTORY = "/var/lib/airpath"
RECORD = f"{DIRECTORY}/tune.json"
_BOOT = "/proc/sys/kernel/random/boot_id"
_MOST_BYTES = 1 << 20


def apply(
    settings: Sequence[Setting], device: str | None = None, machine: Machine | None = None
) -> list[str]:
    """Apply settings; return what was changed.

    Raises ``AirpathError`` if settings are applied already, or this host has something of its own
    in the way. If a change fails, those before it are undone.
    """
    machine = machine or Machine()
    with _record(machine, create=True) as descriptor:
        if os.fstat(descriptor).st_size:
            raise AirpathError(
                "settings are applied already, or an --apply was killed: run `airpath tune --undo` "
                "first"
            )
        try:
            device = device or changes.default_device(machine)
            planned = changes.planned(settings, device, machine)
        except AirpathError:
            _forget(machine)
            raise
        _write(descriptor, planned, machine)
        try:
            for change in planned:
                change.make(machine)
                if (there := change.state(machine)) != AFTER:
                    raise AirpathError(f"{change.name()} was not set as requested; now: {there}")
        except BaseException:
            _undo(planned, machine)
            _forget(machine)
            raise
    return [change.name() for change in planned]


def undo(machine: Machine | None = None, *, force: bool = False) -> list[str]:
    """Restore what was there before; return what was restored.

    What somebody else has changed since is restored only with ``force``. Otherwise it is named, and
    nothing is changed.
    """
    machine = machine or Machine()
    if not machine.at(RECORD).exists():
        return []
    with _record(machine, create=False) as descriptor:
        planned = _read(descriptor, machine)
        foreign = [
            f"{change.name()} was changed since: {printable(there)}"
            for change in planned
            if (there := change.state(machine)) not in (BEFORE, AFTER, PARTLY)
        ]
        if foreign and not force:
            hint = "`airpath tune --undo --force` restores this too; nothing was changed"
            raise AirpathError("\n".join([*foreign, hint]))
        restored = _undo(planned, machine)
        _forget(machine)
    return restored


def _undo(planned: Sequence[Change], machine: Machine) -> list[str]:
    """Undo the last change first; after a reboot values are as before, and only files are left."""
    restored = []
    for change in reversed(planned):
        if change.state(machine) != BEFORE:
            change.undo(machine)
            restored.append(change.name())
    return restored


@contextmanager
def _record(machine: Machine, *, create: bool) -> Iterator[int]:
    file = machine.at(RECORD)
    try:
        if create:
            file.parent.mkdir(mode=0o755, exist_ok=True)
        descriptor = locked(file, create=create)
    except OSError as error:
        raise AirpathError(f"{RECORD}: {reason(error)}; settings need root") from None
    if descriptor is None:
        raise AirpathError("another `airpath tune` is changing settings: wait for it")
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _write(descriptor: int, planned: Sequence[Change], machine: Machine) -> None:
    record = {
        "boot": machine.read(_BOOT),
        "network": network(),
        "changes": [changes.document(change) for change in planned],
    }
    os.write(descriptor, json.dumps(record, indent=1).encode() + b"\n")
    os.fsync(descriptor)
    parent = os.open(machine.at(DIRECTORY), os.O_RDONLY)
    os.fsync(parent)
    os.close(parent)


def _read(descriptor: int, machine: Machine) -> list[Change]:
    """Return the changes; none if the apply was killed before it had recorded them."""
    text = os.pread(descriptor, _MOST_BYTES, 0)
    try:
        record: Any = json.loads(text)
        planned = [changes.from_document(entry) for entry in record["changes"]]
        boot, inode = record["boot"], record["network"]
    except (ValueError, KeyError, TypeError):
        # A record that was not complete was not followed by a change.
        return []
    if boot == machine.read(_BOOT) and inode != network():
        raise AirpathError(
            "the settings were applied in another network namespace: undo them there"
        )
    return planned


def _forget(machine: Machine) -> None:
    machine.at(RECORD).unlink()
    with suppress(OSError):
        machine.at(DIRECTORY).rmdir()
