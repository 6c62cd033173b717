"""Features of a group of transfers in a capture: numbers from which causes are inferred.

A feature that the capture does not show is NaN: the window without both SYNs, the sender's bytes in
flight seen from the receiver, one-way waits without timestamps. Times are in round trips where a
cause is a matter of round trips, and in milliseconds where it is one of a host or of a radio;
amounts are logarithms.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from airpath.causes.group import Group
from airpath.causes.traits import Transfer
from airpath.documents import CaptureReport
from airpath.fitting import series
from airpath.fitting.observed import Floats
from airpath.fitting.path import wait_before
from airpath.readers.flows import ENDS, limited_s, total_bytes, volume

Features = dict[str, float]
UNKNOWN = float("nan")

_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
"""Definition: the points that describe a distribution, the tails and the middle."""
_OF_RATES = (0.05, 0.25, 0.5, 0.75, 0.99)
"""Definition: those of rates, which are relative to the best one."""
_TAILS = (0.05, 0.5, 0.95, 0.99)
"""Definition: those of a distribution whose rare large values matter."""
_BEST = 0.95
"""Definition: the best rate is the one that a twentieth of the bins exceeds."""
_GAP_ROUNDS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Definition: octaves about a round trip."""
_GAPS_MS = (20, 50, 100, 200, 400)
"""Definition: octaves from a TDD pattern's time to RLC's and PDCP's timers and RRC's procedures."""
_LONGEST = (0, 1, 2, 4)
"""Definition: which of the longest gaps are described."""
_LAGS = (1, 8, 64)
"""Definition: how many packets apart waits are compared."""
_TRAINS = (8, 24)
"""Definition: arrivals in a train, shorter and longer than a transport block's."""
_SLOTS_MS = (0.5, 1.0, 5 / 3, 2.0, 5.0, 10.0)
"""Slots: of NR, LTE, EV-DO, HSPA, half and whole frames (TS 38.211 4.3, TS 36.211 4, C.S0024)."""
_SLOT_WITHIN_MS = 0.04
"""Definition: a time is in a slot's raster if it is as near, a twelfth of the shortest slot."""
_TOGETHER_MS = 0.3
"""Definition: packets arrive together if they are less apart, more than a host's noise."""
_AT_ONCE_MS = 0.1
"""Hosts and captures take about this time, simulated ones none: shorter times count as this."""
_FEW = 0.03
"""Smaller shares count as 0: a kernel has some of everything, a simulated host has exactly 0."""
_OUT_OF_ORDER = 0.003
"""Smaller shares count as 0, for the same reason."""
_LITTLE = 0.002
"""Share of the transfers' bytes: connections with less are not counted (iperf3's control)."""
_LEAST_ECHO = 0.05
"""Share of the base RTT: a shorter echo ends next to the capture point."""
_BIN_MS = 200.0
"""Definition: a fifth of a second."""
_MOST_BINS = 100_000
"""Bound: a file with absurd times has any number of empty bins."""
_EARLY_MS = (4, 16, 64, 256)
"""Definition: every other octave from a radio's frame to slow start over a long path."""
_BEGINS = 0.1
"""Definition: a tenth of the bytes is the beginning."""
_LEAST_ROUND_MS = 20.0
"""Definition: a bin of two round trips is at least as long, the time that a frame or two take."""
_LEAST_MS, _LEAST_SHARE, _LEAST_COUNT, _LEAST_ROUNDS = 0.01, 1e-6, 0.5, 0.1
"""Definition: 0 has no logarithm, and counts as this."""
_PERCENT = 100
"""Unit."""
_LEAST_BURST_MS, _BURST = 2.0, 0.05
"""Definition: what ends a gap comes within this time, or within this share of the gap."""
_LONGEST_WAIT = 0.98
"""Definition: waits above this quantile are not a queue's, but a radio's repetitions."""
_FALL = 0.3
"""Definition: a wait falls at once by this share of the queue."""
_SOME = 20
"""Values below which a correlation or a share is chance."""
_MOST_POINTS = 2000
"""Bound: of a rank correlation; more do not change it."""
_THIRDS, _QUARTERS, _TENTHS = 3, 4, 10
"""Definition: parts of a transfer; slow start is over after the first third."""
_LATER, _LATE = 3, 7
"""Definition: tenths in which the middle begins, and the end; the middle is as long as that."""
_FEW_RUNS = 3
"""Losses and gaps; how regular fewer are is chance."""
_AROUND = 3
"""Packets of which the first after a gap may not know its wait."""
_FEW_PAIRS = 4
"""Pairs below which a correlation is not defined well enough to be called one."""
_FIRST, _FIRST_FEW = 40, 10
"""Definition: segments of the beginning, two usual windows and one (RFC 6928)."""
_LONGEST_GAPS, _ALIKE = 6, 8
"""Definition: gaps that are described, and those whose lengths are compared."""


