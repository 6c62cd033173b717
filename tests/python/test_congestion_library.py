"""Congestion control in a shared library: its tables, its faults, and who may load one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import airpath
import own_congestion
from airpath.congestion import libraries
from airpath.errors import InputError
from conftest import Command


@pytest.fixture(scope="module")
def cubic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of ``examples/cubic``."""
    out = tmp_path_factory.mktemp("library") / "libcubic.so"
    return own_congestion.rust_library(own_congestion.ROOT / "examples/cubic/src/lib.rs", out)


@pytest.mark.parametrize("scenario", own_congestion.SCENARIOS)
def test_cubic_in_a_library_gives_the_tables_of_the_built_in_one(
    scenario: str, cubic: Path, tmp_path: Path
) -> None:
    built_in = own_congestion.tables(scenario, tmp_path / "built-in")
    own = own_congestion.tables(scenario, tmp_path / "own", congestion={"flow.*": cubic})
    assert own.keys() == built_in.keys()
    assert [name for name in own if own[name] != built_in[name]] == []


def test_a_library_is_named_on_the_command_line(
    cubic: Path, airpath_command: Command, tmp_path: Path
) -> None:
    sets = ["--set", f"flow.0.congestion={cubic}", "--set", "run.duration_s=1"]
    done = airpath_command("run", "wire", *sets, "--out", "run")
    assert done.returncode == 0, done.stderr
    assert "(cubic, endpoints: RFC defaults)" in done.stdout
    assert "not explained: libraries are not run with the scenario changed" in done.stderr
    assert "libcubic.so sha256 " in (tmp_path / "run/provenance.json").read_text()


def test_a_scenario_cannot_load_a_library(cubic: Path, tmp_path: Path) -> None:
    text = (
        airpath.load("wire")
        .given[0]
        .replace('kind = "bulk"', f'kind = "bulk"\ncongestion = "{cubic}"')
    )
    file = tmp_path / "stranger.toml"
    file.write_text(text)
    with pytest.raises(
        InputError, match="a scenario cannot load a library; name it on the command"
    ):
        airpath.load(file)


@pytest.mark.parametrize(
    ("sets", "left", "found"),
    [
        (["flow.0.congestion=./a.so"], [], {"flow.0": "./a.so"}),
        (['flow.0.congestion = "./a.so"'], [], {"flow.0": "./a.so"}),
        (["flow.*.congestion=a.so"], [], {"flow.*": "a.so"}),
        (["flow.0.congestion=a.so", "flow.0.congestion=bbr"], ["flow.0.congestion=bbr"], {}),
        (["path.down.0.congestion=a.so"], ["path.down.0.congestion=a.so"], {}),
    ],
)
def test_settings_that_name_libraries(
    sets: list[str], left: list[str], found: dict[str, str]
) -> None:
    assert libraries(sets) == (left, found)


def test_sweeps_load_no_library(cubic: Path, airpath_command: Command, tmp_path: Path) -> None:
    """A campaign file may be a stranger's."""
    campaign = tmp_path / "campaign.toml"
    campaign.write_text(
        f'scenario = "wire"\n[[vary]]\nkey = "flow.0.congestion"\nvalues = ["cubic", "{cubic}"]\n'
    )
    done = airpath_command("sweep", str(campaign), "--out", "folder")
    assert done.returncode == 2
    assert "a scenario cannot load a library" in done.stderr


EMPTY = "int nothing;"
OTHER_ABI = """
struct { unsigned abi, size; void *rest[16]; } airpath_congestion_control = { 7, 104 };
"""
OTHER_SIZE = """
struct { unsigned abi, size; void *rest[16]; } airpath_congestion_control = { 1, 8 };
"""
UNNAMED = """
struct { unsigned abi, size; void *rest[16]; } airpath_congestion_control = { 1, 88 };
"""
UNDEFINED = "extern int missing_function(void); int present(void) { return missing_function(); }"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (EMPTY, "does not export airpath_congestion_control"),
        (OTHER_ABI, "was built for version 7 of the interface, but this airpath has version 1"),
        (OTHER_SIZE, "exports 8 bytes instead of 88"),
        (UNNAMED, "has no name of 1 to 64 printable characters"),
        (UNDEFINED, "cannot be loaded: .*undefined symbol: missing_function"),
    ],
)
def test_a_library_that_is_not_one_is_one_error(text: str, message: str, tmp_path: Path) -> None:
    library = own_congestion.c_library(text, tmp_path / "libwrong.so")
    with pytest.raises(InputError, match=message) as raised:
        airpath.run("wire", set={"flow.0.congestion": str(library)})
    assert str(raised.value).count("\n") == 0


