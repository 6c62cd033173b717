"""The rules of docs/guides/captures.md once more, in few words, with switches for tshark's.

What differs between two readers of one capture is explained by a rule if switching that rule from
one reader's to the other's makes this model say what the other reader says, to the last figure.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, field

from .tshark import Address, Row, Stream

FIN, SYN, RST, ACK = 1, 2, 4, 16
_REORDERING_NS = 3_000_000
_DUPLICATE_ACKS = 3
_WRAP = 1 << 32


@dataclass
class Hole:
    """Bytes that were not seen although later ones were."""

    start: int
    end: int
    since_ns: int
    acknowledged: bool


@dataclass
class Label:
    """A packet that begins before the highest byte: what it is, and what was known of its bytes."""

    row: Row
    is_late: bool
    """It came late; otherwise it was retransmitted."""
    unseen: bool
    """None of its bytes had been seen."""
    acknowledged: bool
    """They had been acknowledged."""


@dataclass
class _Segment:
    start: int
    end: int
    first_ns: int
    last_ns: int
    again: bool = False


@dataclass
class Direction:
    """The data of one end."""

    rules: Set[str]
    began: bool = False
    has_acks: bool = False
    reference: int = 0
    highest: int = 0
    acked: int = 0
    duplicates: int = 0
    window: int = -1
    no_rtt_until: int = -_WRAP
    sacked: int = -_WRAP
    segments: list[_Segment] = field(default_factory=list)
    """In order of their bytes."""
    holes: list[Hole] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    in_flight: list[int] = field(default_factory=list)
    rtts_ns: list[int] = field(default_factory=list)

    def offset(self, number: int) -> int:
        """A sequence number without its wraps, near the last one."""
        return self.reference + (number - self.reference + _WRAP // 2) % _WRAP - _WRAP // 2

    def on_segment(self, row: Row, sender_side_ns: int | None) -> None:
        """A packet of this end; and the smallest round trip on the sender's side."""
        payload = row.frame_payload if "lengths" in self.rules else row.payload
        start = self.offset(row.sequence)
        end = start + payload + bool(row.flags & SYN) + bool(row.flags & FIN)
        self._begin(start)
        if end == start:
            if start > self.highest and "empty" not in self.rules:
                self._gap(row.at_ns, start)
            return
        is_probe = payload <= 1 and not row.flags & (SYN | FIN) and start + 1 == self.highest
        if start >= self.highest:
            if start > self.highest:
                self._gap(row.at_ns, start)
            self._new(row.at_ns, start, end, payload)
        elif "probes" in self.rules or not (is_probe and self.acked == self.highest):
            self._old(row, start, end, payload, sender_side_ns)

    def _begin(self, start: int) -> None:
        if not self.began:
            self.began, self.reference, self.highest = True, start, start
            if not self.has_acks:
                self.acked = start

    def _gap(self, at_ns: int, end: int) -> None:
        self.holes.append(Hole(self.highest, end, at_ns, acknowledged=False))
        self.highest = self.reference = end

    def _new(self, at_ns: int, start: int, end: int, payload: int) -> None:
        self.highest = self.reference = end
        if end > self.acked:
            self.segments.append(_Segment(start, end, at_ns, at_ns))
        if payload:
            self.in_flight.append(max(0, end - self.acked))

    def _old(
        self, row: Row, start: int, end: int, payload: int, sender_side_ns: int | None
    ) -> None:
        hole = self._fill(start, min(end, self.highest))
        if hole:
            self.no_rtt_until = max(self.no_rtt_until, self.highest)
            late = row.at_ns - hole.since_ns
            is_early = late < max(sender_side_ns or 0, _REORDERING_NS)
            if hole.acknowledged or (is_early and self.duplicates < _DUPLICATE_ACKS):
                self.labels.append(Label(row, True, True, hole.acknowledged))
                return
        acknowledged = end <= self.acked
        self.labels.append(Label(row, False, hole is not None, acknowledged))
        for one in self.segments:
            if one.start < end and start < one.end:
                one.last_ns, one.again = row.at_ns, True
        if end > self.highest:
            self._new(row.at_ns, self.highest, end, payload)
            if self.segments:
                self.segments[-1].again = True

    def _fill(self, start: int, end: int) -> Hole | None:
        """Take bytes out of the gaps; the gap that has had all of them."""
        touched = [one for one in self.holes if one.start < end and start < one.end]
        left = [one for one in self.holes if one not in touched]
        for one in touched:
            for low, high in ((one.start, min(start, one.end)), (max(end, one.start), one.end)):
                if low < high:
                    left.append(Hole(low, high, one.since_ns, one.acknowledged))
        self.holes = sorted(left, key=lambda one: one.start)
        whole = [one for one in touched if one.start <= start and end <= one.end]
        return whole[0] if whole else None

    def on_ack(self, row: Row) -> None:
        """A packet of the other end, which acknowledges this one's."""
        if not self.began:
            self.reference = row.acknowledgement
            self.began, self.highest, self.acked = True, row.acknowledgement, row.acknowledgement
        number = self.offset(row.acknowledgement)
        self.has_acks = True
        if number > self.highest:
            self.holes.append(Hole(self.highest, number, row.at_ns, acknowledged=True))
            self.highest = self.reference = number
            self.no_rtt_until = max(self.no_rtt_until, number)
        for low, high in row.sacks:
            start, end = self.offset(low), self.offset(high)
            if start < end <= self.highest and end > number:
                self.sacked = max(self.sacked, end)
        if number > self.acked:
            for hole in self.holes:
                hole.acknowledged |= hole.end <= number
            self.acked, self.duplicates = number, 0
            self._cover(row.at_ns, number)
        elif self._is_duplicate(row, number):
            self.duplicates += 1
        self.window = row.window

    def _is_duplicate(self, row: Row, number: int) -> bool:
        is_empty = row.payload == 0 and not row.flags & (SYN | FIN)
        same = row.window == self.window or row.sacks
        return number == self.acked and is_empty and self.highest > self.acked and bool(same)

    def _cover(self, at_ns: int, number: int) -> None:
        covered = [one for one in self.segments if one.end <= number]
        self.segments = [one for one in self.segments if one.end > number]
        if not covered:
            return
        again = any(one.again for one in covered)
        # RFC 6298 3; what was selectively acknowledged before arrived before.
        if not again and number > max(self.no_rtt_until, self.sacked):
            self.rtts_ns.append(at_ns - covered[-1].last_ns)


