"""Shared by the commands: messages, exit codes, required programs, and the pages they write."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from airpath import __version__
from airpath.base.signals import INTERRUPTED
from airpath.errors import AirpathError
from airpath_dev import ROOT

FINE, WRONG, MISUSED, NOT_CHECKED = 0, 1, 2, 3
"""Exit codes."""
USAGE = cast("type[typer.BadParameter]", typer.BadParameter.__base__)
"""The exception that Typer raises for bad use."""
MEASURED = ROOT / "docs/measured"

Seed = Annotated[int, typer.Argument(envvar="SEED", help="What is drawn depends on it.")]
Count = Annotated[int, typer.Argument(envvar="COUNT", min=1, help="How many are drawn.")]


class NotCheckedError(AirpathError):
    """The check did not run, because this machine lacks something."""

    def __init__(self, because: str, exit_code: int = NOT_CHECKED) -> None:
        super().__init__(f"not checked: {because}")
        self.exit_code = exit_code


def run(main: Callable[..., Any], words: Sequence[str]) -> int:
    """Run a command; Ctrl-C and errors end it with a sentence and an exit code."""
    app = typer.Typer(add_completion=False)
    app.command()(main)
    try:
        code = app(list(words), prog_name=f"airpath-dev {_name()}", standalone_mode=False)
    except AirpathError as error:
        say(str(error))
        return error.exit_code
    except USAGE as error:
        error.show()
        return int(error.exit_code)
    if code == INTERRUPTED:
        say("interrupted; complete runs are kept, and the same command goes on")
    return int(code or FINE)


def say(text: str) -> None:
    """Print a line to standard error, prefixed with the command's name."""
    print(f"{_name()}: {text}", file=sys.stderr, flush=True)


def _name() -> str:
    return Path(sys.argv[0]).name


def need(*programs: str, root: bool = False, exit_code: int = NOT_CHECKED) -> None:
    """Raise NotCheckedError unless the machine has these programs, and root rights if needed."""
    if root and os.geteuid() != 0:
        raise NotCheckedError("it needs root", exit_code)
    if missing := [name for name in programs if shutil.which(name) is None]:
        raise NotCheckedError(f"{', '.join(missing)} is missing", exit_code)


def install(*packages: str) -> None:
    """Try to install Debian packages; `need` reports what is still missing."""
    subprocess.run([ROOT / "tools/setup", "package", *packages], check=False)


def emulable(count: int) -> int:
    """Return how many of `count` emulations can run: 0 without root, with a message."""
    if count and os.geteuid() != 0:
        say("emulations need root: they are left out")
        return 0
    return count


def emulated(
    scenario: Path, out: Path, server: str, command: Sequence[str]
) -> subprocess.CompletedProcess[str]:
    """Run a command as root inside an emulation, beside a server.

    The emulation's own results are removed; what was printed is kept beside ``out``.
    """
    run = out.with_suffix(".emulated")
    shutil.rmtree(run, ignore_errors=True)
    variables = [f"--env={name}" for name in ("PYTHONPATH",) if name in os.environ]
    done = subprocess.run(
        [
            sys.executable, "-m", "airpath", "emulate", str(scenario), "--no-live",
            "--user", "root", *variables, "--out", str(run), "--explain", "off",
            "--server", server, "--", *command,
        ],
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    out.with_suffix(".log").write_text(f"{done.stdout}\n{done.stderr}")
    shutil.rmtree(run, ignore_errors=True)
    return done


def table(
    head: str | Sequence[str], rows: Iterable[Sequence[object]], *, padded: bool = False
) -> str:
    """Return a table in Markdown; ``padded`` aligns the columns for a terminal.

    ``head`` separates columns by ``|``; columns whose title ends with a colon are right-aligned.
    """
    columns = [column.strip() for column in (head.split("|") if isinstance(head, str) else head)]
    rules = ["---:" if column.endswith(":") else "---" for column in columns]
    lines = [[column.removesuffix(":") for column in columns], *([*map(str, row)] for row in rows)]
    if padded:
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        lines = [[*map(str.ljust, line, widths)] for line in lines]
        rules = [rule.rjust(width + 2, "-") for rule, width in zip(rules, widths, strict=True)]
    first, *others = (f"| {' | '.join(line)} |" for line in lines)
    return "\n".join([first, f"|{'|'.join(rules)}|", *others])


def heading(title: str, command: str, *about: str) -> str:
    """Return the head of a measured page: title, command, date and versions."""
    made = f"Made by `make {command}` on {datetime.now(UTC).date()}"
    return f"# {title}\n\n{made}: {', '.join([f'airpath {__version__}', *about])}.\n"


def write(page: Path, lines: Iterable[str]) -> None:
    """Write a page and say so."""
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    say(f"{page} is written")
