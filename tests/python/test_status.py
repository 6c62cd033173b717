"""What the status page knows of a run: cells, UEs, rates, history."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest

from airpath import scenario as scenarios
from airpath.documents import Snapshot
from airpath.emulation.oam import history, inventory
from airpath.emulation.oam.alarms import Alarms
from airpath.emulation.oam.history import History
from airpath.emulation.oam.status import Status, followed
from airpath.emulation.session import Session
from snapshot import radio, snapshot

SESSION = Session(
    index=0,
    ue="ue-0",
    imsi="001010000000001",
    address="10.45.0.2",
    apn="internet",
    qci=9,
    qfi=None,
    ambr_down_mbps=None,
    ambr_up_mbps=None,
    attached_ms=250.0,
    established_ms=350.0,
)


@pytest.fixture
def status(core: Any) -> Status:
    """Of the shipped scenario with handovers, begun at 12:00 on 1 January 2026."""
    return Status(scenarios.load("handover"), Alarms(0.0005), clock=lambda: 1_767_268_800.0)


def _at(time_s: float, k: int = 0, **changes: Any) -> Snapshot:
    """Two cells and a UE, whose counters are multiples of ``k``."""
    down = radio(bytes=10**6 * k, blocks=12 * k, first_errors=3 * k, mcs_sum=240 * k)
    ue = {"id": "ue-0", "cell": "west", "rrc": "connected", "drx": None, **changes}
    cells = [
        {"id": "west", "prbs": [30_000 * k, 0], "prbs_per_s": [100_000.0, 100_000.0]},
        {"id": "east", "prbs": [0, 0], "prbs_per_s": [100_000.0, 0.0]},
    ]
    return snapshot(
        time_s,
        cells=cells,
        ues=[{**ue, "radio": [down, radio(bytes=10**5 * k, queue_bytes=1500)]}],
        mobility=changes.get("mobility", []),
    )


def test_cells_as_they_are_configured(core: Any) -> None:
    def of(name: str, *sets: str) -> list[dict[str, Any]]:
        return [cell.document() for cell in inventory.cells(scenarios.load(name, list(sets)))]

    west, east = of("handover")
    assert (west["id"], west["number"], west["access"]) == ("west", 0, "lte")
    assert (west["duplex"], west["bandwidth_mhz"]) == ("fdd", 20)
    assert (west["carrier_mhz"], west["power_dbm"], west["band"]) == (1800, 43, None)
    assert (east["id"], east["number"], east["power_dbm"]) == ("east", 1, 43)
    (other,) = of("handover", "radio.neighbour.0.channel.transmit_dbm=30")[1:]
    assert other["power_dbm"] == 30
    # A constant channel has neither carrier nor power; the preset says the band.
    (cell,) = of("nr-n78")
    assert (cell["band"], cell["bandwidth_mhz"]) == ("n78", 100)
    assert cell["carrier_mhz"] is cell["power_dbm"] is None
    (cell,) = of("umts-hspa")
    assert (cell["access"], cell["bandwidth_mhz"]) == ("umts", 5)
    assert of("wire") == []


def test_every_shipped_scenario_has_its_cells(core: Any) -> None:
    for name, text in core.shipped():
        assert bool(inventory.cells(scenarios.load(name))) == ("[radio]" in text)


def test_before_a_run_begins(status: Status) -> None:
    document = status.document()
    assert document["run"]["state"] == "starting"
    assert document["run"]["time_s"] is None
    assert [cell["id"] for cell in document["cells"]] == ["west", "east"]
    assert document["ues"] == document["history"] == document["alarms"] == []
    status.attached([SESSION])
    document = status.document()
    assert document["run"]["state"] == "attaching"
    assert document["ues"][0]["rrc"] == "attaching"
    assert document["ues"][0]["address"] == "10.45.0.2"


def test_rates_and_states(status: Status) -> None:
    """1 MB in half a second are 16 Mb/s; 30,000 of 50,000 PRBs are 60 %."""
    status.update(_at(3.0, 1))
    status.update(_at(3.5, 2))
    document = status.document()
    assert (document["run"]["state"], document["run"]["time_s"]) == ("running", 3.5)
    (ue,) = document["ues"]
    assert ue["mbps"] == [16.0, 1.6]
    assert (ue["mcs"], ue["bler"], ue["queue_bytes"]) == (20.0, 0.25, [0, 1500])
    west, east = document["cells"]
    assert (west["state"], west["ues"], west["prb_share"]) == ("active", 1, [0.6, 0.0])
    assert (east["state"], east["ues"], east["prb_share"]) == ("idle", 0, [0.0, None])
    json.dumps(document, allow_nan=False)


def _told(status: Status) -> list[tuple[object, ...]]:
    return [
        (entry["time_s"], entry["kind"], entry["subject"], entry["text"])
        for entry in status.document()["history"]
    ]


def test_a_session_from_attach_to_detach(status: Status) -> None:
    status.attached([SESSION])
    status.update(_at(0.5))
    status.update(_at(2.0))
    status.end()
    status.end()
    assert _told(status) == [
        (-0.35, "session", "ue-0", "attach begins"),
        (-0.1, "session", "ue-0", "attached"),
        (0.0, "session", "ue-0", "session established: 10.45.0.2"),
        (0.0, "run", "", "began"),
        (2.0, "session", "ue-0", "detached: 10.45.0.2 is released"),
        (2.0, "run", "", "ended"),
    ]
    document = status.document()
    assert document["run"]["state"] == "ended"
    assert document["ues"][0]["rrc"] == "detached"
    # The first snapshot came half a second after the run's time 0.
    assert document["history"][0]["clock"] == "2026-01-01T11:59:59.150+00:00"
    status.update(_at(3.0))
    assert status.document()["run"]["time_s"] == 2.0


def test_handovers_and_states(status: Status) -> None:
    for one in (
        _at(1.0, rrc="idle"),
        _at(1.2, rrc="idle", cell="east"),
        _at(1.4, cell="east", drx="inactivity"),
        _at(1.6, cell="east", drx="long_sleep"),
        _at(1.8, cell="west", rrc="handover", drx=None),
        _at(2.6, cell="west", mobility=[("handover_complete", 1)]),
        # Shorter than the time between two snapshots.
        _at(2.8, cell="east", mobility=[("handover_complete", 2)]),
        # There and back.
        _at(3.0, cell="east", mobility=[("handover_complete", 4)]),
        _at(3.2, cell="east", rrc="handover",
            mobility=[("handover_complete", 4), ("radio_link_failure", 1)]),
    ):  # fmt: skip
        status.update(one)
    assert [entry for entry in _told(status) if entry[1] not in ("run", "alarm")] == [
        (1.2, "mobility", "ue-0", "cell reselection from west to east"),
        (1.4, "rrc", "ue-0", "idle to connected"),
        (1.6, "drx", "ue-0", "inactivity to long_sleep"),
        (1.8, "mobility", "ue-0", "handover from east to west, under way"),
        (2.6, "mobility", "ue-0", "connected in west"),
        (2.8, "mobility", "ue-0", "handover from west to east"),
        (3.0, "mobility", "ue-0", "handover complete, 2 more between two snapshots"),
        (3.2, "mobility", "ue-0", "without a cell, on its way to east"),
        (3.2, "mobility", "ue-0", "radio link failure: T310 expired"),
    ]


def test_alarms_are_in_the_history(status: Status) -> None:
    for time_s in (1.0, 1.2, 1.4, 1.6, 1.8):
        status.update(_at(time_s, rrc="handover" if time_s < 1.8 else "connected"))
        if time_s == 1.6:
            (alarm,) = status.document()["alarms"]
            assert (alarm["name"], alarm["severity"]) == ("long_interruption", "major")
    assert [entry for entry in _told(status) if entry[1] == "alarm"] == [
        (1.6, "alarm", "ue-0", "long_interruption raised, major (on its way to west)"),
        (1.8, "alarm", "ue-0", "long_interruption cleared"),
    ]
    assert status.document()["alarms"] == []


def test_only_what_is_new_is_asked_for(status: Status) -> None:
    status.update(_at(1.0, rrc="idle"))
    status.update(_at(1.2))
    assert [entry["number"] for entry in status.document()["history"]] == [1, 2]
    assert [entry["number"] for entry in status.document(after=1)["history"]] == [2]
    assert status.document(after=99)["history"] == []


def test_memory_is_bounded_and_the_frequent_do_not_push_out_the_rare() -> None:
    told = History()
    told.add("mobility", 0.0, "phone", "handover from west to east")
    for number in range(10_000):
        told.add("drx", number, "phone", "on_duration to long_sleep")
    kept = told.after(0)
    assert len(kept) == 1 + history.MOST
    assert kept[0].kind == "mobility"
    assert told.left_out == 10_000 - history.MOST


def test_snapshots_of_many_ues_are_followed_quickly(core: Any) -> None:
    """254 UEs, as many as an emulation has: a look takes 50 ms at most."""
    busy = Status(scenarios.load("handover"), Alarms(0.0005))
    one = _at(0.0)["ues"][0]
    ues = [{**one, "id": f"ue-{number}"} for number in range(254)]
    began = time.process_time()
    for step in range(1, 21):
        busy.update({**_at(step * 0.2, step), "ues": ues})  # type: ignore[typeddict-item]
    assert (time.process_time() - began) / 20 < 0.05


def test_a_run_is_followed_until_it_ends(status: Status) -> None:
    seen = threading.Event()

    def source() -> Snapshot:
        seen.set()
        return _at(1.0)

    with followed(status, source):
        assert seen.wait(10)
    assert status.document()["run"]["state"] == "ended"
    assert "status" not in {thread.name for thread in threading.enumerate()}


def test_a_run_that_did_not_begin_ends(status: Status) -> None:
    with pytest.raises(RuntimeError, match="refused"), followed(status, lambda: None):
        raise RuntimeError("refused")
    document = status.document()
    assert (document["run"]["state"], document["history"]) == ("ended", [])


def test_no_key_of_a_subscriber_is_known(status: Status) -> None:
    private = scenarios.load("lte-private")
    known = Status(private, Alarms(0.0005))
    known.attached([SESSION])
    text = json.dumps(known.document())
    assert private.core is not None
    for ue in private.core["ues"]:
        assert ue["key"] is not None
        assert ue["opc"] is not None
        assert ue["key"] not in text
        assert ue["opc"] not in text
    assert "sha256:" not in text