def features(group: Group, report: CaptureReport) -> Features:
    """The features of a group of a capture's transfers, in a fixed order."""
    found: Features = _others(group, report)
    for part in (
        _scale, _rate, _gaps, _waits, _way_back, _losses, _flight, _windows, _beginning, _end,
    ):  # fmt: skip
        found |= part(group)
    return {name: float(value) for name, value in found.items()}


def _others(group: Group, report: CaptureReport) -> Features:
    """What else is in the capture: datagrams in the same direction, other connections, pings."""
    main = group.main.seen
    ours = sum(one.wire_bytes for one in group.transfers)
    flows = [one for one in report["flows"] if one["interface"] == main.flow["interface"]]
    numbers = {one.seen.flow["id"] for one in group.transfers}
    datagrams = sum(
        volume(one, end)["bytes"]
        for one in flows
        for end, _ in ENDS
        if one["protocol"] == "udp" and one[end] == main.flow[main.sender]
    )
    every = [one for one in flows if one["tcp"] and one["id"] not in numbers]
    tcp = [one for one in every if total_bytes(one) > _LITTLE * ours]
    echoes = [one["icmp"] for one in flows if one["icmp"] and one["icmp"]["rtt_ms"]]
    echo = max(echoes, key=lambda one: one["replies"], default=None)
    rtt = echo["rtt_ms"] if echo else None
    found: Features = {
        "datagram_share": datagrams / max(1, datagrams + ours),
        "other_connections": len(tcp),
        "other_share": sum(map(total_bytes, tcp)) / max(1, ours),
        "echo_lost": echo["unanswered"] / max(1, echo["requests"]) if echo else UNKNOWN,
    }
    # Next to the host that replies, an echo shows nothing of the path.
    told = rtt is not None and rtt["p50"] > _LEAST_ECHO * group.base_ms
    for name in ("min", "p50", "p95", "max"):
        found[f"echo_{name}"] = rtt[name] / group.base_ms if rtt and told else UNKNOWN
    return found


def _above(value: float, least: float) -> float:
    """The value, or 0 if it is smaller than ``least``."""
    return 0.0 if value < least else value


def log10(value: float | None) -> float:
    """Unknown without a value above 0."""
    return UNKNOWN if value is None or not value > 0 else float(np.log10(value))


def median(values: Sequence[float] | NDArray[Any]) -> float:
    """Unknown without values."""
    return float(np.median(values)) if len(values) else UNKNOWN


def mean(values: Sequence[float] | NDArray[Any]) -> float:
    """Unknown without values."""
    return float(np.mean(values)) if len(values) else UNKNOWN


def variation(values: Floats, least: int = 1) -> float:
    """The standard deviation over the mean; unknown with no more values than ``least``."""
    return float(values.std() / (values.mean() or UNKNOWN)) if len(values) > least else UNKNOWN


def spread(name: str, values: Floats, shares: Sequence[float] = _QUANTILES) -> Features:
    """Quantiles, by name."""
    values = values[np.isfinite(values)]
    points = np.quantile(values, shares) if len(values) else np.full(len(shares), UNKNOWN)
    names = [f"{name}_{round(share * _PERCENT)}" for share in shares]
    return dict(zip(names, points.tolist(), strict=True))


