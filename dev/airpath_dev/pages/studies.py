"""Runs every study, as `airpath reproduce` does, and writes the tables of docs/guides/studies.md.

Each study's section has a table between marks, which this command replaces. The counts of all
studies are under the first heading, and are replaced only if all studies ran.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from airpath.study.definition import load_study, study_names
from airpath.study.judge import Finding
from airpath.study.reproduce import Outcome, counts, obtained_text, reproduce
from airpath.study.verdicts import EXPLAINED_BY
from airpath_dev import ROOT
from airpath_dev.harness import say, table

GUIDE = ROOT / "docs/guides/studies.md"


def main(
    studies: Annotated[list[str] | None, typer.Argument(metavar="[STUDY]...")] = None,
    guide: Path = GUIDE,
) -> None:
    """Run every study, or those named, and write the tables of the guide; three minutes."""
    names = studies or study_names()
    text = guide.read_text(encoding="utf-8")
    everything: list[Outcome] = []
    for name in names:
        say(name)
        outcomes = reproduce(load_study(name))
        everything += outcomes
        text = replaced(text, mark(name), content(outcomes))
    if names == study_names():
        text = replaced(text, "all studies", f"{counts(everything).text()}.")
    guide.write_text(text, encoding="utf-8")


def content(outcomes: Sequence[Outcome]) -> str:
    """Return what the guide has of a study: table, reasons, and counts."""
    blocks = [study_table(outcomes), reasons(outcomes), f"{counts(outcomes).text()}."]
    return "\n\n".join(filter(None, blocks))


def reasons(outcomes: Sequence[Outcome]) -> str:
    """Return why figures do not agree, one point for each; empty if all do."""
    points = [
        f"- {finding.figure.id.partition('/')[2]}: {finding.reason_text}"
        for outcome in outcomes
        for finding in outcome.findings
        if finding.reason is not None
    ]
    head = "Why the others do not agree, and what the reason rests on:"
    return "\n".join([head, "", *points]) if points else ""


def mark(name: str) -> str:
    """Return the name in the mark before a study's table."""
    return f"table of {name}"


def replaced(text: str, marked: str, content: str) -> str:
    """Return the text with the content between the marks of that name replaced."""
    pattern = rf"(<!-- {re.escape(marked)}: generated -->\n).*?(<!-- end -->)"
    found = re.search(pattern, text, re.DOTALL)
    if found is None:
        raise SystemExit(f"studies: the guide has no marks for the {marked}")
    return f"{text[: found.start()]}{found[1]}{content}\n{found[2]}{text[found.end() :]}"


def study_table(outcomes: Sequence[Outcome]) -> str:
    """Return a table with a row for each figure; a figure with cells lists each cell's values."""
    rows = [
        (
            outcome.figure.id.partition("/")[2],
            outcome.figure.published_text(),
            ", ".join(_obtained(each) for each in outcome.findings),
            ", ".join(_verdict(each) for each in outcome.findings),
        )
        for outcome in outcomes
    ]
    return table("figure | published | obtained | verdict", rows)


def _obtained(finding: Finding) -> str:
    figure = finding.figure
    if figure.kind == "shape":
        return ""
    text = obtained_text(finding) or "none"
    if figure.against is None or finding.ci95 is None:
        return text
    low, high = finding.ci95
    return f"{text} ({figure.text(low)} to {figure.text(high)})"


def _verdict(finding: Finding) -> str:
    if finding.verdict == EXPLAINED_BY:
        return f"{finding.verdict} {finding.note.partition('. ')[0]}"
    return f"{finding.verdict}, seen" if finding.seen else finding.verdict
