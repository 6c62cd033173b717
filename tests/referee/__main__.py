"""``python -m referee``: run what is missing, write the table."""

from __future__ import annotations

import json as jsonlib
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import typer

from referee import forwarder, kernel, network, simulation, table
from referee.forwarder import ROOT
from referee.packets import LogError
from referee.rows import Row, matrix

ATTEMPTS = 3
"""A run that was too late is done again, up to this often."""


def main(
    only: Annotated[
        list[str] | None, typer.Option(metavar="CC", help="Rows of this congestion control.")
    ] = None,
    rate: Annotated[list[int] | None, typer.Option(metavar="MBPS")] = None,
    rtt: Annotated[list[int] | None, typer.Option(metavar="MS")] = None,
    buffer: Annotated[list[float] | None, typer.Option(metavar="BDP")] = None,
    loss: Annotated[list[float] | None, typer.Option(metavar="SHARE")] = None,
    repeat: Annotated[int, typer.Option(min=1, help="Kernel runs of rows without loss.")] = 2,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of rows with random loss.")] = 5,
    duration: Annotated[
        float | None, typer.Option(metavar="S", help="Seconds a run. [default: 20 or 30, by RTT]")
    ] = None,
    out: Annotated[Path, typer.Option(help="Where the kernel's results are kept.")] = ROOT
    / "runs/referee",
    page: Annotated[Path, typer.Option(help="The table.")] = ROOT / "docs/reference/referee.md",
    simulate_only: Annotated[
        bool, typer.Option(help="Only with what the kernel has done.")
    ] = False,
    keep_logs: Annotated[
        bool, typer.Option(help="Keep the packet logs beside the results.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the selected rows as JSON.")] = False,
) -> None:
    """Run the host kernel's TCP and the simulated one over the same path, and compare them.

    What the kernel has already done is kept in the results' directory. The table has all rows that
    are there, whatever was selected.
    """
    # An orderly end for `kill` too: namespaces and processes are removed on the way out.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    wanted = [
        row
        for row in matrix(duration)
        if all(
            not allowed or value in allowed
            for value, allowed in (
                (row.congestion, only),
                (row.rate_mbps, rate),
                (row.rtt_ms, rtt),
                (row.buffer_bdp, buffer),
                (row.loss, loss),
            )
        )
    ]
    if not wanted:
        _say("no row is like that")
        raise typer.Exit(2)
    out.mkdir(parents=True, exist_ok=True)
    if not simulate_only:
        _run_kernel([(row, n) for row in wanted for n in _runs(row, repeat, seeds)], out, keep_logs)
    rows = matrix(duration)
    compared = _simulate(rows, out)
    table.write(page, compared, len(rows), _version())
    _say(f"{page}: {len(compared)} of {len(rows)} rows")
    if json:
        selected = [entry for entry in compared if entry.row in wanted]
        print(jsonlib.dumps(table.as_json(selected), indent=2))


def _runs(row: Row, repeat: int, seeds: int) -> range:
    """Seeds; without loss they draw nothing and only count the runs."""
    return range(1, (seeds if row.loss else repeat) + 1)


def _run_kernel(runs: list[tuple[Row, int]], out: Path, keep_logs: bool) -> None:
    waiting = [(row, seed) for row, seed in runs if _stored(out, row, seed) is None]
    if not waiting:
        return
    if reason := network.missing():
        _say(f"the kernel's side cannot run: {reason}")
        raise typer.Exit(1)
    for name in network.remove_leftovers():
        _say(f"removed {name}, left by a run that was killed")
    try:
        program = forwarder.build()
    except forwarder.BuildError as error:
        _say(str(error))
        raise typer.Exit(1) from None
    with _progress() as progress:
        total = sum(row.duration_s for row, _ in waiting)
        task = progress.add_task("", total=total)
        done, late = 0.0, 0
        for row, seed in waiting:
            progress.update(task, description=f"{row.name} #{seed}")

            def tick(passed: float, before: float = done) -> None:
                progress.update(task, completed=before + passed)

            log = out / f"{row.name}-{seed}.packets" if keep_logs else None
            for _ in range(ATTEMPTS):
                try:
                    result = kernel.transfer(row, seed, program, tick, log)
                except (kernel.KernelError, network.NetworkError, LogError) as error:
                    _say(f"{row.name} #{seed}: {error}")
                    raise typer.Exit(1) from None
                if result["invalid"] is None:
                    break
                progress.console.print(f"{row.name} #{seed} does not count: {result['invalid']}")
            _store(_file(out, row, seed), result)
            late += result["invalid"] is not None
            done += row.duration_s
    if late:
        _say(f"{late} runs do not count: run it again when the machine is less busy")


def _simulate(rows: list[Row], out: Path) -> list[table.Compared]:
    """Every row that the kernel has done, simulated with the same seeds."""
    done = {row: _all_stored(out, row) for row in rows}
    # Without loss a seed draws nothing.
    runs = {
        row: sorted({result["seed"] for result in results}) if row.loss else [1]
        for row, results in done.items()
        if results
    }
    pairs = [(row, seed) for row, seeds in runs.items() for seed in seeds]
    simulated: dict[Row, list[dict[str, Any]]] = {row: [] for row in runs}
    with _progress() as progress, ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda pair: simulation.simulate(*pair), pairs)
        for (row, _), result in progress.track(
            zip(pairs, results, strict=True), total=len(pairs), description="simulation"
        ):
            simulated[row].append(result)
    compared = []
    for row, results_of_row in simulated.items():
        missing = next((run["missing"] for run in results_of_row if "missing" in run), None)
        usable = [] if missing else results_of_row
        compared.append(table.Compared(row, done[row], usable, missing))
    return compared


def _file(out: Path, row: Row, seed: int) -> Path:
    return out / f"{row.name}-{seed}.json"


def _stored(out: Path, row: Row, seed: int) -> dict[str, Any] | None:
    """A kernel result that counts."""
    file = _file(out, row, seed)
    if not file.exists():
        return None
    result: dict[str, Any] = jsonlib.loads(file.read_text())
    usable = result["duration_s"] == row.duration_s and result["invalid"] is None
    return result if usable else None


def _all_stored(out: Path, row: Row) -> list[dict[str, Any]]:
    names = sorted(out.glob(f"{row.name}-*.json"))
    results = (_stored(out, row, int(file.stem.rpartition("-")[2])) for file in names)
    return [result for result in results if result is not None]


def _store(file: Path, result: dict[str, Any]) -> None:
    """All or nothing."""
    part = file.with_suffix(".part")
    part.write_text(jsonlib.dumps(result))
    part.replace(file)


def _version() -> str:
    """Version, the simulator's core as run directories have it, and the harness's commit."""
    import airpath
    from airpath.provenance import _core_hash

    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude", "*"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    core = (_core_hash() or "unknown")[:12]
    return f"{airpath.__version__} (core {core}, referee at {commit.stdout.strip() or 'no commit'})"


def _progress() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    return Progress(*columns, console=Console(stderr=True))


def _say(text: str) -> None:
    print(f"referee: {text}", file=sys.stderr)


if __name__ == "__main__":
    try:
        typer.run(main)
    except KeyboardInterrupt:
        sys.exit(130)
