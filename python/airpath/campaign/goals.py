"""What a campaign's report judges by: the figures that matter, and by what factor they differ.

A factor compares two values of a varied key. The same seed draws the same randomness with both, so
each seed gives a ratio: the geometric mean over the combinations of the other keys. The interval is
over the seeds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from airpath.campaign.summaries import first_of_each, values
from airpath.errors import InputError

if TYPE_CHECKING:
    import polars as pl

    from airpath.campaign.results import Campaign

_DOUBLE = 2
"""From this factor on "3.5 times as much" is clearer than "250 % more"."""


class Factor(NamedTuple):
    """By what factor a figure differs between two values of a key."""

    mean: float
    low: float | None
    high: float | None
    """95 % interval over the seeds; None with one seed."""
    same: bool = False
    """Whether every run has exactly the same value as its counterpart."""

    @property
    def certain(self) -> bool:
        """Whether the interval leaves 1 out; one seed has no interval and cannot doubt."""
        if self.low is None or self.high is None:
            return True
        return (self.low - 1) * (self.high - 1) > 0


@dataclass(frozen=True)
class Goal:
    """A figure that is the better the higher or the lower it is, and words for it."""

    figure: str
    name: str
    higher: bool
    most: str
    """What the best has: ``goodput: most with bbr``."""
    best: str
    """What the best does: ``bbr carries the most``."""
    does: str
    """What its winner does to another goal: ``pings are then``."""
    much: tuple[str, str, str]
    """``3 times as much``, ``12 % more``, ``12 % less``."""
    joined: str
    """What stands before the other value's name, as in ``longer than with cubic``."""

    @property
    def is_delay(self) -> bool:
        """Whether it is a round trip."""
        return self.figure.partition(".")[2].startswith("rtt")

    def words(self, factor: Factor, than: str = "") -> str:
        """``3.5 times as much as cubic (3.4 to 3.6 times)``; ``than`` names the other value."""
        if factor.same:
            return f"the same as {self.joined}{than}" if than else "the same"
        much, more, less = self.much
        mean = factor.mean
        often, sign = mean >= _DOUBLE, 1 if mean >= 1 else -1
        unit, kind = ("times", much) if often else ("%", more if mean >= 1 else less)
        joint = f" {'as' if often else 'than'} {self.joined}{than}" if than else ""

        def shown(each: float, figures: int = 2) -> str:
            return rounded(each if often else 100 * sign * (each - 1), figures)

        if factor.low is None or factor.high is None:
            return f"{shown(mean)} {unit} {kind}{joint} (one seed: no interval)"
        ends = (factor.low, factor.high)[:: 1 if often or sign > 0 else -1]
        for figures in (2, 3, 4):
            low, high = (shown(end, figures) for end in ends)
            if low != high:
                doubt = "" if factor.certain else ": may be chance"
                ends_said = f"({low} to {high} {unit}{doubt})"
                return f"{shown(mean, figures)} {unit} {kind}{joint} {ends_said}"
        return f"{shown(mean)} {unit} {kind}{joint} (in every seed)"


GOODPUT = Goal(
    "flows.goodput_mbps", "goodput", True, "most", "carries the most", "it then carries",
    ("as much", "more", "less"), "",
)  # fmt: skip
_COMPLETION = Goal(
    "flows.completed_s", "completion", False, "soonest", "completes soonest",
    "the transfer is then", ("as long", "longer", "shorter"), "with ",
)  # fmt: skip
_PINGS = Goal(
    "pings.rtt_ms_p95", "pings (95th percentile)", False, "shortest", "has the shortest pings",
    "pings are then", ("as long", "longer", "shorter"), "with ",
)  # fmt: skip
_RTT = Goal(
    "flows.rtt_ms_p95", "round trips (95th percentile)", False, "shortest",
    "has the shortest round trips", "round trips are then", ("as long", "longer", "shorter"),
    "with ",
)  # fmt: skip
_FAIRNESS = Goal(
    "runs.jain_index_down", "Jain's index", True, "highest", "has the highest Jain's index",
    "Jain's index is then", ("as high", "higher", "lower"), "with ",
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """A goal's figure in every run: the first flow's where there are several."""

    goal: Goal
    found: pl.DataFrame
    """A row a run: the scenario and the varied keys as text, ``seed`` and ``value``, above 0."""
    left_out: int
    """Runs in which the figure is 0: a factor means nothing there."""


def outcomes(campaign: Campaign) -> list[Outcome]:
    """The goals of which the campaign has figures: a rate, a delay, and fairness if flows share."""
    rate, completion, pings, rtt, fairness = (
        _outcome(campaign, goal) for goal in (GOODPUT, _COMPLETION, _PINGS, _RTT, _FAIRNESS)
    )
    runs = 0 if rate is None else len(rate.found) + rate.left_out
    # A time that only some runs have is that of the runs that were fast enough.
    done = completion if completion is not None and len(completion.found) == runs else None
    delay = pings if pings is not None and len(pings.found) == runs else rtt or pings
    return [each for each in (rate, delay, done, fairness) if each is not None]


def _outcome(campaign: Campaign, goal: Goal) -> Outcome | None:
    import polars as pl

    try:
        found, _ = first_of_each(values(campaign, goal.figure))
    except InputError:
        return None
    found = found.filter(pl.col("value").is_finite()).select(
        *(pl.col(name).cast(pl.String) for name in campaign.cell_columns), "seed", "value"
    )
    above = found.filter(pl.col("value") > 0)
    return Outcome(goal, above, len(found) - len(above)) if len(above) else None


def factor(
    found: pl.DataFrame, axis: str, value: str, against: str, keys: Sequence[str]
) -> Factor | None:
    """By what factor ``value`` of a key differs from ``against``; None without a common run.

    ``keys`` are the other columns that vary; a seed that lacks some of their combinations would be
    another mean and does not count.
    """
    import polars as pl

    from airpath.analysis.intervals import interval

    both = paired(found, axis, value, against, keys)
    each = (
        both.group_by("seed")
        .agg(pl.col("log").mean(), pl.len().alias("cells"))
        .filter(pl.col("cells") == pl.col("cells").max())
        .sort("seed")
    )
    if each.is_empty():
        return None
    bounds = interval(each["log"].to_numpy())
    low, high = (None if one is None else math.exp(one) for one in (bounds.low, bounds.high))
    same = bool((both["value"] == both["base"]).all())
    return Factor(math.exp(bounds.mean), low, high, same)


def paired(
    found: pl.DataFrame, axis: str, value: str, against: str, keys: Sequence[str]
) -> pl.DataFrame:
    """Runs with one value of a key beside those with another: ``value``, ``base`` and ``log``."""
    import polars as pl

    base = found.filter(pl.col(axis) == against).select(*keys, "seed", base="value")
    other = found.filter(pl.col(axis) == value).select(*keys, "seed", "value")
    both = other.join(base, on=[*keys, "seed"], nulls_equal=True)
    return both.with_columns(log=(pl.col("value") / pl.col("base")).log())


def rounded(value: float, figures: int = 2) -> str:
    """Two significant digits, or more, never in exponent form: a few seeds do not give more."""
    if abs(value) < 10.0**-figures:
        return "0"
    return f"{float(f'{value:.{figures}g}'):.15g}"
