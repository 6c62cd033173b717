"""``airpath reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airpath.cli.console import narrate, output, progress_bar, with_remarks
from airpath.cli.run import AsJson, Sets, Workers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airpath.study.definition import Study
    from airpath.study.judge import Finding
    from airpath.study.reproduce import Outcome


def command(
    studies: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[STUDY|ARCHIVE]...",
            help="Names of studies, or archives of `airpath cite`. [default: all studies]",
        ),
    ] = None,
    sets: Sets = None,
    repeat: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Number of seeds for each figure. [default: the study's]",
        ),
    ] = None,
    workers: Workers = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write an HTML page with the effect of every assumption.",
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Rerun published studies and compare each figure with what was published.

    An archive of a run (FILE.zip) is run again, and its tables are compared byte for byte; if one
    differs, the exit code is 1.

    A value is reproduced if it is within its tolerance and its interval does not exclude the
    published value by more than a third of it. It is calibrated if a parameter was chosen
    to match it, and under-specified if a choice that the source leaves open moves it there and no
    other figure away. A relation holds, holds only with a fault (explained-by), or is refuted. Two
    counts are printed: all figures, and those to which no parameter was matched.
    """
    from airpath.errors import InputError
    from airpath.runs import summary
    from airpath.runs.directories import check_file_target
    from airpath.study.definition import load_study, study_names
    from airpath.study.reproduce import document, reproduce

    if report is not None:
        check_file_target(report)
    if studies and all(each.endswith(".zip") for each in studies):
        if sets or repeat is not None or report is not None or json:
            raise InputError(
                "an archive is run again unchanged: only --workers can be combined with it"
            )
        _archives([Path(each) for each in studies], workers)
        return
    loaded = [load_study(name) for name in studies or study_names()]
    results: list[tuple[Study, Sequence[Outcome]]] = []
    for study in loaded:
        with progress_bar(study.id) as progress:
            outcomes = reproduce(
                study, sets=sets or [], repeat=repeat, workers=workers, progress=progress
            )
        results.append((study, outcomes))
    if json:
        output(summary.to_json(document(results)))
    else:
        for study, judged in results:
            output(table(study, judged))
    if report is not None:
        from airpath.report.study import write_study_report

        write_study_report(results, report)
        narrate(f"report: {report}")


def _archives(files: list[Path], workers: int | None) -> None:
    """Run archives again, and print what came of each table. Raises if any differs."""
    from airpath import _core
    from airpath.base.text import plural
    from airpath.cite.archive import run_again
    from airpath.errors import AirpathError

    different = 0
    for file in files:
        with progress_bar(str(file)) as progress:
            run, rows = run_again(file, workers, progress)
        version = run.provenance["version"]
        output(f"{file}: run {run.id}, {run.title}, airpath {version}")
        for row in rows:
            output(f"  seed {row.seed} {row.table}: {'same bytes' if row.same else 'DIFFERS'}")
        wrong = [row for row in rows if not row.same]
        different += len(wrong)
        if wrong and version != _core.__version__:
            narrate(f"note: the archive is of airpath {version}, this is {_core.__version__}")
    if different:
        raise AirpathError(f"{plural(different, 'table')} of {', '.join(map(str, files))} differ")


def _remark(finding: Finding) -> str:
    """Return the note, and why the figure does not agree."""
    reason = f"reason: {finding.reason_text}" if finding.reason_text else ""
    return "\n      ".join(filter(None, [finding.note, reason]))


def table(study: Study, outcomes: Sequence[Outcome]) -> str:
    """Published against obtained, as aligned text."""
    from airpath.base.text import digits
    from airpath.study.reproduce import counts, obtained_text

    findings = [finding for outcome in outcomes for finding in outcome.findings]
    rows = [("figure", "published", "obtained", "95 % CI", "tolerance", "verdict")]
    for finding in findings:
        figure = finding.figure
        bounds = finding.ci95
        rows.append(
            (
                figure.id.removeprefix(f"{study.id}/"),
                figure.published_text(),
                obtained_text(finding),
                "" if bounds is None else f"{digits(bounds[0])} to {digits(bounds[1])}",
                "" if figure.kind == "shape" else f"{figure.tolerance * 100:.0f} %",
                finding.verdict,
            )
        )
    return "\n".join(
        [
            f"{study.id}: {study.title}",
            *with_remarks(rows, range(1, 5), map(_remark, findings)),
            f"  {counts(outcomes).text()}",
        ]
    )
