"""One end of a kernel TCP connection; a program of its own, started inside a namespace.

``endpoint.py receive PORT`` takes one connection and reads to its end.
``endpoint.py send HOST PORT CONGESTION SECONDS UNSENT_BYTES`` writes for a time.

Each prints one JSON document. It ends at once when its standard input does, so that nothing
outlives whoever started it. Standard library only: it starts fast.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import sys
import threading
import time
import zlib
from pathlib import Path
from typing import Any

SAMPLE_S = 0.02
DRAIN_S = 60.0
PRIORITY = 40
"""Real time, below the forwarder."""

CHUNK = bytes(range(256)) * 256
TCP_NOTSENT_LOWAT = 25

# struct tcp_info (linux/tcp.h), as far as it is used: eight single bytes, 24 words of 32 bits,
# then 64-bit counters.
INFO = struct.Struct("8B24I4Q6I4Q")
INFO_FIELDS = {
    "ca_state": 1,
    "rto_us": 8,
    "unacked": 12,
    "sacked": 13,
    "lost": 14,
    "retrans": 15,
    "rtt_us": 23,
    "rttvar_us": 24,
    "ssthresh": 25,
    "cwnd": 26,
    "total_retrans": 31,
    "pacing_rate": 32,
    "bytes_acked": 34,
    "unsent_bytes": 38,
    "min_rtt_us": 39,
    "delivery_rate": 42,
    "busy_us": 43,
    "rwnd_limited_us": 44,
    "sndbuf_limited_us": 45,
}


def main() -> None:
    """Do what the arguments say."""
    threading.Thread(target=_end_with_input, daemon=True).start()
    # A process that is put aside while it reads or writes holds the socket, hence its ACKs.
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
    mode, *arguments = sys.argv[1:]
    result = receive(int(arguments[0])) if mode == "receive" else send(*arguments)
    print(json.dumps(result), flush=True)


def receive(port: int) -> dict[str, Any]:
    """Take one connection, read everything."""
    before = _counters()
    with socket.create_server(("0.0.0.0", port)) as server:
        print("ready", file=sys.stderr, flush=True)
        connection, _ = server.accept()
    received, check = 0, 0
    with connection:
        while data := connection.recv(1 << 20):
            received += len(data)
            check = zlib.crc32(data, check)
    return {"received_bytes": received, "crc32": check, "counters": _since(before)}


def send(host: str, port: str, congestion: str, seconds: str, unsent: str) -> dict[str, Any]:
    """Write for a time; at most ``unsent`` bytes wait in the socket that TCP has not sent once."""
    with socket.socket() as sender:
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, congestion.encode())
        sender.setsockopt(socket.IPPROTO_TCP, TCP_NOTSENT_LOWAT, int(unsent))
        before = _counters()
        start = time.monotonic_ns()
        end = start + int(float(seconds) * 1e9)
        sender.connect((host, int(port)))
        samples: list[dict[str, int]] = []
        sampler = threading.Thread(target=_sample, args=(sender, start, end, samples), daemon=True)
        sampler.start()
        written, check = 0, 0
        while (left := end - time.monotonic_ns()) > 0:
            sender.settimeout(left / 1e9)
            try:
                count = sender.send(CHUNK)
            except TimeoutError:
                break
            check = zlib.crc32(CHUNK[:count], check)
            written += count
        sampler.join()
        used = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
        sender.settimeout(DRAIN_S)
        sender.shutdown(socket.SHUT_WR)
        # The other end closes when it has read everything.
        sender.recv(1)
        return {
            "start_ns": start,
            "written_bytes": written,
            "crc32": check,
            "congestion": used.rstrip(b"\0").decode(),
            "samples": samples,
            "counters": _since(before),
            "sysctls": _sysctls(),
            "tcp_cubic": _texts(Path("/sys/module/tcp_cubic/parameters")),
        }


def _sample(sender: socket.socket, start: int, end: int, samples: list[dict[str, int]]) -> None:
    while (now := time.monotonic_ns()) < end:
        raw = sender.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO.size)
        info = INFO.unpack(raw.ljust(INFO.size, b"\0"))
        sample = {name: info[index] for name, index in INFO_FIELDS.items()}
        samples.append({"time_us": (now - start) // 1000, **sample})
        time.sleep(SAMPLE_S)


def _counters() -> dict[str, int]:
    """TCP counters of the namespace, as nstat shows them."""
    found: dict[str, int] = {}
    for file in ("/proc/net/snmp", "/proc/net/netstat"):
        lines = [line.split() for line in Path(file).read_text().splitlines()]
        for names, values in zip(lines[::2], lines[1::2], strict=True):
            if names[0] in ("Tcp:", "TcpExt:"):
                found.update(zip(names[1:], map(int, values[1:]), strict=True))
    return found


def _since(before: dict[str, int]) -> dict[str, int]:
    """What has been counted since."""
    changes = {name: value - before.get(name, 0) for name, value in _counters().items()}
    return {name: change for name, change in changes.items() if change}


def _sysctls() -> dict[str, str]:
    texts = _texts(Path("/proc/sys/net/ipv4"))
    return {name: text for name, text in texts.items() if name.startswith("tcp_")}


def _texts(directory: Path) -> dict[str, str]:
    found = {}
    for path in sorted(directory.glob("*")):
        try:
            found[path.name] = " ".join(path.read_text().split())
        except OSError:
            continue
    return found


def _end_with_input() -> None:
    while os.read(0, 1024):
        pass
    os._exit(3)


if __name__ == "__main__":
    main()
