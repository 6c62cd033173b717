"""Draws a case: a path with one cause planted, or a healthy one, and what the cause costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from airpath.causes.suspect import alike

from .bases import ALL, base, simulated
from .draft import Draft, Pick
from .plants import PLANTS, ping

LEAST_GAIN = 0.14
"""A cause counts if taking it away improves a figure by this, as a logarithm, on each seed."""
SEVERE_GAIN = 0.41
"""By a half: as in `make findings`."""
_SEEDS = (1, 2, 3)
_TRIES = 40


@dataclass(frozen=True)
class Case:
    """``cause`` None: healthy. ``gain`` is the logarithm of what the cause costs."""

    name: str
    cause: str | None
    text: str
    words: str
    gain: float
    up: bool

    figure: str | None = None
    """The figure that taking the cause away improves, and its value without the cause."""
    without: float = 0.0
    traceless: str | None = None
    """Why a capture at the server holds nothing of the cause, if it does not."""

    @property
    def is_severe(self) -> bool:
        """It costs a half."""
        return self.gain >= SEVERE_GAIN

    @property
    def allowed(self) -> tuple[str, ...]:
        """What may be named first."""
        return alike(self.cause or "")


def draw(seed: int, number: int) -> Case:
    """A case; the same one for the same seed and number. Each third is healthy."""
    pick = Pick(f"airpath planted {seed} {number}")
    if number % 3 == 2:
        return _healthy(pick, seed, number)
    for _ in range(_TRIES):
        plant = PLANTS[(number - number // 3 + seed) % len(PLANTS)]
        access = pick.choice(plant.into)
        severity = pick.uniform(0.2, 1)
        draft, known = base(pick, access, plant.flows, plant.up)
        edit = plant.edit(pick, severity, draft, known)
        ill = draft.copy()
        edit(ill)
        gain, figure, without = _gain(ill, draft)
        if gain >= LEAST_GAIN:
            break
    else:
        raise RuntimeError(f"no {plant.cause} of case {number} of seed {seed} costs anything")
    kind = f" ({plant.name})" if plant.name else ""
    way = "up" if ill.up else "down"
    words = f"{plant.cause}{kind} at {severity:.2f}, {access} {way}, {_flows(ill)}"
    traceless = _traceless(plant.cause, ill)
    name = f"{seed}-{number}"
    text = ill.text()
    return Case(name, plant.cause, text, words, gain, ill.up, figure, without, traceless)


def _traceless(cause: str, ill: Draft) -> str | None:
    """What no rule on a server's capture can see."""
    kinds = {one["kind"] for one in ill.flows}
    if kinds == {"udp"} and not ill.up and cause in ("random-loss", "one-way-path", "nat-binding"):
        return "nobody answers the datagrams that the server sends"
    if cause == "rrc-promotion":
        return "the UE waits before its first packet, and what comes then comes as always"
    return None


def _healthy(pick: Pick, seed: int, number: int) -> Case:
    """Mostly bulk transfers; also pings, a file or a stream alone."""
    access = pick.choice(ALL)
    draft, known = base(pick, access, 3, None)
    kind = pick.choices(["bulk", "pings", "file", "stream"], [70, 12, 10, 8])[0]
    if kind == "pings":
        draft.flows = [ping(pick.choice(["down", "up"]), pick.uniform(150, 700))]
    elif kind == "file":
        # Long enough that its beginning is no large part of it.
        size = known.rate_mbps * 1e6 / 8 * pick.uniform(5, 7)
        draft.flows = [{"kind": "file", "profile": "linux-6.18", "size_bytes": round(size)}]
    elif kind == "stream":
        rate = known.rate_mbps * pick.uniform(0.1, 0.5)
        draft.flows = [{"kind": "udp", "rate_mbps": rate, "opened_by": "sender"}]
    words = f"healthy, {access} {'up' if draft.up else 'down'}, {_flows(draft)}"
    return Case(f"{seed}-{number}", None, draft.text(), words, 0.0, draft.up)


def _flows(draft: Draft) -> str:
    kinds = [str(one.get("congestion", one["kind"])) for one in draft.flows]
    return " + ".join(kinds)


def _gain(ill: Draft, well: Draft) -> tuple[float, str | None, float]:
    """The largest mean gain of a figure that is better on each seed, which, and what it is then."""
    changes: dict[str, list[float]] = {}
    without: dict[str, float] = {}
    for seed in _SEEDS:
        before, after = (figures(simulated(one, seed).summary) for one in (ill, well))
        without = without or after
        for name, value in before.items():
            if name in after:
                changes.setdefault(name, []).append(math.log(after[name] / value))
    steady = {
        name: sum(each) / len(each)
        for name, each in changes.items()
        if min(each) >= 0.4 * sum(each) / len(each)
    }
    if not steady:
        return 0.0, None, 0.0
    best = max(steady, key=lambda name: steady[name])
    return steady[best], best, without[best]


def figures(summary: Any) -> dict[str, float]:
    """Figures of a run of which more is better."""
    found: dict[str, float] = {}
    rates: list[float] = []
    for flow in summary["flows"]:
        name = flow["id"]
        if flow["kind"] == "file":
            lasted = 2 * summary["run"]["duration_s"]
            found[f"{name} completed"] = 1 / max(1e-3, flow["completed_s"] or lasted)
        else:
            rates.append(max(1e-3, flow["goodput_mbps"] or 0.0))
            if flow["kind"] == "udp":
                found[f"{name} rate"] = rates.pop()
        if flow["rtt_ms"]:
            # What a flow waits behind itself counts half.
            found[f"{name} rtt"] = flow["rtt_ms"]["p95"] ** -0.5
    if rates:
        found["sum"], found["least"] = sum(rates), min(rates)
    for one in summary["pings"]:
        found[f"{one['id']} answered"] = max(1e-3, 1 - one["lost"] / max(1, one["sent"]))
        if one["rtt_ms"]:
            found[f"{one['id']} late"] = 1 / one["rtt_ms"]["p95"]
            found[f"{one['id']} mean"] = 1 / one["rtt_ms"]["mean"]
    return found
