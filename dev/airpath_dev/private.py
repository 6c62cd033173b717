"""Runs the second testbed of the study lte-private with the kernel's TCP; writes a page (root).

A UE attaches against a database of subscribers and gets an address from the pool, and its packets
travel as GTP-U. A ping and then iperf3 run as programs, with one window, direction and congestion
control at a time, 15 s each. Then a middlebox removes the window scale from the SYN/ACK. Without
root the program says what is absent and why, and exits with 0.
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, NamedTuple

import typer

from airpath import scenario as scenarios
from airpath.base.text import digits
from airpath.base.toml import read_toml
from airpath.cli.console import progress_bar
from airpath.drivers import emulate
from airpath.drivers.options import EmulationOptions
from airpath.emulation.document import ProgramEntry
from airpath.emulation.oam import subscribers
from airpath.errors import AirpathError
from airpath.scenario import STUDIES
from airpath_dev.harness import FINE, MEASURED, heading, need, table, write

SCENARIO = STUDIES / "lte-private/scenario-emulated.toml"
PROGRAMS = ("ip", "iperf3", "nft", "ping", "tshark")
BUFFERS, MIDDLEBOX, TEST = 0, 1, 3
"""Places of the programs in the scenario."""

ATTEMPTS = 2
WINDOWS = ("", "64K", "1M", "2M", "4M")
"""Values of ``-w``; without it the kernel's default."""
PUBLISHED = {
    ("down", ""): "4.80 Mb/s after 10 s",
    ("down", "1M"): "5.72 Mb/s",
    ("down", "4M"): "5.69 Mb/s",
    ("up", ""): "62.2 kb/s",
    ("up", "2M"): "1.23 Mb/s",
}


class Point(NamedTuple):
    """One test of iperf3."""

    direction: str
    window: str
    control: str
    lost_scale: bool = False

    def sets(self, seconds: int) -> list[str]:
        """What it sets in the scenario."""
        words = [f"exec iperf3 -4 -J -c server -t {seconds} -C {self.control}"]
        words += ["-R"] * (self.direction == "down") + [f"-w {self.window}"] * bool(self.window)
        sets = [f"program.{TEST}.command={json.dumps(' '.join(words))}"]
        if self.lost_scale:
            sets += [f"program.{each}.enabled=true" for each in (BUFFERS, MIDDLEBOX)]
        return sets


class Obtained(NamedTuple):
    """What iperf3's receiver counted."""

    mbps: float
    retransmitted: int
    valid: bool


def main(
    seconds: Annotated[int, typer.Option(help="Length of a test.")] = 15,
    quick: Annotated[bool, typer.Option(help="One test each way, and no page.")] = False,
    page: Annotated[Path, typer.Option()] = MEASURED / "lte-private-emulated.md",
) -> None:
    """Run the tests and write the page."""
    need(*PROGRAMS, root=True, exit_code=FINE)
    points = [
        Point(direction, window, control)
        for direction in ("down", "up")
        for window in WINDOWS
        for control in ("cubic", "reno")
    ]
    points += [Point("up", window, "cubic", lost_scale=True) for window in WINDOWS]
    points += [Point("down", window, "cubic", lost_scale=True) for window in ("", "1M")]
    if quick:
        points = [Point("down", "1M", "cubic"), Point("up", "2M", "cubic")]
    with TemporaryDirectory() as place:
        database = Path(place) / "subscribers.db"
        enrol(database)
        attached = attach(database, Path(place))
        obtained = {}
        with progress_bar("iperf3") as progress:
            for index, point in enumerate(points):
                obtained[point] = measure(point, database, Path(place), seconds)
                progress((index + 1) / len(points))
    lines = markdown(attached, obtained, seconds)
    if quick:
        print("\n".join(lines))
    else:
        write(page, lines)


def enrol(database: Path) -> None:
    """Add the scenario's UE to the subscribers."""
    (ue,) = read_toml(SCENARIO)["radio"]["ue"]
    subscribers.add(database, subscribers.Subscriber(ue["imsi"], ue["key"], ue["opc"]))


def run(sets: list[str], database: Path, out: Path, *, capture: bool = False) -> Any:
    """One emulation; programs have all rights of root."""
    scenario = scenarios.load(SCENARIO, [f"core.subscribers={database}", *sets])
    done = emulate.emulate(scenario, EmulationOptions(out=out, user="root", capture=capture))
    check(done.summary["emulation"]["programs"], out)
    return done


