"""Citations, and archives that run again to the same bytes."""

from __future__ import annotations

import json
import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

import airpath
from airpath.cite import archive, citation
from airpath.congestion import Ack, Congestion, Window
from airpath.errors import InputError
from airpath.runs import source
from airpath.runs.results import Run
from conftest import Command

ROOT = Path(__file__).parents[2]
SHORT = {"run.duration_s": 1}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return airpath.run("bufferbloat", set=SHORT, out=tmp_path / "run")


@pytest.fixture
def packed(run: Run, tmp_path: Path) -> Path:
    archive.pack(run, tmp_path / "run.zip")
    return tmp_path / "run.zip"


def _git(tree: Path, *words: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    done = subprocess.run(
        ("git", "-C", str(tree), *identity, *words), capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_a_tree_is_clean_until_a_file_that_git_follows_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "python" / "airpath"
    package.mkdir(parents=True)
    (package / "a.py").write_text("1")
    _git(tmp_path, "init", "--quiet")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "--quiet", "-m", "first")
    monkeypatch.setattr(source, "_PACKAGE", package)
    source.source.cache_clear()
    head = _git(tmp_path, "rev-parse", "HEAD")
    assert source.source() == {"commit": head, "clean": True}
    (package / "b.py").write_text("not followed")
    source.source.cache_clear()
    assert source.source() == {"commit": head, "clean": True}
    (package / "a.py").write_text("2")
    source.source.cache_clear()
    assert source.source() == {"commit": head, "clean": False}
    monkeypatch.setenv("PATH", "")
    source.source.cache_clear()
    assert source.source() is None
    source.source.cache_clear()


def test_a_dirty_tree_is_said(run: Run, airpath_command: Command) -> None:
    assert run.directory is not None
    place = run.directory / "provenance.json"
    record = json.loads(place.read_text())
    for made, wanted, told in (
        (
            {"commit": "0123456789" * 4, "clean": False},
            "not committed",
            "commit them and run again",
        ),
        ({"commit": "0123456789" * 4, "clean": True}, "commit 012345678901, core", ""),
        (None, "commit unknown", "cannot obtain it"),
    ):
        place.write_text(json.dumps({**record, "source": made}))
        done = airpath_command("cite", str(run.directory))
        assert done.returncode == 0, done.stderr
        assert wanted in done.stdout
        assert told in done.stderr
        assert bool(done.stderr) == bool(told)


def test_everything_can_be_cited(run: Run, tmp_path: Path, airpath_command: Command) -> None:
    varied = [{"key": "flow.0.window_bytes", "values": [20_000, 40_000]}]
    airpath.sweep(
        {"scenario": "wire", "seeds": 2, "vary": varied},
        out=tmp_path / "campaign",
    )
    for what, wanted in (
        ((), "We used airpath"),
        (("3g-latency",), "airpath reproduce 3g-latency"),
        ((str(tmp_path / "campaign"),), "4 simulations of 2 cells"),
        ((str(tmp_path / "campaign"),), "; seeds 1 to 2; SHA-256 of the runs' keys "),
        ((str(run.directory),), "seed 1"),
    ):
        done = airpath_command("cite", *what)
        assert done.returncode == 0, done.stderr
        assert wanted in done.stdout
        assert f"version = {{{airpath.__version__}}}" in done.stdout
        assert done.stdout.count("{") == done.stdout.count("}")


def test_an_archive_has_the_same_bytes_again(
    packed: Path, tmp_path: Path, airpath_command: Command
) -> None:
    done = airpath_command("reproduce", str(packed))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("same bytes") == 6
    assert "DIFFERS" not in done.stdout
    again = tmp_path / "again.zip"
    archive.pack(Run.open(tmp_path / "run"), again)
    assert again.read_bytes() == packed.read_bytes()


def test_several_seeds_and_a_trace(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.down").write_text("0\n5\n10\n")
    scenario = tmp_path / "s.toml"
    scenario.write_text(
        '[run]\nduration_s = 1\n[[path.down]]\nstage = "trace"\nfile = "in/a.down"\n'
        '[[path.up]]\nstage = "link"\nrate_mbps = 5\n[[flow]]\nkind = "bulk"\n'
    )
    run = airpath.run(scenario, repeat=2, out=tmp_path / "run")
    assert run.provenance["files"][0]["name"] == "in/a.down"
    assert "in/a.down (SHA-256" in citation.run(run)[0]
    archive.pack(run, tmp_path / "run.zip")
    _, rows = archive.run_again(tmp_path / "run.zip")
    assert {row.seed for row in rows} == {1, 2}
    assert all(row.same for row in rows)
    (tmp_path / "in" / "a.down").write_text("0\n5\n11\n")
    with pytest.raises(InputError, match="changed since"):
        archive.pack(run, tmp_path / "other.zip")
    (tmp_path / "in" / "a.down").unlink()
    with pytest.raises(InputError, match="no longer there"):
        archive.pack(run, tmp_path / "other.zip")
    assert not (tmp_path / "other.zip").exists()


def _changed(packed: Path, name: str, change: Callable[[bytes], bytes]) -> None:
    with zipfile.ZipFile(packed) as old:
        files = {entry: old.read(entry) for entry in old.namelist()}
    files[name] = change(files.get(name, b""))
    with zipfile.ZipFile(packed, "w") as new:
        for entry, data in files.items():
            new.writestr(entry, data)


def test_a_table_that_differs_is_named(
    packed: Path, tmp_path: Path, airpath_command: Command
) -> None:
    other = airpath.run("bufferbloat", set=SHORT, seed=2, out=tmp_path / "other")
    assert other.directory is not None
    pings = (other.directory / "flows.parquet").read_bytes()
    _changed(packed, "flows.parquet", lambda _: pings)
    done = airpath_command("reproduce", str(packed))
    assert done.returncode == 1
    assert "seed 1 flows: DIFFERS" in done.stdout
    assert done.stdout.count("same bytes") == 5
    assert "1 table" in done.stderr


@pytest.mark.parametrize(
    ("name", "change", "wanted"),
    [
        ("scenario.toml", lambda data: data.replace(b"500", b"501"), "not the one that was run"),
        ("scenario.toml", lambda data: data + b"[[", "scenario.toml is damaged"),
        (
            "scenario.toml",
            lambda data: data + b'[a]\nfile = "/etc/passwd"\n',
            "outside the archive",
        ),
        ("../b", lambda _: b"", "is not the name of a file"),
        ("/tmp/b", lambda _: b"", "is not the name of a file"),
        ("again/flows.parquet", lambda _: b"", "is not the name of a file"),
        ("provenance.json", lambda data: data.replace(b'"simulate"', b'"emulate"'), "real clock"),
        ("summary.json", lambda data: data[:100], "summary.json"),
    ],
)
def test_what_is_no_archive_of_a_run_is_refused(
    packed: Path, airpath_command: Command, name: str, change: Callable[[bytes], bytes], wanted: str
) -> None:
    _changed(packed, name, change)
    done = airpath_command("reproduce", str(packed))
    assert done.returncode == 2, done.stdout
    assert wanted in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_other_files_are_refused(
    tmp_path: Path, packed: Path, airpath_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    cut = tmp_path / "cut.zip"
    cut.write_bytes(packed.read_bytes()[:-100])
    plain = tmp_path / "plain.zip"
    with zipfile.ZipFile(plain, "w") as file:
        file.writestr("a", b"")
    for place, wanted in (
        (cut, "is not an archive"), (plain, "has no ro-crate-metadata.json"),
        (tmp_path / "none.zip", "does not exist"),
    ):  # fmt: skip
        done = airpath_command("reproduce", str(place))
        assert done.returncode == 2
        assert wanted in done.stderr
    assert airpath_command("reproduce", str(packed), "--repeat", "2").returncode == 2
    assert airpath_command("cite", "3g-latency", "--archive", str(cut)).returncode == 2
    done = airpath_command("cite", "3g-latenzy")
    assert done.returncode == 2
    assert "no run, campaign or study 3g-latenzy; did you mean the study 3g-latency?" in done.stderr
    monkeypatch.setattr(archive, "MOST_ARCHIVE_BYTES", 1000)
    with pytest.raises(InputError, match="is larger than"):
        archive.run_again(packed)


def test_the_citation_file_is_of_this_version() -> None:
    text = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert text["version"] == airpath.__version__
    assert text["cff-version"] == "1.2.0"


class Growing(Congestion):
    """A window that grows with each acknowledgement."""

    def on_ack(self, ack: Ack, window: Window) -> None:
        """Add a tenth of what was acknowledged."""
        window.cwnd_segments += ack.acked_segments / 10


def test_a_run_with_a_congestion_control_of_ones_own_has_no_archive(tmp_path: Path) -> None:
    own = airpath.run("wire", set=SHORT, out=tmp_path / "own", congestion={"flow.0": Growing()})
    assert "control of flow.0 was our own: test_cite.Growing sha256" in citation.run(own)[0]
    with pytest.raises(InputError, match="used a congestion control that is not"):
        archive.pack(own, tmp_path / "own.zip")
