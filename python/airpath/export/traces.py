"""The formats of recorded traces: Mahimahi's, CellReplay's and airpath's own.

A Mahimahi trace has a line for each opportunity to deliver a packet: whole milliseconds since the
start, in order. The last line is the period (mm-link(1)). mm-link counts 1,504 bytes for each
opportunity: an IP packet of 1,500 bytes and the header of a TUN device.

CellReplay (Sentosa et al., NSDI 2025) has two traces for each direction. ``heavy-pdo`` is like
Mahimahi's, with opportunities of 1,400 bytes, recorded while a sender saturates the link.
``delay-light-pdo`` has a line for each of at least three short packet trains: the time in ms, the
one-way delay of the first packet, and the arrival time of each packet after the first packet's,
which is 0 for the first packet.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from airpath.errors import InputError
from airpath.export.recorded import Passed, Values

MAHIMAHI_BYTES = 1500
"""Bytes of IP in an opportunity of Mahimahi and of the stage ``trace``."""
CELLREPLAY_BYTES = 1400
"""Bytes of IP in an opportunity of CellReplay, and its largest packet."""
LEAST_TRAINS = 3
TRAIN_GAP_MS = 1.0
"""Packets that enter further apart than this do not belong to one train."""


def opportunities(
    left_ms: Values, sizes: npt.NDArray[np.int64], duration_ms: float, size: int
) -> list[int]:
    """Return the opportunities of ``size`` bytes in which these packets could have left.

    Each ``size`` bytes that left are an opportunity. The last one is moved to the end of the
    recording, so that the trace repeats with the period of the recording.
    """
    total = np.cumsum(sizes)
    count = int(total[-1] // size) if total.size else 0
    if not count:
        raise InputError(f"less than {size} bytes left the radio, so there is no trace to write")
    which = np.searchsorted(total, size * np.arange(1, count + 1))
    return _ending(np.rint(left_ms[which]).astype(np.int64), duration_ms)


def spread(
    end_ms: Values, capacity_mbps: Values, duration_ms: float, size: int = MAHIMAHI_BYTES
) -> list[int]:
    """Return the opportunities of a link whose capacity is known by interval."""
    start_ms = np.concatenate([[0.0], end_ms[:-1]])
    # Mb/s are 125 bytes a ms.
    carried = np.concatenate([[0.0], np.cumsum(capacity_mbps * 125 * (end_ms - start_ms))])
    count = int(carried[-1] // size)
    if not count:
        raise InputError("the link could not carry a single packet, so there is no trace to write")
    times = np.interp(size * np.arange(1, count + 1), carried, np.concatenate([[0.0], end_ms]))
    return _ending(np.rint(times).astype(np.int64), duration_ms)


def _ending(stamps: npt.NDArray[np.int64], duration_ms: float) -> list[int]:
    end = max(1, round(duration_ms))
    made = np.minimum(stamps, end).tolist()
    made[-1] = end
    return list(map(int, made))


def mahimahi_text(stamps: Sequence[int]) -> str:
    """Return the text of a trace of opportunities."""
    return "".join(f"{stamp}\n" for stamp in stamps)


def trains(passed: Passed, path_delay_ms: float) -> list[list[int]]:
    """Return the lines of CellReplay's train trace: time, one-way delay, arrivals after the first.

    A train begins with a packet that enters an empty radio. It includes each packet that enters at
    most ``TRAIN_GAP_MS`` after the previous one. ``path_delay_ms`` is the delay of the rest of the
    path.
    """
    order = np.argsort(passed.entered_ms, kind="stable")
    found: list[list[int]] = []
    last_ms, free_ms, first_ms = -np.inf, -np.inf, 0.0
    inside = False
    for index in order:
        entered, left = float(passed.entered_ms[index]), float(passed.left_ms[index])
        if entered - last_ms > TRAIN_GAP_MS:
            inside = entered >= free_ms
            if inside:
                first_ms = left
                delay = round(path_delay_ms + left - entered)
                found.append([round(entered), delay, 0])
        elif inside:
            # The packet may have overtaken the first one.
            found[-1].append(max(round(left - first_ms), found[-1][-1]))
        last_ms, free_ms = entered, max(free_ms, left)
    return found


def train_text(lines: Sequence[Sequence[int]]) -> str:
    """Return the text of a train trace. Raises ``InputError`` if it has too few trains."""
    if len(lines) < LEAST_TRAINS:
        raise InputError(
            f"the light run has {len(lines)} packet trains, but CellReplay needs "
            f"{LEAST_TRAINS}. A train starts when the radio's queue is empty, as with pings"
        )
    return "".join(" ".join(map(str, line)) + "\n" for line in lines)


def sinr_text(times_s: Values, sinr_db: Values) -> str:
    """Return airpath's own radio trace: CSV with ``time_s`` and ``sinr_db``.

    A row holds until the next one. Rows that change nothing are left out, except the last row,
    which says how long the recording is.
    """
    if not times_s.size:
        raise InputError("no block was sent, so there is no SINR to write")
    written = io.StringIO()
    rows = csv.writer(written, lineterminator="\n")
    rows.writerow(["time_s", "sinr_db"])
    before = None
    for index, (time, sinr) in enumerate(zip(times_s.tolist(), sinr_db.tolist(), strict=True)):
        shown = f"{sinr:.4f}"
        if shown != before or index == times_s.size - 1:
            # A trace begins at 0.
            rows.writerow([f"{0.0 if index == 0 else time:.7f}", shown])
        before = shown
    return written.getvalue()
