"""Effects of a measurement's treatments, and the causes that follow from them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from airpath.base.shapes import fitted
from airpath.measure.analysis import missed
from airpath.measure.causes import CAPACITY, Seen, Sparse, by_chance, name
from airpath.measure.document import Mtu, UdpDocument
from airpath.measure.effects import Effect, effects
from airpath.measure.placement import Servers
from airpath.measure.twin import Path, run

SEED = 20261128


def test_an_effect_is_the_mean_change_within_blocks() -> None:
    blocks = [{"base": 10.0, "paced": 20.0}, {"base": 40.0, "paced": 80.0}]
    found = effects(blocks, "base", 0.01)["paced"]
    assert found.factor == pytest.approx(2.0)
    assert found.before == pytest.approx(20.0)
    assert found.after == pytest.approx(40.0)
    # The blocks differ by a factor of four, and the error is none: drift cancels.
    assert found.low == pytest.approx(2.0)
    assert found.high == pytest.approx(2.0)


def test_the_interval_is_that_of_the_two_way_layout() -> None:
    """Against the closed form for complete blocks."""
    draw = np.random.default_rng(SEED)
    logs = draw.normal(size=(4, 3))
    names = ("base", "bbr", "paced")
    blocks = [dict(zip(names, np.exp(row), strict=True)) for row in logs]
    rest = logs - logs.mean(axis=1, keepdims=True) - logs.mean(axis=0) + logs.mean()
    error = math.sqrt(float((rest**2).sum()) / 6)
    found = effects(blocks, "base", 1e-9)["bbr"]
    # Student's t with (4 - 1)(3 - 1) degrees of freedom, 97.5 %.
    half = 2.446911851144969 * error * math.sqrt(2 / 4)
    change = float((logs[:, 1] - logs[:, 0]).mean())
    assert math.log(found.factor) == pytest.approx(change)
    assert math.log(found.high) == pytest.approx(change + half, rel=1e-6)


def test_blocks_that_agree_are_counted() -> None:
    blocks = [{"base": 1.0, "bbr": 2.0}, {"base": 1.0, "bbr": 3.0}, {"base": 1.0, "bbr": 0.9}]
    assert effects(blocks, "base", 0.01)["bbr"].agreeing == pytest.approx(2 / 3)


def test_a_single_block_leaves_the_interval_open() -> None:
    found = effects([{"base": 1.0, "bbr": 9.0}], "base", 0.01)["bbr"]
    assert found.interval is None
    assert not found.raised


def test_an_unfinished_block_counts_as_far_as_it_went() -> None:
    blocks = [
        {"base": 1.0, "bbr": 2.0, "paced": 0.9},
        {"base": 1.1, "bbr": 2.1, "paced": 0.9},
        {"paced": 1.0},
        {"base": 1.0, "paced": 0.8},
    ]
    found = effects(blocks, "base", 0.01)
    assert (found["bbr"].blocks, found["paced"].blocks) == (2, 3)


def test_nothing_carried_is_a_figure() -> None:
    blocks = [{"base": 0.0, "mss-1000": 10.0}] * 2
    assert effects(blocks, "base", 0.01)["mss-1000"].factor == pytest.approx(1000)


def test_intervals_hold_the_truth() -> None:
    """95 % of 2,000 drawn measurements of three drifting blocks, with seed 20261128."""
    draw = np.random.default_rng(SEED)
    names = ("base", "bbr", "paced", "streams-4")
    held = 0
    for _ in range(2000):
        drift = np.cumsum(draw.normal(scale=0.5, size=3))[:, None]
        logs = drift + np.array([0.0, 0.3, -0.2, 0.1]) + draw.normal(scale=0.05, size=(3, 4))
        found = effects([dict(zip(names, np.exp(row), strict=True)) for row in logs], "base", 1e-9)
        held += found["bbr"].low <= math.exp(0.3) <= found["bbr"].high
    assert 0.935 <= held / 2000 <= 0.965


def effect(treatment: str, factor: float, before: float = 10.0, spread: float = 1.05) -> Effect:
    return Effect(
        treatment, factor, factor / spread, factor * spread, before, before * factor, 3, 1.0
    )


HEALTHY = Seen(
    direction="down",
    rate={
        "paced": effect("paced", 0.85),
        "bbr": effect("bbr", 1.02),
        "streams-4": effect("streams-4", 1.01),
        "window": effect("window", 1.0),
        "mss-1000": effect("mss-1000", 0.97),
    },
    goodput={"bbr": effect("bbr", 1.04), "streams-4": effect("streams-4", 1.05)},
    loss={"paced": effect("paced", 0.001, 0.01), "bbr": effect("bbr", 2.0, 0.01)},
    loaded_ms={"paced": effect("paced", 0.8, 40.0)},
    idle_ms={"keep-alive": effect("keep-alive", 1.0, 25.0)},
    base_rate_mbps=10.0,
    base_loss=0.001,
    base_loaded_ms=40.0,
    limited={"receive_window": 0.01, "send_buffer": 0.0},
    ramp_s=0.6,
    phase_s=4.0,
    first_ms=26.0,
    sparse=Sparse(median_ms=25.0),
)


def lost(probes: int, in_a_row: int, of: int) -> Sparse:
    return Sparse(median_ms=25.0, lost=(probes, in_a_row, of))


def test_a_full_path_is_no_cause() -> None:
    (one,) = name(HEALTHY)
    assert one.cause == CAPACITY
    assert "full" in one.evidence


def test_a_servers_own_limit_is_said() -> None:
    (one,) = name(replace(HEALTHY, servers=Servers(limit_mbps=10.5)))
    assert "--most-rate" in one.evidence


HOLE: Mtu = {
    "path_bytes": 900, "too_large_bytes": 901, "too_large_sent": 3, "black_hole": True, "icmp": [],
}  # fmt: skip


def test_a_black_hole_that_no_treatment_passes_is_named() -> None:
    empty = replace(
        HEALTHY, rate={}, goodput={}, base_rate_mbps=0.0, mtu=HOLE, sparse=lost(0, 0, 40)
    )
    (one,) = name(empty)
    assert (one.cause, one.effect, one.confidence) == ("mtu", None, 0.0)
    assert "up to 900 bytes pass" in one.evidence
    # Three probes in a row are lost by chance where seven of ten are, and data still passes.
    assert "mtu" not in [one.cause for one in name(replace(empty, sparse=lost(28, 4, 40)))]
    assert "mtu" not in [one.cause for one in name(replace(empty, base_rate_mbps=3.0))]
    # Nothing was transferred, and nobody knows what a transfer would have carried.
    assert "mtu" not in [one.cause for one in name(replace(empty, phase_s=0.0))]


def test_a_port_that_answers_no_syn_is_named_unless_packets_are_lost_anyway() -> None:
    closed = Seen("idle", {}, {}, {}, {}, {}, 0.0, None, None, {}, None, 0.0, unopened=True)
    (one,) = name(replace(closed, sparse=lost(0, 0, 40)))
    assert one.cause == "one-way-path"
    assert "answers no SYN" in one.evidence
    (one,) = name(replace(closed, sparse=lost(28, 4, 40)))
    assert one.cause == "random-loss"
    assert name(replace(closed, sparse=lost(0, 0, 40), unopened=False)) == []


def test_wide_intervals_name_nothing() -> None:
    rate = {each: effect(each, 1.1, spread=2.0) for each in HEALTHY.rate}
    assert name(replace(HEALTHY, rate=rate)) == []


@pytest.mark.parametrize(
    ("cause", "changed"),
    [
        (
            "random-loss",
            {
                "rate": {"bbr": effect("bbr", 5.0)},
                "loss": {"paced": effect("paced", 0.95, 0.01)},
                "base_loss": 0.01,
            },
        ),
        (
            "policer",
            {
                "rate": {"bbr": effect("bbr", 1.9)},
                "loss": {"paced": effect("paced", 0.01, 0.02)},
                "base_loss": 0.02,
            },
        ),
        (
            "receive-window",
            {
                "rate": {"streams-4": effect("streams-4", 3.8)},
                "limited": {"receive_window": 0.9, "send_buffer": 0.0},
                "base_loss": 0.0,
            },
        ),
        (
            "send-buffer",
            {
                "rate": {"window": effect("window", 2.0)},
                "limited": {"receive_window": 0.0, "send_buffer": 0.7},
                "base_loss": 0.0,
            },
        ),
        (
            "slow-start-exit",
            {"goodput": {"bbr": effect("bbr", 1.6)}, "base_loss": 0.0, "ramp_s": None},
        ),
        ("bufferbloat", {"loaded_ms": {"paced": effect("paced", 0.05, 800.0)}}),
        (
            "ack-starvation",
            {"loaded_ms": {"paced": effect("paced", 0.05, 800.0)}, "loaded_out": 0.95},
        ),
        ("drx", {"idle_ms": {"keep-alive": effect("keep-alive", 0.5, 60.0)}}),
        (
            "uplink-access",
            {"idle_ms": {"keep-alive": effect("keep-alive", 0.5, 60.0)}, "idle_out": 0.9},
        ),
        ("random-loss", {"sparse": lost(5, 1, 40)}),
        (
            "policer",
            {
                "loss": {"paced": effect("paced", 0.01, 0.02)},
                "base_loss": 0.02,
                "base_loaded_ms": 26.0,
                "sparse": Sparse(median_ms=25.0, least_ms=25.0),
            },
        ),
        ("rrc-promotion", {"first_ms": 400.0}),
        (
            "mtu",
            {
                "rate": {"mss-1000": effect("mss-1000", 1000.0, 0.01)},
                "mtu": {
                    "path_bytes": 1400, "too_large_bytes": 1401, "too_large_sent": 3,
                    "black_hole": True, "icmp": [],
                },
            },
        ),
    ],
)  # fmt: skip
def test_what_changes_when_a_suspect_is_away_is_the_cause(
    cause: str, changed: dict[str, object]
) -> None:
    seen = replace(HEALTHY, **changed)  # type: ignore[arg-type]
    named = name(seen)
    assert named[0].cause == cause
    # What lengthens round trips says nothing about the rate.
    about_rate = not named[0].metric.startswith("rtt")
    assert [one.cause for one in named[1:]] == ([] if about_rate else [CAPACITY])


def test_a_change_within_noise_is_no_cause() -> None:
    noisy = replace(HEALTHY, idle_ms={"keep-alive": effect("keep-alive", 0.5, 60.0, spread=3.0)})
    assert [one.cause for one in name(noisy)] == [CAPACITY]


def test_losses_in_a_row_are_no_random_loss() -> None:
    away = replace(HEALTHY, sparse=lost(5, 5, 40))
    assert [one.cause for one in name(away)] == [CAPACITY]


def test_bbr_that_loses_where_it_probes_is_not_policed() -> None:
    probing = replace(
        HEALTHY,
        congestion="bbr",
        loss={"paced": effect("paced", 0.01, 0.02)},
        base_loss=0.02,
        base_loaded_ms=26.0,
        sparse=Sparse(median_ms=25.0, waits=(25.0, 0.1, 0.1), least_ms=25.0),
    )
    assert [one.cause for one in name(probing)] == [CAPACITY]


def test_a_cause_that_was_only_seen_has_no_confidence() -> None:
    lossy = replace(HEALTHY, sparse=lost(5, 1, 40))
    assert name(lossy)[0].confidence == 0
    bloated = replace(HEALTHY, loaded_ms={"paced": effect("paced", 0.05, 800.0)})
    assert name(bloated)[0].confidence == 1


@pytest.mark.parametrize("cause", ["policer", "random-loss", "receive-window", "send-buffer", None])
def test_a_twin_is_a_scenario_that_runs(cause: str | None) -> None:
    path = Path("down", 8.0, 18.0, 30.0, 34.0, 0.01, [cause] if cause else [], "cubic")
    made = run(path, "core.example")
    assert made.score is not None
    assert ("link" in made.toml) == (cause != "policer")


def test_the_twin_of_an_idle_path_has_a_ping() -> None:
    assert run(Path("down", None, 0.0, 30.0, None, 0.0, []), "core.example").score is None


def test_the_larger_effect_is_first() -> None:
    both = replace(
        HEALTHY,
        loaded_ms={"paced": effect("paced", 0.1, 800.0)},
        idle_ms={"keep-alive": effect("keep-alive", 0.5, 60.0)},
    )
    assert [one.cause for one in name(both)] == ["bufferbloat", "drx", CAPACITY]


def test_what_a_short_test_misses_is_said() -> None:
    from airpath.measure.document import RateDocument
    from airpath.measure.sentences import ramp

    one: RateDocument = {
        "direction": "down", "steady_mbps": 200.0, "ci95": None, "ramp_s": 5.2, "longest_s": 9.0,
        "short_test_mbps": 150.0,
    }  # fmt: skip
    assert "grows for 5.2 s: iperf3 -t 10 shows 150 Mb/s, 25% less (iperf3 -O 6" in ramp(one)
    assert ramp({**one, "short_test_mbps": 199.0}) == ""
    assert "too low" in ramp({**one, "ramp_s": None, "short_test_mbps": None})


def test_the_average_of_a_short_test_is_that_of_a_ramp() -> None:
    """A rate that grows linearly for 4 s carries half of it: 10 s show 80 % of the steady rate."""
    from airpath.measure.plan import Phase, Treatment

    phase = Phase(0, 0, "tcp", "down", Treatment("base"), 8.0, 1 << 30)
    figures = {"steady_mbps": 100.0, "goodput_mbps": 75.0}
    missed_s = missed(figures, phase)  # type: ignore[arg-type]
    assert 100 * (1 - missed_s / 10) == pytest.approx(80)


@pytest.mark.parametrize(
    ("opened_ms", "cause"),
    [(26.0, CAPACITY), (300.0, "rrc-promotion"), (1030.0, CAPACITY)],  # 1030: its SYN was lost
)
def test_the_first_connection_after_silence(opened_ms: float, cause: str) -> None:
    assert name(replace(HEALTHY, opened_ms=opened_ms))[0].cause == cause


@pytest.mark.parametrize(
    ("direction", "waits", "paced_ms", "cause"),
    [
        # Traffic ends the wait: the UE slept, or had no grant.
        ("down", (50.0, 3.0, 20.0), 55.0, "drx"),
        ("down", (50.0, 20.0, 0.5), 55.0, "uplink-access"),
        # It does not: acknowledgements are held, or the path's delay varies.
        ("down", (50.0, 20.0, 0.5), 70.0, "ack-batching"),
        ("up", (50.0, 0.5, 20.0), 70.0, "ack-batching"),
        ("down", (50.0, 0.5, 20.0), 70.0, CAPACITY),
        ("up", (50.0, 20.0, 0.5), 70.0, CAPACITY),
        # Waits that a usual period of scheduling requests explains.
        ("down", (30.0, 12.0, 0.5), 31.0, CAPACITY),
    ],
)
def test_waits_of_an_idle_path(
    direction: str, waits: tuple[float, float, float], paced_ms: float, cause: str
) -> None:
    seen = replace(
        HEALTHY,
        direction=direction,
        sparse=Sparse(median_ms=25.0, waits=waits),
        idle_ms={"keep-alive": effect("keep-alive", 1.0, sum(waits))},
        loaded_ms={"paced": effect("paced", 0.8, paced_ms / 0.8)},
    )
    assert name(seen)[0].cause == cause


def udp(treatment: str, **changed: float) -> UdpDocument:
    """UDP phases of 2,000 datagrams in which nothing was lost and nothing waited."""
    found: dict[str, object] = {
        "direction": "down", "treatment": treatment, "phases": 2, "sent_mbps": 5.0,
        "received_mbps": 5.0, "sent": 2000, "lost": 0, "lost_share": 0.0, "duplicates": 0,
        "reordered": 0, "reordered_share": 0.0, "discarded": 0, "loss_bursts": 0,
        "longest_burst": 0, "jitter_ms": 0.2, "delay_ms": {"p50": 0.1, "p95": 0.4},
    }  # fmt: skip
    if "lost" in changed:
        changed = {"lost_share": changed["lost"] / 2000, "longest_burst": 1, **changed}
    if "p95" in changed:
        found["delay_ms"] = {"p50": 0.1, "p95": changed.pop("p95")}
    one: UdpDocument = fitted({**found, **changed}, UdpDocument)
    return one


LOSSY = replace(HEALTHY, base_loss=0.02, rate={**HEALTHY.rate, "bbr": effect("bbr", 2.0)})


@pytest.mark.parametrize(
    ("paced", "below", "cause"),
    [
        # The interval of the paced treatment includes 1; half the rate tells.
        (effect("paced", 0.9, 0.02), udp("udp-50"), "policer"),
        (effect("paced", 0.1, 0.02), udp("udp-50", lost=40), "random-loss"),
        # With 60 datagrams one loss is expected: that none is lost says nothing.
        (effect("paced", 0.9, 0.02), udp("udp-50", sent=60), "random-loss"),
    ],
)
def test_udp_at_half_the_rate_tells_a_policer_from_random_loss(
    paced: Effect, below: UdpDocument, cause: str
) -> None:
    seen = replace(LOSSY, loss={"paced": paced}, udp={"udp-50": below})
    assert name(seen)[0].cause == cause


def test_datagrams_that_overtake_each_other_are_reordering() -> None:
    late = {one: udp(one, reordered=100, reordered_share=0.05) for one in ("udp-50", "udp-95")}
    seen = replace(LOSSY, loss={"paced": effect("paced", 0.9, 0.02)}, udp=late)
    first = name(seen)[0]
    assert first.cause == "reordering"
    assert "5 %" in first.evidence
    # Not where datagrams are lost as often as segments, nor where TCP reaches the capacity.
    lost = {one: {**late[one], "lost": 40, "lost_share": 0.02} for one in late}
    assert name(replace(seen, udp=fitted(lost, dict[str, UdpDocument])))[0].cause == "random-loss"
    assert name(replace(HEALTHY, udp=late))[0].cause == CAPACITY


def test_udp_that_is_lost_above_the_rate_without_a_wait_is_policed() -> None:
    rates = {"udp-50": udp("udp-50"), "udp-95": udp("udp-95", p95=0.6)}
    seen = replace(HEALTHY, base_loss=0.01)
    dropped = udp("udp-115", lost=240, p95=0.9)
    assert name(replace(seen, udp={**rates, "udp-115": dropped}))[0].cause == "policer"
    # With a queue what arrives waits.
    queued = udp("udp-115", lost=240, p95=30.0)
    assert name(replace(seen, udp={**rates, "udp-115": queued}))[0].cause == CAPACITY


def test_udp_that_is_lost_at_half_the_rate_is_random_loss() -> None:
    seen = replace(HEALTHY, udp={"udp-50": udp("udp-50", lost=60)})
    assert name(seen)[0].cause == "random-loss"
    burst = udp("udp-50", lost=60, longest_burst=60)
    assert name(replace(HEALTHY, udp={"udp-50": burst}))[0].cause == CAPACITY


def test_probes_that_are_lost_by_chance_prove_no_size() -> None:
    assert by_chance(replace(HEALTHY, sparse=lost(87, 9, 116)), 3)
    assert not by_chance(replace(HEALTHY, sparse=lost(10, 1, 116)), 3)
    assert not by_chance(replace(HEALTHY, sparse=lost(0, 0, 0)), 3)
    # The interface refuses the size: nothing was sent.
    assert not by_chance(replace(HEALTHY, sparse=lost(87, 9, 116)), 0)