def directions(stream: Stream, rules: Set[str] = frozenset()) -> dict[Address, Direction]:
    """What there is to say of the data of each end."""
    found = {end: Direction(rules) for end in stream.ends}
    for row, mine, other in _walk(stream, found):
        _step(row, mine, other)
    return found


def _walk(
    stream: Stream, found: dict[Address, Direction]
) -> Iterator[tuple[Row, Direction, Direction]]:
    for row in stream.rows:
        yield row, found[row.source], found[row.destination]


def _step(row: Row, mine: Direction, other: Direction) -> None:
    # A reset's numbers are often none of the connection's.
    if row.flags & RST:
        return
    if row.flags & ACK:
        other.on_ack(row)
    mine.on_segment(row, min(other.rtts_ns, default=None))


@dataclass
class Listed:
    """A segment as it was sent once; ``start`` moves up with what is acknowledged."""

    start: int
    end: int
    at_ns: int
    kind: str
    """``new``, ``again``, or ``late``."""
    again: bool = False


@dataclass
class SentList:
    """What one end sent and the other has not acknowledged, each sending for itself."""

    direction: Direction
    segments: list[Listed] = field(default_factory=list)
    selective: list[tuple[int, int]] = field(default_factory=list)
    resent: list[tuple[int, int]] = field(default_factory=list)
    parts: int = 0
    """Packets that began before the highest byte; twice if only parts of them were seen before."""
    seen: int | None = None
    edge: int = -_WRAP
    is_behind_gap: bool = False
    in_flight: list[int] = field(default_factory=list)
    rtts_ns: list[int] = field(default_factory=list)


def otherwise(stream: Stream, rules: Set[str]) -> dict[Address, SentList]:
    """By end: bytes in flight and round trips (ns), by the rules of others where they are named."""
    found = {end: Direction(rules & {"lengths", "empty", "probes"}) for end in stream.ends}
    lists = {end: SentList(one) for end, one in found.items()}
    for row, mine, other in _walk(stream, found):
        sent, acked = lists[row.source], lists[row.destination]
        acked.is_behind_gap = False
        if (row.flags & RST or not row.flags & ACK) and "resets" in rules and other.began:
            _acknowledge(acked, row, rules)
        if row.flags & RST:
            continue
        labels, highest = len(mine.labels), mine.highest if mine.began else None
        gaps = [(one.start, one.end) for one in mine.holes] if "parts" in rules else []
        _step(row, mine, other)
        if row.flags & ACK:
            _acknowledge(acked, row, rules)
        kind = "new"
        if len(mine.labels) > labels:
            kind = "late" if mine.labels[-1].is_late else "again"
        if highest is not None:
            gaps.append((highest, mine.highest))
        is_new = highest is None or mine.highest > highest
        _send(sent, row, kind, rules, gaps if kind != "new" else [], is_new=is_new)
    return lists


