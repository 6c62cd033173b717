"""Simulates CUBIC as RFC 9438 has it, and emulates the BPF template of it, over drawn scenarios.

The scenarios are those of ``twin-random``, with CUBIC without an early end of slow start for every
TCP flow. The kernel runs ``crates/bpf/template/cubic.bpf.c`` (root, clang).
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from airpath_dev import ROOT
from airpath_dev.harness import FINE, MEASURED, WRONG, Count, Seed, heading, need, say, write

from . import drawn
from .draw import Drawn, draw

TEMPLATE = ROOT / "crates/bpf/template"

MOST = 6
"""Emulated runs of a scenario in which a figure differs."""

ALGORITHM = """\
congestion = "cubic"
slow_start = "none"
cubic.arithmetic = "rfc"
"""


def of_template(of: Drawn) -> Drawn:
    """Scenario in which every TCP flow has the template's algorithm."""
    text = re.sub(r'congestion = "[a-z]+"\n', ALGORITHM, of.text)
    return replace(of, text=text, shape=re.sub(r"\b(bbr|reno)\b(?= (up|down))", "cubic", of.shape))


def main(
    seed: Seed = 7300,
    count: Count = 10,
    out: Annotated[Path, typer.Option(help="Where the runs are kept.")] = ROOT / "runs/twin-bpf",
    page: Annotated[Path, typer.Option(help="The page.")] = MEASURED / "twin-bpf.md",
) -> int:
    """Draw COUNT scenarios, from SEED on. The exit code is 1 if too few figures agree."""
    need("make", "clang", root=True)
    built = out / "template"
    shutil.copytree(TEMPLATE, built, dirs_exist_ok=True)
    subprocess.run(["make", "-s", "-C", built], check=True)
    results = []
    for one in range(seed, seed + count):
        results.append(
            drawn.run(of_template(draw(one)), out, congestion=[f"{built}/cubic.bpf.o"], most=MOST)
        )
        say(f"seed {one}: {results[-1].verdict}")
    lines = markdown(results, seed)
    print("\n".join(lines))
    write(page, lines)
    return FINE if drawn.passes(results) else WRONG


def markdown(results: Sequence[drawn.Result], seed: int) -> list[str]:
    """The page."""
    return [
        heading(
            "A BPF congestion control: simulated and emulated",
            f"twin-bpf SEED={seed} COUNT={len(results)}",
        ),
        "`dev/airpath_dev/twin/draw.py` draws these scenarios, and `causes.toml` beside it has the",
        "causes. Every TCP flow is CUBIC of RFC 9438 without HyStart: simulated",
        '(`slow_start = "none"`, `cubic.arithmetic = "rfc"`), and in the kernel the template',
        "`crates/bpf/template/cubic.bpf.c` through `--congestion`. Each ran once on the virtual",
        "clock and twice on the real one. Where a figure differed it was emulated again, up to",
        f"{MOST} times. The limits are those of [the chosen twins](twin.md). A figure outside its",
        "limit is *undecided* if the emulated runs differ from each other at least as much.",
        "",
        *drawn.body(results, "bpf"),
    ]
