"""Tries on a study's rows what its source asks for: buffers sized by the first hop's RTT.

The rule is `buffer.from_first_hop`. The source leaves open what it is applied to, so that the page
has a column for each reading, and says for each row what it gains in rate and costs in delay. The
table goes to docs/measured/study-first-hop.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from airpath import scenario as scenarios
from airpath.base.text import digits
from airpath.base.toml import parse_toml
from airpath.runs.summary import number
from airpath.study.bench import Bench, Request
from airpath.study.definition import Figure, Study, load_study
from airpath_dev.harness import MEASURED, heading, table
from airpath_dev.harness import write as write_page
from airpath_dev.search import short

STUDY = "3g-latency"

MODEM_MBPS = 3.6
"""An HSDPA modem of category 5 or 6 (TS 25.306 table 5.1a), as its driver reports it."""

ETHERNET_MBPS = 100.0
"""Fast Ethernet, which the driver of a host behind a router reports."""


class Reading(NamedTuple):
    """What the source may mean."""

    label: str
    whose: str
    """Value of ``buffer.from_first_hop``."""
    rate_mbps: float | None
    """What the operating system takes for the hop's rate; None: what the link has."""
    of_round_trip: float = 1.0
    """Fraction of the round trip that is the first hop's."""


READINGS = (
    Reading("both ends, the link's rate", "both", None),
    Reading("both, a modem's 3.6 Mb/s", "both", MODEM_MBPS),
    Reading("both, Fast Ethernet's 100 Mb/s", "both", ETHERNET_MBPS),
    Reading("the UE's end alone, 3.6 Mb/s", "ue", MODEM_MBPS),
    Reading("both, the link's rate, half of the RTT beyond the hop", "both", None, 0.5),
)


class Outcome(NamedTuple):
    """A run of a row."""

    rate: float
    """In the row's unit."""
    late_ms: float
    """95th percentile of the RTT that TCP saw."""

    def told(self) -> str:
        """Rate and RTT, as the page has them."""
        return f"{digits(self.rate)} / {digits(self.late_ms)}"


def main(
    workers: Annotated[int, typer.Option(min=1, help="Runs at the same time.")] = 2,
    out: Annotated[Path, typer.Option(help="The page.")] = MEASURED / "study-first-hop.md",
) -> None:
    """Try buffers that follow the first hop's RTT on the rows of 3g-latency."""
    study = load_study(STUDY)
    write_page(out, markdown(study, tried(study, workers)))


class Hop(NamedTuple):
    """The first hop of a row: all of its path."""

    round_trip_ms: float
    rate_mbps: float


def hop(study: Study, figure: Figure) -> Hop:
    """Return the RTT and the downlink's rate of a row's path."""
    scenario = scenarios.load(study.directory / figure.scenario, figure.sets)
    path = parse_toml(scenario.resolved_toml)["path"]
    stages = [*path["down"], *path["up"]]
    delays = [each["delay_ms"] for each in stages if each["stage"] == "delay"]
    rates = [each["rate_mbps"] for each in path["down"] if each["stage"] == "link"]
    return Hop(sum(delays), min(rates))


def sets(study: Study, figure: Figure, reading: Reading | None) -> tuple[str, ...]:
    """Return a row's settings, with the rule."""
    if reading is None:
        return figure.sets
    own = hop(study, figure)
    return (
        *figure.sets,
        f"flow.0.buffer.from_first_hop={reading.whose}",
        f"flow.0.buffer.first_hop_rtt_ms={own.round_trip_ms * reading.of_round_trip:g}",
        f"flow.0.buffer.first_hop_mbps={reading.rate_mbps or own.rate_mbps:g}",
    )


def tried(study: Study, workers: int) -> dict[Figure, list[Outcome]]:
    """Run every row without the rule, and with each reading of it."""
    bench = Bench(study, (), study.repeat, workers)

    def requests(figure: Figure, reading: Reading | None) -> list[Request]:
        metrics = (*figure.metrics, "flow.0.rtt_ms.p95")
        return [Request(figure.scenario, sets(study, figure, reading), each) for each in metrics]

    def outcome(figure: Figure, reading: Reading | None) -> Outcome:
        (rate, late) = (
            number(bench.values(each)[0], each.metric) for each in requests(figure, reading)
        )
        return Outcome(rate * figure.scale, late)

    plans = [(figure, reading) for figure in study.figures for reading in (None, *READINGS)]
    bench.obtain(request for plan in plans for request in requests(*plan))
    return {
        figure: [outcome(figure, reading) for reading in (None, *READINGS)]
        for figure in study.figures
    }


def markdown(study: Study, found: dict[Figure, list[Outcome]]) -> list[str]:
    """Return the page."""
    return [
        heading("Buffers that follow the first hop's RTT", "study-first-hop"),
        ABOUT,
        table(
            ["row", "published", "without", *(each.label for each in READINGS)],
            [
                [
                    short(study, figure),
                    figure.published_text(),
                    *(each.told() for each in outcomes),
                ]
                for figure, outcomes in found.items()
            ],
        ),
        "",
        *(_judged(reading, index, found) for index, reading in enumerate(READINGS, 1)),
    ]


def _judged(reading: Reading, index: int, found: dict[Figure, list[Outcome]]) -> str:
    """What a reading gains and costs, over all rows."""
    pairs = [(outcomes[0], outcomes[index]) for outcomes in found.values()]
    gains = [after.rate / before.rate - 1 for before, after in pairs]
    costs = [after.late_ms - before.late_ms for before, after in pairs]
    better = sum(gain > NOTHING for gain in gains)
    worse = sum(gain < -NOTHING for gain in gains)
    if not (better or worse or any(costs)):
        return f"- **{reading.label}**: nothing changes in any of {len(pairs)} rows."
    return (
        f"- **{reading.label}**: the rate rises in {better} of {len(pairs)} rows and falls in "
        f"{worse}, by {100 * min(gains):+.0f} to {100 * max(gains):+.0f} %; the RTT (p95) changes "
        f"by {min(costs):+.0f} to {max(costs):+.0f} ms."
    )


NOTHING = 0.01
"""A smaller relative change of the rate is none: the rows are published to two or three digits."""

ABOUT = """\
The source of [3g-latency](../guides/studies.md#3g-latency) concludes that operating systems should
size buffers by the RTT to the first hop. Taken by itself this cannot be built. It leaves open:

- **The rate.** A buffer is a rate times a time, and an RTT is a time. The operating system may take
  the rate that the modem or the network card reports, which is not the rate that the path has.
- **Whose buffers.** The two hosts of this lab have Dummynet in common. A server on the Internet has
  a first hop of its own, with an RTT of less than 1 ms.
- **The rest of the path.** The first hop is all of the path here, and rarely elsewhere.
- **When it is measured**, and what happens when the RTT changes or a queue adds to it.

The rule was built as `buffer.from_first_hop`: buffers hold at least `buffer.first_hop_mbps` times
`buffer.first_hop_rtt_ms`, measured before the flow. Columns are readings of what is left open.
Without the rule, each row has the window that its name says, and the file transfer one of 256 KiB.
Read `229 / 686` as: the rate is 229 in the row's unit, and the 95th percentile of the RTT that TCP
saw is 686 ms.
"""
