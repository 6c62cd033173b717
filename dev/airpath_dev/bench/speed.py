"""Measures speed beside htsim and ns-3: CPU time of bulk TCP on a wire and over a cell.

Every figure is CPU time (user + system) of the simulation alone, one process at a time. airpath
is run several times: the median counts, the range is shown. Tables are Markdown on stdout,
progress goes to stderr.

airpath's programs are profile-guided builds, as in a wheel, and the tables say so. `--plain`
measures the build of `tools/setup`. The command `airpath` is the one in .venv.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from airpath_dev.harness import say, table

from . import aims, radio
from .aims import LINUX, LOSSY, features, ns3, words
from .common import (
    LOGGING,
    BenchError,
    Builds,
    Results,
    Row,
    about,
    builds,
    measure,
    middle,
    peer_program,
    repeat,
    spread,
)

FEATURES = (
    "rack-tlp", "prr", "undo", "linux-rto", "validation", "quick-acks", "window-tuning",
    "offload", "pacing", "linux-cubic", "bbr", "bbr3",
)  # fmt: skip
"""Values of the Rust bench's `--feature`."""
WINDOWS = (700, 3_000, 12_000, 46_000)
WINDOW_RTT_MS = 100
WINDOW_SEGMENTS = 3_000_000
"""Approximate number of segments that a run with a fixed window delivers."""


class Part(StrEnum):
    """A part of the benchmark."""

    AIMS = "aims"
    WIRE = "wire"
    RADIO = "radio"


@dataclass(frozen=True)
class Wanted:
    """How many runs to measure, and whether to measure ns-3 too."""

    runs: int
    peer_runs: int
    peer: bool


def main(
    runs: Annotated[int, typer.Option(min=1, help="Of airpath.")] = 5,
    peer_runs: Annotated[int, typer.Option(min=1, help="Of ns-3.")] = 1,
    no_peer: Annotated[bool, typer.Option("--no-peer", help="airpath alone.")] = False,
    only: Annotated[Part | None, typer.Option(help="One part of it.")] = None,
    plain: Annotated[bool, typer.Option("--plain", help="Built without a profile.")] = False,
    record: Annotated[bool, typer.Option("--record", help="Keep htsim's figures.")] = False,
    json: Annotated[Path | None, typer.Option(help="Write every measurement too.")] = None,
) -> int:
    """Measure CPU time of bulk TCP on a wire and over a cell, beside htsim and ns-3."""
    machine = about()
    results = Results({"about": machine, "runs": runs}, json)
    built = builds(plain)
    results.document["built"] = built.said
    results.say(heading(machine, runs, built.said))
    if only in (None, Part.AIMS):
        results.step("aims", lambda: aims.run(built, runs, not no_peer, record), aims.render)
    if only in (None, Part.WIRE):
        wire(built, Wanted(runs, peer_runs, not no_peer), results)
    if only in (None, Part.RADIO):
        radio.run(built, runs, not no_peer, results)
    return results.end()


def heading(machine: Row, runs: int, built: str) -> list[str]:
    """Return the lines that say what was measured, on which machine, and how it was built."""
    return [
        f"{machine['date']}, {machine['cpu']}, {machine['rustc']}, commit {machine['commit']}",
        f"`{machine['command']}`: airpath {runs} x",
        built,
    ]


def wire(built: Builds, wanted: Wanted, results: Results) -> None:
    """Measure all cases without a radio."""
    airpath = Airpath(built.program("bulk"))
    peer = find_peer() if wanted.peer else None
    runs = wanted.runs
    results.document["peer_runs"] = wanted.peer_runs if peer else 0
    case = partial(run_case, airpath=airpath, peer=peer, wanted=wanted)
    window = partial(run_window, airpath=airpath, runs=runs)
    for name, call, render in (
        ("cases", lambda: results.each("cases", CASES, case), render_cases),
        ("windows", lambda: results.each("windows", WINDOWS, window), render_windows),
        ("ack_table", lambda: run_ack_table(CASES[0], airpath, runs), render_acks),
        ("features", lambda: run_features(CASES[0], airpath, runs), render_features),
        ("lossy", lambda: run_lossy(airpath), render_lossy),
    ):
        results.step(name, call, render)


