"""What a sender keeps from one transfer to the next: both clocks, and the search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airpath import scenario
from airpath.twin import compare, runs
from airpath.twin.comparable import make_comparable
from airpath_dev import order
from airpath_dev.twin import drawn, kept
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


def result(*seconds: str) -> drawn.Result:
    """A drawn scenario whose first transfer agrees; each figure of the second has its verdict."""

    def judged(flow: str, verdict: str) -> drawn.Judged:
        figure = compare.Figure(
            flow, "exit cwnd", "segments", (66.0,), (66.0, 170.0), 0.8, 0.2, verdict
        )
        return drawn.Judged(figure, 1.6, verdict)

    figures = [judged(kept.SECOND, one) for one in seconds]
    if figures:
        figures.insert(0, judged(kept.FIRST, drawn.AGREES))
    return drawn.Result(kept.draw(1), figures, [] if figures else ["late"])


def test_a_page_says_how_many_second_transfers_agree() -> None:
    found = [
        result(drawn.AGREES, drawn.AGREES),
        result(drawn.UNDECIDED, drawn.DIFFERS),
        result(drawn.AGREES, drawn.UNDECIDED),
        result(),
    ]
    verdicts = [kept.verdict(each, kept.SECOND) for each in found]
    assert verdicts == [drawn.AGREES, drawn.DIFFERS, drawn.UNDECIDED, kept.NOT_JUDGED]
    page = "\n".join(kept.markdown(found, 1))
    second, first = "1 agree in all figures, 1 are undecided, 1 differ, 1 were", "3 agree in all"
    assert f"Second transfers: {second} not judged. First ones: {first}" in page
    # Where the kernel's runs differ from each other, the page has each of them.
    assert "66, 170 segments" in page


@pytest.mark.parametrize(("code", "second"), [(0, drawn.UNDECIDED), (1, drawn.DIFFERS), (3, None)])
def test_an_undecided_scenario_is_no_failure(
    code: int, second: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = result(*([second] if second else []))
    monkeypatch.setattr(drawn, "run", lambda *_, **__: found)
    assert kept.main(1, 1, tmp_path, tmp_path / "page.md") == code


def test_a_tenth_of_a_millisecond_decides_as_in_the_kernel(core: Any) -> None:
    # Twelve emulated runs of seed 4802 ended the first slow start at 66 segments by an ACK train,
    # at 105 by one a round later, and at 169 or 170 by the delay.
    def exits(host_ms: float) -> list[tuple[int, str]]:
        sets = [f"flow.{place}.profile=linux-6.18" for place in (0, 1)]
        sets += [f"path.{way}.delay_ms={42.72 + host_ms:.2f}" for way in ("down.1", "up.0")]
        parsed = scenario.parse(kept.draw(4802).text, "seed-4802", sets=sets)
        flows = core.simulate(parsed, parsed.seed).summary["flows"]
        ends = [flow["slow_start_exit"] for flow in flows]
        return [(each["cwnd_segments"], each["reason"]) for each in ends]

    assert exits(0.03) == [(66, "ack_train"), (66, "ack_train")]
    assert exits(0.09) == [(170, "delay"), (169, "ssthresh")]
    assert exits(0.11) == [(105, "ack_train"), (105, "ssthresh")]


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
