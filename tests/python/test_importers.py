"""Importers of what tools print: whatever is in the file, it is read or refused, soon."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from random import Random

import pytest

from airpath.readers.recognise import Recognised
from airpath_dev.fuzzed.check import SEEDS, SlowError, read, read_together, seeds
from airpath_dev.fuzzed.importers import main
from airpath_dev.fuzzed.mutate import damaged
from airpath_dev.harness import run

_COUNT = 1500
_KINDS = ("flent", "iperf2", "iperf3", "nuttcp", "ping", "ss")


@pytest.mark.parametrize("name", sorted(seeds()))
def test_each_file_to_begin_with_is_read(name: str) -> None:
    kind, found = read(SEEDS / name)
    assert kind == name.removeprefix("fault-").partition("-")[0]
    assert found is not None


@pytest.mark.parametrize(
    "text",
    [
        "[2023-11-14T2" + "9" * 400 + ":19999" * 50 + ":1",
        "x " + "1" * 100_000 + ":",
        "x 1.1.1.1 " + "1:" * 50_000,
        "x " + "999." * 30_000 + ":",
        "PING " + "(1.1.1.1)" * 10_000,
        "Pinging 1.1.1.1 with 32 bytes of data:\nReply " + "1" * 100_000,
        "Pinging 1.1.1.1 with 32 bytes of data:\nReply " + "1: 1=" * 20_000,
        "PING 1.1.1.1 (1.1.1.1) 56(84) bytes of data.\n64 bytes from " + "1:" * 50_000,
        "T" * 100_000,
        "T " * 50_000,
        ("Nov 27 " * 200 + "\n") * 300,
        ("1 2 3 4 5 6 7" * 70 + "\n") * 300,
        "a= 1" * 30_000 + "%",
        ("x" * 900 + " icmp_seq=1 ttl=" + "1" * 80 + "\n") * 200,
        ("a " * 400 + "seq=1 ttl=1 =1 ms\n") * 200,
        ("- " * 400 + " : " + "1.5 " * 40 + "\n") * 200,
        "{\n" * 50_000,
        '{"a": [\n' * 20_000,
        '{"event": "start", "data": {"a\n' * 10_000,
        "[ *1] 0.0-1.0 sec " + "9" * 900,
    ],
    ids=range(20),
)
def test_long_lines_are_read_or_refused_soon(tmp_path: Path, text: str) -> None:
    (tmp_path / "long").write_text(text)
    read(tmp_path / "long")


def test_each_tool_has_one() -> None:
    assert {name.removeprefix("fault-").partition("-")[0] for name in seeds()} == set(_KINDS)


def test_files_that_failed_once_are_told_of_together() -> None:
    """Two snapshots of one time have no rate."""
    files = [read(SEEDS / name)[1] for name in ("fault-ss-one-time", "ping-iputils")]
    read_together([one for one in files if one])


def test_damaged_files_are_read_or_refused(tmp_path: Path) -> None:
    """Others with each commit; `make fuzz-importers` has more."""
    seed = os.environ.get("PROPTEST_RNG_SEED", "0")
    pick, known = Random(f"airpath importers {seed}"), list(seeds().values())
    before: list[Recognised] = []
    kinds: set[str] = set()
    file = tmp_path / "file"
    for _ in range(_COUNT):
        file.write_bytes(damaged(pick, known))
        kind, found = read(file)
        kinds.add(kind)
        if found:
            before = [*before[-2:], found]
            read_together(before)
    assert kinds >= {"refused", *_KINDS}


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "{" * 100_000,
        '{"start": ' * 20_000,
        '{"x_values": [' + "1," * 200_000,
        "PING a (b) 1(2) bytes of data.\n" + "64 bytes from a: icmp_seq=1 time=1 ms " * 20_000,
        "PING a (b) 1(2) bytes of data.\n" + "64 bytes from " * 50_000,
        "[ ID] Interval           Transfer\n" + "[  5]" * 100_000,
        "[  5]   0.00-1.00   sec  1.25 MBytes  " + " " * 500_000 + "x",
        "State Recv-Q Send-Q\n" + "ESTAB 0 0 a:1 b:2\n\t" + "rtt:1/" * 100_000,
        "nuttcp-t: v8.1.4: socket\n" + "    1.1875 MB /" * 50_000,
        "\n" * 500_000,
        "a,RTT [ms]\n" + '"' * 200_000,
        "9" * 500_000,
    ],
)  # fmt: skip
def test_hostile_texts_are_read_or_refused_soon(tmp_path: Path, text: str) -> None:
    """`read` ends what takes more than a second."""
    file = tmp_path / "hostile"
    file.write_text(text)
    read(file)


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    """300 MiB of spaces in 300 kB: no more than is read of a text."""
    file = tmp_path / "bomb.gz"
    with gzip.open(file, "wb", compresslevel=9) as out:
        for _ in range(300):
            out.write(b" " * (1 << 20))
    assert read(file)[0] == "refused"


def test_what_takes_too_long_is_a_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("airpath_dev.fuzzed.check.MOST_CPU_S", 0.01)

    def endless(_: object) -> None:
        while True:
            pass

    monkeypatch.setattr("airpath_dev.fuzzed.check.describe", endless)
    with pytest.raises(SlowError):
        read(SEEDS / "ping-iputils")
    assert run(main, ["0"]) == run(main, ["x"]) == run(main, ["1", "2", "3"]) == 2
    assert "[seconds]" in capsys.readouterr().err


def test_what_is_no_json_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airpath_dev.fuzzed.check.describe", lambda _: {"rtt_ms": float("nan")})
    with pytest.raises(ValueError, match="JSON"):
        read(SEEDS / "ping-iputils")
    assert json.loads("1") == 1
