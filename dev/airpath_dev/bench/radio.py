"""Speed over a cell: the radio itself, beside ns-3's LTE, and with many UEs.

The smallest CPU time of several runs counts, because other load can only add to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from airpath_dev.harness import table

from .common import LOGGING, Builds, Results, Row, measure, peer_program, repeat

SECONDS = 10

NR_CASES = {
    "plain TCP": (),
    "as linux-6.18": ("--profile", "linux-6.18"),
}
NR_600 = ("radio.channel.sinr_db=17.5", "radio.cell.prbs_down=260")
"""Settings of a cell that carries 600 Mb/s, with 8 % of the blocks retransmitted."""
AIM_NS, BOUND = 300, 50
"""The aim in ns per segment, and the smallest number of simulated seconds per CPU second."""

UES = (1, 10, 100, 1000)
PRESETS = ("nr-n78", "lte-20")

BUFFER = 500_000
"""Size of the RLC buffer in airpath and ns-3: two bandwidth-delay products."""
PRBS = 100
SISO = (
    "radio.cell.layers_down=1",
    "radio.cell.antenna_ports=1",
    f"radio.rlc.buffer_bytes={BUFFER}",
)
"""One antenna, as in ns-3's LTE. Both then carry 75,376 bits per subframe."""


@dataclass(frozen=True)
class LteCase:
    """Downloads over 20 MHz of LTE, one for each active UE."""

    rlc: str
    ues: int
    active: int

    def __str__(self) -> str:
        if self.active == 0:
            return f"{self.ues} idle UEs"
        ues = "1 UE" if self.ues == 1 else f"{self.ues} UEs"
        return f"RLC {self.rlc.upper()}, {ues}"


LTE_CASES = (
    *(LteCase(rlc, ues, ues) for rlc in ("am", "um") for ues in (1, 10)),
    LteCase("am", 10, 0),
)


def run(builds: Builds, runs: int, with_peer: bool, results: Results) -> None:
    airpath = Airpath(builds.program("radio"))
    peer = peer_program("ns3_lte") if with_peer else None

    def nr(name: str) -> Row:
        call = partial(airpath.run, "nr-n78", 1, 1, NR_600, NR_CASES[name])
        return {"case": name, "airpath": repeat(f"NR, {name}", runs, call)}

    def cell(preset: str) -> Row:
        rows = [run_ues(preset, ues, airpath, runs) for ues in UES]
        return {"preset": preset, "ues": rows}

    results.step("radio_nr", lambda: results.each("radio, NR", NR_CASES, nr), render_nr)
    if peer:
        lte = partial(run_lte, airpath=airpath, peer=peer, runs=runs)
        results.step("radio_lte", lambda: results.each("radio, LTE", LTE_CASES, lte), render_lte)
    results.step("radio_ues", lambda: results.each("radio, UEs", PRESETS, cell), render_ues)


def run_lte(case: LteCase, airpath: Airpath, peer: Path, runs: int) -> Row:
    """Run ns-3 between two halves of airpath's runs, with as many PRBs as ns-3's goodput needs."""
    call = partial(run_peer, peer, case)
    theirs = [call()]
    prbs = airpath.prbs_for(case, theirs[0]["goodput_mbps"])
    sets = (*SISO, f"radio.cell.prbs_down={prbs}", f'radio.rlc.mode="{case.rlc}"')
    ours = partial(airpath.run, "lte-20", case.ues, case.active, sets)
    measured = repeat(f"{case}: airpath", runs, ours)
    theirs += repeat(f"{case}: ns-3", 2, call)
    measured += repeat(f"{case}: airpath", runs, ours)
    return {"case": str(case), "prbs": prbs, "airpath": measured, "ns3": theirs}


def run_ues(preset: str, ues: int, airpath: Airpath, runs: int) -> Row:
    busy = partial(airpath.run, preset, ues, ues, ())
    idle = partial(airpath.run, preset, ues, 1, ())
    return {
        "preset": preset,
        "ues": ues,
        "all": repeat(f"{preset}, {ues} active", min(runs, 3), busy),
        "one": repeat(f"{preset}, 1 of {ues} active", runs, idle),
    }


def run_peer(program: Path, case: LteCase) -> Row:
    return measure(
        [
            str(program),
            f"--rlc={case.rlc}",
            f"--ues={case.ues}",
            f"--active={case.active}",
            f"--buffer={BUFFER}",
            f"--seconds={SECONDS}",
        ]
    )


