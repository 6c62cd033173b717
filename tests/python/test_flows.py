"""``airpath emulate --flows``: the scenario's own flows by the kernel's sockets. Needs root."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from conftest import PATIENCE_S, Command, start_command, until
from emulated import needs, networks, printed, skip_without, stages

needs_root = needs()

PATH = f"""
[run]
duration_s = 3
{stages(15, 10, rate_mbps=20, queue_packets=100)}"""

EACH_KIND = """
[[flow]]
id = "download"
kind = "bulk"
profile = "linux-6.18"
duration_s = 2
opened_by = "receiver"
[[flow]]
id = "object"
kind = "file"
direction = "up"
congestion = "reno"
profile = "linux-6.18"
mss_bytes = 948
size_bytes = 200000
start_s = 0.5
[[flow]]
id = "voice"
kind = "udp"
direction = "up"
rate_mbps = 0.8
packet_bytes = 200
start_s = 1
duration_s = 1
[[flow]]
id = "asked"
kind = "udp"
rate_mbps = 0.1
packet_bytes = 100
opened_by = "receiver"
[[flow]]
id = "ping"
kind = "ping"
interval_ms = 100
count = 10
start_s = 2.5
[[flow]]
id = "down-ping"
kind = "ping"
direction = "down"
packet_bytes = 28
interval_ms = 500
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """A flow of each kind over one path."""
    path = tmp_path / "each-kind.toml"
    path.write_text(PATH + EACH_KIND)
    return path


def _document(command: Command, *arguments: str) -> Any:
    return printed(command("emulate", *arguments, "--flows", "--json"))


@needs_root
def test_each_kind_of_flow_runs_and_is_counted(
    airpath_command: Command, scenario: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    document = _document(airpath_command, str(scenario), "--out", str(out))
    assert document["emulation"]["failed_flows"] == []
    assert document["run"]["simulated_s"] == pytest.approx(3.0, abs=0.05)
    flows = {flow["id"]: flow for flow in document["flows"]}
    assert list(flows) == ["download", "object", "voice", "asked"]

    download = flows["download"]
    # 1448 of 1500 bytes at 20 Mb/s, less the start.
    assert 17.0 < download["goodput_mbps"] < 20 * 1448 / 1500
    assert (download["congestion"], download["profile"]) == ("cubic", "linux-6.18")
    assert download["rtt_ms"]["min"] == pytest.approx(25.6, abs=0.5)
    assert download["slow_start_exit"]["time_s"] < 1.0

    file = flows["object"]
    assert (file["kind"], file["direction"], file["congestion"]) == ("file", "up", "reno")
    assert file["bytes_delivered"] == 200_000
    assert file["completed_s"] == pytest.approx(8 * 0.2 / file["goodput_mbps"])
    # 200 000 / 948: the MSS is that of the flow.
    assert file["segments_sent"] - file["retransmitted_segments"] == 211

    voice = flows["voice"]
    # 0.8 Mb/s of IP packets of 200 bytes for 1 s.
    assert voice["packets_sent"] == pytest.approx(500, abs=1)
    assert voice["packets_lost"] == 0
    assert voice["goodput_mbps"] == pytest.approx(0.8 * 172 / 200, rel=0.02)
    assert voice["delay_ms"]["p50"] == pytest.approx(10, abs=0.2)
    # It begins when the request has come, 10 ms after 0.
    assert flows["asked"]["packets_sent"] == pytest.approx(0.1e6 / 800 * 2.99, abs=5)

    pings = {ping["id"]: ping for ping in document["pings"]}
    assert pings["ping"]["sent"] in (5, 6)
    assert pings["down-ping"]["sent"] in (6, 7)
    assert pings["down-ping"]["rtt_ms"]["min"] >= 25

    samples = pl.read_parquet(out / "samples.parquet").filter(pl.col("flow") == "download")
    assert samples["cwnd_segments"].drop_nulls().len() > 10
    rows = pl.read_parquet(out / "pings.parquet").filter(pl.col("flow") == "ping")
    assert rows["sent_ns"].to_list() == pytest.approx(
        [2.5e9 + 1e8 * index for index in range(rows.height)], abs=5e6
    )


@needs_root
def test_the_run_ends_with_its_flows_and_a_command_runs_beside_them(
    airpath_command: Command, tmp_path: Path
) -> None:
    path = tmp_path / "short.toml"
    ping = '[[flow]]\nid = "ping"\nkind = "ping"\ninterval_ms = 50\ncount = 5\n'
    path.write_text(PATH.replace("duration_s = 3", "duration_s = 60") + ping)
    document = _document(airpath_command, str(path))
    assert document["pings"][0]["sent"] == 5
    assert document["run"]["simulated_s"] < 2
    done = airpath_command(
        *("emulate", str(path), "--flows", "--json", "--set", "flow.0.count=100"),
        *("--", "sh", "-c", "sleep 0.5; exit 7"),
    )
    assert done.returncode == 7, done.stderr
    beside = json.loads(done.stdout)
    assert 8 <= beside["pings"][0]["sent"] < 100
    assert beside["emulation"]["command"][0] == "sh"


@skip_without()
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--set", "flow.4.packet_bytes=1501"), "flow `ping`: packets of 1501 bytes"),
        (("--set", "flow.1.congestion=bbr3"), "flow `object`: the kernel has no `bbr3`"),
        (("--at", "server"), "--at are for a COMMAND"),
    ],
)
def test_bad_use_is_refused(
    airpath_command: Command, scenario: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = airpath_command("emulate", str(scenario), "--flows", *arguments)
    assert done.returncode == 2
    assert said in done.stderr


@needs_root
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_nothing_is_left_of_a_run_that_is_ended(
    scenario: Path, sent: signal.Signals, code: int
) -> None:
    words = ("emulate", str(scenario), "--flows")
    process = start_command(*words, cwd=scenario.parent, stderr=subprocess.PIPE, text=True)
    home = str(Path("/proc/self/ns/net").readlink())
    assert until(lambda: len(networks(str(process.pid)) - {home}) >= 2)
    inside = networks(str(process.pid)) - {home}
    # Its threads are in both ends' namespaces.
    assert len(inside) == 2
    process.send_signal(sent)
    assert process.wait(PATIENCE_S) == code
    assert process.stderr is not None
    with process.stderr as said:
        assert ("interrupted" in said.read()) == (sent == signal.SIGINT)
    if sent == signal.SIGINT:
        assert list((scenario.parent / "runs").glob("*")) == []
    assert until(lambda: not inside & networks(), seconds=5)
