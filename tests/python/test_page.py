"""The status page of an emulation: what it answers, and what a browser shows."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airpath import scenario as scenarios
from airpath.emulation.oam import page
from airpath.emulation.oam.alarms import Alarms
from airpath.emulation.oam.page import Address, Page, served
from airpath.emulation.oam.status import Status
from airpath.errors import InputError
from airpath_dev import chromium
from conftest import PATIENCE_S, UNEXPLAINED, Command, start_command, until
from emulated import needs, processes, skip_without
from snapshot import radio, snapshot

IMSI = "001010000000001"
KEY = "465b5ce8b199b49faa5f0a2ee238a6bc"
OPC = "cd63cb71954a9f4e48a5994e37a02baf"

needs_browser = pytest.mark.skipif(
    chromium.PROGRAM is None, reason="install the package chromium to see the status page"
)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("8080", "127.0.0.1", 8080),
        ("0", "127.0.0.1", 0),
        ("127.0.0.1:8080", "127.0.0.1", 8080),
        ("127.1.2.3:80", "127.1.2.3", 80),
        ("localhost:8080", "127.0.0.1", 8080),
        ("[::1]:8080", "::1", 8080),
    ],
)
def test_addresses(text: str, host: str, port: int) -> None:
    assert Address.parse(text) == Address(host, port)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a port is a number"),
        ("x", "a port is a number"),
        ("--", "a port is a number"),
        ("-1", "a port is a number"),
        ("65536", "a port is a number"),
        ("8080x", "a port is a number"),
        ("\u0663", "a port is a number"),
        ("127.0.0.1", "a port is a number"),
        ("127.0.0.1:", "a port is a number"),
        (":8080", "a port is a number"),
        ("::1:8080", "a port is a number"),
        ("[::1", "a port is a number"),
        ("[::1]", "a port is a number"),
        ("example.org:80", "'example.org' is not an IP address"),
        ("127.0.0.256:80", "is not an IP address"),
        ("[]:80", "a port is a number"),
        ("[::1%1]:80", "a port is a number"),
        ("0.0.0.0:8080", "0.0.0.0 is not on loopback.*ssh -L 8080:127.0.0.1:8080"),
        ("[::]:8080", "not on loopback"),
        ("192.0.2.1:8080", "192.0.2.1 is not on loopback"),
    ],
)
def test_bad_addresses_are_named(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as error:
        Address.parse(text)
    assert str(error.value).startswith("--page ")
    assert error.value.exit_code == 2


@pytest.fixture
def status(core: Any) -> Status:
    known = Status(scenarios.load("handover"), Alarms(0.0005))
    ue: dict[str, Any] = {"id": "ue-0", "cell": "west", "rrc": "connected", "drx": None}
    nothing = {"prbs": [0, 0], "prbs_per_s": [1.0, 1.0]}
    cells = [{"id": "west", **nothing}, {"id": "east", **nothing}]
    for time_s in (1.0, 1.2):
        ues = [{**ue, "radio": [radio(), radio()]}]
        known.update(snapshot(time_s, cells=cells, ues=ues))
        ue["cell"] = "east"
    return known


@pytest.fixture
def there(status: Status) -> Iterator[Address]:
    with served(Address("127.0.0.1", 0), status) as address:
        yield address


def _ask(
    address: Address, path: str = "/", method: str = "GET", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(address.host, address.port, timeout=30)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders()), body


def test_the_page_and_its_figures(there: Address) -> None:
    code, headers, body = _ask(there)
    assert (code, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert body == Page().html
    assert b"standing_queue" in body
    code, headers, body = _ask(there, "/state.json")
    assert (code, headers["Content-Type"]) == (200, "application/json")
    document = json.loads(body)
    assert [cell["id"] for cell in document["cells"]] == ["west", "east"]
    assert [entry["text"] for entry in document["history"]] == [
        "began",
        "handover from west to east",
    ]
    assert json.loads(_ask(there, "/state.json?after=1")[2])["history"] == document["history"][1:]
    assert _ask(there, "/state.json?after=x")[0] == 400


def test_it_can_only_be_read(there: Address) -> None:
    for path in ("/", "/state.json"):
        code, headers, body = _ask(there, path, "HEAD")
        assert (code, body) == (200, b"")
        assert headers["Content-Length"] == str(len(_ask(there, path)[2]))
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "NONSENSE"):
            code, headers, _ = _ask(there, path, method)
            assert (code, headers["Allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize(
    "path", ["/x", "/state", "/state.json/", "/../etc/passwd", "/%2e%2e/x", "/metrics"]
)
def test_there_is_nothing_else(there: Address, path: str) -> None:
    assert _ask(there, path)[0] == 404


def test_nothing_is_fetched_and_nobody_else_may_read(there: Address) -> None:
    for path in ("/", "/state.json", "/x"):
        headers = _ask(there, path)[1]
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'sha256-")
        assert "unsafe" not in policy
        assert headers["Cache-Control"] == "no-store"
        assert "Access-Control-Allow-Origin" not in headers
    assert not re.search(rb"(src|href)=.(https?:)?//|@import|url\(", Page().html)


def test_a_name_of_somebody_else_is_refused(there: Address) -> None:
    """DNS may lead any name to loopback, and that name's pages would be of our origin."""
    for host in (
        "example.org",
        f"example.org:{there.port}",
        "192.0.2.1",
        "[::1",
        "localhost.example",
    ):
        assert _ask(there, "/state.json", Host=host)[0] == 421
    for host in (there.authority, f"localhost:{there.port}", "127.0.0.1:9", "[::1]:9", "LOCALHOST"):
        assert _ask(there, "/state.json", Host=host)[0] == 200


