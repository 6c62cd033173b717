"""Keys of subscribers: in no result, readable for their owner, from a file or standard input."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import airpath
from airpath.diagnose.anonymise import key_of
from airpath.emulation import attach, keys
from airpath.emulation.oam import subscribers
from airpath.emulation.oam.subscribers import Subscriber
from airpath.errors import AirpathError, InputError
from conftest import PATIENCE_S, Command, command_environment

IMSI = "001010000000001"
KEY = "465b5ce8b199b49faa5f0a2ee238a6bc"
OPC = "cd63cb71954a9f4e48a5994e37a02baf"
OTHER = "0123456789abcdef0123456789abcdef"
SHORT = {"run.duration_s": 1}


def leaks(place: Path) -> list[str]:
    """Files in there that have a secret, in any case of its letters."""
    secrets = [secret.encode() for secret in (KEY, OPC, OTHER)]
    files = [path for path in place.rglob("*") if path.is_file()]
    return [str(path) for path in files if any(s in path.read_bytes().lower() for s in secrets)]


def test_no_result_has_a_secret(airpath_command: Command, tmp_path: Path) -> None:
    words = ("--set", "run.duration_s=1", "--set", f"radio.ue.0.opc={OTHER.upper()}")
    done = airpath_command(
        "run", "lte-private", *words, "--repeat", "2", "--out", "run", "--report", "r.html"
    )
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.rglob("*"))) > 15
    assert leaks(tmp_path) == []
    assert "sha256:" in (tmp_path / "run/scenario.toml").read_text()
    assert "sha256:" in (tmp_path / "r.html").read_text()
    metadata = pl.read_parquet_metadata(tmp_path / "run/seed-1/flows.parquet")
    assert metadata["airpath.scenario_sha256"]
    assert not [value for value in metadata.values() if OTHER in value.lower() or KEY in value]
    assert "radio.ue.0.opc=…" in (tmp_path / "run/provenance.json").read_text()
    shown = airpath_command("scenario", "show", "lte-private", "--resolved").stdout
    assert "sha256:" in shown
    assert KEY not in shown
    refused = airpath_command("run", "lte-private", "--set", f"radio.ue.0.key={KEY}0")
    assert refused.returncode == 2
    assert "radio.ue.0.key=…" in refused.stderr
    assert KEY not in refused.stderr


def test_a_hash_stands_for_the_key_and_the_imsi() -> None:
    one = airpath.load("lte-private", SHORT)
    assert (
        airpath.load("lte-private", {**SHORT, "radio.ue.0.key": KEY.upper()}).sha256 == one.sha256
    )
    others = [
        {"radio.ue.0.key": OTHER}, {"radio.ue.0.imsi": "001010000000009"}, {"radio.ue.0.key": OPC},
    ]  # fmt: skip
    texts = {airpath.load("lte-private", {**SHORT, **sets}).resolved_toml for sets in others}
    assert len(texts | {one.resolved_toml}) == 4


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The scenario as a run wrote it, beside its subscribers."""
    subscribers.add(tmp_path / "subscribers.db", Subscriber(IMSI, KEY, OPC))
    airpath.run("lte-private", SHORT, out=tmp_path / "run")
    (tmp_path / "copy.toml").write_bytes((tmp_path / "run/scenario.toml").read_bytes())
    return tmp_path / "copy.toml"


def attached(copy: Path, text: str | None = None) -> str:
    """Attach with a file of keys; the UE's address."""
    sets = {}
    if text is not None:
        (copy.parent / "usims").write_text(text)
        sets = {"core.keys": "usims"}
    core = airpath.load(copy, sets).core
    assert core is not None
    return attach.attach(core)[0].address


