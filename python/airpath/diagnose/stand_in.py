"""Scenarios that stand for an emulated run: its flows are simulated over the same path.

The flows of COMMAND are replaced by flows of the same kind, start, size and congestion control. All
have the profile of the running kernel, and beside it what the emulation told that kernel of the
scenario's flows.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, TypeVar, cast

from airpath.base.toml import parse_toml
from airpath.errors import InputError

if TYPE_CHECKING:
    from airpath import _core
    from airpath.documents import FlowSummary
    from airpath.emulation.document import PrintedPing
    from airpath.runs.results import Run

_LONGEST_S = 300.0
_LEAST_SHARE = 0.01
"""Share of the bytes that all flows carried."""
_FULL = 0.85
"""A window of which this share is in flight limits its flow."""
_SEGMENT_BYTES = 1448
"""Payload of a full segment, with timestamps."""
_UDP_HEADERS = 28
_CONTROLS = ("reno", "cubic", "bbr", "bbr3")
_NS = 1e9
_FIRST_EPHEMERAL = 32768
"""The end that connects has a port from here on (net.ipv4.ip_local_port_range)."""
_TIMED = re.compile(r"\b(iperf|iperf3|netperf|nuttcp|flent|ttcp)\b")
"""Programs that send for a fixed time, not a fixed amount."""
_LONGER = 1.25
"""A simulated file may take longer than the recorded one."""
_PING_INTERVAL_MS = 1000.0

Document = TypeVar("Document")
Keys: TypeAlias = dict[str, object]
"""Dotted TOML keys of a flow, and their values."""

_SEND_BUFFER = "send_buffer_bytes"
_FIXED = "buffer.send_factor"
"""How many times cwnd the send buffer grows to; 0: it has its size from the start."""
_TOLD = (
    "initial_window_segments",
    _SEND_BUFFER,
    "receive_buffer_bytes",
    "rto.min_ms",
    "recovery.tail_loss_probe",
    "recovery.frto",
    "ack.dsack",
    "ack.repeat_limit_ms",
    "ack.sack_compression_ms",
    "ack.sack_compression_acks",
    "ack.sack_compression_slack_ms",
    "options.timestamps",
    "options.sack",
    "options.window_scaling",
    "options.ecn",
    _FIXED,
    "buffer.initial_receive_bytes",
    "buffer.receive_tuning",
)
"""What an emulation tells the kernel of a flow (``crates/emu/src/host/profile.rs``)."""
_DETECTION = "recovery.loss_detection"
_ALWAYS_RACK = (6, 17)
"""From this version on the kernel finds losses by RACK only, whatever it is told (ip-sysctl)."""
_PUSHED = "ack.pushed_at_once"
"""Whether a segment pushed alone is acknowledged at once: not where its reader wakes up late."""
_AFTER_IDLE = "cwnd.after_idle"
_KEEP = "keep"


@dataclass
class StandIns:
    """What may stand for a run, the most likely first; or why nothing does."""

    scenarios: list[_core.Scenario] = field(default_factory=list)
    because: str | None = None
    names: dict[str, str] = field(default_factory=dict)
    """The recorded id of a flow by its id in the scenarios, where that is another one."""

    def renamed(self, document: Document) -> Document:
        """The document with the recorded flows' ids, which no scenario may have."""

        def of(value: Any) -> Any:
            if isinstance(value, str):
                for name, recorded in self.names.items():
                    value = value.replace(name, recorded)
                return value
            if isinstance(value, Mapping):
                return {of(key): of(one) for key, one in value.items()}
            return [of(one) for one in value] if isinstance(value, list | tuple) else value

        renamed: Document = of(document)
        return renamed


def _host(scenario: _core.Scenario) -> list[str]:
    """What makes simulated ends no faster than real ones, which meet or miss a radio's slots."""
    from airpath.twin.comparable import hosts_take_time

    return hosts_take_time(parse_toml(scenario.resolved_toml))


def profile() -> str:
    """The profile of the running kernel, or of the newest one before it."""
    from airpath import _core
    from airpath.twin.comparable import nearest_profile

    return nearest_profile(platform.release(), _core.profiles())[0]


