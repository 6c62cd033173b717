"""``airpath emulate``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from airpath.cli.console import narrate, output, progress_bar
from airpath.cli.run import Explain, Out, Scenario, Sets

if TYPE_CHECKING:
    from airpath import _core
    from airpath.emulation import printed
    from airpath.runs.results import Run


def command(
    scenario: Scenario,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND...",
            help="A program and its arguments, after --. [default: the scenario's programs, or a "
            "shell]",
            show_default=False,
        ),
    ] = None,
    sets: Sets = None,
    server: Annotated[
        list[str] | None,
        typer.Option(
            "--server",
            metavar="LINE",
            help="A shell command to start at the server before COMMAND. airpath waits until "
            "something listens there. Repeatable.",
            show_default=False,
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="END",
            help="The end at which COMMAND runs: server, ue, or a UE's name. [default: ue]",
            show_default=False,
        ),
    ] = None,
    flows: Annotated[
        bool,
        typer.Option(
            "--flows",
            help="Run the scenario's flows over the kernel's sockets. They end with COMMAND or, "
            "without a COMMAND, at the scenario's end.",
        ),
    ] = False,
    user: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The user to run programs as; root keeps all its rights. [default: the user "
            "who called sudo, else root without its capabilities]",
            show_default=False,
        ),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env",
            metavar="NAME",
            help="Pass this environment variable to programs, in addition to TERM, LANG, LC_*, "
            "PATH, HOME, USER, LOGNAME, SHELL and TZ. With --user root, or without root, they "
            "get all variables. Repeatable.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="The seed of the model. [default: the scenario's]",
            show_default=False,
        ),
    ] = None,
    out: Out = None,
    capture: Annotated[
        bool,
        typer.Option(
            "--capture",
            help="Also write capture.pcapng with every packet at each end and at the cell.",
        ),
    ] = False,
    live: Annotated[
        bool | None,
        typer.Option(
            "--live/--no-live",
            help="Show rates, queues, states and lateness during the run. [default: on a terminal, "
            "unless COMMAND is a shell]",
            show_default=False,
        ),
    ] = None,
    metrics: Annotated[
        int | None,
        typer.Option(
            metavar="PORT",
            min=1,
            max=65535,
            help="Serve Prometheus metrics at http://127.0.0.1:PORT/metrics during the run.",
            show_default=False,
        ),
    ] = None,
    page: Annotated[
        str | None,
        typer.Option(
            "--page",
            metavar="PORT",
            help="Serve a page with cells, UEs, history and alarms at http://127.0.0.1:PORT/, "
            "or at another loopback ADDRESS:PORT; 0 picks a free port.",
            show_default=False,
        ),
    ] = None,
    json: Annotated[
        bool,
        typer.Option(
            "--json", help="Print one JSON document. COMMAND's output then goes to stderr."
        ),
    ] = False,
    explain: Annotated[
        Explain,
        typer.Option(
            help="How hard to search for what limited the flows: they are simulated over the "
            "same path, and causes are removed there."
        ),
    ] = Explain.quick,
) -> None:
    """Run a command inside a scenario's network, over the kernel's own TCP.

    COMMAND runs at the UE, in a namespace called ue; the other end is called server. With --user
    root, "ip netns exec server" runs a program there. The programs of the scenario run alongside
    COMMAND, and with --flows its flows too; COMMAND is then optional. The exit code is that of
    COMMAND or, without a COMMAND, that of the first program that failed. If that is 0, the exit
    code is 3 for a run whose packets were too late to count, and 1 for a run that is incomplete.

    Without root, everything runs inside a user namespace.
    """
    from airpath.emulation import rootless

    # Before anything starts a thread.
    if rootless.enter():
        narrate(f"without root: {rootless.LIMITS}")
    from airpath import scenario as scenarios
    from airpath.drivers import emulate
    from airpath.emulation import oam
    from airpath.errors import InputError
    from airpath.runs import describe, provenance, summary

    if flows and not words and (server or at):
        raise InputError("--server and --at need a COMMAND")
    loaded = scenarios.load(scenario, sets)
    chosen = words or ([] if flows or loaded.programs else emulate.shell())
    # A table tells more; a command has the terminal to itself.
    bar = not chosen and not loaded.programs and not oam.is_shown(chosen, live)
    # The page stays while the run is explained.
    with oam.paged(loaded, page, narrate) as status:
        with (
            oam.monitored(
                loaded, chosen, live=live, port=metrics, status=status, quiet=json
            ) as monitored,
            progress_bar("emulating") if bar else nullcontext() as progress,
            _kept(chosen, monitored.streams.output, quiet=json) as (descriptor, written),
        ):
            run = emulate.emulate(
                loaded,
                chosen,
                servers=server or (),
                place=at,
                seed=seed,
                out=out,
                quiet=json,
                capture=capture,
                monitor=monitored.monitor,
                attached=None if status is None else status.attached,
                output=descriptor,
                error=monitored.streams.error,
                written=written,
                flows=flows,
                progress=progress,
                user=user,
                variables=env or (),
                command_line=provenance.command_line(),
            )
        if explain is not Explain.off:
            _explain(run, loaded, explain, flows)
    if json:
        output(summary.to_json(run.summary))
    else:
        if flows:
            said = [describe.sentences, describe.answer, describe.breakdowns]
            for line in [line for say in said for line in say(run.summary)]:
                output(line)
        else:
            # Standard output is COMMAND's.
            for line in describe.answer(run.summary) + describe.breakdowns(run.summary):
                narrate(line)
        for sentence in emulate.sentences(run):
            narrate(sentence)
    narrate(f"run directory: {run.directory}")
    sys.stdout.flush()
    # Not through Typer, for which some codes mean something.
    raise SystemExit(emulate.exit_code(run))


@contextmanager
def _kept(
    command: list[str], descriptor: int | None, *, quiet: bool
) -> Iterator[tuple[int | None, printed.CommandOutput | None]]:
    """Where the command's output goes, and what is kept of it: that of ping and iperf3."""
    from airpath.emulation import printed

    if not printed.is_read(command):
        yield descriptor, None
        return
    with printed.kept(printed.target(quiet) if descriptor is None else descriptor) as both:
        yield both


def _explain(run: Run, loaded: _core.Scenario, budget: Explain, own_flows: bool) -> None:
    """Explain the run; Ctrl-C keeps it as it is."""
    from airpath.diagnose import emulated
    from airpath.drivers.stopping import StoppedError

    try:
        with progress_bar("explaining") as bar:

            def told(ended: int) -> bool:
                bar(min(0.95, ended / 25))
                return True

            emulated.add(run, loaded, budget.value, own_flows=own_flows, progress=told)
    except KeyboardInterrupt:
        if run.directory is None:
            raise
        raise StoppedError(run.directory, run.partial, "but was not explained") from None
