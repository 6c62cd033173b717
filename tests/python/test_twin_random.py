"""The drawing and the judging of `make twin-random`; the runs themselves take minutes."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from airpath import scenario
from airpath.twin import compare, runs
from airpath.twin.comparable import make_comparable
from airpath.twin.runs import Counted
from airpath_dev.twin import bpf, draw, drawn, place
from airpath_dev.twin.drawn import (
    AGREES,
    DIFFERS,
    UNDECIDED,
    Judged,
    Result,
    judge,
    markdown,
    passes,
)


@pytest.mark.parametrize("seed", range(1, 101))
def test_every_drawn_scenario_is_valid(seed: int) -> None:
    drawn = draw.draw(seed)
    parsed = scenario.parse(drawn.text, f"seed-{seed}")
    assert parsed.seed == seed
    assert drawn == draw.draw(seed)


def test_what_is_drawn_has_all_that_it_is_to_have() -> None:
    texts = [draw.draw(seed).text for seed in range(1, 401)]
    having = Counter(word for text in texts for word in WORDS if word in text)
    assert all(having[word] >= 20 for word in WORDS), having
    mixed = [text for text in texts if sum(f'"{name}"' in text for name in draw.CONTROLS) > 1]
    assert len(mixed) > 60


WORDS = (
    'stage = "link"',
    'preset = "lte-20"',
    'preset = "nr-fdd-20"',
    'preset = "nr-n78"',
    'preset = "umts-hspa"',
    'name = "b"',
    'kind = "file"',
    'kind = "bulk"',
    'kind = "ping"',
    'direction = "up"',
    'stage = "loss"',
    'congestion = "bbr"',
    'congestion = "reno"',
)


def figure(ours: float, *kernel: float | None, limit: float = 0.05) -> compare.Figure:
    """A goodput, simulated once for each emulated run."""
    return compare._judged("flow-0", "goodput", "Mb/s", [ours] * len(kernel), kernel, limit)


def verdict(of: compare.Figure) -> str:
    judged = judge(of)
    assert judged is not None
    return judged.verdict


def test_a_figure_inside_its_limit_agrees() -> None:
    assert verdict(figure(10.0, 10.3, 10.4)) == AGREES


def test_a_figure_farther_out_than_the_kernel_from_itself_differs() -> None:
    assert verdict(figure(10.0, 11.0, 11.2)) == DIFFERS


def test_a_figure_as_far_out_as_the_kernel_from_itself_is_undecided() -> None:
    assert verdict(figure(10.0, 10.0, 13.0)) == UNDECIDED


def test_what_the_kernel_does_only_now_and_then_is_undecided() -> None:
    apart = compare.Figure(
        "flow-0", compare.EXIT, "s", (1.0, 1.0), (1.0, None), None, 1.0, compare.DIFFERS
    )
    assert verdict(apart) == UNDECIDED
    never = compare.Figure(
        "flow-0", compare.EXIT, "s", (1.0, 1.0), (None, None), None, 1.0, compare.DIFFERS
    )
    assert verdict(never) == DIFFERS


def test_the_kernels_distance_from_itself_is_in_base_rtts_too() -> None:
    # The base RTT is 0.1 s: 2 of them late on average, the kernel half of one from itself.
    late = compare.Figure(
        "flow-0", compare.EXIT, "s", (1.0, 1.0), (1.175, 1.225), 2.0, 1.0, compare.DIFFERS
    )
    judged = judge(late)
    assert judged is not None
    assert judged.kernel == pytest.approx(0.5)
    assert judged.verdict == DIFFERS


def test_slow_start_may_end_a_base_rtt_apart() -> None:
    def pair(ours_s: float, theirs_s: float | None) -> Counted:
        runs = []
        for time_s, base_ms in ((ours_s, 40.0), (theirs_s, 70.0)):
            end = time_s and {
                "time_s": time_s,
                "cwnd_segments": 100,
                "min_rtt_ms": base_ms,
                "reason": "delay",
            }
            runs.append(SimpleNamespace(summary={"flows": [{"id": "f", "slow_start_exit": end}]}))
        return Counted(1, *cast(Any, runs))

    near, window = compare._slow_start([pair(1.0, 1.039)], "f")
    assert near.difference == pytest.approx(0.975)
    assert (near.verdict, window.verdict) == (compare.AGREES, compare.AGREES)
    far, _ = compare._slow_start([pair(1.0, 1.041)], "f")
    assert far.verdict == compare.DIFFERS
    (alone,) = compare._slow_start([pair(1.0, None)], "f")
    assert alone.verdict == compare.DIFFERS


def test_what_was_done_is_not_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, core: Any
) -> None:
    scenario = SimpleNamespace(sha256="scenario")
    comparable = SimpleNamespace(scenario=scenario, kernel="6.18.1", congestion=[])
    monkeypatch.setattr(place, "make_comparable", lambda _, **__: comparable)
    joined = [figure(10.0, 11.0, 11.2), figure(10.0, 10.1, 10.2)]
    monkeypatch.setattr(compare, "compare", lambda _: joined)
    done: list[Path] = []

    def run(_: object, *, out: Path, **__: object) -> runs.Twin:
        done.append(out)
        out.mkdir(parents=True, exist_ok=True)
        pair = runs.Pair(1, cast(Any, None), cast(Any, "a run"), ["late"])
        return runs.Twin("id", cast(Any, comparable), [pair], out)

    monkeypatch.setattr(runs, "run", run)
    first = drawn.run(draw.draw(1), tmp_path)
    assert [one.verdict for one in first.figures] == [DIFFERS, AGREES]
    assert [out.name for out in done] == ["first", "second"]
    again = drawn.run(draw.draw(1), tmp_path)
    assert len(done) == 2
    assert (again.verdict, again.refused) == (DIFFERS, ["late", "late"])
    assert markdown([again]) == markdown([first])
    # Another kernel has runs of its own.
    comparable.kernel = "6.18.2"
    drawn.run(draw.draw(1), tmp_path)
    assert len(done) == 4


def test_what_differs_is_emulated_again_before_it_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, core: Any
) -> None:
    comparable = SimpleNamespace(
        scenario=SimpleNamespace(sha256="scenario"), kernel="6.18.1", congestion=[]
    )
    monkeypatch.setattr(place, "make_comparable", lambda _, **__: comparable)
    kernel: list[float] = []
    late: set[str] = set()
    done: list[str] = []

    def run(_: object, *, out: Path, **__: object) -> runs.Twin:
        done.append(out.name)
        out.mkdir(parents=True, exist_ok=True)
        emulated = None if out.name in late else cast(Any, "a run")
        pair = runs.Pair(1, cast(Any, None), emulated, [])
        return runs.Twin("id", cast(Any, comparable), [pair], out)

    def compared(twin: runs.Twin) -> list[compare.Figure]:
        rtt = compare._judged("flow-0", "RTT p50", "ms", [1.0], [9.0], 0.1)
        return [figure(10.0, *kernel[: len(twin.valid)]), rtt]

    monkeypatch.setattr(runs, "run", run)
    monkeypatch.setattr(compare, "compare", compared)

    def judged(seed: int, *values: float, most: int = 4) -> tuple[str, list[str]]:
        kernel[:], done[:] = values, []
        found = drawn.run(draw.draw(seed), tmp_path, names=["goodput"], most=most)
        return found.verdict, list(done)

    names = list(drawn.EMULATIONS)
    assert judged(1, 10.1, 10.2) == (AGREES, names[:2])
    assert judged(2, 13.0, 13.1, most=2) == (DIFFERS, names[:2])
    # Two runs were alike by chance.
    assert judged(3, 13.0, 13.1, 10.0) == (UNDECIDED, names[:3])
    assert judged(4, 13.0, 13.1, 13.2, 13.3) == (DIFFERS, names[:4])
    # A mean within the limit does not make it agree.
    assert judged(7, 13.0, 13.1, 4.2) == (UNDECIDED, names[:3])
    late.add("third")
    assert judged(5, 13.0, 13.1, 10.0) == (UNDECIDED, names[:4])
    late.add("second")
    assert judged(6, 13.0, 13.1) == ("not judged", names[:2])


def test_what_the_kernel_did_beside_another_build_is_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, core: Any
) -> None:
    scenario = SimpleNamespace(sha256="scenario")
    comparable = SimpleNamespace(scenario=scenario, kernel="6.18.1", congestion=[])
    monkeypatch.setattr(place, "make_comparable", lambda _, **__: comparable)
    monkeypatch.setattr(compare, "compare", lambda _: [figure(10.0, 10.1, 10.2)])
    done: list[str] = []
    build = "one"

    def run(_: object, *, out: Path, **__: object) -> runs.Twin:
        for side in ("simulated", "emulated"):
            if not (out / "seed-1" / side).exists():
                (out / "seed-1" / side).mkdir(parents=True)
                done.append(f"{out.name} {side}")
        plan = {"id": build, "scenario_sha256": "scenario", "kernel": "6.18.1"}
        assert not (out / runs.PLAN).exists() or json.loads((out / runs.PLAN).read_text()) == plan
        (out / runs.PLAN).write_text(json.dumps(plan))
        pair = runs.Pair(1, cast(Any, None), cast(Any, "a run"), [])
        return runs.Twin(build, cast(Any, comparable), [pair], out)

    monkeypatch.setattr(runs, "run", run)
    monkeypatch.setattr(runs, "identifier", lambda _: build)
    drawn.run(draw.draw(1), tmp_path)
    assert done == ["first simulated", "first emulated", "second emulated"]
    build = "two"
    drawn.run(draw.draw(1), tmp_path, again=True)
    assert done[3:] == ["first simulated"]
    build = "three"
    drawn.run(draw.draw(1), tmp_path)
    assert done[4:] == done[:3]


def test_figures_without_a_limit_are_not_judged() -> None:
    assert judge(compare._judged("flow-0", "retransmissions", "", [1.0], [9.0], None)) is None


def result(seed: int, *verdicts: str) -> Result:
    figures = [Judged(figure(10.0, 12.0, 12.1), 0.01, one) for one in verdicts]
    return Result(draw.draw(seed), figures, [] if verdicts else ["late"])


def test_nine_in_ten_have_to_agree_and_nineteen_in_twenty_to_be_judged() -> None:
    good = result(1, *[AGREES] * 9, DIFFERS, UNDECIDED)
    assert passes([good] * 20)
    assert not passes([result(1, *[AGREES] * 8, DIFFERS, DIFFERS)])
    assert passes([*[good] * 19, result(2)])
    assert not passes([*[good] * 9, result(2)])


def test_the_page_says_what_differs() -> None:
    page = "\n".join(markdown([result(1, AGREES, DIFFERS), result(2)]))
    assert "**1 of 2 judged figures agree (50.0%)" in page
    assert "Cause: not looked into yet." in page
    assert "No two emulated runs count:" in page


@pytest.mark.parametrize("seed", range(7300, 7330))
def test_every_flow_has_the_templates_algorithm(seed: int) -> None:
    of = bpf.of_template(draw.draw(seed))
    assert not {"bbr", "reno"} & set(of.shape.replace(",", "").split())
    parsed = scenario.parse(of.text, f"seed-{seed}")
    assert parsed.resolved_toml.count('slow_start = "none"') == of.text.count("congestion = ")
    tcp = [flow for flow in parsed.flows if flow["profile"] is not None]
    assert {flow["congestion"] for flow in tcp} == {"cubic"}


def test_the_page_of_the_template_has_its_own_causes() -> None:
    page = "\n".join(bpf.markdown([result(1, AGREES, DIFFERS)], 1))
    assert "twin-bpf SEED=1 COUNT=1" in page
    assert "**1 of 2 judged figures agree (50.0%)" in page


def test_a_window_that_leaves_in_no_time_overflows_a_buffer_that_the_kernels_does_not(
    core: Any, tmp_path: Path
) -> None:
    # NR, 160 Mb/s: a recovery acknowledges everything at once, and 2,018 segments leave for a
    # buffer of as many. In six emulated runs nothing is lost then, and the median RTT is 133 to 140
    # ms; without the interface 18 are lost, and cwnd is reduced once more.
    file = tmp_path / "scenario.toml"
    file.write_text(bpf.of_template(draw.draw(7301)).text)
    simulated, _ = make_comparable(str(file), release="6.18.1").of_seed(0)

    def median(text: str) -> float:
        result = core.simulate(scenario.parse(text, "seed-7301"), 7301)
        rtt: float = result.summary["flows"][0]["rtt_ms"]["p50"]
        return rtt

    text = simulated.resolved_toml
    assert 132 < median(text) < 140
    before, interface, behind = text.partition("[[path.down]]")
    assert 'stage = "link"' in behind.partition(interface)[0]
    assert median(before + interface + behind.partition(interface)[2]) < 120
