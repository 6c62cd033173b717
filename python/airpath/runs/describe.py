"""A run in sentences: what each flow got and what held it back."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, cast

from airpath.base.text import count, digits, milliseconds, percent, plural, rate, size

if TYPE_CHECKING:
    from airpath.documents import (
        Breakdown,
        DelayPart,
        FairnessSummary,
        Finding,
        FlowSummary,
        Gain,
        GroupSummary,
        PingSummary,
        Tried,
    )
    from airpath.runs.document import RunDocument

_LIMITS = {
    "receive_window": "the receive window",
    "send_buffer": "the send buffer",
    "application": "the application",
}
_PROFILES = {"rfc": "RFC defaults"}
_WORTH_SAYING = 0.01
_SHORT = 0.05
"""Gain of a longer test from which its ramp is worth mentioning: `crates/findings` (hosts.rs) tries
a longer one from there on."""
_MOST_FLOWS = 30


def partial(summary: RunDocument) -> list[str]:
    """Say why a run is not complete."""
    return [f"partial, because {because}" for because in summary["run"].get("partial", [])]


def sentences(summary: RunDocument) -> list[str]:
    """One sentence a flow, how fairly they share, pings last; of very many flows the largest."""
    flows = [flow for flow in ordered(summary) if flow["kind"] != "ping"]
    shown = largest(flows, _MOST_FLOWS)
    proxied = {proxy["id"] for proxy in summary.get("proxies", [])}
    said = [flow_sentence(flow, proxied=flow["id"] in proxied) for flow in shown]
    if len(flows) > len(shown):
        said.append(f"and {plural(len(flows) - len(shown), 'more flow')} that carried less")
    said += [group_sentence(group) for group in summary.get("groups", [])]
    said += [fairness_sentence(shared) for shared in summary.get("fairness", [])]
    pings = summary["pings"]
    said += [ping_sentence(ping) for ping in pings[:_MOST_FLOWS]]
    more = len(pings) - _MOST_FLOWS
    return [*said, f"and {plural(more, 'more ping')}"] if more > 0 else said


def ordered(summary: RunDocument) -> list[FlowSummary]:
    """The flows of a scenario as it lists them, those of programs by what they carried.

    A program's first connection is often one that controls the test.
    """
    flows = list(summary["flows"])
    if "emulation" not in summary or summary["emulation"].get("scenario_flows", True):
        return flows
    return sorted(flows, key=lambda flow: -(flow.get("bytes_delivered") or 0))


def largest(flows: Sequence[FlowSummary], most: int) -> list[FlowSummary]:
    """The flows that carried most, in the order in which they are listed."""
    by_bytes = sorted(range(len(flows)), key=lambda at: -(flows[at].get("bytes_delivered") or 0))
    return [flows[at] for at in sorted(by_bytes[:most])]


def flow_sentence(flow: FlowSummary, *, proxied: bool = False) -> str:
    """``download: 4.36 Mb/s down (cubic, profile linux-6.1), RTT 61 ms median, …``."""
    if flow.get("goodput_mbps") is None:
        return f"{flow['id']}: did not start"
    parts = [f"{_goodput(flow)} {flow['direction']}"]
    stack = ["QUIC"] if flow["kind"] == "quic" else []
    if congestion := flow.get("congestion"):
        stack.append(congestion)
    if profile := flow.get("profile"):
        stack.append(f"endpoints: {_PROFILES.get(profile, profile)}")
    if stack:
        parts[0] += f" ({', '.join(stack)})"
    completed = flow.get("completed_s")
    if completed is not None:
        carried = size(flow.get("bytes_delivered") or 0)
        parts.append(f"{carried} in {digits(completed)} s")
    elif flow["kind"] == "file":
        parts.append(incomplete(flow))
    if flow["kind"] != "others":
        parts += _datagrams(flow) if flow["kind"] == "udp" else _connection(flow, proxied=proxied)
    return f"{flow['id']}: {', '.join(parts)}"


def group_sentence(group: GroupSummary) -> str:
    """``download: 17.4 Mb/s down in 4 streams, Jain's index 0.98``."""
    if group.get("goodput_mbps") is None:
        return f"{group['id']}: did not start"
    sum_of_all = f"{_goodput(group)} {group['direction']} in {plural(group['streams'], 'stream')}"
    index = group.get("jain_index")
    return f"{group['id']}: {sum_of_all}" + (f", Jain's index {digits(index)}" if index else "")


