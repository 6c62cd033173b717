"""Judge whether the intervals of `airpath whatif --emulate` hold in a second set of runs.

Each scenario is compared twice, with different seeds. If the intervals are right, two means with
intervals of half widths h and k differ by at most sqrt(h^2 + k^2) in 95 % of cases. A mean lies
within the interval of the other set less often: with 10 blocks in about 87 % of cases.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from airpath.base.text import plural
from airpath.cli.console import aligned
from airpath.diagnose.blocks import whatif_emulated
from airpath.diagnose.whatif import Tried
from airpath.drivers.options import EmulationOptions
from airpath.runs.document import Variants
from airpath_dev.harness import FINE, WRONG, NotCheckedError, say

CASES: dict[str, tuple[dict[str, float], list[list[str]]]] = {
    "bufferbloat": (
        {"run.duration_s": 3},
        [["path.down.0.queue_packets=20"], ['path.down.0.aqm="codel"']],
    ),
    "random-loss": (
        {"run.duration_s": 3},
        [['flow.0.congestion="bbr"'], ["path.up.0.delay_ms=20"]],
    ),
    "codel": (
        {"run.duration_s": 3},
        [["path.down.0.codel_target_ms=40"], ["path.up.0.delay_ms=50"]],
    ),
}
"""Scenarios with their settings and variants: a deep queue, random loss, and a managed queue."""

LEAST_SHARE = 0.85
"""Share of differences that have to hold. If 30 independent differences hold with a probability of
95 % each, fewer hold in 1 of 100 judgments. Figures of one flow are not independent."""


def main(
    blocks: Annotated[int, typer.Option(help="Blocks of each set.")] = 10,
    seed: Annotated[int, typer.Option(help="First seed; the second set's are 1000 later.")] = 1,
    bound_ms: Annotated[
        float | None,
        typer.Option(help="Bound of packets and of the host; raise it on a busy machine."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of the runs; complete ones are reused.")] = Path(
        "runs/blocks"
    ),
) -> int:
    """Compare each scenario twice and count how many differences hold. Needs root."""
    apart: list[bool] = []
    inside: list[bool] = []
    for name, (given, tries) in CASES.items():
        sets = dict(given)
        if bound_ms is not None:
            sets["emulation.lateness_bound_ms"] = sets["emulation.host_bound_ms"] = bound_ms
        both = []
        for which in (0, 1):
            options = EmulationOptions(
                flows=True, seed=seed + 1000 * which, out=out / f"{name}-{which + 1}"
            )
            tried = Tried.load(name, tries, set=sets)
            found = whatif_emulated(tried, blocks=blocks, options=options, say=say)
            late = (found.get("blocks") or {"invalid": []})["invalid"]
            say(f"{name}, set {which + 1}: {plural(len(late), 'late block')}")
            both.append(found)
        lines = [["", "first set", "second set", "apart"]]
        for label, one, other in _differences(*both):
            allowed = math.hypot(one[1], other[1])
            held = abs(one[0] - other[0]) <= allowed + 1e-9
            apart.append(held)
            inside.append(abs(one[0] - other[0]) <= one[1] + 1e-9)
            lines.append([label, _text(one), _text(other), "" if held else "apart"])
        print(f"{name}:", *aligned(lines), "", sep="\n", flush=True)
    if not apart:
        raise NotCheckedError("no figure has an interval in both sets")
    print(f"{sum(apart)} of {len(apart)} differences hold in the second set (95 % expected)")
    print(f"{sum(inside)} of {len(inside)} second means are within the first interval")
    return FINE if sum(apart) >= LEAST_SHARE * len(apart) else WRONG


Difference = tuple[float, float]
"""A change and the half width of its interval, in percent."""


def _differences(one: Variants, other: Variants) -> list[tuple[str, Difference, Difference]]:
    found = []
    rows = {(row["flow"], row["metric"]): row for row in other["rows"]}
    for row in one["rows"]:
        same = rows.get((row["flow"], row["metric"]))
        for index, cell in enumerate(row["cells"][1:], 1):
            second = same["cells"][index] if same else None
            values = [_difference(each) if each else None for each in (cell, second)]
            if values[0] is None or values[1] is None:
                continue
            label = f"({index}) {row['metric']} of {row['flow']}"
            found.append((label, values[0], values[1]))
    return found


def _difference(cell: object) -> Difference | None:
    assert isinstance(cell, dict)
    change, interval = cell["change"], cell["change_ci95"]
    if change is None or interval is None:
        return None
    return 100 * change, 50 * (interval[1] - interval[0])


def _text(one: Difference) -> str:
    return f"{one[0]:+.2f} ± {one[1]:.2f} %"
