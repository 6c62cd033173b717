"""What comes out of a file controls neither the terminal nor the page that it is shown on."""

from __future__ import annotations

import ast
import json
import re
import struct
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import airpath
from airpath.base.text import printable
from airpath.report import write_report
from captures import download
from conftest import DOWNLINK

PACKAGE = Path(airpath.__file__).parent
HOSTILE = "\x1b[31mred\x9b2J\u202egnp\x07\x7f\x08"
"""Colours, clears the screen, turns text around, rings, and takes a letter away."""


def controls(text: str) -> set[str]:
    """Characters in a text that a terminal may obey."""
    bidi = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    return {
        c for c in text if (ord(c) < 32 and c not in "\t\n") or 127 <= ord(c) < 160 or c in bidi
    }


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("Zürich 東京 μs 👩‍🚀", "Zürich 東京 μs 👩‍🚀"),
        ("\x1b[31m", "\\u001b[31m"),
        ("\x9b2J\x85", "\\u009b2J\\u0085"),
        ("a\u202eb\u2066c", "a\\u202eb\\u2066c"),
        ("over\rwritten", "over\\u000dwritten"),
        ("line\r\n", "line\r\n"),
        ("\udcff", "\\udcff"),
        ("\0", "\\u0000"),
    ],
)
def test_what_a_terminal_would_obey_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_escapes_are_those_of_json() -> None:
    """The document means the same, though JSON itself lets some of these through."""
    written = json.dumps({"title": HOSTILE}, ensure_ascii=False)
    assert controls(written)
    assert json.loads(printable(written)) == {"title": HOSTILE}
    assert not controls(printable(written))


def pcapng(path: Path, interface: str) -> Path:
    """A capture with the name of its interface."""

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)

    name = interface.encode()
    option = struct.pack("<HH", 2, len(name)) + name + bytes(-len(name) % 4)
    data = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    data += block(1, struct.pack("<HHI", 1, 0, 65535) + option + bytes(4))
    for micros, packet in download():
        frame = bytes(12) + b"\x08\x00" + packet
        head = struct.pack("<IIIII", 0, 0, micros, len(frame), len(frame))
        data += block(6, head + frame)
    path.write_bytes(data)
    return path


def test_the_name_of_an_interface(cli: Any, tmp_path: Path) -> None:
    capture = pcapng(tmp_path / "a.pcapng", HOSTILE)
    code, said, errors = cli("diagnose", str(capture))
    assert code == 0
    assert "\\u001b[31mred\\u009b2J\\u202e" in said
    assert not controls(said + errors)
    code, said, _ = cli("diagnose", str(capture), "--json")
    assert not controls(said)
    (interface,) = json.loads(said)["files"][0]["capture"]["interfaces"]
    assert interface["name"] == HOSTILE


def test_texts_of_files_and_arguments(cli: Any, tmp_path: Path) -> None:
    hostile = tmp_path / f"{HOSTILE}.toml"
    hostile.write_text('title = "a \u202egnp"\n[run]\nduration_s = "\u202e"\n')
    run = tmp_path / "run"
    airpath.run(DOWNLINK, {"title": "a \u202egnp", "run.duration_s": 1}, out=run)
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    for name in ("summary.json", "provenance.json", "scenario.toml"):
        (damaged / name).write_bytes((run / name).read_bytes())
    document = json.loads((damaged / "summary.json").read_text())
    document["flows"][0]["goodput_mbps"] = HOSTILE
    (damaged / "summary.json").write_text(json.dumps(document))
    query = f"select '{HOSTILE}' as \"{HOSTILE}\" from flows"
    for words in (
        ("scenario", "check", str(hostile)),
        ("scenario", "show", str(hostile)),
        ("run", HOSTILE),
        ("run", DOWNLINK, "--set", f"run.{HOSTILE}=1"),
        (HOSTILE,),
        ("run", f"--{HOSTILE}"),
        ("report", str(damaged)),
        ("report", str(tmp_path / HOSTILE)),
        ("diagnose", str(hostile)),
        ("query", query, str(run)),
        ("query", query, str(run), "--format", "csv"),
        ("query", query, str(run), "--format", "json"),
        ("whatif", DOWNLINK, "--try", HOSTILE),
    ):
        _, said, errors = cli(*words)
        assert said + errors, words
        assert not controls(said + errors), words


def test_nothing_is_printed_past_the_console() -> None:
    """What prints on its own has to say here why."""
    allowed = {
        "base/files.py",  # Warns of a file of keys that others can read; it escapes.
        "cli/console.py",  # The console itself.
        "cli/__init__.py",  # The version, which is ours.
        "emulation/gateway.py",  # Says what it switches off before it does; it escapes.
        "emulation/identity.py",  # Says what will run as root; it escapes.
        "emulation/oam/live.py",  # Rich's table, and what programs on a terminal print.
    }
    found = set()
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if not re.search(r"print|echo|stdout|stderr", text):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and _prints(ast.unparse(node.func)):
                found.add(str(path.relative_to(PACKAGE)))
    assert found == allowed


def _prints(function: str) -> bool:
    streams = ("sys.stdout", "sys.stderr")
    written = tuple(f"{stream}.{verb}" for stream in streams for verb in ("write", "writelines"))
    return function in ("print", "echo", "secho") or function.endswith(
        (*written, "typer.echo", "typer.secho", "click.echo", "console.print")
    )


class Scripts(HTMLParser):
    """Elements of a page, and what is in its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.handlers: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.handlers += [name for name, _ in attrs if name.startswith("on")]


def test_a_report_has_no_element_of_a_hostile_text(tmp_path: Path) -> None:
    """In titles, names, findings, provenance, events and the data of charts."""
    planted = "</script></title><script>alert(1)</script><img src=x onerror=alert(1)>'\""
    run = airpath.run(DOWNLINK, {"run.duration_s": 5}, repeat=2, out=tmp_path / "run")
    write_report([run], tmp_path / "plain.html")
    plain = Scripts((tmp_path / "plain.html").read_text())

    def everywhere(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: everywhere(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [everywhere(inner, key) for inner in value]
        keeps = ("kind", "driver", "direction", "sha256")
        return f"{value}{planted}" if isinstance(value, str) and key not in keeps else value

    summary = tmp_path / "run/summary.json"
    provenance = tmp_path / "run/provenance.json"
    for file in (summary, provenance):
        file.write_text(json.dumps(everywhere(json.loads(file.read_text()))))
    hostile = airpath.Run.open(tmp_path / "run")
    write_report([hostile, hostile], tmp_path / "hostile.html")
    write_report([hostile], tmp_path / "hostile.html")
    page = (tmp_path / "hostile.html").read_text()
    found = Scripts(page)
    assert page.count("alert(1)") > 10
    assert found.tags.count("script") == plain.tags.count("script")
    assert "img" not in found.tags
    assert not found.handlers
