"""Memory and time follow the packets of a capture, whatever its timestamps say."""

from __future__ import annotations

import json
import random
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import captures
from airpath.diagnose.files import diagnose
from airpath.errors import InputError
from airpath.fitting import candidate, fit, series
from airpath.fitting.observed import observe
from airpath.report.capture import context

_YEAR_S = 365 * 86_400
_MOST_BYTES = 60_000_000
_MOST = 2**32 - 1
_ALTERED: dict[str, Callable[[tuple[int, ...], random.Random], tuple[int, int]]] = {
    "a year later": lambda at, drawn: (at[0] + _YEAR_S, at[1]),
    "earlier": lambda at, drawn: (max(0, at[0] - drawn.choice((1, 60, _YEAR_S))), at[1]),
    "at 0": lambda at, drawn: (0, 0),
    "at the end of time": lambda at, drawn: (_MOST, at[1]),
    "above a second": lambda at, drawn: (at[0], drawn.randrange(10**9, 2**32)),
    "at any time": lambda at, drawn: (drawn.randrange(2**32), drawn.randrange(2**32)),
}


def _altered(data: bytes, kind: str, drawn: random.Random, count: int) -> bytes:
    """A pcap file in which this many packets have other times."""
    places, at = [], 24
    while at < len(data):
        places.append(at)
        at += 16 + struct.unpack_from("<I", data, at + 8)[0]
    changed = bytearray(data)
    for place in drawn.sample(places, min(count, len(places))):
        time = _ALTERED[kind](struct.unpack_from("<II", data, place), drawn)
        struct.pack_into("<II", changed, place, *time)
    return bytes(changed)


def _everything(file: Path) -> None:
    """What is done with a capture: its causes, its page, and what a fit estimates."""
    document = diagnose(str(file))
    json.dumps(document, allow_nan=False)
    context([(str(file), document)], None)
    try:
        seen = observe(str(file))
        first = fit._candidate(seen)
    except InputError:
        return
    candidate.write(first, "fitted", [])
    if first.trace is not None:
        place = file.with_suffix(".trace")
        candidate.write_trace(place, first.path, first.runs_s, seen.sent[0] / 1000)


@pytest.mark.parametrize("kind", _ALTERED)
@pytest.mark.parametrize("count", [1, 5, 10**6])
def test_altered_times_are_read_in_little_memory(tmp_path: Path, kind: str, count: int) -> None:
    drawn = random.Random(f"{kind} {count}")
    file = captures.write(tmp_path / "a.pcap", captures.download(150, 70))
    whole = file.read_bytes()
    _everything(file)
    tracemalloc.start()
    try:
        for _ in range(3):
            file.write_bytes(_altered(whole, kind, drawn, count))
            _everything(file)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < _MOST_BYTES


def test_nothing_is_fitted_to_times_that_go_back(tmp_path: Path) -> None:
    packets = list(captures.download(100, 50))
    packets = [(at + 10**7, one) for at, one in packets]
    packets[60] = (packets[60][0] - 2 * 10**6, packets[60][1])
    with pytest.raises(InputError, match="go back by up to 2 s"):
        observe(str(captures.write(tmp_path / "a.pcap", packets)))


def test_bins_without_arrivals_count_as_if_they_were_there() -> None:
    drawn = np.random.default_rng(3)
    for _ in range(50):
        count = drawn.integers(2, 60)
        at = np.cumsum(drawn.exponential(300, count))
        total = np.cumsum(drawn.integers(1, 1500, count)).astype(float)
        every = np.arange(at[0], at[-1], 200.0)
        rates, counts = series.rates(at, total, at[0], at[-1], 200.0)
        if len(every) < 2:
            assert len(rates) == 0
            continue
        usual = np.diff(np.interp(every, at, total)) * 8 / 200.0 / 1000
        assert counts.sum() == len(usual)
        for share in (0.0, 0.5, 0.9, 1.0):
            assert series.quantile(rates, counts, share) == pytest.approx(np.quantile(usual, share))


def test_a_fast_trace_has_a_bound(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(candidate, "_MOST_OPPORTUNITIES", 1000)
    file = captures.write(tmp_path / "a.pcap", captures.download(100, None))
    path = fit._candidate(observe(str(file))).path
    path.rates = [(0.0, 1e5), (300.0, 1e5)]
    candidate.write_trace(tmp_path / "trace", path, 300.0, 0.0)
    lines = (tmp_path / "trace").read_text().split()
    assert len(lines) <= 1000
    assert [int(one) for one in lines] == sorted(int(one) for one in lines)
