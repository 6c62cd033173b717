"""What the sources say about their own structure: who uses whom, and what things are called."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[2]
Graph = dict[str, set[str]]


def crates() -> dict[str, Path]:
    """The crates of the workspace by name, without ``airpath-``."""
    return {path.parent.name: path.parent for path in sorted(ROOT.glob("crates/*/Cargo.toml"))}


def dependencies(crate: Path) -> set[str]:
    """The workspace's crates that this one uses when it is not tested."""
    text = (crate / "Cargo.toml").read_text()
    section = re.search(r"^\[dependencies\]\n(.*?)(?=^\[|\Z)", text, re.M | re.S)
    return set(re.findall(r"^airpath-([\w-]+)", section.group(1), re.M)) if section else set()


# --- Rust -------------------------------------------------------------------------------------


@dataclass
class Module:
    """A file of Rust, as a module of its crate."""

    path: tuple[str, ...]
    file: Path
    uses: list[tuple[str, ...]] = field(default_factory=list)
    exports: dict[str, tuple[str, ...]] = field(default_factory=dict)


def rust_graph(crate: Path) -> Graph:
    """Which files of a crate use which others; a name that is passed on counts for its origin."""
    modules = {module.path: module for module in _modules(crate / "src")}
    graph: Graph = {}
    for module in modules.values():
        found = (_origin(modules, use) for use in module.uses)
        graph[_name(module)] = {
            _name(other) for other in found if other is not None and other is not module
        }
    return graph


def _name(module: Module) -> str:
    return str(module.file.relative_to(ROOT))


def _modules(source: Path) -> Iterator[Module]:
    for file in sorted(source.rglob("*.rs")):
        parts = file.relative_to(source).with_suffix("").parts
        if parts[0] == "bin" or "tests" in parts or parts[-1] == "fuzz":
            continue
        if parts[-1] in ("mod", "lib"):
            parts = parts[:-1]
        module = Module(parts, file)
        text = _code(file.read_text())
        for exported, tree in re.findall(r"\b(pub(?:\([^)]*\))? )?use ([^;]+);", text):
            for path, alias in _leaves(tree.strip()):
                target = _absolute(path, module.path)
                if target is None:
                    continue
                if exported:
                    module.exports[alias] = target
                else:
                    module.uses.append(target)
        inline = re.sub(r"\b(?:pub(?:\([^)]*\))? )?use [^;]+;", "", text)
        # A module names those within it without a prefix.
        within = re.findall(r"^(?:pub(?:\([^)]*\))? )?mod (\w+);", text, re.M)
        first = "|".join(("crate", "super", "self", *within))
        for path in re.findall(rf"(?<!::)\b((?:{first})(?:::\w+)+)", inline):
            target = _absolute(tuple(path.split("::")), module.path)
            if target is not None:
                module.uses.append(target)
        yield module


_NO_CODE = re.compile(
    r"""//[^\n]*                          # a comment
    | b?r(\#*)".*?"\1                    # a raw string
    | b?"(?:\\.|[^"\\])*"                # a string
    | b?'(?:\\.[^']*|[^'\\])'            # a character, no lifetime
    """,
    re.S | re.X,
)


def _code(text: str) -> str:
    """Without comments, strings and what is for tests alone."""
    text = re.sub(r"#\[cfg\(test\)\]\s*mod \w+ \{.*\Z", "", text, flags=re.S)
    return _NO_CODE.sub(lambda found: "" if found[0].startswith("//") else '""', text)


