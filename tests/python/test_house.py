"""The house is as ARCHITECTURE.md has it: arrows between crates, circles of files, words."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

import house

ARCHITECTURE = (house.ROOT / "ARCHITECTURE.md").read_text()


def test_crates_use_each_other_as_the_architecture_says() -> None:
    block = re.search(r"^crate +uses\n(.*?)^```", ARCHITECTURE, re.M | re.S)
    assert block, "ARCHITECTURE.md has lost its list of crates"
    rows = (line.split(maxsplit=1) for line in block.group(1).splitlines())
    written = {name: set(re.findall(r"\w+", uses)) for name, uses in rows}
    assert written == {name: house.dependencies(path) for name, path in house.crates().items()}


def test_each_crate_says_what_it_is_what_it_may_use_and_where_to_start() -> None:
    for name, path in house.crates().items():
        lines = (path / "src/lib.rs").read_text().splitlines()
        head = " ".join(line[3:].strip() for line in lines if line.startswith("//!"))
        first = [line for line in lines[:12] if line.startswith("//!")]
        assert any("Start reading at" in line for line in first), f"{name}: that takes too long"
        said = re.search(r"It may use: (.*?)\. Start reading at ", head)
        assert said, f"{name}: lib.rs says neither what it may use nor where to start"
        if said[1] != "every crate":
            assert set(re.findall(r"`([\w-]+)`", said[1])) == house.dependencies(path), name


def test_no_comment_repeats_the_name_that_it_stands_at() -> None:
    """That there is a comment at all is for rustc's lint ``missing_docs``."""
    items = [
        item
        for path in house.crates().values()
        for file in sorted((path / "src").rglob("*.rs"))
        for item in house.documented(file)
    ]
    assert len(items) > 2000
    empty = [item for item in items if not item.says_more_than_its_name()]
    assert not empty, "\n".join(f"{item.where}: {item.name}: {item.doc}" for item in empty)


@pytest.mark.parametrize(
    ("name", "doc", "more"),
    [
        ("queue_packets", "The queue's packets.", False),
        ("queue_packets", "Packets in the queue; 0 is no limit.", True),
        ("Nr", "NR.", False),
        ("flow", "Its flow.", False),
        ("flow", "Its flow's id.", True),
        ("LinkSummary", "One link.", False),
    ],
)
def test_a_comment_that_repeats_a_name_is_known(name: str, doc: str, more: bool) -> None:
    assert house.Documented("", name, doc).says_more_than_its_name() is more


def test_files_lead_in_circles_only_within_a_module() -> None:
    """A module's own file and those within it may use each other: together they are one thing."""
    graphs = [*map(house.rust_graph, house.crates().values()), house.python_graph()]
    found = [sorted(circle) for graph in graphs for circle in house.circles(graph)]
    assert [circle for circle in found if not house.is_within_one_of(circle)] == []


@pytest.mark.parametrize(
    ("circle", "one"),
    [
        (["a/src/sender/ack.rs", "a/src/sender/mod.rs"], True),
        (["a/src/endpoint.rs", "a/src/endpoint/fast_path.rs"], True),
        (["a/src/build.rs", "a/src/radio.rs", "a/src/radio/build.rs"], False),
        (["a/src/lib.rs", "a/src/sender/mod.rs"], False),
        (["p/a.py", "p/b.py"], False),
    ],
)
def test_a_circle_beyond_a_module_is_known(circle: list[str], one: bool) -> None:
    assert house.is_within_one_of(circle) is one


def test_a_package_with_a_door_is_entered_there_alone() -> None:
    """Other packages import only its ``__init__``, and it uses no private names of others."""
    rows = re.findall(r"^\| `python/([\w/]+)` \|.*only its `__init__`", ARCHITECTURE, re.M)
    assert "airpath/emulation/oam" in rows
    modules = house.python_modules()
    for package in (row.replace("/", ".") for row in rows):
        offered = set(importlib.import_module(package).__all__)
        found = [
            f"{module}: {name}"
            for module, file in modules.items()
            for name in house.past_the_door(package, module, file.read_text(), offered)
        ]
        assert not found, f"past the door of {package}:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("module", "text", "found"),
    [
        ("p.a", "from p.oam import page", ["page"]),
        ("p.a", "from p.oam import paged", []),
        ("p.a", "from p.oam.page import served", ["p.oam.page.served"]),
        ("p.a", "import p.oam.page", ["p.oam.page"]),
        ("p.a", "from p import oam\noam.page()", ["oam.page"]),
        ("p.a", "from p import oam\noam.paged()", []),
        ("p.oam.page", "from p.oam.status import _Status", []),
        ("p.oam.page", "from p.attach import _refused", ["p.attach._refused"]),
        ("p.oam.page", "from p import attach\nattach._refused()", ["attach._refused"]),
        ("p.oam.page", "from p import _core\n_core.Monitor", []),
    ],
)
def test_a_way_past_the_door_is_found(module: str, text: str, found: list[str]) -> None:
    """The check finds imports that bypass a package's ``__init__``."""
    assert house.past_the_door("p.oam", module, text, {"paged"}) == found


