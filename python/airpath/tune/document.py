"""Types of the document that ``airpath tune --json`` prints."""

from __future__ import annotations

from typing import Literal, TypedDict


class Changed(TypedDict):
    """A figure that changes."""

    flow: str
    """Id of the flow, or a direction."""
    metric: str
    """The figure's name in ``--json``, with its unit."""
    before: float
    """Mean over the seeds without the settings; for a transfer that did not complete an
    estimate."""
    after: float
    """Mean over the seeds with the settings."""
    change: float
    """Mean relative change over paired seeds."""
    ci95: list[float]
    """95 % confidence interval of the change."""


class Line(TypedDict):
    """A setting of a host."""

    end: Literal["ue", "server"]
    """The host: that of the UE, or the server."""
    kind: Literal["sysctl", "module", "route", "tc"]
    text: list[str]
    """A line of sysctl.d or tmpfiles.d, or commands."""


class Advised(TypedDict):
    """Settings that are worth it."""

    name: str
    beside: list[str]
    """Settings beside which they are worth it; empty: alone."""
    set: list[str]
    """What they are in the model. Shapers and hosts' buffers have places in the scenario that
    `airpath tune` prepares; other keys are those of the scenario."""
    lines: list[Line]
    needs: list[str]
    """What must hold besides."""
    gains: list[Changed]
    """What they gain: alone, or on top of ``beside``."""
    harms: list[Changed]


class Together(TypedDict):
    """The advised settings that are worth it together."""

    names: list[str]
    set: list[str]
    lines: list[Line]
    gains: list[Changed]
    harms: list[Changed]
    left_out: list[str]
    """Advised settings that add nothing to the others, or exclude them."""


class Rejected(TypedDict):
    """Settings that were tried and are not advised."""

    kind: str
    """What of the host they set; settings of one kind exclude each other."""
    name: str
    because: str


class Tuning(TypedDict):
    """What was tried for a result."""

    source: str
    version: str
    kernel: str
    """``uname -r``: the settings are for this kernel's TCP."""
    profile: str | None
    """The profile of the simulated flows."""
    seeds: int
    not_as_kernel: list[str]
    """Flows with keys for which no kernel has a setting, and those keys."""
    missing: list[str]
    """Causes that a measurement named, and that its twin has no place for."""
    advised: list[Advised]
    """The best of each kind, the most valuable first."""
    together: Together | None
    """Null if nothing is advised."""
    rejected: list[Rejected]
