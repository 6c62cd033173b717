"""Compare Mahimahi's mm-link on a recorded trace with the cell that was recorded.

Mahimahi is GPL and only runs beside airpath. `--bin` is a folder with mm-link and mm-delay, both
owned by root and with the set-user-ID bit; by default they are taken from PATH. Each case is a cell
with one UE. A simulation with `--record` saturates the cell, and the recording is exported. Then
the kernel's TCP runs over the cell (`airpath emulate`) and over mm-link with the trace, and pings
measure the delay. TCP uses Reno, because CUBIC leaves slow start on delays that no trace has
(HyStart).
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

import airpath
from airpath.cli.console import aligned
from airpath.drivers import emulate
from airpath.drivers.options import EmulationOptions
from airpath.errors import AirpathError
from airpath.export import mahimahi as export_traces
from airpath.readers import ping
from airpath_dev.harness import FINE, WRONG, NotCheckedError, say

GOODPUT = 0.03
DELAY_P95 = 0.10
"""Limits of the relative differences of the goodput and of the 95th percentile of the RTT."""

NOBODY = 65534
SERVER = "$MAHIMAHI_BASE"
"""The outermost address of Mahimahi's shells."""
NETWORKS = ("100.64.0", "10.0.0")
"""Networks of Mahimahi's addresses, depending on how it was built."""
WARM_UP_S = 1.0

CELL = """\
[run]
duration_s = {duration_s}
[[path.down]]
stage = "delay"
delay_ms = 10
[[path.up]]
stage = "delay"
delay_ms = 10
[radio]
preset = "{preset}"
[radio.channel]
{channel}
[radio.rlc]
buffer_bytes = {buffer}
[radio.rlc_up]
buffer_bytes = {buffer}
{flows}"""

SATURATED = """\
[[flow]]
id = "{direction}"
kind = "udp"
direction = "{direction}"
rate_mbps = {rate}
packet_bytes = 1500
"""

PING = '[[flow]]\nkind = "ping"\n'
MOVING = 'model = "process"\ndistance_m = 600\nspeed_kmh = 30'
CASES: dict[str, dict[str, Any]] = {
    "LTE 20 MHz, standing": {"preset": "lte-20", "channel": "sinr_db = 15", "buffer": 1_000_000},
    "LTE 20 MHz, moving": {"preset": "lte-20", "channel": MOVING, "buffer": 1_000_000},
    "LTE 10 MHz, moving": {"preset": "lte-10", "channel": MOVING, "buffer": 700_000},
}


def main(
    bin_: Annotated[
        Path | None, typer.Option("--bin", help="Folder with mm-link and mm-delay.")
    ] = None,
    seconds: Annotated[int, typer.Option(help="Length of each transfer.")] = 15,
    only: Annotated[str, typer.Option(help="Compare only cells with this in their name.")] = "",
    runs: Annotated[int, typer.Option(help="Runs of each side; medians are compared.")] = 3,
) -> int:
    """Compare both directions of each cell. Needs root, iperf3 and Mahimahi."""
    tools = {name: _tool(name, bin_) for name in ("mm-link", "mm-delay")}
    if os.geteuid() != 0:
        raise NotCheckedError("root is needed for network namespaces")
    rows = [["cell", "direction", "what", "airpath", "mm-link", "difference", "limit", ""]]
    right = True
    with tempfile.TemporaryDirectory(prefix="airpath-mahimahi-") as made:
        place = Path(made)
        place.chmod(0o755)
        for name, case in CASES.items():
            if only not in name:
                continue
            folder = place / name.replace(" ", "-").replace(",", "")
            shell, cell = _recorded(case, folder, seconds + 5, tools)
            for direction in ("down", "up"):
                sides = (
                    _median([_over_cell(cell, direction, seconds) for _ in range(runs)]),
                    _median([_over_link(shell, direction, seconds) for _ in range(runs)]),
                )
                for what, unit, limit in (
                    ("goodput", "Mb/s", GOODPUT),
                    ("RTT p50", "ms", None),
                    ("RTT p95", "ms", DELAY_P95),
                ):
                    ours, theirs = (side[what] for side in sides)
                    apart = theirs / ours - 1
                    agrees = limit is None or abs(apart) <= limit
                    right = right and agrees
                    rows.append(
                        [name, direction, what, f"{ours:.1f} {unit}", f"{theirs:.1f} {unit}",
                         f"{100 * apart:+.1f} %", "" if limit is None else f"{limit:.0%}",
                         "" if agrees else "differs"]
                    )  # fmt: skip
                say(f"{name}, {direction}: done")
    print(*aligned(rows, range(3, 7)), sep="\n")
    return FINE if right else WRONG


