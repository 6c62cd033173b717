"""The files of libconfig: OpenAirInterface, and srsRAN 4G's rr.conf, rb.conf and sib.conf.

No Python library reports the lines of settings, hence this reader. It follows libconfig's manual
(9, "Configuration File Grammar"), and is bounded in size, depth and number of settings. Files that
include others are refused.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from airpath.deployed.settings import (
    MOST_DEPTH,
    Collected,
    Path,
    Scalar,
    Setting,
    check_name,
    shown,
    unreadable,
)

_TOKEN = re.compile(
    r"""(?P<skip>\s+|(?:\#|//)[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)
    |(?P<open_comment>/\*)
    |(?P<include>@[A-Za-z]+[^\n]*)
    |(?P<string>"(?:[^"\\\n]|\\.)*")
    |(?P<name>[A-Za-z*][-A-Za-z0-9_*]*)
    |(?P<real>[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+)
    |(?P<whole>[-+]?(?:0[xX][0-9A-Fa-f]+|0[bB][01]+|[0-9]+)L{0,2}(?![A-Za-z0-9_]))
    |(?P<mark>[=:;,{}()\[\]])""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{2}|.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a", "b": "\b"}
_PLACEHOLDER = re.compile(r"[A-Z][A-Z0-9_]*")  # of a template, which a script fills in
_CLOSES = {"{": "}", "(": ")", "[": "]"}
_MOST_DIGITS = 64  # of a number in binary; libconfig has 64 bits
_END = "end"


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


def read(text: str, file: str) -> list[Setting]:
    """The settings of a libconfig file.

    Raises ``InputError`` with file, line and what is wrong.
    """
    reader = _Reader(text, file)
    reader.group((), _END, _Token(_END, "", 1))
    return reader.found.rows()


class _Reader:
    """Reads from the start to the end, one token ahead."""

    def __init__(self, text: str, file: str) -> None:
        self.found = Collected(file)
        self.file = file
        self._text, self._at, self._line = text, 0, 1
        self._next = self._token()

    def group(self, path: Path, closing: str, opened: _Token) -> None:
        """Settings up to the closing mark: ``name = value;``."""
        while closing not in (self._next.text, self._next.kind):
            if self._next.kind != "name":
                self._expected("the name of a setting", opened)
            name = self._take()
            check_name(name.text, self.file, name.line)
            if self._next.text not in ("=", ":"):
                self._expected(f"'=' after `{'.'.join((*path, name.text))}`", opened)
            self._take()
            self._value((*path, name.text))
            while self._next.text in (";", ","):
                self._take()

    def _value(self, path: Path) -> None:
        token = self._next
        if token.text in _CLOSES and token.kind == "mark":
            self._take()
            if len(path) > MOST_DEPTH:
                raise unreadable(self.file, token.line, f"nested deeper than {MOST_DEPTH} levels")
            if token.text == "{":
                self.group(path, "}", token)
            else:
                self._elements(path, _CLOSES[token.text], token)
            self._take()
        else:
            self.found.add(path, self._scalar(path), token.line)

    def _elements(self, path: Path, closing: str, opened: _Token) -> None:
        """Elements of a list or an array, up to its closing mark."""
        count = 0
        while self._next.text != closing:
            if self._next.kind == _END:
                self._expected(f"'{closing}'", opened)
            self._value((*path, str(count)))
            count += 1
            if self._next.text == ",":
                self._take()
            elif self._next.text != closing:
                self._expected(f"',' or '{closing}'", opened)

    def _scalar(self, path: Path) -> Scalar:
        token = self._take()
        name = ".".join(path)
        if token.kind == "string":
            value = _unquoted(token.text)
            while self._next.kind == "string":  # adjacent strings are one
                value += _unquoted(self._take().text)
            return value
        if token.kind == "name" and token.text.lower() in ("true", "false"):
            return token.text.lower() == "true"
        if token.kind == "name" and _PLACEHOLDER.fullmatch(token.text):
            return token.text
        if token.kind == "whole":
            return self._whole(token)
        if token.kind == "real":
            return float(token.text)
        what = "the file ends" if token.kind == _END else f"there is {shown(token.text)}"
        raise unreadable(
            self.file,
            token.line,
            f"`{name}` has no value: {what}; a value is a number, a string in double quotes, true, "
            "false, or a group, list or array",
        )

    def _whole(self, token: _Token) -> int:
        digits = token.text.rstrip("L")
        if len(digits) > _MOST_DIGITS:
            raise unreadable(self.file, token.line, f"{shown(digits)} has more than 64 bits")
        lowered = digits.lower()
        base = 16 if "0x" in lowered else 2 if "0b" in lowered else 10
        return int(digits, base)

    def _expected(self, what: str, opened: _Token) -> None:
        token = self._next
        if token.kind != _END:
            raise unreadable(self.file, token.line, f"{what} is expected, not {shown(token.text)}")
        within = f"; '{opened.text}' of line {opened.line} is still open" if opened.text else ""
        raise unreadable(self.file, token.line, f"the file ends where {what} is expected{within}")

    def _take(self) -> _Token:
        token = self._next
        self._next = self._token()
        return token

    def _token(self) -> _Token:
        while True:
            line = self._line
            if self._at >= len(self._text):
                return _Token(_END, "", line)
            found = _TOKEN.match(self._text, self._at)
            kind = found.lastgroup if found else None
            if found is None or kind is None:
                character = self._text[self._at]
                raise unreadable(self.file, line, f"{character!r} does not start a value or a name")
            if kind == "open_comment":
                raise unreadable(self.file, line, "the comment that starts here has no end '*/'")
            if kind == "include":
                raise unreadable(
                    self.file,
                    line,
                    "@include lines are not supported: insert the text of the included file here",
                )
            self._at = found.end()
            self._line += found[0].count("\n")
            if kind != "skip":
                return _Token(kind, found[0], line)


def _unquoted(text: str) -> str:
    def plain(found: re.Match[str]) -> str:
        code = found[1]
        return chr(int(code[1:], 16)) if len(code) == 3 else _ESCAPES.get(code, code)

    return _ESCAPE.sub(plain, text[1:-1])
