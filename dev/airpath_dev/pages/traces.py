"""Runs CUBIC and Reno over recorded radio links: pairs of Mahimahi traces, several buffers.

FOLDER holds pairs NAME.down and NAME.up, plain or .gz. A download has its data on the .down trace
and its acknowledgements on the .up trace; an upload uses them the other way round. Traces that are
too short are repeated. The table goes to stdout as Markdown. --out also writes it to a file, with
traces.csv (every figure) and a chart for each pair.
"""

from __future__ import annotations

import csv
import io
import json
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

import airpath
from airpath import scenario
from airpath.errors import InputError
from airpath_dev.harness import say, table

CONTROLS = ("cubic", "reno")
DIRECTIONS = ("down", "up")
UNLIMITED = "unlimited"
WORKERS = 2
TICKS_MS = [10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000]
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]

# Each direction has a trace, then a delay. Only the queue in the direction of the data is limited.
SCENARIO = """
[run]
duration_s = {seconds}

[[path.down]]
stage = "trace"
file = {down}
{queue_down}

[[path.down]]
stage = "delay"
delay_ms = {delay_ms}

[[path.up]]
stage = "trace"
file = {up}
{queue_up}

[[path.up]]
stage = "delay"
delay_ms = {delay_ms}

[[flow]]
id = "bulk"
kind = "bulk"
direction = "{direction}"
congestion = "{congestion}"
profile = "{profile}"
"""

Row = dict[str, Any]


class Setting(NamedTuple):
    """Settings that all cases share."""

    folder: Path
    seconds: float
    delay_ms: float
    profile: str


def main(
    folder: Annotated[Path, typer.Argument(exists=True, file_okay=False)],
    out: Annotated[Path | None, typer.Option(help="Write traces.md, .csv and charts.")] = None,
    seconds: Annotated[float, typer.Option(help="Of each run.")] = 60,
    delay_ms: Annotated[float, typer.Option(help="Each way.")] = 20,
    profile: Annotated[str, typer.Option(help="Of both endpoints.")] = "linux-6.1",
    buffers: Annotated[str, typer.Option(help="Packets each.")] = f"50,200,1000,{UNLIMITED}",
) -> None:
    """Run CUBIC and Reno over the pairs NAME.down and NAME.up of FOLDER."""
    pairs = find_pairs(folder)
    if not pairs:
        raise InputError(f"no pair NAME.down, NAME.up in {folder}")
    cases = [
        Case(pair, direction, congestion, buffer)
        for pair, direction, buffer, congestion in product(
            pairs, DIRECTIONS, limits(buffers), CONTROLS
        )
    ]
    rows = run_all(cases, Setting(folder, seconds, delay_ms, profile))
    text = markdown(rows)
    print(text)
    if out:
        write(out, rows, text)


def limits(text: str) -> list[int | None]:
    words = text.split(",")
    if not all(word == UNLIMITED or (word.isdigit() and int(word) > 0) for word in words):
        raise InputError(f"buffers: packets, or {UNLIMITED}, separated by commas")
    return [None if word == UNLIMITED else int(word) for word in words]


@dataclass(frozen=True)
class Pair:
    """The two traces of one recording, downlink and uplink."""

    name: str
    down: Path
    up: Path


@dataclass(frozen=True)
class Case:
    """One run."""

    pair: Pair
    direction: str
    congestion: str
    buffer: int | None

    def scenario(self, setting: Setting) -> str:
        limit = "" if self.buffer is None else f"queue_packets = {self.buffer}"
        return SCENARIO.format(
            seconds=setting.seconds,
            delay_ms=setting.delay_ms,
            profile=setting.profile,
            down=toml_text(self.pair.down.name),
            up=toml_text(self.pair.up.name),
            queue_down=limit if self.direction == "down" else "",
            queue_up=limit if self.direction == "up" else "",
            direction=self.direction,
            congestion=self.congestion,
        )


def find_pairs(where: Path) -> list[Pair]:
    """Return every NAME that has both a .down and an .up trace, sorted by name."""
    found: dict[str, dict[str, Path]] = {}
    for path in sorted(where.iterdir()):
        plain = path.name.removesuffix(".gz")
        for direction in DIRECTIONS:
            if plain.endswith(f".{direction}"):
                found.setdefault(plain.removesuffix(f".{direction}"), {})[direction] = path
    return [
        Pair(name, both["down"], both["up"])
        for name, both in sorted(found.items())
        if len(both) == len(DIRECTIONS)
    ]


def run_all(cases: list[Case], setting: Setting) -> list[Row]:
    """Run every case, in parallel because the simulator releases the GIL; keep their order."""
    from rich.console import Console
    from rich.progress import track

    with ThreadPoolExecutor(WORKERS) as pool:
        rows = pool.map(lambda case: run(case, setting), cases)
        console = Console(stderr=True)
        return list(track(rows, "simulating", total=len(cases), console=console, transient=True))


