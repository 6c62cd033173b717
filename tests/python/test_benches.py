"""What changes are judged by: hashes of all tables, instructions a packet."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from airpath import scenario
from airpath.study.definition import study_names
from airpath_dev import ROOT, profiled
from airpath_dev.__main__ import COMMANDS
from airpath_dev.bench import aims, common, hashes, instructions, radio, report, speed, steps


class Result:
    """A result with one table."""

    def __init__(self, **columns: pl.Series) -> None:
        self._table = pl.DataFrame(columns)

    def table(self, name: str) -> pl.DataFrame:
        return self._table


def test_a_hash_is_of_the_schema_and_of_the_values() -> None:
    def digest(**columns: pl.Series) -> str:
        result: Any = Result(**columns)
        return hashes.digest(result, "t")

    def series(values: list[Any], kind: Any = None) -> pl.Series:
        return pl.Series(values, dtype=kind)

    known = digest(a=series([1.0, 0.0]))
    assert digest(a=series([1.0, 0.0])) == known
    others = [
        digest(b=series([1.0, 0.0])),
        digest(a=series([1.0, -0.0])),
        digest(a=series([1.0, None])),
        digest(a=series([1.0])),
        digest(a=series([1.0, 5e-324])),
        digest(a=series([1, 0], pl.Int64)),
        digest(a=series([1, 0], pl.UInt64)),
        digest(a=series([True, False])),
        digest(a=series(["1.0", "0.0"])),
        digest(a=series([1.0, 0.0]), b=series([1.0, 0.0])),
    ]
    assert known not in others
    assert len({*others}) == len(others)
    # Where one string ends and the next begins counts; how a dictionary is ordered does not.
    assert digest(a=series(["ab", "c"])) != digest(a=series(["a", "bc"]))
    assert digest(a=series(["", None])) != digest(a=series([None, ""]))
    few, many = (
        series(["x", "y", None], pl.Enum(categories)).cast(pl.Categorical)
        for categories in (["x", "y"], ["y", "z", "x"])
    )
    assert digest(a=few) == digest(a=many)


def test_hashes_are_the_same_twice_and_name_what_differs() -> None:
    job = next(hashes.jobs_of("wire", ["wire"]))
    lines = hashes.hashes(job)
    assert hashes.hashes(job) == lines
    names = [line.split()[1] for line in lines]
    assert names[-1] == "summary"
    assert {"acks", "events", "flows", "links", "samples"} <= {*names}
    other = hashes.Job("wire", "wire", ("flow.0.start_s=0.1",))
    different = {line.split()[1] for line in hashes.hashes(other)} - {
        line.split()[1] for line in lines if line in hashes.hashes(other)
    }
    assert {"acks", "samples", "summary"} <= different
    assert "pings" not in different


def test_every_figure_of_every_study_is_hashed() -> None:
    from airpath.study.definition import load_study, study_names

    for name in study_names():
        jobs = list(hashes.jobs_of(name, []))
        figures = {figure.id for figure in load_study(name).figures}
        assert {job.name.partition("#")[0] for job in jobs} == figures
        assert len({job.name for job in jobs}) == len(jobs)
        assert all(Path(job.scenario).is_file() for job in jobs)


SAID = """\
==77== Events    : Ir
==77== Collected : 123456789
==77==
==77== I   refs:      123,456,789
"""


def test_instructions_are_those_of_the_difference() -> None:
    """What both processes did at their start is not a packet's."""
    assert common.collected(SAID) == 123_456_789
    case = instructions.Case(
        "lte", instructions.Count(9_000_000, 1_000), instructions.Count(30_000_000, 11_000)
    )
    assert case.segments == 10_000
    assert case.per_packet == 2_100.0
    known = {
        "commit": "abc", "rustc": "rustc 1", "cpu": "x",
        "instructions_per_packet": {"lte": 2_000.0, "nr": 5.0},
    }  # fmt: skip
    table = instructions.render([case], known)
    assert "| LTE 20 MHz (lte-20) | 10,000  | 2,100.0               | 2,000.0  | +5.00% |" in table
    kept = instructions.recorded([case], known)["instructions_per_packet"]
    assert kept == {"lte": 2_100.0, "nr": 5.0}
    with pytest.raises(common.BenchError, match="no count"):
        common.collected("==77== Killed")


# A processor that is shared takes longer for the same work, a slower one for all of it.
@pytest.mark.real_clock
@pytest.mark.parametrize("scenario", ["nsa", "two-flows", "lte-20"])
def test_a_report_costs_little_beside_its_libraries(scenario: str) -> None:
    """The three that cost most while Vega's compiler ran for each of them; all: `make bench`."""
    assert report.cost(scenario).ratio < report.LIMIT


def test_the_table_of_aims_marks_what_was_not_measured_now() -> None:
    names = [*aims.CASES, *aims.CELLS, "command"]
    least = {name: {"cpu_s": 0.25, "ns_per_segment": 62.0} for name in names}
    least["wire, 4 flows"] = {"cpu_s": 0.25, "ns_per_segment": 65.0}
    kept: dict[str, Any] = {"date": "2026-11-25", "commit": "abc", "rows": [
        {"flows": 1, "ns_per_segment": 130.0}, {"flows": 4, "ns_per_segment": 110.0},
    ]}  # fmt: skip
    document = {"least": least, "instructions": {}, "memory_kb": 150_000, "htsim": kept}
    rows = aims.aims(document)
    met = [row.met for row in rows]
    assert met[:3] == [True, False, True]
    assert "not measured now: 2026-11-25, commit abc" in rows[0].htsim
    assert "65 / packet" in rows[0].htsim


