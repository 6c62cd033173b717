"""Causes of an emulated run: its flows are simulated over the same path; there causes are tried.

The flows of COMMAND are replaced by flows of the same kind, start, size and congestion control.
Where the simulation differs from what was recorded, nothing can be tried, and that is said.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from airpath.analysis.statistics import mean_interval
from airpath.base.text import milliseconds, percent, rate
from airpath.diagnose.explain import Progress, check, explain_loaded, keep
from airpath.errors import InputError

if TYPE_CHECKING:
    from airpath import _core
    from airpath.runs.document import Explanation, Finding, FlowFigures, Gain, Tried
    from airpath.runs.results import Run

DIFFERENT = 0.2
"""A flow whose simulated goodput is further from the recorded one is not the same flow."""
_LONGEST_S = 300.0
_JITTER_MS = 2.0
"""Two medians that are no further apart are the same."""
_LEAST_SHARE = 0.01
"""Of the bytes that all flows carried."""
_FULL = 0.85
"""A window of which this much is under way holds its flow back."""
_SEGMENT_BYTES = 1448
"""Payload of a full segment, with timestamps."""
_SEEDS = 3
_QUIETER = (
    "Emulate on a machine with nothing else to do, as root and with real-time priority "
    "(`airpath doctor` says what is missing), or a lower rate. There are no settings for that: the "
    "host is not in the scenario."
)
_CONTROLS = ("reno", "cubic", "bbr", "bbr3")
_NS = 1e9


def add(
    run: Run,
    scenario: _core.Scenario,
    budget: str,
    *,
    own_flows: bool,
    workers: int | None = None,
    progress: Progress | None = None,
) -> None:
    """Explain an emulated run in its summary, also where it is stored.

    ``own_flows``: the flows are the scenario's own. ``explained["because"]`` says why nothing could
    be tried, or is null.
    """
    check(budget)
    if budget == "off":
        return
    names: dict[str, str] = {}
    stand_ins: list[_core.Scenario] = []
    because = _failed(run)
    if because is None:
        stand_ins, because = _own(scenario) if own_flows else _stand_in(run, scenario, names)
    answer: Explanation = {
        "findings": [], "tried": [], "breakdowns": [], "seeds": 0, "runs": 0, "events": 0,
    }  # fmt: skip
    if not run.summary["emulation"].get("valid", True):
        answer, because = late_host(run, stand_ins[:1], names), None
    elif stand_ins:
        stand_in, known, because = _closest(run, stand_ins, names, answer)
        if stand_in is not None:
            tried = explain_loaded(stand_in, run.seeds[0], 1, budget, workers, [known], progress)
            found = cast("Explanation", _renamed(tried, names))
            found["runs"] += answer["runs"]
            found["events"] += answer["events"]
            answer = found
    if not own_flows:
        for finding in answer["findings"]:
            _without_keys(finding)
    keep(run, answer, budget, because)


def _without_keys(finding: Finding) -> None:
    """Keys of flows are those of the flows that stand in, not of the user's scenario."""
    if any(one.startswith("flow.") for one in finding["set"] or []):
        finding["set"] = None
        because = "the flow is COMMAND's and not the scenario's"
        finding["advice"] = f"{finding['advice']} There are no settings for that: {because}."


def _closest(
    run: Run, stand_ins: list[_core.Scenario], names: dict[str, str], answer: Explanation
) -> tuple[_core.Scenario | None, Any, str | None]:
    """The first that does as was recorded, with the figures of its run; or why none does."""
    from airpath import _core

    first: str | None = None
    for stand_in in stand_ins:
        simulated = _core.simulate(stand_in, run.seeds[0], None, accounted=True)
        answer["runs"] += 1
        answer["events"] += simulated.summary["events"]
        named = _renamed(simulated.summary, names)
        # Of the first, also where nothing can be tried.
        answer["breakdowns"] = answer["breakdowns"] or named.get("breakdowns", [])
        because = _difference(run.summary, named)
        if because is None:
            return stand_in, simulated.figures, None
        first = first or because
    return None, None, first


