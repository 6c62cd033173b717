"""``airpath export``: traces and scripts of what a run's cell or links gave."""

from __future__ import annotations

import csv
import os
import random
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import airpath
from airpath import export
from airpath.base.toml import parse_toml, toml_text
from airpath.errors import InputError
from airpath.export import traces
from airpath.export.netem import LEFT_OUT
from airpath.export.recorded import SERVER_MS, Passed
from airpath.runs.results import Run
from airpath.scenario import shipped_scenarios
from conftest import start, until

CELL = """
[run]
duration_s = 2.5
[[path.down]]
stage = "delay"
delay_ms = 10
[[path.up]]
stage = "delay"
delay_ms = 7
[radio]
preset = "lte-10"
[radio.channel]
model = "process"
distance_m = 700
speed_kmh = 30
"""
SATURATED = f"""{CELL}
[[flow]]
id = "down"
kind = "udp"
rate_mbps = 80
packet_bytes = 1500
[[flow]]
id = "up"
kind = "udp"
direction = "up"
rate_mbps = 60
packet_bytes = 1500
"""
LINK = """
[run]
duration_s = 4
[[path.down]]
stage = "trace"
file = "builtin:sawtooth"
queue_packets = 50
[[flow]]
kind = "udp"
rate_mbps = 15
packet_bytes = 1500
"""
LIGHT = f"""{CELL}
[[flow]]
kind = "ping"
interval_ms = 200
[[flow]]
id = "burst"
kind = "file"
size_bytes = 6000
start_s = 1.05
"""


def _run(place: Path, text: str, name: str, **sets: Any) -> Run:
    file = place / f"{name}.toml"
    file.write_text(text)
    return airpath.run(file, {"run.radio_log": True, **sets}, out=place / name)


