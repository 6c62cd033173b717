"""Plans of a measurement: what is sent, for how long, and never more than was allowed."""

from __future__ import annotations

import contextlib
import json
import random
from typing import Any

import pytest

from airpath.errors import InputError
from airpath.measure.plan import (
    BASE,
    LEAST_BLOCKS,
    LEAST_TCP_S,
    OVERHEAD,
    UDP_SHARES,
    Direction,
    Known,
    Plan,
    Treatment,
    draw,
    usual,
)

ALL = usual({"cubic", "bbr", "reno"}, "cubic")


def drawn(seed: int, **changed: Any) -> Plan:
    asked: dict[str, Any] = {
        "treatments": ALL,
        "directions": ["down"],
        "time_s": 90,
        "data_bytes": 500_000_000,
    }
    return draw(seed, **(asked | changed))


def asked_at_random(generator: random.Random) -> dict[str, Any]:
    directions: list[list[Direction]] = [["down"], ["up"], ["down", "up"]]
    return {
        "treatments": ALL[: generator.randint(2, len(ALL))],
        "directions": generator.choice(directions),
        "time_s": generator.choice([30, 60, 90, 300, 1800]),
        "data_bytes": round(10 ** generator.uniform(7.3, 10)),
        "known": Known(generator.choice([None, None, 1, 30, 400, 2000])),
    }


@pytest.mark.parametrize("seed", range(60))
def test_a_plan_keeps_within_time_and_data(seed: int) -> None:
    asked = asked_at_random(random.Random(seed))
    rate_mbps = asked["known"].rate_mbps
    if rate_mbps is not None and asked["data_bytes"] < rate_mbps * 800_000:
        # Two blocks are four phases of 0.5 s at least, in each direction.
        with pytest.raises(InputError, match="--data"):
            draw(seed, **asked | {"data_bytes": rate_mbps * 200_000})
        return
    plan = draw(seed, **asked)
    assert plan.duration_s() <= asked["time_s"] + 1e-6
    assert plan.most_bytes() <= asked["data_bytes"]
    at_rate = plan.most_bytes(10)
    assert at_rate <= plan.most_bytes()
    for direction in asked["directions"]:
        assert plan.blocks(direction) >= LEAST_BLOCKS
    if rate_mbps is not None:
        # The data is enough for all phases at this rate.
        tcp = [one for one in plan.phases if one.kind == "tcp"]
        short = [o for o in tcp if o.most_bytes < 0.97 * rate_mbps * o.duration_s / 8e-6]
        assert not short


@pytest.mark.parametrize("seed", range(10))
def test_blocks_have_every_treatment_once_in_random_order(seed: int) -> None:
    plan = drawn(seed, time_s=300, directions=["down", "up"])
    tcp = [one for one in plan.phases if one.kind == "tcp"]
    blocks: dict[tuple[int, str | None], list[str]] = {}
    for one in tcp:
        blocks.setdefault((one.block, one.direction), []).append(one.treatment.name)
    for names in blocks.values():
        assert sorted(names) == sorted(one.name for one in ALL)
    assert blocks[0, "down"][0] == blocks[0, "up"][0] == BASE
    assert len({tuple(names) for names in blocks.values()}) > 1
    assert all(one.duration_s >= LEAST_TCP_S for one in tcp)
    assert [one.number for one in plan.phases] == list(range(len(plan.phases)))


def test_idle_phases_are_paired_and_begin_with_silence() -> None:
    plan = drawn(1)
    idle = [one for one in plan.phases if one.kind == "idle"]
    for block in {one.block for one in idle}:
        kept = [one.treatment.keep_alive for one in idle if one.block == block]
        assert sorted(kept) == [False, True]
    assert idle[0].quiet_s > 1
    assert not any(one.quiet_s for one in plan.phases if one is not idle[0])
    assert [one.direction for one in plan.phases if one.kind == "mtu"] == ["down", "up"]


def test_every_order_is_drawn_about_as_often() -> None:
    second = [
        next(o for o in drawn(seed).phases if o.kind == "tcp" and o.block == 1).treatment.name
        for seed in range(300)
    ]
    counts = [second.count(one.name) for one in ALL]
    # 300 draws among 6: 50 each, with a standard deviation of 6.5.
    assert min(counts) > 24
    assert max(counts) < 76


def test_a_plan_follows_from_its_seed() -> None:
    assert drawn(7) == drawn(7)
    assert drawn(7).phases != drawn(8).phases


def test_the_least_important_treatments_are_left_out_first() -> None:
    plan = drawn(1, time_s=40)
    kept = {one.treatment.name for one in plan.phases if one.kind == "tcp"}
    names = [one.name for one in ALL]
    assert plan.dropped == [*names[len(kept) :], "udp"]
    assert kept == set(names[: len(kept)])
    assert any("Left out" in line and plan.dropped[0] in line for line in plan.lines())


def test_phases_are_short_where_the_data_does_not_suffice() -> None:
    plan = drawn(1, time_s=60, known=Known(1000))
    assert all(one.duration_s < LEAST_TCP_S for one in plan.phases if one.kind == "tcp")
    assert any("shorter than 3 s" in line for line in plan.lines())


