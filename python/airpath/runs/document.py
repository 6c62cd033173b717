"""Types of a run's document and provenance, with the parts that Python adds to the core's.

What is read from a run directory is checked against these types (``base/shapes.py``).
"""

from __future__ import annotations

from typing import Annotated, NotRequired, TypeAlias, TypedDict

from airpath.base.shapes import As, Length, Range
from airpath.documents import (
    Breakdown,
    Environment,
    FairnessSummary,
    Finding,
    FlowSummary,
    GroupSummary,
    LinkSummary,
    PingSummary,
    ProxySummary,
    RadioSummary,
    Tried,
    VariantRow,
)
from airpath.emulation.document import Emulation, StoredEmulation
from airpath.measure.document import Measured

Positive: TypeAlias = Annotated[float, Range(0.0)]
"""At least 0."""
Seed: TypeAlias = Annotated[int, Range(0, 2**64 - 1)]


class Figures(TypedDict):
    """The figures of flows, links and a radio, as in the core's summary of one seed."""

    flows: list[FlowSummary]
    groups: NotRequired[list[GroupSummary]]
    """Missing where no flow has ``streams``."""
    pings: list[PingSummary]
    links: list[LinkSummary]
    fairness: list[FairnessSummary]
    proxies: list[ProxySummary]
    radio: list[RadioSummary]


class InvalidBlock(TypedDict):
    """An attempt at a block of emulations that did not count."""

    block: int
    because: str
    directory: str
    """Name of its directory in that of the comparison."""


class Blocks(TypedDict):
    """Blocks of an emulated comparison, each of which runs every variant once."""

    command: list[str]
    orders: list[list[int]]
    """Indices of the variants in the order in which they ran, by block."""
    wanted: int
    """Number of blocks that were requested."""
    invalid: list[InvalidBlock]
    interval: str
    """How the intervals were obtained."""
    directory: str


class Variants(TypedDict):
    """Variants of a scenario on common seeds."""

    scenario: str
    version: str
    seeds: list[int]
    variants: list[list[str]]
    """What each sets; the first is the scenario as it is."""
    rows: list[VariantRow]
    blocks: NotRequired[Blocks]
    """Blocks of an emulated comparison, one for each seed; absent if variants were simulated."""


class InvalidRun(TypedDict):
    """An emulated run that did not count."""

    seed: Seed
    because: str
    directory: str
    """Name of its directory in the run directory."""


class RunHead(TypedDict):
    """A run as a whole; with several seeds there are ``repeat`` and ``seeds``."""

    id: str
    version: str
    seed: int
    scenario_sha256: str
    wall_s: Positive
    duration_s: Positive
    events: int
    partial: list[str]
    repeat: NotRequired[int]
    seeds: NotRequired[list[Seed]]
    invalid: NotRequired[list[InvalidRun]]
    """Runs of a repeated emulation that did not count; their seeds were repeated, up to a limit."""


class Explained(TypedDict):
    """How findings were obtained."""

    budget: str
    seeds: int
    runs: int
    events: int
    because: str | None
    """Why nothing could be tried; null: something could."""


class RunDocument(Figures):
    """What ``--json`` prints and ``summary.json`` holds."""

    run: RunHead
    findings: list[Finding]
    tried: list[Tried]
    breakdowns: NotRequired[list[Breakdown]]
    """Breakdowns of the first seed; runs of the first versions have none."""
    explained: Explained | None
    emulation: NotRequired[Annotated[Emulation, As(StoredEmulation)]]
    """Of an emulated run alone."""
    measured: NotRequired[Measured]
    """Of a measurement alone."""


class ScenarioRecord(TypedDict):
    """Which scenario was run."""

    name: str
    title: str | None
    sha256: str


class Source(TypedDict):
    """Which source airpath was built from."""

    commit: str
    """Of git: 40 hexadecimal digits."""
    clean: bool
    """Whether the files that git follows were as the commit has them."""


class InputFile(TypedDict):
    """A file that the scenario names."""

    name: str
    """As the scenario has it."""
    path: str
    sha256: str


class Provenance(TypedDict):
    """Content of ``provenance.json``."""

    id: str
    driver: str | None
    """``simulate``, ``emulate`` or ``measure``."""
    version: str
    source: Source | None
    core_sha256: str | None
    scenario: ScenarioRecord
    files: NotRequired[list[InputFile]]
    """Traces and channels that the scenario reads, where it names any."""
    seeds: Annotated[list[Seed], Length(1, 100_000)]
    command: list[str] | None
    started: str | None
    """ISO 8601, UTC."""
    python: str | None
    platform: dict[str, str | None] | None
    packages: NotRequired[dict[str, str | None]]
    """Versions of Python packages."""
    congestion: NotRequired[dict[str, str]]
    """Congestion controls that are not airpath's, by flow: class and hash of its source."""
    wall_s: NotRequired[float]
    partial: NotRequired[list[str]]
    emulation: NotRequired[Annotated[Environment, As(object)]]
    """The machine of an emulation, and its settings."""
    failed: NotRequired[str]
    """Why an emulation failed."""
