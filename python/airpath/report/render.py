"""Put a page together: template, style, charts and the library that draws them, all inline."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from airpath import pictures
from airpath.base import text
from airpath.errors import AirpathError
from airpath.plots.figure import Figure
from airpath.plots.theme import style
from airpath.runs.directories import replaced_file

_HERE = Path(__file__).parent
POLICY = (
    "default-src 'none'; img-src data: blob:; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline' 'unsafe-eval'"
)
"""What a page may load: nothing that is not inside."""


def page(template: str, **context: Any) -> str:
    """Render a template of this directory."""
    import jinja2
    import markupsafe

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(
        rate=text.rate, ms=text.milliseconds, digits=text.digits, percent=text.percent,
        count=text.count, breakable=breakable,
    )  # fmt: skip
    environment.globals.update(
        policy=POLICY,
        style=markupsafe.Markup(  # noqa: S704
            style() + (_HERE / "style.css").read_text(encoding="utf-8") + pictures.style()
        ),
        script=markupsafe.Markup((_HERE / "charts.js").read_text(encoding="utf-8")),  # noqa: S704
        library=lambda: markupsafe.Markup(library()),  # noqa: S704
        rate=text.rate,
    )
    return environment.get_template(template).render(**context)


def breakable(words: str) -> Any:
    """Return a text in which a key or a path may be broken after dots, underscores and slashes."""
    import markupsafe

    parts = re.split(r"(?<=[a-z0-9][._/])(?=[a-z])", words)
    return markupsafe.Markup("<wbr>").join(parts)


def write_page(path: Path, template: str, /, **context: Any) -> None:
    """Render a template to a file; only a complete page replaces an existing file."""
    rendered = page(template, **context)
    with replaced_file(path) as aside:
        aside.write_text(rendered, encoding="utf-8", errors="backslashreplace")


def script_json(value: Any) -> Any:
    """Return a value as JSON that is safe inside a script element."""
    import markupsafe

    encoded = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return markupsafe.Markup(encoded.replace("<", "\\u003c"))  # noqa: S704


def charts_json(figures: Sequence[Figure]) -> Any:
    """Return the charts' specifications and data as JSON for the page's script."""
    payload = {
        "data": {name: series for figure in figures for name, series in figure.data.items()},
        "charts": {
            figure.id: {
                "title": figure.title, "spec": figure.spec, "margin": figure.margin,
                "narrow": figure.narrow, "data": list(figure.data),
            }
            for figure in figures
        },
    }  # fmt: skip
    return script_json(payload)


def library() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script.

    vl-convert starts a JavaScript engine to put it together, which takes longer than the rest of a
    report: the result is kept beside the compiled modules, as Python keeps those.
    """
    import importlib.metadata

    version = importlib.metadata.version("vl-convert-python")
    kept = _HERE / "__pycache__" / f"vega-{version}.js"
    with suppress(OSError):
        return kept.read_text(encoding="utf-8")
    import vl_convert

    bundle = str(vl_convert.javascript_bundle())  # type: ignore[call-arg]
    bundle = bundle.replace("</script", "<\\/script")
    with suppress(OSError, AirpathError):
        kept.parent.mkdir(exist_ok=True)
        with replaced_file(kept) as aside:
            aside.write_text(bundle, encoding="utf-8")
    return bundle
