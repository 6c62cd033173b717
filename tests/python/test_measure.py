"""`airpath measure` against `airpath serve`, over loopback, as a user types them."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from airpath.errors import AirpathError
from airpath.measure.control import Limits, Welcome
from airpath.measure.measurement import MeasureOptions, planned, resumed
from airpath.measure.outcome import Outcome, record
from airpath.measure.plan import Phase, Treatment
from airpath.measure.result import measure as measured
from airpath.measure.session import Session
from airpath.measure.stream import StreamReport
from airpath.runs.results import Run
from conftest import until
from measured_paths import FAR, needs_namespaces, routed, within

AIRPATH = [sys.executable, "-m", "airpath"]
TOKEN = "0123456789abcdef0123456789abcdef"


@contextmanager
def serving(place: Path) -> Iterator[tuple[str, Path, subprocess.Popen[str]]]:
    """A server with a limited rate, so that little data suffices: its port and its token's file."""
    token = place / "token"
    token.touch(0o600)
    token.write_text(TOKEN)
    command = [
        *AIRPATH, "serve", "--host", "127.0.0.1", "--port", "0", "--token-file", str(token),
        "--most-rate", "20Mb/s", "--sessions", "1",
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as served:
        try:
            assert served.stdout
            line = served.stdout.readline().split()
            yield line[line.index("--port") + 1], token, served
        finally:
            served.kill()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The port of a server, and its token's file."""
    with serving(tmp_path_factory.mktemp("serve")) as (port, token, _):
        yield port, token


def measure(
    server: tuple[str, Path], *options: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    port, token = server
    return subprocess.run(
        [*AIRPATH, "measure", "127.0.0.1", "--port", port, "--token-file", str(token), *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **variables},
    )


SHORT = ("--time", "18s", "--data", "60MB", "--seed", "5")


@pytest.mark.real_clock
def test_a_measurement_is_a_run(server: tuple[str, Path], tmp_path: Path) -> None:
    out, page = tmp_path / "run", tmp_path / "page.html"
    captures = ["--capture"] if os.geteuid() == 0 else []
    done = measure(server, *SHORT, *captures, "--out", str(out), "--report", str(page), "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    measured = document["measured"]
    assert measured["rates"][0]["direction"] == "down"
    assert measured["carried_bytes"] <= 60_000_000
    assert document["run"]["duration_s"] <= 20
    assert not measured["nat"]
    assert measured["captured"] == (["far", "near"] if captures else [])
    if captures:
        base = [one for one in document["flows"] if one["id"].endswith("-base")]
        kept = sorted((out / "captures").iterdir())
        assert {one.stat().st_mode & 0o777 for one in kept} == {0o600}
        assert [one.stem for one in kept] == sorted(one["id"] for one in base)
        assert (
            "Mb/s"
            in subprocess.run(
                [*AIRPATH, "diagnose", str(kept[0])], capture_output=True, text=True, check=True
            ).stdout
        )
    run = Run.open(out)
    assert run.provenance["driver"] == "measure"
    assert run.flows["bytes_delivered"].sum() == measured["carried_bytes"]
    assert run.flows["flow"].to_list() == [one["id"] for one in run.summary["flows"]]
    assert run.samples.height > 20
    assert run.pings["rtt_ms"].drop_nulls().max() < 1000  # type: ignore[operator]
    assert "10" in page.read_text()
    # Every phase of the plan ran, or the budget says why not.
    course = resumed(out)
    assert len(course.records) == len(course.plan.phases) or "spent" in measured["stopped"]
    again = subprocess.run(
        [*AIRPATH, "run", str(out / "twin.toml"), "--set", "run.duration_s=2", "--json"],
        capture_output=True,
        check=False,
        cwd=tmp_path,
    )
    assert again.returncode == 0, again.stderr


@pytest.mark.real_clock
def test_ctrl_c_keeps_what_is_there_and_resume_goes_on(
    server: tuple[str, Path], tmp_path: Path
) -> None:
    port, token = server
    out = tmp_path / "part"
    command = [*AIRPATH, "measure", "127.0.0.1", "--port", port, "--token-file", str(token)]
    with subprocess.Popen(
        [*command, *SHORT, "--out", str(out)], stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stderr
        for line in running.stderr:
            if line.startswith("idle"):
                running.send_signal(signal.SIGINT)
                break
        rest = running.stderr.read()
    assert running.returncode == 130, rest
    assert "is partial" in rest
    before = digest(out)
    records = resumed(out).records
    whole = tmp_path / "whole"
    done = measure(server, "--resume", str(out), "--time", "18s", "--out", str(whole))
    assert done.returncode == 0, done.stderr
    assert digest(out) == before
    assert resumed(whole).records[: len(records)] == records
    assert resumed(whole).plan == resumed(out).plan
    assert len(resumed(whole).records) > len(records)


def digest(place: Path) -> dict[str, str]:
    return {
        str(one.relative_to(place)): hashlib.sha256(one.read_bytes()).hexdigest()
        for one in place.rglob("*")
        if one.is_file()
    }


def test_a_plan_sends_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [*AIRPATH, "measure", "192.0.2.1", "--plan", "--seed", "1"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "at most 500 MB" in done.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--until", "0"), "--until 0"),
        (("--until", "fast"), "--until fast"),
        (("--time", "soon"), "--time soon"),
        (("--data", "much"), "--data much"),
        (("--binding-lifetime", "1h"), "--binding-lifetime 1h"),
        (("--resume", "nowhere"), "nowhere is not a measurement"),
    ],
)
def test_bad_use_is_refused(
    server: tuple[str, Path], options: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    done = measure(server, *options, "--out", str(tmp_path / "run"))
    assert done.returncode == 2, done.stderr
    assert said in done.stderr
    assert not (tmp_path / "run").exists()


def test_who_does_not_know_the_token_is_not_served(
    server: tuple[str, Path], tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.touch(0o600)
    token.write_text("f" * 32)
    done = measure((server[0], token), "--out", str(tmp_path / "run"))
    assert done.returncode == 1
    assert "token" in done.stderr
    assert not (tmp_path / "run").exists()


def test_no_server_is_said(tmp_path: Path) -> None:
    done = subprocess.run(
        [*AIRPATH, "measure", "127.0.0.1", "--port", "9", "--out", str(tmp_path / "run")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "AIRPATH_TOKEN": TOKEN},
    )
    assert done.returncode == 1
    assert "is `airpath serve` running there?" in done.stderr


def test_a_damaged_record_is_refused(tmp_path: Path) -> None:
    from airpath.errors import InputError
    from airpath.measure.plan import draw, usual

    plan = draw(1, usual({"cubic", "bbr"}), ["down"], 60, 500_000_000)
    (tmp_path / "plan.json").write_text(json.dumps(plan.to_json()))
    for line in ('{"number": 999}', "[]", '{"number": -1}', "{", '{"number": 0, "probes": 3}'):
        (tmp_path / "phases.jsonl").write_text(line)
        with pytest.raises(InputError, match=r"phases\.jsonl:1"):
            resumed(tmp_path)


def test_what_a_queue_still_holds_at_the_end_is_not_in_the_rate() -> None:
    phase = Phase(0, 0, "tcp", "down", Treatment("base"), 2.0, 10**9)
    arrived = [(0.5, 250_000), (1.0, 500_000), (2.0, 1_000_000), (2.5, 1_250_000)]
    receiver = StreamReport(bytes=1_250_000, duration_s=2.5, arrived=arrived)
    figures = record(Outcome(phase, senders=[StreamReport()], receivers=[receiver]))["figures"]
    assert figures is not None
    assert figures["goodput_mbps"] == pytest.approx(4.0)
    assert figures["carried_bytes"] == 1_250_000


@needs_namespaces
@pytest.mark.real_clock
@pytest.mark.parametrize(
    ("dropped", "said", "causes"),
    [
        ("tcp dport 5212", "cannot connect", ["one-way-path"]),
        # The session opens, and the first transfer does not.
        ("meta length > 700", "", ["mtu"]),
    ],
)
def test_without_a_transfer_the_rest_is_measured(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    dropped: str,
    said: str,
    causes: list[str],
) -> None:
    monkeypatch.setattr("airpath.measure.session._PATIENCE_S", 1.5)
    (tmp_path / "token").touch(0o600)
    (tmp_path / "token").write_text(TOKEN)
    with routed() as path:
        words = f"serve --user root --host {FAR} --token-file {tmp_path / 'token'}"
        path.far.start(*AIRPATH, *words.split(), stdout=subprocess.DEVNULL)
        assert until(lambda: ":5212" in path.far.run("ss", "-Htln"), 20)
        path.nft(f"forward {dropped} drop")
        options = MeasureOptions(
            host=FAR, port=5212, token=TOKEN, time_s=14.0, seed=1, out=tmp_path / "out"
        )
        found = within(path.near, lambda: measured(options)).summary
    assert [one["cause"] for one in found["findings"]] == causes
    assert all(said in one for one in found["run"]["partial"])
    assert bool(found["run"]["partial"]) == bool(said)
    assert found["pings"]
    assert found["measured"]["mtu"]


class Untransferred(Session):
    """A session whose transfers fail in some directions."""

    uncaptured = ""
    opened_ms = 3.0

    def __init__(self, failing: Sequence[str], *, unprobed: str | None = None) -> None:
        self._failing, self.unprobed = failing, unprobed
        limits = Limits(64, 3600.0, 3600.0, 1 << 40, None)
        self.welcome = Welcome("", 0, None, ("192.0.2.1", 5212), limits, {"congestion": ["bbr"]})

    def run(self, phase: Phase, _: float | None, __: int) -> Outcome:
        if phase.direction in self._failing:
            return Outcome(phase, errors=["no connection: timed out"])
        stream = StreamReport(bytes=10**7, duration_s=2.0, arrived=[(1.0, 5 * 10**6), (2.0, 10**7)])
        return Outcome(phase, senders=[StreamReport()], receivers=[stream])

    def drain(self) -> None:
        pass

    def now(self) -> float:
        return 20.0


def test_a_direction_without_transfers_is_left_out_of_the_plan() -> None:
    options = MeasureOptions(host="h", port=1, token="", directions=("down", "up"), seed=1)
    course = planned(options, Untransferred(["up"]))
    assert {one.direction for one in course.plan.phases if one.kind == "tcp"} == {"down"}
    assert course.untransferred == ["no transfer is possible (up): no connection: timed out"]
    course = planned(options, Untransferred(["up", "down"]))
    assert {one.kind for one in course.plan.phases} == {"idle", "mtu"}
    assert [one.direction for one in course.plan.phases if one.kind == "mtu"] == ["down", "up"]
    assert course.plan.duration_s() <= 40
    assert len(course.untransferred) == 2
    with pytest.raises(AirpathError, match="no transfer is possible: no connection"):
        planned(options, Untransferred(["up", "down"], unprobed="no echo"))


def test_a_killed_server_is_said(tmp_path: Path) -> None:
    with serving(tmp_path) as (port, token, served):
        out = tmp_path / "run"
        near = [*AIRPATH, "measure", "127.0.0.1", "--port", port, "--token-file", str(token)]
        with subprocess.Popen(
            [*near, *SHORT, "--out", str(out)], stderr=subprocess.PIPE, text=True
        ) as running:
            assert running.stderr
            for told in running.stderr:
                if told.startswith("idle"):
                    served.kill()
                    break
            began = time.monotonic()
            rest = running.stderr.read()
        assert time.monotonic() - began < 30
    # What was measured until then is kept, and says what it lacks.
    assert running.returncode == 1, rest
    assert "failed with" in json.dumps(Run.open(out).summary["run"]["partial"]), rest
