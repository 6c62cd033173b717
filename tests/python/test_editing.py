"""Subscribers on the status page: who may change them, what is refused, and what is kept of it."""

from __future__ import annotations

import http.client
import json
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from airpath import scenario as scenarios
from airpath.emulation.oam import page, subscribers
from airpath.emulation.oam.alarms import Alarms
from airpath.emulation.oam.editing import Editing
from airpath.emulation.oam.page import Address, served
from airpath.emulation.oam.status import Status
from airpath.emulation.oam.subscribers import Subscriber
from airpath_dev import chromium
from conftest import PATIENCE_S, UNEXPLAINED, Command, start_command
from emulated import needs
from snapshot import snapshot

IMSI = "001010000000001"
OTHER = "001010000000002"
KEY = "465b5ce8b199b49faa5f0a2ee238a6bc"
OPC = "cd63cb71954a9f4e48a5994e37a02baf"
NEW = {"imsi": OTHER, "key": KEY, "opc": OPC}


@pytest.fixture
def database(tmp_path: Path) -> Path:
    file = tmp_path / "subscribers.db"
    subscribers.add(file, Subscriber(IMSI, KEY, OPC, ambr_down_mbps=8.0))
    return file


@pytest.fixture
def editing(database: Path) -> Editing:
    return Editing(database)


@pytest.fixture
def status(editing: Editing, core: Any) -> Status:
    known = Status(scenarios.load("wire"), Alarms(0.0005), editing=editing)
    known.update(snapshot(1.0))
    return known


@pytest.fixture
def there(status: Status) -> Iterator[Address]:
    with served(Address("127.0.0.1", 0), status) as address:
        yield address


Answer = tuple[int, str]


def _ask(there: Address, method: str, path: str, body: bytes | None, headers: Any) -> Answer:
    connection = http.client.HTTPConnection(there.host, there.port, timeout=30)
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    said = answer.read().decode()
    connection.close()
    return answer.status, said


def _headers(there: Address, token: str, **changes: str | None) -> dict[str, str]:
    """Headers of the page's own script, of which some may be changed or left out."""
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Origin": there.url.rstrip("/"),
        **changes,
    }
    return {name: value for name, value in headers.items() if value is not None}


def _post(there: Address, token: str, what: str, document: Any, **changes: str | None) -> Answer:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    named = {name.replace("_", "-"): value for name, value in changes.items()}
    return _ask(there, "POST", f"/subscribers/{what}", body, _headers(there, token, **named))


def _history(status: Status) -> list[tuple[object, object]]:
    entries = status.document()["history"]
    return [(one["subject"], one["text"]) for one in entries if one["kind"] == "subscriber"]


def test_subscribers_are_listed_added_changed_and_removed(
    there: Address, editing: Editing, status: Status, database: Path
) -> None:
    code, said = _ask(there, "GET", "/subscribers.json", None, _headers(there, editing.token))
    (first,) = json.loads(said)["subscribers"]
    assert (code, first["imsi"], first["ambr_down_mbps"]) == (200, IMSI, 8.0)
    code, said = _post(there, editing.token, "add", {**NEW, "key": KEY.upper(), "qci": 5})
    assert (code, [one["imsi"] for one in json.loads(said)["subscribers"]]) == (200, [IMSI, OTHER])
    assert subscribers.read(database)[1] == Subscriber(OTHER, KEY, OPC, qci=5)
    changed = {"imsi": IMSI, "apn": "ims", "key": OPC, "ambr_down_mbps": None, "qfi": 9}
    assert _post(there, editing.token, "change", changed)[0] == 200
    assert subscribers.read(database)[0] == Subscriber(IMSI, OPC, OPC, apn="ims")
    assert _post(there, editing.token, "remove", {"imsi": IMSI})[0] == 200
    assert [one.imsi for one in subscribers.read(database)] == [OTHER]
    assert _history(status) == [
        (OTHER, "subscriber added: apn internet, qci 5, qfi 9"),
        (IMSI, "subscriber changed: apn ims, key, ambr_down_mbps none"),
        (IMSI, "subscriber removed"),
    ]
    kinds = [(edit.kind, edit.imsi) for edit in editing.close()]
    assert kinds == [
        ("subscriber_added", OTHER),
        ("subscriber_changed", IMSI),
        ("subscriber_removed", IMSI),
    ]


