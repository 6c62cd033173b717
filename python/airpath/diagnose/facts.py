"""What the rules look at: flows and links of one run, with the quantities they need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

    Table = Callable[[str], pl.DataFrame | None]


@dataclass(frozen=True)
class Gain:
    """A figure now, and what it would be without the cause."""

    metric: str
    now: float
    then: float


@dataclass(frozen=True)
class Finding:
    """One diagnosed cause."""

    cause: str
    """Stable name, such as ``receive-window``."""
    subject: str
    """Id of the flow or link it is about."""
    confidence: float
    """0 to 1."""
    evidence: str
    advice: str
    gain: Gain | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the entry of the document."""
        return asdict(self)


@dataclass(frozen=True)
class Link:
    """A rate-limited stage, over the whole run."""

    id: str
    throughput_mbps: float
    capacity_mbps: float
    utilisation: float
    queue_p50_ms: float | None
    queue_p95_ms: float | None

    @property
    def direction(self) -> str:
        """``down`` or ``up``."""
        return direction_of(self.id)

    @property
    def ue(self) -> str | None:
        """The UE whose radio buffer it is."""
        return self.id[len(_RADIO) : -len(self.direction) - 1] if _is_radio(self.id) else None

    @property
    def varies(self) -> bool:
        """Its capacity follows a trace."""
        return self.id.endswith(".trace")


@dataclass(frozen=True)
class Flow:
    """A TCP flow, over its life."""

    id: str
    direction: str
    congestion: str
    goodput_mbps: float
    start_ns: int
    active_s: float
    rtt_min_ms: float | None
    rtt_mean_ms: float | None
    limited_s: dict[str, float]
    segments: int
    retransmitted: int
    timeouts: int
    steady_mbps: float | None
    converged_after_s: float | None
    ue: str | None = None
    held_by_proxy: bool = False
    """A proxy on its way has data that it cannot send on yet: the receive window is its."""

    def limited_share(self, limit: str) -> float:
        """Share of the flow's life that it was held back by this limit, 0 to 1."""
        return min(1.0, self.limited_s.get(limit, 0.0) / self.active_s) if self.active_s else 0.0

    @property
    def in_flight_bytes(self) -> float | None:
        """Mean bytes in flight, by Little's law from goodput and mean RTT."""
        if self.rtt_mean_ms is None:
            return None
        return window_bytes(self.goodput_mbps, self.rtt_mean_ms)


@dataclass(frozen=True)
class Drop:
    """Packets lost at one place for one reason, over the whole run."""

    place: str
    reason: str
    packets: int


@dataclass(frozen=True)
class Moves:
    """What a UE met between cells, over the whole run."""

    ue: str
    handovers: int
    interruptions_ms: list[float]
    """Of handovers and of connections established again."""
    failed_handovers: int
    failures: int
    """Radio link failures."""
    lost_packets: int
    """Packets of both directions that a change of cell lost."""


