"""What flent recorded is read, and pings in other forms: jc's JSON, tables, pings over TCP."""

from __future__ import annotations

import gzip
import json
import os
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from airpath.diagnose.files import diagnose
from airpath.errors import InputError
from airpath.readers import flent, ping, ping_forms

TIMES = [0.25 * step for step in range(100)]
DATA: dict[str, Any] = {
    "version": 4,
    "metadata": {
        "NAME": "tcp_1up", "TITLE": "a cell", "HOST": "10.1.0.2", "FLENT_VERSION": "2.1.1",
        "LENGTH": 10, "T0": "2026-01-02T03:04:05.500000Z", "FAILED_RUNNERS": 1,
        "SERIES_META": {
            "Ping (ms) ICMP": {"UNITS": "ms"},
            "TCP upload": {"UNITS": "Mbits/s", "CONG_CONTROL": "cubic"},
            "cpu": {"UNITS": "misc"},
        },
    },
    "x_values": TIMES,
    "results": {
        "Ping (ms) ICMP": [20.0 if at < 5 or at > 15 else 120.0 for at in TIMES],
        "TCP upload": [10.0 + (at > 10) if 5 <= at <= 15 else None for at in TIMES],
        "cpu::load": [0.5] * 100,
    },
    "raw_values": {"TCP upload": [{"t": 1767323045.5, "val": 10.0, "dur": 0.2}]},
}  # fmt: skip


def test_flent_is_read(tmp_path: Path) -> None:
    file = tmp_path / "test.flent.gz"
    file.write_bytes(gzip.compress(json.dumps(DATA).encode()))
    document = diagnose(str(file))
    assert (document["kind"], document["compressed"]) == ("flent", True)
    said = document["flent"]
    assert (said["test"], said["length_s"], said["congestion"]) == ("tcp_1up", 10.0, "cubic")
    assert said["start_time_s"] == pytest.approx(1767323045.5)
    upload = said["series"][1]
    assert (upload["unit"], upload["points"], upload["p50"], upload["p95"]) == (
        "Mbits/s", 41, 10.0, 11.0,
    )  # fmt: skip
    assert said["delays"] == [{"name": "Ping (ms) ICMP", "idle_ms": 20.0, "loaded_ms": 120.0}]
    texts = {one["kind"]: one["text"] for one in document["statements"]}
    assert list(texts) == ["flent", "delay-under-load", "bufferbloat", "remark"]
    assert "TCP upload 10 Mb/s in the median (10 to 11, 95th percentile 11)" in texts["flent"]
    assert texts["flent"].endswith("; and 1 series of other units.")
    assert "under load packets wait 100 ms" in texts["bufferbloat"]
    assert texts["remark"] == "1 of its programs failed."


def test_a_time_without_a_zone_is_not_used() -> None:
    local = {**DATA, "metadata": {**DATA["metadata"], "T0": "2026-01-02T05:04:05.500000"}}
    assert flent.read(json.dumps(local)).start_s == 1767323045.5
    assert flent.read(json.dumps({**local, "raw_values": {}})).start_s is None


JC: dict[str, Any] = {
    "destination_ip": "10.1.0.2", "data_bytes": 56, "packets_transmitted": 4, "packets_received": 2,
    "round_trip_ms_min": 20.1, "round_trip_ms_avg": 25.2, "round_trip_ms_max": 30.3,
    "round_trip_ms_stddev": 5.1,
    "responses": [
        {"type": "reply", "timestamp": 1700000000.1, "response_ip": "10.1.0.2", "icmp_seq": 1,
         "ttl": 64, "time_ms": 20.1, "duplicate": False},
        {"type": "timeout", "icmp_seq": 2},
        {"type": "unparsable_line", "unparsed_line": "odd"},
        {"type": "reply", "timestamp": None, "icmp_seq": 3, "ttl": None, "time_ms": 30.3,
         "duplicate": False},
    ],
}  # fmt: skip
TABLE = "Probe,RTT [ms],TTL\n1,20.5,46\n2,timeout,\n3,30,46\n"
OVER_TCP = """\
Start time: 1731081019095
[2024-11-08T10:50:19.372] - client - INFO - Connected to 10.1.0.2:65432
[2024-11-08T10:50:19.372] - client - INFO - PING 10.1.0.2 26(66) bytes of data.
[2024-11-08T10:50:19.440] - client - INFO - 46 bytes from 10.1.0.2: time=68.31 ms
[2024-11-08T10:50:19.716] - client - INFO - 46 bytes from 10.1.0.2: time=74.48 ms
End time: 1731081050247
"""


