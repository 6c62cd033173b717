"""What differs between the two sides, and whether that is within the limits.

A difference is emulated over simulated, less one, of the means over the seeds that count.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from airpath.base.text import digits
from airpath.runs.summary import entries
from airpath.runs.tables import NS_PER_S

if TYPE_CHECKING:
    from airpath.documents import Parity, Quantiles
    from airpath.runs.results import Run
    from airpath.twin.runs import Counted, Twin

GOODPUT = 0.05
RTT_MEDIAN = 0.10
RTT_P95 = 0.20
EXIT_BASE_RTTS = 1.0
EXIT_CWND = 0.20

EXIT = "slow-start exit"
"""The figure whose difference is counted in base RTTs: the shortest one of the simulated run."""

AGREES, DIFFERS = "agrees", "differs"
NOT_COMPARABLE, NO_LIMIT, INVALID = "not comparable", "no limit", "invalid"

Value = float | None


@dataclass(frozen=True)
class Figure:
    """One figure of one flow, on both sides, seed by seed."""

    flow: str
    name: str
    unit: str
    simulated: tuple[Value, ...]
    emulated: tuple[Value, ...]
    difference: Value
    """Relative; of the exit's time in base RTTs."""
    limit: Value
    verdict: str
    note: str = ""

    def as_dict(self) -> dict[str, object]:
        """Entry of ``twin --json``."""
        return {
            "flow": self.flow,
            "figure": self.name,
            "unit": self.unit,
            "simulated": mean(self.simulated),
            "emulated": mean(self.emulated),
            "values": {"simulated": list(self.simulated), "emulated": list(self.emulated)},
            "difference": self.difference,
            "limit": self.limit,
            "verdict": self.verdict,
            "note": self.note,
        }

    def sides(self, none: str) -> tuple[str, str]:
        """Return the mean of each side with its unit; ``none``: what to say without one."""
        simulated, emulated = (
            none if value is None else f"{digits(value)} {self.unit}".strip()
            for value in (mean(self.simulated), mean(self.emulated))
        )
        return simulated, emulated

    def difference_text(self) -> str:
        """``+1.2 %``, ``-0.3 base RTT``; empty without one."""
        if self.difference is None:
            return ""
        return distance_text(self.name, self.difference, "+")


def distance_text(figure: str, distance: float, sign: str = "") -> str:
    """``1.2 %``, or ``0.3 base RTT`` for the end of slow start; ``sign`` as in Python's formats."""
    if figure == EXIT:
        return f"{distance:{sign}.1f} base RTT"
    return f"{100 * distance:{sign}.1f} %"


def compare(twin: Twin) -> list[Figure]:
    """Every figure of every flow."""
    pairs = twin.valid
    if not pairs:
        return []
    first = pairs[0].simulated.summary
    figures = []
    for flow in first["flows"]:
        name = str(flow["id"])
        if flow["kind"] == "udp":
            figures += _datagrams(pairs, name)
        else:
            reason = twin.comparable.reasons.get(name)
            figures += [_unless(reason, figure) for figure in _transfer(pairs, name)]
    for ping in first["pings"]:
        figures += _round_trips(pairs, str(ping["id"]), "pings")
    return figures


def overall(twin: Twin, figures: Sequence[Figure]) -> str:
    """One verdict: a broken parity or one figure out of its limit makes it ``differs``."""
    if not twin.valid:
        return INVALID
    broken = any(not parity(pair.emulated)["same"] for pair in twin.valid)
    return DIFFERS if broken or any(figure.verdict == DIFFERS for figure in figures) else AGREES


def parity(emulated: Run) -> Parity:
    """What the replay of a run's packets on the virtual clock came to."""
    found = emulated.summary["emulation"]["parity"]
    if found is None:
        raise ValueError(f"run {emulated.id} was not replayed")
    return found


def document(twin: Twin, figures: Sequence[Figure]) -> dict[str, object]:
    """Document of ``twin --json``."""
    comparable = twin.comparable
    return {
        "twin": {
            "id": twin.id,
            "scenario": comparable.scenario.name,
            "scenario_sha256": comparable.scenario.sha256,
            "kernel": comparable.kernel,
            "profile": comparable.profile,
            "seeds": [pair.seed for pair in twin.pairs],
            "valid_seeds": [pair.seed for pair in twin.valid],
            "invalid": {str(pair.seed): pair.invalid for pair in twin.pairs if pair.invalid},
            "parity": {str(pair.seed): parity(pair.emulated) for pair in twin.valid},
            "verdict": overall(twin, figures),
        },
        "figures": [figure.as_dict() for figure in figures],
    }


