"""``airpath whatif``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from airpath.cli.console import aligned, output, progress_bar
from airpath.cli.run import AsJson, Scenario, Sets, Workers

if TYPE_CHECKING:
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
    json: AsJson = False,
) -> None:
    """Compare variants of a scenario on common seeds.

    Prints one table: each figure without changes and with each variant, its change, and the 95 %
    confidence interval of the change over paired seeds. A star marks the best variant, if it is
    better than every other by more than noise.
    """
    from airpath.cli.plot import check_picture, write_picture
    from airpath.diagnose.whatif import whatif
    from airpath.runs import summary

    if chart is not None:
        check_picture(chart)
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

        write_picture(draw(answer, labels), chart, title=f"{scenario}: what if")


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
    return [
        *(f"({index}) {label}" for index, label in enumerate(labels) if index),
        "",
        *aligned(rows),
        "",
        f"Means over {plural(len(answer['seeds']), 'seed')}; in brackets the change and its 95 % "
        "confidence interval. *: better than every other by more than noise.",
    ]
