"""The referee: what keeps a run out of its table, and one row of it, which needs root."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import conftest
from airpath_dev import ROOT
from airpath_dev.referee import capture, machine, table
from airpath_dev.referee.rows import LIMITS, SCENARIO, matrix
from conftest import PATIENCE_S, Command
from emulated import needs

PATH = ("--only", "cubic", "--rate", "20", "--rtt", "20", "--buffer", "1", "--loss", "0")
ROW = (*PATH, "--flow", "bulk")
SEGMENT = 1000
ISN = 2**32 - 1500
"""So that sequence numbers wrap."""


class Log:
    """A capture of a few segments."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, ...]] = []

    def data(self, time_ms: float, segment: int, place: int) -> None:
        seq = (ISN + SEGMENT * segment) % 2**32
        self.rows.append((int(time_ms * 1e6), place, 1, seq, 0, SEGMENT))

    def ack(self, time_ms: float, segments: int, place: int) -> None:
        number = (ISN + SEGMENT * segments) % 2**32
        self.rows.append((int(time_ms * 1e6), place, 0, 0, number, 0))

    @property
    def packets(self) -> capture.Packets:
        return np.array(self.rows, dtype=capture.PACKET)


def test_a_sender_is_idle_while_all_is_acknowledged() -> None:
    log = Log()
    log.data(0, 0, capture.SERVER)
    log.data(1, 1, capture.SERVER)
    log.ack(10, 1, capture.SERVER)
    log.ack(40, 2, capture.SERVER)
    log.data(70, 2, capture.SERVER)
    log.data(100, 3, capture.SERVER)
    assert capture.idle(log.packets) == pytest.approx(0.3)


def test_a_syn_acknowledges_nothing() -> None:
    log = Log()
    log.rows.append((0, capture.SERVER, 0, 1, 0, 0))
    for segment in range(3):
        log.data(10 * segment + 1, segment, capture.SERVER)
    log.ack(40, 3, capture.SERVER)
    assert capture.idle(log.packets) == 0.0


@pytest.mark.parametrize(("silent", "share"), [(3, 0.0), (30, 0.5)])
def test_data_without_an_ack_are_held_up(silent: int, share: float) -> None:
    log = Log()
    for segment in range(30):
        log.data(segment, segment, capture.UE)
        log.ack(segment + 0.5, segment + 1, capture.UE)
    for segment in range(30, 60):
        log.data(segment, segment, capture.UE)
        if segment % silent == silent - 1:
            log.ack(segment + 0.5, segment + 1, capture.UE)
    assert capture.held_up(log.packets, 8) == pytest.approx(share)


def test_a_busy_machine_is_told_from_another_tcp() -> None:
    (row,) = (r for r in matrix() if r.name == "reno-20mbps-20ms-1bdp-loss0")
    log = Log()
    for segment in range(100):
        log.data(segment, segment, capture.SERVER)
        log.data(segment + 10, segment, capture.UE)
    assert "held up the ACKs" in str(machine.held_or_idle(row, log.packets))


def _result(**figures: float | None) -> table.Result:
    said = dict.fromkeys((*LIMITS, "retransmitted_segments"))
    return {**said, **figures}


@pytest.mark.parametrize(
    ("kernel", "simulated", "verdict"),
    [
        ({"goodput": 10.0, "SRTT": 20.0}, {"goodput": 10.2, "SRTT": 20.9}, "agrees"),
        ({"goodput": 10.0, "SRTT": 20.0}, {"goodput": 9.6, "SRTT": 22.0}, "goodput, SRTT"),
        ({"completion": 1.0}, {"completion": 1.04}, "completion"),
        ({"exit cwnd": 100.0}, {"exit cwnd": 114.0}, "agrees"),
        ({"exit cwnd": 100.0}, {}, "exit cwnd"),
        ({}, {}, "agrees"),
    ],
)
def test_a_row_agrees_if_all_its_figures_do(
    kernel: dict[str, float], simulated: dict[str, float], verdict: str
) -> None:
    compared = table.Compared(matrix()[0], [_result(**kernel)], [_result(**simulated)])
    said = compared.verdict()
    assert said == (verdict if verdict == "agrees" else f"differs: {verdict}")


def test_rows_have_names_of_their_own() -> None:
    names = [row.name for row in matrix()]
    assert len(names) == len(set(names))


@needs()
@pytest.mark.real_clock
def test_a_capture_has_both_ends(airpath_command: Command, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = airpath_command(
        *("emulate", str(SCENARIO), "--out", str(out), "--capture", "--set", "run.duration_s=2"),
        *("--set", "emulation.lateness_bound_ms=1000", "--flows", "--explain", "off"),
    )
    assert done.returncode == 0, done.stderr
    packets = capture.read(out / "capture.pcapng")
    data = packets[(packets["down"] == 1) & (packets["payload"] > 0)]
    sent, came = (np.count_nonzero(data["place"] == at) for at in (capture.SERVER, capture.UE))
    assert sent >= came > 1000
    # One way takes 10 ms at the least.
    first = [data["time"][data["place"] == at][0] for at in (capture.SERVER, capture.UE)]
    assert 10e6 <= first[1] - first[0] < 50e6


@needs()
@pytest.mark.real_clock
def test_one_row(tmp_path: Path) -> None:
    page = tmp_path / "referee.md"
    command = [
        sys.executable,
        "-m",
        "airpath_dev",
        "referee",
        *ROW,
        "--repeat",
        "1",
        "--duration",
        "6",
    ]
    process = conftest.start(
        [*command, "--out", str(tmp_path / "runs"), "--page", str(page), "--json"],
        env=conftest.command_environment() | {"PYTHONPATH": str(ROOT / "dev")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    out, complaint = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, complaint
    rows: list[dict[str, Any]] = json.loads(out)
    if not rows:
        # A busy machine: said, and kept out of the table.
        assert "does not count" in complaint
        return
    (row,) = rows
    assert 10 < row["figures"]["goodput"]["kernel"][0] < 20
    assert row["figures"]["SRTT"]["difference"] is not None
    assert row["verdict"] == "agrees"
    assert "| cubic | 20 | 20 | 1 | 0 | large buffers | 1 |" in page.read_text()
    assert not list(tmp_path.rglob("capture.pcapng"))
