"""Files that are written where somebody else may have put a link, and who may read them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import airpath
from airpath.campaign.store import open_store
from airpath.errors import AirpathError
from airpath.fitting.fit import Fit
from emulated import DELAYS, skip_without

WIRE = DELAYS + '\n[[program]]\nname = "a"\ncommand = "echo said"\n'


def _mode(file: Path) -> int:
    return file.stat().st_mode & 0o777


def test_a_campaigns_lock_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "campaign").mkdir()
    victim = tmp_path / "victim"
    (tmp_path / "campaign/.airpath-lock").symlink_to(victim)
    store = open_store(tmp_path / "campaign")
    with pytest.raises(AirpathError, match=r"cannot write .*campaign"):
        store.lock()
    assert not victim.exists()
    victim.write_text("precious")
    with pytest.raises(AirpathError, match=r"cannot write .*campaign"):
        store.lock()
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("dangles", [True, False], ids=["dangling", "to a file"])
def test_a_fitted_scenario_follows_no_link(tmp_path: Path, dangles: bool) -> None:
    victim = tmp_path / "victim"
    if not dangles:
        victim.write_text("precious")
    fitted = Fit("a", 0, "sender", "[run]\n", "1\n2\n", [], [], None, [])  # type: ignore[arg-type]
    for name in ("fitted.toml", "fitted.capacity.trace"):
        (tmp_path / name).symlink_to(victim)
    written = fitted.write(tmp_path / "fitted.toml")
    assert sorted(file.name for file in written) == ["fitted.capacity.trace", "fitted.toml"]
    assert not any(file.is_symlink() for file in written)
    assert victim.exists() != dangles
    assert dangles or victim.read_text() == "precious"


@pytest.mark.parametrize("name", ["fitted.toml", "fitted.capacity.trace"])
def test_fit_refuses_a_name_that_is_a_link(cli: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / name).symlink_to(tmp_path / "victim")
    code, _, said = cli("fit", "slow.pcapng", "-o", "fitted.toml")
    assert code == 2
    assert f"{name} exists already" in said
    assert not (tmp_path / "victim").exists()


def test_a_simulated_capture_is_the_owners_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        airpath.run("wire", {"run.duration_s": 0.1}, out=tmp_path / "run", capture=True)
    finally:
        os.umask(before)
    assert _mode(tmp_path / "run/capture.pcapng") == 0o600
    assert _mode(tmp_path / "run/summary.json") == 0o644


@skip_without("ip")
def test_what_programs_sent_and_printed_is_the_owners_alone(
    cli: Any, tmp_path: Path, wire: Path
) -> None:
    before = os.umask(0o022)
    try:
        # Its code is that of what ran inside.
        with pytest.raises(SystemExit) as ended:
            cli("emulate", str(wire), "--explain", "off", "--capture", "--out", "run")
    finally:
        os.umask(before)
    assert ended.value.code in (0, 3)
    written = [tmp_path / "run/capture.pcapng", *(tmp_path / "run/programs").iterdir()]
    assert len(written) == 3
    assert {file.name: _mode(file) for file in written} == {file.name: 0o600 for file in written}
    assert (tmp_path / "run/programs/a.stdout").read_text() == "said\n"
