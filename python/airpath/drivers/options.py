"""Options that the command line and the public API pass to the drivers.

Options that exclude each other raise ``InputError`` when the structure is created.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.base.numbers import seeds_from, worker_count
from airpath.errors import InputError, InputTypeError

if TYPE_CHECKING:
    from airpath._core import Monitor
    from airpath.congestion import Controls
    from airpath.emulation.congestion import Congestion
    from airpath.emulation.gateway import Gateway
    from airpath.emulation.oam import Edit
    from airpath.emulation.session import Session

Progress = Callable[[float], None]
"""Called from the calling thread with the share of the work done, 0 to 1."""

MOST_SEEDS = 100_000
"""The summary has a value of each."""


MOST_SECONDS = 1_000_000
"""Longest duration of a gateway, in seconds."""


@dataclass(frozen=True, kw_only=True)
class SimulationOptions:
    """How a scenario is simulated, and where its results are written."""

    seed: int | None = None
    """The first seed; None: the scenario's."""
    repeat: int = 1
    """Number of seeds, counted up from the first."""
    workers: int | None = None
    """Number of threads; None: all cores. Results do not depend on it."""
    out: Path | None = None
    """The run directory, which must be new or empty."""
    parent: Path | None = None
    """Folder in which a run directory is created and named, if ``out`` is None. If both are None,
    tables stay in memory."""
    capture: bool = False
    """Whether to write ``capture.pcapng`` for each seed: every packet's headers at the ends."""
    congestion: Controls | None = None
    """Congestion controls of your own, by flow."""
    progress: Progress | None = None
    command_line: list[str] | None = None
    """The command that led to this run, for its provenance."""

    def __post_init__(self) -> None:
        for name, number in (("seed", self.seed), ("repeat", self.repeat)):
            if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
                raise InputTypeError(f"{name} must be a whole number, not {number!r}")
        worker_count(self.workers)
        if not 1 <= self.repeat <= MOST_SEEDS:
            raise InputError(f"repeat must be from 1 to {MOST_SEEDS}")
        if self.seed is not None:
            seeds_from(self.seed, self.repeat)
        if self.out is not None and self.parent is not None:
            raise InputError("out and parent are mutually exclusive: both set the run directory")
        if self.capture and self.out is None and self.parent is None:
            raise InputError("capture needs out, the directory to write the capture to")


@dataclass(frozen=True, kw_only=True)
class EmulationOptions:
    """What runs inside a scenario's network, as whom, and who observes it."""

    command: Sequence[str] = ()
    """Program and arguments. The run ends with the command; without a command, with the scenario's
    programs; without programs, with its flows."""
    servers: Sequence[str] = ()
    """Shell commands to start at the server's end before the command."""
    place: str | None = None
    """The end at which the command runs; None: the first UE."""
    flows: bool = False
    """Whether kernel sockets run the scenario's flows, until the command or the programs end. If
    there are none, the flows run until the scenario's end."""
    user: str | None = None
    """The user that programs run as: a name, a number, or ``root`` for all its rights; None: the
    user who called sudo, else root without its capabilities."""
    variables: Sequence[str] = ()
    """Environment variables of this process that programs get in addition to the usual ones."""
    seed: int | None = None
    """The model's seed; None: the scenario's."""
    out: Path | None = None
    """The run directory, which must be new or empty; None: one of its own under ``runs``."""
    capture: bool = False
    """Whether to write ``capture.pcapng``: every packet at each end and at the cell, and with
    ``[core]`` the signalling of UEs."""
    parity: bool = False
    """Whether to replay the packets on the virtual clock; the summary says if they left at the same
    times."""
    bare: bool = False
    """Whether to pass packets on without a model, for comparison."""
    gateway: Gateway | None = None
    """Two interfaces of the host with real devices, instead of namespaces with programs."""
    congestion: Sequence[Congestion] = ()
    """Congestion controls of the kernel's that replace those of the scenario's flows."""
    output: int | None = None
    """Descriptor for the command's standard output; None: this process's."""
    error: int | None = None
    """Descriptor for the standard error of command and servers; None: this process's."""
    monitor: Monitor | None = None
    """Monitor that receives snapshots of the run."""
    attached: Callable[[Sequence[Session]], None] | None = None
    """Called with the sessions of the UEs once they have attached."""
    edits: Callable[[], Sequence[Edit]] | None = None
    """Called when the run has ended: returns what was changed of the core's subscribers."""
    progress: Progress | None = None
    """Called with the completed share of the run while flows run without a command or programs."""
    command_line: list[str] | None = None
    """The command that led to this run, for its provenance."""

    def __post_init__(self) -> None:
        if isinstance(self.command, str):
            raise InputTypeError("command must be a list of strings, not one string")
        if self.gateway is not None:
            self._check_gateway(self.gateway)
        if not self.command and (self.place is not None or (self.flows and self.servers)):
            raise InputError("--server and --at need a COMMAND")
        if self.command and self.progress is not None:
            raise InputError("progress is for flows that run without a command")
        if self.bare and (self.capture or self.parity):
            raise InputError("capture and parity need the model, but bare runs without it")
        if self.seed is not None:
            seeds_from(self.seed)

    def _check_gateway(self, gateway: Gateway) -> None:
        if self.congestion:
            raise InputError(
                "--congestion cannot be used with --gateway: the devices use their own TCP"
            )
        inside = {
            "COMMAND": self.command, "--server": self.servers, "--at": self.place,
            "--flows": self.flows, "--user": self.user, "--env": self.variables,
        }  # fmt: skip
        if wrong := [name for name, value in inside.items() if value]:
            raise InputError(
                f"{wrong[0]} cannot be used with --gateway: there the traffic comes from real "
                f"devices. Remove {', '.join(wrong)}."
            )
        if self.bare:
            raise InputError("a gateway needs the model, but bare runs without it")
        if gateway.duration_s is not None and not 0 < gateway.duration_s <= MOST_SECONDS:
            raise InputError(f"--duration must be more than 0 and at most {MOST_SECONDS} seconds")