def test_no_panel_of_the_explorer_knows_another() -> None:
    """Panels share only the store, which does not import panels."""
    source = house.ROOT / "explorer/src"
    panels = sorted((source / "panels").glob("*.ts"))
    assert len(panels) > 5
    imported = {
        file.relative_to(source).as_posix(): re.findall(r'(?:from|import\() ?"([^"]+)"', text)
        for file in [*panels, source / "store.ts", source / "runs.ts"]
        if (text := file.read_text())
    }
    assert "../store" in imported["panels/keys.ts"]
    found = [
        f"{file}: {path}"
        for file, paths in imported.items()
        for path in paths
        if "panels" in path or (file.startswith("panels/") and path.startswith("./"))
    ]
    assert not found


def forbidden() -> list[house.Forbidden]:
    """The words that are not to be used, each with the one that is."""
    section = ARCHITECTURE.split("\n## Words\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|", section, re.M)
    return [
        house.Forbidden(word, right.replace("`", ""))
        for right, wrong in rows
        if right not in ("word", "---")
        for word in re.findall(r"`([^`]+)`", wrong)
    ]


def test_no_name_has_a_word_that_the_architecture_has_put_away() -> None:
    away = forbidden()
    found = [
        f"{names.file.relative_to(house.ROOT)}: {name}: {one.instead}, not {one.written}"
        for names in map(house.names, house.sources())
        for one in away
        for name in one.found_in(names)
    ]
    assert not found, "\n".join(sorted(found))


HARD = """
Look pass pass_on watch Way Side Place Agenda crossing pairs Goes Leaving Hops gate Train cars
outbox notes Ledger Kept Account board air heard believed like UNTOLD share awake plane facts
simulated_s
"""
"""Words that an outside reader found hard."""


def test_every_word_of_the_list_is_put_away_or_explained() -> None:
    """Each hard word is in the list, or among those that stay."""
    section = ARCHITECTURE.split("\n## Words\n")[1].split("\n## ")[0]
    said = {word.removesuffix("()") for word in re.findall(r"`([^`\s]+)`", section)}
    spelt = {word.partition(".")[0].lower() for word in said}
    assert not [word for word in HARD.split() if word.lower() not in spelt]


@pytest.mark.parametrize(
    ("written", "text", "found"),
    [
        ("board", "let board_state = BoardState::new(keyboard);", {"board_state", "BoardState"}),
        ("pass_on", "fn pass_on() {} // pass_on", {"pass_on"}),
        ("Way", "struct Way; struct OneWay; let way = 1;", {"Way"}),
        ("share()", "fn share() { let share = 1; }", {"share"}),
        ("gate.rs", "fn other() { let gate = 1; }", {"gate"}),
        ("cars", 'let s = "cars \\" and cars"; let c = \'"\'; let t = r#"cars"#; cars', {"cars"}),
    ],
)
def test_the_words_are_looked_for(tmp_path: Path, written: str, text: str, found: set[str]) -> None:
    """The check of the words can fail, and knows what is a name."""
    file = tmp_path / "gate.rs"
    file.write_text(text)
    assert set(house.Forbidden(written, "").found_in(house.names(file))) == found


def test_names_are_cut_into_words() -> None:
    assert house.words("slow_startHTTPServer2") == ["slow", "start", "http", "server", "2"]


def test_circles_are_found() -> None:
    """The check of the circles can fail."""
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": set[str]()}
    assert house.circles(graph) == [frozenset("abc")]
    tcp = house.rust_graph(house.crates()["tcp"])
    assert "crates/tcp/src/sender/mod.rs" in tcp["crates/tcp/src/endpoint.rs"]
    python = house.python_graph()
    assert "airpath.cli.run" in python["airpath.cli.whatif"]


