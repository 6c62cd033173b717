"""A stand-in for airpath._core: the shape of the interface and a crude fluid model behind it.

Only for tests of the Python layer that must not depend on the simulator. Never shipped.
"""

from __future__ import annotations

import hashlib
import math
import random
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__version__ = "0.0.0-fake"

SCENARIO = """\
title = "3G downlink, 400 ms"
[run]
duration_s = 20.0
seed = 1
sample_interval_ms = 100
[[path.down]]
stage = "link"
rate_mbps = 1.35
queue_packets = 90
[[path.down]]
stage = "delay"
delay_ms = 200
[[path.up]]
stage = "link"
rate_mbps = 0.045
[[path.up]]
stage = "delay"
delay_ms = 200
[[flow]]
id = "download"
kind = "bulk"
direction = "down"
congestion = "cubic"
profile = "linux-6.1"
[[flow]]
id = "ping"
kind = "ping"
direction = "up"
interval_ms = 200
"""


class ScenarioError(ValueError):
    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.problems = [{"message": message}]


class Scenario:
    def __init__(self, data: dict[str, Any], name: str, text: str) -> None:
        self.data, self.name, self.resolved_toml = data, name, text
        self.title = data.get("title", "")
        run = data.get("run", {})
        self.seed = int(run.get("seed", 1))
        self.duration_s = float(run.get("duration_s", 10.0))
        self.sha256 = hashlib.sha256(text.encode()).hexdigest()
        self.programs: list[str] = []
        self.flows = [
            {key: flow.get(key) for key in ("id", "kind", "direction", "congestion", "profile")}
            for flow in data["flow"]
        ]


def parse(text: str, name: str, directory: str | None, sets: list[str]) -> Scenario:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError(f"{name}: {error}") from None
    for entry in sets:
        key, equals, value = entry.partition("=")
        if not equals:
            raise ScenarioError(f"--set {entry}: expected KEY=VALUE")
        try:
            parsed: Any = tomllib.loads(f"v = {value}")["v"]
        except tomllib.TOMLDecodeError:
            parsed = value
        *path, last = key.split(".")
        place: Any = data
        for part in path:
            place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
        place[last] = parsed
    if any(flow.get("window_bytes") == "64 k" for flow in data.get("flow", [])):
        raise ScenarioError(f"{name}: window_bytes must be a number of bytes")
    return Scenario(data, name, text + "".join(f"# set {entry}\n" for entry in sets))


def shipped() -> list[tuple[str, str]]:
    return [("3g-umts", SCENARIO), ("lte-drive", SCENARIO.replace("3G", "LTE"))]


def radio_presets() -> list[tuple[str, str]]:
    return [("lte-fake", "An LTE cell")]


def schema() -> str:
    return '{"type": "object"}'


def reference() -> str:
    return "# Scenario reference\n"


class Result:
    def __init__(self, summary: dict[str, Any], tables: dict[str, pl.DataFrame]) -> None:
        self.summary, self.tables = summary, tables

    def table(self, name: str) -> pl.DataFrame:
        return self.tables[name]

    def write_parquet(self, directory: str, metadata: dict[str, str]) -> None:
        for name, frame in self.tables.items():
            frame.write_parquet(Path(directory) / f"{name}.parquet")


def simulate(
    scenario: Scenario, seed: int, progress: Callable[[float], bool] | None = None
) -> Result:
    model = _Fluid(scenario, seed)
    while not model.finished:
        model.step()
        if progress is not None and model.interval % 10 == 0 and not progress(model.now_s):
            raise KeyboardInterrupt
    return model.result()


