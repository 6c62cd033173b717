"""What a scenario says of its cells and core that no counter says: band, power, addresses."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from airpath.base.json import Json
from airpath.base.toml import parse_toml

if TYPE_CHECKING:
    from airpath import _core

CHIP_RATES_MHZ = {"umts": 5.0, "evdo": 1.25}
"""Bandwidths that no key says: TS 25.101 5.4.1, 3GPP2 C.S0057."""


@dataclass(frozen=True)
class Cell:
    """A cell as it is configured; None: the scenario does not say it, the model does without."""

    id: str
    number: int
    """In the scenario's order, from 0."""
    access: str
    duplex: str | None
    bandwidth_mhz: float | None
    band: str | None
    """Operating band of the preset."""
    carrier_mhz: float | None
    power_dbm: float | None
    """Transmitted. None also where UEs have channels of different power."""

    def document(self) -> dict[str, object]:
        """For the page."""
        return asdict(self)


def cells(scenario: _core.Scenario) -> list[Cell]:
    """Return the cells of a scenario, its own first; none without a radio."""
    from airpath import _core

    radio = parse_toml(scenario.resolved_toml).get("radio")
    if radio is None:
        return []
    presets = dict(_core.radio_presets())
    own = [ue["channel"] for ue in radio["ue"]]
    every = [(radio, own), *((one, [one["channel"]]) for one in radio.get("neighbour", []))]
    return [
        _cell(number, one, channels, presets.get(one["preset"], ""))
        for number, (one, channels) in enumerate(every)
    ]


@dataclass(frozen=True)
class Outage:
    """A time in which a cell is out of service."""

    cell: str
    from_s: float
    until_s: float

    def holds(self, time_s: float) -> bool:
        """Whether the cell is out of service then."""
        return self.from_s <= time_s < self.until_s


def outages(scenario: _core.Scenario) -> list[Outage]:
    """Return the outages of a scenario's cells, one for each cell."""
    radio = parse_toml(scenario.resolved_toml).get("radio", {})
    names = [cell.id for cell in cells(scenario)]
    return [
        Outage(name, one["at_s"], one["at_s"] + one["duration_s"])
        for one in radio.get("outage", [])
        if one["enabled"]
        for name in names
        if one.get("cell", name) == name
    ]


@dataclass(frozen=True)
class Core:
    """A core network as it is configured."""

    access: str
    """``lte`` or ``nr``: which names its procedures have."""
    apn: str
    pool: str
    addresses: int
    """In the pool, for UEs."""

    def document(self) -> dict[str, object]:
        """For the page."""
        return asdict(self)


def core(scenario: _core.Scenario) -> Core | None:
    """Return the core of a scenario, if it has one."""
    found = scenario.core
    if found is None:
        return None
    # Neither the network's own address, nor broadcast, nor the gateway's.
    hosts = ipaddress.IPv4Network(found["pool"]).num_addresses - 3
    return Core(found["access"], found["apn"], found["pool"], max(0, hosts))


def _cell(number: int, radio: Json, channels: list[Json], description: str) -> Cell:
    cell = radio["cell"]
    band = re.search(r"\bn\d+\b", description)
    return Cell(
        id=radio["name"],
        number=number,
        access=cell["access"],
        duplex=cell.get("duplex"),
        bandwidth_mhz=cell.get("bandwidth_mhz", CHIP_RATES_MHZ.get(cell["access"])),
        band=band[0] if band else None,
        carrier_mhz=_common(channels, "carrier_mhz"),
        power_dbm=_common(channels, "transmit_dbm"),
    )


def _common(channels: list[Json], key: str) -> float | None:
    """What all channels have, where they are worked out from a path loss."""
    values = {channel.get(key) for channel in channels}
    return values.pop() if len(values) == 1 else None
