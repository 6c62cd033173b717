"""Run directories: made aside, complete and on the disk when they have their name."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import airpath
from airpath.errors import InputError
from airpath.runs.construction import MARKER, remove_leftovers
from airpath.runs.directories import PendingDirectory, replaced_file
from conftest import DOWNLINK, PATIENCE_S, Command, start_command, until

ENDLESS = ("--set", "run.duration_s=10000000", "--set", "run.sample_interval_ms=100000")
NAME_OF_A_PENDING_RUN = "a.partial-0123456789abcdef"
"""Named as a directory of ours is."""


def killed_run(directory: Path, *words: str) -> Path:
    """Kill a run while it works; what it left."""
    process = start_command("run", DOWNLINK, *ENDLESS, *words, cwd=directory)
    assert until(lambda: list(directory.rglob(MARKER)))
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=PATIENCE_S)
    (marker,) = directory.rglob(MARKER)
    return marker.parent


def test_a_run_removes_what_a_killed_run_left(airpath_command: Command, tmp_path: Path) -> None:
    left = killed_run(tmp_path)
    assert airpath_command("run", DOWNLINK).returncode == 0
    assert not left.exists()
    assert len(list((tmp_path / "runs").iterdir())) == 1


def _dead_process() -> int:
    dead = subprocess.Popen(["true"])
    dead.wait()
    return dead.pid


def _foreign(what: str, path: Path, ours: Path) -> None:
    """Make something at ``path`` that a hasty reader could take for ours."""
    match what:
        case "named after a dead process":
            path = path.with_name(f"a.partial-{_dead_process()}")
            (path / "precious").mkdir(parents=True)
        case "a link to one of ours":
            path.symlink_to(ours)
        case "a file":
            path.write_text("mine")
        case _:
            (path / "precious").mkdir(parents=True)
    match what:
        case "another marker":
            (path / MARKER).write_text("mine")
        case "an empty marker":
            (path / MARKER).touch()
        case "a marker that is a pipe":
            os.mkfifo(path / MARKER)
        case "a link to a marker of ours":
            (path / MARKER).symlink_to(ours / MARKER)


FOREIGN = (
    "named after a dead process", "a link to one of ours", "a file", "no marker", "another marker",
    "an empty marker", "a marker that is a pipe", "a link to a marker of ours",
)  # fmt: skip


@pytest.mark.parametrize("what", FOREIGN)
def test_what_airpath_did_not_make_stays(tmp_path: Path, what: str) -> None:
    ours = tmp_path / "ours"
    ours.mkdir()
    moved = killed_run(tmp_path).rename(ours / "left")
    place = tmp_path / "place"
    place.mkdir()
    _foreign(what, place / NAME_OF_A_PENDING_RUN, moved)
    before = sorted(place.rglob("*"))
    airpath.run(DOWNLINK, out=place / "run")
    assert (place / "run").is_dir()
    assert set(before) <= set(place.rglob("*"))
    assert (moved / MARKER).is_file()
    # The check can fail: under a name of ours it goes.
    shutil.move(moved, place / "b.partial-fedcba9876543210")
    assert remove_leftovers(place) == [place / "b.partial-fedcba9876543210"]


def test_what_is_under_construction_stays(tmp_path: Path) -> None:
    with PendingDirectory(tmp_path / "one", numbered=False) as pending:
        assert remove_leftovers(tmp_path) == []
        with PendingDirectory(tmp_path / "two", numbered=False) as other:
            assert other.path != pending.path
        assert pending.path.is_dir()
        (pending.path / "file").write_text("kept")
        pending.commit()
    assert [path.name for path in tmp_path.rglob("*")] == ["one", "file"]


@pytest.mark.skipif(os.geteuid() != 0, reason="making a PID namespace needs root")
def test_a_run_in_another_pid_namespace_stays(tmp_path: Path) -> None:
    with PendingDirectory(tmp_path / "one", numbered=False) as pending:
        code = (
            "from airpath.runs.construction import *; "
            f"print(remove_leftovers(Path({str(tmp_path)!r})))"
        )
        words = ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", code]
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert (done.stdout, done.stderr) == ("[]\n", "")
        assert pending.path.is_dir()


def test_a_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    with PendingDirectory(tmp_path / "one", numbered=False) as pending:
        marker = pending.path / MARKER
        copy = tmp_path / "copy.partial-0123456789abcdef"
        copy.mkdir()
        os.link(marker, copy / MARKER)
        child = os.fork()
        if child == 0:
            signal.pause()
            os._exit(0)
        pending.commit()
    try:
        assert remove_leftovers(tmp_path) == [copy]
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_two_runs_with_the_same_out_do_not_erase_each_other(tmp_path: Path) -> None:
    with PendingDirectory(tmp_path / "run", numbered=False) as first:
        (first.path / "result").write_text("of the first")
        failed: list[BaseException] = []

        def second() -> None:
            try:
                airpath.run(DOWNLINK, out=tmp_path / "run")
            except InputError as error:
                failed.append(error)

        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
        assert "another run is writing" in str(failed[0])
        first.commit()
    assert [path.name for path in tmp_path.rglob("*")] == ["run", "result"]
    assert (tmp_path / "run/result").read_text() == "of the first"


def test_of_two_that_begin_together_one_ends(tmp_path: Path) -> None:
    for attempt in range(5):
        out = tmp_path / str(attempt)
        both = threading.Barrier(2)
        ended: list[object] = []

        def begin(
            out: Path = out, both: threading.Barrier = both, ended: list[object] = ended
        ) -> None:
            both.wait()
            try:
                with PendingDirectory(out, numbered=False) as pending:
                    (pending.path / "result").touch()
                    ended.append(pending.commit())
            except InputError as error:
                ended.append(error)

        threads = [threading.Thread(target=begin) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert out in ended
        assert [path.name for path in out.iterdir()] == ["result"]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """What was synced and renamed, by inode, in this order."""
    seen: list[tuple[str, int]] = []
    fsync, rename, replace = os.fsync, os.rename, os.replace

    def synced(descriptor: int) -> None:
        seen.append(("sync", os.fstat(descriptor).st_ino))
        fsync(descriptor)

    def renamed(which: Callable[..., None]) -> Callable[..., None]:
        def call(old: Path, new: Path) -> None:
            seen.append(("rename", old.stat().st_ino))
            which(old, new)

        return call

    monkeypatch.setattr("os.fsync", synced)
    monkeypatch.setattr("os.rename", renamed(rename))
    monkeypatch.setattr("os.replace", renamed(replace))
    return seen


@pytest.mark.parametrize("repeat", [1, 2])
def test_a_result_is_on_the_disk_when_it_has_its_name(
    tmp_path: Path, calls: list[tuple[str, int]], repeat: int
) -> None:
    out = tmp_path / "deep/run"
    airpath.run(DOWNLINK, out=out, repeat=repeat)
    named = calls.index(("rename", out.stat().st_ino))
    before = {inode for what, inode in calls[:named] if what == "sync"}
    files = [path for path in out.rglob("*") if path.is_file()]
    assert len(files) > 8
    assert {path.stat().st_ino for path in (out, *out.rglob("*"))} <= before
    after = {inode for what, inode in calls[named:] if what == "sync"}
    assert {out.parent.stat().st_ino, tmp_path.stat().st_ino} <= after


def test_a_replaced_file_is_on_the_disk_when_it_has_its_name(
    tmp_path: Path, calls: list[tuple[str, int]]
) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")
    with replaced_file(path) as aside:
        aside.write_text("new")
    inode = path.stat().st_ino
    assert calls == [("sync", inode), ("rename", inode), ("sync", tmp_path.stat().st_ino)]
    assert path.read_text() == "new"


def test_a_file_beside_a_report_is_nobodys_to_take(tmp_path: Path) -> None:
    mine = tmp_path / f"report.html.partial-{os.getpid()}"
    mine.write_text("precious")
    with replaced_file(tmp_path / "report.html") as aside:
        aside.write_text("new")
    assert mine.read_text() == "precious"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_device_is_written_to_not_replaced(tmp_path: Path) -> None:
    device = tmp_path / "null"
    device.symlink_to("/dev/null")
    with replaced_file(device) as aside:
        aside.write_text("gone")
    assert device.is_symlink()
    assert list(tmp_path.iterdir()) == [device]
