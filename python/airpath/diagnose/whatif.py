"""Variants of a scenario on common seeds, each figure with its interval.

>>> answer = whatif("bufferbloat", [["path.down.0.queue_packets=20"]], seeds=2)
>>> [row["metric"] for row in answer["rows"]][:2]
['goodput_mbps', 'rtt_ms.p95']
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from airpath import scenario as scenarios
from airpath.base.later import Compared
from airpath.base.numbers import seeds_from, worker_count
from airpath.base.secrets import redacted
from airpath.diagnose.explain import Progress
from airpath.errors import InputError

if TYPE_CHECKING:
    from airpath.runs.document import Variants

SEEDS = 5
"""Default number of seeds for each variant."""
_MOST_SEEDS = 1000


def whatif(
    scenario: str | os.PathLike[str],
    variants: Sequence[scenarios.Sets],
    *,
    set: scenarios.Sets = None,  # noqa: A002 - as in run()
    seed: int | None = None,
    seeds: int = SEEDS,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Variants:
    """Run a scenario unchanged and with each variant's settings, all with the same seeds.

    ``variants`` has the settings of each, without secrets; the unchanged scenario comes first and
    has none. ``rows`` has one entry per figure: ``flow``, ``metric`` (as in ``--json``),
    ``more_is_better``, ``cells`` by variant (null: it has no such figure) with ``mean``, ``ci95``,
    ``values`` by seed, and ``change`` relative to the unchanged scenario (as a share) with
    ``change_ci95`` from paired seeds; and ``winner``, the index of the variant that is better than
    every other one by more than noise, or null.

    Raises ``InputError`` if there is no such scenario, or a variant has errors.
    """
    from airpath import _core

    if not variants:
        raise InputError("nothing to try: give at least one variant")
    if not 1 <= seeds <= _MOST_SEEDS:
        raise InputError(f"seeds is {seeds}, but must be from 1 to {_MOST_SEEDS}")
    threads = worker_count(workers)
    loaded = scenarios.load(scenario, set)
    used = seeds_from(loaded.seed if seed is None else seed, seeds)
    tried = [scenarios.set_list(variant) for variant in variants]
    try:
        rows = _core.compare(loaded, tried, used, threads, progress)
    except ValueError as error:
        raise InputError(str(error)) from None
    answer = {
        "scenario": loaded.name,
        "version": _core.__version__,
        "seeds": used,
        "variants": [[], *([redacted(text) for text in variant] for variant in tried)],
        "rows": rows,
    }
    return cast("Variants", Compared(answer))