def fairness_sentence(shared: FairnessSummary) -> str:
    """``fairness down: Jain's index 0.87 over 2 flows (1: equal shares, …)``."""
    words = f"Jain's index {digits(shared['jain_index'])} over {plural(shared['flows'], 'flow')}"
    least = digits(1 / shared["flows"])
    return f"fairness {shared['id']}: {words} (1: equal shares, {least}: one flow gets everything)"


def ping_sentence(ping: PingSummary) -> str:
    """``ping: 100 sent, 2 lost, RTT min 48 ms, median 61 ms, p99 95 ms``."""
    text = f"{ping['id']}: {count(ping['sent'])} sent, {count(ping['lost'])} lost"
    rtt = ping.get("rtt_ms")
    if not rtt or rtt.get("p50") is None:
        if left := ping["sent"] - ping["lost"]:
            text += f", {count(left)} still on the way at the end"
        return f"{text}, no reply"
    least, median, most = (milliseconds(rtt[each]) for each in ("min", "p50", "p99"))
    return f"{text}, RTT min {least}, median {median}, p99 {most}"


def answer(summary: RunDocument) -> list[str]:
    """What held the run back: the largest cause, what to do, before and after; then the others.

    Nothing if nobody asked.
    """
    explained = summary.get("explained")
    if not explained:
        return []
    if because := explained.get("because"):
        return [f"nothing could be tried: {because}"]
    causes, bounds = causes_and_bounds(summary)
    lines: list[str] = []
    for place, finding in enumerate(causes):
        label = cause_label(finding, summary["tried"]) if place == 0 else "also"
        is_new = all(finding["set"] != other["set"] for other in causes[:place])
        lines += finding_lines(
            finding, label, summary["tried"], with_effect=is_new,
            resimulated=is_resimulated(summary),
        )  # fmt: skip
    if not causes:
        lines.append(_nothing_found(summary["tried"], bounds))
        lines += short_tests(summary["tried"])
    return lines + [f"bottleneck: {finding['evidence']}" for finding in bounds]


def cause_label(finding: Finding, tried: list[Tried]) -> str:
    """What the largest cause is of: ``largest limit on goodput of download``."""
    gain = removed(finding, tried) or finding["gain"]
    if not gain:
        return "largest cause"
    limit = "limit on" if gain["metric"] in _MORE_IS_BETTER else "cause of high"
    return f"largest {limit} {gain_name(gain)}"


def _nothing_found(tried: list[Tried], bounds: list[Finding]) -> str:
    """That nothing helped, and what was tried."""
    names = dict.fromkeys(
        f"{one['cause']} ({one['subject']})" for one in tried if one["score"] is not None
    )
    what = "the radio" if any(one["cause"] == "radio-capacity" for one in bounds) else "the link"
    found = f"nothing to fix: {what} itself is the limit" if bounds else "no cause found"
    if not names:
        return f"{found}; there was nothing else to remove"
    shown = list(names)[:_MOST_TRIED]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    return f"{found}; removing these did not help: {', '.join(shown)}{more}"


def short_tests(tried: list[Tried]) -> list[str]:
    """What a longer test of a flow showed, if its ramp made a difference that is no cause yet.

    ``the test of download is short for its path: over 40 s, goodput 134 Mb/s → 142 Mb/s (+6 %)``
    """
    lines = []
    for one in tried:
        gain = one["gain"]
        if one["cause"] != "test-too-short" or gain is None or gain["metric"] != "goodput_mbps":
            continue
        before, after = gain["before"], gain["after"]
        if before is None or after is None or after < (1 + _SHORT) * before:
            continue
        lengths = [entry.partition("=")[2] for entry in one["set"] if "duration_s" in entry]
        lines.append(
            f"the test of {one['subject']} is short for its path: over {lengths[-1]} s, "
            f"{figure_name(gain['metric'])} {gain_text(gain)} (+{percent(after / before - 1)})"
        )
    return lines


