"""The explorer in a browser: a key is changed, and the curves follow."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree

import polars as pl
import pytest

import airpath
from airpath.explorer.begin import begin
from airpath.explorer.server import served
from airpath_dev import chromium
from explorer import needs_axe, needs_explorer, serious_faults, with_axe

pytestmark = [
    needs_explorer,
    pytest.mark.skipif(chromium.PROGRAM is None, reason="install the package chromium to see it"),
]

QUEUE = "path.down.0.queue_packets"
SECONDS = 60.0


class Page:
    """The explorer in a tab."""

    def __init__(self, tab: chromium.Tab, url: str) -> None:
        self.tab, self.url = tab, url

    def open(self, fragment: str = "", done: str = "simulated in") -> None:
        self.tab.open("about:blank")
        self.tab.open(self.url + fragment)
        self.until(f"document.getElementById('status')?.textContent.includes({done!r})")

    def searched(self) -> None:
        """Wait until the causes are known: their words move what is below."""
        said = "document.getElementById('cause-said').textContent"
        self.until(f"/^(First cause|Limit|Nothing)/.test({said})")

    def until(self, true: str) -> None:
        """Wait for an expression."""
        end = time.monotonic() + SECONDS
        while not self.tab.evaluate(f"Boolean({true})"):
            assert time.monotonic() < end, (true, self.tab.evaluate("document.body.innerText"))
            time.sleep(0.05)

    def text(self, place: str) -> str:
        found: str = self.tab.evaluate(f"document.querySelector({place!r})?.textContent ?? ''")
        return found

    def click(self, place: str) -> None:
        """A real click, in the middle of an element."""
        x, y = self.middle(place)
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y)

    def middle(self, place: str) -> tuple[float, float]:
        self.until(f"document.querySelector({place!r})")
        found = self.tab.evaluate(
            f"(() => {{ const one = document.querySelector({place!r});"
            "one.scrollIntoView({ block: 'center' }); const at = one.getBoundingClientRect();"
            "return [at.x + at.width / 2, at.y + at.height / 2]; })()"
        )
        return found[0], found[1]

    def mouse(self, kind: str, x: float, y: float) -> None:
        self.tab.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def key(self, key: str, code: int = 0) -> None:
        for kind in ("keyDown", "keyUp"):
            self.tab.call(
                "Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code
            )

    def type(self, place: str, text: str) -> None:
        """Put a text in a box, and leave it."""
        self.tab.evaluate(f"(() => {{ const one = document.querySelector({place!r});"
                          "one.focus(); one.select(); })()")  # fmt: skip
        self.tab.call("Input.insertText", text=text)
        self.key("Tab", 9)

    def choose(self, place: str, value: str) -> None:
        self.tab.evaluate(
            f"(() => {{ const one = document.querySelector({place!r}); one.value = {value!r};"
            "one.dispatchEvent(new Event('change')); })()"
        )

    def rtt(self) -> float:
        """Mean of the ping's curve in the chart, in ms."""
        said = re.search(r"ping: mean ([\d.,]+) ms", self.text("#said-rtt"))
        assert said, self.text("#said-rtt")
        return float(said[1].replace(",", ""))

    def until_rtt(self, low: float, high: float) -> float:
        end = time.monotonic() + SECONDS
        while not low < (rtt := self.rtt()) < high:
            assert time.monotonic() < end, rtt
            time.sleep(0.05)
        return rtt

    def clean(self) -> None:
        """No error on the console, no request that leaves the machine."""
        assert self.tab.errors == []
        own = (self.url, "data:", "blob:", "about:")
        assert [one for one in self.tab.requests if not one.startswith(own)] == []


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    with served(begin("bufferbloat")) as url, chromium.opened(tmp_path / "profile") as tab:
        size = {"width": 1300, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        tab.call("Emulation.setDeviceMetricsOverride", **size)
        yield Page(tab, url)


def slider(key: str) -> str:
    return f'input[type=range][data-key="{key}"]'


def box(key: str) -> str:
    return f'[id="key-{key}"]'


def test_a_queue_is_made_shorter_and_the_rtt_falls(page: Page) -> None:
    page.open()
    page.searched()
    assert page.rtt() > 2000
    # The slider is dragged to the left: shorter by factors.
    x, y = page.middle(slider(QUEUE))
    page.mouse("mousePressed", x + 30, y)
    for step in range(1, 8):
        page.mouse("mouseMoved", x + 30 - 12 * step, y)
    page.mouse("mouseReleased", x - 54, y)
    dragged = page.until_rtt(100, 2000)
    assert "before" in page.text("#said-rtt")
    page.type(box(QUEUE), "20")
    page.until(f"location.hash.includes({quote(QUEUE + '=20')!r})")
    short = page.until_rtt(100, 200)
    assert short < dragged
    # The former curves are shadows, and the figures stand side by side.
    assert page.text("#figures thead").endswith("before")
    page.choose(box("path.down.0.aqm"), "codel")
    page.until_rtt(50, 90)
    # CoDel has keys of its own, which have controls now.
    page.until(f"document.querySelector({box('path.down.0.codel_target_ms')!r}) || "
               "document.querySelector('[id=\"section-path.down.0-more\"]')")  # fmt: skip
    page.clean()


def test_a_finding_is_tried_and_the_link_restores_it(page: Page) -> None:
    page.open()
    page.until("document.querySelector('[data-cause=bufferbloat] .try')")
    page.click("[data-cause=bufferbloat] .try")
    page.until("document.querySelector('#differences tbody tr')")
    # The causes are those of the run without the advice.
    assert page.text("#cause-said").startswith("First cause: bufferbloat")
    assert "median RTT" in page.text("#differences")
    assert "better" in page.text("#differences")
    tried = page.until_rtt(30, 200)
    page.click("#share")
    page.until("location.hash.includes('tried=')")
    fragment = urlsplit(page.tab.evaluate("location.href")).fragment
    page.open(f"#{fragment}")
    assert page.until_rtt(tried - 1, tried + 1)
    page.until("document.querySelector('#differences tbody tr')")
    assert "before 2," in page.text("#said-rtt")
    page.click("#back")
    page.until_rtt(2000, 3000)
    page.clean()


def test_the_answer_is_on_top_without_being_asked(page: Page) -> None:
    page.open()
    said = page.text("#verdict")
    assert re.match(r"download gets 1\.9\d* Mb/s of the 2 Mb/s of down\.0\.link\. ", said), said
    assert re.search(r"A ping takes 2\.\d+ s \(median\); the fastest took 5\d\.?\d* ms", said), said
    page.until("document.querySelector('#cures .chip[data-cure=bufferbloat]')")
    assert page.text("#cause-said").startswith("First cause: bufferbloat at down.0.link.")
    assert "RTT (p95) of ping" in page.text("#cures .chip")
    page.click("#cures .chip")
    page.until("document.getElementById('verdict').textContent.includes('(before: 2.')")
    page.until("document.querySelector('#cures .chip').getAttribute('aria-pressed') === 'true'")
    # Before and after are two paths, one above the other, at the same time.
    page.until("!document.querySelector('.path-view.former').hidden")
    lanes = page.tab.evaluate(
        "[...document.querySelectorAll('.path-view')].map((one) => one.getBoundingClientRect().y)"
    )
    assert lanes == sorted(lanes)
    page.click("#keep")
    # What limits it now is another question.
    page.until("document.getElementById('cause-said').textContent.startsWith('Limit: ')")
    page.clean()


INK = """
(() => {
  const canvas = document.querySelector(".path-view:not(.former) canvas");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let ink = 0;
  for (let at = 3; at < data.length; at += 4) if (data[at] > 0) ink++;
  return ink;
})()
"""
"""How many pixels of the path's picture have something: queues and packets."""


def until_still(page: Page) -> None:
    """End the time that passes by itself after a page opens."""
    page.until("document.getElementById('play').textContent === 'Pause'")
    page.click("#play")
    page.until("document.getElementById('play').textContent === 'Play'")


def seek(page: Page, part: float) -> None:
    page.tab.evaluate(
        f"(() => {{ const one = document.getElementById('time'); one.value = {1000 * part};"
        "one.dispatchEvent(new Event('input')); })()"
    )


def shown_time(page: Page) -> float:
    found: str = page.tab.evaluate("document.getElementById('time-said').value")
    return float(found.split(maxsplit=1)[0])


def test_time_passes_and_every_chart_follows(page: Page) -> None:
    page.open()
    page.until("document.getElementById('play').textContent === 'Pause'")
    began = shown_time(page)
    page.until(f"parseFloat(document.getElementById('time-said').value) > {began + 1}")
    until_still(page)
    seek(page, 0.5)
    assert shown_time(page) == 30
    page.until("document.getElementById('moment').textContent.startsWith('At 30.000 s, ')")
    said = page.text("#moment")
    assert re.search(r"\d+ packets wait at down\.0\.link \(\d\.\d+ s\)", said), said
    assert re.search(r"download has \d+ segments in flight, cwnd \d+", said), said
    assert page.tab.evaluate(INK) > 1000
    lines = page.tab.evaluate(
        "[...document.querySelectorAll('.time-line')].map((one) =>"
        "(one.getBoundingClientRect().x - one.parentElement.getBoundingClientRect().x)"
        "/ one.parentElement.clientWidth)"
    )
    assert len(lines) == 4
    assert all(0.48 < line < 0.52 for line in lines), lines
    assert float(page.text("#chart-window .legend li b")) > 100
    # Pointing at a chart chooses the time, and a link has it.
    x, y = page.middle("#chart-rtt .u-over")
    page.mouse("mouseMoved", x + 60, y)
    page.until("parseFloat(document.getElementById('time-said').value) > 30.5")
    time_s = shown_time(page)
    page.until(f"location.hash.includes('time={time_s}')")
    page.open(f"#{urlsplit(page.tab.evaluate('location.href')).fragment}")
    assert shown_time(page) == time_s
    page.clean()


def test_a_step_is_a_packet_or_a_slot(page: Page) -> None:
    page.open("#scenario=lte-20&set=run.duration_s%3D2&time=1")
    page.until("document.getElementById('moment').textContent.includes('far: ')")
    page.searched()
    page.click(".time-step[data-step=on]")
    page.until("parseFloat(document.getElementById('time-said').value) > 1")
    assert 1 < shown_time(page) < 1.01
    page.choose("#step-by", "slot")
    page.click(".time-step[data-step=on]")
    page.until("parseFloat(document.getElementById('time-said').value) === 1.001")
    for _ in range(3):
        page.click(".time-step[data-step=on]")
    page.until("parseFloat(document.getElementById('time-said').value) === 1.004")
    page.click(".time-step[data-step=back]")
    page.until("parseFloat(document.getElementById('time-said').value) === 1.003")
    page.clean()


def test_a_sleeping_ue_says_so(page: Page) -> None:
    page.open("#scenario=nr-drx&time=5.2")
    page.until("document.querySelector('.box[data-state=asleep]')")
    assert page.text(".ue-state") == "asleep"
    assert "ue-0: asleep" in page.text("#moment")
    page.clean()


def test_nothing_moves_by_itself_where_motion_is_reduced(page: Page) -> None:
    features = [{"name": "prefers-reduced-motion", "value": "reduce"}]
    page.tab.call("Emulation.setEmulatedMedia", features=features)
    page.open()
    page.until(f"({INK.strip()}) > 1000")
    assert page.text("#play") == "Play"
    assert shown_time(page) == 30
    # Who asks for it sees one picture each second.
    page.click("#play")
    page.until("parseFloat(document.getElementById('time-said').value) > 32")
    assert shown_time(page) % 3 == 0
    page.clean()


def test_a_wrong_scenario_shows_its_error_at_its_line(page: Page) -> None:
    page.open()
    path = '[[path.up]]\nstage = "delay"\ndelay_ms = 10\n\n'
    text = f'{path}[[flow]]\nkind = "bulk"\nwindw_bytes = 30000\n'
    page.open(f"#text={quote(text)}&name=mine.toml", done="cannot be run")
    assert "line 7, column 1" in page.text("#problems")
    assert "did you mean `window_bytes`?" in page.text("#problems")
    page.until(
        "document.querySelector('.cm-lintRange-error')?.textContent === 'windw_bytes = 30000'"
    )
    page.click("#problems .place")
    page.until("document.activeElement?.closest('.cm-editor')")
    # It is repaired in the editor: the cursor stands at the wrong key.
    for _ in range(len("windw")):
        delete = {"key": "Delete", "code": "Delete", "windowsVirtualKeyCode": 46}
        page.tab.call("Input.dispatchKeyEvent", type="keyDown", **delete)
    page.tab.call("Input.insertText", text="window")
    page.until("document.getElementById('status').textContent.includes('simulated in')")
    assert page.text("#problems") == ""
    page.clean()


def test_a_setting_that_cannot_be_is_said_at_its_control(page: Page) -> None:
    page.open()
    page.type(box("path.down.0.rate_mbps"), "-1")
    page.until("[...document.querySelectorAll('.control .wrong')].some((one) => one.textContent)")
    # The curves are of what ran before, and look like it.
    assert page.rtt() > 2000
    assert page.tab.evaluate("document.body.className") == "stale"
    page.click("#changes button")
    page.until("document.getElementById('problems').textContent === ''")
    page.until("document.body.className === ''")
    page.clean()


def test_what_is_expensive_asks_first(page: Page) -> None:
    page.open("#scenario=wire&set=run.duration_s%3D1000000", done="")
    page.until("document.getElementById('expensive')?.open")
    assert "million events" in page.text("#expensive-said")
    page.key("Escape", 27)
    page.until("document.getElementById('status').textContent === 'Not run.'")
    page.clean()


def test_a_sweep_whose_runs_are_expensive_asks_first(page: Page) -> None:
    """The scenario itself is cheap enough; sixteen times as long it is not."""
    page.open("#scenario=bufferbloat&set=run.duration_s%3D5000&sweep=run.duration_s")
    page.until("document.getElementById('expensive').open")
    page.key("Escape", 27)
    page.until("document.getElementById('stop').hidden")
    assert re.match(r"[0-8] of 9 values", page.text("#sweep-said"))
    page.clean()


def test_a_link_is_data(page: Page) -> None:
    markup = "<img src=x onerror=alert(1)>"
    path = '[[path.up]]\nstage = "delay"\ndelay_ms = 1\n'
    text = f'title = "{markup}"\n{path}[[flow]]\nkind = "ping"\nid = "a"\n'
    page.open(f"#text={quote(text)}&name={quote('../' + markup)}")
    assert markup in page.text("#title")
    assert page.tab.evaluate("document.images.length") == 0
    page.open("#scenario=nothing")
    page.until("document.getElementById('title').textContent.startsWith('A deep queue')")
    page.clean()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(page: Page, scheme: str) -> None:
    size = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}
    page.tab.call("Emulation.setDeviceMetricsOverride", **size)
    scheming = {"name": "prefers-color-scheme", "value": scheme}
    page.tab.call("Emulation.setEmulatedMedia", features=[scheming])
    page.open("#scenario=lte-20")
    page.until("document.querySelectorAll('.chart canvas').length >= 4")
    # Every box of the path is in sight, the UEs' as well.
    outside = page.tab.evaluate(
        "[...document.querySelectorAll('.path .box')].map((one) => one.getBoundingClientRect())"
        ".filter((one) => one.left < 0 || one.right > 360 || one.width < 40).length"
    )
    assert outside == 0
    assert page.tab.evaluate("document.documentElement.scrollWidth") <= 360
    # A chart stays in sight while a key is changed.
    page.middle(slider("path.up.0.delay_ms"))
    place = "document.getElementById('charts').getBoundingClientRect()"
    page.until(f"Math.round({place}.top) === 0")
    assert page.tab.evaluate(f"{place}.bottom") < 300
    page.middle("#run-packets")
    page.until(f"{place}.bottom < 0")
    page.clean()