def _tool(name: str, folder: Path | None) -> Path:
    found = shutil.which(name) if folder is None else str(folder / name)
    if found is None or not Path(found).exists():
        raise NotCheckedError(f"{name} is missing: install Mahimahi, or add --bin FOLDER")
    return Path(found).absolute()


def _recorded(
    case: dict[str, Any], folder: Path, seconds: int, tools: dict[str, Path]
) -> tuple[list[str], Any]:
    """Record a saturated cell; return the command of a Mahimahi shell, and the cell to emulate."""
    folder.mkdir()
    folder.chmod(0o755)
    flows = "".join(
        SATURATED.format(direction=direction, rate=rate)
        for direction, rate in (("down", 200), ("up", 100))
    )
    saturated = folder / "saturated.toml"
    saturated.write_text(CELL.format(duration_s=seconds, flows=flows, **case))
    run = airpath.run(saturated, {"run.radio_log": True}, out=folder / "run")
    written = export_traces(run, folder / "traces")
    link = next(line for line in written.said if line.startswith("mm-delay")).split()
    queue = [
        option
        for way in ("uplink", "downlink")
        for option in (f"--{way}-queue=droptail", f"--{way}-queue-args=bytes={case['buffer']}")
    ]
    words = [str(tools["mm-delay"]), link[1], str(tools["mm-link"]), *link[3:], *queue, "--"]
    cell = folder / "cell.toml"
    cell.write_text(CELL.format(duration_s=seconds, flows=PING, **case))
    return words, airpath.load(cell)


def _script(server: str, direction: str, seconds: int, folder: Path) -> str:
    reverse = "-R" if direction == "down" else ""
    return (
        f"(sleep {WARM_UP_S}; exec ping -4 -i 0.05 -w {seconds - 2} {server} > {folder}/ping) & "
        f"iperf3 -4 -c {server} -C reno -t {seconds} {reverse} -J > {folder}/iperf; wait"
    )


def _measured(folder: Path) -> dict[str, float]:
    said = json.loads((folder / "iperf").read_text())
    if "error" in said:
        raise AirpathError(f"iperf3: {said['error']}")
    rtts = ping.read((folder / "ping").read_text(), "ping").row()["rtt_ms"] or {}
    return {
        "goodput": said["end"]["sum_received"]["bits_per_second"] / 1e6,
        "RTT p50": rtts["p50"],
        "RTT p95": rtts["p95"],
    }


def _over_cell(cell: Any, direction: str, seconds: int) -> dict[str, float]:
    with _folder() as folder:
        emulate.emulate(
            cell,
            EmulationOptions(
                command=["sh", "-c", _script("server", direction, seconds, folder)],
                servers=["exec iperf3 -s >/dev/null"],
                out=folder / "run",
            ),
        )
        return _measured(folder)


def _over_link(shell: list[str], direction: str, seconds: int) -> dict[str, float]:
    with _folder() as folder:
        delay, link = shell[:2], shell[2:]
        inner = [*link, "sh", "-c", _script(SERVER, direction, seconds, folder)]
        # Mahimahi refuses root. It needs forwarding, also in the shell of mm-delay.
        forward = "echo 1 > /proc/sys/net/ipv4/ip_forward"
        wait = f"echo $$ > {folder}/inside; while [ ! -e {folder}/go ]; do sleep 0.05; done"
        outer = (
            f"ip link set lo up; {forward}; iperf3 -s >/dev/null & server=$!; "
            f"setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups {' '.join(delay)} "
            f'sh -c \'{wait}; exec "$@"\' sh "$@" & shell=$!; '
            f"while [ ! -s {folder}/inside ]; do kill -0 $shell || exit 1; sleep 0.05; done; "
            f"nsenter --net --target $(cat {folder}/inside) sh -c '{forward}'; "
            # Needed if iptables does not translate the addresses of the inner shell.
            + "".join(f"ip route add {net}.0/24 via {net}.2 2>/dev/null; " for net in NETWORKS)
            + f"touch {folder}/go; wait $shell; kill $server"
        )
        done = subprocess.run(
            # Mahimahi gets a high priority because airpath's forwarder has a real-time priority.
            ["nice", "-n", "-15", "unshare", "--net", "sh", "-c", outer, "sh", *inner],
            capture_output=True, text=True, check=False, timeout=30 + seconds, cwd=folder,
        )  # fmt: skip
        if not (folder / "iperf").exists():
            raise AirpathError(f"mm-link: {done.stderr.strip()}")
        return _measured(folder)


@contextmanager
def _folder() -> Iterator[Path]:
    """Return a temporary folder to which other users can write."""
    with tempfile.TemporaryDirectory(prefix="airpath-mahimahi-") as made:
        path = Path(made)
        path.chmod(0o777)
        yield path


def _median(found: list[dict[str, float]]) -> dict[str, float]:
    return {key: statistics.median(one[key] for one in found) for key in found[0]}
