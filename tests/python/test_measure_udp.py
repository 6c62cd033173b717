"""UDP phases in the result: the flows table, the sums of a direction, and the sentences."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from airpath.measure import result
from airpath.measure.analysis import rate_found
from airpath.measure.datagrams import Load, Meter, Sent
from airpath.measure.document import Record
from airpath.measure.measurement import Course, _pacing, told
from airpath.measure.outcome import Outcome, record
from airpath.measure.plan import UDP_SHARES, Direction, Known, Phase, Plan, Treatment, draw, usual
from airpath.measure.serve import Server, ServerOptions
from airpath.measure.session import Session
from airpath.measure.stamp import LOAD_DOWN, Packet
from airpath.measure.udp import phases_together, sentences

LOST = 7


def course() -> Course:
    """A plan whose UDP phases alone have run; each lost some datagrams in one burst."""
    drawn = draw(1, usual({"cubic"}), ["down"], 120, 10**9, Known(10))
    records = []
    for phase in drawn.phases:
        if phase.kind != "udp":
            continue
        load = Load(phase.number, "down", 10 * UDP_SHARES[phase.treatment.name], 1232, 0.6)
        meter = Meter(load)
        for sequence in range(load.datagrams):
            if not 100 <= sequence < 100 + LOST:
                at_ns = 10**18 + sequence * 10**6
                meter.take(Packet(sequence, LOAD_DOWN, 1, 0, at_ns, 1, 1), 1232, at_ns + 10**7)
        report = meter.report().with_sent(Sent(load.datagrams, 0.6))
        records.append(record(Outcome(phase, udp=(load, report), ended_s=1.0)))
    return Course(drawn, records)


def test_datagrams_are_flows_of_the_run(tmp_path: Path) -> None:
    found = course()
    result._write_tables(tmp_path, found, {})
    flows = pl.read_parquet(tmp_path / "flows.parquet")
    assert flows["kind"].unique().to_list() == ["udp"]
    assert flows["packets_lost"].to_list() == [LOST] * len(found.records)
    assert (flows["packets_sent"] > 200).all()
    assert flows["jitter_ms"].null_count() == 0


def test_phases_of_a_rate_are_summed_up() -> None:
    found = course()
    both = phases_together(found.pairs())
    assert [one["treatment"] for one in both] == list(UDP_SHARES)
    assert sum(one["phases"] for one in both) == len(found.records) == 6
    for one in both:
        assert (one["lost"], one["loss_bursts"], one["longest_burst"]) == (2 * LOST, 2, LOST)
        assert one["lost_share"] == one["lost"] / one["sent"]
        assert one["sent_mbps"] == pytest.approx(10 * UDP_SHARES[one["treatment"]], rel=0.01)
    lines = list(sentences(both))
    assert lines[0].startswith("down, UDP at 50 % of the rate found (5.")
    assert "in 2 bursts of at most 7, 0 % reordered, jitter 0 ms" in lines[0]


def test_the_rate_is_a_share_of_the_fastest_treatment() -> None:
    found = course()
    udp = next(one for one in found.plan.phases if one.treatment.name == "udp-95")
    rates = {"base": 4.0, "paced": 3.0, "streams-4": 20.0}
    done = [
        (replace(one, number=one.number), rates.get(one.treatment.name, 1.0))
        for one in found.plan.phases
        if one.kind == "tcp" and one.block == 0
    ]
    records = [measured(phase, rate) for phase, rate in done]
    with_rates = Course(found.plan, records)
    assert rate_found(with_rates.pairs(), "down") == pytest.approx(20, rel=0.2)
    assert _pacing(with_rates, udp) == pytest.approx(0.95 * rate_found(with_rates.pairs(), "down"))


def measured(phase: Phase, rate_mbps: float) -> Record:
    """A transfer at a steady rate."""
    from airpath.measure.stream import StreamReport

    whole = [(at / 100, round(rate_mbps * 125_000 * at / 100)) for at in range(1, 301)]
    receiver = StreamReport(bytes=whole[-1][1], duration_s=3.0, arrived=whole)
    outcome = Outcome(
        replace(phase, duration_s=3.0), senders=[StreamReport()], receivers=[receiver]
    )
    return record(outcome)


def test_what_ran_is_narrated() -> None:
    found = course()
    phase, kept = found.pairs()[0]
    assert told(phase, kept).startswith(f"udp down, {phase.treatment.name}: ")
    assert "% lost" in told(phase, kept)


def test_a_plan_with_udp_survives_json() -> None:
    plan = course().plan
    assert Plan.from_json(plan.to_json()) == plan


def test_the_probes_that_prove_an_mtu_are_said() -> None:
    from airpath.measure.document import MtuDocument
    from airpath.measure.sentences import _sizes

    one: MtuDocument = {
        "direction": "down", "path_bytes": 1499, "too_large_bytes": 1500, "too_large_sent": 3,
        "black_hole": True, "icmp": [],
    }  # fmt: skip
    wanted = (
        "down: IP packets of 1499 bytes pass with DF set; of 3 probes of 1500 bytes none arrived "
        "(no ICMP error came back)"
    )
    assert list(_sizes([one])) == [wanted]
    refused: MtuDocument = {**one, "too_large_sent": 0}
    assert next(_sizes([refused])).endswith("the sender's interface has no larger MTU")
    assert not list(_sizes([{**one, "too_large_bytes": None}]))


@pytest.mark.real_clock
@pytest.mark.parametrize("direction", ["down", "up"])
def test_a_session_sends_datagrams_either_way(direction: Direction) -> None:
    token = "0123456789abcdef0123456789abcdef"
    with (
        Server(token, ServerOptions("127.0.0.1", 0, rate_mbps=40), lambda _: None).running() as far,
        Session("127.0.0.1", far.address[1], token) as session,
    ):
        phase = Phase(0, 0, "udp", direction, Treatment("udp-50"), 0.3, 10**7, size_bytes=1280)
        found = record(session.run(phase, 8.0, 10**7))["udp"]
        assert found is not None
        assert (found["lost"], found["size_bytes"]) == (0, 1252)
        assert found["sent"] == pytest.approx(240, abs=5)
        assert found["received_mbps"] == pytest.approx(8, rel=0.1)
        # With fewer bytes it is shorter.
        short = record(session.run(phase, 8.0, 128_000))["udp"]
        assert short is not None
        assert short["sent"] == pytest.approx(100, abs=2)
        # The four sessions of this server share 40 Mb/s.
        refused = session.run(phase, 12.0, 10**7)
        assert refused.errors == ["UDP at 12 Mb/s is left out: the limit is 10 Mb/s"]
