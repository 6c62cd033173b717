"""Environments of Gymnasium and PettingZoo: agents that learn congestion control.

Importing this module registers ``airpath/Scenario-v0``:

>>> import gymnasium, airpath.gym
>>> environment = gymnasium.make("airpath/Scenario-v0", scenario="wire", flow="flow.0")
>>> observation, info = environment.reset(seed=1)
>>> observation, reward, terminated, truncated, info = environment.step([0.5])
>>> round(info["cwnd_segments"], 1)
14.1

An episode is a run of a scenario. A step is an interval of a flow; see
``airpath.congestion.policy`` for observation and action. ``parallel_env`` has an agent for each of
several flows. A policy that has learned becomes a ``Policy`` for ``airpath.run``.
"""

from __future__ import annotations

from airpath.gym.requirements import needs

needs("gymnasium")

import gymnasium  # noqa: E402 - after the check

from airpath.gym.environment import ScenarioEnv  # noqa: E402
from airpath.gym.parallel import parallel_env  # noqa: E402
from airpath.gym.rewards import Reward, utility  # noqa: E402

__all__ = ["ID", "Reward", "ScenarioEnv", "parallel_env", "utility"]

ID = "airpath/Scenario-v0"
"""Name in Gymnasium's registry."""

if ID not in gymnasium.registry:
    gymnasium.register(ID, "airpath.gym.environment:ScenarioEnv")