@dataclass(frozen=True)
class Facts:
    """One run."""

    flows: list[Flow]
    links: list[Link]
    """Over the whole run."""
    seen: dict[str, list[Link]]
    """By flow: the links over its life only."""
    drops: list[Drop]
    has_datagrams: bool
    moves: list[Moves]
    base_rtt_ms: float | None
    """Shortest RTT that any flow or ping saw: all share the path."""

    def bottleneck(self, flow: Flow, direction: str) -> Link | None:
        """The slowest link in a direction, as it was while the flow lived."""
        there = [
            link
            for link in self.seen.get(flow.id, [])
            if link.direction == direction and link.ue in (None, flow.ue)
        ]
        return min(there, key=lambda link: link.capacity_mbps, default=None)

    def reachable_mbps(self, flow: Flow) -> float | None:
        """Goodput if the flow took all that its bottleneck leaves free; headers stay headers."""
        link = self.bottleneck(flow, flow.direction)
        if link is None or link.throughput_mbps <= 0:
            return None
        alone = sum(one.direction == flow.direction for one in self.flows) == 1
        share = flow.goodput_mbps / link.throughput_mbps
        payload = share if alone and not self.has_datagrams and 0.5 < share <= 1 else 0.95
        free = max(0.0, link.capacity_mbps - link.throughput_mbps)
        return flow.goodput_mbps + free * payload

    def main_flow(self, direction: str) -> Flow | None:
        """The flow that carried most in a direction."""
        there = [flow for flow in self.flows if flow.direction == direction]
        return max(there, key=lambda flow: flow.goodput_mbps * flow.active_s, default=None)

    def as_seen(self, link: Link) -> Link:
        """A link as the main flow of its direction saw it; over the whole run without one."""
        flow = self.main_flow(link.direction)
        views = self.seen.get(flow.id, []) if flow else []
        return next((view for view in views if view.id == link.id), link)

    def main_drop(self, direction: str) -> Drop | None:
        """Where most packets of a direction were lost."""
        there = [drop for drop in self.drops if direction_of(drop.place) == direction]
        return max(there, key=lambda drop: drop.packets, default=None)


def facts(document: dict[str, Any], table: Table) -> Facts:
    """Gather the facts of one run from its document and its tables."""
    flow_table = table("flows")
    rows = {} if flow_table is None else {row["flow"]: row for row in flow_table.to_dicts()}
    end_s = float(document["run"]["simulated_s"])
    flows = [
        _flow(entry, rows.get(entry["id"], {}), end_s)
        for entry in document["flows"]
        if entry["kind"] in ("bulk", "file")
    ]
    held = {entry["id"] for entry in document.get("proxies", []) if _holds(entry)}
    flows = [replace(flow, held_by_proxy=flow.id in held) for flow in flows]
    links = [_link(entry) for entry in document["links"]]
    intervals = table("links")
    return Facts(
        flows=flows,
        links=links,
        seen={flow.id: [_during(link, flow, intervals) for link in links] for flow in flows},
        drops=_drops(table("events")),
        moves=_moves(table("events")),
        has_datagrams=any(entry["kind"] == "udp" for entry in document["flows"]),
        base_rtt_ms=_shortest_rtt(document),
    )


_RADIO = "radio."


def _is_radio(place: str) -> bool:
    return place.startswith(_RADIO)


def direction_of(place: str) -> str:
    """``down`` or ``up`` of a stage or of a UE's radio: ``down.0.link``, ``radio.UE.down``."""
    return place.rpartition(".")[2] if _is_radio(place) else place.partition(".")[0]


def window_bytes(rate_mbps: float, rtt_ms: float) -> float:
    """Bytes in flight that this rate needs at this RTT."""
    return rate_mbps * 1e6 / 8 * rtt_ms / 1e3


def window_rate_mbps(window: float, rtt_ms: float) -> float:
    """Rate that this many bytes a round trip give."""
    return window * 8 / 1e6 / (rtt_ms / 1e3)


def _flow(entry: dict[str, Any], row: dict[str, Any], end_s: float) -> Flow:
    start_ns = row.get("start_ns") or 0
    end_ns = row.get("end_ns")
    active_s = (end_ns if end_ns is not None else end_s * 1e9) - start_ns
    rtt = entry.get("rtt_ms") or {}
    return Flow(
        id=entry["id"],
        direction=entry["direction"],
        congestion=entry.get("congestion") or "",
        ue=entry.get("ue"),
        goodput_mbps=float(entry.get("goodput_mbps") or 0.0),
        start_ns=start_ns,
        active_s=max(0.0, active_s / 1e9),
        rtt_min_ms=rtt.get("min"),
        rtt_mean_ms=rtt.get("mean"),
        limited_s=entry.get("limited_s") or {},
        segments=int(row.get("segments_sent") or 0),
        retransmitted=int(entry.get("retransmitted_segments") or 0),
        timeouts=int(entry.get("rto_count") or 0),
        steady_mbps=entry.get("steady_mbps"),
        converged_after_s=entry.get("converged_after_s"),
    )


