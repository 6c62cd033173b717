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

import captures
from airpath.diagnose.files import diagnose
from airpath.errors import InputError


def test_a_capture_is_told_of(cli: Any, tmp_path: Path) -> None:
    file = captures.write(tmp_path / "d.pcap", captures.download())
    code, out, err = cli("diagnose", str(file))
    assert (code, err) == (0, "")
    head, again, *_ = out.splitlines()
    assert head == f"{file}: pcap, 44 packets in 0.090 s"
    assert again == (
        "  Flow 0, data of the server: 1 packet sent again (5.00% of those with data): 1 after "
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
    assert "0 of 1 echo requests had no answer; the round trip is 20.1 ms at least" in out
    assert "  iperf3 failed: unable to connect to server: Connection refused." in out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", ": the file is empty"),
        (b"hello\n", ": this is neither a capture (pcap, pcapng) nor what ping, iperf3, nuttcp, "),
        (b'{"a": 1}', ': this JSON is none of iperf3 (no "start", no "error"), flent or jc'),
        (b"\x1f\x8b\x08", ": the gzip file is damaged: "),
        (b"\x28\xb5\x2f\xfd", ": cannot be read after byte 0: incomplete frame"),
        (b"\xd4\xc3\xb2\xa1", ": this is no capture: it begins with the bytes d4 c3 b2 a1. A "),
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
    assert cli("diagnose", ".")[2] == "error: cannot read .: Is a directory\n"


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
    for lost in (None, 5):
        file = captures.write(tmp_path / f"{lost}.pcap", captures.download(lost=lost))
        _compare(file)


def test_inside_a_tunnel_are_the_figures_of_outside(tmp_path: Path) -> None:
    """The tunnel's headers are taken away by editcap."""
    _needs("editcap")
    packets = ((at, captures.in_gtp_u(packet)) for at, packet in captures.download())
    file = captures.write(tmp_path / "gtp.pcap", packets)
    stripped = tmp_path / "plain.pcap"
    subprocess.run(["editcap", "-F", "pcap", "-L", "-C", "14:44", file, stripped], check=True)
    (inside,), (outside,) = (diagnose(str(one))["capture"]["flows"] for one in (file, stripped))
    assert (inside["tunnel"], outside["tunnel"]) == ("gtp-u", "none")
    for key in ("tunnel", "teids"):
        del inside[key], outside[key]
    assert inside == outside
    assert inside["tcp"]["from_server"]["retransmissions"]["packets"] == 1


def _needs(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is missing: apt-get install tshark")


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


def test_tshark_says_the_same_of_real_captures() -> None:
    """The rules by which the two differ are those of docs/guides/captures.md."""
    root = _real()
    _needs("tshark")
    compared = [_compare(path) for path in _captures(root)]
    streams, plain = (sum(counts) for counts in zip(*compared, strict=True))
    assert streams > 300
    assert plain > 150


def _compare(path: Path) -> tuple[int, int]:
    """TCP streams that were compared, and those of them whose round trips were."""
    capture = diagnose(str(path))["capture"]
    flows = [flow for flow in capture["flows"] if flow["tcp"]]
    streams, plain = captures.tshark(path), 0
    assert len(flows) == len(streams), path
    for stream, flow in captures.matched(streams, flows):
        ends = [flow["tcp"]["from_client"], flow["tcp"]["from_server"]]
        packets = flow["from_client"]["packets"] + flow["from_server"]["packets"]
        if (
            flow["tunnel"] != "none"
            and capture["skipped"].get("fragment")
            and packets > len(stream.rows)
        ):
            # tshark leaves out a tunnelled packet of which a part is missing.
            continue
        assert packets == len(stream.rows), path
        assert sum(end["data_bytes"] for end in ends) == stream.payload, path
        again = sum(end["retransmissions"]["packets"] for end in ends)
        late = sum(end["out_of_order_packets"] for end in ends)
        said = stream.count("tcp.analysis.retransmission", "tcp.analysis.out_of_order")
        if stream.payload == sum(int(row["tcp.len"] or 0) for row in stream.rows):
            assert again + late == said, path
        if stream.is_plain:
            plain += 1
            _compare_round_trips(stream, ends, path)
    return len(streams), plain


def _compare_round_trips(stream: captures.Stream, ends: list[dict[str, Any]], path: Path) -> None:
    expected, seen = stream.rtts_ms, [end["rtt_ms"] for end in ends if end["rtt_ms"]]
    count = sum(rtt["count"] for rtt in seen)
    assert count == len(expected), path
    if count:
        assert min(rtt["min"] for rtt in seen) == pytest.approx(expected[0], abs=0.002)
        assert max(rtt["max"] for rtt in seen) == pytest.approx(expected[-1], abs=0.002)
        mean = sum(rtt["mean"] * rtt["count"] for rtt in seen) / count
        assert mean == pytest.approx(sum(expected) / count, abs=0.002)
