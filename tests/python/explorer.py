"""The built explorer and axe-core: ``tools/setup explorer`` makes both."""

from __future__ import annotations

import pytest

from airpath_dev import ROOT, chromium

needs_explorer = pytest.mark.skipif(chromium.missing() is not None, reason=chromium.missing() or "")
"""The built explorer, up to date."""

AXE = ROOT / "explorer/node_modules/axe-core/axe.min.js"
needs_axe = pytest.mark.skipif(
    not AXE.is_file(), reason="axe-core is missing: tools/setup explorer"
)


def with_axe(tab: chromium.Tab) -> None:
    """Have axe-core in every page that the tab opens from now on, and in its frames."""
    source = AXE.read_text(encoding="utf-8")
    tab.call("Page.addScriptToEvaluateOnNewDocument", source=source)


def serious_faults(tab: chromium.Tab) -> list[str]:
    """What axe-core calls serious or critical in the open page, its frames included."""
    answer = tab.call(
        "Runtime.evaluate",
        expression="axe.run().then((found) => found.violations"
        ".filter((one) => ['serious', 'critical'].includes(one.impact))"
        ".map((one) => `${one.id}: ${one.nodes.map((node) => node.html).slice(0, 3).join(' ')}`))",
        awaitPromise=True,
        returnByValue=True,
    )
    assert "exceptionDetails" not in answer, answer
    found: list[str] = answer["result"]["value"]
    return found
