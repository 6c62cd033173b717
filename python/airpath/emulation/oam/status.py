"""The state of an emulation for its status page: cells, UEs, rates, history, alarms.

A thread of its own follows the run's snapshots a few times a second, whether or not somebody asks.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypedDict, cast

from airpath.base.text import plural
from airpath.emulation.oam import inventory
from airpath.emulation.oam.alarms import BETWEEN_CELLS, DIRECTIONS, KINDS, RATE_WINDOW_S, Alarms
from airpath.emulation.oam.history import CAMPING, History
from airpath.emulation.oam.rates import MOST_UES, WHOLE, Rate, Rates
from airpath.emulation.oam.recent import Counter, Recent, at
from airpath.network import Cell, Core, Ue, curves, picture

if TYPE_CHECKING:
    from airpath import _core
    from airpath.documents import Snapshot, UeSnapshot
    from airpath.emulation.oam.editing import Edit, Editing
    from airpath.emulation.session import Session

Source = Callable[[], "Snapshot | None"]

INTERVAL_S = 0.2
"""Between two looks at the newest snapshot; the forwarder makes ten a second at most."""


OUT = "out of service"
"""State of a cell."""

UNLINKED = (*CAMPING, BETWEEN_CELLS, "attaching", "detached")
"""States of a UE that has no connection to its cell."""


class StatusDocument(TypedDict):
    """The content of the status page."""

    run: dict[str, object]
    directions: list[dict[str, object]]
    cells: list[dict[str, object]]
    ues: list[dict[str, object]]
    links: list[dict[str, object]]
    mobility: dict[str, int]
    core: dict[str, object] | None
    picture: str
    """An SVG of cells, UEs and core; empty without a radio."""
    curves: str
    """An SVG for each cell and UE."""
    alarms: list[dict[str, object]]
    history: list[dict[str, object]]
    left_out: int


class Status:
    """What is known of a run. Every method may be called from any thread."""

    def __init__(
        self,
        scenario: _core.Scenario,
        alarms: Alarms,
        clock: Callable[[], float] = time.time,
        editing: Editing | None = None,
    ) -> None:
        self.alarms, self.editing = alarms, editing
        self._clock = clock
        self._lock = threading.Lock()
        self._run = {
            "id": uuid.uuid4().hex,
            "scenario": scenario.name,
            "title": scenario.title,
            "lateness_bound_us": scenario.lateness_bound_s * 1e6,
        }
        self._state = "starting"
        self._origin: float | None = None
        self._cells = [cell.document() for cell in inventory.cells(scenario)]
        self._core = inventory.core(scenario)
        self._outages = inventory.outages(scenario)
        self._sessions: dict[str, Session] = {}
        self._rates = Rates()
        self._recent = Recent(RATE_WINDOW_S)
        self._history = History()

    def attached(self, sessions: Sequence[Session]) -> None:
        """The network let the UEs in; they have their sessions when the run's time is 0."""
        with self._lock:
            self._sessions = {session.ue: session for session in sessions}
            self._state = "attaching" if sessions else self._state

    def update(self, snapshot: Snapshot) -> None:
        """Follow the run; a snapshot that is not newer than the last says nothing."""
        with self._lock:
            before = self._recent.newest
            if self._state == "ended" or not self._recent.add(snapshot):
                return
            if before is None:
                self._begin(snapshot)
            else:
                self._history.compare(before, snapshot)
            for change in self.alarms.update(snapshot):
                self._history.change(change)
            if self._rates.is_due(snapshot["time_s"]):
                self._rates.add(snapshot["time_s"], self._carried(snapshot))

    def end(self) -> None:
        """The run is over; what was seen last stays."""
        with self._lock:
            if self._state == "ended":
                return
            newest = self._recent.newest
            if newest is not None:
                for session in self._sessions.values():
                    self._history.detach(newest["time_s"], session)
                self._history.add("run", newest["time_s"], "", "ended")
            self._state = "ended"

    def document(self, after: int = 0) -> StatusDocument:
        """Return what the page shows, with entries of the history since the one numbered so."""
        with self._lock:
            newest = self._recent.newest
            history = [
                {**entry.document(), "clock": self._clock_time(entry.time_s)}
                for entry in self._history.after(after)
            ]
            cells = [self._cell(index, newest) for index in range(len(self._cells))]
            ues = self._attaching() if newest is None else self._ues(newest)
            return {
                "run": {
                    **self._run,
                    "state": self._state,
                    "editable": self.editing is not None,
                    "time_s": None if newest is None else newest["time_s"],
                },
                "directions": [] if newest is None else self._directions(newest),
                "cells": cells,
                "ues": ues,
                "links": [] if newest is None else self._links(newest),
                "mobility": {} if newest is None else dict(newest["mobility"]),
                "core": self._core_now(),
                "picture": self._picture(cells, ues),
                "curves": curves(self._rates.curves()),
                "alarms": [
                    {**alarm.document(), "clock": self._clock_time(alarm.since_s)}
                    for alarm in self.alarms.raised()
                ],
                "history": history,
                "left_out": self._history.left_out,
            }

    def _begin(self, snapshot: Snapshot) -> None:
        self._origin = self._clock() - snapshot["time_s"]
        for session in self._sessions.values():
            self._history.attach(session)
        self._history.add("run", 0.0, "", "began")
        self._state = "running"
        if self.editing is not None:
            self.editing.begin(self._edited)

    def _edited(self, edit: Edit) -> None:
        """Note a change of a subscriber."""
        with self._lock:
            time_s = self._clock() - (self._origin or 0.0)
            self._history.add("subscriber", time_s, edit.imsi, edit.text)

    def _clock_time(self, time_s: float) -> str | None:
        if self._origin is None:
            return None
        return datetime.fromtimestamp(self._origin + time_s, UTC).isoformat(timespec="milliseconds")

    def _directions(self, now: Snapshot) -> list[dict[str, object]]:
        return [
            {
                "id": direction,
                "mbps": self._mbps(at("directions", index, "left_bytes")),
                "packets": now["directions"][index]["left"],
                "dropped": dict(now["directions"][index]["dropped"]),
                "late_p99_us": now["directions"][index]["late_p99_us"],
            }
            for index, direction in enumerate(DIRECTIONS)
        ]

    def _cell(self, index: int, now: Snapshot | None) -> dict[str, object]:
        cell = {**self._cells[index], "state": "starting", "ues": 0, "prb_share": [None, None]}
        if now is None:
            return cell
        # The model has the scenario's order, too.
        room = now["cells"][index]["prbs_per_s"]
        used = [
            self._recent.rate(at("cells", index, "prbs", way)) for way in range(len(DIRECTIONS))
        ]
        return {
            **cell,
            "state": self._cell_state(str(cell["id"]), now["time_s"], active=any(used)),
            "ues": sum(ue["cell"] == cell["id"] for ue in now["ues"]),
            "prb_share": [
                prbs / most if most else None for prbs, most in zip(used, room, strict=True)
            ],
        }

    def _cell_state(self, cell: str, time_s: float, *, active: bool) -> str:
        if any(outage.cell == cell and outage.holds(time_s) for outage in self._outages):
            return OUT
        return "active" if active else "idle"

    def _ues(self, now: Snapshot) -> list[dict[str, object]]:
        return [self._ue(index, ue) for index, ue in enumerate(now["ues"])]

    def _ue(self, index: int, ue: UeSnapshot) -> dict[str, object]:
        def growth(key: str) -> float:
            return self._recent.growth(at("ues", index, "radio", 0, key))

        gone = self._state == "ended" and ue["id"] in self._sessions
        blocks = growth("blocks")
        return {
            "id": ue["id"],
            **self._subscriber(ue["id"]),
            "cell": ue["cell"],
            "rrc": "detached" if gone else ue["rrc"],
            "drx": ue["drx"],
            "mbps": [
                self._mbps(at("ues", index, "radio", way, "bytes"))
                for way in range(len(DIRECTIONS))
            ],
            "queue_bytes": [radio["queue_bytes"] for radio in ue["radio"]],
            "mcs": growth("mcs_sum") / blocks if blocks else None,
            "bler": growth("first_errors") / blocks if blocks else None,
        }

    def _attaching(self) -> list[dict[str, object]]:
        """UEs of which nothing is known but that they may attach."""
        nothing = {"cell": None, "drx": None, "mbps": None, "queue_bytes": None}
        return [
            {
                "id": ue,
                **self._subscriber(ue),
                **nothing,
                "rrc": "attaching",
                "mcs": None,
                "bler": None,
            }
            for ue in self._sessions
        ]

    def _subscriber(self, ue: str) -> dict[str, object]:
        """Whose UE it is; never the keys."""
        session = self._sessions.get(ue)
        return {key: getattr(session, key, None) for key in ("imsi", "address", "apn")}

    def _links(self, now: Snapshot) -> list[dict[str, object]]:
        return [
            {
                "id": link["id"],
                "mbps": self._mbps(at("links", index, "bytes")),
                "queue_bytes": link["queue_bytes"],
                "queue_packets": link["queue_packets"],
            }
            for index, link in enumerate(now["links"])
        ]

    def _core_now(self) -> dict[str, object] | None:
        """The core and its sessions; None without one."""
        if self._core is None:
            return None
        ended = self._state == "ended"
        sessions = [] if ended else [session.document() for session in self._sessions.values()]
        return {**self._core.document(), "in_use": len(sessions), "sessions": sessions}

    def _picture(self, cells: list[dict[str, object]], ues: list[dict[str, object]]) -> str:
        if not cells:
            return ""
        if self._core is None:
            core = Core("server", "")
        else:
            in_use = 0 if self._state == "ended" else len(self._sessions)
            core = Core("core", plural(in_use, "session"))
        return picture(
            [Cell(str(cell["id"]), str(cell["state"]), cell["state"] != OUT) for cell in cells],
            [
                Ue(
                    str(ue["id"]),
                    cast("str | None", ue["cell"]),
                    str(ue["rrc"]),
                    ue["rrc"] not in UNLINKED,
                )
                for ue in ues
            ],
            core,
        )

    def _carried(self, now: Snapshot) -> dict[str, Rate]:
        """Rates by name: of the whole path, of each cell, of the first UEs."""
        rates: dict[str, Rate] = {
            WHOLE: self._both([at("directions", way, "left_bytes") for way in (0, 1)])
        }
        cells: dict[str, list[Rate]] = {cell["id"]: [] for cell in now["cells"]}
        ues: dict[str, Rate] = {}
        for index, ue in enumerate(now["ues"]):
            own = self._both([at("ues", index, "radio", way, "bytes") for way in (0, 1)])
            cells[ue["cell"]].append(own)
            ues[ue["id"]] = own
        for name, carried in cells.items():
            rates[f"cell {name}"] = (sum(down for down, _ in carried), sum(up for _, up in carried))
        shown = list(ues.items())[:MOST_UES]
        return {**rates, **{f"UE {name}": own for name, own in shown}}

    def _both(self, sent: Sequence[Counter]) -> Rate:
        down, up = sent
        return self._mbps(down), self._mbps(up)

    def _mbps(self, sent: Counter) -> float:
        return 8 * self._recent.rate(sent) / 1e6


def definitions() -> list[dict[str, object]]:
    """Return what each alarm means, for the page."""
    return [
        {key: getattr(kind, key) for key in ("name", "severity", "raised", "cleared")}
        for kind in KINDS
    ]


@contextmanager
def followed(status: Status, source: Source) -> Iterator[None]:
    """Follow a run's snapshots as long as the context lasts; then the run is over."""
    stop = threading.Event()

    def follow() -> None:
        while not stop.wait(INTERVAL_S):
            if (snapshot := source()) is not None:
                status.update(snapshot)

    follower = threading.Thread(target=follow, name="status", daemon=True)
    follower.start()
    try:
        yield
    finally:
        stop.set()
        follower.join()
        if (snapshot := source()) is not None:
            status.update(snapshot)
        status.end()