def own(scenario: _core.Scenario) -> StandIns:
    """The scenario with the kernel's TCP in its flows, told what the kernel was; then as it is.

    A kernel lets the last write exceed a small send buffer, which its profile leaves out: there the
    scenario's own profile may be nearer.
    """
    from airpath import scenario as scenarios

    text, name, directory, sets = scenario.given
    tcp = [flow["index"] for flow in scenario.flows if flow["profile"] is not None]
    kernel = [f'flow.{index}.profile="{profile()}"' for index in tcp]
    try:
        plain = scenarios.parse(text, name, directory, [*sets, *kernel])
    except InputError:
        # Of keys that this profile does not allow together.
        return StandIns([scenario])
    host = _host(plain)
    for buffers in (True, False):
        told = []
        for index in tcp:
            keys = {**_told(scenario, plain, index), **_ignored(plain, index)}
            if not buffers:
                # Where a flow's `window_bytes` says both sizes.
                keys.pop(_SEND_BUFFER, None)
            keys["aggregation.max_bytes"] = scenario.coalesce_bytes
            told += [f"flow.{index}.{key}={json.dumps(value)}" for key, value in keys.items()]
        with suppress(InputError):
            given = [*sets, *kernel, *told, *host]
            late = [f"flow.{index}.{_PUSHED}=false" for index in tcp]
            parsed = [
                scenarios.parse(text, name, directory, [*given, *more]) for more in ([], late)
            ]
            return StandIns([*parsed, scenario])
    return StandIns([plain, scenario])


def of_programs(run: Run, scenario: _core.Scenario) -> StandIns:
    """The scenario with the recorded flows instead of its own.

    A transfer may have ended because its time was over, or because all was sent: if no program says
    which, both are tried.
    """
    from airpath import scenario as scenarios

    rows = {str(row["flow"]): row for row in run.flows.to_dicts()}
    carried = [
        flow
        for flow in run.summary["flows"]
        if flow["kind"] in ("bulk", "file", "udp")
        and flow.get("bytes_delivered")
        and flow["id"] in rows
    ]
    total = sum(flow["bytes_delivered"] for flow in carried)
    flows = [flow for flow in carried if flow["bytes_delivered"] >= _LEAST_SHARE * total]
    pings = _pings(run)
    if not flows and not pings:
        return StandIns(because="no flow was recorded that can be simulated")
    ends = [rows[flow["id"]]["end_ns"] / _NS for flow in flows if rows[flow["id"]]["end_ns"]]
    end_s = max([*ends, *(ping["end_s"] for ping in pings)], default=0.0)
    if end_s > _LONGEST_S:
        return StandIns(because=f"the recorded flows last for more than {_LONGEST_S:.0f} s")
    kernel = _kernel_of(scenario)
    timed = _has_timed(run)
    found = StandIns()
    kinds = [(False, True), (False, False)] if timed else [(True, True), (False, True)]
    for by_size, pushed in kinds:
        blocks = []
        # Of one width: none is the beginning of another.
        names = [f"recorded-{number:04}" for number in range(len(flows) + len(pings))]
        for name, flow in zip(names, flows, strict=False):
            found.names[name] = str(flow["id"])
            row, window = rows[flow["id"]], _window(run, str(flow["id"]))
            times = (row["start_ns"] or 0, row["end_ns"] or row["start_ns"] or 0)
            told = kernel.of(flow["direction"], flow.get("ue"))
            if not pushed:
                told[_PUSHED] = False
            by_size_here = by_size and "printed" not in flow
            blocks.append(_flow(name, flow, times, window, told, by_size=by_size_here))
        for name, ping in zip(names[len(flows) :], pings, strict=True):
            found.names[name] = ping["id"]
            blocks.append(_table({"id": name, "kind": "ping", **ping["keys"]}))
        text = _without_flows(scenario.resolved_toml) + "\n".join(blocks)
        # What is sent last needs time to arrive.
        length_s = max(end_s, 0.1) * (_LONGER if by_size else 1)
        sets = [f"run.duration_s={length_s:.3f}", *_host(scenario)]
        try:
            found.scenarios.append(scenarios.parse(text, scenario.name, scenario.given[2], sets))
        except InputError as error:
            first = str(error).splitlines()[0]
            found.because = f"the recorded flows cannot be simulated: {first}"
    if found.scenarios:
        found.because = None
    return found


def _told(scenario: _core.Scenario, kernel: _core.Scenario, index: int) -> Keys:
    """The kernel's settings for a flow, where they differ from those of the kernel's profile."""
    said, default = _flow_keys(scenario, index), _flow_keys(kernel, index)
    return _differing(said, default, _told_keys(said, default))


