"""A measurement in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from airpath.base.text import digits, milliseconds, plural, rate, size
from airpath.measure import nats, responsiveness, udp
from airpath.runs import describe

if TYPE_CHECKING:
    from airpath.measure.document import (
        EcnDocument,
        EffectDocument,
        Measured,
        MtuDocument,
        RateDocument,
    )
    from airpath.runs.document import RunDocument
    from airpath.runs.results import Run

_NOTICED = 0.03
"""Share of the rate by which a short test must miss to be worth a word."""
_MORE = 3
"""As much time and data narrow an interval to nearly a half."""
_METRICS = {
    "steady_mbps": "rate",
    "retransmitted_share": "retransmitted",
    "rtt_ms.p50": "RTT",
    "rtt_ms.mean": "RTT",
}


def sentences(run: Run) -> list[str]:
    """Describe a measurement: the path, the effects, the causes."""
    measured = run.summary["measured"]
    lines = [*describe.partial(run.summary), *_path(measured), *_effects(measured)]
    lines += _open(measured)
    causes, bounds = describe.causes_and_bounds(run.summary)
    for place, finding in enumerate(causes):
        label = describe.cause_label(finding, []) if place == 0 else "also"
        lines += describe.finding_lines(finding, label, [])
    lines += [f"no cause found ({one['subject']}): {one['evidence']}" for one in bounds]
    score = measured["twin_score"]
    if score is not None:
        lines.append(f"twin: its transfer matches the measured one to {score:.0%}")
    lines += [f"  not in the twin: {one.replace('-', ' ')}" for one in measured["not_in_twin"]]
    return lines


def overview(measured: Measured) -> list[str]:
    """Describe the path, and what is left open."""
    return [*_path(measured), *_open(measured)]


def effects_table(measured: Measured) -> tuple[list[str], list[list[str]]]:
    """Heads and rows: what each treatment changed, against ``base`` in the same blocks."""
    rows = []
    for one in measured["effects"]:
        within = "too few blocks"
        if one["ci95"] is not None:
            within = f"{digits(one['ci95'][0])} to {digits(one['ci95'][1])}"
        rows.append(
            [
                f"{one['direction']}, {one['treatment']}",
                _METRICS[one["metric"]],
                _figure(one, "before"),
                _figure(one, "after"),
                f"x {digits(one['factor'])}",
                within,
                str(one["blocks"]),
            ]
        )
    return ["treatment", "figure", "before", "after", "factor", "95 %", "blocks"], rows


def phases_table(summary: RunDocument) -> tuple[list[str], list[list[str]]]:
    """Heads and rows: the phases in the order in which they ran.

    The RTT is the median of probes, beside a transfer once it is steady.
    """
    idle = {one["id"]: one["rtt_ms"] for one in summary["pings"]}
    rows = []
    for one in summary["measured"]["phases"]:
        what = one["kind"] if one["direction"] is None else f"{one['kind']} {one['direction']}"
        figures = one["figures"]
        told = ["", "", ""]
        if figures is not None:
            again, trips = figures["retransmitted_segments"], figures["loaded_ms"]
            lost = "" if again is None else f"{again / max(1, figures['segments']):.2%}"
            told = [rate(figures["steady_mbps"]), lost, ""]
        else:
            probes = idle.get(f"{one['number']}-{one['kind']}-{one['treatment']}")
            trips = None if probes is None else probes["p50"]
        if trips is not None:
            told[2] = milliseconds(trips)
        block = "" if one["block"] < 0 else str(one["block"])
        treatment = "" if one["kind"] == "mtu" else one["treatment"]
        rows.append(
            [
                f"{one['number']} {what}",
                treatment,
                block,
                f"{one['started_s']:.1f} s",
                *told,
                "; ".join(one["errors"]),
            ]
        )
    heads = ["phase", "treatment", "block", "start", "rate", "retransmitted", "RTT", "errors"]
    return heads, rows


def _open(measured: Measured) -> Iterator[str]:
    """Say what was not decided or not tried."""
    yield from _placement(measured)
    if measured["undecided"]:
        yield (
            f"undecided ({' and '.join(measured['undecided'])}): the intervals are too wide to "
            "tell whether something limits TCP or the path is simply full; more blocks narrow "
            f"them: --time {math.ceil(_MORE * measured['time_s'])}s "
            f"--data {math.ceil(_MORE * measured['data_bytes'] / 1e6)}MB"
        )
    if measured["likeliest"]:
        names = (
            f"{one['cause']} ({one['direction']}, {one['probability']:.0%})"
            for one in measured["likeliest"]
        )
        yield (f"likeliest causes, by the captures: {', '.join(names)}")
    if measured["left_out"]:
        yield (f"not tried, for lack of time or data: {', '.join(measured['left_out'])}")


def _placement(measured: Measured) -> Iterator[str]:
    """Say where the server's place is not the cause; where it is, a finding says so."""
    verdicts = {"none": "is not the cause", "open": "is undecided: more blocks may decide"}
    for one in measured["also"]["placement"] if "also" in measured else []:
        if one["verdict"] in verdicts:
            yield f"placement ({one['direction']}) {verdicts[one['verdict']]}. {one['said']}"


