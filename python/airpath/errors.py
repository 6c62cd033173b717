"""Errors that a person can act on; the command line prints their text, without a traceback."""

import errno


class AirpathError(Exception):
    """Something went wrong that is not a bug: a full disk, an unwritable directory."""

    exit_code = 1


class InputError(AirpathError):
    """The input is wrong: a bad scenario, a bad option, a file that is not a run."""

    exit_code = 2


class InputTypeError(InputError, TypeError):
    """An argument from Python has the wrong type."""


class MissingTableError(AirpathError, AttributeError):
    """The run has no such table, so ``hasattr(run, name)`` is false."""


def listen_reason(error: OSError, another: str = "another port") -> str:
    """Say why a port cannot be used, and if another program has it, what to do."""
    if error.errno != errno.EADDRINUSE:
        return reason(error)
    return f"{reason(error)}; choose {another}, or stop the program that has it"


def reason(error: OSError) -> str:
    """Say why an operating-system call failed, in words."""
    if isinstance(error, IsADirectoryError):
        return "it is a directory; name a file in it"
    return error.strerror or str(error)
