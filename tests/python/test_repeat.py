"""``airpath emulate --repeat`` and ``airpath whatif --emulate``.

Most tests replace the emulation by a simulation, which has the same tables and figures, takes no
time, and is punctual or late as the test needs. Tests on the real clock need root.
"""

from __future__ import annotations

import json
import os
import pty
import random
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import airpath
from airpath.base.stopping import StoppedError
from airpath.base.toml import parse_toml
from airpath.diagnose import blocks
from airpath.diagnose.whatif import Tried
from airpath.drivers import emulate, repeat, simulate
from airpath.drivers.options import EmulationOptions, SimulationOptions
from airpath.errors import AirpathError, InputError
from airpath.runs import summary
from airpath.runs.results import Run, RunDirectory
from airpath.scenario import shipped_scenarios
from conftest import DOWNLINK, UNEXPLAINED, Command, start_command, until
from emulated import busiest, needs, stages

needs_root = needs()

WIRE = f"""
[run]
duration_s = 0.6
{stages(10, 10, rate_mbps=20, queue_packets=100)}\
[[flow]]
id = "download"
kind = "bulk"
[[flow]]
id = "ping"
kind = "ping"
interval_ms = 50
"""
FLOWS = EmulationOptions(flows=True)
LATE = "1 % of the packets were late; the bound is 0.5 ms"


class Host:
    """A host that simulates instead of emulating, and decides which runs are late or fail."""

    def __init__(self) -> None:
        self.ran: list[tuple[int, str]] = []
        """Seed and scenario hash of every attempt."""
        self.late: Callable[[int], bool] = lambda _: False
        """Whether the attempt of this number, from 1, is late."""
        self.interrupted_at = 0
        self.stopped_at = 0
        self.fails_at = 0

    def emulate(self, scenario: Any, options: EmulationOptions) -> Run:
        seed = scenario.seed if options.seed is None else options.seed
        self.ran.append((seed, scenario.sha256))
        number = len(self.ran)
        if number == self.stopped_at:
            raise KeyboardInterrupt
        if number == self.fails_at:
            raise AirpathError("emulation failed: no TUN device")
        run = simulate.execute(scenario, SimulationOptions(seed=seed, out=options.out))
        because = LATE if self.late(number) else None
        document: Any = run.summary
        document["emulation"] = {
            "valid": because is None, "invalid_because": because, "exit_code": 0,
            "interrupted": number == self.interrupted_at, "directions": {}, "parity": None,
            "ack_gaps": None,
        }  # fmt: skip
        assert run.directory is not None
        RunDirectory(run.directory).write_summary(document)
        return Run.open(run.directory)


