"""The recording of one UE's radio, or of a path without a radio.

The table ``radio_log`` says when each packet entered and left the radio, and at which SINR each
block was sent. Without a radio the table ``links`` says what each link could carry.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from airpath.base.toml import parse_toml
from airpath.errors import InputError
from airpath.runs.results import Run
from airpath.runs.tables import NS_PER_S

if TYPE_CHECKING:
    import polars as pl

DIRECTIONS = ("down", "up")
SERVER_MS = {"upf": 0.05, "campus": 0.2, "edge": 1.0, "region": 6.0, "ocean": 40.0}
"""One-way delay of each ``place`` of the stage ``server``."""
PATH = "path"
"""Name that stands for the UE in a run without a radio."""

_NS_PER_MS = NS_PER_S // 1000
Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Passed:
    """Packets that passed the radio in one direction, in the order in which they left."""

    entered_ms: Values
    left_ms: Values
    bytes: npt.NDArray[np.int64]

    @property
    def transit_ms(self) -> Values:
        """Time that each packet spent in the radio, in milliseconds."""
        return self.left_ms - self.entered_ms


class Recorded:
    """The recording of one UE with one seed."""

    def __init__(self, run: Run, ue: str | None = None, seed: int | None = None) -> None:
        """Find a UE, by default the only one. Raises ``InputError`` if there is no such record."""
        self.run = run
        self.seed = run.seeds[0] if seed is None else seed
        if self.seed not in run.seeds:
            seeds = ", ".join(map(str, run.seeds))
            raise InputError(f"the run has no seed {self.seed}; its seeds: {seeds}")
        self.scenario: dict[str, Any] = parse_toml(run.scenario_toml)
        self.has_radio = "radio" in self.scenario
        self.ue = self._find(ue)
        self.duration_s = self._duration_s()

    @staticmethod
    def first_ue(run: Run) -> str | None:
        """Return the name of the first UE; None without a radio."""
        ues = parse_toml(run.scenario_toml).get("radio", {}).get("ue", [])
        return next((f"{ue['name']}-0" if ue.get("count") else ue["name"] for ue in ues), None)

    def _find(self, ue: str | None) -> str:
        names = self.ues
        if ue is None:
            if len(names) > 1:
                raise InputError(f"the run has several UEs: --ue is one of {', '.join(names)}")
            return names[0]
        if ue not in names:
            raise InputError(f"the run has no UE {ue!r}; it has {', '.join(names)}")
        return ue

    def _duration_s(self) -> float:
        """Return how long the run lasted; a COMMAND or a gateway has its own end."""
        head = self.run.summary["run"]
        if len(self.run.seeds) == 1:
            return head["duration_s"]
        if self.run.directory is not None and "invalid" in head:
            one = Run.open(self.run.directory / f"seed-{self.seed}")
            return one.summary["run"]["duration_s"]
        return float(self.scenario["run"]["duration_s"])

    @property
    def ues(self) -> list[str]:
        """Names of the UEs, as in the tables."""
        return [name for _, name in self.named_ues()] if self.has_radio else [PATH]

    def named_ues(self) -> list[tuple[dict[str, Any], str]]:
        """Return the table of each UE, and its name; a group has several."""
        named = []
        for ue in self.scenario["radio"]["ue"]:
            count = ue.get("count")
            names = [f"{ue['name']}-{one}" for one in range(count)] if count else [ue["name"]]
            named += [(ue, name) for name in names]
        return named

    def radio_buffer(self, direction: str) -> dict[str, int]:
        """Return the limits of the radio's buffer, with the names of a link's keys."""
        if not self.has_radio:
            return {}
        ue = next(ue for ue, name in self.named_ues() if name == self.ue)
        rlc = ue.get("rlc" if direction == "down" else "rlc_up", {})
        limits = {key: rlc.get(f"buffer_{key}") for key in ("packets", "bytes")}
        # Without a limit, the value is "unlimited".
        return {f"queue_{key}": size for key, size in limits.items() if isinstance(size, int)}

    def stages(self, direction: str) -> list[dict[str, Any]]:
        """Return the stages of the path that are enabled."""
        stages = self.scenario.get("path", {}).get(direction, [])
        return [stage for stage in stages if stage.get("enabled", True)]

    def path_delay_ms(self, direction: str) -> float:
        """Sum of the stages ``delay`` and ``server``, without jitter."""
        return sum(
            SERVER_MS[stage["place"]]
            if stage["stage"] == "server"
            else float(stage.get("delay_ms", 0))
            for stage in self.stages(direction)
        )

    @cached_property
    def _log(self) -> pl.DataFrame:
        import polars as pl

        if not self.run.has_table("radio_log"):
            raise InputError(
                f"run {self.run.id} did not record its radio; run it with --record "
                "(run.radio_log = true)"
            )
        return self.run.radio_log.filter(
            (pl.col("seed") == self.seed) & (pl.col("ue").cast(pl.String) == self.ue)
        )

    def passed(self, direction: str) -> Passed:
        """Return the packets that left the radio."""
        import polars as pl

        packets = self._log.filter(pl.col("direction") == direction)
        if "packet_leaves" not in packets["event"]:
            raise InputError(f"no packet of {self.ue} left the radio in direction {direction}")
        sides = []
        for event in ("packet_enters", "packet_leaves"):
            side = packets.filter(pl.col("event") == event).select("time_ns", "flow", "bytes")
            # Packets of one flow and size leave in the order in which they entered.
            sides.append(
                side.with_columns(pl.int_range(pl.len()).over("flow", "bytes").alias("number"))
            )
        both = sides[1].join(
            sides[0], on=["flow", "bytes", "number"], how="inner", suffix="_entered",
            maintain_order="left",
        )  # fmt: skip
        return Passed(
            both["time_ns_entered"].to_numpy() / _NS_PER_MS,
            both["time_ns"].to_numpy() / _NS_PER_MS,
            both["bytes"].cast(pl.Int64).to_numpy(),
        )

    def base_delay_ms(self, direction: str) -> float:
        """Return the shortest time that a packet spends in the radio; 0 without a radio.

        The first uplink packets wait for a grant, and later ones in a queue. In the uplink the time
        therefore counts from the beginning of the block that completed the first packet.
        """
        if not self.has_radio:
            return 0.0
        passed = self.passed(direction)
        shortest = float(passed.transit_ms.min())
        if direction == "down":
            return shortest
        return min(shortest, float(passed.left_ms[0]) - self._completed_ms(int(passed.bytes[0])))

    def _completed_ms(self, size: int) -> float:
        """Return when the uplink block began with which ``size`` bytes had been sent."""
        import polars as pl

        blocks = self._log.filter(
            (pl.col("event") == "block") & (pl.col("direction") == "up") & pl.col("received")
        )
        enough = blocks.filter(pl.col("used_bytes").cum_sum() >= size)
        # Without such a block, the log does not have the blocks in which the packet was sent.
        return float(enough["time_ns"][0]) / _NS_PER_MS if len(enough) else 0.0

    def sinr(self, direction: str) -> tuple[Values, Values]:
        """Return the times in seconds at which blocks were sent, and the SINR in dB of each."""
        import polars as pl

        blocks = self._log.filter(
            (pl.col("event") == "block")
            & (pl.col("direction") == direction)
            & pl.col("sinr_db").is_not_null()
        )
        return blocks["time_ns"].to_numpy() / NS_PER_S, blocks["sinr_db"].to_numpy()

    def links(self, direction: str) -> dict[str, pl.DataFrame]:
        """Return the rows of ``links`` of this UE's direction, by link."""
        import polars as pl

        table = self.run.links.filter(pl.col("seed") == self.seed)
        own = f"radio.{self.ue}.{direction}"
        names = [
            name
            for name in table["link"].cast(pl.String).unique(maintain_order=True)
            if name == own or name.startswith(f"{direction}.")
        ]
        return {name: table.filter(pl.col("link").cast(pl.String) == name) for name in names}

    def idle_share(self, direction: str) -> float:
        """Return the share of intervals at whose end nothing waited at the slowest link."""
        slowest = self.slowest(direction)
        if slowest is None:
            return 0.0
        return 1 - np.count_nonzero(slowest["queue_packets"].to_numpy()) / max(1, len(slowest))

    def slowest(self, direction: str) -> pl.DataFrame | None:
        """Return the rows of the link with the least capacity; None without a link."""
        links = self.links(direction)
        if self.has_radio:
            return links.get(f"radio.{self.ue}.{direction}")
        return links[self._slowest(links)] if links else None

    def slowest_stage(self, direction: str) -> int:
        """Return the place of the slowest link among the stages of the path."""
        # The name of a link is like `down.0.link`.
        return int(self._slowest(self.links(direction)).split(".")[1])

    @staticmethod
    def _slowest(links: dict[str, pl.DataFrame]) -> str:
        return min(links, key=lambda name: float(links[name]["capacity_mbps"].sum()))
