"""Several outputs of one test are aligned by their times: round trips under load and without."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import airpath
import captures
from airpath.diagnose.together import together
from airpath.readers.recognise import recognise
from planted.capture import at_point

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


def _told(tmp_path: Path, **texts: str) -> dict[str, Any] | None:
    files = []
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        files.append(recognise(str(tmp_path / name)))
    return together(files)


@pytest.mark.parametrize("load", [IPERF3, NUTTCP, IPERF3_TEXT, SS],
                         ids=["iperf3", "nuttcp", "iperf3 text", "ss"])  # fmt: skip
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
    assert "120 ms in the median, and 20 ms without load" in kinds["delay-under-load"]
    assert "from 2026-01-02 03:04:15 to 2026-01-02 03:04:25 UTC" in kinds["delay-under-load"]
    assert kinds["bufferbloat"].startswith("Under load packets wait 100 ms")


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
    assert "what the idle path takes is not known" in alone["statements"][0]["text"]


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


def test_captures_of_different_flows_are_not_joined(tmp_path: Path) -> None:
    one = captures.write(tmp_path / "a.pcap", captures.download())
    assert together([recognise(str(one)), recognise(str(one))]) is None
