"""Congestion controls that a user chooses for the kernel: the host's by name, or a BPF object.

An object is an ELF file with a ``struct tcp_congestion_ops`` (struct_ops), compiled by ``clang
-target bpf``. It is registered for the time of one run.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from airpath import _core
from airpath.base.files import read_within
from airpath.base.text import plural
from airpath.errors import AirpathError, InputError, reason

LAST_LINES = 12
"""Of a verifier's log, on standard error: the refused instruction, its state, and the source line
before it."""
NAME = re.compile(r"[A-Za-z0-9_.-]{1,15}")
"""A name in the kernel (TCP_CA_NAME_MAX)."""


@dataclass(frozen=True)
class Congestion:
    """A congestion control for one flow, or for all that have no choice of their own."""

    flow: str | None
    """The flow's id; None: all others, and programs."""
    name: str | None
    """Name in the kernel, or that of one of several in the object."""
    file: str | None = None
    """The object's file, as given; None: the host has the congestion control."""
    sha256: str | None = None
    elf: bytes | None = field(default=None, repr=False)
    """The object's content. It is read once, so that repeated runs use the same."""

    @property
    def identity(self) -> tuple[str | None, ...]:
        """What makes runs with it different from others: not where the file is."""
        return (self.flow, self.name, self.sha256)


def parse(text: str) -> Congestion:
    """Read ``[FLOW=]NAME``, ``[FLOW=]FILE`` or ``[FLOW=]FILE:NAME``.

    What contains a slash or ends in ``.o`` is a file. Raises ``InputError``.
    """
    if text.endswith((".py", ".so")):
        raise InputError(
            f"--congestion {text}: the kernel takes BPF objects (.o); classes in Python and shared "
            "libraries run in simulations only (airpath.run, airpath run --set)"
        )
    flow, equals, what = text.rpartition("=")
    if equals and not flow:
        raise InputError(f"--congestion {text}: there is no flow before `=`")
    chosen = flow if equals else None
    file, colon, name = what.rpartition(":")
    if not (colon and _is_file(file)):
        file, name = (what, "") if _is_file(what) else ("", what)
    if (name or not file) and NAME.fullmatch(name) is None:
        raise InputError(
            f"--congestion {text}: `{name}` is not a name of a congestion control (1 to 15 of "
            "A-Z, a-z, 0-9, `_`, `.`, `-`), and a file ends in .o or contains a slash"
        )
    if not file:
        return Congestion(chosen, name)
    try:
        elf = read_within(Path(file))
    except OSError as error:
        raise InputError(f"--congestion {text}: cannot read {file}: {reason(error)}") from None
    sha256 = hashlib.sha256(elf).hexdigest()
    return Congestion(chosen, name or None, file, sha256, elf)


def parse_all(texts: Iterable[str], scenario: _core.Scenario) -> list[Congestion]:
    """Read all choices for a scenario. Raises ``InputError``, also for a flow without TCP."""
    choices = [parse(text) for text in texts]
    known = [str(flow["id"]) for flow in scenario.flows if flow["profile"] is not None]
    flows = [choice.flow for choice in choices]
    for flow in flows:
        if flow is not None and flow not in known:
            there = ", ".join(known) or "none"
            raise InputError(f"--congestion {flow}=: the TCP flows of the scenario are {there}")
        if flows.count(flow) > 1:
            raise InputError(f"--congestion is given twice for {flow or 'all flows'}")
    return choices


def check(choices: Sequence[Congestion]) -> None:
    """Make each available to the kernel for a moment, before anything long runs with it.

    Raises ``InputError`` for what the host lacks and for what is no BPF congestion control, and
    ``AirpathError`` for what the kernel refuses.
    """
    try:
        _core.check_congestion(choices)
    except ValueError as error:
        raise InputError(str(error)) from None
    except OSError as error:
        log: str | None = getattr(error, "verifier_log", None)
        hint = log_end(log) if log else "`airpath doctor` says what this machine lacks"
        raise AirpathError(f"{reason(error)}\n{hint}") from None


def log_end(log: str) -> str:
    """Return the end of a verifier's log, for a person."""
    lines = log.splitlines()
    end = (f"  {line}" for line in lines[-LAST_LINES:])
    return "\n".join([f"the verifier's log ends with, of {plural(len(lines), 'line')}:", *end])


def _is_file(text: str) -> bool:
    return "/" in text or text.endswith(".o")
