"""A result's scenario, prepared for settings: this kernel's TCP, and shapers that are still off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from airpath import scenario as scenarios
from airpath.base.json import Json
from airpath.base.toml import parse_toml, toml_text
from airpath.errors import InputError
from airpath.explorer.begin import FILE_KEYS, files
from airpath.runs.directories import newest_run
from airpath.runs.results import Run
from airpath.tune.mtu import largest_packet
from airpath.twin.comparable import Comparable, make_comparable

if TYPE_CHECKING:
    from airpath import _core
    from airpath.diagnose.blocks import FlowTable
    from airpath.measure.document import MtuDocument
    from airpath.tune.settings import Direction, Role

_TUNING = ("initial_receive_bytes", "send_factor")
"""0: the application sets the size."""


@dataclass(frozen=True)
class TcpFlow:
    """A flow of the scenario, as far as settings depend on it."""

    place: int
    direction: Direction
    congestion: str
    slow_start: str
    initial_window: int
    mss_bytes: int
    header_bytes: int
    send_buffer_bytes: int
    receive_buffer_bytes: int
    initial_receive_bytes: int
    """0: the application sets the size."""
    send_factor: int
    """0: the application sets the size."""
    has_ecn: bool
    after_idle: str
    has_pauses: bool
    """Whether its application writes in parts."""
    has_cubic: bool
    """Whether the scenario sets parameters of CUBIC or HyStart, which no other control has."""

    @classmethod
    def of(cls, place: int, flow: Json) -> TcpFlow:
        """Return a flow of a resolved scenario."""
        buffer = flow["buffer"]
        return cls(
            place,
            flow["direction"],
            flow["congestion"],
            flow["slow_start"],
            flow["initial_window_segments"],
            flow["mss_bytes"],
            flow["options"]["header_bytes"],
            flow["send_buffer_bytes"],
            flow["receive_buffer_bytes"],
            buffer["initial_receive_bytes"],
            buffer["send_factor"],
            has_ecn=flow["options"]["ecn"] != "off",
            after_idle=flow["cwnd"]["after_idle"],
            has_pauses="write_times_s" in flow,
            has_cubic="cubic" in flow or "hystart" in flow,
        )

    def sets(self, *settings: str) -> list[str]:
        """Return settings of this flow."""
        return [f"flow.{self.place}.{one}" for one in settings]

    def buffer_bytes(self, role: Role) -> int:
        """Return the size of the sender's or the receiver's buffer."""
        return self.send_buffer_bytes if role == "sender" else self.receive_buffer_bytes

    def has_fixed_buffer(self, role: Role) -> bool:
        """Whether the application sets the buffer's size, so that Linux does not tune it."""
        return not (self.send_factor if role == "sender" else self.initial_receive_bytes)


@dataclass(frozen=True)
class Prepared:
    """A scenario to which settings are added as ``--set`` would."""

    source: str
    """The file, shipped scenario or run directory."""
    file: Path
    """The scenario with every key, this kernel's TCP and the shapers."""
    comparable: Comparable
    flows: Sequence[TcpFlow]
    """Enabled TCP flows."""
    compared: Sequence[FlowTable]
    """Enabled flows, by whose figures settings are judged."""
    defaults: TcpFlow
    """A flow with the profile of this kernel."""
    has_radio: bool
    """Whether the path has a cell, whose host links shape."""
    shapers: dict[Direction, str]
    """Key of the shaper at the UE's host."""
    largest_packets: dict[Direction, int | None]
    """The largest packet that passes; None: any."""
    marks: bool
    """Whether a queue or a policer could mark packets (ECN)."""
    missing: Sequence[str] = ()
    """Causes that a measurement named, and that its twin has no place for."""

    def seed_of(self, sets: Sequence[str], index: int) -> tuple[_core.Scenario, _core.Scenario]:
        """Return the ``index``-th seed with settings: for a simulation, and for an emulation."""
        loaded = scenarios.load(self.file, list(sets))
        with_sets = replace(self.comparable, scenario=loaded, name=str(self.file), sets=tuple(sets))
        return with_sets.of_seed(index)


@contextmanager
def prepared(what: str | None, sets: scenarios.Sets = None) -> Iterator[Prepared]:
    """Prepare a scenario, a run directory, or the newest run in ``runs``.

    Raises ``InputError`` if there is none, or it has no TCP flow.
    """
    with TemporaryDirectory(prefix="airpath-tune-") as folder:
        place = Path(folder)
        source, name, missing = _source(what, place)
        comparable = make_comparable(name, [*scenarios.set_list(sets), "run.radio_log=false"])
        document = parse_toml(comparable.scenario.resolved_toml)
        document["run"]["ack_table"] = False
        # Linux's own slow start, unless a setting changes it.
        document.setdefault("emulation", {})["slow_start"] = "profile"
        _absolute(document, scenarios.read(name)[2])
        _add_shapers(document)
        defaults = _defaults(comparable.profile or "linux-6.1")
        for flow in document["flow"]:
            # A flow with another congestion control must not have these keys.
            if flow.get("cubic") == defaults["cubic"]:
                del flow["cubic"]
        file = place / f"{scenarios.stem(comparable.scenario)}.toml"
        file.write_text(toml_text(document))
        ready = replace(_prepared(source, file, comparable, document, defaults), missing=missing)
        if not ready.flows:
            raise InputError(f"{source} has no TCP flow whose settings could be tuned")
        yield ready


