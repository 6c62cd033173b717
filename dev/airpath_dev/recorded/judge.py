"""A drawn run: what the capture at the sender tells, and what the run itself records."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import airpath
from airpath import _core
from airpath_dev.harness import FINE, WRONG
from airpath_dev.planted.bases import ALL, base
from airpath_dev.planted.draft import Pick, stage

_EPOCH_S = 946_684_800
"""The model's time 0."""
MOST_APART = 0.01
"""Of a round trip."""
SHARE = 0.9
"""Share of runs in which a figure must be right; the number of retransmissions must be right in
all."""
FIGURES = {
    "p50": "median round trip within 1 %",
    "mean": "mean within 1 %",
    "p95": "95th percentile within 1 %",
    "again": "retransmitted: the same number",
}


@dataclass(frozen=True)
class Judged:
    """One run. Pairs are the capture's figure and the record's."""

    words: str
    rtt: dict[str, float]
    """By figure, how far the capture's is off, as a share."""
    again: tuple[int, int]
    spurious: tuple[int, int]
    provable: int
    """Spurious ones of which the receiver could tell the sender."""
    exit_round: tuple[int | None, int] | None
    """None if the sender took back what ended its slow start, or there was none."""

    @property
    def faults(self) -> list[str]:
        """Figures that are wrong."""
        told, true = self.spurious
        found = [name for name, apart in self.rtt.items() if abs(apart) > MOST_APART]
        found += ["again"] if self.again[0] != self.again[1] else []
        found += ["spurious"] if told > true or told < self.provable else []
        if self.exit_round and (
            self.exit_round[0] is None or abs(self.exit_round[0] - self.exit_round[1]) > 1
        ):
            found.append("exit")
        return found


def drawn(seed: int, number: int) -> tuple[str, str, bool]:
    """A scenario with one transfer, in words too, and whether acknowledgements are lost.

    Wires and cells of LTE, NR and 3G, down and up, CUBIC, Reno and BBR; in half of them packets are
    lost at random, in a quarter they overtake each other, in a quarter acknowledgements jitter.
    """
    pick = Pick(f"airpath recorded {seed} {number}")
    access = ALL[number % len(ALL)]
    draft, _ = base(pick, access, 1, None)
    draft.flows = [one for one in draft.flows if one["kind"] == "bulk"][:1]
    draft.seed = number + 1
    losses = [pick.chance(0.5) for _ in range(2)]
    for way, is_lossy in zip((draft.there, draft.back), losses, strict=True):
        if is_lossy:
            way.append(stage("loss", probability=pick.log(0.0005, 0.02)))
    kind = pick.randrange(4)
    jitter = {"delay_ms": pick.uniform(1, 10), "jitter_ms": pick.uniform(1, 15)}
    if kind == 0:
        draft.there.append(stage("delay", **jitter, keep_order=False))
    elif kind == 1:
        draft.back.append(stage("delay", **jitter))
    said = ["overtaking, ", "jitter of acknowledgements, ", "", ""][kind]
    lost = ["no loss", "loss", "acknowledgements lost", "loss both ways"][losses[0] + 2 * losses[1]]
    direction = "up" if draft.up else "down"
    words = f"{access} {direction}, {draft.flows[0]['congestion']}, {said}{lost}"
    return draft.text(), words, losses[1]


def judge(seed: int, number: int, place: Path) -> Judged:
    """Draw, run and compare."""
    text, words, acks_lost = drawn(seed, number)
    scenario = place / f"{number}.toml"
    scenario.write_text(text)
    out = place / f"{number}"
    run = airpath.run(scenario, out=out, capture=True)
    file = out / "capture.pcapng"
    (flow,) = run.summary["flows"]
    report: Any = _core.read_capture(file)
    names = [one["name"] for one in report["interfaces"]]
    sender = 0 if flow["direction"] == "down" else 1
    at = {names[one["interface"]] == "server": one for one in report["flows"] if one["tcp"]}
    here, there = at[sender == 0], at[sender != 0]
    by_client = max((True, False), key=lambda one: _stream(here, one)["data_bytes"])
    stream = _stream(here, by_client)
    sent, arrived = (_segments(file, one["id"], by_client) for one in (here, there))
    again = stream["retransmissions"]
    unneeded, reported = _unneeded(sent, arrived)
    told: Any = stream["rtt_timestamps_ms"]
    recorded: Any = flow["rtt_ms"]
    retransmitted: Any = flow["retransmitted_segments"]
    return Judged(
        words,
        {name: told[name] / recorded[name] - 1 for name in ("p50", "p95", "mean")},
        (again["packets"] - again["handshake"], retransmitted),
        # A SYN-ACK that was sent twice is not among the run's segments; it may have been lost once.
        (
            min(max(again["spurious"] - again["handshake"], unneeded), again["spurious"]),
            unneeded,
        ),
        # Where acknowledgements are lost, some proofs are.
        0 if acks_lost else reported,
        None if flow["undo_count"] else _exit(out, report, sent, stream["slow_start"]),
    )


def verdict(
    figures: Mapping[str, str], faults: Sequence[Sequence[str]], counts: Mapping[str, int]
) -> int:
    """Print in how many runs each figure is right, and return the exit code.

    ``faults`` has each run's wrong figures, ``counts`` the number of runs with a figure that not
    all runs have.
    """
    wrong = Counter(name for one in faults for name in one)
    code = FINE if faults else WRONG
    for name, what in figures.items():
        count = counts.get(name, len(faults))
        print(f"{what:38} {count - wrong[name]} of {count}")
        if wrong[name] > (0 if name == "again" else (1 - SHARE) * count):
            code = WRONG
    return code


def _stream(flow: dict[str, Any], by_client: bool) -> dict[str, Any]:
    data: dict[str, Any] = flow["tcp"]["from_client" if by_client else "from_server"]
    return data


def _segments(file: Path, flow: int, by_client: bool) -> dict[str, Any]:
    (found,) = _core.read_flows(file, [(flow, by_client)], 4_000_000)
    return {
        name: np.nan_to_num(np.frombuffer(found[name], dtype="<f8")).tolist()
        for name in ("sent_ns", "offset", "timestamp")
    }


def _unneeded(sent: dict[str, Any], arrived: dict[str, Any]) -> tuple[int, int]:
    """Segments that were sent although one that was sent before arrived: both ends' captures.

    Also how many of these arrived, too: the receiver knows of no others.
    """
    there = set(zip(arrived["offset"], arrived["timestamp"], strict=True))
    before: dict[float, list[float]] = defaultdict(list)
    count = twice = 0
    for offset, timestamp in zip(sent["offset"], sent["timestamp"], strict=True):
        earlier = (one for one in before[offset] if one != timestamp)
        if any((offset, one) in there for one in earlier):
            count += 1
            twice += (offset, timestamp) in there
        before[offset].append(timestamp)
    return count, twice


def _exit(
    out: Path, report: dict[str, Any], sent: dict[str, Any], told: dict[str, Any] | None
) -> tuple[int | None, int] | None:
    """The round in which slow start ended, by the capture and by the sender's event."""
    events = pl.read_parquet(out / "events.parquet").filter(pl.col("kind") == "slow_start_exit")
    if not events.height or told is None:
        return None
    first_s = report["first_time_s"] - _EPOCH_S + sent["sent_ns"][0] / 1e9
    exit_s = events["time_ns"][0] / 1e9 - first_s
    return told["exit_round"], sum(end < exit_s for end in told["rounds_end_s"])
