"""A shell script of ``tc`` commands for a path: netem for delay and loss, tbf for the rate.

netem(8) can express neither a radio nor anything that reacts to traffic. The script begins with a
list of what it leaves out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from airpath.base.text import short
from airpath.export.recorded import DIRECTIONS, Recorded, Values

if TYPE_CHECKING:
    import polars as pl

    from airpath.runs.results import Run

STEP_MS = 100
"""Shortest time that a rate holds: each change starts a tc process."""
LEAST_KBPS = 8
"""Smallest rate, at which a packet takes 1.5 s: tbf has no rate of 0."""
LIMIT_PACKETS = 10_000
"""Packets that netem may delay at a time; its default of 1000 is too few for fast paths."""
_PACKET_BYTES = 1514
_UNLIMITED_BYTES = 1 << 30
_NO_RATE = 0.02
"""Relative difference up to which a rate counts as unchanged."""

LEFT_OUT = {
    "batch": "packets leave only at multiples of an interval",
    "gtpu": "outer headers of a GTP-U tunnel",
    "vpn": "outer headers and padding of a VPN",
    "mtu": "packets larger than an MTU are dropped",
    "offload": "a faulty offload, which drops packets with data",
    "nat": "a NAT and its timers",
    "firewall": "a firewall and its timers",
    "host": "a host that forwards in software and stalls",
    "modem": "a modem driver, which moves packets in blocks",
    "policer": "a policer, which drops instead of queueing",
    "proxy": "a TCP proxy",
}
_RADIO = (
    "the radio's reaction to traffic: scheduling requests and grants, DRX, RRC states, a scheduler "
    "that shares the cell, link adaptation, packets that leave together at the end of a slot",
    "the delay of HARQ and RLC retransmissions, packet by packet",
)
_SCRIPT = """\
#!/bin/sh
# {title}
# As root: {name} DIRECTION INTERFACE
# Shapes what INTERFACE sends as DIRECTION (down or up) of the path, until Ctrl-C. Run it once for
# each direction, at the interface through which its packets leave. Rates repeat after {length} s.
#
# Not expressed by netem and tbf:
{left_out}
set -eu

usage() {{
    echo "usage: $0 down|up INTERFACE" >&2
    exit 2
}}

[ $# -eq 2 ] || usage
direction=$1 interface=$2

# Waits until this many milliseconds after the start of the round.
wait_until() {{
    left=$((start + $1 - $(date +%s%3N)))
    if [ "$left" -gt 0 ]; then
        sleep "$((left / 1000)).$(printf %03d "$((left % 1000))")"
    fi
}}

rate() {{
    wait_until "$1"
    tc qdisc change dev "$interface" parent 1:1 handle 10: tbf \\
        rate "$2kbit" burst "$burst" limit "$limit"
}}

added=
remove() {{
    [ -z "$added" ] || tc qdisc del dev "$interface" root
    added=
}}
trap remove EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

{directions}
case $direction in
    down|up) ;;
    *) usage ;;
esac

# This fails if the interface already has a qdisc.
"set_up_$direction"
start=$(date +%s%3N)
while :; do
    "rates_$direction"
    wait_until {length_ms}
    start=$((start + {length_ms}))
