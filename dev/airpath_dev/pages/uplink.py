"""Writes the tables of what an uplink packet waits for: idle pings, simulated and in closed form.

A UE pings a server once a second and does nothing else. The cases vary the SR period, proactive
grants, the carrier with its slot pattern, and the DRX cycle. The table goes to stdout as Markdown.
--write DOCS puts it into DOCS/concepts/uplink.md, between its markers, and the chart into
DOCS/concepts/img/uplink.svg.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import typer

from airpath_dev.harness import say, table

WORKERS = 2
PERIODS_MS = (1, 2, 5, 10, 20, 40, 80)
CYCLES_MS = (40, 80, 160, 320, 640)
# With this interval, the pings' phase within any of the periods covers the period evenly.
INTERVAL_MS = 1000.618034
QUANTILES = (0.05, 0.5, 0.95)
BEGIN, END = "<!-- uplink.py: begin -->", "<!-- uplink.py: end -->"

SCENARIO = """
[run]
duration_s = {seconds}
sample_interval_ms = 1000

[[path.down]]
stage = "delay"
delay_ms = {core_ms}

[[path.up]]
stage = "delay"
delay_ms = {core_ms}

[radio]
preset = "{preset}"

[radio.cell]
{cell}

[radio.channel]
sinr_db = 30

[radio.channel_up]
sinr_db = 30

[radio.sr]
period_ms = {period_ms}
offset_ms = {offset_ms}

[radio.grants]
{grants}

{drx}

