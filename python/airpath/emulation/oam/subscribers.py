"""Who may use a core network: a table of subscribers in SQLite, as an HSS or UDM has it."""

from __future__ import annotations

import os
import re
import sqlite3
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path
from typing import Any, cast

from airpath.errors import AirpathError, InputError
from airpath.runs.directories import cannot_write

_FORMAT = 1
_APPLICATION = 0x61697270  # "airp", in SQLite's application_id

STANDARD_QOS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 65, 66, 67, 69, 70, 75, 79, 80, 82, 83, 84, 85)
"""QCI and 5QI that both TS 23.203 table 6.1.7-A and TS 23.501 table 5.7.4-1 have."""

SECRETS = ("key", "opc")
"""Fields that are shown only to who asks for them."""


@dataclass(frozen=True)
class Subscriber:
    """One subscription: identity, secrets, and what it is allowed."""

    imsi: str
    """14 or 15 digits: MCC, MNC, MSIN (TS 23.003 2.2)."""
    key: str
    """K, 32 hexadecimal digits (TS 33.102 6.3.7), kept in lower case."""
    opc: str
    """OPc, 32 hexadecimal digits (TS 35.206 4.1), kept in lower case."""
    apn: str = "internet"
    """Access point name of LTE, DNN of NR (TS 23.003 9.1)."""
    qci: int = 9
    """QCI of the default bearer, 5QI of the default QoS flow."""
    qfi: int = 9
    """Identifier of NR's QoS flow, 1 to 63 (TS 23.501 5.7.1.1)."""
    ambr_down_mbps: float | None = None
    """UE-AMBR (TS 23.501 5.7.2.6); None: no limit."""
    ambr_up_mbps: float | None = None

    def __post_init__(self) -> None:
        """Refuse what is no subscription, without showing a secret."""
        for name in SECRETS:
            object.__setattr__(self, name, getattr(self, name).lower())
        if not re.fullmatch(r"[0-9]{14,15}", self.imsi):
            raise InputError(f"IMSI '{self.imsi}' must be 14 or 15 digits, MCC and MNC first")
        # ITU-T E.212: the first digit is a region; 001 and 9xx are for tests and shared use.
        if not re.match(r"001|[2-79]", self.imsi):
            raise InputError(
                f"IMSI '{self.imsi}': {self.imsi[:3]} is not a mobile country code (001 is for "
                "tests)"
            )
        for name, value in (("key (K)", self.key), ("OPc", self.opc)):
            if not re.fullmatch(r"[0-9a-f]{32}", value):
                raise InputError(f"the {name} of IMSI {self.imsi} must be 32 hexadecimal digits")
        label = r"[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?"
        if len(self.apn) > 62 or not re.fullmatch(rf"{label}(\.{label})*", self.apn):
            raise InputError(f"APN '{self.apn}' must be letters, digits and hyphens between dots")
        if self.qci not in STANDARD_QOS:
            known = ", ".join(map(str, STANDARD_QOS))
            raise InputError(f"QCI or 5QI is {self.qci}, but must be one of {known}")
        if not 1 <= self.qfi <= 63:
            raise InputError(f"QFI is {self.qfi}, but must be from 1 to 63")
        for name, rate in (("down", self.ambr_down_mbps), ("up", self.ambr_up_mbps)):
            if rate is not None and not 0.001 <= rate <= 1e6:
                raise InputError(f"AMBR {name} is {rate} Mb/s, but must be from 0.001 to 1000000")


def add(file: Path, subscriber: Subscriber) -> None:
    """Add one; makes the file if it is not there. Refuses an IMSI that is there already."""
    with _open(file, create=True) as database:
        try:
            # The table's columns are the fields, in their order.
            database.execute(
                "INSERT INTO subscriber VALUES (?, ?, ?, ?, ?, ?, ?, ?)", astuple(subscriber)
            )
        except sqlite3.IntegrityError:
            raise InputError(
                f"IMSI {subscriber.imsi} is already in {file}; change it with `airpath subscriber "
                "change`"
            ) from None


