"""Compares transfers of `airpath measure` with iperf3's: rates and processor time (root).

Both alternate over one path with the system's own TCP settings: two namespaces with 1 Gb/s between
them (``tc-tbf``), then emulated LTE with 20 MHz. Each end's processor time is that of its process
over a transfer; the near end's is without the start of Python. Probes, TCP_INFO and the control
connection are in it, captures are not. Exit code 1: airpath adds more than 3 % of a core at 1 Gb/s,
or the rates of the second halves differ by more than 2 %; 3: the intervals are too wide to tell.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Annotated, Any, NamedTuple

import typer

from airpath.analysis.statistics import mean_interval
from airpath.errors import AirpathError
from airpath.measure.control import PORT
from airpath.measure.outcome import record
from airpath.measure.plan import BASE, Direction, Phase, Treatment
from airpath.measure.session import Session
from airpath_dev.harness import (
    FINE,
    NOT_CHECKED,
    WRONG,
    NotCheckedError,
    emulated,
    need,
    say,
    table,
)

_MOST_ADDED, _MOST_APART = 3.0, 2.0
"""Percent of a core, percent of the rate."""
_HOST = "10.98.0.1"
_TOKEN = "0123456789abcdef" * 2
_PROBE_GAP_S = 0.05
_PAUSE_S = 1.0
_EACH_END = ("near", "far")
_LTE = """
[radio]
preset = "lte-20"
[[path.down]]
stage = "delay"
delay_ms = 10
[[path.up]]
stage = "delay"
delay_ms = 10
[[flow]]
kind = "bulk"
"""
_SERVERS = """
iperf3 -s -J > FOLDER/iperf3.log 2>&1 &
echo $! > FOLDER/iperf3
echo $$ > FOLDER/airpath
exec AIRPATH serve --user root --host 0.0.0.0 --token-file FOLDER/token --most-data 1TB
"""


class Transfer(NamedTuple):
    """Rates, and the processor time of both ends in percent of a core."""

    steady: float
    whole: float
    near: float
    far: float


def main(
    runs: Annotated[int, typer.Option(min=2, help="Pairs of transfers.")] = 10,
    seconds: Annotated[int, typer.Option(min=2, help="Length of each transfer.")] = 6,
    only: Annotated[list[str] | None, typer.Option(help="gigabit or lte.")] = None,
    servers: Annotated[Path | None, typer.Option(hidden=True)] = None,
    host: Annotated[str, typer.Option(hidden=True)] = _HOST,
) -> int:
    """Compare transfers of airpath with iperf3's over the same path."""
    if servers is not None:
        transfers(servers, host, runs, seconds)
        return FINE
    need("ip", "tc", "iperf3", root=True)
    codes = []
    for name in only or ("gigabit", "lte"):
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            (place / "token").touch(0o600)
            (place / "token").write_text(_TOKEN)
            airpath = f"{sys.executable} -m airpath"
            script = _SERVERS.replace("AIRPATH", airpath).replace("FOLDER", folder)
            (place / "servers.sh").write_text(script)
            own = [sys.executable, "-m", "airpath_dev", "cost", "--runs", str(runs)]
            own += ["--seconds", str(seconds), "--servers", folder]
            (_gigabit if name == "gigabit" else _lte)(place, own)
            codes += _judged(name, json.loads((place / "found.json").read_text()))
    return WRONG if WRONG in codes else max(codes)


def _gigabit(place: Path, own: Sequence[str]) -> None:
    """Run the transfers between two namespaces, each of which sends at 1 Gb/s at most."""
    names = [f"airpath-cost-{os.getpid()}-{end}" for end in _EACH_END]
    with ExitStack() as stack:
        for name in names:
            subprocess.run(["ip", "netns", "add", name], check=True)
            stack.callback(subprocess.run, ["ip", "netns", "del", name], check=False)
        near, far = names
        _ip("link", "add", "cost0", "netns", near, "type", "veth", "peer", "cost0", "netns", far)
        for name, address in ((near, "10.98.0.2/24"), (far, f"{_HOST}/24")):
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "address", "add", address, "dev", "cost0")
            _ip("-n", name, "link", "set", "cost0", "up")
            shape = "root tbf rate 1gbit burst 128k latency 10ms"
            subprocess.run(
                ["tc", "-n", name, "qdisc", "add", "dev", "cost0", *shape.split()], check=True
            )
        inside = ["ip", "netns", "exec"]
        script = [*inside, far, "sh", str(place / "servers.sh")]
        serving = subprocess.Popen(script, stdout=subprocess.DEVNULL)
        try:
            done = subprocess.run([*inside, near, *own], check=False)
        finally:
            os.kill(_pid(place, "iperf3"), 15)
            serving.terminate()
            serving.wait()
        if done.returncode:
            raise NotCheckedError("the transfers did not run")


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


def _lte(place: Path, own: Sequence[str]) -> None:
    """Run the transfers inside an emulation of LTE."""
    scenario = place / "lte.toml"
    scenario.write_text(_LTE)
    done = emulated(scenario, place / "run", f"sh {place}/servers.sh", [*own, "--host", "server"])
    if done.returncode:
        raise NotCheckedError(f"the emulation ended with exit code {done.returncode}")


