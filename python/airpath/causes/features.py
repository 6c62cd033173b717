"""Features of a group of transfers in a capture: numbers from which causes are inferred.

A feature that the capture does not show is NaN: the window without both SYNs, the sender's bytes in
flight seen from the receiver, one-way waits without timestamps. Times are in round trips where a
cause is a matter of round trips, and in milliseconds where it is one of a host or of a radio;
amounts are logarithms.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from airpath.causes.group import Group
from airpath.causes.traits import Transfer
from airpath.documents import CaptureReport
from airpath.fitting import bins
from airpath.fitting.observed import Floats
from airpath.fitting.path import wait_before
from airpath.readers.flows import ENDS, total_bytes, volume

Features = dict[str, float]
UNKNOWN = float("nan")

_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
_MOST_BINS = 100_000
_TENTHS = np.linspace(0.0, 1.0, 11)
_LEAST_ECHO = 0.05
"""Share of the base RTT: a shorter echo ends next to the capture point."""
_AT_ONCE_MS = 0.1
"""Hosts and captures take about this time, simulated ones none: shorter times count as this."""
_FEW = 0.03
"""Smaller shares count as 0: a kernel has some of everything, a simulated host has exactly 0."""
_OUT_OF_ORDER = 0.003
_LITTLE = 0.002
"""Share of the transfers' bytes: connections with less are not counted (iperf3's control)."""
_REQUESTS = 10
"""Packets with data that a receiver sends before they count: a handshake of TLS, a request."""
_SLOTS_MS = (0.5, 1.0, 5 / 3, 2.0, 5.0, 10.0)


def features(group: Group, report: CaptureReport) -> Features:
    """The features of a group of a capture's transfers, in a fixed order."""
    found: Features = _others(group, report)
    for part in (_scale, _rate, _gaps, _waits, _way_back, _losses, _flight, _windows, _beginning):
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


def spread(name: str, values: Floats, shares: Sequence[float] = _QUANTILES) -> Features:
    """Quantiles, by name."""
    values = values[np.isfinite(values)]
    points = np.quantile(values, shares) if len(values) else np.full(len(shares), UNKNOWN)
    return {
        f"{name}_{round(share * 100)}": point for share, point in zip(shares, points, strict=True)
    }


def _scale(group: Group) -> Features:
    main = group.main
    seen = main.seen
    options = main.stream["options"]
    answers = _above(seen.other["data_packets"], _REQUESTS)
    return {
        "at_sender": main.at_sender,
        "between": seen.place == "between",
        "knows_timestamps": float(np.isfinite(seen.timestamp).mean()),
        "cut_options": UNKNOWN if options is None else options["cut"],
        "log_rounds": log10(group.seconds * 1e3 / group.base_ms),
        "log_base_ms": log10(group.base_ms),
        "log_rate_mbps": log10(group.rate_mbps),
        "log_capacity_mbps": log10(group.capacity_mbps),
        "log_bdp_segments": log10(group.bdp_bytes / max(1, main.segment_bytes)),
        "log_segments": log10(len(seen.sent)),
        "segment_bytes": main.segment_bytes,
        "transfers": len(group.transfers),
        "is_alone": group.is_alone,
        "handshake_rounds": _handshake(main),
        "finished": seen.fin is not None,
        "unacknowledged": 1 - len(seen.acked[~np.isnan(seen.acked)]) / max(1, len(seen.acked)),
        "answers": answers / max(1, len(seen.sent)),
        "log_answers": log10(max(_REQUESTS, answers)),
    }


def _handshake(main: Transfer) -> float:
    first, second, third = main.seen.handshake
    if first is None or second is None or third is None:
        return UNKNOWN
    return (third - first) / main.base_ms


