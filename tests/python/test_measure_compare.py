"""`airpath compare` of two measurements."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from airpath.errors import InputError
from airpath.measure.compare import Comparison, compare, difference
from airpath.measure.plan import BASE, Direction, Known, Phase, Plan, draw, usual
from measured_runs import Values, written

SEED = 20261129


def plan(seed: int = 1, directions: tuple[Direction, ...] = ("down",)) -> Plan:
    return draw(seed, usual({"cubic", "bbr"}, "cubic"), directions, 90, 500_000_000, Known(20, 40))


def figures(rate: float = 10.0, queue: float = 1.0, loss: int = 0) -> object:
    """A path with a drift that is the same in each measurement, and a queue while it is full."""

    def values(phase: Phase) -> Values:
        drift = 1 + 0.1 * phase.block
        paced = phase.treatment.name == "paced"
        return {
            "steady_mbps": drift * rate * (0.85 if paced else 1),
            "loaded_ms": 40.0 if paced else 40.0 * queue,
            "rtt_ms": 20.0 * drift,
            "retransmitted": loss,
        }

    return values


def pair(
    tmp_path: Path, before: object, after: object, plans: tuple[Plan, Plan] | None = None
) -> tuple[Path, Path]:
    both = plans or (plan(), plan())
    made = []
    for name, one, values in (("a", both[0], before), ("b", both[1], after)):
        made.append(written(tmp_path / name, one, values))  # type: ignore[arg-type]
    return made[0], made[1]


def figure(found: Comparison, name: str) -> dict[str, object]:
    (one,) = (dict(one) for one in found["figures"] if one["figure"] == name)
    return one


def test_the_same_plan_is_paired_by_block(tmp_path: Path) -> None:
    found = compare(*pair(tmp_path, figures(10), figures(12, loss=100)))
    assert found["paired"]
    assert "paired by block" in found["remarks"][0]
    rate = figure(found, "steady_mbps")
    # The drift is the same in both, so that pairs leave no error.
    assert rate["change_percent"] == pytest.approx(20)
    assert rate["low"] == pytest.approx(rate["high"])
    assert figure(found, "retransmitted_share")["change"] == pytest.approx(0.01)
    idle = figure(found, "rtt_ms.mean")
    assert (idle["direction"], idle["blocks_before"]) == ("idle", 4)
    assert idle["change"] == pytest.approx(0)


def test_other_plans_are_not_paired(tmp_path: Path) -> None:
    found = compare(*pair(tmp_path, figures(10), figures(12), (plan(1), plan(2))))
    assert not found["paired"]
    assert "their plans differ" in found["remarks"][0]
    rate = figure(found, "steady_mbps")
    assert rate["change_percent"] == pytest.approx(20)
    assert rate["low"] < 0 < rate["high"]  # type: ignore[operator]


def test_causes_went_and_came(tmp_path: Path) -> None:
    a, b = pair(tmp_path, figures(queue=4), figures())
    found = compare(a, b)
    assert [one["cause"] for one in found["gone"]] == ["bufferbloat"]
    assert not found["came"]
    back = compare(b, a)
    assert [one["cause"] for one in back["came"]] == ["bufferbloat"]
    assert [one["cause"] for one in compare(a, a)["stayed"]] == ["bufferbloat"]


def test_what_is_not_in_both_is_said(tmp_path: Path) -> None:
    a = written(tmp_path / "a", plan(1, ("down", "up")), figures(), server="one")  # type: ignore[arg-type]
    b = written(tmp_path / "b", plan(), figures(), server="two", limit_mbps=50)  # type: ignore[arg-type]
    found = compare(a, b)
    said = "\n".join(found["remarks"])
    assert "the servers differ (one, two)" in said
    assert f"{a} has down, up; {b} has down" in said
    assert "--most-rate" in said
    assert {one["direction"] for one in found["figures"]} == {"down", "idle"}


def test_a_run_is_no_measurement(tmp_path: Path) -> None:
    a, _ = pair(tmp_path, figures(), figures())
    (tmp_path / "run").mkdir()
    with pytest.raises(InputError, match="is not a measurement"):
        compare(a, tmp_path / "run")


def airpath(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "airpath", "compare", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_command(tmp_path: Path) -> None:
    a, b = pair(tmp_path, figures(10, queue=4), figures(12))
    told = airpath(a, b)
    assert told.returncode == 0, told.stderr
    assert "paired by block: both ran the same plan" in told.stdout
    assert "gone (down): bufferbloat: During a transfer" in told.stdout
    document = json.loads(airpath(a, b, "--format", "json", "--unpaired").stdout)
    assert not document["paired"]
    assert document["gone"][0]["cause"] == "bufferbloat"
    assert "steady_mbps" in airpath(a, b, "--format", "csv").stdout
    refused = airpath(a, b, "--axis", "x")
    assert refused.returncode == 2
    assert "without --axis" in refused.stderr


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("count", [3, 10])
def test_intervals_of_drifting_blocks_hold_the_truth(count: int, paired: bool) -> None:
    """200 pairs of series whose correlation is drawn from 0 to 0.8, with seed 20261129."""
    generator = np.random.default_rng(SEED)
    held = 0
    for _ in range(200):
        correlation, share = generator.uniform(0, 0.8), generator.uniform(0.3, 1)
        series = []
        for _ in range(2):
            drift = [generator.normal()]
            for step in generator.normal(size=count - 1):
                drift.append(correlation * drift[-1] + math.sqrt(1 - correlation**2) * step)
            own = generator.normal(size=count)
            series.append(math.sqrt(share) * np.array(drift) + math.sqrt(1 - share) * own)
        low, high = difference(series[0], series[1] + 0.5, paired)
        assert low is not None
        assert high is not None
        held += low <= 0.5 <= high
    assert held / 200 >= 0.92


def test_a_single_block_has_no_interval() -> None:
    assert difference(np.ones(1), np.ones(3), paired=False) == (None, None)


def test_equal_blocks_have_no_width() -> None:
    assert difference(np.ones(3), 2 * np.ones(3), paired=False) == (1.0, 1.0)
    assert {one.treatment.name for one in plan().phases} > {BASE}
