"""One run of the host kernel's TCP through the forwarder."""

from __future__ import annotations

import contextlib
import itertools
import json
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from referee import packets
from referee.network import DEVICE, UE_ADDRESS, Network
from referee.rows import BUFFER_BYTES, SCENARIO, Row

ENDPOINT = Path(__file__).with_name("endpoint.py")
PORT = 5201

LATE_P99_US = 500.0
"""A run whose packets left later than this is invalid: 0.5 ms is 2.5 % of the shortest RTT."""

UNSENT_S = 0.1
"""The application writes this far ahead, at the link's rate: TCP always has something to send."""

LATE_P99_9_SHARE = 0.4
"""Of the time that the full queue takes to drain. When the machine stops for longer, the ACKs that
waited come at once, and the burst that they release overflows the queue: a loss of our making."""

HELD_UP_SHARE = 0.01
"""Of the data may come to the receiver while that sends no ACK for a quarter of the queue, at least
eight segments: its process was put aside with the socket in its hands. Again a burst of our making.
"""

PAUSE_S = 0.5
"""A longer time without a look at the sender: the machine stood still."""

IDLE_SHARE = 0.01
"""An application that left TCP without data for more of its time than this was too slow."""

DRAIN_S = 60.0

LOG_BYTES_PER_PACKET = 700
"""On average, over data, acknowledgements, both ways in and out of the path: room to spare."""


class KernelError(Exception):
    """The run gave no result."""


def transfer(
    row: Row, seed: int, forwarder: Path, tick: Callable[[float], None], keep_log: Path | None
) -> dict[str, Any]:
    """Run a row once; ``tick`` is told the seconds that have passed."""
    sysctls = {
        "net.ipv4.tcp_no_metrics_save": "1",
        # The kernel counts its own overhead too: twice the payload.
        "net.ipv4.tcp_rmem": f"4096 {2 * BUFFER_BYTES} {2 * BUFFER_BYTES}",
        "net.ipv4.tcp_wmem": f"4096 {2 * BUFFER_BYTES} {2 * BUFFER_BYTES}",
    }
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="airpath-")))
        network = stack.enter_context(Network(sysctls))
        log = keep_log or directory / "packets"
        middle = stack.enter_context(_forward(row, seed, forwarder, network, log))
        receiver = stack.enter_context(
            Child(network.command(network.ue, *_endpoint("receive", str(PORT))))
        )
        receiver.await_word("ready")
        unsent = str(int(row.rate_mbps * 1e6 / 8 * UNSENT_S))
        arguments = (UE_ADDRESS, str(PORT), row.congestion, f"{row.duration_s:g}", unsent)
        sender = stack.enter_context(
            Child(network.command(network.server, *_endpoint("send", *arguments)))
        )
        began = time.monotonic()
        while sender.is_running():
            passed = time.monotonic() - began
            if passed > row.duration_s + DRAIN_S:
                raise KernelError("the transfer did not end")
            if not middle.is_running():
                middle.result()
                raise KernelError("the forwarder ended")
            tick(min(passed, row.duration_s))
            time.sleep(0.1)
        sent, received, forwarded = sender.result(), receiver.result(), middle.result()
        records = packets.read(log)
        figures = packets.analyse(records, row.duration_s)
        quarter = max(8, row.buffer_bdp * row.bdp_bytes / 1500 / 4)
        figures["held_up_share"] = packets.held_up(records, quarter)
    return {
        "row": row.name,
        "congestion": sent.pop("congestion"),
        "seed": seed,
        "duration_s": row.duration_s,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "kernel": platform.release(),
        "invalid": invalid(row, figures, forwarded, sent["samples"]),
        **figures,
        "rto_count": sent["counters"].get("TCPTimeouts", 0),
        "written_bytes": sent.pop("written_bytes"),
        "received_bytes": received.pop("received_bytes"),
        "intact": sent.pop("crc32") == received.pop("crc32"),
        "forwarder": forwarded,
        "sender": sent,
        "receiver": received,
    }


