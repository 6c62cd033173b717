"""What an idle ping waits for: the simulator against the closed form of docs/concepts/uplink.md."""

from __future__ import annotations

import pytest

from airpath_dev.pages import uplink

PINGS = 300


def test_the_chains_of_the_page() -> None:
    def spread(carrier: int, proactive: bool) -> tuple[float, float]:
        period = len(uplink.CARRIERS[carrier].pattern) * uplink.CARRIERS[carrier].slot_ms
        case = uplink.Case(uplink.CARRIERS[carrier], 10, period if proactive else None)
        spreads = uplink.closed_form(case)
        return float(min(low for low, _, _ in spreads)), float(max(high for _, high, _ in spreads))

    nr, lte = 1, 4
    assert spread(nr, proactive=False) == (5.5, 15.5)
    assert spread(nr, proactive=True) == (3, 5.5)
    assert spread(lte, proactive=False) == (14.5, 24.5)


def test_idle_pings_are_the_closed_form() -> None:
    some = [
        case
        for case in uplink.cases()
        if case.period_ms == 10 and (case.drx is None or case.drx.cycle_ms == 80)
    ]
    assert len(some) == 2 * len(uplink.CARRIERS) + 2
    for case in some:
        row = uplink.run(case, PINGS)
        assert row["lost"] == 0
        width = row["closed_max"] - row["closed_min"]
        assert row["closed_min"] - 1e-6 <= row["min"]
        assert row["max"] <= row["closed_max"] + 1e-6
        # The pings sample the phases evenly, one in PINGS of the range apart.
        for figure in ("mean", "p5", "p50", "p95"):
            assert row[figure] == pytest.approx(row[f"closed_{figure}"], abs=0.02 * width), case
