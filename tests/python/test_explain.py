"""Causes by experiment, from Python."""

import math
from pathlib import Path
from typing import Any

import pytest

import airpath

pytestmark = pytest.mark.unhurried

SCENARIOS = Path(__file__).parent / "scenarios"
BOTH_WAYS, SLOW_UPLINK = SCENARIOS / "both-ways.toml", SCENARIOS / "slow-uplink.toml"
MIX, TWO_BUFFERS = SCENARIOS / "mix.toml", SCENARIOS / "two-buffers.toml"
SHARED_UPLINK = SCENARIOS / "shared-uplink.toml"


def test_a_cause_is_named_and_its_advice_comes_true_on_other_seeds() -> None:
    finding = airpath.explain("small-window")["findings"][0]
    assert finding["cause"] == "receive-window"
    gain = finding["gain"]
    assert gain is not None
    assert gain["before"] is not None
    assert gain["after"] is not None
    run = airpath.run("small-window", set=finding["set"], seed=1000)
    flow: Any = run.summary["flows"][0]
    assert math.isclose(flow[gain["metric"]], gain["after"], rel_tol=0.15)
    assert gain["after"] > 3 * gain["before"]
    again = airpath.explain("small-window", set=finding["set"])
    assert "receive-window" not in {finding["cause"] for finding in again["findings"]}


def test_the_answer_does_not_depend_on_the_workers() -> None:
    assert airpath.explain("jitter-reorder", workers=1) == airpath.explain(
        "jitter-reorder", workers=3
    )


def test_what_could_not_be_tried_is_listed() -> None:
    answer = airpath.explain("policer")
    assert answer["findings"][0]["cause"] == "policer"
    assert answer["runs"] > 3
    assert all(tried["outcome"] for tried in answer["tried"])


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("nr-drx", "drx"),
        ("policer", "policer"),
        ("jitter-reorder", "reordering"),
        ("bufferbloat", "bufferbloat"),
        ("hypervisor", "stalling-host"),
        ("two-flows", "congestion-control"),
        ("proxy", "random-loss"),
        ("one-way-firewall", "one-way-path"),
        ("double-nat", "double-nat"),
        ("file-download", "slow-start"),
    ],
)
def test_the_cause_that_a_scenario_shows_is_named_first(name: str, cause: str) -> None:
    assert airpath.explain(name)["findings"][0]["cause"] == cause


def test_queues_of_both_directions_are_managed_together() -> None:
    """To manage one does no good as long as its acknowledgements wait in the other one."""
    finding = airpath.explain(BOTH_WAYS)["findings"][0]
    assert finding["cause"] == "bufferbloat"
    assert set(finding["subject"].split(" and ")) == {"radio.ue-0.down", "radio.ue-0.up"}
    before: Any = airpath.run(BOTH_WAYS, seed=1000).summary["flows"]
    after: Any = airpath.run(BOTH_WAYS, set=finding["set"], seed=1000).summary["flows"]
    for old, new in zip(before, after, strict=True):
        assert new["goodput_mbps"] > 0.95 * old["goodput_mbps"]
        assert new["rtt_ms"]["p95"] < 0.5 * old["rtt_ms"]["p95"]


def test_what_a_link_carries_itself_is_no_starvation_of_acknowledgements() -> None:
    """Ten times the rate is ten times the upload, too; and few acknowledgements go down."""
    findings = airpath.explain(SLOW_UPLINK)["findings"]
    assert findings[0]["cause"] == "bufferbloat"
    gains = [one["gain"] for one in findings if one["cause"] == "ack-starvation"]
    assert [gain["flow"] for gain in gains if gain] == ["down"]


def test_settings_of_streams_are_said_to_be_those_of_all() -> None:
    finding = airpath.explain("random-loss", set="flow.0.streams=4")["findings"][0]
    assert finding["set"] == ['flow.0.congestion="bbr"']
    assert (finding["advice"] or "").endswith("The settings apply to all 4 streams of download.")


