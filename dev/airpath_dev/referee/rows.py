"""The rows of the table: what is compared."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

SCENARIO = Path(__file__).with_name("path.toml")

BUFFER_BYTES = 33_554_432
LARGE = {
    "send_buffer_bytes": BUFFER_BYTES,
    "buffer.initial_receive_bytes": 0,
    "receive_buffer_bytes": 20_971_520,
    "buffer.receive_tuning": "false",
}
"""Buffers that are never the limit, on either side. A kernel with a fixed size advertises all of it
from the first round trip on (6.18.44), and so does the simulated receiver: if its window grew, it
would acknowledge each segment meanwhile."""

CONGESTION = ("cubic", "reno", "bbr")
RTTS_MS = (20, 80)
BUFFERS_BDP = (0.5, 1.0, 4.0)
LOSSES = (0.0, 0.005)

LIMITS = {"goodput": 0.03, "SRTT": 0.05, "exit cwnd": 0.15, "completion": 0.03}
"""How far apart the two sides may be, by figure."""

DURATION_S = {20: 20.0, 80: 30.0}
"""By RTT. CUBIC's cycle is K = cbrt(0.3 W_max / 0.4) seconds (RFC 9438 4.2): 3.7 s at 20 Mb/s, 20
ms and one BDP, 10 s at 100 Mb/s and 80 ms. The durations are three to five cycles. Of longer ones,
such as Reno's at 100 Mb/s, both sides show the same part."""

BULK, STOCK, FILE = "bulk", "stock", "file"
"""Flows: with large buffers, with Linux's default buffers, and of a fixed size."""


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    congestion: str
    rate_mbps: int
    rtt_ms: int
    buffer_bdp: float
    loss: float
    duration_s: float
    flow: str = BULK
    size_bytes: int = 0

    @property
    def name(self) -> str:
        """File name: all parameters, no results."""
        flow = {BULK: "", STOCK: "-stock", FILE: f"-{self.size_bytes // 1000}kB"}[self.flow]
        return (
            f"{self.congestion}-{self.rate_mbps}mbps-{self.rtt_ms}ms"
            f"-{self.buffer_bdp:g}bdp-loss{self.loss:g}{flow}"
        )

    @property
    def said(self) -> str:
        """Cell of the table: which flow."""
        sizes = {BULK: "large buffers", STOCK: "stock buffers", FILE: ""}
        return sizes[self.flow] or f"{self.size_bytes / 1e6:g} MB"

    @property
    def bdp_bytes(self) -> int:
        """Bandwidth-delay product."""
        return self.rate_mbps * self.rtt_ms * 1000 // 8

    def settings(self) -> list[str]:
        """``KEY=VALUE`` for both sides."""
        settings = [
            f"run.duration_s={self.duration_s:g}",
            f"path.down.0.rate_mbps={self.rate_mbps}",
            f"path.down.0.queue_bytes={round(self.buffer_bdp * self.bdp_bytes)}",
            f"path.down.1.probability={self.loss:g}",
            f"path.down.2.delay_ms={self.rtt_ms / 2:g}",
            f"path.up.0.delay_ms={self.rtt_ms / 2:g}",
            f'flow.0.congestion="{self.congestion}"',
        ]
        if self.flow == BULK:
            settings += [f"flow.0.{key}={value}" for key, value in LARGE.items()]
        if self.flow == FILE:
            settings += ['flow.0.kind="file"', f"flow.0.size_bytes={self.size_bytes}"]
        return settings


def matrix(duration_s: float | None = None) -> list[Row]:
    """All rows, in the order of the table."""
    large = [
        Row(congestion, rate, rtt, buffer, loss, duration_s or DURATION_S[rtt])
        for congestion, loss, rate, rtt, buffer in itertools.product(
            CONGESTION, LOSSES, (5, 20, 100), RTTS_MS, BUFFERS_BDP
        )
        if rate != 5 or not loss
    ]
    stock = [
        Row(congestion, rate, rtt, 1.0, 0.0, duration_s or 15.0, STOCK)
        for congestion, rate, rtt in itertools.product(CONGESTION, (5, 20, 100, 200), RTTS_MS)
    ]
    files = [
        Row(congestion, rate, rtt, 1.0, 0.0, _enough(rate, rtt, size), FILE, size)
        for congestion, rate, rtt, size in itertools.product(
            CONGESTION, (5, 20, 100), RTTS_MS, (100_000, 1_000_000, 5_000_000)
        )
    ]
    return large + stock + files


def _enough(rate_mbps: int, rtt_ms: int, size_bytes: int) -> float:
    """Seconds within which a file is through, whatever happens to it."""
    return round(2.0 + 2 * size_bytes * 8 / (rate_mbps * 1e6) + 30 * rtt_ms / 1e3, 1)
