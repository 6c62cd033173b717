"""A small failure at the end does not throw a run away: the rest is kept, and says so."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import airpath
from airpath.base.stopping import StoppedError, deferred
from airpath.drivers import simulate
from airpath.drivers.options import SimulationOptions
from airpath.errors import AirpathError
from airpath.runs.results import Run
from conftest import DOWNLINK, Command, command_environment, run_command, start_command, until

PATIENCE_S = 60.0
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="namespaces and mounts need root")
WIRE = """
[[path.down]]
stage = "delay"
delay_ms = 5
[[flow]]
kind = "ping"
"""


@pytest.fixture
def third_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    ordinary = simulate._simulate

    def failing(scenario: Any, seed: int, tick: Callable[[float], bool], *more: Any) -> Any:
        if seed == 3:
            raise AirpathError("simulation failed: as planned")
        return ordinary(scenario, seed, tick, *more)

    monkeypatch.setattr("airpath.drivers.simulate._simulate", failing)


@pytest.mark.usefixtures("third_fails")
@pytest.mark.parametrize("where", ["memory", "directory"])
def test_one_seed_that_fails_takes_nothing_from_the_others(tmp_path: Path, where: str) -> None:
    out = tmp_path / "run" if where == "directory" else None
    with pytest.warns(UserWarning, match="partial, because seed 3 failed"):
        run = airpath.run(DOWNLINK, repeat=5, workers=2, out=out)
    assert run.seeds == [1, 2, 4, 5]
    assert run.partial == ["seed 3 failed: simulation failed: as planned"]
    assert run.samples["seed"].unique().sort().to_list() == run.seeds
    assert run.summary["run"]["seeds"] == run.seeds
    if out is not None:
        assert Run.open(out).partial == run.partial
        record = json.loads((out / "provenance.json").read_text())
        assert (record["partial"], record["seeds"]) == (run.partial, run.seeds)
        assert sorted(path.name for path in out.iterdir() if path.is_dir()) == [
            "seed-1", "seed-2", "seed-4", "seed-5",
        ]  # fmt: skip


@pytest.mark.usefixtures("third_fails")
def test_the_command_says_that_a_run_is_partial(cli: Any, tmp_path: Path) -> None:
    page = tmp_path / "r.html"
    words = ("--repeat", "3", "--out", str(tmp_path / "run"), "--report", str(page))
    code, out, err = cli("run", DOWNLINK, *words)
    assert code == 1
    assert out.startswith("download: ")
    said = "partial, because seed 3 failed: simulation failed: as planned"
    assert f"{said}\nrun directory: " in err
    assert said in page.read_text()


@pytest.mark.usefixtures("third_fails")
def test_if_every_seed_fails_the_run_does(tmp_path: Path) -> None:
    with pytest.raises(AirpathError, match="as planned"):
        airpath.run(DOWNLINK, seed=3, out=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_whole_run_is_not_partial(tmp_path: Path) -> None:
    run = airpath.run(DOWNLINK, repeat=2, out=tmp_path / "run")
    assert run.partial == []
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert not [name for name in names if name.startswith(".")]


def test_a_panic_of_one_seed_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    class Panic(BaseException):
        """As the extension raises it."""

    ordinary = simulate._simulate

    def panicking(scenario: Any, seed: int, tick: Callable[[float], bool], *more: Any) -> Any:
        if seed == 1:
            raise Panic("index out of bounds")
        return ordinary(scenario, seed, tick, *more)

    monkeypatch.setattr("airpath.drivers.simulate._simulate", panicking)
    run = simulate.execute(airpath.load(DOWNLINK), SimulationOptions(repeat=2))
    assert (run.seeds, run.partial) == ([2], ["seed 1 failed: index out of bounds"])


def test_ctrl_c_keeps_what_is_complete(tmp_path: Path) -> None:
    scenario = airpath.load(DOWNLINK)

    def interrupt(share: float) -> None:
        if share >= 2 / 40:
            raise KeyboardInterrupt

    out = tmp_path / "run"
    options = SimulationOptions(repeat=400, workers=1, out=out, progress=interrupt)
    with pytest.raises(StoppedError, match="seeds are missing") as stopped:
        simulate.execute(scenario, options)
    run = Run.open(tmp_path / "run")
    assert stopped.value.directory == tmp_path / "run"
    assert 1 <= len(run.seeds) < 400
    assert run.partial == [f"it was interrupted: {400 - len(run.seeds)} of 400 seeds are missing"]
    assert run.flows["seed"].unique().to_list() == run.seeds


def test_ctrl_c_on_the_command_line_keeps_what_is_complete(tmp_path: Path) -> None:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    words = ("run", DOWNLINK, "--repeat", "20000", "--workers", "1", "--out", "run")
    process = start_command(*words, cwd=tmp_path, **pipes, text=True)
    assert until(lambda: len(list(tmp_path.glob("run.partial-*/seed-*"))) > 2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert err.startswith("error: interrupted; finished work is kept: run is partial, because")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert len(Run.open(tmp_path / "run").seeds) >= 2


def test_ctrl_c_at_any_moment_ends_thousands_of_jobs(tmp_path: Path) -> None:
    """Some moments once left locks held for ever: more jobs, more such moments."""
    program = tmp_path / "interrupted.py"
    program.write_text(
        "import faulthandler, os, random, signal, threading, time\n"
        "from airpath.drivers.simulate import in_threads\n"
        "faulthandler.dump_traceback_later(240, exit=True)\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def work(job, tick):\n"
        "    while tick(0.5): time.sleep(0.001)\n"
        "    raise KeyboardInterrupt\n"
        "for _ in range(20):\n"
        "    wait_s = random.uniform(0.05, 0.5)\n"
        "    threading.Timer(wait_s, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "    try: in_threads(work, list(range(10000)), 2, 1.0, lambda share: None)\n"
        "    except KeyboardInterrupt: pass\n"
        "    else: raise SystemExit('it was not interrupted')\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_signals_wait_for_the_end_of_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    done = []

    def stop(number: signal.Signals) -> None:
        with deferred():
            for _ in range(2):
                signal.raise_signal(number)
                done.append("written")
        done.append("not reached")

    with pytest.raises(KeyboardInterrupt):
        stop(signal.SIGINT)
    assert done == ["written", "written"]
    monkeypatch.setattr("airpath.base.stopping._IMPATIENT_S", -1.0)
    with pytest.raises(KeyboardInterrupt):
        stop(signal.SIGINT)
    assert done == ["written", "written", "written"]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """File systems of a size."""
    mounted: list[Path] = []

    def mount(size: str) -> Path:
        if os.geteuid() != 0 or shutil.which("mount") is None:
            pytest.skip("mounting a small tmpfs needs root and the package mount")
        place = tmp_path / "disk"
        place.mkdir()
        words = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"this machine does not let root mount a tmpfs: {done.stderr.strip()}")
        mounted.append(place)
        return place

    yield mount
    for place in mounted:
        subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_loses_seeds_not_the_run(
    airpath_command: Command, disk: Callable[[str], Path]
) -> None:
    place = disk("3m")
    done = airpath_command("run", DOWNLINK, "--repeat", "60", "--out", str(place / "run"))
    assert done.returncode == 1, done.stderr
    assert "partial, because seed " in done.stderr
    assert "No space left on device" in done.stderr
    run = Run.open(place / "run")
    assert 5 < len(run.seeds) < 60
    assert len(run.partial) == 60 - len(run.seeds)
    assert run.samples["seed"].unique().sort().to_list() == run.seeds


def test_a_full_disk_loses_tables_not_the_run(
    airpath_command: Command, disk: Callable[[str], Path]
) -> None:
    place = disk("1700k")
    (place / "other").write_bytes(bytes(620_000))
    sets = ("--set", "run.ack_table=true", "--set", "run.duration_s=100")
    done = airpath_command("run", DOWNLINK, *sets, "--out", str(place / "run"))
    assert done.returncode == 1, done.stderr
    run = Run.open(place / "run")
    assert run.partial
    assert all("could not be written: " in why for why in run.partial), run.partial
    assert len(run.flows) == 2


def test_a_run_whose_documents_cannot_be_written_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise AirpathError("cannot write it: No space left on device")

    monkeypatch.setattr("airpath.runs.results.RunDirectory.write", full)
    with pytest.raises(AirpathError, match=r"No space left(.|\n)*kept: .*run\.failed"):
        airpath.run(DOWNLINK, repeat=2, out=tmp_path / "run")
    kept = [path.name for path in tmp_path.iterdir()]
    assert kept == ["run.failed"]
    assert sorted(path.name for path in (tmp_path / "run.failed").iterdir()) == ["seed-1", "seed-2"]


def test_a_run_whose_name_was_taken_meanwhile_is_kept_beside(tmp_path: Path) -> None:
    def taken(_: float) -> None:
        (tmp_path / "run/mine").mkdir(parents=True, exist_ok=True)

    options = SimulationOptions(out=tmp_path / "run", progress=taken)
    with pytest.raises(AirpathError, match=r"another process created .*; the run is in .*run-2"):
        simulate.execute(airpath.load(DOWNLINK), options)
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["mine"]
    assert Run.open(tmp_path / "run-2").flows.height == 2


EMULATE = """
import os, signal, sys
from airpath.runs import results
from airpath.runs import summary
from airpath.cli import main
{patch}
sys.argv = ["airpath", "emulate", "wire.toml", "--out", "run", "--", "true"]
main()
"""
STOPPED = """
write = results.RunDirectory.write
def stopped(self, *documents):
    os.kill(os.getpid(), signal.SIGINT)
    write(self, *documents)
