"""`tools/setup profiled`, `make wheel`: what is missing is said, and nothing stays half made."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from airpath import _core, scenario
from airpath_dev import ROOT
from airpath_dev import profiled as profiled_tool

RUSTC = """
import sys
said = "rustc 1.95.0\\nrelease: 1.95.0\\nhost: x86\\nLLVM version: 22.1.2"
print({{"-vV": said, "--print": {root!r}}}[sys.argv[1]])
"""
PROFDATA = """
import pathlib, sys
if "--version" in sys.argv:
    print("  LLVM version {version}")
elif "merge" in sys.argv:
    assert "--sparse" in sys.argv
    pathlib.Path(sys.argv[sys.argv.index("-o") + 1]).write_text(" ".join(sys.argv[-2:]))
"""
MAKES_A_WHEEL = """
import pathlib, sys, zipfile
place = pathlib.Path(sys.argv[sys.argv.index("--out") + 1])
place.mkdir(parents=True)
with zipfile.ZipFile(place / "airpath-0.whl", "w") as archive:
    archive.writestr("airpath/_core.abi3.so", "not a library")
    archive.writestr("airpath/_core.pyi", "")
"""


@pytest.fixture
def profiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The tool as a module, where nothing but what the test puts there can be called."""
    module = profiled_tool
    monkeypatch.setattr(module, "PLACE", tmp_path / "profiled")
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS"):
        monkeypatch.delenv(name, raising=False)
    _program(tmp_path / "rustc", RUSTC.format(root=str(tmp_path / "root")))
    return module


def _program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!{sys.executable}\n{text}", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def _own_profdata(tmp_path: Path) -> Path:
    place = tmp_path / "root/lib/rustlib/x86/bin/llvm-profdata"
    return _program(place, PROFDATA.format(version="22.1.2-rust"))


def _built(text: str, place: Path) -> Any:
    def build(environment: Mapping[str, str]) -> Path:
        # What runs while it is built does not count.
        assert environment["LLVM_PROFILE_FILE"] == os.devnull
        assert "-Cprofile-generate=" in environment["CARGO_ENCODED_RUSTFLAGS"]
        place.write_text(text)
        return place

    return build


def _counts(program: Path, environment: Mapping[str, str]) -> None:
    raw = Path(environment["LLVM_PROFILE_FILE"]).parent
    raw.mkdir(parents=True)
    for one in ("1", "2"):
        (raw / f"{one}.profraw").write_text(program.read_text() + one)


