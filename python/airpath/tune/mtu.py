"""The largest packets that pass a path's tunnels and MTUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_TUNNELS = {
    ("gtpu", "ipv4"): 36,
    ("gtpu", "ipv6"): 56,
    ("vpn", "ipv4"): 60,
    ("vpn", "ipv6"): 80,
}
"""Outer headers without the container of N3: IP, UDP and GTP-U (TS 29.281 5.1); IP, UDP, and header
and tag of WireGuard."""
_CONTAINER = 8
_PADDING = 16


def largest_packet(stages: Sequence[Mapping[str, object]]) -> int | None:
    """Return the largest packet that passes all stages unfragmented; None if any does."""
    outer: list[tuple[str, int]] = []
    found: list[int] = []
    for stage in stages:
        kind = str(stage["stage"])
        if not stage.get("enabled", True):
            continue
        if kind in ("gtpu", "vpn"):
            if stage["end"] == "leave":
                outer = outer[:-1]
                continue
            size = _TUNNELS[kind, str(stage["outer_ip"])]
            size += _CONTAINER if stage.get("pdu_session_container") else 0
            if kind == "vpn" and "mtu_bytes" in stage:
                found.append(_number(stage, "mtu_bytes") - _sum(outer))
            outer.append((kind, size))
            limit = "mtu_bytes" if kind == "gtpu" else "outer_mtu_bytes"
            if limit in stage:
                found.append(_inside(_number(stage, limit), outer))
        elif kind == "mtu":
            found.append(_inside(_number(stage, "mtu_bytes"), outer))
    return min(found, default=None)


def _number(stage: Mapping[str, object], key: str) -> int:
    return int(str(stage[key]))


def _sum(outer: Sequence[tuple[str, int]]) -> int:
    return sum(size for _, size in outer)


def _inside(limit: int, outer: Sequence[tuple[str, int]]) -> int:
    """Return the largest packet whose outer one is within a limit; WireGuard pads to 16 bytes."""
    room = limit
    for kind, size in reversed(outer):
        room -= size
        if kind == "vpn":
            room -= room % _PADDING
    return room
