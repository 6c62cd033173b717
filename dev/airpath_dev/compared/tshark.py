"""What tshark says of the TCP streams of a capture, packet by packet."""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

Address = tuple[str, int]

_FIELDS = (
    "tcp.stream", "frame.time_epoch", "ip.src", "ipv6.src", "ip.dst", "ipv6.dst", "tcp.srcport",
    "tcp.dstport", "ip.len", "ip.hdr_len", "ipv6.plen", "tcp.hdr_len", "tcp.len", "tcp.seq_raw",
    "tcp.ack_raw", "tcp.flags", "tcp.window_size_value", "tcp.options.sack_le",
    "tcp.options.sack_re", "tcp.analysis.ack_rtt", "tcp.analysis.bytes_in_flight",
    "tcp.analysis.retransmission", "tcp.analysis.out_of_order", "tcp.analysis.keep_alive",
)  # fmt: skip
_EACH = ("tcp.options.sack_le", "tcp.options.sack_re")
"""Of which a packet has several; of the others the innermost one counts."""


@dataclass(frozen=True)
class Row:
    """A packet: its headers, and what tshark says of it."""

    at_ns: int
    source: Address
    destination: Address
    sequence: int
    acknowledgement: int
    flags: int
    window: int
    payload: int
    """As the IP header has it."""
    frame_payload: int
    """As the frame has it: what tshark goes by."""
    sacks: tuple[tuple[int, int], ...]
    rtt_ms: float | None
    in_flight: int | None
    again: bool
    out_of_order: bool
    keep_alive: bool


@dataclass
class Stream:
    """A TCP stream as tshark has it. ``ends`` are address and port of both."""

    ends: frozenset[Address]
    rows: list[Row]

    @cached_property
    def payload(self) -> int:
        """Bytes of payload, as the headers of IP have them."""
        return sum(row.payload for row in self.rows)

    @cached_property
    def frame_payload(self) -> int:
        """Bytes of payload, as the frames have them."""
        return sum(row.frame_payload for row in self.rows)

    def of(self, source: Address) -> list[Row]:
        """The packets of one end."""
        return [row for row in self.rows if row.source == source]


def tshark(path: Path) -> list[Stream]:
    """The TCP streams of a capture; of what is in tunnels the innermost."""
    command = ["tshark", "-r", str(path), "-n", "-Y", "tcp", "-T", "fields"]
    command += ["-E", "occurrence=a", "-o", "tcp.relative_sequence_numbers:FALSE"]
    for field in _FIELDS:
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    streams: dict[int, list[Row]] = defaultdict(list)
    for line in done.stdout.splitlines():
        said = dict(zip(_FIELDS, line.split("\t"), strict=True))
        last = {name: value.rsplit(",", 1)[-1] for name, value in said.items()}
        sacks = [_numbers(said[name]) for name in _EACH]
        streams[int(last["tcp.stream"])].append(
            _row(last, tuple(zip(*sacks, strict=len(sacks[0]) == len(sacks[1]))))
        )
    return [
        Stream(frozenset({rows[0].source, rows[0].destination}), rows)
        for _, rows in sorted(streams.items())
    ]


def _numbers(text: str) -> list[int]:
    return [int(one) for one in text.split(",") if one]


def _row(said: dict[str, str], sacks: tuple[tuple[int, int], ...]) -> Row:
    seconds, _, fraction = said["frame.time_epoch"].partition(".")
    rtt, in_flight = said["tcp.analysis.ack_rtt"], said["tcp.analysis.bytes_in_flight"]
    frame_payload = payload = int(said["tcp.len"] or 0)
    if said["ip.len"] and not said["ipv6.plen"] and int(said["ip.len"]) > 0:
        payload = int(said["ip.len"]) - int(said["ip.hdr_len"]) - int(said["tcp.hdr_len"])
    return Row(
        at_ns=int(seconds) * 10**9 + int(fraction.ljust(9, "0")[:9] or 0),
        source=(said["ipv6.src"] or said["ip.src"], int(said["tcp.srcport"])),
        destination=(said["ipv6.dst"] or said["ip.dst"], int(said["tcp.dstport"])),
        sequence=int(said["tcp.seq_raw"] or 0),
        acknowledgement=int(said["tcp.ack_raw"] or 0),
        flags=int(said["tcp.flags"] or "0", 16),
        window=int(said["tcp.window_size_value"] or 0),
        payload=payload,
        frame_payload=frame_payload,
        sacks=sacks,
        rtt_ms=float(rtt) * 1e3 if rtt else None,
        in_flight=int(in_flight) if in_flight else None,
        again=bool(said["tcp.analysis.retransmission"]),
        out_of_order=bool(said["tcp.analysis.out_of_order"]),
        keep_alive=bool(said["tcp.analysis.keep_alive"]),
    )


def matched(
    streams: list[Stream], flows: list[dict[str, Any]]
) -> Iterator[tuple[Stream, dict[str, Any]]]:
    """Each stream with the flow of the same ends; those of the same ends in their order."""
    by_ends: dict[frozenset[Address], list[dict[str, Any]]] = defaultdict(list)
    for flow in flows:
        ends = {(flow["client"], flow["client_port"]), (flow["server"], flow["server_port"])}
        by_ends[frozenset(ends)].append(flow)
    for stream in streams:
        yield stream, by_ends[stream.ends].pop(0)
    if any(by_ends.values()):
        raise AssertionError(f"flows without a stream: {[one for one in by_ends.values() if one]}")
