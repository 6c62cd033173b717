"""Changes that an emulation makes to the host's interfaces, and how they are undone.

Each change is written to a file below ``/run`` before it is made. The file is locked as long as the
run lasts. A file without a lock was left by a run that was killed: ``airpath doctor --undo``
restores the interface that it names.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import socket
import struct
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airpath.base.stopping import deferred
from airpath.emulation.machine import Machine
from airpath.errors import AirpathError, reason

CHANGED_OFFLOADS = ("rx-lro", "rx-gro-list", "rx-udp-gro-forwarding")
"""Offloads that join packets in a way that cannot be undone
(Documentation/networking/segmentation-offloads). Ordinary GRO is not one of them."""

DIRECTORY = "/run"
PREFIX = "airpath-gateway-"

_SIOCETHTOOL = 0x8946
_SET_INFO, _STRINGS, _GET_FEATURES, _SET_FEATURES = 0x37, 0x1B, 0x3A, 0x3B
_FEATURE_NAMES = 4
"""linux/sockios.h, linux/ethtool.h: ETHTOOL_GSSET_INFO, GSTRINGS, GFEATURES, SFEATURES,
ETH_SS_FEATURES."""
_NAME_BYTES = 32
_CLONE_NEWNET = 0x40000000
"""linux/sched.h."""


class Offloads:
    """Offloads of an interface in this process's network namespace, by their names in ethtool."""

    def __init__(self, interface: str) -> None:
        self.interface = interface

    def requested(self) -> dict[str, bool]:
        """Return which of the offloads that can be changed are switched on."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            names = self._names(asked)
            blocks = (len(names) + 31) // 32
            request = bytearray(struct.pack("=II", _GET_FEATURES, blocks) + bytes(16 * blocks))
            self._call(asked, request)
        words = struct.unpack_from(f"={4 * blocks}I", request, 8)
        return {
            name: bool(words[4 * (bit // 32) + 1] >> bit % 32 & 1)
            for bit, name in enumerate(names)
            if words[4 * (bit // 32)] >> bit % 32 & 1
        }

    def request(self, states: dict[str, bool]) -> None:
        """Switch offloads on or off."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
            names = self._names(asked)
            words = [0] * (2 * ((len(names) + 31) // 32))
            for bit, name in enumerate(names):
                if name in states:
                    words[2 * (bit // 32)] |= 1 << bit % 32
                    words[2 * (bit // 32) + 1] |= states[name] << bit % 32
            head = struct.pack("=II", _SET_FEATURES, len(words) // 2)
            self._call(asked, bytearray(head + struct.pack(f"={len(words)}I", *words)))

    def _names(self, asked: socket.socket) -> list[str]:
        request = bytearray(struct.pack("=IIQI", _SET_INFO, 0, 1 << _FEATURE_NAMES, 0))
        self._call(asked, request)
        (count,) = struct.unpack_from("=I", request, 16)
        head = struct.pack("=III", _STRINGS, _FEATURE_NAMES, count)
        request = bytearray(head + bytes(_NAME_BYTES * count))
        self._call(asked, request)
        return [
            request[at : at + _NAME_BYTES].split(b"\0")[0].decode("ascii", "replace")
            for at in range(12, 12 + _NAME_BYTES * count, _NAME_BYTES)
        ]

    def _call(self, asked: socket.socket, request: bytearray) -> None:
        """Pass ``request`` to the kernel, which may write into it."""
        room = (ctypes.c_char * len(request)).from_buffer(request)
        name = self.interface.encode()[:15]
        ifreq = struct.pack("16sP16x", name, ctypes.addressof(room))
        try:
            fcntl.ioctl(asked.fileno(), _SIOCETHTOOL, ifreq)
        finally:
            del room


@dataclass(frozen=True)
class Change:
    """An interface, and the offloads that a run switches off there."""

    interface: str
    index: int
    offloads: tuple[str, ...]

    def make(self) -> None:
        """Switch the offloads off."""
        if self.offloads:
            self._switch("off")

    def undo(self) -> None:
        """Switch the offloads on again; an interface that is gone took its settings with it."""
        if self.offloads and _index(self.interface) == self.index:
            self._switch("on")

    def _switch(self, state: str) -> None:
        try:
            Offloads(self.interface).request(dict.fromkeys(self.offloads, state == "on"))
        except OSError as error:
            names = " ".join(f"{name} {state}" for name in self.offloads)
            raise AirpathError(
                f"{self.interface}: offloads cannot be switched {state}: {reason(error)}; switch "
                f"them {state} yourself: ethtool -K {self.interface} {names}"
            ) from None

    def document(self) -> dict[str, object]:
        """Return the content of the file that records this change."""
        return {
            "interface": self.interface,
            "index": self.index,
            "offloads_on": list(self.offloads),
        }


def needed(interface: str) -> Change:
    """Return the change that an interface needs, without making it."""
    try:
        on = Offloads(interface).requested()
    except OSError:
        # The driver has no settings.
        on = {}
    offloads = tuple(name for name in CHANGED_OFFLOADS if on.get(name))
    return Change(interface, _index(interface) or 0, offloads)


@contextmanager
def made(changes: Sequence[Change], machine: Machine) -> Iterator[None]:
    """Make changes as long as the context lasts; each is written to a file before it is made.

    A signal waits until a change and its record agree.
    """
    with ExitStack() as stack:
        try:
            with deferred():
                for change in changes:
                    stack.enter_context(_recorded(change, machine))
            yield
        finally:
            with deferred():
                stack.close()


@contextmanager
def _recorded(change: Change, machine: Machine) -> Iterator[None]:
    """Make one change as long as the context lasts; no other run may use its interface."""
    name = f"{PREFIX}{network()}-{change.interface}.json"
    file = machine.at(DIRECTORY) / name
    try:
        descriptor = locked(file)
    except OSError as error:
        raise AirpathError(
            f"{file}: {reason(error)}; --gateway needs root and {DIRECTORY}"
        ) from None
    if descriptor is None:
        raise AirpathError(
            f"{change.interface} belongs to another gateway that is running: stop it first"
        )
    try:
        if os.fstat(descriptor).st_size:
            raise AirpathError(
                f"a gateway that was killed left its record of {change.interface}: run `airpath "
                "doctor --undo` first"
            )
        document = {**change.document(), "process": os.getpid()}
        try:
            os.write(descriptor, json.dumps(document).encode() + b"\n")
            os.fsync(descriptor)
            change.make()
            yield
        finally:
            # Whatever ends the run. If the change cannot be undone, the record stays.
            change.undo()
            file.unlink()
    finally:
        os.close(descriptor)


def locked(file: Path, *, create: bool = True) -> int | None:
    """Open and lock a file; None if another process has locked it."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_CREAT if create else 0)
    while True:
        descriptor = os.open(file, flags, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        # The run that held the lock may have removed the file in the meantime.
        with suppress(FileNotFoundError):
            if file.stat().st_ino == os.fstat(descriptor).st_ino:
                return descriptor
        os.close(descriptor)


@dataclass(frozen=True)
class Left:
    """The record of a change that a killed run left behind."""

    file: Path
    interface: str
    network: int
    """Inode of the interface's network namespace."""

    def is_here(self) -> bool:
        """Whether the interface is in this process's network namespace."""
        return self.network == network()

    def undo(self) -> str | None:
        """Restore the interface; return a sentence, or None if there was nothing to do."""
        try:
            descriptor = locked(self.file, create=False)
        except FileNotFoundError:
            return None
        if descriptor is None:
            return None
        gone = False
        try:
            change = _read(os.read(descriptor, 1 << 16))
            if change is not None and change.offloads:
                gone = not _undone_within(self.network, change)
            self.file.unlink()
        finally:
            os.close(descriptor)
        if change is None or not change.offloads:
            return None
        if gone:
            return f"{self.interface}: gone with its network namespace"
        return f"{self.interface}: {', '.join(change.offloads)} on again"


def left(machine: Machine) -> list[Left]:
    """Return the records that killed runs left behind, of any network namespace."""
    found = []
    for file in sorted(machine.at(DIRECTORY).glob(f"{PREFIX}*.json")):
        inode, _, interface = file.name.removeprefix(PREFIX).removesuffix(".json").partition("-")
        if not inode.isdecimal() or not interface:
            continue
        with suppress(OSError):
            descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            finally:
                os.close(descriptor)
            found.append(Left(file, interface, int(inode)))
    return found


def _read(text: bytes) -> Change | None:
    """Return the change in a file, or None if the run was killed before it changed anything."""
    try:
        document: Any = json.loads(text)
        offloads = tuple(name for name in CHANGED_OFFLOADS if name in document["offloads_on"])
        return Change(str(document["interface"]), int(document["index"]), offloads)
    except (ValueError, KeyError, TypeError):
        return None


def network() -> int:
    """Return the inode of this process's network namespace, unique among existing ones."""
    return Path("/proc/self/ns/net").stat().st_ino


def _undone_within(inode: int, change: Change) -> bool:
    """Undo a change in a network namespace; return False if the namespace no longer exists."""
    if inode == network():
        change.undo()
        return True
    for place in [*Path("/proc").glob("[0-9]*/ns/net"), *Path("/run/netns").glob("*")]:
        with suppress(OSError):
            descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
            try:
                if os.fstat(descriptor).st_ino == inode:
                    # A thread has its own namespace, and the thread ends here.
                    with ThreadPoolExecutor(1) as pool:
                        pool.submit(_enter_and_undo, descriptor, change).result()
                    return True
            finally:
                os.close(descriptor)
    return False


def _enter_and_undo(namespace: int, change: Change) -> None:
    """Move the calling thread into a network namespace, and undo a change there."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, _CLONE_NEWNET):
        because = os.strerror(ctypes.get_errno())
        raise AirpathError(
            f"{change.interface}: its network namespace cannot be entered: {because}"
        )
    change.undo()


def _index(interface: str) -> int | None:
    try:
        return socket.if_nametoindex(interface)
    except OSError:
        return None
