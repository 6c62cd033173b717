"""Gain and harm of settings: paired simulations, figure by figure.

The rules of findings hold (docs/adr/0031, docs/adr/0110): an effect is the logarithm of a ratio, a
gain counts from 10 % on, and throughput is not sold for less than ten times its price.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airpath.base.numbers import worker_count
from airpath.diagnose.blocks import FlowTable, Measured, figures
from airpath.drivers.simulate import in_threads
from airpath.runs import summary
from airpath.tune.busy import Rates, busy

if TYPE_CHECKING:
    from airpath.documents import VariantRow
    from airpath.runs.document import RunDocument
    from airpath.tune.prepared import Prepared
    from airpath.tune.settings import Direction

LEAST = 0.1
"""A smaller change is no gain (docs/adr/0031). It is the nearer end of the interval that counts:
with dozens of settings and several figures each, some smaller gains would be chance."""
HARM = 0.02
"""A smaller change is no harm (docs/adr/0031)."""
WORTH = 10.0
"""By how much a gain must exceed what a throughput loses, by ratio (docs/adr/0110)."""
FEW = 0.01
"""Nobody minds one retransmitted segment in a hundred (docs/adr/0031)."""
_HALF_MORE = 0.5
"""Retransmissions are a harm if there are half as many again (docs/adr/0031)."""
_MOST = 1e3
"""A larger ratio counts as this one, so that something instead of nothing has a value."""
THROUGHPUT = ("goodput_mbps", "completed_s", "answered_share")

Tick = Callable[[float], None]


@dataclass(frozen=True)
class Effect:
    """How a figure changes."""

    flow: str
    metric: str
    before: float
    after: float
    change: float
    """Relative, the mean over the pairs."""
    interval: tuple[float, float]
    """95 % interval of ``change``."""
    more_is_better: bool
    worth: float
    """Weight among the effects: a bulk flow that waits in its own queue harms only itself."""

    @property
    def improvement(self) -> float:
        """The logarithm of the ratio; above 0 for the better."""
        ratio = min(max(1 + self.change, 1 / _MOST), _MOST)
        return math.log(ratio) if self.more_is_better else -math.log(ratio)

    @property
    def is_sure(self) -> bool:
        """Whether the interval excludes 0."""
        low, high = self.interval
        return low * high > 0

    @property
    def is_gain(self) -> bool:
        """Whether it is better by enough, at the nearer end of the interval too."""
        counts = self.metric != "retransmitted_share" and self.improvement > 0
        return counts and self.is_sure and min(map(abs, self.interval)) >= LEAST

    @property
    def is_harm(self) -> bool:
        """Whether it is surely worse, and by enough."""
        least = _HALF_MORE if self.metric == "retransmitted_share" else HARM
        return self.is_sure and self.improvement < 0 and abs(self.change) >= least


@dataclass(frozen=True)
class Verdict:
    """What settings do to all figures."""

    effects: Sequence[Effect] = field(default_factory=tuple)

    @property
    def gains(self) -> list[Effect]:
        """What gets better, the most first."""
        gains = [one for one in self.effects if one.is_gain]
        return sorted(gains, key=lambda one: -one.worth * one.improvement)

    @property
    def harms(self) -> list[Effect]:
        """What gets worse, the most first."""
        return sorted((one for one in self.effects if one.is_harm), key=_price, reverse=True)

    @property
    def gain(self) -> float:
        """The largest weighted gain of each flow, in sum."""
        return _sum((one.flow, one.worth * one.improvement) for one in self.gains)

    @property
    def harm(self) -> float:
        """The largest weighted harm of each flow, in sum; throughput is worth ten times as much."""
        return _sum((one.flow, _price(one)) for one in self.harms)

    @property
    def lost(self) -> list[Effect]:
        """Throughputs that fall by more than a tenth, for which no gain is large enough."""
        return [one for one in self.harms if one.metric in THROUGHPUT and one.improvement < -LEAST]

    @property
    def is_good(self) -> bool:
        """Whether the settings are worth advising."""
        return self.gain > self.harm and not self.lost

    @property
    def net(self) -> float:
        """What the gain is worth after the harm; settings that are not good have none."""
        return self.gain - self.harm if self.is_good else -math.inf

    @property
    def is_trade(self) -> bool:
        """Whether a throughput pays for the gain."""
        return any(one.metric in THROUGHPUT for one in self.harms)


class Judge:
    """Simulates a scenario with settings, once for each seed."""

    def __init__(self, ready: Prepared, seeds: int, workers: int | None) -> None:
        self.ready, self.seeds, self.workers = ready, seeds, worker_count(workers)
        self._documents: dict[tuple[str, ...], list[RunDocument]] = {}

    def run(self, wanted: Iterable[Sequence[str]], progress: Tick = lambda _: None) -> None:
        """Simulate settings that were not simulated yet."""
        missing = [
            sets for sets in dict.fromkeys(map(tuple, wanted)) if sets not in self._documents
        ]
        jobs = [(sets, index) for sets in missing for index in range(self.seeds)]
        if not jobs:
            return
        lasts = self.ready.comparable.scenario.duration_s
        done = in_threads(self._one, jobs, self.workers, lasts, progress)
        for place, sets in enumerate(missing):
            self._documents[sets] = done[place * self.seeds : (place + 1) * self.seeds]

    def documents(self, sets: Sequence[str]) -> list[RunDocument]:
        """Return the summaries of settings, by seed."""
        self.run([sets])
        return self._documents[tuple(sets)]

    def verdict(self, sets: Sequence[str], base: Sequence[str] = ()) -> Verdict:
        """Compare settings with others, seed by seed."""
        self.run([base, sets])
        return compared(self.ready.compared, self.documents(base), self.documents(sets))

    def rates(self, sets: Sequence[str], direction: Direction) -> Rates | None:
        """Return the rates of the longest queue of a direction, with the first seed."""
        from airpath import _core

        scenario, _ = self.ready.seed_of(sets, 0)
        return busy(_core.simulate(scenario, scenario.seed), direction)

    def _one(self, job: tuple[tuple[str, ...], int], tick: Callable[[float], bool]) -> RunDocument:
        from airpath import _core

        sets, index = job
        scenario, _ = self.ready.seed_of(sets, index)
        result = _core.simulate(scenario, scenario.seed + index, tick)
        return summary.of_result(result, scenario, "", 0.0)


def _sum(worth: Iterable[tuple[str, float]]) -> float:
    most: dict[str, float] = {}
    for flow, one in worth:
        # Sums of a direction's flows are in their figures already.
        if flow not in ("down", "up"):
            most[flow] = max(one, most.get(flow, 0.0))
    return sum(most.values())


def _price(harm: Effect) -> float:
    return -harm.improvement * (WORTH if harm.metric in THROUGHPUT else harm.worth)


def compared(
    flows: Sequence[FlowTable],
    before: Sequence[RunDocument],
    after: Sequence[RunDocument],
) -> Verdict:
    """Compare runs pair by pair, simulated or emulated ones."""
    from airpath import _core

    measured = [[_measured(run, flows) for run in runs] for runs in (before, after)]
    kinds = {str(flow["id"]): str(flow["kind"]) for flow in flows}
    effects = [_effect(row, kinds) for row in _core.variant_rows(measured)]
    return Verdict([one for one in effects if one is not None])


def _measured(document: RunDocument, flows: Sequence[FlowTable]) -> list[Measured]:
    """Return the figures that are compared; of an incomplete transfer an estimate."""
    return [
        (flow, name, max(value, FEW) if name == "retransmitted_share" else value, True)
        for flow, name, value, _ in figures(document, flows)
    ]


def _effect(row: VariantRow, kinds: dict[str, str]) -> Effect | None:
    before, after = row["cells"]
    if before is None or after is None:
        return None
    mean = (before["mean"], after["mean"])
    if mean[0] is None or mean[1] is None:
        return None
    change = after["change"]
    if change is None:
        # It was zero at least once.
        change = (mean[1] / mean[0] if mean[0] else _MOST if mean[1] else 1.0) - 1.0
    low, high = after["change_ci95"] or (change, change)
    # A file's round trips, like a bulk flow's, are spent in its own queue.
    own = row["metric"] == "rtt_ms.p95" and kinds.get(row["flow"]) in ("bulk", "file")
    worth = 0.0 if row["metric"] == "retransmitted_share" else 0.5 if own else 1.0
    return Effect(
        row["flow"], row["metric"], mean[0], mean[1], change, (low, high),
        row["more_is_better"], worth,
    )  # fmt: skip
