"""What holds a scenario back: causes are taken away one by one, and the scenario runs again.

>>> answer = explain("random-loss")
>>> answer["findings"][0]["cause"]
'random-loss'
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from airpath import scenario as scenarios
from airpath.errors import InputError

BUDGETS = ("quick", "full")
"""``quick`` tries at most 12 changes, ``full`` all that are known."""


def explain(
    name_or_path: str | os.PathLike[str],
    *,
    set: scenarios.Sets = None,  # noqa: A002 - as in run()
    seed: int | None = None,
    budget: str = "quick",
    workers: int | None = None,
    progress: Callable[[int], bool] | None = None,
) -> dict[str, Any]:
    """Explain a scenario file, or a shipped scenario by its name, with keys set on top.

    ``findings`` lists causes, the largest first, then what bounds the run: ``cause``, ``subject``,
    ``confidence`` (share of the paired seeds in which its removal helped), ``evidence``,
    ``advice`` with ``set`` (settings that were tried), ``gain`` and ``costs``. A gain has
    ``metric`` (as in ``--json``), ``flow``, ``before``, ``after``, ``ci95`` of ``after``, and
    ``seeds``. ``tried`` lists what was tried besides, or could not be; ``runs`` counts simulations.

    The answer depends on scenario, settings, first seed and budget, not on ``workers``.

    Raises ``InputError`` if there is no such scenario, it is faulty, or an argument is.
    """
    from airpath import _core

    if budget not in BUDGETS:
        raise InputError(f"budget is {budget!r}, but must be one of {', '.join(BUDGETS)}")
    if workers is not None and workers < 1:
        raise InputError(f"workers is {workers}, but must be at least 1")
    text, name, directory = scenarios.read(name_or_path)
    sets = scenarios.set_list(set)
    scenario = scenarios.parse(text, name, directory, sets)
    first = scenario.seed if seed is None else seed
    if not 0 <= first < 1 << 64:
        raise InputError(f"seed is {first}, but must be from 0 to 2^64 - 1")
    threads = workers or len(os.sched_getaffinity(0))
    return _core.explain(
        scenario, text, name, directory, sets, first, budget == "full", threads, progress
    )
