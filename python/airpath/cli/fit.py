"""``airpath fit``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from airpath.base.choices import Explain
from airpath.cli.console import complain, narrate, output, progress_bar
from airpath.cli.run import AsJson, Workers

if TYPE_CHECKING:
    from airpath.fitting.fit import Fit
    from airpath.runs.document import RunDocument

_UNITS = {"share": "", "": ""}


Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="Captures (pcap, pcapng; also compressed), taken next to the sender, next to "
        "the receiver or between them.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help="Write the scenario to this file, which must not exist. [default: print it]",
    ),
]
Flow = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=0,
        help="The flow, by its number in `airpath diagnose`. [default: the one with the most data]",
    ),
]


def command(
    files: Files,
    out: Out = None,
    flow: Flow = None,
    explain: Annotated[
        Explain,
        typer.Option(help="How hard to search for what would help the captured network."),
    ] = "quick",
    workers: Workers = None,
    json: AsJson = False,
) -> None:
    """Turn the TCP flow of a capture into a scenario, and say what would help it.

    airpath estimates the path and the endpoints from the packets, tries congestion controls and
    profiles, and keeps the scenario whose re-run is closest to the capture. Its score is 1 for the
    same goodput, round trips and retransmissions. What the capture does not reveal is listed as not
    identifiable, with the reason. Then causes are removed from the scenario (--explain) to measure
    what would help, unless its re-run differs too much from the capture. Without -o the scenario is
    printed, and the rest goes to standard error. Each file gets a scenario of its own; -o takes
    only one file.
    """
    from airpath.errors import AirpathError, InputError
    from airpath.fitting.fit import fit, trace_name
    from airpath.runs import summary
    from airpath.runs.directories import check_file_target

    if out is not None:
        if len(files) > 1:
            raise InputError("-o takes one capture; use --json to print the scenarios of several")
        check_file_target(out)
        for place in (out, trace_name(out)):
            if os.path.lexists(place):
                raise InputError(f"{place} exists already: choose another name")
    documents, code = [], 0
    for file in files:
        try:
            with progress_bar("fitting") as bar:
                fitted = fit(file, flow=flow, explain=explain, workers=workers, progress=bar)
        except AirpathError as error:
            code = max(code, complain(str(error), error.exit_code))
            continue
        if fitted.trace is not None and out is None and not json:
            narrate("the capacity varies: only -o writes its trace, and only --json prints it")
        if out is not None:
            fitted.write(out)
        documents.append(fitted.document())
        if json:
            continue
        tell = output if out is not None else narrate
        for line in _lines(fitted):
            tell(line)
        if out is None:
            output(fitted.scenario)
    if json:
        output(summary.to_json({"fits": documents}))
    raise typer.Exit(code)


def _lines(fitted: Fit) -> list[str]:
    """What was found, what was not, how well it does, and what would help."""
    near = "between the ends" if fitted.place == "between" else f"next to the {fitted.place}"
    lines = [f"{fitted.file}, flow {fitted.flow}, captured {near}"]
    for row in fitted.parameters:
        value, unit = row["value"], _UNITS.get(row["unit"], f" {row['unit']}")
        if value is None:
            continue
        shown = value if isinstance(value, str) else f"{value:.4g}{unit}"
        lines.append(f"  {row['name']}: {shown}, from {row['from']}")
    for one in fitted.not_identifiable:
        lines.append(
            f"  not identifiable: {one.what}: {one.because}; {one.would_tell} would show it"
        )
    lines.append(f"  score {fitted.score.total:.2f}:")
    for name, told in fitted.score.figures.items():
        pair = [_shown(told["capture"]), _shown(told["rerun"])]
        lines.append(f"    {name}: {pair[0]} in the capture, {pair[1]} in the re-run")
    if fitted.unexplained is not None:
        lines.append(f"  no advice: {fitted.unexplained}")
    if fitted.explanation is not None:
        from airpath.runs import describe

        found = {"explained": {"because": None}, **cast("dict[str, object]", fitted.explanation)}
        lines += [f"  {line}" for line in describe.answer(cast("RunDocument", found))]
    if any(one.what == "capacity" for one in fitted.not_identifiable):
        window = any(row["name"] == "receive_window" for row in fitted.parameters)
        why = "the receive window limited the sender, and " if window else ""
        lines.append(
            f"  at least: {why}the path was never full, so its capacity is not known, and the "
            "scenario has the highest rate that was seen. Over a faster path gains would be "
            "larger, or something else would limit the rate."
        )
    return lines


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"
