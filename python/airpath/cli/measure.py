"""``airpath measure``."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from airpath.cli.console import narrate, output, progress_bar
from airpath.cli.run import AsJson, Out, Report

if TYPE_CHECKING:
    from airpath.measure.measurement import MeasureOptions, Server
    from airpath.measure.plan import Direction

TOKEN = "AIRPATH_TOKEN"  # noqa: S105 - a name, no token
"""The environment variable with the token: a command line is visible to others."""

Host = Annotated[
    str,
    typer.Argument(metavar="HOST", help="The far end."),
]
FarEnd = Annotated[
    Literal["airpath", "iperf3", "ping"],
    typer.Option(
        "--far",
        help="What HOST runs: `airpath serve`, `iperf3 -s` (3.9 or newer), or nothing, if it "
        "answers pings.",
    ),
]
Port = Annotated[
    int, typer.Option(metavar="N", min=1, max=65535, help="The server's port, of TCP and UDP.")
]
AnyPort = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        max=65535,
        help="The server's port. [default: 5212 of `airpath serve`, TCP and UDP; 5201 of iperf3]",
    ),
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help=f"A file with the server's token. [default: the environment's {TOKEN}]",
    ),
]
Directions = Annotated[
    Literal["down", "up", "both"],
    typer.Option("--direction", help="The direction of the transfers, seen from this host."),
]
Time = Annotated[str, typer.Option(metavar="TIME", help="Maximum duration.")]
Data = Annotated[
    str,
    typer.Option(metavar="SIZE", help="Maximum data on the path, both directions together."),
]
Until = Annotated[
    str | None,
    typer.Option(
        metavar="PERCENT",
        help="Stop once the steady rate is known to within this: 5% stops when its 95 % "
        "interval reaches at most 5 % to each side.",
    ),
]
ShowPlan = Annotated[
    bool, typer.Option("--plan", help="Print what would be sent, and send nothing.")
]
Seed = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=0,
        help="The seed of the order of the treatments. [default: a new one each time]",
    ),
]
Resume = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Run the remaining phases of an interrupted measurement. The result is a new "
        "directory; DIR stays as it is.",
    ),
]
Also = Annotated[
    str | None,
    typer.Option(
        metavar="HOST[:PORT]",
        help="A second `airpath serve`, with which phases without a change alternate: is the "
        "server's place the cause? An address of the other IP version compares the two. "
        "[default port: that of --port]",
    ),
]
AlsoTokenFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="A file with the second server's token. [default: the same token]",
    ),
]
Again = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Run the plan of an earlier measurement again, for example after a change: `airpath "
        "compare` pairs the blocks of both.",
    ),
]
Capture = Annotated[
    bool,
    typer.Option(
        "--capture",
        help="Keep this host's captures of the transfers (headers only) in the run directory. "
        "Needs root or CAP_NET_RAW.",
    ),
]

BindingLifetime = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Afterwards find out how long NATs keep the binding of a silent UDP flow. That takes "
        "as long as the binding lives, but no longer than this, at most 10m.",
    ),
]


def command(
    host: Host,
    far: FarEnd = "airpath",
    port: AnyPort = None,
    token_file: TokenFile = None,
    also: Also = None,
    also_token_file: AlsoTokenFile = None,
    direction: Directions = "down",
    time: Time = "60s",
    data: Data = "500MB",
    until: Until = None,
    plan: ShowPlan = False,
    seed: Seed = None,
    resume: Resume = None,
    again: Again = None,
    capture: Capture = False,
    binding_lifetime: BindingLifetime = None,
    out: Out = None,
    report: Report = None,
    json: AsJson = False,
) -> None:
    """Measure the path to a server, and find out what limits TCP on it.

    Run `airpath serve` at HOST first; --far names what else HOST may run. Transfers with and
    without a change (pacing, BBR, several connections, a larger window, smaller segments, a UE that
    is kept awake) alternate in random order, so that drift of the radio is not mistaken for an
    effect. The change that alters the result points to the cause. --plan prints a plan and sends
    nothing; as the rate is not known then, the plan that runs may be another one.
    """
    from airpath.base.quantities import size_from, time_from
    from airpath.errors import InputError
    from airpath.measure.measurement import MeasureOptions
    from airpath.runs import provenance
    from airpath.runs.directories import check_file_target, refuse_occupied

    if report is not None:
        check_file_target(report)
    if out is not None:
        refuse_occupied(out)
    if resume is not None and again is not None:
        raise InputError("--resume and --again are mutually exclusive: name one directory")
    plan_of = {"--direction": direction != "down", "--seed": seed is not None}
    if resume is not None:
        _refuse_of_plan("--resume", plan_of)
    if again is not None:
        _refuse_of_plan("--again", {**plan_of, "--time": time != "60s", "--data": data != "500MB"})
    _check_far(far, token_file, also, binding_lifetime)
    if far == "ping":
        given = {"--port": port is not None, "--direction": direction != "down"}
        _refuse_transfers({**given, "--until": until is not None, "--capture": capture})
    token = "" if plan or far != "airpath" else token_from(token_file)
    near_port = port or _PORTS[far]
    options = MeasureOptions(
        host=host,
        far=far,
        port=near_port,
        token=token,
        also=_other(also, also_token_file, near_port, token),
        directions=_directions(direction),
        time_s=time_from(time, "--time"),
        data_bytes=size_from(data, "--data"),
        until=None if until is None else _share(until),
        seed=seed,
        resume=resume,
        again=again,
        capture=capture,
        binding_s=None if binding_lifetime is None else _silence(binding_lifetime),
        out=out,
        command_line=provenance.command_line(),
        say=narrate,
    )
    if plan:
        _print_plan(options)
    else:
        _measure(options, report, json=json)


def _measure(options: MeasureOptions, report: Path | None, *, json: bool) -> None:
    """Measure, print the result, and exit: with 1 if it is incomplete."""
    from airpath.measure.result import measure
    from airpath.measure.sentences import sentences
    from airpath.runs import summary

    # A closed terminal or `timeout` keeps what was measured, as Ctrl-C does.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    with progress_bar("measuring") as bar:
        run = measure(options.with_progress(bar))
    if report is not None:
        from airpath.report import write_report

        write_report([run], report)
        narrate(f"report: {report}")
    if json:
        output(summary.to_json(run.summary))
    else:
        for line in sentences(run):
            output(line)
        narrate(f"run: {run.directory}")
    raise typer.Exit(int(bool(run.partial)))


_PORTS = {"airpath": 5212, "iperf3": 5201, "ping": 0}


def _refuse_of_plan(option: str, given: dict[str, bool]) -> None:
    """Refuse what the plan in the directory of ``option`` determines."""
    from airpath.errors import InputError

    if wrong := [name for name, value in given.items() if value]:
        raise InputError(f"{option} runs the plan of its directory: leave out {', '.join(wrong)}")


def _check_far(
    far: str, token_file: Path | None, also: str | None, binding_lifetime: str | None
) -> None:
    """Refuse what only ``airpath serve`` can do at another far end."""
    from airpath.errors import InputError

    if far == "airpath":
        return
    for name, given, why in (
        ("--token-file", token_file, f"{far} servers take no token"),
        (
            "--binding-lifetime",
            binding_lifetime,
            f"{far} servers do not measure how long a NAT keeps a binding",
        ),
    ):
        if given is not None:
            raise InputError(f"{why}: leave out {name}")
    if also is not None:
        raise InputError(f"--also needs `airpath serve` at both ends; --far {far} has none")


def _refuse_transfers(given: dict[str, bool]) -> None:
    """Refuse options about transfers; there are none where the far end only answers pings."""
    from airpath.errors import InputError

    for name, is_given in given.items():
        if is_given:
            raise InputError(f"--far ping has no transfers: leave out {name}")


def _directions(direction: Literal["down", "up", "both"]) -> tuple[Direction, ...]:
    return ("down", "up") if direction == "both" else (direction,)


def token_from(file: Path | None) -> str:
    """Return the server's token, from a file or from the environment."""
    from airpath.errors import InputError
    from airpath.measure.control import read_token

    if file is not None:
        return read_token(file)
    found = os.environ.get(TOKEN, "").strip()
    if not found:
        raise InputError(
            f"the server's token is missing: name its file with --token-file, or set {TOKEN}"
        )
    return found


