"""Congestion controls of your own, for tests: classes, libraries, and tables to compare."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import airpath

ROOT = Path(__file__).resolve().parents[2]

SCENARIOS = ["wire", "lte-20", "bursty-loss", "umts-hspa", "two-flows"]
"""Slow starts that end early, losses in bursts, two kinds of radio, and competition."""

AS_LINUX = {"flow.*.profile": "linux-6.18", "flow.*.congestion": "cubic", "run.duration_s": 12}
"""The profile whose CUBIC the examples are ports of."""


def example() -> ModuleType:
    """The example ``examples/cubic.py``."""
    spec = importlib.util.spec_from_file_location("cubic_example", ROOT / "examples/cubic.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def tables(scenario: str, out: Path, **options: Any) -> dict[str, bytes]:
    """The bytes of every table of a run."""
    airpath.run(scenario, set=AS_LINUX, out=out, **options)
    return {file.name: file.read_bytes() for file in sorted(out.glob("*.parquet"))}


def rust_library(source: Path, out: Path) -> Path:
    """Build a library from one file of Rust."""
    if shutil.which("rustc") is None:
        pytest.skip("rustc is missing; it builds the library")
    command = ["rustc", "--edition", "2024", "-O", "--crate-type", "cdylib", "-A", "warnings"]
    subprocess.run([*command, str(source), "-o", str(out)], check=True)
    return out


def c_library(text: str, out: Path) -> Path:
    """Build a library from C."""
    if shutil.which("cc") is None:
        pytest.skip("cc is missing; it builds the library")
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(out)]
    subprocess.run(command, input=text.encode(), check=True)
    return out
