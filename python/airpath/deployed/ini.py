"""Files of sections and ``name = value`` lines: srsRAN 4G's enb.conf (Boost.Program_options)."""

from __future__ import annotations

import re

from airpath.deployed.settings import (
    Collected,
    Setting,
    check_name,
    scalar,
    shown,
    unreadable,
)

_SECTION = re.compile(r"\[([^\[\]]*)\]")


def read(text: str, file: str) -> list[Setting]:
    """The settings of such a file; a ``#`` starts a comment.

    Raises ``InputError`` with file, line and what is wrong.
    """
    found = Collected(file)
    section: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.split("#", 1)[0].strip()
        if not content or content.startswith(";"):
            continue
        if header := _SECTION.fullmatch(content):
            section = tuple(check_name(header[1].strip(), file, number).split("."))
            continue
        name, equals, value = content.partition("=")
        if not equals:
            raise unreadable(
                file, number, f"{shown(content)} is neither a [section] nor a name = value line"
            )
        name = check_name(re.sub(r"\[\d+\]$", "*", name.strip()), file, number)
        found.add((*section, *name.split(".")), scalar(value.strip().strip('"')), number)
    return found.rows()
