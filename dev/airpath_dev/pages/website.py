"""Writes the documentation as a site, with navigation, search and live figures.

    python3 -m http.server --directory target/site

A picture that is followed by ``<!-- live: FILE CHART KEY... -->`` (FILE in docs/live or the name of
a shipped scenario) is live if the explorer is built and a server serves the site: below it is the
chart of that scenario, with controls for those keys. A page opened from disk shows only the
picture. Exit code 1: a link is broken.
"""

from __future__ import annotations

import html
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated
from urllib.parse import quote, unquote, urlencode

import typer
from markdown_it import MarkdownIt

from airpath.explorer.server import ASSETS
from airpath.plots.theme import style
from airpath.scenario import load, parse, shipped_scenarios
from airpath_dev import ROOT
from airpath_dev.harness import FINE, WRONG, say

REPOSITORY = "https://github.com/airpath/airpath/blob/main/"
GROUPS = {
    "": ["README.md"],
    "Guides": ["docs/guides/*.md"],
    "Concepts": ["docs/concepts/*.md"],
    "Reference": ["docs/reference/*.md"],
    "Measured": ["docs/measured/*.md"],
    "Development": ["ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"],
    "Decisions": ["docs/adr/*.md"],
}
FIRST = ["getting-started", "ten-keys", "gallery", "explorer", "scenarios"]
LIVE = re.compile(r"<!-- live: (\S+) (\S+)((?: \S+)*) -->")
FIGURE_PX = 420
ICON = "data:image/svg+xml," + quote(
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" fill="none" stroke="#2a78d6" '
    'stroke-width="2"><path d="M2 13 8 3l6 10M5 9h6"/></svg>'
)
"""The letter A as a mast."""


@dataclass
class Page:
    """A page of the site."""

    source: Path
    group: str
    title: str = ""
    body: str = ""
    anchors: set[str] = field(default_factory=set)
    sections: list[tuple[str, str, str]] = field(default_factory=list)
    """The search index: anchor, heading and text of each section."""

    @property
    def place(self) -> str:
        """The page's path in the site."""
        if self.source == ROOT / "README.md":
            return "index.html"
        name = self.source.relative_to(ROOT).with_suffix(".html").as_posix()
        return name.replace("README.html", "index.html")


def main(out: Annotated[Path, typer.Argument()] = ROOT / "target/site") -> int:
    """Write the documentation as a site, with search and live figures."""
    complaints = build(out)
    for complaint in complaints:
        say(f"error: {complaint}")
    if not complaints:
        print(f"The site is {out}: python3 -m http.server --directory {out}")
    return WRONG if complaints else FINE


def build(out: Path) -> list[str]:
    """Write the site into a folder; return what is wrong with its links and live figures."""
    pages = [rendered(page) for page in found()]
    by_source = {page.source: page for page in pages}
    complaints: list[str] = []
    if out.exists():
        if any(out.iterdir()) and not (out / "search.js").is_file():
            return [f"{out} has files and is no site: name a new folder"]
        shutil.rmtree(out)
    out.mkdir(parents=True)
    if (ASSETS / "main.js").is_file():
        shutil.copytree(ASSETS, out / "explorer")
    for page in pages:
        body = live(page, linked(page, by_source, out, complaints), complaints)
        target = out / page.place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(shell(page, pages, body), encoding="utf-8")
    entries = [
        [page.place + (f"#{anchor}" if anchor else ""), page.title, heading, text]
        for page in pages
        for anchor, heading, text in page.sections
    ]
    index = json.dumps(entries, ensure_ascii=False).replace("<", "\\u003c")
    (out / "search.js").write_text(f"window.searchIndex = {index};\n", encoding="utf-8")
    here = Path(__file__).parent
    (out / "site.js").write_text((here / "site.js").read_text(encoding="utf-8"), encoding="utf-8")
    css = style() + (here / "site.css").read_text(encoding="utf-8")
    (out / "site.css").write_text(css, encoding="utf-8")
    return complaints


def found() -> Iterator[Page]:
    """Yield all pages, in the order of the navigation."""
    for group, patterns in GROUPS.items():
        files = [file for pattern in patterns for file in sorted(ROOT.glob(pattern))]
        for file in sorted(
            files, key=lambda file: FIRST.index(file.stem) if file.stem in FIRST else 99
        ):
            yield Page(file, group)


def rendered(page: Page) -> Page:
    """Fill in a page's title, body, anchors and sections from its Markdown."""
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    tokens = parser.parse(page.source.read_text(encoding="utf-8"))
    anchor, heading = "", ""
    words: list[str] = []
    for at, token in enumerate(tokens):
        if token.type == "heading_open":
            if words or heading:
                page.sections.append((anchor, heading, " ".join(words)))
            heading, words = tokens[at + 1].content.replace("`", ""), []
            anchor = unique(slug(heading), page.anchors)
            page.anchors.add(anchor)
            token.attrSet("id", anchor)
            page.title = page.title or heading
        elif token.type == "inline" and tokens[at - 1].type != "heading_open":
            words.append("".join(child.content or " " for child in token.children or []))
        elif token.type in ("fence", "code_block"):
            words.append(token.content)
    page.sections.append((anchor, heading, " ".join(words)))
    page.body = scrollable(parser.renderer.render(tokens, parser.options, {}))
    return page


