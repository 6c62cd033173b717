"""As whom the programs of an emulation run.

airpath needs root for namespaces; what runs inside does not
(docs/adr/0023-programs-are-not-root.md).
"""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from airpath.base.text import printable
from airpath.emulation.machine import Machine
from airpath.errors import InputError

if TYPE_CHECKING:
    from airpath.emulation.document import UserEntry

ROOT = "root"

PASSED = ("HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TZ", "USER")
"""Variables that programs get from who calls airpath, besides ``LC_*`` and those of ``--env``."""


@dataclass(frozen=True)
class Identity:
    """A user, and whether its programs have rights beyond CAP_NET_RAW."""

    name: str
    uid: int
    limited: bool
    become: tuple[int, int, list[int]] | None = None
    """User, group and other groups; None: as this process."""
    environment: dict[str, str] | None = None
    """Their variables; None: all of this process."""

    def document(self) -> UserEntry:
        """Return what the summary says."""
        return {"name": self.name, "uid": self.uid, "all_capabilities": not self.limited}

    def announce(self, programs: list[tuple[str, str, str]]) -> None:
        """Name on standard error what is about to run as root: name, end, command line of each."""
        rights = "without its capabilities" if self.limited else "with all its rights"
        for name, place, line in programs if self.uid == 0 else []:
            said = f"program {name} runs at {place} as root, {rights}: {line}"
            sys.stderr.write(printable(said) + "\n")
        sys.stderr.flush()


def announced(
    user: str | None, programs: list[tuple[str, str, str]], variables: Sequence[str] = ()
) -> Identity:
    """Return as whom programs run here, and name those that will run as root."""
    who = of(user, is_alone=Machine().has_one_user(), variables=variables)
    who.announce(programs)
    return who


def of(
    user: str | None,
    *,
    environment: Mapping[str, str] | None = None,
    uid: int | None = None,
    is_alone: bool = False,
    variables: Sequence[str] = (),
) -> Identity:
    """Return as whom programs run where ``--user`` says ``user``.

    None: who called sudo, else root without capabilities. ``is_alone``: in a user namespace of one
    user, where everything is the caller's anyway. ``environment`` and ``uid`` are this process's
    unless given. Programs with fewer rights than this process get few of its variables:
    ``PASSED``, ``LC_*``, and ``variables``.
    """
    environment = os.environ if environment is None else environment
    for name in variables:
        if name not in environment:
            raise InputError(f"--env {name}: no such environment variable; export it first")
    who = _who(user, environment, uid, is_alone)
    if not who.limited:
        return who
    passed = {
        name: value
        for name, value in environment.items()
        if name in PASSED or name.startswith("LC_") or name in variables
    }
    return replace(who, environment={**passed, **(who.environment or {})})


def _who(
    user: str | None, environment: Mapping[str, str], uid: int | None, is_alone: bool
) -> Identity:
    """As whom; of the variables only those that follow from it."""
    uid = os.geteuid() if uid is None else uid
    if is_alone:
        if user not in (None, ROOT):
            raise InputError(
                f"--user {user}: without root programs run as the caller; run airpath as root"
            )
        return Identity(ROOT, 0, limited=False)
    if user == ROOT:
        return Identity(ROOT, 0, limited=False)
    if user is not None:
        return _entry(user, f"--user {user}")
    caller = environment.get("SUDO_UID", "")
    if uid == 0 and caller not in ("", "0"):
        return _entry(caller, f"SUDO_UID={caller}")
    return Identity(ROOT, 0, limited=True)


def _entry(user: str, said: str) -> Identity:
    """Look a user up, by name or by number."""
    try:
        entry = pwd.getpwuid(int(user)) if user.isdecimal() else pwd.getpwnam(user)
    except (KeyError, OverflowError):
        raise InputError(
            f"{said}: no such user; --user takes the name or UID of a user of this machine"
        ) from None
    if entry.pw_uid == 0:
        return Identity(entry.pw_name, 0, limited=False)
    groups = os.getgrouplist(entry.pw_name, entry.pw_gid)
    environment = {
        "HOME": entry.pw_dir,
        "USER": entry.pw_name,
        "LOGNAME": entry.pw_name,
        "SHELL": entry.pw_shell or "/bin/sh",
    }
    become = (entry.pw_uid, entry.pw_gid, groups)
    return Identity(entry.pw_name, entry.pw_uid, True, become, environment)
