"""What was run: the key parameters of a scenario, and what differs between scenarios."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airpath.text import count, digits, exact_size, plural
from airpath.toml import parse_toml

if TYPE_CHECKING:
    from airpath.results import Run

_STAGE_KEYS = {
    "rate_mbps": "{} Mb/s",
    "file": "{}",
    "delay_ms": "{} ms",
    "jitter_ms": "jitter {} ms",
    "queue_packets": "queue {} packets",
    "queue_bytes": "queue {}",
    "aqm": "{}",
    "probability": "probability {}",
    "period": "every {} packets",
    "congestion": "{}",
    "profile": "profile {}",
    "send_buffer_bytes": "send buffer {}",
    "receive_buffer_bytes": "receive buffer {}",
    "burst_bytes": "burst {}",
    "excess": "excess: {}",
    "end": "{}",
    "mtu_bytes": "MTU {}",
    "too_big": "{} what is too big",
    "timeout_s": "timeout {} s",
    "processing_ms": "{} ms a packet",
    "coalescing_ms": "interrupts after {} ms",
    "ring_packets": "ring {} packets",
    "stalls": "stalls {}",
    "stall_ms": "of {} ms",
    "stall_period_ms": "every {} ms",
    "stall_mean_between_ms": "every {} ms",
    "place": "{}",
}
_FLOW_KEYS = {
    "direction": "{}",
    "congestion": "{}",
    "profile": "profile {}",
    "size_bytes": "{}",
    "rate_mbps": "{} Mb/s",
    "interval_ms": "every {} ms",
    "start_s": "from {} s",
    "duration_s": "for {} s",
    "window_bytes": "window {}",
    "send_buffer_bytes": "send buffer {}",
    "receive_buffer_bytes": "receive buffer {}",
}
_SILENT = {
    ("start_s", 0),
    ("jitter_ms", 0),
    ("aqm", "drop-tail"),
    ("processing_ms", 0),
    ("coalescing_ms", 0),
    ("stalls", "never"),
}


def parameters(run: Run) -> list[tuple[str, list[str]]]:
    """Name and items of each row: the path both ways, the radio, and the flows."""
    scenario = parse_toml(run.scenario_toml)
    path = scenario.get("path", {})
    rows = [
        ("down", [_stage(stage) for stage in _enabled(path.get("down"))] or ["an ideal wire"]),
        ("up", [_stage(stage) for stage in _enabled(path.get("up"))] or ["an ideal wire"]),
    ]
    if "radio" in scenario:
        rows.append(("radio", _radio(scenario["radio"])))
    for flow in _enabled(scenario.get("flow")):
        name = str(flow["id"])
        rows.append((name, [", ".join([str(flow.get("kind", "")), *_words(flow, _FLOW_KEYS)])]))
    return rows


def _enabled(tables: list[dict[str, Any]] | None) -> list[dict[str, Any]]:
    """Those that are part of the scenario."""
    return [table for table in tables or [] if table.get("enabled", True)]


def given(toml: str) -> str:
    """What of a scenario is not a default: without the rest it means the same.

    The whole of it where that cannot be found out, as with a trace that is not there any more.
    """
    from airpath import _core

    def meaning(lines: list[str]) -> str | None:
        try:
            return _core.parse("\n".join(lines), "scenario", None, []).resolved_toml
        except _core.ScenarioError:
            return None

    def without_defaults(kept: list[str], start: int, end: int) -> list[str]:
        """Drop what can go between two lines, in as large pieces as possible."""
        if meaning(rest := kept[:start] + kept[end:]) == whole:
            return rest
        if end - start == 1:
            return kept
        middle = (start + end) // 2
        return without_defaults(without_defaults(kept, middle, end), start, middle)

    lines = [line for line in toml.splitlines() if line]
    if (whole := meaning(lines)) is None:
        return toml
    kept = without_defaults(lines, 0, len(lines))
    return "\n".join(f"\n{line}" if line.startswith("[") else line for line in kept).strip()


def differences(runs: Sequence[Run]) -> list[list[str]]:
    """Keys that are not the same in every run, nor a default in all, with the value in each."""
    flat = [_flat(parse_toml(run.scenario_toml)) for run in runs]
    keys = dict.fromkeys(key for run in runs for key in _flat(parse_toml(given(run.scenario_toml))))
    return [
        [key, *(_value(one.get(key, "not set")) for one in flat)]
        for key in keys
        if len({repr(one.get(key)) for one in flat}) > 1
    ]


def _radio(radio: dict[str, Any]) -> list[str]:
    """Cells by preset, UEs, and how they move."""
    neighbours = radio.get("neighbour", [])
    items = [str(radio.get("preset", ""))]
    if neighbours:
        items = [f"{cell.get('name')}: {cell.get('preset')}" for cell in (radio, *neighbours)]
    ues = radio.get("ue", [])
    number = sum(int(ue.get("count", 1)) for ue in ues)
    items.append(plural(number, "UE"))
    if any(ue.get("drx", {}).get("enabled") for ue in ues):
        items.append("DRX")
    if radio.get("mobility", {}).get("a3"):
        items.append("event A3")
    if radio.get("handover"):
        items.append(plural(len(radio["handover"]), "planned handover"))
    return items


def _stage(stage: dict[str, Any]) -> str:
    return " ".join([str(stage.get("stage", "")), ", ".join(_words(stage, _STAGE_KEYS))]).strip()


def _words(table: dict[str, Any], keys: dict[str, str]) -> list[str]:
    return [
        template.format(exact_size(table[key]) if key.endswith("_bytes") else _value(table[key]))
        for key, template in keys.items()
        if key in table and (key, table[key]) not in _SILENT
    ]


def _value(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return count(value) if isinstance(value, int) else digits(value)


def _flat(value: object, prefix: str = "") -> dict[str, object]:
    if isinstance(value, dict):
        items = [(str(key), item) for key, item in value.items()]
    elif isinstance(value, list):
        items = [(str(index), item) for index, item in enumerate(value)]
    else:
        return {prefix: value}
    flat: dict[str, object] = {}
    for key, item in items:
        flat.update(_flat(item, f"{prefix}.{key}" if prefix else key))
    return flat
