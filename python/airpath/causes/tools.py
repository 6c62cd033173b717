"""Causes of what tools told of a test: iperf3 each second, ss of its sockets, pings beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from airpath.causes.describe import ADVICE
from airpath.causes.features import UNKNOWN, Features, correlation, log10, spread
from airpath.causes.model import ANY, Answer, answer, packaged
from airpath.causes.phrases import HALF, evidence
from airpath.causes.rank import OF_SENDERS, Blame
from airpath.causes.suspect import Suspect, alike, in_words
from airpath.fitting.observed import Floats
from airpath.fitting.series import BYTES_PER_MS, MS, runs

LIMITS = ("receive_window", "send_buffer", "application")
"""What may hold a sender back, as ss tells it."""
MODEL = "tools.npz"
"""The learned model of what tools tell (`make causes`)."""
_WRONG_BLAME = 2.0
"""What blaming a healthy path costs, in right answers.

Less than where packets are seen: figures of whole seconds are rarely sure, and the answer names two
causes and what to run next.
"""
_MOST_NAMED = 2
"""Each second of a test leaves more open than its packets do."""
_LEAST = 0.1
"""Less likely causes are not named beside another: below that, probabilities are not calibrated."""
_CAPTURE = "capture at the sender (tcpdump -s 128)"
_SEGMENT_BYTES = 1448
"""Payload of a full segment over Ethernet, with timestamps (RFC 7323)."""
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Definition: the points that describe a distribution."""
_STILL, _REACHED, _FALLEN = 0.01, 0.8, 0.8
"""Definition: shares of the best rate that are none, or the rate; of cwnd, below which it fell."""
_TINY, _LITTLE, _LEAST_MS, _LEAST_BDP = 1e-6, 1e-4, 0.1, 0.01
"""Definition: 0 has no logarithm, and counts as this: shares, rates and uses, waits, BDPs."""
_TARGET_REACHED = 0.9
"""Definition: share of a rate that counts as reaching it; rates of tools leave headers out."""
_TEN = 10
"""Unit: the base of amounts' logarithms."""
_THIRDS = 3
"""Definition: the beginning, the middle and the end of a test."""
_BYTES, _AGAIN, _CWND, _RTT = range(4)
"""Columns."""


@dataclass(frozen=True)
class Pinged:
    """Pings: the share that was lost, and round trips in milliseconds."""

    lost: float
    trips_ms: tuple[float, float, float, float]
    """Least, median, 95 %, most."""


@dataclass(frozen=True)
class Told:
    """What tools told of the streams of one test; NaN is what they did not tell.

    ``streams``: for each second (rows) the bytes, the retransmissions, cwnd in bytes, and the
    smoothed RTT in milliseconds. ``limited``: for which share of the time what held the streams
    back (`LIMITS`).
    """

    streams: Sequence[Floats]
    limited: dict[str, float] = field(default_factory=dict)
    ping: Pinged | None = None
    target_mbps: float = 0.0
    """The rate that the test itself kept each stream to (-b); 0: none."""


def blame(told: Told) -> Blame:
    """The likeliest causes of what holds a test back; its streams have at least one second."""
    if (limited := _by_target(told)) is not None:
        return Blame("named", "", [limited])
    found = features(told)
    every = packaged(MODEL).probabilities(found)
    likely = best(every)
    if likely.causes:
        first, *others = likeliest(every)
        named = [first, *(one for one in others if one[1] >= _LEAST)]
        return Blame("named", "", [_suspect(cause, sure, found) for cause, sure in named])
    rate = f"The median second carried {_TEN ** found['log_rate_mbps']:.4g} Mb/s."
    if likely.leaning:
        return Blame(
            "unknown",
            f"{rate} Something other than the path's capacity probably costs a seventh of the "
            "rate or more, but values per second do not show what. Likeliest: "
            f"{in_words(likeliest(every))}. {_next(told)}",
            [],
        )
    return Blame(
        "bound",
        f"{rate} The path's capacity explains the test: the probability that something else costs "
        f"a seventh of the rate is {every[ANY]:.0%}.",
        [],
    )


def _by_target(told: Told) -> Suspect | None:
    """The limit that the test was given (-b), if it was reached: it tells nothing of the path."""
    least = min(float(np.median(one[:, _BYTES])) for one in told.streams)
    if not told.target_mbps or least / BYTES_PER_MS / MS < _TARGET_REACHED * told.target_mbps:
        return None
    return Suspect(
        OF_SENDERS,
        None,
        f"The test was limited to {told.target_mbps:.4g} Mb/s per stream (-b) and reached that, so "
        "it does not show what the path can carry.",
        (),
        advice="Test without -b.",
    )


def _next(told: Told) -> str:
    """What to run that was not run beside this test."""
    missing = [*([] if told.limited else ["ss"]), *([] if told.ping else ["a ping"])]
    if not missing:
        return f"{_CAPTURE[0].upper()}{_CAPTURE[1:]}."
    return f"Run {' and '.join(missing)} during the test, or {_CAPTURE}."


def best(probabilities: Mapping[str, float]) -> Answer:
    """What the probabilities of a test are answered with."""
    return answer(probabilities, _WRONG_BLAME)


def likeliest(probabilities: Mapping[str, float]) -> list[tuple[str, float]]:
    """The two likeliest causes."""
    every = [(cause, sure) for cause, sure in probabilities.items() if cause != ANY]
    return sorted(every, key=lambda one: -one[1])[:_MOST_NAMED]


