"""Campaign files: what is refused, with which words, and which points they stand for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airpath.campaign import plan, sampling
from airpath.campaign.definition import load, parse, shipped_campaigns
from airpath.campaign.keys import key_of
from airpath.errors import InputError
from campaigns import SHORT, toml


def refused(text: str) -> str:
    with pytest.raises(InputError) as caught:
        plan.make(parse(text, "c.toml", Path(), "c"))
    return str(caught.value)


HEAD = 'scenario = "wire"\n'
VARY = '\n[[vary]]\nkey = "flow.0.congestion"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seeds = 3\n", "c.toml:1:1: `scenario` is missing"),
        (HEAD + '[vary]\ncc = ["bbr"]\n', "`vary` is not a list of tables\n  allowed: a table for "
         'each key that varies:\n    [[vary]]\n    key = "flow.0.congestion"\n'),
        ('scenario = "wier"\n', "c.toml:1:1: no scenario named 'wier'; did you mean 'wire'?"),
        (HEAD + "seed = 3\n", "c.toml:2:1: unknown key `seed` at the top level\n  did you mean"),
        ('base = "wire"\n', "c.toml:1:1: unknown key `base` at the top level\n  did you mean "
         "`scenario`?"),
        ("seeds = 3\n", 'or a list of these, e.g. scenario = "bufferbloat"'),
        (HEAD + "repeat = 3\n", "c.toml:2:1: unknown key `repeat` at the top level\n  did you mean "
         "`seeds`?"),
        (HEAD + "seeds = 0\n", "c.toml:2:1: `seeds` is 0\n  allowed: a number from 1 to 1000000"),
        (HEAD + "seeds = [1, 1]\n", "c.toml:2:1: `seeds` is [1, 1]\n  allowed: "),
        (HEAD + 'sampling = "gird"\n', "c.toml:2:1: `sampling` is 'gird'\n  did you mean"),
        (HEAD + "samples = 8\n", 'c.toml:2:1: `samples` has no effect with sampling "grid"'),
        (HEAD + 'sampling = "sobol"\nsamples = 6\n' + VARY + 'values = ["reno"]\n',
         "c.toml:3:1: `samples` is 6\n  allowed: a power of two"),
        (HEAD + VARY, "c.toml:3:3: [[vary]] has neither\n  allowed: `values`, `choices`"),
        (HEAD + VARY + "values = []\n", "c.toml:5:1: `values` is []\n  allowed: a list"),
        (HEAD + VARY + "low = 1\nhigh = 2\n",
         'c.toml:5:1: a range does not work with sampling "grid"'),
        (HEAD + VARY + 'value = ["reno"]\n', "c.toml:5:1: unknown key `value` in [[vary]]"),
        (HEAD + 'sampling = "random"\nsamples = 4\n' + VARY + "low = 2\nhigh = 1\n",
         "c.toml:7:1: the range is from 2 to 1\n  allowed: two numbers"),
        (HEAD + VARY + 'values = ["reno"]\nname = "seed"\n',
         "c.toml:6:1: `seed` is the name of a column"),
        (HEAD + VARY + 'values = ["reno"]\nname = "congestion"\n',
         "c.toml:6:1: `congestion` is the name of a column in the tables"),
        (HEAD + VARY + 'values = ["reno"]\n' + VARY + 'values = ["bbr"]\n',
         "c.toml:7:3: two [[vary]]"),
        (HEAD + VARY + 'values = ["reno", "cubik"]\n',
         "c.toml:5:1: `congestion` is \"cubik\""),
        (HEAD + 'set = ["run.duration=4"]\n', "c.toml:2:1: unknown key `duration`"),
        (HEAD + "[until]\nci = 2\n", "c.toml:3:1: `ci` is 2\n  allowed: a share of the mean"),
        (HEAD + "seeds = 5\n[until]\nci = 0.1\n", "c.toml:2:1: `seeds` is 5 with [until]"),
        (HEAD + 'seeds = 10\n[until]\nci = 0.1\nfigure = "speed.x"\n',
         "c.toml:5:1: `speed.x` is no"),
        (HEAD + "seeds = \n", "c.toml: Invalid value (at line 2, column 9)"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_place(text: str, message: str) -> None:
    assert message in refused(text)


def test_a_problem_of_every_combination_is_told_once() -> None:
    told = refused(HEAD + VARY.replace("congestion", "congestoin") + 'values = ["reno", "bbr"]\n')
    assert told.startswith("c.toml:4:1: unknown key `congestoin`")
    assert told.count("unknown key") == 1
    assert "--set" not in told
    told = refused(HEAD + VARY + 'values = ["reno", "cubik"]\n')
    assert "wire cannot be run with flow.0.congestion = cubik" in told


def test_all_that_is_wrong_is_told_at_once() -> None:
    told = refused('scenario = "wire"\nseeds = 0\nsampling = "x"\n')
    assert "c.toml:2:1" in told
    assert "error: c.toml:3:1" in told


def points(**changes: Any) -> list[tuple[Any, ...]]:
    return [values for values, _ in sampling.points(load({**SHORT, **changes}))]


def test_a_grid_has_every_combination_and_the_last_axis_varies_first() -> None:
    found = points()
    assert found[:5] == [
        ("reno", 20), ("reno", 50), ("reno", 100), ("reno", 200), ("cubic", 20),
    ]  # fmt: skip
    assert len(found) == len(set(found)) == 8


def test_a_list_takes_values_beside_each_other() -> None:
    axes = [
        {"key": "flow.0.congestion", "values": ["reno", "cubic"]},
        {"key": "path.down.0.queue_packets", "values": [20, 50]},
    ]
    assert points(sampling="list", vary=axes) == [("reno", 20), ("cubic", 50)]


RANGES = [
    {"key": "path.down.0.rate_mbps", "low": 1, "high": 100, "scale": "log"},
    {"key": "path.down.0.queue_packets", "low": 10, "high": 100, "integer": True},
    {"key": "flow.0.congestion", "values": ["reno", "cubic"]},
]


@pytest.mark.parametrize("kind", ["random", "latin-hypercube", "sobol", "saltelli"])
def test_drawn_points_fill_their_ranges_and_are_the_same_each_time(kind: str) -> None:
    found = points(sampling=kind, samples=64, vary=RANGES)
    assert len(found) == (64 * 8 if kind == "saltelli" else 64)
    rates, queues, controls = zip(*found, strict=True)
    assert all(1 <= rate <= 100 for rate in rates)
    # Half of a logarithmic range is below its geometric middle.
    assert 0.35 <= sum(rate < 10 for rate in rates) / len(rates) <= 0.65
    assert all(isinstance(queue, int) and 10 <= queue <= 100 for queue in queues)
    assert {*controls} == {"reno", "cubic"}
    assert found == points(sampling=kind, samples=64, vary=RANGES)
    assert found != points(sampling=kind, samples=64, vary=RANGES, sampling_seed=2)


def test_a_latin_hypercube_has_one_point_in_each_slice() -> None:
    axis = {"key": "path.down.0.rate_mbps", "low": 0.5, "high": 64.5}
    found = points(sampling="latin-hypercube", samples=64, vary=[axis])
    assert sorted(int(rate - 0.5) for (rate,) in found) == list(range(64))


def test_a_key_depends_on_scenario_seed_version_and_core() -> None:
    definition = load(SHORT)
    made = plan.make(definition)
    keys = {made.key(made.run(number)) for number in range(made.runs)}
    assert len(keys) == made.runs == 40
    again = plan.make(load({**SHORT, "vary": SHORT["vary"][::-1]}))
    assert keys == {again.key(again.run(number)) for number in range(again.runs)}
    run = made.run(0)
    sha256 = made.cells[0].sha256
    assert made.key(run) == key_of(sha256, run.seed, made.version, made.core)
    assert made.key(run) != key_of(sha256, run.seed, made.version, "another")
    assert made.key(run) != key_of(sha256, run.seed, "another", made.core)


def test_a_file_and_a_mapping_are_the_same_campaign() -> None:
    made = parse(toml(), "c.toml", Path(), "c")
    assert [cell.sha256 for cell in plan.make(made).cells] == [
        cell.sha256 for cell in plan.make(load(SHORT)).cells
    ]


@pytest.mark.parametrize("name", shipped_campaigns())
def test_shipped_campaigns_can_be_run(name: str) -> None:
    assert plan.make(load(name)).runs > 0


def test_several_scenarios_are_cells_of_one_campaign() -> None:
    vary = [{"key": "flow.0.congestion", "values": ["reno", "cubic"]}]
    made = plan.make(load({"scenario": ["wire", "random-loss"], "vary": vary, "seeds": 3}))
    frame = made.frame([made.run(number) for number in range(made.runs)])
    assert made.runs == 12
    assert frame["scenario"].unique(maintain_order=True).to_list() == ["wire", "random-loss"]