MOST = {"lines": 80, "parameters": 8, "fields": 25}
OPTIONS = "each is an option of the command, and Typer takes a parameter for each"
DOCUMENT = "a document: each is a key of it"
LARGER = {
    ("crates/bpf/src/record.rs", "Record"): "the layout of a record of kernel/observer.bpf.c",
    ("crates/findings/src/cures.rs", "cures"): "a table: the cures of each cause",
    ("crates/findings/src/guide.rs", "entry"): "a table: the text of each cause",
    ("crates/record/src/summary.rs", "FlowSummary"): DOCUMENT,
    ("crates/tcp/src/config/mod.rs", "EndpointConfig"): "one for each mechanism of an endpoint",
    ("dev/airpath_dev/referee/command.py", "main"): OPTIONS,
    ("python/airpath/campaign/sweep.py", "sweep"): "public: callers give them by name",
    ("python/airpath/cli/emulate.py", "command"): OPTIONS,
    ("python/airpath/cli/measure.py", "command"): OPTIONS,
    ("python/airpath/cli/plot.py", "command"): OPTIONS,
    ("python/airpath/cli/run.py", "command"): OPTIONS,
    ("python/airpath/cli/serve.py", "command"): OPTIONS,
    ("python/airpath/cli/subscriber.py", "add"): OPTIONS,
    ("python/airpath/cli/subscriber.py", "change"): OPTIONS,
    ("python/airpath/cli/sweep.py", "command"): OPTIONS,
    ("python/airpath/cli/tune.py", "command"): OPTIONS,
    ("python/airpath/cli/whatif.py", "command"): OPTIONS,
    ("python/airpath/documents.py", "FlowSummary"): DOCUMENT,
    ("python/airpath/drivers/simulate.py", "run"): "public: callers give them by name",
    ("python/airpath/emulation/document.py", "Emulation"): DOCUMENT,
    ("python/airpath/measure/document.py", "Measured"): DOCUMENT,
    ("python/airpath/plots/plot.py", "plot"): "public: callers give them by name",
}
"""What may be larger than ``MOST``, and why."""


def larger(files: Iterable[Path]) -> dict[tuple[Path, str], str]:
    """What is larger than ``MOST``, and by which measure."""
    return {
        (file, name): f"{number} {what}"
        for file in files
        for name, what, number in house.sizes(file)
        if number > MOST[what]
    }


def test_functions_and_types_are_small() -> None:
    """Clippy counts the parameters of functions in Rust."""
    files = [
        *(house.ROOT / "python").rglob("*.py"),
        *(house.ROOT / "dev").rglob("*.py"),
        *(file for file in house.ROOT.glob("crates/*/src/**/*.rs") if "tests" not in str(file)),
    ]
    found = {
        (str(file.relative_to(house.ROOT)), name): size
        for (file, name), size in larger(files).items()
    }
    assert found.keys() == LARGER.keys(), found


@pytest.mark.parametrize(
    ("file", "text", "found"),
    [
        ("a.py", "def long():\n" + "    pass\n" * 80, "81 lines"),
        ("a.py", "def many(a, b, c, d, /, e, f, g, *, h, i): ...", "9 parameters"),
        ("a.py", "class C:\n" + "".join(f"    f{n}: int\n" for n in range(26)), "26 fields"),
        ("a.rs", "impl A {\n    fn long() {\n" + "        a();\n" * 79 + "    }\n}\n", "81 lines"),
        (
            "a.rs",
            "struct S {\n" + "".join(f"    f{n}: u8,\n" for n in range(26)) + "}",
            "26 fields",
        ),
        ("a.rs", "struct U;\nfn f();\nfn g() {\n" + "    a();\n" * 78 + "}\n", None),
    ],
)
def test_what_is_large_is_found(tmp_path: Path, file: str, text: str, found: str | None) -> None:
    (tmp_path / file).write_text(text)
    assert [*larger([tmp_path / file]).values()] == ([found] if found else [])


@pytest.mark.parametrize("room", ["causes", "fitting"])
def test_every_number_of_the_diagnosis_has_a_name_and_a_reason(room: str) -> None:
    """A unit, a definition with its source, or a bound: a threshold is learned instead."""
    found = [
        f"{file.name}:{line}"
        for file in sorted((house.ROOT / "python/airpath" / room).glob("*.py"))
        for line in house.unexplained_numbers(file.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('_MS = 1000\n"""In a second."""\nhalf = 0.5 * _MS\n', []),
        ("_MS = 1000\n", ["1: _MS = 1000"]),
        ("def late(ms):\n    return ms > 37\n", ["2: return ms > 37"]),
        ('_MS = 1000\n"""In a second."""\n_NEAR = 0.07\n', ["3: _NEAR = 0.07"]),
    ],
)
def test_a_number_without_a_reason_is_found(text: str, lines: list[str]) -> None:
    assert house.unexplained_numbers(text) == lines
