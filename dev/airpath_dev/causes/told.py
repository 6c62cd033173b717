"""What iperf3, ss and ping would have told of a simulated run, at the sender of its transfers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import polars as pl
from numpy.typing import NDArray

from airpath import _core
from airpath.causes import rank
from airpath.causes.tools import Pinged, Told
from airpath.diagnose.told import as_delivered
from airpath.fitting.observed import numbers
from airpath.readers.flows import main_sender
from airpath.readers.iperf_output import WRITES
from airpath_dev.planted.draft import Pick

_SEGMENT_BYTES = 1448
_MOST_STREAMS = 8
_MOST_SEGMENTS = 1_000_000


class Figures(TypedDict):
    """Figures of a run that tools would tell.

    ``streams``: for each second of each transfer the bytes delivered, the retransmissions, cwnd in
    bytes, and the smoothed RTT in milliseconds. ``limited``: for how many seconds what limited it.
    ``pings``: sent, lost, and the round trips in milliseconds.
    """

    streams: list[list[list[float | None]]]
    limited: list[dict[str, float]]
    pings: list[dict[str, Any]]


def tell(result: Any, capture: Path) -> Figures:
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


def told(figures: Figures, pick: Pick) -> Iterator[Told]:
    """What several sets of tools tell of a run: JSON or text, of either end, with ss or ping."""
    every = [np.array(one, dtype=float).reshape(-1, 4) for one in figures["streams"]]
    sizes = [float(one[:, 0].sum()) for one in every]
    # Tools tell of the test, and not of the chats beside it.
    main = [at for at, size in enumerate(sizes) if size > 0 and size >= rank.MAIN * max(sizes)]
    streams = [every[at] for at in main]
    if not streams:
        return
    for at_sender in (True, True, False):
        has_ss, has_ping = at_sender and pick.chance(0.4), pick.chance(0.6)
        limited = _limited([figures["limited"][at] for at in main]) if has_ss else {}
        ping = _pinged(pick.choice(figures["pings"])) if has_ping and figures["pings"] else None
        if pick.chance(0.5):
            limited.pop("application", None)
        known = 4 if pick.chance(0.7) else 3
        # The far end's bytes of each second may be known, too.
        if at_sender and pick.chance(0.8):
            ends = _as_written(streams, pick)
        else:
            ends = [one.copy() for one in streams]
        for one in ends:
            one[:, known if at_sender else 1 :] = np.nan
        yield Told(ends, limited, ping)


def _as_written(streams: Sequence[NDArray[Any]], pick: Pick) -> list[NDArray[Any]]:
    """As a sender tells it: what was written, in steps, fills a send buffer first.

    The buffer holds some windows, the largest so far, or what the system gives it at once.
    """
    windows, at_once = pick.uniform(1, 2.5), pick.log(1e5, 1.2e7) if pick.chance(0.3) else 0.0
    step = pick.choice([*3 * WRITES[:1], *WRITES[1:]])
    is_whole = pick.chance(0.8)
    found = []
    for one in streams:
        own = one.copy()
        largest = np.maximum.accumulate(np.nan_to_num(one[:, 2]))
        written = np.cumsum(one[:, 0]) + np.maximum(at_once, windows * largest)
        steps = np.diff(np.floor(written / step) * step, prepend=0.0)
        own[:, 0] = as_delivered(np.maximum(0.0, steps), one[:, 0].sum() if is_whole else None)
        found.append(own)
    return found


def _limited(streams: list[dict[str, float]]) -> dict[str, float]:
    """Shares: of the time with data outstanding, and for the application of all time."""
    total = {name: sum(one[name] for one in streams) for name in streams[0]}
    every = max(1e-9, sum(total.values()))
    busy = max(1e-9, every - total["application"])
    return {
        "receive_window": total["receive_window"] / busy,
        "send_buffer": total["send_buffer"] / busy,
        "application": total["application"] / every,
    }


def _pinged(ping: dict[str, Any]) -> Pinged | None:
    trips = ping["rtt_ms"]
    if not trips or not ping["sent"]:
        return None
    names = ("min", "p50", "p95", "max")
    return Pinged(ping["lost"] / ping["sent"], tuple(trips.get(name, np.nan) for name in names))
