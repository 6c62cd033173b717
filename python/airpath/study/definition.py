"""Load published studies: what was measured, what the source leaves open, how we set it.

A study is a directory with ``study.toml`` and its scenarios. ``docs/guides/studies.md`` says
how to read one; its format::

    id = "3g-latency"
    title = "…"
    source = "…"                # who measured what, with what
    scenario = "scenario.toml"  # one set of parameters for every figure
    searched = "scenario.toml"  # optional: whose figures are searched
    repeat = 5                  # seeds for each figure
    vary = { "flow.0.start_s" = [5.0, 5.04] }   # optional: keys with another value for each seed

    [[assumption]]              # what the source does not say
    id = "queue"
    name = "buffer of the link"
    value = "90 packets"
    why = "…"
    key = "path.down.0.queue_packets"   # either a key with plausible bounds …
    low = 20
    high = 200
    alternatives = [                    # … or named alternatives
      { label = "no delayed ACKs", set = ["flow.0.ack.delayed_segments=1"] },
      { label = "sender's report", metric = "flow.0.written_mbps" },
    ]
    figures = ["…"]             # optional: the figures, or cells of one, that it concerns

    [[parameter]]               # what was fitted
    name = "the buffer of the base station"
    value = "9 MB"
    why = "…"
    of = "the network"          # what has it: parameters are counted for each
    chosen_by = "…"             # the figure, or the cell of one, that chose it and no other
    seen = ["…"]                # optional: figures that were looked at when it was chosen
    key = "radio.rlc.buffer_bytes"      # optional: for `make calibrate`, with where to look
    low = 1_000_000
    high = 40_000_000

    [[search]]                  # for `make study-search`: what is varied jointly
    name = "initial window"
    choices = [                 # as alternatives; the study's own comes first
      { label = "8 segments" },
      { label = "1 segment", set = ["flow.0.initial_window_segments=1"] },
    ]
    figures = ["id"]            # optional: for these only

    [[contradiction]]           # what cannot all be true in the source
    text = "…"

    [[chart]]                   # a figure of the source, redrawn beside ours
    title = "Rate over window"
    unit = "kb/s"
    figures = ["…"]             # figures, or cells of one, with one unit
    labels = ["…"]              # as many

    [[figure]]
    id = "3g-latency/350k-rtt0-win10k"
    how = "…"                   # what the source says
    published = 330             # or low = …, high = …
    unit = "kb/s"
    tolerance = 0.10            # relative
    metric = "flow.0.goodput_mbps"
    scale = 1000                # from the metric's unit to the published one
    set = ["…"]                 # only what the source itself varied
    against = ["…"]             # optional: by how many percent ``set`` is above this

A range whose two ends were measured has ``metric = ["…", "…"]``, one metric for each end, both
judged. A figure of kind "shape" has ``shape = { compare = "…", … }`` instead of a published
value; see ``airpath.study.relations``. A figure that was published as several numbers has a
``[[figure.cell]]`` for each, with a ``label`` and whatever differs from the figure; each is judged,
and the figure is what its predictions are. An alternative with several ``set`` is a joint choice.
A figure that the model cannot express, or a shape that was not judged, has ``left_out = "why"``.

A figure or a cell that does not agree, chose nothing and was not seen has a reason, which `airpath
reproduce`, its report and the guide print::

    [figure.reason]             # or [figure.cell.reason]
    rests_on = "contradiction"  # one of ``EVIDENCE``
    text = "…"
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NotRequired, TypeAlias, TypedDict

from airpath.base.json import Json
from airpath.base.text import digits
from airpath.base.toml import read_toml
from airpath.errors import InputError
from airpath.scenario import STUDIES

Value: TypeAlias = "float | tuple[float, float]"
"""What a figure obtains: a number, or the two ends of a range."""

Published: TypeAlias = "float | str | Sequence[Published] | None"
"""What was published: a number, the ends of a range, a number for each cell, or words."""


EXCLUDED = 1 / 3
"""Fraction of a published value by which an interval may miss it. A tolerance of half the value
admits what the interval rules out; who reads "reproduced" does not expect that."""


EVIDENCE = {
    "computed": "figures that airpath computed, on the page or by the setting that the text names",
    "contradiction": "statements of the source that exclude each other",
    "not-given": "a quantity that decides the figure and that the source does not give",
}
"""What a reason may rest on."""


@dataclass(frozen=True)
class Reason:
    """Why a figure does not agree."""

    rests_on: str
    """One of ``EVIDENCE``."""
    text: str


class Measured(TypedDict, total=False):
    """What a relation measures."""

    set: list[str]
    metric: str
    scenario: str


class Variant(TypedDict):
    """A variant; a relation holds if one variant meets all conditions."""

    label: str
    set: list[str]


class Condition(TypedDict):
    """Bounds of a metric, which include their limits."""

    label: str
    metric: str
    limit: float
    least: NotRequired[float]
    set: NotRequired[list[str]]
    scale: NotRequired[float]
    scenario: NotRequired[str]


class Shape(Measured, total=False):
    """A relation that a source states in words; see ``airpath.study.relations``."""

    compare: str
    label: str
    this: Measured
    than: Measured
    statistic: str
    factor: float
    limit: float
    values: list[str]
    of: list[Shape]
    variants: list[Variant]
    conditions: list[Condition]


_GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True)
class Alternative:
    """Another plausible choice for an assumption."""

    label: str
    sets: tuple[str, ...]
    metric: str | None = None
    """Another place to measure; None: the figure's own."""


