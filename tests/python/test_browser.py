"""The report in a real browser: it draws, and asks for nothing."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from conftest import PATIENCE_S, run_command

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
OFFLINE = [
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=20000",
]  # fmt: skip


@pytest.fixture
def chromium(tmp_path: Path) -> list[str]:
    if CHROMIUM is None:
        pytest.skip("install the package chromium to look at the report")
    return [CHROMIUM, *OFFLINE, f"--user-data-dir={tmp_path / 'profile'}"]


@pytest.fixture(scope="module")
def report(core: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("report")
    for name in ("ping-under-load", "random-loss"):
        done = run_command("run", name, "--repeat", "2", "--out", name, cwd=place)
        assert done.returncode == 0, done.stderr
    done = run_command("report", "ping-under-load", "random-loss", cwd=place)
    assert done.returncode == 0, done.stderr
    return place / "report.html"


def asked_by_pages(log: Path) -> list[str]:
    """Addresses that a page asked for; what the browser asks for itself has no origin."""
    events = json.loads(log.read_text())["events"]
    requests = [event.get("params", {}) for event in events]
    return [
        request["url"]
        for request in requests
        if "url" in request
        and request.get("initiator", "not an origin") != "not an origin"
        and not request["url"].startswith(("data:", "file:"))
    ]


def test_the_check_sees_a_request(chromium: list[str], tmp_path: Path) -> None:
    page, log = tmp_path / "page.html", tmp_path / "log.json"
    page.write_text('<img src="http://example.invalid/a.png">')
    subprocess.run(
        [*chromium, f"--log-net-log={log}", "--dump-dom", page.as_uri()],
        capture_output=True, timeout=PATIENCE_S, check=True,
    )  # fmt: skip
    assert asked_by_pages(log) == ["http://example.invalid/a.png"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_chart_is_drawn(chromium: list[str], report: Path, scheme: str) -> None:
    setting = f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}"
    log = report.with_suffix(".netlog.json")
    done = subprocess.run(
        [*chromium, setting, f"--log-net-log={log}", "--enable-logging=stderr", "--dump-dom",
         report.as_uri()],
        capture_output=True, text=True, timeout=PATIENCE_S, check=True,
    )  # fmt: skip
    assert 'data-drawn="yes"' in done.stdout
    charts = re.findall(r'data-chart="(\w+)"', done.stdout)
    assert charts == ["timeline", "seeds", "rtt", "links"]
    assert len(re.findall(r'<svg[^>]*class="marks"', done.stdout)) == len(charts)
    assert "CONSOLE" not in done.stderr, done.stderr
    assert asked_by_pages(log) == []


def test_it_prints(chromium: list[str], report: Path) -> None:
    pdf = report.with_suffix(".pdf")
    subprocess.run(
        [*chromium, "--no-pdf-header-footer", f"--print-to-pdf={pdf}", report.as_uri()],
        capture_output=True, timeout=PATIENCE_S, check=True,
    )  # fmt: skip
    assert pdf.read_bytes().startswith(b"%PDF")
    assert pdf.stat().st_size > 50_000
