"""The newest snapshots of an emulation: what rates and shares are worked out from."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airpath.documents import Snapshot

Counter = Callable[["Snapshot"], float]


def at(*keys: str | int) -> Counter:
    """Return what reads the counter that stands there in a snapshot."""

    def read(snapshot: Snapshot) -> float:
        found: Any = snapshot
        for key in keys:
            found = found[key]
        return float(found)

    return read


class Recent:
    """Snapshots of the last seconds, without their flows; at least the two newest."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._snapshots: deque[Snapshot] = deque()

    def add(self, snapshot: Snapshot) -> bool:
        """Add a snapshot; whether it is newer than the last one."""
        kept = self._snapshots
        if kept and snapshot["time_s"] <= kept[-1]["time_s"]:
            return False
        # There may be a thousand flows, which nobody asks for here.
        kept.append({**snapshot, "flows": []})
        while len(kept) > 2 and kept[1]["time_s"] <= snapshot["time_s"] - self._seconds:
            kept.popleft()
        return True

    @property
    def newest(self) -> Snapshot | None:
        """The newest snapshot, None before the first."""
        return self._snapshots[-1] if self._snapshots else None

    def growth(self, counter: Counter) -> float:
        """How much a counter grew; before the first snapshot it was 0."""
        newest = self._snapshots[-1]
        return counter(newest) - (counter(self._snapshots[0]) if len(self._snapshots) > 1 else 0)

    def rate(self, counter: Counter) -> float:
        """How fast a counter grew, in a second."""
        newest = self._snapshots[-1]
        began_s = self._snapshots[0]["time_s"] if len(self._snapshots) > 1 else 0.0
        seconds = newest["time_s"] - began_s
        return self.growth(counter) / seconds if seconds > 0 else 0.0
