"""The table of aims: airpath's cost in each case, beside htsim and ns-3, measured in turns.

The smallest CPU time of several rounds counts, because other load on a shared machine can only add
to it. In each round every program runs once. A packet is a data segment or an acknowledgement:
airpath acknowledges every second segment, htsim every segment, so the table shows times per
segment and per packet.

Aims in nanoseconds were set on a machine on which htsim took `HTSIM_NS` per segment. The table
shows each aim as it was set, and scaled to this machine by the ratio of htsim's times. One column
for each says whether the aim is met.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from airpath_dev import ROOT
from airpath_dev.harness import say, table

from . import htsim
from .common import VALGRIND, BenchError, Builds, Row, callgrind, measure, peer_program, repeat

LINUX = (
    "rack-tlp", "prr", "undo", "linux-rto", "validation", "quick-acks", "window-tuning",
    "offload", "linux-cubic",
)  # fmt: skip
"""TCP features of the profile linux-6.18."""
LOSSY = ("rack-tlp", "prr", "undo", "linux-rto")
BBR = (*LOSSY, "bbr")
OURS_PACKETS = 1.5
WIRES = ((1, 230, 30), (4, 600, 40))
"""Number of flows, rate in Mb/s, RTT in ms."""
COUNTED_S = (4, 8)
HTSIM_NS = 126.0
"""htsim's time per segment (123 to 129) on the machine on which the aims were set."""
_HALF_OF_HTSIM = 64


def words(flows: int, rate_mbps: int, rtt_ms: int, seconds: int, *more: str) -> list[str]:
    numbers = {"flows": flows, "rate-mbps": rate_mbps, "rtt-ms": rtt_ms, "seconds": seconds}
    return [word for key, value in numbers.items() for word in (f"--{key}", str(value))] + [*more]


def ns3(program: Path, flows: int, rate_mbps: int, rtt_ms: int, seconds: int) -> Row:
    """Measure ns-3 with the bottleneck alone, because airpath's case has no access links either."""
    numbers = {"flows": flows, "rate_mbps": rate_mbps, "rtt_ms": rtt_ms, "seconds": seconds}
    return measure(
        [str(program), *(f"--{key}={value}" for key, value in numbers.items()), "--access=0"]
    )


def features(names: Sequence[str]) -> list[str]:
    return [word for name in names for word in ("--feature", name)]


CASES = {
    "wire": words(1, 230, 30, 30),
    "wire, 4 flows": words(4, 600, 40, 15),
    "linux": words(1, 230, 30, 30, *features(LINUX)),
    "acks": words(1, 230, 30, 30, "--acks"),
    "bbr": words(1, 230, 30, 30, *features(BBR)),
    "drops": words(1, 10_000, 50, 6),
    "bbr, loss": words(1, 10_000, 100, 5, "--loss-percent", "1", *features(BBR)),
    "bbr, small": words(1, 230, 30, 30, "--loss-percent", "1", *features(BBR)),
    "many": words(10_000, 1_000, 30, 10),
}
CELLS = {
    "nr": ["--preset", "nr-n78", "--ues", "1", "--active", "1"],
    "nr, 100": ["--preset", "nr-n78", "--ues", "100", "--active", "100"],
    "lte, 100": ["--preset", "lte-20", "--ues", "100", "--active", "100"],
}
CELL_SECONDS = ["--seconds", "10"]