def transfers(place: Path, host: str, runs: int, seconds: int) -> None:
    """Alternate both programs, in each pair in the other order, and keep what they found."""
    pids = {one: _pid(place, one) for one in ("airpath", "iperf3")}
    found = []
    with _session(host) as session:
        for at in range(2 * runs):
            direction: Direction = "down" if at % 2 else "up"
            pair = {}
            for one in ("airpath", "iperf3") if at % 4 < 2 else ("iperf3", "airpath"):
                time.sleep(_PAUSE_S)
                session.stay()
                with _counted(pids[one]) as spent:
                    if one == "airpath":
                        rates = _airpath(session, direction, seconds)
                    else:
                        rates = _iperf3(host, direction, seconds)
                pair[one] = Transfer(*rates, *(100 * each / seconds for each in spent))
            found.append({"direction": direction, **pair})
            say(f"{direction}: " + ", ".join(f"{n} {t.whole:.2f} Mb/s" for n, t in pair.items()))
    (place / "found.json").write_text(json.dumps(found))


@contextmanager
def _session(host: str) -> Iterator[Session]:
    """A session with a server that may still be starting."""
    end = time.monotonic() + 20
    while True:
        try:
            session = Session(host, PORT, _TOKEN)
            break
        except AirpathError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)
    with session:
        yield session


@contextmanager
def _counted(server: int) -> Iterator[list[float]]:
    """Seconds of processor time of this end (with programs that it ran) and of a server."""
    spent: list[float] = []
    before = _own_s(), _server_s(server)
    yield spent
    spent += [_own_s() - before[0], _server_s(server) - before[1]]


def _own_s() -> float:
    each = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in each)


def _server_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    # proc_pid_stat(5): utime and stime are fields 14 and 15.
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _airpath(session: Session, direction: Direction, seconds: int) -> tuple[float, float]:
    """Rate of the second half of a transfer, and of all of it."""
    phase = Phase(0, -1, "tcp", direction, Treatment(BASE), seconds, 1 << 40, _PROBE_GAP_S)
    kept = record(session.run(phase, None, phase.most_bytes))
    if kept["figures"] is None or kept["errors"]:
        raise AirpathError(f"no transfer: {'; '.join(kept['errors'])}")
    every = [sum(one[second][0] or 0.0 for one in kept["seconds"]) for second in range(seconds)]
    return _rates(every)


def _iperf3(host: str, direction: Direction, seconds: int) -> tuple[float, float]:
    """Likewise, as the receiver says."""
    # The server of airpath listens on IPv4 only; headers of IPv6 are longer.
    command = ["iperf3", "-4", "-c", host, "-J", "-t", str(seconds), "--get-server-output"]
    command += ["-R"] if direction == "down" else []
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    said = json.loads(done.stdout)
    if "error" in said:
        raise AirpathError(f"iperf3: {said['error']}")
    told = said if direction == "down" else said["server_output_json"]
    every = [one["sum"] for one in told["intervals"][:seconds]]
    return _rates([one["bytes"] / one["seconds"] for one in every])


def _rates(seconds: Sequence[float]) -> tuple[float, float]:
    """Rates of bytes per second: the mean of the second half, and of all."""
    half = seconds[len(seconds) // 2 :]
    return 8e-6 * sum(half) / len(half), 8e-6 * sum(seconds) / len(seconds)


def _pid(place: Path, program: str) -> int:
    end = time.monotonic() + 20
    while time.monotonic() < end:
        file = place / program
        if file.exists() and (text := file.read_text().strip()):
            return int(text)
        time.sleep(0.1)
    raise NotCheckedError(f"{program} did not start")


def _judged(name: str, found: Sequence[dict[str, Any]]) -> list[int]:
    """Print what was found on a path, and judge it."""
    codes, rows = [], []
    for direction in ("up", "down"):
        own, other = (
            [Transfer(*one[who]) for one in found if one["direction"] == direction]
            for who in ("airpath", "iperf3")
        )
        for figure in Transfer._fields:
            ours, theirs = ([getattr(one, figure) for one in each] for each in (own, other))
            scale, most = 1.0, _MOST_ADDED
            if is_rate := figure in ("steady", "whole"):
                scale, most = 100 * len(theirs) / sum(theirs), _MOST_APART
            apart = mean_interval([scale * (a - b) for a, b in zip(ours, theirs, strict=True)])
            low, high = apart.bounds or (apart.mean, apart.mean)
            worst = max(-low, high) if is_rate else high
            best = max(0.0, low, -high) if is_rate else low
            # The processor time counts at 1 Gb/s; how slow start ends is chance.
            if figure == "steady" or (name == "gigabit" and not is_rate):
                codes.append(FINE if worst <= most else WRONG if best > most else NOT_CHECKED)
            rows.append(
                (name, direction, _NAMES[figure], _spread(ours), _spread(theirs),
                 f"{apart.mean:+.2f} % ({low:+.2f} to {high:+.2f})")
            )  # fmt: skip
    print(table("path|direction|figure|airpath|iperf3|difference, 95 % interval", rows))
    return codes


_NAMES = {
    "steady": "second half, Mb/s",
    "whole": "whole transfer, Mb/s",
    "near": "near end, % of a core",
    "far": "far end, % of a core",
}


def _spread(values: Sequence[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"