[[flow]]
id = "ping"
kind = "ping"
start_s = 1
interval_ms = {interval_ms}
count = {pings}
"""

Row = dict[str, Any]
Spread = tuple[Fraction, Fraction, Fraction]
"""A uniform distribution of RTTs in ms: lower bound, upper bound, weight."""


def main(
    pings: Annotated[int, typer.Option(help="Of each case.")] = 2000,
    write: Annotated[
        Path | None, typer.Option(metavar="DOCS", help="Write the page and the chart.")
    ] = None,
) -> None:
    """Simulate idle pings over each cell and print them beside the closed form."""
    with ThreadPoolExecutor(WORKERS) as pool:
        rows = list(pool.map(lambda case: run(case, pings), cases()))
    text = markdown(rows)
    print(text)
    if write:
        write_page(write, rows, text)


@dataclass(frozen=True)
class Carrier:
    """Slots and processing times of a preset."""

    name: str
    preset: str
    pattern: str
    """One letter per slot: D, S, U, or F for FDD, which has both directions at once."""
    slot_ms: Fraction
    grant_delay: int
    """Least number of slots from grant to PUSCH: K_2 in NR (TS 38.214 6.1.2.1), k_PUSCH in LTE
    (TS 36.213 8.0)."""
    requests_in: str
    """Slots that can carry a scheduling request."""
    base_down_ms: Fraction
    base_up_ms: Fraction
    base_grant_ms: Fraction
    ue_down_ms: Fraction
    ue_up_ms: Fraction
    cell: str = ""
    data_in: str = "UF"
    """Slots that can carry PUSCH: an S slot where it has 4 symbols for it."""
    request_offset_ms: int = 4
    """Offset of the SR occasions, which for periods of 5 ms or more is a slot with uplink."""

    def start(self, slot: int) -> Fraction:
        return slot * self.slot_ms

    def at_or_after(self, time: Fraction) -> int:
        return math.ceil(time / self.slot_ms)

    def kind(self, slot: int) -> str:
        return self.pattern[slot % len(self.pattern)]

    def first(self, slot: int, kinds: str) -> int:
        """Return the first slot of one of these kinds, at or after `slot`."""
        while self.kind(slot) not in kinds:
            slot += 1
        return slot

    def granting(self, pusch: int) -> int:
        """Return the last slot with a PDCCH at least K_2 before the PUSCH."""
        slot = pusch - self.grant_delay
        while self.kind(slot) not in "DSF":
            slot -= 1
        return slot


HALF, ONE, LTE_UE = Fraction(1, 2), Fraction(1), Fraction(3, 2)
# Processing times. NR: 0.5 ms in the base station and one slot in the UE, in each direction.
# LTE: 1 ms down, 1.5 ms up and 3 ms to a grant in the base station; 1.5 ms down and 1 ms up in
# the UE.
NR_30 = (HALF, 1, "SUF", HALF, HALF, HALF, HALF, HALF)
NR_15 = (ONE, 1, "SUF", HALF, HALF, HALF, ONE, ONE)
LTE = (ONE, 4, "UF", ONE, LTE_UE, Fraction(3), LTE_UE, ONE)


def tdd(pattern: str, symbols: str, data_in: str = "UF") -> Carrier:
    cell = f'tdd_pattern = "{pattern} {symbols}"'
    return Carrier(f"NR {pattern}", "nr-n78", pattern, *NR_30, cell, data_in)


CARRIERS = (
    Carrier("NR FDD", "nr-fdd-20", "F", *NR_15),
    tdd("DDDSU", "10:2:2"),
    tdd("DDSUU", "10:2:2"),
    tdd("DDDDDDDSUU", "6:4:4", "SUF"),
    Carrier("LTE FDD", "lte-20", "F", *LTE),
    Carrier("LTE TDD 2", "lte-tdd-20", "DSUDD", *LTE, request_offset_ms=2),
)
SLEEPER = replace(CARRIERS[1], name="NR DDDSU, DRX", preset="nr-private-drx", cell="")


@dataclass(frozen=True)
class Drx:
    """Long-cycle DRX; the on-duration is at the start of the cycle."""

    cycle_ms: int
    inactivity_ms: int
    on_ms: int = 10


@dataclass(frozen=True)
class Case:
    """One run."""

    carrier: Carrier
    period_ms: int
    proactive_ms: Fraction | None = None
    drx: Drx | None = None
    core_ms: int = 0

    def scenario(self, pings: int) -> str:
        grants, drx = "", ""
        if self.proactive_ms:
            grants = f"proactive_period_ms = {float(self.proactive_ms)}"
        if self.drx:
            drx = (
                f"[radio.drx]\nlong_cycle_ms = {self.drx.cycle_ms}\n"
                f"inactivity_ms = {self.drx.inactivity_ms}\non_duration_ms = {self.drx.on_ms}\n"
            )
        return SCENARIO.format(
            # Long enough for the last reply to arrive.
            seconds=math.ceil(pings * INTERVAL_MS / 1000) + 3,
            core_ms=self.core_ms,
            preset=self.carrier.preset,
            cell=self.carrier.cell,
            period_ms=self.period_ms,
            offset_ms=self.carrier.request_offset_ms % self.period_ms,
            grants=grants,
            drx=drx,
            interval_ms=INTERVAL_MS,
            pings=pings,
        )


def cases() -> Iterator[Case]:
    for carrier in CARRIERS:
        pattern_ms = len(carrier.pattern) * carrier.slot_ms
        # One proactive grant per slot pattern; every 2 ms with FDD.
        proactive_ms = pattern_ms if len(carrier.pattern) > 1 else Fraction(2)
        for period_ms in PERIODS_MS:
            yield Case(carrier, period_ms)
            yield Case(carrier, period_ms, proactive_ms)
    # The RTT to the server is 80 ms, between the two inactivity timers.
    for inactivity_ms in (100, 10):
        for cycle_ms in CYCLES_MS:
            yield Case(SLEEPER, 10, drx=Drx(cycle_ms, inactivity_ms), core_ms=40)


def run(case: Case, pings: int) -> Row:
    import airpath
    from airpath import scenario

    text = case.scenario(pings)
    result = airpath.run(scenario.parse(text, case.carrier.preset, "."), workers=1)
    rtts = sorted(result.pings["rtt_ms"].drop_nulls().to_list())
    spreads = closed_form(case)
    weight = sum(spread[2] for spread in spreads)
    mean = sum((low + high) / 2 * share for low, high, share in spreads) / weight
    row: Row = {
        "carrier": case.carrier.name,
        "period_ms": case.period_ms,
        "proactive": case.proactive_ms is not None,
        "proactive_ms": case.proactive_ms and float(case.proactive_ms),
        "cycle_ms": case.drx and case.drx.cycle_ms,
        "inactivity_ms": case.drx and case.drx.inactivity_ms,
        "pings": pings,
        "lost": pings - len(rtts),
        "awake": result.summary["radio"][0]["awake"],
        "mean": sum(rtts) / len(rtts),
        "closed_mean": float(mean),
        "min": rtts[0],
        "max": rtts[-1],
        "closed_min": float(min(spread[0] for spread in spreads)),
        "closed_max": float(max(spread[1] for spread in spreads)),
    }
    for share in QUANTILES:
        name = f"p{share * 100:.0f}"
        row[name] = rtts[int(share * len(rtts))]
        row[f"closed_{name}"] = quantile(spreads, share)
    return row


def closed_form(case: Case) -> list[Spread]:
    """Return the RTT distribution of a ping whose time is uniformly distributed.

    A packet that arrives between two opportunities waits for the second, so that its wait is
    uniform over the time between them. The rest of the RTT is fixed. It depends on the place of
    the opportunity in the slot pattern and in the DRX cycle.
    """
    carrier = case.carrier
    pattern_ms = len(carrier.pattern) * carrier.slot_ms
    repeat = math.lcm(
        int(2 * pattern_ms),
        2 * case.period_ms,
        int(2 * (case.proactive_ms or 1)),
        2 * (case.drx.cycle_ms if case.drx else 1),
    )
    end = Fraction(repeat, 2)
    found = sorted(dict(proactive(case, end) if case.proactive_ms else requests(case, end)).items())
    return [
        (done - last, done - previous, last - previous)
        for (previous, _), (last, pusch) in pairwise(found)
        if 0 < last <= end
        for done in [reply(case, pusch)]
    ]


def requests(case: Case, end: Fraction) -> Iterator[tuple[Fraction, int]]:
    """Yield the SR occasions until after `end`, each with the PUSCH that it leads to."""
    carrier = case.carrier
    # Start a whole number of patterns before time 0, and go on beyond the end.
    before = 2 * len(carrier.pattern) * case.period_ms
    at = Fraction(carrier.request_offset_ms % case.period_ms - before)
    while at <= end + before:
        at += case.period_ms
        sent = math.floor(at / carrier.slot_ms)
        if carrier.kind(sent) not in carrier.requests_in:
            continue  # TS 38.213 9.2.4, TS 36.213 10.1.5: no occasion without uplink
        # The base station decodes the SR (TS 38.321 5.4.4) and schedules a grant.
        read = carrier.start(sent + 1) + carrier.base_grant_ms
        pusch = carrier.first(carrier.at_or_after(read) + carrier.grant_delay, carrier.data_in)
        while carrier.start(carrier.granting(pusch)) < read:
            pusch = carrier.first(pusch + 1, carrier.data_in)
        yield at, pusch


def proactive(case: Case, end: Fraction) -> Iterator[tuple[Fraction, int]]:
    """Yield, for each proactive grant, the last time for a packet to use it, and its PUSCH."""
    carrier, period = case.carrier, case.proactive_ms
    assert period is not None
    at = -3 * period
    while at <= end + period:
        at += period
        pusch = carrier.first(math.floor(at / carrier.slot_ms), carrier.data_in)
        yield carrier.start(pusch) - carrier.ue_up_ms, pusch


def reply(case: Case, pusch: int) -> Fraction:
    """Return the time at which the UE's radio delivers the reply to the ping in this PUSCH."""
    carrier = case.carrier
    server = carrier.start(pusch + 1) + carrier.base_up_ms + case.core_ms
    ready = server + case.core_ms + carrier.base_down_ms
    if case.drx:
        ready = awake(case.drx, ready, carrier.start(carrier.granting(pusch)))
    slot = carrier.first(carrier.at_or_after(ready), "DSF")
    return carrier.start(slot + 1) + carrier.ue_down_ms