def test_a_secret_never_comes_back(there: Address, editing: Editing, status: Status) -> None:
    said = [
        _post(there, editing.token, "add", NEW)[1],
        _post(there, editing.token, "change", {"imsi": OTHER, "key": OPC})[1],
        _ask(there, "GET", "/subscribers.json", None, _headers(there, editing.token))[1],
        # A key in each wrong place.
        _post(there, editing.token, "add", {**NEW, "imsi": KEY})[1],
        _post(there, editing.token, "add", {**NEW, "apn": f"{KEY} "})[1],
        _post(there, editing.token, "add", {**NEW, KEY: 1})[1],
        _post(there, editing.token, "remove", {"imsi": OPC})[1],
        json.dumps(status.document()),
        json.dumps([edit.text for edit in editing.close()]),
    ]
    for one in said:
        assert KEY not in one
        assert OPC not in one


@pytest.mark.parametrize("token", ["", "x", "\xe9", "0" * 22])
def test_without_the_token_nothing_is_said_or_changed(
    there: Address, editing: Editing, database: Path, token: str
) -> None:
    before = subscribers.read(database)
    assert _ask(there, "GET", "/subscribers.json", None, _headers(there, token))[0] == 401
    assert _post(there, token, "add", NEW)[0] == 401
    assert _post(there, "", "add", NEW, Authorization=None)[0] == 401
    assert _post(there, "", "add", NEW, Authorization=editing.token)[0] == 401
    assert _post(there, "", "add", NEW, Authorization=f"Basic {editing.token}")[0] == 401
    # A token in a URL is none.
    asked = f"/subscribers.json?token={editing.token}"
    assert _ask(there, "GET", asked, None, {})[0] == 401
    assert subscribers.read(database) == before


