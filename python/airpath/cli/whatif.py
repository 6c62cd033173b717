"""``airpath whatif``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airpath.cli.console import narrate, output, progress_bar
from airpath.cli.run import Scenario, Sets, Workers

if TYPE_CHECKING:
    from airpath.plots.figure import Figure
    from airpath.runs.document import Variants

_AS_IT_IS = "as it is"


def command(
    scenario: Scenario,
    tries: Annotated[
        list[str],
        typer.Option(
            "--try",
            metavar="'KEY=VALUE …'",
            help="A variant: settings, separated by spaces. Repeatable.",
            show_default=False,
        ),
    ],
    sets: Sets = None,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help="First seed. [default: the scenario's]", show_default=False
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(metavar="N", min=1, help="Number of seeds.")] = 5,
    workers: Workers = None,
    chart: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also draw a chart: .html, .svg, .png or .pdf.",
            show_default=False,
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Compare variants of a scenario on common seeds.

    Prints one table: each figure without changes and with each variant, its change, and the 95 %
    confidence interval of the change over paired seeds. A star marks the best variant, if it is
    better than every other by more than noise.
    """
    from airpath.diagnose.whatif import whatif
    from airpath.errors import InputError
    from airpath.runs import summary
    from airpath.runs.directories import check_file_target

    if chart is not None:
        check_file_target(chart)
        if chart.suffix not in (".html", ".svg", ".png", ".pdf"):
            raise InputError(f"{chart}: the name of a chart must end in .html, .svg, .png or .pdf")
    variants = [_settings(text) for text in tries]
    total = seeds * (len(variants) + 1)
    with progress_bar("comparing") as bar:

        def told(ended: int) -> bool:
            bar(ended / total)
            return True

        answer = whatif(
            scenario, variants, set=sets, seed=seed, seeds=seeds, workers=workers, progress=told
        )
    labels = [_AS_IT_IS, *(" ".join(one) for one in answer["variants"][1:])]
    if json:
        output(summary.to_json(answer))
    else:
        output("\n".join(_table(answer, labels)))
    if chart is not None:
        from airpath.plots.variants import variants as draw

        _write(draw(answer, labels), scenario, chart)
        narrate(f"chart: {chart}")


def _settings(text: str) -> list[str]:
    from airpath.errors import InputError

    try:
        # Quotes of a TOML string stay; those of a shell would be gone.
        parts = [
            part.replace("\0", '"') for part in shlex.split(text.replace('"', "\0"), posix=True)
        ]
    except ValueError as error:
        raise InputError(f"--try {text}: {error}") from None
    if not parts:
        raise InputError("--try is empty: it takes settings, e.g. --try 'run.duration_s=10'")
    return parts


def _table(answer: Variants, labels: list[str]) -> list[str]:
    from airpath.base.text import plural
    from airpath.runs.describe import figure_name, figure_text

    rows = [["", *(f"({index})" if index else _AS_IT_IS for index in range(len(labels)))]]
    for row in answer["rows"]:
        metric = row["metric"]
        cells = [f"{figure_name(metric)} of {row['flow']}"]
        for index, cell in enumerate(row["cells"]):
            if cell is None:
                cells.append("none")
                continue
            star = " *" if row["winner"] == index else ""
            change = ""
            if cell["change"] is not None and cell["change_ci95"] is not None:
                low, high = cell["change_ci95"]
                change = f" ({100 * cell['change']:+.1f} %, {100 * low:+.1f} to {100 * high:+.1f})"
            cells.append(f"{figure_text(metric, cell['mean'])}{change}{star}")
        rows.append(cells)
    widths = [max(len(texts[column]) for texts in rows) for column in range(len(rows[0]))]
    lines = [f"({index}) {label}" for index, label in enumerate(labels) if index]
    lines.append("")
    for texts in rows:
        padded = [text.ljust(width) for text, width in zip(texts, widths, strict=True)]
        lines.append("  ".join(padded).rstrip())
    lines.append("")
    lines.append(
        f"Means over {plural(len(answer['seeds']), 'seed')}; in brackets the change and its 95 % "
        "confidence interval. *: better than every other by more than noise."
    )
    return lines


def _write(figure: Figure, scenario: str, path: Path) -> None:
    from airpath.runs.directories import replaced_file

    if path.suffix == ".html":
        from airpath.report.render import charts_json, page

        text = page(
            "variants.html.j2",
            title=f"{scenario}: what if",
            figures=[figure],
            charts=charts_json([figure]),
        )
        with replaced_file(path) as aside:
            aside.write_text(text, encoding="utf-8", errors="backslashreplace")
        return
    from airpath.plots.export import rendered

    with replaced_file(path) as aside:
        aside.write_bytes(rendered(figure, path.suffix[1:]))
