"""The explorer's server: what it answers, and to whom; what the page begins with."""

from __future__ import annotations

import gzip
import http.client
import json
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import airpath
from airpath.errors import AirpathError, InputError
from airpath.explorer.begin import begin, check_files
from airpath.explorer.server import served
from conftest import PATIENCE_S, start_command
from explorer import needs_explorer

ROOT = Path(__file__).parents[2]


@pytest.fixture
def assets(tmp_path: Path) -> Path:
    place = tmp_path / "assets"
    place.mkdir()
    (place / "index.html").write_text('<meta name="style-nonce" content="">')
    (place / "airpath.wasm").write_bytes(b"\0asm" + bytes(1000))
    (place / "main.js").write_text("1")
    (place / "secret.key").write_text("not served")
    return place


@pytest.fixture
def url(assets: Path) -> Iterator[str]:
    with served({"shipped": "codel"}, assets=assets) as there:
        yield there


def _ask(
    url: str, path: str = "", method: str = "GET", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=30)
    connection.request(method, path or parts.path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders()), body


def test_the_page_its_files_and_its_beginning(url: str) -> None:
    at = urlsplit(url).path
    code, headers, body = _ask(url)
    assert (code, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    nonce = re.search(r"'nonce-([\w-]{16,})'", headers["Content-Security-Policy"])
    assert nonce
    assert f'content="{nonce[1]}"'.encode() in body
    assert nonce[1].encode() not in _ask(url)[2]
    code, headers, body = _ask(url, f"{at}airpath.wasm")
    assert (code, headers["Content-Type"], len(body)) == (200, "application/wasm", 1004)
    code, headers, packed = _ask(url, f"{at}airpath.wasm", **{"Accept-Encoding": "br, gzip"})
    assert headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed) == body
    assert json.loads(_ask(url, f"{at}start.json")[2]) == {"shipped": "codel"}


def test_who_has_not_the_token_gets_nothing(url: str) -> None:
    for path in ("/", "/main.js", "/start.json", "//main.js", "/x/main.js", "/%00/main.js"):
        assert _ask(url, path)[0] == 404
    other = urlsplit(url).path[:-2] + "/"
    assert _ask(url, other)[0] == 404


def test_there_is_nothing_but_the_files(url: str) -> None:
    at = urlsplit(url).path
    for path in ("secret.key", "../begin.py", "..%2fbegin.py", "x/main.js", "main.js/", "%2e%2e/"):
        assert _ask(url, at + path)[0] == 404
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        assert _ask(url, at, method)[0] == 405


def test_only_names_of_loopback_are_answered(url: str) -> None:
    """DNS may lead any name to loopback, and that name's pages would be of our origin."""
    for host in ("example.org", "192.0.2.1", "localhost.example"):
        assert _ask(url, Host=host)[0] == 421
    assert _ask(url, Host="localhost:1")[0] == 200


def test_nothing_is_loaded_from_elsewhere(url: str) -> None:
    policy = _ask(url)[1]["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self' 'wasm-unsafe-eval';")
    assert "unsafe-inline" not in policy
    assert "http" not in policy
    assert "Access-Control-Allow-Origin" not in _ask(url)[1]


def test_without_assets_it_says_how_to_get_them(tmp_path: Path) -> None:
    with (
        pytest.raises(AirpathError, match="tools/setup explorer") as error,
        served(begin(None), assets=tmp_path),
    ):
        pass
    assert error.value.exit_code == 1


def test_what_the_page_begins_with(tmp_path: Path) -> None:
    assert begin(None) == {"shipped": "bufferbloat", "sets": []}
    assert begin("codel", ["run.seed=3"]) == {"shipped": "codel", "sets": ["run.seed=3"]}
    study = begin("5g-drx/main")
    assert study["name"] == "5g-drx-main.toml"
    assert "[radio" in study["text"]
    file = tmp_path / "mine.toml"
    file.write_text('[[flow]]\nkind = "bulk"\n[[path.up]]\nstage = "delay"\ndelay_ms = 9\n')
    assert begin(str(file)) == {"text": file.read_text(), "name": "mine.toml", "sets": []}


def test_scenarios_that_need_files_are_told(tmp_path: Path) -> None:
    """Keys of subscribers are in such a file, so no link can pass them on."""
    for document, file in (
        ('[core]\nsubscribers = "cell.db"', "cell.db"),
        ('[radio.ue.channel]\nfile = "drive.csv"', "drive.csv"),
    ):
        with pytest.raises(InputError, match=rf"needs the file {file}, but the explorer"):
            check_files(document)
    check_files('[[path.down]]\nstage = "link"\nfile = "builtin:sawtooth"')


def test_a_run_brings_its_scenario_and_its_seed(tmp_path: Path) -> None:
    place = tmp_path / "run"
    airpath.run("wire", set={"run.duration_s": 1}, seed=7, out=place)
    started = begin(str(place))
    assert (started["name"], started["seed"]) == ("run.toml", 7)
    assert "duration_s = 1\n" in started["text"]


def test_bad_input_is_said_before_anything_is_served(tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text("[[flow]]\nkind = 3\n")
    with pytest.raises(InputError, match=r"bad.toml:2:8: `kind`"):
        begin(str(tmp_path / "bad.toml"))
    with pytest.raises(InputError, match="no scenario named 'codle'; did you mean 'codel'"):
        begin("codle")
    with pytest.raises(InputError, match="expects KEY=VALUE"):
        begin("codel", ["x"])
    (tmp_path / "a.trace").write_text("1\n2\n3\n")
    trace = tmp_path / "trace.toml"
    trace.write_text('[[path.down]]\nstage = "trace"\nfile = "a.trace"\n[[flow]]\nkind = "bulk"\n')
    with pytest.raises(InputError, match=r"needs the file a.trace, but the explorer"):
        begin(str(trace))


def test_no_text_becomes_markup() -> None:
    """A scenario and a link are data: no script of the page makes elements of a text."""
    for file in (ROOT / "explorer/src").rglob("*.*"):
        text = file.read_text(encoding="utf-8")
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
            assert word not in text, f"{file.name}: {word}"
        assert not re.search(r"""["'`(](https?:)?//(?!www\.w3\.org)\w""", text), file.name


@needs_explorer
def test_the_command_prints_where_it_is_and_ends_by_ctrl_c(tmp_path: Path) -> None:
    running = start_command(
        *("explore", "codel", "--no-browser", "--set", "run.seed=2"),
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert running.stdout
    url = running.stdout.readline().decode().strip()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{20,}/", url)
    start = json.loads(_ask(url, f"{urlsplit(url).path}start.json")[2])
    assert start == {"shipped": "codel", "sets": ["run.seed=2"]}
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=PATIENCE_S)
    assert (running.returncode, said.decode().splitlines()[-1]) == (0, "ended")


def test_figures_of_studies_are_scenarios(url: str) -> None:
    code, _, body = _ask(url, f"{urlsplit(url).path}studies.json")
    found = json.loads(body)
    assert code == 200
    assert {figure["file"] for figure in found["figures"]} == found["texts"].keys()
    ids = [figure["id"] for figure in found["figures"]]
    assert len(ids) == len({*ids}) > 20
    for figure in found["figures"][::10]:
        airpath.scenario.parse(found["texts"][figure["file"]], figure["file"], sets=figure["sets"])
