"""Several outputs of one test are aligned by their times: round trips under load and without."""

from __future__ import annotations

import json
import re
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import airpath
import captures
from airpath import _core
from airpath.diagnose.files import describe
from airpath.diagnose.together import Together, together
from airpath.readers.recognise import recognise
from airpath_dev.planted.capture import at_point

START = 1767323045
"""2026-01-02 03:04:05 UTC."""


def _ping(loaded_ms: float = 120.0, shift_s: float = 0.0, idle: bool = True) -> str:
    """One echo a second for 30 s; the load is from second 10 to second 20."""
    lines = ["PING 10.1.0.2 (10.1.0.2) 56(84) bytes of data."]
    for second in range(30):
        rtt = loaded_ms if 10 <= second < 20 else 20.0
        if idle or 10 <= second < 20:
            at = START + shift_s + second + 0.5 + rtt / 1000
            lines.append(
                f"[{at:.6f}] 64 bytes from 10.1.0.2: icmp_seq={second + 1} ttl=64 time={rtt} ms"
            )
    return "\n".join(lines) + "\n"


IPERF3 = json.dumps(
    {
        "start": {
            "timestamp": {"timesecs": START + 10},
            "test_start": {"protocol": "TCP", "omit": 2, "num_streams": 1},
        },
        "intervals": [
            {"streams": [{"socket": 5, "start": 0, "end": 2, "bytes": 1, "omitted": True}]},
            {"streams": [{"socket": 5, "start": 0, "end": 8, "bytes": 10_000_000}]},
        ],
        "end": {"sum_received": {"start": 0, "end": 8, "bytes": 10_000_000,
                                 "bits_per_second": 1e7}},
    }
)  # fmt: skip
NUTTCP = "".join(
    f"[2026-01-02T03:04:{15 + second:02}.000000+0000]     1.2500 MB /   1.00 sec =   10.4858 Mbps "
    "    0 retrans\n"
    for second in range(1, 11)
)
IPERF3_TEXT = "".join(
    f"[2026-01-02T04:04:{15 + second:02}.100000+0100] [  5] {second - 1:5}.00-{second}.00  sec  "
    "1.25 MBytes  10.5 Mbits/sec\n"
    for second in range(1, 11)
)
SS = "".join(
    f"{START + second}\nESTAB 0 0 10.0.0.2:40000 10.1.0.2:5201\n\t cubic cwnd:10 "
    f"rtt:50/1 bytes_acked:{1_250_000 * min(10, max(0, second - 10)) + 1}\n"
    for second in range(30)
)


def _told(tmp_path: Path, **texts: str) -> Together | None:
    files = []
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        files.append(recognise(str(tmp_path / name)))
    return together(files)


SS_RECEIVER = SS.replace("bytes_acked:", "bytes_acked:38 bytes_received:")


@pytest.mark.parametrize(
    "load",
    [IPERF3, NUTTCP, IPERF3_TEXT, SS, SS_RECEIVER],
    ids=["iperf3", "nuttcp", "iperf3 text", "ss", "ss at the receiver"],
)
def test_round_trips_under_load_are_told_from_those_without(tmp_path: Path, load: str) -> None:
    said = _told(tmp_path, ping=_ping(), load=load)
    assert said is not None
    (pair,) = said["pairs"]
    assert pair["start_s"] == pytest.approx(START + 10, abs=0.11)
    assert pair["end_s"] == pytest.approx(START + 20, abs=0.11)
    assert (pair["idle_ms"], pair["loaded_ms"]) == (20.0, 120.0)
    assert pair["loaded_replies"] in (8, 9)
    assert pair["idle_replies"] >= 18
    assert pair["goodput_mbps"] == pytest.approx(10, rel=0.06)
    kinds = {one["kind"]: one["text"] for one in said["statements"]}
    assert list(kinds) == ["delay-under-load", "bufferbloat"]
    assert "was 120 ms during that time, and 20 ms without load" in kinds["delay-under-load"]
    assert "from 2026-01-02 03:04:15 to 2026-01-02 03:04:25 UTC" in kinds["delay-under-load"]
    assert kinds["bufferbloat"].startswith("Under load packets wait 100 ms")


def test_a_file_without_data_still_has_a_time(tmp_path: Path) -> None:
    idle = re.sub(r"bytes_acked:\d+", "bytes_acked:1", SS)
    assert _told(tmp_path, ping=_ping(), load=idle) is None


def test_each_run_of_a_loop_is_a_load(tmp_path: Path) -> None:
    first, second = (
        IPERF3.replace(str(START + 10), str(START + at)).replace('"end": 8', '"end": 6')
        for at in (10, 20)
    )
    said = _told(tmp_path, ping=_ping(), load=f"{first}\n{second}")
    assert said is not None
    assert [one["start_s"] - START for one in said["pairs"]] == [10, 20]


