"""The environment ``airpath/Scenario-v0``: an agent decides cwnd of one flow of a scenario."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from airpath.errors import InputError
from airpath.gym import rewards
from airpath.gym.episode import (
    ACTION_HIGH,
    ACTION_LOW,
    HIGH,
    LOW,
    Drawn,
    Ended,
    Episode,
    Outcome,
    Scenarios,
    checked,
    places,
)
from airpath.gym.rewards import Reward, utility

if TYPE_CHECKING:
    from airpath import _core
    from airpath.congestion.policy import Vector
    from airpath.scenario import Sets

LARGEST_SEED = 2**31


class ScenarioEnv(gymnasium.Env["Vector", "Vector"]):
    """An agent decides cwnd of one flow, once per interval.

    ``scenario``: a file, the name of a shipped scenario, a text of several lines, a loaded
    scenario, or a function that draws one of these from a generator of numpy for each episode.
    ``flow``: ``flow.N`` or a flow's id; the first TCP flow if it is None. ``reward``: a function of
    the interval. ``interval_ms``: shortest time between two decisions; None: a smoothed RTT.

    Observation and action are described in ``airpath.congestion.policy``. An episode is truncated
    at the end of the run; it terminates if the flow has delivered everything by then.
    ``reset(seed=N)`` runs the scenario with seed N; the same seed and actions give the same bytes.

    Raises ``InputError`` for a scenario with errors, a flow that does not exist or is not TCP, an
    action outside the space, and a reward that is not a finite number.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 - as in Gymnasium

    def __init__(
        self,
        scenario: Drawn = "lte-20",
        flow: str | None = None,
        set: Sets = None,  # noqa: A002 - the same word as in airpath.run
        reward: Reward = utility,
        interval_ms: float | None = None,
        render_mode: None = None,
    ) -> None:
        self.observation_space = Box(LOW, HIGH, dtype=np.float32)
        self.action_space = Box(ACTION_LOW, ACTION_HIGH, dtype=np.float32)
        self.render_mode = render_mode
        self._scenarios = Scenarios(scenario, set, interval_ms)
        self._flow, self._reward = flow, rewards.checked(reward)
        if self._scenarios.fixed is not None:
            self._place(self._scenarios.fixed)
        self._episode: Episode | None = None

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, object] | None = None,  # noqa: ARG002 - of Gymnasium's interface
    ) -> tuple[Vector, dict[str, float]]:
        """Begin an episode, up to its first decision; without a seed, with one that is drawn."""
        super().reset(seed=seed)
        chosen = int(self.np_random.integers(LARGEST_SEED)) if seed is None else seed
        scenario = self._scenarios.draw(self.np_random)
        flows = self._place(scenario)
        self._episode = Episode(scenario, chosen, flows, self._scenarios.interval_ms)
        self._agent = next(iter(flows))
        _, observation, info = self._episode.seen(self._agent)
        return observation, {**info, "seed": chosen}

    def step(self, action: Vector) -> Outcome:
        """Change cwnd, and run to the end of the next interval."""
        episode = self._begun()
        if not episode.goes_on:
            raise InputError("the episode has ended: call reset()")
        episode.step({self._agent: checked(action)})
        return episode.outcome(self._agent, self._reward)

    def result(self) -> Ended:
        """End the episode where it is; the figures and tables of its run."""
        episode, self._episode = self._begun(), None
        return episode.finish()

    def close(self) -> None:
        """Forget the episode."""
        self._episode = None

    def _begun(self) -> Episode:
        if self._episode is None:
            raise InputError("there is no episode: call reset()")
        return self._episode

    def _place(self, scenario: _core.Scenario) -> dict[str, int]:
        if self._flow is not None:
            return places(scenario, [self._flow])
        return dict(list(places(scenario, None).items())[:1])
