"""Learns congestion control for downloads in an LTE cell, and judges it on scenarios it never saw.

    pip install 'airpath[gym,rl]'
    python examples/learn.py --seconds 300 --out policy.npz

PPO of Stable-Baselines3 learns in `airpath/Scenario-v0`. The policy is then exported and runs in
`airpath.run`, without PyTorch, against fixed windows, CUBIC and BBR. All that decides about the
result is in this file: the scenarios, the reward, the score. What was tried before is in
docs/guides/learned-congestion-control.md.

Scenarios: a download of 10 s in a 20 MHz LTE cell, with a SINR from -2 to 25 dB and 5 to 40 ms
each way behind the cell, drawn uniformly. Training draws them from seed 1; the 50 held-out ones
have seeds from 2,000,000. The fixed window is the best of thirteen on 50 scenarios drawn from other
seeds, so it is chosen without the held-out set, as the policy is.

Reward: `airpath.gym.utility`, with each interval's own figures. Score, on the figures of a whole
run: ln(goodput in Mb/s) - ln(mean RTT / base RTT), where the base RTT is the smallest RTT of any
control in that scenario, so a control that never drains its queue gains nothing.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import Any

import numpy as np

import airpath
from airpath.congestion.policy import Policy

SCENARIO = """\
[run]
duration_s = 10

[[path.down]]
stage = "delay"
delay_ms = {delay_ms:.3f}

[[path.up]]
stage = "delay"
delay_ms = {delay_ms:.3f}

[radio]
preset = "lte-20"

[[radio.ue]]

[radio.ue.channel]
sinr_db = {sinr_db:.2f}

[[flow]]
kind = "bulk"
profile = "linux-6.18"
"""

TRAINING_SEED = 1
HELD_OUT = range(2_000_000, 2_000_050)
CHOOSING = range(2, 52)
"""Seeds on which the fixed window is chosen."""
WINDOWS = (5, 8, 12, 20, 32, 50, 80, 125, 200, 320, 500, 800, 1250)


def draw(random: np.random.Generator) -> str:
    """Scenario of an episode."""
    return SCENARIO.format(delay_ms=random.uniform(5, 40), sinr_db=random.uniform(-2, 25))


def learn(seconds: float, seed: int) -> tuple[Policy, int]:
    """Train for this time, imports included; return the policy and how many decisions it saw."""
    end = time.monotonic() + seconds
    import gymnasium
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    import airpath.gym

    torch.set_num_threads(1)

    class Clock(BaseCallback):
        def _on_step(self) -> bool:
            return time.monotonic() < end

    def environment() -> Any:
        return gymnasium.make(airpath.gym.ID, scenario=draw, disable_env_checker=True)

    environments = DummyVecEnv([environment] * 8)
    environments.seed(seed)
    normalised = VecNormalize(environments, gamma=0.99)
    model = PPO(
        "MlpPolicy",
        normalised,
        n_steps=512,
        batch_size=512,
        gamma=0.99,
        policy_kwargs={"net_arch": [32, 32], "log_std_init": -1.0},
        seed=seed,
        device="cpu",
    )
    model.learn(10**9, callback=Clock())
    return Policy.of_stable_baselines(model), model.num_timesteps


def figures(seed: int, settings: dict[str, Any], policy: Policy | None = None) -> dict[str, float]:
    """Goodput and RTT of a control in the scenario that a seed draws."""
    scenario = airpath.scenario.parse(
        draw(np.random.default_rng(seed)), f"drawn {seed}", sets=settings
    )
    congestion = None if policy is None else {"flow.0": policy}
    run = airpath.run(scenario, seed=seed, congestion=congestion)
    row = run.flows.row(0, named=True)
    return {key: row[key] for key in ("goodput_mbps", "rtt_ms_mean", "rtt_ms_min")}


def window(segments: int) -> dict[str, Any]:
    """Settings of a fixed window."""
    return {"flow.0.congestion": "fixed", "flow.0.fixed_window_segments": segments}


def scores(seeds: range, controls: dict[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """Score of each control in each scenario."""
    found: dict[str, list[float]] = {name: [] for name in controls}
    for seed in seeds:
        rows = {
            name: figures(seed, {}, control)
            if isinstance(control, Policy)
            else figures(seed, control)
            for name, control in controls.items()
        }
        base = min(row["rtt_ms_min"] for row in rows.values())
        for name, row in rows.items():
            goodput, delay = row["goodput_mbps"], row["rtt_ms_mean"] / base
            found[name].append(math.log(goodput) - math.log(delay))
    return {name: np.array(values) for name, values in found.items()}


def judge(policy: Policy) -> None:
    """Print the scores on the held-out set."""
    windows = {f"window of {segments}": window(segments) for segments in WINDOWS}
    chosen_on = scores(CHOOSING, windows)
    chosen = max(chosen_on, key=lambda name: chosen_on[name].mean())
    controls = {"policy": policy, **windows}
    controls |= {name: {"flow.0.congestion": name} for name in ("cubic", "bbr")}
    found = scores(HELD_OUT, controls)
    hindsight = max(windows, key=lambda name: found[name].mean())
    print(f"{len(HELD_OUT)} held-out scenarios, mean score (higher is better):")
    for name in dict.fromkeys(("policy", chosen, hindsight, "cubic", "bbr")):
        note = ", chosen on training scenarios" if name == chosen else ""
        note += ", best in hindsight" if name == hindsight else ""
        print(f"  {name}{note}: {found[name].mean():.3f}")
    for name in dict.fromkeys((chosen, hindsight, "cubic", "bbr")):
        gain = found["policy"] - found[name]
        half = 1.96 * gain.std(ddof=1) / math.sqrt(len(gain))
        print(
            f"  policy - {name}: {gain.mean():+.3f} ± {half:.3f} (95 %), better in "
            f"{(gain > 0).sum()} of {len(gain)}"
        )


def main() -> None:
    """Learn, export, judge."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--seconds", type=float, default=300, help="time to learn")
    parser.add_argument("--seed", type=int, default=TRAINING_SEED, help="seed of the training")
    parser.add_argument("--out", type=Path, default=Path("policy.npz"), help="file of the policy")
    parser.add_argument("--judge", action="store_true", help="judge the file, without learning")
    given = parser.parse_args()
    if given.judge:
        policy = Policy.load(given.out)
    else:
        began, cpu = time.monotonic(), time.process_time()
        policy, decisions = learn(given.seconds, given.seed)
        print(
            f"learned from {decisions} decisions in {time.monotonic() - began:.0f} s "
            f"({time.process_time() - cpu:.0f} s of processor time)"
        )
        policy.save(given.out)
    judge(policy)


if __name__ == "__main__":
    main()
