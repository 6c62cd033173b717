"""Causes of an emulated run: its flows are simulated over the same path; there causes are tried.

Where the simulation differs from what was recorded, nothing can be tried; the answer says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from airpath.analysis.statistics import mean_interval
from airpath.base.text import milliseconds, percent, plural, rate
from airpath.diagnose import stand_in
from airpath.diagnose.explain import Progress, check, explain_loaded, keep
from airpath.runs.summary import Entry, entries

if TYPE_CHECKING:
    from airpath import _core
    from airpath.base.choices import Explain
    from airpath.diagnose.stand_in import StandIns
    from airpath.documents import Breakdown, Explanation, Finding, Gain, RunSummary, Tried
    from airpath.runs.document import Figures
    from airpath.runs.results import Run

DIFFERENT = 0.2
"""A run whose simulated figures are further from the recorded ones is not the same run."""
_OF_BUFFERS = ("receive-window", "send-buffer")
"""Causes whose time the kernel counts (TCP_INFO)."""
_LEAST = 0.1
"""A smaller improvement does not make a cause."""
_JITTER_MS = 2.0
"""Two medians that differ by no more than this count as the same."""
_SEEDS = 3
_QUIETER = (
    "Emulate on an otherwise idle machine, as root and with real-time priority (`airpath "
    "doctor` says what is missing), or at a lower rate. No key of the scenario does that: the host "
    "is not part of it."
)
_NS = 1e9


def add(
    run: Run,
    scenario: _core.Scenario,
    budget: Explain,
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
    failed = _failed(run)
    if failed is not None:
        stands = stand_in.StandIns(because=failed)
    elif own_flows:
        stands = stand_in.own(scenario)
    else:
        stands = stand_in.of_programs(run, scenario)
    simulated = _Simulated(run, stands)
    closest, because = simulated.closest()
    answer: Explanation = {
        "findings": [], "tried": [], "breakdowns": simulated.breakdowns, "seeds": 0, "runs": 0,
        "events": 0,
    }  # fmt: skip
    if closest is not None:
        known = simulated.figures
        found = explain_loaded(closest, run.seeds[0], 1, budget, workers, known, progress)
        answer = stands.renamed(found)
        _ask_the_kernel(run, answer, simulated.summaries)
    if not run.summary["emulation"].get("valid", True):
        finding, tried = late_host(run, simulated)
        answer["tried"].append(tried)
        gain = tried["gain"]
        if closest is None and (gain is None or _ratio(gain) > 1 + _LEAST):
            # Packets in time make another run, and a better one.
            answer["findings"], because = [finding], None
    answer["runs"] += simulated.runs
    answer["events"] += simulated.events
    if not own_flows:
        for finding in answer["findings"]:
            _without_keys(finding)
    keep(run, answer, budget, because)


def _ask_the_kernel(run: Run, answer: Explanation, simulated: Sequence[RunSummary]) -> None:
    """Promise nothing for larger buffers where the kernel counted other limits."""
    kept: list[Finding] = []
    for finding in answer["findings"]:
        flow = finding["subject"]
        counted = _limited(run.summary, flow)
        if finding["cause"] not in _OF_BUFFERS or counted is None:
            kept.append(finding)
            continue
        told = (
            f"The kernel counted {percent(counted[0])} of the time of {flow} as limited by the "
            f"receive window and {percent(counted[1])} by the send buffer"
        )
        shares = [sum(one) for each in simulated if (one := _limited(each, flow))]
        share = _mean(shares)
        if abs(share - sum(counted)) <= DIFFERENT:
            finding["evidence"] = f"{told}. In a simulation of the run: {finding['evidence']}"
            kept.append(finding)
        else:
            answer["tried"].append({
                "cause": finding["cause"], "subject": flow, "set": finding["set"] or [],
                "score": None, "gain": None,
                "outcome": f"{told}, but in the simulation both limits together take "
                f"{percent(share)} of the time: no gain is predicted.",
            })  # fmt: skip
    answer["findings"] = kept


def _limited(figures: Figures, flow: str) -> tuple[float, float] | None:
    """The shares of its time in which each buffer held a flow back, where that is known."""
    for one in figures["flows"]:
        limited = one.get("limited_s")
        if limited and one["id"] == flow:
            window, buffer = limited["receive_window"], limited["send_buffer"]
            rest = limited["cwnd"] + limited["pacing"] + limited["application"]
            every = max(1e-9, window + buffer + rest)
            return window / every, buffer / every
    return None


def _without_keys(finding: Finding) -> None:
    """Keys of flows are those of the flows that stand in, not of the user's scenario."""
    if any(one.startswith("flow.") for one in finding["set"] or []):
        finding["set"] = None
        because = "the scenario did not open this connection"
        finding["advice"] = f"{finding['advice']} No key of the scenario does that: {because}."


