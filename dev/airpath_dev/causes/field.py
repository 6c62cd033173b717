"""Judges every capture and tool output below a folder, and writes a page of the first causes.

What was recorded in the field has no known cause. Most captures have no bulk transfer, and nothing
limits them: what is blamed there is wrong. What some of them show to a reader is in read.toml.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from airpath.cli.console import progress_bar
from airpath.diagnose.files import FileDocument, diagnose
from airpath.errors import AirpathError
from airpath.readers.flows import total_bytes
from airpath_dev.harness import FINE, WRONG, heading, say, table, write

_BULK_BYTES = 1_000_000
_BULK_S = 1.0
_MOST = 0.03
_READ = Path(__file__).with_name("read.toml")


@dataclass(frozen=True)
class Recording:
    """A file, its kind, and its largest TCP flow: bytes and seconds; ``said`` of it."""

    name: str
    kind: str
    bytes: int
    seconds: float
    causes: tuple[str, ...]
    said: str

    @property
    def is_bulk(self) -> bool:
        """A transfer of a megabyte and a second: something may limit it."""
        return self.bytes >= _BULK_BYTES and self.seconds >= _BULK_S


def main(
    folder: Annotated[Path, typer.Argument(help="Where the files are.")],
    page: Annotated[Path | None, typer.Option(help="Write a page of all captures.")] = None,
) -> int:
    """Judge every file below FOLDER; fails if 3 % of the captures without a transfer are blamed."""
    files = sorted(one for one in folder.rglob("*") if one.is_file())
    with ProcessPoolExecutor(os.cpu_count()) as pool, progress_bar("judged") as shown:
        found = []
        for number, one in enumerate(pool.map(_judged, [folder] * len(files), files)):
            shown((number + 1) / len(files))
            if one is not None:
                found.append(one)
    if page is not None:
        write(page, _page([one for one in found if one.kind.startswith("pcap")]))
    quiet = [one for one in found if one.kind.startswith("pcap") and not one.is_bulk]
    blamed = [one for one in quiet if one.causes]
    say(f"{len(found)} files were read, {len(files) - len(found)} are of other kinds")
    say(f"{len(blamed)} of {len(quiet)} captures without a transfer are blamed")
    for one in blamed:
        say(f"  {one.name}: {' or '.join(one.causes)}: {one.said[:160]}")
    return FINE if len(blamed) <= _MOST * len(quiet) else WRONG


def _judged(folder: Path, file: Path) -> Recording | None:
    try:
        document = diagnose(str(file))
    except AirpathError:
        return None
    blamed = document.get("causes")
    first = blamed["causes"][0] if blamed and blamed["causes"] else None
    largest = _largest(document)
    return Recording(
        str(file.relative_to(folder)),
        document["kind"],
        *largest,
        tuple(first["causes"]) if first else (),
        first["evidence"] if first else blamed["because"] if blamed else "",
    )


def _largest(document: FileDocument) -> tuple[int, float]:
    flows = (
        [one for one in document["capture"]["flows"] if one["tcp"]] if "capture" in document else []
    )
    flow = max(flows, key=total_bytes, default=None)
    return (total_bytes(flow), flow["duration_s"]) if flow else (0, 0.0)


def _page(found: Sequence[Recording]) -> list[str]:
    read = tomllib.loads(_READ.read_text(encoding="utf-8"))
    opinions = {name: (said, how) for how, some in read.items() for name, said in some.items()}
    told = {one.name: next((name for name in opinions if one.name.endswith(name)), "")
            for one in found}  # fmt: skip
    here = [name for name in told.values() if name]
    differ = sum(opinions[name][1] == "differs" for name in here)
    quiet = [one for one in found if not one.is_bulk]
    rows = [
        (one.name, f"{one.bytes / 1e6:.2f}", f"{one.seconds:.1f}", " or ".join(one.causes) or "-",
         one.said.split(". ")[0].replace("|", " "))
        for one in found
    ]  # fmt: skip
    opinion = [
        (one.name, " or ".join(one.causes) or "-", *opinions[told[one.name]])
        for one in found
        if told[one.name]
    ]
    return [
        heading("Causes inferred from captures of the field", "causes-field ARGS=FOLDER"),
        f"{len(found)} captures that others published, none of them with a known cause; "
        f"{len(quiet)} have no TCP transfer of a megabyte and a second, and of these "
        f"{sum(bool(one.causes) for one in quiet)} have a cause named. The largest TCP flow of "
        "each has so many MB and seconds.\n",
        "## As read in tshark\n",
        f"{len(here)} of them, drawn at random, were read in tshark: their pauses, round trips and "
        f"retransmissions. Of {differ} the reading differs from what airpath says.\n",
        table("capture | first cause | as read in tshark | airpath", opinion),
        "\n## All captures\n",
        table("capture | MB: | s: | first cause | evidence, or why there is none", rows),
    ]