def test_it_is_all_done_by_keyboard(page: Page) -> None:
    page.open()
    page.tab.evaluate(f"document.querySelector({slider(QUEUE)!r}).focus()")
    before = page.rtt()
    for _ in range(12):
        page.key("ArrowLeft", 37)
    page.until_rtt(0, before - 100)
    page.tab.evaluate("document.querySelector('.box[data-section=\"path.down.1\"]').focus()")
    # A run that ends meanwhile draws the path again, and leaves the focus where it was.
    page.tab.evaluate(
        "(() => { const one = document.getElementById('key-run.seed');"
        "one.value = '5'; one.dispatchEvent(new Event('change')); })()"
    )
    page.until("location.hash.includes('run.seed%3D5')")
    page.until("document.getElementById('status').textContent.includes('simulated in')")
    page.until("document.activeElement?.dataset.section === 'path.down.1'")
    for kind in ("keyDown", "keyUp"):
        enter = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"}
        page.tab.call("Input.dispatchKeyEvent", type=kind, **enter)
    page.until("document.activeElement?.closest('[id=\"section-path.down.1\"]')")
    # A time that is typed is shown as one that is dragged.
    page.type("#zoom-from", "10")
    page.type("#zoom-to", "20")
    page.until("location.hash.includes('zoom=10.000%2C20.000')")
    page.click("#whole")
    page.until("!location.hash.includes('zoom')")
    page.clean()