def awake(drx: Drx, time: Fraction, granted: Fraction) -> Fraction:
    """Return the first time from `time` on at which the UE monitors PDCCH (TS 38.321 5.7)."""
    cycles = math.floor(time / drx.cycle_ms)
    on_duration = time < cycles * drx.cycle_ms + drx.on_ms
    if on_duration or time < granted + drx.inactivity_ms:
        return time
    return Fraction((cycles + 1) * drx.cycle_ms)


def quantile(spreads: list[Spread], share: float) -> float:
    """Return the value at which the mixture's distribution function reaches `share`."""
    total = sum(weight for _, _, weight in spreads)
    edges = sorted({edge for low, high, _ in spreads for edge in (low, high)})
    below = [
        sum(
            weight * min(max(edge - low, Fraction(0)) / (high - low), Fraction(1))
            for low, high, weight in spreads
        )
        / total
        for edge in edges
    ]
    for (low, before), (high, after) in pairwise(zip(edges, below, strict=True)):
        if after >= share > before:
            return float(low + (high - low) * (Fraction(share) - before) / (after - before))
    return float(edges[0])


def markdown(rows: list[Row]) -> str:
    """Return three tables of simulated values beside the closed form."""
    pings = [row for row in rows if not row["cycle_ms"]]
    head = ["carrier", *(f"SR {period} ms" for period in PERIODS_MS), "proactive"]
    text = []
    for figure, title in (("mean", "Mean RTT"), ("p95", "95th percentile of the RTT")):
        lines = []
        for carrier in CARRIERS:
            here = [row for row in pings if row["carrier"] == carrier.name]
            asked = [row for row in here if not row["proactive"]]
            unasked = [row for row in here if row["proactive"]]
            assert len({both(row, figure) for row in unasked}) == 1, "SR plays no part"
            lines.append([carrier.name, *(both(row, figure) for row in [*asked, unasked[0]])])
        text.append(f"{title} in ms, simulated / closed form:\n\n{table(head, lines)}")
    head, lines = ["DRX cycle", "drx-InactivityTimer", "awake", "mean", "p5", "p50", "p95"], []
    for row in rows:
        if row["cycle_ms"]:
            times = [f"{row['cycle_ms']} ms", f"{row['inactivity_ms']} ms", f"{row['awake']:.1%}"]
            lines.append(times + [both(row, figure) for figure in ("mean", "p5", "p50", "p95")])
    text.append(
        "With DRX and a server 40 ms away, RTT in ms, simulated / closed form:\n\n"
        + table(head, lines)
    )
    figures = ("mean", "min", "max", "p5", "p50", "p95")
    within = [
        max(abs(row[name] - row[f"closed_{name}"]) / scale(row) for name in figures) for row in rows
    ]
    text.append(
        f"{len(rows)} cases of {rows[0]['pings']} pings; "
        f"{sum(row['lost'] for row in rows)} lost. Mean, smallest, largest and these quantiles are "
        f"all within {max(within):.1%} of the closed form's range from smallest to largest."
    )
    return "\n\n".join(text)