def scrollable(body: str) -> str:
    """Return the body with code, tables and pictures that a keyboard can scroll."""
    body = body.replace("<pre>", '<pre tabindex="0">')
    body = body.replace("<table>", '<div class="scroll" tabindex="0"><table>')
    body = body.replace("</table>", "</table></div>")
    return re.sub(r"<p>(<img [^>]*>)</p>", r'<p class="scroll" tabindex="0">\1</p>', body)


def slug(heading: str) -> str:
    """Return a heading's anchor in GitHub's form, which links in the repository use."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def unique(name: str, known: set[str]) -> str:
    """Return a name that no other heading of the page has."""
    names = (name if count == 0 else f"{name}-{count}" for count in range(len(known) + 1))
    return next(one for one in names if one not in known)


def linked(page: Page, pages: dict[Path, Page], out: Path, complaints: list[str]) -> str:
    """Return the body with links for the site, and copy its pictures."""

    def place(match: re.Match[str]) -> str:
        name, text = match[1], html.unescape(match[2])
        if re.match(r"[a-z]+:", text):
            return match[0]
        path, _, anchor = unquote(text).partition("#")
        target = (page.source.parent / path).resolve() if path else page.source
        if target.is_dir() and target / "README.md" in pages:
            target /= "README.md"
        if target in pages:
            other = pages[target]
            if anchor and anchor not in other.anchors:
                complaints.append(f"{page.source.relative_to(ROOT)}: no {text}")
            to = relative(page, other.place) + (f"#{anchor}" if anchor else "")
        elif not target.exists():
            complaints.append(f"{page.source.relative_to(ROOT)}: no {text}")
            to = text
        elif name == "src" or target.suffix in {".svg", ".png"}:
            file = target.relative_to(ROOT)
            (out / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(target, out / file)
            to = relative(page, file.as_posix())
        else:
            to = REPOSITORY + target.relative_to(ROOT).as_posix()
        return f'{name}="{html.escape(to)}"'

    return re.sub(r'\b(href|src)="([^"]*)"', place, page.body)


def relative(page: Page, place: str) -> str:
    """Return the relative link from a page to a path in the site."""
    return quote(os.path.relpath(place, Path(page.place).parent).replace(os.sep, "/"))


def live(page: Page, body: str, complaints: list[str]) -> str:
    """Return the body with an element for each live figure; missing scenarios are complaints."""

    def figure(match: re.Match[str]) -> str:
        name, chart, keys = match[1], match[2], match[3].split()
        file = ROOT / "docs/live" / name
        where = f"{page.source.relative_to(ROOT)}: live figure {name}"
        if file.is_file():
            text = file.read_text(encoding="utf-8")
            state = {"text": text, "name": name}
            resolved = parse(text, name).resolved_toml
        elif name in shipped_scenarios():
            state = {"scenario": name}
            resolved = load(name).resolved_toml
        else:
            complaints.append(f"{where}: there is no such scenario")
            return ""
        for key in keys:
            if not re.search(rf"^{re.escape(key.rpartition('.')[2])} = ", resolved, re.M):
                complaints.append(f"{where}: no key {key}")
        fragment = urlencode([*state.items(), ("chart", chart), *(("key", key) for key in keys)])
        height = FIGURE_PX + 60 * (len(keys) - 1)
        source = html.escape(f"{relative(page, 'explorer/index.html')}#{fragment}")
        return f'<div class="live" data-source="{source}" data-height="{height}"></div>'

    return LIVE.sub(figure, body)


def entry(page: Page, other: Page) -> str:
    """Return one entry of the navigation."""
    current = ' aria-current="page"' if other is page else ""
    to = html.escape(relative(page, other.place))
    return f'<li><a href="{to}"{current}>{html.escape(other.title)}</a></li>'


def shell(page: Page, pages: list[Page], body: str) -> str:
    """Return the whole page: navigation, search, body."""
    lists = []
    for group in GROUPS:
        entries = "".join(entry(page, other) for other in pages if other.group == group)
        if group:
            is_open = " open" if group in {page.group, "Guides"} else ""
            lists.append(
                f"<details{is_open}><summary>{group}</summary><ul>{entries}</ul></details>"
            )
        else:
            lists.append(f"<ul>{entries}</ul>")
    top = relative(page, "index.html").removesuffix("index.html")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{html.escape(page.title)} – airpath</title>
<link rel="icon" href="{ICON}">
<link rel="stylesheet" href="{top}site.css">
</head>
<body data-top="{top}">
<a class="skip" href="#content">To the text</a>
<nav aria-label="Pages">
<label for="search">Search</label>
<input id="search" type="search" autocomplete="off">
<ul id="found" aria-live="polite"></ul>
<details id="menu" open><summary>Pages</summary>
{"".join(lists)}
</details>
</nav>
<main id="content">
{body}
</main>
<script src="{top}search.js"></script>
<script src="{top}site.js"></script>
</body>
</html>
"""
