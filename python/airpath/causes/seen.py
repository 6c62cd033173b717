"""Causes that a transfer shows without a doubt: they are seen, not inferred."""

from __future__ import annotations

from collections.abc import Iterator

from airpath.causes.describe import MOST_OF_THE_TIME, closed_share, describe
from airpath.causes.features import Features
from airpath.causes.group import Group
from airpath.causes.suspect import Suspect


def seen(group: Group, features: Features) -> Iterator[Suspect]:
    """Sizes that do not pass, and a receiver that keeps its window closed."""
    if group.main.too_large is not None:
        # Segments that receive offload joined are larger than any that TCP sends.
        cause = "offload" if group.main.stream["larger_than_mss"] else "mtu"
        yield _suspect(cause, group, features, group.loss_share)
    elif (closed := closed_share(group)) >= MOST_OF_THE_TIME:
        yield _suspect("application-limited", group, features, closed)


def _suspect(cause: str, group: Group, features: Features, share: float) -> Suspect:
    words = describe(cause, group, features)
    flows = tuple(one.seen.flow["id"] for one in group.transfers)
    cost = max(share, 1 - group.busy)
    return Suspect(cause, cost, words.evidence, flows, words.frames, words.at_s, words.advice)
