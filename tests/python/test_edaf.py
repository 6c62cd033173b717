"""The comparison of the uplink with EDAF's measurement: its arithmetic, and the scenario."""

from __future__ import annotations

import pytest

from airpath_dev import edaf


def test_a_lone_packet_takes_the_slots_that_are_counted_by_hand() -> None:
    """As in crates/radio/tests/cell/openair.rs: PUSCHs in slots 18, 28 and 33 at MCS 19."""
    text = edaf.scenario({0: 1.0}).replace(
        "step_window_ms = 100 ", "fixed_mcs = 19\nfixed_bler = 0\nstep_window_ms = 100 "
    )
    for key in ("window_ms", "lower_bler", "upper_bler", "memory", "start_mcs"):
        text = "\n".join(line for line in text.splitlines() if not line.startswith(f"step_{key}"))
    parts = edaf._simulated(text, 1)[0]
    # Slot 18 begins at 9 ms, slot 38 at 19 ms; it ends 0.5 ms later, and 0.69 are for decoding.
    assert parts.wait == pytest.approx(8.0)
    assert parts.segmentation == pytest.approx(10.0)
    assert parts.whole == pytest.approx(19.69 - 1 + 0.5)
    assert (parts.blocks, parts.harq) == (4, 0)


def test_packets_that_the_measurement_left_out_were_sent_nevertheless() -> None:
    """And times are relative to the frames in which blocks were assembled."""
    rows = [_row(0, 100.0, frame=1023), _row(3, 130.0, frame=2)]
    times = edaf.arrivals(rows)
    # Blocks are assembled 4 ms after the packets: slot 18 begins 9 ms after its frame.
    assert list(times) == [0, 1, 2, 3]
    assert times[0] == pytest.approx(5.0, abs=0.1)
    assert times[1] - times[0] == pytest.approx(10.0)


def test_what_was_sent_before_moves_packets_by_whole_frames() -> None:
    """Their phase against the frames decides what they wait for."""
    times = edaf.warmed_up({7: 3.0, 8: 13.5, 9: 24.0}, 0.1)
    assert len(times) == 3 + 9
    assert (times[7] - 3.0) % 10 == pytest.approx(0)
    assert times[6] == pytest.approx(times[7] - 10.5)
    assert min(times.values()) >= 0


def _row(number: int, queued_ms: float, frame: int) -> dict[str, float]:
    """Return a packet that waits 4 ms for its block, in slot 18."""
    first = f"{edaf.SENT}.0"
    return {
        "seqno": number,
        "rlc.queue.timestamp": queued_ms / 1000,
        f"{first}.rlc.txpdu.timestamp": (queued_ms + 4) / 1000,
        f"{first}.mac.sdu.frame": frame,
        f"{first}.mac.sdu.slot": 18,
    }
