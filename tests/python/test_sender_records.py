"""What the kernel's senders do, as the tables of an emulation have it. Root."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from airpath_dev.harness import run
from airpath_dev.recorded import kernel
from conftest import UNEXPLAINED, Command
from emulated import busiest, iperf, needs_root, printed, skip_without_bpf, stages

# Slow start ends by HyStart, then a loss comes at the queue.
WIRE = f"""
[run]
ack_table = true
{stages(20, 20, rate_mbps=50, queue_packets=200)}\
[[flow]]
kind = "bulk"
congestion = "cubic"
profile = "linux-6.18"
"""

needs_bpf = skip_without_bpf()
HOW = [pytest.param("bpf", marks=needs_bpf), "poll"]


class Download:
    """One download by iperf3, observed."""

    def __init__(self, command: Command, wire: Path, observer: str, *sets: str) -> None:
        out = wire.parent / f"run-{observer}"
        done = command(
            *(
                "emulate",
                *UNEXPLAINED,
                str(wire),
                "--json",
                "--out",
                str(out),
                "--server",
                "exec iperf3 -s",
            ),
            *(word for one in (f"emulation.observer={observer}", *sets) for word in ("--set", one)),
            *("--", "iperf3", "-c", "server", "-4", "-R", "-t", "3", "-J"),
        )
        self.document: dict[str, Any] = printed(done)
        self.iperf = iperf(done.stderr)
        self.environment = json.loads((out / "provenance.json").read_text())["emulation"]
        self.flow = busiest(self.document)
        self.run = out

    def table(self, name: str) -> pl.DataFrame:
        table = pl.read_parquet(self.run / f"{name}.parquet")
        return table.filter(pl.col("flow").cast(pl.String) == self.flow["id"])


@needs_root
@pytest.mark.parametrize("observer", HOW)
def test_a_download_is_observed(airpath_command: Command, wire: Path, observer: str) -> None:
    download = Download(airpath_command, wire, observer)
    emulation, flow = download.document["emulation"], download.flow
    assert emulation["observer"]["by"] == observer
    assert emulation["observer"]["lost_records"] == 0
    assert emulation["observer"]["unmatched_sockets"] == 0
    # The kernel's own count of retransmissions is iperf3's.
    end = download.iperf["end"]["streams"][0]["sender"]
    assert flow["retransmitted_segments"] == end["retransmits"] > 0
    assert flow["congestion"] == "cubic"
    samples = download.table("samples")
    sampled = samples.filter(pl.col("cwnd_segments").is_not_null())
    assert sampled.height > 0.8 * samples.height
    # A window that the path has filled: srtt is what the model says.
    late = sampled.filter(pl.col("time_ns") > 1_000_000_000)
    apart = (late["srtt_ms"] - late["rtt_ms"]).abs()
    assert apart.is_between(0.0, 2.0).sum() > 0.5 * late.height
    assert (late["inflight_segments"] <= late["cwnd_segments"]).sum() > 0.9 * late.height
    # The kernel starts at 64 KiB of payload and tunes itself up.
    windows = late["receive_window_segments"]
    assert windows.is_between(40, 10_000).all()
    assert (late["inflight_segments"] <= windows).all()
    kinds = download.table("events")["kind"].to_list()
    assert kinds.index("slow_start_exit") < kinds.index("recovery_start")
    acks = download.table("acks")
    assert acks["time_ns"].is_sorted()
    assert acks["acked_bytes"].is_sorted()
    delivered = flow["bytes_delivered"]
    # BPF sees none of those that come after the sender's close(): a window's.
    assert 0.9 * delivered < acks["acked_bytes"].max() <= delivered + 2
    # TCP_INFO shows nothing of HyStart.
    assert acks["round_rtt_threshold_ms"].is_null().all() == (observer == "poll")


@needs_root
@needs_bpf
@pytest.mark.parametrize(("rate_mbps", "reason"), [(50, "ack_train"), (4, "delay")])
def test_hystarts_exit_is_the_kernels(
    airpath_command: Command, wire: Path, rate_mbps: int, reason: str
) -> None:
    """The kernel counts exits and the sum of cwnd by test; one flow had one.

    At 4 Mb/s acknowledgements are more than 2 ms apart, and no train.
    """
    rate = f"path.down.0.rate_mbps={rate_mbps}"
    download = Download(airpath_command, wire, "bpf", rate)
    counted = download.document["emulation"]["hystart"]["server"]
    found = download.flow["slow_start_exit"]
    assert found["reason"] == reason
    test = {"ack_train": "Train", "delay": "Delay"}[reason]
    assert counted[f"TCPHystart{test}Detect"] == 1
    assert counted[f"TCPHystart{test}Cwnd"] == found["cwnd_segments"]
    event = download.table("events").filter(pl.col("kind") == "slow_start_exit")
    assert event["reason"].to_list() == [found["reason"]]
    assert event["cwnd_segments"].to_list() == [found["cwnd_segments"]]
    recoveries = download.environment["ends"][0]["counters"].get("TCPSackRecovery", 0)
    assert download.table("events")["kind"].to_list().count("recovery_start") == recoveries
    # Every acknowledgement that left the model upwards is one of the sender's rows, but for the
    # last window's, after close(), and iperf3's control connection.
    up = download.document["emulation"]["directions"]["up"]["left"]
    acks = download.table("acks")
    assert up - acks["cwnd_segments"][-1] - 40 < acks.height <= up
    check_state(acks, int(event["time_ns"][0]), reason)


def check_state(acks: pl.DataFrame, exit_ns: int, reason: str) -> None:
    """What the kernel showed of HyStart is what ended slow start, and nothing before did."""
    shown = acks.filter(pl.col("round_rtt_threshold_ms").is_not_null())
    assert shown["time_ns"].is_sorted()
    assert shown["time_ns"][-1] == exit_ns
    assert shown["css"].is_null().all()
    # No test is made below 16 segments.
    small = pl.col("cwnd_segments") < 16
    assert acks.filter(small)["round_samples"].is_null().all()
    tested = shown.filter(~small)
    assert tested["round_samples"].is_between(0, 8).all()
    # The kernel's limit has the pacing rate before the acknowledgement, which the table does not.
    over = tested["ack_train_ms"] - tested["ack_train_limit_ms"]
    rise = tested["round_min_rtt_ms"] - tested["round_rtt_threshold_ms"]
    sampled = tested["round_samples"] == 8
    assert (over[:-1] < 0.2).all()
    assert not (sampled[:-1] & sampled[:-1].shift(1) & (rise[:-1] > 0)).fill_null(False).any()
    if reason == "ack_train":
        assert over[-1] > -0.2
    else:
        assert sampled[-1]
        assert rise[-1] > 0


KEPT_OPEN = """
from http.server import SimpleHTTPRequestHandler as Handler, ThreadingHTTPServer
Handler.protocol_version = "HTTP/1.1"
ThreadingHTTPServer(("", 8000), Handler).serve_forever()
"""
"""A server that closes when its client has: nobody sees the timeouts of a closed socket."""


@needs_root
@pytest.mark.parametrize("observer", HOW)
def test_timeouts_are_seen(airpath_command: Command, wire: Path, observer: str) -> None:
    """Where a third of the packets is lost, only the timer helps now and then."""
    wire.write_text(f'{WIRE}[[path.down]]\nstage = "loss"\nprobability = 0.33\n')
    (wire.parent / "data").write_bytes(bytes(150_000))
    out = wire.parent / "run"
    server = f"cd {wire.parent} && exec {sys.executable} -c '{KEPT_OPEN}'"
    done = airpath_command(
        *(
            "emulate",
            *UNEXPLAINED,
            str(wire),
            "--json",
            "--out",
            str(out),
            "--set",
            f"emulation.observer={observer}",
        ),
        *("--server", server, "--", "curl", "-sS", "-o", "/dev/null", "http://server:8000/data"),
    )
    flow = busiest(printed(done))
    environment = json.loads((out / "provenance.json").read_text())["emulation"]
    events = pl.read_parquet(out / "events.parquet")
    timeouts = events.filter(pl.col("kind") == "retransmission_timeout")
    counters = environment["ends"][0]["counters"]
    # The counter also has those of a SYN-ACK that was lost, which belongs to no socket yet.
    of_socket = counters["TCPTimeouts"] - counters.get("TCPSynRetrans", 0)
    said = json.dumps([counters, environment["observer"], timeouts["time_ns"].to_list()])
    assert flow["rto_count"] >= of_socket > 0, said
    assert timeouts.height == flow["rto_count"]
    # RFC 6298 as Linux has it: 200 ms at least, 120 s at most.
    assert timeouts["value"].is_between(200, 120_000).all()


@needs_root
@needs_bpf
def test_a_file_is_observed_to_its_end(airpath_command: Command, tmp_path: Path) -> None:
    # It is written long before it is sent: the buffer has room for all of it.
    size = 1_000_000
    scenario = tmp_path / "file.toml"
    flow = f'[[flow]]\nid = "file"\nkind = "file"\nsize_bytes = {size}\nprofile = "linux-6.18"\n'
    path = stages(20, 20, rate_mbps=10, queue_packets=300)
    scenario.write_text(f"[run]\nduration_s = 4\nack_table = true\n{path}{flow}", encoding="utf-8")
    out = tmp_path / "run"
    done = airpath_command(
        *("emulate", *UNEXPLAINED, str(scenario), "--flows", "--out", str(out)),
        *("--set", "emulation.observer=bpf", "--set", "flow.0.buffer.send_factor=0"),
    )
    assert done.returncode == 0, done.stderr
    acks = pl.read_parquet(out / "acks.parquet")
    # Not one jump from the middle to the end.
    acked: list[int] = acks.sort("time_ns")["acked_bytes"].to_list()
    assert acked[-1] > 0.9 * size
    assert max(later - before for before, later in pairwise(acked)) < 0.2 * size


@needs_root
def test_nobody_observes_if_nobody_asks(airpath_command: Command, wire: Path) -> None:
    download = Download(airpath_command, wire, "none")
    assert download.document["emulation"]["observer"]["by"] == "none"
    assert download.table("samples")["cwnd_segments"].is_null().all()
    assert not (download.run / "acks.parquet").exists()


@needs_root
def test_the_senders_capture_tells_what_the_kernel_records(tmp_path: Path) -> None:
    """A wire on which packets are lost; `make captures-kernel` has more."""
    (judged,) = kernel.emulated(90041, 1, tmp_path)
    assert judged.again[1] > 0
    assert not {"again", "timeouts", "p50"} & set(judged.faults), judged


def test_one_exit_in_ten_may_be_wrong_and_something_has_to_be_compared() -> None:
    right = kernel.Judged("", (1, 1), (0, 0), {"p50": (1.0, 1.0)}, (3, 3))
    wrong, none = replace(right, exit_round=(9, 3)), replace(right, exit_round=None)
    assert kernel.tell([*[right] * 10, wrong]) == 0
    assert kernel.tell([*[right] * 5, wrong, *[none] * 90]) == 1
    assert kernel.tell([]) == 1


def test_a_kernels_comparison_is_called_rightly(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(kernel.main, ["x"]) == run(kernel.main, ["1", "2", "3"]) == 2
    assert "[seed] [count]" in capsys.readouterr().err