@dataclass(frozen=True)
class Assumption:
    """What the source leaves open, how we chose, and what else would be plausible."""

    id: str
    name: str
    value: str
    why: str
    alternatives: tuple[Alternative, ...]
    continuous: bool
    """True: every value between the alternatives is plausible too."""
    figures: tuple[str, ...]
    """Figures that it concerns; empty: all of the study."""

    def concerns(self, figure: str) -> bool:
        """Whether it can move this figure, or this cell of one."""
        return _concerned(self.figures, figure)


@dataclass(frozen=True)
class Figure:
    """One published number or relation."""

    id: str
    how: str
    kind: str
    unit: str
    low: float | None
    high: float | None
    tolerance: float
    metrics: tuple[str, ...]
    """One; two where both ends of a range are measured; none for a shape."""
    scale: float
    sets: tuple[str, ...]
    against: tuple[str, ...] | None
    """The other variant, if the figure is by how many percent ``sets`` is above it."""
    scenario: str
    shape: Shape = field(default_factory=Shape, compare=False)
    cells: tuple[Figure, ...] = ()
    """The numbers that it consists of, if it was published as several."""
    left_out: str = ""
    """Why it is not judged; empty: it is."""
    reason: Reason | None = None
    """Why it does not agree, where it does not."""

    @property
    def leaves(self) -> tuple[Figure, ...]:
        """Its cells, or itself: what is judged and counted."""
        return self.cells or (self,)

    @property
    def published(self) -> Published:
        """The number, the range, those of the cells, or in words what a shape says."""
        if self.cells:
            return [cell.published for cell in self.cells]
        if self.kind == "shape":
            return self.how
        return self.low if self.low == self.high else [self.low, self.high]

    def published_text(self) -> str:
        """The number or range with its unit; "shape" for a relation."""
        if self.kind == "shape":
            return "shape"
        if self.cells:
            return ", ".join(cell.published_text() for cell in self.cells)
        if self.low is None and self.high is None:
            return ""
        if self.low is None or self.high is None:
            word, bound = ("below", self.high) if self.low is None else ("above", self.low)
            return f"{word} {digits(bound or 0.0)} {self.unit}"
        low, high = digits(self.low), digits(self.high)
        return f"{low} {self.unit}" if low == high else f"{low} to {high} {self.unit}"

    def text(self, value: Value) -> str:
        """What was obtained, without its unit."""
        if isinstance(value, tuple):
            return f"{digits(value[0])} to {digits(value[1])}"
        return digits(value)

    def accepts(self, value: Value, bounds: Sequence[float] | None = None) -> bool:
        """Whether a value is within the tolerance of what was published; a range: both ends.

        ``bounds`` of its 95 % interval must not exclude what was published by more than a third of
        it, however wide the tolerance is.
        """
        if bounds is not None and self._is_excluded(*bounds):
            return False
        if isinstance(value, tuple):
            ends = zip(value, (self.low, self.high), strict=True)
            return all(
                published is not None and abs(end - published) <= abs(published) * self.tolerance
                for end, published in ends
            )
        below = self.low is not None and value < self.low - abs(self.low) * self.tolerance
        above = self.high is not None and value > self.high + abs(self.high) * self.tolerance
        return not below and not above

    def miss(self, value: Value) -> float:
        """How far a value is from what was published; of a range, both ends together."""
        if isinstance(value, tuple):
            ends = zip(value, (self.low, self.high), strict=True)
            return sum(abs(end - published) for end, published in ends if published is not None)
        below = 0.0 if self.low is None else self.low - value
        above = 0.0 if self.high is None else value - self.high
        return max(below, above, 0.0)

    def _is_excluded(self, least: float, most: float) -> bool:
        below = self.low is not None and self.low - most > abs(self.low) * EXCLUDED
        above = self.high is not None and least - self.high > abs(self.high) * EXCLUDED
        return below or above


