"""Access to the flows of a capture's report, by their ends."""

from __future__ import annotations

from typing import Literal, TypeAlias

from airpath.documents import (
    CaptureReport,
    FlowReport,
    LimitsReport,
    StreamReport,
    TcpReport,
    Volume,
)

End: TypeAlias = Literal["client", "server"]
ENDS: tuple[tuple[End, End], ...] = (("client", "server"), ("server", "client"))
"""Sender and receiver of each direction."""
LEAST_BYTES = 100_000
"""A connection that moves less is no transfer: it is over before the path shows itself."""


def tcp_of(flow: FlowReport) -> TcpReport:
    """Return what the TCP headers of a TCP flow show."""
    if flow["tcp"] is None:
        raise ValueError(f"flow {flow['id']} is not a TCP flow")
    return flow["tcp"]


def stream(flow: FlowReport, sender: End) -> StreamReport:
    """Return one direction of a TCP flow."""
    tcp = tcp_of(flow)
    return tcp["from_client"] if sender == "client" else tcp["from_server"]


def volume(flow: FlowReport, sender: End) -> Volume:
    """Return the packets and bytes that one end sent."""
    return flow["from_client"] if sender == "client" else flow["from_server"]


def total_bytes(flow: FlowReport) -> int:
    """Return the total IP bytes of both directions."""
    return flow["from_client"]["bytes"] + flow["from_server"]["bytes"]


def main_sender(flow: FlowReport) -> End:
    """Return the end that sent more data over TCP; the client if both sent the same amount."""
    tcp = tcp_of(flow)
    more = tcp["from_server"]["data_bytes"] > tcp["from_client"]["data_bytes"]
    return "server" if more else "client"


def limited_s(limits: LimitsReport) -> float:
    """Return the total time over all limits."""
    return (
        limits["path_s"]
        + limits["receive_window_s"]
        + limits["nothing_to_send_s"]
        + limits["recovery_s"]
    )


def tcp_flows(report: CaptureReport) -> list[FlowReport]:
    """Return the TCP flows of a capture."""
    return [flow for flow in report["flows"] if flow["tcp"]]