def test_pings_in_other_forms(tmp_path: Path) -> None:
    (read,) = ping_forms.read_json(json.dumps(JC)).runs
    assert (read.sent, read.received, read.payload_bytes) == (4, 2, 56)
    assert [(one.seq, one.rtt_ms, one.time_s) for one in read.replies] == [
        (1, 20.1, 1700000000.1), (3, 30.3, None),
    ]  # fmt: skip
    assert read.errors == [(2, "no answer in time")]
    (table,) = ping_forms.read_table(TABLE).runs
    assert (table.sent, table.received) == (3, 2)
    assert [(one.seq, one.rtt_ms) for one in table.replies] == [(1, 20.5), (3, 30.0)]
    tcp = ping.read(OVER_TCP)
    assert [(one.seq, one.rtt_ms, one.time_s) for one in tcp.replies] == [
        (0, 68.31, None), (1, 74.48, None),
    ]  # fmt: skip
    (tmp_path / "p").write_text(OVER_TCP)
    assert "losses are unknown" in diagnose(str(tmp_path / "p"))["statements"][1]["text"]
    for name, text in (("j", json.dumps(JC)), ("t", TABLE)):
        (tmp_path / name).write_text(text)
        assert diagnose(str(tmp_path / name))["kind"] == "ping"


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        (flent.read, '{"results": {}', "line 1: not JSON"),
        (flent.read, '{"results": {}}', 'no "results" and "x_values"'),
        (flent.read, '{"results": {"a": ["b"]}, "x_values": [0]}', "not have flent's structure"),
        (flent.read, '{"a":' * 99_999, "nested too deeply"),
        (ping_forms.read_json, '{"responses": []}', 'no "packets_transmitted"'),
        (ping_forms.read_json, json.dumps({**JC, "responses": [1]}), "have the structure of jc's"),
        (ping_forms.read_table, "RTT [ms],n\n20,1\nno,2\n", "line 3: RTT .* is 'no'"),
        (ping_forms.read_table, "RTT [ms],n\n20,1\n\0,2\n", "line 3: RTT"),
        (ping_forms.read_table, "RTT [ms],n\nnan,1\n", "line 2: RTT"),
        (ping_forms.read_table, "RTT [ms],n\n", "no row"),
        (ping_forms.read_table, "a,b\n1,2\n", "not a table with one column of RTTs"),
    ],
)
def test_what_is_broken_is_refused_in_a_line(
    read: Callable[[str, str], Any], text: str, said: str
) -> None:
    with pytest.raises(InputError, match=said) as refused:
        read(text, "file")
    assert str(refused.value).startswith("file: ")
    assert "\n" not in str(refused.value)


def test_truncated_and_damaged_files_are_read_or_refused() -> None:
    small = {**DATA, "x_values": [0, 1], "results": {"Ping": [1.0, None], "TCP upload": [None, 2]}}
    texts: dict[str, Callable[[str, str], Any]] = {
        json.dumps(small): flent.read,
        json.dumps(JC): ping_forms.read_json,
        TABLE: ping_forms.read_table,
        OVER_TCP: ping.read,
    }
    draw = random.Random(int(os.environ.get("PROPTEST_RNG_SEED", "7")) % 2**32)
    for text, read in texts.items():
        damaged = [text[:at] for at in range(len(text))]
        for _ in range(1000):
            at = draw.randrange(len(text))
            odd = draw.choice(["\0", ",", "1e999", "9" * 400, "null", "[", "-1", '"', "\n", "1,5"])
            damaged.append(text[:at] + odd + text[at + draw.choice([0, 1, 4, 30]) :])
        for one in damaged:
            with suppress(InputError):
                json.dumps(read(one, "file").document(), allow_nan=False)


REFUSED = {
    "bad-escape-only.res": "neither a capture",
    "202305_08_9-ho.csv": "neither a capture",
    "202305_08_server-5-2023-05-09-050903.json": "the file is empty",
    "centos-7.7-ss-sudo-a.out": "no metrics of a TCP connection",
    "generic-ss-wide.out": "no metrics of a TCP connection",
    "tcptrace-l-r-dev.txt.gz": "neither a capture",
    "tshark-tcp-analysis-dev.json.gz": "this JSON is not from iperf3",
}
"""No measurement of a tool: terminal escapes, a log of RRC, nothing, other analysers' answers."""


def test_every_output_of_real_networks_is_read_but_those_that_are_none() -> None:
    root = os.environ.get("AIRPATH_OUTPUTS")
    if not root:
        pytest.skip("AIRPATH_OUTPUTS does not name the folder of outputs of real networks")
    refused: dict[str, str] = {}
    kinds = set()
    for path in sorted(path for path in Path(root).rglob("*") if path.is_file()):
        try:
            document = diagnose(str(path))
        except InputError as error:
            refused[path.name] = str(error)
        else:
            kinds.add(document["kind"])
            assert document["statements"], path
    assert refused.keys() == REFUSED.keys()
    assert all(REFUSED[name] in said and "\n" not in said for name, said in refused.items())
    assert kinds == {"ping", "iperf3", "nuttcp", "flent"}


def test_what_jc_made_of_a_ping_says_the_same() -> None:
    root = os.environ.get("AIRPATH_OUTPUTS")
    if not root:
        pytest.skip("AIRPATH_OUTPUTS does not name the folder of outputs of real networks")
    compared = 0
    for path in sorted(Path(root, "ping-jc").glob("*.json")):
        if any(word in path.name for word in ("unparsable", "unparsedlines", "unknown-errors")):
            continue  # Edited by hand, for jc's own tests.
        theirs = ping_forms.read_json(path.read_text())
        ours = ping.read(path.with_suffix(".out").read_text())
        assert (ours.sent, ours.lost) == (theirs.sent, theirs.lost), path
        assert [one.rtt_ms for one in ours.replies] == [one.rtt_ms for one in theirs.replies], path
        compared += 1
    assert compared > 50
