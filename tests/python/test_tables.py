"""The reference of tables names every column of every table, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import airpath
from airpath.runs.tables import TABLES

PAGE = (Path(__file__).parents[2] / "docs/reference/tables.md").read_text(encoding="utf-8")
OF_RUNS, OF_CAMPAIGNS = PAGE.split("\n# Tables of campaigns\n")
SECTIONS = {part.split("\n")[0]: part for part in OF_RUNS.split("\n## ")[1:]}
STREAMS = {"run.duration_s": 2, "flow.0.streams": 2}
SETS = {"run.ack_table": True, "run.radio_log": True, "run.duration_s": 2}
RUNS = [("lte-20", SETS), ("proxy", {"run.duration_s": 2}), ("wire", STREAMS)]


def test_every_table_is_on_the_page() -> None:
    assert sorted(SECTIONS) == sorted(TABLES)


@pytest.mark.parametrize(("scenario", "sets"), RUNS)
def test_every_column_is_on_the_page(scenario: str, sets: dict[str, object]) -> None:
    run = airpath.run(scenario, sets)
    for name in filter(run.has_table, TABLES):
        rows = re.findall(r"^\| `(\w+)` \|.*\| (.+) \|$", SECTIONS[name], re.MULTILINE)
        table = run.table(name).drop("seed")
        assert [column for column, _ in rows] == table.columns, name
        for column, null in rows:
            assert null != "never" or table[column].null_count() == 0, f"{name}.{column}"


def test_all_tables_were_looked_at() -> None:
    """Between them the scenarios have each table."""
    runs = [airpath.run(scenario, sets) for scenario, sets in RUNS]
    assert all(any(run.has_table(name) for run in runs) for name in TABLES)


def test_every_column_of_a_campaign_is_on_the_page(tmp_path: Path) -> None:
    sections = {
        part.split("\n")[0].removesuffix(" (of a campaign)"): part
        for part in OF_CAMPAIGNS.split("\n## ")[1:]
    }
    assert sorted(sections) == ["links", "pings", "runs"]
    campaign = airpath.sweep(
        {
            "title": "two queues",
            "scenario": "bufferbloat",
            "set": ["run.duration_s=2"],
            "seeds": 1,
            "vary": [{"key": "path.down.0.queue_packets", "name": "queue", "values": [20, 40]}],
        },
        out=tmp_path / "campaign",
        workers=1,
    )
    first = ["run", "cell", "scenario", "seed", "queue"]
    for name, section in sections.items():
        more = ["key", "explained"] if name == "runs" else []
        found = campaign.table(name).drop(*first, *more)
        rows = re.findall(r"^\| `(\w+)` \|.*\| (.+) \|$", section, re.MULTILINE)
        assert [column for column, _ in rows] == found.columns, name
        for column, null in rows:
            assert null != "never" or found[column].null_count() == 0, f"{name}.{column}"