def test_a_path_that_does_not_bloat_is_not_accused(tmp_path: Path) -> None:
    said = _told(tmp_path, ping=_ping(loaded_ms=35.0), load=IPERF3)
    assert said is not None
    assert [one["kind"] for one in said["statements"]] == ["delay-under-load"]


def test_what_cannot_be_aligned_is_said(tmp_path: Path) -> None:
    said = _told(tmp_path, ping=_ping(shift_s=3600), load=IPERF3)
    assert said is not None
    assert [one["kind"] for one in said["statements"]] == ["no-overlap"]
    untimed = "\n".join(line.split("] ")[-1] for line in _ping().splitlines())
    for ping, load in ((untimed, IPERF3), (_ping(), IPERF3.replace("timesecs", "other"))):
        said = _told(tmp_path, ping=ping, load=load)
        assert said is not None
        assert (said["pairs"], [one["kind"] for one in said["statements"]]) == ([], ["not-aligned"])
    alone = _told(tmp_path, ping=_ping(idle=False), load=IPERF3)
    assert alone is not None
    assert alone["pairs"][0]["idle_ms"] is None
    assert "so the idle round trip is not known" in alone["statements"][0]["text"]


def test_lines_that_a_buffer_kept_have_no_time_of_their_own(tmp_path: Path) -> None:
    for text in (NUTTCP, IPERF3_TEXT):
        kept = "".join(f"{text[:15]}04:59{text[20:33]}{line[33:]}\n" for line in text.splitlines())
        said = _told(tmp_path, ping=_ping(), load=kept)
        assert said is not None
        assert [one["kind"] for one in said["statements"]] == ["not-aligned"]


def test_a_load_or_a_ping_alone_says_nothing_more(tmp_path: Path) -> None:
    assert _told(tmp_path, ping=_ping()) is None
    assert _told(tmp_path, a=IPERF3, b=NUTTCP) is None


def test_the_command_says_it_last(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "p").write_text(_ping())
    (tmp_path / "i").write_text(IPERF3)
    names = [str(tmp_path / name) for name in "pi"]
    code, out, _ = cli("diagnose", *names)
    assert code == 0
    assert out.splitlines()[-3] == "together"
    assert "without load" in out.splitlines()[-2]
    assert "together" not in cli("diagnose", "--identify", *names)[1].splitlines()
    document = json.loads(cli("diagnose", "--json", *names)[1])
    assert document["together"]["pairs"][0]["idle_ms"] == 20.0
    assert json.loads(cli("diagnose", "--json", names[0])[1])["together"] is None


def _two_points(place: Path) -> list[str]:
    """A simulated download at the server and at the UE, whose clock is 3.25 s ahead."""
    text = """
[run]
duration_s = 5
[[path.down]]
stage = "link"
rate_mbps = 10
queue_packets = 60
[[path.down]]
stage = "loss"
probability = 0.01
[[path.down]]
stage = "delay"
delay_ms = 20
[[path.up]]
stage = "delay"
delay_ms = 20
[[flow]]
kind = "bulk"
profile = "linux-6.18"
"""
    (place / "s.toml").write_text(text)
    airpath.run(place / "s.toml", out=place / "run", capture=True)
    for name in ("server", "ue"):
        at_point(place / "run/capture.pcapng", place / f"{name}.pcapng", name)
    shifted = place / "late.pcapng"
    subprocess.run(["editcap", "-t", "3.25", place / "ue.pcapng", shifted], check=True)
    return [str(place / "server.pcapng"), str(shifted)]


@pytest.mark.parametrize("turned", [False, True])
def test_two_captures_of_one_flow_are_joined(tmp_path: Path, turned: bool) -> None:
    if shutil.which("editcap") is None:
        pytest.skip("editcap is missing: apt-get install tshark")
    files = _two_points(tmp_path)
    found = together([recognise(name) for name in (files[::-1] if turned else files)])
    assert found is not None
    (joined,) = found["captures"]
    assert joined["files"] == files
    # A full packet takes 1.2 ms on the link, an acknowledgement nothing.
    assert joined["clock_offset_ms"] == pytest.approx(3250, abs=joined["within_ms"])
    assert joined["clock_offset_ms"] == pytest.approx(3250, abs=1.3)
    assert joined["within_ms"] == pytest.approx(20.6, abs=0.7)
    between = joined["between_ms"]
    assert 19 < between["min"] < between["p50"] < between["max"] < 110
    run = json.loads((tmp_path / "run/summary.json").read_text())
    again = run["flows"][0]["retransmitted_segments"]
    assert 0 < joined["only_first"] <= again + 60
    assert joined["only_second"] == 0
    (statement,) = found["statements"]
    assert statement["kind"] == "two-captures"
    assert "did not pass" in statement["text"]


