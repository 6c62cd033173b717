"""What the outputs of several tools tell of one test, second by second."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from ipaddress import ip_address

import numpy as np

from airpath.causes.rank import MAIN
from airpath.causes.tools import Pinged, Told
from airpath.fitting.observed import Floats
from airpath.readers.flows import LEAST_BYTES
from airpath.readers.iperf_output import WRITES, Interval, IperfOutput, IperfTest, joined
from airpath.readers.ping import PingOutput
from airpath.readers.recognise import Output
from airpath.readers.ss import Connection, SsOutput

_LEAST_SECONDS = 2
_LEAST_REPLIES = 5
_MOST_OF_A_SECOND = 0.5
_WHOLE = 0.01
"""Text has three digits."""
_SMOOTHED = 4
"""Definition: a rate is that of so many writes or more."""
_STATES = (2, 3)
"""The columns of `Told.streams` that are never 0: cwnd and the smoothed RTT."""


def told_by(outputs: Sequence[Output]) -> Told | None:
    """Of the largest test of TCP: what iperf3 and ss tell of it, and a ping beside it.

    None without a test of two seconds.
    """
    sockets = [
        one for output in outputs if isinstance(output, SsOutput) for one in output.connections
    ]
    test = _largest(outputs)
    streams = [] if test is None else streams_of_test(test)
    own = _own(test, sockets)
    if not streams:
        streams = [seconds for one in own if len(seconds := seconds_of_socket(one))]
    # Where a standstill is seen, no cause of a rate is inferred.
    if test is not None and test.blocked:
        return None
    if max(map(len, streams), default=0) < _LEAST_SECONDS or not _bytes_of(streams):
        return None
    target = 0.0 if test is None else (test.target_bps or 0.0) / 1e6
    return Told(streams, _limited(own), _ping(outputs, test), target)


def judged(output: Output) -> str | None:
    """Which of several tests of a file the causes are of; None of one, or of none."""
    test = _largest([output])
    if test is None or not isinstance(output, IperfOutput) or len(output.tests) < 2:
        return None
    place = next((at for at, one in enumerate(output.tests, 1) if one is test), None)
    if place is None:
        return None
    return (
        f"Causes are inferred for test {place} of {len(output.tests)}, which moved the most "
        "data. To judge another test, give it as a separate file."
    )


def _largest(outputs: Sequence[Output]) -> IperfTest | None:
    """The test of TCP that moved the most data."""
    tests = [
        one
        for output in outputs
        if isinstance(output, IperfOutput)
        for one in output.tests
        if one.protocol == "TCP" and one.tool == "iperf3"
    ]
    return max(joined(tests), key=_bytes, default=None)


def _bytes(test: IperfTest) -> int:
    return sum(one.bytes for one in test.counted())


def _bytes_of(streams: Sequence[Floats]) -> float:
    return sum(float(one[:, 0].sum()) for one in streams)


def streams_of_test(test: IperfTest) -> list[Floats]:
    """The seconds of each stream of iperf3; what the far end received, where that is known."""
    near = _streams(test)
    far = _streams(test.far) if test.far else []
    is_sender = _sends(near) or test.reports_writes
    sender, receiver = (near, far) if is_sender else (far, near)
    if not sender or len(sender) != len(receiver):
        return _as_delivered(near, test) if is_sender else near
    both = []
    for sent, received in zip(sender, receiver, strict=True):
        length = min(len(sent), len(received))
        both.append(np.column_stack([received[:length, :1], sent[:length, 1:]]))
    return both


def _as_delivered(streams: Sequence[Floats], test: IperfTest) -> list[Floats]:
    written = _bytes_of(streams)
    arrived = None if test.received is None else test.received.bytes
    found = []
    for one in streams:
        own = one.copy()
        share = float(one[:, 0].sum()) / max(1.0, written)
        own[:, 0] = as_delivered(one[:, 0], None if arrived is None else share * arrived)
        found.append(own)
    return found


def as_delivered(written: Floats, arrived: float | None) -> Floats:
    """The bytes that each second delivered, as far as the writes of an iperf3 sender tell.

    A write fills the send buffer first, so what had not arrived at the end was written at the
    beginning; where that is not known, the first second delivered no more than the best other one.
    Writes are so large that a slow path takes some only every few seconds: rates are those of
    several writes.
    """
    if arrived is not None:
        ahead = max(0.0, float(written.sum()) - arrived)
    else:
        ahead = max(0.0, float(written[0] - written[1:].max())) if len(written) > 1 else 0.0
    found: Floats = np.diff(np.maximum(0.0, np.cumsum(written) - ahead), prepend=0.0)
    for one in WRITES:
        parts = written / one
        if np.all(np.abs(parts - np.round(parts)) <= np.maximum(_WHOLE * parts, 1e-3)):
            width = math.ceil(_SMOOTHED * one / max(1.0, float(found.mean())))
            return _smoothed(found, width)
    return found


def _smoothed(values: Floats, width: int) -> Floats:
    """Means over so many values around each one, fewer at both ends; the sum is kept."""
    if width <= 1:
        return values
    sums = np.concatenate(([0.0], np.cumsum(values)))
    at = np.arange(len(values))
    begin, end = np.maximum(0, at - width // 2), np.minimum(len(values), at - width // 2 + width)
    means = (sums[end] - sums[begin]) / (end - begin)
    found: Floats = means * (sums[-1] / max(1e-9, means.sum()))
    return found


def _sends(streams: Sequence[Floats]) -> bool:
    return any(np.isfinite(one[:, 1:]).any() for one in streams)


def _streams(test: IperfTest) -> list[Floats]:
    by_stream: dict[int, list[Interval]] = {}
    for one in test.counted():
        by_stream.setdefault(one.stream, []).append(one)
    return [found for one in by_stream.values() if len(found := _seconds(one))]


def _seconds(intervals: Sequence[Interval]) -> Floats:
    """Intervals of a second or longer as they are, and shorter ones together; per second."""
    first = intervals[0].start_s
    parts: dict[int, list[Interval]] = {}
    for one in intervals:
        parts.setdefault(int(one.start_s - first + 1e-3), []).append(one)
    rows = [row for each in parts.values() for row in _row(each)]
    return _filled(np.array(rows).reshape(-1, 4))


def _filled(rows: Floats) -> Floats:
    """Windows and round trips that a second does not tell are those of the nearest that does."""
    for column in _STATES:
        known = np.flatnonzero(rows[:, column] > 0)
        if len(known):
            at = np.arange(len(rows))
            after = np.clip(np.searchsorted(known, at), 0, len(known) - 1)
            before = np.maximum(after - 1, 0)
            nearer = known[after] - at > at - known[before]
            rows[:, column] = rows[np.where(nearer, known[before], known[after]), column]
        else:
            rows[:, column] = np.nan
    return rows


def _row(part: Sequence[Interval]) -> Iterator[list[float]]:
    lasted = sum(one.end_s - one.start_s for one in part)
    # What is left of the last second says little.
    if lasted >= _MOST_OF_A_SECOND:
        again = [one.retransmissions for one in part if one.retransmissions is not None]
        cwnd = [one.cwnd_bytes for one in part if one.cwnd_bytes is not None]
        rtt = [one.rtt_us / 1e3 for one in part if one.rtt_us is not None]
        yield [
            sum(one.bytes for one in part) / lasted,
            sum(again) / lasted if again else np.nan,
            cwnd[-1] if cwnd else np.nan,
            rtt[-1] if rtt else np.nan,
        ]


def _own(test: IperfTest | None, sockets: Sequence[Connection]) -> list[Connection]:
    """The sockets of the test by their ports; without a test those with the most bytes."""
    if test is not None and test.connections:
        ports = {(one.local_port, one.remote_port) for one in test.connections}
        ports |= {pair[::-1] for pair in ports}
        return [one for one in sockets if (_port(one.local), _port(one.peer)) in ports]
    sizes = [
        max((each.get("bytes_acked", 0) for each in one.samples), default=0) for one in sockets
    ]
    least = max(LEAST_BYTES, MAIN * max(sizes, default=0))
    large = [one for one, size in zip(sockets, sizes, strict=True) if size >= least]
    main = sockets[sizes.index(max(sizes))] if sizes else None
    return [one for one in large if main is None or _at_once(one, main)]


def _at_once(one: Connection, other: Connection) -> bool:
    """Whether two sockets were there at one time, as far as snapshots tell; else one followed."""
    spans = []
    for each in (one, other):
        times = [at for sample in each.samples if (at := sample["elapsed_s"]) is not None]
        if not times:
            return True
        spans.append((min(times), max(times)))
    return max(begin for begin, _ in spans) <= min(end for _, end in spans)


def _port(end: str) -> int:
    port = end.rpartition(":")[2]
    return int(port) if port.isdecimal() else -1


def seconds_of_socket(connection: Connection) -> Floats:
    """From snapshots of ss, at least one in two seconds, what each second has."""
    timed = [one for one in connection.samples if one["elapsed_s"] is not None]
    timed = [one for one in timed if "bytes_acked" in one]
    at = np.array([one["elapsed_s"] for one in timed], dtype=float)
    if len(timed) < 2 or at[-1] - at[0] > 2 * len(timed):
        return np.zeros((0, 4))
    ends = np.arange(at[0], at[-1] + 1e-3)
    acked = np.interp(ends, at, [float(one["bytes_acked"]) for one in timed])
    again = np.interp(ends, at, [float(one.get("retrans_total", 0)) for one in timed])
    last = [timed[index] for index in np.searchsorted(at, ends[1:] + 1e-3) - 1]
    cwnd = [one.get("cwnd_segments", np.nan) * one.get("mss_bytes", np.nan) for one in last]
    rtt = [one.get("rtt_ms", np.nan) for one in last]
    return _filled(np.column_stack([np.diff(acked), np.diff(again), cwnd, rtt]))


def _limited(sockets: Sequence[Connection]) -> dict[str, float]:
    """Which share of the time with data outstanding something else held the sockets back."""
    busy = rwnd = sndbuf = 0.0
    for one in sockets:
        last = max(one.samples, key=lambda sample: sample.get("busy_ms", 0), default=None)
        if last is not None:
            busy += last.get("busy_ms", 0)
            rwnd += last.get("rwnd_limited_ms", 0)
            sndbuf += last.get("sndbuf_limited_ms", 0)
    return {"receive_window": rwnd / busy, "send_buffer": sndbuf / busy} if busy else {}


def elsewhere(ping: PingOutput, test: IperfTest) -> str | None:
    """The address that was pinged, if the test's ends have others of its family."""
    ends = {end for one in test.connections for end in (one.local, one.remote)}
    for run in ping.runs:
        of_family = {end for end in ends if (":" in end) is (":" in run.address)}
        if _is_address(run.address) and of_family and run.address not in of_family:
            return run.address
    return None


def _is_address(text: str) -> bool:
    with suppress(ValueError):
        ip_address(text)
        return True
    return False


def _ping(outputs: Sequence[Output], test: IperfTest | None) -> Pinged | None:
    """The ping of the test's path with the most replies, during the test if both have times."""
    pings = [one for one in outputs if isinstance(one, PingOutput)]
    pings = [one for one in pings if test is None or elsewhere(one, test) is None]
    ping = max(pings, key=lambda one: len(one.replies), default=None)
    if ping is None:
        return None
    start = None if test is None else test.start_time_s
    lasted = max((one.end_s for one in test.counted()), default=0.0) if test else 0.0
    timed = [
        one.rtt_ms
        for one in ping.replies
        if start is not None and one.time_s is not None and start <= one.time_s <= start + lasted
    ]
    trips = timed if len(timed) >= _LEAST_REPLIES else [one.rtt_ms for one in ping.replies]
    if len(trips) < _LEAST_REPLIES:
        return None
    least, middle, high, most = (float(one) for one in np.quantile(trips, [0, 0.5, 0.95, 1]))
    return Pinged(ping.lost / max(1, ping.sent), (max(least, 1e-3), middle, high, most))