def run(builds: Builds, rounds: int, with_peers: bool, keep: bool) -> Row:
    """Measure every case; each program runs once per round."""
    bulk, cell = builds.program("bulk"), builds.program("radio")
    peer = htsim.find() if with_peers else None
    program = peer_program("ns3_bulk") if with_peers else None
    calls: dict[str, Callable[[], Row]] = {}
    for name, options in CASES.items():
        calls[name] = partial(measure, [str(bulk), *options])
    for name, options in CELLS.items():
        calls[name] = partial(measure, [str(cell), *options, *CELL_SECONDS])
    calls["command"] = command_time
    if peer:
        for flows, rate, rtt in WIRES:
            calls[f"htsim {flows}"] = partial(peer.run, rate, rtt, 30, flows)
    # Programs take turns, so that a machine that slows down affects all of them.
    measured = repeat("aims", rounds, lambda: {name: call() for name, call in calls.items()})
    least = {name: min((one[name] for one in measured), key=cpu) for name in calls}
    if program:
        least["ns-3"] = ns3(program, *WIRES[0], 30)
    document: Row = {
        "least": least,
        "memory_kb": memory_of([str(bulk), *CASES["many"]]),
        "instructions": counts(bulk, peer),
        "htsim": "measured" if peer else htsim.recorded(),
    }
    if peer and keep:
        rows = [{"flows": flows, **least[f"htsim {flows}"]} for flows, _, _ in WIRES]
        htsim.record(rows)
    return document


def cpu(row: Row) -> float:
    return float(row["cpu_s"])


def command_time() -> Row:
    """Measure the whole `airpath run`, process start included."""
    with tempfile.TemporaryDirectory() as place:
        command = [str(ROOT / ".venv/bin/airpath"), "run", "wire"]
        began = time.monotonic()
        subprocess.run(command, check=True, capture_output=True, cwd=place)
        return {"cpu_s": time.monotonic() - began}


def memory_of(command: list[str]) -> int | None:
    """Return a program's peak memory in kB."""
    meter = shutil.which("time")
    if meter is None:
        return None
    done = subprocess.run([meter, "-f", "%M", *command], text=True, capture_output=True, check=True)
    return int(done.stderr.split()[-1])


def counts(bulk: Path, peer: htsim.Htsim | None) -> Row:
    """Return instructions per delivered segment; empty without valgrind."""
    if VALGRIND is None:
        return {}
    flows, rate, rtt = WIRES[0]

    def ours(options: list[str]) -> Callable[[int], list[str]]:
        index = options.index("--seconds") + 1
        rest = [*options[:index], "{}", *options[index + 1 :]]
        return lambda s: [str(bulk), "--counted", *(word.format(s) for word in rest)]

    commands = {name: ours(CASES[name]) for name in ("wire", "linux", "acks")}
    if peer:
        commands["htsim 1"] = lambda s: peer.command(rate, rtt, s, flows, counted=True)
    found: Row = {}
    for name, command in commands.items():
        say(f"instructions: {name}")
        short, long = (count(command(seconds)) for seconds in COUNTED_S)
        found[name] = (long[0] - short[0]) / (long[1] - short[1])
    return found


def count(command: list[str]) -> tuple[int, int]:
    """Return the instructions and delivered segments of one run."""
    instructions, said = callgrind(command)
    segments = re.search(r'"delivered_segments":(\d+)|(\d+) segments', said)
    if segments is None:
        raise BenchError(f"{command[0]} says no segments: {said.strip()}")
    return instructions, int(segments[1] or segments[2])


@dataclass(frozen=True)
class Aim:
    """A row of the table."""

    case: str
    figure: str
    aim: str
    met: bool
    """Whether the aim is met as it was set."""
    scaled: bool
    """Whether the aim is met when scaled to this machine."""
    instructions: str = ""
    htsim: str = ""
    ns3: str = ""


