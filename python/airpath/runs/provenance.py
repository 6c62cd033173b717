"""Where a result comes from: everything needed to make it again."""

from __future__ import annotations

import datetime
import hashlib
import platform
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from airpath.runs.source import source
from airpath.scenario import BUILT_IN

if TYPE_CHECKING:
    from airpath import _core
    from airpath.runs.document import InputFile, Provenance

_FILE_KEY = re.compile(r"""\bfile["']?\s*=""")
"""A key ``file`` as resolved scenarios have it, which parse slowly if they are long."""


def run_id(
    scenario: _core.Scenario, seed: int, repeat: int, congestion: Mapping[str, str] | None = None
) -> str:
    """Twelve hexadecimal digits: equal for equal scenario, seed, version and number of seeds.

    ``congestion`` has the source of each congestion control that is not airpath's.
    """
    from airpath import _core

    parts = [scenario.sha256, str(seed), _core.__version__, str(repeat)]
    parts += [f"{flow} {code}" for flow, code in (congestion or {}).items()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def provenance(
    scenario: _core.Scenario, seeds: list[int], command: list[str] | None, identifier: str
) -> Provenance:
    """Record of a run that starts now: version, input, machine. Times are UTC."""
    from airpath import _core

    now = datetime.datetime.now(datetime.UTC)
    record: Provenance = {
        "id": identifier,
        "driver": "simulate",
        "version": _core.__version__,
        "source": source(),
        "core_sha256": core_hash(),
        "scenario": {"name": scenario.name, "title": scenario.title, "sha256": scenario.sha256},
        "seeds": seeds,
        "command": command,
        "started": now.isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in ("polars", "vl-convert-python")},
        "platform": {
            "system": platform.system(),
            "release": platform.release(),
            "machine": platform.machine(),
            "libc": " ".join(platform.libc_ver()).strip(),
        },
    }
    if files := input_files(scenario):
        record["files"] = files
    return record


def input_files(scenario: _core.Scenario) -> list[InputFile]:
    """Traces and channels that a scenario reads, with their hashes."""
    resolved = scenario.resolved_toml
    if not _FILE_KEY.search(resolved):
        return []
    directory = Path(scenario.given[2] or ".")
    found: dict[str, InputFile] = {}
    for name in named_files(resolved):
        path = (directory / name).absolute()
        found[name] = {"name": name, "path": str(path), "sha256": file_hash(path)}
    return list(found.values())


def named_files(toml: str) -> Iterator[str]:
    """Names of the files that a resolved scenario reads: the keys ``file``, without shipped ones.

    Raises ``ValueError`` if it is not TOML.
    """
    yield from _named(tomllib.loads(toml))


def _named(table: object) -> Iterator[str]:
    """Values of the keys ``file`` at any depth."""
    if isinstance(table, list):
        for each in table:
            yield from _named(each)
    elif isinstance(table, dict):
        for key, value in table.items():
            if key == "file" and isinstance(value, str) and not value.startswith(BUILT_IN):
                yield value
            else:
                yield from _named(value)


def table_metadata(scenario: _core.Scenario, seed: int) -> dict[str, str]:
    """Key-value metadata of each Parquet file: what decides its contents.

    The scenario itself, which may be long, is beside the tables in ``scenario.toml``.
    """
    from airpath import _core

    return {
        "airpath.version": _core.__version__,
        "airpath.seed": str(seed),
        "airpath.scenario_sha256": scenario.sha256,
    }


def command_line() -> list[str]:
    """Return the command line as typed, the program by its name, secrets left out."""
    from airpath.base.secrets import redacted

    return [Path(sys.argv[0]).name, *map(redacted, sys.argv[1:])]


@lru_cache(maxsize=1)
def core_hash() -> str | None:
    """Hash of the compiled module: tells two builds of one version apart."""
    from airpath import _core

    path = getattr(_core, "__file__", None)
    if path is None:
        return None
    return file_hash(Path(path))


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _version(package: str) -> str | None:
    """Of an installed package, whose folder ``NAME-VERSION.dist-info`` says it (PEP 376)."""
    name = f"{package.replace('-', '_')}-"
    for place in sys.path:
        for folder in Path(place).glob(f"{name}*.dist-info"):
            return folder.stem.removeprefix(name)
    # It knows all other ways to be installed, but its import takes 20 ms.
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
