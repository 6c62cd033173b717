"""Features in the field's units, as evidence is printed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from airpath.base.text import short
from airpath.causes.features import Features

_PERCENT = 0.01
"""Unit: smaller shares have two decimals."""
_TEN = 10
"""Unit: the base of amounts' logarithms."""
HALF = 0.5
"""Definition: half a segment is added to a count, because 0 has no logarithm."""
_MOST = 3
"""Bound: features in a sentence."""


def _share(value: float) -> str:
    return f"{value:.0%}" if value >= _PERCENT or value == 0 else f"{value:.2%}"


def _ten(value: float) -> str:
    return short(_TEN**value)


def _ten_share(value: float) -> str:
    return _share(_TEN**value)


def _rounds(value: float) -> str:
    return f"{short(value)} round trips"


_UNITS: dict[str, Callable[[float], str]] = {
    "share": _share,
    "log share": _ten_share,
    "number": short,
    "log number": _ten,
    "log count": lambda value: f"{_TEN**value - HALF:.0f}",
    "round trips": _rounds,
    "log round trips": lambda value: f"{_ten(value)} round trips",
    "ms": lambda value: f"{short(value)} ms",
    "log ms": lambda value: f"{_ten(value)} ms",
    "log s": lambda value: f"{_ten(value)} s",
}

