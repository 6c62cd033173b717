"""The result of a study's joint search: ``search.json`` beside it, from `make study-search`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TypedDict

from airpath.study.definition import Study

FILE = "search.json"


class RowDocument(TypedDict):
    """A joint choice in JSON."""

    inside: int
    choice: str
    cells: tuple[tuple[str, bool], ...]


class JointDocument(TypedDict):
    """Content of ``search.json``."""

    said: str
    columns: tuple[str, ...]
    rows: list[RowDocument]


@dataclass(frozen=True)
class Row:
    """A joint choice: how many figures are inside, and each one's value and whether it is."""

    inside: int
    choice: str
    cells: tuple[tuple[str, bool], ...]


@dataclass(frozen=True)
class Joint:
    """The best joint choices of a search, the study's own first."""

    said: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    def as_dict(self) -> JointDocument:
        """Return the content of ``search.json``."""
        return {
            "said": self.said,
            "columns": self.columns,
            "rows": [
                {"inside": row.inside, "choice": row.choice, "cells": row.cells}
                for row in self.rows
            ],
        }


def write_joint(study: Study, joint: Joint) -> None:
    """Write the file; one that is there is replaced only by a complete one."""
    from airpath.runs.directories import replaced_file

    # A line for each row, for who compares two of them.
    whole = joint.as_dict()
    rows = ",\n".join(map(json.dumps, whole["rows"]))
    head = json.dumps({"said": whole["said"], "columns": whole["columns"]})
    text = f'{head[:-1]}, "rows": [\n{rows}\n]}}\n'
    with replaced_file(study.directory / FILE) as aside:
        aside.write_text(text, encoding="utf-8")


def read_joint(study: Study) -> Joint | None:
    """What was found; None if nothing was searched."""
    path = study.directory / FILE
    if not path.is_file():
        return None
    data = json.loads(path.read_text(encoding="utf-8"))
    rows = (
        Row(row["inside"], row["choice"], tuple((text, bool(isin)) for text, isin in row["cells"]))
        for row in data["rows"]
    )
    return Joint(data["said"], tuple(data["columns"]), tuple(rows))
