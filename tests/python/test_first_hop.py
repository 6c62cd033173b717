"""Buffers that follow the first hop's RTT: the rule, and the page that tries it on a study."""

from __future__ import annotations

from typing import Any

import pytest

import airpath
from airpath.errors import InputError
from airpath.study.definition import load_study
from airpath_dev import first_hop

SLOW = {"path.down.1.delay_ms": 200, "path.up.1.delay_ms": 200, "flow.0.window_bytes": 10240}


def _rule(whose: str, rtt_ms: float, rate_mbps: float) -> dict[str, Any]:
    return {
        "flow.0.buffer.from_first_hop": whose,
        "flow.0.buffer.first_hop_rtt_ms": rtt_ms,
        "flow.0.buffer.first_hop_mbps": rate_mbps,
    }


def _rate(**sets: Any) -> float:
    run = airpath.run("3g-latency/main", {**SLOW, **sets})
    rate = run.summary["flows"][0]["goodput_mbps"]
    assert rate is not None
    return rate


def test_the_rule_frees_a_flow_only_if_both_ends_follow_it() -> None:
    small = _rate()
    # The server's own 10 kB still limit the flow.
    assert _rate(**_rule("ue", 400, 0.35)) == pytest.approx(small, rel=0.05)
    assert _rate(**_rule("both", 400, 0.35)) > 1.5 * small
    # Without an RTT there is nothing to hold.
    assert _rate(**_rule("both", 0, 100)) == small


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        ({"flow.0.buffer.from_first_hop": "ue"}, "needs `buffer.first_hop_rtt_ms`"),
        ({"flow.0.buffer.from_first_hop": "server"}, "from_first_hop"),
        ({"flow.0.buffer.first_hop_mbps": 3}, "first_hop_mbps"),
    ],
)
def test_what_is_missing_or_unknown_is_named(sets: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        airpath.run("3g-latency/main", sets)


def test_the_page_tries_every_reading_on_every_row() -> None:
    study = load_study(first_hop.STUDY)
    figures = study.figures
    row = next(each for each in figures if each.id.endswith("1350k-rtt400-win64k"))
    assert first_hop.sets(study, row, None) == row.sets
    own, *_, half = (first_hop.sets(study, row, reading)[-2:] for reading in first_hop.READINGS)
    link = "flow.0.buffer.first_hop_mbps=1.35"
    assert own == ("flow.0.buffer.first_hop_rtt_ms=400", link)
    assert half == ("flow.0.buffer.first_hop_rtt_ms=200", link)
    none, transfer = (
        next(each for each in figures if name in each.id) for name in ("rtt0-", "100m")
    )
    assert first_hop.hop(study, none) == (0, 0.35)
    assert first_hop.hop(study, transfer) == (16, 100)
    found = first_hop.tried(study, 2)
    assert {len(outcomes) for outcomes in found.values()} == {1 + len(first_hop.READINGS)}
    without, with_link, with_modem = found[row][:3]
    # A rate that the link does not have fills its queue.
    assert with_modem.late_ms > 1.5 * with_link.late_ms
    assert without.rate == pytest.approx(with_link.rate, rel=0.15)
    page = "\n".join(first_hop.markdown(study, found))
    assert page.count("\n| ") == 1 + len(figures)
    assert page.count("the rate rises in") == len(first_hop.READINGS) - 1
    assert "alone, 3.6 Mb/s**: nothing changes in any of 8 rows." in page
