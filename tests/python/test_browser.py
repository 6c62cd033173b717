"""The report in a real browser: it draws, and asks for nothing."""

from __future__ import annotations

import html
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


@pytest.fixture(scope="module")
def radio_report(core: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("radio")
    keys = ("--set", "run.radio_log=true", "--set", "run.duration_s=20")
    done = run_command("run", "handover", *keys, "--report", "report.html", cwd=place)
    assert done.returncode == 0, done.stderr
    return place / "report.html"


@pytest.fixture(scope="module")
def hystart_report(core: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("hystart")
    keys = ("run.ack_table=true", "run.duration_s=5", "flow.0.slow_start=hystart-5.16")
    sets = [word for key in keys for word in ("--set", key)]
    done = run_command("run", "wire", *sets, "--report", "report.html", cwd=place)
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


def drawn(chromium: list[str], report: Path, *options: str) -> str:
    """The page once its charts are there; nothing on the console, nothing asked for."""
    log = report.with_suffix(".netlog.json")
    done = subprocess.run(
        [*chromium, *options, f"--log-net-log={log}", "--enable-logging=stderr", "--dump-dom",
         report.as_uri()],
        capture_output=True, text=True, timeout=PATIENCE_S, check=True,
    )  # fmt: skip
    assert 'data-drawn="yes"' in done.stdout
    assert "CONSOLE" not in done.stderr, done.stderr
    assert asked_by_pages(log) == []
    charts = re.findall(r'data-chart="([\w-]+)"', done.stdout)
    assert len(re.findall(r'<svg[^>]*class="marks"', done.stdout)) == len(charts)
    return done.stdout


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_chart_is_drawn(chromium: list[str], report: Path, scheme: str) -> None:
    setting = f"--blink-settings=preferredColorScheme={0 if scheme == 'dark' else 1}"
    page = drawn(chromium, report, setting)
    assert re.findall(r'data-chart="([\w-]+)"', page) == [
        "timeline", "breakdown", "seeds", "rtt", "links",
    ]  # fmt: skip
    # A screen reader has one picture with a name, not every mark.
    assert page.count('role="img"') >= 5
    assert "graphics-symbol" not in page.partition("<body")[2].partition("<script")[0]


def test_the_radio_is_drawn(chromium: list[str], radio_report: Path) -> None:
    charts = ["breakdown", "timeline", "rtt", "radio", "radio-segment", "links"]
    assert re.findall(r'data-chart="([\w-]+)"', drawn(chromium, radio_report)) == charts


def test_hystart_is_drawn(chromium: list[str], hystart_report: Path) -> None:
    page = drawn(chromium, hystart_report)
    chart = page.partition('data-chart="hystart"')[2].partition("</svg>")[0]
    words = {*re.findall(r"<text[^>]*>([^<]+)</text>", chart)}
    assert {"delay", "the round's minimum", "smallest RTT plus threshold", "its limit"} <= words
    assert any(word.startswith("cwnd ") for word in words)


MEASURE = """<script type="module">
const cut = [];
while (!document.documentElement.dataset.drawn) await new Promise((go) => setTimeout(go, 50));
const beyond = (inner, outer) => inner.left < outer.left - 1 || inner.right > outer.right + 1;
for (const svg of document.querySelectorAll(".chart svg"))
  for (const text of svg.querySelectorAll("text"))
    if (text.textContent && beyond(text.getBoundingClientRect(), svg.getBoundingClientRect()))
      cut.push(text.textContent);
for (const box of document.querySelectorAll(".chart, .scroll, pre"))
  if (box.scrollWidth > box.clientWidth + 1) cut.push(box.textContent.slice(0, 60));
if (document.documentElement.scrollWidth > window.innerWidth) cut.push("the page");
document.body.dataset.looked = JSON.stringify([window.innerWidth, ...cut]);
</script>"""

# A window has at least 500 pixels, a frame what it is given.
WAIT = """<script type="module">
const [frame, here] = [document.querySelector("iframe"), document.documentElement.dataset];
while (!frame.contentDocument?.body?.dataset.looked) await new Promise((go) => setTimeout(go, 50));
here.looked = frame.contentDocument.body.dataset.looked;
here.drawn = "yes";
</script>"""


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("which", ["report", "radio_report", "hystart_report"])
def test_no_text_is_cut(
    chromium: list[str], request: pytest.FixtureRequest, tmp_path: Path, width: int, which: str
) -> None:
    whole, _, end = request.getfixturevalue(which).read_text().rpartition("</body>")
    inside = html.escape(f"{whole}{MEASURE}</body>{end}")
    page = tmp_path / "page.html"
    page.write_text(f'<iframe width="{width}" height="900" srcdoc="{inside}"></iframe>{WAIT}')
    looked = re.search(r'data-looked="(.*?)"', drawn(chromium, page))
    assert looked
    assert json.loads(html.unescape(looked[1])) == [width]


def test_the_radio_has_its_words_on_the_screen(chromium: list[str], radio_report: Path) -> None:
    page = drawn(chromium, radio_report)
    chart = page.partition('data-chart="radio"')[2].partition("</svg>")[0]
    words = re.findall(r"<text[^>]*>([^<]+)</text>", chart)
    assert {"down", "up", "PRBs", "index", "bytes", "time (s)", "east"} <= {*words}


def test_paper_has_no_pages_of_defaults(
    chromium: list[str], radio_report: Path, tmp_path: Path
) -> None:
    """A scenario of 470 lines, 49 of which are no defaults."""
    text = radio_report.read_text()
    bare = tmp_path / "bare.html"
    bare.write_text(re.sub(r'<details class="defaults">.*?</details>', "", text, flags=re.DOTALL))
    assert len(bare.read_text()) < len(text) - 8_000
    assert pages_of(chromium, radio_report, tmp_path) == pages_of(chromium, bare, tmp_path)


def pages_of(chromium: list[str], page: Path, tmp_path: Path) -> int:
    """Sheets of paper that a page takes."""
    pdf = tmp_path / "page.pdf"
    subprocess.run(
        [*chromium, "--no-pdf-header-footer", f"--print-to-pdf={pdf}", page.as_uri()],
        capture_output=True, timeout=PATIENCE_S, check=True,
    )  # fmt: skip
    return len(re.findall(rb"/Type /Page\b", pdf.read_bytes()))


def test_without_scripts_the_tables_are_there(
    chromium: list[str], report: Path, tmp_path: Path
) -> None:
    """Paper has what is seen: charts, or where no script may run, longer tables."""
    text = report.read_text()
    barred = tmp_path / "barred.html"
    barred.write_text(text.replace("script-src 'unsafe-inline' 'unsafe-eval'", "script-src 'none'"))
    assert pages_of(chromium, barred, tmp_path) > pages_of(chromium, report, tmp_path) > 2


def test_it_prints(chromium: list[str], report: Path) -> None:
    pdf = report.with_suffix(".pdf")
    subprocess.run(
        [*chromium, "--no-pdf-header-footer", f"--print-to-pdf={pdf}", report.as_uri()],
        capture_output=True, timeout=PATIENCE_S, check=True,
    )  # fmt: skip
    assert pdf.read_bytes().startswith(b"%PDF")
    assert pdf.stat().st_size > 50_000
