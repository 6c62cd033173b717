"""The guide to notebooks runs as it is written, and its command draws what its Python draws."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

GUIDE = Path(__file__).parents[2] / "docs/guides/notebook.md"


def _blocks(language: str) -> list[str]:
    text = GUIDE.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_every_block_runs_and_shows_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in _blocks("python"):
        *first, last = _statements(block)
        for statement in first:
            exec(statement, names)
        value = _value(last, names)
        if hasattr(value, "_repr_html_"):
            assert value._repr_html_()
    assert Path("deep.html").is_file()
    drawn = Path("rtt.pdf.csv").read_text()
    assert len(drawn.splitlines()) == 7
    for name in ("rtt.pdf", "rtt.pdf.csv", "rtt.pdf.vl.json"):
        Path(name).unlink()
    [command] = _blocks("sh")
    code, _, err = cli(*shlex.split(command.replace("\\\n", " "))[1:])
    assert code == 0, err
    assert Path("rtt.pdf.csv").read_text() == drawn
    assert Path("rtt.pdf").read_bytes().startswith(b"%PDF")


def _statements(block: str) -> list[str]:
    import ast

    return [ast.unparse(statement) for statement in ast.parse(block).body]


def _value(statement: str, names: dict[str, Any]) -> Any:
    """What a cell that ends so shows."""
    try:
        code = compile(statement, "<cell>", "eval")
    except SyntaxError:
        exec(statement, names)
        return None
    return eval(code, names)
