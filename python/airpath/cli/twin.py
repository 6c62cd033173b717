"""``airpath twin``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airpath.cli.console import narrate, output, progress_bar, with_remarks
from airpath.cli.emulate import CongestionOf, enter_user_namespace
from airpath.cli.run import AsJson, Scenario, Sets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airpath.twin.compare import Figure
    from airpath.twin.runs import Twin

INVALID = 3


OwnProfiles = Annotated[
    bool,
    typer.Option(
        "--own-profiles",
        help="Simulate each flow with its own profile instead of the running kernel's. "
        "Figures of TCP are then not comparable.",
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="The twin's directory. Complete runs in it are kept, missing ones are added. "
        "[default: runs/twin-NAME-ID]",
    ),
]


def command(
    scenario: Scenario,
    sets: Sets = None,
    seeds: Annotated[int, typer.Option(metavar="N", min=1, help="Number of seeds.")] = 1,
    own_profiles: OwnProfiles = False,
    congestion: CongestionOf = None,
    out: Out = None,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write an HTML page."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Simulate a scenario, run it over the kernel's TCP, and compare the two.

    They may differ by 5 % in goodput, 10 % in the median RTT, 20 % in its 95th percentile, and at
    the end of slow start by one base RTT in time and 20 % in cwnd. The emulated packets, replayed
    on the virtual clock, must leave at the same times. The exit code is 0 if everything agrees, 1
    if something differs, and 3 if the machine was too late in every run. Run it as root: without
    root most runs are too late.

    With --congestion, the kernel uses another congestion control than the flows', and the twin
    judges whether it does what theirs does.
    """
    enter_user_namespace()
    from airpath.runs import provenance, summary
    from airpath.runs.directories import check_file_target
    from airpath.twin import compare as comparison
    from airpath.twin.comparable import make_comparable
    from airpath.twin.runs import default_directory, run

    if report is not None:
        check_file_target(report)
    comparable = make_comparable(
        scenario, sets, own_profiles=own_profiles, congestion=congestion or ()
    )
    if comparable.profile is not None:
        narrate(f"kernel {comparable.kernel}; simulated endpoints: {comparable.profile}")
    try:
        with progress_bar("twin") as progress:
            done = run(
                comparable,
                seeds=seeds,
                out=out,
                progress=progress,
                say=narrate,
                command=provenance.command_line(),
            )
    except KeyboardInterrupt:
        kept = out or default_directory(comparable)
        narrate(f"interrupted; the complete runs are kept, and the same command continues: {kept}")
        raise SystemExit(130) from None
    figures = comparison.compare(done)
    verdict = comparison.overall(done, figures)
    document = comparison.document(done, figures)
    summary.write_json(done.directory / "comparison.json", document)
    if json:
        output(summary.to_json(document))
    else:
        output(table(done, figures, verdict))
    narrate(f"directory: {done.directory}")
    if report is not None:
        from airpath.report.twin import write_twin_report

        write_twin_report(done, figures, verdict, report)
        narrate(f"report: {report}")
    codes = {comparison.AGREES: 0, comparison.INVALID: INVALID}
    raise SystemExit(codes.get(verdict, 1))


def table(twin: Twin, figures: Sequence[Figure], verdict: str) -> str:
    """Both sides, as aligned text."""
    from airpath.twin.compare import parity, row

    rows = [("flow", "figure", "simulated", "emulated", "difference", "limit", "verdict")]
    rows += [row(figure) for figure in figures]  # type: ignore[misc]
    lines = [f"{twin.comparable.scenario.name}: {verdict}"]
    lines += with_remarks(rows, range(2, 6), (figure.note for figure in figures))
    for pair in twin.pairs:
        if pair.emulated is None:
            lines.append(f"  seed {pair.seed}: no run counts: {pair.invalid[-1]}")
            continue
        replay = parity(pair.emulated)
        what = "the same times" if replay["same"] else f"OTHER times: {replay['first_difference']}"
        lines.append(f"  seed {pair.seed}: {replay['left']} replayed packets leave at {what}")
    return "\n".join(lines)