def change(file: Path, imsi: str, changes: Mapping[str, str | float | None]) -> list[str]:
    """Change fields of one, which must be there; return the names of those that now differ."""
    if not changes or "imsi" in changes:
        raise InputError(f"IMSI {imsi}: nothing to change; an IMSI itself cannot change")
    with _open(file) as database:
        # Nobody else changes it between reading and writing.
        database.execute("BEGIN IMMEDIATE")
        row = database.execute("SELECT * FROM subscriber WHERE imsi = ?", (imsi,)).fetchone()
        if row is None:
            raise InputError(f"there is no IMSI {imsi} in {file}")
        before = Subscriber(*row)
        after = replace(before, **cast("dict[str, Any]", changes))
        database.execute("REPLACE INTO subscriber VALUES (?, ?, ?, ?, ?, ?, ?, ?)", astuple(after))
    return [name for name in changes if getattr(before, name) != getattr(after, name)]


def remove(file: Path, imsi: str) -> None:
    """Remove one, which must be there."""
    with _open(file) as database:
        removed = database.execute("DELETE FROM subscriber WHERE imsi = ?", (imsi,)).rowcount
    if not removed:
        raise InputError(f"there is no IMSI {imsi} in {file}")


def read(file: Path) -> list[Subscriber]:
    """All of them, by IMSI."""
    with _open(file) as database:
        rows = database.execute("SELECT * FROM subscriber ORDER BY imsi")
        return [Subscriber(*row) for row in rows]


def shown(subscriber: Subscriber, *, keys: bool) -> dict[str, object]:
    """A subscriber as a document; without its secrets unless asked."""
    document = asdict(subscriber)
    return {name: value for name, value in document.items() if keys or name not in SECRETS}


@contextmanager
def _open(file: Path, *, create: bool = False) -> Iterator[sqlite3.Connection]:
    if not create and not file.exists():
        raise InputError(f"no subscribers file {file}; `airpath subscriber add` creates one")
    try:
        if create:
            _make(file)
        database = sqlite3.connect(file)
        try:
            # What is deleted is overwritten: a key must not stay in a free page.
            database.execute("PRAGMA secure_delete = ON")
            with database:
                _check(database, file)
                yield database
        finally:
            database.close()
    except sqlite3.Error as error:
        raise AirpathError(f"subscribers file {file}: {error}") from None


def _make(file: Path) -> None:
    """Make a file that only its owner reads, before there is a secret in it."""
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        try:
            # A dangling link must not decide where the file is made.
            descriptor = os.open(file, flags | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            descriptor = os.open(file, flags)
    except OSError as error:
        raise cannot_write(file, error) from None
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise InputError(f"{file} is not a regular file")
        if found.st_mode & 0o077:
            os.fchmod(descriptor, 0o600)
    except PermissionError:
        raise InputError(f"{file} belongs to another user, and others can read it") from None
    finally:
        os.close(descriptor)


def _check(database: sqlite3.Connection, file: Path) -> None:
    (application,) = database.execute("PRAGMA application_id").fetchone()
    (tables,) = database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application == 0 and tables == 0:
        database.execute(
            "CREATE TABLE subscriber (imsi TEXT PRIMARY KEY, key TEXT NOT NULL, opc TEXT NOT NULL,"
            " apn TEXT NOT NULL, qci INTEGER NOT NULL, qfi INTEGER NOT NULL,"
            " ambr_down_mbps REAL, ambr_up_mbps REAL) STRICT"
        )
        database.execute(f"PRAGMA application_id = {_APPLICATION}")
        database.execute(f"PRAGMA user_version = {_FORMAT}")
        return
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if (application, version) != (_APPLICATION, _FORMAT):
        raise InputError(f"{file} is not a subscribers file of this version of airpath")
