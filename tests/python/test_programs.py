"""``[[program]]``: several commands in several places, and what became of each. Needs root."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from conftest import PATIENCE_S, UNEXPLAINED, Command, start, start_command, until
from emulated import DELAYS, needs_root, skip_without

TWO_UES = """
[radio]
preset = "lte-20"
[[radio.ue]]
name = "phone"
[[radio.ue]]
name = "car"
[[path.up]]
stage = "delay"
delay_ms = 10
[[flow]]
kind = "ping"
"""


def _program(command: str, **keys: object) -> str:
    lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    return "\n[[program]]\ncommand = " + json.dumps(command) + "\n" + "\n".join(lines) + "\n"


def _run(
    command: Command, place: Path, text: str, *words: str
) -> tuple[subprocess.CompletedProcess[str], dict[str, dict[str, Any]]]:
    """The command's end, and the programs of the result by name."""
    scenario = place / "session.toml"
    scenario.write_text(text)
    out = place / "run"
    done = command("emulate", *UNEXPLAINED, str(scenario), "--json", "--out", str(out), *words)
    if not done.stdout:
        return done, {}
    programs = json.loads(done.stdout)["emulation"]["programs"]
    for program in programs:
        if program["stdout"]:
            program["wrote"] = (out / program["stdout"]).read_text()
    return done, {program["name"]: program for program in programs}


@needs_root
def test_a_session_of_several_programs(airpath_command: Command, tmp_path: Path) -> None:
    """Two UEs, a server, and each one's output and exit code."""
    text = (
        TWO_UES
        + _program("exec iperf3 -s", name="server", at="server", wait_for="listen")
        + _program("exec iperf3 -s -p 5202", name="second", at="server", wait_for="listen")
        + _program("exec iperf3 -c server -t 1 -J", name="load", at="phone")
        + _program("exec iperf3 -c server -p 5202 -t 1 -R -J", name="other", at="car")
        + _program("ping -c 3 -i 0.05 server", name="ping", at="car", start_s=0.5)
    )
    done, programs = _run(airpath_command, tmp_path, text)
    assert done.returncode in (0, 3), done.stderr
    for name in ("load", "other"):
        end = json.loads(programs[name]["wrote"])["end"]
        assert end["sum_received"]["bits_per_second"] > 1e6
    assert "3 received" in programs["ping"]["wrote"]
    # What they printed is read.
    document = json.loads(done.stdout)
    assert [(row["id"], row["sent"]) for row in document["pings"]] == [("programs/ping", 3)]
    for name in ("load", "other"):
        said = programs[name]["printed"]
        received = json.loads(programs[name]["wrote"])["end"]["sum_received"]
        assert said["goodput_mbps"] == pytest.approx(received["bits_per_second"] / 1e6)
        carried = [flow for flow in document["flows"] if flow.get("printed")]
        (flow,) = [one for one in carried if one["printed"]["program"] == name]
        # What was received, not what its sender had written.
        assert flow["printed"]["goodput_mbps"] == said["goodput_mbps"]
        assert flow["printed"]["goodput_mbps"] == pytest.approx(flow["goodput_mbps"], rel=0.2)
    # Services were waited for, each for its own port, and stopped in the end.
    server, second = programs["server"], programs["second"]
    assert server["started_s"] <= server["listening_s"] <= second["started_s"]
    assert second["listening_s"] <= programs["load"]["started_s"]
    assert (server["code"], server["ended_s"]) == (None, None)
    assert programs["load"]["at"] == "phone"
    assert 0.5 <= programs["ping"]["started_s"] < 1.0 + second["listening_s"]
    # A UE to which the scenario gives no flow has its rows.
    radio = {entry["id"]: entry for entry in json.loads(done.stdout)["radio"]}
    assert radio["car.down"]["throughput_mbps"] > 1.0


@needs_root
def test_a_failing_program_is_said(airpath_command: Command, tmp_path: Path) -> None:
    text = DELAYS + _program("echo out; echo no luck >&2; exit 9", name="bad")
    done, programs = _run(airpath_command, tmp_path, text + _program("sleep 0.2", name="good"))
    assert done.returncode == 9
    assert (programs["bad"]["code"], programs["good"]["code"]) == (9, 0)
    assert programs["bad"]["said"] == "no luck"
    assert programs["bad"]["wrote"] == "out\n"
    shown = airpath_command("emulate", str(tmp_path / "session.toml"))
    assert "bad at ue failed with code 9 after 0.0 s: no luck" in shown.stderr
    # Beside a command its code counts, and the failure is still said.
    shown = airpath_command("emulate", str(tmp_path / "session.toml"), "--", "sleep", "0.3")
    assert shown.returncode in (0, 3)
    assert "bad at ue failed with code 9" in shown.stderr


@skip_without("ip")
def test_output_is_kept_up_to_a_bound_and_what_is_dropped_is_counted(
    airpath_command: Command, tmp_path: Path
) -> None:
    much = "head -c 80000000 /dev/zero | tr '\\0' x; printf '\\nthe end\\n'; exit 5"
    text = DELAYS + _program(much, name="loud") + _program("echo quiet", name="quiet")
    done, programs = _run(airpath_command, tmp_path, text)
    assert done.returncode == 5, done.stderr
    kept = 64 * 2**20
    assert (tmp_path / "run/programs/loud.stdout").stat().st_size == kept
    dropped = programs["loud"]["dropped"]
    assert dropped.keys() == {"stdout"}
    assert dropped["stdout"]["bytes"] == 80_000_000 + len("\nthe end\n") - kept
    # What it said last is known all the same.
    assert programs["loud"]["said"] == "the end"
    assert (programs["quiet"]["dropped"], programs["quiet"]["wrote"]) == ({}, "quiet\n")
    said = airpath_command("emulate", str(tmp_path / "session.toml")).stderr
    bytes_said = f"loud at ue: {dropped['stdout']['bytes']} bytes of stdout are not kept: "
    assert bytes_said + "the first 64 MiB of a stream are kept" in said


