"""Campaigns that were tampered with: each is read or refused; `make fuzz-campaigns` has more."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import pytest

import airpath
from airpath.campaign.definition import parse
from airpath.errors import InputError
from airpath_dev.fuzzed.campaigns import FILE, Drawn, check_file, check_folder, main
from airpath_dev.fuzzed.mutate import damaged
from airpath_dev.harness import run

pytest.importorskip("duckdb")

_FOLDERS = 12
_FILES = 100


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    return Drawn(tmp_path_factory.mktemp("drawn"))


def test_campaigns_to_begin_with_are_read(drawn: Drawn, tmp_path: Path) -> None:
    # Of the shipped ones some name a scenario that lies beside them.
    assert check_file(FILE.encode(), tmp_path) == "read"
    complete, stopped = (airpath.open_campaign(folder) for folder in drawn.folders)
    assert (complete.complete, stopped.complete) == (True, False)
    assert list(drawn.folders[1].glob("pieces/*.zip"))


def test_tampered_campaigns_are_read_or_refused(drawn: Drawn, tmp_path: Path) -> None:
    """Others with each commit."""
    seed = os.environ.get("PROPTEST_RNG_SEED", "0")
    pick = Random(f"airpath campaigns {seed}")
    answers: set[str] = set()
    for number in range(_FOLDERS):
        try:
            how, found = check_folder(pick, drawn, tmp_path)
        except Exception as error:
            pytest.fail(f"folder {number} of the seed {seed}: {error!r}")
        answers.update(found)
        assert how
    assert answers == {"read", "refused"}


def test_damaged_campaign_files_are_read_or_refused(drawn: Drawn, tmp_path: Path) -> None:
    seed = os.environ.get("PROPTEST_RNG_SEED", "0")
    pick = Random(f"airpath campaign files {seed}")
    for number in range(_FILES):
        data = damaged(pick, drawn.texts)
        try:
            check_file(data, tmp_path)
        except Exception as error:
            (tmp_path / "fault").write_bytes(data)
            pytest.fail(f"{tmp_path / 'fault'}, file {number} of the seed {seed}: {error!r}")


@pytest.mark.parametrize("text", ["1" + "0" * 400, "nan", "inf", "-inf", "true"])
def test_numbers_that_are_none_are_refused(text: str) -> None:
    """A fault that fuzzing found: an integer may be larger than any double."""
    head = 'scenario = "wire"\nsampling = "random"\nsamples = 1\n[[vary]]\n'
    for line in (f"low = 0\nhigh = {text}", f"low = -{text.lstrip('-')}\nhigh = 1"):
        with pytest.raises(InputError, match=r"the range is from|Invalid"):
            parse(f'{head}key = "path.down.0.rate_mbps"\n{line}\n', "c.toml", Path(), "c")


@pytest.mark.parametrize("end", ["", ".toml"])
def test_names_that_are_too_long_are_refused(end: str) -> None:
    """A fault that fuzzing found: no system call takes such a name."""
    name = "x" * 5000 + end
    with pytest.raises(InputError):
        parse(f'scenario = "{name}"', "c.toml", Path(), "c")
    with pytest.raises(InputError):
        airpath.load(name)
    with pytest.raises(InputError):
        airpath.sweep(name)


def test_a_pipe_is_not_waited_for(drawn: Drawn, tmp_path: Path) -> None:
    import shutil

    out = shutil.copytree(drawn.folders[0], tmp_path / "out")
    (out / "manifest.json").unlink()
    os.mkfifo(out / "manifest.json")
    changed = {"scenario": "wire", "set": ["run.duration_s=0.1"]}
    with pytest.raises(InputError, match=r"manifest\.json is not a file"):
        airpath.sweep(changed, out=out, workers=1, resume=True)


@pytest.mark.parametrize("words", [["0"], ["x"], ["1", "2", "3"]])
def test_bad_use(words: list[str]) -> None:
    assert run(main, words) == 2
