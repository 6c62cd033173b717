"""Writes a scenario in which a comment at each key says where its value is from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import groupby
from textwrap import wrap

from airpath.base.secrets import redacted
from airpath.base.text import printable
from airpath.base.toml import toml_text
from airpath.deployed.draft import Draft, Entry, NotModelled

_WIDTH = 100
_ORDER = (
    "radio.cell", "radio.channel", "radio.link_adaptation", "radio.link_adaptation_up",
    "radio.harq", "radio.harq_up", "radio.rlc", "radio.rlc_up", "radio.sr", "radio.bsr",
    "radio.grants", "radio.rach", "radio.time_alignment", "radio.drx", "radio.rrc", "radio.ambr",
)  # fmt: skip
_SINR_DB = 30
_RESPONSE_MS = 2  # radio.rach.response_delay_ms, as airpath has it


@dataclass(frozen=True)
class Scenario:
    """What a scenario is written from."""

    names: str
    lte: bool
    drafts: list[Draft]
    quality: tuple[int, str | None]
    """The 5QI or QCI of the bearer, and the place that has it."""
    unlisted: str = ""
    """A timer whose value its specification does not list, if there is one."""


@dataclass
class Written:
    """The text, with the key that stands on each line."""

    entries: list[Entry]
    unlisted: str = ""
    lines: dict[int, Entry] = field(default_factory=dict)
    _parts: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The scenario."""
        return "".join(f"{line}\n" for line in self._parts)

    def add(self, *lines: str) -> None:
        """Add lines as they are, but for what a terminal would obey, and keys of subscribers."""
        self._parts += [redacted(printable(line)) for line in lines]

    def remark(self, line: str, comment: str) -> None:
        """Add a line with a comment beside it."""
        self.add(f"{line:<32} # {_one_line(comment)}")

    def comment(self, text: str, indent: str = "# ") -> None:
        """Add a comment that is broken into lines."""
        self.add(*wrap(text, _WIDTH, initial_indent="# ", subsequent_indent=indent))

    def key(self, entry: Entry) -> None:
        """Add a key with its comment."""
        line = toml_text({entry.key.rsplit(".", 1)[1]: entry.value}).strip()
        # No value is copied from a file as it is, and a TDD pattern can have the form of a key.
        self._parts.append(f"{line:<32} # {redacted(printable(_one_line(entry.comment)))}")
        self.lines[len(self._parts)] = entry


def scenario_text(scenario: Scenario) -> Written:
    """Write the scenario of some drafts, the first of which is the base station's."""
    entries = {key: entry for draft in scenario.drafts for key, entry in draft.entries.items()}
    preset = _preset(scenario.lte, entries)
    _complete(entries)
    made = Written(list(entries.values()), scenario.unlisted)
    _head(made, scenario, preset)
    made.add("", "[radio]", f'preset = "{preset}"')
    if scenario.unlisted:
        made.remark("any_timer_value = true", scenario.unlisted)
    for table in _ORDER:
        rows = [each for key, each in entries.items() if key.rsplit(".", 1)[0] == table]
        if rows:
            made.add("", f"[{table}]")
            for each in rows:
                made.key(each)
        if table == "radio.channel":
            _power(made, scenario.drafts[0])
    _flows(made, entries)
    _left_out(made, scenario)
    return made


def _preset(lte: bool, entries: dict[str, Entry]) -> str:
    tdd = entries["radio.cell.duplex"].value == "tdd"
    if lte:
        return "lte-tdd-20" if tdd else "lte-20"
    if entries["radio.cell.frequency_range"].value == "fr2":
        return "nr-mmwave"
    return "nr-n78" if tdd else "nr-fdd-20"