def _rate(group: Group) -> Features:
    at, total = group.arrivals
    found: Features = {"busy": group.busy}
    widths = {"bin": 200.0, "round": max(2 * group.base_ms, 20.0)}
    for name, width in widths.items():
        rates, counts = bins.rates(at, total, group.begin_ms, group.end_ms, width)
        if not len(rates):
            found |= spread(f"rate_{name}", np.zeros(0))
            continue
        # A file with absurd times has any number of empty bins.
        times = np.maximum(1, counts.astype(np.int64))
        left = np.maximum(0, _MOST_BINS - (np.cumsum(times) - times))
        every = np.repeat(rates, np.minimum(times, left))
        top = max(float(np.quantile(every, 0.95)), 1e-9)
        found |= spread(f"rate_{name}", every / top)
    steps = [group_rate(group, low, high) for low, high in pairwise(_TENTHS)]
    best = max([*steps, 1e-9])
    found |= {f"tenth_{index}": step / best for index, step in enumerate(steps)}
    late = np.array(steps[3:])
    found["late_spread"] = float(late.std() / max(late.mean(), 1e-9))
    found["trend"] = float(np.mean(steps[7:])) / max(1e-9, float(np.mean(steps[3:6])))
    each = [one.late_mbps for one in group.transfers if one.seconds >= 0.5 * group.seconds]
    found["most_to_least"] = log10(max(each) / max(1e-6, min(each))) if len(each) > 1 else UNKNOWN
    found["first_to_capacity"] = group.first_mbps / group.capacity_mbps
    early = group.early_excess
    found["early_excess"] = 1.0 if early is None else early[1] / (early[2] or UNKNOWN)
    found["is_smooth"] = group.is_smooth
    for train in (8, 24):
        found[f"train_{train}_spread"] = _train_spread(at, total, train)
    return found


def group_rate(group: Group, begin: float, end: float) -> float:
    """Mb/s that arrived between two shares of the group's time."""
    at, total = group.arrivals
    span = group.end_ms - group.begin_ms
    first, last = np.interp([group.begin_ms + begin * span, group.begin_ms + end * span], at, total)
    return float(last - first) * 8 / max(1e-3, (end - begin) * span) / 1000


def _train_spread(at: Floats, total: Floats, train: int) -> float:
    half = len(at) // 3
    at, total = at[half:], total[half:]
    if len(at) < 3 * train:
        return UNKNOWN
    passed, lasted = total[train:] - total[:-train], at[train:] - at[:-train]
    rates = passed[lasted > 0] / lasted[lasted > 0]
    if not len(rates):
        return UNKNOWN
    low, middle, high = np.quantile(rates, [0.25, 0.5, 0.75])
    return float((high - low) / middle)


def _gaps(group: Group) -> Features:
    at = group.arrivals[0]
    apart = np.diff(at)
    span = max(group.end_ms - group.begin_ms, 1e-3)
    base = group.base_ms
    found: Features = {}
    for trips in (0.25, 0.5, 1.0, 2.0, 4.0):
        found[f"gap_rounds_{trips}"] = apart[apart > trips * base].sum() / span
    for least in (20, 50, 100, 200, 400):
        found[f"gap_ms_{least}"] = apart[apart > least].sum() / span
        found[f"gap_count_{least}"] = (apart > least).sum() / max(1e-3, group.seconds)
    longest = np.sort(apart)[::-1][:6]
    for index in (0, 1, 2, 4):
        value = float(longest[index]) if index < len(longest) else UNKNOWN
        found[f"longest_gap_{index}_ms"] = log10(value)
        found[f"longest_gap_{index}_rounds"] = log10(value / base)
    visible = np.maximum(apart, _AT_ONCE_MS)
    found |= spread("apart_ms", visible, (0.05, 0.5, 0.95, 0.99))
    service = group.main.segment_bytes * 0.008 / group.capacity_mbps
    found |= spread("apart_services", visible / service, (0.05, 0.25, 0.5, 0.75, 0.95, 0.99))
    together = (apart < min(0.3, 0.3 * service)).mean() if len(apart) else UNKNOWN
    found["arrive_together"] = together
    some = apart[apart > 0.125]
    for slot in _SLOTS_MS:
        near = np.abs(some / slot - np.round(some / slot)) * slot < 0.04
        found[f"slot_{slot:.3g}"] = near.mean() if len(some) > 20 else UNKNOWN
    gaps = group.gaps
    lengths = np.array([one.length_ms for one in gaps])
    found["gaps"] = len(gaps) / max(1e-3, group.seconds)
    found["gaps_share"] = lengths.sum() / span
    known = [one.is_known for one in gaps]
    found["gaps_known"] = float(np.mean(known)) if known else UNKNOWN
    top = np.sort(lengths)[::-1][:8]
    found["gap_alike"] = top.std() / top.mean() if len(top) > 2 else UNKNOWN
    half = 0.5 * float(lengths.max()) if len(lengths) else 0.0
    long = np.array([one.at_ms for one in gaps if one.length_ms >= half])
    between = np.diff(long)
    found["long_gaps"] = len(long)
    found["long_gap_ms"] = (
        log10(float(np.median(lengths[lengths >= half]))) if len(long) else UNKNOWN
    )
    found["long_gap_period"] = between.std() / between.mean() if len(between) > 1 else UNKNOWN
    found["long_gap_apart_s"] = log10(float(np.median(between)) / 1000) if len(between) else UNKNOWN
    found["silences"] = len(group.silences)
    found["silent_share"] = group.silent_share
    found["silences_regular"] = group.is_regular
    found["losses_at_silences"] = group.losses_at_silences
    found["stillness"] = group.stillness if group.loss_share else UNKNOWN
    found |= _at_gaps(group)
    return found