@needs_root
def test_one_program_ends_the_run(airpath_command: Command, tmp_path: Path) -> None:
    text = (
        DELAYS
        + _program("trap 'echo bye; exit' TERM; while :; do sleep 0.02; done", name="long")
        + _program("sleep 0.5", name="short", ends_run=True)
        + _program("true", name="never", start_s=60)
    )
    began = time.monotonic()
    done, programs = _run(airpath_command, tmp_path, text)
    assert done.returncode in (0, 3), done.stderr
    assert time.monotonic() - began < 20
    # It may still write what it has to say.
    assert programs["long"]["wrote"] == "bye\n"
    assert (programs["long"]["code"], programs["short"]["code"]) == (None, 0)
    assert programs["never"]["started_s"] is None


@needs_root
@pytest.mark.parametrize("service", ["sleep 60", "exit 3"])
def test_a_service_that_does_not_listen_is_said(
    airpath_command: Command, tmp_path: Path, service: str
) -> None:
    text = DELAYS + _program(service, name="mute", at="server", wait_for="listen")
    (tmp_path / "session.toml").write_text(text)
    done = airpath_command("emulate", "session.toml", "--out", "run", "--", "true")
    assert done.returncode in (0, 3), done.stderr
    said = "did not listen" if service == "sleep 60" else "failed with code 3"
    assert f"mute at server {said}" in done.stderr
    summary = json.loads((tmp_path / "run/summary.json").read_text())
    programs = {program["name"]: program for program in summary["emulation"]["programs"]}
    assert programs["mute"]["silent"]
    waited = programs["command"]["started_s"] - programs["mute"]["started_s"]
    assert (waited >= 5.0) == (service == "sleep 60")


@skip_without("iperf3")
def test_services_alone_never_end(airpath_command: Command, tmp_path: Path) -> None:
    text = DELAYS + _program("exec iperf3 -s", at="server", wait_for="listen")
    done, _ = _run(airpath_command, tmp_path, text)
    assert done.returncode == 2
    assert "ends_run = true" in done.stderr
    assert not (tmp_path / "run").exists()


@needs_root
def test_a_signal_ends_a_session(tmp_path: Path) -> None:
    """Every program gets it, and none starts any more; the run directory is kept."""
    ready = tmp_path / "ready"
    script = f"trap 'exit 4' TERM; touch {ready}; while :; do sleep 0.02; done"
    scenario = tmp_path / "session.toml"
    scenario.write_text(DELAYS + _program(script) + _program("true", name="later", start_s=99))
    running = start_command("emulate", str(scenario), cwd=tmp_path, stderr=subprocess.PIPE)
    assert until(ready.exists)
    running.send_signal(signal.SIGTERM)
    _, said = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 4, said.decode()
    assert b"later at ue was not started" in said


TWO_THREADS = """
import sys, threading
from pathlib import Path
from airpath import scenario
from airpath.drivers.emulate import emulate
from airpath.drivers.options import EmulationOptions
loaded, codes = scenario.load(sys.argv[1], None), {}
def run(name):
    script = f"trap 'exit 4' TERM; touch {name}; while :; do sleep 0.02; done"
    options = EmulationOptions(command=["sh", "-c", script], out=Path(f"run-{name}"))
    done = emulate(loaded, options)
    codes[name] = done.summary["emulation"]["exit_code"]
threads = [threading.Thread(target=run, args=(name,)) for name in ("a", "b")]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sorted(codes.items()))
"""


@skip_without("ip")
def test_a_signal_reaches_the_commands_of_two_emulations_in_one_process(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(DELAYS)
    words = [sys.executable, "-c", TWO_THREADS, "s.toml"]
    running = start(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    started = until(lambda: (tmp_path / "a").exists() and (tmp_path / "b").exists())
    running.send_signal(signal.SIGTERM)
    out, said = running.communicate(timeout=60)
    assert started, said
    assert out == "[('a', 4), ('b', 4)]\n", said


HELD = """
import os, select, sys, threading
from pathlib import Path
from airpath import scenario
from airpath.drivers.emulate import emulate
loaded = scenario.load(sys.argv[1], None)
reader, writer = os.pipe()
script = "touch ready; until [ -e done ]; do sleep 0.02; done"
thread = threading.Thread(target=lambda: emulate(loaded, ["sh", "-c", script], out=Path("run")))
thread.start()
while thread.is_alive() and not Path("ready").exists(): thread.join(0.02)
os.close(writer)
print(select.select([reader], [], [], 5)[0] == [reader])
Path("done").touch()
thread.join()
"""


@skip_without("ip")
def test_a_run_holds_no_descriptor_of_its_process(tmp_path: Path) -> None:
    """A kept descriptor could keep `ip -batch -` of a parallel run from seeing its input's end."""
    (tmp_path / "s.toml").write_text(DELAYS)
    words = [sys.executable, "-c", HELD, "s.toml"]
    running = start(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, said = running.communicate(timeout=PATIENCE_S)
    assert out == "True\n", said


def test_a_simulation_says_that_it_runs_none(airpath_command: Command, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        DELAYS + _program("true", name="web") + "[run]\nduration_s = 1\n"
    )
    done = airpath_command("run", str(tmp_path / "s.toml"))
    assert done.returncode == 0, done.stderr
    assert "programs are not simulated; `airpath emulate` runs them: web" in done.stderr