class _Simulated:
    """What may stand for the run, simulated: with its seed, and where that differs with more."""

    def __init__(self, run: Run, stands: StandIns) -> None:
        self._run = run
        self._stands = stands
        self.runs = 0
        self.events = 0
        self.breakdowns: list[Breakdown] = []
        """Of the first, also where nothing can be tried."""
        self.figures: list[_core.RunFigures] = []
        """Of the closest stand-in, with the run's seed."""
        self.summaries: list[RunSummary] = []
        """By seed, of the closest stand-in, or else of the first."""

    def closest(self) -> tuple[_core.Scenario | None, str | None]:
        """The first that does as was recorded; or why none does.

        How much chance there is in a run shows in its seeds, of which the recorded one is one.
        """
        because, first = self._stands.because, None
        for scenario in self._stands.scenarios:
            summaries: list[RunSummary] = []
            figures: list[_core.RunFigures] = []
            for seeds in (range(1), range(1, _SEEDS)):
                self._simulate(scenario, seeds, summaries, figures)
                difference = _difference(self._run, summaries)
                if difference is None:
                    self.figures, self.summaries = figures[:1], summaries
                    return scenario, None
            because = because or difference
            first = first or summaries
        self.summaries = first or []
        return None, because

    def _simulate(
        self,
        scenario: _core.Scenario,
        seeds: Iterable[int],
        summaries: list[RunSummary],
        figures: list[_core.RunFigures],
    ) -> None:
        from airpath import _core

        for index in seeds:
            accounted = not self.breakdowns and index == 0
            seed = self._run.seeds[0] + index
            simulated = _core.simulate(scenario, seed, None, accounted=accounted)
            self.runs += 1
            self.events += simulated.summary["events"]
            named = self._stands.renamed(simulated.summary)
            if accounted:
                self.breakdowns = named.get("breakdowns", [])
            summaries.append(named)
            figures.append(simulated.figures)