def breakdowns(summary: RunDocument) -> list[str]:
    """Where the time of the first flows went, as tables of a terminal; nothing if nobody asked."""
    lines: list[str] = []
    again = AGAIN if is_resimulated(summary) else ""
    for flow in summary.get("breakdowns", [])[:_MOST_BREAKDOWNS]:
        for what, whole, parts in breakdown_parts(flow, summary):
            # Capacity is that of the whole path, whatever splits the connection.
            is_rate = what == _CAPACITY_FOR
            name = flow["id"].partition("@proxy")[0] if is_rate else leg_name(flow["id"], summary)
            lines.append(f"{what} {name}{again}, {whole}:")
            shown = [part for part in parts if abs(part[1]) >= _WORTH_SAYING]
            widest = max((len(name) for name, _, _ in shown), default=0)
            for name, share, text in shown:
                bar = "█" * round(_BAR * max(share, 0.0))
                lines.append(
                    f"  {name.ljust(widest)}  {text:>9} {percent(share):>5}  {bar}".rstrip()
                )
    left = len(summary.get("breakdowns", [])) - _MOST_BREAKDOWNS
    return lines + ([f"--json has {plural(left, 'more breakdown')}"] if left > 0 else [])


def is_resimulated(summary: RunDocument) -> bool:
    """Whether a run's findings and breakdowns are of a simulation of it: an emulated run."""
    return "emulation" in summary


def leg_name(name: str, summary: RunDocument) -> str:
    """A flow's name; where a proxy splits the flow, with the leg: ``download, proxy to UE``."""
    own, at_proxy, _ = name.partition("@proxy")
    if not at_proxy and all(one["id"] != own for one in summary.get("proxies", [])):
        return name
    down = any(one["id"] == own and one["direction"] == "down" for one in summary["flows"])
    first, last = ("server", "UE") if down else ("UE", "server")
    return f"{own}, proxy to {last}" if at_proxy else f"{own}, {first} to proxy"


def breakdown_parts(
    flow: Breakdown, summary: RunDocument
) -> list[tuple[str, str, list[tuple[str, float, str]]]]:
    """What was broken down, its whole, and its parts: name, share of the whole and text.

    The flow's name completes what was: ``capacity for``, ``RTT of``.
    """
    made = []
    if (goodput := flow["goodput_mbps"]) and goodput["capacity"] > 0:
        parts = [("goodput", goodput["goodput"] / goodput["capacity"], rate(goodput["goodput"]))]
        parts += [
            (_CAPACITY.get(part["part"], part["part"]), part["share"], rate(part["mbps"]))
            for part in goodput["parts"]
        ]
        at = f" at {goodput['place']}" if goodput["place"] else ""
        # Only links have a rate.
        slower = [one["subject"] for one in summary["findings"] if one["cause"] in _PACKET_RATES]
        at += f", without the packet-rate limit of {', '.join(slower)}" if slower else ""
        made.append((_CAPACITY_FOR, f"{rate(goodput['capacity'])}{at}", parts))
    for times, what in ((flow["rtt_ms"], "RTT of"), (flow["delay_ms"], "one-way delay of")):
        if times:
            parts = [
                (_part_name(part), part["share"], milliseconds(part["ms"]))
                for part in times["parts"]
            ]
            made.append((what, f"{milliseconds(times['mean'])} mean", parts))
    return made


def _part_name(part: DelayPart) -> str:
    name = _PARTS.get(part["part"], part["part"].replace("_", " "))
    if part["part"] == "host" and (part["place"] or "").endswith(".modem"):
        name = "modem"
    return f"{name} ({part['place']})" if part["place"] else name


def causes_and_bounds(
    summary: RunDocument,
) -> tuple[list[Finding], list[Finding]]:
    """Findings that are causes, and those that only say what the path carries."""
    found: list[Finding] = summary["findings"]
    bounds = [finding for finding in found if finding["cause"].endswith("-capacity")]
    return [finding for finding in found if finding not in bounds], bounds


def finding_lines(
    finding: Finding,
    label: str,
    tried: list[Tried],
    *,
    with_effect: bool = True,
    resimulated: bool = False,
) -> list[str]:
    """What was found, what to do about it, and what that obtained.

    ``with_effect`` is false where another finding has the same settings, and says what they do.
    ``resimulated`` marks figures of a simulation of an emulated run.
    """
    lines = [f"{label}: {finding['cause']} ({finding['subject']})"]
    lines.append(f"  {finding['evidence']}")
    if finding["advice"]:
        first, *more = finding["advice"].split("\n")
        lines += [f"  {first}", *(f"    {each}" for each in more)]
    if finding["set"] and not with_effect:
        return lines
    if finding["set"]:
        lines.append(f"  {set_options(finding['set'])}")
    lines += [f"    {line}" for line in chart(finding, tried, resimulated=resimulated)]
    if finding["costs"]:
        costs = [f"{gain_name(cost)} {gain_text(cost)}" for cost in finding["costs"]]
        again = AGAIN if resimulated else ""
        path = ", compared with the path as it is" if is_of_other(finding, tried) else ""
        lines.append(f"    costs{again}{path}: {'; '.join(costs)}")
    return lines


