"""Each rule on a run made up for it, and on one that must not trigger it."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from airpath import diagnose as rules


def document(**changes: Any) -> dict[str, Any]:
    """A healthy download: the link is half used because the application sends no more."""
    flow = {
        "id": "download", "kind": "bulk", "direction": "down", "congestion": "cubic",
        "profile": "linux-6.1", "goodput_mbps": 4.75,
        "rtt_ms": {"min": 100.0, "mean": 105.0, "p50": 104.0, "p95": 110.0, "p99": 115.0},
        "retransmitted_segments": 0, "rto_count": 0, "steady_mbps": 4.8,
        "converged_after_s": 1.0,
        "limited_s": {"cwnd": 1.0, "receive_window": 0.0, "send_buffer": 0.0, "application": 19.0},
    }  # fmt: skip
    down = {
        "id": "down.0.link", "throughput_mbps": 5.0, "capacity_mbps": 10.0, "utilisation": 0.5,
        "queue_delay_ms": {"p50": 1.0, "p95": 5.0}, "dropped_packets": {},
    }  # fmt: skip
    up = {
        "id": "up.0.link", "throughput_mbps": 0.1, "capacity_mbps": 1.0, "utilisation": 0.1,
        "queue_delay_ms": {"p50": 0.1, "p95": 0.2}, "dropped_packets": {},
    }  # fmt: skip
    flow.update(changes.get("flow", {}))
    down.update(changes.get("down", {}))
    up.update(changes.get("up", {}))
    return {"run": {"simulated_s": 20.0}, "flows": [flow], "pings": [], "links": [down, up]}


ROW = {"flow": "download", "start_ns": 0, "end_ns": 20_000_000_000, "segments_sent": 8000}
FULL = {"throughput_mbps": 9.8, "utilisation": 0.98}


LINKS = {"time_ns": pl.Int64, "link": pl.String, "throughput_mbps": pl.Float64}
LINKS |= {"capacity_mbps": pl.Float64, "queue_delay_ms": pl.Float64}
EVENTS = {"kind": pl.String, "link": pl.String, "reason": pl.String, "packets": pl.UInt64}


def diagnose(
    run: dict[str, Any], row: dict[str, Any] = ROW, **tables: pl.DataFrame
) -> list[dict[str, Any]]:
    return rules.diagnose(run, {"flows": pl.DataFrame([row]), **tables}.get)


def limited(limit: str, seconds: float) -> dict[str, float]:
    rest = {"cwnd": 0.0, "receive_window": 0.0, "send_buffer": 0.0, "application": 0.0}
    return {**rest, "cwnd": 20.0 - seconds, limit: seconds}


def causes(**changes: Any) -> list[str]:
    return [finding["cause"] for finding in diagnose(document(**changes))]


@pytest.mark.parametrize(("waits_s", "found"), [(2.0, []), (18.0, ["receive-window"])])
def test_a_proxy_that_has_data_holds_the_flow_back(waits_s: float, found: list[str]) -> None:
    run = document(flow={"limited_s": limited("receive_window", 19.0)})
    proxy = {"application": waits_s, "cwnd": 20.0 - waits_s}
    run["proxies"] = [{"id": "download", "limited_s": proxy}]
    assert [finding["cause"] for finding in diagnose(run)] == found


def test_a_healthy_run_has_no_finding() -> None:
    assert causes() == []


@pytest.mark.parametrize(
    ("limit", "cause"), [("receive_window", "receive-window"), ("send_buffer", "send-buffer")]
)
def test_a_window_that_limits(limit: str, cause: str) -> None:
    run = document(flow={"limited_s": limited(limit, 16.0)})
    (finding,) = diagnose(run)
    assert finding["cause"] == cause
    assert finding["subject"] == "download"
    assert finding["confidence"] == pytest.approx(0.9)
    assert "80 % of the time" in finding["evidence"]
    # 10 Mb/s × 100 ms = 125 kB
    assert "125 kB" in finding["advice"]
    # 5 Mb/s are free, of which 4.75 of 5 are payload.
    assert finding["gain"] == {"metric": "goodput_mbps", "now": 4.75, "then": pytest.approx(9.5)}


def test_a_window_does_not_limit_a_full_link() -> None:
    flow = {"limited_s": limited("receive_window", 16.0), "goodput_mbps": 9.3}
    assert causes(flow=flow, down=FULL) == ["link-saturated"]


def test_a_window_without_a_link_has_advice_but_no_gain() -> None:
    run = document(flow={"limited_s": limited("receive_window", 16.0)})
    run["links"] = []
    (finding,) = diagnose(run)
    assert finding["gain"] is None


def test_a_deep_queue() -> None:
    down = {**FULL, "queue_delay_ms": {"p50": 400.0, "p95": 600.0}}
    findings = diagnose(document(flow={"goodput_mbps": 9.3}, down=down))
    assert [finding["cause"] for finding in findings] == ["deep-queue", "link-saturated"]
    deep = findings[0]
    assert deep["subject"] == "down.0.link"
    assert "400 ms" in deep["evidence"]
    assert deep["gain"] == {"metric": "rtt_ms", "now": 500.0, "then": 100.0}


def test_losses_on_a_link_with_room() -> None:
    flow = {"limited_s": limited("cwnd", 20.0), "retransmitted_segments": 160, "rto_count": 2}
    for place, advice in (("down.1.loss", "not from a full queue"), ("down.0.link", "125 kB")):
        row = {"kind": "drop", "link": place, "reason": "some_reason", "packets": 160}
        events = pl.DataFrame([row], schema=EVENTS)
        (finding,) = diagnose(document(flow=flow), events=events)
        assert finding["cause"] == "loss"
        assert "2 % of the segments retransmitted, 2 time-outs" in finding["evidence"]
        assert f"160 packets lost at {place} (some reason)" in finding["evidence"]
        assert advice in finding["advice"]
        assert finding["gain"]["then"] == pytest.approx(9.5)


def test_a_link_is_judged_over_the_life_of_the_flow() -> None:
    """A link that is idle half of the run is full while the flow uses it."""
    flow = {"limited_s": limited("cwnd", 10.0), "retransmitted_segments": 160}
    rows = [
        {
            "time_ns": second * 1_000_000_000, "link": "down.0.link",
            "throughput_mbps": 10.0 if second > 10 else 0.0, "capacity_mbps": 10.0,
            "queue_delay_ms": 300.0 if second > 10 else None,
        }
        for second in range(1, 21)
    ]  # fmt: skip
    links = pl.DataFrame(rows, schema=LINKS)
    half = {**ROW, "start_ns": 10_000_000_000}
    found = diagnose(document(flow=flow), half, links=links)
    assert [finding["cause"] for finding in found] == ["link-saturated", "deep-queue"]


def test_losses_of_a_full_link_are_its_way_of_saying_so() -> None:
    flow = {"limited_s": limited("cwnd", 20.0), "retransmitted_segments": 160}
    assert causes(flow=flow, down=FULL) == ["link-saturated"]


def test_a_test_too_short_for_its_ramp() -> None:
    (finding,) = diagnose(
        document(flow={"converged_after_s": 6.0, "steady_mbps": 9.0, "goodput_mbps": 7.0})
    )
    assert finding["cause"] == "slow-ramp"
    assert finding["gain"] == {"metric": "goodput_mbps", "now": 7.0, "then": 9.0}


def test_acknowledgements_that_fill_the_way_back() -> None:
    up = {"throughput_mbps": 0.98, "utilisation": 0.98}
    assert causes(up=up) == ["link-saturated", "reverse-path"]


def test_a_flow_that_carried_nothing_is_passed_over() -> None:
    assert causes(flow={"goodput_mbps": None, "rtt_ms": None, "limited_s": None}) == []


def test_findings_of_seeds_are_joined() -> None:
    finding = diagnose(document(down=FULL))
    (joined,) = rules.combine([finding, finding, []])
    assert joined["confidence"] == pytest.approx(0.63)
    assert joined["evidence"].endswith("(seen in 2 of 3 seeds)")


MOVES = {
    "time_ns": pl.Int64, "kind": pl.String, "link": pl.String, "reason": pl.String,
    "packets": pl.UInt64, "value": pl.Float64, "cell": pl.String,
}  # fmt: skip


def moves(*rows: tuple[str, str | None, int | None, float | None]) -> pl.DataFrame:
    """Events of the UE ``car``: kind, reason, packets, value."""
    link = "radio.car.down"
    return pl.DataFrame(
        [(0, kind, link, reason, packets, value, "east") for kind, reason, packets, value in rows],
        schema=MOVES,
        orient="row",
    )


def test_handovers_that_lose_packets_are_named() -> None:
    events = moves(
        ("handover_command", None, None, None),
        ("drop", "handover", 120, None),
        ("handover_complete", None, None, 50.0),
    )
    run = document(flow={"ue": "car"})
    (found,) = diagnose(run, events=events)
    assert (found["cause"], found["subject"]) == ("handover", "car")
    assert "1 handover of 50 ms" in found["evidence"]
    assert "120 packets lost" in found["evidence"]
    smooth = moves(("handover_command", None, None, None), ("handover_complete", None, None, 50.0))
    assert diagnose(run, events=smooth) == []
    (timeout,) = diagnose(document(flow={"ue": "car", "rto_count": 2}), events=smooth)
    assert "2 retransmission time-outs" in timeout["evidence"]


def test_links_that_fail_are_named() -> None:
    events = moves(
        ("radio_link_failure", None, None, None), ("handover_complete", None, None, 1200.0)
    )
    (found,) = diagnose(document(flow={"ue": "car", "rto_count": 3}), events=events)
    assert found["cause"] == "radio-link-failure"
    assert "3 retransmission time-outs" in found["evidence"]
    assert "1.20 s" in found["evidence"]


def test_a_radio_buffer_belongs_to_its_ue() -> None:
    """The buffer of another UE is no bottleneck of this one's flow."""
    full = {"throughput_mbps": 9.8, "utilisation": 0.98, "id": "radio.car.down"}
    window = {"limited_s": limited("receive_window", 15.0)}
    assert "receive-window" not in causes(flow={**window, "ue": "car"}, down=full)
    assert "receive-window" in causes(flow={**window, "ue": "bus"}, down=full)
