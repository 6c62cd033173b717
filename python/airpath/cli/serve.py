"""``airpath serve``."""

from __future__ import annotations

import os
import shlex
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from airpath.cli.console import narrate, output

if TYPE_CHECKING:
    from airpath.measure.serve import Server, ServerOptions

_DESCRIPTORS = 4096

Kind = Literal["systemd", "docker", "kubernetes"]

Host = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="The address of this machine to listen on. [default: all, IPv6 and IPv4]",
    ),
]
Port = Annotated[
    int,
    typer.Option(
        metavar="N", min=0, max=65535, help="The port, of TCP and UDP; 0 picks a free one."
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A file with the token that the near end must know; only its owner may be able to "
        "read it. [default: a new token, printed on stdout]",
    ),
]
Sessions = Annotated[
    int, typer.Option(metavar="N", min=1, max=64, help="Maximum simultaneous clients.")
]
MostData = Annotated[
    str, typer.Option(metavar="SIZE", help="Data of one session, both directions together.")
]
MostRate = Annotated[
    str | None,
    typer.Option(
        metavar="RATE",
        help="Rate of all sessions together, such as 500Mb/s. Each of the N sessions may use an "
        "equal share. [default: no limit]",
    ),
]
MostTime = Annotated[str, typer.Option(metavar="TIME", help="How long one session may last.")]
User = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The user to run as once the port is open, if started as root; root keeps all "
        "rights. [default: nobody]",
    ),
]
Print = Annotated[
    Kind | None,
    typer.Option(
        "--print",
        help="Print a hardened unit that runs this command, and exit.",
    ),
]


def command(
    host: Host = None,
    port: Port = 5212,
    token_file: TokenFile = None,
    sessions: Sessions = 4,
    most_data: MostData = "10GB",
    most_rate: MostRate = None,
    most_time: MostTime = "1h",
    user: User = None,
    unit: Print = None,
) -> None:
    """Run the server for `airpath measure`, on a machine beyond the mobile network.

    It serves only near ends that prove that they know the token, which never crosses the wire.
    Ctrl-C ends it.
    """
    from airpath.base.quantities import rate_from, size_from, time_from
    from airpath.measure.control import PORT, new_token, read_token
    from airpath.measure.far import machine
    from airpath.measure.serve import Server, ServerOptions

    rate_mbps = None if most_rate is None else rate_from(most_rate, "--most-rate")
    options = ServerOptions(
        host,
        port,
        sessions,
        size_from(most_data, "--most-data"),
        time_from(most_time, "--most-time"),
        rate_mbps,
    )
    given = None if token_file is None else read_token(token_file)
    if unit is not None:
        from airpath.measure.deploy import Unit, printed

        output(printed(unit, Unit(_given(options), port or PORT, sessions, given)))
        return
    token = given or new_token()
    _allow_descriptors()
    server = Server(token, options, narrate)
    try:
        # Also imports what another user may not be able to read.
        machine()
        narrate(f"listening on TCP and UDP port {server.address[1]}; Ctrl-C ends it")
        _drop_rights(user)
        _announce(server, host, token, token_file)
        server.run()
    finally:
        server.close()


def _given(options: ServerOptions) -> list[str]:
    """The options that differ from the defaults, as they are typed."""
    usual = type(options)()
    words = [] if options.host is None else ["--host", options.host]
    for name, value, default in (
        ("--sessions", f"{options.sessions}", f"{usual.sessions}"),
        ("--most-data", f"{options.data_bytes}B", f"{usual.data_bytes}B"),
        ("--most-time", f"{options.session_s:.10g}s", f"{usual.session_s:.10g}s"),
    ):
        words += [name, value] if value != default else []
    if options.rate_mbps is not None:
        words += ["--most-rate", f"{options.rate_mbps:.10g}Mb/s"]
    return words


def _allow_descriptors() -> None:
    """Allow as many descriptors as 64 sessions need, as far as the hard limit does."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _drop_rights(user: str | None) -> None:
    """Give up what is not needed once the sockets are open: root, or capabilities.

    Root becomes another user.
    """
    if os.geteuid() != 0:
        _drop_capabilities()
        if user is not None:
            narrate(f"--user {user} is ignored: only root can become another user")
        return
    from airpath.emulation.identity import ROOT, of
    from airpath.emulation.machine import Machine
    from airpath.errors import AirpathError, reason

    if user == ROOT or Machine().has_one_user():
        return
    who = of(user or "nobody")
    if who.become is None:
        return
    uid, gid, groups = who.become
    try:
        os.setgroups(groups)
        os.setgid(gid)
        os.setuid(uid)
    except OSError as error:
        raise AirpathError(
            f"cannot become {who.name}: {reason(error)}; start airpath as another user than root, "
            "or add --user root"
        ) from None


def _drop_capabilities() -> None:
    """Give up the capabilities that the process was started with (capset(2), version 3)."""
    import ctypes
    import struct

    libc = ctypes.CDLL(None, use_errno=True)
    if hasattr(libc, "capset"):
        libc.capset(struct.pack("Ii", 0x20080522, 0), bytes(24))


def _announce(server: Server, host: str | None, token: str, file: Path | None) -> None:
    """Print what the near end has to type, or the token if it is new."""
    from airpath.measure.control import PORT

    port = server.address[1]
    name = host if host and host not in ("::", "0.0.0.0") else _own_address()  # noqa: S104
    words = ["airpath", "measure", name, *(["--port", str(port)] if port != PORT else [])]
    if file is not None:
        output(shlex.join([*words, "--token-file", str(file)]))
    else:
        output(token)
        narrate(
            "the token is on standard output; at the near end set AIRPATH_TOKEN to it, or save it "
            f"in a file that only you can read, and type: {shlex.join(words)}"
        )
    sys.stdout.flush()


def _own_address() -> str:
    """The address from which this machine reaches others, or its name; nothing is sent."""
    for family, to in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as sock:
                sock.connect((to, 9))
                return str(sock.getsockname()[0])
        except OSError:
            continue
    return socket.gethostname()
