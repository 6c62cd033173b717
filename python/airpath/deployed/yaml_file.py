"""YAML files: srsRAN Project, Open5GS, and OpenAirInterface since 2024.

The file is read as a stream of events, which have lines, so that nothing is built before it was
counted. Anchors, aliases and tags are refused: none of these programs needs them, and they let a
short file stand for a long one.
"""

from __future__ import annotations

from typing import Any, NoReturn

from airpath.deployed.settings import (
    MOST_DEPTH,
    Collected,
    Path,
    Setting,
    check_name,
    scalar,
    unreadable,
)


def read(text: str, file: str) -> list[Setting]:
    """The settings of a YAML file's first document.

    Raises ``InputError`` with file, line and what is wrong.
    """
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    reader = _Reader(file)
    try:
        for event in yaml.parse(text, Loader=loader):
            reader.take(event)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        problem = getattr(error, "problem", None) or "not YAML"
        line = mark.line + 1 if mark else text.count("\n") + 1
        raise unreadable(file, line, f"not valid YAML: {problem}") from None
    return reader.found.rows()


class _Level:
    """A mapping or a list that is open."""

    def __init__(self, path: Path, mapping: bool) -> None:
        self.path, self.mapping = path, mapping
        self.key: str | None = None
        self.count = 0


class _Reader:
    """Turns events into settings; the levels that are open are its stack."""

    def __init__(self, file: str) -> None:
        self.found = Collected(file)
        self._file = file
        self._open: list[_Level] = []
        self._documents = 0
        self._repeats = 0

    def take(self, event: Any) -> None:
        """Take the next event."""
        import yaml

        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            self._refuse(line, "anchors (&) and aliases (*) are not read: write the values out")
        if getattr(event, "tag", None):
            self._refuse(line, "tags (!) are not read: write the value without one")
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                self._refuse(line, "a second document starts here: give each as a file of its own")
        elif isinstance(event, yaml.CollectionStartEvent):
            self._enter(isinstance(event, yaml.MappingStartEvent), line)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._open.pop()
        elif isinstance(event, yaml.ScalarEvent):
            self._scalar(event.value, bool(event.style), line)

    def _enter(self, mapping: bool, line: int) -> None:
        if len(self._open) >= MOST_DEPTH:
            self._refuse(line, f"nested deeper than {MOST_DEPTH} levels")
        self._open.append(_Level(self._place(line), mapping))

    def _scalar(self, text: str, quoted: bool, line: int) -> None:
        top = self._open[-1] if self._open else None
        if top is None:
            self._refuse(line, "the file is a single value, not settings")
        if top.mapping and top.key is None:
            top.key = check_name(text, self._file, line)
            return
        path = self._place(line)
        value = text if quoted else scalar(text)
        self.found.add(self._first(path), value, line)

    def _first(self, path: Path) -> Path:
        """The path, or another one if it is taken: srsRAN keeps the first of two values."""
        if not self.found.has(path):
            return path
        self._repeats += 1
        return (*path, f"repeated-{self._repeats}")

    def _place(self, line: int) -> Path:
        """The path of the value that follows."""
        if not self._open:
            return ()
        top = self._open[-1]
        if not top.mapping:
            top.count += 1
            return (*top.path, str(top.count - 1))
        if top.key is None:
            self._refuse(line, "the name of a setting must be a word")
        path = (*top.path, top.key)
        top.key = None
        return path

    def _refuse(self, line: int, why: str) -> NoReturn:
        raise unreadable(self._file, line, why)
