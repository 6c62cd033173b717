"""What ping and iperf3 printed in an emulation, read into the run's summary.

A ping's own counts and RTTs become a row of ``pings``, called ``programs/NAME``. What iperf3 says
of its test goes to ``printed`` of the flows that it ran, and to its program. All are what the
tools measured at the ends, beside what airpath measured on the path.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

from airpath.errors import InputError
from airpath.readers import iperf, ping

if TYPE_CHECKING:
    from airpath.base.json import Json
    from airpath.documents import FlowSummary, PingSummary
    from airpath.emulation.document import PrintedPing, ProgramEntry
    from airpath.runs.document import RunDocument

TOOLS = ("iperf3", "ping", "ping6")
COMMAND = "command"
"""The name of COMMAND among the programs."""
STANDARD_OUTPUT = 1
_MOST_BYTES = 64 << 20
_CHUNK_BYTES = 1 << 16


class CommandOutput:
    """What COMMAND wrote to its standard output: the first 64 MiB."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def keep(self, data: bytes) -> None:
        """Keep a further piece, as far as there is room."""
        self._kept += data[: _MOST_BYTES - len(self._kept)]

    def bytes(self) -> bytes:
        """What was kept."""
        return bytes(self._kept)


@contextmanager
def kept(
    command: Sequence[str], target: int | None
) -> Iterator[tuple[int | None, CommandOutput | None]]:
    """Yield a descriptor for a command's output, and the kept output if its format is known.

    The output is passed on to ``target``; None is standard output. The command's output is a
    terminal if ``target`` is one, else a pipe.
    """
    if not command or Path(command[0]).name not in TOOLS:
        yield target, None
        return
    target = STANDARD_OUTPUT if target is None else target
    output = CommandOutput()
    ours, theirs = os.openpty() if os.isatty(target) else os.pipe()
    reader = threading.Thread(target=_copy_on, args=(ours, target, output), daemon=True)
    reader.start()
    try:
        yield theirs, output
    finally:
        # The reader sees the end when nobody has the other side any more.
        os.close(theirs)
        reader.join()
        os.close(ours)


def _copy_on(ours: int, target: int, output: CommandOutput) -> None:
    while True:
        try:
            data = os.read(ours, _CHUNK_BYTES)
        except OSError:
            # A terminal without a command.
            return
        if not data:
            return
        output.keep(data)
        # Whoever reads our output may have gone; the command goes on.
        with suppress(OSError):
            while data:
                data = data[os.write(target, data) :]


def add(document: RunDocument, directory: Path) -> None:
    """Read what the programs of an emulation printed into its summary."""
    for program in document["emulation"]["programs"]:
        program["printed"] = None
        path = program["stdout"] and directory / program["stdout"]
        if not path or not path.is_file():
            continue
        with path.open("rb") as printed:
            text = printed.read(_MOST_BYTES).decode(errors="replace")
        read = recognised(text, program["name"])
        if isinstance(read, ping.PingOutput):
            row = {"id": f"programs/{program['name']}", **read.row()}
            ping_ = {"tool": "ping", **row, "remarks": read.remarks}
            program["printed"] = cast("PrintedPing", ping_)
            if read.sent:
                document["pings"].append(cast("PingSummary", row))
        elif read is not None:
            program["printed"] = {**read.document(), "tool": "iperf3"}
            _match(document["flows"], program, read)


def recognised(text: str, name: str) -> ping.PingOutput | iperf.IperfOutput | None:
    """What ping or a client of iperf3 printed; None: something else."""
    if "Server listening on " in text[:4096]:
        # It has many tests, and each client prints its own.
        return None
    for read in (ping.read, iperf.read):
        with suppress(InputError):
            return read(text, name)
    return None


def _match(flows: list[FlowSummary], program: ProgramEntry, read: iperf.IperfOutput) -> None:
    """Say at the flows which test they carried; they are known by the two ports."""
    by_ports = {
        (one.local_port, one.remote_port): (test, one)
        for test in read.tests
        for one in test.connections
    }
    for flow in flows:
        # "tcp4 UE:PORT server:PORT"
        ends = str(flow["id"]).split()[1:]
        ports = [int(port) for port in (end.rpartition(":")[2] for end in ends) if port.isdigit()]
        if len(ports) != 2:
            continue
        found = by_ports.get((ports[0], ports[1])) or by_ports.get((ports[1], ports[0]))
        if found is None:
            continue
        test, connection = found
        if len(test.connections) == 1:
            totals = test.document()
            moved, goodput = totals["bytes"], totals["goodput_mbps"]
        else:
            # Of single streams only what the client's own end counted.
            own = [one for one in test.counted() if one.stream == connection.stream]
            moved = sum(one.bytes for one in own)
            lasted = max((one.end_s for one in own), default=0.0)
            goodput = 8e-6 * moved / lasted if lasted else None
        cast("Json", flow)["printed"] = {
            "tool": "iperf3",
            "program": program["name"],
            "bytes": moved,
            "goodput_mbps": goodput,
        }
