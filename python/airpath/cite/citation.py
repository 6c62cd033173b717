"""A paragraph for the methods section and an entry for BibTeX."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from airpath.base.text import moment, plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airpath.campaign.results import Campaign
    from airpath.runs.document import Provenance, Source
    from airpath.runs.results import Run
    from airpath.study.definition import Study

_HOME = "https://github.com/airpath/airpath"
_SHORT = 12


def software() -> tuple[str, str]:
    """Cite airpath itself: a paragraph, and BibTeX."""
    from airpath import _core
    from airpath.runs.source import source

    commit = source()
    what = build(_core.__version__, commit, None)
    fields = [("note", f"Commit {commit['commit']}" if commit else ""), ("url", _HOME)]
    return f"We used {what}.", _entry("software", "airpath", _TITLE, fields)


def run(of: Run) -> tuple[str, str]:
    """Cite a run: a paragraph, and BibTeX."""
    record = of.provenance
    driver = record.get("driver") or "simulate"
    scenario = record["scenario"]
    sentences = [
        f"{_DRIVERS[driver][0].format(scenario=scenario['name'])} "
        f"(SHA-256 {scenario['sha256'][:_SHORT]}) with "
        f"{build(record['version'], record.get('source'), record.get('core_sha256'))}, "
        f"{_seeds(record['seeds'])}{_machine(record)}.",
        *(
            f"It reads {each['name']} (SHA-256 {each['sha256'][:_SHORT]})."
            for each in record.get("files", [])
        ),
        *(
            f"The congestion control of {flow} was our own: {code}."
            for flow, code in record.get("congestion", {}).items()
        ),
        _DRIVERS[driver][1] if not record.get("congestion") else "",
    ]
    if of.partial:
        sentences.append(f"The run is partial: {'; '.join(of.partial)}.")
    started = record.get("started") or ""
    fields = [("year", started[:4]), ("note", f"Run {of.id}, started {moment(started)}")]
    return " ".join(filter(None, sentences)), _entry(
        "misc", f"airpath-{of.id}", f"{of.title} (airpath run)", fields
    )


def campaign(of: Campaign) -> tuple[str, str]:
    """Cite a campaign: a paragraph, and BibTeX."""
    about = of.document
    runs = of.table("runs")
    # A key is the hash of a scenario with all its values, a seed, and the program.
    keys = hashlib.sha256("\n".join(sorted(runs["key"])).encode()).hexdigest()
    text = (
        f"The campaign “{about['name']}” ran {plural(about['done'], 'simulation')} of "
        f"{plural(about['cells'], 'cell')} ({', '.join(about['scenarios'])}; varied: "
        f"{', '.join(about['axes']) or 'nothing'}; {_seeds(sorted(set(runs['seed'])))}; SHA-256 of "
        f"the runs' keys {keys[:_SHORT]}) with "
        f"{build(about['version'], about.get('source'), about['core_sha256'])}."
    )
    if not about["complete"]:
        text += f" It is not complete: {about['done']} of {about['runs']} runs are done."
    fields = [("year", about["started"][:4]), ("note", f"Started {moment(about['started'])}")]
    return text, _entry("misc", f"airpath-{about['name']}", f"{about['title']} (campaign)", fields)


def study(of: Study) -> tuple[str, str]:
    """Cite a study of airpath: a paragraph, and BibTeX."""
    from airpath import _core
    from airpath.runs.source import source

    text = (
        f"We ran airpath's reading of a published experiment, “{of.id}” ({of.title}), with "
        f"{build(_core.__version__, source(), None)}, "
        f"{plural(of.repeat, 'seed')} for each figure: `airpath reproduce {of.id}`. "
        f"Its source: {of.source.strip()} Cite the source itself, too."
    )
    return text, _entry("misc", f"airpath-{of.id}", f"{of.title} (airpath study)", [("url", _HOME)])


def build(version: str, source: Source | None, core: str | None) -> str:
    """Name the program: version, commit, compiled module."""
    parts = ["commit unknown" if source is None else f"commit {source['commit'][:_SHORT]}"]
    if source is not None and not source["clean"]:
        parts.append("with changes that are not committed")
    if core:
        parts.append(f"core {core[:_SHORT]}")
    return f"airpath {version} ({', '.join(parts)})"


def doubt(source: Source | None) -> str | None:
    """Say why nobody else can obtain this build; None if everybody can."""
    if source is None:
        return "the commit of airpath is unknown: whoever reads the citation cannot obtain it"
    if source["clean"]:
        return None
    return (
        f"airpath had changes that commit {source['commit'][:_SHORT]} does not have: commit them "
        "and run again before you cite"
    )


_TITLE = "airpath: a laboratory for {TCP} over mobile radio"
_DRIVERS = {
    "simulate": (
        "We simulated the scenario “{scenario}”",
        "`airpath run scenario.toml` with the same version and seeds makes the same tables, byte "
        "for byte.",
    ),
    "emulate": (
        "We emulated the scenario “{scenario}” over the kernel's TCP",
        "It ran on the real clock, so that repeats differ.",
    ),
    "measure": (
        "We measured a path, “{scenario}”,",
        "It is a measurement on the real clock of a real path.",
    ),
}


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed {seeds[0]}" if len(seeds) == 1 else f"seeds {seeds[0]} to {seeds[-1]}"


def _machine(record: Provenance) -> str:
    machine = record.get("platform") or {}
    said = " ".join(filter(None, (machine.get(key) for key in ("system", "release", "machine"))))
    return f", on {said}" if said else ""


def _entry(kind: str, key: str, title: str, fields: Sequence[tuple[str, str]]) -> str:
    from airpath import _core

    rows = [
        ("title", title), ("author", "{airpath maintainers}"), *fields,
        ("version", _core.__version__),
    ]  # fmt: skip
    lines = [f"  {name} = {{{value}}}," for name, value in rows if value]
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])
