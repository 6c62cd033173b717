"""Put a page together: template, style, charts and the library that draws them, all inline."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from airpath import text
from airpath.plots.export import rendered
from airpath.plots.figure import Figure
from airpath.plots.theme import DARK, LIGHT

_HERE = Path(__file__).parent


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
        count=text.count,
    )  # fmt: skip
    environment.globals.update(
        style=markupsafe.Markup((_HERE / "style.css").read_text(encoding="utf-8")),  # noqa: S704
        script=markupsafe.Markup((_HERE / "charts.js").read_text(encoding="utf-8")),  # noqa: S704
        library=lambda: markupsafe.Markup(_library()),  # noqa: S704
        still=_still,
        rate=text.rate,
    )
    return environment.get_template(template).render(**context)


def charts_json(figures: Sequence[Figure]) -> Any:
    """Specifications and colours for the page's script, safe inside a script element."""
    import markupsafe

    payload = {
        "light": LIGHT,
        "dark": DARK,
        "charts": {figure.id: {"spec": figure.spec, "margin": figure.margin} for figure in figures},
    }
    encoded = json.dumps(payload, separators=(",", ":"), ensure_ascii=False)
    return markupsafe.Markup(encoded.replace("<", "\\u003c"))  # noqa: S704


def _still(figure: Figure) -> str:
    """The chart as an image: for print, and where scripts are off."""
    encoded = base64.b64encode(rendered(figure, "svg")).decode()
    return f"data:image/svg+xml;base64,{encoded}"


@lru_cache(maxsize=1)
def _library() -> str:
    """Vega, Vega-Lite and Vega-Embed."""
    import vl_convert

    bundle = str(vl_convert.javascript_bundle())  # type: ignore[call-arg]
    return bundle.replace("</script", "<\\/script")
