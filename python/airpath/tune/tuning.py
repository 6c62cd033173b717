"""Derives settings for a result, judges each and what they do together.

>>> answer = tune("small-window", seeds=2)
>>> [one["name"].partition(" of ")[0] for one in answer["advised"]]
['receive and send buffers']
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airpath.drivers.options import MOST_SEEDS, Progress
from airpath.errors import InputError
from airpath.tune.candidates import Candidate, Candidates
from airpath.tune.judge import HARM, Effect, Judge, Verdict
from airpath.tune.prepared import prepared
from airpath.tune.sentences import effect_text

if TYPE_CHECKING:
    from airpath import scenario as scenarios
    from airpath.tune.document import Advised, Changed, Line, Together, Tuning
    from airpath.tune.prepared import Prepared
    from airpath.tune.settings import Direction, End, Setting

SEEDS = 5
"""Default number of paired seeds."""
_ALIKE = 0.05
"""Candidates within 5 % of each other are alike: fewer changes take precedence."""

_TWICE = math.log(2)

Judged = tuple[Candidate, Verdict]


def tune(
    what: str | None = None,
    *,
    set: scenarios.Sets = None,  # noqa: A002 - as in run()
    end: End | None = None,
    seeds: int = SEEDS,
    workers: int | None = None,
    progress: Progress = lambda _: None,
) -> Tuning:
    """Find settings for the hosts of a run or a scenario, each with its gain and its harm.

    ``what`` is a run directory, a scenario file or a shipped scenario; None is the newest run in
    ``runs``. With ``end``, only settings of that host are tried. Flows have the TCP of the running
    kernel, because that is what the settings would be for.

    Raises ``InputError`` if there is nothing of that name, or it has no TCP flow.
    """
    with prepared(what, set) as ready:
        return tuned(ready, end=end, seeds=seeds, workers=workers, progress=progress).document


@dataclass(frozen=True)
class Tuned:
    """What was found for a prepared scenario."""

    document: Tuning
    settings: Sequence[Setting]
    """The settings that are worth it together."""
    directions: Sequence[Direction]
    """Directions of the data."""


def tuned(
    ready: Prepared,
    *,
    end: End | None = None,
    seeds: int = SEEDS,
    workers: int | None = None,
    progress: Progress = lambda _: None,
) -> Tuned:
    """Find settings for a prepared scenario."""
    from airpath import _core

    if not 2 <= seeds <= MOST_SEEDS:
        raise InputError(
            f"seeds is {seeds}, but must be from 2 to {MOST_SEEDS}: pairs are compared"
        )
    judge = Judge(ready, seeds, workers)
    candidates = Candidates(ready, judge)
    wanted = [one for one in candidates.all() if end is None or one.ends == {end}]
    judge.run([(), *(one.sets for one in wanted)], progress)
    judged = [(one, judge.verdict(one.sets)) for one in wanted]
    advised = [_advised(*one) for one in _best_of_kinds(judged)]
    chosen, together = _together(judge, wanted, judged, advised)
    names = {one["name"] for one in advised}
    document: Tuning = {
        "source": ready.source,
        "version": _core.__version__,
        "kernel": ready.comparable.kernel,
        "profile": ready.comparable.profile,
        "seeds": judge.seeds,
        "missing": list(ready.missing),
        "not_as_kernel": [f"{flow}: {why}" for flow, why in ready.comparable.reasons.items()],
        "advised": advised,
        "together": together,
        "rejected": [
            {"kind": one[0].kind, "name": one[0].name, "because": _because(one[1])}
            for one in judged
            if one[0].name not in names
        ],
    }
    settings = [setting for one in chosen for setting in one.settings]
    return Tuned(document, settings, candidates.directions)


def _best_of_kinds(judged: Sequence[Judged]) -> list[Judged]:
    best: dict[str, Judged] = {}
    for one in sorted((one for one in judged if one[1].is_good), key=_rank):
        best.setdefault(one[0].kind, one)
    return list(best.values())


def _rank(one: Judged) -> tuple[bool, float, int]:
    """Most valuable first; of those that are alike the one with fewest changes.

    Settings that limit connections over other paths come last: what those lose is not simulated.
    Settings that cost no throughput take precedence over a trade that gains less than twice as much
    (docs/adr/0110).
    """
    candidate, verdict = one
    value = verdict.net - (_TWICE if verdict.is_trade else 0.0)
    return candidate.limits_others, -round(value / _ALIKE), len(candidate.settings)


def _together(
    judge: Judge,
    wanted: Sequence[Candidate],
    judged: Sequence[Judged],
    advised: list[Advised],
) -> tuple[list[Candidate], Together | None]:
    """Add what is worth most beside the settings so far, as long as anything is.

    What is worth it only beside others is added to ``advised``.
    """
    best = _best_of_kinds(judged)
    if not best:
        return [], None
    chosen = [best[0][0]]
    while True:
        sets = _sets(chosen)
        others = [one for one in wanted if not any(one.excludes(each) for each in chosen)]
        judge.run([(*sets, *one.sets) for one in others])
        beside = [(one, judge.verdict((*sets, *one.sets), sets)) for one in others]
        found = _best_of_kinds([one for one in beside if _is_worth_adding(*one)])
        if not found:
            break
        if found[0][0].name not in {one["name"] for one in advised}:
            names = [one.name for one in chosen]
            advised.append({**_advised(*found[0]), "beside": names})
        chosen.append(found[0][0])
    joint = judge.verdict(_sets(chosen))
    if joint.net < (1 - _ALIKE) * best[0][1].net:
        # Each was worth it beside the others, but what all of them cost is too much.
        advised[:] = [one for one in advised if not one["beside"]]
        chosen, joint = [best[0][0]], best[0][1]
    names = [one.name for one in chosen]
    return chosen, {
        "names": names,
        "set": list(_sets(chosen)),
        "lines": [line for one in chosen for line in _lines(one)],
        "gains": [_changed(one) for one in joint.gains],
        "harms": [_changed(one) for one in joint.harms],
        "left_out": [one["name"] for one in advised if one["name"] not in names],
    }


def _is_worth_adding(candidate: Candidate, verdict: Verdict) -> bool:
    """Beside others, what limits connections over other paths must gain twice as much again."""
    return not candidate.limits_others or verdict.net >= _TWICE


def _sets(chosen: Sequence[Candidate]) -> tuple[str, ...]:
    return tuple(one for each in chosen for one in each.sets)


def _advised(candidate: Candidate, verdict: Verdict) -> Advised:
    return {
        "name": candidate.name,
        "beside": [],
        "set": list(candidate.sets),
        "lines": _lines(candidate),
        "needs": list(candidate.needs),
        "gains": [_changed(one) for one in verdict.gains],
        "harms": [_changed(one) for one in verdict.harms],
    }


def _lines(candidate: Candidate) -> list[Line]:
    return [{"end": one.end, "kind": one.kind, "text": one.lines()} for one in candidate.settings]


def _changed(effect: Effect) -> Changed:
    return {
        "flow": effect.flow,
        "metric": effect.metric,
        "before": effect.before,
        "after": effect.after,
        "change": effect.change,
        "ci95": list(effect.interval),
    }


def _because(verdict: Verdict) -> str:
    """Why settings are not advised."""
    if verdict.is_good:
        return "less than another setting of its kind"
    worst = (verdict.lost or verdict.harms)[:1]
    harm = f": {effect_text(_changed(worst[0]))}" if worst else ""
    if verdict.gains:
        return f"harms more than it gains{harm}"
    better = [one for one in verdict.effects if one.improvement > 0 and one.worth > 0]
    most = max(better, key=lambda one: one.worth * one.improvement, default=None)
    if most is None or abs(most.change) < HARM:
        return f"only harms{harm}" if worst else "changes nothing"
    return f"no gain of 10 % that is sure: {effect_text(_changed(most))}"
