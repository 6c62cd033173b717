"""What the tests of campaigns share."""

from __future__ import annotations

import json
from typing import Any

SHORT: dict[str, Any] = {
    "title": "short runs",
    "scenario": "random-loss",
    "set": ["run.duration_s=0.5"],
    "seeds": 5,
    "partition_runs": 20,
    "vary": [
        {"key": "flow.0.congestion", "name": "cc", "values": ["reno", "cubic"]},
        {"key": "path.down.0.queue_packets", "name": "queue", "values": [20, 50, 100, 200]},
    ],
}
"""40 runs of some milliseconds."""


def toml(**changes: Any) -> str:
    """``SHORT`` as a file, with other values of its keys."""
    data = {**SHORT, **changes}
    lines = [f"{key} = {_value(data[key])}" for key in data if key != "vary"]
    for axis in data["vary"]:
        lines += ["", "[[vary]]", *(f"{key} = {_value(axis[key])}" for key in axis)]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    return json.dumps(value)
