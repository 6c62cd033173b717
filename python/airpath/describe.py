"""A run in sentences: what each flow got and what held it back."""

from __future__ import annotations

from typing import Any

from airpath.text import count, digits, milliseconds, percent, plural, rate, size

_LIMITS = {
    "receive_window": "the receive window",
    "send_buffer": "the send buffer",
    "application": "the application",
}
_WORTH_SAYING = 0.01
_MOST_FLOWS = 30


def partial(summary: dict[str, Any]) -> list[str]:
    """Why a run is not whole."""
    return [f"partial, because {because}" for because in summary["run"].get("partial", [])]


def sentences(summary: dict[str, Any]) -> list[str]:
    """One sentence a flow, how fairly they share, pings last; of very many flows the largest."""
    flows = [flow for flow in summary["flows"] if flow["kind"] != "ping"]
    by_bytes = sorted(flows, key=lambda flow: -(flow.get("bytes_delivered") or 0))
    least = by_bytes[_MOST_FLOWS:]
    said = [flow_sentence(flow) for flow in flows if flow not in least]
    if least:
        said.append(f"and {count(len(least))} flows that carried less")
    said += [fairness_sentence(shared) for shared in summary.get("fairness", [])]
    return said + [ping_sentence(ping) for ping in summary["pings"]]


def flow_sentence(flow: dict[str, Any]) -> str:
    """``download: 4.36 Mb/s down (cubic, linux-6.1), RTT 61 ms median, …``."""
    if flow.get("goodput_mbps") is None:
        return f"{flow['id']}: did not start"
    parts = [f"{_goodput(flow)} {flow['direction']}"]
    stack = [part for part in (flow.get("congestion"), flow.get("profile")) if part]
    if stack:
        parts[0] += f" ({', '.join(stack)})"
    if flow.get("completed_s") is not None:
        carried = size(flow.get("bytes_delivered") or 0)
        parts.append(f"{carried} in {digits(flow['completed_s'])} s")
    elif flow["kind"] == "file":
        parts.append("not complete when the run ended")
    if flow["kind"] != "others":
        parts += _datagrams(flow) if flow["kind"] == "udp" else _connection(flow)
    return f"{flow['id']}: {', '.join(parts)}"


def fairness_sentence(shared: dict[str, Any]) -> str:
    """``fairness down: Jain's index 0.87 of 2 flows (1: equal shares, 0.5: one has all)``."""
    words = f"Jain's index {digits(shared['jain_index'])} of {plural(shared['flows'], 'flow')}"
    least = digits(1 / shared["flows"])
    return f"fairness {shared['id']}: {words} (1: equal shares, {least}: one has all)"


def ping_sentence(ping: dict[str, Any]) -> str:
    """``ping: 100 sent, 2 lost, RTT 61 ms median, 48 ms to 95 ms``."""
    text = f"{ping['id']}: {count(ping['sent'])} sent, {count(ping['lost'])} lost"
    rtt = ping.get("rtt_ms")
    if not rtt or rtt.get("p50") is None:
        return f"{text}, no reply"
    spread = f"{milliseconds(rtt['min'])} to {milliseconds(rtt['p99'])} (p99)"
    return f"{text}, RTT {milliseconds(rtt['p50'])} median, {spread}"


def finding_lines(finding: dict[str, Any]) -> list[str]:
    """What was found, and below it what to do about it."""
    cause = finding["cause"].replace("-", " ")
    gain = gain_text(finding)
    return [
        f"  {cause} ({finding['subject']}): {finding['evidence']}",
        f"    {finding['advice']}" + (f": {gain}" if gain else ""),
    ]


def gain_text(finding: dict[str, Any]) -> str:
    """``1.2 Mb/s → 4.3 Mb/s``; empty if the gain is not known."""
    gain = finding.get("gain")
    if not gain:
        return ""
    unit = milliseconds if gain["metric"] == "rtt_ms" else rate
    return f"{unit(gain['now'])} → {unit(gain['then'])}"


def _goodput(flow: dict[str, Any]) -> str:
    text = rate(flow["goodput_mbps"])
    bounds = (flow.get("ci95") or {}).get("goodput_mbps")
    if not bounds:
        return text
    return f"{text} ± {rate((bounds[1] - bounds[0]) / 2)}"


def _connection(flow: dict[str, Any]) -> list[str]:
    parts = []
    rtt = flow.get("rtt_ms")
    if rtt and rtt.get("p50") is not None:
        parts.append(f"RTT {milliseconds(rtt['p50'])} median")
    if flow.get("retransmitted_segments"):
        parts.append(plural(flow["retransmitted_segments"], "retransmission"))
    if flow.get("rto_count"):
        parts.append(plural(flow["rto_count"], "time-out"))
    limited = flow.get("limited_s") or {}
    total = sum(value or 0.0 for value in limited.values())
    for key, words in _LIMITS.items():
        share = (limited.get(key) or 0.0) / total if total else 0.0
        if share >= _WORTH_SAYING:
            parts.append(f"{percent(share)} of the time limited by {words}")
    return parts


def _datagrams(flow: dict[str, Any]) -> list[str]:
    parts = []
    if flow.get("packets_sent"):
        parts.append(f"{percent((flow.get('packets_lost') or 0) / flow['packets_sent'])} lost")
    delay = flow.get("delay_ms")
    if delay and delay.get("p50") is not None:
        parts.append(f"one-way delay {milliseconds(delay['p50'])} median")
    if flow.get("jitter_ms") is not None:
        parts.append(f"jitter {milliseconds(flow['jitter_ms'])}")
    return parts
