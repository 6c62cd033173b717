"""A run: its tables as polars frames, its figures, its findings.

>>> import airpath
>>> import polars as pl
>>> written = airpath.run("codel", set={"run.duration_s": 3}, out="runs/codel")
>>> run = Run.open("runs/codel")
>>> run.samples.group_by("flow").agg(pl.col("goodput_mbps").mean()).columns
['flow', 'goodput_mbps']
"""

from __future__ import annotations

import abc
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from airpath.base.files import read_regular
from airpath.base.json import Json, parsed
from airpath.base.later import Chart, later
from airpath.base.shapes import MisfitError, fitted
from airpath.errors import InputError, MissingTableError
from airpath.runs import summary
from airpath.runs.directories import cannot_write, replaced_file
from airpath.runs.tables import TABLES, read_table, result_table, table_file

if TYPE_CHECKING:
    import polars as pl

    from airpath import _core
    from airpath.base.choices import Budget
    from airpath.documents import Explanation, Finding
    from airpath.runs.document import Provenance, RunDocument

_MOST_NAMES = 20
MOST_BYTES = 128 << 20
"""The summary, the provenance and the scenario of a run are shorter, with 100,000 flows too."""


class Tables(Protocol):
    """Where a run's tables are."""

    def table(self, seed: int, name: str) -> pl.DataFrame | None:
        """Return a table of one seed; None if the run has no such table."""


class MemoryTables:
    """Tables of results held in memory, shared with the simulator without a copy."""

    def __init__(self, results: dict[int, _core.Result]) -> None:
        self._results = results

    def table(self, seed: int, name: str) -> pl.DataFrame | None:
        """Return a table of one seed; None if the run has no such table."""
        return result_table(self._results[seed], name)

    def __reduce__(self) -> tuple[type[FrameTables], tuple[dict[int, dict[str, pl.DataFrame]]]]:
        """Pickle the tables as frames: the simulator's memory stays where it is."""
        frames: dict[int, dict[str, pl.DataFrame]] = {}
        for seed, result in self._results.items():
            found = {name: result_table(result, name) for name in result.table_names()}
            frames[seed] = {name: frame for name, frame in found.items() if frame is not None}
        return FrameTables, (frames,)


class FrameTables:
    """Tables of a run that came from another process."""

    def __init__(self, frames: dict[int, dict[str, pl.DataFrame]]) -> None:
        self._frames = frames

    def table(self, seed: int, name: str) -> pl.DataFrame | None:
        """Return a table of one seed; None if the run has no such table."""
        return self._frames[seed].get(name)


class DirectoryTables:
    """Tables in Parquet files, read on demand."""

    def __init__(self, places: dict[int, Path]) -> None:
        self._places = places

    def table(self, seed: int, name: str) -> pl.DataFrame | None:
        """Return a table of one seed; None if the run has no such table."""
        return read_table(self._places[seed], name)

    def __getstate__(self) -> dict[str, object]:
        """Pickle absolute paths: another process may be in another directory."""
        return {"_places": {seed: place.absolute() for seed, place in self._places.items()}}


class Tabled(abc.ABC):
    """Tables by name, and those that runs usually have as attributes."""

    @abc.abstractmethod
    def table(self, name: str) -> pl.DataFrame:
        """Return a table by name."""

    @property
    def flows(self) -> pl.DataFrame:
        """One row per flow."""
        return self.table("flows")

    @property
    def samples(self) -> pl.DataFrame:
        """One row per interval and flow."""
        return self.table("samples")

    @property
    def links(self) -> pl.DataFrame:
        """One row per interval and link."""
        return self.table("links")

    @property
    def acks(self) -> pl.DataFrame:
        """One row per acknowledgement; only if the scenario sets ``run.ack_table``."""
        return self.table("acks")

    @property
    def groups(self) -> pl.DataFrame:
        """One row per flow with ``streams``, for its flows together; only if there is one."""
        return self.table("groups")

    @property
    def pings(self) -> pl.DataFrame:
        """One row per echo request."""
        return self.table("pings")

    @property
    def events(self) -> pl.DataFrame:
        """Slow-start exits, recoveries, time-outs, drops."""
        return self.table("events")

    @property
    def rtt_histogram(self) -> pl.DataFrame:
        """Counts of RTT samples by flow and range of milliseconds."""
        return self.table("rtt_histogram")

    @property
    def proxies(self) -> pl.DataFrame:
        """One row per interval and TCP flow that passes a proxy; only if there is one."""
        return self.table("proxies")

    @property
    def radio(self) -> pl.DataFrame:
        """One row per interval, UE and direction of a radio; only if there is one."""
        return self.table("radio")

    @property
    def radio_log(self) -> pl.DataFrame:
        """What happens on the radio, slot by slot; only if the scenario sets ``run.radio_log``."""
        return self.table("radio_log")