@dataclass(frozen=True)
class Parameter:
    """What was fitted, and by which figure."""

    name: str
    value: str
    why: str
    of: str
    """What the parameter belongs to: a network, a UE."""
    chosen_by: str
    """The figure, or the cell of a figure, to which the parameter was fitted."""
    seen: tuple[str, ...] = ()
    """Figures, or cells, that were visible during the fit; a sceptic will not accept them as
    predictions."""
    key: str | None = None
    """The scenario key that ``make calibrate`` fits again; None: it does not."""
    low: float = 0.0
    """Bounds of the search."""
    high: float = 0.0


@dataclass(frozen=True)
class Dimension:
    """A value that ``make study-search`` varies jointly with the other dimensions."""

    name: str
    choices: tuple[Alternative, ...]
    """The choices; the study's own comes first."""
    figures: tuple[str, ...]
    """Figures for which it is varied; empty: all of the study."""

    def concerns(self, figure: str) -> bool:
        """Whether it is varied for this figure."""
        return _concerned(self.figures, figure)


@dataclass(frozen=True)
class Chart:
    """A figure of the source: numbers of one unit that belong together."""

    title: str
    unit: str
    figures: tuple[str, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Study:
    """A published experiment."""

    id: str
    title: str
    source: str
    directory: Path
    repeat: int
    assumptions: tuple[Assumption, ...]
    figures: tuple[Figure, ...]
    vary: tuple[tuple[str, float, float], ...] = ()
    """Keys that have another value for each seed, and the ends of their range."""
    parameters: tuple[Parameter, ...] = ()
    search: tuple[Dimension, ...] = ()
    searched: str = ""
    """The scenario whose figures are searched; empty: the one that most figures have."""
    contradictions: tuple[str, ...] = ()
    """What cannot all be true in the source."""
    charts: tuple[Chart, ...] = ()

    @property
    def leaves(self) -> tuple[Figure, ...]:
        """What is judged and counted: figures, or their cells."""
        return tuple(leaf for figure in self.figures for leaf in figure.leaves)

    def chose(self, figure: str) -> Parameter | None:
        """The parameter that this figure or cell chose."""
        return next((each for each in self.parameters if each.chosen_by == figure), None)

    def seen_for(self, figure: str) -> Parameter | None:
        """The parameter that was chosen by another figure, but with this one in view."""
        return next((each for each in self.parameters if figure in each.seen), None)

    def varied(self, seed: int) -> list[str]:
        """What a seed sets: values spread evenly over each range, whatever the seeds' number."""
        share = seed * _GOLDEN % 1
        return [f"{key}={low + share * (high - low):.9f}" for key, low, high in self.vary]


def study_names(root: Path = STUDIES) -> list[str]:
    """Names of the studies that come with airpath."""
    return sorted(path.parent.name for path in root.glob("*/study.toml"))


def load_study(name: str, root: Path = STUDIES) -> Study:
    """Load a study by name, or from a directory that has a ``study.toml``."""
    directory = root / name if name in study_names(root) else Path(name)
    if not (directory / "study.toml").is_file():
        near = difflib.get_close_matches(name, study_names(root), n=1, cutoff=0.4)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        known = ", ".join(study_names(root))
        raise InputError(f"no study named '{name}'{hint}\n  available: {known}")
    path = directory / "study.toml"
    data = read_toml(path)
    try:
        return _study(data, directory)
    except KeyError as error:
        raise InputError(f"{path}: missing key {error}") from None
    except (TypeError, ValueError) as error:
        raise InputError(f"{path}: {error}") from None


def _study(data: Json, directory: Path) -> Study:
    scenario = str(data.get("scenario", "scenario.toml"))
    figures = tuple(_figure(entry, scenario) for entry in data["figure"])
    ids = [figure.id for figure in figures]
    leaves = [leaf.id for figure in figures for leaf in figure.leaves]
    varied = data.get("vary", {})
    assumptions = tuple(_assumption(entry) for entry in data.get("assumption", []))
    search = tuple(
        Dimension(
            str(entry["name"]),
            tuple(map(_alternative, entry["choices"])),
            tuple(entry.get("figures", [])),
        )
        for entry in data.get("search", [])
    )
    concerned = [(f"assumption '{each.id}'", each.figures) for each in assumptions]
    concerned += [(f"search '{each.name}'", each.figures) for each in search]
    for what, named in concerned:
        for figure in named:
            if figure not in (*ids, *leaves):
                raise ValueError(f"{what} refers to an unknown figure '{figure}'")
    parameters = tuple(_parameter(entry) for entry in data.get("parameter", []))
    choosers = [parameter.chosen_by for parameter in parameters]
    for chooser in choosers:
        if chooser not in leaves:
            raise ValueError(f"a parameter was chosen by '{chooser}', which is not a figure")
        if choosers.count(chooser) > 1:
            raise ValueError(f"'{chooser}' cannot choose more than one parameter")
    for parameter in parameters:
        for seen in parameter.seen:
            if seen not in leaves:
                raise ValueError(
                    f"parameter '{parameter.name}' refers to an unknown figure '{seen}'"
                )
    return Study(
        id=str(data["id"]),
        title=str(data["title"]),
        source=str(data["source"]).strip(),
        directory=directory,
        repeat=int(data.get("repeat", 1)),
        assumptions=assumptions,
        figures=figures,
        vary=tuple((key, float(low), float(high)) for key, (low, high) in varied.items()),
        parameters=parameters,
        search=search,
        searched=str(data.get("searched", "")),
        contradictions=tuple(str(each["text"]).strip() for each in data.get("contradiction", [])),
        charts=tuple(_chart(entry, figures) for entry in data.get("chart", [])),
    )


def _chart(entry: Json, figures: Sequence[Figure]) -> Chart:
    chart = Chart(
        title=str(entry["title"]),
        unit=str(entry["unit"]),
        figures=tuple(map(str, entry["figures"])),
        labels=tuple(map(str, entry["labels"])),
    )
    units = {leaf.id: leaf.unit for figure in figures for leaf in figure.leaves if leaf.unit}
    for name in chart.figures:
        if units.get(name) != chart.unit:
            raise ValueError(f"chart '{chart.title}' has no figure '{name}' in {chart.unit}")
    if len(chart.figures) != len(chart.labels):
        raise ValueError(f"chart '{chart.title}' needs a label for each figure")
    return chart


def _parameter(entry: Json) -> Parameter:
    keys = ("name", "value", "why", "of", "chosen_by")
    return Parameter(
        **{key: str(entry[key]).strip() for key in keys},
        seen=tuple(map(str, entry.get("seen", []))),
        key=entry.get("key"),
        low=float(entry.get("low", 0)),
        high=float(entry.get("high", 0)),
    )


def _concerned(figures: tuple[str, ...], figure: str) -> bool:
    """Whether a figure, or the one that it is a cell of, is among them; of none, each is."""
    return not figures or figure in figures or figure.rpartition("/")[0] in figures


def _alternative(entry: Json) -> Alternative:
    sets = tuple(map(str, entry.get("set", [])))
    return Alternative(str(entry["label"]), sets, entry.get("metric"))


def _assumption(entry: Json) -> Assumption:
    alternatives = list(map(_alternative, entry.get("alternatives", [])))
    continuous = "low" in entry or "high" in entry
    if continuous and alternatives:
        raise ValueError(f"assumption '{entry['id']}' has both bounds and alternatives")
    for bound in ("low", "high"):
        if bound in entry:
            label = f"{entry['key'].rsplit('.', 1)[-1]} = {entry[bound]}"
            alternatives.append(Alternative(label, (f"{entry['key']}={entry[bound]}",)))
    return Assumption(
        id=str(entry["id"]),
        name=str(entry["name"]),
        value=str(entry["value"]),
        why=str(entry["why"]).strip(),
        alternatives=tuple(alternatives),
        continuous=continuous,
        figures=tuple(entry.get("figures", [])),
    )


def _figure(entry: Json, scenario: str) -> Figure:
    kind = str(entry.get("kind", "value"))
    if kind not in ("value", "shape"):
        raise ValueError(f"figure '{entry['id']}' has kind '{kind}'; available: value and shape")
    left_out = str(entry.get("left_out", "")).strip()
    cells = tuple(_cell(entry, cell, scenario) for cell in entry.get("cell", []))
    judged = not left_out and not cells
    exact = entry.get("published")
    low, high = entry.get("low", exact), entry.get("high", exact)
    if judged and kind == "value" and low is None and high is None:
        raise ValueError(f"figure '{entry['id']}' has no published value")
    if judged and kind == "shape" and "shape" not in entry:
        raise ValueError(f"figure '{entry['id']}' has no shape to compare")
    metrics = _metrics(entry, low, high) if judged and kind == "value" else ()
    against = entry.get("against")
    return Figure(
        id=str(entry["id"]),
        how=str(entry["how"]).strip(),
        kind=kind,
        unit=str(entry.get("unit", "")),
        low=None if low is None else float(low),
        high=None if high is None else float(high),
        tolerance=float(entry.get("tolerance", 0.0)),
        metrics=metrics,
        scale=float(entry.get("scale", 1.0)),
        sets=tuple(map(str, entry.get("set", []))),
        against=None if against is None else tuple(map(str, against)),
        scenario=str(entry.get("scenario", scenario)),
        shape=entry.get("shape", {}),
        cells=cells,
        left_out=left_out,
        reason=_reason(entry),
    )


def _reason(entry: Json) -> Reason | None:
    if "reason" not in entry:
        return None
    if "cell" in entry:
        raise ValueError(f"figure '{entry['id']}' has cells: each of them has its own reason")
    given = entry["reason"]
    rests_on, text = str(given["rests_on"]), str(given["text"]).strip()
    if rests_on not in EVIDENCE:
        raise ValueError(
            f"the reason of figure '{entry['id']}' rests on '{rests_on}'; "
            f"available: {', '.join(EVIDENCE)}"
        )
    return Reason(rests_on, text)


def _cell(figure: Json, cell: Json, scenario: str) -> Figure:
    """A cell of a figure: what the figure says, but for what the cell says."""
    label = str(cell["label"])
    own = ("cell", "low", "high", "reason")
    shared = {key: value for key, value in figure.items() if key not in own}
    name = f"{figure['id']}/{label.lower().replace(' ', '-')}"
    return _figure({**shared, **cell, "id": name}, scenario)


def _metrics(entry: Json, low: object, high: object) -> tuple[str, ...]:
    given = entry["metric"]
    if not isinstance(given, list):
        return (str(given),)
    if len(given) != 2 or low is None or high is None or "against" in entry:
        raise ValueError(f"figure '{entry['id']}': two metrics need the two ends of a range")
    return tuple(map(str, given))