@dataclass(frozen=True)
class Case:
    """Bulk flows through one bottleneck with a queue of one bandwidth-delay product."""

    flows: int
    rate_mbps: int
    rtt_ms: int
    seconds: int = 30

    def __str__(self) -> str:
        flows = "1 flow" if self.flows == 1 else f"{self.flows} flows"
        return f"{flows}, {self.rate_mbps} Mb/s, {self.rtt_ms} ms"


CASES = (Case(1, 230, 30), Case(4, 600, 40), Case(1, 1000, 20))


def run_case(
    case: Case,
    airpath: Airpath,
    peer: Path | None,
    wanted: Wanted,
) -> Row:
    """Run airpath before and after the peer, so that a machine that slows down affects both."""
    before = (wanted.runs + 1) // 2
    ours = repeat(f"{case}: airpath", before, lambda: airpath.run(case))
    theirs: list[Row] = []
    if peer:
        theirs = repeat(
            f"{case}: ns-3",
            wanted.peer_runs,
            partial(ns3, peer, case.flows, case.rate_mbps, case.rtt_ms, case.seconds),
        )
    ours += repeat(f"{case}: airpath", wanted.runs - before, lambda: airpath.run(case))
    return {"case": str(case), "seconds": case.seconds, "airpath": ours, "ns3": theirs}


