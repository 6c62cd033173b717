"""The forwarder's packet log: what the kernel's sender did, seen from the path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

MAGIC = b"airlog 1"

RECORD = np.dtype(
    [
        ("time", "<u8"),
        ("logical", "<u8"),
        ("seq", "<u4"),
        ("ack", "<u4"),
        ("ts_val", "<u4"),
        ("ts_ecr", "<u4"),
        ("sack_start", "<u4"),
        ("sack_end", "<u4"),
        ("payload", "<u2"),
        ("window", "<u2"),
        ("direction", "u1"),
        ("point", "u1"),
        ("flags", "u1"),
        ("sack_blocks", "u1"),
    ]
)
"""A record, as crates/emu/src/log.rs writes it."""

DOWN, UP = 0, 1
IN, OUT, LOSS, QUEUE_FULL = 0, 1, 2, 3
SYN, ACK = 2, 16

SERIES_S = 0.1

Integers = npt.NDArray[np.int64]


class LogError(Exception):
    """The log is not what it should be."""


def read(path: Path) -> npt.NDArray[Any]:
    """All records."""
    data = path.read_bytes()
    if not data.startswith(MAGIC) or (len(data) - len(MAGIC)) % RECORD.itemsize:
        raise LogError(f"{path} is no packet log of this version")
    return np.frombuffer(data, RECORD, offset=len(MAGIC))


def analyse(log: npt.NDArray[Any], duration_s: float) -> dict[str, Any]:
    """Figures of the transfer, defined as the simulator's (docs/concepts/metrics.md)."""
    down, up = log[log["direction"] == DOWN], log[log["direction"] == UP]
    syns = down[(down["point"] == IN) & (down["flags"] & SYN != 0)]
    if not syns.size:
        raise LogError("the log has no SYN")
    start, first = int(syns["time"][0]), int(syns["seq"][0])
    end = start + int(duration_s * 1e9)
    data = down[(down["payload"] > 0) & (down["time"] <= end)]
    sent = Sent(data[data["point"] == IN], first)
    acks = up[(up["flags"] & ACK != 0) & (up["time"] <= end)]
    arrived = acks[acks["point"] == OUT]
    delivered = _relative(acks[acks["point"] == IN]["ack"], first)
    rtts = sent.round_trips(arrived["time"].astype(np.int64), _relative(arrived["ack"], first))
    drops = data[data["point"] >= LOSS]
    full = drops[drops["point"] == QUEUE_FULL]
    return {
        "goodput_mbps": max(int(delivered.max(initial=1)) - 1, 0) * 8 / duration_s / 1e6,
        "rtt_ms": quantiles(rtts / 1e6),
        "segments_sent": int(sent.seq.size),
        "retransmitted_segments": int(sent.again.sum()),
        "acks": int(arrived.size),
        "dropped": {
            "loss": int((drops["point"] == LOSS).sum()),
            "queue_full": int(full.size),
        },
        "first_queue_drop_s": (int(full["logical"][0]) - start) / 1e9 if full.size else None,
        "series": _series(sent, arrived, first, start, duration_s),
    }


def held_up(log: npt.NDArray[Any], segments: float) -> float:
    """Share of the data that came to the receiver while it sent no ACK for more than that many."""
    came = log[(log["direction"] == DOWN) & (log["point"] == OUT) & (log["payload"] > 0)]["time"]
    acks = log[(log["direction"] == UP) & (log["point"] == IN)]["time"]
    silences = np.bincount(np.searchsorted(acks, came))
    return float(silences[silences > segments].sum() / max(came.size, 1))


class Sent:
    """Data segments in the order in which the kernel sent them; offsets count from the SYN."""

    def __init__(self, segments: npt.NDArray[Any], first: int) -> None:
        self.time: Integers = segments["time"].astype(np.int64)
        self.seq = _relative(segments["seq"], first)
        self.end = self.seq + segments["payload"]
        highest = np.maximum.accumulate(self.end) if self.end.size else self.end
        self.again = np.zeros(self.seq.size, dtype=bool)
        self.again[1:] = self.seq[1:] < highest[:-1]

    def round_trips(self, times: Integers, acks: Integers) -> Integers:
        """One RTT in ns for each ACK that acknowledges new data.

        Time since the first segment that it newly acknowledges was sent; if one of them was sent
        twice, since the first one was last sent, which is what the timestamp echo says.
        """
        before = np.maximum.accumulate(np.concatenate(([1], acks)))[:-1]
        advances = acks > before
        times, acks, before = times[advances], acks[advances], before[advances]
        fresh_seq, fresh_time = self.seq[~self.again], self.time[~self.again]
        low = np.searchsorted(fresh_seq, before, side="right") - 1
        high = np.searchsorted(fresh_seq, acks, side="left")
        resent = np.zeros(fresh_seq.size + 1, dtype=np.int64)
        last_time = fresh_time.copy()
        hits = np.searchsorted(fresh_seq, self.seq[self.again], side="right") - 1
        np.add.at(resent, hits + 1, 1)
        resent = np.cumsum(resent)
        rtts = times - fresh_time[np.maximum(low, 0)]
        ambiguous = np.flatnonzero(resent[high] > resent[np.maximum(low, 0)])
        # Retransmissions of each segment, in order of time, to find the last one before an ACK.
        order = np.lexsort((self.time[self.again], hits))
        hits, again_time = hits[order], self.time[self.again][order]
        for index in ambiguous:
            begin, stop = np.searchsorted(hits, [low[index], low[index] + 1])
            at = int(np.searchsorted(again_time[begin:stop], times[index]))
            last = again_time[begin + at - 1] if at else last_time[low[index]]
            rtts[index] = times[index] - last
        return rtts


def quantiles(sample: npt.NDArray[Any]) -> dict[str, float] | None:
    """Quantiles by nearest rank; ``None`` without a sample."""
    if not sample.size:
        return None
    at = np.quantile(sample, [0.05, 0.5, 0.95, 0.99], method="inverted_cdf")
    names = ("p5", "p50", "p95", "p99")
    return {
        "min": float(sample.min()),
        "mean": float(sample.mean()),
        **{name: round(float(value), 6) for name, value in zip(names, at, strict=True)},
        "max": float(sample.max()),
        "count": int(sample.size),
    }


def _series(
    sent: Sent, arrived: npt.NDArray[Any], first: int, start: int, duration_s: float
) -> dict[str, list[float]]:
    """Cumulative figures at the end of each interval."""
    edges = start + (np.arange(SERIES_S, duration_s + SERIES_S / 2, SERIES_S) * 1e9).astype(
        np.int64
    )
    sent_by = np.searchsorted(sent.time, edges, side="right")
    acked_by = np.searchsorted(arrived["time"].astype(np.int64), edges, side="right")
    nxt = np.concatenate(([1], np.maximum.accumulate(sent.end)))[sent_by]
    acks = _relative(arrived["ack"], first)
    una = np.concatenate(([1], np.maximum.accumulate(acks)))[acked_by]
    again = np.concatenate(([0], np.cumsum(sent.again)))[sent_by]
    return {
        "time_s": np.round((edges - start) / 1e9, 3).tolist(),
        "acked_bytes": (una - 1).tolist(),
        "outstanding_bytes": (nxt - una).tolist(),
        "retransmitted_segments": again.tolist(),
    }


def _relative(numbers: npt.NDArray[Any], first: int) -> Integers:
    """Sequence numbers as offsets from ``first``; below 4 GB a run does not wrap."""
    return ((numbers.astype(np.int64) - first) % (1 << 32)).astype(np.int64)