def test_the_table_of_aims_scales_them_by_what_htsim_takes_here() -> None:
    names = [*aims.CASES, *aims.CELLS, "command", "htsim 1", "htsim 4"]
    least = {name: {"cpu_s": 0.25, "ns_per_segment": 1.5 * aims.HTSIM_NS} for name in names}
    least["wire"] = least["wire, 4 flows"] = {"cpu_s": 1, "ns_per_segment": 95.0}
    least["nr"] = {"cpu_s": 1, "ns_per_segment": 130.0}
    least["lte, 100"] = {"cpu_s": 1, "ns_per_segment": 530.0}
    document = {"least": least, "instructions": {}, "memory_kb": 150_000, "htsim": "measured"}
    rows = {row.case: row for row in aims.aims(document)}
    wire = rows["wire, 1 flow"]
    assert (wire.met, wire.scaled) == (False, True)
    assert wire.aim == "64, half of htsim's (96 here)"
    nr, lte = rows["NR n78, one UE"], rows["100 busy UEs, LTE"]
    assert (nr.met, nr.scaled, nr.aim) == (False, True, "90 (135 here)")
    assert (lte.met, lte.scaled, lte.aim) == (False, False, "350 (525 here)")


def test_what_is_measured_says_how_it_was_built(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where no profile can be made, the plain build is measured, and nobody overlooks that."""
    monkeypatch.setattr(profiled, "profiled", lambda *_: {"CARGO_TARGET_DIR": "there"})
    assert "with a profile" in common.builds(plain=False).said
    assert common.builds(plain=False).environment == {"CARGO_TARGET_DIR": "there"}
    assert "without a profile" in common.builds(plain=True).said
    assert common.builds(plain=True).environment is os.environ

    def missing(*_: Any) -> None:
        raise profiled.MissingError("llvm-profdata is missing: do this")

    monkeypatch.setattr(profiled, "profiled", missing)
    plain = common.builds(plain=False)
    assert plain.environment is os.environ
    assert plain.said.startswith("**airpath WITHOUT a profile")
    assert "llvm-profdata is missing: do this" in plain.said
    assert "WITHOUT A PROFILE: llvm-profdata is missing" in capsys.readouterr().err
    machine = {
        "date": "d",
        "cpu": "c",
        "rustc": "r",
        "commit": "x",
        "command": "airpath-dev bench-speed",
    }
    assert plain.said in speed.heading(machine, 1, plain.said)


def test_what_is_measured_is_not_built_of_training_that_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:

    def failed(*_: Any) -> None:
        raise profiled.ProfileError("training failed (exit code 1)")

    monkeypatch.setattr(profiled, "profiled", failed)
    with pytest.raises(common.BenchError, match="training failed"):
        common.builds(plain=False)


def test_the_sets_of_every_hashed_run_are_valid() -> None:
    """A study's variants belong to the scenarios that they are compared in."""
    for name in study_names():
        for job in hashes.jobs_of(name, []):
            scenario.load(job.scenario, [*job.sets])


class Programs:
    """Programs of Rust that need no building."""

    def program(self, name: str) -> Path:
        return Path(name)


def test_a_program_that_fails_costs_no_other_its_figures(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:

    def measure(command: list[str]) -> dict[str, float]:
        if "lte-20" in command:
            raise common.BenchError("out of luck")
        return {
            "cpu_s": 0.1, "steady_cpu_per_s": 0.01, "ns_per_segment": 200.0, "goodput_mbps": 600.0,
            "harq_retransmissions": 7, "delivered_segments": 5,
        }  # fmt: skip

    monkeypatch.setattr(radio, "measure", measure)
    results = common.Results({}, tmp_path / "speed.json")
    built: Any = Programs()
    radio.run(built, 2, False, results)
    assert results.end() == 1
    out, err = capsys.readouterr()
    assert "plain TCP" in out
    assert "nr-n78 | 1,000" in out
    assert err.endswith(": failed: radio, UEs, lte-20\n")
    kept = json.loads((tmp_path / "speed.json").read_text())
    assert [cell["preset"] for cell in kept["radio_ues"]] == ["nr-n78"]


def test_steps_that_fail_are_named_in_the_end(capfd: pytest.CaptureFixture[str]) -> None:

    def step(name: str, code: int, **more: bool) -> Any:
        program = f"print('figures of {name}'); raise SystemExit({code})"
        return steps.Step(name, (sys.executable, "-c", program), **more)

    here = [step("first", 1), step("page", 3), step("ns-3", 2, peer=True), step("last", 0)]
    assert steps.every([*here, steps.Step("gone", ("/nowhere/program",))]) == 1
    out, err = capfd.readouterr()
    names = ("first", "page", "ns-3", "last")
    assert out.splitlines() == [f"figures of {name}" for name in names]
    assert [line.partition(": ")[2] for line in err.splitlines()[-2:]] == [
        "left out: page, ns-3",
        "failed: first (exit code 1), gone (exit code 1)",
    ]
    assert steps.every(here[1:]) == 0
    # All that it runs is there.
    for each in steps.STEPS:
        files = [word for word in each.command if word.startswith("benches/") and "." in word]
        assert all((ROOT / file).is_file() for file in files)
        assert "airpath_dev" not in each.command or each.command[-1] in COMMANDS
