"""Running and run directories."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import airpath
from airpath.drivers import simulate
from airpath.drivers.options import SimulationOptions
from airpath.errors import AirpathError, InputError
from airpath.runs.results import Run
from conftest import DOWNLINK

NAME = DOWNLINK


def test_a_run_in_memory_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = airpath.run(NAME)
    assert run.flows["flow"].to_list() == ["download", "ping"]
    assert run.samples["seed"].unique().to_list() == [1]
    assert run.directory is None
    assert list(tmp_path.iterdir()) == []


def test_tables_are_shared_not_copied() -> None:
    from airpath import _core
    from airpath.runs.tables import result_table

    result = _core.simulate(airpath.load(NAME), 1)
    frames = [result_table(result, "samples") for _ in range(2)]
    columns = [frame["goodput_mbps"] for frame in frames if frame is not None]
    here, there = (column.to_numpy(allow_copy=False).ctypes.data for column in columns)
    assert here == there


def test_a_run_directory_reads_back(tmp_path: Path) -> None:
    written = airpath.run(NAME, out=tmp_path / "run")
    read = Run.open(tmp_path / "run")
    assert read.summary == written.summary
    assert read.seeds == [1]
    assert read.scenario_toml == written.scenario_toml
    assert read.samples.equals(written.samples)
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert {"scenario.toml", "summary.json", "provenance.json", "flows.parquet"} <= names


def test_several_seeds_have_a_directory_each(tmp_path: Path) -> None:
    run = airpath.run(NAME, seed=7, repeat=3, workers=2, out=tmp_path / "run")
    assert run.seeds == [7, 8, 9]
    assert run.samples["seed"].unique().sort().to_list() == [7, 8, 9]
    seeds = sorted(path.name for path in (tmp_path / "run").iterdir() if path.is_dir())
    assert seeds == ["seed-7", "seed-8", "seed-9"]
    each = json.loads((tmp_path / "run/seed-8/summary.json").read_text())
    assert each["run"]["seed"] == 8


def test_the_mean_of_seeds_has_an_interval() -> None:
    run = airpath.run(NAME, repeat=4)
    flow: Any = run.summary["flows"][0]
    low, high = flow["ci95"]["goodput_mbps"]
    assert low <= flow["goodput_mbps"] <= high
    assert len(flow["values"]["goodput_mbps"]) == 4
    assert flow["ci95"]["rtt_ms"]["p50"][0] <= flow["rtt_ms"]["p50"]
    assert flow["slow_start_exit"]["reason"] == "delay"
    assert run.summary["run"]["seeds"] == [1, 2, 3, 4]


def test_workers_do_not_change_the_result() -> None:
    one = airpath.run(NAME, repeat=6, workers=1)
    four = airpath.run(NAME, repeat=6, workers=4)
    assert one.samples.equals(four.samples)
    assert one.summary["flows"] == four.summary["flows"]
    assert one.findings == four.findings


def test_sets_may_be_a_dictionary_or_a_list() -> None:
    one = airpath.load(NAME, {"flow.0.window_bytes": 20_000, "run.ack_table": True})
    two = airpath.load(NAME, ["flow.0.window_bytes=20000", "run.ack_table=true"])
    assert one.sha256 == two.sha256


def test_default_directories_are_numbered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "airpath.drivers.simulate.default_name", lambda stem, short: f"{stem}-{short[:6]}"
    )
    scenario = airpath.load(NAME)
    names = [
        simulate.execute(scenario, SimulationOptions(parent=tmp_path / "runs")).directory
        for _ in range(3)
    ]
    first = names[0]
    assert first is not None
    assert first.name.startswith("downlink-")
    assert [name.name for name in names if name] == [
        first.name, f"{first.name}-2", f"{first.name}-3",
    ]  # fmt: skip


def test_an_occupied_directory_is_refused_and_untouched(tmp_path: Path) -> None:
    out = tmp_path / "run"
    out.mkdir()
    (out / "precious").write_text("mine")
    with pytest.raises(InputError, match="not empty"):
        airpath.run(NAME, out=out)
    assert [path.name for path in tmp_path.rglob("*")] == ["run", "precious"]


def test_an_empty_directory_is_used(tmp_path: Path) -> None:
    out = tmp_path / "run"
    out.mkdir()
    assert airpath.run(NAME, out=out).directory == out


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Any, directory: str, metadata: dict[str, str]) -> list[tuple[str, str]]:
        return [(name, "No space left on device") for name in self.table_names()]

    monkeypatch.setattr("airpath._core.Result.write_parquet", full)
    with pytest.raises(AirpathError, match="No space left on device") as caught:
        airpath.run(NAME, repeat=3, out=tmp_path / "deep/run")
    assert caught.value.exit_code == 1
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_stops_every_thread_and_leaves_nothing(tmp_path: Path) -> None:
    scenario = airpath.load(NAME, {"run.duration_s": 1e7, "run.sample_interval_ms": 1e5})

    def interrupt(share: float) -> None:
        raise KeyboardInterrupt

    out = tmp_path / "run"
    options = SimulationOptions(repeat=3, workers=2, out=out, progress=interrupt)
    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        simulate.execute(scenario, options)
    assert threading.active_count() == before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [({"repeat": 0}, "repeat"), ({"seed": -1}, "seed"), ({"workers": 0}, "workers")],
)
def test_nonsense_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        airpath.run(NAME, **options)


def test_a_missing_table_says_how_to_get_it() -> None:
    with pytest.raises(AirpathError, match=r"run\.ack_table = true"):
        _ = airpath.run(NAME).acks


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda run: (run / "summary.json").unlink(), "has no summary.json"),
        (lambda run: (run / "summary.json").write_text('{"run'), "damaged"),
        (lambda run: (run / "summary.json").write_text("{}"), "not an airpath run"),
        (lambda run: (run / "provenance.json").write_bytes(b"\xff\xfe"), "not text"),
    ],
)
def test_a_damaged_run_is_named(tmp_path: Path, spoil: Any, message: str) -> None:
    airpath.run(NAME, out=tmp_path / "run")
    spoil(tmp_path / "run")
    with pytest.raises(InputError, match=message):
        Run.open(tmp_path / "run")


def test_a_damaged_table_is_named(tmp_path: Path) -> None:
    airpath.run(NAME, out=tmp_path / "run")
    (tmp_path / "run/flows.parquet").write_bytes(b"PAR1 and then nothing")
    run = Run.open(tmp_path / "run")
    with pytest.raises(InputError, match=r"flows\.parquet is damaged"):
        _ = run.flows


def test_the_identity_of_a_run_depends_on_what_decides_it() -> None:
    identities = {
        airpath.run(NAME).id,
        airpath.run(NAME, seed=2).id,
        airpath.run(NAME, repeat=2).id,
        airpath.run(NAME, {"flow.0.window_bytes": 9000}).id,
    }
    assert len(identities) == 4
    assert airpath.run(NAME).id in identities


def test_frames_are_ordinary_polars() -> None:
    run = airpath.run(NAME)
    mean = run.samples.filter(pl.col("flow") == "download")["goodput_mbps"].mean()
    assert mean == pytest.approx(run.summary["flows"][0]["goodput_mbps"])
