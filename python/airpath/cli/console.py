"""What all commands share: messages, exit codes, progress."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from airpath.base.signals import INTERRUPTED, raise_in_work
from airpath.base.text import printable
from airpath.errors import AirpathError, reason

if TYPE_CHECKING:
    from rich.progress import Progress

_BAR_AFTER_S = 0.7


def guarded(call: Callable[[], object]) -> int:
    """Call and turn what it raises into a line on stderr and an exit code."""
    try:
        raise_in_work()
        code = call()
        if code == INTERRUPTED:  # Typer turns Ctrl-C into a code of its own accord.
            raise KeyboardInterrupt
        sys.stdout.flush()
    except AirpathError as error:
        return complain(str(error), error.exit_code)
    except KeyboardInterrupt:
        return complain("interrupted; nothing was kept", INTERRUPTED)
    except BrokenPipeError:
        # The reader has gone, as with `| head`: leave without a word, as SIGPIPE would.
        _forget_stdout()
        return 128 + signal.SIGPIPE
    except OSError as error:
        _forget_stdout()
        where = error.filename or "standard output"
        return complain(f"cannot write {where}: {reason(error)}", 1)
    except Exception as error:
        # Typer's usage errors; anything else is a bug and shows where.
        message = getattr(error, "format_message", None)
        if message is None:
            raise
        return complain(_usage(error, message()), int(getattr(error, "exit_code", 2)))
    return code if isinstance(code, int) else 0


def open_what_is_closed() -> None:
    """Let no file become standard input, output or error because that one was closed.

    What is written to a closed standard output fails, as with other programs.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)


def complain(message: str, code: int) -> int:
    """Print ``error: …`` on stderr and return the exit code."""
    plain = message.startswith(("error: ", "Usage: "))
    with suppress(OSError):
        narrate(message if plain else f"error: {message}")
    return code


def narrate(text: str) -> None:
    """Print a line on stderr, without secrets: an error may quote what was given."""
    from airpath.base.secrets import redacted

    sys.stderr.write(printable(redacted(f"{text}\n")))
    sys.stderr.flush()


def output(text: str) -> None:
    """Print a line, or lines, on stdout."""
    sys.stdout.write(printable(text if text.endswith("\n") else f"{text}\n"))


def aligned(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Return rows as lines of aligned columns; those in ``right`` are right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = enumerate(zip(row, widths, strict=True))
        padded = [
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in cells
        ]
        lines.append("  ".join(padded).rstrip())
    return lines


def with_remarks(
    rows: Sequence[Sequence[str]], right: Collection[int], remarks: Iterable[str]
) -> list[str]:
    """Return rows below their titles as indented columns, each row with its remark beneath."""
    lines = []
    for line, remark in zip(aligned(rows, right), ("", *remarks), strict=True):
        lines += [f"  {line}", *([f"      {remark}"] if remark else [])]
    return lines


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[float], None]]:
    """Yield a function that takes the share of the work done; a bar appears on a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    started = time.monotonic()
    bar: Progress | None = None

    def show(share: float) -> None:
        nonlocal bar
        if bar is None:
            if time.monotonic() - started < _BAR_AFTER_S:
                return
            bar = _bar(label)
        bar.update(bar.task_ids[0], completed=share)

    try:
        yield show
    finally:
        if bar is not None:
            bar.stop()


def _bar(label: str) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), Remaining())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    bar.add_task(label, total=1.0)
    bar.start()
    return bar


def _usage(error: Exception, message: str) -> str:
    if "\n" in message:  # Called without arguments: the message is the whole help text.
        return message
    path = getattr(getattr(error, "ctx", None), "command_path", "airpath")
    first = message[:1].lower() + message[1:]
    if first.endswith("?"):
        return f"{first} See {path} --help."
    return f"{first.rstrip('.')}; see {path} --help"


def _forget_stdout() -> None:
    # Keeps the interpreter from failing once more when it flushes at exit.
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