def mean(values: Sequence[Value]) -> Value:
    """Mean of those there are."""
    present = [value for value in values if value is not None]
    return statistics.fmean(present) if present else None


def _transfer(pairs: Sequence[Counted], flow: str) -> list[Figure]:
    """Figures of a TCP flow."""
    figures = [
        _figure(pairs, flow, "goodput", "Mb/s", _of("flows", flow, "goodput_mbps"), GOODPUT),
        *_round_trips(pairs, flow, "flows"),
        *_slow_start(pairs, flow),
        _figure(
            pairs, flow, "retransmissions", "", _of("flows", flow, "retransmitted_segments"), None
        ),
    ]
    gaps = [(_ack_gaps(pair.simulated, flow), _kernel_gaps(pair.emulated, flow)) for pair in pairs]
    for quantile in ("p50", "p95"):
        values = [tuple(side and side[quantile] for side in pair) for pair in gaps]
        simulated, emulated = zip(*values, strict=True)
        name = f"ACK spacing {quantile}"
        figures.append(_judged(flow, name, "ms", simulated, emulated, None))
    errors = [window_error(pair.simulated, pair.emulated, flow) for pair in pairs]
    error = mean(errors)
    if error is not None:
        note = f"mean distance over time: {error:.0%} of the mean window"
        windows = [_windows(pair, flow) for pair in pairs]
        simulated, emulated = zip(*windows, strict=True)
        figures.append(_judged(flow, "cwnd", "segments", simulated, emulated, None, note))
    return [figure for figure in figures if figure.difference is not None or figure.note]


def _datagrams(pairs: Sequence[Counted], flow: str) -> list[Figure]:
    return [
        _figure(pairs, flow, "goodput", "Mb/s", _of("flows", flow, "goodput_mbps"), GOODPUT),
        _figure(pairs, flow, "delay p50", "ms", _of("flows", flow, "delay_ms", "p50"), RTT_MEDIAN),
        _figure(pairs, flow, "delay p95", "ms", _of("flows", flow, "delay_ms", "p95"), RTT_P95),
        _figure(pairs, flow, "lost", "", _of("flows", flow, "packets_lost"), None),
    ]


def _round_trips(pairs: Sequence[Counted], flow: str, section: str) -> list[Figure]:
    return [
        _figure(pairs, flow, "RTT p50", "ms", _of(section, flow, "rtt_ms", "p50"), RTT_MEDIAN),
        _figure(pairs, flow, "RTT p95", "ms", _of(section, flow, "rtt_ms", "p95"), RTT_P95),
    ]


def _slow_start(pairs: Sequence[Counted], flow: str) -> list[Figure]:
    """Time and window of the first exit: both sides leave slow start, or neither."""
    exits = [
        tuple(_of("flows", flow, "slow_start_exit")(run) for run in (pair.simulated, pair.emulated))
        for pair in pairs
    ]
    if not any(side for pair in exits for side in pair):
        return []
    times = [tuple(side and side["time_s"] for side in pair) for pair in exits]
    simulated, emulated = zip(*times, strict=True)
    reasons = [{side["reason"] for side in pair if side} for pair in exits]
    note = ""
    if any(len(found) > 1 for found in reasons):
        ours, kernels = ([pair[side] and pair[side]["reason"] for pair in exits] for side in (0, 1))
        note = f"different reasons: {_words(ours)} simulated, {_words(kernels)} emulated"
    if any(None in pair for pair in exits):
        text = "one side did not leave slow start"
        return [Figure(flow, EXIT, "s", simulated, emulated, None, 1.0, DIFFERS, text)]
    base_rtts = [pair[0]["min_rtt_ms"] / 1e3 for pair in exits if pair[0] is not None]
    apart = statistics.fmean(
        (theirs - ours) / base_rtt if base_rtt else 0.0
        for base_rtt, (ours, theirs) in zip(base_rtts, times, strict=True)
    )
    verdict = AGREES if abs(apart) <= EXIT_BASE_RTTS else DIFFERS
    at = Figure(flow, EXIT, "s", simulated, emulated, apart, EXIT_BASE_RTTS, verdict, note)
    windows = [tuple(side["cwnd_segments"] for side in pair) for pair in exits]
    simulated, emulated = zip(*windows, strict=True)
    return [at, _judged(flow, "exit cwnd", "segments", simulated, emulated, EXIT_CWND)]


