"""What ss -ti and nuttcp print is read: snapshots, intervals, damaged, hostile, real ones."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import socket
import subprocess
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from airpath.diagnose.files import diagnose
from airpath.errors import InputError
from airpath.readers import iperf, nuttcp, ping, ss

HEAD = "State Recv-Q Send-Q Local Address:Port  Peer Address:Port Process\n"
SOCKET = "ESTAB 0      131072    10.0.0.2:40000      10.1.0.2:5201"
INFO = (
    "cubic wscale:7,9 rto:301 rtt:{rtt}/12.5 ato:40 mss:1348 pmtu:1400 rcvmss:536 advmss:1348 "
    "cwnd:120 ssthresh:90 bytes_sent:{sent} bytes_retrans:{again} bytes_acked:{acked} segs_out:900 "
    "segs_in:450 data_segs_out:899 send 12.9Mbps lastsnd:4 lastrcv:9000 lastack:8 "
    "pacing_rate 15.5Mbps delivery_rate 9.75Mbps delivered:800 {flag}busy:8000ms "
    "rwnd_limited:6000ms(75.0%) sndbuf_limited:100ms(1.2%) unacked:98 retrans:2/7 lost:1 sacked:3 "
    "dsack_dups:1 reordering:9 reord_seen:4 rcv_space:14480 rcv_ssthresh:64088 notsent:4096 "
    "minrtt:25.5 snd_wnd:131072"
)
MEMORY = "skmem:(r0,rb131072,t4,tb87040,f0,w98304,o0,bl0,d2) ts sack ecn "


def _info(second: int, flag: str = "") -> str:
    return INFO.format(rtt=100 + second, sent=1_000_000 * (second + 1), again=10_000 * second,
                       acked=1_000_000 * second + 1, flag=flag)  # fmt: skip


def _log(stamp: str, lines: str = "{socket}\n\t {info}\n", flag: str = "") -> str:
    return "".join(
        stamp.format(second=second)
        + HEAD
        + lines.format(socket=SOCKET, info=MEMORY + _info(second, flag))
        for second in range(3)
    )


@pytest.mark.parametrize(
    "text",
    [
        _log("Tue Nov 24 17:11:4{second} UTC 2026\n"),
        _log("Tue 24 Nov 2026 05:11:4{second} PM UTC\n"),
        _log("2026-11-24T18:11:4{second}+01:00\n"),
        _log("179553670{second}\n").replace("179553670", "179554030"),
        _log("Tue Nov 24 17:11:4{second} UTC 2026\n", "{socket} {info}   \n"),
        "".join(f"2026-11-24T17:11:4{second}.000000Z tcp   {SOCKET} {MEMORY}{_info(second)}\n"
                for second in range(3)),
        "".join(f"179554030{second}.000000 {line}\n" for second in range(3)
                for line in (SOCKET, f"\t {MEMORY}{_info(second)}")),
    ],
    ids=["date", "12 hours", "date -Is", "epoch", "-O", "ts one line", "ts two lines"],
)  # fmt: skip
def test_snapshots_of_ss_are_read(text: str) -> None:
    read = ss.read(text)
    (connection,) = read.connections
    assert (connection.local, connection.peer) == ("10.0.0.2:40000", "10.1.0.2:5201")
    assert (read.unknown, read.remarks) == (set(), [])
    times: list[Any] = [one["time_s"] for one in connection.samples]
    assert [one - times[0] for one in times] == [0.0, 1.0, 2.0]
    assert times[0] == pytest.approx(1795540301, abs=1)
    last: Any = connection.samples[-1]
    expected = {
        "state": "ESTAB", "send_q_bytes": 131072, "rtt_ms": 102.0, "rttvar_ms": 12.5,
        "minrtt_ms": 25.5, "cwnd_segments": 120, "ssthresh_segments": 90, "mss_bytes": 1348,
        "retrans_now": 2, "retrans_total": 7, "lost_segments": 1, "reordering_segments": 9,
        "delivery_rate_mbps": 9.75, "pacing_rate_mbps": 15.5, "send_mbps": 12.9,
        "bytes_sent": 3_000_000, "bytes_acked": 2_000_001, "bytes_retrans": 20_000,
        "busy_ms": 8000, "rwnd_limited_ms": 6000, "sndbuf_limited_ms": 100, "app_limited": False,
        "rcv_space_bytes": 14480, "wscale_send": 7, "notsent_bytes": 4096,
    }  # fmt: skip
    assert {key: last[key] for key in expected} == expected
    assert last["memory_bytes"]["send_buffer"] == 87040
    assert last["memory_bytes"]["drops"] == 2
    row: Any = read.document()["connections"][0]
    assert (row["congestion"], row["goodput_mbps"]) == ("cubic", pytest.approx(8.0))
    assert row["limited_share"] == {"rwnd_limited": 0.75, "sndbuf_limited": 0.0125}
    assert row["retransmitted_share"] == pytest.approx(20 / 3000)


def test_what_ss_says_has_causes(tmp_path: Path) -> None:
    file = tmp_path / "ss.log"
    file.write_text(_log("179554030{second}\n", flag="app_limited "))
    said = {one["kind"]: one["text"] for one in diagnose(str(file))["statements"]}
    assert list(said) == [
        "ss", "receive-window", "application-limited", "bufferbloat", "retransmissions"
    ]  # fmt: skip
    assert "the receive window limited the connection for 75% of the 8 s" in said["receive-window"]
    assert "75.5 ms above the minimum" in said["bufferbloat"]
    assert "0.67% of what it sent was retransmitted (7 segments)" in said["retransmissions"]
    file.write_text(_log("179554030{second}\n").replace("6000ms(75.0%)", "4000ms(50.0%)"))
    assert "receive-window" not in {one["kind"] for one in diagnose(str(file))["statements"]}


RECEIVED = (
    "cubic wscale:7,7 rto:204 rtt:50.1/10 mss:1448 cwnd:10 bytes_sent:37 bytes_acked:38 "
    "bytes_received:{received} segs_out:2000 segs_in:4000 send 2312222bps app_limited busy:50ms "
    "rcv_rtt:60.5 rcv_space:300000 rcv_ssthresh:600000 minrtt:40.1 rcv_ooopack:12"
)


@pytest.mark.parametrize("wrapped", [False, True])
@pytest.mark.parametrize(
    ("stamp", "absolute"),
    [("Fri Nov 27 19:07:1{second} UTC 2026", True), ("Fr 27. Nov 19:07:1{second} CET 2026", False),
     ("ven. 27 nov. 2026 19:07:1{second} CET", False), ("19:07:1{second}", False),
     ("27.11.2026 19:07:1{second}", False), ("2026-11-27 19:07:1{second} +0000", True),
     ("179580643{second}123456789", True)],
)  # fmt: skip
def test_the_receiver_of_a_download_is_told_of(
    tmp_path: Path, stamp: str, absolute: bool, wrapped: bool
) -> None:
    file = tmp_path / "ss.log"
    text = "".join(
        f"{stamp.format(second=second)}\n{SOCKET}\n"
        f"\t {RECEIVED.format(received=5_000_000 * second)}\n"
        for second in range(4)
    )
    file.write_text(text.replace(" segs_out", "\n segs_out").replace(" rcv_", "\n rcv_")
                    if wrapped else text)  # fmt: skip
    document = diagnose(str(file))
    (row,) = document["ss"]["connections"]
    assert row["received_mbps"] == pytest.approx(40.0)
    assert row["rcv_rtt_ms"] == 60.5
    assert (row["rcv_space_bytes_max"], row["rcv_ssthresh_bytes_max"]) == (300_000, 600_000)
    assert row["rcv_out_of_order_packets"] == 12
    assert all((one["time_s"] is not None) == absolute for one in row["samples"])
    said = document["statements"][0]["text"]
    assert "40 Mb/s received between the first and the last" in said
    assert "acknowledged" not in said
    assert "RTT 60.5 ms as the receiver estimates it" in said
    assert (len(document["ss"]["remarks"]) == 0) is absolute


def test_a_connection_whose_counters_go_back_is_a_new_one() -> None:
    text = HEAD + "".join(f"{SOCKET}\n\t {_info(second)}\n" for second in (0, 1, 2, 0, 1))
    assert [len(one.samples) for one in ss.read(text).connections] == [3, 2]


def test_times_without_a_date_or_zone_are_no_instants() -> None:
    for stamp in ("Nov 24 17:11:4{second} ", "Tue Nov 24 17:11:4{second} CET 2026\n"):
        read = ss.read(_log(stamp))
        assert {one["time_s"] for one in read.connections[0].samples} == {None}
        assert "no known time zone" in read.remarks[0]


def test_a_field_that_is_not_known_is_named() -> None:
    read = ss.read(f"{SOCKET} cubic cwnd:10 warp:9 rtt:x/y hyper:(a:1)\n")
    assert read.unknown == {"warp", "rtt", "hyper"}
    assert read.remarks == ["fields that are not understood: hyper, rtt, warp"]


def test_ss_of_this_machine_is_understood() -> None:
    """A connection over loopback, by every option that changes the form."""
    if shutil.which("ss") is None:
        pytest.skip("ss is missing: apt-get install iproute2")
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        peer, _ = server.accept()
        peer.settimeout(20)
        port = str(client.getsockname()[1])
        for options in ("-ti", "-tin", "-tinO", "-tinOH", "-tinemop", "-tinemopOH"):
            writer = threading.Thread(target=client.sendall, args=(bytes(1 << 20),))
            writer.start()
            _drain(peer, 1 << 20)
            writer.join()
            done = subprocess.run(
                ["ss", options, "sport", "=", f":{port}"],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            read = ss.read(done.stdout, options)
            assert not read.unknown, (options, done.stdout)
            (connection,) = read.connections
            (sample,) = connection.samples
            assert connection.congestion
            assert sample["bytes_sent"] >= 1 << 20
            assert {"cwnd_segments", "rtt_ms", "minrtt_ms", "mss_bytes"} <= set(sample)
        client.close()
        peer.close()


def _drain(peer: socket.socket, left: int) -> None:
    while left:
        left -= len(peer.recv(min(left, 1 << 16)))


def test_ss_without_figures_is_refused_as_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "f").write_text(f"{HEAD}{SOCKET}\n")
    with pytest.raises(InputError, match="no metrics of a TCP connection: use ss -ti"):
        diagnose(str(tmp_path / "f"))


TCP = """\
nuttcp-t: v8.1.4: socket
nuttcp-t: buflen=65536, nstream=2, port=5101 tcp -> 10.1.0.2
nuttcp-t: connect to 10.1.0.2 with mss=1348, RTT=42.160 ms af=inet
nuttcp-t: send window size = 87040, receive window size = 131072
    1.0000 MB /   1.00 sec =    8.3886 Mbps     3 retrans    100 KB-cwnd
    0.0000 MB /   1.00 sec =    0.0000 Mbps     2 retrans     50 KB-cwnd
    2.0000 MB /   1.00 sec =   16.7772 Mbps     0 retrans    120 KB-cwnd

    3.0000 MB /   3.05 sec =    8.2511 Mbps 1 %TX 2 %RX 5 retrans 42.16 msRTT
