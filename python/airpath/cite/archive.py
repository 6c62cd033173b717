"""A run in one file that anybody can run again: a zip archive with RO-Crate metadata.

RO-Crate 1.1 (https://w3id.org/ro/crate/1.1) describes each file in ``ro-crate-metadata.json``.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from airpath import scenario as scenarios
from airpath.base.files import open_regular, read_regular
from airpath.errors import InputError
from airpath.runs.directories import check_file_target, replaced_file
from airpath.runs.provenance import file_hash, named_files
from airpath.runs.results import MOST_BYTES, Run, RunDirectory

if TYPE_CHECKING:
    from airpath.drivers.options import Progress
    from airpath.runs.document import Provenance

METADATA = "ro-crate-metadata.json"
MOST_ARCHIVE_BYTES = 4 << 30
"""Of all files of an archive together, when they are taken out of it."""
_MOST_FILES = 100_000
_DOCUMENTS = ("scenario.toml", "summary.json", "provenance.json")
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Date of every file, so that the same run gives the same archive."""


@dataclass(frozen=True)
class Compared:
    """A table of the archive beside that of the run that was made of it."""

    seed: int
    table: str
    same: bool


def pack(run: Run, target: Path) -> list[str]:
    """Write a simulated run and what its scenario reads to an archive; return the file names.

    Raises ``InputError`` if the run was not simulated, or a file that it read has changed since.
    """
    if run.directory is None:
        raise InputError("a run in memory cannot be archived; give it a directory (out)")
    _check_simulated(run.provenance, str(run.directory))
    check_file_target(target)
    sources = {name: run.directory / name for name in _DOCUMENTS}
    for places in RunDirectory(run.directory).table_files().values():
        for place in places:
            sources[place.relative_to(run.directory).as_posix()] = place
            if place.parent != run.directory:
                summary = place.with_name("summary.json")
                sources[summary.relative_to(run.directory).as_posix()] = summary
    inputs = {each["name"]: _unchanged(each["name"], each["path"], each["sha256"])
              for each in run.provenance.get("files", [])}  # fmt: skip
    with (
        replaced_file(target) as aside,
        zipfile.ZipFile(aside, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name, data in inputs.items():
            archive.writestr(_entry(name), data)
        for name, place in sorted(sources.items()):
            with open_regular(place) as file, archive.open(_entry(name), "w") as entry:
                shutil.copyfileobj(file, entry)
        names = sorted([*inputs, *sources])
        archive.writestr(_entry(METADATA), _metadata(run, names))
    return [*names, METADATA]


def run_again(
    file: Path, workers: int | None = None, progress: Progress | None = None
) -> tuple[Run, list[Compared]]:
    """Run what an archive holds again, and compare each table byte for byte.

    Return the archived run, whose directory is gone, and one comparison for each seed and table.
    Raises ``InputError`` if the file is not such an archive.
    """
    from airpath.drivers import simulate
    from airpath.drivers.options import SimulationOptions

    with _unpacked(file) as directory:
        archived = Run.open(directory)
        record = archived.provenance
        _check_simulated(record, str(file))
        seeds = record["seeds"]
        if seeds != list(range(seeds[0], seeds[0] + len(seeds))):
            raise InputError(f"{file}: the run is partial; only complete runs can be compared")
        _check_names(directory / "scenario.toml", file)
        scenario = scenarios.load(directory / "scenario.toml")
        if scenario.sha256 != record["scenario"]["sha256"]:
            raise InputError(
                f"{file}: scenario.toml is not the one that was run: its SHA-256 is "
                f"{scenario.sha256[:12]} instead of {record['scenario']['sha256'][:12]}"
            )
        again = directory / "again"
        simulate.execute(
            scenario,
            SimulationOptions(
                seed=seeds[0], repeat=len(seeds), workers=workers, out=again, progress=progress
            ),
        )
        return archived, _compared(directory, again, seeds)


def _check_names(scenario: Path, file: Path) -> None:
    """Refuse a scenario that reads what is outside of its archive."""
    try:
        names = list(named_files(scenario.read_text(encoding="utf-8")))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}: scenario.toml is damaged: {error}") from None
    for name in names:
        if not _is_inside(name):
            raise InputError(f"{file}: scenario.toml reads {name!r}, which is outside the archive")


def _compared(directory: Path, again: Path, seeds: list[int]) -> list[Compared]:
    old, new = (RunDirectory(each).table_files() for each in (directory, again))
    rows = []
    for name in sorted(old.keys() | new.keys()):
        files = [
            {seed: place for seed in seeds for place in found.get(name, [])
             if len(seeds) == 1 or place.parent.name == f"seed-{seed}"}
            for found in (old, new)
        ]  # fmt: skip
        for seed in sorted(files[0].keys() | files[1].keys()):
            both = [each.get(seed) for each in files]
            same = None not in both and len({file_hash(each) for each in both if each}) == 1
            rows.append(Compared(seed, name, same))
    return rows


def _check_simulated(record: Provenance, name: str) -> None:
    driver = record.get("driver") or "simulate"
    if driver != "simulate":
        raise InputError(
            f"{name}: the driver was {driver}, on the real clock; only simulated runs can be made "
            "again byte for byte"
        )
    if control := record.get("congestion"):
        raise InputError(
            f"{name}: the run used a congestion control that is not airpath's (flows: "
            f"{', '.join(control)}), so it cannot be run again from an archive"
        )


def _unchanged(name: str, path: str, sha256: str) -> bytes:
    """What is in a file that the scenario reads, as it was when it ran."""
    if not _is_inside(name):
        raise InputError(
            f"the scenario reads {name}, which is not below its own directory; name the file "
            "relative to the scenario and run again"
        )
    try:
        data = read_regular(Path(path), MOST_BYTES)
    except FileNotFoundError:
        raise InputError(f"the scenario read {path}, which is no longer there") from None
    if hashlib.sha256(data).hexdigest() != sha256:
        raise InputError(f"the scenario read {path}, which has changed since")
    return data


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts and "\\" not in name and bool(name)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    return entry


def _metadata(run: Run, names: list[str]) -> bytes:
    record = run.provenance
    from airpath.cite.citation import run as cited

    parts: list[dict[str, object]] = [{"@id": name, "@type": "File"} for name in names]
    graph: list[dict[str, object]] = [
        {
            "@id": METADATA,
            "@type": "CreativeWork",
            "about": {"@id": "./"},
            "conformsTo": {"@id": "https://w3id.org/ro/crate/1.1"},
        },
        {
            "@id": "./",
            "@type": "Dataset",
            "identifier": run.id,
            "name": run.title,
            "description": cited(run)[0],
            "datePublished": record.get("started"),
            "hasPart": [{"@id": name} for name in names],
            "mentions": {"@id": "#run"},
        },
        {
            "@id": "#run",
            "@type": "CreateAction",
            "instrument": {"@id": "#airpath"},
            "object": {"@id": "scenario.toml"},
            "startTime": record.get("started"),
        },
        {
            "@id": "#airpath",
            "@type": "SoftwareApplication",
            "name": "airpath",
            "version": record["version"],
        },
        *parts,
    ]
    crate = {"@context": "https://w3id.org/ro/crate/1.1/context", "@graph": graph}
    return (json.dumps(crate, indent=1) + "\n").encode()


@contextmanager
def _unpacked(file: Path) -> Iterator[Path]:
    """Take an archive that may come from anybody out into a temporary directory."""
    try:
        archive = zipfile.ZipFile(file)
    except FileNotFoundError:
        raise InputError(f"{file} does not exist") from None
    except (OSError, zipfile.BadZipFile) as error:
        raise InputError(f"{file} is not an archive of `airpath cite --archive`: {error}") from None
    with archive, tempfile.TemporaryDirectory(prefix="airpath-archive-") as place:
        entries = archive.infolist()
        if METADATA not in archive.namelist():
            raise InputError(f"{file} is not an archive of a run: it has no {METADATA}")
        if len(entries) > _MOST_FILES:
            raise InputError(f"{file} has {len(entries)} files; at most {_MOST_FILES} are read")
        left = MOST_ARCHIVE_BYTES
        for entry in entries:
            left -= _take_out(archive, entry, Path(place), left, file)
        yield Path(place)


def _take_out(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, place: Path, most: int, file: Path
) -> int:
    """Write a file of an archive below ``place``; return its length."""
    name = entry.filename
    if not _is_inside(name) or PurePosixPath(name).parts[0] == "again" or entry.is_dir():
        raise InputError(f"{file}: {name!r} is not the name of a file of a run")
    target = place / name
    target.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    try:
        with archive.open(entry) as source, target.open("xb") as out:
            while block := source.read(1 << 20):
                written += len(block)
                if written > most:
                    raise InputError(f"{file} is larger than {MOST_ARCHIVE_BYTES >> 30} GiB")
                out.write(block)
    except (zipfile.BadZipFile, EOFError, FileExistsError, NotImplementedError, RuntimeError,
            OSError) as error:  # fmt: skip
        raise InputError(f"{file} is damaged at {name!r}: {error}") from None
    return written
