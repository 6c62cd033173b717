"""Turns the configuration files of a network into a scenario.

>>> made = convert([("gnb.yml", "cell_cfg: {band: 3, channel_bandwidth_MHz: 20}")])
>>> print(made.scenario.splitlines()[0])
# Made by `airpath scenario from` of gnb.yml (srsRAN Project 25.10).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from airpath.base.choices import Software
from airpath.deployed import (
    ini,
    libconfig,
    oai_enb,
    oai_gnb,
    open5gs,
    srsran_4g,
    srsran_project,
    yaml_file,
)
from airpath.deployed.draft import Entry, NotModelled, Program, Station
from airpath.deployed.settings import MOST_BYTES, Setting, Settings, shown
from airpath.deployed.write import Scenario, Written, scenario_text
from airpath.errors import InputError, reason

_DEFAULT_5QI = 9  # of Open5GS's and OpenAirInterface's subscribers, and of a default bearer
_MOST_FILES = 16
_MOST_SHOWN = 3


_STATIONS: dict[Software, Station] = {
    "oai-gnb": oai_gnb.STATION,
    "oai-enb": oai_enb.STATION,
    "srsran-4g": srsran_4g.STATION,
    "srsran-project": srsran_project.STATION,
}
_CORE: Software = "open5gs"
_LTE: tuple[Software, ...] = ("oai-enb", "srsran-4g")


@dataclass(frozen=True)
class Deployed:
    """A scenario as deployed, where each of its keys is from, and what was left out."""

    scenario: str
    programs: tuple[Program, ...]
    entries: tuple[Entry, ...]
    not_modelled: tuple[NotModelled, ...]
    unlisted: str
    """A value that its specification does not have, and where it is from; empty: none."""

    def summary(self) -> list[str]:
        """What was read, how many keys are from it, and what matters but is not modelled."""
        counts = dict.fromkeys(("file", "default", "assumed"), 0)
        for entry in self.entries:
            counts[entry.source] += 1
        matters: dict[str, list[str]] = {}
        for one in self.not_modelled:
            if one.why:
                names = matters.setdefault(one.why, [])
                names.append(f"{one.setting.path[-1]} ({one.setting.place})")
        lines = [
            f"read as {', '.join(map(str, self.programs))}: {counts['file']} keys from the files, "
            f"{counts['default']} defaults, {counts['assumed']} assumed"
        ]
        if self.unlisted:
            lines.append(f"used although the specification does not list it: {self.unlisted}")
        for why, names in matters.items():
            more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
            lines.append(f"not modelled: {', '.join(names[:_MOST_SHOWN])}{more}: {why}")
        others = sum(not one.why for one in self.not_modelled)
        lines.append(f"not about the radio or TCP, or unknown to airpath: {others} settings")
        return lines

    def document(self) -> dict[str, object]:
        """The JSON document of ``airpath scenario from --json``."""
        return {
            "scenario": self.scenario,
            "software": [{"name": each.name, "version": each.version} for each in self.programs],
            "keys": [
                {
                    "key": each.key,
                    "value": each.value,
                    "source": each.source,
                    "comment": each.comment,
                    "settings": [_place(setting) for setting in each.settings],
                }
                for each in self.entries
            ],
            "not_modelled": [
                {**_place(each.setting), "why": each.why or None} for each in self.not_modelled
            ],
        }


def _place(setting: Setting) -> dict[str, object]:
    return {"setting": setting.name, "file": setting.file, "line": setting.line}


def convert_files(files: Sequence[str], software: Software | None = None) -> Deployed:
    """Read files, or standard input for ``-``, and return their scenario.

    Raises ``InputError`` with file, line and what is allowed for what cannot be used, and
    ``AirpathError`` for a file that cannot be read.
    """
    if len(files) > _MOST_FILES:
        raise InputError(f"{len(files)} files are more than {_MOST_FILES}")
    return convert([_read(each) for each in files], software)


def convert(texts: Sequence[tuple[str, str]], software: Software | None = None) -> Deployed:
    """Return the scenario of configuration files, each with its name and its text."""
    by_program: dict[Software, list[list[Setting]]] = {}
    for name, text in texts:
        rows = _parsed(name, text, software)
        by_program.setdefault(_recognised(rows, software), []).append(rows)
    stations = [each for each in by_program if each != _CORE]
    names = ", ".join(name for name, _ in texts)
    if not stations:
        raise InputError(
            f"{names}: none of the files configures a base station: add the file of the gNB or eNB"
        )
    if len(stations) > 1:
        raise InputError(
            f"{names}: the files configure several base stations ({', '.join(stations)}); "
            "give the files of one"
        )
    return _assembled(names, stations[0], by_program)


def _assembled(
    names: str, kind: Software, by_program: dict[Software, list[list[Setting]]]
) -> Deployed:
    core = None
    five_qi = None
    if _CORE in by_program:
        session = open5gs.session(Settings(by_program[_CORE]))
        core, five_qi = session.draft, session.five_qi
    chosen = five_qi.value if five_qi else _DEFAULT_5QI
    station, settings = _STATIONS[kind], Settings(by_program[kind])
    if not any(settings.has(*part.split(".")) for part in station.cell):
        wanted = " or ".join(f"`{part}`" for part in station.cell)
        raise InputError(f"{names}: there is no {wanted}, so the cell is unknown: add its file")
    draft = station.draft(settings, chosen)
    drafts = [draft, core] if core else [draft]
    place = five_qi.setting.place if five_qi and five_qi.setting else None
    scenario = Scenario(names, lte=kind in _LTE, drafts=drafts, quality=(chosen, place))
    text = _written(names, scenario)
    return Deployed(
        scenario=text.text,
        programs=tuple(each.program for each in drafts),
        entries=tuple(text.entries),
        not_modelled=tuple(one for each in drafts for one in each.not_modelled()),
        unlisted=text.unlisted,
    )


def _written(names: str, scenario: Scenario) -> Written:
    """The scenario, which airpath can run.

    Raises ``InputError`` for a value that no scenario may have, with the setting from which it is.
    """
    made = scenario_text(scenario)
    fault = _fault(made)
    if fault is not None and _ANY_TIMER in fault.help:
        # The network runs with a value that its specification does not have.
        made = scenario_text(replace(scenario, unlisted=fault.comment))
        fault = _fault(made)
    if fault is None:
        return made
    for setting in fault.entry.settings if fault.entry else ():
        raise setting.wrong(f"cannot be in a scenario: {fault.what}; {fault.help}".rstrip("; "))
    why = f" ({fault.entry.comment})" if fault.entry else ""
    raise InputError(f"{names}: {fault.what}{why}")


_ANY_TIMER = "any_timer_value"


@dataclass(frozen=True)
class _Fault:
    """What is wrong with a scenario, and the key at which it is."""

    what: str
    help: str
    entry: Entry | None

    @property
    def comment(self) -> str:
        """Where the value is from, and what the specification says."""
        place = self.entry.comment if self.entry else ""
        return f"{place}: {self.what}"


def _fault(made: Written) -> _Fault | None:
    """The first thing that is wrong, if anything is."""
    from airpath.scenario import parse

    try:
        parse(made.text, "scenario")
    except InputError as error:
        lines = str(error).splitlines()
        found = re.match(r"(?:error: )?scenario:(\d+):\d+: (.*)", lines[0])
        help_ = lines[1].strip() if len(lines) > 1 and lines[1].startswith(" ") else ""
        if found is None:
            return _Fault(lines[0], help_, None)
        return _Fault(found[2], help_, made.lines.get(int(found[1])))
    return None


def _read(file: str) -> tuple[str, str]:
    """Name and text of a file, up to a size."""
    try:
        if file == "-":
            return "stdin", _decoded("stdin", sys.stdin.buffer.read(MOST_BYTES + 1))
        with Path(file).open("rb") as opened:
            return Path(file).name, _decoded(file, opened.read(MOST_BYTES + 1))
    except OSError as error:
        raise InputError(f"cannot read {file}: {reason(error)}") from None


def _decoded(file: str, data: bytes) -> str:
    if len(data) > MOST_BYTES:
        raise InputError(f"{file} is larger than {MOST_BYTES >> 20} MiB: not a configuration file")
    if b"\0" in data:
        line = data[: data.index(b"\0")].count(b"\n") + 1
        raise InputError(f"{file}:{line}: not a text file: it has a NUL byte")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        # Comments in the public files of OpenAirInterface are in ISO 8859-1 here and there.
        if data.isascii() or any(byte < 9 for byte in data):
            raise InputError(f"{file}: byte {error.start} is not text") from None
        return data.decode("latin-1").replace("\r\n", "\n")


_SECTION = re.compile(r"\[[\w. -]+\]\s*(?:#.*)?")
_ASSIGNED = re.compile(r"[A-Za-z_][\w.-]*\s*=")
_OPENED = re.compile(r"[A-Za-z_][\w.-]*\s*[:=]?\s*[({]?\s*$")


def _reader(text: str) -> Callable[[str, str], list[Setting]]:
    """The reader of the format that the first lines have."""
    first = list(islice(_significant(text), 2))
    if first and _SECTION.fullmatch(first[0]):
        return ini.read
    if first and (first[0].startswith("@") or _ASSIGNED.match(first[0])):
        return libconfig.read
    if len(first) > 1 and _OPENED.match(first[0]) and first[1][0] in "({":
        return libconfig.read
    return yaml_file.read


def _significant(text: str) -> Iterator[str]:
    """The lines that are neither empty nor comments of any format."""
    within = False
    for line in text.splitlines():
        content = line.strip()
        if not within and content.startswith("/*"):
            within = True
        if within:
            within = "*/" not in content
        elif content and not content.startswith(("#", "//", ";")):
            yield content


_READERS: dict[Software, Callable[[str, str], list[Setting]]] = {
    "srsran-project": yaml_file.read,
    "open5gs": yaml_file.read,
}


def _parsed(name: str, text: str, software: Software | None) -> list[Setting]:
    reader = _READERS[software] if software in _READERS else _reader(text)
    rows = reader(text, name)
    if not rows:
        raise InputError(f"{name}: the file has no settings")
    return rows


def _recognised(rows: list[Setting], software: Software | None) -> Software:
    top = {row.path[0] for row in rows if row.path}
    found: list[Software] = [
        kind for kind, station in _STATIONS.items() if not station.names.isdisjoint(top)
    ]
    if not open5gs.NAMES.isdisjoint(top):
        found.append(_CORE)
    if software is not None and software not in found and found:
        first = rows[0]
        raise InputError(
            f"{first.place}: `{first.name}` belongs to {', '.join(found)}, not to {software}"
        )
    if software is not None:
        return software
    if not found:
        first = rows[0]
        raise InputError(
            f"{first.place}: no configuration airpath knows starts with the key "
            f"{shown(first.path[0])}: it reads the files of srsRAN Project (cell_cfg, cu_cp), "
            "srsRAN 4G ([enb], phy_cnfg, qci_config, sib2), OpenAirInterface (gNBs, eNBs) and "
            "Open5GS (smf, upf, pcf)"
        )
    return found[0]
