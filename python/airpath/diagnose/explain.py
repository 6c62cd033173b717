"""What limits a scenario: causes are removed one by one, and the scenario runs again.

>>> answer = explain("random-loss")
>>> answer["findings"][0]["cause"]
'random-loss'
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, cast, get_args

from airpath import scenario as scenarios
from airpath.base.choices import Budget, Explain
from airpath.base.later import Findings
from airpath.base.numbers import seeds_from, worker_count
from airpath.errors import InputError

if TYPE_CHECKING:
    from airpath import _core
    from airpath.documents import Explanation
    from airpath.runs.results import Run

BUDGETS: tuple[Budget, ...] = get_args(Budget)
Progress = Callable[[int], bool]
"""Called with the number of simulations that have ended; stops the rest by returning False."""


def explain(
    name_or_path: str | os.PathLike[str],
    *,
    set: scenarios.Sets = None,  # noqa: A002 - as in run()
    seed: int | None = None,
    budget: Budget = "quick",
    workers: int | None = None,
    progress: Progress | None = None,
) -> Explanation:
    """Explain a scenario file, or a shipped scenario by its name, with keys set on top.

    ``findings`` lists causes, the largest first, then what bounds the run: ``cause``, ``subject``,
    ``confidence`` (share of the paired seeds in which its removal helped), ``evidence``,
    ``advice`` with ``set`` (settings that were tried), ``gain`` and ``costs``. A gain has
    ``metric`` (as in ``--json``), ``flow``, ``before``, ``after``, ``ci95`` of ``after``, and
    ``seeds``. ``tried`` lists what else was tried, or could not be; ``runs`` counts simulations.
    ``breakdowns`` say where the time of each flow went, with the first seed.

    The answer depends on the scenario, settings, first seed and budget, not on ``workers``.

    Raises ``InputError`` if there is no such scenario, or it or an argument has errors.
    """
    if budget not in BUDGETS:
        raise InputError(f"budget is {budget!r}, but must be one of {', '.join(BUDGETS)}")
    scenario = scenarios.load(name_or_path, set)
    [first] = seeds_from(scenario.seed if seed is None else seed)
    answer = explain_loaded(scenario, first, 1, budget, workers, [], progress)
    return cast("Explanation", Findings(answer))


def of_run(run: Run) -> Explanation:
    """What an explained run's summary keeps of its explanation, as ``explain`` returns it."""
    said, about = run.summary, run.summary["explained"]
    if about is None:
        raise InputError("the run was not explained")
    kept = {"findings": said["findings"], "tried": said["tried"],
            "breakdowns": said.get("breakdowns", [])}  # fmt: skip
    counts = {"seeds": about["seeds"], "runs": about["runs"], "events": about["events"]}
    return cast("Explanation", Findings({**kept, **counts}))


def check(budget: Explain) -> None:
    """Raise ``InputError`` unless it is a budget, or "off"."""
    if budget not in ("off", *BUDGETS):
        raise InputError(f"explain is {budget!r}, but must be one of off, {', '.join(BUDGETS)}")


def add(
    run: Run,
    scenario: _core.Scenario,
    budget: Explain,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
) -> None:
    """Explain a run of this scenario, and keep the answer in its summary, also where it is stored.

    With several seeds the answer is about all of them, up to ten. If this is stopped, the run stays
    unchanged.
    """
    check(budget)
    if budget == "off":
        return
    seeds = run.seeds
    consecutive = seeds == list(range(seeds[0], seeds[0] + len(seeds)))
    known = [run.figures[seed] for seed in seeds if seed in run.figures] if consecutive else []
    answer = explain_loaded(scenario, seeds[0], len(seeds), budget, workers, known, progress)
    keep(run, answer, budget, None)


def keep(run: Run, answer: Explanation, budget: Budget, because: str | None) -> None:
    """Put an answer into a run's summary; ``because`` says why nothing could be tried."""
    run.summary["findings"] = answer["findings"]
    run.summary["tried"] = answer["tried"]
    run.summary["breakdowns"] = answer["breakdowns"]
    run.summary["explained"] = {
        "budget": budget,
        "seeds": answer["seeds"],
        "runs": answer["runs"],
        "events": answer["events"],
        "because": because,
    }
    _store(run)


def _store(run: Run) -> None:
    if run.directory is not None:
        from airpath.runs.results import RunDirectory

        RunDirectory(run.directory).write_summary(run.summary)


def copy(explained_run: Run, to: Run) -> None:
    """Copy the explanation of one run into the summary of another."""
    said = explained_run.summary
    explained = said["explained"]
    if explained is None:
        return
    to.summary["findings"], to.summary["tried"] = said["findings"], said["tried"]
    to.summary["breakdowns"] = said.get("breakdowns", [])
    to.summary["explained"] = explained
    _store(to)


def explain_loaded(
    scenario: _core.Scenario,
    first: int,
    repeat: int,
    budget: Budget,
    workers: int | None,
    known: list[_core.RunFigures],
    progress: Progress | None,
) -> Explanation:
    """``_core.explain`` of a loaded scenario; ``known`` are the figures of its first seeds."""
    from airpath import _core

    threads = worker_count(workers)
    return _core.explain(scenario, first, repeat, budget, threads, known, progress)
