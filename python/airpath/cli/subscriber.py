"""``airpath subscriber``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from airpath.cli.console import narrate, output

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Imsi = Annotated[str, typer.Argument(metavar="IMSI", help="14 or 15 digits.")]
Database = Annotated[
    Path, typer.Option("--db", metavar="FILE", help="The file that holds the subscribers.")
]
_FILE = Path("subscribers.db")


@app.command()
def add(
    imsi: Imsi,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="HEX",
            help="K: 32 hexadecimal digits. Other users can see it in the list of processes.",
        ),
    ] = None,
    opc: Annotated[
        str | None,
        typer.Option(metavar="HEX", help="OPc: 32 hexadecimal digits."),
    ] = None,
    keys: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A file with lines of IMSI, K and OPc, instead of --key and --opc. - is "
            "standard input.",
        ),
    ] = None,
    apn: Annotated[str, typer.Option(metavar="NAME", help="APN (LTE) or DNN (NR).")] = "internet",
    qci: Annotated[int, typer.Option(metavar="N", help="QCI (LTE) or 5QI (NR).")] = 9,
    qfi: Annotated[
        int, typer.Option(metavar="N", help="QFI, the number of NR's QoS flow: 1 to 63.")
    ] = 9,
    ambr_down: Annotated[
        float | None,
        typer.Option(metavar="MBPS", help="Downlink UE-AMBR. [default: no limit]"),
    ] = None,
    ambr_up: Annotated[
        float | None,
        typer.Option(metavar="MBPS", help="Uplink UE-AMBR. [default: no limit]"),
    ] = None,
    db: Database = _FILE,
) -> None:
    """Add a subscriber. If the file does not exist, it is created."""
    from airpath.emulation import keys as files
    from airpath.emulation.oam import subscribers
    from airpath.errors import InputError

    if keys is not None and key is None and opc is None:
        k, op = files.of_imsi(keys, imsi)
    elif keys is None and key is not None and opc is not None:
        k, op = key, opc
    else:
        raise InputError("give --key and --opc, or --keys FILE")
    subscriber = subscribers.Subscriber(
        imsi, k.lower(), op.lower(), apn, qci, qfi, ambr_down, ambr_up
    )
    subscribers.add(db, subscriber)
    narrate(f"{imsi} is in {db}")


@app.command("list")
def list_(
    db: Database = _FILE,
    keys: Annotated[bool, typer.Option("--keys", help="Also show K and OPc.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """List the subscribers without their keys, one per line."""
    from airpath.emulation.oam import subscribers
    from airpath.runs import summary

    found = [subscribers.shown(each, keys=keys) for each in subscribers.read(db)]
    if json:
        output(summary.to_json({"subscribers": found}))
        return
    for each in found:
        said = [f"{name}={value}" for name, value in each.items() if value is not None]
        output("  ".join([str(each["imsi"]), *said[1:]]))


@app.command()
def remove(imsi: Imsi, db: Database = _FILE) -> None:
    """Remove a subscriber."""
    from airpath.emulation.oam import subscribers

    subscribers.remove(db, imsi)
    narrate(f"{imsi} is no longer in {db}")
