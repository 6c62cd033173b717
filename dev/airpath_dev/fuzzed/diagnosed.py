"""Damages captures and tool outputs at random, and gives them to `airpath diagnose`.

It begins with the inputs of the fuzz targets and of the importers,
and captures of its own; several files are diagnosed together. Exit codes: 0, each was diagnosed or
refused in a line; 1, one was not: it is in target/fuzz/diagnosed; 2, bad use.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import airpath
from airpath.cli import app
from airpath.cli.console import guarded
from airpath.drivers.simulate import CAPTURE
from airpath_dev import ROOT

from .check import bounded, seeds
from .faults import Attempt, Seconds, Seed, fuzz
from .mutate import damaged

_CORPORA = ROOT / "fuzz/corpus"
_READ = ("capture", "segments", "second_reading", "record")
"""Targets whose inputs are files, or parts of any."""
_CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_MOST_FILES = 4


def known(place: Path) -> list[bytes]:
    """Files to begin with: tool outputs, inputs of the fuzz targets, simulated captures."""
    found = list(seeds().values())
    for name in _READ:
        corpus = _CORPORA / name
        found += [file.read_bytes() for file in sorted(corpus.iterdir())] if corpus.is_dir() else []
    for name, sets in (("two-flows", {"run.duration_s": 0.3}), ("udp", {"run.duration_s": 0.2})):
        airpath.run(name, sets, out=place / name, capture=True)
        found.append((place / name / CAPTURE).read_bytes())
    return found


def packets(pick: Random, data: bytes) -> bytes:
    """Little that is wrong far inside: a time, a length, a flag of some packet."""
    changed = bytearray(data)
    for _ in range(pick.choice((1, 1, 4, 30))):
        if len(changed) > 8:
            at = pick.randrange(len(changed) - 4)
            width = pick.choice((1, 1, 2, 4))
            odd = pick.choice((b"\xff" * 4, bytes(4), pick.randbytes(4)))
            changed[at : at + width] = odd[:width]
    return bytes(changed)


def files(pick: Random, begin: Sequence[bytes], place: Path) -> list[Path]:
    """One to a few files, most of them damaged."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    made = []
    for number in range(pick.choice((1, 1, 1, 2, _MOST_FILES))):
        data = pick.choice(begin)
        how = pick.randrange(8)
        if how < 3:
            data = packets(pick, data)
        elif how < 7:
            data = damaged(pick, begin)
        file = place / f"{number}{pick.choice(('', '.pcap', '.txt', '.json'))}"
        file.write_bytes(data)
        made.append(file)
    return made


def diagnose(given: Sequence[Path], page: Path) -> str:
    """Give files to the command; how it went. Raises what is a fault."""
    words = ["diagnose", *map(str, given)]
    _, text, _ = _called([*words, "--anonymise"] if len(given) % 2 else words)
    assert not _CONTROLS.search(text), "a control character reaches the terminal"
    page.unlink(missing_ok=True)
    code, text, errors = _called([*words, "--json", "--report", str(page)])
    document = json.loads(text, parse_constant=_no_number)
    told, refused = document["files"], document["refused"]
    assert len(told) + len(refused) == len(given)
    assert (code == 0) or errors.startswith("error: "), errors
    for one in [*told, document["together"] or {}]:
        _check(one)
    return "told" if not refused else "some refused" if told else "refused"


def _called(words: list[str]) -> tuple[int, str, str]:
    said, errors = io.StringIO(), io.StringIO()
    with bounded(), contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
        code = guarded(lambda: app(words, prog_name="airpath", standalone_mode=False))
    assert code in (0, 1, 2), f"it ended with {code}: {errors.getvalue()[:300]}"
    assert "Traceback" not in errors.getvalue()
    return code, said.getvalue(), errors.getvalue()


def _check(document: dict[str, Any]) -> None:
    for one in document.get("statements", []):
        assert one["text"], "a statement without a word"
    for cause in (document.get("causes") or {}).get("causes", []):
        assert 0 <= (cause["cost"] or 0) <= 1, f"a cause costs {cause['cost']:.0%}"
        assert cause["confidence"] is None or 0 <= cause["confidence"] <= 1


def _no_number(name: str) -> None:
    raise AssertionError(f"{name} is no number of JSON")


def main(seconds: Seconds = 600, seed: Seed = None) -> int:
    """Damage captures and tool outputs at random, and give them to `airpath diagnose`."""
    return fuzz("diagnosed", seconds, seed, attempts)


def attempts(pick: Random, place: Path) -> list[Attempt]:
    """Return one attempt: a few files, diagnosed together."""
    some = known(place)

    def attempt() -> list[str]:
        return [diagnose(files(pick, some, place / "given"), place / "page.html")]

    return [(place / "given", attempt)]