@dataclass(frozen=True)
class Airpath:
    """The Rust bench."""

    program: Path

    def run(
        self,
        preset: str,
        ues: int,
        active: int,
        sets: Iterable[str],
        words: Iterable[str] = (),
    ) -> Row:
        command = [str(self.program), "--preset", preset, "--seconds", str(SECONDS)]
        command += ["--ues", str(ues), "--active", str(active), *words]
        return measure(command + [word for key in sets for word in ("--set", key)])

    def prbs_for(self, case: LteCase, goodput_mbps: float) -> int:
        """Return the number of PRBs with which airpath's goodput is nearest to ns-3's."""
        if case.active == 0:
            return PRBS
        mode = f'radio.rlc.mode="{case.rlc}"'

        def miss(prbs: int) -> float:
            sets = (*SISO, f"radio.cell.prbs_down={prbs}", mode)
            row = self.run("lte-20", case.ues, case.active, sets)
            return abs(float(row["goodput_mbps"]) - goodput_mbps)

        full = self.run("lte-20", case.ues, case.active, (*SISO, mode))
        guess = round(PRBS * goodput_mbps / full["goodput_mbps"])
        return min((prbs for prbs in range(guess - 2, guess + 3) if 0 < prbs <= PRBS), key=miss)


def least(rows: list[Row], key: str = "cpu_s") -> float:
    return float(min(row[key] for row in rows))


def render_nr(cases: list[Row]) -> list[str]:
    head = (
        "1 UE, NR n78, 100 MHz TDD", "goodput Mb/s", "HARQ retransmissions", "CPU s",
        f"sim. s / CPU s (bound {BOUND})", f"ns / segment (aim {AIM_NS})",
    )  # fmt: skip
    return [table(head, (nr_row(case["case"], case["airpath"]) for case in cases), padded=True)]


def render_lte(cases: list[Row]) -> list[str]:
    head = (
        "LTE, 20 MHz, 10 s", "ns-3 Mb/s", "airpath Mb/s (PRBs)", "ns-3 CPU s",
        "airpath CPU s", "ratio", "per segment", f"ratio / {LOGGING}",
    )  # fmt: skip
    return [table(head, (lte_row(case) for case in cases), padded=True)]


def render_ues(cells: list[Row]) -> list[str]:
    head = (
        "cell", "UEs", "all active: CPU ms / s", "times 1 UE", "ns / segment",
        "one active: CPU ms / s", "times 1 UE",
    )  # fmt: skip
    return [
        table(
            head,
            (ues_row(row, cell["ues"][0]) for cell in cells for row in cell["ues"]),
            padded=True,
        )
    ]


def nr_row(name: str, rows: list[Row]) -> tuple[str, ...]:
    cpu = least(rows)
    return (
        name,
        f"{rows[0]['goodput_mbps']:.0f}",
        f"{rows[0]['harq_retransmissions']:,}",
        f"{cpu:.3f}",
        f"{SECONDS / cpu:.0f}",
        f"{least(rows, 'ns_per_segment'):.0f}",
    )


def lte_row(row: Row) -> tuple[str, ...]:
    ours, theirs = row["airpath"], row["ns3"]
    ratio = least(theirs) / least(ours)
    if theirs[0]["delivered_segments"] == 0:
        goodput = ("", "", f"{least(theirs):.2f}", f"{least(ours):.4f}")
        return (row["case"], *goodput, f"{ratio:,.0f}", "", f"{ratio / LOGGING:,.0f}")
    per_segment = least(theirs, "ns_per_segment") / least(ours, "ns_per_segment")
    return (
        row["case"],
        f"{theirs[0]['goodput_mbps']:.1f}",
        f"{ours[0]['goodput_mbps']:.1f} ({row['prbs']})",
        f"{least(theirs):.2f}",
        f"{least(ours):.4f}",
        f"{ratio:.0f}",
        f"{per_segment:.0f}",
        f"{ratio / LOGGING:.0f}",
    )


def ues_row(row: Row, first: Row) -> tuple[str, ...]:
    steady = {side: least(row[side], "steady_cpu_per_s") for side in ("all", "one")}
    single = least(first["one"], "steady_cpu_per_s")
    return (
        row["preset"],
        f"{row['ues']:,}",
        f"{1e3 * steady['all']:.2f}",
        f"{steady['all'] / single:.2f}",
        f"{least(row['all'], 'ns_per_segment'):,.0f}",
        f"{1e3 * steady['one']:.2f}",
        f"{steady['one'] / single:.2f}",
    )
