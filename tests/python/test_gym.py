"""Environments: the checks of Gymnasium and PettingZoo, the same bytes per seed, and errors."""

from __future__ import annotations

import math
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import airpath
from airpath.congestion import Interval
from airpath.congestion.policy import ACTION, OBSERVATION, Policy, observe
from airpath.errors import InputError

gymnasium = pytest.importorskip("gymnasium")
pytest.importorskip("pettingzoo")

from gymnasium.utils.env_checker import check_env  # noqa: E402 - after the check for it
from pettingzoo.test import parallel_api_test  # noqa: E402

import airpath.gym as environments  # noqa: E402

if TYPE_CHECKING:
    from airpath.congestion.policy import Vector

SHORT = {"run.duration_s": 2}
CELL = {"run.duration_s": 2, "flow.1.enabled": False}
TRANSFER = """
[[path.down]]
stage = "link"
rate_mbps = 10
queue_packets = 50

[[path.up]]
stage = "delay"
delay_ms = 20

[[flow]]
kind = "file"
size_bytes = 400_000

[[flow]]
kind = "ping"
"""
DRAWN = TRANSFER.replace("rate_mbps = 10", "rate_mbps = {rate}")


def make(scenario: Any = "wire", **options: Any) -> Any:
    return gymnasium.make(environments.ID, scenario=scenario, **options)


def drawn(random: np.random.Generator) -> str:
    return DRAWN.format(rate=random.integers(2, 20))


def network(seed: int) -> Policy:
    """A policy that has learned nothing, but acts."""
    random = np.random.default_rng(seed)
    sizes = [len(OBSERVATION), 6, len(ACTION)]
    layers = [
        (random.normal(size=(outputs, inputs)) / 3, random.normal(size=outputs) / 3)
        for inputs, outputs in pairwise(sizes)
    ]
    return Policy(layers, "relu", random.normal(size=sizes[0]), np.full(sizes[0], 2.0))


def episode(environment: Any, policy: Policy, seed: int | None = 1) -> list[Any]:
    """Everything that an episode shows."""
    observation, info = environment.reset(seed=seed)
    shown = [observation.tobytes(), info]
    ended = False
    while not ended:
        observation, reward, *ends, info = environment.step([policy.act(observation)])
        shown += [observation.tobytes(), reward, ends, info]
        ended = any(ends)
    return shown


@pytest.mark.parametrize(
    ("scenario", "options"),
    [("wire", {"set": SHORT}), ("lte-20", {"flow": "upload", "set": SHORT}), (drawn, {})],
)
def test_gymnasium_s_checker_accepts_it(scenario: Any, options: dict[str, Any]) -> None:
    check_env(make(scenario, **options).unwrapped)


@pytest.mark.parametrize("interval_ms", [None, 200.0])
def test_pettingzoo_s_test_accepts_it(interval_ms: float | None) -> None:
    agents = environments.parallel_env("two-flows", set=SHORT, interval_ms=interval_ms)
    parallel_api_test(agents, num_cycles=100)


@pytest.mark.parametrize(("scenario", "sets"), [("wire", SHORT), ("lte-20", CELL)])
def test_an_agent_and_the_policy_in_a_run_give_the_same_tables(
    scenario: str, sets: dict[str, Any]
) -> None:
    """What was learned in an environment is what runs, byte for byte."""
    policy = network(7)
    environment = make(scenario, set=sets)
    episode(environment, policy, seed=5)
    result = environment.unwrapped.result()
    run = airpath.run(scenario, set=sets, seed=5, congestion={"flow.0": policy})
    for name in ("samples", "events", "links"):
        stepped = getattr(result, name)
        assert stepped.height > 0
        assert stepped.equals(getattr(run, name).drop("seed", strict=False))
    assert result.flows["flow"].to_list() == run.flows["flow"].to_list()
    assert result.summary["flows"][0]["id"] == run.summary["flows"][0]["id"]
    with pytest.raises(InputError, match=r"no table 'acks'; available: .*flows"):
        _ = result.acks


@pytest.mark.parametrize("scenario", ["lte-20", drawn])
def test_a_seed_gives_the_same_bytes(scenario: Any) -> None:
    options = {"set": SHORT} if isinstance(scenario, str) else {}
    policy = network(3)
    first, again = make(scenario, **options), make(scenario, **options)
    known = episode(first, policy)
    assert episode(first, policy) == known
    assert episode(again, policy) == known
    assert episode(again, policy, seed=2) != known
    # Seeds that are drawn follow from the one that was given.
    after = []
    for environment in (first, again):
        environment.reset(seed=1)
        after.append(episode(environment, policy, seed=None))
    assert after[0] == after[1] != known


