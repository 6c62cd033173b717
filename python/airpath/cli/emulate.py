"""``airpath emulate``."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from airpath.cli.console import narrate, output
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

    COMMAND runs at the UE's end, called ue; the other end is called server, and "ip netns exec
    server" runs something there. The scenario's [[program]] tables run beside it. The exit code is
    COMMAND's, without one that of the first program that failed, or 3 if that is 0 and the machine
    was too late for the run to count. Without root it runs inside a user namespace.
    """
    from airpath import rootless

    # Before anything starts a thread.
    if rootless.enter():
        narrate(f"without root: {rootless.LIMITS}")
    from airpath import emulate, provenance, summary, watching
    from airpath import scenario as scenarios

    loaded = scenarios.load(scenario, sets)
    chosen = words or ([] if loaded.programs else emulate.shell())
    with watching.watched(loaded, chosen, live=live, port=metrics) as watch:
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
            command_line=provenance.command_line(),
        )
    if json:
        output(summary.to_json(run.summary))
    else:
        for sentence in emulate.sentences(run):
            narrate(sentence)
    narrate(f"run directory: {run.directory}")
    sys.stdout.flush()
    # Not through Typer, for which some codes mean something.
    raise SystemExit(emulate.exit_code(run))
