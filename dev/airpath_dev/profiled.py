"""Builds with a profile of runs: the compiler knows which way is taken how often.

    airpath-dev profiled develop WORD...   as `maturin develop --release WORD...`
    airpath-dev profiled build WORD...     as `maturin build --release WORD...`

The extension is built twice. The first one counts (`-C profile-generate`) while it runs shipped
scenarios, llvm-profdata merges the counts, and the second one is built with them
(`-C profile-use`). What the scenarios do not reach is built as without. The benches do so with
their programs.

All of it lies in target/profiled. A profile stays as long as the program that counted is the same.
Exit codes: 0; 1, something is missing or failed; 2, bad use.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from airpath_dev import ROOT

PLACE = ROOT / "target/profiled"
LEFT_OUT = frozenset({"wire", "lte-20", "nr-n78"})
"""Shipped scenarios whose like the benchmark measures: it must not measure what was trained."""
FIRST_TCP = {
    "asymmetric-3g": 0, "bufferbloat": 0, "bursty-loss": 0, "codel": 0, "double-nat": None,
    "edge-proxy": 0, "evdo": 0, "file-download": 0, "gtpu-fragmentation": 0, "handover": 0,
    "hypervisor": 0, "jitter-reorder": 0, "lte-2012": 0, "lte-private": 0, "nr-drx": 1, "nsa": 0,
    "one-way-firewall": None, "ping-under-load": 1, "policer": 0, "proxy": 0, "random-loss": 0,
    "small-window": 0, "trace-driven": 0, "two-flows": 0, "udp": None, "umts-hspa": 0,
    "usb-module": 0, "wifi-like": 0,
}  # fmt: skip
"""Of each other scenario, the first flow with TCP."""
VARIANTS = (
    ("profile=rfc", "congestion=cubic"),
    ("profile=linux-6.18", "congestion=cubic"),
    ("profile=linux-6.18", "congestion=bbr"),
    ("profile=linux-6.18", "congestion=bbr3"),
)
"""What else that flow runs with."""

Environment = dict[str, str]


class ProfileError(Exception):
    """What failed, for people."""


class MissingError(ProfileError):
    """What is not there, and how to get it."""


def main(words: Sequence[str]) -> int:
    if not words or words[0] not in ("develop", "build", "train"):
        print((__doc__ or "").split("\n\n")[1], file=sys.stderr)
        return 2
    if words[0] == "train":
        return train(Path(words[1]))
    try:
        environment = profiled(PLACE / "extension", lambda counts: extension(counts, words), run)
        done = subprocess.run(
            ["maturin", words[0], "--release", *words[1:]], env=environment, check=False
        )
    except ProfileError as error:
        print(f"profiled: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 1 if done.returncode else 0


def cases() -> Iterator[list[str]]:
    """Yield what training runs: a shipped scenario, and what is set on top."""
    for name, flow in FIRST_TCP.items():
        yield [name]
        for variant in VARIANTS if flow is not None else ():
            yield [name, "run.ack_table=true", *(f"flow.{flow}.{each}" for each in variant)]


def profiled(
    place: Path,
    build: Callable[[Environment], Path],
    run: Callable[[Path, Environment], None],
) -> Environment:
    """Return the environment in which cargo builds with a profile, which is made first.

    ``build`` builds the program that counts, in an environment; ``run`` has it do what is trained.
    """
    merger = profdata()
    raw = place / "raw"
    # Scripts that cargo builds and runs count, too: that is not wanted.
    nothing = {"LLVM_PROFILE_FILE": os.devnull}
    program = build(flags(place / "counting", f"-Cprofile-generate={raw}") | nothing)
    hashed = hashlib.sha256(program.read_bytes())
    hashed.update(json.dumps([*cases()]).encode())
    profile = place / f"{hashed.hexdigest()[:16]}.profdata"
    if not profile.exists():
        shutil.rmtree(raw, ignore_errors=True)
        run(program, os.environ | {"LLVM_PROFILE_FILE": f"{raw}/%p.profraw"})
        counts = sorted(map(str, raw.glob("*.profraw")))
        if not counts:
            raise ProfileError(f"training counted nothing: {raw} is empty")
        # Of another profile nothing stays. This one gets its name when it is whole.
        shutil.rmtree(place / "built", ignore_errors=True)
        for old in place.glob("*.profdata"):
            old.unlink()
        # Sparse: what never ran is not in it, and not taken for cold.
        new = place / "new"
        call([merger, "merge", "--sparse", "-o", str(new), *counts], "merging the counts failed")
        new.replace(profile)
        shutil.rmtree(raw)
    return flags(place / "built", f"-Cprofile-use={profile}")


def flags(target: Path, flag: str) -> Environment:
    """Return this environment with one more flag for rustc, and a target folder."""
    encoded = os.environ.get("CARGO_ENCODED_RUSTFLAGS")
    before = encoded.split("\x1f") if encoded else os.environ.get("RUSTFLAGS", "").split()
    return os.environ | {
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join([*before, flag]),
        "CARGO_TARGET_DIR": str(target),
    }


def profdata() -> str:
    """Return the llvm-profdata that reads what rustc's LLVM counts."""
    try:
        said = call(["rustc", "-vV"], "rustc does not run")
        root = call(["rustc", "--print", "sysroot"], "rustc does not run").strip()
    except FileNotFoundError:
        raise MissingError("Rust is missing: install rustup (https://rustup.rs)") from None
    about = dict(re.findall(r"^([\w -]+): (.+)$", said, re.M))
    own = Path(root) / "lib/rustlib" / about["host"] / "bin/llvm-profdata"
    if own.is_file():
        return str(own)
    major = about["LLVM version"].split(".")[0]
    for name in (f"llvm-profdata-{major}", "llvm-profdata"):
        other = shutil.which(name)
        if other and f"LLVM version {major}." in version(other):
            return other
    raise MissingError(
        f"llvm-profdata of LLVM {major} is missing, which rustc {about['release']} has:"
        " rustup component add llvm-tools"
    )


