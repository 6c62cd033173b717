"""What guides list is what there is, and the figures that they give are what comes out.

Blocks between ``<!-- NAME: generated -->`` and ``<!-- end -->`` are rewritten by
``AIRPATH_BLESS=1 python -m pytest tests/python/test_docs.py``.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import airpath
from airpath import _core
from airpath.base.text import digits, milliseconds
from airpath.runs.document import RunDocument
from airpath.runs.summary import lookup
from airpath.scenario import load, shipped_scenarios
from airpath.study.definition import load_study
from airpath.study.relations import condition_text, variant_value
from airpath.study.verdicts import VERDICTS
from airpath_dev.harness import table
from airpath_dev.twin.rows import ROWS
from conftest import Command

pytestmark = pytest.mark.unhurried

ROOT = Path(__file__).parents[2]
GUIDES = ROOT / "docs/guides"


def scenarios() -> str:
    return table(["name", ""], [[f"`{name}`", load(name).title] for name in shipped_scenarios()])


def profiles() -> str:
    default, *others = (f"`{name}`" for name in _core.profiles())
    return f"{default} is the default; the others are {', '.join(others)}."


def twins() -> str:
    return table(["twin", "", "scenario"], [[r.name, r.shape, f"`{r.scenario}`"] for r in ROWS])


def faults() -> str:
    """What each fault of the host of 5g-drx does."""
    return variants("5g-drx", "external-server-collapse", "fault")


def candidates() -> str:
    """What each fault that might explain the uplink of lte-private does."""
    return variants("lte-private", "up-window", "fault")


def variants(name: str, figure_id: str, head: str) -> str:
    """The variants of a shape, the mean of the seeds of each condition's metric."""
    study = load_study(name)
    figure = next(each for each in study.figures if each.id == f"{name}/{figure_id}")
    conditions = figure.shape["conditions"]
    bounds = [condition_text(each).removeprefix("at most ") for each in conditions]
    rows = [["*limit*", *(f"*{bound}*" for bound in bounds)]]

    @cache
    def summary(sets: tuple[str, ...]) -> RunDocument:
        path = study.directory / figure.scenario
        return airpath.run(path, [*figure.sets, *sets], repeat=study.repeat).summary

    def measure(sets: Sequence[str], path: str, scenario: str | None = None) -> list[Any]:
        assert scenario is None
        return [lookup(summary(tuple(sets)), path)]

    for variant in figure.shape["variants"]:
        values = (variant_value(variant, each, measure) for each in conditions)
        rows.append([variant["label"], *map(digits, values)])
    return table([head, *(condition["label"] for condition in conditions)], rows)


def verdicts() -> str:
    return table(["verdict", "of a", "meaning"], [list(verdict) for verdict in VERDICTS])


@pytest.mark.parametrize(
    ("guide", "made"),
    [
        ("scenarios.md", scenarios),
        ("scenarios.md", profiles),
        ("emulation.md", twins),
        ("studies.md", faults),
        ("studies.md", candidates),
        ("studies.md", verdicts),
    ],
)
def test_lists_are_complete(guide: str, made: Any) -> None:
    text = (GUIDES / guide).read_text(encoding="utf-8")
    pattern = rf"(<!-- {made.__name__}: generated -->\n).*?(<!-- end -->)"
    found = re.search(pattern, text, re.DOTALL)
    assert found
    fresh = text[: found.start()] + f"{found[1]}{made()}\n{found[2]}" + text[found.end() :]
    if "AIRPATH_BLESS" in os.environ:
        (GUIDES / guide).write_text(fresh, encoding="utf-8")
        return
    assert fresh == text, f"{guide} is out of date; see the top of {Path(__file__).name}"


def test_every_stage_and_kind_of_flow_is_explained() -> None:
    schema = json.loads(_core.schema())["$defs"]
    stages = {each["properties"]["stage"]["const"] for each in schema["stage"]["oneOf"]}
    kinds = {each["properties"]["kind"]["const"] for each in schema["flow"]["oneOf"]}
    text = (GUIDES / "scenarios.md").read_text(encoding="utf-8")
    for heading, wanted in (("## Stages", stages), ("## Traffic", kinds)):
        section = text.partition(heading)[2].partition("\n## ")[0]
        rows = re.findall(r"^\| (`.*?`) \|", section, re.MULTILINE)
        assert {name for row in rows for name in re.findall(r"`([\w-]+)`", row)} == wanted


