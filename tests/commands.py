"""What the commands under ``tests/`` that run for hours have in common: how they speak and end."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import typer

from airpath.errors import AirpathError


@dataclass(frozen=True)
class Teller:
    """Speaks on standard error, under the command's name."""

    name: str

    def __call__(self, text: str) -> None:
        """Say one line."""
        sys.stderr.write(f"{self.name}: {text}\n")


def run(main: Callable[..., None], say: Teller) -> None:
    """Run a command; Ctrl-C and errors end it with a sentence and an exit code."""
    try:
        typer.run(main)
    except KeyboardInterrupt:
        say("interrupted; complete runs are kept, and the same command goes on")
        sys.exit(130)
    except AirpathError as error:
        say(str(error))
        sys.exit(error.exit_code)