def _send(
    sent: SentList,
    row: Row,
    kind: str,
    rules: Set[str],
    gaps: list[tuple[int, int]],
    *,
    is_new: bool,
) -> None:
    direction = sent.direction
    payload = row.frame_payload if "lengths" in rules else row.payload
    start = direction.offset(row.sequence)
    flags = bool(row.flags & SYN) + bool(row.flags & FIN)
    end = start + payload + flags
    sent.is_behind_gap |= sent.seen is not None and start > sent.seen
    sent.seen = max(end, sent.seen or end)
    if end == start:
        return
    pieces = [(start, end, kind)]
    if "parts" in rules and kind != "new":
        pieces = _pieces(start, end, gaps)
        sent.parts += len({one for _, _, one in pieces} - {"new"})
    for low, high, kind_ in pieces:
        _list(sent, low, high, row.at_ns, kind_)
    if not payload or ("flight-again" not in rules and not is_new):
        return
    if "flight-gap" in rules and sent.is_behind_gap:
        return
    low, high = direction.acked, direction.highest
    if "flight-edge" in rules:
        low, high = min(one.start for one in sent.segments), max(one.end for one in sent.segments)
    in_flight = max(0, high - low) - (flags if "flight-flags" in rules else 0)
    if "flight-selective" in rules:
        in_flight -= sum(last - first for first, last in sent.selective)
    if in_flight > 0 or "flight-edge" not in rules:
        sent.in_flight.append(in_flight)


def _pieces(start: int, end: int, gaps: list[tuple[int, int]]) -> list[tuple[int, int, str]]:
    """What of a packet had been seen, what fills a gap, and what lies behind all gaps."""
    found: list[tuple[int, int, str]] = []
    at = start
    for number, (first, last) in enumerate(sorted(gaps), 1):
        low, high = max(first, at), min(last, end)
        if low >= high:
            continue
        if at < low:
            found.append((at, low, "again"))
        found.append((low, high, "new" if number == len(gaps) else "late"))
        at = high
    return found + ([(at, end, "again")] if at < end else [])


def _list(sent: SentList, start: int, end: int, at_ns: int, kind: str) -> None:
    if kind != "new":
        sent.resent.append((start, at_ns))
    for one in sent.segments:
        one.again |= kind == "again" and one.start < end and start < one.end
    sent.segments.append(Listed(start, end, at_ns, kind, again=kind == "again"))


def _acknowledge(acked: SentList, row: Row, rules: Set[str]) -> None:
    direction = acked.direction
    number = direction.offset(row.acknowledgement)
    acked.selective = [(direction.offset(low), direction.offset(high)) for low, high in row.sacks]
    edge, acked.edge = acked.edge, max(number, acked.edge)
    covered = [one for one in acked.segments if one.end <= number]
    acked.segments = [one for one in acked.segments if one.end > number]
    for one in acked.segments:
        one.start = max(one.start, number)
    if not rules & {"rtt-again", "rtt-own"}:
        covered = [one for one in covered if one.end > edge]
        if any(one.again for one in covered):
            return
    if "rtt-late" not in rules:
        covered = [one for one in covered if one.kind != "late"]
        if number <= max(direction.no_rtt_until, direction.sacked):
            return
    if "rtt-own" in rules:
        covered = [one for one in covered if not one.again]
    if not covered:
        return
    end = number if "rtt-exact" in rules else max(one.end for one in covered)
    # Of several, the one that was sent first.
    ends = [one for one in covered if one.end == end]
    if "rtt-loss" in rules:
        ends = [
            one
            for one in ends
            if not any(low < one.start and one.at_ns < at_ns for low, at_ns in acked.resent)
        ]
    if ends:
        acked.rtts_ns.append(row.at_ns - ends[0].at_ns)
