"""Turns the configuration files of a network into a scenario.

>>> made = convert([("gnb.yml", "cell_cfg: {band: 3, channel_bandwidth_MHz: 20}")])
>>> print(made.scenario.splitlines()[0])
# Made by `airpath scenario from` of gnb.yml (srsRAN Project 25.10).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

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
from airpath.deployed.draft import Draft, Entry, NotModelled, Program
from airpath.deployed.settings import MOST_BYTES, Setting, Settings, shown
from airpath.deployed.write import Scenario, scenario_text
from airpath.errors import InputError, reason

_DEFAULT_5QI = 9  # of Open5GS's and OpenAirInterface's subscribers, and of a default bearer
_MOST_FILES = 16


class Station(Protocol):
    """A module for the program of a base station."""

    PROGRAM: Program

    def recognises(self, settings: Settings) -> bool:
        """Whether these are settings of the program."""

    def draft(self, settings: Settings, five_qi: int) -> Draft:
        """The keys of the radio."""


_STATIONS: dict[str, Station] = {
    "oai-gnb": oai_gnb,
    "oai-enb": oai_enb,
    "srsran-4g": srsran_4g,
    "srsran-project": srsran_project,
}
_CORE = "open5gs"
SOFTWARE = (*_STATIONS, _CORE)
"""Names of the programs whose files are read."""
_LTE = ("oai-enb", "srsran-4g")


@dataclass(frozen=True)
class Deployed:
    """A scenario as deployed, where each of its keys is from, and what was left out."""

    scenario: str
    programs: tuple[Program, ...]
    entries: tuple[Entry, ...]
    not_modelled: tuple[NotModelled, ...]

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


def convert_files(files: Sequence[str], software: str | None = None) -> Deployed:
    """Read files, or standard input for ``-``, and return their scenario.

    Raises ``InputError`` with file, line and what is allowed for what cannot be used, and
    ``AirpathError`` for a file that cannot be read.
    """
    if len(files) > _MOST_FILES:
        raise InputError(f"{len(files)} files are more than {_MOST_FILES}")
    return convert([_read(each) for each in files], software)


def convert(texts: Sequence[tuple[str, str]], software: str | None = None) -> Deployed:
    """Return the scenario of configuration files, each with its name and its text."""
    by_program: dict[str, list[list[Setting]]] = {}
    for name, text in texts:
        rows = _parsed(name, text, software)
        by_program.setdefault(_recognised(name, rows, software), []).append(rows)
    stations = [each for each in by_program if each != _CORE]
    names = ", ".join(name for name, _ in texts)
    if not stations:
        raise InputError(
            f"{names}: no file is of a base station, so there is no radio: add the gNB's or eNB's"
        )
    if len(stations) > 1:
        raise InputError(
            f"{names}: the files are of several base stations ({', '.join(stations)}); give those "
            "of one"
        )
    return _assembled(names, stations[0], by_program)


def _assembled(names: str, kind: str, by_program: dict[str, list[list[Setting]]]) -> Deployed:
    core = None
    five_qi = None
    if _CORE in by_program:
        session = open5gs.session(Settings(by_program[_CORE]))
        core, five_qi = session.draft, session.five_qi
    chosen = five_qi.whole() if five_qi else _DEFAULT_5QI
    draft = _STATIONS[kind].draft(Settings(by_program[kind]), chosen)
    drafts = [draft, core] if core else [draft]
    text = scenario_text(
        Scenario(
            names=names,
            lte=kind in _LTE,
            drafts=drafts,
            quality=(chosen, five_qi.setting.place if five_qi and five_qi.setting else None),
        )
    )
    _check(text)
    return Deployed(
        scenario=text.text,
        programs=tuple(each.program for each in drafts),
        entries=tuple(text.entries),
        not_modelled=tuple(one for each in drafts for one in each.not_modelled()),
    )


def _check(made: object) -> None:
    """Report what a scenario may not have, at the setting from which it is."""
    from airpath.deployed.write import Written
    from airpath.scenario import parse

    assert isinstance(made, Written)
    try:
        parse(made.text, "scenario")
    except InputError as error:
        for line in str(error).splitlines():
            found = re.match(r"scenario:(\d+):\d+: (.*)", line)
            entry = made.lines.get(int(found[1])) if found else None
            if found and entry and entry.settings:
                setting = entry.settings[0]
                raise setting.wrong(
                    f"cannot be in a scenario: {found[2]}{_help(str(error), line)}"
                ) from None
        raise


def _help(message: str, line: str) -> str:
    """The advice that follows a line of an error."""
    after = message.split(f"{line}\n", 1)[1:]
    advice = after[0].splitlines()[0].strip() if after else ""
    return f"; {advice}" if advice and not advice.startswith("scenario:") else ""


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
        raise InputError(f"{file}:{line}: a byte of 0: not a text file")
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
    lines = (line.strip() for line in _uncommented(text).splitlines())
    first = [line for line in lines if line][:3]
    if first and _SECTION.fullmatch(first[0]):
        return ini.read
    if first and (first[0].startswith("@") or _ASSIGNED.match(first[0])):
        return libconfig.read
    if len(first) > 1 and _OPENED.match(first[0]) and first[1][0] in "({":
        return libconfig.read
    return yaml_file.read


def _uncommented(text: str) -> str:
    """The text up to a size, without the comments of all formats."""
    return re.sub(r"/\*.*?\*/|(?m:^\s*(?:#|//|;).*$)", "", text[:65536], flags=re.DOTALL)


_READERS: dict[str, Callable[[str, str], list[Setting]]] = {
    "srsran-project": yaml_file.read,
    "open5gs": yaml_file.read,
}


def _parsed(name: str, text: str, software: str | None) -> list[Setting]:
    reader = _READERS.get(software or "", _reader(text))
    rows = reader(text, name)
    if not rows:
        raise InputError(f"{name}: there are no settings in it")
    return rows


def _recognised(name: str, rows: list[Setting], software: str | None) -> str:
    settings = Settings([rows])
    found = [kind for kind, station in _STATIONS.items() if station.recognises(settings)]
    if open5gs.recognises(settings):
        found.append(_CORE)
    if software is not None and software not in found and found:
        first = rows[0]
        raise InputError(
            f"{first.place}: `{first.name}` is not of {software}, but of {', '.join(found)}"
        )
    if software is not None:
        return software
    if not found:
        first = rows[0]
        raise InputError(
            f"{first.place}: {shown(first.path[0])} is not of a known program: airpath reads the "
            "files of srsRAN Project (cell_cfg, cu_cp), srsRAN 4G ([enb], phy_cnfg, qci_config, "
            "sib2), OpenAirInterface (gNBs, eNBs) and Open5GS (smf, upf, pcf)"
        )
    return found[0]
