"""The installed command with the real simulator, in a process of its own."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from airpath.runs import provenance
from airpath.scenario import STUDIES, load
from conftest import DOWNLINK, PATIENCE_S, Command, command_environment, start_command, until

pytestmark = pytest.mark.unhurried

NOISY = "random-loss"
TABLES = {"flows", "samples", "links", "pings", "events", "rtt_histogram"}


def tables(run: Path) -> dict[str, str]:
    """Path and hash of every Parquet file of a run."""
    return {
        str(path.relative_to(run)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(run.rglob("*.parquet"))
    }


def test_every_shipped_scenario_runs_and_reports(
    core: Any, airpath_command: Command, tmp_path: Path
) -> None:
    names = [name for name, _ in core.shipped()]
    assert names
    for name in names:
        done = airpath_command("run", name, "--explain", "off", "--out", name)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("\n") >= 1
        assert {path.stem for path in (tmp_path / name).glob("*.parquet")} >= TABLES
    done = airpath_command("report", *names[:3], "-o", "report.html")
    assert done.returncode == 0, done.stderr


def test_same_scenario_and_seed_are_the_same_bytes(
    airpath_command: Command, tmp_path: Path
) -> None:
    for out in ("one", "two"):
        assert airpath_command("run", NOISY, "--out", out, "--seed", "5").returncode == 0
    assert len(tables(tmp_path / "one")) >= len(TABLES)
    assert tables(tmp_path / "one") == tables(tmp_path / "two")
    assert airpath_command("run", NOISY, "--out", "other", "--seed", "6").returncode == 0
    assert tables(tmp_path / "one") != tables(tmp_path / "other")


def test_workers_do_not_change_a_byte(airpath_command: Command, tmp_path: Path) -> None:
    for workers in ("1", "4"):
        done = airpath_command(
            "run", NOISY, "--repeat", "4", "--workers", workers, "--out", workers
        )
        assert done.returncode == 0, done.stderr
    assert len(tables(tmp_path / "1")) >= 4 * len(TABLES)
    assert tables(tmp_path / "1") == tables(tmp_path / "4")


def test_the_resolved_scenario_is_the_same_run(airpath_command: Command, tmp_path: Path) -> None:
    airpath_command("run", NOISY, "--set", "flow.0.window_bytes=50000", "--out", "one")
    done = airpath_command("run", "one/scenario.toml", "--out", "two")
    assert done.returncode == 0, done.stderr

    def rows(run: str) -> object:
        from airpath.runs.results import Run

        return Run.open(tmp_path / run).samples.rows()

    assert rows("one") == rows("two")


def test_json_is_one_document(airpath_command: Command, tmp_path: Path) -> None:
    done = airpath_command("run", "ping-under-load", "--json", "--out", "run")
    document = json.loads(done.stdout)
    assert document == json.loads((tmp_path / "run/summary.json").read_text())
    keys = {"id", "version", "seed", "scenario_sha256", "wall_s", "duration_s", "events"}
    assert keys <= document["run"].keys()
    flow = next(flow for flow in document["flows"] if flow["kind"] == "bulk")
    assert {
        "id", "kind", "direction", "congestion", "profile", "goodput_mbps", "rtt_ms",
        "retransmitted_segments", "rto_count", "steady_mbps", "converged_after_s",
        "slow_start_exit", "limited_s", "completed_s",
    } <= flow.keys()  # fmt: skip
    assert {"min", "mean", "p50", "p95", "p99"} <= flow["rtt_ms"].keys()
    assert {"id", "sent", "lost", "rtt_ms"} <= document["pings"][0].keys()
    assert "mdev" in document["pings"][0]["rtt_ms"]


def test_repeat_has_intervals(airpath_command: Command) -> None:
    done = airpath_command("run", NOISY, "--repeat", "3", "--json", "--out", "run")
    flow = json.loads(done.stdout)["flows"][0]
    low, high = flow["ci95"]["goodput_mbps"]
    assert low < flow["goodput_mbps"] < high
    assert len(flow["values"]["goodput_mbps"]) == 3


def test_an_occupied_directory_is_refused_and_untouched(
    airpath_command: Command, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/precious").write_text("mine")
    done = airpath_command("run", "wire", "--out", "run")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: run exists and is not empty; choose another --out or remove it\n"
    )
    assert [path.name for path in tmp_path.rglob("*")] == ["run", "precious"]


def test_a_directory_that_cannot_be_made_is_one_line(airpath_command: Command) -> None:
    done = airpath_command("run", "wire", "--out", "/proc/airpath/run")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: cannot write /proc/airpath/run: ")
    assert done.stderr.count("\n") == 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Any:
    """A file system of 64 kB."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("mounting a small tmpfs needs root and the package mount")
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if mounted.returncode != 0:
        pytest.skip(f"this machine does not let root mount a tmpfs: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_is_one_line_and_leaves_nothing(
    airpath_command: Command, small_disk: Path
) -> None:
    done = airpath_command("run", NOISY, "--repeat", "3", "--out", str(small_disk / "run"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "No space left on device" in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(small_disk.iterdir()) == []


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_run_leaves_nothing(
    core: Any, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    # Four simulated months: hours of work.
    sets = ["--set", "run.duration_s=10000000", "--set", "run.sample_interval_ms=100000"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    words = ("run", NOISY, *sets, "--repeat", "3")
    process = start_command(*words, cwd=tmp_path, **pipes, text=True)
    until(lambda: list(tmp_path.glob("runs/*.partial-*")))
    time.sleep(0.3)
    assert process.poll() is None, process.communicate()
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out) == (code, "")
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_leaves_is_no_error(core: Any, tmp_path: Path) -> None:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = start_command("scenario", "reference", cwd=tmp_path, **pipes)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.wait(timeout=PATIENCE_S) in {0, 1, 141}
    assert process.stderr.read() == b""
    process.stderr.close()


def test_duckdb_reads_the_tables(airpath_command: Command, tmp_path: Path) -> None:
    import duckdb

    airpath_command("run", NOISY, "--repeat", "2", "--out", "run")
    connection = duckdb.connect()
    count, mean = connection.execute(
        f"select count(*), avg(goodput_mbps) from '{tmp_path}/run/seed-*/samples.parquet'"
    ).fetchall()[0]
    assert count > 0
    assert mean > 0
    rows = connection.execute(
        f"select decode(key), decode(value) from "
        f"parquet_kv_metadata('{tmp_path}/run/seed-1/flows.parquet')"
    ).fetchall()
    connection.close()
    metadata = dict(rows)
    assert metadata["airpath.seed"] == "1"
    record = json.loads((tmp_path / "run/provenance.json").read_text())
    assert metadata["airpath.scenario_sha256"] == record["scenario"]["sha256"]


def test_provenance(airpath_command: Command, tmp_path: Path) -> None:
    airpath_command("run", "wire", "--seed", "9", "--out", "run")
    record = json.loads((tmp_path / "run/provenance.json").read_text())
    assert record["seeds"] == [9]
    assert record["command"][1:] == ["run", "wire", "--seed", "9", "--out", "run"]
    scenario = (tmp_path / "run/scenario.toml").read_text()
    assert len(record["scenario"]["sha256"]) == 64
    assert "duration_s" in scenario
    assert len(record["core_sha256"]) == 64
    assert record["packages"] == {
        name: importlib.metadata.version(name) for name in ("polars", "vl-convert-python")
    }


@pytest.mark.parametrize(
    ("file", "version"),
    [
        ("polars-9.8.dist-info/METADATA", "9.8"),
        ("polars.egg-info/PKG-INFO", "9.7"),
        ("polars_other-9.6.dist-info/METADATA", None),
    ],
)
def test_versions_of_packages(
    core: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, version: str | None
) -> None:
    (tmp_path / file).parent.mkdir()
    (tmp_path / file).write_text(f"Name: polars\nVersion: {version}\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "no such place"), str(tmp_path)])
    record = provenance.provenance(load("wire"), [1], None, "")
    assert record["packages"]["polars"] == version


HEAVY = {"polars", "altair", "numpy", "jinja2", "rich", "vl_convert"}
SLOW = {"email", "html", "importlib.metadata", "secrets", "zipfile"}
"""Modules of Python that take some ms, and that a run has no use for."""


@pytest.mark.parametrize(
    ("arguments", "commands", "unused"),
    [
        (["--help"], set(), HEAVY | SLOW | {"airpath._core"}),
        (["doctor", "--help"], {"doctor"}, HEAVY | SLOW | {"airpath._core"}),
        (["run", DOWNLINK, "--out", "here"], {"run"}, HEAVY | SLOW),
    ],
)
def test_a_command_imports_what_it_needs(
    core: Any, tmp_path: Path, arguments: list[str], commands: set[str], unused: set[str]
) -> None:
    code = (
        "import sys; from airpath.cli import main\n"
        "try: main()\n"
        "finally: print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    modules = set(done.stderr.splitlines()[-1].split())
    assert modules & unused == set()
    known = {name.removeprefix("airpath.cli.") for name in modules if "airpath.cli." in name}
    assert known == commands | {"console"}


@pytest.mark.parametrize(
    ("shell", "words"),
    [("bash", "complete -o default -F"), ("zsh", "#compdef airpath"), ("fish", "complete")],
)
def test_completion_scripts(core: Any, tmp_path: Path, shell: str, words: str) -> None:
    environment = {**command_environment(), "_AIRPATH_COMPLETE": f"source_{shell}"}
    done = subprocess.run(
        [sys.executable, "-m", "airpath"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert words in done.stdout


def test_scenario_names_are_completed(core: Any, tmp_path: Path) -> None:
    environment = {
        **command_environment(),
        "_AIRPATH_COMPLETE": "complete_bash",
        "COMP_WORDS": "airpath run wi",
        "COMP_CWORD": "2",
    }
    done = subprocess.run(
        [sys.executable, "-m", "airpath"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == ["wifi-like", "wire"]


def test_the_stub_matches_the_module(core: Any, tmp_path: Path) -> None:
    # mypy would spend most of its time on what these import, which does not affect the stub.
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy-airpath,mypy-airpath.emulation.*]\nfollow_imports = skip\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "airpath._core", "--ignore-missing-stub",
         "--mypy-config-file", str(config)],
        capture_output=True, text=True, check=False, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_download_keeps_a_ue_with_drx_awake(airpath_command: Command) -> None:
    """What the study 5g-drx concludes: data restarts the inactivity timer (TS 38.321 5.7)."""

    def download(*sets: str) -> dict[str, Any]:
        options = [word for entry in (*sets, "run.duration_s=8") for word in ("--set", entry)]
        path = STUDIES / "5g-drx/scenario.toml"
        done = airpath_command("run", str(path), "--json", *options, "--set", "flow.0.duration_s=7")
        assert done.returncode == 0, done.stderr
        flow: dict[str, Any] = json.loads(done.stdout)["flows"][0]
        return flow

    specified = download()
    asleep = download("radio.drx.uplink_waits_for_on_duration=true")
    assert specified["goodput_mbps"] == download("radio.drx.enabled=false")["goodput_mbps"]
    assert asleep["goodput_mbps"] < specified["goodput_mbps"] / 2
    assert asleep["rtt_ms"]["p50"] > 300
