"""QUIC flows: simulated, emulated, and refused where they cannot run."""

from __future__ import annotations

import hashlib
from pathlib import Path

import polars as pl
import pytest

import airpath
from airpath import scenario
from airpath.congestion import Ack, Congestion, Window
from airpath.drivers import emulate, simulate
from airpath.drivers.options import EmulationOptions, SimulationOptions
from airpath.errors import InputError
from airpath.runs.describe import flow_sentence
from airpath_dev.twin.draw import draw
from airpath_dev.twin.quic import over_quic
from emulated import needs, stages
from real_clock import on_time

needs_root = needs()

FILE = "[run]\nduration_s = 3\n" + stages(20, 20, rate_mbps=20, queue_packets=100)
FILE += '[[flow]]\nid = "q"\nkind = "quic"\nsize_bytes = 1000000\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    place = tmp_path / "quic.toml"
    place.write_text(FILE, encoding="utf-8")
    return place


def test_a_seed_gives_the_same_bytes(file: Path, tmp_path: Path) -> None:
    names = ("first", "second")
    parsed = scenario.load(str(file))
    for name in names:
        simulate.execute(parsed, SimulationOptions(out=tmp_path / name))
    tables = [
        {
            table.name: hashlib.sha256(table.read_bytes()).digest()
            for table in place.glob("*.parquet")
        }
        for place in (tmp_path / name for name in names)
    ]
    assert tables[0] == tables[1]
    assert len(tables[0]) > 4


def test_a_file_takes_a_handshake_and_its_transmission(file: Path) -> None:
    run = airpath.run(str(file))
    flow = run.summary["flows"][0]
    assert flow["bytes_delivered"] == 1_000_000
    # One round trip of 40 ms, half of another, and 8 Mb at 20 Mb/s.
    assert 0.46 < (flow["completed_s"] or 0) < 0.8
    assert flow_sentence(flow).startswith("q: ")
    assert "(QUIC, cubic)" in flow_sentence(flow)
    assert "retransmission" not in flow_sentence(flow)


class Mine(Congestion):
    """Decides nothing."""

    def on_ack(self, ack: Ack, window: Window) -> None:
        pass


def test_a_congestion_control_for_tcp_is_refused(file: Path) -> None:
    with pytest.raises(InputError, match=r"flow\.0 is not TCP but quic"):
        airpath.run(str(file), congestion={"flow.0": Mine()})


@pytest.mark.parametrize("seed", range(1, 31))
def test_a_drawn_scenario_is_valid_over_quic(seed: int) -> None:
    drawn = over_quic(draw(seed))
    parsed = scenario.parse(drawn.text, f"seed-{seed}")
    assert {str(flow["kind"]) for flow in parsed.flows} <= {"quic", "ping"}
    assert "bbr" not in drawn.shape + drawn.text


LONG = "[run]\nduration_s = 6\n" + "".join(
    f'[[path.{way}]]\nstage = "link"\nrate_mbps = 100\nqueue_packets = 1000\n'
    f'[[path.{way}]]\nstage = "delay"\ndelay_ms = 50\n'
    for way in ("down", "up")
)


@pytest.mark.parametrize("direction", ["down", "up"])
@pytest.mark.parametrize(
    ("key", "cause", "held_by"),
    [
        ("receive_window_bytes", "receive-window", "The receiver's window limited q for "),
        ("send_window_bytes", "send-buffer", "The send window limited q for "),
    ],
)
def test_the_window_that_limits_a_flow_is_named_and_raised(
    direction: str, key: str, cause: str, held_by: str
) -> None:
    """250 kB per 100 ms are 20 Mb/s; the path has five times as much."""
    flow = f'[[flow]]\nid = "q"\nkind = "quic"\ndirection = "{direction}"\n{key} = 250000\n'
    run = airpath.run(scenario.parse(LONG + flow, "long"), explain="quick")
    assert 15 < (run.summary["flows"][0]["goodput_mbps"] or 0) < 20
    first = run.summary["findings"][0]
    assert (first["cause"], first["subject"]) == (cause, "q")
    assert first["evidence"].startswith(held_by)
    assert "QUIC" in (first["advice"] or "")
    assert [key] == [one.partition("=")[0].rpartition(".")[2] for one in first["set"] or []]
    names = {"receive-window": "send-buffer", "send-buffer": "receive-window"}
    assert names[cause] not in [one["cause"] for one in run.summary["findings"]]


def test_a_window_that_does_not_limit_a_flow_is_not_named() -> None:
    flow = '[[flow]]\nid = "q"\nkind = "quic"\nreceive_window_bytes = 20000000\n'
    run = airpath.run(scenario.parse(LONG + flow, "long"), explain="quick")
    limited = run.summary["flows"][0]["limited_s"]
    assert limited is not None
    assert limited["receive_window"] == 0
    windows = limited["cwnd"] + limited["send_buffer"]
    assert windows + limited["application"] == pytest.approx(6)
    found = {one["cause"] for one in run.summary["findings"]}
    assert not found & {"receive-window", "send-buffer"}


@needs_root
def test_both_clocks_agree_about_a_file(file: Path, tmp_path: Path) -> None:
    parsed = scenario.load(str(file))
    simulated = simulate.execute(parsed, SimulationOptions(out=tmp_path / "simulated"))
    emulated = emulate.emulate(parsed, EmulationOptions(out=tmp_path / "emulated", flows=True))
    on_time(dict(emulated.summary))
    ours, theirs = (run.summary["flows"][0] for run in (simulated, emulated))
    assert theirs["bytes_delivered"] == 1_000_000
    assert theirs["completed_s"] == pytest.approx(ours["completed_s"], rel=0.1)
    assert emulated.rtt_histogram.height > 0
    assert emulated.samples.filter(pl.col("cwnd_segments") > 10).height > 0