def test_a_file_that_is_not_a_library_is_refused_before_it_is_loaded(
    cubic: Path, airpath_command: Command, tmp_path: Path
) -> None:
    whole = cubic.read_bytes()
    files = {
        "libtext.so": (b"#!/bin/sh\nexit 1\n", "is not an ELF shared object"),
        "libempty.so": (b"", "is not an ELF shared object"),
        "libcut.so": (whole[:4096], "is truncated"),
        "libarm.so": (whole[:18] + b"\xb6" + whole[19:], "is for another kind of processor"),
    }
    for name, (content, message) in files.items():
        (tmp_path / name).write_bytes(content)
        done = airpath_command("run", "wire", "--set", f"flow.0.congestion=./{name}")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"error: congestion: flow.0: {name} {done.stderr.split(name)[1][1:]}"
        assert message in done.stderr
        assert not (tmp_path / "runs").exists()


PANICS = """
#[path = "ABI"]
mod abi;
use abi::{Ack, CongestionControl, Loss, SlowStartExit, Start, Window};
crate::congestion_control!(Broken);
struct Broken(u32);
impl CongestionControl for Broken {
    const NAME: &'static std::ffi::CStr = c"broken";
    fn start(_: &Start) -> Self { Self(0) }
    fn on_ack(&mut self, _: &Ack, window: &mut Window) -> Option<SlowStartExit> {
        self.0 += 1;
        if self.0 > 10 { FAULT }
        None
    }
    fn on_loss(&mut self, _: &Loss, _: &mut Window) {}
}
"""


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ('panic!("ten is enough")', "on_ack failed with code 1"),
        ("window.cwnd_segments = f64::NAN", "on_ack set cwnd_segments to NaN"),
        ("window.cwnd_segments = 0.0", "on_ack set cwnd_segments to 0"),
        ("window.pacing_bps = 1e6", "on_ack set pacing_bps to 1000000, but it is not model-based"),
    ],
)
def test_a_library_that_fails_is_one_error(fault: str, message: str, tmp_path: Path) -> None:
    abi = own_congestion.ROOT / "crates/cc/src/abi.rs"
    source = tmp_path / "broken.rs"
    source.write_text(PANICS.replace("ABI", str(abi)).replace("FAULT", fault))
    library = own_congestion.rust_library(source, tmp_path / "libbroken.so")
    with pytest.raises(InputError, match=message):
        airpath.run("wire", congestion={"flow.0": library}, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_template_builds_and_runs(airpath_command: Command, tmp_path: Path) -> None:
    done = airpath_command("new", "congestion", "my-first")
    assert done.returncode == 0, done.stderr
    crate = tmp_path / "my-first"
    library = own_congestion.rust_library(crate / "src/lib.rs", tmp_path / "libmy_first.so")
    assert done.stdout.rstrip().endswith(
        "flow.0.congestion=./my-first/target/release/libmy_first.so"
    )
    result = airpath.run("wire", congestion={"flow.0": library})
    assert result.flows["congestion"].to_list() == ["my-first"]
    assert (result.summary["flows"][0]["goodput_mbps"] or 0) > 8
    again = airpath_command("new", "congestion", "my-first")
    assert (again.returncode, again.stderr) == (2, "error: my-first is not empty\n")
    assert airpath_command("new", "congestion", "Mine!").returncode == 2


def test_cargo_accepts_the_template(airpath_command: Command, tmp_path: Path) -> None:
    airpath_command("new", "congestion", "my-first")
    manifest = tmp_path / "my-first/Cargo.toml"
    command = ["cargo", "metadata", "--offline", "--no-deps", "--manifest-path", str(manifest)]
    described = subprocess.run(command, check=False, capture_output=True, text=True)
    assert described.returncode == 0, described.stderr
    assert '"cdylib"' in described.stdout