results.RunDirectory.write = stopped
"""
A_BUG = """
def bug(*_):
    raise ValueError("a bug of ours")
summary.of_result = bug
"""
UNWRITABLE = """
from airpath.errors import AirpathError
def unwritable(self, *documents):
    raise AirpathError("cannot write it: No space left on device")
results.RunDirectory.write = unwritable
"""


def emulated(wire: Path, patch: str) -> subprocess.CompletedProcess[str]:
    """Emulate with something changed."""
    return subprocess.run(
        [sys.executable, "-c", EMULATE.format(patch=patch)], cwd=wire.parent, text=True,
        env=command_environment(), capture_output=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip


@needs_root
def test_ctrl_c_while_an_emulation_is_written_loses_nothing(wire: Path) -> None:
    done = emulated(wire, STOPPED)
    assert done.returncode == 130
    assert done.stderr.endswith("error: interrupted; finished work is kept: run is complete\n")
    assert Run.open(wire.parent / "run").partial == []


@needs_root
@pytest.mark.parametrize("patch", [A_BUG, UNWRITABLE], ids=["a bug", "a full disk"])
def test_a_failed_emulation_is_kept(wire: Path, patch: str) -> None:
    done = emulated(wire, patch)
    assert done.returncode == 1
    if patch is UNWRITABLE:
        assert "what was written is kept: run.failed" in done.stderr
    kept = wire.parent / "run.failed"
    assert (kept / "links.parquet").is_file()
    assert json.loads((kept / "provenance.json").read_text())["failed"]
    assert sorted(path.name for path in wire.parent.iterdir()) == ["run.failed", "wire.toml"]
    # The next one does not replace it.
    assert emulated(wire, patch).returncode == 1
    assert (wire.parent / "run.failed-2").is_dir()


@needs_root
def test_an_emulation_that_never_began_leaves_nothing(wire: Path) -> None:
    done = run_command(
        "emulate", "wire.toml", "--out", "run", "--", "no-such-program", cwd=wire.parent
    )
    assert done.returncode != 0
    assert not (wire.parent / "run.failed").exists()