def invalid(
    row: Row, figures: dict[str, Any], forwarded: dict[str, Any], samples: list[dict[str, int]]
) -> str | None:
    """Why a run does not count."""
    for name, direction in forwarded["directions"].items():
        lateness = direction["lateness_us"]
        if lateness and lateness["p99"] > LATE_P99_US:
            return f"{name}: 1 % of the packets left more than {lateness['p99']:.0f} us late"
        if lateness and lateness["p99_9"] > LATE_P99_9_SHARE * 1000 * row.buffer_bdp * row.rtt_ms:
            return f"{name}: 0.1 % of the packets left more than {lateness['p99_9']:.0f} us late"
        if direction["refused"]:
            return f"{name}: the kernel refused {direction['refused']} packets"
    if forwarded["log"]["lost"]:
        return f"the packet log lost {forwarded['log']['lost']} records"
    if figures["held_up_share"] > HELD_UP_SHARE:
        return f"the receiver held up the ACKs for {figures['held_up_share']:.0%} of the data"
    times = [sample["time_us"] / 1e6 for sample in samples]
    pause = max((later - sooner for sooner, later in itertools.pairwise(times)), default=0)
    if pause > PAUSE_S:
        return f"the machine stood still for {pause:.1f} s"
    first, last = samples[0], samples[-1]
    idle = 1 - (last["busy_us"] - first["busy_us"]) / (last["time_us"] - first["time_us"])
    if idle > IDLE_SHARE:
        return f"the application left TCP idle for {idle:.0%} of the time"
    return None


@contextlib.contextmanager
def _forward(row: Row, seed: int, forwarder: Path, network: Network, log: Path) -> Iterator[Child]:
    seconds = row.duration_s + 5
    records = 50_000 + int(row.rate_mbps * 1e6 / 8 * seconds / LOG_BYTES_PER_PACKET) * 4
    settings = [text for setting in row.path_settings() for text in ("--set", setting)]
    command = [
        *(str(forwarder), str(SCENARIO), *settings, "--seed", str(seed)),
        *("--server", f"{network.server}:{DEVICE}", "--ue", f"{network.ue}:{DEVICE}"),
        *("--log", str(log), "--log-records", str(records)),
    ]
    with Child(command) as child:
        child.await_word("ready")
        yield child


def _endpoint(*arguments: str) -> list[str]:
    return [sys.executable, "-S", "-E", str(ENDPOINT), *arguments]


class Child:
    """A process that ends when its standard input does; on the way out it is gone."""

    def __init__(self, command: list[str]) -> None:
        # A file, not a pipe: nobody reads before the end.
        self._out = tempfile.TemporaryFile("w+")  # noqa: SIM115
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=self._out,
            stderr=subprocess.PIPE,
            text=True,
            # Ctrl-C is ours to handle.
            start_new_session=True,
        )

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stderr, self._out):
            if stream is not None:
                stream.close()

    def is_running(self) -> bool:
        """It has not ended."""
        return self._process.poll() is None

    def await_word(self, word: str) -> None:
        """Wait for a line of its standard error that ends in ``word``."""
        lines = []
        for line in self._stderr():
            lines.append(line.strip())
            if line.split()[-1:] == [word]:
                return
        raise KernelError("; ".join(lines) or "a process ended without a word")

    def result(self) -> dict[str, Any]:
        """End its standard input; what it printed."""
        assert self._process.stdin is not None, "a pipe was ordered"
        self._process.stdin.close()
        try:
            code = self._process.wait(DRAIN_S)
        except subprocess.TimeoutExpired:
            raise KernelError("a process did not end") from None
        if code != 0:
            raise KernelError(self._stderr().read().strip() or f"exit code {code}")
        self._out.seek(0)
        result: dict[str, Any] = json.load(self._out)
        return result

    def _stderr(self) -> IO[str]:
        assert self._process.stderr is not None, "a pipe was ordered"
        return self._process.stderr
