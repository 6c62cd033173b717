"""A running emulation on a terminal: rates, queues, states, lateness, a few times a second.

What the command writes on the same terminal goes through a pseudo-terminal, so that it appears
above the table and the command still believes that it writes to a terminal.
"""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import termios
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any, TextIO, cast

from airpath.base.text import printable

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.table import Table

    from airpath import _core
    from airpath.documents import Snapshot

REFRESH_S = 0.5
MOST_FLOWS = 8
MOST_UES = 20
_LONGEST_LINE = 1 << 16


@dataclass(frozen=True)
class Streams:
    """Where the command's output goes; None: where ours does."""

    output: int | None = None
    error: int | None = None


class _Returning:
    """A text stream that begins each line at the left, also on a terminal that is raw.

    It is raw while a command has the keyboard.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(text.replace("\n", "\r\n"))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def shown(
    monitor: _core.Monitor, title: str, bound_us: float, *, redirect: bool, quiet: bool
) -> Iterator[Streams]:
    """Show what ``monitor`` sees on standard error as long as the context lasts.

    With ``redirect`` the context's value says where the command's output is to go; with ``quiet``
    its standard output is meant for standard error.
    """
    from rich.console import Console
    from rich.live import Live

    console = Console(file=cast("IO[str]", _Returning(sys.stderr)))
    with Live(console=console, auto_refresh=False, transient=True) as live:
        stop = threading.Event()
        refresher = threading.Thread(
            target=_refresh, args=(monitor, live, stop, title, bound_us), daemon=True
        )
        refresher.start()
        try:
            if redirect:
                with _relayed(console) as terminal:
                    yield Streams(
                        terminal if (sys.stderr if quiet else sys.stdout).isatty() else None,
                        terminal if sys.stderr.isatty() else None,
                    )
            else:
                yield Streams()
        finally:
            stop.set()
            refresher.join()


def view(before: Snapshot | None, now: Snapshot, title: str, bound_us: float) -> Group:
    """Two snapshots as tables: rates are the differences between them."""
    from rich.console import Group
    from rich.text import Text

    then = before or _nothing()
    seconds = now["time_s"] - then["time_s"]
    head = Text(f"{printable(title)}  {now['time_s']:.0f} s", style="bold")
    parts: list[Any] = [head, _directions(then, now, seconds, bound_us)]
    if now["ues"]:
        parts += [_cells(then, now, seconds), _ues(then, now, seconds)]
    if now["links"]:
        parts.append(_links(then, now, seconds))
    if now["flows"]:
        parts.append(_flows(then, now, seconds))
    return Group(*parts)


def _nothing() -> Snapshot:
    return {
        "time_s": 0.0,
        "directions": [],
        "links": [],
        "cells": [],
        "ues": [],
        "mobility": [],
        "flows": [],
        "other_flows": 0,
    }


def _rate(entries: Sequence[Any], index: int, now: Any, seconds: float, *keys: Any) -> float:
    """Difference of a counter over the seconds; what is new began at 0."""
    old = entries[index] if index < len(entries) else None
    for key in keys:
        now = now[key]
        old = None if old is None else old[key]
    return (now - (old or 0)) / seconds if seconds > 0 else 0.0


def _directions(then: Snapshot, now: Snapshot, seconds: float, bound_us: float) -> Table:
    table = _table("", "Mb/s", "packets", "dropped", "late p99 us", "max us")
    for index, (name, entry) in enumerate(zip(("down", "up"), now["directions"], strict=True)):
        late, most = entry["late_p99_us"], entry["late_max_us"]
        shown = "" if late is None else f"{late:.0f}"
        if late is not None and late > bound_us:
            shown = f"[red]{shown} > {bound_us:.0f}[/red]"
        table.add_row(
            name,
            _mbps(_rate(then["directions"], index, entry, seconds, "left_bytes")),
            str(entry["left"]),
            str(sum(packets for _, packets in entry["dropped"])),
            shown,
            "" if most is None else f"{most:.0f}",
        )
    return table


def _cells(then: Snapshot, now: Snapshot, seconds: float) -> Table:
    table = _table("cell", "PRBs down", "PRBs up")
    for index, cell in enumerate(now["cells"]):
        used = [
            _rate(then["cells"], index, cell, seconds, "prbs", direction) / room if room else None
            for direction, room in enumerate(cell["prbs_per_s"])
        ]
        table.add_row(cell["id"], *("" if share is None else f"{share:.0%}" for share in used))
    return table


def _ues(then: Snapshot, now: Snapshot, seconds: float) -> Table:
    table = _table(
        "UE", "cell", "RRC", "DRX", "down Mb/s", "queue kB", "BLER", "MCS", "up Mb/s", "queue kB"
    )
    for index, ue in enumerate(now["ues"][:MOST_UES]):
        down, up = ue["radio"]
        rate = [
            _mbps(_rate(then["ues"], index, ue, seconds, "radio", direction, "bytes"))
            for direction in (0, 1)
        ]
        blocks, errors, mcs = (
            _rate(then["ues"], index, ue, 1.0, "radio", 0, key)
            for key in ("blocks", "first_errors", "mcs_sum")
        )
        table.add_row(
            ue["id"],
            ue["cell"],
            ue["rrc"],
            ue["drx"] or "",
            rate[0],
            f"{down['queue_bytes'] / 1e3:.1f}",
            f"{errors / blocks:.1%}" if blocks else "",
            f"{mcs / blocks:.1f}" if blocks else "",
            rate[1],
            f"{up['queue_bytes'] / 1e3:.1f}",
        )
    if (more := len(now["ues"]) - MOST_UES) > 0:
        table.add_row(f"and {more} more")
    return table


def _links(then: Snapshot, now: Snapshot, seconds: float) -> Table:
    table = _table("link", "Mb/s", "queue kB", "packets")
    for index, link in enumerate(now["links"]):
        table.add_row(
            link["id"],
            _mbps(_rate(then["links"], index, link, seconds, "bytes")),
            f"{link['queue_bytes'] / 1e3:.1f}",
            str(link["queue_packets"]),
        )
    return table


def _flows(then: Snapshot, now: Snapshot, seconds: float) -> Table:
    table = _table("flow", "", "Mb/s", "RTT ms", "cwnd", "retx")
    # A row may have gone to another flow meanwhile.
    before = {flow["id"]: flow["bytes"] for flow in then["flows"]}
    rates = [
        ((flow["bytes"] - before.get(flow["id"], 0)) / seconds if seconds > 0 else 0.0, index)
        for index, flow in enumerate(now["flows"])
    ]
    for rate, index in sorted(rates, key=lambda each: (-each[0], -each[1]))[:MOST_FLOWS]:
        flow = now["flows"][index]
        table.add_row(
            flow["id"],
            flow["direction"],
            _mbps(rate),
            "" if flow["rtt_ms"] is None else f"{flow['rtt_ms']:.1f}",
            "" if flow["cwnd_segments"] is None else str(flow["cwnd_segments"]),
            str(flow["retransmissions"]),
        )
    if now["other_flows"]:
        table.add_row(f"and {now['other_flows']} others")
    return table


def _mbps(bytes_per_s: float) -> str:
    return f"{8 * bytes_per_s / 1e6:.2f}"


def _table(first: str, *others: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first, no_wrap=True)
    for name in others:
        left = name in ("", "cell", "RRC", "DRX")
        table.add_column(name, justify="left" if left else "right", no_wrap=True)
    return table


def _refresh(
    monitor: _core.Monitor, live: Live, stop: threading.Event, title: str, bound_us: float
) -> None:
    before: Snapshot | None = None
    while not stop.wait(REFRESH_S):
        now = monitor.snapshot()
        if now is not None and (before is None or now["time_s"] > before["time_s"]):
            live.update(view(before, now, title, bound_us), refresh=True)
            before = now


@contextmanager
def _relayed(console: Console) -> Iterator[int]:
    """A terminal; what is written to it is printed line by line above the table."""
    ours, theirs = os.openpty()
    with suppress(OSError):
        size = fcntl.ioctl(sys.stderr.fileno(), termios.TIOCGWINSZ, b"\0" * 8)
        rows, columns, *_ = struct.unpack("HHHH", size)
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    reader = threading.Thread(target=_relay, args=(ours, console), daemon=True)
    reader.start()
    try:
        yield theirs
    finally:
        # The reader sees the end when nobody has the other side any more.
        os.close(theirs)
        reader.join()
        os.close(ours)


def _relay(ours: int, console: Console) -> None:
    from rich.text import Text

    rest = b""
    while True:
        try:
            data = os.read(ours, 1 << 16)
        except OSError:
            data = b""
        *lines, rest = (rest + data).split(b"\n")
        if not data or len(rest) > _LONGEST_LINE:
            lines, rest = [*lines, *([rest] if rest else [])], b""
        for line in lines:
            text = line.rstrip(b"\r").decode(errors="replace")
            console.print(Text.from_ansi(text), soft_wrap=True, highlight=False)
        if not data:
            return