def _told_keys(said: Keys, default: Keys) -> list[str]:
    keys = [*_TOLD]
    if _version() < _ALWAYS_RACK:
        keys.append(_DETECTION)
    # Whether the window stays as it is; how it shrinks is the kernel's own.
    if _KEEP in (said.get(_AFTER_IDLE), default.get(_AFTER_IDLE)):
        keys.append(_AFTER_IDLE)
    return keys


def _differing(said: Keys, default: Keys, keys: list[str]) -> Keys:
    return {key: said[key] for key in keys if key in said and said[key] != default.get(key)}


def _ignored(kernel: _core.Scenario, index: int) -> Keys:
    """The kernel's own values of keys that a flow has and no kernel can be told."""
    as_told = parse_toml(kernel.resolved_toml).get("emulation", {}).get("slow_start") == "profile"
    keys = {}
    for flow in kernel.flows:
        if flow["index"] != index:
            continue
        for key, _value, kernels in flow["simulated_only"]:
            if kernels and not (as_told and key.startswith(("slow_start", "hystart"))):
                keys[key] = _value_of(kernels)
    if _version() >= _ALWAYS_RACK:
        keys[_DETECTION] = "rack"
    return keys


def _value_of(text: str) -> Any:
    """``true``, a number, or text."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _flow_keys(scenario: _core.Scenario, index: int) -> Keys:
    """Keys of a flow as they stand in a scenario that is written out, with dots."""
    flows = parse_toml(scenario.resolved_toml)["flow"]
    keys: Keys = {}
    for key, value in flows[index].items():
        if isinstance(value, dict):
            keys.update({f"{key}.{inner}": one for inner, one in value.items()})
        else:
            keys[key] = value
    return keys


def _version() -> tuple[int, ...]:
    """The running kernel's."""
    return tuple(int(part) for part in re.findall(r"\d+", platform.release())[:2])


@dataclass
class _Kernel:
    """What the ends of a scenario were told, by direction and UE of the flows that tell it."""

    flows: list[tuple[str, str | None, Keys]]
    coalesce_bytes: int

    def of(self, direction: str, ue: str | None) -> Keys:
        """Keys of a flow of a program: its sender's end is as the first flow that it sends."""
        here = [one for one in self.flows if one[1] == ue] or self.flows
        first = next((one for one in here if one[0] == direction), here[0] if here else None)
        keys = dict(first[2]) if first else {}
        return {**keys, "aggregation.max_bytes": self.coalesce_bytes}


def _kernel_of(scenario: _core.Scenario) -> _Kernel:
    from airpath import scenario as scenarios

    plain = {"id": "plain", "kind": "bulk", "profile": profile()}
    text = _without_flows(scenario.resolved_toml) + _table(plain)
    default = _flow_keys(scenarios.parse(text, scenario.name, scenario.given[2]), 0)
    flows: list[tuple[str, str | None, Keys]] = []
    for flow in scenario.flows:
        if flow["profile"] is not None:
            said = _flow_keys(scenario, flow["index"])
            ue = said.get("ue")
            told = _differing(said, default, [*_told_keys(said, default), "mss_bytes"])
            flows.append((flow["direction"], ue if isinstance(ue, str) else None, told))
    return _Kernel(flows, scenario.coalesce_bytes)


class _Pinged(TypedDict):
    """A program's pings: their recorded id, the keys of a flow, and when they ended."""

    id: str
    end_s: float
    keys: Keys


def _pings(run: Run) -> list[_Pinged]:
    """What programs pinged: the recorded id, the keys of a flow, and when it ended."""
    pings: list[_Pinged] = []
    for program in run.summary["emulation"].get("programs") or []:
        read = program.get("printed")
        started_s, ended_s = program.get("started_s"), program.get("ended_s")
        if not read or read.get("tool") != "ping" or not read.get("sent") or started_s is None:
            continue
        printed = cast("PrintedPing", read)
        end_s = run.summary["run"]["duration_s"]
        last_ms = (printed.get("rtt_ms") or {}).get("mean") or 0.0
        interval_ms = _PING_INTERVAL_MS
        if ended_s is not None:
            end_s = ended_s
            if printed["sent"] > 1:
                # It waits for the last answer.
                lasted_ms = 1e3 * (ended_s - started_s) - last_ms
                interval_ms = max(lasted_ms / (printed["sent"] - 1), 1.0)
        keys: Keys = {
            "direction": "down" if program["at"] == "server" else "up",
            "start_s": round(started_s, 6),
            "interval_ms": round(interval_ms, 3),
        }
        if program["at"] not in ("server", "ue"):
            keys["ue"] = program["at"]
        pings.append({"id": printed["id"], "end_s": end_s, "keys": keys})
    return pings


