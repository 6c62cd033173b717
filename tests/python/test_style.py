"""Texts are written as docs/style.md says: the phrases that it refuses appear nowhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STYLE = ROOT / "docs/style.md"
EXEMPT = (STYLE, ROOT / "docs/adr", ROOT / "CHANGELOG.md", Path(__file__))
FOLDERS = ("benches", "crates", "dev", "docs", "examples", "fuzz", "python", "tests", "tools")

BREAK = r"""(?:\s|//[/!]?|#|\\\n|["']\s*\n\s*f?["'])+"""
"""What may stand between two words: also a new line of a comment or of a string in parts."""


def phrases() -> dict[str, str]:
    """The phrases that are refused, each with what to write instead."""
    section = STYLE.read_text(encoding="utf-8").partition("\n## Refused phrases\n")[2]
    rows = re.findall(r"^\| `(.+?)` \| (.+) \|$", section, re.M)
    return {phrase.replace(r"\|", "|"): instead for phrase, instead in rows}


REFUSED = phrases()


def texts() -> Iterator[Path]:
    """The Markdown, Python and Rust files that the style applies to."""
    files = [*ROOT.glob("*.md"), *(file for name in FOLDERS for file in (ROOT / name).rglob("*"))]
    for file in sorted(files):
        exempt = "target" in file.parts or any(file.is_relative_to(one) for one in EXEMPT)
        if file.suffix in (".md", ".py", ".pyi", ".rs") and not exempt:
            yield file


def complaints(text: str) -> Iterator[str]:
    """The refused phrases of a text: line, phrase and what to write instead."""
    flat = re.sub(BREAK, " ", text).lower()
    for phrase, instead in REFUSED.items():
        # Nearly always this finds nothing, and is fast; the pattern below finds the line.
        if re.search(phrase, flat):
            pattern = rf"\b(?:{phrase.replace(' ', BREAK)})\b"
            for found in re.finditer(pattern, text, re.IGNORECASE):
                line = text.count("\n", 0, found.start()) + 1
                yield f"{line}: {' '.join(found[0].split())}: write {instead}"


def test_no_text_has_a_refused_phrase() -> None:
    wrong = [
        f"{file.relative_to(ROOT)}:{complaint}"
        for file in texts()
        for complaint in complaints(file.read_text(encoding="utf-8"))
    ]
    assert not wrong, "docs/style.md refuses:\n" + "\n".join(wrong)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("A queue, were it not for CoDel, is long.", 1),
        ("/// First.\n/// The RFC has it\n/// that all is well.\n", 2),
        ('raise Error("the RFC has "\n    f"it that")', 1),
        ('"The RFC has it \\\n    that all is well"', 1),
    ],
)
def test_a_refused_phrase_is_found(text: str, line: int) -> None:
    assert [complaint.partition(":")[0] for complaint in complaints(text)] == [str(line)]


def test_the_table_is_read_and_good_texts_pass() -> None:
    assert len(REFUSED) > 15
    assert len(list(texts())) > 1000
    assert not list(complaints("It has its own queue. Were the queue empty, nothing would wait."))


def test_every_decision_is_in_the_index() -> None:
    index = (ROOT / "docs/adr/README.md").read_text()
    pages = [file.name for file in (ROOT / "docs/adr").glob("[0-9]*.md")]
    assert [name for name in pages if f"({name})" not in index] == []
