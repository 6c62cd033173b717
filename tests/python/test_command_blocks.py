"""Each command of README, the guides and the concepts runs here or elsewhere, or says why not.

The commands of a page run one after another in a folder with the files that they name. Runs are
shortened, and what stands for the reader's own (``RUN``) is replaced. A command that does not run
has its reason in ``NOT_RUN``; that its options exist is checked all the same.
"""

from __future__ import annotations

import gzip
import re
import shlex
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import airpath
from airpath.cli import imported
from airpath_dev import ROOT
from airpath_dev.__main__ import COMMANDS
from airpath_dev.planted.capture import at_point
from conftest import UNEXPLAINED
from deployed_files import GNB_YML, SMF_YAML
from measured_runs import written
from test_doctor import OURS, PROGRAMS
from test_measure_compare import figures, plan
from test_together import IPERF3, SS, _ping

pytestmark = pytest.mark.unhurried

GUIDES = "docs/guides/"
PAGES = [
    str(page.relative_to(ROOT))
    for pattern in ("README.md", "docs/guides/*.md", "docs/concepts/*.md")
    for page in sorted(ROOT.glob(pattern))
]

ELSEWHERE = {
    GUIDES + "emulation.md": "test_guide_examples.py",
    GUIDES + "notebook.md": "test_notebook_guide.py",
    GUIDES + "private-network.md": "test_guide_examples.py",
    GUIDES + "ten-keys.md": "test_docs.py",
}
"""Tests that run the ``airpath`` commands of a page: all, or the indented ones if it has fences."""

NOT_RUN = {
    r"airpath (emulate|whatif .*--emulate)": "needs root and a network; test_guide_examples.py",
    r"airpath twin": "needs root; test_twin.py",
    r"airpath judge": "needs root and minutes; test_judge.py",
    r"airpath (serve|measure)": "needs a second host; test_measure.py",
    r"airpath tune --(end|undo)": "changes the host's settings; test_tune_apply.py",
    r"airpath tune": "simulates for minutes; test_tune.py",
    r"airpath fit": "simulates for minutes; test_fit.py",
    r"airpath explore": "serves until it is stopped; test_explorer_page.py",
    r"airpath report .*--live": "needs the built explorer; test_live_report.py",
    r"airpath doctor --undo": "changes the host's interfaces; test_gateway.py",
    r"airpath sweep .*--(scheduler|cluster)": "needs a cluster; test_campaign_cluster.py",
    r"airpath reproduce$": "runs all studies, for minutes; test_studies_guide.py",
    r"airpath diagnose -$": "reads standard input; test_captures.py",
    r"airpath run .*libmine\.so": "needs a compiled library; test_congestion_library.py",
    r"airpath run .*AIRPATH_UCC_5G": "needs recordings that do not ship; test_radio.py",
    r"(ip|sysctl|nft|dnsmasq)\b": "changes the host's network, as its guide says",
    r"make\b": "builds, tests or measures for minutes; CI runs what it needs",
    r"(git|cd|cp|pip|cargo)\b": "builds or installs; CI does",
    r"(tcpdump|tshark|iperf3|jq|while|do|done|date|ss)\b": "is not airpath's",
    r"export\b": "sets a variable of the shell",
}
"""Patterns of commands that do not run here, with the reason and the test that has its place."""

STANDS_FOR = {
    r"/path/to/file\.down\.gz": "LTE.down.gz",
    r"runs/(NAME|lte-20-20260101|bufferbloat-20260101)|\bRUN\b": "runs/kept",
    r"runs/measure-\.\.\.": "runs/before",
}
"""Patterns of what a reader replaces, and what is in the folder."""

SUDO = ("sudo", "-E")
KNOWN = PROGRAMS | OURS | {"cargo", "cp"}
"""What an indented command starts with."""
OPERATORS = ("|", "||", "&&", ";", ">", "<", "&")


class Line(NamedTuple):
    """One command of a page, as words; a pipe has several."""

    page: str
    words: tuple[str, ...]
    fenced: bool

    @property
    def text(self) -> str:
        """The command as it may be typed."""
        return " ".join(self.words)

    @property
    def program(self) -> tuple[str, ...]:
        """The words without ``sudo``."""
        return tuple(word for at, word in enumerate(self.words) if at > 1 or word not in SUDO)


def lines(page: str) -> list[Line]:
    """Commands of a page: lines of blocks in ``sh``, and indented ones that start with a program.

    Indented blocks also show output, Python and TOML.
    """
    text = (ROOT / page).read_text(encoding="utf-8")
    fences = r"^```(\w*)\n(.*?)^```"
    found = [
        (block, True)
        for language, block in re.findall(fences, text, re.MULTILINE | re.DOTALL)
        if language == "sh"
    ]
    rest = re.sub(fences, "", text, flags=re.MULTILINE | re.DOTALL)
    found += [(block, False) for block in re.findall(r"(?:^    .+\n)+", rest, re.MULTILINE)]
    made = []
    for block, fenced in found:
        for line in re.sub(r"\\\n\s*", "", block).splitlines():
            if fenced or re.split(r"[\s;]", line.strip())[0] in KNOWN:
                made += [Line(page, words, fenced) for words in commands(line)]
    return made


