"""Two captures of one test: their clocks' offset, and what happened between the two points.

The same segment is known at both by its first byte and its timestamp (RFC 7323). Of the times that
segments take one way and the other way, as two clocks tell them, the smallest ones are those
without a queue: half of their difference is the offset, if the empty path takes as long one way
as the other, and half of their sum is by how much it may be off if not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from airpath import _core
from airpath.readers.recognise import Recognised

_MOST_PACKETS = 200_000
_LEAST_SEGMENTS = 20
"""Of the same flow in both, in one direction, and acknowledgements in the other."""
_LEAST_SHARE = 0.5
"""Of the segments of the point that saw fewer."""
_ENDS = ("client", "server")
Keyed = dict[tuple[float, float], float]


@dataclass(frozen=True)
class Pair:
    """One flow at two points, the one nearer to the sender first; times in ms.

    ``offset_ms`` is the second clock less the first.
    """

    files: tuple[str, str]
    flow: str
    segments: int
    offset_ms: float
    within_ms: float
    missing: tuple[int, int]
    """Segments that only the first point saw, and only the second."""
    there_ms: tuple[float, float, float]
    """From the first to the second by the joined clock: the least, the median, the longest."""

    def document(self) -> dict[str, Any]:
        """As JSON has it."""
        least, median, longest = self.there_ms
        return {
            "files": list(self.files),
            "flow": self.flow,
            "segments": self.segments,
            "clock_offset_ms": self.offset_ms,
            "within_ms": self.within_ms,
            "only_first": self.missing[0],
            "only_second": self.missing[1],
            "between_ms": {"min": least, "p50": median, "max": longest},
        }

    def sentence(self) -> str:
        """What is to be said of it."""
        first, second = self.files
        least, median, longest = self.there_ms
        return (
            f"{first} and {second} saw {self.flow}, {self.segments} segments of its data at both "
            f"points. The clock of {second} is {self.offset_ms:+.4f} ms off that of {first}, and "
            f"within {self.within_ms:.4g} ms of that if the empty path does not take as long there "
            f"as back. From the one to the other segments took {least:.4g} ms at "
            f"least, {median:.4g} ms in the median and {longest:.4g} ms at most; "
            f"{self.missing[0]} that passed {first} did not pass {second}, and {self.missing[1]} "
            "the other way round."
        )


def pairs(files: Sequence[Recognised]) -> list[Pair]:
    """The largest TCP flow that two captures have both, for each two; one point is one file."""
    captures = [one for one in files if one.kind in ("pcap", "pcapng") and one.document]
    captures = [one for one in captures if Path(one.name).is_file()]
    return [
        pair
        for at, first in enumerate(captures)
        for second in captures[at + 1 :]
        if (pair := _pair(first, second))
    ]


def _pair(first: Recognised, second: Recognised) -> Pair | None:
    for one, other in _common(first, second):
        sent = [one["tcp"][f"from_{end}"]["data_bytes"] for end in _ENDS]
        by_client = sent[0] >= sent[1]
        here, there = _read(first, one["id"], by_client), _read(second, other["id"], by_client)
        found = _joined((first.name, second.name), _name(one), here, there)
        if found:
            return found
    return None


def _common(
    first: Recognised, second: Recognised
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Flows with the same ends and an opening, so that their bytes are counted alike."""

    def flows(one: Recognised) -> dict[str, dict[str, Any]]:
        every = (one.document or {})["flows"]
        return {_name(flow): flow for flow in every if flow["tcp"] and flow["tcp"]["opening_seen"]}

    here, there = flows(first), flows(second)
    shared = [name for name in here if name in there]
    shared.sort(key=lambda name: -sum(here[name][f"from_{end}"]["bytes"] for end in _ENDS))
    return ((here[name], there[name]) for name in shared[:1])


def _name(flow: dict[str, Any]) -> str:
    return f"{flow['client']}:{flow['client_port']} to {flow['server']}:{flow['server_port']}"


def _read(file: Recognised, flow: int, by_client: bool) -> tuple[Keyed, Keyed]:
    """When segments and when acknowledgements passed, in ms since 1970."""
    (found,) = _core.read_flows(Path(file.name), [(flow, by_client)], _MOST_PACKETS)
    epoch_ms = (file.document or {})["first_time_s"] * 1e3

    def keyed(time: str, *keys: str) -> Keyed:
        columns = [np.nan_to_num(np.frombuffer(found[name], dtype="<f8")) for name in (time, *keys)]
        times = (columns[0] / 1e6 + epoch_ms).tolist()
        kept: Keyed = {}
        # What came twice without a difference is not told apart: the first one counts.
        for at, one, other in zip(times, *(one.tolist() for one in columns[1:]), strict=True):
            kept.setdefault((one, other), at)
        return kept

    return keyed("sent_ns", "offset", "timestamp"), keyed("ack_ns", "ack_offset", "ack_timestamp")


def _joined(
    files: tuple[str, str], flow: str, first: tuple[Keyed, Keyed], second: tuple[Keyed, Keyed]
) -> Pair | None:
    apart = [
        np.array([second[way][key] - at for key, at in first[way].items() if key in second[way]])
        for way in (0, 1)
    ]
    least = min(len(first[0]), len(second[0]))
    if min(len(one) for one in apart) < _LEAST_SEGMENTS or len(apart[0]) < _LEAST_SHARE * least:
        return None
    data, acks = apart
    # As the second clock less the first: what goes from the first to the second takes its time
    # besides, and what comes back takes it off.
    if data.min() >= acks.max():
        low, high, sign = acks.max(), data.min(), 1.0
    elif acks.min() >= data.max():
        low, high, sign = data.max(), acks.min(), -1.0
    else:
        return None
    offset = float(low + high) / 2
    there = np.sort(sign * (data - offset))
    figures = (float(there[0]), float(np.median(there)), float(there[-1]))
    missing = (len(first[0]) - len(data), len(second[0]) - len(data))
    if sign < 0:
        files, missing, offset = (files[1], files[0]), (missing[1], missing[0]), -offset
    return Pair(files, flow, len(data), offset, float(high - low) / 2, missing, figures)
