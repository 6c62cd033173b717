"""Segments of a transfer as they are on the wire, from the first full one.

A capture at a host shows several segments as one packet: what the kernel passes to a device that
segments (TSO), or gets from receive offload (GRO). ``taken_apart`` splits such packets. All their
segments have the packet's time; acknowledgements and retransmissions belong to single segments.

``begun`` leaves out what both ends exchange before the transfer: a request, or iperf3's cookie.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from airpath.fitting.observed import Bools, Floats, Ints, Observed

_TIMESTAMPS = 12
"""Bytes of the option (RFC 7323 3.2), with padding."""
_LEAST_BYTES, _MOST_BYTES = 500, 1460
"""Full segments have from these, as of the default MSS of 536 (RFC 9293 3.7.1), to Ethernet's."""
_USUAL = 0.05
"""Share of the packets that are single full segments."""
_WHOLE = 0.5
"""Share of the longer packets that are a multiple of a full segment."""
_MOST_SEGMENTS = 2_000_000
"""Bound: of what is split."""
_MOST_FIRST, _FIRST_BYTES = 8, 4000
"""Segments and bytes before the first full segment that are left out: a request's, a cookie's."""


def taken_apart(seen: Observed) -> Observed:
    """The flow with one entry for each segment; ``seen`` itself if no packet has several."""
    full = _full_bytes(seen)
    if full is None:
        return seen
    parts = np.maximum(1, -(-seen.payload // full))
    if parts.sum() > _MOST_SEGMENTS:
        return seen
    index = np.repeat(np.arange(len(parts)), parts)
    number = np.arange(len(index)) - np.repeat(np.cumsum(parts) - parts, parts)
    offset = seen.offset[index] + number * full
    payload = np.minimum(full, (seen.payload[index] - number * full))
    one = parts[index] == 1
    is_again = seen.is_again[index]
    sent_again = np.where(
        one | is_again, seen.sent_again[index], _repairs(is_again, offset, payload)
    )
    return replace(
        seen,
        sent=seen.sent[index],
        frame=seen.frame[index],
        offset=offset,
        payload=payload,
        size=seen.size[index] - seen.payload[index] + payload,
        sent_again=sent_again,
        is_again=is_again,
        after_gap=seen.after_gap[index] & (number == 0),
        acked=np.where(one, seen.acked[index], _acked(seen, index, offset + payload, sent_again)),
        timestamp=seen.timestamp[index],
        echo=seen.echo[index],
    )


def begun(seen: Observed) -> Observed:
    """The flow from its first full segment, if little is sent before; otherwise ``seen``."""
    full = np.flatnonzero(seen.is_full)
    first = int(full[0]) if len(full) else 0
    before = seen.payload[:first].sum()
    if not 0 < first <= _MOST_FIRST or before > _FIRST_BYTES or len(full) < len(seen.sent) / 2:
        return seen
    kept, later = np.arange(first, len(seen.sent)), seen.ack > seen.sent[first]
    of_segments = {name: getattr(seen, name)[kept] for name in _OF_SEGMENTS}
    return replace(seen, **of_segments, **{name: getattr(seen, name)[later] for name in _OF_ACKS})


_OF_SEGMENTS = ("sent", "frame", "offset", "payload", "size", "sent_again", "is_again", "after_gap",
                "acked", "timestamp", "echo")  # fmt: skip
_OF_ACKS = ("ack", "ack_timestamp", "delivered", "ack_offset", "window", "is_pure")


def _repairs(is_again: Bools, offset: Ints, payload: Ints) -> Ints:
    """How often each segment was retransmitted."""
    begins = np.sort(offset[is_again])
    count: Ints = np.searchsorted(begins, offset + payload) - np.searchsorted(begins, offset)
    return count


def _acked(seen: Observed, index: Ints, ends: Ints, sent_again: Ints) -> Floats:
    """When each segment of a packet was acknowledged, which may be earlier than its last one.

    Of a packet with a lost segment it is not known which others were selectively acknowledged.
    """
    if not len(seen.ack):
        return seen.acked[index]
    highest, times = np.maximum.accumulate(seen.ack_offset), np.append(seen.ack, np.nan)
    at = times[np.searchsorted(highest, ends)]
    begins = times[np.searchsorted(highest, seen.offset[index], side="right")]
    is_selective = seen.acked[index] < begins
    lossy = np.maximum.reduceat(sent_again, np.flatnonzero(np.diff(index, prepend=-1)))[index] > 0
    whole = np.where(np.isnan(at) | is_selective, seen.acked[index], at)
    found: Floats = np.where(lossy | seen.is_again[index], np.nan, whole)
    return found


def _full_bytes(seen: Observed) -> int | None:
    """Payload of a full segment; None if it is not known, or no packet is longer."""
    told = _told_bytes(seen)
    limit = told or _MOST_BYTES
    if seen.payload.max() <= limit:
        return None
    # A path's MTU may be smaller than the hosts'.
    some = seen.payload[(seen.payload >= _LEAST_BYTES) & (seen.payload <= limit)]
    values, counts = np.unique(some, return_counts=True)
    if not len(values) or counts.max() < _USUAL * len(seen.payload):
        return told
    usual = int(values[counts.argmax()])
    longer = seen.payload[seen.payload > limit]
    return usual if (longer % usual == 0).mean() >= _WHOLE else told


def _told_bytes(seen: Observed) -> int | None:
    """Payload of a full segment by the options of both SYNs."""
    options, own = seen.other["options"], seen.stream["options"]
    if options is None or own is None or options["mss"] is None:
        return None
    stamps = _TIMESTAMPS if options["timestamps"] and own["timestamps"] else 0
    return max(_LEAST_BYTES, options["mss"] - stamps)