def commands(line: str) -> list[tuple[str, ...]]:
    """The words of each program in a line of shell, without comments and redirections."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    made: list[list[str]] = [[]]
    words = iter(lexer)
    for word in words:
        if word in (">", "<"):
            next(words)
        elif word in OPERATORS:
            made.append([])
        else:
            made[-1].append(word)
    return [tuple(words) for words in made if words]


def reason(line: Line) -> str | None:
    """Why a command does not run here; None if it does."""
    words = line.program
    if line.page in ELSEWHERE and words[0] == "airpath" and (not line.fenced or _all(line.page)):
        return ELSEWHERE[line.page]
    text = " ".join(words)
    return next((why for pattern, why in NOT_RUN.items() if re.match(pattern, text)), None)


def _all(page: str) -> bool:
    """Whether the other test runs the fenced commands of a page as well."""
    return page != GUIDES + "private-network.md"


ALL = [line for page in PAGES for line in lines(page)]


def test_every_command_runs_or_says_why_not() -> None:
    assert len(ALL) > 100
    for line in ALL:
        assert line.words[0] == "airpath" or reason(line), f"{line.page}: {line.text}"
    stale = [
        pattern for pattern, why in NOT_RUN.items() if not any(reason(line) == why for line in ALL)
    ]
    assert stale == []
    for why in (*NOT_RUN.values(), *ELSEWHERE.values()):
        for name in re.findall(r"test_\w+\.py", why):
            assert (ROOT / "tests/python" / name).is_file(), name


def test_every_target_is_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {*re.findall(r"^([\w-]+):", makefile, re.MULTILINE), *COMMANDS}
    named = {line.words[1] for line in ALL if line.words[0] == "make" and len(line.words) > 1}
    assert "demo" in named
    assert named <= targets


def _options_exist(words: tuple[str, ...]) -> None:
    """Parse a command without running it. Raises the parser's error."""
    name, *rest = words[1:]
    command: Any = imported(name)
    context = command.context_class(command, **command.context_settings)
    while hasattr(command, "get_command"):
        command = command.get_command(context, rest.pop(0))
        assert command, words
        context = command.context_class(command, parent=context, **command.context_settings)
    command.make_parser(context).parse_args(rest)


@pytest.mark.parametrize(
    "line",
    [line for line in ALL if line.program[0] == "airpath" and reason(line)],
    ids=lambda line: line.text,
)
def test_what_does_not_run_has_options_that_exist(line: Line) -> None:
    _options_exist(line.program)


def test_an_option_that_does_not_exist_is_found() -> None:
    with pytest.raises(Exception, match="No such option"):
        _options_exist(("airpath", "emulate", "nr-n78", "--flow", "--", "true"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that guides name."""
    place = tmp_path_factory.mktemp("reader")
    run = airpath.run("random-loss", {"run.duration_s": 3}, out=place / "runs/kept", capture=True)
    capture = place / "slow.pcapng"
    assert run.directory
    at_point(run.directory / "capture.pcapng", capture, "server")
    for name in ("slow.pcap", "ue.pcap", "server.pcap"):
        shutil.copyfile(capture, place / name)
    (place / "slow.pcap.gz").write_bytes(gzip.compress(capture.read_bytes()))
    (place / "iperf3.json").write_text(IPERF3)
    (place / "ss.log").write_text(SS)
    (place / "ping.txt").write_text(_ping())
    (place / "gnb.yml").write_text(GNB_YML)
    (place / "smf.yaml").write_text(SMF_YAML)
    opportunities = "".join(f"{at}\n" for at in range(1, 1001))
    (place / "LTE.down.gz").write_bytes(gzip.compress(opportunities.encode()))
    for name, scenario in (("phone", "lte-20"), ("slow", "wire"), ("cell", "nr-n78")):
        text = (ROOT / f"scenarios/{scenario}.toml").read_text(encoding="utf-8")
        (place / f"{name}.toml").write_text(text, encoding="utf-8")
    for name in ("before", "after"):
        written(place / "runs" / name, plan(), figures(queue=4))  # type: ignore[arg-type]
    return place


def _typed(line: Line) -> list[str]:
    """The words as the test types them: replaced, shortened, and with names of files for ``*``."""
    text = shlex.join(line.words[1:])
    for pattern, stands in STANDS_FOR.items():
        text = re.sub(pattern, stands, text)
    command, *rest = shlex.split(text)
    if "*" in rest:
        at = rest.index("*")
        rest[at : at + 1] = sorted(str(file) for file in Path().glob("*.p*"))
    if "--repeat" in rest:
        rest[rest.index("--repeat") + 1] = "2"
    if command in ("run", "whatif"):
        if not any(word.startswith("run.duration_s=") for word in rest):
            rest += ["--set", "run.duration_s=1"]
        rest += UNEXPLAINED if command == "run" else []
    return [command, *rest]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if any(not reason(line) for line in ALL if line.page == page)]
)
def test_the_commands_of_a_page_run(page: str, folder: Path, cli: Any, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True, symlinks=True)
    if page == GUIDES + "private-network.md":
        # It writes this file itself.
        (tmp_path / "cell.toml").unlink()
    for line in lines(page):
        if reason(line):
            continue
        words = _typed(line)
        code, _, said = cli(*words)
        assert code == 0, f"{page}: airpath {shlex.join(words)}\n{said}"
