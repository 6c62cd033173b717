"""Keys of subscribers, planted in every spelling, are in no file and no stream of any command."""

from __future__ import annotations

import re
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from airpath import cli as commands
from airpath.campaign import work
from airpath.runs.results import Run
from airpath.scenario import shipped_scenarios

pytestmark = pytest.mark.unhurried

IMSI = "001010000000001"
SEPARATORS = str.maketrans("", "", " -:\\\n")
QUIET = ("--explain", "off")
ELSEWHERE = {
    "explore", "emulate", "serve", "measure", "twin", "reproduce", "doctor", "metrics",
    "judge", "new",
}  # fmt: skip
"""Commands that take no keys (``explore`` refuses a core network), or need a real clock."""


class Planted:
    """Draws keys, runs commands, and looks for the keys."""

    def __init__(self, place: Path, cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.place, self.cli, self.monkeypatch = place, cli, monkeypatch
        self.draw = Random(41)
        self.keys: list[str] = []
        self.inputs: set[Path] = set()
        self.streams = ""
        self.called: set[str] = set()

    def key(self, *, upper: bool = False, length: int = 32, of: str = "0123456789abcdef") -> str:
        """Another key."""
        key = "".join(self.draw.choice(of) for _ in range(length))
        self.keys.append(key)
        return key.upper() if upper else key

    def file(self, name: str, text: str) -> str:
        """Write a file that commands read."""
        path = self.place / name
        path.write_text(text)
        path.chmod(0o600)
        self.inputs.add(path)
        return name

    def run(self, *words: str, code: int = 0) -> str:
        """Run a command and keep what it says; its standard output."""
        self.monkeypatch.setattr(sys, "argv", ["airpath", *words])
        done = self.cli(*words)
        assert done[0] == code, (words, done)
        self.called.add(words[0])
        self.streams += done[1] + done[2]
        return str(done[1])

    def leaks(self) -> list[str]:
        """What has a good part of a key: files that commands wrote, and what they said."""
        parts = [key[at : at + 12] for key in self.keys for at in range(0, len(key) - 11, 4)]
        texts = {"the streams": self.streams, "digits of it": self.streams.translate(SEPARATORS)}
        for path in self.place.rglob("*"):
            if path.is_file() and path not in self.inputs:
                texts[str(path)] = path.read_bytes().decode("latin-1")
        found = (
            (name, text, text.lower().find(one)) for name, text in texts.items() for one in parts
        )
        return [
            f"{name}: …{text[max(0, at - 40) : at + 40]}…" for name, text, at in found if at >= 0
        ]


@pytest.fixture
def planted(tmp_path: Path, cli: Any, monkeypatch: pytest.MonkeyPatch) -> Planted:
    return Planted(tmp_path, cli, monkeypatch)


def scenario(*lines: str) -> str:
    """One with a core network, whose UE has these lines too; short."""
    text = re.sub(r"(?m)^(#.*|key = .*|opc = .*)\n", "", shipped_scenarios()["lte-private"])
    ue = f'imsi = "{IMSI}"\n'
    assert ue in text
    text = text.replace("duration_s = 10", "duration_s = 0.1")
    return text.replace(ue, ue + "".join(f"{line}\n" for line in lines))


def settings(planted: Planted) -> Iterator[str]:
    """Settings that are right, each with other keys."""
    key = planted.key
    yield f"radio.ue.0.key={key()}"
    yield f"radio.ue.0.opc={key(upper=True)}"
    yield f'radio.ue.0.key = "{key()}"'
    yield f"radio.ue.0.opc='{key()}'"
    yield f'radio.ue.0."key"="{key()}"'
    yield f"radio.ue.*.opc={key()}"
    yield f'radio.ue=[{{name="phone", imsi="{IMSI}", key="{key()}", opc = "{key(upper=True)}"}}]'
    yield f"radio.ue=[{{name='phone', imsi='{IMSI}', \"key\"='{key()}'}}]"
    escaped = "".join(f"\\u{ord(digit):04x}" for digit in key())
    yield f'radio.ue=[{{name="phone", imsi="{IMSI}", "k\\u0065y"="{escaped}"}}]'
    yield f'radio.ue.0.key="""{key(length=16)}\\\n  {key(length=16)}"""'


def test_a_setting_leaves_no_key(planted: Planted) -> None:
    planted.file("s.toml", scenario())
    for number, setting in enumerate(settings(planted)):
        words = (f"--set={setting}",) if number % 2 else ("--set", setting)
        more = ("--json", "--report", "r.html", "--repeat", "2") if number == 6 else ()
        planted.run("run", "s.toml", *words, *QUIET, "--out", f"run{number}", *more)
        shown = planted.run("scenario", "show", "s.toml", *words)
        assert "sha256:" in shown
        planted.run("scenario", "check", "s.toml", *words)
    assert planted.leaks() == []
    assert "radio.ue.0.opc=…" in (planted.place / "run1/provenance.json").read_text()


def test_what_is_refused_shows_no_key(planted: Planted) -> None:
    planted.file("s.toml", scenario())
    key = planted.key
    wrong: list[tuple[str, ...]] = []
    for name in ("ki", "k", "op", "opcc", "sim.key"):
        wrong += [("--set", f"radio.ue.0.{name}={key()}")]
        wrong += [(f"--set=radio.ue.0.{name} = '{key(upper=True)}'",)]
    wrong += [
        ("--set", f"radio.ue.0.key={key()}0"),
        ("--set", f"radio.ue.0.key={key(length=31)}"),
        ("--set", f"radio.ue.0.key={key(length=14)}"),
        ("--set", f"radio.ue.0.key={key(of='123456789')}"),
        ("--set", f"radio.ue.0.key={key(of='123456789', length=16)}"),
        ("--set", f"radio.ue.0.key=0x{key()}"),
        ("--set", "radio.ue.0.key=" + " ".join(re.findall("..", key()))),
        ("--set", "radio.ue.0.opc=" + "-".join(re.findall("....", key()))),
        (f'--set=radio.ue.0.opc=["{key()}"]',),
        (f'--set=radio.ue.0.key={{k="{key()}"}}',),
        ("--set", f'radio.ue.0.key="{key()}\\n"'),
        ("--set", f'radio.ue=[{{imsi="{IMSI}", key="{key()}"'),
        ("--set", f'radio=[{{imsi="{IMSI}", key="{key()}"}}]'),
        ("--set", f"title.x='{60 * '- '}{key()}'"),
        ("--set", "radio.ue.0.key", key()),
        ("--set", f"radio.ue.0.key {key()}"),
        ("--set", f"{key()}=radio.ue.0.key"),
        ("--seed", key(of="abcdef")),
    ]
    for words in wrong:
        for command in ("run", "scenario check") if words[0] != "--seed" else ("run",):
            planted.run(*command.split(), "s.toml", *words, code=2)
    planted.run("whatif", "s.toml", "--try", f"radio.ue.0.ki={key()}", code=2)
    planted.run("whatif", "s.toml", "--try", f"radio.ue.0.key='{key()}", code=2)
    for number, line in enumerate(
        (
            f'ki = "{key()}"', f'key = "{key()}0"', f"key = {key(of='123456789')}",
            f"key = {key(of='abcdef')}", f'key = "{key()}', f'key = "{key()}"\nkey = "{key()}"',
            f'key = ["{key()}"]', f'key."{key()}" = 1', f'key = "{key()}\\n"', f'{key()} = ""',
        )
    ):  # fmt: skip
        name = planted.file(f"wrong{number}.toml", scenario(line))
        planted.run("run", name, code=2)
        planted.run("scenario", "show", name, code=2)
    planted.run("subscriber", "add", IMSI, "--key", f"{key()}0", "--opc", key(), code=2)
    planted.run("subscriber", "add", key(), "--key", key(), "--opc", key(), code=2)
    assert planted.leaks() == []


def test_a_scenario_file_leaves_no_key(planted: Planted) -> None:
    key = planted.key
    escaped = "".join(f"\\u{ord(digit):04X}" for digit in key())
    lines = (
        (f'key = "{key()}"', f"opc = '{key(upper=True)}'"),
        (f'"key" = """{key()}"""', f'opc = "{escaped}"'),
        (f'key = "{key()}"  # once {key()}',),
    )
    for number, some in enumerate(lines):
        name = planted.file(f"s{number}.toml", scenario(*some))
        wanted = ("--set", f"radio.ue.0.opc={key()}")
        more = QUIET if number else ("--capture", "--record")
        planted.run("run", name, "--out", f"run{number}", *more)
        planted.run("scenario", "show", name)
        planted.run("scenario", "show", name, "--resolved", *wanted)
        trial = f'run.duration_s=0.2 radio.ue.0.key="{key()}" radio.ue.0.opc={key(upper=True)}'
        words = (
            "--try",
            trial,
            "--seeds",
            "1",
            *(("--json",) if number else ("--chart", "w.html")),
        )
        planted.run("whatif", name, *wanted, *words)
    planted.run("tune", name, "--seeds", "2", "--set", f"radio.ue.0.key={key()}", "--json")
    planted.run("report", "run0", "run1", "-o", "both.html")
    planted.run("export", "run0", "--radio", "traces")
    planted.run("cite", "run0")
    planted.run("query", "select * from flows", "run0")
    planted.run("diagnose", "run0/capture.pcapng", "--json")
    planted.run("fit", "run0/capture.pcapng", "-o", "fit.toml")
    assert planted.leaks() == []


def campaign(planted: Planted) -> str:
    """One with keys wherever a campaign can have them."""
    key = planted.key
    planted.file("s.toml", scenario(f'key = "{key()}"'))
    inline = f'radio.ue=[{{name=\\"phone\\", imsi=\\"{IMSI}\\", opc=\\"{key()}\\"}}]'
    return f"""
# {key()}
scenario = "s.toml"
set = ["radio.ue.0.key={key()}", 'radio.ue.0.opc="{key(upper=True)}"', "run.duration_s=0.2"]
seeds = 2
[[vary]]
key = "run.sample_interval_ms"
values = [50, 100]
[[vary]]
name = "sim"
choices = [
  {{ label = "one", set = ["radio.ue.0.opc = '{key()}'"] }},
  {{ label = "two", set = ["{inline}"] }},
]
"""


def test_a_campaign_leaves_no_key(planted: Planted) -> None:
    planted.file("c.toml", campaign(planted))
    planted.run("sweep", "c.toml", "--out", "c", "--workers", "1")
    planted.run("sweep", "c.toml", "--out", "c", "--resume", "--workers", "1")
    planted.run("query", "select * from flows", "c")
    planted.run("plot", "c", "-o", "p.svg", code=0)
    planted.run("compare", "c", "--axis", "sim=one,two")
    planted.run("sensitivity", "c", code=2)
    planted.run("report", "c", "-o", "c.html")
    assert planted.leaks() == []
    assert 'key = "run.sample_interval_ms"' in (
        planted.place / "c/campaign.json"
    ).read_text().replace("\\", "")


def test_a_failed_run_of_a_campaign_leaves_no_key_and_can_be_run_again(
    planted: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted.file("c.toml", campaign(planted))
    simulate = work.simulate

    def breaking(batch: work.Batch, keep_on: Any = None) -> work.Done:
        if 3 in batch.numbers:
            raise RuntimeError(f"broke with {batch}, {batch.jobs[0].sets}")
        return simulate(batch, keep_on)

    monkeypatch.setattr(work, "simulate", breaking)
    planted.run("sweep", "c.toml", "--out", "c", "--workers", "1", code=1)
    planted.run("run", "c/failed/run-3.toml", *QUIET, "--out", "again")
    assert (
        Run.open(planted.place / "again").scenario_toml
        in (planted.place / "c/failed/run-3.toml").read_text()
    )
    assert planted.leaks() == []


def test_a_campaign_varies_no_key(planted: Planted) -> None:
    planted.file("s.toml", scenario())
    key = planted.key
    head = 'scenario = "s.toml"\n[[vary]]\n'
    for vary in (
        f'key = "radio.ue.0.key"\nvalues = ["{key()}", "{key()}"]',
        f'key = ["run.seed", "radio.ue.0.opc"]\nvalues = ["{key()}"]',
        f'name = "x"\nchoices = [{{ label = "{key()}", set = ["radio.ue.0.key={key()}"] }}]',
        f'name = "x"\nchoices = [{{ label = "a", set = ["radio.ue.0.key {key()}"] }}]',
        f'key = "run.seed"\nvalues = [["{key()}"]]',
        f'key = "run.{key()}"\nvalues = [1]',
        f'name = "x"\nchoices = [{{ label = "a", set = ["radio.ue.0.ki={key()}"] }}]',
    ):
        planted.file("c.toml", head + vary)
        planted.run("sweep", "c.toml", "--out", "c", code=2)
    assert planted.leaks() == []
    assert "radio.ue.0.key is secret" in planted.streams


def test_subscribers_are_listed_without_keys_and_kept_from_others(planted: Planted) -> None:
    key = planted.key
    planted.file("keys", f"{IMSI} {key()} {key(upper=True)}\n")
    planted.run("subscriber", "add", IMSI, "--keys", "keys")
    planted.run("subscriber", "add", "001010000000002", "--key", key(), "--opc", key(upper=True))
    planted.run("subscriber", "list")
    planted.run("subscriber", "list", "--json")
    planted.run("subscriber", "change", IMSI, "--key", key(), "--opc", key(upper=True))
    planted.run("subscriber", "change", IMSI, "--key", f"{key()}0", code=2)
    planted.run("subscriber", "remove", IMSI)
    database = planted.place / "subscribers.db"
    planted.inputs.add(database)
    assert planted.leaks() == []
    assert stat.S_IMODE(database.stat().st_mode) == 0o600


def test_a_configuration_file_leaves_no_key(planted: Planted) -> None:
    """Keys stand at settings that are not modelled, at one that is, and in place of a name."""
    key = planted.key
    good = f"mme:\n  k: '{key(upper=True)}'\ncell_cfg:\n  pci: 1  # {key()}\n  note: {key()}\n"
    planted.file("gnb.yml", good)
    planted.run("scenario", "from", "gnb.yml")
    planted.run("scenario", "from", "gnb.yml", "--json")
    planted.run("scenario", "from", "gnb.yml", "--out", "cell.toml")
    planted.run("run", "./cell.toml", "--set", "run.duration_s=0.1", *QUIET)
    for line in (f"  band: '{key()}'", f"  k{key()}: 1", f"  '{key()}': 1", f"  - {key()}"):
        planted.file("bad.yml", f"{good}{line}\n")
        planted.run("scenario", "from", "bad.yml", code=2)
    assert planted.leaks() == []


def test_no_command_is_forgotten() -> None:
    known = {*commands._COMMANDS, *commands._GROUPS}
    text = Path(__file__).read_text(encoding="utf-8")
    called = set(re.findall(r'planted\.run\(\s*"([a-z]+)"', text))
    assert known == called | ELSEWHERE