@pytest.fixture(scope="module")
def saturated(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A recorded cell in which both directions always have something to send."""
    return _run(tmp_path_factory.mktemp("saturated"), SATURATED, "cell")


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A recorded cell with pings and a short file, mostly idle."""
    return _run(tmp_path_factory.mktemp("light"), LIGHT, "light")


def stamps(file: Path) -> list[int]:
    return [int(line) for line in file.read_text().splitlines()]


# --- Formats ------------------------------------------------------------------------------------


def test_a_trace_delivers_what_left_and_when() -> None:
    draw = random.Random(43)
    for _ in range(300):
        count, size = draw.randint(1, 400), draw.choice([1400, 1500])
        left = np.sort([draw.uniform(0, 2000) for _ in range(count)])
        sizes = np.array([draw.choice([40, 576, 1500]) for _ in range(count)])
        if sizes.sum() < size:
            continue
        made = traces.opportunities(left, sizes, 2000.0, size)
        assert made == sorted(made)
        assert made[-1] == 2000
        assert len(made) == sizes.sum() // size
        # By no time more than had left half a millisecond later, nor a whole packet less.
        for at in (draw.uniform(0, 1999) for _ in range(5)):
            given = sum(stamp <= at for stamp in made[:-1])
            assert size * given <= sizes[left <= at + 0.5].sum()
            assert size * (given + 2) > sizes[left < at - 0.5].sum()


def test_a_constant_link_is_a_regular_trace() -> None:
    # 12 Mb/s are 1,500 bytes a millisecond.
    made = traces.spread(np.arange(100.0, 1001, 100), np.full(10, 12.0), 1000.0)
    assert made == list(range(1, 1001))
    with pytest.raises(InputError, match="no trace to write"):
        traces.spread(np.array([1000.0]), np.array([0.001]), 1000.0)


def test_trains_are_packets_that_find_the_radio_empty() -> None:
    entered = np.array([0.0, 0.2, 0.4, 30.0, 31.5, 100.0, 100.5])
    left = np.array([20.2, 21.4, 21.4, 50.0, 51.0, 115.0, 130.0])
    lines = traces.trains(Passed(entered, left, np.full(7, 1400)), path_delay_ms=10.0)
    # The packet at 31.5 ms is no part of a train: it found another one in the radio.
    assert lines == [[0, 30, 0, 1, 1], [30, 30, 0], [100, 25, 0, 15]]
    assert traces.train_text(lines) == "0 30 0 1 1\n30 30 0\n100 25 0 15\n"
    with pytest.raises(InputError, match="has 2 packet trains, but CellReplay needs 3"):
        traces.train_text(lines[:2])


@pytest.mark.parametrize("name", sorted(shipped_scenarios()))
def test_a_scenario_that_is_written_is_the_same(name: str) -> None:
    resolved = airpath.load(name).resolved_toml
    written = toml_text(parse_toml(resolved))
    assert parse_toml(written) == parse_toml(resolved)
    from airpath import scenario

    assert scenario.parse(written, name).resolved_toml == resolved


def test_text_in_toml_survives() -> None:
    draw = random.Random(44)
    letters = "aé\"\\\n\t\x7f\x1f€𝄞'#=[]"
    for _ in range(300):
        table = {
            "".join(draw.choices(letters, k=3)): "".join(draw.choices(letters, k=5)),
            "list": [draw.uniform(-1e9, 1e9), draw.random()],
            "tables": [{"x": {"y": draw.randint(-9, 9)}}, {}],
        }
        assert parse_toml(toml_text(table)) == table


def test_delays_of_servers_are_those_of_the_reference(core: Any) -> None:
    said = re.findall(r'`"(\w+)"`: [^`]*?: ([\d.]+) ms \(', core.reference())
    assert {place: float(ms) for place, ms in said if place in SERVER_MS} == SERVER_MS


# --- Back into a scenario -----------------------------------------------------------------------


def test_a_mahimahi_trace_of_a_cell_replays_it(saturated: Run, tmp_path: Path) -> None:
    written = export.mahimahi(saturated, tmp_path / "mm")
    assert written.files == ["ue-0.down", "ue-0.up", "scenario.toml"]
    assert stamps(tmp_path / "mm/ue-0.down")[-1] == 2500
    assert any(line.startswith("mm-delay ") for line in written.said)
    replayed = airpath.run(tmp_path / "mm/scenario.toml")
    for ours, theirs in zip(saturated.summary["flows"], replayed.summary["flows"], strict=True):
        assert theirs["goodput_mbps"] == pytest.approx(ours["goodput_mbps"], rel=0.02)
        delays = [flow["delay_ms"] for flow in (ours, theirs)]
        assert delays[0] is not None
        assert delays[1] is not None
        assert delays[1]["p95"] == pytest.approx(delays[0]["p95"], rel=0.05)


def test_a_radio_trace_replays_the_cell_exactly(saturated: Run, tmp_path: Path) -> None:
    written = export.radio(saturated, tmp_path / "radio")
    assert written.files == ["ue-0.down.csv", "ue-0.up.csv", "scenario.toml"]
    rows = list(csv.DictReader((tmp_path / "radio/ue-0.down.csv").read_text().splitlines()))
    assert float(rows[0]["time_s"]) == 0.0
    assert len({row["sinr_db"] for row in rows}) > 100
    replayed = airpath.run(tmp_path / "radio/scenario.toml")
    assert replayed.summary["flows"] == saturated.summary["flows"]


def test_a_trace_lasts_as_long_as_its_run(saturated: Run, tmp_path: Path) -> None:
    """An emulation ends with its COMMAND or with its gateway, not with the scenario."""
    run = Run.open(saturated.directory or "")
    run.summary["run"]["duration_s"] = 3.25
    export.mahimahi(run, tmp_path / "mm")
    assert stamps(tmp_path / "mm/ue-0.down")[-1] == 3250


def test_a_trace_of_links_has_their_capacity(tmp_path: Path) -> None:
    run = _run(tmp_path, LINK, "link")
    written = export.mahimahi(run, tmp_path / "mm")
    # Nothing limits the uplink, so there is no command of mm-link.
    assert written.files == ["path.down", "scenario.toml"]
    (link,) = run.summary["links"]
    carried = 1500 * 8 * len(stamps(tmp_path / "mm/path.down")) / 4e6
    assert carried == pytest.approx(link["capacity_mbps"], rel=0.01)
    (replayed,) = airpath.run(tmp_path / "mm/scenario.toml").summary["flows"]
    (flow,) = run.summary["flows"]
    assert replayed["goodput_mbps"] == pytest.approx(flow["goodput_mbps"], rel=0.02)
    assert replayed["packets_lost"] == pytest.approx(flow["packets_lost"], rel=0.02)


def test_each_ue_of_a_group_has_its_own_traces(tmp_path: Path) -> None:
    text = SATURATED + '[[radio.ue]]\nname = "phone"\ncount = 2\n'
    text = text.replace('kind = "udp"', 'kind = "udp"\nue = "phone-1"')
    run = _run(tmp_path, text, "group", **{"run.duration_s": 1})
    written = export.radio(run, tmp_path / "radio")
    assert "phone-1.down.csv" in written.files
    # A UE without traffic sends nothing.
    assert any(line.startswith("phone-0: no block was sent") for line in written.said)
    replayed = airpath.run(tmp_path / "radio/scenario.toml")
    assert replayed.summary["flows"] == run.summary["flows"]
    with pytest.raises(InputError, match="several UEs: --ue is one of phone-0, phone-1"):
        export.mahimahi(run, tmp_path / "mm")
    export.mahimahi(run, tmp_path / "mm", ue="phone-1")
    airpath.run(tmp_path / "mm/scenario.toml")


def test_cellreplay_has_a_heavy_and_a_light_trace(
    saturated: Run, light: Run, tmp_path: Path
) -> None:
    written = export.cellreplay(saturated, light, tmp_path / "cr")
    for direction in ("down", "up"):
        heavy = stamps(tmp_path / f"cr/{direction}-heavy-pdo")
        assert heavy == sorted(heavy)
        packets = saturated.summary["flows"][direction == "up"]["bytes_delivered"] / 1472
        assert len(heavy) == pytest.approx(packets * 1500 / 1400, rel=0.05)
        lines = (tmp_path / f"cr/{direction}-delay-light-pdo").read_text().splitlines()
        trains = [list(map(int, line.split(" "))) for line in lines]
        assert len(trains) >= 3
        assert [train[0] for train in trains] == sorted(train[0] for train in trains)
        assert all(train[2] == 0 and train[2:] == sorted(train[2:]) for train in trains)
        assert all(10 <= train[1] < 60 for train in trains)
    assert any(len(line.split()) > 3 for line in lines + trains_text(tmp_path / "cr"))
    assert written.said[0].startswith(f"mm-cellular 5 {tmp_path}/cr/up-delay-light-pdo ")


def trains_text(place: Path) -> list[str]:
    return (place / "down-delay-light-pdo").read_text().splitlines()


def test_a_cell_that_was_idle_is_said_to_be(light: Run, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="less than 1500 bytes left"):
        export.mahimahi(light, tmp_path / "few")
    busy = {"flow.0.interval_ms": 10, "flow.0.packet_bytes": 1400}
    run = _run(tmp_path, LIGHT, "pings", **busy)
    (line,) = [one for one in export.mahimahi(run, tmp_path / "mm").said if "down: nothing" in one]
    assert "nothing waited for the radio" in line


# --- netem --------------------------------------------------------------------------------------


def _parsed(script: str, direction: str) -> list[tuple[int, int]]:
    body = script[script.index(f"rates_{direction}()") :].partition("\n}")[0]
    return [(int(at), int(rate)) for at, rate in re.findall(r"rate (\d+) (\d+)", body)]


def test_a_script_has_the_rates_of_the_cell(saturated: Run, tmp_path: Path) -> None:
    script = export.netem(saturated)
    (tmp_path / "netem.sh").write_text(script)
    subprocess.run(["sh", "-n", str(tmp_path / "netem.sh")], check=True)
    for index, direction in enumerate(("down", "up")):
        rates = _parsed(script, direction)
        times = [at for at, _ in rates]
        assert times[0] == 0
        assert times == sorted(set(times))
        ends = [*times[1:], 2500]
        mean = sum(rate * (end - at) for (at, rate), end in zip(rates, ends, strict=True)) / 2.5e6
        goodput = saturated.summary["flows"][index]["goodput_mbps"]
        # Headers of UDP and IP.
        assert mean == pytest.approx((goodput or 0) * 1500 / 1472, rel=0.03)
    assert "netem limit 10000 delay 1" in script
    assert "# - the radio's reaction to traffic" in script


def test_a_script_says_what_it_leaves_out(tmp_path: Path) -> None:
    run = airpath.run("double-nat", {"run.duration_s": 1}, out=tmp_path / "run")
    script = export.netem(run)
    assert "# - down.1.nat: a NAT and its timers" in script
    assert "delay 11.000ms" in script
    lossy = export.netem(airpath.run("bursty-loss", {"run.duration_s": 1}, out=tmp_path / "lossy"))
    assert "loss gemodel 0.202% 20% 100% 0%" in lossy
    assert "tbf rate 20000kbit" in lossy


def test_jitter_is_around_the_mean_delay(tmp_path: Path) -> None:
    """A stage adds from 0 to 8 ms; netem adds from -4 to 4 ms."""
    sets = {"run.duration_s": 1, "path.down.1.jitter_ms": 8}
    run = airpath.run("bufferbloat", sets, out=tmp_path / "run")
    delay_ms = parse_toml(run.scenario_toml)["path"]["down"][1]["delay_ms"]
    assert f"delay {delay_ms + 4:.3f}ms 4.000ms" in export.netem(run)


def test_every_kind_of_stage_is_expressed_or_left_out_by_name(core: Any) -> None:
    (kinds,) = re.findall(r"\| `stage` \| ([^|]*) \|", core.reference())[:1]
    expressed = {"link", "trace", "shaper", "delay", "server", "loss", "gilbert-elliott"}
    assert set(re.findall(r'"([\w-]+)"', kinds)) - expressed == set(LEFT_OUT)


@pytest.mark.parametrize("arguments", [[], ["down"], ["sideways", "lo"]])
def test_wrong_arguments_of_a_script_change_nothing(tmp_path: Path, arguments: list[str]) -> None:
    run = airpath.run("wire", {"run.duration_s": 1}, out=tmp_path / "run")
    file = tmp_path / "netem.sh"
    file.write_text(export.netem(run))
    done = subprocess.run(
        ["sh", str(file), *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "usage: " in done.stderr


def _with_tc(place: Path, script: str, tc: str) -> tuple[Path, Path, dict[str, str]]:
    """Put a program in the place of tc, which writes its arguments to a log."""
    log, tools = place / "log", place / "bin"
    tools.mkdir()
    (tools / "tc").write_text(f'#!/bin/sh\necho "$@" >> {log}\n{tc}\n')
    (tools / "tc").chmod(0o755)
    (place / "netem.sh").write_text(script)
    return log, place / "netem.sh", {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_script_removes_what_it_added(saturated: Run, tmp_path: Path, sent: int) -> None:
    script = export.netem(saturated)
    log, file, environment = _with_tc(tmp_path, script, "")
    running = start(["sh", str(file), "down", "veth7"], env=environment)
    expected = _parsed(script, "down")
    assert until(lambda: log.exists() and len(log.read_text().splitlines()) >= 5)
    running.send_signal(sent)
    assert running.wait(timeout=60) == 128 + sent
    root, leaf, *changes, removed = log.read_text().splitlines()
    assert root.startswith("qdisc add dev veth7 root handle 1: netem limit 10000 delay ")
    assert leaf.startswith("qdisc add dev veth7 parent 1:1 handle 10: tbf rate ")
    for line, (_, rate) in zip(changes, expected, strict=False):
        assert f"qdisc change dev veth7 parent 1:1 handle 10: tbf rate {rate}kbit burst " in line
    assert removed == "qdisc del dev veth7 root"


def test_a_qdisc_of_somebody_else_stays(saturated: Run, tmp_path: Path) -> None:
    log, file, environment = _with_tc(tmp_path, export.netem(saturated), "exit 2")
    done = subprocess.run(["sh", str(file), "up", "veth7"], env=environment, check=False)
    assert done.returncode == 2
    (line,) = log.read_text().splitlines()
    assert line.startswith("qdisc add dev veth7 root ")


# --- The command --------------------------------------------------------------------------------


def test_the_command_records_and_exports(cli: Any) -> None:
    Path("cell.toml").write_text(SATURATED)
    sets = ("--set", "run.duration_s=1", "--explain", "off", "--out", "run")
    code, _, err = cli("run", "cell.toml", *sets, "--record")
    assert code == 0, err
    code, out, err = cli("export", "run", "--mahimahi", "mm", "--netem", "shape.sh")
    assert (code, out) == (0, "")
    assert "mm: ue-0.down, ue-0.up, scenario.toml" in err
    assert Path("shape.sh").stat().st_mode & 0o111
    code, out, _ = cli("export", "run", "--netem", "-")
    assert code == 0
    assert out.startswith("#!/bin/sh\n")
    code, _, err = cli("export", "run", "--mahimahi", "mm")
    assert code == 2
    assert "mm exists and is not empty" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to write"),
        (["--mahimahi", "x", "--seed", "9"], "no seed 9; its seeds: 1"),
        (["--mahimahi", "x", "--ue", "car"], "no UE 'car'; it has ue-0"),
        (["--mahimahi", "x"], "did not record its radio; run it with --record"),
        (["--radio", "x"], "did not record its radio; run it with --record"),
        (["--cellreplay", "x"], "--cellreplay needs --light RUN"),
        (["--light", "run", "--netem", "x"], "--light needs --cellreplay DIR"),
        (["--netem", "no/such/place"], "there is no directory no/such"),
    ],
)
def test_what_cannot_be_exported_is_refused(cli: Any, arguments: list[str], message: str) -> None:
    airpath.run("nr-n78", {"run.duration_s": 0.1}, out="run")
    code, out, err = cli("export", "run", *arguments)
    assert (code, out) == (2, ""), err
    assert message in err
    assert not Path("x").exists()
