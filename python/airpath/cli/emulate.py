"""``airpath emulate``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from airpath.base.choices import Explain
from airpath.cli.console import narrate, output, progress_bar
from airpath.cli.run import Out, Record, Scenario, Sets, explaining, recording

if TYPE_CHECKING:
    from airpath import _core
    from airpath.drivers.options import EmulationOptions
    from airpath.emulation.gateway import Gateway
    from airpath.emulation.oam import Status
    from airpath.runs.results import Run

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="COMMAND...",
        help="A program and its arguments, after --. [default: the scenario's programs, or a "
        "shell]",
    ),
]
Servers = Annotated[
    list[str] | None,
    typer.Option(
        "--server",
        metavar="LINE",
        help="A shell command to start at the server before COMMAND. airpath waits until "
        "something listens there. Repeatable.",
    ),
]
At = Annotated[
    str | None,
    typer.Option(
        metavar="END",
        help="The end at which COMMAND runs: server, ue, or a UE's name. [default: ue]",
    ),
]
Flows = Annotated[
    bool,
    typer.Option(
        "--flows",
        help="Run the scenario's flows over the kernel's sockets. They end with COMMAND or, "
        "without a COMMAND, at the scenario's end.",
    ),
]
CongestionOf = Annotated[
    list[str] | None,
    typer.Option(
        "--congestion",
        metavar="[FLOW=]CC",
        help="In the kernel, use this congestion control for one flow, or for all flows and "
        "programs: one of the host's, by its name, or one in a BPF object (struct_ops), which is "
        "registered during a run. FILE:NAME chooses one of several in it. Repeatable.",
    ),
]
User = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="The user to run programs as; root keeps all its rights. [default: the user "
        "who called sudo, else root without its capabilities]",
    ),
]
Variables = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        metavar="NAME",
        help="Pass this environment variable to programs, in addition to TERM, LANG, LC_*, "
        "PATH, HOME, USER, LOGNAME, SHELL and TZ. With --user root, or without root, they "
        "get all variables. Repeatable.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=0,
        help="The seed of the model. [default: the scenario's]",
    ),
]
Repeat = Annotated[
    int,
    typer.Option(
        metavar="N",
        min=1,
        help="Number of runs, with seeds counted up from --seed. A run that does not count, "
        "because packets were late, is repeated, with at most N repetitions in all. With --out, an "
        "interrupted series continues.",
    ),
]
Capture = Annotated[
    bool,
    typer.Option(
        "--capture",
        help="Also write capture.pcapng with every packet at each end and at the cell, and with "
        "[core] the signalling of UEs that attach and detach.",
    ),
]
Live = Annotated[
    bool | None,
    typer.Option(
        "--live/--no-live",
        help="Show rates, queues, states and lateness during the run. [default: on a terminal, "
        "unless COMMAND is a shell]",
    ),
]
Metrics = Annotated[
    int | None,
    typer.Option(
        metavar="PORT",
        min=1,
        max=65535,
        help="Serve Prometheus metrics at http://127.0.0.1:PORT/metrics during the run.",
    ),
]
Page = Annotated[
    str | None,
    typer.Option(
        "--page",
        metavar="PORT",
        help="Serve a page with cells, UEs, history and alarms at http://127.0.0.1:PORT/, "
        "or at another loopback ADDRESS:PORT; 0 picks a free port.",
    ),
]
Edit = Annotated[
    bool,
    typer.Option(
        "--edit",
        help="With --page, let the page change the subscribers of [core], for those who enter the "
        "token that is printed. UEs that attach later get the change.",
    ),
]
GatewayOf = Annotated[
    str | None,
    typer.Option(
        "--gateway",
        metavar="UE_IF:SERVER_IF",
        help="Bridge two interfaces of this host through the model instead of running programs: "
        "real devices are at UE_IF, and the server or the Internet at SERVER_IF. Runs until "
        "Ctrl-C. Needs root.",
    ),
]
Devices = Annotated[
    list[str] | None,
    typer.Option(
        "--gateway-ue",
        metavar="NAME=DEVICE",
        help="With --gateway, put a device behind UE NAME, by the device's MAC or IP address. "
        "All other devices are behind the first UE. Repeatable.",
    ),
]
DurationOf = Annotated[
    float | None,
    typer.Option(
        "--duration",
        metavar="S",
        help="With --gateway, end after this many seconds.",
    ),
]
Yes = Annotated[
    bool,
    typer.Option(
        "--yes",
        help="With --gateway, also use an interface that carries this host's default route.",
    ),
]
AsJson = Annotated[
    bool,
    typer.Option("--json", help="Print one JSON document. COMMAND's output then goes to stderr."),
]
Explaining = Annotated[
    Explain,
    typer.Option(
        help="How hard to search for what limited the flows: they are simulated over the "
        "same path, and causes are removed there."
    ),
]


def command(
    scenario: Scenario,
    words: Words = None,
    sets: Sets = None,
    server: Servers = None,
    at: At = None,
    flows: Flows = False,
    congestion: CongestionOf = None,
    user: User = None,
    env: Variables = None,
    seed: Seed = None,
    repeat: Repeat = 1,
    out: Out = None,
    capture: Capture = False,
    record: Record = False,
    live: Live = None,
    metrics: Metrics = None,
    page: Page = None,
    edit: Edit = False,
    gateway: GatewayOf = None,
    gateway_ue: Devices = None,
    duration: DurationOf = None,
    yes: Yes = False,
    json: AsJson = False,
    explain: Explaining = "quick",
) -> None:
    """Run a command inside a scenario's network, over the kernel's own TCP.

    COMMAND runs at the UE, in a namespace called ue; the other end is called server. With --user
    root, "ip netns exec server" runs a program there. The programs of the scenario run alongside
    COMMAND, and with --flows its flows too; COMMAND is then optional. The exit code is that of
    COMMAND or, without a COMMAND, that of the first program that failed. If that is 0, the exit
    code is 3 if packets were so late that the run does not count, and 1 if the run is incomplete.
    With --repeat, every figure is the mean over the runs, with a 95 % confidence interval. The
    findings are about the first run, and the exit code is that of the first run that failed.

    Without root, everything runs inside a user namespace.

    With --gateway, there are no namespaces and no programs: the traffic is that of real devices at
    two interfaces of this host.
    """
    bridge = _gateway(gateway, gateway_ue, duration, yes=yes)
    # No interface of the host is inside a user namespace.
    if bridge is None:
        enter_user_namespace()
    from airpath import scenario as scenarios
    from airpath.drivers import emulate
    from airpath.drivers import repeat as repetition
    from airpath.drivers.options import EmulationOptions
    from airpath.emulation import congestion as controls
    from airpath.emulation import oam
    from airpath.runs import provenance

    loaded = scenarios.load(scenario, recording(sets, record=record))
    ends = bool(words or flows or loaded.programs)
    _check_repeat(repeat, bridge, ends=ends, edit=edit)
    options = EmulationOptions(
        command=words or ([] if ends or bridge else emulate.shell()),
        servers=server or (),
        place=at,
        flows=flows,
        congestion=controls.parse_all(congestion or (), loaded),
        user=user,
        variables=env or (),
        seed=seed,
        out=out,
        capture=capture,
        gateway=bridge,
        command_line=provenance.command_line(),
    )
    # The page stays while the run is explained.
    with oam.paged(loaded, page, narrate, edit=edit) as status:
        display = partial(_display, loaded, status, live=live, metrics=metrics, quiet=json)
        if repeat > 1:
            run = repetition.repeat(loaded, options, repeat, display, narrate)
        else:
            with display(options, "emulating") as complete:
                run = emulate.emulate(loaded, complete)
        if explain != "off":
            _explain(run, loaded, explain, own_flows=flows)
    _say(run, json=json, flows=flows or bridge is not None)
    # Not through Typer, for which some codes mean something.
    raise SystemExit(repetition.exit_code(run))


def enter_user_namespace() -> None:
    """Enter a user namespace if this process is not root, before anything starts a thread."""
    from airpath.emulation import rootless

    if rootless.enter():
        narrate(f"without root: {rootless.LIMITS}")


def _gateway(
    interfaces: str | None, devices: list[str] | None, duration: float | None, *, yes: bool
) -> Gateway | None:
    from airpath.emulation.gateway import Gateway
    from airpath.errors import InputError

    if interfaces is not None:
        return Gateway.parse(interfaces, devices or (), duration, default_route=yes)
    given = {"--gateway-ue": devices, "--duration": duration is not None, "--yes": yes}
    if wrong := [name for name, value in given.items() if value]:
        limit = "; to limit any other run, use --set run.duration_s=SECONDS"
        raise InputError(
            f"{wrong[0]} needs --gateway UE_IF:SERVER_IF{limit if duration is not None else ''}"
        )
    return None


def _check_repeat(repeat: int, bridge: Gateway | None, *, ends: bool, edit: bool) -> None:
    """Refuse to repeat what does not end by itself, or would not be the same again."""
    from airpath.errors import InputError

    if repeat == 1:
        return
    if edit:
        raise InputError("--repeat cannot be used with --edit: the runs would differ")
    if bridge is not None:
        raise InputError("--repeat cannot be used with --gateway: airpath cannot restart devices")
    if not ends:
        raise InputError(
            "--repeat needs runs that end by themselves: add a COMMAND, --flows, or [[program]]"
        )


@contextmanager
def _display(
    loaded: _core.Scenario,
    status: Status | None,
    options: EmulationOptions,
    label: str,
    *,
    live: bool | None,
    metrics: int | None,
    quiet: bool,
) -> Iterator[EmulationOptions]:
    """Yield the options with everything that shows the state of a run while it lasts."""
    from airpath.emulation import oam

    bridge = options.gateway
    programs = options.command or (loaded.programs and bridge is None)
    endless = bridge is not None and bridge.duration_s is None
    # A table tells more; programs have the terminal to themselves.
    busy = programs or endless or oam.is_shown(options.command, live)
    with (
        oam.monitored(
            loaded, options.command, live=live, port=metrics, status=status, quiet=quiet
        ) as monitored,
        nullcontext() if busy else progress_bar(label) as progress,
    ):
        yield replace(
            options,
            output=monitored.streams.output,
            error=monitored.streams.error,
            monitor=monitored.monitor,
            attached=None if status is None else status.attached,
            edits=None if status is None or status.editing is None else status.editing.close,
            progress=progress,
        )


def _explain(run: Run, scenario: _core.Scenario, budget: Explain, *, own_flows: bool) -> None:
    """Explain a run; if it was repeated, explain the first run on behalf of all."""
    from airpath.diagnose import emulated, explain
    from airpath.drivers.repeat import runs_of

    first = runs_of(run)[0]
    with explaining(run) as told:
        emulated.add(first, scenario, budget, own_flows=own_flows, progress=told)
    if first.directory != run.directory:
        explain.copy(first, run)


def _say(run: Run, *, json: bool, flows: bool) -> None:
    """Print the results; without ``flows``, standard output is COMMAND's."""
    from airpath.drivers import repeat
    from airpath.runs import describe, summary

    if json:
        output(summary.to_json(run.summary))
    else:
        tell = output if flows else narrate
        lines = describe.sentences(run.summary) if flows or len(run.seeds) > 1 else []
        for line in lines + describe.answer(run.summary) + describe.breakdowns(run.summary):
            tell(line)
        for sentence in repeat.sentences(run):
            narrate(sentence)
    narrate(f"run directory: {run.directory}")
    sys.stdout.flush()