def _has_timed(run: Run) -> bool:
    """Whether a program sends for a time, as far as its name tells."""
    emulation = run.summary["emulation"]
    lines = [" ".join(emulation.get("command") or []), *(emulation.get("servers") or [])]
    lines += [str(one.get("command")) for one in emulation.get("programs") or []]
    return any(_TIMED.search(line) for line in lines)


def _window(run: Run, flow: str) -> int | None:
    """The largest window that the receiver announced, bytes, where it held the flow back.

    It did if in half of the samples what was under way took nearly all of it.
    """
    if not run.has_table("samples"):
        return None
    rows = [row for row in run.samples.to_dicts() if str(row["flow"]) == flow]
    windows = [(row["receive_window_segments"], row["inflight_segments"] or 0) for row in rows]
    pairs = [(int(window), int(under_way)) for window, under_way in windows if window is not None]
    full = sum(1 for window, under_way in pairs if under_way >= _FULL * window)
    if not pairs or 2 * full < len(pairs):
        return None
    return _SEGMENT_BYTES * max(window for window, _ in pairs)


def _flow(
    name: str,
    flow: FlowSummary,
    times: tuple[int, int],
    window: int | None,
    told: Keys,
    *,
    by_size: bool,
) -> str:
    """A ``[[flow]]`` for a recorded one, from its times on; ``window`` bounds its receiver's."""
    start_ns, end_ns = times
    start_s, lasted_s = start_ns / _NS, max(end_ns - start_ns, 1) / _NS
    udp = flow["kind"] == "udp"
    file = by_size and not udp
    keys: Keys = {
        "id": name,
        "kind": "udp" if udp else "file" if file else "bulk",
        "direction": flow["direction"],
        "start_s": round(start_s, 6),
    }
    if file:
        keys["size_bytes"] = int(flow["bytes_delivered"])
    else:
        keys["duration_s"] = round(lasted_s, 6)
    if (opener := _opened_by(str(flow["id"]))) is not None:
        sends = "ue" if flow["direction"] == "up" else "server"
        keys["opened_by"] = "sender" if opener == sends else "receiver"
    if udp:
        sent, lost = flow.get("packets_sent") or 1, flow.get("packets_lost") or 0
        arrived = max(sent - lost, 1)
        packet_bytes = round(flow["bytes_delivered"] / arrived) + _UDP_HEADERS
        keys["packet_bytes"] = packet_bytes
        keys["rate_mbps"] = round(8e-6 * sent * packet_bytes / lasted_s, 6)
    else:
        keys["profile"] = profile()
        if flow.get("congestion") in _CONTROLS:
            keys["congestion"] = flow["congestion"]
        keys.update(told)
        if window is not None:
            # It was full, so the send buffer was not.
            keys.pop(_SEND_BUFFER, None)
            keys.pop(_FIXED, None)
            keys["receive_buffer_bytes"] = window
            keys["buffer.initial_receive_bytes"] = 0
    if flow.get("ue"):
        keys["ue"] = flow["ue"]
    return _table(keys)


def _opened_by(recorded: str) -> str | None:
    """``ue`` or ``server``: who connected, as far as the two ports tell.

    >>> _opened_by("tcp phone:40312 server:5201")
    'ue'
    """
    ports = [end.rpartition(":")[2] for end in recorded.split()[1:]]
    if len(ports) != 2 or not all(port.isdigit() for port in ports):
        return None
    inner, outer = (int(port) >= _FIRST_EPHEMERAL for port in ports)
    if inner == outer:
        return None
    return "ue" if inner else "server"


def _table(keys: Mapping[str, object]) -> str:
    return "[[flow]]\n" + "\n".join(f"{key} = {json.dumps(value)}" for key, value in keys.items())


def _without_flows(toml: str) -> str:
    """The scenario without its flows and programs."""
    kept, dropping = [], False
    for line in toml.splitlines():
        if line.startswith("["):
            dropping = line.startswith(("[[flow", "[flow", "[[program", "[program"))
        if not dropping:
            kept.append(line)
    return "\n".join(kept) + "\n\n"
