"""Congestion control of your own, written in Python, for simulated flows.

A class derives from ``Congestion`` and overrides what it needs; ``airpath.run`` takes an object of
it for a flow:

>>> import airpath
>>> from airpath.congestion import Ack, Congestion, Loss, Window
>>> class Halving(Congestion):
...     def on_ack(self, ack: Ack, window: Window) -> None:
...         grown = ack.acked_segments
...         if window.cwnd_segments >= window.ssthresh_segments:
...             grown /= window.cwnd_segments
...         window.cwnd_segments += grown
>>> run = airpath.run("wire", congestion={"flow.0": Halving()})
>>> run.flows["congestion"].to_list()
['halving']

Each field says its unit in its name. Times are whole nanoseconds since the start of the run, so a
class that computes in integers gives the same result on every machine.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from airpath._core import Ack, Interval, Loss, Start, Window
from airpath.errors import InputError, InputTypeError

if TYPE_CHECKING:
    from airpath import _core

__all__ = ["Ack", "Congestion", "Interval", "Loss", "SlowStartExit", "Start", "Window"]

Reason: TypeAlias = Literal[
    "ack_train", "css", "delay", "ecn", "falling_minimum", "full_pipe", "loss", "ssthresh"
]
"""Why slow start ends, as in the column ``reason`` of the table ``events``."""


@dataclass(frozen=True, slots=True)
class SlowStartExit:
    """An end of slow start that the class itself decides; ``on_ack`` returns it."""

    reason: Reason
    round_rtt_ns: int | None = None
    """RTT that a test of the delay compared with ``base_rtt_ns``."""
    base_rtt_ns: int | None = None


class Congestion:
    """Base class: decides how many segments may be in flight on one connection.

    The sender measures, detects losses and retransmits; a class only computes. It is called at the
    simulated time of each event and changes ``window``. It must not depend on anything but its
    arguments: no clock, and random numbers only from ``start.seed``.

    By default a class is loss-based: ``on_ack`` is called for acknowledgements while the window may
    grow, and after ``on_loss`` the sender itself reduces cwnd to ssthresh. A class with
    ``model_based = True``, or one with ``on_interval``, controls cwnd alone: it receives every
    acknowledgement, in recovery too, and may set ``window.pacing_bps``. Only a time-out still
    reduces cwnd, to one segment or to what is in flight (RFC 5681 3.1, RFC 8985 6.3).
    """

    name: str = ""
    """Name in tables; empty: that of the class in lower case."""
    model_based: ClassVar[bool] = False
    """Whether the class alone controls cwnd."""
    interval_ms: float | None = None
    """Time between two calls of ``on_interval``; None: a smoothed RTT."""

    def on_start(self, start: Start) -> None:
        """Learn about a new connection, before its handshake."""

    def on_established(self, rtt_ns: int | None) -> None:
        """Learn that the handshake is complete, and its RTT if it was measured."""

    def on_ack(self, ack: Ack, window: Window) -> SlowStartExit | None:
        """Data was delivered."""

    def on_loss(self, loss: Loss, window: Window) -> None:
        """Set ssthresh after congestion: a loss, packets marked by ECN, or a time-out.

        Called once per recovery. Without this method a loss-based class halves what is in flight
        (RFC 5681 (4)).
        """

    def on_undo(self, window: Window) -> None:
        """Restore state: the last congestion event was spurious (RFC 4015 3.3).

        ``window`` is as before that event already, unless the class is model-based.
        """

    def on_recovered(self, now_ns: int, window: Window) -> None:
        """A recovery that began with congestion has ended."""

    def on_restart(self, now_ns: int, last_sent_ns: int, window: Window) -> None:
        """Data is sent after nothing was in flight (RFC 9438 5.8)."""

    def on_interval(self, interval: Interval, window: Window) -> None:
        """Decide for the next interval.

        An interval ends with the first acknowledgement that arrives ``interval_ms`` or more after
        its start; after a time-out, with the next acknowledgement. The decision takes effect just
        after that acknowledgement, at the same instant.
        """


METHODS = (
    "on_start", "on_established", "on_ack", "on_loss", "on_undo", "on_recovered", "on_restart",
    "on_interval",
)  # fmt: skip
"""Methods that a class may override."""

Controls: TypeAlias = Mapping[str, "Congestion | Callable[[], Congestion] | str | os.PathLike[str]"]
"""By flow (``flow.0``, or ``flow.*`` for every TCP flow): an object, which is copied for each
connection; a class or function that returns a new object for each; or the file of a library."""


@dataclass(frozen=True)
class Prepared:
    """An object for one connection, as the simulator calls it."""

    class_name: str
    model_based: bool
    interval_ms: float | None
    methods: dict[str, Callable[..., Any]] = field(repr=False)


@dataclass(frozen=True)
class Control:
    """What decides for the flow at one place in the scenario file."""

    index: int
    name: str
    decides: Callable[[], Prepared] | _core.CongestionLibrary
    source: str
    """Class or file, and the hash of its content, for provenance."""


_SETTING = re.compile(r"(flow\.(?:\d+|\*))\.congestion\s*=\s*(.*)", re.DOTALL)


def libraries(sets: Iterable[str]) -> tuple[list[str], dict[str, str]]:
    """Split settings into those of the scenario and libraries by flow; the last setting wins.

    Only a person's own settings go through here. A scenario, a campaign or a study cannot name a
    library, because loading one runs its code.

    >>> libraries(["run.seed=2", "flow.0.congestion=./libmine.so"])
    (['run.seed=2'], {'flow.0': './libmine.so'})
    """
    rest: list[str] = []
    found: dict[str, str] = {}
    for entry in sets:
        setting = _SETTING.fullmatch(entry.strip())
        if setting is None:
            rest.append(entry)
            continue
        flow, value = setting[1], setting[2].strip().strip("\"'")
        found.pop(flow, None)
        if value.endswith(".so"):
            found[flow] = value
        else:
            rest.append(entry)
    return rest, found


def controls(scenario: _core.Scenario, given: Controls | None) -> list[Control]:
    """Check the congestion controls that a caller gives. Raises ``InputError``."""
    if given is None:
        return []
    if not isinstance(given, Mapping):
        raise InputTypeError(f"congestion must be a dictionary whose keys are flows, not {given!r}")
    found = {}
    for key, decides in given.items():
        for index in _flows(scenario, key):
            found[index] = _control(index, decides)
    return list(found.values())


def _flows(scenario: _core.Scenario, key: object) -> list[int]:
    flows = {f"flow.{flow['index']}": flow for flow in scenario.flows}
    if key == "flow.*":
        return [flow["index"] for flow in flows.values() if flow["profile"] is not None]
    flow = flows.get(key) if isinstance(key, str) else None
    if flow is None:
        raise InputError(
            f"congestion: there is no {key!r}; the flows are {', '.join(flows)} and flow.*"
        )
    if flow["profile"] is None:
        raise InputError(f"congestion: {key} is not TCP but {flow['kind']}")
    return [flow["index"]]


def _control(index: int, given: object) -> Control:
    key = f"flow.{index}"
    if isinstance(given, str | os.PathLike):
        library = _library(key, Path(given))
        digest = hashlib.sha256(library.content).hexdigest()
        return Control(index, library.name, library, f"{Path(given).name} sha256 {digest}")
    fresh = _fresh(key, given)
    first = fresh()
    if not isinstance(first, Congestion):
        raise InputTypeError(
            f"congestion: {key} needs an object of a class that derives from "
            f"airpath.congestion.Congestion, or the file of a library, not {first!r}"
        )
    _prepared(first)
    return Control(index, _name(first), lambda: _prepared(fresh()), _source(type(first)))


def _library(key: str, path: Path) -> _core.CongestionLibrary:
    from airpath import _core

    try:
        return _core.CongestionLibrary(path)
    except _core.CongestionError as error:
        raise InputError(f"congestion: {key}: {error}") from None


def _fresh(key: str, given: object) -> Callable[[], Congestion]:
    if callable(given) and not isinstance(given, Congestion):
        return given

    def copied() -> Any:
        try:
            return copy.deepcopy(given)
        except Exception as error:
            raise InputError(
                f"congestion: {key}: {given!r} cannot be copied ({error}); give a function that "
                "returns a new object"
            ) from error

    return copied


def _prepared(control: Congestion) -> Prepared:
    kind = type(control)
    methods = {
        name: getattr(control, name)
        for name in METHODS
        if getattr(kind, name) is not getattr(Congestion, name)
    }
    if not methods.keys() & {"on_ack", "on_interval"}:
        raise InputError(f"congestion: {kind.__name__} has neither on_ack nor on_interval")
    interval_ms = control.interval_ms
    if interval_ms is not None and not 0 < float(interval_ms) < math.inf:
        raise InputError(
            f"congestion: {kind.__name__}.interval_ms is {interval_ms}, which must be above 0"
        )
    model_based = bool(control.model_based) or "on_interval" in methods
    return Prepared(kind.__name__, model_based, interval_ms, methods)


def _name(control: Congestion) -> str:
    return str(control.name) or type(control).__name__.lower()


def _source(kind: type) -> str:
    """Class, and the hash of its file: a run can only be repeated with the same text."""
    try:
        text = inspect.getsource(inspect.getmodule(kind) or kind)
    except (OSError, TypeError):
        return f"{kind.__module__}.{kind.__qualname__}"
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"{kind.__module__}.{kind.__qualname__} sha256 {digest}"