def test_agents_give_the_same_bytes_and_others_where_one_acts_differently() -> None:
    def play(actions: dict[str, float]) -> list[Any]:
        agents = environments.parallel_env("two-flows", set=SHORT)
        shown: list[Any] = [agents.reset(seed=4)[1]]
        while agents.agents:
            given = {agent: np.full(1, actions[agent]) for agent in agents.agents}
            observations, *rest = agents.step(given)
            shown += [{agent: seen.tobytes() for agent, seen in observations.items()}, rest]
        return shown

    first, second = environments.parallel_env("two-flows").possible_agents
    known = play({first: 0.1, second: 0.0})
    assert play({first: 0.1, second: 0.0}) == known
    assert play({first: 0.0, second: 0.1}) != known


def test_environments_in_a_vector_are_those_alone() -> None:
    envs = gymnasium.make_vec(
        environments.ID,
        num_envs=2,
        vectorization_mode="sync",
        scenario="wire",
        set=SHORT,
    )
    observations, infos = envs.reset(seed=10)
    assert infos["seed"].tolist() == [10, 11]
    actions = np.array([[0.5], [-0.5]], dtype=np.float32)
    observations, rewards, *_ = envs.step(actions)
    for number, action in enumerate(actions):
        alone = make(set=SHORT)
        alone.reset(seed=10 + number)
        observation, reward, *_ = alone.step(action)
        assert observation.tobytes() == observations[number].tobytes()
        assert reward == rewards[number]


def test_a_transfer_terminates_and_a_run_truncates() -> None:
    def end(scenario: Any, **options: Any) -> list[bool]:
        environment = make(scenario, **options)
        environment.reset(seed=1)
        ends = [False, False]
        while not any(ends):
            _, _, *ends, _ = environment.step([0.0])
        return ends

    assert end(TRANSFER, set={"run.duration_s": 5}) == [True, False]
    assert end(TRANSFER, set={"run.duration_s": 0.3}) == [False, True]
    assert end("wire", set=SHORT) == [False, True]


def test_cwnd_follows_the_action_and_the_observation_the_flow() -> None:
    environment = make(set=SHORT)
    observation, info = environment.reset(seed=1)
    names = [element.name for element in OBSERVATION]
    before = info["cwnd_segments"]
    assert before == 10
    observation, _, _, _, info = environment.step(np.array([1.0], dtype=np.float32))
    shown: dict[str, float] = dict(zip(names, observation.tolist(), strict=True))
    assert info["cwnd_segments"] == 20
    assert shown["log2_cwnd_segments"] == pytest.approx(math.log2(20))
    assert 2 ** shown["log2_delivered_mbps"] == pytest.approx(info["delivered_mbps"], rel=1e-5)
    # A wire of 40 ms there and back, and segments of 1.2 ms.
    assert 40 < 2 ** shown["log2_rtt_ms"] < 45
    assert shown["lost_fraction"] == 0


def test_a_reward_of_one_s_own_is_of_the_interval() -> None:
    seen: list[Interval] = []

    def delivered(interval: Interval) -> float:
        seen.append(interval)
        return float(interval.delivered_segments)

    environment = make(set=SHORT, reward=delivered)
    environment.reset(seed=1)
    reward = environment.step([0.0])[1]
    assert reward == seen[0].delivered_segments > 0
    wrong: Any = "delivered"
    with pytest.raises(InputError, match="reward is 'delivered', but must be a function of"):
        make(set=SHORT, reward=wrong)


@pytest.mark.parametrize(
    ("action", "shown"),
    [
        ([math.nan], r"\[nan\] is outside the space"),
        ([1.5], r"\[1.5\] is outside the space: one number, log2_cwnd_change, from -1 to 1"),
        ([0.0, 0.0], r"\[0.0, 0.0\] is outside the space"),
        ("up", "'up' is outside the space"),
        (None, "None is outside the space"),
    ],
)
def test_an_action_outside_the_space_is_one_error(action: Any, shown: str) -> None:
    environment = make(set=SHORT).unwrapped
    environment.reset(seed=1)
    with pytest.raises(InputError, match=rf"^action: {shown}"):
        environment.step(action)
    # The episode goes on.
    environment.step([0.0])


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ({"flow": "flow.7"}, "flow: there is no 'flow.7'; the flows are flow.0, or by id download"),
        ({"scenario": "ping-under-load", "flow": "flow.0"}, "flow: flow.0 is not TCP but ping"),
        ({"scenario": "nothing"}, "no scenario named 'nothing'"),
        ({"interval_ms": 0}, "interval_ms is 0, which must be above 0"),
        ({"interval_ms": math.nan}, "interval_ms is nan"),
    ],
)
def test_what_cannot_be_an_environment_is_one_error(options: dict[str, Any], shown: str) -> None:
    with pytest.raises(InputError, match=shown):
        make(**options)
    if "flow" in options:
        scenario, flows = options.get("scenario", "wire"), [options["flow"]]
        with pytest.raises(InputError, match=shown):
            environments.parallel_env(scenario, flows)


