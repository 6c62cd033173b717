"""Plants what breaks packets into emulated networks, and counts which cause findings name (root).

COUNT cases of each cause, and as many healthy variants of each: offload that works, a VPN with the
right MTU, gaps that HARQ or RLC AM fills. The kernel's TCP runs over each, and `airpath emulate`
explains the run. Judged cases are kept in ``--keep``, and the command resumes from there. Runs for
which the machine was too late are repeated. Exit code 1: fewer than 90 % of a cause are named
first, or more than 2 % of the healthy variants are blamed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from airpath.cli.console import progress_bar
from airpath.runs.summary import to_json
from airpath_dev import ROOT
from airpath_dev.harness import FINE, WRONG, Seed, need, say

from .bases import ALL, CELLULAR, WIRE, Known, base
from .draft import Draft, Pick, Table, scaled, stage
from .draw import Case, planted
from .plants import Edit, Plant, insert, ping

_AT_ONCE = 2
_ATTEMPTS = 3
_FIRST = 0.9
_BLAMED = 0.02


def _into_vpn(draft: Draft, **keys: object) -> None:
    draft.there.insert(0, stage("vpn", end="enter", **keys))
    draft.there.append(stage("vpn", end="leave"))


def _checksum(pick: Pick, _: float, __: Draft, ___: Known) -> Edit:
    return insert(pick, True, stage("offload", fault="checksum"))


def _joined(_: Pick, severity: float, __: Draft, ___: Known) -> Edit:
    joined = stage("offload", fault="joined", join_ms=scaled(severity, 0.01, 1.0))
    return lambda draft: draft.there.insert(0, joined)


def _device_mtu(pick: Pick, _: float, well: Draft, __: Known) -> Edit:
    _into_vpn(well, outer_ip=pick.choice(["ipv4", "ipv6"]), mtu_bytes=9000)
    bytes_ = pick.choice([1280, 1380, 1420, 1440])
    return lambda draft: draft.there[0].update(mtu_bytes=bytes_)


def _hop(pick: Pick, _: float, well: Draft, __: Known) -> Edit:
    _into_vpn(well)
    hop = stage("mtu", mtu_bytes=pick.randint(1500, 1559))
    return lambda draft: draft.there.insert(1, hop)


def _fragments(pick: Pick, severity: float, well: Draft, known: Known) -> Edit:
    control = pick.choice(["cubic", "reno"])
    for flow in well.transfers:
        flow["congestion"] = control
    share = min(0.03, scaled(severity, 0.3, 2.0) / max(6, known.bdp_bytes / 1448) ** 2)
    _into_vpn(well, outer_mtu_bytes=9000)
    well.there.insert(1, stage("loss", probability=share))
    bytes_ = pick.randint(576, 800)
    return lambda draft: draft.there[0].update(outer_mtu_bytes=bytes_)


def _small(pick: Pick, severity: float, well: Draft, known: Known) -> Edit:
    rate = known.rate_mbps * (0.6 + 0.3 * severity)
    well.flows = [{"kind": "udp", "rate_mbps": rate, "packet_bytes": pick.randint(80, 160)}]
    return _into_vpn


def _gap(pick: Pick, severity: float, well: Draft, _: Known) -> Edit:
    end = "_up" if well.up else ""
    if pick.chance(0.3):
        well.flows = [ping("up" if well.up else "down", 20)]
    adaptation: Table = {"outer_loop_step_db": 0, "fixed_bler": pick.log(0.0003, 0.003)}
    well.table(f"link_adaptation{end}").update(adaptation)
    well.table(f"harq{end}")["max_transmissions"] = 1
    well.table(f"rlc{end}").update(mode="um", t_reordering_ms=10)
    wait = round(scaled(severity, 60, 3000))
    return lambda draft: draft.table(f"rlc{end}").update(t_reordering_ms=wait)


PLANTS = (
    Plant("offload", ALL, 3, None, _checksum, "checksum"),
    Plant("offload", ALL, 3, None, _joined, "joined"),
    Plant("vpn", ALL, 3, None, _device_mtu, "its MTU"),
    Plant("vpn", ALL, 3, None, _hop, "a hop"),
    Plant("vpn", ALL, 1, None, _fragments, "fragments"),
    Plant("vpn", WIRE, 1, None, _small, "small packets"),
    Plant("pdcp-gap", CELLULAR, 2, None, _gap),
)


def _working_offload(pick: Pick, _: float, __: Draft, ___: Known) -> Edit:
    return insert(pick, True, stage("offload", fault="joined", mtu_bytes=65_535))


def _right_mtu(pick: Pick, _: float, __: Draft, ___: Known) -> Edit:
    outer_ip, mtu = pick.choice([("ipv6", 1420), ("ipv4", 1440)])

    def edit(draft: Draft) -> None:
        for flow in draft.transfers:
            flow["mss_bytes"] = mtu - 52
        _into_vpn(draft, outer_ip=outer_ip, mtu_bytes=mtu, outer_mtu_bytes=1500)

    return edit


def _filled(pick: Pick, _: float, well: Draft, __: Known) -> Edit:
    end = "_up" if well.up else ""
    adaptation: Table = {"fixed_bler": 0.1, "fixed_bler_retransmission": 0}
    mode = pick.choice(["am", "um"])

    def edit(draft: Draft) -> None:
        draft.table(f"link_adaptation{end}").update(adaptation)
        draft.table(f"rlc{end}").update(mode=mode, t_reordering_ms=1500)

    return edit


HEALTHY = (
    Plant("offload", ALL, 3, None, _working_offload, "works"),
    Plant("vpn", ALL, 3, None, _right_mtu, "right MTU"),
    Plant("pdcp-gap", CELLULAR, 2, None, _filled, "filled"),
)
CAUSES = tuple(dict.fromkeys(plant.cause for plant in PLANTS))


@dataclass(frozen=True)
class Outcome:
    """``named``: the causes in the order of the findings. ``because``: why nothing was tried."""

    name: str
    cause: str | None
    variant: str
    words: str
    named: tuple[str, ...]
    because: str | None

    @property
    def right(self) -> bool:
        """Whether the cause is named first, or a healthy variant is not blamed."""
        return self.named[:1] == (self.cause,) if self.cause else not self.named


def main(
    seed: Seed = 1,
    count: int = 10,
    keep: Path = ROOT / "target/planted-packets",
) -> int:
    """Plant what breaks packets, emulate, and count how often it is named first."""
    need(root=True)
    keep.mkdir(parents=True, exist_ok=True)
    wanted = [(cause, number, ill) for ill in (True, False) for cause in CAUSES
              for number in range(count)]  # fmt: skip
    found: list[Outcome] = []
    with ProcessPoolExecutor(_AT_ONCE) as pool, progress_bar("emulated") as shown:
        jobs = [pool.submit(outcome, seed, *one, keep) for one in wanted]
        for number, job in enumerate(jobs):
            try:
                found.append(job.result())
            except RuntimeError as failed:
                say(f"{' '.join(map(str, wanted[number]))} is not judged: {failed}")
            shown((number + 1) / len(jobs))
    return _tell(seed, found)


def outcome(seed: int, cause: str, number: int, ill: bool, place: Path) -> Outcome:
    """Draw, emulate, explain. A file of a case that was judged already is taken as it is."""
    name = f"{seed}-{cause}-{'' if ill else 'healthy-'}{number}"
    kept = place / f"{name}.outcome.json"
    if kept.exists():
        raw = json.loads(kept.read_text())
        return Outcome(**{**raw, "named": tuple(raw["named"])})
    pick = Pick(f"airpath packets {name}")
    plants = [plant for plant in (PLANTS if ill else HEALTHY) if plant.cause == cause]
    plant = plants[number % len(plants)]
    case = planted(pick, plant, name) if ill else _healthy(pick, plant, name)
    named, because = _explained(case, place)
    found = Outcome(name, case.cause, cause, case.words, named, because)
    partial = kept.with_suffix(".partial")
    partial.write_text(to_json(asdict(found)))
    partial.rename(kept)
    return found


def _healthy(pick: Pick, plant: Plant, name: str) -> Case:
    access = pick.choice(plant.into)
    draft, known = base(pick, access, plant.flows, plant.up)
    edit = plant.edit(pick, 0.5, draft, known)
    edit(draft)
    words = f"{plant.cause} ({plant.name}), {access} {'up' if draft.up else 'down'}"
    return Case(name, None, draft.text(), words, 0.0, draft.up)


def _explained(case: Case, place: Path) -> tuple[tuple[str, ...], str | None]:
    """The causes that the findings of an emulated run name; why nothing could be tried."""
    file, run = place / f"{case.name}.toml", place / f"{case.name}.run"
    file.write_text(case.text)
    for _ in range(_ATTEMPTS):
        shutil.rmtree(run, ignore_errors=True)
        done = subprocess.run(
            [
                *[sys.executable, "-m", "airpath", "emulate", str(file), "--flows", "--no-live"],
                *["--explain", "quick", "--out", str(run)],
            ],
            capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if not (run / "summary.json").exists():
            raise RuntimeError(f"case {case.name}: {done.stderr.strip()}")
        summary = json.loads((run / "summary.json").read_text())
        if summary["emulation"]["valid"]:
            break
    else:
        raise RuntimeError(f"case {case.name}: packets were late in {_ATTEMPTS} runs")
    shutil.rmtree(run)
    causes = [str(one["cause"]) for one in summary["findings"]]
    named = tuple(one for one in causes if not one.endswith("-capacity"))
    return named, (summary["explained"] or {}).get("because")


def _tell(seed: int, found: Sequence[Outcome]) -> int:
    """Print what was right and wrong; 1 if it is not enough."""
    print(f"emulated, seed {seed}: {len(found)} cases")
    enough = True
    for cause in CAUSES:
        ill = [one for one in found if one.cause == cause]
        right = sum(one.right for one in ill)
        print(f"  {cause:10} {right:3} of {len(ill):3} named first")
        enough &= right >= _FIRST * len(ill)
    healthy = [one for one in found if one.cause is None]
    blamed = sum(not one.right for one in healthy)
    print(f"  {blamed} of {len(healthy)} healthy variants are blamed")
    for one in found:
        if not one.right:
            said = ", ".join(one.named) or f"nothing is named: {one.because}"
            print(f"  {one.name} ({one.words}): {said}")
    return FINE if enough and blamed <= _BLAMED * len(healthy) else WRONG
