"""A Grafana dashboard over the metrics of ``airpath emulate --metrics``."""

from __future__ import annotations

from dataclasses import dataclass

_WIDTH = 12
_HEIGHT = 8
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True)
class Panel:
    """One chart: its queries, each with the legend of its series."""

    title: str
    unit: str
    """A unit as Grafana calls it."""
    queries: tuple[tuple[str, str], ...]


def _rate(metric: str) -> str:
    return f"rate({metric}[$__rate_interval])"


PANELS = (
    Panel("Throughput", "bps", ((f"8 * {_rate('airpath_left_bytes_total')}", "{{direction}}"),)),
    Panel("Alarms", "none", (("airpath_alarm", "{{alarm}}"),)),
    Panel(
        "Throughput by UE",
        "bps",
        ((f"8 * {_rate('airpath_ue_delivered_bytes_total')}", "{{ue}} {{direction}}"),),
    ),
    Panel("Radio buffers", "bytes", (("airpath_ue_queue_bytes", "{{ue}} {{direction}}"),)),
    Panel(
        "Resource blocks in use",
        "percentunit",
        (
            (
                f"{_rate('airpath_cell_prbs_total')} / (airpath_cell_prbs_per_second > 0)",
                "{{cell}} {{direction}}",
            ),
        ),
    ),
    Panel(
        "BLER of first transmissions",
        "percentunit",
        (
            (
                f"{_rate('airpath_ue_first_errors_total')} / "
                f"{_rate('airpath_ue_transport_blocks_total')}",
                "{{ue}} {{direction}}",
            ),
        ),
    ),
    Panel(
        "Mean MCS index",
        "none",
        (
            (
                f"{_rate('airpath_ue_mcs_index_sum_total')} / "
                f"{_rate('airpath_ue_transport_blocks_total')}",
                "{{ue}} {{direction}}",
            ),
        ),
    ),
    Panel(
        "Retransmissions",
        "cps",
        (
            (_rate("airpath_ue_harq_retransmissions_total"), "HARQ {{ue}} {{direction}}"),
            (_rate("airpath_ue_rlc_retransmissions_total"), "RLC {{ue}} {{direction}}"),
            (_rate("airpath_flow_retransmitted_segments_total"), "TCP {{flow}}"),
        ),
    ),
    Panel("Round trips of flows", "s", (("airpath_flow_rtt_seconds", "{{flow}}"),)),
    Panel("Congestion windows", "none", (("airpath_flow_cwnd_segments", "{{flow}}"),)),
    Panel(
        "Dropped packets",
        "pps",
        ((_rate("airpath_dropped_packets_total"), "{{direction}} {{reason}}"),),
    ),
    Panel("Queues of links", "bytes", (("airpath_link_queue_bytes", "{{link}}"),)),
    Panel("UEs by state", "none", (("airpath_cell_ues > 0", "{{cell}} {{state}}"),)),
    Panel(
        "DRX Active Time",
        "percentunit",
        ((_rate("airpath_ue_active_time_seconds_total"), "{{ue}}"),),
    ),
    Panel("Mobility", "none", (("airpath_mobility_events_total", "{{event}}"),)),
    Panel(
        "Lateness so far",
        "s",
        (
            ("airpath_lateness_seconds", "{{direction}} {{quantile}}"),
            ("airpath_lateness_bound_seconds", "bound"),
        ),
    ),
)


def dashboard() -> dict[str, object]:
    """Return the dashboard, for Grafana's import."""
    return {
        "title": "airpath emulate",
        "uid": "airpath-emulate",
        "schemaVersion": 39,
        "tags": ["airpath"],
        "refresh": "5s",
        "time": {"from": "now-15m", "to": "now"},
        "templating": {
            "list": [{"name": "datasource", "type": "datasource", "query": "prometheus"}]
        },
        "panels": [_panel(index, panel) for index, panel in enumerate(PANELS)],
    }


def _panel(index: int, panel: Panel) -> dict[str, object]:
    return {
        "id": index + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": _SOURCE,
        "gridPos": {
            "x": index % 2 * _WIDTH,
            "y": index // 2 * _HEIGHT,
            "w": _WIDTH,
            "h": _HEIGHT,
        },
        "fieldConfig": {"defaults": {"unit": panel.unit}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + number), "expr": query, "legendFormat": legend}
            for number, (query, legend) in enumerate(panel.queries)
        ],
    }
