"""``airpath emulate --flows``: the scenario's own flows by the kernel's sockets. Needs root."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from conftest import PATIENCE_S, UNEXPLAINED, Command, start_command, until
from emulated import needs, networks, printed, skip_without, skip_without_bpf, stages

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
write_bytes = 700000
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
    return printed(command("emulate", *UNEXPLAINED, *arguments, "--flows", "--json"))


@needs_root
def test_each_kind_of_flow_runs_and_is_counted(
    airpath_command: Command, scenario: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    document = _document(airpath_command, str(scenario), "--out", str(out))
    assert document["emulation"]["failed_flows"] == []
    assert document["run"]["duration_s"] == pytest.approx(3.0, abs=0.05)
    flows = {flow["id"]: flow for flow in document["flows"]}
    assert list(flows) == ["download", "object", "voice", "asked"]

    download = flows["download"]
    # 1448 of 1500 bytes at 20 Mb/s, less the start.
    assert 17.0 < download["goodput_mbps"] < 20 * 1448 / 1500
    assert (download["congestion"], download["profile"]) == ("cubic", "linux-6.18")
    assert download["rtt_ms"]["min"] == pytest.approx(25.6, abs=0.5)
    assert download["slow_start_exit"]["time_s"] < 1.0
    # The last write was completed.
    assert download["bytes_delivered"] % 700_000 == 0

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
@skip_without_bpf()
def test_a_file_is_observed_until_all_of_it_is_acknowledged(
    airpath_command: Command, tmp_path: Path
) -> None:
    """A sender that is closed is not observed, and slow start may end in the last round trip."""
    path, out = tmp_path / "file.toml", tmp_path / "run"
    flow = '[[flow]]\nid = "file"\nkind = "file"\nsize_bytes = 100000\nprofile = "linux-6.18"\n'
    wire = stages(50, 50, rate_mbps=5, queue_packets=200)
    path.write_text(f"[run]\nduration_s = 2\nack_table = true\n{wire}{flow}")
    document = _document(airpath_command, str(path), "--out", str(out))
    assert document["emulation"]["observer"]["by"] == "bpf"
    (file,) = document["flows"]
    assert file["bytes_delivered"] == 100_000
    acked: list[int] = (
        pl.read_parquet(out / "acks.parquet").sort("time_ns")["acked_bytes"].to_list()
    )
    # Some thirty segments are under way when the last one is sent: their acknowledgements come
    # one by one, and not all at once with the socket's end.
    steps = [after - before for before, after in pairwise(acked)]
    assert acked[-1] >= 100_000
    assert max(steps) <= 4 * 1448, steps


SENDERS = """
[[flow]]
id = "first"
kind = "bulk"
congestion = "cubic"
profile = "linux-6.18"
[[flow]]
id = "second"
kind = "bulk"
congestion = "bbr"
profile = "linux-6.18"
initial_window_segments = 4
mss_bytes = 1000
[[flow]]
id = "third"
kind = "bulk"
congestion = "reno"
profile = "linux-6.18"
opened_by = "receiver"
window_bytes = 40000
"""


_NAT = "".join(f'[[path.{way}]]\nstage = "nat"\n' for way in ("down", "up"))


def _congestion(said: str) -> dict[int, str]:
    """What ``ss -tin`` says of each connection, by its local port."""
    found = re.findall(r"^ESTAB\s+\d+\s+\d+\s+[\d.]+:(\d+).*\n\s+(\w+) ", said, re.MULTILINE)
    return {int(port): name for port, name in found}


@skip_without("ip")
@pytest.mark.parametrize("keys", ["", 'direction = "up"\n'], ids=["down", "up"])
@pytest.mark.parametrize(
    "path",
    [pytest.param("", id="wire"), pytest.param(_NAT, id="nat", marks=skip_without("nft"))],
)
def test_flows_of_one_end_have_each_its_congestion_control(
    airpath_command: Command, tmp_path: Path, keys: str, path: str
) -> None:
    """The kernel says it, by ``ss`` and by what is recorded: accepted or connecting."""
    scenario = tmp_path / "senders.toml"
    text = SENDERS.replace("[[flow]]\n", "[[flow]]\n" + keys)
    if path and keys == "":
        # Nobody outside opens a connection through a NAT.
        text = text.replace('opened_by = "receiver"\n', "")
        text = text.replace("[[flow]]\n", '[[flow]]\nopened_by = "receiver"\n')
    elif path:
        text = text.replace('opened_by = "receiver"\n', "")
    scenario.write_text(PATH + path + text)
    end = "ue" if keys else "server"
    script = f"sleep 1; ip netns exec {end} ss -tin"
    words = ("emulate", *UNEXPLAINED, str(scenario), "--flows", "--json", "--user", "root")
    done = airpath_command(*words, "--", "sh", "-c", script)
    document = printed(done)
    assert document["emulation"]["failed_flows"] == []
    asked = {"first": "cubic", "second": "bbr", "third": "reno"}
    # The ports of a flow are those of its place in the scenario.
    ports = {port % 10_000: name for port, name in _congestion(done.stderr).items()}
    assert ports == dict(enumerate(asked.values()))
    assert {flow["id"]: flow["congestion"] for flow in document["flows"]} == asked
    sockets = {flow["id"]: flow for flow in document["emulation"]["sockets"]}
    for name, congestion in asked.items():
        for side in ("sender", "receiver"):
            assert sockets[name][side]["congestion"] == congestion
    second, third = sockets["second"]["sender"], sockets["third"]["receiver"]
    assert (second["cwnd_segments"], second["mss_bytes"]) == (4, 1012)
    assert sockets["first"]["sender"]["cwnd_segments"] == 10
    assert third["window_clamp_bytes"] == 40_000
    assert third["receive_buffer_bytes"] == 80_000


@skip_without("ip")
def test_a_window_of_a_fixed_size_stays_so(airpath_command: Command, tmp_path: Path) -> None:
    """Linux since 6.8 forgets TCP_WINDOW_CLAMP once it knows how large segments are."""
    flow = SENDERS[SENDERS.rindex("[[flow]]") :]
    scenario = tmp_path / "window.toml"
    scenario.write_text(PATH + flow)
    script = "sleep 1.5; ip netns exec server ss -tin"
    words = ("emulate", *UNEXPLAINED, str(scenario), "--flows", "--json", "--user", "root")
    done = airpath_command(*words, "--", "sh", "-c", script)
    printed(done)
    window = re.search(r"snd_wnd:(\d+)", done.stderr)
    assert window, done.stderr
    # What the kernel rounds to its own units is less than a segment.
    assert int(window[1]) <= 40_000 + 1448


FLOOD = """
[[flow]]
id = "flood"
kind = "udp"
direction = "up"
rate_mbps = 100000
packet_bytes = 100
duration_s = 1
"""


@skip_without("ip")
def test_a_rate_that_the_machine_cannot_reach_is_said(
    airpath_command: Command, tmp_path: Path
) -> None:
    scenario = tmp_path / "flood.toml"
    scenario.write_text(PATH + FLOOD)
    began = time.monotonic()
    document = _document(airpath_command, str(scenario))
    # 3 s, of which it may be late by one hundredth.
    assert time.monotonic() - began < 60
    (failed,) = document["emulation"]["failed_flows"]
    assert failed["id"] == "flood"
    reached = re.match(r"rate not reached: ([\d.]+) of 100000 Mb/s", failed["because"])
    assert reached, failed
    assert 0 < float(reached[1]) < 50_000


@skip_without("ip")
@pytest.mark.parametrize("keys", ["", "duration_s = 60\n"])
def test_a_flow_that_is_too_fast_can_be_ended(tmp_path: Path, keys: str) -> None:
    """SIGTERM goes to the command, and the run ends with that."""
    ready = tmp_path / "ready"
    scenario = tmp_path / "flood.toml"
    text = (PATH + FLOOD).replace("duration_s = 3", "duration_s = 60")
    scenario.write_text(text.replace("duration_s = 1\n", keys))
    script = f"trap 'exit 4' TERM; touch {ready}; while :; do sleep 0.02; done"
    words = ("emulate", str(scenario), "--flows", "--", "sh", "-c", script)
    running = start_command(*words, cwd=tmp_path, stderr=subprocess.PIPE)
    assert until(ready.exists)
    time.sleep(0.5)
    running.send_signal(signal.SIGTERM)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 4, said.decode()
    assert b"flow flood failed: rate not reached: " in said


@needs_root
def test_the_run_ends_with_its_flows_and_a_command_runs_beside_them(
    airpath_command: Command, tmp_path: Path
) -> None:
    path = tmp_path / "short.toml"
    ping = '[[flow]]\nid = "ping"\nkind = "ping"\ninterval_ms = 50\ncount = 5\n'
    path.write_text(PATH.replace("duration_s = 3", "duration_s = 60") + ping)
    document = _document(airpath_command, str(path))
    assert document["pings"][0]["sent"] == 5
    assert document["run"]["duration_s"] < 2
    done = airpath_command(
        *("emulate", *UNEXPLAINED, str(path), "--flows", "--json", "--set", "flow.0.count=100"),
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
        (("--at", "server"), "--at need a COMMAND"),
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
