"""Figures of a campaign by name: ``flows.goodput_mbps``, ``flows.goodput_mbps@download``."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, TypeAlias

from airpath.campaign.checked import did_you_mean
from airpath.errors import InputError

Better: TypeAlias = Literal["higher", "lower"]

NAMED = {"flows": "flow", "groups": "group", "pings": "flow", "links": "link", "runs": ""}
"""Tables that have figures, and the column that says whose a row is."""

_FIGURE = re.compile(r"(?:(\w+)\.)?(\w+)(?:@(.+))?")

_HIGHER = ("goodput", "steady", "throughput", "written", "jain_index", "utilisation", "power")
_LOWER = (
    "rtt", "delay", "queue_delay", "jitter", "completed", "converged_after", "packets_lost",
    "retransmitted", "rto_count", "dropped", "self_inflicted_delay",
)  # fmt: skip
"""How the names of figures start that are the better the higher, or the lower, they are."""


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


def unknown_column(figure: FigureName, columns: list[str]) -> InputError:
    """The error for a figure that its table does not have; ``columns`` are those that it has."""
    question = did_you_mean(figure.column, columns)
    hint = f"; {question}" if question else ""
    return InputError(
        f"table {figure.table} has no column `{figure.column}`{hint}\n  available: "
        f"{', '.join(columns)}"
    )


def better(figure: str) -> Better | None:
    """Whether a higher or a lower value of a figure is better; None where that depends."""
    column = parse_figure(figure).column
    if column.startswith(_HIGHER):
        return "higher"
    return "lower" if column.startswith(_LOWER) else None


def parse_figure(text: str) -> FigureName:
    """Read ``TABLE.COLUMN@NAME``; without a table it is ``flows``. Raises ``InputError``."""
    found = _FIGURE.fullmatch(text)
    if found is None or (found[1] or "flows") not in NAMED:
        raise InputError(
            f"`{text}` is not a figure\n  allowed: TABLE.COLUMN or TABLE.COLUMN@NAME, with the "
            f"tables {', '.join(NAMED)}; for example flows.goodput_mbps@download"
        )
    return FigureName(found[1] or "flows", found[2], found[3])
