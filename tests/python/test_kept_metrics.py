"""What a sender keeps from one transfer to the next: both clocks, and the search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airpath import scenario
from airpath.twin import compare, runs
from airpath.twin.comparable import make_comparable
from airpath_dev import order
from airpath_dev.twin import kept
from emulated import needs
from real_clock import on_time


@pytest.mark.parametrize("seed", range(4800, 4820))
def test_every_drawn_scenario_has_two_transfers_in_sequence(seed: int, core: Any) -> None:
    drawn = kept.draw(seed)
    assert drawn == kept.draw(seed)
    parsed = scenario.parse(drawn.text, f"seed-{seed}")
    result = core.simulate(parsed, parsed.seed)
    first, second = result.summary["flows"]
    assert first["completed_s"] is not None
    assert first["completed_s"] < kept.SECOND_S
    assert second["completed_s"] is not None


def test_a_page_says_how_many_second_transfers_agree() -> None:
    def figures(second: str) -> list[compare.Figure]:
        return [
            compare.Figure(flow, "goodput", "Mb/s", (1.0,), (1.0,), 0.0, 0.05, found)
            for flow, found in ((kept.FIRST, compare.AGREES), (kept.SECOND, second))
        ]

    found = [figures(compare.AGREES), figures(compare.DIFFERS), []]
    verdicts = [kept.verdict(each, kept.SECOND) for each in found]
    assert verdicts == [compare.AGREES, compare.DIFFERS, "not judged"]
    twin: Any = runs.Twin("id", None, [], Path())  # type: ignore[arg-type]
    page = "\n".join(kept.markdown([(kept.draw(1), twin, each) for each in found], 1))
    assert "in all figures in 1 of 3 scenarios, the\nfirst in 2." in page


@needs("ip")
def test_the_kernels_second_transfer_leaves_slow_start_as_the_simulated_one(
    core: Any, tmp_path: Path
) -> None:
    # A loss ends the first slow start, and the kept ssthresh the second, far below the BDP's 84.
    file = tmp_path / "two.toml"
    file.write_text(TWO)
    twin = runs.run(make_comparable(str(file)), out=tmp_path / "twin")
    for pair in twin.pairs:
        if pair.emulated is not None:
            on_time(dict(pair.emulated.summary))
    figures = {(one.flow, one.name): one for one in compare.compare(twin)}
    for name in kept.JUDGED:
        assert figures["second", name].verdict == compare.AGREES, figures["second", name]
    (counted,) = twin.valid
    for side in (counted.simulated, counted.emulated):
        exits = [flow["slow_start_exit"] for flow in side.summary["flows"]]
        assert [each and each["reason"] for each in exits] == ["loss", "ssthresh"]


def test_the_search_keeps_what_a_host_keeps(core: Any) -> None:
    def flow(name: str, start: float, keys: str = "") -> str:
        lines = [
            "[[flow]]",
            f'id = "{name}"',
            'kind = "bulk"',
            "duration_s = 4",
            "window_bytes = 200_000",
        ]
        lines += [f"start_s = {start}", 'route.metrics = "bsd"', 'profile = "macos-10.5"', keys]
        return "\n".join(lines) + "\n"

    def run(*flows: str) -> tuple[Any, Any]:
        path = TWO.partition("[[flow]]")[0]
        parsed = scenario.parse(path + "".join(flows), "kept")
        return parsed, core.simulate(parsed, parsed.seed)

    parsed, alone = run(flow("first", 0))
    left = order.kept_after(None, order.last_ssthresh(alone), parsed)
    assert left is not None
    _, both = run(flow("first", 0), flow("second", 5))
    _, told = run(flow("second", 5, f"route.ssthresh_segments = {left}"))
    exits = [result.summary["flows"][-1]["slow_start_exit"] for result in (both, told)]
    assert [exit_["reason"] for exit_ in exits] == ["ssthresh"] * 2
    # STEP may be the difference of a segment.
    assert abs(exits[0]["cwnd_segments"] - exits[1]["cwnd_segments"]) <= 1
    # A buffer of which ssthresh is more than half keeps nothing.
    small, ended = run(flow("first", 0).replace("200_000", "30_000"))
    assert order.kept_after(None, order.last_ssthresh(ended), small) is None
    assert order.kept_after(20.0, 10.0, parsed) == pytest.approx((20 + 10.28) / 2, abs=order.STEP)


TWO = """
[run]
duration_s = 10
[[path.down]]
stage = "link"
rate_mbps = 10
queue_packets = 30
[[path.down]]
stage = "delay"
delay_ms = 30
[[path.up]]
stage = "delay"
delay_ms = 30
[[flow]]
id = "first"
kind = "file"
size_bytes = 2_500_000
congestion = "reno"
route.metrics = "linux-ssthresh"
[[flow]]
id = "second"
kind = "file"
size_bytes = 2_500_000
start_s = 5
congestion = "reno"
route.metrics = "linux-ssthresh"
"""
