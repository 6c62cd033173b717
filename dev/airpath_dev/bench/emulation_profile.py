"""Splits the processor time of emulated downloads: the kernel, iperf3, airpath's own code (root).

Each run is a case of bench-emulation under perf (its cpu-clock event). The figures are milliseconds
of processor time per gigabit that was carried. The forwarder polls while nothing is due, so what it
spends on waiting says only that it was idle. A Markdown table goes to stdout. What the kernel does
in threads of its own is not counted.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from airpath_dev.bench.emulation import CASES, FREE, one, transfer
from airpath_dev.harness import FINE, need, say, table

PROFILED = (FREE[1], "NR n78, delay")

HERTZ = 3999

FORWARDER = "airpath-forward"
"""The forwarder's thread; the kernel keeps 15 characters of its name."""

PROGRAM = "iperf3"

KERNEL = {
    FORWARDER: (
        ("write: the receiver's IP and TCP", ("netif_receive_skb", "__local_bh_enable_ip")),
        ("write: copy to the kernel", ("skb_copy_datagram_from_iter", "copy_page_from_iter")),
        ("write: memory, the rest", ("vfs_writev", "do_writev", "__GI___writev")),
        ("read: copy from the kernel", ("skb_copy_datagram_iter",)),
        ("read: memory, the rest", ("vfs_read", "ksys_read", "__GI___libc_read", "read")),
        ("waiting and clock", ("__x64_sys_ppoll", "ppoll")),
    ),
    PROGRAM: (
        ("receive: copy", ("skb_copy_datagram_iter",)),
        ("send: copy", ("skb_do_copy_data_nocache", "_copy_from_iter")),
        ("receive: the rest", ("tcp_recvmsg", "sock_read_iter", "ksys_read")),
        ("send: TCP, queue of the TUN device", ("tcp_sendmsg", "sock_write_iter", "ksys_write")),
    ),
}  # fmt: skip
"""Parts of each thread's time, by functions of the kernel or of libc in the stack."""

AIRPATH = (
    ("waiting and clock", ("clock_gettime", "Forwarder::run", "syscall", "Clock::now")),
    ("airpath: copy segments apart", ("memmove", "memcpy")),
    ("airpath: the model", ("airpath_path", "airpath_network", "airpath_radio", "airpath_queue")),
    ("airpath: meters", ("airpath_emu::observation", "airpath_metrics", "Histogram")),
    ("airpath: the way in and out", ("airpath_emu", "memcmp")),
)
"""Parts of the forwarder's own code, by the function that was interrupted."""


def main(runs: int = 3, seconds: float = 5.0) -> None:
    """Split the processor time of emulated downloads by what took it."""
    need("iperf3", "perf", root=True, exit_code=FINE)
    columns = [profile(name, runs, seconds) for name in PROFILED]
    parts: dict[tuple[str, str], None] = {}
    for column in columns:
        parts.update(dict.fromkeys(sorted(column, key=lambda part: -column[part])))
    threads = [thread for thread in (FORWARDER, PROGRAM) for part in parts if part[0] == thread]
    rows = []
    for thread in dict.fromkeys(threads):
        own = [part for part in parts if part[0] == thread]
        total = [f"{sum(column.get(part, 0.0) for part in own):.0f}" for column in columns]
        rows.append((f"**{thread}**", *total))
        rows += [
            (name, *(f"{column.get((thread, name), 0.0):.1f}" for column in columns))
            for _, name in own
        ]
    print(table(["ms per Gb", *(f"{name}:" for name in PROFILED)], rows))


def profile(name: str, runs: int, seconds: float) -> dict[tuple[str, str], float]:
    """Return the medians of some runs of a case, by thread and part."""
    found: list[Counter[tuple[str, str]]] = []
    carried = []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as place:
            data = f"{place}/perf.data"
            record = ["perf", "record", "-g", "-e", "cpu-clock", "-F", str(HERTZ), "-o", data, "--"]
            run = one(name, CASES[name], transfer(name, seconds), under=record)
            found.append(Counter(map(part, samples(Path(data)))))
        carried.append(run["mbps"] * seconds / 1e3)
        say(f"{name}: {run['mbps']:.0f} Mb/s")
    kept = {key for counts in found for key in counts if key[0] in KERNEL}
    pairs = list(zip(found, carried, strict=True))
    return {
        key: median(1e3 * counts[key] / HERTZ / gigabits for counts, gigabits in pairs)
        for key in kept
    }


def samples(data: Path) -> Iterator[tuple[str, list[str]]]:
    """Return the thread and the functions of each sample, the interrupted one first."""
    words = ["perf", "script", "-i", str(data), "-F", "comm,ip,sym"]
    done = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True
    )
    for block in done.stdout.split("\n\n"):
        lines = block.strip().splitlines()
        if lines:
            yield lines[0].strip(), [line.split(maxsplit=1)[-1] for line in lines[1:]]


def part(sample: tuple[str, Sequence[str]]) -> tuple[str, str]:
    """Return the thread of a sample, and the part of the thread's time that it belongs to."""
    thread, stack = sample
    for name, functions in KERNEL.get(thread, ()):
        if any(function in stack for function in functions):
            return thread, name
    if thread == FORWARDER and stack:
        for name, words in AIRPATH:
            if any(word in stack[0] for word in words):
                return thread, name
    return thread, "the rest"
