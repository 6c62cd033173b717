"""A report that has the simulator inside: opened from disk, it runs again."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import airpath
from airpath.errors import InputError
from airpath.explorer import inline
from airpath.report import write_report
from airpath_dev import chromium
from conftest import Command
from explorer import needs_explorer

LIVE = "document.querySelector('iframe.live')?.contentDocument"
SECONDS = 60.0


def test_a_live_report_is_about_one_run(airpath_command: Command, tmp_path: Path) -> None:
    run = airpath.run("wire", set={"run.duration_s": 1})
    with pytest.raises(InputError, match="--live is for one run"):
        write_report([run, run], tmp_path / "report.html", live=True)
    assert list(tmp_path.iterdir()) == []


def test_a_usual_report_has_no_engine(tmp_path: Path) -> None:
    write_report([airpath.run("wire", set={"run.duration_s": 1})], tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "worker-src" not in text
    assert "<iframe" not in text


@needs_explorer
def test_what_is_inside_is_no_markup() -> None:
    text = '[[flow]]\nkind = "ping" # </script><script>alert(1)</script>\n'
    page = inline.page({"text": text, "name": "x.toml"})
    assert "alert(1)" in page
    assert "<script>alert" not in page
    assert 'src="main.js"' not in page
    assert "style.css" not in page


@needs_explorer
@pytest.mark.skipif(chromium.PROGRAM is None, reason="install the package chromium to see it")
def test_it_runs_again_from_disk(tmp_path: Path) -> None:
    """The uplink of an LTE cell waits for scheduling requests: the delay follows their period."""
    run = airpath.run("lte-20", set={"run.duration_s": 3, "radio.sr.period_ms": 10})
    report = tmp_path / "report.html"
    write_report([run], report, live=True)
    with chromium.opened(tmp_path / "profile") as tab:
        tab.open(report.as_uri())

        def until(true: str) -> None:
            end = time.monotonic() + SECONDS
            while not tab.evaluate(f"Boolean({true})"):
                assert time.monotonic() < end, (true, tab.errors)
                time.sleep(0.05)

        status = f"{LIVE}?.getElementById('status')?.textContent ?? ''"
        until(f"({status}).includes('simulated in')")
        figure = f"{LIVE}.querySelector('[data-figure=\"upload rtt_ms.p50\"]').textContent"
        before = tab.evaluate(figure)
        tab.evaluate(f"for (const one of {LIVE}.querySelectorAll('details')) one.open = true;")
        key = f"{LIVE}.getElementById('key-radio.ue.1.sr.period_ms')"
        until(key)
        tab.evaluate(
            f"(() => {{ const one = {key}; one.value = '80';"
            "one.dispatchEvent(new Event('change')); })()"
        )
        until(f"{LIVE}.querySelector('#figures thead').textContent.endsWith('before')")
        assert tab.evaluate(figure) != before
        assert tab.errors == []
        own = ("file:", "data:", "blob:", "about:")
        assert [one for one in tab.requests if not one.startswith(own)] == []
