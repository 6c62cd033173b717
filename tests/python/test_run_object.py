"""A run as Python has it: pickled, in a notebook, in a child process; docstrings' examples."""

from __future__ import annotations

import doctest
import importlib
import json
import multiprocessing
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import airpath
from airpath.errors import AirpathError
from conftest import DOWNLINK

PACKAGE = Path(airpath.__file__).parent


@pytest.mark.parametrize("stored", [False, True], ids=["memory", "directory"])
def test_a_run_pickles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stored: bool) -> None:
    monkeypatch.chdir(tmp_path)
    run = airpath.run(DOWNLINK, repeat=2, out="run" if stored else None)
    pickled = pickle.dumps(run)
    monkeypatch.chdir("/")
    copy = pickle.loads(pickled)
    assert (copy.summary, copy.provenance) == (run.summary, run.provenance)
    monkeypatch.chdir(tmp_path)
    for table in ("flows", "samples", "links", "events", "pings", "rtt_histogram"):
        assert copy.table(table).equals(run.table(table))
    monkeypatch.chdir("/")
    assert pickle.loads(pickled).flows.height == 4
    again = pickle.loads(pickle.dumps(copy))
    assert again.flows.equals(copy.flows)


def test_a_run_comes_back_from_a_process() -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        runs = pool.map(airpath.run, [DOWNLINK] * 2)
    here = airpath.run(DOWNLINK)
    assert all(run.samples.equals(here.samples) for run in runs)


def test_a_notebook_shows_what_flows_got() -> None:
    run = airpath.run(DOWNLINK, {"title": "a <b> & c"})
    page = run._repr_html_()
    assert "a &lt;b&gt; &amp; c" in page
    assert "<b>" in page
    assert "<li>download: " in page
    assert run.id in page
    for finding in run.findings:
        assert finding["evidence"].split("<")[0][:20] in page


def test_a_table_that_is_not_there_is_no_attribute() -> None:
    run = airpath.run(DOWNLINK)
    assert not hasattr(run, "proxies")
    assert not hasattr(run, "acks")
    assert hasattr(run, "flows")
    assert getattr(run, "radio", None) is None
    with pytest.raises(AirpathError, match="no table 'proxies'"):
        _ = run.proxies


FORK = """
import multiprocessing, sys
import airpath
file = sys.argv[1]
if sys.argv[2] == "after":
    assert airpath.run(file).flows.height == 2
    # What starts polars' threads for certain.
    import polars as pl
    pl.DataFrame({"a": range(100_000)}).lazy().group_by("a").agg(pl.len()).sort("a").collect()

def one(seed):
    try:
        return airpath.run(file, seed=seed).flows.height
    except airpath.AirpathError as error:
        return str(error)

with multiprocessing.get_context("fork").Pool(2) as pool:
    print(*pool.map(one, [1, 2]), sep="\\n")
"""


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_forked_child_works_or_says_that_it_does_not(tmp_path: Path, when: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK, DOWNLINK, when],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        assert line == "2" or (when == "after" and 'get_context("spawn")' in line)
    assert len(done.stdout.splitlines()) == 2
    if when == "after":
        assert "forked after polars had started its threads" in done.stdout


def modules_with_examples() -> list[str]:
    """Modules of the package that have examples, by name."""
    files = [path for path in PACKAGE.rglob("*.py") if ">>> " in path.read_text(encoding="utf-8")]
    names = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in files]
    return sorted(name.removesuffix(".__init__") for name in names)


def test_there_are_examples_and_none_is_skipped() -> None:
    assert len(modules_with_examples()) >= 4
    sources = [path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")]
    assert not [text for text in sources if "doctest:" in text]


@pytest.mark.parametrize("name", modules_with_examples())
def test_docstring_examples_do_what_they_say(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(importlib.import_module(name), verbose=False)
    assert result.attempted > 0
    assert result.failed == 0


def test_an_old_run_says_how_long_it_lasted(tmp_path: Path) -> None:
    """Its summary calls it by an older name."""
    airpath.run("wire", {"run.duration_s": 1}, out=tmp_path / "run")
    file = tmp_path / "run/summary.json"
    document = json.loads(file.read_text())
    document["run"]["simulated_s"] = lasted = document["run"].pop("duration_s")
    file.write_text(json.dumps(document))
    assert airpath.Run.open(tmp_path / "run").summary["run"]["duration_s"] == lasted > 0