def test_of_flows_that_are_held_alike_the_one_that_is_held_most_is_named() -> None:
    """The advice names each flow that its settings are about."""
    finding = airpath.explain(
        "two-flows",
        set={"flow.0.send_buffer_bytes": 120_000, "flow.1.send_buffer_bytes": 40_000},
    )["findings"][0]
    assert (finding["cause"], finding["subject"]) == ("send-buffer", "reno")
    assert "limited reno for" in finding["evidence"]
    assert "The same holds for cubic." in finding["evidence"]
    assert "Raise the send buffers of reno and cubic to" in (finding["advice"] or "")
    assert {one.split(".")[1] for one in finding["set"] or []} == {"0", "1"}


def test_one_congestion_control_for_all_costs_the_flow_that_had_most() -> None:
    """With it flows are alike, and how those share is chance elsewhere."""
    findings = airpath.explain(MIX)["findings"]
    (mix,) = (one for one in findings if one["cause"] == "congestion-control")
    costs = {(cost["metric"], cost["flow"]): cost for cost in mix["costs"]}
    lost = costs["goodput_mbps", "fast"]
    assert lost["before"] is not None
    assert lost["after"] is not None
    assert lost["after"] < 0.8 * lost["before"]
    assert ("goodput_mbps", "slow") not in costs
    after: Any = airpath.run(MIX, set=mix["set"], seed=77).summary["flows"]
    assert after[1]["goodput_mbps"] == pytest.approx(lost["after"], rel=0.2)


def test_the_buffer_that_is_named_is_the_one_that_is_set() -> None:
    """The receiver's is the next that holds the flow back."""
    first, second = airpath.explain(TWO_BUFFERS)["findings"][:2]
    assert (first["cause"], second["cause"]) == ("send-buffer", "receive-window")
    assert (first["advice"] or "").startswith("Raise the send buffer of download to ")
    assert "With a large send buffer, the goodput of download would rise from " in first["evidence"]
    assert [one.split("=")[0] for one in first["set"] or []] == ["flow.0.send_buffer_bytes"]
    assert (second["advice"] or "").startswith("Raise the receive buffer of download to ")


@pytest.mark.parametrize("name", ["asymmetric-3g", SHARED_UPLINK])
def test_advice_without_settings_says_why(name: str | Path) -> None:
    findings = airpath.explain(name)["findings"]
    bare = [finding for finding in findings if finding["set"] is None and finding["advice"]]
    assert bare
    for finding in bare:
        assert "No setting is advised: " in (finding["advice"] or "")
        assert finding["gain"] is None


def test_advice_against_a_hidden_cause_holds_the_settings_of_both() -> None:
    first, hidden = airpath.explain("small-window")["findings"][:2]
    assert (first["cause"], hidden["cause"]) == ("receive-window", "bufferbloat")
    assert hidden["gain"] is not None
    assert set(first["set"] or []) < set(hidden["set"] or [])
    assert "helps only together with the advice for receive-window (download) above" in (
        hidden["advice"] or ""
    )


LONG = {"run.duration_s": 2000}
"""Takes longer than the time between two reports of progress, on a fast machine too."""


def test_it_can_be_stopped() -> None:
    with pytest.raises(KeyboardInterrupt):
        airpath.explain("wire", set=LONG, progress=lambda ended: False)


def test_an_error_in_progress_comes_out() -> None:
    def fail(ended: int) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        airpath.explain("wire", set=LONG, progress=fail)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budget": "much"}, "budget is 'much', but must be one of quick, full"),
        ({"workers": 0}, "workers must be from 1 to 10000"),
        ({"seed": -1}, "a seed must be a whole number from 0 to"),
        ({"set": "flow.0.windw_bytes=1"}, "did you mean `window_bytes`"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(airpath.InputError) as error:
        airpath.explain("wire", **arguments)
    assert message in str(error.value)
