"""Watching an emulation: the table on the terminal, and Prometheus."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from airpath.documents import Snapshot
from airpath.emulation.oam.alarms import HOLD_S, Alarms
from airpath.emulation.oam.grafana import PANELS, dashboard
from airpath.emulation.oam.live import view
from airpath.emulation.oam.metrics import Collector
from airpath.emulation.oam.monitoring import is_shell
from conftest import PATIENCE_S, UNEXPLAINED, Command, start, start_command
from emulated import needs_root, skip_without
from snapshot import radio, snapshot


def _text(before: Snapshot | None, now: Snapshot) -> str:
    console = Console(width=120, no_color=True, file=io.StringIO())
    with console.capture() as captured:
        console.print(view(before, now, "title", 500.0))
    return captured.get()


def test_rates_are_differences() -> None:
    """1 MB in 2 s are 4 Mb/s; 3,000 of 100,000 PRBs are 3 %; 3 of 12 blocks failed."""

    def at(time_s: float, k: int) -> Snapshot:
        down = radio(bytes=10**6 * k, blocks=12 * k, first_errors=3 * k, mcs_sum=240 * k)
        ue = {"id": "phone", "cell": "a", "rrc": "connected", "drx": "long_sleep"}
        one = {**snapshot(0)["directions"][0], "left_bytes": 500_000 * k, "late_p99_us": 700.0}
        flow = {"id": "tcp x", "direction": "up", "bytes": 250_000 * k, "retransmissions": 7}
        return snapshot(
            time_s,
            directions=[one, one],
            cells=[{"id": "a", "prbs": [3_000 * k, 0], "prbs_per_s": [50_000.0, 0.0]}],
            ues=[{**ue, "radio": [down, radio(queue_bytes=1_500)]}],
            flows=[{**flow, "rtt_ms": 12.34, "cwnd_segments": None}],
        )

    shown = _text(at(3.0, 1), at(5.0, 2))
    assert re.search(r"down +2\.00 +0 +0 +700 > 500", shown), shown
    assert re.search(r"a +3%", shown), shown
    assert re.search(r"phone +a +connected +long_sleep +4\.00 +0\.0 +25\.0% +20\.0", shown), shown
    assert re.search(r"tcp x +up +1\.00 +12\.3 +7", shown), shown
    # The first snapshot is a difference to nothing.
    assert re.search(r"down +0\.80", _text(None, at(5.0, 1)))


def _exposed(collector: Collector) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry()
    registry.register(collector)
    return _samples(generate_latest(registry).decode())


def _samples(text: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_alarms_are_raised_and_go_out() -> None:
    snapshots: list[Snapshot | None] = [None]
    alarms = Alarms(0.0005)
    collector = Collector(lambda: snapshots[-1], 0.0005, {"scenario": "x"}, alarms)
    assert _exposed(collector)["airpath_up", frozenset()] == 0.0

    def raised() -> set[str]:
        return {
            dict(labels)["alarm"]
            for (name, labels), value in _exposed(collector).items()
            if name == "airpath_alarm" and value == 1.0
        }

    def show(time_s: float, full: int, failed: int, late_us: float) -> None:
        one = {
            **snapshot(0)["directions"][0],
            **{"dropped": [["queue_full", full], ["loss", 5]], "late_p99_us": late_us},
        }
        mobility = [["radio_link_failure", failed], ["handover_complete", 9]]
        now = snapshot(time_s, directions=[one, one], mobility=mobility)
        snapshots.append(now)
        alarms.update(now)

    show(1.0, 0, 0, 499.0)
    assert raised() == set()
    show(2.0, 3, 0, 499.0)
    assert raised() == {"buffer_full"}
    show(2.0 + HOLD_S, 3, 1, 501.0)
    assert raised() == {"buffer_full", "radio_link_failure", "lateness"}
    show(2.1 + HOLD_S, 3, 1, 499.0)
    assert raised() == {"radio_link_failure"}


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.fixture(scope="module")
def exposition(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """What Prometheus got during a run over a radio with a flow, and the run's document."""
    place, port = tmp_path_factory.mktemp("metrics"), _free_port()
    pipe = subprocess.PIPE
    running = start_command(
        *("emulate", *UNEXPLAINED, "nr-n78", "--json"),
        *("--metrics", str(port), "--server", "exec iperf3 -s", "--"),
        *("sh", "-c", "iperf3 -c server -t 1 -R; read line"),
        cwd=place,
        stdin=pipe,
        stdout=pipe,
        stderr=pipe,
    )
    text = ""
    for _ in range(100):
        time.sleep(0.1)
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
                text = answer.read().decode()
        except OSError:
            continue
        left = _samples(text).get(
            ("airpath_left_packets_total", frozenset({("direction", "down")})), 0
        )
        if left > 1000 and _samples(text).get(("airpath_elapsed_seconds", frozenset()), 0) > 2.5:
            break
    out, said = running.communicate(b"\n", timeout=PATIENCE_S)
    assert running.returncode in (0, 3), said.decode()
    return text, json.loads(out)


