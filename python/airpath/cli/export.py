"""``airpath export``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airpath.cli.console import narrate, output

if TYPE_CHECKING:
    from airpath.export import Written


def _directory(name: str, help_: str) -> object:
    return typer.Option(f"--{name}", metavar="DIR", help=help_)


Recorded = Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")]
Mahimahi = Annotated[
    Path | None,
    _directory(
        "mahimahi",
        "Write UE.up and UE.down for Mahimahi's mm-link, and a scenario that replays both.",
    ),
]
Radio = Annotated[
    Path | None,
    _directory(
        "radio",
        "Write the SINR of every UE as CSV, and a scenario that reads it as its channels.",
    ),
]
CellReplay = Annotated[
    Path | None,
    _directory("cellreplay", "Write the four traces of CellReplay's mm-cellular. Needs --light."),
]
Light = Annotated[
    Path | None,
    typer.Option(
        metavar="RUN",
        help="For --cellreplay, a recorded run of pings or short packet trains, which does "
        "not saturate the radio.",
    ),
]
Netem = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write a shell script of tc commands (netem and tbf), which lists what they "
        "cannot express; - is standard output.",
    ),
]
Ue = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The UE to export. [default: the only one; with --radio, all]",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=0,
        help="The seed to export. [default: the run's first]",
    ),
]


def command(
    run: Recorded,
    mahimahi: Mahimahi = None,
    radio: Radio = None,
    cellreplay: CellReplay = None,
    light: Light = None,
    netem: Netem = None,
    ue: Ue = None,
    seed: Seed = None,
) -> None:
    """Export a run's cell or links to other emulators.

    If the run has a radio, traces need its recording (run --record, emulate --record). A trace
    contains what the UE received or sent in that run, so record a flow that always has data to
    send.
    """
    from airpath import export
    from airpath.errors import InputError
    from airpath.runs.results import Run

    if mahimahi is radio is cellreplay is netem is None:
        raise InputError("nothing to write: add --mahimahi, --radio, --cellreplay or --netem")
    if (cellreplay is None) != (light is None):
        raise InputError(
            "--cellreplay needs --light RUN, a recorded run of pings or short packet trains"
            if light is None
            else "--light needs --cellreplay DIR"
        )
    opened = Run.open(run)
    if mahimahi is not None:
        _say(export.mahimahi(opened, mahimahi, ue, seed))
    if radio is not None:
        _say(export.radio(opened, radio, ue, seed))
    if cellreplay is not None and light is not None:
        _say(export.cellreplay(opened, Run.open(light), cellreplay, ue, seed))
    if netem is not None:
        text = export.netem(opened, netem.name if str(netem) != "-" else "netem.sh", ue, seed)
        if str(netem) == "-":
            output(text)
        else:
            _write_script(netem, text)


def _say(written: Written) -> None:
    narrate(f"{written.directory}: {', '.join(written.files)}")
    for line in written.said:
        narrate(f"  {line}")


def _write_script(file: Path, text: str) -> None:
    from airpath.runs.directories import check_file_target, replaced_file

    check_file_target(file)
    with replaced_file(file) as aside:
        aside.write_text(text, encoding="utf-8")
        if aside != file:
            aside.chmod(0o755)
    narrate(f"script: {file}")
