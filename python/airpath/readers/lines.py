"""Text of tools as lines: whatever its encoding and line ends are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

_MOST_CHARACTERS = 1000
"""No tool prints longer lines that mean something."""
_LINE_END = re.compile(r"\r\n?|\n")
_ESCAPE = re.compile(r"\x1b\[[\d;?]{0,20}[A-Za-z]")
"""What a terminal was told: colours and places of the cursor (ECMA-48 5.4)."""
_SOURCE = re.compile(r"^(?:([\w.-]{1,80}) +\| ?|\[((?:pod|container)/[\w./-]{1,200})\] )")
"""What docker compose and kubectl logs --prefix write before each line: where it is from."""
_TAG = re.compile(r"</?(?:pre|code|br|p|div|span|li|t[dr])\b[^<>]{0,100}>", re.IGNORECASE)
"""What a page puts around lines."""
_LOGGED = re.compile(r'^\{ ?"log": ?"')
_MOST_LOGGED = 100_000
"""Characters of a line in Docker's log, which splits longer ones at 16 KiB."""
_SAMPLE = 4096
_MARKS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig"))


def decoded(data: bytes) -> str:
    """The text in UTF-16 (as PowerShell's ``>`` writes it) or else UTF-8.

    Of another code page only the ASCII is text. That is enough for readers that go by structure.

    >>> decoded("time=45ms".encode("utf-16-le"))
    'time=45ms'
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, errors="replace")
    head = data[: _SAMPLE & ~1]
    half = len(head) // 2
    zeros = [head[first::2].count(0) for first in (0, 1)]
    for empty, other, encoding in ((1, 0, "utf-16-le"), (0, 1, "utf-16-be")):
        # Digits, spaces and Latin letters have a byte of zeros in UTF-16, and none in UTF-8.
        if half and zeros[empty] > half // 5 and zeros[other] <= half // 50:
            return data.decode(encoding, errors="replace")
    return data.decode(errors="replace")


def numbered(text: str, most: int = _MOST_CHARACTERS) -> Iterator[tuple[int, str]]:
    """The lines with their numbers, from 1, without line ends; of each ``most`` characters."""
    escapes = "\x1b" in text
    for number, line in enumerate(_LINE_END.split(text.removeprefix("\ufeff")), 1):
        cut = line[:most]
        yield number, (_ESCAPE.sub("", cut) if escapes else cut).rstrip()


def by_source(text: str) -> Iterator[tuple[str, int, str]]:
    r"""The lines as `numbered` has them, each with its source and without its name.

    Logs of several programs in one have lines of each between those of the others.

    >>> list(by_source("a-1  | ping\nb-1  | pong"))
    [('a-1', 1, 'ping'), ('b-1', 2, 'pong')]
    """
    for number, printed in numbered(text):
        line = printed.replace("\t", " ") if "\t" in printed else printed
        line = _TAG.sub("", line) if "<" in line and ">" in line else line
        found = _SOURCE.match(line) if "|" in line or "]" in line else None
        if found is None:
            yield "", number, line
        else:
            yield found[1] or found[2], number, line[found.end() :]


def unlogged(text: str) -> str:
    """The text itself, of a log in JSON as Docker's json-file driver writes it.

    Each line has its time before it, unless the text is JSON, which has none between its lines.
    """
    if not _LOGGED.match(text):
        return text
    lines: list[tuple[str, str]] = []
    for _, line in numbered(text, _MOST_LOGGED):
        try:
            one = json.loads(line or "null")
        except (ValueError, RecursionError):
            continue
        if isinstance(one, dict) and isinstance(one.get("log"), str):
            lines.append((str(one.get("time") or ""), one["log"]))
    if any(line.startswith("{") for _, line in lines):
        return "".join(line for _, line in lines)
    return "".join(f"{time} {line}" for time, line in lines)