def _words(reasons: Sequence[str | None]) -> str:
    return ", ".join(sorted({str(reason).replace("_", " ") for reason in reasons}))


def window_error(simulated: Run, emulated: Run, flow: str) -> Value:
    """Mean distance of the two windows over time, over the mean of the simulated one."""
    import numpy as np

    ours, theirs = (_window(run, flow) for run in (simulated, emulated))
    if ours is None or theirs is None:
        return None
    there = np.interp(ours[0], *theirs)
    mean = ours[1].mean()
    return float(np.abs(there - ours[1]).mean() / mean) if mean else None


def _windows(pair: Counted, flow: str) -> tuple[Value, Value]:
    """Mean windows of both sides."""
    ours, theirs = (_window(run, flow) for run in (pair.simulated, pair.emulated))
    return (
        None if ours is None else float(ours[1].mean()),
        None if theirs is None else float(theirs[1].mean()),
    )


def _window(run: Run, flow: str) -> Any:
    import polars as pl

    samples = run.samples.filter((pl.col("flow") == flow) & pl.col("cwnd_segments").is_not_null())
    if samples.height < 2:
        return None
    return samples["time_ns"].to_numpy() / NS_PER_S, samples["cwnd_segments"].to_numpy()


def _ack_gaps(run: Run, flow: str) -> dict[str, float] | None:
    import numpy as np
    import polars as pl

    times = run.table("acks").filter(pl.col("flow") == flow)["time_ns"].to_numpy()
    if times.size < 2:
        return None
    p50, p95 = np.quantile(np.diff(times) / 1e6, [0.5, 0.95], method="inverted_cdf")
    return {"p50": float(p50), "p95": float(p95)}


def _kernel_gaps(run: Run, flow: str) -> Quantiles | None:
    return (run.summary["emulation"]["ack_gaps"] or {}).get(flow)


def _figure(
    pairs: Sequence[Counted],
    flow: str,
    name: str,
    unit: str,
    take: Callable[[Run], Any],
    limit: Value,
) -> Figure:
    simulated = [take(pair.simulated) for pair in pairs]
    emulated = [take(pair.emulated) for pair in pairs]
    return _judged(flow, name, unit, simulated, emulated, limit)


def _judged(
    flow: str,
    name: str,
    unit: str,
    simulated: Sequence[Value],
    emulated: Sequence[Value],
    limit: Value,
    note: str = "",
) -> Figure:
    ours, theirs = mean(simulated), mean(emulated)
    difference: Value = None
    if ours is not None and theirs is not None:
        difference = theirs / ours - 1 if ours else (0.0 if not theirs else None)
    if limit is None:
        verdict = NO_LIMIT
    elif difference is not None:
        verdict = AGREES if abs(difference) <= limit else DIFFERS
    elif ours is None and theirs is None:
        verdict, note = NOT_COMPARABLE, "neither side has it"
    else:
        verdict, note = DIFFERS, note or "only one side has it"
    return Figure(
        flow, name, unit, tuple(simulated), tuple(emulated), difference, limit, verdict, note
    )


def _unless(reason: str | None, figure: Figure) -> Figure:
    """A figure without a verdict, if there is a reason."""
    if reason is None or figure.verdict == NO_LIMIT:
        return figure
    return replace(figure, verdict=NOT_COMPARABLE, note=reason)


def _of(section: str, identifier: str, *path: str) -> Callable[[Run], Any]:
    """Take a value out of a run's summary."""

    def take(run: Run) -> Any:
        place: Any = next(
            (one for one in entries(run.summary, section) if one["id"] == identifier), None
        )
        for key in path:
            place = None if place is None else place.get(key)
        return place

    return take


def row(figure: Figure) -> tuple[str, ...]:
    """A line of a table: flow, figure, both sides with their unit, difference, limit, verdict."""
    limit = ""
    if figure.limit is not None:
        exact = figure.name == EXIT
        limit = f"{figure.limit:g} base RTT" if exact else f"{figure.limit:.0%}".replace("%", " %")
    return (
        figure.flow,
        figure.name,
        *figure.sides(none=""),
        figure.difference_text(),
        limit,
        figure.verdict,
    )
