"""Several agents in one run, by the parallel API of PettingZoo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airpath.gym.requirements import needs
from airpath.gym.rewards import Reward, utility

if TYPE_CHECKING:
    from pettingzoo import ParallelEnv

    from airpath.congestion.policy import Vector
    from airpath.gym.episode import Given
    from airpath.scenario import Sets


def parallel_env(
    scenario: Given = "two-flows",
    flows: Sequence[str] | None = None,
    set: Sets = None,  # noqa: A002 - the same word as in airpath.run
    reward: Reward = utility,
    interval_ms: float | None = None,
) -> ParallelEnv[str, Vector, Vector]:
    """Environment of PettingZoo with an agent for each of ``flows``; every TCP flow if None.

    The other arguments, observation and action are those of ``ScenarioEnv``. All agents decide
    together, when the first interval ends. Until a flow starts its observation and reward are 0,
    or the nearest bound, and its actions have no effect. Raises ``ImportError`` without PettingZoo,
    and ``InputError`` as ``ScenarioEnv`` does.
    """
    needs("pettingzoo")
    from airpath.gym.agents import AgentsEnv

    return AgentsEnv(scenario, flows, set, reward, interval_ms)
