"""``airpath explore``."""

from __future__ import annotations

from typing import Annotated

import typer

from airpath.cli.console import narrate, output
from airpath.cli.run import Sets, shipped_names


def command(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[SCENARIO | RUN]",
            help="A scenario file, the name of a shipped scenario, or a run directory. "
            "[default: bufferbloat]",
            autocompletion=shipped_names,
        ),
    ] = None,
    sets: Sets = None,
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="The port; 0 picks a free one.")
    ] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Whether to open a browser.")
    ] = True,
) -> None:
    """Open the laboratory in a browser: change a key and see at once what TCP does.

    The simulator runs in the page itself. A server on loopback provides the page's files and the
    scenario, and reads nothing else; its address is printed. Ctrl-C ends it.
    """
    import signal

    from airpath.explorer.begin import begin
    from airpath.explorer.server import served

    with served(begin(what, sets), port) as url:
        output(url)
        narrate("Ctrl-C ends the server; the page keeps its contents until it is closed.")
        if browser:
            import webbrowser

            webbrowser.open(url)
        try:
            signal.pause()
        except KeyboardInterrupt:
            narrate("ended")
