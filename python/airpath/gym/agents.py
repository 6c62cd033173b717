"""The environment that ``parallel_env`` returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from gymnasium.spaces import Box
from pettingzoo import ParallelEnv

from airpath.errors import InputError
from airpath.gym import rewards
from airpath.gym.environment import LARGEST_SEED
from airpath.gym.episode import (
    ACTION_HIGH,
    ACTION_LOW,
    HIGH,
    LOW,
    Ended,
    Episode,
    Given,
    Outcome,
    Scenarios,
    checked,
    places,
)
from airpath.gym.rewards import Reward

if TYPE_CHECKING:
    from airpath.congestion.policy import Vector
    from airpath.scenario import Sets


class AgentsEnv(ParallelEnv[str, "Vector", "Vector"]):  # type: ignore[misc]
    """An agent for each of several flows; see ``parallel_env``."""

    metadata = {  # noqa: RUF012 - as in PettingZoo
        "name": "airpath_scenario_v0",
        "render_modes": [],
    }

    def __init__(
        self,
        scenario: Given,
        flows: Sequence[str] | None,
        sets: Sets,
        reward: Reward,
        interval_ms: float | None,
    ) -> None:
        if callable(scenario):
            raise InputError(
                "scenario must be fixed, not a function: the agents are named after its flows"
            )
        self._scenarios = Scenarios(scenario, sets, interval_ms)
        self._random = np.random.default_rng()
        self._scenario = self._scenarios.draw(self._random)
        self._flows, self._reward = places(self._scenario, flows), rewards.checked(reward)
        self.possible_agents = list(self._flows)
        self.agents: list[str] = []
        self.render_mode = None
        self.observation_spaces = {
            agent: Box(LOW, HIGH, dtype=np.float32) for agent in self.possible_agents
        }
        self.action_spaces = {
            agent: Box(ACTION_LOW, ACTION_HIGH, dtype=np.float32) for agent in self.possible_agents
        }
        self._episode: Episode | None = None

    def observation_space(self, agent: str) -> Box:
        """Space of an agent's observations."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> Box:
        """Space of an agent's actions."""
        return self.action_spaces[agent]

    def reset(
        self,
        seed: int | None = None,
        options: dict[str, object] | None = None,  # noqa: ARG002 - of PettingZoo's interface
    ) -> tuple[dict[str, Vector], dict[str, dict[str, float]]]:
        """Begin an episode, up to its first decision; without a seed, with one that is drawn."""
        if seed is not None:
            self._random = np.random.default_rng(seed)
        chosen = int(self._random.integers(LARGEST_SEED)) if seed is None else seed
        interval_ms = self._scenarios.interval_ms
        self._episode = Episode(self._scenario, chosen, self._flows, interval_ms)
        self.agents = list(self.possible_agents)
        seen = {agent: self._episode.seen(agent) for agent in self.agents}
        observations = {agent: observation for agent, (_, observation, _) in seen.items()}
        return observations, {agent: {**info, "seed": chosen} for agent, (*_, info) in seen.items()}

    def step(
        self, actions: dict[str, Vector]
    ) -> tuple[
        dict[str, Vector],
        dict[str, float],
        dict[str, bool],
        dict[str, bool],
        dict[str, dict[str, float]],
    ]:
        """Apply the action of each agent, and run to the end of the next interval."""
        episode = self._begun()
        if unknown := sorted(actions.keys() - set(self.agents)):
            raise InputError(
                f"action: there is no agent {unknown[0]!r}; the agents are {', '.join(self.agents)}"
            )
        if not self.agents:
            raise InputError("the episode has ended: call reset()")
        episode.step({agent: checked(action) for agent, action in actions.items()})
        outcomes: dict[str, Outcome] = {
            agent: episode.outcome(agent, self._reward) for agent in self.agents
        }
        self.agents = [agent for agent, (_, _, *ended, _) in outcomes.items() if not any(ended)]
        return (
            {agent: observation for agent, (observation, *_) in outcomes.items()},
            {agent: reward for agent, (_, reward, *_) in outcomes.items()},
            {agent: ended for agent, (_, _, ended, *_) in outcomes.items()},
            {agent: cut for agent, (*_, cut, _) in outcomes.items()},
            {agent: info for agent, (*_, info) in outcomes.items()},
        )

    def result(self) -> Ended:
        """End the episode where it is; the figures and tables of its run."""
        episode, self._episode, self.agents = self._begun(), None, []
        return episode.finish()

    def close(self) -> None:
        """Forget the episode."""
        self._episode, self.agents = None, []

    def _begun(self) -> Episode:
        if self._episode is None:
            raise InputError("there is no episode: call reset()")
        return self._episode
