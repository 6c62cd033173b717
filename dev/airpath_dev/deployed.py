"""Reads and runs the configuration files of a folder, such as public ones of many repositories.

The folder is laid out as PROGRAM/NETWORK. A network is a file, or a directory whose files are given
together.

Exit codes: 0, each network was run or refused with a line that names file and cause; 1, another
error, or a secret in a scenario; 2, bad use; 3, not checked, because no folder is named.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, NamedTuple

import typer

import airpath
from airpath.base.text import rate
from airpath.deployed.convert import Deployed, convert_files
from airpath.errors import InputError
from airpath_dev.harness import FINE, WRONG, NotCheckedError, table

ENVIRONMENT = "AIRPATH_DEPLOYED"
HEAD = ("network", "read as", "from files", "defaults", "assumed", "not modelled", "others",
        "download", "ping p50")  # fmt: skip
_ADDRESS = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b")

Folder = Annotated[Path | None, typer.Argument(envvar=ENVIRONMENT, exists=True, file_okay=False)]
Seconds = Annotated[int, typer.Option("--seconds", min=1, help="Length of each run.")]


class Tried(NamedTuple):
    """What became of a network's files."""

    name: str
    made: Deployed | None
    refused: str
    mbps: float | None = None
    ping_ms: float | None = None
    leaks: tuple[str, ...] = ()


def main(folder: Folder = None, seconds: Seconds = 2) -> int:
    """Read each network of FOLDER, run it, and print a row; then the files that were refused."""
    if folder is None:
        raise NotCheckedError(f"{ENVIRONMENT} names no folder")
    tried = [try_network(folder, files, seconds) for files in networks(folder)]
    print(table(HEAD, (row(each) for each in tried if each.made), padded=True))
    for each in tried:
        if each.refused:
            print(f"refused: {each.refused}")
    leaks = [each for each in tried if each.leaks]
    for each in leaks:
        print(f"{each.name}: the scenario has an address of the files: {each.leaks[0]}")
    run = sum(each.made is not None for each in tried)
    print(f"{run} networks were run, {len(tried) - run} refused.")
    return WRONG if leaks else FINE


def networks(folder: Path) -> Iterator[list[Path]]:
    """The files of each network."""
    for network in sorted(folder.glob("*/*")):
        yield sorted(network.glob("*")) if network.is_dir() else [network]


def try_network(folder: Path, files: list[Path], seconds: float) -> Tried:
    """Read a network's files and run the scenario."""
    name = str((files[0] if len(files) == 1 else files[0].parent).relative_to(folder))
    try:
        made = convert_files([str(each) for each in files])
    except InputError as error:
        return Tried(name, None, str(error))
    with TemporaryDirectory() as place:
        scenario = Path(place) / "deployed.toml"
        scenario.write_text(made.scenario, encoding="utf-8")
        run = airpath.run(
            str(scenario), set={"run.duration_s": seconds}, out=Path(place) / "run", explain="off"
        )
        flow = run.flows.row(0, named=True)
        ping = run.flows.row(1, named=True)
    texts = "".join(file.read_text(encoding="latin-1") for file in files)
    leaks = tuple(each for each in set(_ADDRESS.findall(texts)) if each in made.scenario)
    return Tried(name, made, "", flow["goodput_mbps"], ping["rtt_ms_p50"], leaks)


def row(tried: Tried) -> list[object]:
    """The row of a network that was run."""
    made = tried.made
    if made is None:
        return [tried.name, tried.refused]
    counts = Counter(entry.source for entry in made.entries)
    matter = sum(bool(one.why) for one in made.not_modelled)
    return [
        tried.name,
        ", ".join(map(str, made.programs)),
        counts["file"],
        counts["default"],
        counts["assumed"],
        matter,
        len(made.not_modelled) - matter,
        rate(tried.mbps),
        f"{tried.ping_ms:.1f} ms" if tried.ping_ms is not None else "none",
    ]