def test_without_llvm_profdata_it_says_how_to_get_it(
    profiled: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # One of another LLVM does not read what this rustc counts.
    _program(tmp_path / "llvm-profdata", PROFDATA.format(version="14.0.6"))
    assert profiled.main(["develop", "--quiet"]) == 1
    said = capsys.readouterr().err
    assert said == (
        "profiled: llvm-profdata of LLVM 22 is missing, which rustc 1.95.0 has: "
        "rustup component add llvm-tools\n"
    )
    assert not (tmp_path / "profiled").exists()


def test_rusts_own_llvm_profdata_comes_first_and_debians_does_if_it_fits(
    profiled: Any, tmp_path: Path
) -> None:
    debians = _program(tmp_path / "llvm-profdata", PROFDATA.format(version="22.0.1"))
    assert profiled.profdata() == str(debians)
    assert profiled.profdata() != str(_own_profdata(tmp_path))
    assert profiled.profdata() == str(tmp_path / "root/lib/rustlib/x86/bin/llvm-profdata")


def test_without_rust_it_says_so(profiled: Any, tmp_path: Path) -> None:
    (tmp_path / "rustc").unlink()
    with pytest.raises(profiled.MissingError, match=r"Rust is missing: install rustup"):
        profiled.profdata()


def test_training_that_fails_is_a_failure(
    profiled: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The extension is none, so it cannot be loaded."""
    _own_profdata(tmp_path)
    _program(tmp_path / "maturin", MAKES_A_WHEEL)
    assert profiled.main(["develop", "--quiet"]) == 1
    said = capfd.readouterr().err
    assert "not a library" in said or "invalid ELF" in said or "file too short" in said
    assert said.splitlines()[-1] == "profiled: training failed (exit code 1)"
    assert not [*(tmp_path / "profiled").rglob("*.profdata")]


def test_a_build_that_fails_is_a_failure(
    profiled: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _own_profdata(tmp_path)
    _program(tmp_path / "maturin", "raise SystemExit('error: no space left')")
    assert profiled.main(["build", "--features", "bpf", "--out", "dist"]) == 1
    said = capfd.readouterr().err.splitlines()
    assert said[0] == "error: no space left"
    assert said[-1] == "profiled: the build that counts failed (exit code 1)"


def test_what_counts_nothing_is_no_profile(profiled: Any, tmp_path: Path) -> None:
    _own_profdata(tmp_path)
    place = tmp_path / "profiled/x"
    with pytest.raises(profiled.ProfileError, match="training counted nothing"):
        profiled.profiled(place, _built("a", tmp_path / "a"), lambda *_: None)


def test_a_profile_is_made_anew_where_what_counts_is_another(
    profiled: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _own_profdata(tmp_path)
    monkeypatch.setenv("RUSTFLAGS", "-C target-cpu=native")
    place, program = tmp_path / "profiled/x", tmp_path / "program"

    def profile(text: str, run: Any = _counts) -> str:
        place.mkdir(parents=True, exist_ok=True)
        environment = profiled.profiled(place, _built(text, program), run)
        assert environment["CARGO_TARGET_DIR"] == str(place / "built")
        *before, flag = environment["CARGO_ENCODED_RUSTFLAGS"].split("\x1f")
        assert before == ["-C", "target-cpu=native"]
        assert [*place.glob("*.profdata")] == [Path(flag.removeprefix("-Cprofile-use="))]
        return str(flag)

    def fails(*_: Any) -> None:
        raise profiled.ProfileError("training failed")

    first = profile("a")
    (place / "built").mkdir()
    # Nothing is trained twice, and what was built stays.
    assert profile("a", fails) == first
    assert (place / "built").exists()
    # What is interrupted leaves the profile before, and the next one starts from scratch.
    with pytest.raises(profiled.ProfileError):
        profile("b", fails)
    assert profile("a", fails) == first
    assert profile("b") != first
    assert not (place / "built").exists()
    assert not (place / "raw").exists()


def test_bad_use(profiled: Any) -> None:
    for words in ([], ["install"]):
        assert profiled.main(words) == 2


def test_training_has_every_shipped_scenario_but_the_benchmarks(profiled: Any) -> None:
    names = {name for name, _ in _core.shipped()}
    assert {name for name, *_ in profiled.cases()} == names - profiled.LEFT_OUT
    assert names > profiled.LEFT_OUT
    for name, *sets in profiled.cases():
        scenario.load(f"builtin:{name}", sets)
    for name, flow in profiled.FIRST_TCP.items():
        tcp = [one for one in scenario.load(f"builtin:{name}").flows if one["congestion"]]
        assert flow == (tcp[0]["index"] if tcp else None)


def test_setup_ends_with_1_and_says_why(tmp_path: Path) -> None:
    """In a copy that has the scripts alone."""
    for name in ("tools/setup", *(f"dev/airpath_dev/{name}.py" for name in PLAIN)):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        shutil.copy(ROOT / name, tmp_path / name)
    _program(tmp_path / ".venv/bin/python", PYTHON)
    _program(tmp_path / "bin/rustc", RUSTC.format(root=str(tmp_path / "root")))
    for name in ("cargo", "cc", "clang", "make"):
        _program(tmp_path / "bin" / name, "")
    path = f"{tmp_path / 'bin'}:/usr/bin:/bin"
    done = subprocess.run(
        [tmp_path / "tools/setup", "profiled"],
        env={**os.environ, "PATH": path, "PYTHON": sys.executable},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    first, second = done.stderr.splitlines()
    assert first.startswith("profiled: llvm-profdata of LLVM 22 is missing")
    assert second == "setup: the build failed: see above"


PLAIN = ("__init__", "__main__", "profiled")
PYTHON = f"""
import os, sys
if sys.argv[1:3] != ["-m", "pip"]:
    os.execv({sys.executable!r}, [{sys.executable!r}, *sys.argv[1:]])
"""
