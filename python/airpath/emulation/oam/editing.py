"""Changes of a core's subscribers by who holds the token of a status page.

Each is made by the functions of ``airpath subscriber``, noted for the page's history, and kept for
the table ``events`` of the run. K and OPc go in and never out.
"""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any

from airpath.base.secrets import redacted
from airpath.emulation.oam import subscribers
from airpath.emulation.oam.subscribers import Subscriber
from airpath.errors import AirpathError, InputError

TOKEN_BYTES = 16
"""128 random bits: nobody guesses them."""

_TYPES: dict[str, tuple[Any, str]] = {
    "str": (str, "text"),
    "int": (int, "a whole number"),
    "float | None": (int | float | None, "a number, or null for no limit"),
}
"""What fits a field of ``Subscriber``, by its annotation, and how an error calls it."""

_FIELDS = {field.name: _TYPES[str(field.type)] for field in fields(Subscriber)}
_NEEDED = [field.name for field in fields(Subscriber) if field.default is MISSING]

Given = dict[str, Any]


class ClosedError(AirpathError):
    """There is no run whose events could have the change."""


@dataclass(frozen=True)
class Edit:
    """A change that was made."""

    clock_ns: int
    """CLOCK_MONOTONIC."""
    kind: str
    """As the table ``events`` has it."""
    imsi: str
    text: str
    """What changed, without secrets."""


class Editing:
    """Who may change the subscribers of a run, and what was changed; for any thread."""

    def __init__(self, file: Path) -> None:
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        self._file = file
        self._lock = threading.Lock()
        self._edits: list[Edit] = []
        self._note: Callable[[Edit], None] | None = None

    def admits(self, token: str) -> bool:
        """Whether it is the token; how long that takes does not depend on what is wrong."""
        return hmac.compare_digest(token.encode(), self.token.encode())

    def begin(self, note: Callable[[Edit], None]) -> None:
        """Accept changes, and report each to ``note``: the run has begun."""
        with self._lock:
            self._note = note

    def close(self) -> list[Edit]:
        """Accept no more changes; return those that were made."""
        with self._lock:
            self._note = None
            return list(self._edits)

    def shown(self) -> list[dict[str, object]]:
        """The subscribers by IMSI, without their keys."""
        return [subscribers.shown(each, keys=False) for each in subscribers.read(self._file)]

    def make(self, what: str, document: object) -> None:
        """Make one of ``CHANGES`` with the fields that a document has.

        Raises ``InputError`` for what ``airpath subscriber`` refuses, ``ClosedError`` if no run
        would have the event.
        """
        kind, do = CHANGES[what]
        given = _fields(document)
        with self._lock:
            if (note := self._note) is None:
                raise ClosedError("subscribers can be changed only while the run is running")
            text = do(self._file, given)
            edit = Edit(time.monotonic_ns(), kind, given["imsi"], redacted(text))
            self._edits.append(edit)
        note(edit)


def _fields(document: object) -> Given:
    """Return a document's fields of a subscriber, each of its type, the IMSI among them."""
    if not isinstance(document, dict):
        raise InputError("expected an object with the fields of a subscriber")
    for name, value in document.items():
        if name not in _FIELDS:
            raise InputError(f"unknown field '{name}'; known are {', '.join(_FIELDS)}")
        fits, words = _FIELDS[name]
        if isinstance(value, bool) or not isinstance(value, fits):
            raise InputError(f"{name} must be {words}")
    if "imsi" not in document:
        raise InputError("imsi is missing")
    return document


def _add(file: Path, given: Given) -> str:
    for name in _NEEDED:
        if name not in given:
            raise InputError(f"{name} is missing; a subscriber needs {', '.join(_NEEDED)}")
    subscriber = Subscriber(**given)
    subscribers.add(file, subscriber)
    shown = subscribers.shown(subscriber, keys=False)
    del shown["imsi"]
    said = [f"{name} {value}" for name, value in shown.items() if value is not None]
    return f"subscriber added: {', '.join(said)}"


def _change(file: Path, given: Given) -> str:
    changes = {name: value for name, value in given.items() if name != "imsi"}
    changed = subscribers.change(file, given["imsi"], changes)
    said = [
        name if name in subscribers.SECRETS else f"{name} {changes[name]}".replace("None", "none")
        for name in changed
    ]
    return f"subscriber changed: {', '.join(said) or 'nothing'}"


def _remove(file: Path, given: Given) -> str:
    if len(given) > 1:
        raise InputError("to remove a subscriber, give imsi alone")
    subscribers.remove(file, given["imsi"])
    return "subscriber removed"


CHANGES: dict[str, tuple[str, Callable[[Path, Given], str]]] = {
    "add": ("subscriber_added", _add),
    "change": ("subscriber_changed", _change),
    "remove": ("subscriber_removed", _remove),
}
"""What can be done: the kind of its event, and what does it and says what changed."""
