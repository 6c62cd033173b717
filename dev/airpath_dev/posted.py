"""Compares pings over posted base stations with what their operators measured.

Each case is an issue of srsRAN Project. Its configuration is what the issue says and, where it says
nothing, the default of the gNB. The time that modem, host and core take is not known: each case
adds the constant that fits the smallest round trip, and nothing else is chosen. Exit code 1: a
figure differs by more than 10 %.
"""

from __future__ import annotations

from dataclasses import dataclass

from airpath_dev.harness import FINE, WRONG, table

ALLOWED = 0.1


@dataclass(frozen=True)
class Case:
    """A posted base station, and pings over it."""

    name: str
    about: str
    cell: str
    elsewhere_ms: float
    """Assumed: round trip outside the radio."""
    interval_ms: float
    start_ms: float
    count: int
    measured: dict[str, float]
    rtts: tuple[float, ...] = ()
    """The posted round trips in ms, if there are any."""


CASES = (
    Case(
        "srsRAN_Project#501",
        "a saw-tooth of pings every 0.1 s: the interval is 0.987 ms longer than 5 SR periods",
        # The issue gives no gNB file: these are the defaults. A special slot has no uplink.
        'bandwidth_mhz = 20\ntdd_pattern = "DDDDDDSUUU 8:6:0"\nk1_slots = 4\nk2_slots = 4',
        elsewhere_ms=9.4,
        # Read from the steps of the posted round trips.
        interval_ms=100.987,
        start_ms=4.75,
        count=18,
        measured={"p5": 19.3, "p50": 26.9, "p95": 34.7},
        rtts=(
            *(35.6, 34.7, 33.8, 32.9, 31.9, 30.9, 29.9, 28.9, 27.9),
            *(26.9, 25.8, 24.8, 23.8, 22.8, 21.8, 20.8, 34.4, 19.3),
        ),
    ),
    Case(
        "srsRAN_Project#603",
        "pings every 10 ms over 2 × 2 layers; least, mean and largest of the posted statistics",
        # From the posted log: SR in slot 9, DCI in slot 16, PUSCH in slot 18, of 576 bytes.
        'bandwidth_mhz = 100\ntdd_pattern = "DDDDDDDSUU 6:4:4"\nk1_slots = 4\nk2_slots = 2\n\n'
        "[radio.grants]\nrequest_grant_bytes = 576",
        elsewhere_ms=6.9,
        interval_ms=10.007,
        start_ms=0,
        count=3000,
        measured={"min": 9.922, "mean": 19.467, "max": 30.447},
    ),
)

SCENARIO = """
[run]
duration_s = {seconds}

[radio]
preset = "nr-n78"
host_delay_ms = {host_ms}

[radio.cell]
{cell}

# The default of the gNB.
[radio.sr]
period_ms = 20

[radio.link_adaptation]
fixed_bler = 0

[[flow]]
id = "ping"
kind = "ping"
interval_ms = {interval_ms}
start_s = {start_s}
count = {count}
"""


def main() -> int:
    """Compare pings over posted base stations with what was measured."""
    lines, wrong = [], False
    for case in CASES:
        rtts = simulated(case)
        for name, was in case.measured.items():
            is_ = figure(rtts, name)
            off = abs(is_ - was) > ALLOWED * was
            wrong |= off
            lines.append([case.name, name, f"{was:.1f}", f"{is_:.1f}", "*" * off])
    print(table(["issue", "", "measured, ms", "airpath, ms", "outside"], lines))
    for case in CASES:
        print(f"\n{case.name}: {case.about}")
        for was, is_ in zip(case.rtts, simulated(case), strict=False):
            print(f"  {was:5.1f} {is_:5.1f}")
    return WRONG if wrong else FINE


def figure(rtts: list[float], name: str) -> float:
    """Return one figure of these round trips: min, max, mean, or a quantile such as p5."""
    if name == "mean":
        return sum(rtts) / len(rtts)
    shares = {"min": 0.0, "max": 1.0}
    share = shares[name] if name in shares else int(name.removeprefix("p")) / 100
    return sorted(rtts)[min(int(share * len(rtts)), len(rtts) - 1)]


def simulated(case: Case) -> list[float]:
    """Return the round trips of the case's pings in ms."""
    import airpath
    from airpath import scenario

    text = SCENARIO.format(
        seconds=(case.start_ms + case.count * case.interval_ms) / 1000 + 1,
        host_ms=case.elsewhere_ms,
        cell=case.cell,
        interval_ms=case.interval_ms,
        start_s=case.start_ms / 1000,
        count=case.count,
    )
    pings = airpath.run(scenario.parse(text, case.name, "."), workers=1).pings
    rtts: list[float] = pings["rtt_ms"].to_list()
    return rtts