def _complete(entries: dict[str, Entry]) -> None:
    """Add what neither the files nor the programs determine."""

    def assume(key: str, value: str | float, why: str) -> None:
        entries.setdefault(key, Entry(key, value, "assumed", f"assumed: {why}"))

    if "radio.cell.antenna_ports" in entries:
        assume("radio.cell.cfi", 2, "1 to 3 (TS 36.211 table 6.7-1)")
    assume("radio.channel.sinr_db", _SINR_DB, "near the base station, for the highest MCS")
    window = entries.get("radio.rach.response_window_ms")
    if window is not None and isinstance(window.value, float) and window.value < _RESPONSE_MS:
        assume("radio.rach.response_delay_ms", window.value, "at the end of the window")
    for key, value in (("buffer_packets", "unlimited"), ("buffer_bytes", 3_000_000)):
        if f"radio.rlc.{key}" in entries:
            assume(f"radio.rlc_up.{key}", value, "the UE's own buffer")
    if "radio.rlc.t_reordering_ms" in entries and "radio.rrc.enabled" not in entries:
        assume("radio.rrc.initial", "connected", "the UE has attached before")


def _head(made: Written, scenario: Scenario, preset: str) -> None:
    programs = ", ".join(str(draft.program) for draft in scenario.drafts)
    five_qi, place = scenario.quality
    made.comment(f"Made by `airpath scenario from` of {scenario.names} ({programs}).")
    made.comment(
        "The comment at a key names the line that the value is from, or the program whose default "
        f'it is, or says that it is assumed. All other keys are those of the preset "{preset}" and '
        "of airpath."
    )
    made.comment(
        f"The bearer is that of {'QCI' if scenario.lte else '5QI'} {five_qi} "
        f"({place or 'assumed: the usual one of a default bearer'})."
    )
    made.add(toml_text({"title": f"As deployed: {_one_line(scenario.names)}"}).strip())
    made.add("", "[run]")
    made.remark("duration_s = 10", "assumed")
    for direction in ("down", "up"):
        made.add("", f"[[path.{direction}]]", 'stage = "server"')
        made.remark('place = "campus"', "assumed: a server on the same site")


def _power(made: Written, draft: Draft) -> None:
    """Remarks on the power and on other things that the channel replaces."""
    for remark in draft.remarks:
        if remark.startswith("transmit_dbm"):
            made.comment(
                'With a distance in place of an SINR (distance_m, path_loss, model = "process") '
                "the cell would have:"
            )
        made.comment(remark)


def _flows(made: Written, entries: dict[str, Entry]) -> None:
    made.add("", "[[flow]]")
    made.remark('id = "download"', "assumed, as both flows are")
    made.add('kind = "bulk"', 'profile = "linux-6.1"')
    if "flow.0.mss_bytes" in entries:
        made.key(entries["flow.0.mss_bytes"])
    made.add("", "[[flow]]", 'id = "ping"', 'kind = "ping"')


def _left_out(made: Written, scenario: Scenario) -> None:
    """List what was not used: first what matters, with its reason, then the names of the rest."""
    rows = [one for draft in scenario.drafts for one in draft.not_modelled()]
    matters = [one for one in rows if one.why]
    rest = [one for one in rows if not one.why]
    if matters:
        made.add("", "# Not modelled (line):")
        for why, group in _grouped(matters):
            made.comment(f"- {why}: {_names(group)}", "#   ")
    if rest:
        made.add(
            "", "# Not about the radio or TCP, or unknown to airpath (line); no value is copied:"
        )
        for section, group in _by_section(rest):
            made.comment(f"- {section}: {_names(group)}", "#   ")


def _grouped(rows: list[NotModelled]) -> Iterable[tuple[str, list[NotModelled]]]:
    reasons = dict.fromkeys(one.why for one in rows)
    return ((why, [one for one in rows if one.why == why]) for why in reasons)


def _by_section(rows: list[NotModelled]) -> Iterable[tuple[str, list[NotModelled]]]:
    sections = groupby(rows, key=lambda one: one.setting.path[0])
    return ((name, list(group)) for name, group in sections)


def _names(rows: list[NotModelled]) -> str:
    files = groupby(rows, key=lambda one: one.setting.file)
    return "; ".join(f"{file}: {', '.join(map(_named, group))}" for file, group in files)


def _named(one: NotModelled) -> str:
    path = one.setting.path
    last = next((at for at in range(len(path) - 1, 0, -1) if not path[at].isdigit()), 0)
    return f"{'.'.join(path[last:])} ({one.setting.line})"


def _one_line(text: str) -> str:
    return " ".join(text.split())
