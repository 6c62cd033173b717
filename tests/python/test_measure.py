"""`airpath measure` against `airpath serve`, over loopback, as a user types them."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from airpath.measure.measurement import resumed
from airpath.runs.results import Run

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
