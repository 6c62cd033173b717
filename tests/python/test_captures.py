"""Captures are read: what `airpath diagnose` says of them, and whether tshark says the same."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import airpath
import captures
from airpath import _core
from airpath.diagnose.files import diagnose
from airpath.errors import InputError
from airpath_dev.compared.command import main as compare_all
from airpath_dev.compared.judge import by_tshark, compare
from airpath_dev.compared.page import unexplained
from airpath_dev.compared.tshark import tshark
from airpath_dev.harness import run
from airpath_dev.planted.capture import at_point

ROOT = Path(__file__).parents[2]


def test_a_capture_is_told_of(cli: Any, tmp_path: Path) -> None:
    file = captures.write(tmp_path / "d.pcap", captures.download())
    code, out, err = cli("diagnose", str(file))
    assert (code, err) == (0, "")
    head, again, *_ = out.splitlines()
    assert head == f"{file}: pcap, 44 packets in 0.090 s"
    assert again == (
        "  Flow 0, data of the server: 1 packet retransmitted (5.00% of those with data): 1 after "
        "duplicate or selective acknowledgements; lost before the capture point: 1."
    )
    row = out.splitlines()[-1].split()
    assert row[:6] == ["0", "tcp", "10.0.0.1:40000", "10.0.0.2:443", "-", "0.000"]
    assert row[-4:] == ["10.00", "20.00", "1", "0"]


def test_json_has_every_figure_and_no_payload(cli: Any, tmp_path: Path) -> None:
    file = captures.write(tmp_path / "d.pcap", captures.download())
    code, out, _ = cli("diagnose", str(file), "--json")
    assert code == 0
    assert "SECRET" not in out
    assert b"SECRET" in file.read_bytes()
    (document,) = json.loads(out)["files"]
    assert list(document) == ["file", "kind", "compressed", "statements", "causes", "capture"]
    (flow,) = document["capture"]["flows"]
    server = flow["tcp"]["from_server"]
    assert (server["acked_bytes"], server["retransmissions"]["fast"]) == (20_000, 1)
    assert server["options"]["window_scale"] == 7
    assert flow["tcp"]["handshake_ms"] == 30.0


def test_files_are_identified(cli: Any, tmp_path: Path) -> None:
    plain = captures.write(tmp_path / "a", captures.download())
    packed = tmp_path / "b"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    ping = tmp_path / "c"
    ping.write_text("PING x (10.0.0.1) 56(84) bytes of data.\n64 bytes from 10.0.0.1: icmp_seq=1 "
                    "ttl=64 time=20.1 ms\n")  # fmt: skip
    iperf3 = tmp_path / "d"
    iperf3.write_text("iperf3: error - unable to connect to server: Connection refused\n")
    names = [str(one) for one in (plain, packed, ping, iperf3)]
    code, out, _ = cli("diagnose", "--identify", *names)
    assert code == 0
    kinds = [
        line.removeprefix(f"{name}: ") for line, name in zip(out.splitlines(), names, strict=True)
    ]
    assert kinds == ["pcap", "pcap, compressed", "ping", "iperf3"]
    code, out, _ = cli("diagnose", *names[2:])
    assert code == 0
    assert "0 of 1 echo requests had no reply; RTT min 20.1, median 20.1, max 20.1 ms." in out
    assert "  iperf3 failed: unable to connect to server: Connection refused." in out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", ": the file is empty"),
        (b"hello\n", ": this is neither a capture (pcap, pcapng) nor the output of ping, iperf3, "),
        (b'{"a": 1}', ': this JSON is not from iperf3 (no "start", no "error"), flent or jc'),
        (b"\x1f\x8b\x08", ": the gzip file is damaged: "),
        (b"\x28\xb5\x2f\xfd", ": cannot be read after byte 0: incomplete frame"),
        (b"\xd4\xc3\xb2\xa1", ": this is not a capture: it begins with the bytes d4 c3 b2 a1. A "),
    ],
)
def test_what_is_none_of_these_is_refused_in_a_line(
    cli: Any, tmp_path: Path, content: bytes, message: str
) -> None:
    file = tmp_path / "f"
    file.write_bytes(content)
    code, out, err = cli("diagnose", str(file))
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {file}{message}")
    assert err.count("\n") == 1


def test_a_refused_file_costs_no_other_one(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no capture\n")
    capture = captures.write(tmp_path / "one.pcap", captures.download())
    files = (str(tmp_path / "text"), str(capture), "absent")
    code, out, err = cli("diagnose", "--identify", *files)
    assert (code, out) == (2, f"{capture}: pcap\n")
    assert [line[:7] for line in err.splitlines()] == ["error: "] * 2
    code, out, _ = cli("diagnose", "--json", *files)
    document = json.loads(out)
    assert code == 2
    assert [one["file"] for one in document["files"]] == [str(capture)]
    assert [one["file"] for one in document["refused"]] == [files[0], files[2]]


def test_what_cannot_be_opened_is_said(cli: Any) -> None:
    assert cli("diagnose", "none")[2] == "error: cannot read none: No such file or directory\n"
    assert cli("diagnose", ".")[2] == (
        "error: . is a directory: name the files in it, e.g. *.pcap\n"
    )


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input(tmp_path: Path, pack: Any) -> None:
    data = captures.write(tmp_path / "d.pcap", captures.download()).read_bytes()
    done = subprocess.run(
        [sys.executable, "-m", "airpath", "diagnose", "-"],
        input=pack(data), capture_output=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    head = (
        "standard input: pcap, compressed, 44"
        if pack is gzip.compress
        else "standard input: pcap, 44"
    )
    assert done.stdout.decode().startswith(head)


def test_tshark_says_the_same_of_a_capture_made_by_hand(tmp_path: Path) -> None:
    _needs("tshark")
    _needs("tcptrace")
    for lost in (None, 5):
        file = captures.write(tmp_path / f"{lost}.pcap", captures.download(lost=lost))
        compared = compare(file)
        differ = {one.figure for one in compared.verdicts if not one.is_equal}
        # tshark also measures what was retransmitted.
        assert differ == ({"bytes in flight", "round trips"} if lost else set())
        assert unexplained([compared]) == []


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_inside_a_tunnel_are_the_figures_of_outside(tmp_path: Path, depth: int) -> None:
    """The headers of tunnels within tunnels are taken away by editcap."""
    _needs("editcap")

    def inside(packet: bytes) -> bytes:
        for _ in range(depth):
            packet = captures.in_gtp_u(packet)
        return packet

    packets = ((at, inside(packet)) for at, packet in captures.download())
    file = captures.write(tmp_path / "gtp.pcap", packets)
    (flow,) = _as_without_the_tunnel(file, tmp_path, depth)
    assert flow["tcp"]["from_server"]["retransmissions"]["packets"] == 1


@pytest.mark.parametrize("depth", [1, 2])
def test_a_simulation_inside_tunnels_has_the_figures_of_outside(tmp_path: Path, depth: int) -> None:
    """Losses both ways, UDP and pings; packets of which only the headers were kept."""
    _needs("editcap")
    text = """
