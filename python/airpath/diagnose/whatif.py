"""Variants of a scenario on common seeds, each figure with its interval.

>>> answer = whatif("bufferbloat", [["path.down.0.queue_packets=20"]], seeds=2)
>>> [row["metric"] for row in answer["rows"]][:2]
['goodput_mbps', 'rtt_ms.p95']
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from airpath import scenario as scenarios
from airpath.base.later import Compared
from airpath.base.numbers import seeds_from, worker_count
from airpath.base.secrets import redacted
from airpath.diagnose.explain import Progress
from airpath.errors import InputError

if TYPE_CHECKING:
    from airpath import _core
    from airpath.runs.document import Variants

SEEDS = 5
"""Default number of seeds for each variant."""
_MOST_SEEDS = 1000


@dataclass(frozen=True)
class Tried:
    """A scenario, the settings of each variant, and the scenario with them."""

    base: _core.Scenario
    sets: list[list[str]]
    variants: list[_core.Scenario]

    @classmethod
    def load(
        cls,
        scenario: str | os.PathLike[str],
        variants: Sequence[scenarios.Sets],
        *,
        set: scenarios.Sets = None,  # noqa: A002 - as in run()
        options: tuple[str, str] = ("set", "variants"),
    ) -> Tried:
        """Load them; messages name the ``options`` that gave the settings.

        Raises ``InputError`` if there is no such scenario, or it or a variant has errors.
        """
        if not variants:
            raise InputError("nothing to try: give at least one variant")
        base = scenarios.load(scenario, set, option=options[0])
        sets = [scenarios.set_list(variant, options[1]) for variant in variants]
        return cls(base, sets, [scenarios.with_sets(base, one, options[1]) for one in sets])

    def named(self) -> list[list[str]]:
        """Return the settings of the scenario, which has none, and of the variants: no secrets."""
        return [[], *([redacted(text) for text in one] for one in self.sets)]


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
    tried = Tried.load(scenario, variants, set=set)
    return simulated(tried, seed=seed, seeds=seeds, workers=workers, progress=progress)


def simulated(
    tried: Tried,
    *,
    seed: int | None = None,
    seeds: int = SEEDS,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Variants:
    """Do what ``whatif`` does, with variants that were loaded."""
    from airpath import _core

    if not 1 <= seeds <= _MOST_SEEDS:
        raise InputError(f"seeds is {seeds}, but must be from 1 to {_MOST_SEEDS}")
    threads = worker_count(workers)
    used = seeds_from(tried.base.seed if seed is None else seed, seeds)
    answer = {
        "scenario": tried.base.name,
        "version": _core.__version__,
        "seeds": used,
        "variants": tried.named(),
        "rows": _core.compare(tried.base, tried.variants, used, threads, progress),
    }
    return cast("Variants", Compared(answer))
