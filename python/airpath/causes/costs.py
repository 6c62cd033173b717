"""The cost of a cause, and other figures that several rules on transfers share."""

from __future__ import annotations

from airpath.base.text import short
from airpath.causes.group import Group
from airpath.causes.traits import Transfer

FULL = 0.9
LEAST_COST = 0.12
LEAST_LOSS = 0.0003
LEAST_RANK_OF_A_QUEUE = 0.65
MOST_FRAMES = 5


def idle_cost(group: Group) -> float:
    """Share of the path's capacity that was not used while there was something to send."""
    return max(0.0, 1 - group.busy / max(0.05, 1 - group.silent_share - group.idle_share))


def is_free(transfer: Transfer) -> bool:
    """Packets hardly wait: the path has room. A radio's grants add a little delay."""
    return transfer.wait_ms[1] < 0.4 * transfer.base_ms + 10


def flow_numbers(group: Group) -> tuple[int, ...]:
    """The numbers of the flows of the transfers."""
    return tuple(one.seen.flow["id"] for one in group.transfers)


def kilobytes(count: float | None) -> str:
    """As text."""
    return "?" if count is None else f"{short(count / 1000)} kB"