def test_packets_seeds_and_a_sweep(page: Page) -> None:
    page.open("#scenario=lte-20&set=run.duration_s%3D2")
    page.type("#packets-from", "1")
    page.type("#packets-ms", "20")
    page.click("#run-packets")
    page.until("document.getElementById('packets-said')")
    said = page.text("#packets-said")
    assert re.search(r"\d+ data segments", said), said
    assert re.search(r"\d+ grants", said), said
    lines = "document.querySelectorAll('.radio-event line').length"
    near = page.tab.evaluate(lines)
    assert near > 10
    page.choose("#packets-ue", "")
    assert page.tab.evaluate(lines) > near
    # A flow that is switched off has no number among those that run.
    page.open(
        "#scenario=lte-20&set=run.duration_s%3D2&set=flow.0.enabled%3Dfalse&packets=1,20&ue=far"
    )
    page.until("document.getElementById('packets-said')")
    assert re.search(r"\d+ data segments", page.text("#packets-said"))
    page.open("#scenario=lte-20&set=run.duration_s%3D2&packets=1,20")
    page.until("document.getElementById('packets-said')")
    page.choose("#packets-ue", "far")
    page.choose("#flow", "upload")
    page.choose("#radio", "grants")
    # Of a change the packets are shown, too.
    page.type(box("path.down.0.delay_ms"), "11")
    page.until("location.hash.includes('delay_ms%3D11')")
    now = "document.getElementById('packets-said')?.textContent"
    page.until(f"{now} && {now} !== {said!r}")
    page.type("#seeds", "3")
    page.until("location.hash.includes('seeds=3')")
    page.searched()
    page.choose("#sweep", "radio.ue.1.channel.sinr_db")
    page.click("#run-sweep")
    page.until("document.getElementById('sweep-said')?.textContent.startsWith('9 of 9')")
    # A link brings both again.
    page.until("location.hash.includes('sweep=')")
    page.open(f"#{urlsplit(page.tab.evaluate('location.href')).fragment}")
    page.until("document.getElementById('sweep-said')?.textContent.startsWith('9 of 9')")
    page.until("document.getElementById('packets-said')")
    chosen = {"seeds": "3", "flow": "upload", "radio": "grants", "packets-ue": "far",
              "packets-from": "1", "packets-ms": "20"}  # fmt: skip
    for place, value in chosen.items():
        assert page.tab.evaluate(f"document.getElementById({place!r}).value") == value, place
    page.clean()


