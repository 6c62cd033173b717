"""A campaign's answer in sentences: which setting is best for what, and which keys did nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airpath.base.text import plural
from airpath.campaign import drawn
from airpath.campaign.goals import Factor, Outcome, factor, outcomes, paired
from airpath.campaign.same import Same, same_figures

if TYPE_CHECKING:
    from airpath.campaign.results import Campaign

MOST_VALUES = 12
"""A key with more values is not compared one by one: a chart has as many colours."""
_MOST_GROUPS = 8
_FEW_NAMES = 4


@dataclass(frozen=True)
class Verdict:
    """What a campaign shows."""

    compared: str
    """The key whose values are compared; empty if none was varied."""
    against: str
    """The value with which the others are compared."""
    apart: str
    """The key that matters most for the comparison, or the scenario; empty without another key."""
    best: list[tuple[str, str]]
    """What is best: a value of ``apart``, or nothing, and a sentence."""
    keys: list[tuple[str, str]]
    """What the varied keys do: a key and a sentence."""
    basis: str
    """What the sentences are of."""
    averaged: list[str]
    """Other keys that vary, over whose values factors are geometric means."""
    outcomes: list[Outcome]
    """The figures that decide."""


def verdict(campaign: Campaign, where: Mapping[str, str] | None = None) -> Verdict | None:
    """Judge a campaign; None where nothing varies but seeds, or few points are drawn.

    ``where`` keeps the runs with these values of varied keys, of all combinations or of a list.
    """
    if not campaign.axes:
        return None
    if campaign.document["sampling"] not in ("grid", "list"):
        answer = drawn.sentences(campaign)
        if answer is None:
            return None
        keys, found = answer
        return Verdict("", "", "", [], keys, drawn.basis(found), [], found)
    found = [replace(one, found=one.found.filter(**(where or {}))) for one in outcomes(campaign)]
    found = [one for one in found if not one.found.is_empty()]
    return _Judge(campaign, found, where or {}).verdict() if found else None


class _Judge:
    def __init__(self, campaign: Campaign, found: list[Outcome], where: Mapping[str, str]) -> None:
        self.campaign = campaign
        self.where = where
        self.outcomes = found
        self.values = {
            name: found[0].found[name].unique(maintain_order=True).to_list()
            for name in campaign.cell_columns
        }
        self.compared = self._compared()
        self.against = self._against()
        # In a list the other keys change with the compared one.
        listed = campaign.document["sampling"] == "list"
        fixed = ["scenario"] if listed else campaign.cell_columns
        self.varied = [name for name in fixed if len(self.values[name]) > 1]
        self.others = [name for name in self.varied if name != self.compared]

    def verdict(self) -> Verdict:
        apart = self._apart() if self.compared else ""
        return Verdict(
            self.compared, self.against, apart,
            self._best(apart) if self.compared else [], self._keys(), self._basis(apart),
            [name for name in self.others if name != apart], self.outcomes,
        )  # fmt: skip

    def _compared(self) -> str:
        """The key that the campaign names, or the first that has few values."""
        axes = self.campaign.axes
        named = self.campaign.document.get("compare")
        wanted = [name for name in axes if name == named] or axes
        few = (name for name in wanted if 1 < len(self.values[name]) <= MOST_VALUES)
        return next(few, "")

    def _against(self) -> str:
        values = self.values.get(self.compared, [""])
        named = self.campaign.document.get("against")
        return named if named in values and isinstance(named, str) else str(values[0])

    def _apart(self) -> str:
        """The scenario, or the key by which the comparison differs most: its share of variance."""
        if "scenario" in self.others or not self.others:
            return "scenario" if self.others else ""
        import polars as pl

        between = dict.fromkeys(self.others, 0.0)
        for outcome in self.outcomes:
            for value in self.values[self.compared]:
                both = paired(outcome.found, self.compared, value, self.against, self.others)
                for name in self.others:
                    means = both.group_by(name).agg(pl.col("log").mean())["log"]
                    between[name] += float(means.to_numpy().var()) if len(means) else 0.0
        return max(between, key=lambda name: between[name])

    def _best(self, apart: str) -> list[tuple[str, str]]:
        import polars as pl

        if not apart:
            return [("", self._group(self.outcomes, self.others))]
        said = []
        groups = self.values[apart]
        for value in groups[:_MOST_GROUPS]:
            some = [replace(one, found=one.found.filter(pl.col(apart) == value))
                    for one in self.outcomes]  # fmt: skip
            keys = [name for name in self.others if name != apart]
            said.append((str(value), self._group([o for o in some if len(o.found)], keys)))
        if more := len(groups) - _MOST_GROUPS:
            told = f"The charts have {plural(more, 'more value')} of {apart}."
            said += [("", told)] if more > 0 else []
        return said

    def _group(self, some: Sequence[Outcome], keys: Sequence[str]) -> str:
        """One sentence a goal; what is best for one says what it costs of the others."""
        made = [(one, self._factors(one, self.compared, self.against, keys)) for one in some]
        found = [(one, factors) for one, factors in made if len(factors) > 1]
        if not found:
            return "There is nothing to compare."
        if all(each.same for _, factors in found for each in factors.values()):
            return f"{self.compared} makes no difference: the figures are the same."
        said: list[str] = []
        before: dict[str, int] = {}
        for outcome, factors in found:
            winner = _best_of(outcome, factors)
            goal, words = outcome.goal, self._by_how_much(outcome, factors, winner)
            if all(each.same for each in factors.values()):
                said.append(f"{goal.name[:1].upper()}{goal.name[1:]}: the same with each value")
            elif winner in before:
                said[before[winner]] += f"; it also {goal.best}, {words}"
            elif winner != self.against and not factors[winner].certain:
                said.append(f"No difference is beyond chance: {winner} {goal.best}, {words}")
            else:
                before[winner] = len(said)
                told = f"{self._alike(factors, winner)} {goal.best}, {words}"
                said.append(told + self._costs(found[:2], outcome, winner))
        return " ".join(f"{text}." for text in said)

    def _alike(self, factors: dict[str, Factor], winner: str) -> str:
        """The winner, and others that have the same figures."""
        if winner != self.against:
            return winner
        return "/".join(value for value, each in factors.items() if each.same)

    def _by_how_much(self, outcome: Outcome, factors: dict[str, Factor], winner: str) -> str:
        """The winner against what it is compared with; if that won, what comes next."""
        if winner != self.against:
            return outcome.goal.words(factors[winner], self.against)
        others = {value: each for value, each in factors.items() if not each.same}
        if not others:
            return ""
        second = _best_of(outcome, others)
        return f"the next being {second}: {outcome.goal.words(others[second])}"

    def _costs(
        self,
        found: Sequence[tuple[Outcome, dict[str, Factor]]],
        won: Outcome,
        winner: str,
    ) -> str:
        """What the winner of one goal does to the others, where it is not the best for them."""
        said = [
            f"{one.goal.does} {one.goal.words(factors[winner], self.against)}"
            for one, factors in found
            if one is not won and winner in factors and winner != self.against
            and _best_of(one, factors) != winner
        ]  # fmt: skip
        return f"; {' and '.join(said)}" if said else ""

    def _factors(
        self, outcome: Outcome, axis: str, against: str, keys: Sequence[str]
    ) -> dict[str, Factor]:
        one = Factor(1.0, 1.0, 1.0, same=True)
        made = {
            value: factor(outcome.found, axis, value, against, keys)
            for value in self.values[axis]
            if value != against
        }
        found = {value: each for value, each in made.items() if each is not None}
        there = against in outcome.found[axis]
        return {**({against: one} if there else {}), **found}

    def _keys(self) -> list[tuple[str, str]]:
        """What each key does, the compared one first; a key of a list is the compared one."""
        names = [self.compared] if self.compared else []
        names += [name for name in self.others if name != "scenario"]
        said = []
        for name in names:
            keys = [other for other in self.varied if other != name]
            same = same_figures(self.campaign, name, keys, self.where)
            if same.same and same.same == same.combinations:
                said.append((name, f"did nothing: every figure is the same{_because(same)}."))
                continue
            text = "" if name == self.compared else self._effect(name, keys)
            if same.same:
                text += (
                    f" In {same.same} of {plural(same.combinations, 'combination')} of the other "
                    f"keys{_named(same)} it changes no figure at all{_because(same)}."
                )
            if text:
                said.append((name, text.strip()))
        return said

    def _effect(self, axis: str, keys: Sequence[str]) -> str:
        """Which value of a key is best and worst for each goal, over all else."""
        said, unclear = [], []
        for outcome in self.outcomes:
            goal = outcome.goal
            # With some values a figure may be missing, as fairness is with one flow.
            first = str(outcome.found[axis].unique(maintain_order=True)[0])
            factors = self._factors(outcome, axis, first, keys)
            if len(factors) < 2:
                continue
            if all(each.same for each in factors.values()):
                said.append(f"{goal.name}: the same with each value")
                continue
            best, worst = _best_of(outcome, factors), _best_of(outcome, factors, worst=True)
            between = factor(outcome.found, axis, worst, best, keys)
            if between is None:
                continue
            if between.certain:
                words = goal.words(between)
                said.append(f"{goal.name}: {goal.most} with {best}, {words} with {worst}")
            else:
                unclear.append(goal.name)
        if unclear:
            said.append(f"no difference beyond chance in {' and '.join(unclear)}")
        return f"{'; '.join(said)}." if said else ""

    def _basis(self, apart: str) -> str:
        """How many seeds, what is averaged over, and what an interval is."""
        seeds = self.outcomes[0].found["seed"].n_unique()
        said = []
        if self.compared:
            said.append(f"Each value of `{self.compared}` is compared with {self.against}.")
        if seeds > 1:
            said.append(
                f"In brackets: the 95 % confidence interval over {seeds} seeds. The values share "
                "the randomness of each seed."
            )
        if averaged := [name for name in self.others if name != apart]:
            said.append(f"Factors are geometric means over {' and '.join(averaged)}.")
        if left := sum(one.left_out for one in self.outcomes):
            said.append(f"{plural(left, 'figure')} of 0 cannot be in a factor and are left out.")
        return " ".join(said)


def _best_of(outcome: Outcome, factors: dict[str, Factor], *, worst: bool = False) -> str:
    pick = max if outcome.goal.higher != worst else min
    return pick(factors, key=lambda value: factors[value].mean)


def _because(same: Same) -> str:
    return f" ({', and '.join(same.why)})" if same.why else ""


def _named(same: Same) -> str:
    return f" ({'; '.join(same.names)})" if 0 < len(same.names) <= _FEW_NAMES else ""
