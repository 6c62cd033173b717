"""Builds airpath with profile-guided optimisation.

    airpath-dev profiled develop WORD...   as `maturin develop --release WORD...`
    airpath-dev profiled build WORD...     as `maturin build --release WORD...`

The extension is built twice. The first build counts (`-C profile-generate`) while it runs shipped
scenarios, llvm-profdata merges the counts, and the second build uses them (`-C profile-use`). Code
that the scenarios do not reach is built as without a profile. The benches build their programs
with such profiles too.

All files are in target/profiled. A profile is reused until the counting program changes.
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
"""Shipped scenarios that resemble the benchmark's cases: a benchmark must not measure its training
cases."""
FIRST_TCP = {
    "asymmetric-3g": 0, "bufferbloat": 0, "bursty-loss": 0, "codel": 0, "double-nat": None,
    "edge-proxy": 0, "evdo": 0, "file-download": 0, "gro-forwarding": 0, "gtpu-fragmentation": 0,
    "handover": 0, "hypervisor": 0, "jitter-reorder": 0, "lte-2012": 0, "lte-private": 0,
    "modem-blocks": 0,
    "nr-drx": 1, "nsa": 0, "one-way-firewall": None, "pdcp-gap": 0, "ping-under-load": 1,
    "policer": 0, "proxy": 0, "random-loss": 0, "small-window": 0, "trace-driven": 0,
    "carrier-aggregation": 0, "split-bearer": 0, "two-flows": 0, "udp": None, "umts-hspa": 0,
    "upf-cpu": 0, "usb-module": 0, "vpn-mtu": 0, "wifi-like": 0,
}  # fmt: skip
"""The index of the first TCP flow in each other scenario."""
VARIANTS = (
    ("profile=rfc", "congestion=cubic"),
    ("profile=linux-6.18", "congestion=cubic"),
    ("profile=linux-6.18", "congestion=bbr"),
    ("profile=linux-6.18", "congestion=bbr3"),
)
"""Settings with which that flow runs again."""

Environment = dict[str, str]


class ProfileError(Exception):
    """A build failed; the text is for the user."""


class MissingError(ProfileError):
    """A tool is missing; the text says how to get it."""


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
    """Yield the training cases: a shipped scenario and its changed settings."""
    for name, flow in FIRST_TCP.items():
        yield [name]
        for variant in VARIANTS if flow is not None else ():
            yield [name, "run.ack_table=true", *(f"flow.{flow}.{each}" for each in variant)]


def profiled(
    place: Path,
    build: Callable[[Environment], Path],
    run: Callable[[Path, Environment], None],
) -> Environment:
    """Make a profile, and return the environment in which cargo builds with it.

    ``build`` builds the counting program in an environment; ``run`` runs its training cases.
    """
    merger = profdata()
    raw = place / "raw"
    # Build scripts and procedural macros would count too; discard their counts.
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
        # Remove files of former profiles. The new one is renamed once it is complete.
        shutil.rmtree(place / "built", ignore_errors=True)
        for old in place.glob("*.profdata"):
            old.unlink()
        # --sparse omits functions that never ran, so that they are not optimised as cold.
        new = place / "new"
        call([merger, "merge", "--sparse", "-o", str(new), *counts], "merging the counts failed")
        new.replace(profile)
        shutil.rmtree(raw)
    return flags(place / "built", f"-Cprofile-use={profile}")


def flags(target: Path, flag: str) -> Environment:
    """Return this environment with one more rustc flag and another target folder."""
    encoded = os.environ.get("CARGO_ENCODED_RUSTFLAGS")
    before = encoded.split("\x1f") if encoded else os.environ.get("RUSTFLAGS", "").split()
    return os.environ | {
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join([*before, flag]),
        "CARGO_TARGET_DIR": str(target),
    }


def profdata() -> str:
    """Return an llvm-profdata that can read the profiles of rustc's LLVM."""
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
    """Return llvm-profdata's version text; LLVM 14 prints it only for a subcommand."""
    command = [program, "merge", "--version"]
    return subprocess.run(command, text=True, capture_output=True, check=False).stdout


def extension(environment: Environment, words: Sequence[str]) -> Path:
    """Build the counting extension, with the features in maturin's arguments ``words``."""
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
    """Train an extension in a separate process, which writes its counts when it ends."""
    command = [sys.executable, "-m", "airpath_dev", "profiled", "train", str(library)]
    call(command, "training failed", {**environment, "PYTHONPATH": str(ROOT / "dev")})


def train(library: Path) -> int:
    """Run all cases with an extension, and make their tables too."""
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
    """Run a program and return its standard output; standard error goes to the terminal."""
    done = subprocess.run(
        command, cwd=ROOT, env=environment, text=True, stdout=subprocess.PIPE, check=False
    )
    if done.returncode:
        raise ProfileError(f"{failed} (exit code {done.returncode})")
    return done.stdout
