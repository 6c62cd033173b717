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

Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        metavar="HEX",
        help="K: 32 hexadecimal digits. Other users can see it in the list of processes.",
    ),
]
Opc = Annotated[
    str | None, typer.Option("--opc", metavar="HEX", help="OPc: 32 hexadecimal digits.")
]
Keys = Annotated[
    str | None,
    typer.Option(
        "--keys",
        metavar="FILE",
        help="A file with lines of IMSI, K and OPc, instead of --key and --opc. - is "
        "standard input.",
    ),
]


@app.command()
def add(
    imsi: Imsi,
    key: Key = None,
    opc: Opc = None,
    keys: Keys = None,
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
    from airpath.emulation.oam import subscribers
    from airpath.errors import InputError

    secrets = _secrets(imsi, key, opc, keys)
    if len(secrets) != 2:
        raise InputError("give --key and --opc, or --keys FILE")
    subscriber = subscribers.Subscriber(
        imsi, secrets["key"], secrets["opc"], apn, qci, qfi, ambr_down, ambr_up
    )
    subscribers.add(db, subscriber)
    narrate(f"{imsi} is in {db}")


@app.command()
def change(
    imsi: Imsi,
    key: Key = None,
    opc: Opc = None,
    keys: Keys = None,
    apn: Annotated[str | None, typer.Option(metavar="NAME", help="APN (LTE) or DNN (NR).")] = None,
    qci: Annotated[int | None, typer.Option(metavar="N", help="QCI (LTE) or 5QI (NR).")] = None,
    qfi: Annotated[
        int | None, typer.Option(metavar="N", help="QFI, the number of NR's QoS flow: 1 to 63.")
    ] = None,
    ambr_down: Annotated[
        str | None,
        typer.Option(metavar="MBPS", help="Downlink UE-AMBR; none removes the limit."),
    ] = None,
    ambr_up: Annotated[
        str | None,
        typer.Option(metavar="MBPS", help="Uplink UE-AMBR; none removes the limit."),
    ] = None,
    db: Database = _FILE,
) -> None:
    """Change a subscriber. What is not given stays as it is."""
    from airpath.emulation.oam import subscribers

    changes = {
        **_secrets(imsi, key, opc, keys),
        **{
            name: value
            for name, value in (("apn", apn), ("qci", qci), ("qfi", qfi))
            if value is not None
        },
        **{
            f"{name}_mbps": _rate(name, text)
            for name, text in (("ambr_down", ambr_down), ("ambr_up", ambr_up))
            if text is not None
        },
    }
    changed = subscribers.change(db, imsi, changes)
    narrate(f"{imsi} in {db}: {', '.join(changed) or 'nothing'} changed")


def _secrets(imsi: str, key: str | None, opc: str | None, file: str | None) -> dict[str, str]:
    """Return those of K and OPc that are given."""
    from airpath.emulation import keys as files
    from airpath.errors import InputError

    given = {name: value for name, value in (("key", key), ("opc", opc)) if value is not None}
    if file is None:
        return given
    if given:
        raise InputError("give --key and --opc, or --keys FILE")
    found = files.of_imsi(file, imsi)
    return {"key": found[0], "opc": found[1]}


def _rate(name: str, text: str) -> float | None:
    """Read a rate in Mb/s, or that there is no limit."""
    from airpath.errors import InputError

    if text == "none":
        return None
    try:
        return float(text)
    except ValueError:
        option = name.replace("_", "-")
        raise InputError(
            f"--{option} '{text}': expected a rate in Mb/s, or none for no limit"
        ) from None


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
