"""``airpath whatif``."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from airpath.cli.console import aligned, narrate, output, progress_bar
from airpath.cli.emulate import At, Servers, User, Variables, enter_user_namespace
from airpath.cli.run import AsJson, Scenario, Seed, Sets, Workers

if TYPE_CHECKING:
    from airpath.diagnose.whatif import Tried
    from airpath.runs.document import Variants

_AS_IT_IS = "as it is"
_WIDTH = 80
"""Columns of a terminal that nobody has widened."""
_MOST_HEAD = 24
_CONGESTION_CONTROL = {"congestion", "cubic", "cwnd", "hystart", "reno"}
"""The key and the tables of a flow that are about congestion control."""


EmulatedWords = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="COMMAND...",
        help="With --emulate, a program and its arguments, after --. [default: the scenario's "
        "programs, or its flows]",
    ),
]
Emulate = Annotated[
    int | None,
    typer.Option(
        "--emulate",
        metavar="N",
        min=1,
        help="Emulate the variants instead of simulating them, in N randomised blocks, each of "
        "which runs every variant once. A block in which the host was late is repeated, with at "
        "most N repetitions in all.",
    ),
]
Tries = Annotated[
    list[str],
    typer.Option(
        "--try",
        metavar="'KEY=VALUE …'",
        help="A variant: settings, separated by spaces. Repeatable.",
    ),
]
Seeds = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, help="Number of simulated seeds. [default: 5]"),
]
Chart = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Also draw a chart: .html, .svg, .png or .pdf.",
    ),
]
EmulatedFlows = Annotated[
    bool,
    typer.Option(
        "--flows",
        help="With --emulate, run the scenario's flows alongside COMMAND or [[program]]. Without "
        "programs, the flows always run.",
    ),
]
EmulatedOut = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="With --emulate, the directory of the runs. Complete blocks in it are kept, and "
        "missing ones are added. [default: runs/whatif-NAME-DATE-ID]",
    ),
]


def command(
    scenario: Scenario,
    tries: Tries,
    words: EmulatedWords = None,
    sets: Sets = None,
    seed: Seed = None,
    seeds: Seeds = None,
    workers: Workers = None,
    emulated: Emulate = None,
    server: Servers = None,
    at: At = None,
    flows: EmulatedFlows = False,
    user: User = None,
    env: Variables = None,
    out: EmulatedOut = None,
    chart: Chart = None,
    json: AsJson = False,
) -> None:
    """Compare variants of a scenario on common seeds.

    Prints one table: each figure without changes and with each variant, its change, and the 95 %
    confidence interval of the change over paired seeds. A star marks the best variant, if it is
    better than every other by more than noise.

    With --emulate, the runs are emulations of the scenario's flows or of a COMMAND (after --), and
    changes are taken within each block instead of each seed. The exit code is 3 if fewer than N
    blocks count because the host was late.
    """
    from airpath.cli.plot import check_picture, write_picture
    from airpath.diagnose.whatif import Tried
    from airpath.errors import InputError
    from airpath.runs import summary

    if chart is not None:
        check_picture(chart)
    variants = [_settings(text) for text in tries]
    if emulated is None:
        given = {
            "COMMAND": words, "--server": server, "--at": at, "--flows": flows, "--user": user,
            "--env": env, "--out": out,
        }  # fmt: skip
        if wrong := [name for name, value in given.items() if value]:
            raise InputError(f"{wrong[0]} needs --emulate N: simulations do not use it")
        compare = partial(_simulated, seed=seed, seeds=seeds, workers=workers)
    else:
        if seeds is not None:
            raise InputError("--seeds is for simulations: each of the N blocks has its own seed")
        if workers is not None:
            raise InputError("--workers is for simulations: emulations run one after another")
        compare = partial(
            _emulated, blocks=emulated, flows=flows, command=words or (), servers=server or (),
            place=at, user=user, variables=env or (), seed=seed, out=out,
        )  # fmt: skip
    tried = Tried.load(scenario, variants, set=sets, options=("--set", "--try"))
    answer = compare(tried)
    labels = [_AS_IT_IS, *(" ".join(one) for one in answer["variants"][1:])]
    if json:
        output(summary.to_json(answer))
    else:
        output("\n".join(_table(answer, labels, tried)))
    if chart is not None:
        from airpath.plots.variants import variants as draw

        write_picture(draw(answer, labels), chart, title=f"{scenario}: what if")
    blocks = answer.get("blocks")
    if blocks is not None:
        narrate(f"directory: {blocks['directory']}")
        if len(answer["seeds"]) < blocks["wanted"]:
            raise typer.Exit(3)


def _simulated(
    tried: Tried, *, seed: int | None, seeds: int | None, workers: int | None
) -> Variants:
    from airpath.diagnose.whatif import SEEDS, simulated

    number = SEEDS if seeds is None else seeds
    total = number * (len(tried.variants) + 1)
    with progress_bar("comparing") as bar:

        def told(ended: int) -> bool:
            bar(ended / total)
            return True

        return simulated(tried, seed=seed, seeds=number, workers=workers, progress=told)


def _emulated(tried: Tried, *, blocks: int, flows: bool, **given: Any) -> Variants:
    enter_user_namespace()
    from airpath.diagnose.blocks import whatif_emulated
    from airpath.drivers.options import EmulationOptions
    from airpath.runs import provenance

    has_programs = given["command"] or tried.base.programs
    options = EmulationOptions(
        flows=flows or not has_programs, command_line=provenance.command_line(), **given
    )
    with progress_bar("comparing") as bar:
        return whatif_emulated(tried, blocks=blocks, options=options, progress=bar, say=narrate)


def _settings(text: str) -> list[str]:
    from airpath.errors import InputError

    try:
        # Quotes of a TOML string stay; those of a shell would be gone.
        parts = [
            part.replace("\0", '"') for part in shlex.split(text.replace('"', "\0"), posix=True)
        ]
    except ValueError as error:
        raise InputError(f"--try {text}: {error}") from None
    if not parts:
        raise InputError("--try is empty: it takes settings, e.g. --try 'run.duration_s=10'")
    return parts


def _table(answer: Variants, labels: list[str], tried: Tried) -> list[str]:
    from airpath.runs.describe import figure_name, figure_text

    rows = [["", _AS_IT_IS, *_heads(answer)]]
    for row in answer["rows"]:
        metric = row["metric"]
        cells = [f"{figure_name(metric)} of {row['flow']}"]
        for index, cell in enumerate(row["cells"]):
            if cell is None:
                cells.append("none")
                continue
            star = " *" if row["winner"] == index else ""
            change = ""
            if cell["change"] is not None:
                low, high = (100 * bound for bound in cell["change_ci95"] or (0.0, 0.0))
                bounds = f", {low:+.1f} to {high:+.1f}" if cell["change_ci95"] else ""
                change = f" ({100 * cell['change']:+.1f} %{bounds})"
            cells.append(f"{figure_text(metric, cell['mean'])}{change}{star}")
        rows.append(cells)
    return [
        *(f"({index}) {label}" for index, label in enumerate(labels) if index),
        "",
        *_wrapped(rows),
        "",
        *_footer(answer),
        *_without_effect(answer, tried),
        *_trade_offs(answer),
    ]


def _heads(answer: Variants) -> list[str]:
    """Numbers of the variants, with what differs between them where that is short."""
    heads = []
    for index, sets in enumerate(answer["variants"][1:], 1):
        keys = [text.partition("=")[0].rpartition(".")[2] for text in sets]
        values = [text.partition("=")[2] for text in sets]
        what = " ".join(f"{key}={value}" for key, value in zip(keys, values, strict=True))
        heads.append(f"({index}) {what}" if len(what) <= _MOST_HEAD else f"({index})")
    return heads


def _wrapped(rows: list[list[str]]) -> list[str]:
    """The table, in parts below each other where it is wider than ``_WIDTH``.

    Each part has the figures and the unchanged scenario.
    """
    lines: list[str] = []
    place, count = 2, len(rows[0])
    while place < count:
        upto = place + 1
        while upto < count and _width(_columns(rows, place, upto + 1)) <= _WIDTH:
            upto += 1
        lines += [*([""] if lines else []), *aligned(_columns(rows, place, upto))]
        place = upto
    return lines


def _width(rows: list[list[str]]) -> int:
    return max(map(len, aligned(rows)))


def _columns(rows: list[list[str]], first: int, last: int) -> list[list[str]]:
    return [[*row[:2], *row[first:last]] for row in rows]


def _trade_offs(answer: Variants) -> list[str]:
    """Name the variants that improve one figure and worsen another, by more than noise."""
    from airpath.runs.describe import figure_name

    lines = []
    for index in range(1, len(answer["variants"])):
        sides: dict[bool, list[str]] = {True: [], False: []}
        for row in answer["rows"]:
            cell = row["cells"][index]
            if cell is None or cell["change"] is None:
                continue
            if row["metric"] == "retransmitted_share":
                # What they cost shows in what gets through.
                continue
            low, high = cell["change_ci95"] or (cell["change"], cell["change"])
            if low * high > 0:
                name = f"{figure_name(row['metric'])} of {row['flow']}"
                sides[(low > 0) == row["more_is_better"]].append(name)
        if sides[True] and sides[False]:
            lines.append(
                f"({index}) is a trade-off: better {', '.join(sides[True])}; worse "
                f"{', '.join(sides[False])}."
            )
    return lines


def _without_effect(answer: Variants, tried: Tried) -> list[str]:
    """Name the variants that are, or have the figures of, the unchanged scenario."""
    same_as_base = [
        index
        for index, variant in enumerate(tried.variants, 1)
        if variant.sha256 == tried.base.sha256
    ]

    def values(index: int) -> list[list[float | None] | None]:
        cells = (row["cells"][index] for row in answer["rows"])
        return [None if cell is None else cell["values"] for cell in cells]

    count = len(answer["variants"])
    lines = [
        f"({index}) is the same as the base, which already has that value."
        for index in same_as_base
    ]
    same = [
        index
        for index in range(1, count)
        if index not in same_as_base and values(index) == values(0)
    ]
    if not same:
        return lines
    text = (
        f"{', '.join(f'({index})' for index in same)} made no difference: every figure is the same "
        "with each seed. Was the key ever used?"
    )
    settings = (one for index in same for one in answer["variants"][index])
    if any(_of_congestion_control(setting) for setting in settings):
        text += (
            " A run without losses, or one that a window or the application limits, does not "
            "depend on the congestion control."
        )
    return [*lines, text]


def _of_congestion_control(setting: str) -> bool:
    """Whether it sets ``congestion`` or a parameter of one, of a flow or a profile."""
    key = setting.partition("=")[0].strip().split(".")[2:]
    return bool(key) and key[0] in _CONGESTION_CONTROL


def _footer(answer: Variants) -> list[str]:
    from airpath.base.text import plural

    blocks, count = answer.get("blocks"), len(answer["seeds"])
    better = "*: better than every other by more than noise."
    cells = [cell for row in answer["rows"] for cell in row["cells"] if cell]
    if blocks is None and not any(cell["ci95"] for cell in cells):
        return (
            ["One seed: the changes have no interval. Use more --seeds for one."]
            if count == 1
            else [
                f"Nothing in this scenario is random: all {count} seeds give the same run, so the",
                "changes have no interval. To see how sensitive the result is to timing, start a",
                "flow slightly later: --set flow.0.start_s=0.05.",
            ]
        )
    if blocks is None:
        return [
            f"Means over {plural(count, 'seed')}, each with its change and the change's 95 % "
            f"confidence interval. {better}"
        ]
    lines = [
        f"Means over {plural(count, 'emulated block')}, each with its change and the change's "
        f"95 % confidence interval ({blocks['interval']}). {better}"
    ]
    if late := blocks["invalid"]:
        lines.append(
            f"{plural(len(late), 'attempt')} at a block did not count because the host "
            "delayed packets too long."
        )
    if count < blocks["wanted"]:
        lines.append(f"{blocks['wanted'] - count} of {blocks['wanted']} blocks never counted.")
    return lines