def _silence(text: str) -> float:
    from airpath.base.quantities import time_from
    from airpath.errors import InputError

    seconds = time_from(text, "--binding-lifetime")
    if not 2 <= seconds <= 600:
        raise InputError(f"--binding-lifetime {text}: expects 2s to 10m")
    return seconds


def _other(also: str | None, token_file: Path | None, port: int, token: str) -> Server | None:
    """The second server; it shares the first one's token unless it has a file of its own."""
    from airpath.errors import InputError
    from airpath.measure.control import read_token
    from airpath.measure.measurement import Server

    if also is None:
        if token_file is not None:
            raise InputError(
                "--also-token-file is for a second server: name that server with --also"
            )
        return None
    found = re.fullmatch(r"(?:\[(.+)\]|([^:\[\]]+)):(\d{1,5})|\[?([^\[\]]+)\]?", also)
    if found is None:
        raise InputError(f"--also {also}: expects HOST or HOST:PORT, with IPv6 as [ADDRESS]:PORT")
    host, number = found[1] or found[2] or found[4], int(found[3] or port)
    if not 1 <= number <= 65535:
        raise InputError(f"--also {also}: the port must be from 1 to 65535")
    return Server(host, number, token if token_file is None else read_token(token_file))


def _share(text: str) -> float:
    from airpath.errors import InputError

    try:
        value = float(text.strip().removesuffix("%")) / 100
    except ValueError:
        value = 0.0
    if not 0.001 <= value <= 1:
        raise InputError(f"--until {text}: expects a percentage from 0.1% to 100%, such as 5%")
    return value


def _print_plan(options: MeasureOptions) -> None:
    """Print what would be sent, as far as that is known without the server."""
    from airpath.measure.measurement import drawn, resumed, tried
    from airpath.measure.plan import Known, Probing, usual
    from airpath.measure.stream import available

    known = options.resume or options.again
    if known is not None:
        plan = resumed(known).plan
    else:
        probing: Probing = "stamp" if options.far == "airpath" else "echo"
        plan = drawn(options, tried(options, usual(available()), []), Known(probing=probing))
    for line in plan.lines():
        output(line)
    if options.binding_s is not None:
        output(f"Afterwards: silent UDP flows, for {options.binding_s:g} s at most")