def _at_gaps(group: Group) -> Features:
    """What the longest gaps are like: what came before, and what ended them."""
    main = group.main
    seen = main.seen
    gaps = sorted(group.gaps, key=lambda one: -one.length_ms)[:6]
    burst, again, wait, sent, lost = [], [], [], [], []
    at, total = group.arrivals
    for gap in gaps:
        end = gap.at_ms + gap.length_ms
        window = max(2.0, 0.05 * gap.length_ms)
        first, last = np.interp([end - 1e-3, end + window], at, total)
        # What came at once when it ended, over what the path carries in the time.
        burst.append((last - first) / max(1.0, group.capacity_mbps * 125 * window))
        index = int(np.searchsorted(seen.sent, end - 1e-6)) if not main.at_sender else None
        if index is not None and index < len(seen.sent):
            again.append(bool(seen.is_again[index]))
            around = main.waits[index : index + 3]
            around = around[np.isfinite(around)]
            if len(around):
                wait.append(float(around.max()) / gap.length_ms)
        inside = (seen.sent > gap.at_ms) & (seen.sent < end)
        sent.append(
            inside.sum()
            / max(1e-3, gap.length_ms)
            * main.segment_bytes
            * 0.008
            / group.capacity_mbps
        )
        lost.append(main.lost[inside].mean() if inside.any() else 0.0)
    return {
        "gap_burst": float(np.median(burst)) if burst else UNKNOWN,
        "gap_ends_again": float(np.mean(again)) if again else UNKNOWN,
        "gap_wait": float(np.median(wait)) if wait else UNKNOWN,
        "gap_sent": float(np.median(sent)) if sent else UNKNOWN,
        "gap_lost": float(np.median(lost)) if lost else UNKNOWN,
    }


