"""The configuration of the emulation driver, in one object."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.emulation.identity import Identity
from airpath.emulation.session import Session

if TYPE_CHECKING:
    from airpath._core import Monitor


@dataclass(frozen=True, kw_only=True)
class EmulationConfig:
    """One emulation: what runs inside the scenario's network, and who observes it."""

    command: Sequence[str] = ()
    """Program and arguments; with it the run ends. Without one the scenario's programs decide."""
    servers: Sequence[str] = ()
    """Shell commands at the server's end, started before."""
    place: str | None = None
    """The end at which the command runs; None: the first UE."""
    quiet: bool = False
    """The command's standard output goes to standard error."""
    bare: bool = False
    """No model: packets are passed on as they come, for comparison."""
    flows: bool = False
    """The scenario's flows run too, or alone where there is no command."""
    parity: bool = False
    """The packets are replayed on the virtual clock."""
    capture: Path | None = None
    """A pcapng file to be written."""
    files: Path | None = None
    """A directory for what the scenario's programs write."""
    output: int | None = None
    """A descriptor for what the command writes to standard output, and one for standard error."""
    error: int | None = None
    monitor: Monitor | None = None
    """Observes the run."""
    progress: Callable[[float], bool] | None = None
    """Is called as by ``simulate``, where the flows run alone."""
    sessions: Sequence[Session] = ()
    """Those of UEs that attached."""
    identity: Identity | None = None
    """As whom programs run; None: as this process."""