def aims(document: Row) -> list[Aim]:
    """Return the table's rows."""
    least, counted = document["least"], document["instructions"]

    def ns(name: str) -> float:
        return float(least[name]["ns_per_segment"])

    def instructions(name: str) -> str:
        return f"{counted[name]:,.0f}" if name in counted else ""

    theirs = peer_figure(document, 1)[0]
    scale = theirs / HTSIM_NS if document["htsim"] == "measured" and theirs else None

    def timed(
        case: str, figure: str, value: float, aim: float, *, unit: str = "", **more: Any
    ) -> Aim:
        """Return a row for a time in ns."""
        here = aim * scale if scale else aim
        name = f"{aim:g}{unit}" + (f" ({here:,.0f} here)" if scale else "")
        return Aim(case, figure, name, value <= aim, value <= here, **more)

    def simple(case: str, figure: str, aim: str, met: bool, **more: Any) -> Aim:
        return Aim(case, figure, aim, met, met, **more)

    rows = []
    for (flows, _, _), name in zip(WIRES, ("wire", "wire, 4 flows"), strict=True):
        said = peer_figure(document, flows)[1]
        ours = ns(name)
        rows.append(
            timed(
                f"wire, {flows} flow{'s' * (flows > 1)}",
                f"{ours:.0f} ns / segment, {ours / OURS_PACKETS:.0f} / packet",
                ours,
                _HALF_OF_HTSIM,
                unit=", half of htsim's",
                instructions=instructions(name),
                htsim=said,
                ns3=f"{ns('ns-3'):,.0f} ns / segment" if flows == 1 and "ns-3" in least else "",
            )
        )
    linux, acks = ns("linux") / ns("wire"), ns("acks") - ns("wire")
    drops, bbr = ns("drops") / ns("wire"), ns("bbr, loss") / ns("bbr")
    window = ns("bbr, loss") / ns("bbr, small")
    many, command = cpu(least["many"]), cpu(least["command"])
    memory = document["memory_kb"]
    flow_kb = f", {memory / 10_000:.1f} kB a flow" if memory else ""
    small = memory is None or memory <= 20 * 10_000
    lossy = f"{ns('bbr, loss'):.0f} ns / segment"
    rows += [
        simple("wire, 1 flow, as linux-6.18", f"{linux:.2f} x plain", "1.25", linux <= 1.25,
               instructions=instructions("linux")),
        simple("41,000 in flight with drops",
               f"{ns('drops'):.0f} ns / segment, {drops:.2f} x wire", "1.25", drops <= 1.25),
        simple("BBR, 10 Gb/s, 1 % loss",
               f"{lossy}, {window:.2f} x the same loss in a small window", "1.5", window <= 1.5),
        simple("BBR, 10 Gb/s, 1 % loss",
               f"{lossy}, {bbr:.2f} x BBR without loss", "1.5", bbr <= 1.5),
        timed("NR n78, one UE", f"{ns('nr'):.0f} ns / segment", ns("nr"), 90),
        timed("100 busy UEs, NR", f"{ns('nr, 100'):,.0f} ns / segment", ns("nr, 100"), 200),
        timed("100 busy UEs, LTE", f"{ns('lte, 100'):,.0f} ns / segment", ns("lte, 100"), 350),
        simple("10,000 flows, 10 s", f"{many:.1f} s{flow_kb}", "10 s, 20 kB",
               many <= 10 and small),
        simple("`airpath run wire`", f"{command:.2f} s", "0.3 s", command <= 0.3),
        timed("table of acknowledgements", f"{acks:+.0f} ns / segment", acks, 10,
              instructions=instructions("acks")),
    ]  # fmt: skip
    return rows


def peer_figure(document: Row, flows: int) -> tuple[float | None, str]:
    """Return htsim's time per segment, and its text for the table."""
    source = document["htsim"]
    if source is None:
        return None, ""
    if source == "measured":
        theirs, counted = (
            document["least"][f"htsim {flows}"],
            document["instructions"].get("htsim 1"),
        )
        more = f", {counted:,.0f} instructions" if flows == 1 and counted else ""
    else:
        theirs = next(row for row in source["rows"] if row["flows"] == flows)
        more = f" (not measured now: {source['date']}, commit {source['commit']})"
    ns = float(theirs["ns_per_segment"])
    return ns, f"{ns:.0f} ns / segment, {ns / htsim.PACKETS:.0f} / packet{more}"


def render(document: Row) -> list[str]:
    """Return the table as Markdown."""
    head = ("case", "airpath", "aim", "met", "met here", "instructions / segment", "htsim", "ns-3")
    said = {True: "yes", False: "no"}
    rows = [
        (row.case, row.figure, row.aim, said[row.met], said[row.scaled], row.instructions,
         row.htsim, row.ns3)
        for row in aims(document)
    ]  # fmt: skip
    return [
        "Aims: the smallest of several rounds, all programs by turns.",
        table(head, rows, padded=True),
    ]
