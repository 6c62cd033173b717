"""What the report says: from runs to the words and tables of the template."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NotRequired, TypedDict, cast

from airpath.base.text import count, digits, milliseconds, moment, plural
from airpath.plots import figures
from airpath.plots.data import run_labels
from airpath.plots.figure import Table
from airpath.report.entries import compared, tables
from airpath.report.network import network
from airpath.report.render import charts_json
from airpath.report.setup import Setup, differences, parameters, setup
from airpath.runs import describe
from airpath.runs.tables import NS_PER_S

if TYPE_CHECKING:
    from airpath.runs.document import Provenance, RunDocument, Source
    from airpath.runs.results import Run

_MOST_NAMED = 3
MOST_EVENTS = 100
"""Events listed for each run; the tables have them all."""


def context(runs: Sequence[Run]) -> dict[str, object]:
    """Everything that the template shows."""
    setups = [setup(run) for run in runs]
    drawn = figures(runs)
    labels = run_labels(runs)
    several = len(runs) > 1
    titles = list(dict.fromkeys(run.title for run in runs))
    return {
        "title": _title(titles, labels),
        "several": several,
        "runs": [_run(*each) for each in zip(runs, setups, labels, strict=True)],
        "results": compared(runs, labels),
        "differences": Table(["scenario key", *labels], differences(setups)),
        # Runs side by side begin with all of them in one chart.
        "overlay": [figure for figure in drawn if several and figure.id == "timeline"],
        "figures": [figure for figure in drawn if not several or figure.id != "timeline"],
        "charts": charts_json(drawn),
    }


def _title(titles: Sequence[str], labels: Sequence[str]) -> str:
    """The scenario's title; of runs side by side with what differs, or each scenario's title."""
    if len(labels) == 1:
        return titles[0]
    against = " against ".join(labels) if len(labels) <= _MOST_NAMED else f"{len(labels)} runs"
    if len(titles) == 1:
        return f"{titles[0]}: {against}"
    if len(titles) > _MOST_NAMED:
        return f"{titles[0]} against {len(titles) - 1} other scenarios"
    named = " against ".join(titles)
    return named if len(titles) == len(labels) else f"{named}: {len(labels)} runs"


def _run(run: Run, scenario: Setup, label: str) -> dict[str, object]:
    summary, record = run.summary, run.provenance
    seeds = run.seeds
    again = describe.AGAIN if describe.is_resimulated(summary) else ""
    return {
        "label": label,
        "title": run.title,
        "place": "" if run.directory is None else str(run.directory),
        "id": run.id,
        "version": record["version"],
        "seeds": str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}",
        "count": len(seeds),
        "lasted": f"{digits(summary['run']['duration_s'] / len(seeds))} s {_driver(record)}",
        "partial": describe.partial(summary),
        "sentences": [sentence.partition(": ")[::2] for sentence in _sentences(run)],
        "findings": [
            {
                **finding,
                "name": finding["cause"],
                "evidence": _sentence(finding["evidence"]),
                "bars": describe.before_and_after(
                    finding, summary.get("tried", []), resimulated=again != ""
                ),
                "sets": describe.set_options(finding["set"] or []),
                "costs": [
                    f"{describe.gain_name(cost)}{again}: {describe.gain_text(cost)}"
                    for cost in finding["costs"]
                ],
            }
            for finding in summary["findings"]
        ],
        "explained": summary.get("explained"),
        "resimulated": again != "",
        "command": "emulate" if record.get("driver") == "emulate" else "run",
        "measured": _measured(summary),
        "tried": _tried(summary),
        "short_tests": [_sentence(line) for line in _short_tests(summary)],
        "parameters": parameters(scenario.tables, scenario.given_tables),
        "network": network(run),
        "tables": tables(run),
        **_events(run),
        "provenance": _provenance(run),
        "given_toml": scenario.given,
        "scenario_toml": scenario.toml,
        "scenario_left_out": scenario.left_out,
    }


def _sentences(run: Run) -> list[str]:
    if "measured" not in run.summary:
        return describe.sentences(run.summary)
    from airpath.measure.sentences import overview

    return overview(run.summary["measured"])


def _measured(summary: RunDocument) -> dict[str, object] | None:
    """The effects and phases of a measurement; None for another run."""
    if "measured" not in summary:
        return None
    from airpath.measure.sentences import effects_table, phases_table

    measured = summary["measured"]
    return {
        "effects": Table(*effects_table(measured)),
        "phases": Table(*phases_table(summary)),
        "undecided": measured["undecided"],
    }


def _short_tests(summary: RunDocument) -> list[str]:
    causes, _ = describe.causes_and_bounds(summary)
    return [] if causes else describe.short_tests(summary.get("tried", []))


def _tried(summary: RunDocument) -> Table:
    rows = [
        [one["cause"], one["subject"], " ".join(one["set"]), one["outcome"]]
        for one in summary.get("tried", [])
    ]
    return Table(["tried for", "at", "change", "outcome"], rows)


def _sentence(text: str) -> str:
    """Start with a capital, unless the first word is an id."""
    return text if "." in text.split(" ", 1)[0] else text[:1].upper() + text[1:]


class _Event(TypedDict):
    """A row of the table of events, as far as its details go."""

    kind: str
    reason: str | None
    cell: NotRequired[str | None]
    packets: int | None
    cwnd_segments: float | None
    value: float | None


def _events(run: Run) -> dict[str, object]:
    import polars as pl

    events = run.events.filter(pl.col("seed") == run.seeds[0]).sort("time_ns")
    rows = [
        [
            f"{row['time_ns'] / NS_PER_S:.3f}",
            row["flow"] or row["link"] or "",
            str(row["kind"]).replace("_", " "),
            ", ".join(_event_details(cast("_Event", row))),
        ]
        for row in events.head(MOST_EVENTS).to_dicts()
    ]
    left_out = max(0, events.height - MOST_EVENTS)
    return {"events": Table(["time (s)", "", "event", ""], rows), "events_left_out": left_out}


def _event_details(row: _Event) -> Iterator[str]:
    for text in (row.get("reason"), row.get("cell")):
        if text:
            yield text.replace("_", " ")
    if row["packets"] is not None:
        yield plural(row["packets"], "packet")
    if row["cwnd_segments"] is not None:
        yield f"cwnd {count(row['cwnd_segments'])}"
    if (value := row["value"]) is not None:
        names = {
            "recovery_start": f"ssthresh {count(value)}",
            "slow_start_exit": f"srtt {milliseconds(value)}",
            "retransmission_timeout": f"RTO {milliseconds(value)}",
            "handover_complete": f"after {milliseconds(value)}",
        }
        yield names.get(row["kind"], digits(value))


def _provenance(run: Run) -> list[tuple[str, str]]:
    record = run.provenance
    machine = record.get("platform") or {}
    command = record.get("command")
    driver = record.get("driver") or "simulate"
    clock = "virtual" if driver == "simulate" else "real"
    rows = [
        ("run", run.id),
        ("driver", f"{driver} ({clock} clock)"),
        ("version", str(record["version"])),
        ("commit", _commit(record["source"])),
        ("core", str(record.get("core_sha256") or "")),
        ("scenario sha256", str(record["scenario"]["sha256"])),
        ("command", " ".join(command) if command else "from Python"),
        ("started", moment(str(record.get("started", "")))),
        ("took", f"{digits(run.summary['run']['wall_s'])} s"),
        ("simulated events", count(run.summary["run"]["events"])),
        ("Python", str(record.get("python", ""))),
        ("platform", " ".join(str(value) for value in machine.values() if value)),
    ]
    return [(name, value) for name, value in rows if value]


def _commit(source: Source | None) -> str:
    if source is None:
        return ""
    return source["commit"] if source["clean"] else f"{source['commit']}, with changes"


def _driver(provenance: Provenance) -> str:
    """What happened to the scenario; old runs without the word were simulated."""
    drivers = {"emulate": "emulated", "measure": "measured"}
    return drivers.get(provenance.get("driver") or "", "simulated")