@pytest.fixture
def host(core: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Host:
    made = Host()
    monkeypatch.setattr(emulate, "emulate", made.emulate)
    monkeypatch.chdir(tmp_path)
    return made


@contextmanager
def unobserved(options: EmulationOptions, _label: str) -> Iterator[EmulationOptions]:
    yield options


def repeated(count: int, out: Path | None = None, said: list[str] | None = None) -> Run:
    scenario = airpath.load(DOWNLINK, {"run.duration_s": 2})
    say = (lambda _: None) if said is None else said.append
    return repeat.repeat(scenario, replace(FLOWS, out=out), count, unobserved, say)


def contents(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


DOCUMENTS = ["provenance.json", "repeat.json", "scenario.toml", "summary.json"]


# --- What is repeated, and how often ------------------------------------------------------------


def test_work_that_never_counts_is_attempted_a_bounded_number_of_times() -> None:
    draw = random.Random(43)
    for _ in range(500):
        count, extra = draw.randint(1, 12), draw.randint(0, 12)
        share = draw.random()
        attempts: Counter[int] = Counter()

        def attempt(one: int, attempts: Counter[int] = attempts, share: float = share) -> bool:
            attempts[one] += 1
            return draw.random() > share

        never = repeat.until_valid(range(count), attempt, extra=extra)
        assert set(attempts) == set(range(count))
        assert count <= attempts.total() <= count + extra
        # Who gave up did so because nothing was left.
        assert not never or attempts.total() == count + extra
    assert repeat.until_valid([1, 2], lambda _: False, extra=0) == [1, 2]


# --- emulate --repeat ---------------------------------------------------------------------------


def test_the_directory_is_that_of_a_simulation_with_several_seeds(host: Host) -> None:
    out = Path("out")
    run = repeated(3, out)
    assert contents(out) == [*DOCUMENTS[:3], "seed-1", "seed-2", "seed-3", DOCUMENTS[3]]
    simulated = airpath.run(DOWNLINK, {"run.duration_s": 2}, repeat=3)
    assert run.seeds == simulated.seeds == [1, 2, 3]
    for section in summary.SECTIONS:
        assert summary.entries(run.summary, section) == summary.entries(simulated.summary, section)
    assert run.samples.equals(simulated.samples)
    assert run.summary["run"]["repeat"] == 3
    assert run.partial == []
    assert repeat.exit_code(run) == 0
    # Each is a run of its own.
    assert [one.seeds for one in repeat.runs_of(run)] == [[1], [2], [3]]


def test_a_late_run_is_repeated_after_the_others_and_kept(host: Host) -> None:
    host.late = lambda number: number == 2
    said: list[str] = []
    run = repeated(3, Path("out"), said)
    assert [seed for seed, _ in host.ran] == [1, 2, 3, 2]
    assert run.summary["run"]["invalid"] == [{"seed": 2, "because": LATE, "directory": "invalid-1"}]
    assert run.seeds == [1, 2, 3]
    assert said[1] == f"seed 2: does not count: {LATE}"
    assert repeat.sentences(run) == ["1 run did not count and is kept as invalid-1"]
    assert Run.open("out/invalid-1").seeds == [2]
    assert repeat.exit_code(run) == 0


def test_a_seed_that_is_always_late_is_missing_and_said_so(host: Host) -> None:
    host.late = lambda number: host.ran[number - 1][0] == 2
    run = repeated(3, Path("out"))
    assert run.seeds == [1, 3]
    assert run.partial == ["no run with seed 2 counts"]
    assert [late["seed"] for late in run.summary["run"]["invalid"]] == [2] * 4
    assert repeat.exit_code(run) == emulate.INVALID


def test_a_host_that_is_always_late_is_no_result(host: Host) -> None:
    host.late = lambda _: True
    with pytest.raises(repeat.InvalidError, match="none of 6 runs counts: 1 % of the") as error:
        repeated(3, Path("out"))
    assert error.value.exit_code == 3
    assert len(host.ran) == 6
    assert contents(Path("out")) == [*(f"invalid-{n}" for n in range(1, 7)), "repeat.json"]


@pytest.mark.parametrize("how", ["stopped_at", "interrupted_at"])
def test_ctrl_c_keeps_what_is_complete_and_the_same_command_continues(host: Host, how: str) -> None:
    setattr(host, how, 3)
    with pytest.raises(StoppedError, match="the same command with --out out continues"):
        repeated(4, Path("out"))
    run = Run.open("out")
    assert run.seeds == [1, 2]
    assert run.partial == ["it was interrupted: 2 of 4 seeds are missing"]
    assert "seed-3" not in contents(Path("out"))
    run = repeated(4, Path("out"))
    assert [seed for seed, _ in host.ran] == [1, 2, 3, 3, 4]
    assert run.seeds == [1, 2, 3, 4]
    assert run.partial == []
    # More of them, and again nothing twice.
    assert repeated(5, Path("out")).seeds == [1, 2, 3, 4, 5]
    assert len(host.ran) == 6


def test_ctrl_c_before_the_first_run_leaves_nothing(host: Host) -> None:
    host.stopped_at = 1
    with pytest.raises(KeyboardInterrupt):
        repeated(3, Path("out"))
    assert not Path("out").exists()
    # A directory that was there stays.
    host.stopped_at = 2
    Path("out").mkdir()
    Path("out/other").mkdir()
    with pytest.raises(InputError, match="out exists and is not a repeated emulation"):
        repeated(3, Path("out"))
    assert contents(Path("out")) == ["other"]


def test_a_failure_keeps_the_runs_before_it(host: Host) -> None:
    host.fails_at = 2
    with pytest.raises(AirpathError, match="no TUN device\n  finished runs are kept in out"):
        repeated(2, Path("out"))
    assert Run.open("out").seeds == [1]


def test_a_killed_process_may_have_left_a_late_run_in_the_place_of_a_good_one(host: Host) -> None:
    repeated(2, Path("out"))
    host.late = lambda _: True
    scenario = airpath.load(DOWNLINK, {"run.duration_s": 2})
    host.emulate(scenario, replace(FLOWS, seed=3, out=Path("out/seed-3")))
    host.late = lambda _: False
    run = repeated(3, Path("out"))
    assert run.seeds == [1, 2, 3]
    assert run.summary["run"]["invalid"][0]["seed"] == 3


def test_another_emulation_is_refused(host: Host) -> None:
    repeated(1, Path("out"))
    other = airpath.load(DOWNLINK, {"run.duration_s": 3})
    with pytest.raises(InputError, match="out holds another repeated emulation"):
        repeat.repeat(other, replace(FLOWS, out=Path("out")), 2, unobserved, print)
    Path("out/repeat.json").write_text("{")
    with pytest.raises(InputError, match=r"out/repeat\.json is damaged"):
        repeated(1, Path("out"))


def test_two_of_one_minute_do_not_share_a_directory(host: Host) -> None:
    assert repeated(1).directory != repeated(1).directory


def test_connections_of_programs_match_without_the_clients_port() -> None:
    def document(seed: int, *flows: tuple[str, float]) -> Any:
        named = [{"id": name, "kind": "bulk", "goodput_mbps": rate} for name, rate in flows]
        run = {"id": "", "seed": seed, "wall_s": 1, "duration_s": 1, "events": 1, "partial": []}
        return {"run": run, "flows": named}

    control, data = "tcp4 ue:40001 server:5201", "tcp4 ue:40002 server:5201"
    combined = summary.combine(
        [
            document(1, (control, 0.1), (data, 8.0)),
            document(2, ("tcp4 ue:50123 server:5201", 0.3), ("tcp4 ue:50777 server:5201", 10.0)),
            document(3, ("tcp4 ue:61000 server:5201", 0.2)),
        ],
        "",
        3.0,
    )
    flows: Any = combined["flows"]
    assert [flow["id"] for flow in flows] == [control, data]
    assert flows[0]["goodput_mbps"] == pytest.approx(0.2)
    assert flows[1]["values"]["goodput_mbps"] == [8.0, 10.0, None]
    assert summary.without_client_port("tcp4 ue:5201 server:80") == "tcp4 ue:5201 server:80"


# --- whatif --emulate ---------------------------------------------------------------------------


def compared(count: int, out: Path | None = None, **given: Any) -> Any:
    sets = {"run.duration_s": 2}
    options = replace(FLOWS, out=out)
    tries = [["flow.0.initial_window_segments=4"], ["path.up.0.delay_ms=50"]]
    tried = Tried.load("random-loss", given.pop("tries", tries), set=sets)
    return blocks.whatif_emulated(tried, blocks=count, options=options, **given)


@pytest.mark.parametrize("name", sorted(shipped_scenarios()))
def test_figures_are_those_that_simulations_are_compared_by(name: str) -> None:
    flows = parse_toml(airpath.load(name).resolved_toml)["flow"]
    # Files are incomplete in some of them.
    sets = [f"run.duration_s={2 + max(flow['start_s'] for flow in flows)}"]
    run = airpath.run(name, sets)
    found = blocks.figures(run.summary, flows)
    rows = airpath.whatif(name, [["run.seed=1"]], set=sets, seeds=1)["rows"]
    expected = [(row["flow"], row["metric"], row["cells"][0]) for row in rows]
    assert [(flow, metric) for flow, metric, *_ in found] == [one[:2] for one in expected]
    for (*_, value, complete), (*_, cell) in zip(found, expected, strict=True):
        assert cell is not None
        assert cell["values"] == [pytest.approx(value, rel=1e-12) if complete else None]


@pytest.mark.parametrize(
    ("name", "change", "has", "lacks"),
    [
        ("wire", "flow.0.streams=3", ("down", "jain_index"), ("download", "goodput_mbps")),
        ("two-flows", "flow.0.enabled=false", ("reno", "goodput_mbps"), ("cubic", "goodput_mbps")),
    ],
)
def test_streams_are_flows_of_their_own_and_disabled_ones_are_none(
    name: str, change: str, has: tuple[str, str], lacks: tuple[str, str]
) -> None:
    sets = ["run.duration_s=2", change]
    run = airpath.run(name, sets)
    found = blocks.figures(run.summary, parse_toml(run.scenario_toml)["flow"])
    rows = airpath.whatif(name, [["run.seed=1"]], set=sets, seeds=1)["rows"]
    told = [one[:2] for one in found]
    assert told == [(row["flow"], row["metric"]) for row in rows]
    assert has in told
    assert lacks not in told


def test_the_answer_is_that_of_simulations_with_the_same_seeds(host: Host) -> None:
    answer = compared(4)
    tries = [["flow.0.initial_window_segments=4"], ["path.up.0.delay_ms=50"]]
    simulated = airpath.whatif("random-loss", tries, set={"run.duration_s": 2}, seeds=4)
    assert answer["rows"] == simulated["rows"]
    for key in ("scenario", "version", "seeds", "variants"):
        assert answer[key] == simulated[key]
    about = answer["blocks"]
    assert (about["wanted"], about["invalid"]) == (4, [])
    assert "paired by block" in about["interval"]
    assert json.loads((Path(about["directory"]) / "comparison.json").read_text()) == answer


def test_a_block_has_every_variant_once_in_random_order(host: Host) -> None:
    orders = compared(8)["blocks"]["orders"]
    assert all(sorted(order) == [0, 1, 2] for order in orders)
    assert len({tuple(order) for order in orders}) > 2
    hashes = [sha for _, sha in host.ran]
    by_index = dict(zip(orders[0], hashes[:3], strict=True))
    ran = [[seed for seed, _ in host.ran[at : at + 3]] for at in range(0, 24, 3)]
    assert ran == [[seed] * 3 for seed in range(1, 9)]
    assert hashes == [by_index[index] for order in orders for index in order]
    assert compared(8)["blocks"]["orders"] == orders


def test_a_late_block_is_repeated_as_a_whole(host: Host) -> None:
    # The second run of the second block.
    host.late = lambda number: number == 5
    said: list[str] = []
    answer = compared(3, Path("out"), say=said.append)
    assert [seed for seed, _ in host.ran] == [1, 1, 1, 2, 2, 3, 3, 3, 2, 2, 2]
    assert answer["seeds"] == [1, 2, 3]
    (late,) = answer["blocks"]["invalid"]
    assert late == {"block": 1, "because": LATE, "directory": "invalid-1"}
    assert said == [f"block 2 does not count: {LATE}"]
    host.late = lambda _: False
    assert answer["rows"] == compared(3)["rows"]
    # It is also found in the directory.
    assert compared(3, Path("out"))["blocks"]["invalid"] == [late]


def test_a_block_that_is_always_late_is_missing(host: Host) -> None:
    host.late = lambda number: host.ran[number - 1][0] == 2
    answer = compared(3)
    assert answer["seeds"] == [1, 3]
    assert len(answer["blocks"]["invalid"]) == 4
    host.late = lambda _: True
    with pytest.raises(repeat.InvalidError, match="none of 6 blocks counts"):
        compared(3)


@pytest.mark.parametrize("how", ["stopped_at", "interrupted_at"])
def test_an_interrupted_comparison_continues_with_whole_blocks(host: Host, how: str) -> None:
    setattr(host, how, 8)
    with pytest.raises(StoppedError, match="only 2 blocks of 4 are complete"):
        compared(4, Path("out"))
    assert contents(Path("out")) == ["block-1", "block-2", "whatif.json"]
    answer = compared(4, Path("out"))
    assert [seed for seed, _ in host.ran] == [1] * 3 + [2] * 3 + [3] * 2 + [3] * 3 + [4] * 3
    assert answer["rows"] == compared(4)["rows"]
    with pytest.raises(InputError, match="out holds another comparison"):
        compared(4, Path("out"), tries=[["path.up.0.delay_ms=51"]])


def test_ctrl_c_in_the_first_block_leaves_nothing(host: Host) -> None:
    host.stopped_at = 2
    with pytest.raises(KeyboardInterrupt):
        compared(4, Path("out"))
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--", "true"], "COMMAND needs --emulate N"),
        (["--server", "iperf3 -s"], "--server needs --emulate N"),
        (["--out", "x"], "--out needs --emulate N"),
        (["--emulate", "2", "--seeds", "3"], "--seeds is for simulations"),
        (["--emulate", "2", "--workers", "3"], "--workers is for simulations"),
    ],
)
def test_options_of_the_other_kind_are_refused(
    cli: Any, arguments: list[str], message: str
) -> None:
    code, out, err = cli("whatif", "wire", "--try", "run.seed=2", *arguments)
    assert (code, out) == (2, "")
    assert message in err


