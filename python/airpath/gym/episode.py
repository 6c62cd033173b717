"""An episode: a run of a scenario that pauses for its agents' decisions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from airpath import _core
from airpath import scenario as scenarios
from airpath.base.numbers import seeds_from
from airpath.congestion.policy import ACTION, OBSERVATION, cwnd_after, observe
from airpath.errors import InputError, InputTypeError
from airpath.gym.rewards import Reward, rewarded
from airpath.runs.results import Tabled
from airpath.runs.tables import result_table

if TYPE_CHECKING:
    import os

    import polars as pl

    from airpath.congestion.policy import Vector
    from airpath.documents import RunSummary

Given: TypeAlias = "str | os.PathLike[str] | _core.Scenario"
"""A scenario: a file, the name of a shipped one, its text (several lines), or a loaded one."""
Drawn: TypeAlias = "Given | Callable[[np.random.Generator], Given]"
"""A scenario, or a function that draws one for each episode."""
Outcome: TypeAlias = "tuple[Vector, float, bool, bool, dict[str, float]]"
"""Observation, reward, whether the flow ended, whether the run ended first, information."""

LOW = np.array([element.low for element in OBSERVATION], dtype=np.float32)
HIGH = np.array([element.high for element in OBSERVATION], dtype=np.float32)
NAMES = tuple(element.name for element in OBSERVATION)
ACTION_LOW = np.array([element.low for element in ACTION], dtype=np.float32)
ACTION_HIGH = np.array([element.high for element in ACTION], dtype=np.float32)


class Scenarios:
    """Where the scenarios of an environment come from."""

    def __init__(self, given: Drawn, sets: scenarios.Sets, interval_ms: float | None) -> None:
        if interval_ms is not None and not 0 < interval_ms < math.inf:
            raise InputError(f"interval_ms is {interval_ms}, which must be above 0")
        self.interval_ms = interval_ms
        self._draw = given if callable(given) else None
        self._sets = sets
        self._fixed = None if callable(given) else self._load(given)

    @property
    def fixed(self) -> _core.Scenario | None:
        """The scenario of every episode; None if each one draws its own."""
        return self._fixed

    def draw(self, random: np.random.Generator) -> _core.Scenario:
        """Scenario of the next episode."""
        return self._fixed if self._draw is None else self._load(self._draw(random))  # type: ignore[return-value]

    def _load(self, given: Given) -> _core.Scenario:
        if isinstance(given, _core.Scenario):
            if self._sets is not None:
                raise InputTypeError(
                    "set cannot be combined with a loaded scenario: pass it to airpath.load()"
                )
            return given
        if isinstance(given, str) and "\n" in given:
            return scenarios.parse(given, "scenario", None, self._sets)
        return scenarios.load(given, self._sets)


def places(scenario: _core.Scenario, keys: Sequence[str] | None) -> dict[str, int]:
    """Places of flows in a scenario, by key: ``flow.N`` or a flow's id; all TCP flows without keys.

    Raises ``InputError`` for a flow that does not exist, is not TCP, or is several.
    """
    found: dict[str, int] = {}
    flows = scenario.flows
    if keys is None:
        named = [flow["id"] for flow in flows if flow["congestion"] is not None]
        if not named:
            raise InputError("flow: the scenario has no TCP flow")
        keys = named
    for key in keys:
        at = [n for n, flow in enumerate(flows) if key in (flow["id"], f"flow.{flow['index']}")]
        if not at:
            known = ", ".join(dict.fromkeys(f"flow.{flow['index']}" for flow in flows))
            ids = ", ".join(flow["id"] for flow in flows)
            raise InputError(f"flow: there is no {key!r}; the flows are {known}, or by id {ids}")
        if len(at) > 1:
            ids = ", ".join(flows[n]["id"] for n in at)
            raise InputError(f"flow: {key} is {len(at)} flows; name one by its id: {ids}")
        if flows[at[0]]["congestion"] is None:
            raise InputError(f"flow: {key} is not TCP but {flows[at[0]]['kind']}")
        if at[0] in found.values():
            raise InputError(f"flow: {key} is named twice")
        found[key] = at[0]
    return found


def checked(action: object) -> float:
    """Number of an action. Raises ``InputError`` if it is outside the space."""
    name, low, high = ACTION[0]
    try:
        values = np.asarray(action, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (len(ACTION),) or not low <= values[0] <= high:
        raise InputError(
            f"action: {action!r} is outside the space: one number, {name}, from {low:g} to {high:g}"
        )
    return float(values[0])


class Episode:
    """A run of a scenario, and the agents that decide in it."""

    def __init__(
        self,
        scenario: _core.Scenario,
        seed: int,
        flows: dict[str, int],
        interval_ms: float | None,
    ) -> None:
        seeds_from(seed, 1)
        self.agents = {key: number for number, key in enumerate(flows)}
        self._run = _core.SteppedRun(scenario, seed, list(flows.values()), interval_ms)
        self._goes_on = self._run.advance()
        if not self._goes_on:
            raise InputError(
                f"flow: there is nothing to decide for {', '.join(flows)}: no interval ends "
                "before the end of the run"
            )

    @property
    def goes_on(self) -> bool:
        """Whether there is something to decide."""
        return self._goes_on

    def seen(self, agent: str) -> tuple[_core.Interval, Vector, dict[str, float]]:
        """What an agent has seen since this was last asked."""
        number = self.agents[agent]
        interval, cwnd = self._run.interval(number), self._run.cwnd_segments(number)
        info = {
            "time_s": self._run.now_ns / 1e9,
            "cwnd_segments": cwnd or 0.0,
            "delivered_mbps": interval.delivered_bps / 1e6,
            "srtt_ms": interval.srtt_ns / 1e6,
            "lost_segments": interval.lost_segments,
        }
        return interval, observe(interval, cwnd or 1.0), info

    def step(self, actions: dict[str, float]) -> None:
        """Apply actions, and go on until the next decision or the end."""
        for agent, action in actions.items():
            number = self.agents[agent]
            cwnd = self._run.cwnd_segments(number)
            if cwnd is not None:
                self._run.decide(number, cwnd_after(cwnd, action))
        self._goes_on = self._run.advance()

    def outcome(self, agent: str, reward: Reward) -> Outcome:
        """What a step gave to an agent."""
        interval, observation, info = self.seen(agent)
        ended = self._run.is_done(self.agents[agent])
        earned = rewarded(reward, interval)
        return observation, earned, ended, not (ended or self._goes_on), info

    def finish(self) -> Ended:
        """End the run, and return its figures and tables."""
        return Ended(self._run.finish())


class Ended(Tabled):
    """What an episode's run left behind: tables, as a run has them but for the column ``seed``."""

    def __init__(self, result: _core.Result) -> None:
        self._result = result

    @property
    def summary(self) -> RunSummary:
        """The figures of the run."""
        return self._result.summary

    def table(self, name: str) -> pl.DataFrame:
        """Return a table by name; raise ``InputError`` if there is none."""
        frame = result_table(self._result, name)
        if frame is None:
            known = ", ".join(self._result.table_names())
            raise InputError(f"no table '{name}'; available: {known}")
        return frame
