"""The rows of the table: what is compared."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

SCENARIO = Path(__file__).with_name("path.toml")

BUFFER_BYTES = 33_554_432
"""Send buffer of both sides, as in the scenario: never the limit."""

CONGESTION = ("cubic", "reno", "bbr")
RATES_MBPS = (20, 100)
RTTS_MS = (20, 80)
BUFFERS_BDP = (0.5, 1.0, 4.0)
LOSSES = (0.0, 0.005)

GOODPUT_TOLERANCE = 0.05
RTT_TOLERANCE = 0.10

DURATION_S = {20: 20.0, 80: 30.0}
"""By RTT. CUBIC's cycle is K = cbrt(0.3 W_max / 0.4) seconds (RFC 9438 4.2): 3.7 s at 20 Mb/s, 20
ms and one BDP, 10 s at 100 Mb/s and 80 ms. So three to five cycles; in longer ones, as Reno's at
100 Mb/s, both sides show the same part."""


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    congestion: str
    rate_mbps: int
    rtt_ms: int
    buffer_bdp: float
    loss: float
    duration_s: float

    @property
    def name(self) -> str:
        """File name: every coordinate, none of the results."""
        return (
            f"{self.congestion}-{self.rate_mbps}mbps-{self.rtt_ms}ms"
            f"-{self.buffer_bdp:g}bdp-loss{self.loss:g}"
        )

    @property
    def bdp_bytes(self) -> int:
        """Bandwidth-delay product."""
        return self.rate_mbps * self.rtt_ms * 1000 // 8

    def settings(self) -> list[str]:
        """``KEY=VALUE`` for both sides."""
        return [
            f"run.duration_s={self.duration_s:g}",
            f"path.down.0.rate_mbps={self.rate_mbps}",
            f"path.down.0.queue_bytes={round(self.buffer_bdp * self.bdp_bytes)}",
            f"path.down.1.probability={self.loss:g}",
            f"path.down.2.delay_ms={self.rtt_ms / 2:g}",
            f"path.up.0.delay_ms={self.rtt_ms / 2:g}",
            f'flow.0.congestion="{self.congestion}"',
        ]


def matrix(duration_s: float | None = None) -> list[Row]:
    """All rows, in the order of the table."""
    return [
        Row(congestion, rate, rtt, buffer, loss, duration_s or DURATION_S[rtt])
        for congestion, loss, rate, rtt, buffer in itertools.product(
            CONGESTION, LOSSES, RATES_MBPS, RTTS_MS, BUFFERS_BDP
        )
    ]
