"""The examples of the guides to emulation run as they are written, one after another. Needs root.

What an example runs inside may not be installed here, or take a minute. ``true`` runs in its place,
so everything up to there is tried: names, options, and what the lines before have made. Two runs
stand for any number of them.
"""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path
from typing import Any, cast

import pytest

from conftest import UNEXPLAINED
from emulated import skip_without

GUIDES = Path(__file__).parents[2] / "docs/guides"

SHORT = ("--set", "run.duration_s=0.2")
"""Flows without a command run until the scenario's end."""


def _examples(guide: str) -> list[list[list[str]]]:
    """The words of each line that begins with ``airpath``, by block of code."""
    text = (GUIDES / guide).read_text(encoding="utf-8")
    blocks = re.findall(r"(?:^    .+\n)+", text, re.MULTILINE)
    lines = ([shlex.split(line, comments=True) for line in _joined(block)] for block in blocks)
    return [found for block in lines if (found := [one for one in block if one[:1] == ["airpath"]])]


def _joined(block: str) -> list[str]:
    return block.replace("\\\n", " ").splitlines()


def _shortened(words: list[str]) -> list[str]:
    """The example without what has to be installed."""
    command, *rest = words[1:]
    options = rest[: rest.index("--")] if "--" in rest else rest
    # Objects of the reader's own.
    options = [re.sub(r"\w+\.bpf\.o$", "cubic", word) for word in options]
    for option in ("--repeat", "--emulate"):
        if option in options:
            options[options.index(option) + 1] = "2"
    if "--emulate" in options:
        # With the scenario's flows: of ``true`` there would be nothing to compare.
        return [command, *options, *SHORT]
    if command == "twin":
        return [command, *options, *SHORT]
    if command != "emulate":
        return words[1:]
    while "--server" in options:
        at = options.index("--server")
        del options[at : at + 2]
    if "--page" in options:
        # The port of the example may be in use here.
        options[options.index("--page") + 1] = "0"
    inside = [] if "--flows" in options and "--" not in rest else ["--", "true"]
    return [command, *UNEXPLAINED, *SHORT, *options, *inside]


EXAMPLES = [
    pytest.param(block, id=f"{guide}: {' '.join(block[-1][1:3])} {index}")
    for guide in ("emulation.md", "private-network.md")
    for index, block in enumerate(_examples(guide))
]


def test_there_are_examples() -> None:
    commands = {words[1] for block in EXAMPLES for words in cast(Any, block.values[0])}
    assert {"emulate", "subscriber"} <= commands
    assert len(EXAMPLES) >= 5


@skip_without("ip")
@pytest.mark.parametrize("block", EXAMPLES)
def test_an_example_works_as_written(
    block: list[list[str]], cli: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """In an empty directory, as a reader has it."""
    for words in block:
        try:
            code, _, said = cli(*_shortened(words))
        except SystemExit as ended:
            # That of what ran inside.
            code, said = ended.code, capsys.readouterr().err
        if "nft" in said and shutil.which("nft") is None:
            pytest.skip("apt-get install nftables: the example came as far as its NAT")
        if code == 1 and "a run does not count" in said:
            # The machine was late, which says nothing about the example.
            continue
        if code == 1 and words[1] == "twin" and "directory: " in said:
            # It ran to its end; 0.2 s are not enough to agree.
            continue
        assert code in (0, 3), f"{shlex.join(words)}\n{said}"
