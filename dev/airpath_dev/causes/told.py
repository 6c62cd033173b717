"""What iperf3, ss and ping would have told of a simulated run, at the sender of its transfers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import polars as pl
from numpy.typing import NDArray

from airpath import _core
from airpath.fitting.observed import numbers
from airpath.readers.flows import main_sender

_SEGMENT_BYTES = 1448
_MOST_STREAMS = 8
_MOST_SEGMENTS = 1_000_000


class Told(TypedDict):
    """What tools told.

    ``streams``: for each second of each transfer the bytes delivered, the retransmissions, cwnd in
    bytes, and the smoothed RTT in milliseconds. ``limited``: for how many seconds what limited it.
    ``pings``: sent, lost, and the round trips in milliseconds.
    """

    streams: list[list[list[float | None]]]
    limited: list[dict[str, float]]
    pings: list[dict[str, Any]]


def tell(result: Any, capture: Path) -> Told:
    """From a run, and a whole capture at the sender of its transfers."""
    transfers = [one for one in result.summary["flows"] if one["kind"] in ("bulk", "file")]
    samples = pl.DataFrame(result.table("samples"))
    flows = pl.DataFrame(result.table("flows"))
    again = _retransmissions(capture)
    streams = []
    for number, flow in enumerate(transfers[:_MOST_STREAMS]):
        own = samples.filter(pl.col("flow") == flow["id"])
        begin, end = flows.filter(pl.col("flow") == flow["id"]).select("start_ns", "end_ns").row(0)
        at = (own["time_ns"].to_numpy() - begin) / 1e9
        lasted = at[-1] if end is None else (end - begin) / 1e9
        last = np.searchsorted(at, np.arange(1.0, 1 + int(lasted)) + 1e-6) - 1
        edges = np.arange(len(last) + 1.0)
        counts = np.histogram(again[number] if number < len(again) else [], edges)[0]
        streams.append(list(_seconds(own, last, counts)))
    names = ("sent", "lost", "rtt_ms")
    return {
        "streams": streams,
        "limited": [one["limited_s"] for one in transfers[:_MOST_STREAMS]],
        "pings": [{name: one[name] for name in names} for one in result.summary["pings"]],
    }


def _seconds(own: pl.DataFrame, last: NDArray[Any], again: NDArray[Any]) -> Any:
    """Figures at the end of each second; none before the first sample."""
    rows = own.select("delivered_bytes", "cwnd_segments", "srtt_ms").rows()
    before = 0
    for index, count in zip(last, again, strict=True):
        delivered, cwnd, srtt = rows[index] if index >= 0 else (0, None, None)
        yield [delivered - before, int(count), cwnd and cwnd * _SEGMENT_BYTES, srtt]
        before = delivered


def _retransmissions(capture: Path) -> list[NDArray[Any]]:
    """When each connection sent again, in seconds after its first data; in the order of ports."""
    report = _core.read_capture(capture)
    flows = [one for one in report["flows"] if one["tcp"]]
    flows.sort(key=lambda one: max(one["client_port"], one["server_port"]))
    wanted = [(one["id"], main_sender(one) == "client") for one in flows[:_MOST_STREAMS]]
    found = []
    for segments in _core.read_flows(capture, wanted, _MOST_SEGMENTS) if wanted else []:
        at = numbers(segments["sent_ns"]) / 1e9
        again = numbers(segments["is_again"]) > 0
        found.append(at[again] - at[0] if len(at) else at)
    return found