@pytest.mark.parametrize(
    ("reward", "shown"), [(lambda _: math.nan, "nan"), (lambda _: None, "None")]
)
def test_a_reward_that_is_no_number_is_one_error(reward: Any, shown: str) -> None:
    environment = make(set=SHORT, reward=reward)
    environment.reset(seed=1)
    with pytest.raises(InputError, match=rf"^reward: the function returned {shown}, which must be"):
        environment.step([0.0])


def test_a_flow_that_never_sends_is_one_error() -> None:
    environment = make(set={"flow.0.start_s": 1.99, "run.duration_s": 2})
    with pytest.raises(InputError, match=r"^flow: there is nothing to decide for download"):
        environment.reset(seed=1)


def test_agents_name_who_is_unknown() -> None:
    agents = environments.parallel_env("two-flows", set=SHORT)
    with pytest.raises(InputError, match=r"^there is no episode: call reset"):
        agents.step({})
    agents.reset(seed=1)
    with pytest.raises(InputError, match=r"^action: there is no agent 'third'; the agents are"):
        agents.step({"third": np.zeros(1)})


@pytest.mark.parametrize("package", ["gymnasium", "pettingzoo"])
def test_a_missing_package_is_one_error(package: str, tmp_path: Path) -> None:
    program = f"""
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == {package!r} else found(name, *rest)
try:
    import airpath.gym
    airpath.gym.parallel_env("wire")
except ImportError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True
    )
    assert done.stderr == ""
    assert done.stdout == f"airpath.gym needs {package}: pip install 'airpath[gym]'\n"


def test_a_policy_survives_its_file(tmp_path: Path) -> None:
    policy, file = network(5), tmp_path / "policy.npz"
    policy.interval_ms = 30
    policy.save(file)
    read = Policy.load(file)
    observation: Vector = np.linspace(-1, 1, len(OBSERVATION), dtype=np.float32)
    assert read.act(observation) == policy.act(observation)
    assert read.interval_ms == 30


@pytest.mark.parametrize("content", [b"", b"not a policy", None])
def test_another_file_is_no_policy(content: bytes | None, tmp_path: Path) -> None:
    file = tmp_path / "policy.npz"
    if content is None:
        np.savez(file, other=np.zeros(1))
    else:
        file.write_bytes(content)
    with pytest.raises(InputError, match=r"policy.npz is not a policy"):
        Policy.load(file)


@pytest.mark.parametrize(
    ("layers", "shown"),
    [
        ([], "it has no layers"),
        ([(np.zeros((1, 3)), np.zeros(1))], "weights of layer 0 have the shape"),
        ([(np.full((1, len(OBSERVATION)), np.nan), np.zeros(1))], "weights of layer 0 must be fin"),
    ],
)
def test_a_network_that_cannot_decide_is_one_error(layers: Any, shown: str) -> None:
    with pytest.raises(InputError, match=rf"^policy: {shown}"):
        Policy(layers)


def test_a_model_of_stable_baselines_is_taken_over() -> None:
    """Its layers, its activation, and the mean and variance of what it observed."""

    class Tensor:
        def __init__(self, values: Any) -> None:
            self.values = np.asarray(values, dtype=np.float32)

        def detach(self) -> Tensor:
            return self

        cpu = detach

        def numpy(self) -> Any:
            return self.values

    class Linear:
        def __init__(self, outputs: int, inputs: int) -> None:
            random = np.random.default_rng(inputs)
            self.weight = Tensor(random.normal(size=(outputs, inputs)))
            self.bias = Tensor(random.normal(size=outputs))

    class ReLU:
        pass

    count = len(OBSERVATION)

    class Model:
        class policy:  # noqa: N801 - as in Stable-Baselines3
            class mlp_extractor:  # noqa: N801
                policy_net = (Linear(4, count), ReLU())

            action_net = Linear(1, 4)

        def get_vec_normalize_env(self) -> None:
            return None

    exported = Policy.of_stable_baselines(Model())
    observation = np.ones(count, dtype=np.float32)
    hidden, last = Model.policy.mlp_extractor.policy_net[0], Model.policy.action_net
    values = np.maximum(hidden.weight.values @ observation + hidden.bias.values, 0)
    expected = np.clip(last.weight.values @ values + last.bias.values, -1, 1)[0]
    assert exported.act(observation) == pytest.approx(float(expected), rel=1e-5)
    with pytest.raises(InputError, match="only PPO and A2C"):
        Policy.of_stable_baselines(object())


def test_an_observation_is_within_its_bounds_whatever_was_seen() -> None:
    environment = make(set=SHORT).unwrapped
    environment.reset(seed=1)
    interval, *_ = environment._episode.seen("download")
    for cwnd in (1.0, 1e7):
        assert environment.observation_space.contains(observe(interval, cwnd))
