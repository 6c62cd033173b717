"""The picture of simulation against the kernel has what the measured pages list."""

from __future__ import annotations

import re
from pathlib import Path

from airpath.plots.figure import rows
from airpath_dev.pages import twins

ROOT = Path(__file__).parents[2]
PAGE = """
| flow | figure | simulated | emulated | difference | limit | verdict |
|---|---|--:|--:|--:|--:|---|
| a | goodput | 430 kb/s | 1.02 Mb/s | +1 % | 5 % | agrees |
| a | RTT p95 | 1.24 s | 12,500 ms | +1 % | 20 % | agrees |
| a | RTT p50 | none | 12 ms | | 10 % | differs |
| a | retransmissions | 11 | 11 | +0.0 % | | no limit |
"""


def test_the_figures_of_a_page_are_read_with_their_units() -> None:
    assert [*twins.points(PAGE)] == [("goodput", 0.43, 1.02), ("RTT", 1240.0, 12500.0)]


def test_the_picture_has_a_dot_for_each_figure_of_both_pages() -> None:
    pages = {
        name: (ROOT / "docs/measured" / file).read_text(encoding="utf-8")
        for name, file in twins.PAGES.items()
    }
    made = twins.figure(pages)
    count = sum(len(rows(series)) for series in made.data.values())
    listed = sum(
        len(re.findall(r"^\| [^|]+ \| (?:goodput|RTT p50|RTT p95) \|", text, re.MULTILINE))
        for text in pages.values()
    )
    assert count == len(made.table.rows) == listed > 80


def test_the_caption_of_the_readme_has_the_figures_of_the_page() -> None:
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    page = " ".join((ROOT / "docs/measured/twin-random.md").read_text(encoding="utf-8").split())
    found = re.search(r"(\d+ of \d+ judged figures)", page)
    assert found
    assert f"random twins that agree ({found[1]}) are not drawn" in readme
