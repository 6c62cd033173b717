"""Emulation without root: everything happens inside a user namespace.

There this process is root, over network and mount namespaces that are its own, and nowhere else:
files keep their user.
"""

from __future__ import annotations

import errno

from airpath.emulation.machine import Machine
from airpath.errors import AirpathError, reason

LIMITS = (
    "airpath runs inside a user namespace, without BPF and without machine-wide settings; other "
    "users' files belong to nobody there"
)
NO_PRIORITY = "there is no real-time priority, so other programs may delay packets by milliseconds"

APPARMOR = """\
abi <abi/4.0>,
include <tunables/global>

profile airpath {python} flags=(unconfined) {{
  userns,
  include if exists <local/airpath>
}}
"""
"""A profile for Ubuntu since 23.10. It is about the interpreter: every program of it may then make
user namespaces."""


def enter(machine: Machine | None = None) -> bool:
    """Enter a user namespace if this process may not make the others; return whether it did.

    Call this before there is a second thread.
    """
    from airpath import _core

    machine = machine or Machine()
    if machine.may_make_namespaces():
        return False
    try:
        _core.enter_user_namespace()
    except OSError as error:
        why, remedy = refusal(machine, error)
        raise AirpathError(f"emulation without root: {why}\n{remedy}") from None
    return True


def refusal(machine: Machine, error: OSError | None = None) -> tuple[str, str]:
    """Why there is no user namespace, and what to do."""
    limit = machine.sysctl("user.max_user_namespaces")
    if limit == "0" or (error is not None and error.errno == errno.ENOSPC):
        return (
            f"user.max_user_namespaces is {limit}",
            "run airpath as root, or: sudo sysctl user.max_user_namespaces=15000",
        )
    if machine.sysctl("kernel.unprivileged_userns_clone") == "0":
        return (
            "kernel.unprivileged_userns_clone is 0",
            "run airpath as root, or: sudo sysctl kernel.unprivileged_userns_clone=1",
        )
    if machine.sysctl("kernel.apparmor_restrict_unprivileged_userns") == "1":
        profile = APPARMOR.format(python=machine.python())
        return (
            "AppArmor allows user namespaces only to programs with a profile "
            "(kernel.apparmor_restrict_unprivileged_userns is 1)",
            "run airpath as root, or put this into /etc/apparmor.d/airpath and load it with "
            f"`sudo apparmor_parser -r /etc/apparmor.d/airpath`:\n{profile}",
        )
    said = reason(error) if error is not None else "not allowed"
    return (
        f"no user namespace: {said}",
        "run airpath as root; in a container, start the container with --privileged or "
        "--security-opt seccomp=unconfined",
    )