def test_two_points_of_one_capture_are_joined_without_an_offset(tmp_path: Path) -> None:
    _two_points(tmp_path)
    (told,) = [
        one
        for one in describe(recognise(str(tmp_path / "run/capture.pcapng")))["statements"]
        if one["kind"] == "two-points"
    ]
    assert "was seen at point server and at point " in told["text"]
    found = re.search(r"took ([\d.]+) ms at least, .* took ([\d.]+) and", told["text"])
    assert found
    # 20 ms and, of data, what a full packet takes at 10 Mb/s.
    assert float(found[1]) == pytest.approx(21.2, abs=0.1)
    assert float(found[2]) == pytest.approx(20, abs=0.1)


STALLING = """
[run]
duration_s = 12
[[path.down]]
stage = "link"
rate_mbps = 10
queue_packets = 100
[[path.down]]
stage = "host"
stalls = "at-intervals"
stall_ms = 400
stall_period_ms = 2500
ring_packets = 4000
[[path.up]]
stage = "delay"
delay_ms = 40
[[flow]]
kind = "ping"
interval_ms = 500
[[flow]]
kind = "bulk"
profile = "linux-6.18"
start_s = 2
"""


def _around_a_core(place: Path, text: str) -> Path:
    """A capture at both sides of a core: next to the server, and inside GTP-U."""
    (place / "case.toml").write_text(text)
    airpath.run(place / "case.toml", out=place / "run", capture=True, explain="off")
    raw = (place / "run" / "capture.pcapng").read_bytes()
    written, at = bytearray(), 0
    while at < len(raw):
        kind, length = struct.unpack_from("<II", raw, at)
        block = raw[at : at + length]
        at += length
        if kind == 6 and block[8:12] == struct.pack("<I", 1):
            kept, whole = struct.unpack_from("<II", block, 20)
            frame = block[28 : 28 + kept]
            packet = captures.in_gtp_u(frame[14:] + bytes(whole - kept))
            data = frame[:14] + packet[: kept - 14 + captures.TUNNEL_BYTES]
            sizes = struct.pack("<II", len(data), whole + captures.TUNNEL_BYTES)
            body = block[8:20] + sizes + data + bytes(-len(data) % 4)
            total = struct.pack("<I", 12 + len(body))
            block = struct.pack("<I", 6) + total + body + total
        written += block
    (place / "core.pcapng").write_bytes(written)
    return place / "core.pcapng"


def test_a_host_that_stands_still_between_two_points_is_seen(tmp_path: Path) -> None:
    found = describe(recognise(str(_around_a_core(tmp_path, STALLING))))
    first, *others = found["causes"]["causes"]
    assert first["causes"] == ["stalling-host"]
    assert first["confidence"] is None
    assert "nothing passed point" in first["evidence"]
    assert first["cost"] == pytest.approx(0.4 / 2.5, abs=0.06)
    # Times are those of the capture, which began two seconds before the transfer.
    assert all(2 < at < 12 for at in first["at_s"])
    silent = {"handover", "radio-link-failure", "pdcp-gap", "stalling-host"}
    assert not [one for one in others if silent.intersection(one["causes"])]
    # A queue waits as long, but never stands still.
    before, _, rest = STALLING.partition('[[path.down]]\nstage = "host"')
    waits = before + rest[rest.index("[[path.up]]") :]
    (tmp_path / "queue").mkdir()
    calm = describe(recognise(str(_around_a_core(tmp_path / "queue", waits))))
    assert "nothing passed" not in json.dumps(calm["statements"])


def test_datagrams_that_pass_one_point_only_are_told(tmp_path: Path) -> None:
    text = """
[run]
duration_s = 12
[[path.down]]
stage = "delay"
delay_ms = 20
[[path.up]]
stage = "delay"
delay_ms = 20
[[flow]]
kind = "udp"
rate_mbps = 1
"""
    file = _around_a_core(tmp_path, text)
    raw, kept, at, behind = file.read_bytes(), bytearray(), 0, 0
    # A NAT has forgotten the stream: after 300 datagrams none passes it.
    while at < len(raw):
        kind, length = struct.unpack_from("<II", raw, at)
        inside = kind == 6 and raw[at + 8] == 1
        behind += inside
        if not inside or behind <= 300:
            kept += raw[at : at + length]
        at += length
    file.write_bytes(kept)
    found = describe(recognise(str(file)))
    assert "nat-binding" in found["causes"]["causes"][0]["causes"]
    assert "300 passed" in found["causes"]["causes"][0]["evidence"]


AHEAD_S = 1.5