def _holds(proxy: dict[str, Any]) -> bool:
    """Whether the proxy's sender seldom waited for data to come in."""
    limited = {key: value or 0.0 for key, value in proxy["limited_s"].items()}
    return 2 * limited["application"] < sum(limited.values())


def _link(entry: dict[str, Any]) -> Link:
    queue = entry.get("queue_delay_ms") or {}
    return Link(
        id=entry["id"],
        throughput_mbps=float(entry.get("throughput_mbps") or 0.0),
        capacity_mbps=float(entry.get("capacity_mbps") or 0.0),
        utilisation=float(entry.get("utilisation") or 0.0),
        queue_p50_ms=queue.get("p50"),
        queue_p95_ms=queue.get("p95"),
    )


def _shortest_rtt(document: dict[str, Any]) -> float | None:
    entries = [*document["flows"], *document["pings"]]
    rtts = [(entry.get("rtt_ms") or {}).get("min") for entry in entries]
    return min((rtt for rtt in rtts if rtt is not None), default=None)


def _during(link: Link, flow: Flow, intervals: pl.DataFrame | None) -> Link:
    """The link over the life of a flow; as it is if that is the whole run or unknown."""
    import polars as pl

    if intervals is None:
        return link
    end_ns = flow.start_ns + round(flow.active_s * 1e9)
    lived = intervals.filter(
        (pl.col("link") == link.id)
        & (pl.col("time_ns") > flow.start_ns)
        & (pl.col("time_ns") <= end_ns)
    )
    if lived.height in (0, intervals.filter(pl.col("link") == link.id).height):
        return link
    through, capacity, median, late = lived.select(
        pl.col("throughput_mbps").mean(),
        pl.col("capacity_mbps").mean().alias("capacity"),
        pl.col("queue_delay_ms").median().alias("p50"),
        pl.col("queue_delay_ms").quantile(0.95).alias("p95"),
    ).row(0)
    return replace(
        link,
        throughput_mbps=through,
        capacity_mbps=capacity,
        utilisation=through / capacity if capacity else 0.0,
        queue_p50_ms=median,
        queue_p95_ms=late,
    )


def _drops(events: pl.DataFrame | None) -> list[Drop]:
    import polars as pl

    if events is None or events.is_empty():
        return []
    lost = (
        events.filter((pl.col("kind") == "drop") & pl.col("link").is_not_null())
        .with_columns(pl.col("link").cast(pl.String))
        .group_by("link", "reason")
        .agg(pl.col("packets").sum())
        .sort("link", "reason")
    )
    return [
        Drop(row["link"], (row["reason"] or "").replace("_", " "), int(row["packets"] or 0))
        for row in lost.to_dicts()
    ]


def _moves(events: pl.DataFrame | None) -> list[Moves]:
    import polars as pl

    if events is None or events.is_empty() or "cell" not in events.columns:
        return []
    at_radio = events.with_columns(pl.col("link").cast(pl.String)).filter(
        pl.col("link").str.starts_with(_RADIO)
    )
    moves = []
    names = at_radio.filter(pl.col("cell").is_not_null())["link"].unique(maintain_order=True)
    for link in names:
        ue = link[len(_RADIO) :].rpartition(".")[0]
        own = at_radio.filter(pl.col("link").is_in([f"{_RADIO}{ue}.down", f"{_RADIO}{ue}.up"]))
        kinds = own["kind"].cast(pl.String).to_list()
        lost = own.filter(pl.col("reason") == "handover")["packets"].sum()
        moves.append(
            Moves(
                ue=ue,
                handovers=kinds.count("handover_command"),
                interruptions_ms=own.filter(pl.col("kind") == "handover_complete")[
                    "value"
                ].to_list(),
                failed_handovers=kinds.count("handover_failed"),
                failures=sum(kind.startswith("radio_link_failure") for kind in kinds),
                lost_packets=int(lost or 0),
            )
        )
    return moves
