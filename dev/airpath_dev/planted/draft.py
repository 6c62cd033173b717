"""A scenario in the making: tables of keys, and which way the data goes."""

from __future__ import annotations

import copy
import math
import random
from dataclasses import dataclass, field
from typing import Any, TypeVar

Table = dict[str, Any]
T = TypeVar("T")


class Pick(random.Random):
    """Draws."""

    def log(self, low: float, high: float) -> float:
        """Evenly by the logarithm."""
        return math.exp(self.uniform(math.log(low), math.log(high)))

    def chance(self, share: float) -> bool:
        """True with this probability."""
        return self.random() < share


@dataclass
class Draft:
    """Stages on the way of the data (``there``) and on the way back; the radio's tables by name."""

    seconds: float
    up: bool
    seed: int = 1
    there: list[Table] = field(default_factory=list)
    back: list[Table] = field(default_factory=list)
    radio: dict[str, Table] = field(default_factory=dict)
    neighbours: list[Table] = field(default_factory=list)
    handovers: list[Table] = field(default_factory=list)
    flows: list[Table] = field(default_factory=list)

    def copy(self) -> Draft:
        """One that can be changed without this one."""
        return copy.deepcopy(self)

    @property
    def transfers(self) -> list[Table]:
        """Flows of TCP."""
        return [one for one in self.flows if one["kind"] in ("bulk", "file")]

    @property
    def link(self) -> Table:
        """The bottleneck of a wire."""
        return next(one for one in self.there if one["stage"] == "link")

    @property
    def buffer(self) -> Table:
        """The sender's buffer of a radio."""
        return self.table("rlc_up" if self.up else "rlc")

    def table(self, name: str) -> Table:
        """A table of the radio; the empty name is ``[radio]`` itself."""
        return self.radio.setdefault(name, {})

    def text(self) -> str:
        """As TOML."""
        lines = ["[run]", f"duration_s = {self.seconds:.2f}", f"seed = {self.seed}"]
        ways = {"down": self.back, "up": self.there} if self.up else {}
        ways = ways or {"down": self.there, "up": self.back}
        for direction, stages in ways.items():
            for stage in stages:
                lines += [f"[[path.{direction}]]", *_keys(stage)]
        for name in sorted(self.radio):
            lines += [f"[radio{'.' if name else ''}{name}]", *_keys(self.radio[name])]
        for name, tables in (("neighbour", self.neighbours), ("handover", self.handovers)):
            for table in tables:
                lines += [f"[[radio.{name}]]", *_keys(table)]
        for flow in self.flows:
            lines += ["[[flow]]", *_keys(flow)]
            if self.up and "direction" not in flow:
                lines += _keys({"direction": "up"})
        return "\n".join(lines) + "\n"


def stage(kind: str, **keys: Any) -> Table:
    """A stage of a path."""
    return {"stage": kind, **keys}


def scaled(severity: float, low: float, high: float) -> float:
    """From ``low`` to ``high`` as severity rises, in equal ratios."""
    return math.exp(math.log(low) + severity * (math.log(high) - math.log(low)))


def _keys(table: Table) -> list[str]:
    return [f"{key} = {_value(value)}" for key, value in table.items()]


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        places = min(9, max(0, 3 - math.floor(math.log10(max(abs(value), 1e-9)))))
        return f"{value:.{places}f}"
    return str(value) if isinstance(value, int) else f'"{value}"'
