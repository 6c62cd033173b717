"""Alarms of an emulation: each is raised by its condition, and cleared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airpath.documents import Snapshot
from airpath.emulation.oam import alarms
from airpath.emulation.oam.alarms import Alarms
from airpath.emulation.oam.inventory import Outage
from snapshot import radio, snapshot

BOUND_S = 0.0005
STEP_S = 0.2


def _ue(down: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    ue = {"id": "phone", "cell": "west", "rrc": "connected", "drx": None}
    return {**ue, "radio": [radio(**(down or {})), radio()], **changes}


def _down(time_s: float, **changes: Any) -> Snapshot:
    """A snapshot in which only the downlink says something."""
    nothing = snapshot(0)["directions"][0]
    return snapshot(time_s, directions=[{**nothing, **changes}, nothing])


def _follow(judge: Alarms, snapshots: list[Snapshot]) -> list[tuple[float, str, str, bool]]:
    """What changed when."""
    return [
        (round(change.time_s, 3), change.alarm.name, change.alarm.subject, change.raised)
        for one in snapshots
        for change in judge.update(one)
    ]


def _times(begin_s: float, end_s: float) -> list[float]:
    count = round((end_s - begin_s) / STEP_S)
    return [round(begin_s + STEP_S * index, 3) for index in range(count + 1)]


def test_nothing_wrong_raises_nothing() -> None:
    """10 Mb/s through a queue of 10 ms, 0.1 % of the packets lost, 400 us late."""

    def at(time_s: float) -> Snapshot:
        down = {"bytes": int(1.25e6 * time_s), "queue_packets": 9, "queue_bytes": 12_500}
        entered = int(1000 * time_s)
        direction = {"entered": entered, "dropped": [("loss", entered // 1000)]}
        one = _down(time_s, **direction, late_p99_us=400.0)
        return snapshot(time_s, directions=one["directions"], ues=[_ue(down)])

    judge = Alarms(BOUND_S)
    assert _follow(judge, [at(time_s) for time_s in _times(0.2, 20)]) == []
    assert judge.raised() == []


def test_a_cell_out_of_service_is_an_alarm() -> None:
    judge = Alarms(BOUND_S, [Outage("east", 2.0, 3.0), Outage("west", 9.0, 99.0)])
    assert _follow(judge, [snapshot(time_s) for time_s in _times(1.0, 5.0)]) == [
        (2.0, "cell_out_of_service", "east", True),
        (3.0, "cell_out_of_service", "east", False),
    ]
    _follow(judge, [snapshot(10.0)])
    (raised,) = judge.raised()
    assert (raised.subject, raised.severity, raised.detail) == ("west", "critical", "until 99 s")


@pytest.mark.parametrize(
    ("alarm", "event"),
    [
        ("radio_link_failure", "radio_link_failure"),
        ("radio_link_failure", "radio_link_failure_rlc"),
        ("handover_failed", "handover_failed"),
    ],
)
def test_an_event_is_an_alarm_for_ten_seconds(alarm: str, event: str) -> None:
    judge = Alarms(BOUND_S)
    happened = [
        snapshot(time_s, ues=[_ue()], mobility=[(event, (time_s >= 2) + (time_s >= 5))])
        for time_s in _times(0.2, 20)
    ]
    # The second one, at 5 s, keeps it.
    expected = [(2.0, alarm, "phone", True), (15.2, alarm, "phone", False)]
    assert _follow(judge, happened) == expected


def test_an_event_among_many_ues_is_nobodys() -> None:
    two = [_ue(), _ue(id="car")]
    judge = Alarms(BOUND_S)
    judge.update(snapshot(1.0, ues=two, mobility=[("radio_link_failure", 1)]))
    assert [(one.name, one.subject) for one in judge.raised()] == [("radio_link_failure", "")]


def test_a_full_queue() -> None:
    judge = Alarms(BOUND_S)
    seen = [_down(time_s, dropped=[("queue_full", 7)]) for time_s in _times(1, 12)]
    assert _follow(judge, seen) == [
        (1.0, "buffer_full", "", True),
        (11.2, "buffer_full", "", False),
    ]


def test_a_ue_without_a_cell() -> None:
    judge = Alarms(BOUND_S)
    seen = [
        snapshot(time_s, ues=[_ue(rrc="handover" if 1 <= time_s < 2 else "connected", cell="east")])
        for time_s in _times(0.2, 4)
    ]
    assert _follow(judge, seen) == [
        (1.6, "long_interruption", "phone", True),
        (2.0, "long_interruption", "phone", False),
    ]
    # 0.4 s are a handover.
    short = [
        snapshot(time_s, ues=[_ue(rrc="handover" if 5 <= time_s < 5.4 else "connected")])
        for time_s in _times(4.4, 7)
    ]
    assert _follow(judge, short) == []


@pytest.mark.parametrize("ends", ["delivered", "empty"])
def test_packets_that_none_of_leaves(ends: str) -> None:
    """From 1 s on nothing leaves, at 6 s one packet does, or the queue is discarded."""

    def at(time_s: float) -> Snapshot:
        over = time_s >= 6
        waits = 0 if over and ends == "empty" else 5
        sent = 3000 + 1500 * (over and ends == "delivered") * round(10 * time_s)
        link = {"id": "down.0.link", "bytes": sent, "queue_packets": waits, "queue_bytes": 1500}
        return snapshot(time_s, links=[link])

    expected = [(4.2, "blocked", "down.0.link", True), (6.0, "blocked", "down.0.link", False)]
    found = _follow(Alarms(BOUND_S), [at(time_s) for time_s in _times(1, 8)])
    assert [one for one in found if one[1] == "blocked"] == expected


def test_a_queue_that_stands() -> None:
    """At 10 Mb/s 500 kB are 400 ms, 187.5 kB 150 ms and 62.5 kB 50 ms."""

    def at(time_s: float) -> Snapshot:
        held = 500_000 if 1 <= time_s < 8 else 187_500 if 8 <= time_s < 12 else 62_500
        down = {"bytes": int(1.25e6 * time_s), "queue_packets": 40, "queue_bytes": held}
        return snapshot(time_s, ues=[_ue(down)])

    assert _follow(Alarms(BOUND_S), [at(time_s) for time_s in _times(0.2, 15)]) == [
        (4.0, "standing_queue", "phone down", True),
        # 150 ms are neither.
        (13.0, "standing_queue", "phone down", False),
    ]
    # One packet is no queue.
    slow = [
        snapshot(time_s, ues=[_ue({"bytes": round(84 * time_s), "queue_packets": 1,
                                   "queue_bytes": 84})])
        for time_s in _times(0.2, 9)
    ]  # fmt: skip
    assert _follow(Alarms(BOUND_S), slow) == []


def test_packets_are_lost() -> None:
    """100 packets a second, of which 2 are lost between 3 and 6 s."""

    def at(time_s: float) -> Snapshot:
        lost = round(2 * max(0.0, min(time_s, 6) - 3))
        kinds = [("loss", lost), ("queue_full", 0), ("aqm", round(9 * time_s))]
        return _down(time_s, entered=round(100 * time_s), dropped=kinds)

    raised, cleared = _follow(Alarms(BOUND_S), [at(time_s) for time_s in _times(0.2, 15)])
    assert raised[1:] == ("packet_loss", "down", True)
    assert cleared[1:] == ("packet_loss", "down", False)
    # 1 % of 500 packets are 5; 0.5 % are 2.5, which are left of the last two lost ones.
    assert 5.0 <= raised[0] <= 6.0
    assert 9.4 <= cleared[0] <= 10.4


def test_a_late_run() -> None:
    judge = Alarms(BOUND_S)
    seen = [_down(1, late_p99_us=501.0), _down(2, late_p99_us=501.0), _down(3, late_p99_us=499.0)]
    assert _follow(judge, seen) == [(1, "lateness", "down", True), (3, "lateness", "down", False)]


def test_the_same_snapshot_says_nothing_twice() -> None:
    judge = Alarms(BOUND_S)
    late = _down(1, late_p99_us=501.0)
    assert len(judge.update(late)) == 1
    assert judge.update(late) == judge.update(_down(0.5)) == []
    assert [one.name for one in judge.raised()] == ["lateness"]


def test_nothing_is_kept_of_what_is_not_raised() -> None:
    judge = Alarms(BOUND_S)
    for time_s in _times(1, 9):
        judge.update(snapshot(time_s, ues=[_ue({"queue_packets": 3, "queue_bytes": 99})]))
    assert [key for key in judge._held if key[0] != "blocked"] == []
    judge.update(snapshot(20.0, ues=[_ue()]))
    assert judge._held == {}


def test_the_guide_has_every_alarm(request: pytest.FixtureRequest) -> None:
    guide = Path(request.config.rootpath, "docs/guides/emulation.md").read_text(encoding="utf-8")
    for kind in alarms.KINDS:
        row = f"| `{kind.name}` | {kind.severity} | {kind.raised} | {kind.cleared} |"
        assert row in guide, row