# --- On the real clock --------------------------------------------------------------------------


@needs_root
def test_two_emulations(airpath_command: Command, wire: Path, tmp_path: Path) -> None:
    words = ("emulate", str(wire), "--flows", *UNEXPLAINED, "--repeat", "2", "--out", "out")
    done = airpath_command(*words, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    (flow,) = document["flows"]
    assert document["run"]["seeds"] == [1, 2]
    assert len(flow["values"]["goodput_mbps"]) == 2
    assert 5 < flow["goodput_mbps"] < 20
    again = airpath_command(*words)
    assert "2 runs found in out" in again.stderr
    assert again.stdout.startswith("download: ")


@needs_root
def test_a_command_is_repeated_and_its_flows_match(airpath_command: Command, wire: Path) -> None:
    server = "exec python3 -m http.server 8000"
    fetch = "import urllib.request as u; u.urlopen('http://server:8000/').read()"
    done = airpath_command(
        *("emulate", str(wire), *UNEXPLAINED, "--repeat", "2", "--json", "--server", server),
        *("--", "python3", "-c", fetch),
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    # A server that listens on IPv4 refuses IPv6 first.
    flow = busiest(document)
    assert None not in flow["values"]["goodput_mbps"]
    assert len(flow["values"]["goodput_mbps"]) == 2
    assert flow["id"].endswith(":8000")


@needs_root
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_a_command_ends_the_series(wire: Path, tmp_path: Path, sent: int) -> None:
    out = tmp_path / "out"
    # The first run ends by itself; the second waits for ever, and takes SIGINT well.
    script = (
        f"test -e {out}/seed-1 || exit 0; trap 'exit 0' INT TERM; touch {tmp_path}/ready; "
        "while :; do sleep 0.05; done"
    )
    words = ("emulate", str(wire), *UNEXPLAINED, "--repeat", "3", "--out", str(out))
    running = start_command(
        *words, "--", "sh", "-c", script, cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    assert until((tmp_path / "ready").exists)
    running.send_signal(sent)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130, said
    assert "the same command with --out" in said
    assert Run.open(out).seeds == [1]
    assert "seed-2" not in contents(out)


@needs_root
def test_ctrl_c_that_is_typed_ends_the_series(wire: Path, tmp_path: Path) -> None:
    """The command has a terminal of its own, which turns the key into SIGINT."""
    out = tmp_path / "out"
    script = (
        f"test -e {out}/seed-1 || exit 0; trap 'exit 0' INT; touch {tmp_path}/ready; "
        "while :; do sleep 0.05; done"
    )
    ours, theirs = pty.openpty()
    try:
        running = start_command(
            *("emulate", str(wire), *UNEXPLAINED, "--no-live", "--repeat", "3"),
            *("--out", str(out), "--", "sh", "-c", script),
            cwd=tmp_path, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        )  # fmt: skip
        assert until((tmp_path / "ready").exists)
        # The key may come before the relay reads.
        time.sleep(0.3)
        os.write(ours, b"\x03")
        assert running.wait(timeout=60) == 130
    finally:
        os.close(theirs)
        os.close(ours)
    assert Run.open(out).seeds == [1]


@needs_root
def test_a_difference_is_found_in_blocks(airpath_command: Command, wire: Path) -> None:
    """Half of the rate is half of the goodput, and nothing else differs."""
    halved, same = "path.down.0.rate_mbps=10", "run.seed=9"
    done = airpath_command(
        *("whatif", str(wire), "--emulate", "3", "--try", halved, "--try", same, "--json"),
    )
    assert done.returncode in (0, 3), done.stderr
    answer = json.loads(done.stdout)
    row = next(row for row in answer["rows"] if row["metric"] == "goodput_mbps")
    slow, alike = row["cells"][1:]
    assert -0.6 < slow["change"] < -0.4
    assert abs(alike["change"]) < 0.1
    assert slow["change_ci95"][1] < -0.3


@needs_root
def test_a_command_is_compared(airpath_command: Command, wire: Path) -> None:
    done = airpath_command(
        *("whatif", str(wire), "--emulate", "2", "--try", "path.down.1.delay_ms=40"),
        *("--", "ping", "-c", "5", "-i", "0.05", "server"),
    )
    assert done.returncode == 0, done.stderr
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("mean RTT")]
    before, after = (float(found) for found in re.findall(r"([\d.]+) ms", row))
    assert 29 < after - before < 31
    assert "Means over 2 emulated blocks" in done.stdout


@needs_root
def test_a_command_that_fails_ends_the_comparison(airpath_command: Command, wire: Path) -> None:
    done = airpath_command(
        *("whatif", str(wire), "--emulate", "2", "--try", "run.seed=9", "--", "false"),
    )
    assert done.returncode == 1
    assert "a program failed with code 1 in block 1" in done.stderr


@needs_root
def test_it_needs_something_that_ends(airpath_command: Command, wire: Path) -> None:
    done = airpath_command("emulate", str(wire), "--repeat", "2")
    assert done.returncode == 2
    assert "--repeat needs runs that end by themselves" in done.stderr