def late_host(run: Run, simulated: _Simulated) -> tuple[Finding, Tried]:
    """What a host in time would have given, where that can be simulated."""
    emulation = run.summary["emulation"]
    said = [f"This run does not count: {emulation['invalid_because']}."]
    gain = _simulated_gain(run.summary, simulated.summaries)
    if gain:
        before, after = rate(gain["before"] or 0.0), rate(gain["after"] or 0.0)
        said.append(
            f"With every packet on time, the goodput of {gain['flow']} would be {after} instead of "
            f"{before} (simulated{_seeds(simulated.summaries)})."
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
    return finding, tried


def _seeds(simulated: Sequence[RunSummary]) -> str:
    """How many seeds were simulated, or that they are one run."""
    alike = all(
        (one["flows"], one["pings"]) == (simulated[0]["flows"], simulated[0]["pings"])
        for one in simulated
    )
    if alike and len(simulated) > 1:
        return "; the scenario is deterministic, so one run is enough"
    return f", {plural(len(simulated), 'seed')}"


def _simulated_gain(recorded: Figures, simulated: Sequence[RunSummary]) -> Gain | None:
    """The goodput that changes most, in proportion, from the recorded run to simulated ones."""
    gains: list[Gain] = []
    for flow in recorded["flows"]:
        values = [value for value in _of(simulated, "flows", flow["id"], _goodput) if value]
        if values and len(values) == len(simulated):
            after = mean_interval(values)
            gains.append({
                "metric": "goodput_mbps", "flow": flow["id"],
                "before": flow.get("goodput_mbps") or 0.0, "after": after.mean,
                "ci95": after.bounds or [after.mean] * 2, "seeds": len(values),
            })  # fmt: skip
    return max(gains, key=_ratio, default=None)


def _ratio(gain: Gain) -> float:
    """How many times as large a goodput became."""
    return (gain["after"] or 0.0) / max(gain["before"] or 0.0, 1e-3)


def _failed(run: Run) -> str | None:
    """Why the recorded flows are not what the scenario asks for."""
    failed = run.summary["emulation"].get("failed_flows") or []
    return f"the flow {failed[0]['id']} failed: {failed[0]['because']}" if failed else None


def _of(
    simulated: Sequence[RunSummary],
    section: str,
    name: str,
    figure: Callable[[Entry], float | None],
) -> list[float]:
    """A figure of a flow, or of a ping, by seed."""
    same = (one for run in simulated for one in entries(run, section) if one["id"] == name)
    return [value for value in map(figure, same) if value is not None]


def _mean(values: Sequence[float]) -> float:
    total = math.fsum(values)
    return total / max(len(values), 1)


def _goodput(entry: Entry) -> float | None:
    value: float | None = entry.get("goodput_mbps")
    return value or 0.0


def _median(entry: Entry) -> float | None:
    value: float | None = (entry.get("rtt_ms") or {}).get("p50")
    return value


def _answered(entry: Entry) -> float | None:
    """Share of a ping's requests."""
    sent, lost = float(entry["sent"]), float(entry["lost"])
    return 1 - lost / sent if sent else None


def _difference(run: Run, simulated: Sequence[RunSummary]) -> str | None:
    """Why simulated runs, one a seed, do not stand for the recorded one, or None."""
    return _rates_differ(run, simulated) or _delays_differ(run.summary, simulated)


def _rates_differ(run: Run, simulated: Sequence[RunSummary]) -> str | None:
    recorded = {str(flow["id"]): flow for flow in run.summary["flows"]}
    flows = [
        flow for flow in simulated[0]["flows"]
        if flow["id"] in recorded and recorded[flow["id"]]["kind"] != "ping"
    ]  # fmt: skip
    sharing: dict[str, list[str]] = {}
    for flow in flows:
        if flow["kind"] == "bulk":
            sharing.setdefault(flow["direction"], []).append(flow["id"])
    sharing = {direction: names for direction, names in sharing.items() if len(names) > 1}
    for flow in flows:
        name = flow["id"]
        if flow["kind"] == "bulk" and flow["direction"] in sharing:
            continue
        was = _goodput(recorded[name]) or 0.0
        now = _mean(_of(simulated, "flows", name, _goodput))
        allowed = DIFFERENT
        if flow["kind"] == "file":
            # A program asks before it is answered: a round trip more.
            allowed += _rounds_share(recorded[name], flow)
        if abs(now - was) > allowed * max(was, 1e-3):
            return _differs(name, now, was)
    # How flows share is mostly chance: what they have together, and how evenly.
    for direction, names in sharing.items():
        was = math.fsum(_goodput(recorded[name]) or 0.0 for name in names)
        by_flow = [_of(simulated, "flows", name, _goodput) for name in names]
        by_seed = list(zip(*by_flow, strict=True))
        now = _mean([math.fsum(values) for values in by_seed])
        if abs(now - was) > DIFFERENT * max(was, 1e-3):
            return _differs(f"all flows {direction}", now, was)
        even = _jain([_goodput(recorded[name]) or 0.0 for name in names])
        simulated_even = _mean([_jain(values) for values in by_seed])
        if abs(simulated_even - even) > DIFFERENT * even:
            return (
                f"Jain's index of the flows {direction} is {simulated_even:.2f} in the simulation "
                f"and {even:.2f} in the recording, which differs by more than {percent(DIFFERENT)}"
            )
    return None


def _differs(what: str, now: float, was: float) -> str:
    return (
        f"the goodput of {what} is {rate(now)} in the simulation and {rate(was)} in the recording, "
        f"which differs by more than {percent(DIFFERENT)}"
    )


def _rounds_share(recorded: Entry, flow: Entry) -> float:
    """A round trip, as a share of a file's time."""
    rtt_ms = (recorded.get("rtt_ms") or flow.get("rtt_ms") or {}).get("min") or 0.0
    lasted_s = 8e-6 * flow["bytes_delivered"] / max(_goodput(flow) or 0.0, 1e-6)
    share: float = rtt_ms / 1e3 / max(lasted_s, 1e-6)
    return min(share, 1.0)


def _jain(rates: Sequence[float]) -> float:
    squares = math.fsum(one * one for one in rates)
    total = math.fsum(rates)
    return total * total / (len(rates) * squares) if squares else 1.0


def _delays_differ(recorded: Figures, simulated: Sequence[RunSummary]) -> str | None:
    sent = {one["id"]: _answered(one) for one in recorded["pings"]}
    for one in simulated[0]["pings"]:
        was = sent.get(one["id"])
        now = _mean(_of(simulated, "pings", one["id"], _answered))
        if was is not None and abs(now - was) > DIFFERENT:
            return (
                f"{percent(now)} of {one['id']} are answered in the simulation and {percent(was)} "
                "in the recording"
            )
    for section in ("flows", "pings"):
        known = {one["id"]: _median(one) for one in entries(recorded, section)}
        for entry in entries(simulated[0], section):
            was = known.get(entry["id"])
            values = _of(simulated, section, entry["id"], _median)
            if not was or not values:
                continue
            now = _mean(values)
            allowed = DIFFERENT * was + _JITTER_MS
            if section == "pings":
                allowed += _chance_of_median(entry["id"], simulated)
            if abs(now - was) > allowed:
                return (
                    f"the median RTT of {entry['id']} is {milliseconds(now)} in the simulation and "
                    f"{milliseconds(was)} in the recording, which differs by more than "
                    f"{milliseconds(allowed)}"
                )
    return None


def _chance_of_median(name: str, simulated: Sequence[RunSummary]) -> float:
    """By how much the medians of a few pings differ by chance alone, in ms.

    Two standard errors of the difference from one run's median to the mean of the simulated ones;
    a median's is sqrt(pi / 2) times a mean's (of normal samples).
    """
    variances = [
        (one["rtt_ms"].get("mdev") or 0.0) ** 2 / max(one["sent"] - one["lost"], 1)
        for summary in simulated for one in summary["pings"] if one["id"] == name and one["rtt_ms"]
    ]  # fmt: skip
    if not variances:
        return 0.0
    return 2 * math.sqrt(math.pi / 2 * _mean(variances) * (1 + 1 / len(variances)))