def late_host(run: Run, stand_ins: list[_core.Scenario], names: dict[str, str]) -> Explanation:
    """What is known of a run whose packets were too late to count: the host was the cause.

    What a host in time would have given is simulated, where the flows can be.
    """
    from airpath import _core

    emulation = run.summary["emulation"]
    said = [f"This run does not count: {emulation['invalid_because']}."]
    gain = None
    for stand_in in stand_ins:
        seeds = [run.seeds[0] + index for index in range(_SEEDS)]
        summaries = [
            _renamed(_core.simulate(stand_in, seed, None).summary, names) for seed in seeds
        ]
        gain = _simulated_gain(run.summary, summaries)
    if gain:
        before, after = rate(gain["before"]), rate(gain["after"])
        said.append(
            f"With packets in time, the goodput of {gain['flow']} is {after} instead of {before} "
            f"(simulated, {_SEEDS} seeds)."
        )
    evidence = " ".join(said)
    finding: Finding = {
        "cause": "emulation-host", "subject": "emulation", "confidence": 1.0,
        "evidence": evidence, "advice": _QUIETER, "set": None, "gain": None, "costs": [],
    }  # fmt: skip
    tried: Tried = {
        "cause": "emulation-host", "subject": "emulation", "set": [],
        "outcome": evidence, "score": None, "gain": gain,
    }  # fmt: skip
    runs = _SEEDS if gain else 0
    return {
        "findings": [finding], "tried": [tried], "breakdowns": [],
        "seeds": runs, "runs": runs, "events": 0,
    }  # fmt: skip


def _simulated_gain(recorded: Mapping[str, Any], simulated: list[dict[str, Any]]) -> Gain | None:
    """The goodput that changes most, in proportion, from the recorded run to simulated ones."""
    gains: list[Gain] = []
    for flow in recorded["flows"]:
        values = [
            one["goodput_mbps"]
            for summary in simulated
            for one in summary["flows"]
            if one["id"] == flow["id"] and one.get("goodput_mbps")
        ]
        if len(values) == len(simulated):
            after = mean_interval(values)
            gains.append({
                "metric": "goodput_mbps", "flow": flow["id"],
                "before": flow.get("goodput_mbps") or 0.0, "after": after.mean,
                "ci95": after.bounds or [after.mean] * 2, "seeds": len(values),
            })  # fmt: skip
    return max(gains, key=lambda gain: gain["after"] / max(gain["before"], 1e-3), default=None)


def _failed(run: Run) -> str | None:
    """Why the recorded flows are not what the scenario asks for."""
    failed = run.summary["emulation"].get("failed_flows") or []
    return f"the flow {failed[0]['id']} failed: {failed[0]['because']}" if failed else None


def _profile() -> str:
    """The profile of the running kernel, or of the newest one before it."""
    from airpath import _core
    from airpath.twin.comparable import nearest_profile

    return nearest_profile(platform.release(), _core.profiles())[0]


def _own(scenario: _core.Scenario) -> tuple[list[_core.Scenario], str | None]:
    """The scenario with the kernel's TCP in its flows, then as it is.

    A kernel lets the last write exceed a small send buffer, which its profile leaves out: there the
    scenario's own profile may be nearer.
    """
    from airpath import scenario as scenarios

    text, name, directory, sets = scenario.given
    tcp = [flow["index"] for flow in scenario.flows if flow["profile"] is not None]
    kernel = [f'flow.{index}.profile="{_profile()}"' for index in tcp]
    try:
        return [scenarios.parse(text, name, directory, [*sets, *kernel]), scenario], None
    except InputError:
        # Of keys that this profile does not allow together.
        return [scenario], None