def _one_test(place: Path) -> dict[str, str]:
    """A download and pings of the UE: captures at both ends; ping's output, its clock ahead."""
    text = """
[run]
duration_s = 22
[[path.down]]
stage = "link"
rate_mbps = 10
queue_packets = 200
[[path.down]]
stage = "delay"
delay_ms = 20
[[path.up]]
stage = "delay"
delay_ms = 20
[[flow]]
kind = "bulk"
profile = "linux-6.18"
start_s = 8
duration_s = 10
[[flow]]
kind = "ping"
direction = "up"
interval_ms = 500
"""
    (place / "s.toml").write_text(text)
    airpath.run(place / "s.toml", out=place / "run", capture=True)
    files = {}
    for name in ("server", "ue"):
        files[name] = str(place / f"{name}.pcapng")
        at_point(place / "run/capture.pcapng", Path(files[name]), name)
    report = _core.read_capture(Path(files["ue"]))
    (flow,) = [one for one in report["flows"] if one["icmp"]]
    (packets,) = _core.read_flows(Path(files["ue"]), [(flow["id"], None)], 1000)
    columns = [
        np.frombuffer(packets[key], dtype="<f8").tolist()
        for key in ("time_ns", "from_client", "echo")
    ]
    asked: dict[float, float] = {}
    lines = [f"PING {flow['server']} ({flow['server']}) 56(84) bytes of data."]
    for time_ns, by_client, number in zip(*columns, strict=True):
        if by_client:
            asked[number] = time_ns
        else:
            at = report["first_time_s"] + time_ns / 1e9 + AHEAD_S
            rtt = (time_ns - asked[number]) / 1e6
            lines.append(
                f"[{at:.6f}] 64 bytes from {flow['server']}: icmp_seq={number:.0f} ttl=64 "
                f"time={rtt:.3f} ms"
            )
    files["ping"] = str(place / "ping.txt")
    Path(files["ping"]).write_text("\n".join(lines) + "\n")
    (tcp,) = [one for one in report["flows"] if one["tcp"]]
    iperf3 = json.loads(IPERF3)
    begin_s = report["first_time_s"] or 0.0
    # 1.6 s behind, and in whole seconds.
    iperf3["start"]["timestamp"]["timesecs"] = int(begin_s + tcp["start_s"] - 1.6)
    iperf3["start"]["connected"] = [
        {"socket": 5, "local_host": tcp["client"], "local_port": tcp["client_port"],
         "remote_host": tcp["server"], "remote_port": tcp["server_port"]}
    ]  # fmt: skip
    files["iperf3"] = str(place / "iperf3.json")
    Path(files["iperf3"]).write_text(json.dumps(iperf3))
    return files


@pytest.mark.parametrize("point", ["ue", "server"])
def test_a_capture_aligns_the_tools_that_it_has_the_packets_of(tmp_path: Path, point: str) -> None:
    files = _one_test(tmp_path)
    found = together([recognise(files[one]) for one in (point, "ping", "iperf3")])
    assert found is not None
    ping, iperf3 = found["offsets"]
    assert ping["offset_ms"] == pytest.approx(1000 * AHEAD_S, abs=ping["within_ms"] + 0.01)
    assert ping["within_ms"] < (0.01 if point == "ue" else 25)
    apart = abs(iperf3["offset_ms"] + 1600)
    assert apart <= iperf3["within_ms"] < 3100
    # The capture's times of iperf3's connection are better than iperf3's own.
    (pair,) = found["pairs"]
    assert files[point] in pair["load"]
    assert pair["idle_ms"] == pytest.approx(40, abs=1)
    assert (pair["loaded_ms"] or 0) > 120
    assert pair["loaded_replies"] in range(14, 20)
    kinds = [one["kind"] for one in found["statements"]]
    assert kinds == ["same-transfer", "clock-offset", "clock-offset", "delay-under-load",
                     "bufferbloat"]  # fmt: skip
    assert "iperf3 reports 10 Mb/s" in found["statements"][0]["text"]


def test_all_files_of_a_test_are_told_of_once(tmp_path: Path) -> None:
    files = _one_test(tmp_path)
    found = together([recognise(one) for one in files.values()])
    assert found is not None
    assert (len(found["captures"]), len(found["pairs"])) == (1, 1)


def test_pings_of_somebody_else_say_nothing_of_the_clocks(tmp_path: Path) -> None:
    files = _one_test(tmp_path)
    text = Path(files["ping"]).read_text()
    later = iter(range(1000))
    # The same numbers, asked at another interval.
    Path(files["ping"]).write_text(
        re.sub(r"\[([\d.]+)\]", lambda at: f"[{float(at[1]) + 0.5 * next(later):.6f}]", text)
    )
    found = together([recognise(files[one]) for one in ("server", "ping")])
    assert found is not None
    assert found["offsets"] == []


def test_captures_of_different_flows_are_not_joined(tmp_path: Path) -> None:
    one = captures.write(tmp_path / "a.pcap", captures.download())
    assert together([recognise(str(one)), recognise(str(one))]) is None