def test_the_editor_knows_the_keys(page: Page) -> None:
    page.open()
    page.tab.evaluate("document.getElementById('text-panel').open = true")
    page.click(".cm-content")
    # To the end of the text, where the flow of the pings is.
    end = {"key": "End", "code": "End", "windowsVirtualKeyCode": 35, "modifiers": 2}
    page.tab.call("Input.dispatchKeyEvent", type="keyDown", **end)
    page.tab.call("Input.insertText", text="pac")
    page.until("document.querySelector('.cm-completionLabel')?.textContent === 'packet_bytes'")
    page.clean()


def test_downloads_are_what_is_shown(page: Page, tmp_path: Path) -> None:
    place = tmp_path / "downloads"
    page.tab.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(place))
    page.open(f"#scenario=bufferbloat&set={QUEUE}%3D20&zoom=10,20")
    for what in ("scenario", "csv samples", "svg rtt", "svg goodput"):
        page.choose("#downloads", what)
        time.sleep(0.3)
    names = [
        *("bufferbloat-goodput.svg", "bufferbloat-rtt.svg"),
        *("bufferbloat-samples.csv", "bufferbloat.toml"),
    ]
    end = time.monotonic() + SECONDS
    while sorted(file.name for file in place.glob("*")) != names:
        assert time.monotonic() < end, [*place.glob("*")]
        time.sleep(0.1)
    run = airpath.run("bufferbloat", {QUEUE: 20})
    again = airpath.run(place / "bufferbloat.toml")
    assert again.samples.equals(run.samples)
    rows = pl.read_csv(place / "bufferbloat-samples.csv")
    assert rows["goodput_mbps"].to_list() == run.samples["goodput_mbps"].to_list()
    # Nothing of it is from elsewhere.
    picture = ElementTree.fromstring((place / "bufferbloat-rtt.svg").read_text(encoding="utf-8"))
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(picture.findall(".//{http://www.w3.org/2000/svg}path")) >= 2
    # Over a link of 2 Mb/s the scale ends there, even if much is delivered in order at once.
    text = (place / "bufferbloat-goodput.svg").read_text(encoding="utf-8")
    labels = ElementTree.fromstring(text).findall("{http://www.w3.org/2000/svg}g/")
    words = [one.text or "" for one in labels]
    numbers = [float(one) for one in words if re.fullmatch(r"[\d.]+", one)]
    assert 1.9 < max(numbers) < 2.2
    assert max(run.samples["goodput_mbps"].to_list()) > 2.2