done
"""


def netem(run: Run, name: str = "netem.sh", ue: str | None = None, seed: int | None = None) -> str:
    """Return the script for a run: rates over time, delays and losses of both directions."""
    recorded = Recorded(run, ue, seed)
    length_ms = max(1, round(1e3 * recorded.duration_s))
    left_out = dict.fromkeys(
        line for direction in DIRECTIONS for line in _not_expressed(recorded, direction)
    )
    return _SCRIPT.format(
        title=f"{recorded.run.title}, seed {recorded.seed}: {recorded.ue}".replace("\n", " "),
        name=name,
        length=short(length_ms / 1e3),
        length_ms=length_ms,
        left_out="\n".join(f"# - {line}" for line in left_out) or "# - nothing",
        directions="\n".join(_direction(recorded, direction) for direction in DIRECTIONS),
    )


def _direction(recorded: Recorded, direction: str) -> str:
    stages = recorded.stages(direction)
    delay_ms = recorded.path_delay_ms(direction)
    if recorded.has_radio and _has_log(recorded):
        delay_ms += recorded.base_delay_ms(direction)
    jitter_ms = _jitter_ms(stages)
    words = [f"netem limit {LIMIT_PACKETS} delay {delay_ms + jitter_ms / 2:.3f}ms"]
    if jitter_ms:
        words.append(f"{jitter_ms / 2:.3f}ms")
    words += _losses(stages)
    rates = _rates(recorded, direction)
    # The bytes of one timer tick of 4 ms, and at least one GSO packet.
    burst = max(65_536, round(max((rate for _, rate in rates), default=0) * 125 * 0.004))
    lines = [f"set_up_{direction}() {{"]
    add = 'tc qdisc add dev "$interface"'
    lines.append(f"    {add} root handle 1: {' '.join(words)}")
    lines.append("    added=yes")
    if rates:
        lines.append(f"    burst={burst} limit={_queue_bytes(recorded, direction)}")
        lines.append(
            f'    {add} parent 1:1 handle 10: tbf rate {rates[0][1]}kbit burst "$burst" '
            'limit "$limit"'
        )
    lines += ["}", f"rates_{direction}() {{"]
    lines += [f"    rate {at} {rate}" for at, rate in rates] or ["    :"]
    return "\n".join([*lines, "}", ""])


def _rates(recorded: Recorded, direction: str) -> list[tuple[int, int]]:
    """Return the times in ms from which a rate in kbit/s holds; none if nothing limits the rate."""
    capacities = [
        _delivered(recorded, direction) if is_radio and _has_log(recorded) else _by_step(rows)
        for is_radio, rows in (
            (name.startswith("radio."), rows) for name, rows in recorded.links(direction).items()
        )
    ]
    if not capacities:
        return []
    size = min(map(len, capacities))
    capacity = np.min([one[:size] for one in capacities], axis=0)
    rates: list[tuple[int, int]] = []
    for index, mbps in enumerate(capacity):
        kbps = max(LEAST_KBPS, round(1e3 * float(mbps)))
        if not rates or abs(kbps / rates[-1][1] - 1) > _NO_RATE:
            rates.append((index * STEP_MS, kbps))
    return rates


def _has_log(recorded: Recorded) -> bool:
    return recorded.run.has_table("radio_log")


def _delivered(recorded: Recorded, direction: str) -> Values:
    """Mean rate in Mb/s of the packets that left the radio in each step."""
    passed = recorded.passed(direction)
    steps = np.arange(0, 1e3 * recorded.duration_s + STEP_MS / 2, STEP_MS)
    sizes, _ = np.histogram(passed.left_ms, bins=steps, weights=passed.bytes)
    # A byte in a ms is 8 kb/s.
    return np.asarray(sizes * 8e-3 / STEP_MS)


def _by_step(rows: pl.DataFrame) -> Values:
    """Mean capacity in Mb/s of each step."""
    end_ms = rows["time_ns"].to_numpy() / 1e6
    start_ms = np.concatenate([[0.0], end_ms[:-1]])
    carried = np.concatenate(
        [[0.0], np.cumsum(rows["capacity_mbps"].to_numpy() * (end_ms - start_ms))]
    )
    steps = np.arange(0, end_ms[-1] + STEP_MS / 2, STEP_MS)
    at_steps = np.interp(steps, np.concatenate([[0.0], end_ms]), carried)
    return np.asarray(np.diff(at_steps) / STEP_MS)


def _jitter_ms(stages: list[dict[str, Any]]) -> float:
    """Return the largest jitter, if it is uniform and of one stage; 0 if netem cannot express it.

    A stage adds from 0 to this to its delay, netem from minus to plus half of it to a mean delay.
    """
    jitter = [stage for stage in stages if stage.get("jitter_ms")]
    if len(jitter) != 1 or jitter[0].get("jitter_distribution", "uniform") != "uniform":
        return 0.0
    return float(jitter[0]["jitter_ms"])


def _losses(stages: list[dict[str, Any]]) -> list[str]:
    for stage in stages:
        if stage["stage"] == "loss" and _is_random(stage):
            return [f"loss random {100 * float(stage['probability']):.6g}%"]
        if stage["stage"] == "gilbert-elliott":
            percent = [
                100 * float(value)
                for value in (
                    stage["good_to_bad"],
                    stage["bad_to_good"],
                    stage["loss_bad"],
                    stage["loss_good"],
                )
            ]
            return ["loss gemodel " + " ".join(f"{one:.6g}%" for one in percent)]
    return []


def _is_random(stage: dict[str, Any]) -> bool:
    return bool(stage.get("probability"))


def _queue_bytes(recorded: Recorded, direction: str) -> int:
    """Return the queue in bytes of the smallest link; radio buffers have their own keys."""
    sizes = []
    for stage in recorded.stages(direction):
        if stage["stage"] in ("link", "trace", "shaper"):
            sizes.append(_limit(stage.get("queue_packets"), stage.get("queue_bytes")))
    buffer = recorded.radio_buffer(direction)
    sizes.append(_limit(buffer.get("queue_packets"), buffer.get("queue_bytes")))
    return min(sizes)


def _limit(packets: Any, size: Any) -> int:
    found = [_UNLIMITED_BYTES]
    if isinstance(packets, int):
        found.append(packets * _PACKET_BYTES)
    if isinstance(size, int):
        found.append(size)
    return min(found)


def _not_expressed(recorded: Recorded, direction: str) -> list[str]:
    stages = recorded.stages(direction)
    lines = []
    for place, stage in enumerate(stages):
        kind = stage["stage"]
        where = f"{direction}.{place}.{kind}"
        if kind in LEFT_OUT:
            lines.append(f"{where}: {LEFT_OUT[kind]}")
        if stage.get("aqm", "drop-tail") != "drop-tail":
            lines.append(f"{where}: its queue management, {stage['aqm']}")
        if kind == "shaper":
            lines.append(f"{where}: its burst")
        if kind == "trace":
            lines.append(f"{where}: when exactly each packet may leave; the rate is that of 100 ms")
        if kind == "loss" and not _is_random(stage):
            lines.append(f"{where}: losses that are not random")
        if stage.get("jitter_ms") and not _jitter_ms(stages):
            lines.append(f"{where}: its jitter")
        elif stage.get("jitter_ms") and stage.get("keep_order", True):
            lines.append(f"{where}: packets keep their order; netem's may overtake")
    losses = [stage for stage in stages if stage["stage"] in ("loss", "gilbert-elliott")]
    if len(losses) > 1:
        lines.append(f"{direction}: all loss stages but the first")
    if len(recorded.links(direction)) > 1:
        lines.append(f"{direction}: more than one queue; the rate is the least of all links")
    if recorded.has_radio:
        lines += _RADIO
        if _has_log(recorded):
            lines.append(f"{direction}: what the radio could have carried when nothing waited")
        else:
            lines.append(
                "the radio's own delay, and its HARQ retransmissions: the run did not record them "
                "(--record)"
            )
    return lines
