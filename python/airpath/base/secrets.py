"""Texts without secrets."""

from __future__ import annotations


def redacted(text: str) -> str:
    """The text with ``…`` for each key of a subscriber (K, OPc), in whatever spelling.

    >>> redacted("--set=radio.ue.0.key='465b'"), redacted("ki 465B5CE8B199B49FAA5F0A2EE238A6BC")
    ('--set=radio.ue.0.key=…', 'ki …')
    """
    from airpath import _core

    # A command line and the name of a file may have bytes that are no text.
    return _core.redacted(text.encode(errors="backslashreplace").decode())
