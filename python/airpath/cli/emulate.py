"""``airpath emulate``."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import Annotated

import typer

from airpath.cli.console import narrate, output, progress_bar
from airpath.cli.run import Out, Scenario, Sets


def command(
    scenario: Scenario,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND",
            help="Program and arguments, after --. [default: the scenario's programs, or a shell]",
            show_default=False,
        ),
    ] = None,
    sets: Sets = None,
    server: Annotated[
        list[str] | None,
        typer.Option(
            "--server",
            metavar="LINE",
            help="Shell command at the server's end, started before COMMAND and waited for until "
            "somebody listens there. Repeatable.",
            show_default=False,
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="END",
            help="Where COMMAND runs: server, ue, or a UE's name. [default: ue]",
            show_default=False,
        ),
    ] = None,
    flows: Annotated[
        bool,
        typer.Option(
            "--flows",
            help="The kernel's sockets run the scenario's flows: until the scenario's end, or "
            "beside COMMAND until that ends.",
        ),
    ] = False,
    user: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="As whom programs run; root: with all its rights. [default: who called sudo, else "
            "root without its capabilities]",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Seed of the model. [default: the scenario's]",
            show_default=False,
        ),
    ] = None,
    out: Out = None,
    capture: Annotated[
        bool,
        typer.Option(
            "--capture", help="Also write capture.pcapng: every packet at each end and at the cell."
        ),
    ] = False,
    live: Annotated[
        bool | None,
        typer.Option(
            "--live/--no-live",
            help="Show rates, queues, states and lateness while it runs. [default: on a terminal, "
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
            help="Answer Prometheus at http://127.0.0.1:PORT/metrics while it runs.",
            show_default=False,
        ),
    ] = None,
    json: Annotated[
        bool,
        typer.Option("--json", help="Print one JSON document; COMMAND's output goes to stderr."),
    ] = False,
) -> None:
    """Run a command inside a scenario's network, over the kernel's own TCP.

    COMMAND runs at the UE's end, called ue; the other end is called server, and with --user root
    "ip netns exec server" runs something there. The scenario's [[program]] tables run beside it,
    and with --flows its flows; then COMMAND is optional. The exit code is COMMAND's, without one
    that of the first program that failed, or 3 if that is 0 and the machine was too late for the
    run to count.
    Without root it runs inside a user namespace.
    """
    from airpath.emulation import rootless

    # Before anything starts a thread.
    if rootless.enter():
        narrate(f"without root: {rootless.LIMITS}")
    from airpath import describe, provenance, summary
    from airpath import scenario as scenarios
    from airpath.emulation import emulate, watching
    from airpath.errors import InputError

    if flows and not words and (server or at):
        raise InputError("--server and --at are for a COMMAND, and --flows alone has none")
    loaded = scenarios.load(scenario, sets)
    chosen = words or ([] if flows or loaded.programs else emulate.shell())
    # A table tells more; a command has the terminal to itself.
    bar = not chosen and not loaded.programs and not watching.is_shown(chosen, live)
    with (
        watching.watched(loaded, chosen, live=live, port=metrics, quiet=json) as watch,
        progress_bar("emulating") if bar else nullcontext() as progress,
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
            monitor=watch.monitor,
            output=watch.streams.output,
            error=watch.streams.error,
            flows=flows,
            progress=progress,
            user=user,
            command_line=provenance.command_line(),
        )
    if json:
        output(summary.to_json(run.summary))
    else:
        if flows:
            for sentence in describe.sentences(run.summary):
                output(sentence)
        for sentence in emulate.sentences(run):
            narrate(sentence)
    narrate(f"run directory: {run.directory}")
    sys.stdout.flush()
    # Not through Typer, for which some codes mean something.
    raise SystemExit(emulate.exit_code(run))