def test_the_caption_of_the_readme_is_what_comes_out() -> None:
    caption = (ROOT / "README.md").read_text(encoding="utf-8").partition("*`airpath run buff")[2]
    caption = " ".join(caption.partition("*\n")[0].split())

    def ping(**sets: object) -> str:
        run = airpath.run("bufferbloat", {f"path.down.0.{key}": to for key, to in sets.items()})
        rtt = run.summary["pings"][0]["rtt_ms"]
        assert rtt is not None
        return milliseconds(rtt["p50"])

    assert f"a ping takes {ping()} (median)" in caption
    assert f"with 15 kB of buffer the ping takes {ping(queue_packets=10)}" in caption
    assert f"with CoDel {ping(aqm='codel')}" in caption


def test_the_readme_says_how_fast_as_the_page_of_speed_does() -> None:
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    page = (GUIDES / "speed.md").read_text(encoding="utf-8")

    def times(row: str, column: int) -> str:
        cells = next(line for line in page.splitlines() if line.startswith(f"| {row}")).split("|")
        return cells[column].strip()

    wire = times("1 flow, 230 Mb/s, 30 ms  | airpath", 5)
    fast = times("1 flow, 1000 Mb/s, 20 ms | airpath", 5)
    cell = times("plain TCP ", 5)
    assert (
        f"over a 230 Mb/s link runs {wire} times as fast as real time, one over a 1 Gb/s link "
        f"{fast} times, and one over a 100 MHz 5G cell {cell} times" in readme
    )


@pytest.mark.parametrize("arguments", [["bufferbloat"], ["random-loss", "--repeat", "10"]])
def test_getting_started_prints_what_the_command_prints(
    airpath_command: Command, arguments: list[str]
) -> None:
    guide = (GUIDES / "getting-started.md").read_text(encoding="utf-8")
    shown = guide.partition(f"    airpath run {' '.join(arguments)}\n")[2]
    block = re.search(r"(?:^|\n)\n((?:    .+\n)+)", shown)
    assert block
    lines = [line.removeprefix("    ") for line in block[1].splitlines()]
    printed = airpath_command("run", *arguments).stdout.splitlines()
    assert lines == printed[: len(lines)]


def test_a_packets_way_leads_along_files_that_are_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = text.partition("## A packet's way")[2].partition("\n## ")[0]
    simulated, emulated = section.partition("Emulated")[::2]
    for walk in (simulated, emulated):
        steps = re.findall(r"^\d+\. `([\w/.]+)` ", walk, re.M)
        assert 5 <= len(steps) <= 10
        for step in steps:
            assert (ROOT / step).is_file(), f"ARCHITECTURE.md: there is no {step}"


CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("diff", re.findall(r"^```diff\n(.*?)^```", CONTRIBUTING, re.M | re.S))
def test_what_an_addition_touches_is_what_is_there(diff: str) -> None:
    lines: list[str] = []
    for line in diff.splitlines():
        if line.startswith("+++ "):
            path = ROOT / line[4:]
            lines = [each.strip() for each in path.read_text(encoding="utf-8").splitlines()]
        else:
            assert line[1:].strip() in lines, f"CONTRIBUTING.md: {path} has no line {line[1:]}"


TEN_KEYS = (GUIDES / "ten-keys.md").read_text(encoding="utf-8")
TEN_RUNS = re.findall(r"^    airpath (run .+)\n\n    (.+)$", TEN_KEYS, re.MULTILINE)


@pytest.mark.parametrize(("command", "printed"), TEN_RUNS)
def test_the_ten_keys_do_what_their_page_says(
    airpath_command: Command, command: str, printed: str
) -> None:
    assert airpath_command(*command.split()).stdout.splitlines()[0] == printed


def test_the_ten_keys_are_ten_and_each_is_set_by_its_command() -> None:
    keys = re.findall(r"\*\*`(\w+) = ", TEN_KEYS)
    assert len(keys) == 10
    for key, (command, _) in zip(keys, TEN_RUNS, strict=True):
        assert f".{key}=" in command