def _waits(group: Group) -> Features:
    main = group.main
    waits = main.waits
    known = waits[np.isfinite(waits)]
    found = spread("wait_rounds", known / group.base_ms)
    found |= {name: log10(value + 0.01) for name, value in spread("wait_ms", known).items()}
    found["typical_wait_rounds"] = group.typical_wait_ms / group.base_ms
    found["typical_wait_ms"] = group.typical_wait_ms
    found["queue_ms"] = log10(group.queue_ms + 0.01)
    found["queue_rounds"] = group.queue_ms / group.base_ms
    flight = main.flight.astype(float)
    usable = np.isfinite(waits)
    for name, values in (("flight", flight), ("time", main.seen.sent)):
        found[f"wait_{name}_rank"] = _rank_correlation(waits[usable], values[usable])
    steps = np.diff(known)
    found["wait_rises"] = float((steps > 0).mean()) if len(steps) else UNKNOWN
    scale = known.std() if len(known) > 20 else 0.0
    for lag in (1, 8, 64):
        found[f"wait_lag_{lag}"] = _lagged(known, lag) if scale > 0 else UNKNOWN
    jumps = np.abs(steps)
    found |= {
        name: log10(value + 0.01)
        for name, value in spread("wait_jump_ms", jumps, (0.5, 0.95, 0.99)).items()
    }
    found["falls_at_once"] = (
        float((steps < -0.3 * max(1e-3, group.queue_ms)).mean()) if len(steps) else UNKNOWN
    )
    late = known[len(known) // 3 :]
    found["wait_low_late"] = (
        float(np.quantile(late, 0.05)) / group.base_ms if len(late) else UNKNOWN
    )
    jitter = main.path.jitter_ms
    found["jitter_ms"] = UNKNOWN if jitter is None else jitter
    found["overtaken"] = _above(max(one.overtaken for one in group.transfers), _OUT_OF_ORDER)
    return found


def _rank_correlation(first: Floats, second: Floats) -> float:
    if len(first) < 20:
        return UNKNOWN
    step = max(1, len(first) // 2000)
    one, other = (np.argsort(np.argsort(each[::step])) for each in (first, second))
    return float(np.corrcoef(one.astype(float), other.astype(float))[0, 1])


def _lagged(values: Floats, lag: int) -> float:
    if len(values) < 4 * lag + 20:
        return UNKNOWN
    one, other = values[:-lag], values[lag:]
    if one.std() == 0 or other.std() == 0:
        return UNKNOWN
    return float(np.corrcoef(one, other)[0, 1])


def _way_back(group: Group) -> Features:
    main = group.main
    seen = main.seen
    back = main.back_ms
    low, middle, high = back if back else (UNKNOWN,) * 3
    acks = main.stream["acks"]
    interval = (acks["batch_interval_ms"] if acks else None) or UNKNOWN
    pure = seen.ack[seen.is_pure]
    apart = np.diff(pure)
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
        "acks_together": float((apart < 0.3).mean()) if len(apart) else UNKNOWN,
    }  # fmt: skip
    found |= {
        name: log10(max(value, _AT_ONCE_MS))
        for name, value in spread("acks_apart_ms", apart, (0.05, 0.5, 0.75, 0.95, 0.99)).items()
    }
    found["duplicate_acks"] = main.stream["duplicate_acks"] / max(1, len(seen.ack))
    return found


def _losses(group: Group) -> Features:
    main = group.main
    again = main.stream["retransmissions"]
    lost = sum(len(one.loss_at) for one in group.transfers)
    episodes = sum(len(one.episodes) for one in group.transfers)
    rounds = max(1.0, group.seconds * 1e3 / max(main.typical_rtt_ms, 1e-3))
    found: Features = {
        "loss": log10(group.loss_share + 1e-6),
        "late_loss": log10(group.late_loss_share + 1e-6),
        "lost_per_episode": lost / episodes if episodes else UNKNOWN,
        "log_episodes": log10(episodes + 0.5),
        "episodes_per_round": episodes / rounds,
        "loss_window": log10(group.loss_window),
        "starved": group.is_starved,
        "spurious": again["spurious"] / max(1, again["packets"]),
        "fast_share": again["fast"] / max(1, again["packets"]),
        "timeouts": again["timeout"] / max(1, again["packets"]),
        "timeouts_per_s": again["timeout"] / max(1e-3, group.seconds),
        "probes": again["tail_loss_probe"] / max(1, again["packets"]),
        "retransmitted": log10(float(main.seen.is_again.mean()) + 1e-6),
        "unseen_originals": again["original_unseen"] / max(1, again["packets"]),
        "out_of_order": log10(
            main.stream["out_of_order_packets"] / max(1, len(main.seen.sent)) + 1e-6
        ),
        "lost_again": float((main.seen.sent_again > 1).sum()) / max(1, lost),
    }
    waiting, flying, bucket = group.loss_wait, group.loss_flight, group.bucket
    found["loss_wait_rank"] = waiting.rank if waiting else UNKNOWN
    found["loss_flight_rank"] = flying.rank if flying else UNKNOWN
    found["loss_flight_far"] = flying.far if flying else UNKNOWN
    found["bucket_match"] = bucket.match if bucket else UNKNOWN
    found["bucket_level"] = (
        log10(bucket.level_bytes / max(1.0, group.bdp_bytes)) if bucket else UNKNOWN
    )
    found["bucket_rate"] = bucket.rate_mbps / group.capacity_mbps if bucket else UNKNOWN
    found["bucket_drain_ms"] = (
        log10(bucket.level_bytes * 0.008 / bucket.rate_mbps) if bucket else UNKNOWN
    )
    sizes = main.too_large
    found["too_large"] = sizes is not None
    runs = _runs(main)
    found["loss_run"] = float(runs.mean()) if len(runs) else UNKNOWN
    found["longest_loss_run"] = float(runs.max()) if len(runs) else UNKNOWN
    at = np.sort(np.concatenate([one.sent_ms[one.loss_at] for one in group.transfers]))
    apart = (
        np.diff(at[np.concatenate(([True], np.diff(at) > main.typical_rtt_ms))]) if len(at) else at
    )
    found["losses_apart_spread"] = apart.std() / apart.mean() if len(apart) > 3 else UNKNOWN
    found["losses_apart_rounds"] = (
        log10(float(np.median(apart)) / group.base_ms) if len(apart) else UNKNOWN
    )
    found["wait_at_loss"] = _wait_at_losses(group)
    found["first_loss"] = (
        (float(at[0]) - group.begin_ms) / max(1e-3, group.end_ms - group.begin_ms)
        if len(at)
        else UNKNOWN
    )
    small = main.seen.payload < main.segment_bytes
    found["small_share"] = _above(float(small.mean()), _FEW)
    return found


def _runs(main: Transfer) -> Floats:
    """How many are lost in a row, among segments sent for the first time."""
    lost = main.lost[~main.seen.is_again] if main.at_sender else np.zeros(0, dtype=bool)
    padded = np.concatenate(([False], lost, [False])).astype(np.int8)
    edges = np.diff(padded)
    return (np.flatnonzero(edges == -1) - np.flatnonzero(edges == 1)).astype(float)


def _wait_at_losses(group: Group) -> float:
    """What the segment before a loss waited, over the longest wait."""
    main = group.main
    known = main.waits[np.isfinite(main.waits)]
    if not len(known) or not len(main.episodes):
        return UNKNOWN
    longest = max(float(np.quantile(known, 0.98)), 1e-3)
    return float(np.median(wait_before(main.waits, np.array(main.episodes)))) / longest


def _flight(group: Group) -> Features:
    main = group.main
    flight = main.flight.astype(float)
    half = flight[len(flight) // 3 :]
    if not main.at_sender or len(half) < 10:
        names = ("max", "50", "5", "95")
        found = {f"flight_bdp_{name}": UNKNOWN for name in names}
        return (
            found
            | {
                "ceiling": UNKNOWN,
                "trough": UNKNOWN,
                "flat": UNKNOWN,
                "flight_trend": UNKNOWN,
                "flight_segments": UNKNOWN,
            }
            | _sending(main)
        )
    low, middle, high, most = np.quantile(half, [0.05, 0.5, 0.95, 0.99])
    quarter = len(half) // 4
    bdp = max(1.0, group.bdp_bytes)
    first, last = (np.quantile(each, 0.95) for each in (half[: quarter or 1], half[-quarter:]))
    trend = float(last / max(1.0, first)) if quarter else UNKNOWN
    return {
        "flight_bdp_max": log10(most / bdp),
        "flight_bdp_50": log10(middle / bdp),
        "flight_bdp_5": low / most,
        "flight_bdp_95": high / most,
        "ceiling": main.ceiling_share,
        "trough": UNKNOWN if main.trough is None else main.trough,
        "flat": middle / most,
        "flight_trend": trend,
        "flight_segments": log10(most / max(1, main.segment_bytes)),
    } | _sending(main)  # fmt: skip


def _sending(main: Transfer) -> Features:
    sending = main.stream["sending"]
    new = main.seen.sent[~main.seen.is_again]
    apart = np.diff(new)
    found: Features = {
        "per_burst": sending["per_burst"] if sending else UNKNOWN,
        "largest_burst": log10(sending["largest_burst"]) if sending else UNKNOWN,
        "unprompted": UNKNOWN
        if not sending or sending["unprompted"] is None
        else _above(sending["unprompted"], _FEW),
        "is_flat": main.is_flat,
        "sends_at_once": main.sends_at_once,
    }
    return found | {
        name: log10(max(value, _AT_ONCE_MS))
        for name, value in spread("sent_apart_ms", apart, (0.05, 0.5, 0.95, 0.99)).items()
    }


def _windows(group: Group) -> Features:
    main = group.main
    window = main.stream["window"]
    limits = main.stream["limits"]
    most = float(np.quantile(main.flight, 0.99)) if len(main.flight) else UNKNOWN
    found: Features = {
        "window_known": main.window_bytes is not None
        and window is not None
        and window["scale"] is not None,
        "window_share": _above(main.window_share, _FEW),
        "limited_share": _above(main.limited_share, _FEW),
        "closed_share": group.closed_share,
        "window_steady": main.window_steady,
        "window_bdp": log10(main.window_bytes / max(1.0, group.bdp_bytes))
        if main.window_bytes
        else UNKNOWN,
        "window_to_flight": log10(main.window_bytes / most)
        if main.window_bytes and most > 0 and main.at_sender
        else UNKNOWN,
        "zero_windows": log10((window["zero_windows"] if window else 0) + 0.5),
        "idle_share": main.idle_share,
        "has_backlog": main.has_backlog,
        "pauses": len(main.pauses) / main.seconds,
        "hollow": group.hollow_share,
    }
    raw = main.seen.window[1:].astype(float)
    top = raw.max() if len(raw) else 0.0
    found |= spread("window", raw / top if top else np.zeros(0), (0.05, 0.25, 0.5, 0.75))
    total = (
        sum(
            limits[name]
            for name in ("path_s", "receive_window_s", "nothing_to_send_s", "recovery_s")
        )
        if limits
        else 0.0
    )
    for name in ("path_s", "receive_window_s", "nothing_to_send_s", "recovery_s"):
        share = limits[name] / total if limits and total else UNKNOWN
        found[f"limit_{name}"] = _above(share, _FEW)
    return found


def _beginning(group: Group) -> Features:
    main = group.main
    start = main.stream["slow_start"]
    exit_bytes = main.exit_bytes
    ended = start["ended_by"] if start else None
    found: Features = {
        "ramp_share": main.ramp_share,
        "ramp_s": log10(main.ramp_share * main.seconds + 0.01),
        "ramp_rounds": log10(main.ramp_share * main.seconds * 1e3 / main.base_ms + 0.1),
        "exit_bdp": log10(exit_bytes / max(1.0, group.bdp_bytes)) if exit_bytes else UNKNOWN,
        "exit_by_loss": UNKNOWN if ended is None else ended == "loss",
        "exit_by_no_growth": UNKNOWN if ended is None else ended == "no-growth",
        "exits_early": main.exits_early,
        "starts_seen": main.seen.handshake[0] is not None,
    }
    # The first round trips: how long each of the first segments and acknowledgements took.
    known = main.waits[:40]
    known = known[np.isfinite(known)]
    found["first_wait_rounds"] = float(known[0]) / main.base_ms if len(known) else UNKNOWN
    found["first_waits_rounds"] = float(known[:10].max()) / main.base_ms if len(known) else UNKNOWN
    return found