def run(case: Case, setting: Setting) -> Row:
    text = case.scenario(setting)
    name = f"{case.pair.name}, {case.direction}"
    result = airpath.run(scenario.parse(text, name, str(setting.folder)), workers=1)
    summary: Any = result.summary
    (flow,) = summary["flows"]
    # Each direction has one link; the downlink's is listed first.
    link = summary["links"][DIRECTIONS.index(case.direction)]
    delay = link["queue_delay_ms"] or {}
    return {
        "trace": case.pair.name,
        "direction": case.direction,
        "congestion": case.congestion,
        "buffer_packets": case.buffer,
        "capacity_mbps": link["capacity_mbps"],
        "throughput_mbps": link["throughput_mbps"],
        "goodput_mbps": flow["goodput_mbps"],
        "utilisation": link["utilisation"],
        "queue_delay_ms_p50": delay.get("p50"),
        "queue_delay_ms_p95": delay.get("p95"),
        "rto_count": flow["rto_count"],
        "retransmitted_segments": flow["retransmitted_segments"],
        "dropped_packets": sum(link["dropped_packets"].values()),
        "receive_window_limited_s": flow["limited_s"]["receive_window"],
    }


def toml_text(text: str) -> str:
    return json.dumps(text)


def markdown(rows: list[Row]) -> str:
    """Return a table of CUBIC beside Reno, with a row for each trace, direction and buffer."""
    head = ["trace", "direction", "capacity Mb/s", "buffer"]
    for congestion in CONTROLS:
        head += [f"{congestion} Mb/s", "used", "queue p50 ms", "p95", "RTOs"]
    lines = []
    for index in range(0, len(rows), len(CONTROLS)):
        both = rows[index : index + len(CONTROLS)]
        first = both[0]
        line = [first["trace"], first["direction"], f"{first['capacity_mbps']:.2f}", size(first)]
        for row in both:
            line += [
                f"{row['throughput_mbps']:.2f}",
                f"{row['utilisation']:.0%}",
                whole(row["queue_delay_ms_p50"]),
                whole(row["queue_delay_ms_p95"]),
                str(row["rto_count"]),
            ]
        lines.append(line)
    return table(head, lines, padded=True)


def size(row: Row) -> str:
    return UNLIMITED if row["buffer_packets"] is None else str(row["buffer_packets"])


def whole(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def write(out: Path, rows: list[Row], text: str) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / "traces.md").write_text(text + "\n", encoding="utf-8")
    file = io.StringIO()
    writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    (out / "traces.csv").write_text(file.getvalue(), encoding="utf-8")
    names = list(dict.fromkeys(row["trace"] for row in rows))
    for name in names:
        some = [row for row in rows if row["trace"] == name]
        (out / f"{name}.png").write_bytes(png(chart(some)))
    (out / "all.png").write_bytes(png(chart(rows)))
    say(f"written: {out}")


def chart(rows: list[Row]) -> Any:
    """Return a chart of utilisation against queueing delay, with a panel for each trace and
    direction. A line joins the buffers of a congestion control; the top left is best."""
    import altair as alt

    points = [{**row, "buffer": size(row)} for row in rows if row["queue_delay_ms_p95"]]
    sizes = list(dict.fromkeys(point["buffer"] for point in points))
    order = {name: index for index, name in enumerate(sizes)}
    points = [{**point, "order": order[point["buffer"]]} for point in points]
    delays = [point["queue_delay_ms_p95"] for point in points]
    base = alt.Chart().encode(
        x=alt.X(
            "queue_delay_ms_p95:Q",
            title="queueing delay, p95 (ms), logarithmic",
            scale=alt.Scale(type="log", domain=[min(delays) * 0.8, max(delays) * 1.25], nice=False),
            axis=alt.Axis(format=",", values=TICKS_MS),
        ),
        y=alt.Y(
            "utilisation:Q",
            title="capacity used",
            scale=alt.Scale(zero=False, nice=True),
            axis=alt.Axis(format="%", tickCount=5),
        ),
        color=alt.Color(
            "congestion:N",
            title="congestion control",
            scale=alt.Scale(domain=list(CONTROLS), range=["#0068a8", "#cc4c00"]),
        ),
        order="order:Q",
    )
    shapes = base.mark_point(filled=True, size=60, opacity=0.9).encode(
        shape=alt.Shape(
            "buffer:N",
            title="buffer (packets)",
            sort=sizes,
            scale=alt.Scale(domain=sizes, range=SHAPES[: len(sizes)]),
        )
    )
    layers = alt.layer(base.mark_line(strokeWidth=1.5), shapes, data=alt.Data(values=points))
    return (
        layers.properties(width=290, height=130)
        .facet(
            row=alt.Row("trace:N", title=None, header=alt.Header(labelFontWeight="bold")),
            column=alt.Column("direction:N", title=None, header=alt.Header(labelFontWeight="bold")),
        )
        .configure(background="white", view=alt.ViewConfig(stroke="#e4e8ec"))
        .configure_axis(gridColor="#e4e8ec", titleFontWeight="normal")
        .configure_legend(titleFontWeight="normal")
    )


def png(figure: Any) -> bytes:
    """Return the chart as PNG, compressed again at a higher level than the renderer's."""
    import vl_convert

    quick: bytes = vl_convert.vegalite_to_png(figure.to_json(), scale=1.4)
    signature, place, kept, pixels = quick[:8], 8, [], b""
    while place < len(quick):
        # PNG (RFC 2083) 3.2: length, type, data, CRC.
        (length,) = struct.unpack(">I", quick[place : place + 4])
        chunk = quick[place : place + 12 + length]
        place += len(chunk)
        if chunk[4:8] == b"IDAT":
            pixels += chunk[8:-4]
        else:
            kept.append(chunk)
    data = b"IDAT" + zlib.compress(zlib.decompress(pixels), 9)
    size = struct.pack(">I", len(data) - 4)
    packed = size + data + struct.pack(">I", zlib.crc32(data))
    return signature + b"".join([*kept[:-1], packed, kept[-1]])