def check(programs: list[ProgramEntry], out: Path) -> None:
    """Refuse a run in which a program failed: without its middlebox it would be another row."""
    for program in programs:
        # The server is ended by the run.
        if program["code"] and program["name"] != "iperf3-server":
            said = (out / f"programs/{program['name']}.stderr").read_text(encoding="utf-8")
            raise AirpathError(f"{program['name']} ended with {program['code']}: {said.strip()}")


def attach(database: Path, place: Path) -> dict[str, str]:
    """A ping, and what session, ping and capture say."""
    out = place / "attach"
    sets = [f"program.{TEST}.command=exec ping -4 -c 20 -i 0.3 server"]
    session = run(sets, database, out, capture=True).summary["emulation"]["sessions"][0]
    said = (out / "programs/test.stdout").read_text(encoding="utf-8").strip().splitlines()
    shown = subprocess.run(
        [
            "tshark",
            "-r",
            out / "capture.pcapng",
            "-Y",
            "gtp && icmp",
            "-T",
            "fields",
            "-e",
            "gtp.teid",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    teids = shown.stdout.split()
    return {
        "address from the pool": session["address"],
        "ping": "; ".join(line for line in said if "packets" in line or "rtt" in line),
        "ICMP in GTP-U, according to tshark": f"{len(teids)} packets, {len(set(teids))} TEIDs",
    }


def measure(point: Point, database: Path, place: Path, seconds: int) -> Obtained:
    """One test; once more if packets were late."""
    for attempt in range(ATTEMPTS):
        out = place / f"run-{'-'.join(map(str, point))}-{attempt}"
        summary = run(point.sets(seconds), database, out).summary["emulation"]
        text = (out / "programs/test.stdout").read_text(encoding="utf-8")
        end = json.loads(text)["end"]
        mbps = end["sum_received"]["bits_per_second"] / 1e6
        found = Obtained(mbps, end["sum_sent"].get("retransmits", 0), summary["valid"])
        shutil.rmtree(out)
        if found.valid:
            break
    return found


def markdown(attached: dict[str, str], obtained: dict[Point, Obtained], seconds: int) -> list[str]:
    """The page."""
    lines = [
        heading(
            "The study lte-private with the kernel's TCP",
            "studies-emulated",
            f"kernel {platform.release()}",
        ),
        "This page emulates the second testbed of [lte-private](../guides/studies.md#lte-private):",
        "the cell and the path to the server are simulated on the real clock, TCP is the kernel's,",
        f"and iperf3 runs for {seconds} s per row. Nothing was fitted for it. The rate is what the",
        "receiver counted; the number after the slash counts retransmissions.",
        "",
        "## Attach",
        *(f"- {name}: {value}" for name, value in attached.items()),
        "",
        "## Windows",
        table(
            " | window | CUBIC | Reno | published",
            (
                (
                    *labels(Point(direction, window, "cubic")),
                    *(cell(obtained.get(Point(direction, window, of))) for of in ("cubic", "reno")),
                    PUBLISHED.get((direction, window), ""),
                )
                for direction in ("down", "up")
                for window in WINDOWS
            ),
        ),
    ]
    lost = {point: found for point, found in obtained.items() if point.lost_scale}
    if lost:
        lines += [
            "",
            "## A lost window scale",
            "A middlebox removes the option from the SYN/ACK, so the client reads the server's",
            "windows unscaled, as the header has them. The server has Linux's default buffers:",
            "131 kB, at most 6 MB.",
            "",
            table(
                " | window | CUBIC | published",
                (
                    (
                        *labels(point),
                        cell(found),
                        PUBLISHED.get((point.direction, point.window), ""),
                    )
                    for point, found in lost.items()
                ),
            ),
        ]
    late = sum(not found.valid for found in obtained.values())
    lines += [
        "",
        f"Rows that were late on every attempt, which are marked: {late} of {len(obtained)}.",
    ]
    return lines


def labels(point: Point) -> tuple[str, str]:
    """Return the direction and window of a row."""
    return point.direction, point.window or "the kernel's default"


def cell(found: Obtained | None) -> str:
    """A rate with its unit."""
    if found is None:
        return ""
    rate = f"{digits(found.mbps)} Mb/s" if found.mbps >= 0.1 else f"{digits(found.mbps * 1e3)} kb/s"
    return f"{rate} / {found.retransmitted}{'' if found.valid else ' (late)'}"
