"""Figures of a campaign by name: ``flows.goodput_mbps``, ``flows.goodput_mbps@download``."""

from __future__ import annotations

import re
from typing import NamedTuple

from airpath.errors import InputError

NAMED = {"flows": "flow", "groups": "group", "pings": "flow", "links": "link", "runs": ""}
"""Tables that have figures, and the column that says whose a row is."""

_FIGURE = re.compile(r"(?:(\w+)\.)?(\w+)(?:@(.+))?")


class FigureName(NamedTuple):
    """A column of a table, of every flow or link, or of one."""

    table: str
    column: str
    of: str | None

    @property
    def owner(self) -> str:
        """The column that says whose a row is; empty in ``runs``."""
        return NAMED[self.table]

    def __str__(self) -> str:
        of = f"@{self.of}" if self.of is not None else ""
        return f"{self.table}.{self.column}{of}"


def parse_figure(text: str) -> FigureName:
    """Read ``TABLE.COLUMN@NAME``; without a table it is ``flows``. Raises ``InputError``."""
    found = _FIGURE.fullmatch(text)
    if found is None or (found[1] or "flows") not in NAMED:
        raise InputError(
            f"`{text}` is not a figure\n  allowed: TABLE.COLUMN or TABLE.COLUMN@NAME, with the "
            f"tables {', '.join(NAMED)}; for example flows.goodput_mbps@download"
        )
    return FigureName(found[1] or "flows", found[2], found[3])
