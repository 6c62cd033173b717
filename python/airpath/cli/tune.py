"""``airpath tune``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from airpath.cli.console import narrate, output, progress_bar
from airpath.cli.measure import Port, TokenFile, token_from
from airpath.cli.run import AsJson, Sets, Workers, shipped_names

if TYPE_CHECKING:
    from airpath.tune.tuning import Tuned

Result = Annotated[
    str | None,
    typer.Argument(
        metavar="[RESULT]",
        help="A run directory (simulated, emulated or measured), a scenario file, or the name of a "
        "shipped scenario. [default: the newest run in runs]",
        autocompletion=shipped_names,
    ),
]
End = Annotated[
    Literal["ue", "server"] | None,
    typer.Option(
        help="Try only settings of one host: that of the UE, or the server. [default: both]",
    ),
]
Seeds = Annotated[int, typer.Option(metavar="N", min=2, help="Number of paired seeds.")]
Apply = Annotated[
    bool,
    typer.Option(
        "--apply",
        help="Apply the settings to this host, which --end names. Needs root. What was there is "
        "recorded first, in /var/lib/airpath.",
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        metavar="DEV",
        help="With --apply, the device that a shaper is for. [default: that of the default route]",
    ),
]
Verify = Annotated[
    str | None,
    typer.Option(
        metavar="HOST",
        help="With --apply, measure the path to HOST, where `airpath serve` runs, with and without "
        "the settings, eight times 30 s in all. They stay applied only if they help beyond "
        "doubt.",
    ),
]
Undo = Annotated[
    bool,
    typer.Option(
        "--undo",
        help="Restore what was there before --apply, also after one that was killed. Needs root.",
    ),
]
Force = Annotated[
    bool, typer.Option("--force", help="With --undo, also restore what was changed since.")
]


def command(
    result: Result = None,
    sets: Sets = None,
    end: End = None,
    seeds: Seeds = 5,
    workers: Workers = None,
    apply: Apply = False,
    device: Device = None,
    verify: Verify = None,
    port: Port = 5212,
    token_file: TokenFile = None,
    undo: Undo = False,
    force: Force = False,
    json: AsJson = False,
) -> None:
    """Find settings for Linux hosts on a path, each with its gain and its harm.

    Settings are derived from the path: buffers, congestion control, slow start, initial window,
    segment size, ECN, and a shaper behind the modem. Simulations compare each with the unchanged
    scenario, with the same seeds. It is advised only if its gain is beyond doubt and outweighs its
    harm. Nothing on this host changes without --apply.
    """
    from airpath.errors import AirpathError, InputError
    from airpath.runs import summary

    if undo:
        given = {
            "RESULT": result,
            "--set": sets,
            "--end": end,
            "--apply": apply,
            "--device": device,
        }
        if wrong := [name for name, value in given.items() if value]:
            raise InputError(
                f"--undo cannot be combined with {wrong[0]}: it only restores this host's settings"
            )
        _undo(force=force, json=json)
        return
    if force:
        raise InputError("--force needs --undo")
    if apply and end is None:
        raise InputError("--apply needs --end ue or --end server, to say which end this host is")
    for name, value in (("--device", device), ("--verify", verify)):
        if value is not None and not apply:
            raise InputError(f"{name} needs --apply")
    if token_file is not None and verify is None:
        raise InputError("--token-file needs --verify")
    token = "" if verify is None else token_from(token_file)
    found = _tuned(result, sets, end, seeds, workers)
    if json:
        output(summary.to_json(found.document))
    else:
        from airpath.tune.sentences import sentences

        for line in sentences(found.document):
            output(line)
    if apply and not found.settings:
        raise AirpathError("there is nothing to apply: no setting helps this path")
    if verify is not None and end is not None:
        _verify(found, device, end, host=verify, port=port, token=token)
    elif apply:
        _apply(found, device)


def _tuned(
    result: str | None,
    sets: list[str] | None,
    end: Literal["ue", "server"] | None,
    seeds: int,
    workers: int | None,
) -> Tuned:
    from airpath.tune.prepared import prepared
    from airpath.tune.tuning import tuned

    with prepared(result, sets) as ready, progress_bar("tuning") as bar:
        if result is None:
            narrate(f"newest run: {ready.source}")
        return tuned(ready, end=end, seeds=seeds, workers=workers, progress=bar)


def _apply(found: Tuned, device: str | None) -> None:
    from airpath.tune.apply import apply

    for name in apply(found.settings, device):
        narrate(f"changed: {name}")
    narrate("`airpath tune --undo` restores what was there before")


def _verify(
    found: Tuned,
    device: str | None,
    end: Literal["ue", "server"],
    *,
    host: str,
    port: int,
    token: str,
) -> None:
    from airpath.measure.measurement import MeasureOptions
    from airpath.tune.verify import measured, verify

    other: dict[str, Literal["down", "up"]] = {"down": "up", "up": "down"}
    # `airpath measure` names directions as its own host sees them.
    seen = [way if end == "ue" else other[way] for way in found.directions]
    options = MeasureOptions(host=host, port=port, token=token, directions=seen)
    verified = verify(found.settings, device, lambda: measured(options), say=narrate)
    for line in verified.lines:
        output(line)
    if not verified.kept:
        output("the settings do not help this path beyond doubt, and are withdrawn")
        raise typer.Exit(1)
    narrate("the settings stay applied; `airpath tune --undo` restores what was there before")


def _undo(*, force: bool, json: bool) -> None:
    from airpath.runs import summary
    from airpath.tune.apply import undo

    restored = undo(force=force)
    if json:
        output(summary.to_json({"restored": restored}))
        return
    for sentence in [f"restored: {one}" for one in restored] or ["there is nothing to undo"]:
        output(sentence)