_PHRASES: dict[str, tuple[str, str]] = {
    "again": ("{} of the segments were retransmitted", "log share"),
    "again_at_once": ("a second with retransmissions had {} of them (median)", "log number"),
    "again_first": ("{} of the retransmissions were in the first two seconds", "share"),
    "again_most": ("{} of the retransmissions were in a single second", "share"),
    "again_seconds": ("{} of the seconds had retransmissions", "share"),
    "bdp_segments": ("the BDP is {} segments", "log number"),
    "cwnd_50": ("for half of the time cwnd was below {} of its maximum", "share"),
    "cwnd_95": ("for 95 % of the time cwnd was below {} of its maximum", "share"),
    "cwnd_bdp": ("cwnd was {} BDPs (median)", "log number"),
    "cwnd_falls": ("cwnd fell by a fifth or more in {} of the seconds", "share"),
    "cwnd_flat": ("cwnd did not change in {} of the seconds", "share"),
    "cwnd_least": ("cwnd fell to {} segments", "log number"),
    "cwnd_segments": ("cwnd was {} segments (median)", "log number"),
    "cwnd_used": ("in a round trip {} of cwnd was sent (median)", "log share"),
    "cwnd_used_most": ("in a round trip {} of cwnd was sent at most", "log share"),
    "fairness": ("the slowest stream has {} of the rate of the fastest", "share"),
    "limited_application": ("for {} of the time the application had nothing to send", "share"),
    "limited_receive_window": ("the receive window was the limit for {} of the time", "share"),
    "limited_send_buffer": ("the send buffer was the limit for {} of the time", "share"),
    "log_again": ("{} segments were retransmitted", "log count"),
    "test_s": ("the test lasted {}", "log s"),
    "longest_still_s": ("no data moved for {} seconds", "number"),
    "ping_50": ("the median ping took {} times the minimum", "number"),
    "ping_95": ("pings took {} times the minimum (p95)", "number"),
    "ping_lost": ("{} of the pings had no reply", "share"),
    "ping_max": ("the longest ping took {} times the minimum", "number"),
    "ping_ms": ("the shortest ping took {}", "log ms"),
    "ramp_seconds": ("it took {} s to reach 80 % of the rate", "number"),
    "rate_5": ("the slowest seconds had {} of the best rate (p5)", "share"),
    "rate_25": ("a quarter of the seconds had below {} of the best rate", "share"),
    "rate_50": ("half of the seconds had below {} of the best rate", "share"),
    "rate_first": ("the first second had {} of the best rate", "share"),
    "rate_second": ("from 1 s to 2 s the rate was {} of the best", "share"),
    "rate_spread": ("the rate varies by {} of its mean", "share"),
    "rate_trend": ("the last third had {} of the rate of the middle one", "share"),
    "rtt_50": ("the median smoothed RTT is {} times the minimum", "number"),
    "rtt_95": ("the smoothed RTT rose to {} times the minimum (p95)", "number"),
    "rtt_max": ("the maximum smoothed RTT is {} times the minimum", "number"),
    "rtt_ms": ("the minimum smoothed RTT is {}", "log ms"),
    "rtt_to_ping": ("the smoothed RTT is {} times the shortest ping", "number"),
    "rtt_wait_ms": ("the median smoothed RTT is {} above the minimum", "log ms"),
    "still_share": ("no data moved in {} of the seconds", "share"),
    "ack_interval_ms": ("acknowledgements arrived every {}", "ms"),
    "acks_apart_ms_50": ("acknowledgements were {} apart (median)", "log ms"),
    "acks_apart_ms_95": ("acknowledgements were up to {} apart (p95)", "log ms"),
    "acks_apart_ms_99": ("acknowledgements were up to {} apart (p99)", "log ms"),
    "acks_per_batch": ("acknowledgements arrived {} at a time", "number"),
    "acks_together": ("{} of the acknowledgements arrived within 0.3 ms of another", "share"),
    "back_50": ("acknowledgements waited {} on their way back (median)", "ms"),
    "back_95": ("acknowledgements waited up to {} on their way back (p95)", "ms"),
    "back_50_rounds": ("acknowledgements waited {} on their way back (median)", "round trips"),
    "back_95_rounds": ("acknowledgements waited up to {} on their way back (p95)", "round trips"),
    "bucket_level": ("losses began {} BDPs above what a token bucket passes", "log number"),
    "bucket_match": (
        "a token bucket is fuller at lost packets than at others in {} of the pairs (50 % is "
        "chance)",
        "share",
    ),
    "busy": ("{} of the highest rate was used", "share"),
    "ceiling": ("{} of the segments were sent at the maximum in flight", "share"),
    "datagram_share": ("datagrams are {} of the bytes in the same direction", "share"),
    "duplicate_acks": ("{} of the acknowledgements are duplicates", "share"),
    "early_excess": ("at first {} times as much arrived at once as later", "number"),
    "end_growth": ("the last two round trips carried {} times the previous two", "log number"),
    "end_to_mean": ("the transfer ended at {} times its mean rate", "log number"),
    "episodes_per_round": ("packets were lost in {} of the round trips", "share"),
    "exit_bdp": ("slow start ended at {} BDPs in flight", "log number"),
    "first_to_capacity": ("the first packets arrived at {} times the path's rate", "number"),
    "first_wait_rounds": ("the first segment waited {}", "round trips"),
    "flat": ("the median in flight is {} of the maximum", "share"),
    "flight_bdp_50": ("the median in flight is {} BDPs", "log number"),
    "flight_bdp_max": ("at most {} BDPs were in flight", "log number"),
    "flight_segments": ("at most {} segments were in flight", "log number"),
    "flight_trend": ("in flight grew to {} of its early size", "share"),
    "gaps_share": ("for {} of the time nothing arrived although data was outstanding", "share"),
    "gap_burst": ("when silences ended, {} times the path's rate arrived at once", "number"),
    "gap_rounds_1.0": ("{} of the time passed in gaps longer than a round trip", "share"),
    "gap_rounds_2.0": ("{} of the time passed in gaps longer than 2 round trips", "share"),
    "gap_rounds_4.0": ("{} of the time passed in gaps longer than 4 round trips", "share"),
    "gap_ms_50": ("{} of the time passed in gaps longer than 50 ms", "share"),
    "gap_ms_100": ("{} of the time passed in gaps longer than 100 ms", "share"),
    "gap_ms_200": ("{} of the time passed in gaps longer than 200 ms", "share"),
    "gap_ms_400": ("{} of the time passed in gaps longer than 400 ms", "share"),
    "hollow": ("{} of the time passed in gaps longer than half a round trip", "share"),
    "idle_share": ("for {} of the time everything that was sent had arrived", "share"),
    "late_to_mean": ("the second half had {} times the mean rate", "log number"),
    "late_loss": ("{} of the packets were lost after the first third", "log share"),
    "late_spread": ("the rate of tenths of the transfer varies by {}", "share"),
    "limit_nothing_to_send_s": ("for {} of the time the sender had nothing to send", "share"),
    "limit_path_s": ("for {} of the time the path limited the sender", "share"),
    "limit_receive_window_s": ("for {} of the time the receive window limited the sender", "share"),
    "limit_recovery_s": ("for {} of the time the sender recovered from losses", "share"),
    "limited_share": ("for {} of the time the receive window had no room", "share"),
    "log_base_ms": ("the shortest round trip is {}", "log ms"),
    "log_episodes": ("packets were lost in {} round trips", "log number"),
    "log_rounds": ("the transfer lasted {}", "log round trips"),
    "longest_gap_0_ms": ("the longest gap between arrivals is {}", "log ms"),
    "longest_gap_1_ms": ("the second longest gap between arrivals is {}", "log ms"),
    "longest_gap_0_rounds": ("the longest gap between arrivals is {}", "log round trips"),
    "longest_gap_1_rounds": ("the second longest gap is {}", "log round trips"),
    "long_gap_ms": ("long silences last {} (median)", "log ms"),
    "loss": ("{} of the packets were lost", "log share"),
    "loss_flight_rank": ("at losses more data was in flight than in {} of the time", "share"),
    "loss_wait_rank": ("packets before losses had waited longer than {} of the others", "share"),
    "losses_at_silences": ("{} of the losses were next to silences", "share"),
    "lost_per_episode": ("{} packets were lost at a time", "number"),
    "most_to_least": ("the fastest transfer got {} times the rate of the slowest", "log number"),
    "out_of_order": ("{} of the packets arrived out of order", "log share"),
    "overtaken": ("{} of the segments arrived out of order", "share"),
    "pauses": ("the application paused {} times a second", "number"),
    "queue_ms": ("packets waited up to {} (p95)", "log ms"),
    "queue_rounds": ("packets waited up to {} (p95)", "round trips"),
    "ramp_rounds": ("it took {} to reach the rate", "log round trips"),
    "ramp_s": ("it took {} to reach the rate", "log s"),
    "ramp_share": ("{} of the transfer passed until it reached its rate", "share"),
    "rate_bin_5": ("the slowest 0.2 s intervals carried {} of the best rate", "share"),
    "rate_bin_25": ("a quarter of the 0.2 s intervals carried below {} of the best rate", "share"),
    "rate_bin_50": ("half of the 0.2 s intervals carried below {} of the best rate", "share"),
    "retransmitted": ("{} of the segments were retransmitted", "log share"),
    "rounds_grown": ("the rate grew in each of the last {} round trips", "number"),
    "segment_bytes": ("segments have {} bytes", "number"),
    "segments_per_ack": ("each acknowledgement covers {} segments", "number"),
    "silent_share": ("the path was silent for {} of the time", "share"),
    "spurious": ("{} of the retransmissions were spurious", "share"),
    "stillness": ("gaps around losses are longer than {} of the others", "share"),
    "timeouts": ("{} of the retransmissions were time-outs", "share"),
    "timeouts_per_s": ("{} time-outs a second", "number"),
    "trend": ("the rate ends at {} of what it was in the middle", "share"),
    "typical_wait_ms": ("packets waited {} (median)", "ms"),
    "typical_wait_rounds": ("packets waited {} (median)", "round trips"),
    "wait_at_loss": ("packets before losses had waited {} of the longest wait", "share"),
    "wait_ms_50": ("packets waited {} (median)", "log ms"),
    "wait_ms_95": ("packets waited up to {} (p95)", "log ms"),
    "wait_rounds_50": ("packets waited {} (median)", "round trips"),
    "wait_rounds_95": ("packets waited up to {} (p95)", "round trips"),
    "wait_rounds_5": ("packets waited at least {} (p5)", "round trips"),
    "window_5": ("for 5 % of the time the receive window was below {} of its maximum", "share"),
    "window_25": ("for 25 % of the time the receive window was below {} of its maximum", "share"),
    "window_50": ("for half of the time the receive window was below {} of its maximum", "share"),
    "window_bdp": ("the receive window is {} BDPs", "log number"),
    "window_share": ("in {} of the round trips the receive window was full", "share"),
    "window_steady": ("the median receive window is {} of its maximum", "share"),
    "window_to_flight": ("the receive window is {} times the data in flight", "log number"),
}


def evidence(moved: Iterable[tuple[str, float]], features: Features) -> list[str]:
    """The features that raised the odds most, in words; each phrase's subject only once."""
    found: list[str] = []
    told: set[str] = set()
    for name, by in moved:
        if by <= 0 or len(found) == _MOST:
            break
        if name not in _PHRASES or math.isnan(features[name]):
            continue
        text, unit = _PHRASES[name]
        subject = text.partition("{}")[0] + text.partition("{}")[2]
        if subject in told:
            continue
        told.add(subject)
        found.append(text.format(_UNITS[unit](features[name])))
    return found
