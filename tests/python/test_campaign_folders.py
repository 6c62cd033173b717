"""A campaign touches its own files alone: whatever else lies there, and whatever its files say."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import airpath
from airpath.campaign.results import open_campaign
from airpath.errors import InputError
from airpath_dev.cluster import tables
from campaigns import SHORT, toml


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("campaign") / "whole"
    airpath.sweep(SHORT, out=place, workers=2)
    return place


@pytest.fixture
def copied(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "out"))


MINE = (
    "notes.partial-draft.md", "report.html", "reports/june.partial-0123456789abcdef",
    "flows/mine.parquet", "flows/part-00000-mine.parquet", "parts/readme.txt", "parts/1.json",
    "pieces/film.zip", "pieces/film.partial-0123456789abcdef", "failed/run.toml",
    "runs/part-00009-0123456789abcdef.parquet.partial-1", "deep/flows/a.partial-b",
)  # fmt: skip


def lay(folder: Path) -> dict[Path, bytes]:
    """Files of somebody's own."""
    for name in MINE:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"mine: {name}")
    return contents(folder)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_without_a_campaign_is_refused_and_stays_as_it_is(
    tmp_path: Path, cli: Any
) -> None:
    folder = tmp_path / "mine"
    before = lay(folder)
    (tmp_path / "c.toml").write_text(toml())
    code, _, err = cli("sweep", str(tmp_path / "c.toml"), "--out", str(folder), "--resume")
    assert (code, err) == (
        2, f"error: {folder} exists and is not empty and is not a campaign that can be resumed; "
        "choose another --out or remove it\n",
    )  # fmt: skip
    assert contents(folder) == before


@pytest.mark.parametrize("text", ["", "{}", '{"axes": [], "runs": 3}', "[1]"])
def test_another_campaign_json_is_no_campaign(tmp_path: Path, text: str) -> None:
    lay(tmp_path)
    (tmp_path / "campaign.json").write_text(text)
    before = contents(tmp_path)
    with pytest.raises(InputError, match=r"has a damaged campaign\.json: "):
        airpath.sweep(SHORT, out=tmp_path, resume=True)
    assert contents(tmp_path) == before


def test_what_is_not_a_campaigns_stays_in_its_folder(copied: Path, whole: Path) -> None:
    lay(copied)
    changed = {**SHORT, "seeds": 3}
    airpath.sweep(changed, out=copied, workers=2, resume=True)
    airpath.sweep(SHORT, out=copied, workers=2, resume=True)
    for name in MINE:
        assert (copied / name).read_text() == f"mine: {name}"
    left = {name for name in tables(copied) if name not in MINE}
    assert left == set(tables(whole))


def test_what_a_killed_campaign_left_is_removed(copied: Path) -> None:
    flows, *_ = copied.glob("flows/*.parquet")
    left = [
        flows.with_name(f"{flows.name}.partial-0123456789abcdef"),
        copied / "campaign.json.partial-0123456789abcdef",
    ]
    for path in left:
        path.write_text("half")
    airpath.sweep(SHORT, out=copied, workers=2, resume=True)
    assert not [path for path in left if path.exists()]


def test_a_damaged_table_of_a_part_has_its_runs_simulated_again(copied: Path, whole: Path) -> None:
    """Also a table that only some of the runs are taken from, with the right hash."""
    part = copied / "parts/00000.json"
    said = json.loads(part.read_text())
    about = said["files"]["links"]
    damaged = pl.read_parquet(copied / about["name"]).drop("link")
    data = io.BytesIO()
    damaged.write_parquet(data)
    digest = hashlib.sha256(data.getvalue()).hexdigest()
    about |= {"name": f"links/part-00000-{digest[:16]}.parquet", "sha256": digest,
              "bytes": len(data.getvalue())}  # fmt: skip
    (copied / about["name"]).write_bytes(data.getvalue())
    part.write_text(json.dumps(said))
    # With more runs in a partition, rows are taken from parts that are not kept as they are.
    told: list[str] = []
    more = {**SHORT, "partition_runs": 1000}
    airpath.sweep(more, out=copied, workers=2, resume=True, tell=told.append)
    assert "parts/00000.json is damaged" in told[0]
    assert open_campaign(copied).table("links").height == open_campaign(whole).table("links").height


NAMES = ("../victim", "/etc/hostname", "flows/../../victim", "")


@pytest.mark.parametrize("name", NAMES)
def test_names_in_parts_lead_nowhere_else(copied: Path, whole: Path, name: str) -> None:
    """Neither read nor removed, though the hash is right."""
    victim = copied.parent / "victim"
    victim.write_text("mine")
    (copied / "victim").write_text("mine")
    part = copied / "parts/00000.json"
    said = json.loads(part.read_text())
    said["files"]["flows"] |= {"name": name, "sha256": hashlib.sha256(b"mine").hexdigest()}
    part.write_text(json.dumps(said))
    with pytest.raises(
        InputError, match=r"parts/00000\.json is damaged: `files\.flows\.name` is not"
    ):
        open_campaign(copied).table("flows")
    told: list[str] = []
    changed = {**SHORT, "set": ["run.duration_s=0.4"]}
    airpath.sweep(changed, out=copied, workers=2, resume=True, tell=told.append)
    assert "parts/00000.json is damaged" in told[0]
    airpath.sweep(SHORT, out=copied, workers=2, resume=True)
    assert tables(copied) == tables(whole)
    assert victim.read_text() == (copied / "victim").read_text() == "mine"


def _folder(copied: Path, elsewhere: Path) -> None:
    (copied / "flows").rename(elsewhere / "flows")
    (copied / "flows").symlink_to(elsewhere / "flows")


def _file(copied: Path, elsewhere: Path) -> None:
    flows, *_ = copied.glob("flows/*")
    flows.rename(elsewhere / flows.name)
    flows.symlink_to(elsewhere / flows.name)


def _document(copied: Path, elsewhere: Path) -> None:
    (copied / "campaign.json").rename(elsewhere / "campaign.json")
    (copied / "campaign.json").symlink_to(elsewhere / "campaign.json")


def _device(copied: Path, elsewhere: Path) -> None:
    (copied / "campaign.json").unlink()
    (copied / "campaign.json").symlink_to("/dev/zero")


@pytest.mark.parametrize("link", [_folder, _file, _document, _device])
def test_links_are_not_followed(
    copied: Path, tmp_path: Path, link: Callable[[Path, Path], None]
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    link(copied, elsewhere)
    before = contents(elsewhere)
    with pytest.raises(InputError, match="is a symbolic link, but must be "):
        open_campaign(copied).table("flows")
    changed = {**SHORT, "set": ["run.duration_s=0.4"]}
    with pytest.raises(InputError, match="is a symbolic link, but must be "):
        airpath.sweep(changed, out=copied, workers=2, resume=True)
    assert contents(elsewhere) == before


def test_a_lock_is_no_link(copied: Path, tmp_path: Path) -> None:
    (copied / ".airpath-lock").unlink()
    (copied / ".airpath-lock").symlink_to(tmp_path / "victim")
    with pytest.raises(airpath.AirpathError, match=r"cannot write .*symbolic links"):
        airpath.sweep(SHORT, out=copied, resume=True)
    assert not (tmp_path / "victim").exists()