def _path(measured: Measured) -> Iterator[str]:
    if measured["near_seen_as"] is not None:
        yield f"{measured['server']} sees this host as {measured['near_seen_as']}"
    found = measured["nats"]
    if found is not None and (measured["nat"] or found["binding_s"] is not None):
        yield nats.sentence(found)
    elif measured["nat"]:
        yield "this host is behind a NAT"
    if "also" in measured:
        also = measured["also"]
        yield f"the other server, {also['server']}, sees it as {also['near_seen_as']}"
    if measured["unprobed"] is not None:
        yield f"no round trips of probes: {measured['unprobed']}"
    if measured["handshake_ms"] is not None:
        yield f"the fastest TCP handshake took {milliseconds(measured['handshake_ms'])}"
    limit = measured["limit_mbps"]
    if limit is not None:
        yield f"the server allows {rate(limit)} (--most-rate): no transfer can be faster"
    for one in measured["rates"]:
        within = ""
        if one["ci95"] is not None:
            within = f" (95 %: {rate(max(0.0, one['ci95'][0]))} to {rate(one['ci95'][1])})"
        yield f"{one['direction']}: {rate(one['steady_mbps'])} steady{within}{ramp(one)}"
    yield from _sizes(measured["mtu"])
    yield from responsiveness.sentences(measured["responsiveness"])
    yield from udp.sentences(measured["udp"])
    yield from map(_ecn, measured.get("ecn", []))
    yield f"{size(measured['carried_bytes'])} carried; it stopped because {measured['stopped']}"


def ramp(one: RateDocument) -> str:
    """How long the rate grows, and what that means for a short test."""
    short = one["short_test_mbps"]
    if short is None:
        return (
            f"; the rate still grew when the longest test ({one['longest_s']:.1f} s) ended: a "
            "short one (iperf3 -t 10) may show far too low a rate"
        )
    missing = 1 - short / max(one["steady_mbps"], 1e-9)
    if missing < _NOTICED:
        return ""
    return (
        f"; the rate grows for {one['ramp_s'] or 0.0:.1f} s: iperf3 -t 10 shows {rate(short)}, "
        f"{missing:.0%} less (iperf3 -O {math.ceil(one['ramp_s'] or 0.0)} leaves slow start out)"
    )


def _sizes(all_: Sequence[MtuDocument]) -> Iterator[str]:
    """Which sizes pass with DF set, and the probes that prove it."""
    for one in all_:
        larger, sent = one["too_large_bytes"], one["too_large_sent"]
        if larger is None or one["path_bytes"] is None:
            continue
        said = f"{one['direction']}: IP packets of {one['path_bytes']} bytes pass with DF set"
        if not sent:
            yield f"{said}; the sender's interface has no larger MTU"
            continue
        icmp = "; ".join(one["icmp"]) or "no ICMP error came back"
        yield f"{said}; of {sent} probes of {larger} bytes none arrived ({icmp})"


def _ecn(one: EcnDocument) -> str:
    if not one["negotiated"]:
        settings = (
            "unknown" if each is None else str(each)
            for each in (one["near_setting"], one["far_setting"])
        )
        here, there = settings
        return (
            f"{one['direction']}: no ECN (net.ipv4.tcp_ecn is {here} here, {there} at the "
            "server; 1 on this host, which opens the connections, requests ECN)"
        )
    if not one["arrives"]:
        return f"{one['direction']}: ECN is negotiated, but something on the path clears its bits"
    marked = one["marked_segments"]
    said = f"{plural(marked, 'segment')} marked" if marked else "no segment was marked"
    return f"{one['direction']}: ECN is negotiated, its bits arrive, and {said}"


def _effects(measured: Measured) -> Iterator[str]:
    for one in measured["effects"]:
        within = ""
        if one["ci95"] is not None:
            within = f" (95 %: {digits(one['ci95'][0])} to {digits(one['ci95'][1])})"
        yield (
            f"  {one['direction']}, {one['treatment']}: {_METRICS[one['metric']]} "
            f"{_figure(one, 'before')} → {_figure(one, 'after')}, x {digits(one['factor'])}{within}"
        )


def _figure(one: EffectDocument, key: str) -> str:
    value = one["before"] if key == "before" else one["after"]
    if one["metric"] == "steady_mbps":
        return rate(value)
    return milliseconds(value) if one["metric"].startswith("rtt_ms") else f"{value:.2%}"
