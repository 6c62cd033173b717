"""A campaign's answer in sentences, and the charts that a report begins with."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import airpath
from airpath.analysis.intervals import interval
from airpath.campaign.drawn import correlation_interval
from airpath.campaign.goals import GOODPUT, Factor, rounded
from airpath.campaign.verdict import verdict
from airpath.errors import InputError
from airpath.plots import tradeoff
from airpath.plots.cause_matrix import cause_matrix
from airpath.plots.figure import rows
from airpath.report.campaign import context, write_campaign_report

DEEP: dict[str, Any] = {
    "title": "Deep or short",
    "scenario": "bufferbloat",
    "set": ["run.duration_s=5"],
    "seeds": 3,
    "compare": "cc",
    "against": "cubic",
    "vary": [
        {"name": "queue", "choices": [
            {"label": "short", "set": ["path.down.0.queue_packets=20"]},
            {"label": "deep", "set": ["path.down.0.queue_packets=500"]},
        ]},
        {"key": "flow.0.congestion", "name": "cc", "values": ["reno", "cubic", "bbr"]},
        {"key": "flow.0.receive_buffer_bytes", "name": "buffer", "values": [8_000_000, 9_000_000]},
    ],
}  # fmt: skip
"""A queue that decides over the delay, and a key that no flow can feel."""


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> airpath.Campaign:
    return airpath.sweep(DEEP, out=tmp_path_factory.mktemp("campaign") / "deep", workers=1)


def test_the_best_is_named_with_its_factor_and_the_interval_over_seeds(
    deep: airpath.Campaign,
) -> None:
    found = verdict(deep)
    assert found
    assert (found.compared, found.against, found.apart) == ("cc", "cubic", "queue")
    assert [place for place, _ in found.best] == ["short", "deep"]
    said = dict(found.best)["deep"]
    pings = deep.pings.filter(queue="deep")
    logs = [math.log(_mean(pings, seed, "bbr") / _mean(pings, seed, "cubic")) for seed in (1, 2, 3)]
    less = 100 * (1 - math.exp(interval(logs).mean))
    told = re.search(r"bbr has the shortest pings, ([\d.]+) % shorter than with cubic \(", said)
    assert told, said
    assert float(told[1]) == pytest.approx(less, rel=0.01)
    assert "95 % confidence interval over 3 seeds" in found.basis
    assert "geometric means over buffer" in found.basis


def _mean(pings: pl.DataFrame, seed: int, cc: str) -> float:
    logs = pings.filter(seed=seed, cc=cc)["rtt_ms_p95"].log()
    return math.exp(float(logs.to_numpy().mean()))


def test_a_key_that_does_nothing_is_named_with_why(deep: airpath.Campaign) -> None:
    found = verdict(deep)
    assert found
    said = dict(found.keys)
    assert said["buffer"].startswith("did nothing: every figure is the same")
    assert "shortest with short" in said["queue"]


def test_counters_say_why_figures_are_the_same(tmp_path: Path) -> None:
    """A window that never fills the path: no congestion control has anything to do."""
    window = {
        "scenario": "small-window", "set": ["run.duration_s=3"], "seeds": 2,
        "vary": [
            {"key": "flow.0.congestion", "name": "cc", "values": ["reno", "cubic"]},
            {"key": "path.down.0.queue_packets", "name": "queue", "values": [200, 500]},
        ],
    }  # fmt: skip
    found = verdict(airpath.sweep(window, out=tmp_path / "out", workers=1))
    assert found
    for key in ("cc", "queue"):
        said = dict(found.keys)[key]
        assert said.startswith("did nothing: every figure is the same (no packet was lost"), said
        assert re.search(r"was the limit \d\d % of the time", said)


def test_one_seed_has_no_interval_and_says_so(tmp_path: Path) -> None:
    done = airpath.sweep({**DEEP, "seeds": 1}, out=tmp_path / "out", workers=1)
    found = verdict(done)
    assert found
    assert "one seed: no interval" in dict(found.best)["deep"]
    compared = airpath.compare(done, axis="cc=cubic,bbr")
    assert set(compared["verdict"]) <= {"no interval", "same"}
    assert compared["low"].null_count() == len(compared)


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (Factor(3.452, 3.41, 3.5), "3.5 times as much as cubic (3.4 to 3.5 times)"),
        (Factor(1.17, 1.15, 1.2), "17 % more than cubic (15 to 20 %)"),
        (Factor(0.66, 0.65, 0.68), "34 % less than cubic (32 to 35 %)"),
        (Factor(1.001, 0.999, 1.003), "0.1 % more than cubic (-0.1 to 0.3 %: may be chance)"),
        (Factor(2.02, 2.01, 2.03), "2.02 times as much as cubic (2.01 to 2.03 times)"),
        (Factor(1.5, 1.5, 1.5), "50 % more than cubic (in every seed)"),
        (Factor(1.5, None, None), "50 % more than cubic (one seed: no interval)"),
        (Factor(1.0, 1.0, 1.0, same=True), "the same as cubic"),
    ],
)
def test_factors_are_said_in_words(factor: Factor, words: str) -> None:
    assert GOODPUT.words(factor, "cubic") == words


@pytest.mark.parametrize(
    ("value", "text"),
    [(38.04, "38"), (245.2, "250"), (0.0644, "0.064"), (-0.5, "-0.5"), (0.0, "0")],
)
def test_numbers_have_two_digits(value: float, text: str) -> None:
    assert rounded(value) == text


def test_the_page_answers_first_and_has_the_trade_off(
    deep: airpath.Campaign, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    write_campaign_report(deep, page)
    text = page.read_text()
    assert text.index("has the shortest pings") < text.index("What cc trades")
    charts: Any = context(deep)["figures"]
    first = charts[0]
    assert first.id == "tradeoff"
    points = rows(first.data["tradeoff"])
    assert [(point["panel"], point["s"]) for point in points] == [
        (queue, cc) for queue in ("short", "deep") for cc in ("reno", "cubic", "bbr")
    ]
    assert all(point["rate_low"] <= point["rate"] <= point["rate_high"] for point in points)
    assert first.spec["resolve"]["scale"] == {"x": "independent", "y": "independent"}
    # Colour is what is compared, everywhere.
    for chart in charts:
        if chart.id.startswith(("lines", "cdf")):
            assert '"domain": ["reno", "cubic", "bbr"]' in json.dumps(chart.spec), chart.id


@pytest.mark.parametrize(
    ("values", "zero", "title"),
    [
        ([40.0, 100.0], True, "rate"),
        ([90.0, 100.0], False, "rate (axis does not start at 0)"),
        ([100.0, 100.0], True, "rate"),
        ([5.0, 100.0], None, "rate"),
    ],
)
def test_an_axis_shows_values_far_from_0(
    values: list[float], zero: bool | None, title: str
) -> None:
    ends = [{"panel": "", "rate": [v], "rate_low": [v], "rate_high": [None]} for v in values]
    axis = tradeoff._axis("rate", "rate", ends, {})
    assert axis["scale"].get("zero") is zero
    assert axis["title"] == title


def test_good_is_bright_and_decades_are_logarithmic(deep: airpath.Campaign) -> None:
    goodput: Any = deep.plot("heat", x="queue", y="cc")
    delay: Any = deep.plot("heat", figure="pings.rtt_ms_p95", x="queue", y="cc")
    fills = [chart.spec["layer"][0]["encoding"]["color"]["scale"] for chart in (goodput, delay)]
    assert [fill["reverse"] for fill in fills] == [False, True]
    assert "type" not in fills[0]
    assert fills[1]["type"] == "log"
    dots: Any = deep.plot(figure="pings.rtt_ms_p95", x="queue", colour="cc")
    assert dots.spec["layer"][0]["encoding"]["y"]["scale"]["type"] == "log"


def test_causes_are_a_matrix_where_they_were_sought(tmp_path: Path) -> None:
    sought = {
        "scenario": ["small-window", "bufferbloat"], "set": ["run.duration_s=3"],
        "explain": "quick", "seeds": 2,
    }  # fmt: skip
    done = airpath.sweep(sought, out=tmp_path / "out", workers=1)
    chart = cause_matrix(done)
    assert chart
    found = {(row["cell"], row["cause"]): row["v"] for row in rows(chart.data["causes"])}
    assert found["small-window", "receive-window"] == 1.0
    assert ("bufferbloat", "receive-window") not in found


def test_what_is_compared_must_be_varied(tmp_path: Path) -> None:
    for changes, message in (
        (
            {"compare": "cd"},
            "`compare` is cd\n  allowed: one of the names in [[vary]]: `queue`, `cc`",
        ),
        ({"against": "bic"}, "`against` is 'bic'\n  allowed: 'reno', 'cubic', 'bbr'"),
    ):
        with pytest.raises(InputError) as caught:
            airpath.sweep({**DEEP, **changes}, out=tmp_path / "out")
        assert message in str(caught.value)


def test_a_comparison_has_words_and_no_interval_where_nothing_is_random(
    deep: airpath.Campaign, tmp_path: Path
) -> None:
    found = airpath.compare(deep, axis="buffer=8000000,9000000")
    assert set(found["verdict"]) == {"same"}
    changed = airpath.compare(deep, figures=["pings.rtt_ms_p95"], axis="cc=cubic,bbr")
    row = changed.filter(queue="deep").row(0, named=True)
    assert (row["verdict"], row["low"], row["p"]) == ("no interval", None, None)
    assert row["change_percent"] < 0
    random = airpath.sweep(
        {"scenario": "random-loss", "set": ["run.duration_s=5"], "seeds": 3,
         "vary": [{"key": "flow.0.congestion", "name": "cc", "values": ["cubic", "bbr"]}]},
        out=tmp_path / "random",
    )  # fmt: skip
    changed = airpath.compare(random, figures=["flows.goodput_mbps"], axis="cc=bbr,cubic")
    row = changed.row(0, named=True)
    assert row["verdict"] == "lower"
    assert row["low_percent"] <= row["change_percent"] <= row["high_percent"] < 0


DRAWN: dict[str, Any] = {
    "scenario": "bufferbloat",
    "set": ["run.duration_s=2"],
    "sampling": "random",
    "samples": 24,
    "vary": [
        {"key": "path.down.0.rate_mbps", "name": "rate", "low": 1, "high": 20},
        {"key": "flow.0.receive_buffer_bytes", "name": "buffer", "low": 8e6, "high": 9e6,
         "integer": True},
        {"key": "flow.0.congestion", "name": "cc", "values": ["cubic", "bbr"]},
    ],
}  # fmt: skip
"""A rate that decides over all, and a key that no flow can feel."""


def test_drawn_points_are_answered_by_ranks_and_dots(tmp_path: Path) -> None:
    done = airpath.sweep(DRAWN, out=tmp_path / "drawn", workers=1)
    found = verdict(done)
    assert found
    assert (found.compared, found.best) == ("", [])
    said = dict(found.keys)
    assert next(iter(said)) == "rate"
    told = re.match(r"goodput: rises with it \(rank correlation ([\d.]+), ", said["rate"])
    assert told, said
    table = done.flows.select(pl.corr("rate", "goodput_mbps", method="spearman").alias("rho"))
    assert float(told[1]) == pytest.approx(table["rho"][0], abs=0.006)
    assert "goodput: no trend beyond chance" in said["buffer"]
    charts: Any = context(done)["figures"]
    assert charts[0].id == "dots-flows.goodput_mbps-rate"
    assert sum(len(each["v"]) for each in charts[0].data[charts[0].id]) == 24
    assert "bbr" in json.dumps(charts[0].spec)


def test_an_interval_of_ranks_holds_as_often_as_it_says() -> None:
    """Of independent keys and figures, 5 % have an interval without 0."""
    random = np.random.default_rng(1)
    outside = 0
    for _ in range(2000):
        ranks = random.permutation(24)
        low, high = correlation_interval(float(np.corrcoef(np.arange(24), ranks)[0, 1]), 24)
        outside += not low <= 0 <= high
    assert 60 <= outside <= 140


def test_few_drawn_points_have_no_answer(tmp_path: Path) -> None:
    few = {**DRAWN, "samples": 4}
    assert verdict(airpath.sweep(few, out=tmp_path / "few", workers=1)) is None
