"""Scenarios in which a recording replaces the radio, the slowest links or the channels of a run."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airpath.base.json import Json
from airpath.base.toml import toml_text
from airpath.export.recorded import DIRECTIONS

if TYPE_CHECKING:
    from airpath.export.recorded import Recorded

_QUEUE = ("queue_packets", "queue_bytes", "aqm", "codel_target_ms", "codel_interval_ms",
          "fq_codel_quantum_bytes", "fq_codel_queues")  # fmt: skip


def with_traces(recorded: Recorded, files: Mapping[str, str]) -> str:
    """Return the scenario with traces (files by direction) instead of the radio.

    Without a radio, the traces replace the slowest link. The shortest time that a packet spends in
    the radio becomes a delay before the trace. Flows of other UEs and all programs are left out.
    """
    document = _copy(recorded)
    for unwanted in ("radio", "core", "program"):
        document.pop(unwanted, None)
    if recorded.has_radio:
        document["flow"] = [
            {key: value for key, value in flow.items() if key != "ue"}
            for flow in document.get("flow", [])
            if flow.get("ue", recorded.ue) == recorded.ue
        ]
    path = document.setdefault("path", {})
    for direction, file in files.items():
        stages = path.setdefault(direction, [])
        trace = {"stage": "trace", "file": file}
        if not recorded.has_radio:
            place = recorded.slowest_stage(direction)
            queue = {key: stages[place][key] for key in _QUEUE if key in stages[place]}
            stages[place] = {**trace, **queue}
            continue
        buffer = recorded.radio_buffer(direction)
        delay = {"stage": "delay", "delay_ms": round(recorded.base_delay_ms(direction), 6)}
        own = [delay, {**trace, **buffer}]
        # An uplink packet passes the radio first, a downlink packet last.
        path[direction] = [*stages, *own] if direction == "down" else [*own, *stages]
    return toml_text(document)


def with_channels(recorded: Recorded, files: Mapping[tuple[str, str], str]) -> str:
    """Return the scenario with recorded channels; ``files`` are by UE and direction.

    The UEs of a group (``count``) become single ones.
    """
    document = _copy(recorded)
    ues = []
    for ue, name in recorded.named_ues():
        own = {**copy.deepcopy(ue), "name": name}
        own.pop("count", None)
        for direction in DIRECTIONS:
            file = files.get((name, direction))
            if file is not None:
                key = "channel" if direction == "down" else "channel_up"
                own[key] = {"model": "trace", "file": file}
        ues.append(own)
    document["radio"]["ue"] = ues
    return toml_text(document)


def _copy(recorded: Recorded) -> Json:
    document: dict[str, Any] = copy.deepcopy(recorded.scenario)
    document["run"]["radio_log"] = False
    return document
