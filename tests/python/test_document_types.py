"""Types of documents are generated from the Rust types, and no signature has ``dict[str, Any]``.

``AIRPATH_BLESS=1`` rewrites the generated files.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from airpath_dev import document_types

PACKAGE = Path(__file__).parents[2] / "python/airpath"
PARSERS = {
    *("base/json.py", "base/toml.py", "runs/results.py", "runs/summary.py"),
    *("readers/documents.py", "readers/flent.py", "readers/iperf_json.py", "readers/ping_forms.py"),
    *("campaign/checked.py", "campaign/definition.py", "study/definition.py"),
    *("emulation/oam/inventory.py", "twin/comparable.py", "plots/figure.py"),
    *("export/recorded.py", "export/netem.py", "export/replayed.py"),
    *("measure/checked.py", "measure/control.py", "measure/far.py", "measure/session.py"),
    *("emulation/oam/editing.py", "report/network.py"),
    *("tune/prepared.py", "measure/iperf3.py"),
}
"""Modules that read JSON or TOML, whose tables have the type ``Json`` until they are checked.

Charts are JSON in the form of Vega-Lite.
"""


@pytest.mark.parametrize("name", ["PYTHON", "TYPESCRIPT"])
def test_generated_types_are_those_of_the_schema(name: str) -> None:
    path = getattr(document_types, name)
    generated = document_types.files()[path]
    if "AIRPATH_BLESS" in os.environ:
        path.write_text(generated, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == generated, "AIRPATH_BLESS=1 rewrites it"


def test_what_may_be_null_is_so_in_every_language() -> None:
    flows = {"type": "array", "items": {"$ref": "#/$defs/Flow"}}
    other = {"description": "Another.", "type": "string"}
    sections = document_types.SECTIONS
    schema = {
        "RunSummary": {"description": "A run.", "properties": dict.fromkeys(sections, flows)},
        "Explanation": other,
        "VariantRow": other,
        "Flow": {
            "description": "A [`Flow`](crate::Flow) of `n` packets.",
            "properties": {
                "rate_mbps": {"type": ["number", "null"]},
                "packets": {"type": "integer", "minimum": 1},
                "ends": {"type": "array", "items": {"type": "number"},
                         "minItems": 2, "maxItems": 2},
                "left": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
            },
            "required": ["rate_mbps", "packets", "ends"],
        },
    }  # fmt: skip
    python, typescript = (
        module(schema) for module in (document_types.python, document_types.typescript)
    )
    assert 'class Flow(Spread):\n    """A ``Flow`` of ``n`` packets."""' in python
    assert "rate_mbps: float | None" in python
    assert "packets: Annotated[float, Range(1)]" in python
    assert "ends: Interval" in python
    assert "left: NotRequired[tuple[str, float]]" in python
    assert "rate_mbps: number | null;" in typescript
    assert "ends: [number, number];" in typescript
    assert "left?: [string, number];" in typescript


def signatures(tree: ast.Module) -> Iterator[tuple[int, ast.expr]]:
    """Yield every annotation and type alias, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
            yield node.annotation.lineno, node.annotation
        elif isinstance(node, ast.FunctionDef) and node.returns is not None:
            yield node.lineno, node.returns
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(
            node.value, ast.Name | ast.Subscript | ast.BinOp
        ):
            yield node.lineno, node.value


def untyped(source: str) -> list[int]:
    """Return the lines with ``dict[str, Any]``, ``Mapping[str, Any]`` or ``Json`` in a type."""
    refused = {"dict[str, Any]", "Mapping[str, Any]", "Json"}
    return [
        line
        for line, annotation in signatures(ast.parse(source))
        if refused & {ast.unparse(part) for part in ast.walk(annotation)}
    ]


def test_no_signature_has_a_dictionary_of_anything() -> None:
    found = {
        str(path.relative_to(PACKAGE)): lines
        for path in sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")])
        if (lines := untyped(path.read_text(encoding="utf-8")))
    }
    assert found.keys() == PARSERS, found


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("def f(a: dict[str, Any]) -> int: ...", [1]),
        ("def f() -> list[dict[str, Any]] | None: ...", [1]),
        ("def f(a: Sequence[Mapping[str, Any]]) -> int: ...", [1]),
        ("class A:\n    b: Json", [2]),
        ("Row = dict[str, Any]", [1]),
        ("Row: TypeAlias = Json", [1]),
        ("def f(a: dict[str, object]) -> Any: ...", []),
    ],
)
def test_a_dictionary_of_anything_is_found(source: str, lines: list[int]) -> None:
    """The check finds untyped dictionaries."""
    assert untyped(source) == lines
