"""A second server in the same measurement: `airpath measure --also`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from airpath.cli.measure import _other
from airpath.errors import InputError
from airpath.measure.causes import Seen, name
from airpath.measure.effects import Effect
from airpath.measure.placement import Placement, Servers, judge
from airpath.measure.plan import ALSO, BASE, OTHER_SERVER, Known, Plan, Treatment, draw, usual
from test_measure_causes import HEALTHY, effect

AIRPATH = [sys.executable, "-m", "airpath"]
TWO = Servers(also="upf.example")


def beside(rate: Effect, trips: Effect, servers: Servers = TWO) -> Seen:
    return replace(
        HEALTHY,
        rate={**HEALTHY.rate, ALSO: rate},
        idle_ms={**HEALTHY.idle_ms, ALSO: trips},
        servers=servers,
    )


def judged(rate: Effect, trips: Effect, servers: Servers = TWO) -> Placement:
    found = judge({ALSO: rate}, {ALSO: trips}, servers)
    assert found is not None
    return found


SAME_RATE, SAME_TRIPS = effect(ALSO, 1.0), effect(ALSO, 1.0, 25.0)


def test_a_server_that_does_better_makes_placement_the_cause() -> None:
    (first, *_) = name(beside(effect(ALSO, 4.0), SAME_TRIPS))
    assert first.cause == "placement"
    assert first.metric == "goodput_mbps"
    assert first.advice == "Place the server next to the UPF."
    assert "With upf.example as the server the rate is 40 Mb/s instead of 10 Mb/s" in first.evidence
    assert "95 %" in first.evidence
    (first, *_) = name(beside(SAME_RATE, effect(ALSO, 0.4, 25.0)))
    assert (first.cause, first.metric) == ("placement", "rtt_ms.mean")


def test_a_server_that_does_not_is_said_to_be_no_cause() -> None:
    found = judged(SAME_RATE, SAME_TRIPS)
    assert found.verdict == "none"
    assert "placement" not in [one.cause for one in name(beside(SAME_RATE, SAME_TRIPS))]
    # One that is worse is none either.
    assert judged(effect(ALSO, 0.3), effect(ALSO, 4.0, 25.0)).verdict == "none"


def test_wide_intervals_leave_it_open() -> None:
    assert judged(effect(ALSO, 1.1, spread=2.0), SAME_TRIPS).verdict == "open"
    assert judged(SAME_RATE, effect(ALSO, 0.9, 25.0, spread=2.0)).verdict == "open"


def test_less_than_a_millisecond_is_no_placement() -> None:
    assert judged(SAME_RATE, effect(ALSO, 0.5, 0.3)).verdict == "none"


@pytest.mark.parametrize(
    "servers",
    [
        Servers(limit_mbps=10.5, also="upf.example"),
        Servers(also="upf.example", also_limit_mbps=41.0),
    ],
)
def test_a_rate_that_a_server_bounds_does_not_count(servers: Servers) -> None:
    found = judged(effect(ALSO, 4.0), SAME_TRIPS, servers)
    assert found.verdict == "none"
    assert "--most-rate" in found.said


def test_another_ip_version_is_said() -> None:
    servers = Servers(also="upf.example", families=("IPv4", "IPv6"))
    assert "over IPv6, this server over IPv4" in judged(SAME_RATE, SAME_TRIPS, servers).said


def drawn(*others: Treatment) -> Plan:
    base, *rest = usual({"cubic", "bbr"}, "cubic")
    return draw(3, [base, *others, *rest], ["down"], 120, 500_000_000, Known(20, 40))


def test_the_other_server_is_a_treatment_of_every_block() -> None:
    plan = drawn(OTHER_SERVER)
    for kind in ("idle", "tcp"):
        blocks = {one.block for one in plan.phases if one.kind == kind}
        with_it = [one.block for one in plan.phases if one.kind == kind and one.treatment.other]
        assert sorted(with_it) == sorted(blocks)
    # The first probe after silence is one to the server that is measured.
    (quiet,) = (one for one in plan.phases if one.quiet_s)
    assert not quiet.treatment.other
    assert Plan.from_json(json.loads(json.dumps(plan.to_json()))) == plan
    assert any("with the other server" in line for line in plan.lines())


def test_plans_from_before_there_were_others_are_read() -> None:
    table = json.loads(json.dumps(drawn().to_json()))
    for phase in table["phases"]:
        del phase["treatment"]["other"]
    assert Plan.from_json(table) == drawn()


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("upf.example", "upf.example", 7000),
        ("upf.example:5213", "upf.example", 5213),
        ("[2001:db8::1]:5213", "2001:db8::1", 5213),
        ("2001:db8::1", "2001:db8::1", 7000),
    ],
)
def test_the_second_server_is_spelled_as_usual(text: str, host: str, port: int) -> None:
    found = _other(text, None, 7000, "secret")
    assert found is not None
    assert (found.host, found.port, found.token) == (host, port, "secret")
    assert "secret" not in repr(found)


@pytest.mark.parametrize("text", ["", "upf.example:0", "upf.example:99999", "[::1]:x"])
def test_other_spellings_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="--also"):
        _other(text, None, 7000, "secret")


@contextmanager
def serving(host: str, token: Path) -> Iterator[str]:
    command = [
        *AIRPATH, "serve", "--host", host, "--port", "0", "--token-file", str(token),
        "--most-rate", "20Mb/s", "--sessions", "1",
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as served:
        try:
            assert served.stdout
            line = served.stdout.readline().split()
            yield line[line.index("--port") + 1]
        finally:
            served.kill()


@pytest.mark.real_clock
def test_two_servers_with_tokens_of_their_own(tmp_path: Path) -> None:
    tokens = [tmp_path / "one", tmp_path / "two"]
    for at, token in enumerate(tokens):
        token.touch(0o600)
        token.write_text(str(at) * 32)
    out = tmp_path / "run"
    with ExitStack() as stack:
        ports = [stack.enter_context(serving("127.0.0.1", token)) for token in tokens]
        command = [
            *AIRPATH, "measure", "127.0.0.1", "--port", ports[0], "--token-file", str(tokens[0]),
            "--also", f"127.0.0.1:{ports[1]}", "--also-token-file", str(tokens[1]),
            "--time", "18s", "--data", "60MB", "--seed", "5", "--out", str(out), "--json",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        # The plan needs its second server again.
        alone = [*command[: command.index("--also")], "--again", str(out)]
        refused = subprocess.run(
            alone, capture_output=True, text=True, check=False, timeout=60, env={**os.environ}
        )
    assert refused.returncode == 2, refused.stderr
    assert "--also" in refused.stderr
    measured = json.loads(done.stdout)["measured"]
    assert measured["also"]["limit_mbps"] == measured["limit_mbps"]
    (placed,) = measured["also"]["placement"]
    assert placed["verdict"] in ("none", "open")
    assert "--most-rate" in placed["said"]
    with_it = [one for one in measured["phases"] if one["treatment"] == ALSO]
    assert {one["kind"] for one in with_it} == {"idle", "tcp"}
    assert not any(one["errors"] for one in with_it)
    # Both servers' phases are on one clock.
    ends = [one["ended_s"] for one in measured["phases"]]
    assert ends == sorted(ends)
    assert {one["treatment"] for one in measured["phases"]} > {ALSO, BASE}