class Run(Tabled):
    """A finished run of one scenario with one or more seeds.

    Every table has the column ``seed`` first; times are nanoseconds since the start of the run.
    """

    def __init__(
        self,
        summary: RunDocument,
        provenance: Provenance,
        scenario_toml: str,
        tables: Tables,
        directory: Path | None = None,
    ) -> None:
        self.summary = summary
        """The document that ``airpath run --json`` prints."""
        self.provenance = provenance
        """Version, scenario hash, command line, machine."""
        self.scenario_toml = scenario_toml
        """The scenario with every default written out."""
        self.directory = directory
        """Where the run is stored, if it is."""
        self.figures: dict[int, _core.RunFigures] = {}
        """By seed, what the simulator itself can go on with; only in the process that ran it."""
        self._tables = tables
        self._cache: dict[str, pl.DataFrame] = {}

    def __getstate__(self) -> dict[str, object]:
        """Pickle without the simulator's own figures."""
        return {**self.__dict__, "figures": {}}

    @classmethod
    def open(cls, directory: str | os.PathLike[str]) -> Run:
        """Read a run directory back. Raises ``InputError`` if it is not one."""
        return RunDirectory(Path(directory)).open()

    @property
    def seeds(self) -> list[int]:
        """Seeds, in order."""
        return list(self.provenance["seeds"])

    @property
    def id(self) -> str:
        """Twelve hexadecimal digits, determined by scenario, seed, version and repeat."""
        return self.provenance["id"]

    @property
    def title(self) -> str:
        """The scenario's title, or its name."""
        scenario = self.provenance["scenario"]
        return scenario["title"] or scenario["name"]

    @property
    def findings(self) -> list[Finding]:
        """Causes, the largest first, then what bounds the run; empty if it was not explained."""
        return list(self.summary["findings"])

    @property
    def partial(self) -> list[str]:
        """Why the run is incomplete: one sentence for each thing that is missing; usually none."""
        return list(self.summary["run"].get("partial", []))

    def table(self, name: str) -> pl.DataFrame:
        """Return a table by name, all seeds in one."""
        if name not in TABLES:
            raise InputError(f"no table '{name}'; available: {', '.join(TABLES)}")
        if name not in self._cache:
            self._cache[name] = self._load(name)
        return self._cache[name]

    def has_table(self, name: str) -> bool:
        """Whether the first seed has this table."""
        return self._tables.table(self.seeds[0], name) is not None

    def _load(self, name: str) -> pl.DataFrame:
        import polars as pl

        frames = []
        for seed in self.seeds:
            frame = self._tables.table(seed, name)
            if frame is not None:
                column = pl.lit(seed, dtype=pl.UInt64).alias("seed")
                frames.append(frame.select(column, pl.all()))
        if not frames:
            keys = {"acks": "ack_table", "radio_log": "radio_log"}
            hint = f": set run.{keys[name]} = true in the scenario" if name in keys else ""
            raise MissingTableError(f"this run has no table '{name}'{hint}")
        return pl.concat(frames) if len(frames) > 1 else frames[0]

    def plot(self, kind: str | None = None, **options: Any) -> Chart:
        """Draw a chart of the run's report; ``options`` are those of ``airpath.plot``."""
        chart: Chart = later("plot")(self, kind, **options)
        return chart

    def report(self, output: str | os.PathLike[str] = "report.html", live: bool = False) -> Path:
        """Write the run's report, as ``airpath report`` does, and return its path."""
        later("write_report")([self], Path(output), live)
        return Path(output)

    def explain(self, budget: Budget = "quick", *, workers: int | None = None) -> Explanation:
        """Find what limits the run, as ``airpath.explain`` does, and keep it in the summary.

        Raises ``InputError`` for an emulated run: `airpath emulate --explain` explains those.
        """
        if self.summary.get("emulation") is not None:
            raise InputError("an emulated run is explained when it ends: emulate it with --explain")
        name = self.provenance["scenario"]["name"]
        place = None if self.directory is None else str(self.directory)
        scenario = later("parse")(self.scenario_toml, name, place)
        later("add")(self, scenario, budget, workers=workers)
        found: Explanation = later("of_run")(self)
        return found

    def _repr_html_(self) -> str:
        """The view in a notebook: what each flow achieved, why, and a picture."""
        return str(later("run_view")(self))

    def __repr__(self) -> str:
        flows = ", ".join(flow["id"] for flow in self.summary["flows"][:_MOST_NAMES])
        more = len(self.summary["flows"]) - _MOST_NAMES
        if more > 0:
            flows += f" and {more} more"
        return f"<Run {self.id}: {self.title}; {len(self.seeds)} seed(s); flows {flows}>"