def test_the_token_is_compared_in_constant_time(
    editing: Editing, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return False

    monkeypatch.setattr("airpath.emulation.oam.editing.hmac.compare_digest", compare)
    assert not editing.admits(editing.token)
    assert compared == [(editing.token.encode(),) * 2]
    assert len(editing.token) >= 22


def test_requests_of_other_sites_are_refused(
    there: Address, editing: Editing, database: Path
) -> None:
    before = subscribers.read(database)
    for origin in (None, "null", "http://example.org", "http://127.0.0.1", f"https://{there.host}"):
        assert _post(there, editing.token, "add", NEW, Origin=origin)[0] == 403
    # A page of a name that leads here has that name in both.
    name = f"example.org:{there.port}"
    both = {"Host": name, "Origin": f"http://{name}"}
    assert _post(there, editing.token, "add", NEW, **both)[0] == 421
    # ssh -L leads here from another port.
    both = {"Host": "localhost:9", "Origin": "http://localhost:9"}
    assert subscribers.read(database) == before
    assert _post(there, editing.token, "add", NEW, **both)[0] == 200
    # A form of another site cannot send this type without asking first.
    for kind in (None, "text/plain", "application/x-www-form-urlencoded"):
        assert _post(there, editing.token, "remove", {"imsi": OTHER}, Content_Type=kind)[0] == 415
    assert _ask(there, "OPTIONS", "/subscribers/add", None, {})[0] == 405


def test_bodies_have_a_bound(there: Address, editing: Editing) -> None:
    assert _post(there, editing.token, "add", b"x" * (page.MOST_BYTES + 1))[0] == 413
    headers = _headers(there, editing.token)
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    for said, code in (
        ("", b"411"),
        ("Content-Length: -1\r\n", b"411"),
        ("Content-Length: 1e3\r\n", b"411"),
        ("Transfer-Encoding: chunked\r\n", b"411"),
        ("Content-Length: 99999999999\r\n", b"413"),
    ):
        with socket.create_connection((there.host, there.port), timeout=30) as one:
            asked = f"POST /subscribers/add HTTP/1.1\r\nHost: {there.authority}\r\n{lines}{said}"
            one.sendall(asked.encode() + b"\r\n")
            assert one.recv(4096).split()[1] == code


@pytest.mark.parametrize(
    ("what", "document", "said"),
    [
        ("add", b"", "one JSON document"),
        ("add", b"{} {}", "one JSON document"),
        ("add", b"\xff", "one JSON document"),
        ("add", b"[" * 4000, "one JSON document"),
        ("add", b'{"imsi": ' + b"9" * 4000 + b"}", "imsi must be text"),
        ("add", [], "an object with the fields"),
        ("add", {}, "imsi is missing"),
        ("add", {"imsi": OTHER, "key": KEY}, "opc is missing; a subscriber needs imsi, key, opc"),
        ("add", {**NEW, "plan": 1}, "unknown field 'plan'; known are imsi, key,"),
        ("add", {**NEW, "imsi": None}, "imsi must be text"),
        ("add", {**NEW, "qci": "9"}, "qci must be a whole number"),
        ("add", {**NEW, "qci": True}, "qci must be a whole number"),
        ("add", {**NEW, "qci": 9.5}, "qci must be a whole number"),
        ("add", {**NEW, "ambr_up_mbps": "1"}, "ambr_up_mbps must be a number, or null"),
        ("add", {**NEW, "ambr_up_mbps": float("nan")}, "AMBR up is nan Mb/s"),
        ("add", {**NEW, "ambr_up_mbps": 10**400}, "must be from 0.001 to 1000000"),
        ("add", {**NEW, "apn": "\ud800"}, "must be letters, digits and hyphens"),
        # What the command line refuses, in its words.
        ("add", {**NEW, "imsi": "1"}, "IMSI '1' must be 14 or 15 digits"),
        ("add", {**NEW, "imsi": "\u0660" * 15}, "must be 14 or 15 digits"),
        ("add", {**NEW, "key": "12"}, "the key (K) of IMSI"),
        ("add", {**NEW, "qfi": 64}, "QFI is 64, but must be from 1 to 63"),
        ("add", {**NEW, "imsi": IMSI}, f"IMSI {IMSI} is already in"),
        ("change", {"imsi": OTHER, "qfi": 3}, f"there is no IMSI {OTHER} in"),
        ("change", {"imsi": IMSI}, "nothing to change"),
        ("change", {"imsi": IMSI, "qci": 10}, "QCI or 5QI is 10"),
        ("remove", {"imsi": OTHER}, f"there is no IMSI {OTHER} in"),
        ("remove", {"imsi": IMSI, "apn": "x"}, "give imsi alone"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    there: Address, editing: Editing, database: Path, what: str, document: Any, said: str
) -> None:
    before = subscribers.read(database)
    code, answer = _post(there, editing.token, what, document)
    assert code == 400
    assert said in answer
    assert answer.count("\n") == 1
    assert subscribers.read(database) == before
    assert editing.close() == []


def test_there_is_nothing_else_to_post(there: Address, editing: Editing) -> None:
    for path in ("/", "/state.json", "/subscribers/drop", "/subscribers/", "/subscribers.json"):
        headers = _headers(there, editing.token)
        assert _ask(there, "POST", path, b"{}", headers)[0] == 404


def test_without_edit_every_post_is_refused(core: Any) -> None:
    status = Status(scenarios.load("wire"), Alarms(0.0005))
    status.update(snapshot(1.0))
    assert status.document()["run"]["editable"] is False
    with served(Address("127.0.0.1", 0), status) as there:
        for path in ("/", "/subscribers/add", "/subscribers.json"):
            assert _ask(there, "POST", path, b"{}", _headers(there, "x"))[0] == 405
        assert _ask(there, "GET", "/subscribers.json", None, _headers(there, "x"))[0] == 404


def test_a_change_has_a_run_whose_events_have_it(
    editing: Editing, database: Path, core: Any
) -> None:
    status = Status(scenarios.load("wire"), Alarms(0.0005), editing=editing)
    with served(Address("127.0.0.1", 0), status) as there:
        code, said = _post(there, editing.token, "add", NEW)
        assert (code, said) == (
            409,
            "subscribers can be changed only while the run is running\n",
        )
        status.update(snapshot(1.0))
        assert _post(there, editing.token, "add", NEW)[0] == 200
        assert len(editing.close()) == 1
        assert _post(there, editing.token, "remove", {"imsi": OTHER})[0] == 409
        (database.parent / "subscribers.db").write_text("no database at all" * 90)
        code, said = _ask(there, "GET", "/subscribers.json", None, _headers(there, editing.token))
        assert (code, "not a database" in said) == (500, True)


def test_edit_needs_a_page_and_a_core(airpath_command: Command) -> None:
    for words, said in (
        (("lte-private", "--edit"), "--edit needs --page PORT"),
        (("nr-n78", "--page", "0", "--edit"), r"--edit needs a scenario with \[core\]"),
        (("lte-private", "--page", "0", "--edit", "--repeat", "2"), "--repeat cannot be used"),
    ):
        done = airpath_command("emulate", *words, "--", "true")
        assert (done.returncode, bool(re.search(said, done.stderr))) == (2, True), done.stderr


def test_a_subscriber_is_changed_by_command(airpath_command: Command, database: Path) -> None:
    change = ("subscriber", "change", IMSI)
    done = airpath_command(*change, "--apn", "ims", "--ambr-down", "none", "--ambr-up", "2")
    assert (done.returncode, done.stdout) == (0, "")
    assert f"{IMSI} in subscribers.db: apn, ambr_down_mbps, ambr_up_mbps changed" in done.stderr
    (database.parent / "keys").write_text(f"{IMSI} {OPC} {KEY}\n")
    assert airpath_command(*change, "--keys", "keys").returncode == 0
    assert subscribers.read(database) == [Subscriber(IMSI, OPC, KEY, apn="ims", ambr_up_mbps=2.0)]
    for words, said in (
        ((), "nothing to change"),
        (("--qci", "10"), "QCI or 5QI is 10"),
        (("--ambr-up", "fast"), "--ambr-up 'fast': expected a rate in Mb/s, or none"),
        (("--keys", "keys", "--key", KEY), "give --key and --opc, or --keys FILE"),
    ):
        done = airpath_command(*change, *words)
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    done = airpath_command("subscriber", "change", OTHER, "--qfi", "3")
    assert (done.returncode, "no IMSI" in done.stderr) == (2, True)
    assert subscribers.read(database)[0].ambr_up_mbps == 2.0


@pytest.mark.skipif(chromium.PROGRAM is None, reason="install the package chromium to see it")
def test_a_browser_changes_subscribers(
    there: Address, editing: Editing, database: Path, tmp_path: Path
) -> None:
    with chromium.opened(tmp_path / "profile") as tab:
        tab.open(there.url)
        tab.until(lambda text: "Subscribers of the core" in text, 30)
        assert "Add subscriber" not in tab.evaluate("document.body.innerText")

        def show(token: str) -> None:
            tab.evaluate(f"document.getElementById('token').value = {json.dumps(token)}")
            tab.evaluate("document.querySelector('#unlock button').click()")

        def submit(**fields: str) -> None:
            for name, value in fields.items():
                field = f"document.getElementById('subscriber').elements.{name}"
                tab.evaluate(f"{field}.value = {json.dumps(value)}")
            tab.evaluate("document.getElementById('submit').click()")

        def press(label: str) -> None:
            tab.evaluate(
                "[...document.querySelectorAll('button')]"
                f".find((one) => one.textContent === {json.dumps(label)}).click()"
            )

        show("wrong")
        tab.until(lambda text: "this needs the token that airpath printed" in text, 30)
        show(editing.token)
        tab.until(lambda text: re.search(rf"{IMSI}\s+internet\s+9\s+9\s+8\s+no limit", text), 30)
        submit(imsi=OTHER, key=KEY, opc="12")
        tab.until(lambda text: f"the OPc of IMSI {OTHER} must be 32" in text, 30)
        submit(opc=OPC, ambr_up_mbps="2.5")
        text = tab.until(lambda text: f"{OTHER} added" in text, 30)
        assert re.search(rf"{OTHER}\s+internet\s+9\s+9\s+no limit\s+2.5", text), text
        press(f"Edit {IMSI}")
        submit(apn="ims", ambr_down_mbps="")
        tab.until(lambda text: f"{IMSI} changed" in text, 30)
        assert subscribers.read(database)[0] == Subscriber(IMSI, KEY, OPC, apn="ims")
        press(f"Remove {OTHER}")
        assert len(subscribers.read(database)) == 2
        press(f"Really remove {OTHER}")
        tab.until(lambda text: f"{OTHER} removed" in text, 30)
        tab.until(lambda text: "subscriber removed" in text, 30)
        assert [one.imsi for one in subscribers.read(database)] == [IMSI]
        whole = tab.evaluate("document.documentElement.outerHTML")
        assert KEY not in whole
        assert editing.token not in whole
        assert not [one for one in tab.requests if editing.token in one]
        refused = "Failed to load resource: the server responded with a status of"
        assert [one for one in tab.errors if not one.startswith(refused)] == []


@needs("ip")
def test_an_emulation_keeps_what_was_changed(
    airpath_command: Command, database: Path, tmp_path: Path
) -> None:
    """The run's events have who was changed and when, and its files no key or token."""
    sets = ("--set", f"radio.ue.0.key={KEY!r}", "--set", f"radio.ue.0.opc={OPC!r}")
    core = ("--set", f"core.subscribers={str(database)!r}", "--set", f"radio.ue.0.imsi={IMSI!r}")
    running = start_command(
        *("emulate", *UNEXPLAINED, "lte-private", "--page", "0", "--edit", "--out", "run"),
        *(*sets, *core, "--", "sh", "-c", "while [ ! -e enough ]; do sleep 0.1; done"),
        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert running.stderr
    said = []
    try:
        for line in running.stderr:
            said.append(line.decode())
            if found := re.fullmatch(r"token to change subscribers there: (\S+)\n", said[-1]):
                break
        where = re.search(r"http://(127\.0\.0\.1):(\d+)/", "".join(said))
        assert where, said
        assert found, said
        there, token = Address(where[1], int(where[2])), found[1]
        code = 409
        while code == 409:
            code, answer = _post(there, token, "add", NEW)
        assert code == 200, answer
        assert _post(there, token, "remove", {"imsi": OTHER})[0] == 200
    finally:
        (tmp_path / "enough").touch()
        rest = running.communicate(timeout=PATIENCE_S)[1].decode()
    assert running.returncode in (0, 3), rest
    events = pl.read_parquet(tmp_path / "run" / "events.parquet").filter(
        pl.col("kind").cast(pl.String).str.starts_with("subscriber_")
    )
    assert events["kind"].cast(pl.String).to_list() == ["subscriber_added", "subscriber_removed"]
    assert events["link"].cast(pl.String).to_list() == [OTHER, OTHER]
    duration_s = json.loads((tmp_path / "run" / "summary.json").read_text())["run"]["duration_s"]
    first, second = events["time_ns"].to_list()
    assert 0 < first < second < duration_s * 1e9
    for file in (tmp_path / "run").rglob("*"):
        if file.is_file():
            data = file.read_bytes()
            assert token.encode() not in data
            assert KEY.encode() not in data