def test_it_listens_on_loopback_only(there: Address) -> None:
    listening = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()
    ours = [line.split()[1] for line in listening if f":{there.port:04X} " in line.split(" rem")[0]]
    assert {place.split(":")[0] for place in ours if place.endswith(f":{there.port:04X}")} == {
        "0100007F"
    }


# A machine that is busy takes them in more slowly than they time out.
@pytest.mark.real_clock
def test_silent_connections_take_no_more_room_than_there_is(
    there: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page._Handler, "timeout", 3.0)
    # Closed whatever happens: a test that is tried again must not meet them.
    with contextlib.ExitStack() as silent:
        most = 0
        for _ in range(4 * page.MOST_CONNECTIONS):
            silent.enter_context(socket.create_connection((there.host, there.port)))
            # Before the last is made, which the kernel may try again, the first may be closed.
            most = max(most, _page_threads())
        assert until(lambda: max(most, _page_threads()) >= page.MOST_CONNECTIONS // 2, 10)
        assert max(most, _page_threads()) <= page.MOST_CONNECTIONS
        # They are closed after a while, and others are answered again.
        assert until(lambda: _answers(there), 30)


def _page_threads() -> int:
    return sum("process_request_thread" in thread.name for thread in threading.enumerate())


def _answers(address: Address) -> bool:
    try:
        return _ask(address)[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def test_nothing_listens_afterwards(status: Status) -> None:
    with served(Address("::1", 0), status) as there:
        assert there.url == f"http://[::1]:{there.port}/"
        assert _ask(there)[0] == 200
    with pytest.raises(ConnectionRefusedError):
        _ask(there)
    assert "page" not in {thread.name for thread in threading.enumerate()}


def test_an_address_in_use_is_said(airpath_command: Command, there: Address) -> None:
    done = airpath_command("emulate", "nr-n78", "--page", str(there.port), "--", "true")
    assert done.returncode == 1
    assert (
        f"cannot listen on 127.0.0.1:{there.port}: Address already in use; choose another"
        in done.stderr
    )


def test_a_bad_address_ends_before_anything_begins(
    airpath_command: Command, tmp_path: Path
) -> None:
    done = airpath_command("emulate", "nr-n78", "--page", "0.0.0.0:80", "--", "true")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: --page '0.0.0.0:80': 0.0.0.0 is not on loopback")
    assert list(tmp_path.iterdir()) == []


def _page_of(running: subprocess.Popen[Any]) -> str:
    """Where the page is, as standard error says."""
    assert running.stderr
    for line in running.stderr:
        if found := re.match(rb"status page: (http://\S+)\n", line):
            return found[1].decode()
    raise AssertionError("no status page")


@skip_without("ip", "ping")
def test_interrupting_leaves_nothing(tmp_path: Path) -> None:
    mark = f"airpath-page-{time.time_ns()}"
    running = start_command(
        *("emulate", "nr-n78", "--page", "0", "--out", "run"),
        *("--", "sh", "-c", f": {mark}; exec sleep 100"),
        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    url = _page_of(running)
    port = int(url.rpartition(":")[2].rstrip("/"))
    there = Address("127.0.0.1", port)
    assert until(lambda: json.loads(_ask(there, "/state.json")[2])["run"]["state"] == "running")
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=PATIENCE_S)
    assert not _answers(there)
    assert until(lambda: not processes(mark)), processes(mark)


@pytest.fixture
def tab(tmp_path: Path) -> Iterator[chromium.Tab]:
    with chromium.opened(tmp_path / "profile") as opened:
        yield opened


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_shows_it_in_both_schemes(
    tab: chromium.Tab, there: Address, status: Status, scheme: str
) -> None:
    scheming = {"name": "prefers-color-scheme", "value": scheme}
    tab.call("Emulation.setEmulatedMedia", features=[scheming])
    tab.open(there.url)
    text = tab.until(lambda text: "handover from west to east" in text, 30)
    assert "handover is running, 1.2 s" in text
    assert re.search(r"west\s+0\s+LTE FDD\s+not stated\s+1800\s+20\s+43\s+idle\s+0", text)
    back = tab.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (back == "rgb(255, 255, 255)") == (scheme == "light")
    # On a telephone only its tables are wider than the page.
    tab.call("Emulation.setDeviceMetricsOverride", width=390, height=800, deviceScaleFactor=1,
             mobile=True)  # fmt: skip
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    mobility = "document.querySelector('#kinds label:nth-child(4) input')"
    tab.evaluate(f"{mobility}.click()")
    assert "handover from west to east" not in tab.evaluate("document.body.innerText")
    tab.evaluate(f"{mobility}.click()")
    status.end()
    tab.until(lambda text: "handover has ended, 1.2 s" in text, 30)
    assert tab.errors == []
    asked = {address.partition("?")[0] for address in tab.requests} - {"data:,"}
    assert asked == {there.url, f"{there.url}state.json"}


@needs_browser
def test_names_are_no_markup(tab: chromium.Tab, core: Any) -> None:
    """A link's name may come from a file of somebody else."""
    bad = "<img src=x onerror=alert(1)>"
    status = Status(scenarios.load("wire"), Alarms(0.0005))
    link = {"id": bad, "bytes": 0, "queue_packets": 0, "queue_bytes": 0}
    cells = [{"id": bad, "prbs": [0, 0], "prbs_per_s": [1.0, 1.0]}]
    ue = {"id": bad, "cell": bad, "rrc": "idle", "drx": None, "radio": [radio(), radio()]}
    status.update(snapshot(1.0, links=[link], cells=cells, ues=[ue]))
    with served(Address("127.0.0.1", 0), status) as there:
        tab.open(there.url)
        assert "none: this scenario has no radio" in tab.until(lambda text: bad in text, 30)
    assert tab.evaluate("document.images.length") == 0
    assert bad in tab.evaluate("document.querySelector('svg.curve text').parentNode.parentNode"
                               ".textContent")  # fmt: skip


@needs_browser
def test_a_page_outlives_its_run_and_says_so(tab: chromium.Tab, status: Status) -> None:
    with served(Address("127.0.0.1", 0), status) as there:
        tab.open(there.url)
        tab.until(lambda text: "is running" in text, 30)
    text = tab.until(lambda text: "airpath does not answer since" in text, 30)
    assert "handover from west to east" in text
    # The next run there has another history.
    other = Status(scenarios.load("wire"), Alarms(0.0005))
    other.update(snapshot(5.0))
    with served(there, other):
        text = tab.until(lambda text: "wire is running, 5.0 s" in text, 30)
    assert "handover" not in text.partition("What each alarm means")[0]


# The handover takes 1.5 s, and a UE without a cell for half a second is an alarm.
PRIVATE = """
title = "Two cells of a private network"

[core]
subscribers = "subscribers.db"
pool = "10.45.0.0/24"
apn = "internet"
attach_ms = 1500

[radio]
preset = "nr-n78"
name = "west"

[[radio.ue]]
name = "phone"
imsi = "001010000000001"
key = "465b5ce8b199b49faa5f0a2ee238a6bc"
opc = "cd63cb71954a9f4e48a5994e37a02baf"

[[radio.neighbour]]
name = "east"

[[radio.handover]]
at_s = 4
to = "east"

[radio.mobility]
interruption_ms = 1500
t304_ms = 2000

[[flow]]
kind = "ping"
"""


@needs_browser
@needs("ip", "ping", "iperf3")
def test_a_run_in_a_browser(airpath_command: Command, tmp_path: Path) -> None:
    """Cell, UE, attach, rates and handover appear; the alarm is raised and cleared."""
    (tmp_path / "private.toml").write_text(PRIVATE)
    added = airpath_command("subscriber", "add", IMSI, "--key", KEY, "--opc", OPC)
    assert added.returncode == 0, added.stderr
    with chromium.opened(tmp_path / "profile") as tab:
        running = start_command(
            *("emulate", *UNEXPLAINED, "private.toml", "--page", "0", "--out", "run"),
            *("--server", "exec iperf3 -s"),
            *("--", "sh", "-c", "iperf3 -4 -c server -R -b 20M -t 3; sleep 6"),
            cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        )  # fmt: skip
        url = _page_of(running)
        tab.open(url)
        tab.until(lambda text: "UEs attach" in text, 30)
        tab.until(lambda text: re.search(r"west\s+0\s+NR TDD\s+n78\s.*100\s.*active\s+1", text), 30)
        rate = rf"phone\s+{IMSI}\s+10\.45\.0\.2\s+west\s+connected\s+(1\d|2\d)\.\d\d\s"
        text = tab.until(lambda text: re.search(rate, text), 30)
        assert "session established: 10.45.0.2" in text
        assert re.search(r"Alarms raised\s+none", text), text
        text = tab.until(lambda text: "handover from west to east, under way" in text, 30)
        text = tab.until(lambda text: re.search(r"major\s+long_interruption\s+phone", text), 30)
        assert "long_interruption raised, major" in text
        assert "long_interruption cleared" not in text
        text = tab.until(lambda text: "long_interruption cleared" in text, 30)
        assert re.search(r"Alarms raised\s+none", text), text
        assert "connected in east" in text
        assert re.search(r"east\s+1\s+NR TDD\s+n78\s.*100\s.*\s1\s", text), text
        assert re.search(rf"phone\s+{IMSI}\s+10\.45\.0\.2\s+east\s+connected", text), text
        assert running.stderr
        said = running.stderr.read().decode()
        assert running.wait(PATIENCE_S) in (0, 3), said
        assert KEY not in text
        # The last answer may be from before the end: the process was gone then.
        assert tab.errors == [] or set(tab.errors) == {
            "Failed to load resource: net::ERR_CONNECTION_REFUSED"
        }
        asked = {address.partition("?")[0] for address in tab.requests} - {"data:,"}
        assert asked == {url, f"{url}state.json"}