def _leaves(tree: str, head: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """The paths of a tree of ``use``, each with the name that it gets."""
    before, brace, inner = tree.partition("{")
    if not brace:
        path, _, alias = (part.strip() for part in tree.partition(" as "))
        names = (*head, *(name.strip() for name in path.split("::")))
        if names[-1] == "self":
            names = names[:-1]
        yield names, alias or names[-1]
        return
    names = (*head, *(name.strip() for name in before.split("::") if name.strip()))
    for part in _split(inner.rstrip().removesuffix("}")):
        yield from _leaves(part, names)


def _split(text: str) -> Iterator[str]:
    depth, start = 0, 0
    for at, letter in enumerate(text + ","):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and depth == 0:
            if text[start:at].strip():
                yield text[start:at].strip()
            start = at + 1


def _absolute(path: tuple[str, ...], here: tuple[str, ...]) -> tuple[str, ...] | None:
    """A path from the crate's root; None for another crate's."""
    if path[0] == "crate":
        return path[1:]
    if path[0] in ("self", "super"):
        base = here
        while path and path[0] in ("self", "super"):
            base = base[:-1] if path[0] == "super" else base
            path = path[1:]
        return (*base, *path)
    return (*here, *path) if path[0].islower() and len(path) > 1 and path[0] != "std" else None


def _origin(
    modules: dict[tuple[str, ...], Module], path: tuple[str, ...], depth: int = 0
) -> Module | None:
    """The module where what a path leads to is written."""
    for length in range(len(path), -1, -1):
        module = modules.get(path[:length])
        if module is None:
            continue
        rest = path[length:]
        if rest and rest[0] in module.exports and depth < 8:
            return _origin(modules, (*module.exports[rest[0]], *rest[1:]), depth + 1)
        return module if length else (module if rest and path[0][0].isupper() else None)
    return None


# --- Doc comments -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Documented:
    """An item of a crate that others can use, and its doc comment."""

    where: str
    name: str
    doc: str

    def says_more_than_its_name(self) -> bool:
        """Whether the comment has a word that the name has not, but for the commonest."""
        said = {_stem(word) for word in re.findall(r"[A-Za-z0-9]+", self.doc.replace("'s", ""))}
        return bool(said - _COMMON - {_stem(word) for word in words(self.name)})


_COMMON = frozenset(
    "a an and are at be by for ha have i in it of on one or that the thi to wa which with".split()  # noqa: SIM905
)
"""As :func:`_stem` leaves them."""


def _stem(word: str) -> str:
    word = word.lower().removesuffix("ies") + "y" * word.lower().endswith("ies")
    return word.removesuffix("es") if word.endswith(("ses", "xes")) else word.removesuffix("s")


_PUBLIC = re.compile(
    r"pub (?:(?:const|unsafe|async) )*(?:(?P<kind>fn|struct|enum|trait|type|mod|const|static) )?"
    r"(?P<name>\w+)"
)


def documented(file: Path) -> Iterator[Documented]:
    """The public items of a file with their comments: fields, variants and methods too."""
    doc: list[str] = []
    # Of a public enumeration or trait everything is public: how far it is indented.
    inside: int | None = None
    lines = file.read_text().split("#[cfg(test)]\nmod ")[0].splitlines()
    for number, line in enumerate(lines, 1):
        code, indent = line.strip(), len(line) - len(line.lstrip())
        if code.startswith("///"):
            doc.append(code[3:].strip())
            continue
        if code.startswith("#["):
            continue
        if inside is not None and indent == inside and code.startswith("}"):
            inside = None
        found = _PUBLIC.match(code)
        if found is None and inside is not None and indent > inside:
            found = re.match(r"(?:(?:const )?fn |type |const )?(?P<name>[A-Za-z]\w*)", code)
        elif found is not None and found["kind"] in ("enum", "trait"):
            inside = indent
        if found is not None and doc:
            yield Documented(f"{file.relative_to(ROOT)}:{number}", found["name"], " ".join(doc))
        doc = []


# --- Python -----------------------------------------------------------------------------------


def python_modules() -> dict[str, Path]:
    """The modules of the package by name."""
    source = ROOT / "python"
    return {
        ".".join(file.relative_to(source).with_suffix("").parts).removesuffix(".__init__"): file
        for file in sorted(source.rglob("*.py*"))
        if file.suffix in (".py", ".pyi")
    }


def python_graph() -> Graph:
    """Which modules of the package import which others, what is for types alone included."""
    files = python_modules()
    graph: Graph = {}
    for name, file in files.items():
        wanted: set[str] = set()
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                wanted |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                wanted |= {
                    inner if (inner := f"{node.module}.{alias.name}") in files else node.module
                    for alias in node.names
                }
        graph[name] = {other for other in wanted if other in files and other != name}
    return graph


def past_the_door(package: str, module: str, text: str, offered: set[str]) -> list[str]:
    """Return names that a module uses from a package, but that its ``__init__`` does not offer.

    For a module of the package itself, return the private names that it uses from other packages.
    """
    parent, _, door = package.rpartition(".")
    inside = f"{module}.".startswith(f"{package}.")
    found: list[str] = []
    doors: set[str] = set()
    modules: set[str] = set()
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [one.name for one in node.names if one.name.startswith(package) and not inside]
            continue
        if not isinstance(node, ast.ImportFrom) or not node.module:
            continue
        if inside:
            within = f"{node.module}.".startswith(f"{package}.")
            names = [one.name for one in node.names if not within and one.name != "_core"]
            modules |= {one.asname or one.name for one in node.names if not within}
            found += [f"{node.module}.{name}" for name in names if name.startswith("_")]
        elif node.module == package:
            found += [one.name for one in node.names if one.name not in offered]
        elif node.module.startswith(f"{package}."):
            found += [f"{node.module}.{one.name}" for one in node.names]
        elif node.module == parent:
            doors |= {one.asname or one.name for one in node.names if one.name == door}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            whose = node.value.id
            private = node.attr.startswith("_") and not node.attr.startswith("__")
            if (whose in doors and node.attr not in offered) or (whose in modules and private):
                found.append(f"{whose}.{node.attr}")
    return found


# --- Circles ----------------------------------------------------------------------------------


def is_within_one_of(circle: Iterable[str]) -> bool:
    """Whether one of the files is a module that contains all others; a whole crate is too much."""
    files = set(circle)

    def inside(file: str) -> str:
        path = Path(file)
        return str(path.parent if path.name == "mod.rs" else path.with_suffix("")) + "/"

    return any(
        Path(file).name not in ("lib.rs", "__init__.py")
        and all(other.startswith(inside(file)) for other in files - {file})
        for file in files
    )


def circles(graph: Graph) -> list[frozenset[str]]:
    """The sets of files of which each leads to each other (strongly connected; Tarjan 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[frozenset[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = stack.index(node)
            group = frozenset(stack[at:])
            del stack[at:]
            if len(group) > 1:
                found.append(group)

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return sorted(found, key=sorted)


# --- Words ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Names:
    """The names in a file of Rust or Python."""

    file: Path
    used: frozenset[str]
    """Every name that the file gives or uses, and those of the file and its directory."""
    functions: frozenset[str]
    """Names that it gives to functions."""


def names(file: Path) -> Names:
    """Read the names of a file; those in comments and strings do not count."""
    text = file.read_text()
    if file.suffix == ".py":
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        used = [token.string for token in tokens if token.type == tokenize.NAME]
    else:
        # With /* … */ of C.
        text = re.sub(r"/\*.*?\*/", "", text, flags=re.S) if file.suffix == ".c" else text
        used = re.findall(r"[A-Za-z_]\w*", _NO_CODE.sub(" ", text))
    functions = [name for word, name in pairwise(used) if word in ("fn", "def")]
    return Names(file, frozenset([*used, file.stem, file.parent.name]), frozenset(functions))


@dataclass(frozen=True)
class Forbidden:
    """A word as the list of ARCHITECTURE.md writes it; how it is written says what it forbids."""

    written: str
    instead: str

    def found_in(self, names: Names) -> list[str]:
        """The names in the file that it forbids."""
        word = self.written
        if word.endswith("()"):
            return [name for name in names.functions if name == word[:-2]]
        if "." in word:
            stem = word.partition(".")[0]
            return [name for name in (names.file.stem, names.file.parent.name) if name == stem]
        if word[0].isupper():
            return [name for name in names.used if name == word]
        wanted = words(word)
        near = [name for name in names.used if wanted[0] in name.lower()]
        return [name for name in near if _contains(words(name), wanted)]


def _contains(parts: list[str], wanted: list[str]) -> bool:
    spans = zip(*(parts[start:] for start in range(len(wanted))), strict=False)
    return tuple(wanted) in spans


def words(name: str) -> list[str]:
    """``slow_start``, ``SlowStart`` and ``SLOW_START`` as words."""
    return [
        word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name.strip("_"))
    ]


PEERS = ROOT / "benches/peers/build"
"""Sources of other projects, where their benches are built."""


def sources() -> Iterable[Path]:
    """All files of Rust and Python that are ours."""
    for folder in ("crates", "python", "tests", "dev", "benches", "fuzz", "examples", "tools"):
        for file in sorted((ROOT / folder).rglob("*")):
            built = "target" in file.parts or PEERS in file.parents
            if file.suffix in (".rs", ".py", ".c") and not built:
                yield file


# --- Sizes ------------------------------------------------------------------------------------

_RUST_ITEM = re.compile(
    r"^( *)(?:pub(?:\([^)]*\))? )?(?:const |async |unsafe |extern \"C\" )*(fn|struct) (\w+)"
    r".*?^\1}$",
    re.M | re.S,
)


def sizes(file: Path) -> Iterator[tuple[str, str, int]]:
    """The lines of functions, parameters of functions and fields of types: name, what, number."""
    return _rust_sizes(file) if file.suffix == ".rs" else _python_sizes(file)


def _python_sizes(file: Path) -> Iterator[tuple[str, str, int]]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args
            yield node.name, "lines", (node.end_lineno or 0) - node.lineno + 1
            yield node.name, "parameters", len(given.posonlyargs + given.args + given.kwonlyargs)
        if isinstance(node, ast.ClassDef):
            yield node.name, "fields", sum(isinstance(one, ast.AnnAssign) for one in node.body)


def _rust_sizes(file: Path) -> Iterator[tuple[str, str, int]]:
    text = file.read_text()
    begin = 0
    # An item may have others inside.
    while found := _RUST_ITEM.search(text, begin):
        begin = text.index("\n", found.start(2))
        indent, kind, name = found.groups()
        # One without a body ends at its own semicolon.
        if re.search(rf"^{indent}\S[^\n]*;$|^{indent}\)[^\n]*;$", found[0], re.M):
            continue
        if kind == "fn":
            yield name, "lines", found[0].count("\n") + 1
        else:
            fields = re.findall(rf"^{indent}    (?:pub(?:\([^)]*\))? )?\w+:", found[0], re.M)
            yield name, "fields", len(fields)


# --- Numbers ----------------------------------------------------------------------------------

PLAIN_NUMBERS = {0: "nothing", 1: "the whole", 2: "a pair", 0.5: "a half"}
"""Numbers that say what they are, wherever they stand."""


def unexplained_numbers(text: str) -> list[str]:
    """Lines with a number that is neither plain, nor in a constant with its reason below it."""
    tree = ast.parse(text)
    explained: set[ast.AST] = set()
    for constant, reason in pairwise(tree.body):
        is_reason = isinstance(reason, ast.Expr) and isinstance(reason.value, ast.Constant)
        if isinstance(constant, (ast.Assign, ast.AnnAssign)) and is_reason:
            explained |= set(ast.walk(constant))
    lines = text.splitlines()
    return [
        f"{node.lineno}: {lines[node.lineno - 1].strip()}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and type(node.value) in (int, float)
        and node.value not in PLAIN_NUMBERS
        and node not in explained
    ]