class _Fluid:
    """Reno over one bottleneck, one interval at a time."""

    def __init__(self, scenario: Scenario, seed: int) -> None:
        self.scenario, self.random = scenario, random.Random(seed)
        self.seed = seed
        path = scenario.data.get("path", {})
        down = path.get("down", [])
        self.rate = next((s["rate_mbps"] for s in down if s["stage"] == "link"), 10.0)
        self.queue_limit = next((s.get("queue_packets", 100) for s in down), 100)
        delays = [s for way in path.values() for s in way if s["stage"] == "delay"]
        self.base_ms = sum(s["delay_ms"] for s in delays) + 12 / self.rate + 0.1
        self.step_s = scenario.data.get("run", {}).get("sample_interval_ms", 100) / 1e3
        self.interval, self.now_s = 0, 0.0
        self.tcp = [f for f in scenario.data["flow"] if f["kind"] in ("bulk", "file")]
        self.state = {f["id"]: {"cwnd": 10.0, "ssthresh": None, "bytes": 0.0} for f in self.tcp}
        self.samples: list[dict[str, Any]] = []
        self.links: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        self.pings: list[dict[str, Any]] = []
        self.queue = 0.0

    @property
    def finished(self) -> bool:
        return self.now_s >= self.scenario.duration_s - 1e-9

    def step(self) -> None:
        self.interval += 1
        self.now_s = self.interval * self.step_s
        packets_per_s = self.rate * 1e6 / 8 / 1500
        queue_ms = self.queue / packets_per_s * 1e3
        rtt_ms = self.base_ms + queue_ms + self.random.expovariate(1 / 3)
        windows = {f["id"]: f.get("window_bytes", 4_000_000) / 1448 for f in self.tcp}
        flying = {i: min(s["cwnd"], windows[i]) for i, s in self.state.items()}
        total = sum(flying.values())
        pipe = packets_per_s * self.base_ms / 1e3
        self.queue = max(0.0, total - pipe)
        dropped = self.queue > self.queue_limit
        through = min(packets_per_s, total / (rtt_ms / 1e3)) if total else 0.0
        time_ns = int(self.now_s * 1e9)
        for identity, state in self.state.items():
            share = flying[identity] / total
            mbps = through * share * 1448 * 8 / 1e6
            state["bytes"] += mbps * 1e6 / 8 * self.step_s
            self._sample(time_ns, identity, state, mbps, rtt_ms, flying[identity])
            self._grow(time_ns, identity, state, rtt_ms, dropped, flying[identity])
        for link, busy, delay in (("down.0.link", through, queue_ms), ("up.0.link", 0.0, 0.3)):
            rate = self.rate if link.startswith("down") else 0.045
            mbps = busy * 1500 * 8 / 1e6 if busy else min(rate, through / 2 * 52 * 8 / 1e6)
            self.links.append(
                {
                    "time_ns": time_ns, "link": link, "throughput_mbps": mbps,
                    "capacity_mbps": float(rate), "queue_packets": int(self.queue) if busy else 0,
                    "queue_bytes": int(self.queue) * 1500 if busy else 0,
                    "queue_delay_ms": delay, "dropped_packets": int(dropped and busy > 0),
                }
            )  # fmt: skip
        for flow in self.scenario.data["flow"]:
            if flow["kind"] == "ping":
                lost = self.random.random() < 0.01
                self.pings.append(
                    {
                        "flow": flow["id"], "sequence": len(self.pings), "sent_ns": time_ns,
                        "rtt_ms": None if lost else rtt_ms,
                    }
                )  # fmt: skip

    def _sample(
        self,
        time_ns: int,
        identity: str,
        state: dict[str, Any],
        mbps: float,
        rtt: float,
        fly: float,
    ) -> None:
        self.samples.append(
            {
                "time_ns": time_ns, "flow": identity, "goodput_mbps": mbps,
                "delivered_bytes": int(state["bytes"]), "cwnd_segments": int(state["cwnd"]),
                "ssthresh_segments": state["ssthresh"], "srtt_ms": rtt, "rtt_ms": rtt,
                "inflight_segments": int(fly),
            }
        )  # fmt: skip

    def _grow(
        self, time_ns: int, identity: str, state: dict[str, Any], rtt: float, dropped: bool,
        flying: float,
    ) -> None:  # fmt: skip
        if flying < state["cwnd"] - 1:
            return
        rounds = self.step_s / (rtt / 1e3)
        if dropped:
            event = {
                "time_ns": time_ns, "flow": identity, "link": None, "reason": None,
                "cwnd_segments": int(state["cwnd"]), "value": None, "packets": None,
            }  # fmt: skip
            if state["ssthresh"] is None:
                self.events.append({**event, "kind": "slow_start_exit", "reason": "loss"})
            self.events.append({**event, "kind": "recovery_start"})
            self.events.append(
                {
                    **event, "flow": None, "link": "down.0.link", "kind": "drop",
                    "reason": "queue full", "cwnd_segments": None, "packets": 3,
                }
            )  # fmt: skip
            state["cwnd"] *= 0.7
            state["ssthresh"] = int(state["cwnd"])
        elif state["ssthresh"] is None:
            state["cwnd"] *= 2**rounds
        else:
            state["cwnd"] += rounds

    def result(self) -> Result:
        samples = pl.DataFrame(self.samples, schema_overrides={"ssthresh_segments": pl.UInt32})
        flows, rows, histogram = [], [], []
        for flow in self.scenario.data["flow"]:
            entry, row = self._flow(flow, samples)
            if entry is not None:
                flows.append(entry)
            rows.append(row)
            rtts = (
                samples.filter(pl.col("flow") == flow["id"])["rtt_ms"]
                if flow["kind"] != "ping"
                else pl.Series([p["rtt_ms"] for p in self.pings if p["flow"] == flow["id"]])
            ).drop_nulls()
            for low, count in sorted(_bins(rtts.to_list()).items()):
                histogram.append(
                    {"flow": flow["id"], "low_ms": low, "high_ms": low * 1.02, "count": count}
                )
        links = pl.DataFrame(self.links)
        tables = {
            "flows": pl.DataFrame(rows), "samples": samples, "links": links,
            "pings": pl.DataFrame(
                self.pings,
                schema={"flow": pl.String, "sequence": pl.UInt64, "sent_ns": pl.Int64,
                        "rtt_ms": pl.Float64},
            ),
            "events": pl.DataFrame(
                self.events,
                schema={"time_ns": pl.Int64, "flow": pl.String, "link": pl.String,
                        "kind": pl.String, "reason": pl.String, "cwnd_segments": pl.UInt32,
                        "value": pl.Float64, "packets": pl.UInt64},
            ),
            "rtt_histogram": pl.DataFrame(histogram),
        }  # fmt: skip
        summary = {
            "seed": self.seed, "simulated_s": self.now_s, "events": self.interval * 40,
            "flows": flows, "pings": self._pings(), "links": self._links(links),
        }  # fmt: skip
        return Result(summary, tables)

    def _flow(
        self, flow: dict[str, Any], samples: pl.DataFrame
    ) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        end = self.now_s
        identity = flow["id"]
        entry: dict[str, Any] | None = None
        mine = samples.filter(pl.col("flow") == identity)
        if flow["kind"] != "ping":
            windowed = flow.get("window_bytes") is not None
            first = next((e for e in self.events if e["kind"] == "slow_start_exit"), None)
            entry = {
                "id": identity, "kind": flow["kind"], "direction": flow["direction"],
                "congestion": flow.get("congestion", "reno"), "profile": flow.get("profile", "rfc"),
                "goodput_mbps": mine["goodput_mbps"].mean(),
                "rtt_ms": _rtt(mine["rtt_ms"]), "retransmitted_segments": len(self.events),
                "rto_count": 0,
                "written_mbps": sum(mine["goodput_mbps"]) / len(mine) * 1.05,
                "steady_mbps": mine["goodput_mbps"].tail(50).mean(),
                "converged_after_s": 1.5,
                "slow_start_exit": None if first is None else {
                    "time_s": first["time_ns"] / 1e9, "cwnd_segments": first["cwnd_segments"],
                    "reason": first["reason"],
                },
                "limited_s": {"cwnd": 0.1 * end if windowed else end,
                              "receive_window": 0.9 * end if windowed else 0.0,
                              "send_buffer": 0.0, "application": 0.0},
                "completed_s": None,
            }  # fmt: skip
        row = {
            "flow": identity, "kind": flow["kind"], "direction": flow["direction"],
            "congestion": flow.get("congestion"), "profile": flow.get("profile"), "start_ns": 0,
            "end_ns": int(end * 1e9), "segments_sent": 1000,
            "goodput_mbps": entry["goodput_mbps"] if entry else 0.0,
            "retransmitted_segments": len(self.events),
        }  # fmt: skip
        return entry, row

    def _pings(self) -> list[dict[str, Any]]:
        entries = []
        for flow in self.scenario.data["flow"]:
            if flow["kind"] == "ping":
                mine = [p["rtt_ms"] for p in self.pings if p["flow"] == flow["id"]]
                rtts = pl.Series([rtt for rtt in mine if rtt is not None])
                entries.append(
                    {
                        "id": flow["id"], "sent": len(mine), "lost": len(mine) - len(rtts),
                        "rtt_ms": {**_rtt(rtts), "mdev": rtts.std()},
                    }
                )  # fmt: skip
        return entries

    def _links(self, links: pl.DataFrame) -> list[dict[str, Any]]:
        entries = []
        for (name,), frame in links.group_by(["link"], maintain_order=True):
            through = float(frame["throughput_mbps"].mean())  # type: ignore[arg-type]
            capacity = float(frame["capacity_mbps"].mean())  # type: ignore[arg-type]
            delay = _rtt(frame["queue_delay_ms"])
            delay["max"] = frame["queue_delay_ms"].max()
            drops = int(frame["dropped_packets"].sum())
            entries.append(
                {
                    "id": name, "throughput_mbps": through, "capacity_mbps": capacity,
                    "utilisation": through / capacity, "queue_delay_ms": delay,
                    "dropped_packets": {"queue full": drops} if drops else {},
                }
            )  # fmt: skip
        return entries


def _rtt(series: pl.Series) -> dict[str, Any]:
    return {
        "min": series.min(), "mean": series.mean(), "p50": series.quantile(0.5),
        "p95": series.quantile(0.95), "p99": series.quantile(0.99),
    }  # fmt: skip


def _bins(values: list[float]) -> dict[float, int]:
    counts: dict[float, int] = {}
    for value in values:
        low = 1.02 ** math.floor(math.log(value, 1.02))
        counts[low] = counts.get(low, 0) + 1
    return counts


def install() -> types.ModuleType:
    """Make this module importable as ``airpath._core``."""
    import airpath

    module = sys.modules[__name__]
    sys.modules["airpath._core"] = module
    airpath._core = module
    return module