def both(row: Row, figure: str) -> str:
    return f"{row[figure]:.2f} / {row[f'closed_{figure}']:.2f}"


def scale(row: Row) -> float:
    width: float = row["closed_max"] - row["closed_min"]
    return width


def write_page(docs: Path, rows: list[Row], text: str) -> None:
    import vl_convert

    page = docs / "concepts" / "uplink.md"
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}", encoding="utf-8")
    picture = docs / "concepts" / "img" / "uplink.svg"
    picture.parent.mkdir(exist_ok=True)
    svg = vl_convert.vegalite_to_svg(chart(rows).to_json())
    picture.write_text(svg + "\n", encoding="utf-8")
    say(f"written: {page}, {picture}")


def chart(rows: list[Row]) -> Any:
    """Return a chart with a panel over the SR period for each carrier, and one over the DRX cycle.
    Lines are quantiles of the closed form; bars and dots are simulated."""
    import altair as alt

    def panel(rows: list[Row], title: str, x: str, axis: str, kinds: dict[str, str]) -> Any:
        ticks = sorted({row[x] for row in rows})
        base = alt.Chart(alt.Data(values=rows)).encode(
            x=alt.X(
                f"{x}:Q",
                title=axis,
                scale=alt.Scale(type="log", domain=[ticks[0] * 0.85, ticks[-1] * 1.18]),
                axis=alt.Axis(values=ticks, format=","),
            ),
            color=alt.Color(
                "kind:N",
                title=None,
                scale=alt.Scale(domain=list(kinds), range=list(kinds.values())),
                legend=alt.Legend(orient="top", labelLimit=400),
            ),
        )
        top = 100 if x == "period_ms" else 1000
        low = 2 if x == "period_ms" else 70
        y = alt.Scale(type="log", domain=[low, top], nice=False)
        values = [value for value in (2, 5, 10, 20, 50, 100, 200, 500, 1000) if low <= value <= top]
        ticked = alt.Axis(values=values, format=",")

        def layer(mark: Any, figure: str) -> Any:
            return mark.encode(y=alt.Y(f"{figure}:Q", title="RTT (ms)", scale=y, axis=ticked))

        hairline = base.mark_line(strokeWidth=0.8, strokeDash=[3, 2])
        return alt.layer(
            layer(hairline, "closed_p5"),
            layer(base.mark_line(strokeWidth=1.4), "closed_p50"),
            layer(hairline, "closed_p95"),
            layer(base.mark_rule(strokeWidth=2.5, opacity=0.55), "p5").encode(y2="p95:Q"),
            layer(base.mark_point(filled=True, size=32, opacity=1), "p50"),
        ).properties(width=215, height=150, title=title)

    kinds = {"scheduling request": "#0068a8", "proactive grants": "#cc4c00"}
    carriers = []
    for carrier in CARRIERS:
        some = [
            {**row, "kind": list(kinds)[row["proactive"]]}
            for row in rows
            if row["carrier"] == carrier.name
        ]
        carriers.append(panel(some, carrier.name, "period_ms", "SR period (ms)", kinds))
    asleep = {"inactivity timer 10 ms": "#7a3db8", "inactivity timer 100 ms": "#3d8f3d"}
    some = [
        {**row, "kind": f"inactivity timer {row['inactivity_ms']} ms"}
        for row in rows
        if row["cycle_ms"]
    ]
    drx = panel(some, "NR DDDSU, DRX, server 40 ms away", "cycle_ms", "DRX cycle (ms)", asleep)
    grid = alt.vconcat(alt.hconcat(*carriers[:3]), alt.hconcat(*carriers[3:]))
    return (
        alt.vconcat(grid, drx)
        .resolve_scale(color="independent")
        .configure(background="white", view=alt.ViewConfig(stroke="#e4e8ec"))
        .configure_axis(gridColor="#e4e8ec", titleFontWeight="normal")
        .configure_title(fontSize=12)
    )