def log_spread(
    name: str, values: Floats, shares: Sequence[float] = _QUANTILES, add: float = _LEAST_MS
) -> Features:
    """Logarithms of quantiles, by name."""
    return {key: log10(value + add) for key, value in spread(name, values, shares).items()}


def correlation(one: Floats, other: Floats, least: int = _FEW_PAIRS) -> float:
    """Pearson's; unknown with fewer pairs, or where one does not vary."""
    usable = np.isfinite(one) & np.isfinite(other)
    one, other = one[usable], other[usable]
    if len(one) < least or one.std() == 0 or other.std() == 0:
        return UNKNOWN
    return float(np.corrcoef(one, other)[0, 1])


def _scale(group: Group) -> Features:
    main = group.main
    seen = main.seen
    options = main.stream["options"]
    first, _, third = seen.handshake
    return {
        "cut_options": UNKNOWN if options is None else options["cut"],
        "log_rounds": log10(group.span_ms / group.base_ms),
        "log_base_ms": log10(group.base_ms),
        "log_rate_mbps": log10(group.rate_mbps),
        "log_capacity_mbps": log10(group.capacity_mbps),
        "log_bdp_segments": log10(group.bdp_bytes / max(1, main.segment_bytes)),
        "log_segments": log10(len(seen.sent)),
        "segment_bytes": main.segment_bytes,
        "transfers": len(group.transfers),
        "is_alone": group.is_alone,
        "handshake_rounds": UNKNOWN
        if first is None or third is None
        else (third - first) / main.base_ms,
        "starts_seen": first is not None,
        "finished": seen.fin is not None,
        "unacknowledged": float(np.isnan(seen.acked).mean()),
    }


