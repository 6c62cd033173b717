"""A headless Chromium, controlled by the DevTools protocol over a pair of pipes.

https://chromedevtools.github.io/devtools-protocol; a message is JSON and ends with a zero byte.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from airpath.explorer.server import ASSETS
from airpath_dev import ROOT

SOURCES = ("explorer/src", "explorer/build.mjs", "explorer/package-lock.json", "crates/wasm/src")
"""Sources of the explorer, which must not be newer than its build."""
PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")
ANSWER_S = 60.0


class Tab:
    """One tab: what is in it, what it asked for, what went wrong in it."""

    def __init__(self, to: int, of: int) -> None:
        self._to, self._of = to, of
        self._rest, self._number = b"", 0
        self._session: str | None = None
        self.requests: list[str] = []
        """Addresses that were asked for."""
        self.errors: list[str] = []
        """What a script threw, and what the browser wrote on the console."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Runtime", "Log", "Network", "Page"):
            self.call(f"{domain}.enable")

    def open(self, url: str) -> None:
        """Load a page."""
        self.call("Page.navigate", url=url)

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def until(self, true: Callable[[str], object], seconds: float) -> str:
        """Return the page's text once something is true of it, or fail."""
        end = time.monotonic() + seconds
        while True:
            text: str = self.evaluate("document.body?.innerText ?? ''")
            if true(text):
                return text
            assert time.monotonic() < end, text
            time.sleep(0.1)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and wait for its answer."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                found: dict[str, Any] = answer["result"]
                return found
            self._note(answer)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._of], [], [], ANSWER_S)
            data = os.read(self._of, 1 << 16) if ready else b""
            assert data, "Chromium does not answer"
            self._rest += data
        text, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        return message

    def _note(self, event: dict[str, Any]) -> None:
        about = event.get("params", {})
        match event.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(about["request"]["url"])
            case "Runtime.exceptionThrown":
                self.errors.append(json.dumps(about["exceptionDetails"]))
            case "Log.entryAdded":
                self.errors.append(about["entry"]["text"])
            case "Runtime.consoleAPICalled":
                self.errors.append(json.dumps(about["args"]))


def missing() -> str | None:
    """Return why the explorer cannot be opened; None if its build is up to date."""
    page = ASSETS / "main.js"
    if not page.is_file():
        return "the explorer is not built: tools/setup explorer"
    files = [file for place in SOURCES for file in (ROOT / place, *(ROOT / place).rglob("*"))]
    changed = page.stat().st_mtime
    newer = [file for file in files if file.is_file() and file.stat().st_mtime > changed]
    return f"{newer[0].relative_to(ROOT)} is newer: tools/setup explorer" if newer else None


@contextmanager
def opened(profile: Path, *options: str) -> Iterator[Tab]:
    """Start Chromium with a profile of its own, and end it."""
    assert PROGRAM
    commands, to = os.pipe()
    of, answers = os.pipe()

    words = [
        # Chromium reads commands from descriptor 3 and writes answers to 4.
        *("bash", "-c", f'exec "$@" 3<&{commands} 4>&{answers}', "bash"),
        *(PROGRAM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
        *("--remote-debugging-pipe", f"--user-data-dir={profile}", *options),
    ]
    with profile.with_suffix(".log").open("wb") as log:
        process = subprocess.Popen(words, pass_fds=(commands, answers), stdout=log, stderr=log)
    os.close(commands)
    os.close(answers)
    try:
        yield Tab(to, of)
    finally:
        os.close(to)
        os.close(of)
        with suppress(Exception):
            process.wait(10)
        process.kill()
        process.wait()