def test_lines_say_what_is_sent() -> None:
    lines = drawn(1).lines(20)
    assert "at 20 Mb/s of 500 MB" in lines[0]
    assert any("85 % of the steady rate" in line for line in lines)
    assert any("after 4 s of silence" in line for line in lines)
    assert any("congestion control bbr" in line for line in lines)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_left_over_goes_to_later_phases(seed: int) -> None:
    generator = random.Random(seed)
    plan = drawn(seed, data_bytes=round(10 ** generator.uniform(7.5, 9)))
    spent, given = 0, []
    for one in plan.phases:
        most = plan.allowance(one.number, spent)
        if one.kind == "tcp":
            given.append(most - one.most_bytes)
            # A phase on a slow path, or one that uses all that it may.
            used = round(most * generator.choice([0.1, 1.0]))
            spent += one.path_bytes - round(one.most_bytes * OVERHEAD) + round(used * OVERHEAD)
        else:
            spent += one.path_bytes
    assert spent <= plan.data_bytes + len(plan.phases)
    assert given[-1] > 0
    loaded = [one.number for one in plan.phases if one.kind in ("tcp", "udp")]
    assert {plan.allowance(number, plan.data_bytes) for number in loaded} == {0}


@pytest.mark.parametrize(
    ("available", "system", "expected"),
    [
        ({"cubic", "bbr", "reno"}, "cubic", "bbr"),
        ({"cubic", "reno"}, "cubic", "reno"),
        ({"cubic", "bbr"}, "bbr", "cubic"),
    ],
)
def test_the_other_congestion_control(available: set[str], system: str, expected: str) -> None:
    assert expected in [one.name for one in usual(available, system)]
    assert [one.name for one in usual({"cubic"}, "cubic")].count("cubic") == 0


def test_a_plan_survives_json() -> None:
    plan = drawn(3)
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan


DAMAGE: list[tuple[list[str | int], Any, str]] = [
    (["version"], 2, "version"),
    (["seed"], -1, "seed"),
    (["phases"], [], "phases"),
    (["phases", 3, "number"], 4, "phases[3].number"),
    (["phases", 3, "kind"], "sctp", "phases[3].kind"),
    (["phases", 0, "direction"], None, "phases[0].direction"),
    (["phases", 3, "duration_s"], "long", "phases[3].duration_s"),
    (["phases", -1, "most_bytes"], 10**12, "data_bytes"),
    (["phases", -1, "size_bytes"], 5, "size_bytes"),
    (["phases", 0, "kind"], "udp", "size_bytes"),
    (["phases", -1, "treatment", "streams"], 0, "treatment.streams"),
    (["phases", -1, "treatment", "options"], {"mss_bytes": 1}, "mss_bytes"),
    (["phases", -1, "treatment", "options"], {"shell": "sh"}, "shell"),
]


@pytest.mark.parametrize(("place", "value", "told"), DAMAGE)
def test_a_damaged_plan_is_refused(place: list[str | int], value: Any, told: str) -> None:
    table: Any = drawn(3).to_json()
    inner = table
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    with pytest.raises(InputError, match="plan is damaged") as caught:
        Plan.from_json(table)
    assert told in str(caught.value)


@pytest.mark.parametrize("seed", range(40))
def test_randomly_damaged_plans_are_read_or_refused(seed: int) -> None:
    generator = random.Random(seed)
    table: Any = json.loads(json.dumps(drawn(3).to_json()))
    for _ in range(3):
        inner: Any = table
        while isinstance(inner, dict | list) and inner:
            key: Any = (
                generator.choice(list(inner))
                if isinstance(inner, dict)
                else generator.randrange(len(inner))
            )
            if not isinstance(inner[key], dict | list) or generator.random() < 0.1:
                if isinstance(inner, dict) and generator.random() < 0.3:
                    del inner[key]
                else:
                    inner[key] = generator.choice([None, -1, 1e300, "x", [], {}, True, 0.5])
                break
            inner = inner[key]
    with contextlib.suppress(InputError):
        # No other error is raised.
        Plan.from_json(table)


@pytest.mark.parametrize(
    "changed", [{"time_s": 1}, {"time_s": 1e9}, {"data_bytes": 10}, {"data_bytes": 2_000_000}]
)
def test_too_little_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"--time|--data"):
        drawn(1, **changed)


def test_treatments_begin_with_base() -> None:
    with pytest.raises(ValueError, match="base"):
        drawn(1, treatments=[Treatment("paced"), Treatment(BASE)])


@pytest.mark.parametrize("seed", range(30))
def test_udp_costs_no_treatment_and_no_block(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plan with UDP against that of the same request without it."""
    asked = asked_at_random(random.Random(seed)) | {"data_bytes": 10**10}
    plan = draw(seed, **asked)
    monkeypatch.setattr("airpath.measure.plan._UDP_BLOCKS", 0)
    without = draw(seed, **asked)
    blocks: dict[tuple[int, str | None], list[str]] = {}
    for one in plan.phases:
        if one.kind == "udp":
            blocks.setdefault((one.block, one.direction), []).append(one.treatment.name)
    assert ("udp" in plan.dropped) == (not blocks)
    assert [one for one in plan.dropped if one != "udp"] == without.dropped[:-1]
    for direction in asked["directions"]:
        assert plan.blocks(direction) == without.blocks(direction)
    for names in blocks.values():
        assert sorted(names) == sorted(UDP_SHARES)
    # The rate is known before the first of them.
    for direction in asked["directions"] if blocks else []:
        kinds = [(o.kind, o.block) for o in plan.phases if o.direction == direction]
        first = kinds.index(("udp", 0))
        assert ("tcp", 0) in kinds[:first]
        assert ("tcp", 0) not in kinds[first:]
    seconds = sum(one.duration_s + 0.8 for one in plan.phases if one.kind == "udp")
    assert seconds <= 0.15 * asked["time_s"]


def test_most_plans_of_a_minute_have_udp() -> None:
    known = Known(20, 50)
    plans = [drawn(seed, time_s=60, treatments=ALL[:4], known=known) for seed in (1, 2)]
    orders = {tuple(o.treatment.name for o in one.phases if o.kind == "udp") for one in plans}
    assert len(orders) == 2
    assert any("115 % of the rate found" in line for line in plans[0].lines())
