"""The explorer as one file that needs no server: what a live report has inside."""

from __future__ import annotations

import base64
import gzip
import json

from airpath.explorer.begin import Begin
from airpath.explorer.server import ASSETS, files_of

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; worker-src blob:; "
    "style-src 'unsafe-inline'; img-src data: blob:"
)
"""What a report allows itself, and workers that it makes of its own text."""


def page(begin: Begin) -> str:
    """Return the explorer as HTML with engine, worker, script and style inside.

    Raises ``AirpathError`` if the explorer is not built.
    """
    files_of(ASSETS)

    def read(name: str) -> str:
        return (ASSETS / name).read_text(encoding="utf-8")

    engine = gzip.compress((ASSETS / "airpath.wasm").read_bytes(), mtime=0)
    inside = {
        "start": begin,
        "engine": base64.b64encode(engine).decode(),
        "worker": read("worker.js"),
    }
    data = json.dumps(inside).replace("<", "\\u003c")
    script = read("main.js").replace("</script", "<\\/script")
    html = read("index.html")
    html = html.replace(
        '<link rel="stylesheet" href="style.css">', f"<style>{read('style.css')}</style>"
    )
    return html.replace(
        '<script type="module" src="main.js"></script>',
        f'<script type="application/json" id="inside">{data}</script>\n'
        f'<script type="module">{script}</script>',
    )
