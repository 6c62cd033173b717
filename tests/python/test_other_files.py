"""A file that is not what it is said to be is refused, and nothing of what is in it is shown."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airpath.scenario import shipped_scenarios

SECRET = "hunter2-Wq8kX"
CONTENTS = {
    "shadow": f"root:$y$j9T${SECRET}:20089:0:99999:7:::\ndaemon:*:20089:0:99999:7:::\n",
    "environment": f"# {SECRET}\nPASSWORD={SECRET}\nTOKEN='{SECRET}'\n",
    "toml": f'token = "{SECRET}"\n[service]\npassword = "{SECRET}"\n',
    "json": f'{{"password": "{SECRET}", "list": ["{SECRET}"]}}\n',
    "broken-json": f'{{"password": "{SECRET}", {SECRET}\n',
    "csv": f"name,password\nroot,{SECRET}\n",
    "word": SECRET,
    "words": f"0\n1\n2 {SECRET}\n",
    "key": f"-----BEGIN OPENSSH PRIVATE KEY-----\n{SECRET}\n-----END OPENSSH PRIVATE KEY-----\n",
    "utf-16": f"\ufeff{SECRET}\n",
    "log": f"Timestamp,CQI,{SECRET}\n{SECRET},{SECRET}\n",
    "time-log": f"time_s,sinr_db\n0,{SECRET}\n",
}  # fmt: skip


def _scenario(file: str, key: str) -> list[str]:
    """A command for a scenario that names a file there."""
    return ["run", "named.toml", "--set", f"{key}={file}", "--explain", "off"]


USES: dict[str, Callable[[str], list[str]]] = {
    "scenario": lambda file: ["run", f"./{file}"],
    "shown": lambda file: ["scenario", "show", f"./{file}"],
    "checked": lambda file: ["scenario", "check", f"./{file}"],
    "trace": lambda file: _scenario(file, "path.down.0.file"),
    "whatif": lambda file: ["whatif", "named.toml", "--try", f"path.down.0.file={file}"],
    "channel": lambda file: ["run", "channel.toml", "--set", f"radio.channel.file={file}"],
    "campaign": lambda file: ["sweep", f"./{file}", "--out", "c"],
    "study": lambda file: ["reproduce", f"./{file}"],
    "diagnose": lambda file: ["diagnose", file, "--report", "r.html"],
    "fit": lambda file: ["fit", file, "-o", "fit.toml"],
    "report": lambda file: ["report", file],
    "query": lambda file: ["query", "select 1", file],
    "explore": lambda file: ["explore", f"./{file}", "--no-browser"],
    "key": lambda file: ["diagnose", "missing", "--anonymise-key", file],
    "subscribers": lambda file: ["subscriber", "list", "--db", file],
    "subscriber": lambda file: ["subscriber", "add", "001010000000001", "--keys", file],
}


@pytest.mark.parametrize("use", USES)
def test_nothing_of_another_file_is_shown(cli: Any, tmp_path: Path, use: str) -> None:
    shipped = shipped_scenarios()
    (tmp_path / "named.toml").write_text(shipped["trace-driven"])
    (tmp_path / "channel.toml").write_text(
        shipped["nr-n78"] + '\n[radio.channel]\nmodel = "trace"\n'
    )
    for name, text in CONTENTS.items():
        (tmp_path / name).write_text(text, encoding="utf-16" if name == "utf-16" else "utf-8")
        code, out, err = cli(*USES[use](name))
        assert code in (1, 2), (name, out, err)
        assert err.count("\n") >= 1, name
        for part in re.split("-", SECRET):
            assert part not in out + err, (name, out, err)


def test_what_helps_is_quoted(cli: Any, tmp_path: Path) -> None:
    """Numbers, dates and what is missing, because they show what is wrong."""
    (tmp_path / "named.toml").write_text(shipped_scenarios()["trace-driven"])
    for text, said in (
        ("1\n2.5\n", 'line 2: "2.5" is not a time stamp'),
        ("1\n-3\n", 'line 2: "-3" is not a time stamp'),
        ("1\n12:30:05\n", 'line 2: "12:30:05" is not a time stamp'),
        ("1\nab\n", "line 2: this is not a time stamp"),
        (f"1\n{10**40}\n", "line 2: this is not a time stamp"),
        ("3\n2\n", "line 2: time stamp 2 ms is before the previous one, 3 ms"),
    ):
        (tmp_path / "t").write_text(text)
        _, _, err = cli(*_scenario("t", "path.down.0.file"))
        assert said in err
