"""CUBIC of Linux 6.18, HyStart included, as a congestion control of your own.

It is a port of airpath's own CUBIC for the profile ``linux-6.18`` and gives the same tables, byte
for byte: ``tests/python/test_congestion.py``. Run it with

    python examples/cubic.py lte-20

Windows are in whole segments and times in whole nanoseconds. Sources: RFC 9438; Ha and Rhee,
"Taming the elephants: new TCP slow start", 2011; what Linux changed in them since.
"""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass

import airpath
from airpath.congestion import Ack, Congestion, Loss, SlowStartExit, Window

MS = 1_000_000
"""Nanoseconds of a millisecond."""
SECOND = 1_000_000_000
PHASE_NS = 250_000
"""A run begins this long after a tick of the host's clock."""

LOW_WINDOW = 16
TRAIN_SPACING_NS = 2 * MS
SAMPLES = 8
CUSHION_BYTES = 4.0 * 65_536.0
"""Four bursts of segmentation offload."""


@dataclass(slots=True)
class Round:
    """A round trip of HyStart."""

    start_ns: int = 0
    last_ack_ns: int = 0
    end_bytes: int = 0
    samples: int = 0
    rtt_ns: int | None = None
    min_rtt_ns: int = 0


class Hystart:
    """HyStart as Linux has it since 6.14."""

    def __init__(self) -> None:
        self.min_rtt_ns: int | None = None
        self.round = Round()
        self.done = False

    def restart(self) -> None:
        """Start over after a time-out."""
        self.min_rtt_ns, self.done = None, False
        self.round = Round(end_bytes=self.round.end_bytes)

    def on_ack(self, ack: Ack, window: Window) -> SlowStartExit | None:
        """Judge an acknowledgement before the window grows by it."""
        if ack.rtt_ns is None:
            return None
        rtt_ns = max(ack.rtt_ns // 1000, 1) * 1000
        if self.min_rtt_ns is None or rtt_ns < self.min_rtt_ns:
            self.min_rtt_ns = rtt_ns
        if self.done or window.cwnd_segments >= window.ssthresh_segments:
            return None
        if ack.snd_una_bytes > self.round.end_bytes:
            now_ns = ack.now_ns // 1000 * 1000
            self.round = Round(now_ns, now_ns, ack.snd_nxt_bytes)
        if window.cwnd_segments < LOW_WINDOW:
            return None
        exit_ = self._train(ack, window) or self._delay(rtt_ns)
        self.done = exit_ is not None
        return exit_

    def _train(self, ack: Ack, window: Window) -> SlowStartExit | None:
        """End slow start when a train of acknowledgements is as long as the path."""
        base_ns = self.min_rtt_ns or 0
        per_rtt = 2.0 * window.cwnd_segments * ack.mss_bytes
        cushion_s = CUSHION_BYTES * (ack.srtt_ns / 1e9) / per_rtt
        longest_ns = base_ns + min(int(cushion_s * 1e9 + 0.5), MS)
        if not ack.paced:
            longest_ns //= 2
        now_ns = ack.now_ns // 1000 * 1000
        if now_ns - self.round.last_ack_ns > TRAIN_SPACING_NS:
            return None
        self.round.last_ack_ns = now_ns
        if now_ns - self.round.start_ns > longest_ns // 1000 * 1000:
            return SlowStartExit("ack_train", base_rtt_ns=base_ns)
        return None

    def _delay(self, rtt_ns: int) -> SlowStartExit | None:
        """End slow start when even the smallest RTT of a round is well above that of the path."""
        current, base_ns = self.round, self.min_rtt_ns or 0
        current.rtt_ns = rtt_ns if current.rtt_ns is None else min(current.rtt_ns, rtt_ns)
        if current.samples < SAMPLES:
            current.samples += 1
            current.min_rtt_ns = base_ns
            return None
        if current.rtt_ns <= highest(base_ns):
            return None
        fell = current.rtt_ns <= highest(current.min_rtt_ns)
        return SlowStartExit("falling_minimum" if fell else "delay", current.rtt_ns, base_ns)


def highest(min_rtt_ns: int) -> int:
    """Highest RTT of a round that does not indicate a queue."""
    return min_rtt_ns + min(max(min_rtt_ns // 8, 4 * MS), 16 * MS)


@dataclass(slots=True)
class Epoch:
    """A stage of congestion avoidance."""

    start_ns: int
    k_s: float
    origin: int
    reno: int
    reno_credit: int = 0
    pace: int = 0
    paced_at_ns: int = 0
    paced_cwnd: int = -1


@dataclass
class Cubic(Congestion):
    """CUBIC in whole segments."""

    c: float = 0.4
    beta: float = 717 / 1024
    """In whole 1024ths."""
    tick_ns: int = 4 * MS
    """Tick of the host's clock: 250 Hz. 0 means an exact clock."""
    name = "cubic"

    def __post_init__(self) -> None:
        windows = int(8.0 * (1.0 + self.beta) / (3.0 * (1.0 - self.beta)))
        self.reno_windows = max(windows, 1) / 8.0
        self.hystart = Hystart()
        self.w_max: int | None = None
        self.credit = 0
        self.epoch: Epoch | None = None

    def on_ack(self, ack: Ack, window: Window) -> SlowStartExit | None:
        """Grow the window."""
        exit_ = self.hystart.on_ack(ack, window)
        if exit_ is not None:
            window.ssthresh_segments = window.cwnd_segments
        if not ack.cwnd_limited:
            return exit_
        left = ack.acked_segments
        room = window.ssthresh_segments - window.cwnd_segments
        if room > 0:
            window.cwnd_segments += min(left, room)
            left = int(left - room) if left > room else 0
        if left:
            self._avoid_congestion(left, ack, window)
        return exit_

    def on_loss(self, loss: Loss, window: Window) -> None:
        """Remember W_max and set ssthresh (RFC 9438 4.6, 4.7)."""
        cwnd = int(window.cwnd_segments)
        self.epoch, self.credit = None, 0
        shrinks = self.w_max is not None and cwnd < self.w_max
        self.w_max = int(cwnd * ((1.0 + self.beta) / 2.0 if shrinks else 1.0))
        window.ssthresh_segments = max(float(int(cwnd * self.beta)), 2.0)
        if loss.by_timeout:
            # RFC 9438 4.8: K is 0, W_max is cwnd when congestion avoidance begins.
            self.w_max = None
            self.hystart.restart()

    def on_restart(self, now_ns: int, last_sent_ns: int, window: Window) -> None:
        """Leave out the time in which nothing was in flight (RFC 9438 5.8)."""
        if self.epoch is not None:
            self.epoch.start_ns = min(now_ns, self.epoch.start_ns + now_ns - last_sent_ns)

    def _avoid_congestion(self, acked: int, ack: Ack, window: Window) -> None:
        cwnd = int(window.cwnd_segments)
        if self.epoch is None:
            origin = max(self.w_max or 0, cwnd)
            self.epoch = Epoch(ack.now_ns, cube_root((origin - cwnd) / self.c), origin, cwnd)
        self.epoch.reno_credit += acked
        pace = self._pace(self.epoch, ack, cwnd)
        grown = 0
        if self.credit >= pace:
            # The credit was earned at a slower pace: it is worth one segment.
            grown, self.credit = 1, 0
        more, self.credit = divmod(self.credit + acked, pace)
        window.cwnd_segments = cwnd + grown + more

    def _pace(self, epoch: Epoch, ack: Ack, cwnd: int) -> int:
        """Acknowledged segments per segment of growth."""
        fresh = self._age(epoch.paced_at_ns, ack.now_ns) <= SECOND // 32
        if epoch.paced_cwnd == cwnd and fresh:
            return epoch.pace
        # RFC 9438 4.2: the curve is read a smallest RTT ahead.
        ahead_ns = self._age(epoch.start_ns, ack.now_ns) + self._whole(ack.min_rtt_ns)
        curve = pace_to(self._w_cubic(epoch, ahead_ns), cwnd)
        pace = 100 * cwnd if curve is None else curve
        if self.w_max is None:
            pace = min(pace, 20)
        reno = pace_to(self._reno(epoch, cwnd), cwnd)
        if reno is not None:
            pace = min(pace, reno)
        epoch.pace, epoch.paced_at_ns, epoch.paced_cwnd = max(pace, 2), ack.now_ns, cwnd
        return epoch.pace

    def _w_cubic(self, epoch: Epoch, ahead_ns: int) -> int:
        x = ahead_ns / 1e9 - epoch.k_s  # RFC 9438 (1)
        distance = int(self.c * abs(x * x * x))
        return max(epoch.origin - distance, 0) if x < 0.0 else epoch.origin + distance

    def _reno(self, epoch: Epoch, cwnd: int) -> int:
        step = max(int(cwnd * self.reno_windows), 1)  # RFC 9438 (4)
        steps = max(epoch.reno_credit - 1, 0) // step
        epoch.reno += steps
        epoch.reno_credit -= steps * step
        return epoch.reno

    def _age(self, start_ns: int, now_ns: int) -> int:
        """Time on the host's clock."""
        if self.tick_ns == 0:
            return now_ns - start_ns
        ticks = (now_ns + PHASE_NS) // self.tick_ns - (start_ns + PHASE_NS) // self.tick_ns
        return ticks * self.tick_ns

    def _whole(self, time_ns: int) -> int:
        """Time in whole ticks, rounded up."""
        return -(-time_ns // self.tick_ns) * self.tick_ns if self.tick_ns else time_ns


def pace_to(target: int, cwnd: int) -> int | None:
    """Return the pace that brings cwnd to a target in a round trip; None if it is there."""
    return cwnd // (target - cwnd) if target > cwnd else None


def cube_root(x: float) -> float:
    """Cube root by Newton's method, from a start whose exponent is divided by three."""
    if x <= 0.0:
        return 0.0
    (bits,) = struct.unpack("<Q", struct.pack("<d", x))
    (root,) = struct.unpack("<d", struct.pack("<Q", bits // 3 + 0x2A9F_7893_0000_0000))
    for _ in range(5):
        root -= (root * root * root - x) / (3.0 * root * root)
    return float(root)


def main() -> None:
    """Compare this CUBIC with airpath's."""
    name = sys.argv[1] if len(sys.argv) > 1 else "wire"
    sets = {"flow.0.profile": "linux-6.18"}
    for label, congestion in (("airpath", None), ("this file", {"flow.0": Cubic()})):
        run = airpath.run(name, set=sets, congestion=congestion)
        flow = run.summary["flows"][0]
        print(
            f"{label:10} {flow['goodput_mbps']:.3f} Mb/s  {flow['retransmitted_segments']} resent"
        )


if __name__ == "__main__":
    main()