"""
UDP = """\
    1.2500 MB /   1.00 sec =   10.4857 Mbps    20 /  1300 ~drop/pkt  1.54 ~%loss
    1.2500 MB /   1.00 sec =   10.4857 Mbps     0 /  1280 ~drop/pkt  0.00 ~%loss

    2.5000 MB /   2.00 sec =   10.4857 Mbps 9 %TX 4 %RX 20 / 2580 drop/pkt 0.78 %loss
"""


def test_nuttcp_is_read() -> None:
    stamped = "".join(f"[2026-01-02T03:04:05.6+0100] {line}\n" for line in TCP.splitlines())
    for text in (TCP, TCP.replace("\n", "\r\n"), stamped, "Start time: 1767319445000\n" + TCP):
        read = nuttcp.read(text)
        said: Any = read.document()
        assert (said["protocol"], said["reverse"], said["streams"]) == ("TCP", False, 2)
        assert (said["bytes"], said["retransmissions"]) == (3 << 20, 5)
        assert (said["goodput_mbps"], said["rtt_ms"]) == (8.2511, 42.16)
        assert (said["mss_bytes"], said["handshake_ms"]) == (1348, 42.16)
        assert (said["idle_intervals"], said["cwnd_bytes_max"]) == (1, 120 * 1024)
        assert said["complete"]
    assert nuttcp.read(stamped).runs[0].intervals[0].time_s == pytest.approx(1767319445.6)
    udp: Any = nuttcp.read(UDP).document()
    assert (udp["protocol"], udp["packets"], udp["packets_lost"]) == ("UDP", 2580, 20)


def test_a_loop_of_nuttcp_has_a_run_each(tmp_path: Path) -> None:
    file = tmp_path / "loop.log"
    file.write_text(f"{TCP}\n{TCP.replace('3.0000 MB', '9.0000 MB')}\n{UDP}")
    document: Any = diagnose(str(file))
    runs = document["nuttcp"]["runs"]
    assert [(one["protocol"], one["bytes"] >> 20) for one in runs] == [
        ("TCP", 3), ("TCP", 9), ("UDP", 2),
    ]  # fmt: skip
    assert [one["interval_mbps"]["count"] for one in runs] == [3, 3, 2]
    assert (document["nuttcp"]["retransmissions"], document["nuttcp"]["packets_lost"]) == (10, 20)
    assert document["statements"][0]["text"].startswith("3 runs: 8.251 Mb/s to 10.49 Mb/s")


def test_nuttcp_cut_short_is_summed_and_its_error_said(tmp_path: Path) -> None:
    said = nuttcp.read(TCP.split("\n\n", maxsplit=1)[0]).document()
    assert (said["bytes"], said["retransmissions"], said["complete"]) == (3 << 20, 5, False)
    assert said["goodput_mbps"] == pytest.approx(8.3886, rel=1e-4)
    assert "the totals are sums" in said["remarks"][0]
    (tmp_path / "u").write_text(UDP)
    texts = [one["text"] for one in diagnose(str(tmp_path / "u"))["statements"]]
    assert texts[0] == "UDP, 1 stream: 10.49 Mb/s in 2 s, 20 packets lost of 2580 (0.775%)."
    assert texts[2].startswith("0.78% of the datagrams did not arrive")
    failed = nuttcp.read("nuttcp-t: v6.1.2: Error: connect: Connection refused\n")
    assert failed.error == "connect: Connection refused"


ALL = {"ss": _log("179554030{second}\n"), "tcp": TCP, "udp": UDP}


@pytest.mark.parametrize("name", sorted(ALL))
def test_each_truncation_is_read_or_refused(name: str) -> None:
    text = ALL[name]
    for at in range(len(text)):
        _read_or_refuse(text[:at])


def test_damaged_texts_are_read_or_refused() -> None:
    draw = random.Random(int(os.environ.get("PROPTEST_RNG_SEED", "7")) % 2**32)
    for _ in range(1000):
        text = list(draw.choice(list(ALL.values())))
        for _ in range(draw.randint(1, 8)):
            at = draw.randrange(len(text))
            odd = draw.choice(
                ["\0", ",", ":", "/", "9" * 400, "-1", "nan", "(", ")", "\n", "\ufffd"]
            )
            text[at : at + draw.choice([0, 1, 1, 40])] = [odd]
        _read_or_refuse("".join(text))


def _read_or_refuse(text: str) -> None:
    for reader in (ss.read, nuttcp.read, ping.read, iperf.read):
        with suppress(InputError):
            json.dumps(reader(text).document(), allow_nan=False)


@pytest.mark.parametrize(
    "content",
    [
        b"A" * (100 << 20),
        b'{"a":' * 200_000,
        b'{"a":' + b"9" * 50_000 + b"}",
        b"ESTAB 0 0 a b " + b"((" * 100_000,
        b"ESTAB 0 0 a b cwnd:1 " + b"x:(" * 100_000,
        b"ESTAB 0 0 a b cwnd:1 " + b"x" * 400_000,
        b"ESTAB 0 0 a b cwnd:1 skmem:(" + b"x" * 400_000 + b")",
        bytes(1 << 20),
    ],
    ids=[
        "100 MB line",
        "nested",
        "long number",
        "brackets",
        "groups",
        "long word",
        "memory",
        "NUL",
    ],
)
def test_hostile_files_end_soon(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "f"
    file.write_bytes(content)
    began = time.process_time()
    with suppress(InputError):
        diagnose(str(file))
    assert time.process_time() - began < 10


@pytest.mark.parametrize("folder", ["nuttcp-drive", "misc-jc"])
def test_outputs_of_real_networks(folder: str) -> None:
    """nuttcp's sums agree with its own rates; ss without -i is refused."""
    root = os.environ.get("AIRPATH_OUTPUTS")
    if not root:
        pytest.skip("AIRPATH_OUTPUTS does not name the folder of outputs of real networks")
    read = 0
    for path in sorted(Path(root, folder).iterdir()):
        if folder == "misc-jc":
            with pytest.raises(InputError, match=r"^[^\n]*no metrics of a TCP connection"):
                diagnose(str(path))
            read += 1
        elif "link" in path.name:
            with gzip.open(path, "rt") as file:
                output = nuttcp.read(file.read())
            said: Any = output.document()
            (run,) = output.runs
            assert len(run.intervals) == 241
            assert all(one.time_s for one in run.intervals)
            rates = sum(one.rate_bps * one.duration_s for one in run.intervals)
            assert 8 * said["bytes"] == pytest.approx(rates, rel=0.01)
            read += 1
    assert read > 0
