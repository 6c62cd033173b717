"""What an emulation does, in Prometheus' text format: cells, UEs, links, flows, alarms.

Counters begin at the start of the run. Units are Prometheus' base units: seconds and bytes; radio
blocks, packets and segments are counted. Scraped from 127.0.0.1 only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from airpath.base.loopback import LOOPBACK, Address, Handler, Server
from airpath.emulation.oam.alarms import DIRECTIONS, KINDS, Alarms
from airpath.errors import AirpathError

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from airpath.documents import Snapshot

Source = Callable[[], "Snapshot | None"]

RRC_STATES = ("idle", "inactive", "cell_pch", "cell_fach", "cell_dch", "connected", "handover")
CONNECTED = ("cell_fach", "cell_dch", "connected")
"""States in which data is carried."""

_RADIO = {
    "bytes": ("delivered_bytes", "Bytes of packets that the radio delivered."),
    "prbs": ("prbs", "Resource blocks used, retransmissions included."),
    "blocks": ("transport_blocks", "New transport blocks."),
    "mcs_sum": ("mcs_index_sum", "Sum of the MCS indices of new transport blocks."),
    "first_errors": ("first_errors", "New transport blocks that failed the first time."),
    "harq_retransmissions": ("harq_retransmissions", "HARQ retransmissions."),
    "lost_blocks": ("harq_lost_blocks", "Transport blocks that HARQ gave up on."),
    "rlc_retransmissions": ("rlc_retransmissions", "RLC PDUs retransmitted."),
}
"""Counters of a UE and direction, by their key in a snapshot."""

_ACCESS = {
    "scheduling_requests": "Scheduling requests sent.",
    "buffer_status_reports": "Buffer status reports sent.",
    "grants": "Uplink grants for new data.",
    "random_accesses": "Random access procedures started.",
}


class Collector:
    """Makes metrics of the newest snapshot whenever Prometheus asks."""

    def __init__(
        self, source: Source, bound_s: float, labels: dict[str, str], alarms: Alarms
    ) -> None:
        """``bound_s`` is what 99 % of the packets may be late, ``labels`` describe the run.

        Somebody else updates ``alarms``: they need more snapshots than Prometheus asks for.
        """
        self._source = source
        self._bound_s = bound_s
        self._labels = labels
        self._alarms = alarms

    def collect(self) -> Iterator[Metric]:
        """Yield every metric; before the first snapshot only that there is none."""
        from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily

        snapshot = self._source()
        yield GaugeMetricFamily(
            "airpath_up", "1 while packets are forwarded.", value=float(snapshot is not None)
        )
        yield InfoMetricFamily("airpath_run", "The run.", value=self._labels)
        if snapshot is None:
            return
        yield GaugeMetricFamily(
            "airpath_elapsed_seconds", "Time since the start.", value=snapshot["time_s"]
        )
        yield from self._directions(snapshot)
        yield from _links(snapshot)
        yield from _cells(snapshot)
        yield from _ues(snapshot)
        yield from _flows(snapshot)
        yield self._alarm()

    def _directions(self, snapshot: Snapshot) -> Iterator[Metric]:
        from prometheus_client.core import GaugeMetricFamily

        for key, name, text in (
            ("entered", "entered_packets", "Packets that entered the network."),
            ("left", "left_packets", "Packets that left the network."),
            ("left_bytes", "left_bytes", "Bytes of packets that left the network."),
            ("refused", "refused_packets", "Packets that the kernel rejected."),
        ):
            counter = _counter(name, text, ["direction"])
            for direction, entry in _both(snapshot["directions"]):
                counter.add_metric([direction], entry[key])
            yield counter
        dropped = _counter("dropped_packets", "Packets dropped.", ["direction", "reason"])
        late = GaugeMetricFamily(
            "airpath_lateness_seconds",
            "How late packets have been handed to the kernel so far; quantile 1 is the latest.",
            labels=["direction", "quantile"],
        )
        for direction, entry in _both(snapshot["directions"]):
            for why, packets in entry["dropped"]:
                dropped.add_metric([direction, why], packets)
            for quantile, key in (("0.99", "late_p99_us"), ("1", "late_max_us")):
                if entry[key] is not None:
                    late.add_metric([direction, quantile], entry[key] / 1e6)
        yield dropped
        yield late
        yield GaugeMetricFamily(
            "airpath_lateness_bound_seconds",
            "How late 99 % of the packets may be at most.",
            value=self._bound_s,
        )

    def _alarm(self) -> Metric:
        from prometheus_client.core import GaugeMetricFamily

        raised = {alarm.name for alarm in self._alarms.raised()}
        alarm = GaugeMetricFamily("airpath_alarm", "1: the alarm is raised.", labels=["alarm"])
        for kind in KINDS:
            alarm.add_metric([kind.name], float(kind.name in raised))
        return alarm


@contextmanager
def served(port: int, collector: Collector) -> Iterator[Address]:
    """Answer Prometheus at ``http://127.0.0.1:PORT/metrics`` as long as the context lasts.

    Its value is where; port 0: any that is free.
    """
    try:
        from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
    except ImportError:
        raise AirpathError(
            "--metrics needs prometheus-client: pip install 'airpath[metrics]'"
        ) from None
    registry = CollectorRegistry()
    registry.register(collector)

    class Metrics(Handler):
        def answer(self) -> None:
            """Send them, whatever the path."""
            self.send(HTTPStatus.OK, CONTENT_TYPE_LATEST, generate_latest(registry))

    with Server(Address(LOOPBACK, port), Metrics).running("metrics") as there:
        yield there


def _links(snapshot: Snapshot) -> Iterator[Metric]:
    sent = _counter("link_bytes", "Bytes that left a link of the path.", ["link"])
    queued = _gauge("link_queue_bytes", "Bytes waiting.", ["link"])
    packets = _gauge("link_queue_packets", "Packets waiting.", ["link"])
    for link in snapshot["links"]:
        sent.add_metric([link["id"]], link["bytes"])
        queued.add_metric([link["id"]], link["queue_bytes"])
        packets.add_metric([link["id"]], link["queue_packets"])
    yield from (sent, queued, packets)


def _cells(snapshot: Snapshot) -> Iterator[Metric]:
    labels = ["cell", "direction"]
    used = _counter("cell_prbs", "Resource blocks used.", labels)
    room = _gauge("cell_prbs_per_second", "Resource blocks that a cell has per second.", labels)
    ues = _gauge("cell_ues", "UEs by state of RRC.", ["cell", "state"])
    for cell in snapshot["cells"]:
        for index, direction in enumerate(DIRECTIONS):
            used.add_metric([cell["id"], direction], cell["prbs"][index])
            room.add_metric([cell["id"], direction], cell["prbs_per_s"][index])
        here = [ue["rrc"] for ue in snapshot["ues"] if ue["cell"] == cell["id"]]
        for state in RRC_STATES:
            ues.add_metric([cell["id"], state], here.count(state))
    moved = _counter(
        "mobility_events", "Handovers, failed handovers and radio link failures.", ["event"]
    )
    for event, count in snapshot["mobility"]:
        moved.add_metric([event], count)
    yield from (used, room, ues, moved)


def _ues(snapshot: Snapshot) -> Iterator[Metric]:
    ues = snapshot["ues"]
    connected = _gauge("ue_connected", "1: RRC carries data.", ["ue", "cell"])
    awake = _counter("ue_active_time_seconds", "Time in DRX Active Time.", ["ue"])
    state = _gauge("ue_rrc_state", "1: the state of RRC that the UE is in.", ["ue", "state"])
    for ue in ues:
        connected.add_metric([ue["id"], ue["cell"]], float(ue["rrc"] in CONNECTED))
        awake.add_metric([ue["id"]], ue["radio"][0]["awake_s"])
        for name in RRC_STATES:
            state.add_metric([ue["id"], name], float(ue["rrc"] == name))
    yield from (connected, awake, state)
    labels = ["ue", "direction"]
    for key, (name, text) in _RADIO.items():
        counter = _counter(f"ue_{name}", text, labels)
        for ue in ues:
            for direction, radio in _both(ue["radio"]):
                counter.add_metric([ue["id"], direction], radio[key])
        yield counter
    for key, text in _ACCESS.items():
        counter = _counter(f"ue_{key}", text, ["ue"])
        for ue in ues:
            _, (_, up) = _both(ue["radio"])
            counter.add_metric([ue["id"]], up[key])
        yield counter
    queued = _gauge("ue_queue_bytes", "Bytes waiting in the RLC buffer.", labels)
    packets = _gauge("ue_queue_packets", "Packets waiting in the RLC buffer.", labels)
    dropped = _counter("ue_dropped_packets", "Packets dropped by the radio.", [*labels, "reason"])
    for ue in ues:
        for direction, radio in _both(ue["radio"]):
            queued.add_metric([ue["id"], direction], radio["queue_bytes"])
            packets.add_metric([ue["id"], direction], radio["queue_packets"])
            for why, count in radio["dropped"]:
                dropped.add_metric([ue["id"], direction, why], count)
    yield from (queued, packets, dropped)


def _flows(snapshot: Snapshot) -> Iterator[Metric]:
    labels = ["flow"]
    payload = _counter("flow_payload_bytes", "Payload that arrived, of TCP in order.", labels)
    again = _counter("flow_retransmitted_segments", "Segments retransmitted.", labels)
    rtt = _gauge("flow_rtt_seconds", "Mean round trip of the last interval.", labels)
    cwnd = _gauge("flow_cwnd_segments", "The sender's congestion window.", labels)
    for flow in snapshot["flows"]:
        payload.add_metric([flow["id"]], flow["bytes"])
        again.add_metric([flow["id"]], flow["retransmissions"])
        if flow["rtt_ms"] is not None:
            rtt.add_metric([flow["id"]], flow["rtt_ms"] / 1e3)
        if flow["cwnd_segments"] is not None:
            cwnd.add_metric([flow["id"]], flow["cwnd_segments"])
    yield from (payload, again, rtt, cwnd)


def _both(entries: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    return iter(zip(DIRECTIONS, entries, strict=True))


def _counter(name: str, text: str, labels: list[str]) -> Any:
    from prometheus_client.core import CounterMetricFamily

    return CounterMetricFamily(f"airpath_{name}", text, labels=labels)


def _gauge(name: str, text: str, labels: list[str]) -> Any:
    from prometheus_client.core import GaugeMetricFamily

    return GaugeMetricFamily(f"airpath_{name}", text, labels=labels)