class RunDirectory:
    """The files of a run: scenario.toml, summary.json, provenance.json and the tables.

    With several seeds the tables are in ``seed-N/``, each beside the summary of its seed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def write_summary(self, summary_: RunDocument) -> None:
        """Replace the summary atomically."""
        with replaced_file(self.path / "summary.json") as aside:
            summary.write_json(aside, summary_)

    def write(self, summary_: RunDocument, provenance: Provenance, toml: str) -> None:
        """Write everything but the tables."""
        try:
            (self.path / "scenario.toml").write_text(toml, encoding="utf-8")
            summary.write_json(self.path / "summary.json", summary_)
            summary.write_json(self.path / "provenance.json", provenance)
        except OSError as error:
            raise cannot_write(self.path, error) from None

    def replace(self, summary_: RunDocument, provenance: Provenance, toml: str) -> None:
        """Replace all documents but not the tables; each file is replaced atomically."""
        with replaced_file(self.path / "scenario.toml") as aside:
            aside.write_text(toml, encoding="utf-8")
        with replaced_file(self.path / "provenance.json") as aside:
            summary.write_json(aside, provenance)
        self.write_summary(summary_)

    def tables(self, seeds: list[int]) -> DirectoryTables:
        """Return the tables of these seeds. Raises ``InputError`` for a seed that is not there."""
        return DirectoryTables({seed: self._place(seed, len(seeds)) for seed in seeds})

    def table_files(self) -> dict[str, list[Path]]:
        """Files of each table, by seed; checked, so that anything may read them.

        Raises ``InputError`` if this is no run directory or one of its tables is damaged.
        """
        seeds = self.open().seeds
        found: dict[str, list[Path]] = {}
        for name in TABLES:
            for seed in seeds:
                place = self._place(seed, len(seeds))
                if (file := table_file(place, name)) is not None:
                    found.setdefault(name, []).append(file)
        return found

    def _place(self, seed: int, of: int) -> Path:
        place = self.path / f"seed-{seed}"
        if place.is_dir() and not place.is_symlink():
            return place
        if of > 1 or place.is_symlink() or place.exists():
            raise InputError(f"{self.path} is damaged: it has no directory {place.name}")
        return self.path

    def open(self) -> Run:
        """Read a run from files that may come from anybody. Raises ``InputError``.

        Every file must be regular, of limited size, and as airpath writes it.
        """
        if not self.path.is_dir():
            what = "is not a directory" if self.path.exists() else "does not exist"
            raise InputError(f"run directory {self.path} {what}")
        from airpath.runs.document import Provenance, RunDocument

        written = self._json("summary.json")
        provenance = self._json("provenance.json")
        toml = self._text("scenario.toml")
        if not {"run", "flows", "findings"} <= written.keys() or "seeds" not in provenance:
            raise InputError(f"{self.path} is not an airpath run directory")
        document: RunDocument = self._fitted("summary.json", summary.modern(written), RunDocument)
        record: Provenance = self._fitted("provenance.json", provenance, Provenance)
        seeds = record["seeds"]
        if len(set(seeds)) < len(seeds):
            raise InputError(f"{self.path / 'provenance.json'} is damaged: seeds has a duplicate")
        return Run(document, record, toml, self.tables(seeds), self.path)

    def _text(self, name: str) -> str:
        path = self.path / name
        try:
            return read_regular(path, MOST_BYTES).decode()
        except FileNotFoundError:
            raise InputError(f"{self.path} is not a run directory: it has no {name}") from None
        except UnicodeDecodeError:
            raise InputError(f"{path} is damaged: it is not text") from None

    def _json(self, name: str) -> Json:
        try:
            value = parsed(self._text(name))
        except (ValueError, RecursionError) as error:
            raise InputError(f"{self.path / name} is damaged: {error}") from None
        if not isinstance(value, dict):
            raise InputError(f"{self.path / name} is damaged: it is not an object")
        return value

    def _fitted(self, name: str, value: Any, kind: Any) -> Any:
        try:
            return fitted(value, kind)
        except MisfitError as error:
            raise InputError(f"{self.path / name} is damaged: {error}") from None
