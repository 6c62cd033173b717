"""The rules. Each looks at one flow or link and returns a finding or None."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from airpath.diagnose.facts import Facts, Finding, Flow, Gain, Link, Moves, facts, window_bytes
from airpath.diagnose.facts import window_rate_mbps as window_rate
from airpath.text import digits, milliseconds, percent, plural, rate, size

if TYPE_CHECKING:
    from airpath.diagnose.facts import Table

LIMITED = 0.15
"""Below this share of the time a window is not worth a finding."""
SATURATED = 0.90
"""A link this busy is the limit."""
_SHORTEST_QUEUE = 15_000
RAMP = 0.20
"""A ramp that takes a larger share of the test spoils its average."""


def diagnose(document: dict[str, Any], table: Table) -> list[dict[str, Any]]:
    """Findings of one run, most certain first; ``table`` gives a table by name, or None."""
    run = facts(document, table)
    found = sorted(_all(run), key=lambda finding: -finding.confidence)
    return [finding.as_dict() for finding in found]


def combine(by_seed: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Findings of several seeds: each cause once, less certain if only some seeds show it."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for findings in by_seed:
        for finding in findings:
            groups.setdefault((finding["cause"], finding["subject"]), []).append(finding)
    combined = []
    for same in groups.values():
        share = len(same) / len(by_seed)
        confidence = sum(finding["confidence"] for finding in same) / len(same) * share
        seen = f" (seen in {len(same)} of {len(by_seed)} seeds)"
        combined.append(
            {
                **same[0],
                "confidence": round(confidence, 2),
                "evidence": same[0]["evidence"] + seen,
            }
        )
    return sorted(combined, key=lambda finding: -finding["confidence"])


def _all(run: Facts) -> Iterator[Finding]:
    for flow in run.flows:
        if flow.active_s <= 0 or flow.goodput_mbps <= 0:
            continue
        for rule in (_receive_window, _send_buffer, _loss, _slow_ramp, _reverse_path):
            finding = rule(run, flow)
            if finding is not None:
                yield finding
    for moves in run.moves:
        for move_rule in (_link_failure, _handover):
            finding = move_rule(run, moves)
            if finding is not None:
                yield finding
    for link in run.links:
        for link_rule in (_deep_queue, _saturated):
            finding = link_rule(run, link)
            if finding is not None:
                yield finding


def _link_failure(run: Facts, moves: Moves) -> Finding | None:
    failed = moves.failures + moves.failed_handovers
    if failed == 0:
        return None
    what = []
    if moves.failures:
        what.append(plural(moves.failures, "radio link failure"))
    if moves.failed_handovers:
        what.append(f"{moves.failed_handovers} of {plural(moves.handovers, 'handover')} failed")
    evidence = ", ".join(what) + _timeouts(run, moves)
    if moves.interruptions_ms:
        evidence += f"; the longest time in no cell was {milliseconds(max(moves.interruptions_ms))}"
    advice = (
        "hand over earlier (smaller A3 offset or time to trigger), or close the hole in the "
        "coverage: TCP waits for its time-out longer than the radio is away"
    )
    return Finding("radio-link-failure", moves.ue, 0.9, evidence, advice)


def _handover(run: Facts, moves: Moves) -> Finding | None:
    timeouts = _timeouts(run, moves)
    if moves.handovers == 0 or not (moves.lost_packets or timeouts):
        return None
    mean = sum(moves.interruptions_ms) / max(1, len(moves.interruptions_ms))
    evidence = f"{plural(moves.handovers, 'handover')} of {milliseconds(mean)} on average"
    if moves.lost_packets:
        evidence += f"; {plural(moves.lost_packets, 'packet')} lost with them"
    evidence += timeouts
    advice = (
        "forward what waits in the old base station: RLC AM and data forwarding lose nothing"
        if moves.lost_packets
        else "shorten the interruption below the time-out (minimum RTO)"
    )
    return Finding("handover", moves.ue, 0.7, evidence, advice)


def _timeouts(run: Facts, moves: Moves) -> str:
    count = sum(flow.timeouts for flow in run.flows if flow.ue == moves.ue)
    return f"; {plural(count, 'retransmission time-out')}" if count else ""


def _receive_window(run: Facts, flow: Flow) -> Finding | None:
    if flow.held_by_proxy:
        return None  # Back-pressure: the next hop is the limit, a larger window changes nothing.
    return _window(run, flow, "receive_window", "receive-window", "receive window")


def _send_buffer(run: Facts, flow: Flow) -> Finding | None:
    return _window(run, flow, "send_buffer", "send-buffer", "send buffer")


def _window(run: Facts, flow: Flow, limit: str, cause: str, words: str) -> Finding | None:
    share = flow.limited_share(limit)
    if share < LIMITED or flow.rtt_mean_ms is None or flow.in_flight_bytes is None:
        return None
    link = run.bottleneck(flow, flow.direction)
    if link is not None and link.utilisation >= SATURATED:
        return None  # The window only keeps the queue short; the link is full.
    in_flight = flow.in_flight_bytes
    evidence = (
        f"{percent(share)} of the time limited by the {words}; {size(in_flight)} in flight at "
        f"a mean RTT of {milliseconds(flow.rtt_mean_ms)} make "
        f"{rate(window_rate(in_flight, flow.rtt_mean_ms))}"
    )
    other = "receive window" if limit == "send_buffer" else "send buffer"
    raised = f"{words}, and the {other} with it,"
    reachable = run.reachable_mbps(flow)
    if link is None or reachable is None or run.base_rtt_ms is None:
        advice = f"raise the {raised}: rate follows it in proportion until a link is full"
        return Finding(cause, flow.id, _confidence(share), evidence, advice)
    needed = window_bytes(link.capacity_mbps, run.base_rtt_ms)
    advice = (
        f"raise the {raised} to {size(needed)} or more: "
        f"{rate(link.capacity_mbps)} of {link.id} × {milliseconds(run.base_rtt_ms)} minimum RTT"
    )
    gain = Gain("goodput_mbps", flow.goodput_mbps, reachable)
    return Finding(cause, flow.id, _confidence(share), evidence, advice, gain)


def _loss(run: Facts, flow: Flow) -> Finding | None:
    link = run.bottleneck(flow, flow.direction)
    if flow.retransmitted == 0 or flow.segments == 0:
        return None
    if link is not None and link.utilisation >= SATURATED:
        return None  # Losses that a full queue causes; the link is in use.
    ratio = flow.retransmitted / flow.segments
    held = flow.limited_share("cwnd")
    if held < 0.5:
        return None
    drop = run.main_drop(flow.direction)
    evidence = f"{percent(ratio)} of the segments retransmitted"
    if flow.timeouts:
        evidence += f", {plural(flow.timeouts, 'time-out')}"
    if drop is not None:
        evidence += f"; {plural(drop.packets, 'packet')} lost at {drop.place} ({drop.reason})"
    if link is not None:
        evidence += f"; {link.id} was {percent(link.utilisation)} busy"
    queues = {one.id for one in run.links}
    if drop is not None and drop.place not in queues:
        advice = (
            "the losses are not from a full queue: repair that stage, or use a congestion control "
            "that does not take every loss for congestion"
        )
    elif link is not None and (link.queue_p50_ms or 0.0) > (run.base_rtt_ms or 0.0):
        advice = (
            f"the queue of {link.id} is long and yet overflows in bursts: look for "
            "acknowledgements that arrive in bunches"
        )
    elif link is not None and run.base_rtt_ms is not None:
        needed = size(window_bytes(link.capacity_mbps, run.base_rtt_ms))
        advice = f"give {link.id} a queue of about {needed} (bandwidth × RTT): it empties too often"
    else:
        advice = "find the stage that loses packets"
    reachable = run.reachable_mbps(flow)
    gain = None if reachable is None else Gain("goodput_mbps", flow.goodput_mbps, reachable)
    return Finding("loss", flow.id, round(min(0.9, 0.4 + held / 2), 2), evidence, advice, gain)


def _slow_ramp(_: Facts, flow: Flow) -> Finding | None:
    converged, steady = flow.converged_after_s, flow.steady_mbps
    if converged is None or steady is None or converged < RAMP * flow.active_s:
        return None
    if steady < 1.1 * flow.goodput_mbps:
        return None
    evidence = (
        f"the steady {rate(steady)} came after {digits(converged)} s of {digits(flow.active_s)} s; "
        f"the average is {rate(flow.goodput_mbps)}"
    )
    advice = (
        f"test for {digits(max(10 * converged, flow.active_s))} s or report the steady rate: "
        "the average measures the ramp"
    )
    gain = Gain("goodput_mbps", flow.goodput_mbps, steady)
    return Finding("slow-ramp", flow.id, 0.8, evidence, advice, gain)


def _reverse_path(run: Facts, flow: Flow) -> Finding | None:
    other = "up" if flow.direction == "down" else "down"
    back, forth = run.bottleneck(flow, other), run.bottleneck(flow, flow.direction)
    if back is None or back.utilisation < SATURATED:
        return None
    if forth is not None and forth.utilisation >= SATURATED:
        return None
    evidence = f"{back.id}, where the acknowledgements go, is {percent(back.utilisation)} busy"
    if any(one.direction == other for one in run.flows) or run.has_datagrams:
        if back.queue_p50_ms is None or back.queue_p50_ms < (run.base_rtt_ms or 0.0) / 2:
            return None
        evidence += f" with other traffic; they wait {milliseconds(back.queue_p50_ms)} (median)"
        advice = f"let acknowledgements pass the queue of {back.id}, or keep that queue short"
    else:
        evidence += f" with them alone ({rate(back.throughput_mbps)})"
        advice = (
            "acknowledge less often (delayed ACKs, ACK thinning) or give the return path more rate"
        )
    reachable = run.reachable_mbps(flow)
    gain = None if reachable is None else Gain("goodput_mbps", flow.goodput_mbps, reachable)
    return Finding("reverse-path", flow.id, 0.85, evidence, advice, gain)


def _deep_queue(run: Facts, whole: Link) -> Finding | None:
    link = run.as_seen(whole)
    median = link.queue_p50_ms
    base = run.base_rtt_ms
    if median is None or base is None or median < max(20.0, base / 2):
        return None
    evidence = (
        f"packets wait {milliseconds(median)} in {link.id} (median"
        + (f"; {milliseconds(link.queue_p95_ms)} p95" if link.queue_p95_ms is not None else "")
        + f"); the path's own RTT is {milliseconds(base)}"
    )
    if link.varies:
        # No fixed size fits a capacity that moves: a byte of buffer is a time that changes.
        advice = (
            'aqm = "codel", which limits the delay whatever the rate is; a fixed buffer that is '
            "short at the mean rate starves the peaks"
        )
    else:
        buffer = size(max(window_bytes(link.capacity_mbps, base), _SHORTEST_QUEUE))
        advice = (
            f'{buffer} of buffer (bandwidth × RTT), or aqm = "codel", keeps the rate without the '
            "delay"
        )
    confidence = round(min(0.95, 0.6 + 0.1 * median / base), 2)
    gain = Gain("rtt_ms", base + median, base)
    return Finding("deep-queue", link.id, confidence, evidence, advice, gain)


def _saturated(run: Facts, whole: Link) -> Finding | None:
    link = run.as_seen(whole)
    if link.utilisation < SATURATED:
        return None
    evidence = (
        f"{link.id} is {percent(link.utilisation)} busy: {rate(link.throughput_mbps)} "
        f"of {rate(link.capacity_mbps)}"
    )
    advice = "nothing to fix at the endpoints: only a faster link carries more"
    return Finding("link-saturated", link.id, 0.95, evidence, advice)


def _confidence(share: float) -> float:
    return round(min(0.99, 0.5 + share / 2), 2)
