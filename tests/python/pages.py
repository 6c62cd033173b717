"""Every kind of page that airpath writes, for tests that open all of them in a browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import airpath
from airpath.cli.judge import table_rows
from airpath.diagnose.files import diagnose
from airpath.drivers.emulate import emulate
from airpath.drivers.options import EmulationOptions
from airpath.judge import definition, verdicts
from airpath.judge.document import document
from airpath.judge.trials import Candidate
from airpath.report import write_report
from airpath.report.capture import write_case_report
from airpath.report.judge import write_judge_report
from airpath.report.study import write_study_report
from airpath.study.definition import load_study
from airpath.study.reproduce import reproduce
from airpath_dev.planted.capture import at_point
from measured_runs import written
from test_campaign_verdict import DEEP
from test_judge import BBR, CUBIC, TOY, row
from test_measure_compare import figures, plan

Maker = Callable[[Path], None]
"""Writes a page to a path; its folder is the maker's own."""


def run(page: Path) -> None:
    """A cell with its radio, and a cause with advice."""
    sets = {"run.duration_s": 5, "run.radio_log": True}
    write_report([airpath.run("handover", set=sets, explain="quick")], page)


def seeds(page: Path) -> None:
    write_report([airpath.run("random-loss", set={"run.duration_s": 10}, repeat=3)], page)


def several(page: Path) -> None:
    sets = {"run.duration_s": 20}
    write_report([airpath.run(name, set=sets) for name in ("bufferbloat", "codel")], page)


def live(page: Path) -> None:
    write_report([airpath.run("bufferbloat", set={"run.duration_s": 20})], page, live=True)


def emulated(page: Path) -> None:
    scenario = airpath.load("bufferbloat", {"run.duration_s": 2})
    options = EmulationOptions(flows=True, out=page.with_name("emulated"))
    write_report([emulate(scenario, options)], page)


def capture(page: Path) -> None:
    """Two files: a capture and the output of a program."""
    place = page.parent
    airpath.run("random-loss", out=place / "run", capture=True, set={"run.duration_s": 10})
    at_point(place / "run" / "capture.pcapng", place / "slow.pcapng", "server")
    lines = [
        f"64 bytes from 10.0.0.1: icmp_seq={number} ttl=64 time={20 + number % 7} ms"
        for number in range(1, 30)
    ]
    head = "PING 10.0.0.1 (10.0.0.1) 56(84) bytes of data."
    (place / "ping.txt").write_text("\n".join([head, *lines, ""]))
    files = [str(place / name) for name in ("slow.pcapng", "ping.txt")]
    write_case_report([(file, diagnose(file)) for file in files], None, page)


def campaign(page: Path) -> None:
    file = {**DEEP, "set": ["run.duration_s=2"], "explain": "quick", "seeds": 2}
    airpath.sweep(file, out=page.with_name("campaign"), workers=1).report(page)


def drawn_campaign(page: Path) -> None:
    """A campaign whose settings are drawn, not a grid."""
    file = {
        "title": "Queues and rates that were drawn",
        "scenario": "bufferbloat",
        "set": ["run.duration_s=2"],
        "sampling": "latin-hypercube",
        "samples": 16,
        "vary": [
            {"key": "path.down.0.queue_packets", "name": "queue", "low": 10, "high": 500,
             "integer": True, "scale": "log"},
            {"key": "path.down.0.rate_mbps", "name": "rate", "low": 1, "high": 20, "scale": "log"},
            {"key": "flow.0.congestion", "name": "cc", "values": ["cubic", "bbr"]},
        ],
    }  # fmt: skip
    airpath.sweep(file, out=page.with_name("campaign"), workers=1).report(page)


def plot(page: Path) -> None:
    """What ``airpath plot -o FILE.html`` writes."""
    campaign = airpath.sweep({**DEEP, "seeds": 2}, out=page.with_name("campaign"), workers=1)
    campaign.plot(figure="pings.rtt_ms_p95", x="queue", colour="cc").save(page)


def judge(page: Path) -> None:
    """Figures of a judgement that never ran, with faults."""
    made: Any = SimpleNamespace(candidates=[CUBIC, BBR, TOY], directory=page.parent, missing=[])
    rows = [
        row(cast(Candidate, one).label, case.path, share=dict.fromkeys(case.peers, (0.8, 0.9)))
        for case in definition.CASES
        for one in made.candidates
    ]
    told = document(made, rows, verdicts.faults(rows), 3)
    write_judge_report(told, table_rows(rows), page)


def measure(page: Path) -> None:
    """A measurement whose rate rises with a shorter queue."""
    place = written(page.with_name("measured"), plan(), figures(queue=4))  # type: ignore[arg-type]
    write_report([airpath.Run.open(place)], page)


def study(page: Path) -> None:
    found = load_study("3g-latency")
    write_study_report([(found, reproduce(found, repeat=1))], page)


WRITTEN: dict[str, Maker] = {
    made.__name__: made
    for made in (
        run, seeds, several, emulated, capture, campaign, drawn_campaign, plot, judge, measure,
        study, live,
    )
}  # fmt: skip
