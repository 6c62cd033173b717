"""Who monitors an emulation: a person at the terminal or at a browser, Prometheus, nobody."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.emulation.oam.live import Streams
from airpath.errors import InputError

if TYPE_CHECKING:
    from airpath import _core
    from airpath.emulation.oam.editing import Editing
    from airpath.emulation.oam.status import Status

SHELLS = ("bash", "dash", "fish", "ksh", "sh", "zsh")


@dataclass(frozen=True)
class Monitoring:
    """What an emulation has to know about those who monitor it."""

    monitor: _core.Monitor | None
    streams: Streams


@contextmanager
def monitored(
    scenario: _core.Scenario,
    command: Sequence[str],
    *,
    live: bool | None,
    port: int | None,
    status: Status | None = None,
    quiet: bool = False,
) -> Iterator[Monitoring]:
    """Monitor as long as the context lasts.

    ``live`` shows a table on the terminal; None: if there is one and ``command`` is no shell.
    ``port`` answers Prometheus. ``status`` follows the run. ``quiet``: the command's standard
    output goes to standard error.
    """
    from airpath import _core

    live = is_shown(command, live)
    streams = Streams(output=sys.stderr.fileno() if quiet else None)
    if not live and port is None and status is None:
        yield Monitoring(None, streams)
        return
    monitor = _core.Monitor()
    bound_s = scenario.lateness_bound_s
    with ExitStack() as stack:
        if port is not None:
            from airpath.emulation.oam import metrics

            status = status or new_status(scenario)
            labels = {"scenario": scenario.name, "version": _core.__version__}
            collector = metrics.Collector(monitor.snapshot, bound_s, labels, status.alarms)
            stack.enter_context(metrics.served(port, collector))
        if status is not None:
            from airpath.emulation.oam.status import followed

            stack.enter_context(followed(status, monitor.snapshot))
        if live:
            from airpath.emulation.oam.live import shown

            view = shown(
                monitor, scenario.name, bound_s * 1e6, redirect=not is_shell(command), quiet=quiet
            )
            there = stack.enter_context(view)
            streams = replace(there, output=there.output or streams.output)
        yield Monitoring(monitor, streams)


@contextmanager
def paged(
    scenario: _core.Scenario, text: str | None, say: Callable[[str], None], *, edit: bool = False
) -> Iterator[Status | None]:
    """Serve the status page at the address ``text`` as long as the context lasts, if it is given.

    ``say`` is told where. ``edit``: who has the token that ``say`` is told may change subscribers.
    The value is what has to follow the run; None: there is no page.
    """
    editing = _editing(scenario, text) if edit else None
    if text is None:
        yield None
        return
    from airpath.emulation.oam.page import Address, served

    address, status = Address.parse(text), new_status(scenario, editing)
    with served(address, status) as where:
        say(f"status page: {where.url}")
        if editing is not None:
            say(f"token to change subscribers there: {editing.token}")
        yield status


def _editing(scenario: _core.Scenario, text: str | None) -> Editing:
    """Return who may change a scenario's subscribers; raises ``InputError`` if it has none."""
    from airpath.emulation.oam.editing import Editing

    if text is None:
        raise InputError("--edit needs --page PORT, the page that changes subscribers")
    if scenario.core is None:
        raise InputError("--edit needs a scenario with [core]: there are no subscribers to change")
    return Editing(Path(scenario.core["subscribers"]))


def new_status(scenario: _core.Scenario, editing: Editing | None = None) -> Status:
    """Return what is known of a run that has not begun."""
    from airpath.emulation.oam import inventory
    from airpath.emulation.oam.alarms import Alarms
    from airpath.emulation.oam.status import Status

    alarms = Alarms(scenario.lateness_bound_s, inventory.outages(scenario))
    return Status(scenario, alarms, editing=editing)


def is_shown(command: Sequence[str], live: bool | None) -> bool:
    """Whether there is a table: as ``live`` says, else on a terminal that no shell uses."""
    return sys.stderr.isatty() and not is_shell(command) if live is None else live


def is_shell(command: Sequence[str]) -> bool:
    """Whether a command is an interactive shell: one without arguments that are not options."""
    return (
        bool(command)
        and Path(command[0]).name in SHELLS
        and all(word in ("-i", "-l", "--login") for word in command[1:])
    )
