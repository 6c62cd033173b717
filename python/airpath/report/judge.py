"""The page about a judgement of congestion controls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.report.render import write_page

if TYPE_CHECKING:
    from airpath.judge.document import JudgeDocument


def write_judge_report(document: JudgeDocument, rows: Sequence[Sequence[str]], path: Path) -> None:
    """Write the page; an existing file is replaced only by a complete one."""
    from airpath.judge import definition

    write_page(
        path,
        "judge.html.j2",
        title="Congestion controls judged",
        document=document,
        rows=rows,
        scenarios={
            case.path: definition.scenario(case.path, pair=bool(case.peers))
            for case in definition.CASES
        },
    )