def _renamed(document: Mapping[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """The document with the recorded flows' ids, which no scenario may have."""
    text = json.dumps(document)
    for name, recorded in names.items():
        text = text.replace(name, json.dumps(recorded)[1:-1])
    renamed: dict[str, Any] = json.loads(text)
    return renamed


def _stand_in(
    run: Run, scenario: _core.Scenario, names: dict[str, str]
) -> tuple[list[_core.Scenario], str | None]:
    """The scenario with the recorded flows instead of its own, or why there is none.

    ``names`` gets the recorded id of each flow by its id in the scenario.
    """
    from airpath import scenario as scenarios

    rows = {str(row["flow"]): row for row in run.flows.to_dicts()}
    carried = [
        flow
        for flow in run.summary["flows"]
        if flow["kind"] in ("bulk", "file", "udp") and flow.get("bytes_delivered")
    ]
    total = sum(flow["bytes_delivered"] for flow in carried)
    flows = [flow for flow in carried if flow["bytes_delivered"] >= _LEAST_SHARE * total]
    ends = [rows[flow["id"]]["end_ns"] or 0 for flow in flows if flow["id"] in rows]
    end_s = max(ends, default=0) / _NS
    if not flows:
        return [], "no flow was recorded that a simulated one could stand for"
    if end_s > _LONGEST_S:
        return [], f"the recorded flows last for more than {_LONGEST_S:.0f} s"
    blocks = []
    for flow in flows:
        if flow["id"] in rows:
            # Of one width: none is the beginning of another.
            name = f"recorded-{len(names):04}"
            names[name] = str(flow["id"])
            blocks.append(_block(name, flow, rows[flow["id"]], _window(run, str(flow["id"]))))
    text = _without_flows(scenario.resolved_toml) + "\n".join(blocks)
    sets = [f"run.duration_s={max(end_s, 0.1):.3f}"]
    try:
        return [scenarios.parse(text, scenario.name, scenario.given[2], sets)], None
    except InputError as error:
        first = str(error).splitlines()[0]
        return [], f"the recorded flows cannot be simulated: {first}"


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


def _block(name: str, flow: FlowFigures, row: dict[str, Any], window: int | None) -> str:
    """A ``[[flow]]`` for a recorded one; ``window`` bounds its receiver's, bytes."""
    start_s = (row["start_ns"] or 0) / _NS
    lasted_s = max((row["end_ns"] or row["start_ns"]) - row["start_ns"], 1) / _NS
    udp = flow["kind"] == "udp"
    lines = {
        "id": name,
        "kind": "udp" if udp else "bulk",
        "direction": flow["direction"],
        "start_s": round(start_s, 6),
        "duration_s": round(lasted_s, 6),
    }
    if udp:
        sent, lost = flow.get("packets_sent") or 1, flow.get("packets_lost") or 0
        share = max(1 - lost / sent, 0.01)
        lines["rate_mbps"] = round(8e-6 * flow["bytes_delivered"] / share / lasted_s, 6)
    else:
        lines["profile"] = _profile()
        if flow.get("congestion") in _CONTROLS:
            lines["congestion"] = flow["congestion"]
        if window is not None:
            lines["receive_buffer_bytes"] = window
            lines["buffer.initial_receive_bytes"] = 0
    if flow.get("ue"):
        lines["ue"] = flow["ue"]
    return "[[flow]]\n" + "\n".join(f"{key} = {json.dumps(value)}" for key, value in lines.items())


def _without_flows(toml: str) -> str:
    """The scenario without its flows and programs."""
    kept, dropping = [], False
    for line in toml.splitlines():
        if line.startswith("["):
            dropping = line.startswith(("[[flow", "[flow", "[[program", "[program"))
        if not dropping:
            kept.append(line)
    return "\n".join(kept) + "\n\n"


def _difference(recorded: Mapping[str, Any], simulated: Mapping[str, Any]) -> str | None:
    """Why the simulated run does not stand for the recorded one, or None."""
    by_id = {flow["id"]: flow for flow in recorded["flows"]}
    for flow in simulated["flows"]:
        known = by_id.get(flow["id"])
        if known is None or known["kind"] == "ping":
            continue
        was, now = known.get("goodput_mbps") or 0.0, flow.get("goodput_mbps") or 0.0
        if abs(now - was) > DIFFERENT * max(was, 1e-3):
            return (
                f"{flow['id']} is simulated with {rate(now)} and was recorded with {rate(was)}, "
                f"which differs by more than {percent(DIFFERENT)}"
            )
    for section in ("flows", "pings"):
        known_rtt = {one["id"]: _median(one) for one in recorded[section]}
        for one in simulated[section]:
            rtt, known = _median(one), known_rtt.get(one["id"])
            if rtt and known and abs(rtt - known) > DIFFERENT * known + _JITTER_MS:
                return (
                    f"the median RTT of {one['id']} is simulated as {milliseconds(rtt)} and was "
                    f"recorded as {milliseconds(known)}, which differs by more than "
                    f"{percent(DIFFERENT)}"
                )
    return None


def _median(entry: dict[str, Any]) -> float | None:
    return (entry.get("rtt_ms") or {}).get("p50")