def set_options(sets: list[str]) -> str:
    """``--set KEY=VALUE`` for each, as a shell takes them."""
    return " ".join(f"--set {shlex.quote(one)}" for one in sets)


def removed(finding: Finding, tried: list[Tried]) -> Gain | None:
    """What the removal of the cause did: the first of ``tried`` that is about it."""
    about = (finding["cause"], finding["subject"])
    found = (one for one in tried if (one["cause"], one["subject"]) == about)
    return next((one.get("gain") for one in found), None)


def is_of_other(finding: Finding, tried: list[Tried]) -> bool:
    """Whether advice, which contains that against another cause, gains in another figure."""
    own, gain = removed(finding, tried), finding["gain"]
    if own is None or gain is None:
        return False
    return (own["metric"], own["flow"]) != (gain["metric"], gain["flow"])


def before_and_after(
    finding: Finding, tried: list[Tried], *, resimulated: bool = False
) -> list[tuple[str, float, str]]:
    """Label, length from 0 to 1 and text of two bars.

    None where nothing was measured, or where a transfer did not complete: a time that is only known
    to be longer has no length.
    """
    gain = finding["gain"] or removed(finding, tried)
    if not gain:
        return []
    metric, before, after = gain["metric"], gain["before"], gain["after"]
    if before is None or after is None:
        return []
    most = max(before, after) or 1.0
    spread = ""
    if gain["ci95"] is not None:
        low, high = (figure_text(metric, bound) for bound in gain["ci95"])
        spread = f" ({low} to {high})" if low != high else ""
    as_it_is = "on the path as it is" if is_of_other(finding, tried) else "before"
    with_it = "with the advice" if finding["gain"] else "without the cause"
    after_mark = AGAIN if resimulated else ""
    # What a late host gave is of the recorded run; only what it would have given is simulated.
    before_mark = "" if finding["cause"] == "emulation-host" else after_mark
    return [
        (f"{gain_name(gain)} {as_it_is}{before_mark}", before / most, figure_text(metric, before)),
        (f"{with_it}{after_mark}", after / most, f"{figure_text(metric, after)}{spread}"),
    ]


def chart(finding: Finding, tried: list[Tried], *, resimulated: bool = False) -> list[str]:
    """Before and after as two bars of a terminal."""
    bars = before_and_after(finding, tried, resimulated=resimulated)
    widest = max((len(label) for label, _, _ in bars), default=0)
    return [
        f"{label.rjust(widest)}  {'█' * max(1, round(_BAR * share))} {text}"
        for label, share, text in bars
    ]


def gain_name(gain: Gain) -> str:
    """``goodput of download``."""
    # Jain's index is of a direction.
    link = "link flows" if gain["metric"] == "jain_index" else ""
    return f"{_NAMES[gain['metric']]} of {gain['flow']}{link}"


def gain_text(gain: Gain | None) -> str:
    """``1.2 Mb/s → 4.3 Mb/s``; empty if the gain is not known."""
    if not gain:
        return ""
    before, after = (
        figure_text(gain["metric"], value) for value in (gain["before"], gain["after"])
    )
    return f"{before} → {after}"


def figure_name(metric: str) -> str:
    """``goodput`` of ``goodput_mbps``."""
    return _NAMES[metric]


def figure_text(metric: str, value: float | None) -> str:
    """A value of a metric with its unit; None is the completion time of what did not complete."""
    return INCOMPLETE if value is None else _UNITS[metric](value)


def incomplete(flow: FlowSummary) -> str:
    """``did not complete within the run``, of several seeds with how often."""
    values = (flow.get("values") or {}).get("completed_s")
    if not isinstance(values, list) or not values:
        return f"{INCOMPLETE} within the run"
    return f"{INCOMPLETE} within the run in {values.count(None)} of {len(values)} seeds"