def version(program: str) -> str:
    """Return what it says of itself; LLVM 14 does so only with a command."""
    command = [program, "merge", "--version"]
    return subprocess.run(command, text=True, capture_output=True, check=False).stdout


def extension(environment: Environment, words: Sequence[str]) -> Path:
    """Build the extension that counts, with the features that ``words`` ask for."""
    at = words.index("--features") if "--features" in words else len(words)
    place = PLACE / "extension/wheel"
    shutil.rmtree(place, ignore_errors=True)
    command = ["maturin", "build", "--release", "--quiet", *words[at : at + 2]]
    command += ["--compatibility", "linux", "--out", str(place)]
    call(command, "the build that counts failed", environment)
    (wheel,) = place.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if re.search(r"/_core\..*so$", name))
        return Path(archive.extract(name, place))


def run(library: Path, environment: Environment) -> None:
    """Train an extension, in a process of its own: that writes its counts when it ends."""
    command = [sys.executable, "-m", "airpath_dev", "profiled", "train", str(library)]
    call(command, "training failed", {**environment, "PYTHONPATH": str(ROOT / "dev")})


def train(library: Path) -> int:
    """Run all cases with an extension, and have their tables."""
    core: Any = load("_core", importlib.machinery.ExtensionFileLoader("_core", str(library)))
    shipped = dict(core.shipped())
    for name, *sets in cases():
        scenario = core.parse(shipped[name], name, None, sets)
        result = core.simulate(scenario, scenario.seed)
        for table in result.table_names():
            result.table(table).__arrow_c_stream__()
    return 0


def load(name: str, loader: Any) -> Any:
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def call(command: list[str], failed: str, environment: Environment | None = None) -> str:
    """Run a program and return what it printed; its messages are for whoever waits."""
    done = subprocess.run(
        command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, check=False
    )
    if done.returncode:
        raise ProfileError(f"{failed} (exit code {done.returncode})")
    return done.stdout