@needs_root
def test_what_prometheus_gets_is_what_happened(exposition: tuple[str, dict[str, Any]]) -> None:
    text, document = exposition
    samples = _samples(text)

    def value(name: str, **labels: str) -> float:
        return samples[f"airpath_{name}", frozenset(labels.items())]

    down = document["emulation"]["directions"]["down"]
    # Nothing passed after the last look but what still waited.
    assert 0 <= down["left"] - value("left_packets_total", direction="down") <= 20
    radio = next(entry for entry in document["radio"] if entry["id"].endswith(".down"))
    ue = radio["id"].removesuffix(".down")
    again = value("ue_harq_retransmissions_total", ue=ue, direction="down")
    assert again == radio["harq_retransmissions"]
    assert value("ue_prbs_total", ue=ue, direction="down") == pytest.approx(
        radio["prbs_per_s"] * document["run"]["duration_s"]
    )
    assert value("up") == 1.0
    assert value("lateness_bound_seconds") == 0.0005
    late = value("lateness_seconds", direction="down", quantile="0.99") * 1e6
    assert late == pytest.approx(down["lateness_us"]["p99"], rel=0.05, abs=20)
    # TS 38.101-1 table 5.3.2-1: 273 PRBs of 100 MHz at 30 kHz; 2,000 slots a second, of DDDSU.
    assert value("cell_prbs_per_second", cell="cell-0", direction="down") == 273 * 2000 * 4 / 5
    assert value("cell_prbs_per_second", cell="cell-0", direction="up") == 273 * 2000 / 5
    assert value("ue_connected", ue=ue, cell="cell-0") == 1.0


@needs_root
def test_windows_of_a_programs_senders_are_seen(
    exposition: tuple[str, dict[str, Any]],
) -> None:
    """Nothing but the watch knows them: iperf3's sockets are its own."""
    text, document = exposition
    samples = _samples(text)
    payload = {
        dict(labels)["flow"]: value
        for (name, labels), value in samples.items()
        if name == "airpath_flow_payload_bytes_total"
    }
    most = max(payload, key=lambda flow: payload[flow])
    window = samples["airpath_flow_cwnd_segments", frozenset({("flow", most)})]
    last = next(flow for flow in document["flows"] if flow["id"] == most)
    # More than the initial window (RFC 6928), and no more than was sent in all.
    assert 10 < window < last["bytes_delivered"] / 1000


@needs_root
def test_names_and_units_are_as_prometheus_wants_them(
    exposition: tuple[str, dict[str, Any]],
) -> None:
    """prometheus.io/docs/practices/naming; what `promtool check metrics` looks at."""
    families = list(text_string_to_metric_families(exposition[0]))
    names = [family.name for family in families]
    assert len(names) == len(set(names)) > 30
    for family in families:
        assert re.fullmatch(r"airpath(_[a-z0-9]+)+", family.name), family.name
        assert family.documentation.endswith("."), family.name
        assert not re.search(r"(_ms|_us|_mbps|_kb|_count|_total)$", family.name), family.name
        for sample in family.samples:
            assert sample.name.endswith("_total") == (family.type == "counter"), sample.name


@needs_root
def test_every_query_of_the_dashboard_names_a_metric(
    exposition: tuple[str, dict[str, Any]], airpath_command: Command
) -> None:
    families = {family.name: family for family in text_string_to_metric_families(exposition[0])}
    known = {name + ("_total" if f.type == "counter" else "") for name, f in families.items()}
    printed = json.loads(airpath_command("metrics", "dashboard").stdout)
    assert printed == dashboard()
    asked = {
        metric
        for panel in printed["panels"]
        for target in panel["targets"]
        for metric in re.findall(r"airpath_\w+", target["expr"])
    }
    assert asked <= known, asked - known
    assert len(asked) >= len(PANELS)
    # A legend may only use labels that the metric has.
    for panel in printed["panels"]:
        for target in panel["targets"]:
            metric = re.findall(r"airpath_\w+", target["expr"])[0].removesuffix("_total")
            labels = {label for sample in families[metric].samples for label in sample.labels}
            used = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            assert used <= labels or not labels, (metric, used, labels)


@skip_without()
def test_a_port_in_use_is_said(airpath_command: Command) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = airpath_command("emulate", "nr-n78", "--metrics", str(port), "--", "true")
    assert done.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr


@needs_root
def test_a_terminal_shows_the_table_and_what_the_command_says(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    running = start(
        [
            *(sys.executable, "-m", "airpath", "emulate", "nr-n78", "--"),
            *("sh", "-c", "test -t 1 && echo a terminal; ping -q -c 15 -i 0.1 server"),
        ],
        cwd=tmp_path,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "50"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    seen = b""
    while True:
        try:
            seen += os.read(ours, 4096)
        except OSError:
            break
    os.close(ours)
    assert running.wait(PATIENCE_S) in (0, 3)
    text = seen.decode()
    for said in ("a terminal", "15 received", "late p99 us", "connected", "icmp", "PRBs down"):
        assert said in text, text
    assert "run directory" in text


def test_only_a_bare_shell_is_a_shell() -> None:
    assert is_shell(["/bin/bash", "-i"])
    assert not is_shell(["sh", "-c", "true"])
    assert not is_shell(["ping", "server"])
    assert not is_shell([])