def _seconds(value: float) -> str:
    return f"{digits(value)} s"


AGAIN = " (re-simulated)"
"""Marks what is not of an emulated run itself but of a simulation of it."""
INCOMPLETE = "did not complete"
"""Instead of the completion time of a transfer that the run's end cut off."""
_BAR = 30
_MOST_BREAKDOWNS = 3
_MOST_TRIED = 4
_PACKET_RATES = ("modem-ceiling", "host-processor")
"""Causes that limit packets per second."""
_MORE_IS_BETTER = ("goodput_mbps", "answered_share", "jain_index")
_PARTS = {
    "sr": "wait for SR opportunity",
    "grant": "SR to grant",
    "bsr": "BSR to grant",
    "slot": "wait for slot",
    "drx": "asleep (DRX)",
    "rrc": "RRC",
    "harq": "HARQ",
    "rlc": "RLC (retransmission, order)",
    "acknowledgement": "delayed acknowledgement",
}
_CAPACITY_FOR = "capacity for"
_CAPACITY = {
    "sharing": "other flows",
    "radio": "radio overhead",
    "handshake": "unused: handshake",
    "slow_start": "unused: slow start",
    "congestion_avoidance": "unused: cwnd too small",
    "recovery": "unused: recovery",
    "time_out": "unused: time-out",
    "receive_window": "unused: receive window full",
    "send_buffer": "unused: send buffer full",
    "application": "unused: nothing to send",
}
_NAMES = {
    "goodput_mbps": "goodput",
    "completed_s": "completion time",
    "rtt_ms.p95": "RTT (p95)",
    "rtt_ms.p50": "median RTT",
    "rtt_ms.mean": "mean RTT",
    "answered_share": "reply rate",
    "delay_ms.p95": "one-way delay (p95)",
    "jain_index": "Jain's index",
    "retransmitted_share": "retransmitted segments",
}
_UNITS: dict[str, Callable[[float], str]] = {
    "goodput_mbps": rate,
    "completed_s": _seconds,
    "rtt_ms.p95": milliseconds,
    "rtt_ms.p50": milliseconds,
    "rtt_ms.mean": milliseconds,
    "answered_share": percent,
    "delay_ms.p95": milliseconds,
    "jain_index": digits,
    "retransmitted_share": lambda value: f"{float(f'{100 * value:.2g}'):g} %",
}


def _goodput(flow: FlowSummary | GroupSummary) -> str:
    text = rate(flow["goodput_mbps"] or 0.0)
    bounds = (flow.get("ci95") or {}).get("goodput_mbps")
    if not isinstance(bounds, list):
        return text
    return f"{text} ± {rate((bounds[1] - bounds[0]) / 2)}"


def _connection(flow: FlowSummary, *, proxied: bool) -> list[str]:
    parts = []
    rtt = flow.get("rtt_ms")
    if rtt and rtt.get("p50") is not None:
        parts.append(f"RTT {milliseconds(rtt['p50'])} median")
    if again := flow.get("retransmitted_segments"):
        parts.append(plural(again, "retransmission"))
    if lost := flow.get("packets_lost"):
        parts.append(f"{plural(lost, 'packet')} lost")
    if timeouts := flow.get("rto_count"):
        parts.append(plural(timeouts, "time-out"))
    limited = cast("dict[str, float | None]", flow.get("limited_s") or {})
    total = sum(value or 0.0 for value in limited.values())
    proxys = "the proxy's receive window: the proxy's other connection drains more slowly"
    limits = {**_LIMITS, "receive_window": proxys} if proxied else _LIMITS
    for key, words in limits.items():
        share = (limited.get(key) or 0.0) / total if total else 0.0
        if share >= _WORTH_SAYING:
            parts.append(f"{percent(share)} of the time limited by {words}")
    return parts


def _datagrams(flow: FlowSummary) -> list[str]:
    parts = []
    if sent := flow.get("packets_sent"):
        parts.append(f"{percent((flow.get('packets_lost') or 0) / sent)} lost")
    delay = flow.get("delay_ms")
    if delay and delay.get("p50") is not None:
        parts.append(f"one-way delay {milliseconds(delay['p50'])} median")
    jitter = flow.get("jitter_ms")
    if jitter is not None:
        parts.append(f"jitter {milliseconds(jitter)}")
    return parts
