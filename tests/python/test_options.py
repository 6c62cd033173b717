"""Options that exclude each other are refused before anything runs, and the error names them."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

from airpath.drivers.options import MOST_SEEDS, EmulationOptions, SimulationOptions
from airpath.errors import InputError

HERE = Path("here")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"seed": -1}, "seed must be a whole number from 0"),
        ({"seed": 2**64 - 1, "repeat": 2}, "seed must be a whole number from 0"),
        ({"seed": 1.0}, r"seed must be a whole number, not 1\.0"),
        ({"repeat": True}, "repeat must be a whole number, not True"),
        ({"repeat": MOST_SEEDS + 1}, "repeat must be from 1"),
        ({"workers": 0}, "workers must be from 1"),
        ({"capture": True}, "capture needs out"),
        ({"out": HERE, "parent": HERE}, "out and parent"),
    ],
)
def test_a_simulation_that_cannot_be(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        SimulationOptions(**options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"seed": 2**64}, "seed must be a whole number from 0"),
        ({"command": "ping server"}, "command must be a list of strings"),
        ({"place": "server"}, "--at need a COMMAND"),
        ({"servers": ["iperf3 -s"], "flows": True}, "--server and --at need a COMMAND"),
        ({"command": ["true"], "progress": print}, "progress is for flows"),
        ({"bare": True, "capture": True}, "capture and parity need the model"),
        ({"bare": True, "parity": True}, "capture and parity need the model"),
    ],
)
def test_an_emulation_that_cannot_be(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        EmulationOptions(**options)


def test_what_can_be_is_kept_as_it_is() -> None:
    simulation = SimulationOptions(seed=3, repeat=2, parent=HERE, capture=True)
    assert (simulation.seed, simulation.repeat, simulation.out) == (3, 2, None)
    emulation = EmulationOptions(servers=["iperf3 -s"], flows=False)
    assert emulation.servers == ["iperf3 -s"]
    with pytest.raises(FrozenInstanceError):
        emulation.flows = True  # type: ignore[misc]