def test_a_figure_of_a_study_is_opened(page: Page) -> None:
    page.open()
    page.until("document.querySelector('option[value^=\"figure:3g-latency/\"]')")
    figure = "document.querySelector('option[value^=\"figure:3g-latency/\"]').value"
    page.choose("#scenario", page.tab.evaluate(figure))
    page.until("!document.getElementById('title').textContent.startsWith('A deep queue')")
    page.until("document.getElementById('status').textContent.includes('simulated in')")
    assert page.tab.evaluate("document.getElementById('scenario').value").startswith("figure:")
    page.until("location.hash.startsWith('#text=')")
    page.open(urlsplit(page.tab.evaluate("location.href")).fragment.join(["#", ""]))
    page.until("document.getElementById('scenario').value.startsWith('figure:')")
    page.clean()


def test_a_panic_is_said_and_the_worker_begins_again(page: Page) -> None:
    """No scenario is known that makes it panic: what no worker can read ends it in the same way."""
    page.open()
    page.tab.evaluate(
        "(() => { const post = Worker.prototype.postMessage; let broken = false;"
        "Worker.prototype.postMessage = function (said) {"
        "if (broken || said.request?.op !== 'simulate') return post.call(this, said);"
        "broken = true; return post.call(this, { ...said, request: { op: 1n } }); }; })()"
    )
    page.type(box(QUEUE), "30")
    page.until("document.getElementById('status').textContent.includes('failed')")
    page.type(box(QUEUE), "20")
    page.until_rtt(100, 200)
    page.clean()


@needs_axe
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(page: Page, scheme: str) -> None:
    with_axe(page.tab)
    scheming = {"name": "prefers-color-scheme", "value": scheme}
    page.tab.call("Emulation.setEmulatedMedia", features=[scheming])
    page.open("#scenario=bufferbloat&set=path.down.0.rate_mbps%3D-1", done="cannot be run")
    problems = serious_faults(page.tab)
    page.open("#scenario=bufferbloat&tried=path.down.0.aqm%3D%22codel%22")
    page.until("document.querySelector('#differences tbody tr')")
    page.click("#run-packets")
    page.until("document.getElementById('packets-said')")
    page.until("document.querySelector('#findings .findings')")
    page.tab.evaluate("document.getElementById('text-panel').open = true")
    page.until("document.querySelector('.cm-content')")
    problems += serious_faults(page.tab)
    size = {"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": True}
    page.tab.call("Emulation.setDeviceMetricsOverride", **size)
    assert problems + serious_faults(page.tab) == []