def _suspect(cause: str, sure: float, found: Features) -> Suspect:
    model = packaged(MODEL)
    why = "; ".join(evidence(model.moved(cause, found), found))
    advice = f"{ADVICE[alike(cause)[0]]} To be surer, {_CAPTURE}."
    told = f"Strongest evidence: {why}." if why else "No single value stands out."
    cost = model.cost(cause, found)
    return Suspect(cause, cost, told, (), advice=advice, confidence=round(sure, 2))


def features(told: Told) -> Features:
    """The features of a test, in a fixed order; its streams have at least one second."""
    streams = told.streams
    seconds = max(map(len, streams))
    total, again = (_together(streams, column, seconds) for column in (_BYTES, _AGAIN))
    main = _known(max(streams, key=lambda one: float(np.nansum(one[:, _BYTES]))))
    means = [float(one[:, _BYTES].mean()) for one in streams]
    found: Features = {
        "streams": len(streams),
        "test_s": log10(seconds),
        "fairness": min(means) / max(means) if len(means) > 1 and max(means) else UNKNOWN,
    }
    found |= _rates(total) | _again(again, total) | _window(main) | _trips(main)
    found |= {f"limited_{name}": told.limited.get(name, UNKNOWN) for name in LIMITS}
    ping, trips = told.ping, main[:, _RTT]
    least, middle, high, most = ping.trips_ms if ping else (UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN)
    found |= {
        "ping_lost": ping.lost if ping else UNKNOWN,
        "ping_ms": log10(least),
        "ping_50": middle / least,
        "ping_95": high / least,
        "ping_max": most / least,
        "rtt_to_ping": float(np.median(trips)) / least,
    }
    return {name: float(value) for name, value in found.items()}


def _known(stream: Floats) -> Floats:
    """The stream with NaN for a cwnd or an RTT of 0, which was rounded or is not measured yet."""
    known = stream.copy()
    states = known[:, _CWND:]
    states[states <= 0] = np.nan
    return known


def _together(streams: Sequence[Floats], column: int, seconds: int) -> Floats:
    """The sum over streams, which may end at different times."""
    found = np.zeros(seconds)
    for one in streams:
        found[: len(one)] += one[:, column]
    return found


def _rates(total: Floats) -> Features:
    best = max(1.0, float(np.quantile(total, _QUANTILES[-1])))
    shares = total / best
    low = shares < _STILL
    begins, ends = runs(low)
    thirds = np.array_split(shares, _THIRDS)
    reached = np.flatnonzero(shares >= _REACHED)
    return spread("rate", shares, _QUANTILES) | {
        "log_rate_mbps": log10(float(np.median(total)) / BYTES_PER_MS / MS + _LITTLE),
        "rate_spread": float(shares.std() / max(_TINY, shares.mean())),
        "rate_next": correlation(shares[:-1], shares[1:]),
        "rate_first": float(shares[0]),
        "rate_second": float(shares[1]) if len(shares) > 1 else UNKNOWN,
        "ramp_seconds": float(reached[0]) if len(reached) else UNKNOWN,
        "rate_trend": float(thirds[2].mean() / max(_TINY, thirds[1].mean()))
        if len(shares) > 2
        else UNKNOWN,
        "still_share": float(low.mean()),
        "longest_still_s": float(max(ends - begins, default=0)),
    }


def _again(again: Floats, total: Floats) -> Features:
    some = again > 0
    count = float(again.sum())
    known = np.isfinite(count)
    return {
        "again": log10(count * _SEGMENT_BYTES / max(1.0, float(total.sum())) + _TINY),
        "log_again": log10(count + HALF),
        "again_seconds": float(some.mean()) if known else UNKNOWN,
        "again_most": float(again.max() / count) if count > 0 else UNKNOWN,
        "again_first": float(again[:2].sum() / count) if count > 0 else UNKNOWN,
        "again_at_once": log10(float(np.median(again[some]))) if some.any() else UNKNOWN,
        "again_rate": correlation(again, total) if known else UNKNOWN,
        "again_then": correlation(again[:-1], total[1:]) if known else UNKNOWN,
    }


def _window(main: Floats) -> Features:
    cwnd, used = main[:, _CWND], main[:, _BYTES] * main[:, _RTT] / MS
    most = float(np.max(cwnd))
    before, after = cwnd[:-1], cwnd[1:]
    several = len(before) > 0 and np.isfinite(most)
    return spread("cwnd", cwnd / most, _QUANTILES) | {
        "cwnd_segments": log10(float(np.median(cwnd)) / _SEGMENT_BYTES),
        "cwnd_least": log10(float(np.min(cwnd)) / _SEGMENT_BYTES),
        "cwnd_flat": float((after == before).mean()) if several else UNKNOWN,
        "cwnd_falls": float((after < _FALLEN * before).mean()) if several else UNKNOWN,
        "cwnd_trend": float(after[-1] / before[len(before) // 2]) if several else UNKNOWN,
        "cwnd_used": log10(float(np.median(used / cwnd)) + _LITTLE),
        "cwnd_used_most": log10(float(np.max(used / cwnd)) + _LITTLE),
    }


def _trips(main: Floats) -> Features:
    trips, cwnd = main[:, _RTT], main[:, _CWND]
    least = float(np.min(trips))
    bdp = float(np.median(main[:, _BYTES])) * least / MS
    return spread("rtt", trips / least, _QUANTILES) | {
        "rtt_ms": log10(least),
        "rtt_wait_ms": log10(float(np.median(trips)) - least + _LEAST_MS),
        "rtt_max": float(np.max(trips)) / least,
        "rtt_first": float(trips[0]) / least,
        "rtt_cwnd": correlation(trips, cwnd),
        "bdp_segments": log10(bdp / _SEGMENT_BYTES + _LEAST_BDP),
        "cwnd_bdp": log10(float(np.median(cwnd)) / max(1.0, bdp)),
    }