def _prepared(
    source: str, file: Path, comparable: Comparable, document: Json, defaults: Json
) -> Prepared:
    flows = [flow for flow in document["flow"] if flow["enabled"]]
    path, radio = document.get("path", {}), document.get("radio", {})
    stages = [stage for way in path.values() for stage in way if stage["enabled"]]
    buffers = [ue[name] for ue in radio.get("ue", []) for name in ("rlc", "rlc_up")]
    return Prepared(
        source,
        file,
        comparable,
        [
            TcpFlow.of(place, flow)
            for place, flow in enumerate(document["flow"])
            # No kernel has a window without congestion control.
            if flow["enabled"] and flow.get("congestion", "fixed") != "fixed"
        ],
        flows,
        TcpFlow.of(0, defaults),
        bool(radio),
        _shaper_keys(path, has_radio=bool(radio)),
        {"down": largest_packet(path.get("down", [])), "up": largest_packet(path.get("up", []))},
        any(_marks(table) for table in [*stages, *buffers]),
    )


def _marks(table: Json) -> bool:
    return table.get("aqm", "drop-tail") != "drop-tail" or table.get("excess") == "mark"


def _shaper_keys(path: Json, *, has_radio: bool) -> dict[Direction, str]:
    if has_radio:
        return {"down": "radio.ue.*.host_link", "up": "radio.ue.*.host_link_up"}
    return {"down": f"path.down.{len(path['down']) - 1}", "up": "path.up.0"}


def _source(what: str | None, place: Path) -> tuple[str, str, list[str]]:
    """Return what was meant, the name or file of its scenario, and causes that this lacks."""
    if what is None:
        what = str(newest_run(Path("runs")))
    if not Path(what, "summary.json").is_file():
        return what, what, []
    run = Run.open(what)
    document = parse_toml(run.scenario_toml)
    for name in files(document):
        if not name.startswith(scenarios.BUILT_IN) and not Path(name).is_absolute():
            raise InputError(
                f"the run {what} needs the file {name}, but does not say where it is: tune the "
                "scenario file instead"
            )
    for flow in document["flow"]:
        _without_defaults(flow)
    missing: list[str] = []
    if "measured" in run.summary:
        measured = run.summary["measured"]
        holes = [_add_hole(document, found) for found in measured["mtu"]]
        missing = [one for one in measured["not_in_twin"] if one != "mtu" or not any(holes)]
    file = place / "result.toml"
    file.write_text(toml_text(document))
    return what, str(file), missing


def _add_hole(document: Json, found: MtuDocument) -> bool:
    """Add the hop at which a measurement's large packets vanished; its twin has no place for it.

    Where ICMP errors arrive, senders adapt, and nothing needs to be set. Returns whether there is
    such a hop.
    """
    if not found["black_hole"] or found["path_bytes"] is None:
        return False
    stages = document.setdefault("path", {}).setdefault(found["direction"], [])
    stages.append({"stage": "mtu", "mtu_bytes": found["path_bytes"]})
    return True


def _defaults(profile: str) -> Json:
    text = f"""
path.up = [{{ stage = "delay", delay_ms = 1 }}]
[[flow]]
kind = "bulk"
profile = "{profile}"
"""
    document = parse_toml(scenarios.parse(text, "defaults").resolved_toml)
    flow: Json = document["flow"][0]
    return flow


def _without_defaults(flow: Json) -> None:
    """Remove what a run's scenario has only because of the flow's profile."""
    from airpath import _core

    profile = flow.get("profile")
    if profile not in _core.profiles():
        return
    defaults = _defaults(profile)
    sizes = ("send_buffer_bytes", "receive_buffer_bytes")
    # A size of its own may have been set by the application: then tuning is off as well.
    kept = (
        {key: flow[key] for key in sizes}
        if any(flow[key] != defaults[key] for key in sizes)
        else {}
    )
    tuning = {key: flow["buffer"][key] for key in _TUNING} if kept else {}
    for key, value in list(flow.items()):
        if isinstance(value, dict):
            own = defaults.get(key, {})
            flow[key] = {name: one for name, one in value.items() if own.get(name) != one}
        elif key not in ("id", "kind", "profile") and defaults.get(key) == value:
            del flow[key]
    flow.update(kept)
    flow["buffer"] = {**flow["buffer"], **tuning}


def _absolute(value: Any, directory: str | None) -> None:
    """Let relative file names hold in another directory as well."""
    if isinstance(value, list):
        for one in value:
            _absolute(one, directory)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key in FILE_KEYS and isinstance(inner, str):
                if not inner.startswith(scenarios.BUILT_IN) and inner != "-":
                    value[key] = str((Path(directory or ".") / inner).absolute())
            else:
                _absolute(inner, directory)


def _add_shapers(document: Json) -> None:
    """Add a disabled shaper to each direction where the UE's host has its interface.

    With a radio the model has that place already (``radio.host_link``).
    """
    if "radio" in document:
        return
    path = document.setdefault("path", {})
    shaper = {"stage": "shaper", "enabled": False, "rate_mbps": 1, "burst_bytes": 3000,
              "aqm": "fq_codel"}  # fmt: skip
    path["down"] = [*path.get("down", []), dict(shaper)]
    path["up"] = [dict(shaper), *path.get("up", [])]