def run_window(window: int, airpath: Airpath, runs: int) -> Row:
    """Run a fixed window over a path with that BDP; every window delivers as many segments."""
    per_second = window * 1000 // WINDOW_RTT_MS
    rate_mbps = per_second * 1500 * 8 // 1_000_000
    case = Case(1, rate_mbps, WINDOW_RTT_MS, -(-WINDOW_SEGMENTS // per_second))
    label = f"window of {window} segments"
    measured = repeat(label, runs, lambda: airpath.run(case, "--window-segments", str(window)))
    return {"window_segments": window, "rate_mbps": rate_mbps, "airpath": measured}


def run_ack_table(case: Case, airpath: Airpath, runs: int) -> Row:
    """Run a case without and with the table of acknowledgements, in turns."""
    pairs = repeat("table of acknowledgements", runs, partial(airpath.pair, case, "--acks"))
    return {
        "case": str(case),
        "without": [without for without, _ in pairs],
        "with": [with_ for _, with_ in pairs],
    }


def run_features(case: Case, airpath: Airpath, runs: int) -> list[Row]:
    """Run a case with each feature, each time beside a run without features."""
    rows = []
    for name, some in [(name, (name,)) for name in FEATURES] + [("as linux-6.18", LINUX)]:
        pairs = repeat(name, runs, partial(airpath.pair, case, *features(some)))
        plain, switched = ([pair[side] for pair in pairs] for side in (0, 1))
        rows.append({"feature": name, "without": plain, "with": switched})
    return rows


def run_lossy(airpath: Airpath) -> list[Row]:
    """Run 10 Gb/s, 100 ms and 1 % random loss, the case with which BBR was introduced to Linux."""
    rows = []
    for name, seconds in (("linux-cubic", 600), ("bbr", 30), ("bbr3", 30)):
        case = Case(1, 10_000, 100, seconds)
        more = ("--loss-percent", "1", *features((*LOSSY, name)))
        call = partial(airpath.run, case, *more)
        measured = repeat(f"10 Gb/s, 1 % loss: {name}", 1, call)
        rows.append({"congestion": name.removeprefix("linux-"), "seconds": seconds} | measured[0])
    return rows


@dataclass(frozen=True)
class Airpath:
    """The Rust bench."""

    program: Path

    def run(self, case: Case, *more: str) -> Row:
        options = words(case.flows, case.rate_mbps, case.rtt_ms, case.seconds, *more)
        return measure([str(self.program), *options])

    def pair(self, case: Case, *more: str) -> list[Row]:
        """Run a case without the further arguments, and then with them."""
        return [self.run(case), self.run(case, *more)]


def find_peer() -> Path | None:
    """Return ns-3's program if it is built and runs; otherwise say why not."""
    program = peer_program("ns3_bulk")
    if program is not None:
        try:
            ns3(program, 1, 1, 10, 1)
        except BenchError as error:
            say(f"ns-3 is left out: {error}")
            return None
    return program


def render_cases(cases: list[Row]) -> list[str]:
    peers = [case for case in cases if case["ns3"]]
    peer_runs = len(peers[0]["ns3"]) if peers else 0
    parts = [
        f"On a wire; ns-3 {peer_runs} x.",
        table(
            (
                "case", "who", "CPU s", "range", "sim. s / CPU s", "packets / CPU s",
                "ns / segment", "goodput Mb/s",
            ),
            (row for case in cases for row in case_rows(case)), padded=True),
    ]  # fmt: skip
    if peers:
        parts.append(
            table(
                ("case", "CPU s, ns-3 / airpath", "per segment", f"per segment / {LOGGING}"),
                (ratio_row(case) for case in peers),
                padded=True,
            )
        )
    return parts


def render_windows(windows: list[Row]) -> list[str]:
    return [
        table(
            ("fixed window, segments", "rate Mb/s", "segments delivered", "ns / segment", "range"),
            (window_row(window) for window in windows),
            padded=True,
        )
    ]


def render_acks(acks: Row) -> list[str]:
    without, with_ = (middle(acks[key], "ns_per_segment") for key in ("without", "with"))
    return [
        f"Table of acknowledgements ({acks['case']}): {without:.0f} ns / segment without, "
        f"{with_:.0f} with: {with_ - without:+.0f} ns."
    ]


def render_features(features: list[Row]) -> list[str]:
    return [
        table(
            ("feature", "ns / segment", "without it", "cost ns"),
            (feature_row(row) for row in features),
            padded=True,
        )
    ]


def render_lossy(lossy: list[Row]) -> list[str]:
    return [
        table(
            ("10 Gb/s, 100 ms, 1 % loss", "simulated s", "goodput Mb/s", "CPU s"),
            (
                (
                    row["congestion"],
                    str(row["seconds"]),
                    f"{row['goodput_mbps']:,.2f}",
                    f"{row['cpu_s']:.3g}",
                )
                for row in lossy
            ),
            padded=True,
        )
    ]


def case_rows(case: Row) -> Iterable[tuple[str, ...]]:
    for who in ("airpath", "ns3"):
        rows = case[who]
        if not rows:
            continue
        cpu = middle(rows, "cpu_s")
        segments = rows[0]["delivered_segments"]
        yield (
            case["case"],
            rows[0]["tool"],
            f"{cpu:.3g}",
            spread(rows, "cpu_s", "{:.3g}"),
            f"{case['seconds'] / cpu:.3g}",
            # One acknowledgement for every second segment.
            f"{segments * 1.5 / cpu:,.0f}",
            f"{middle(rows, 'ns_per_segment'):,.0f}",
            f"{rows[0]['goodput_mbps']:.1f}",
        )


def ratio_row(case: Row) -> tuple[str, ...]:
    ours, theirs = case["airpath"], case["ns3"]
    per_segment = middle(theirs, "ns_per_segment") / middle(ours, "ns_per_segment")
    return (
        case["case"],
        f"{middle(theirs, 'cpu_s') / middle(ours, 'cpu_s'):.0f}",
        f"{per_segment:.0f}",
        f"{per_segment / LOGGING:.0f}",
    )


def feature_row(row: Row) -> tuple[str, ...]:
    with_, without = (middle(row[side], "ns_per_segment") for side in ("with", "without"))
    return (row["feature"], f"{with_:.0f}", f"{without:.0f}", f"{with_ - without:+.0f}")


def window_row(window: Row) -> tuple[str, ...]:
    rows = window["airpath"]
    return (
        f"{window['window_segments']:,}",
        f"{window['rate_mbps']:,}",
        f"{rows[0]['delivered_segments']:,}",
        f"{middle(rows, 'ns_per_segment'):.0f}",
        spread(rows, "ns_per_segment", "{:.0f}"),
    )