def _rate(group: Group) -> Features:
    found: Features = {"busy": group.busy}
    for name, width in (("bin", _BIN_MS), ("round", max(2 * group.base_ms, _LEAST_ROUND_MS))):
        found |= spread(f"rate_{name}", _relative_rates(group, width), _OF_RATES)
    edges = np.linspace(0, 1, _TENTHS + 1)
    steps = np.array([group.rate_between(*pair) for pair in pairwise(edges)])
    found |= {f"tenth_{index}": step for index, step in enumerate(steps / (max(steps) or UNKNOWN))}
    found["late_spread"] = variation(steps[_LATER:])
    found["trend"] = steps[_LATE:].mean() / (steps[_LATER : 2 * _LATER].mean() or UNKNOWN)
    each = [one.late_mbps for one in group.transfers if one.seconds >= group.seconds / 2]
    found["most_to_least"] = log10(max(each) / (min(each) or UNKNOWN)) if len(each) > 1 else UNKNOWN
    found["first_to_capacity"] = group.main.first_mbps / group.capacity_mbps
    early = group.early_excess
    found["early_excess"] = 1.0 if early is None else early[1] / (early[2] or UNKNOWN)
    found |= _early(group)
    late, total = (each[len(each) // _THIRDS :] for each in group.arrivals)
    for train in _TRAINS:
        rates = series.trains(late, total, train) if len(late) >= _THIRDS * train else np.zeros(0)
        low, middle, high = spread("", rates, _OF_RATES[1:-1]).values()
        found[f"train_{train}_spread"] = (high - low) / (middle or UNKNOWN)
    return found


def _early(group: Group) -> Features:
    """The most that came within a window at first, over what comes later: a full bucket of tokens.

    A bucket that was full lets its first bytes through at the rate of the link (RFC 2697 2).
    """
    at, added = group.passages
    total = np.cumsum(added)
    first = total <= _BEGINS * total[-1]
    later = at > at[0] + group.span_ms / _THIRDS
    found: Features = {}
    for window in _EARLY_MS:
        came = total[np.searchsorted(at, at + window) - 1] - total + added
        usual = np.quantile(came[later], _BEST) if later.any() else 0.0
        found[f"early_{window}"] = (
            log10(came[first].max() / usual) if first.any() and usual else UNKNOWN
        )
    return found


def _relative_rates(group: Group, width_ms: float) -> Floats:
    """The rate in each bin, over the best."""
    rates, counts = series.rates(*group.arrivals, group.begin_ms, group.end_ms, width_ms)
    if not len(rates):
        return rates
    times = np.maximum(1, counts.astype(np.int64))
    left = np.maximum(0, _MOST_BINS - (np.cumsum(times) - times))
    every = np.repeat(rates, np.minimum(times, left))
    return every / (np.quantile(every, _BEST) or UNKNOWN)


def _gaps(group: Group) -> Features:
    apart = np.diff(group.arrivals[0])
    span, base = group.span_ms, group.base_ms
    found: Features = {}
    for trips in _GAP_ROUNDS:
        found[f"gap_rounds_{trips}"] = apart[apart > trips * base].sum() / span
    found["hollow"] = found["gap_rounds_0.5"]
    for least in _GAPS_MS:
        found[f"gap_ms_{least}"] = apart[apart > least].sum() / span
        found[f"gap_count_{least}"] = (apart > least).sum() / group.seconds
    longest = np.sort(apart)[::-1]
    for index in _LONGEST:
        value = float(longest[index]) if index < len(longest) else UNKNOWN
        found[f"longest_gap_{index}_ms"] = log10(value)
        found[f"longest_gap_{index}_rounds"] = log10(value / base)
    visible = np.maximum(apart, _AT_ONCE_MS)
    found |= spread("apart_ms", visible, _TAILS)
    service = group.main.segment_bytes / group.capacity_mbps / series.BYTES_PER_MS
    found |= spread("apart_services", visible / service)
    found["arrive_together"] = mean(apart < _TOGETHER_MS * min(1.0, service))
    some = apart[apart > _AT_ONCE_MS]
    for slot in _SLOTS_MS:
        near = np.abs(some / slot - np.round(some / slot)) * slot < _SLOT_WITHIN_MS
        found[f"slot_{slot:.3g}"] = near.mean() if len(some) > _SOME else UNKNOWN
    return found | _silences(group) | _at_gaps(group)


def _silences(group: Group) -> Features:
    """How long, how often and how regularly nothing arrived although data was under way."""
    lengths = np.array([one.length_ms for one in group.gaps])
    long = group.long_gaps
    between = np.diff([one.at_ms for one in long])
    return {
        "gaps": len(lengths) / group.seconds,
        "gaps_share": lengths.sum() / group.span_ms,
        "gap_alike": variation(np.sort(lengths)[::-1][:_ALIKE], 2),
        "long_gaps": len(long),
        "long_gap_ms": log10(median([one.length_ms for one in long])),
        "long_gap_period": variation(between),
        "long_gap_apart_s": log10(median(between) / series.MS),
        "silences": len(group.silences),
        "silent_share": group.silent_share,
        "silences_regular": group.is_regular,
        "losses_at_silences": group.losses_at_silences,
        "stillness": group.stillness if group.loss_share else UNKNOWN,
    }


def _at_gaps(group: Group) -> Features:
    """What the longest gaps are like: what came before, and what ended them."""
    main = group.main
    seen = main.seen
    carries = group.capacity_mbps * series.BYTES_PER_MS
    names = ("burst", "again", "wait", "sent", "lost")
    found: dict[str, list[float]] = {name: [] for name in names}
    for gap in sorted(group.gaps, key=lambda one: -one.length_ms)[:_LONGEST_GAPS]:
        end = gap.at_ms + gap.length_ms
        window = max(_LEAST_BURST_MS, _BURST * gap.length_ms)
        # What came at once when it ended, over what the path carries in the time.
        first, last = np.interp([end - 1 / series.MS, end + window], *group.arrivals)
        found["burst"].append((last - first) / max(1.0, carries * window))
        index = int(np.searchsorted(seen.sent, end))
        if not main.at_sender and index < len(seen.sent):
            found["again"].append(seen.is_again[index])
            around = main.waits[index : index + _AROUND]
            if np.isfinite(around).any():
                found["wait"].append(np.nanmax(around) / gap.length_ms)
        inside = (seen.sent > gap.at_ms) & (seen.sent < end)
        found["sent"].append(inside.sum() * main.segment_bytes / gap.length_ms / carries)
        found["lost"].append(main.lost[inside].mean() if inside.any() else 0.0)
    again = mean(found.pop("again"))
    return {"gap_ends_again": again} | {f"gap_{key}": median(each) for key, each in found.items()}


def _waits(group: Group) -> Features:
    main = group.main
    waits, flight = main.waits, main.flight.astype(float)
    known = waits[np.isfinite(waits)]
    steps = np.diff(known)
    found = spread("wait_rounds", known / group.base_ms) | log_spread("wait_ms", known)
    found |= log_spread("wait_jump_ms", np.abs(steps), _TAILS[1:])
    found |= {
        "typical_wait_rounds": group.typical_wait_ms / group.base_ms,
        "typical_wait_ms": group.typical_wait_ms,
        "queue_ms": log10(group.queue_ms + _LEAST_MS),
        "queue_rounds": group.queue_ms / group.base_ms,
        "wait_flight_rank": _rank_correlation(waits, flight),
        "wait_time_rank": _rank_correlation(waits, main.seen.sent),
        "wait_rises": mean(steps > 0),
        "falls_at_once": mean(steps < -_FALL * max(_LEAST_MS, group.queue_ms)),
        "overtaken": _above(max(one.overtaken for one in group.transfers), _OUT_OF_ORDER),
    }
    for lag in _LAGS:
        found[f"wait_lag_{lag}"] = correlation(known[:-lag], known[lag:], _THIRDS * lag + _SOME)
    late = known[len(known) // _THIRDS :]
    low = np.quantile(late, _QUANTILES[0]) if len(late) else UNKNOWN
    found["wait_low_late"] = low / group.base_ms
    return found


def _rank_correlation(first: Floats, second: Floats) -> float:
    """Spearman's, of the pairs of which both are known."""
    usable = np.isfinite(first)
    step = max(1, usable.sum() // _MOST_POINTS)
    one, other = (np.argsort(np.argsort(each[usable][::step])) for each in (first, second))
    return correlation(one.astype(float), other.astype(float), _SOME)


def _way_back(group: Group) -> Features:
    main = group.main
    seen = main.seen
    low, middle, high = main.back_ms or (UNKNOWN, UNKNOWN, UNKNOWN)
    acks = main.stream["acks"]
    interval = (acks["batch_interval_ms"] if acks else None) or UNKNOWN
    apart = np.diff(seen.ack[seen.is_pure])
    found: Features = {
        "back_5": low, "back_50": middle, "back_95": high,
        "back_50_rounds": middle / group.base_ms, "back_95_rounds": high / group.base_ms,
        "back_falls": main.back_falls,
        "back_together": UNKNOWN if main.back_together is None else main.back_together,
        "acks_per_batch": acks["per_batch"] if acks else UNKNOWN,
        "ack_interval_rounds": interval / group.base_ms,
        "ack_interval_ms": interval,
        "segments_per_ack": (acks["bytes_per_ack"] / main.segment_bytes) if acks else UNKNOWN,
        "batch_ms": main.path.batch_ms or 0.0,
        "acks_together": mean(apart < _TOGETHER_MS),
        "duplicate_acks": main.stream["duplicate_acks"] / max(1, len(seen.ack)),
    }  # fmt: skip
    shares = (_OF_RATES[0], *_OF_RATES[2:-1], *_TAILS[2:])
    return found | log_spread("acks_apart_ms", np.maximum(apart, _AT_ONCE_MS), shares, 0.0)


def _losses(group: Group) -> Features:
    main = group.main
    again = main.stream["retransmissions"]
    lost = sum(len(one.loss_at) for one in group.transfers)
    episodes = sum(len(one.episodes) for one in group.transfers)
    sent, rounds = len(main.seen.sent), max(1.0, group.span_ms / main.typical_rtt_ms)
    repeated = max(1, again["packets"])
    begins, ends = series.runs(main.lost[~main.seen.is_again] & main.at_sender)
    at = np.sort(np.concatenate([one.sent_ms[one.loss_at] for one in group.transfers]))
    apart = np.diff(at[np.diff(at, prepend=-np.inf) > main.typical_rtt_ms])
    flying, bucket = group.loss_flight, group.bucket
    rank, far = flying or (UNKNOWN, UNKNOWN)
    found: Features = {
        "loss": log10(group.loss_share + _LEAST_SHARE),
        "late_loss": log10(group.late_loss_share + _LEAST_SHARE),
        "lost_per_episode": lost / episodes if episodes else UNKNOWN,
        "log_episodes": log10(episodes + _LEAST_COUNT),
        "episodes_per_round": episodes / rounds,
        "loss_window": log10(group.loss_window),
        "spurious": again["spurious"] / repeated,
        "fast_share": again["fast"] / repeated,
        "timeouts": again["timeout"] / repeated,
        "timeouts_per_s": again["timeout"] / group.seconds,
        "retransmitted": log10(float(main.seen.is_again.mean()) + _LEAST_SHARE),
        "out_of_order": log10(main.stream["out_of_order_packets"] / sent + _LEAST_SHARE),
        "lost_again": float((main.seen.sent_again > 1).sum()) / max(1, lost),
        "loss_wait_rank": UNKNOWN if group.loss_wait is None else group.loss_wait,
        "loss_flight_rank": rank,
        "loss_flight_far": far,
        "bucket_match": bucket.match if bucket else UNKNOWN,
        "bucket_level": log10(bucket.level_bytes / max(1, group.bdp_bytes)) if bucket else UNKNOWN,
        "bucket_rate": bucket.rate_mbps / group.capacity_mbps if bucket else UNKNOWN,
        "bucket_drain_ms": log10(bucket.level_bytes / bucket.rate_mbps / series.BYTES_PER_MS)
        if bucket
        else UNKNOWN,
        "loss_run": mean(ends - begins),
        "longest_loss_run": max(ends - begins, default=UNKNOWN),
        "losses_apart_spread": variation(apart, _FEW_RUNS),
        "losses_apart_rounds": log10(median(apart) / group.base_ms),
        "wait_at_loss": _wait_at_losses(group),
        "first_loss": (float(at[0]) - group.begin_ms) / group.span_ms if len(at) else UNKNOWN,
        "small_share": _above(float((main.seen.payload < main.segment_bytes).mean()), _FEW),
    }
    return found


def _wait_at_losses(group: Group) -> float:
    """What the segment before a loss waited, over the longest wait."""
    main = group.main
    known = main.waits[np.isfinite(main.waits)]
    if not len(known) or not len(main.episodes):
        return UNKNOWN
    longest = max(float(np.quantile(known, _LONGEST_WAIT)), 1 / series.MS)
    return median(wait_before(main.waits, np.array(main.episodes))) / longest


def _flight(group: Group) -> Features:
    main = group.main
    late = main.flight[len(main.flight) // _THIRDS :].astype(float)
    quarter = len(late) // _QUARTERS
    found = _sending(main)
    if not main.at_sender or not quarter:
        return found | dict.fromkeys(_OF_FLIGHT, UNKNOWN)
    low, middle, high, most = np.quantile(late, _TAILS)
    if not most:
        return found | dict.fromkeys(_OF_FLIGHT, UNKNOWN)
    first, last = (np.quantile(each, _BEST) for each in (late[:quarter], late[-quarter:]))
    bdp = max(1.0, group.bdp_bytes)
    values = (
        log10(most / bdp), log10(middle / bdp), low / most, high / most, main.ceiling_share,
        middle / most, last / max(1.0, first), log10(most / main.segment_bytes),
    )  # fmt: skip
    return found | dict(zip(_OF_FLIGHT, values, strict=True))


_OF_FLIGHT = ("flight_bdp_max", "flight_bdp_50", "flight_bdp_5", "flight_bdp_95", "ceiling",
              "flat", "flight_trend", "flight_segments")  # fmt: skip
"""What only a capture that shows the bytes in flight tells."""


def _sending(main: Transfer) -> Features:
    sending = main.stream["sending"]
    unprompted = sending["unprompted"] if sending else None
    apart = np.diff(main.seen.sent[~main.seen.is_again])
    return {
        "per_burst": sending["per_burst"] if sending else UNKNOWN,
        "largest_burst": log10(sending["largest_burst"]) if sending else UNKNOWN,
        "unprompted": UNKNOWN if unprompted is None else _above(unprompted, _FEW),
    } | log_spread("sent_apart_ms", np.maximum(apart, _AT_ONCE_MS), _TAILS, 0.0)


def _windows(group: Group) -> Features:
    main = group.main
    limits = main.stream["limits"]
    flight = float(np.quantile(main.flight, _TAILS[-1])) if main.at_sender else 0.0
    window = main.window_bytes
    # Without the window's scale nobody knows when it was full.
    unscaled = 0.0 if window else UNKNOWN
    found: Features = {
        "window_share": _above(main.window_share, _FEW) + unscaled,
        "limited_share": _above(main.limited_share, _FEW) + unscaled,
        "window_steady": main.window_steady,
        "window_bdp": log10(window / max(1, group.bdp_bytes)) if window else UNKNOWN,
        "window_to_flight": log10(window / flight) if window and flight else UNKNOWN,
        "idle_share": main.idle_share,
        "pauses": len(main.pauses) / main.seconds,
    }
    raw = main.seen.window[1:].astype(float)
    top = raw.max() if len(raw) else 0.0
    found |= spread("window", raw / top if top else np.zeros(0), _QUANTILES[:-2])
    total = limited_s(limits) if limits else 0.0
    for name in ("path_s", "receive_window_s", "nothing_to_send_s", "recovery_s"):
        share = float(limits[name]) / total if limits and total else UNKNOWN
        found[f"limit_{name}"] = _above(share, _FEW)
    for name in ("limit_path_s", "limit_receive_window_s"):
        found[name] += unscaled
    return found


def _beginning(group: Group) -> Features:
    main = group.main
    start = main.stream["slow_start"]
    ended = start["ended_by"] if start else None
    ramp_s, exit_bytes = main.ramp_share * main.seconds, main.exit_bytes
    # How long each of the first segments and acknowledgements took.
    known = main.waits[:_FIRST]
    known = known[np.isfinite(known)] / main.base_ms
    return {
        "ramp_share": main.ramp_share,
        "ramp_s": log10(ramp_s + _LEAST_MS),
        "ramp_rounds": log10(ramp_s * series.MS / main.base_ms + _LEAST_ROUNDS),
        "exit_bdp": log10(exit_bytes / max(1, group.bdp_bytes)) if exit_bytes else UNKNOWN,
        "exit_by_no_growth": UNKNOWN if ended is None else ended == "no-growth",
        "first_wait_rounds": known[0] if len(known) else UNKNOWN,
        "first_waits_rounds": max(known[:_FIRST_FEW], default=UNKNOWN),
    }


def _end(group: Group) -> Features:
    """Whether the rate still grew when the transfer ended, and by how much it exceeds the mean."""
    rounds = group.last_rounds
    late, last = (rounds[at : at + 2].sum() for at in (2, 0))
    return {
        "rounds_grown": group.rounds_grown,
        "grown_share": group.rounds_grown / len(rounds),
        "end_growth": log10(last / late) if late else UNKNOWN,
        "end_to_mean": log10(group.end_mbps / group.rate_mbps),
        "late_to_mean": log10(group.rate_between(0.5, 1.0) / group.rate_mbps),
    }