def test_a_copy_is_the_same_run_and_asks_for_the_keys(copy: Path) -> None:
    assert airpath.load(copy).sha256 == airpath.load("lte-private", SHORT).sha256
    assert airpath.run(copy).id == airpath.run("lte-private", SHORT).id
    with pytest.raises(InputError, match=r"only the hash of its key \(K\); give the file") as asked:
        attached(copy)
    assert "core.keys=FILE" in str(asked.value)
    line = f"# of the test\n{IMSI} {KEY.upper()}\t{OPC}\n"
    assert attached(copy, line) == "10.45.0.2"
    # Where the keys are is no part of what is run.
    loaded = airpath.load(copy, {"core.keys": "usims"})
    assert loaded.sha256 == airpath.load(copy).sha256
    assert "usims" not in loaded.resolved_toml


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{IMSI} {OTHER} {OPC}", r"its key \(K\) in .*usims is not that of the run"),
        (f"{IMSI} {KEY} {OTHER}", r"its OPc in .*usims is not that of the run"),
        (f"001010000000002 {KEY} {OPC}", r"usims has no keys for it"),
        (f"{IMSI} {KEY}", r"usims, line 1: expected IMSI, K and OPc"),
        (f"\n{IMSI} {KEY} {OPC}\n{IMSI} {KEY} {OPC}", r"usims, line 3: IMSI 001010000000001 is "),
    ],
)
def test_other_keys_are_refused_and_not_shown(copy: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as refused:
        attached(copy, text)
    assert not [secret for secret in (KEY, OPC, OTHER) if secret in str(refused.value)]


def test_keys_may_stand_in_a_file_only(copy: Path) -> None:
    text = "".join(
        line for line in copy.read_text().splitlines(True) if not line.startswith(("key", "opc"))
    )
    copy.write_text(text)
    # A simulation needs none.
    assert airpath.run(copy).flows.height == 2
    with pytest.raises(InputError, match=r"has no key \(K\); give the file"):
        attached(copy)
    assert attached(copy, f"{IMSI} {KEY} {OPC}") == "10.45.0.2"


def run_with_input(tmp_path: Path, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command with standard input."""
    return subprocess.run(
        [sys.executable, "-m", "airpath", *words], cwd=tmp_path, env=command_environment(),
        input=text, text=True, capture_output=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip


def test_subscribers_keys_come_from_a_file_or_standard_input(tmp_path: Path) -> None:
    line = f"{IMSI} {KEY} {OPC}\n"
    done = run_with_input(tmp_path, line, "subscriber", "add", IMSI, "--keys", "-")
    assert done.returncode == 0, done.stderr
    assert subscribers.read(tmp_path / "subscribers.db") == [Subscriber(IMSI, KEY, OPC)]
    (tmp_path / "usims").write_text(line)
    words = ("subscriber", "add", IMSI, "--keys", "usims", "--db", "other.db")
    assert run_with_input(tmp_path, "", *words).returncode == 0
    for wrong in (("--key", KEY), ("--keys", "usims", "--key", KEY), ()):
        done = run_with_input(tmp_path, "", "subscriber", "add", IMSI, *wrong)
        assert (done.returncode, done.stderr) == (
            2, "error: give --key and --opc, or --keys FILE\n",
        )  # fmt: skip
    done = run_with_input(tmp_path, "", "subscriber", "add", IMSI, "--keys", "-")
    assert done.stderr == f"error: standard input has no IMSI {IMSI}\n"


def test_the_database_is_its_owners_before_a_secret_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes: list[int] = []
    connect = sqlite3.connect

    def connected(file: Path) -> Any:
        modes.append(stat.S_IMODE(file.stat().st_mode))
        return connect(file)

    monkeypatch.setattr("sqlite3.connect", connected)
    before = os.umask(0)
    try:
        for name in ("new.db", "empty.db"):
            file = tmp_path / name
            if name == "empty.db":
                file.touch()
            subscribers.add(file, Subscriber(IMSI, KEY, OPC))
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
    finally:
        os.umask(before)
    assert modes == [0o600, 0o600]


def test_what_is_removed_is_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "subscribers.db"
    for number in range(100):
        imsi = f"0010100000001{number:02}"
        subscribers.add(file, Subscriber(imsi, KEY, OPC))
    assert KEY.encode() in file.read_bytes()
    for each in subscribers.read(file):
        subscribers.remove(file, each.imsi)
    assert KEY.encode() not in file.read_bytes()
    assert not list(tmp_path.glob("*-journal"))


def test_a_device_is_no_database(tmp_path: Path) -> None:
    device = tmp_path / "null"
    device.symlink_to("/dev/null")
    with pytest.raises(InputError, match="not a regular file"):
        subscribers.add(device, Subscriber(IMSI, KEY, OPC))
    assert stat.S_IMODE(Path("/dev/null").stat().st_mode) == 0o666


def test_a_file_of_keys_has_a_limit() -> None:
    with pytest.raises(InputError, match="/dev/zero is larger than 4 MiB"):
        keys.read("/dev/zero")


def test_a_database_that_others_could_read_is_its_owners_before_a_key_is_in_it(
    tmp_path: Path,
) -> None:
    file = tmp_path / "subscribers.db"
    subscribers.add(file, Subscriber(IMSI, KEY, OPC))
    file.chmod(0o644)
    link = tmp_path / "link.db"
    link.symlink_to(file)
    subscribers.add(link, Subscriber("001010000000002", OTHER, OPC))
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert len(subscribers.read(file)) == 2


def test_a_link_does_not_say_where_a_database_is_made(tmp_path: Path) -> None:
    link = tmp_path / "subscribers.db"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(AirpathError, match=r"subscribers\.db: No such file"):
        subscribers.add(link, Subscriber(IMSI, KEY, OPC))
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_of_keys_that_others_can_read_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "usims"
    file.write_text(f"{IMSI} {KEY} {OPC}\n")
    for mode, said in (
        (0o600, ""), (0o400, ""), (0o640, "warning: other users can read"),
        (0o604, f"can read {file}: chmod 600 {file}"),
    ):  # fmt: skip
        file.chmod(mode)
        assert keys.read(str(file)) == {IMSI: (KEY, OPC)}
        err = capsys.readouterr().err
        assert said in err
        assert bool(said) == bool(err)
        assert key_of(file)
        assert bool(said) == bool(capsys.readouterr().err)