[run]
duration_s = 4
[[path.down]]
stage = "link"
rate_mbps = 10
queue_packets = 60
[[path.down]]
stage = "loss"
probability = 0.01
[[path.up]]
stage = "delay"
delay_ms = 30
[[flow]]
kind = "bulk"
profile = "linux-6.18"
[[flow]]
kind = "udp"
rate_mbps = 1
[[flow]]
kind = "ping"
interval_ms = 100
"""
    (tmp_path / "s.toml").write_text(text)
    airpath.run(tmp_path / "s.toml", out=tmp_path / "run", capture=True)
    whole, alone = tmp_path / "run/capture.pcapng", tmp_path / "server.pcapng"
    at_point(whole, alone, "server")
    plain, file = tmp_path / "server.pcap", tmp_path / "gtp.pcap"
    subprocess.run(["editcap", "-F", "pcap", alone, plain], check=True)
    file.write_bytes(captures.wrapped(plain.read_bytes(), depth))
    flows = _as_without_the_tunnel(file, tmp_path, depth)
    assert sorted(flow["protocol"] for flow in flows) == ["icmp", "tcp", "udp"]
    tcp = next(flow["tcp"] for flow in flows if flow["tcp"])
    ends = [tcp[f"from_{end}"] for end in ("client", "server")]
    assert sum(end["retransmissions"]["packets"] for end in ends) > 5


def _as_without_the_tunnel(file: Path, place: Path, depth: int) -> list[dict[str, Any]]:
    """The flows of a file, which must be those after editcap has taken the tunnels away."""
    stripped = place / "stripped.pcap"
    length = captures.TUNNEL_BYTES * depth
    command = ["editcap", "-F", "pcap", "-L", "-C", f"14:{length}", str(file), str(stripped)]
    subprocess.run(command, check=True)
    both: list[Any] = [diagnose(str(one))["capture"]["flows"] for one in (file, stripped)]
    inside: list[dict[str, Any]] = both[0]
    outside: list[dict[str, Any]] = both[1]
    assert {flow["tunnel"] for flow in inside} == {"gtp-u"}
    assert {flow["tunnel"] for flow in outside} == {"none"}
    for flow in inside + outside:
        del flow["tunnel"], flow["teids"]
    assert inside == outside
    return inside


def _needs(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is missing: apt-get install tshark tcptrace")


def _real() -> Path:
    root = os.environ.get("AIRPATH_PCAPS")
    if not root:
        pytest.skip("AIRPATH_PCAPS does not name the folder of captures of real networks")
    return Path(root)


def _captures(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file() and ".pcap" in path.name)


def test_every_real_file_is_read_or_refused() -> None:
    read = 0
    for path in sorted(path for path in _real().rglob("*") if path.is_file()):
        if ".pcap" not in path.name:
            with pytest.raises(InputError, match=r"^[^\n]*$"):
                diagnose(str(path))
            continue
        document = diagnose(str(path))
        capture = document["capture"]
        inside = sum(
            flow[end]["packets"]
            for flow in capture["flows"]
            for end in ("from_client", "from_server")
        )
        assert capture["packets"] == inside + sum(capture["skipped"].values())
        read += 1
    assert read == len(_captures(_real()))


def test_tshark_and_tcptrace_say_the_same_of_real_captures() -> None:
    """The figures are equal, or a rule of docs/measured/captures-compared.md explains them."""
    root = _real()
    _needs("tshark")
    _needs("tcptrace")
    compared = [compare(path) for path in _captures(root)]
    assert unexplained(compared) == []
    verdicts = [one for each in compared for one in each.verdicts]
    assert sum(each.flows for each in compared) > 300
    for figure in ("packets", "bytes", "again or late", "round trips", "bytes in flight"):
        of = [one for one in verdicts if one.figure == figure]
        assert sum(one.is_equal for one in of) > 0.8 * len(of), figure
    used = {(one.reader, rule) for one in verdicts for rule in one.rules or ()}
    written = (ROOT / "docs/measured/captures-compared.md").read_text(encoding="utf-8")
    for reader, rule in used:
        assert f"| `{rule}` |" in written.partition(f"### {reader}")[2], (reader, rule)


def test_a_difference_without_a_rule_is_found(tmp_path: Path) -> None:
    """The model must tell airpath's figures by the rules as they are written."""
    _needs("tshark")
    _needs("tcptrace")
    file = captures.write(tmp_path / "d.pcap", captures.download())
    report: Any = _core.read_capture(file)
    (stream,), (flow,) = tshark(file), report["flows"]
    ours = flow["tcp"]["from_server"]
    ours["rtt_ms"]["count"] += 1
    ours["in_flight_bytes"]["max"] += 1
    ours["retransmissions"]["packets"] += 1
    wrong = [one.figure for one in by_tshark("d", stream, flow) if one.rules is None]
    assert wrong == ["again or late", "again, late", "round trips", "bytes in flight"]


def test_what_is_missing_is_said_and_not_compared_is_no_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("AIRPATH_PCAPS", "")
    assert run(compare_all, []) == 3
    assert "AIRPATH_PCAPS names no folder" in capsys.readouterr().err
    assert run(compare_all, [str(tmp_path / "none")]) == 2
    assert run(compare_all, ["--page"]) == 2
