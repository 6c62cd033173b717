"""Runs of very many flows: what grows with them, and what does not."""

from __future__ import annotations

import copy
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import airpath
from airpath import _core
from airpath.report import write_report
from airpath.report.entries import MOST_ENTRIES, compared, tables
from airpath.report.render import library
from airpath.report.setup import given, setup
from airpath.runs import describe, provenance
from airpath.runs.provenance import named_files
from airpath.runs.results import Run
from conftest import DOWNLINK

FEW, MANY = 3, 400
SHORT = {"run.duration_s": 0.2}


def scenario(flows: int) -> str:
    """A scenario with so many flows through one link."""
    link = '[[path.down]]\nstage = "link"\nrate_mbps = 10\n'
    back = '[[path.up]]\nstage = "delay"\ndelay_ms = 5\n'
    each = [f'[[flow]]\nkind = "bulk"\nid = "f{index}"\n' for index in range(flows)]
    return f"[run]\nduration_s = 0.2\n{link}{back}{''.join(each)}"


def made(place: Path, flows: int) -> Run:
    """Such a run, from its directory."""
    file = place / f"{flows}.toml"
    file.write_text(scenario(flows))
    airpath.run(file, out=place / f"run-{flows}")
    return Run.open(place / f"run-{flows}")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, Run]:
    """A run of few flows, and one of many."""
    place = tmp_path_factory.mktemp("runs")
    return made(place, FEW), made(place, MANY)


def test_metadata_of_tables_do_not_grow_with_the_flows(runs: tuple[Run, Run]) -> None:
    few, many = (
        [
            {
                key: len(value)
                for key, value in pl.read_parquet_metadata(file).items()
                if key.startswith("airpath.")
            }
            for file in sorted(run.directory.glob("*.parquet"))
        ]
        for run in runs
        if run.directory is not None
    )
    assert few == many
    assert len(few) > 5
    # Which scenario it was is still said.
    assert all(one["airpath.scenario_sha256"] == 64 for one in few)


def page_of(run: Run, place: Path) -> str:
    write_report([run], place / "page.html")
    return (place / "page.html").read_text().replace(library(), "")


def test_a_page_of_many_flows_lists_the_largest_and_says_so(
    runs: tuple[Run, Run], tmp_path: Path
) -> None:
    few, many = runs
    page = page_of(many, tmp_path)
    assert "scenario.toml has 390 [[flow]] more." in page
    assert "350 others, in sum" in page
    assert "370 more flows that carried less" in page
    assert len(page) < len(page_of(few, tmp_path)) + 300_000
    # What is left out does not make the page longer.
    more = copy.copy(many)
    more.summary = copy.deepcopy(many.summary)
    least = min(more.summary["flows"], key=lambda flow: flow["bytes_delivered"])
    more.summary["flows"] += [{**least, "id": f"g{at}"} for at in range(MANY)]
    toml = many.scenario_toml
    more.scenario_toml = toml + toml[toml.index("\n[[flow]]") :]
    assert abs(len(page_of(more, tmp_path)) - len(page)) < 100


def test_the_others_are_summed_up(runs: tuple[Run, Run]) -> None:
    _, many = runs
    (table, *_) = tables(many)
    at = list(table.heads).index("retransmitted segments")
    cells = [float(row[at].replace("\u202f", "") or 0) for row in table.rows]
    assert len(cells) == MOST_ENTRIES + 1
    assert sum(cells) == sum(flow["retransmitted_segments"] or 0 for flow in many.summary["flows"])
    listed = {row[0] for row in table.rows[:-1]}
    by_bytes = sorted(many.summary["flows"], key=lambda flow: -flow["bytes_delivered"])
    assert by_bytes[0]["id"] in listed
    assert by_bytes[-1]["id"] not in listed
    assert len(compared([many], ["a"]).rows) < 9 * (MOST_ENTRIES + 3)


def test_sentences_compare_no_flow_with_every_other(runs: tuple[Run, Run]) -> None:
    """Each flow is asked for what it carried, and that once."""

    class Counted(dict[str, Any]):
        compared = 0

        def __eq__(self, other: object) -> bool:
            Counted.compared += 1
            return super().__eq__(other)

        __hash__ = None

    summary = copy.copy(runs[1].summary)
    summary["flows"] = [Counted(flow) for flow in summary["flows"]]  # type: ignore[misc]
    said = describe.sentences(summary)
    assert f"and {MANY - 30} more flows that carried less" in said
    assert Counted.compared <= MANY


def test_of_many_pings_the_first_are_told_of(runs: tuple[Run, Run]) -> None:
    summary = copy.copy(runs[0].summary)
    summary["pings"] = [
        {"id": f"p{at}", "sent": 1, "lost": 1, "rtt_ms": None, "ci95": {}, "values": {}}
        for at in range(MANY)
    ]
    said = describe.sentences(summary)
    assert said[-1] == "and 370 more pings"
    assert len(said) < 40


def test_a_long_scenario_is_parsed_a_bounded_number_of_times(
    runs: tuple[Run, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: Counter[str] = Counter()
    parse = _core.parse

    def counted(text: str, *more: Any) -> Any:
        parsed["characters"] += len(text)
        return parse(text, *more)

    monkeypatch.setattr(_core, "parse", counted)
    given.cache_clear()
    found = setup(runs[1])
    assert found.left_out == "390 [[flow]]"
    assert found.given.count("[[flow]]") == 10
    assert "fixed_window_segments" not in found.given
    assert parsed["characters"] < 1 << 23


def test_a_few_flows_are_shown_whole(runs: tuple[Run, Run]) -> None:
    found = setup(runs[0])
    assert found.left_out == ""
    assert found.toml == runs[0].scenario_toml


def test_a_run_of_many_flows_is_short_in_a_shell(runs: tuple[Run, Run]) -> None:
    assert len(repr(runs[1])) < 300
    assert repr(runs[1]).endswith(f"and {MANY - 20} more>")
    assert repr(airpath.run(DOWNLINK, SHORT)).endswith("flows download>")


def test_a_scenario_that_reads_no_file_is_not_parsed_to_list_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parsed: list[str] = []

    def named(toml: str) -> list[str]:
        parsed.append(toml)
        return list(named_files(toml))

    monkeypatch.setattr(provenance, "named_files", named)
    assert provenance.input_files(_core.parse(scenario(MANY), "many", None, [])) == []
    assert parsed == []
    one_that_reads = airpath.scenario.load("trace-driven")
    assert "file = " in one_that_reads.resolved_toml
    provenance.input_files(one_that_reads)
    assert parsed == [one_that_reads.resolved_toml]
