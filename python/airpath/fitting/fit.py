"""A capture becomes a scenario: estimates first, then experiments, then what would help.

>>> import airpath
>>> _ = airpath.run("wire", {"run.duration_s": 3}, out="run", capture=True)
>>> fitted = fit("run/capture.pcapng")
>>> fitted.score.total > 0.9
True
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from airpath.base.numbers import worker_count
from airpath.base.text import percent, short
from airpath.errors import InputError
from airpath.fitting import candidate as candidates
from airpath.fitting import endpoints, path
from airpath.fitting.candidate import Candidate
from airpath.fitting.observed import Observed, observe
from airpath.fitting.path import Unknown
from airpath.fitting.rerun import Score, compare, figures, mean, rerun
from airpath.fitting.series import MS
from airpath.runs.directories import replaced_file

if TYPE_CHECKING:
    from airpath.base.choices import Budget, Explain
    from airpath.documents import Explanation

TRACE = "capacity.trace"
Progress = Callable[[float], None]
"""Called with the share of the work that is done."""
_SEEDS, _ROUNDS, _SEEDS_AT_ONCE, _MOST_SEEDS = 3, 2, 24, 96
"""Bound: of runs of a candidate, of corrections, and of seeds of the best one."""
_SHARES = (0.05, 0.275, 0.725, 0.95)
"""Where base RTTs that are tried lie between the least and the most."""
_CLEAR = 0.02
"""A difference of the score by which congestion controls can be told apart."""
_CONGESTED = 0.5
"""Bound: a sender that only its cwnd holds back keeps the path full for most of the time."""
_LEAST_MBPS = 1e-6
"""Bound: the lowest `rate_mbps` of a scenario."""
_MOST_S = 300.0
"""The most seconds of a flow that are re-run."""
_BASE_KNOWN = 0.02
"""Share of a base RTT that is known: half of its range."""
_RUNS_SHARE = 0.8
"""Of the work: what is left are seeds."""
_CORRECTED = 0.1
"""Share by which losses of a re-run may differ; with twice as many it is another path."""
_ALIKE, _ALIKE_GOODPUT = 0.8, 0.9
"""A scenario that is less like the capture cannot tell what would help that network."""


Parameter = TypedDict(
    "Parameter", {"name": str, "value": float | str | None, "unit": str, "from": str}
)
"""A figure of a fitted scenario, and what it was estimated from."""


class Attempt(TypedDict):
    """A candidate that was run, and its score."""

    congestion: str
    profile: str
    score: float


@dataclass
class Fit:
    """A scenario that behaves as a capture shows.

    ``scenario`` is its TOML, ``trace`` the capacity by time that it refers to (None: constant).
    ``parameters`` has each figure with its unit and its basis, ``not_identifiable`` what the
    capture does not reveal. ``score`` compares a re-run with the capture. ``explanation`` has the
    causes that were removed, and the effect; it is None if that was not requested, or if the
    re-run differs too much from the capture, in which case ``unexplained`` says so.
    """

    file: str
    flow: int
    place: str
    scenario: str
    trace: str | None
    parameters: list[Parameter]
    not_identifiable: list[Unknown]
    score: Score
    tried: list[Attempt]
    explanation: Explanation | None = field(default=None)
    unexplained: str | None = field(default=None)

    def document(self) -> dict[str, object]:
        """For JSON."""
        return {
            "file": self.file,
            "flow": self.flow,
            "captured_at": self.place,
            "parameters": self.parameters,
            "not_identifiable": [one.document() for one in self.not_identifiable],
            "score": self.score.document(),
            "tried": self.tried,
            "scenario": self.scenario,
            "trace": self.trace,
            "explanation": self.explanation,
            "unexplained": self.unexplained,
        }

    def write(self, file: Path) -> list[Path]:
        """Write the scenario, and its trace beside it; return the names of the files."""
        written = [file]
        text = self.scenario
        if self.trace is not None:
            beside = trace_name(file)
            text = text.replace(f'"{TRACE}"', f'"{beside.name}"')
            _write(beside, self.trace)
            written.append(beside)
        _write(file, text)
        return written


def _write(file: Path, text: str) -> None:
    """Write or replace a file; a link of that name is replaced as well, not followed."""
    with replaced_file(file) as aside:
        aside.write_text(text, encoding="utf-8")


def trace_name(file: Path) -> Path:
    """Where the capacity by time of a scenario file stands."""
    return file.with_name(f"{file.stem}.{TRACE}")


def fit(
    file: str | os.PathLike[str],
    *,
    flow: int | None = None,
    explain: Explain = "off",
    workers: int | None = None,
    progress: Progress | None = None,
) -> Fit:
    """Fit a scenario to the TCP flow of a capture with that number, or the one with the most data.

    ``explain`` is "off", "quick" or "full": causes are removed from the fitted scenario, and the
    effect is the gain to expect in the captured network, as far as the score supports that.
    Raises ``InputError`` if there is no capture, or no flow with enough data.
    """
    from airpath.diagnose import explain as explaining

    explaining.check(explain)
    threads = worker_count(workers)
    told = progress or (lambda _: None)
    seen = observe(os.fspath(file), flow)
    first = _candidate(seen)
    captured = figures(seen.stream)
    with tempfile.TemporaryDirectory(prefix="airpath-fit-") as place:
        if first.trace is not None:
            candidates.write_trace(Path(place) / TRACE, first.path, first.runs_s, seen.sent[0] / MS)

        def attempt(one: Candidate, seeds: list[int]) -> list[dict[str, float | None]]:
            text = candidates.write(one, "fitted", [])
            return rerun(text, place, seen, one.direction, seeds, threads)

        search = _Search(attempt, captured, told)
        best = search.best(first)
        trace = (Path(place) / TRACE).read_text() if first.trace is not None else None
        fitted = _finished(seen, best, search, trace)
        if explain != "off":
            fitted.unexplained = _unlike(fitted.score)
        if explain != "off" and fitted.unexplained is None:
            fitted.explanation = _explained(fitted.scenario, place, explain, threads)
    told(1.0)
    return fitted


def _candidate(seen: Observed) -> Candidate:
    known = path.estimate(seen)
    if known.capacity_mbps is None and known.at_least_mbps < _LEAST_MBPS:
        raise InputError(
            f"{seen.file}: flow {seen.flow['id']} was too slow to show the rate of its path: "
            "something else limited it (`airpath diagnose` says what)"
        )
    ends = endpoints.estimate(seen, known.base_rtt_ms)
    if ends.duration_s > _MOST_S:
        ends = replace(ends, duration_s=_MOST_S, closed=False)
    # Servers have the lower port, whoever opens the connection.
    ports = {"client": seen.flow["client_port"], "server": seen.flow["server_port"]}
    direction = "down" if ports[seen.sender] == min(ports.values()) else "up"
    trace = TRACE if known.rates else None
    return Candidate(known, ends, direction, seen.opened_by_sender, trace=trace)


@dataclass(frozen=True)
class _Run:
    """A candidate and its score."""

    candidate: Candidate
    score: Score
    means: dict[str, float | None]


class _Search:
    """Try congestion controls, then profiles, small corrections of the path, and seeds."""

    def __init__(
        self,
        attempt: Callable[[Candidate, list[int]], list[dict[str, float | None]]],
        captured: dict[str, float | None],
        told: Progress,
    ) -> None:
        self.attempt, self.captured, self.told = attempt, captured, told
        self.runs: list[_Run] = []
        self.of_ends: list[_Run] = []
        """Those that differ in congestion control, profile and jitter only."""
        self.total = 1

    def add(self, one: Candidate) -> None:
        seeds = list(range(1, 1 + (_SEEDS if one.is_random else 1)))
        means = mean(self.attempt(one, seeds))
        self.runs.append(_Run(one, compare(self.captured, means), means))
        self.told(min(_RUNS_SHARE, len(self.runs) / self.total))

    def best(self, first: Candidate) -> _Run:
        ends = len(candidates.CONTROLS) * (1 + len(candidates.PROFILES))
        self.total = ends * (2 if first.path.jitter_ms else 1) + len(_SHARES) + _ROUNDS
        for control in candidates.CONTROLS:
            self.add(replace(first, congestion=control))
        # Controls that are alike with one profile need not be so with another.
        for control in self.near():
            for profile in candidates.PROFILES:
                self.add(replace(first, congestion=control, profile=profile))
        if first.path.jitter_ms:
            # What waits for a delayed acknowledgement is like jitter.
            steady = replace(first, path=replace(first.path, jitter_ms=0.0))
            for control in candidates.CONTROLS:
                for profile in (candidates.PROFILE, *candidates.PROFILES):
                    self.add(replace(steady, congestion=control, profile=profile))
        self.of_ends = list(self.runs)
        middle = self.highest().candidate
        least, most = middle.path.base_rtt_within_ms
        for share in _SHARES if least < most else ():
            moved = least + share * (most - least)
            self.add(replace(middle, path=replace(middle.path, base_rtt_ms=moved)))
        for _ in range(_ROUNDS):
            corrected = _corrected(self.highest())
            if corrected is None:
                break
            self.add(corrected)
        return self.seeded(self.highest())

    def seeded(self, run: _Run) -> _Run:
        """The candidate with the seed whose losses and delays are closest to the observed ones."""
        if not run.candidate.is_random:
            return run
        again: list[dict[str, float | None]] = []
        at = 0
        scores: list[Score] = []
        # Where few were lost it matters when: the first in slow start or not.
        while len(again) < _MOST_SEEDS:
            seeds = list(range(len(again) + 1, len(again) + 1 + _SEEDS_AT_ONCE))
            again += self.attempt(run.candidate, seeds)
            scores = [compare(self.captured, one) for one in again]
            at = max(range(len(scores)), key=lambda index: scores[index].total)
            if (scores[at].figures["goodput_mbps"]["agreement"] or 0.0) >= _ALIKE_GOODPUT:
                break
        score = replace(scores[at], mean=compare(self.captured, mean(again)).total)
        return _Run(replace(run.candidate, seed=at + 1), score, again[at])

    def highest(self) -> _Run:
        return max(self.runs, key=lambda run: run.score.total)

    def near(self) -> list[str]:
        """Congestion controls that do about as well as the best, each with its best profile."""
        most: dict[str, float] = {}
        for run in self.of_ends or self.runs:
            name = run.candidate.congestion
            most[name] = max(most.get(name, 0.0), run.score.total)
        return [name for name, value in most.items() if max(most.values()) - value < _CLEAR]


def _corrected(run: _Run) -> Candidate | None:
    """A random loss that is smaller or larger in the re-run than in the capture."""
    one = run.candidate
    captured, seen = (run.score.figures["retransmitted"]["capture"], run.means["retransmitted"])
    if not one.path.loss or not captured or not seen or one.path.overflowed:
        return None
    factor = captured / seen
    return one.scaled(loss=factor) if abs(factor - 1) > _CORRECTED and 0.5 < factor < 2 else None


def _finished(
    seen: Observed,
    best: _Run,
    search: _Search,
    trace: str | None,
) -> Fit:
    one, score = best.candidate, best.score
    unknown = [*one.path.unknown, *one.ends.unknown]
    because = _not_identified(one, search.near())
    if because is not None:
        because += f"; the scenario assumes {one.congestion}"
        would_tell = "a longer transfer with losses, or ss -ti at the sender"
        unknown.append(Unknown("congestion control", because, would_tell))
    heading = [
        f"Fitted to flow {seen.flow['id']} of {Path(seen.file).name}, captured next to the "
        f"{seen.place}." if seen.place != "between" else
        f"Fitted to flow {seen.flow['id']} of {Path(seen.file).name}, captured between the ends.",
        f"A re-run has a score of {score.total:.2f} (1: identical): "
        + ", ".join(
            f"{name} {_shown(told['capture'])} and {_shown(told['rerun'])}"
            for name, told in score.figures.items()
        )
        + ".",
        *(f"Not identifiable: {one.what}, because {one.because}." for one in unknown),
    ]  # fmt: skip
    title = f"Fitted to {Path(seen.file).name}"
    tried: list[Attempt] = [
        {
            "congestion": run.candidate.congestion,
            "profile": run.candidate.profile,
            "score": run.score.total,
        }
        for run in search.runs
    ]
    return Fit(
        file=seen.file,
        flow=seen.flow["id"],
        place=seen.place,
        scenario=candidates.write(one, title, heading),
        trace=trace,
        parameters=_parameters(one, is_control_told=because is None),
        not_identifiable=unknown,
        score=score,
        tried=tried,
    )


def _not_identified(one: Candidate, near: list[str]) -> str | None:
    """Why the capture cannot tell the congestion control; ``near`` are those that do best."""
    full = one.path.busy_s / one.ends.duration_s
    if not one.path.lost and full < _CONGESTED:
        held = (
            "a send buffer or the application may have limited the sender"
            if one.ends.window_bytes is None
            else "the receive window limited the sender"
        )
        return (
            f"nothing was lost and the path was full for only {percent(full)} of the time, so "
            f"no congestion control had to act ({held})"
        )
    return f"{', '.join(near)} do equally well" if len(near) > 1 else None


def _unlike(score: Score) -> str | None:
    """Why a re-run differs too much from the capture for its causes to apply to the network."""
    goodput = score.figures["goodput_mbps"]
    if score.total >= _ALIKE and (goodput["agreement"] or 0.0) >= _ALIKE_GOODPUT:
        return None
    return (
        f"the scenario differs too much from the capture (score {score.total:.3f}; goodput "
        f"{_shown(goodput['capture'])} Mb/s in the capture, {_shown(goodput['rerun'])} Mb/s in the "
        f"re-run): advice needs a score of {_ALIKE} and a goodput within {1 - _ALIKE_GOODPUT:.0%}"
    )


def _shown(value: float | None) -> str:
    return "none" if value is None else f"{value:.4g}"


def _parameters(one: Candidate, *, is_control_told: bool) -> list[Parameter]:
    known, ends = one.path, one.ends
    alike = "the closest re-run"
    rows: list[tuple[str, float | str | None, str, str]] = [
        ("base_rtt", *_base_rtt(known)),
        ("capacity", known.capacity_mbps, "Mb/s", f"{known.busy_s:.1f} s of a busy bottleneck"),
        ("queue", *_queue(known)),
        (
            "loss",
            known.loss,
            "share",
            f"{known.lost - known.overflowed} losses without a full queue",
        ),
        ("jitter", known.jitter_ms, "ms", "waits outside the queue"),
        ("ack_batches", known.batch_ms, "ms", "intervals between batches"),
        ("initial_window", ends.initial_window, "segments", "the first flight"),
        ("receive_window", ends.window_bytes, "bytes", "the window that limited the sender"),
        (
            "pauses",
            len(ends.writes) - 1 if ends.writes else None,
            "times",
            "new data that was sent without waiting",
        ),
        ("mss", ends.mss_bytes, "bytes", "the usual segment size"),
        (
            "congestion",
            one.congestion,
            "",
            alike if is_control_told else "an assumption: the capture cannot tell",
        ),
        ("profile", one.profile, "", alike),
    ]
    return [
        {"name": name, "value": value, "unit": unit, "from": source}
        for name, value, unit, source in rows
    ]


def _base_rtt(known: path.Path) -> tuple[float | None, str, str]:
    """The middle of its range, if that is narrow; the scenario has the closest value."""
    least, most = known.base_rtt_within_ms
    if most - least > 2 * _BASE_KNOWN * known.base_rtt_ms:
        return (
            None,
            "ms",
            f"from {short(least)} to {short(most)} ms: packets arrive only in batches",
        )
    return (least + most) / 2, "ms", "the smallest round trip less serialisation"


def _queue(known: path.Path) -> tuple[float | None, str, str]:
    if known.queue_is_rough:
        return (
            None,
            "bytes",
            f"about {short(known.queue_bytes or 0.0)}: packets arrive only in batches",
        )
    return known.queue_bytes, "bytes", f"{known.overflowed} losses behind the longest waits"


def _explained(text: str, directory: str, budget: Budget, threads: int) -> Explanation:
    from airpath import scenario as scenarios
    from airpath.diagnose.explain import explain_loaded

    loaded = scenarios.parse(text, "fitted.toml", directory)
    return explain_loaded(loaded, loaded.seed, 1, budget, threads, [], None)
