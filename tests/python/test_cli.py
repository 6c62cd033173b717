"""The command line: messages, exit codes, help."""

from __future__ import annotations

import datetime
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import typer

from airpath.cli import app as cli_app
from conftest import DOWNLINK

SNAPSHOTS = Path(__file__).parent / "snapshots"


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")


def matches(name: str, text: str) -> None:
    """Compare with a snapshot; AIRPATH_BLESS=1 writes it."""
    path = SNAPSHOTS / name
    if os.environ.get("AIRPATH_BLESS") == "1":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


COMMANDS = [
    "",
    "run",
    "explore",
    "whatif",
    "sweep",
    "query",
    "plot",
    "compare",
    "sensitivity",
    "emulate",
    "cite",
    "judge",
    "serve",
    "tune",
    "measure",
    "twin",
    "reproduce",
    "export",
    "report",
    "diagnose",
    "fit",
    "doctor",
    "scenario",
    "scenario list",
    "scenario show",
    "scenario check",
    "scenario from",
    "scenario schema",
    "scenario reference",
    "new",
    "new congestion",
    "metrics",
    "metrics dashboard",
    "subscriber",
    "subscriber add",
    "subscriber list",
    "subscriber change",
    "subscriber remove",
]
REFERENCE = Path(__file__).parents[2] / "docs/reference/command-line.md"


def test_the_command_reference_is_what_help_says(cli: Any) -> None:
    parts = ["# Command line\n\nGenerated from `--help`; `make bless` rewrites it.\n"]
    for command in COMMANDS:
        _, out, _ = cli(*command.split(), "--help")
        parts.append(f"## airpath {command}".rstrip() + f"\n```\n{out.strip()}\n```\n")
    text = "\n".join(parts)
    if os.environ.get("AIRPATH_BLESS") == "1":
        REFERENCE.write_text(text, encoding="utf-8")
    assert text == REFERENCE.read_text(encoding="utf-8")


def test_every_command_is_in_the_reference() -> None:
    def names(group: Any, before: str) -> list[str]:
        found = [before]
        for name in getattr(group, "commands", ()):
            _, command, _ = group.resolve_command(None, [name])
            found += names(command, f"{before} {name}".strip())
        return found

    assert sorted(names(typer.main.get_command(cli_app), "")) == sorted(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_help(cli: Any, command: str) -> None:
    code, out, err = cli(*command.split(), "--help")
    assert (code, err) == (0, "")
    matches(f"help{'-' if command else ''}{command.replace(' ', '-')}.txt", out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "error: missing argument 'SCENARIO...'; see airpath run --help"),
        (["run", "codle"], "error: no scenario named 'codle'; did you mean 'codel'?"),
        (["run", "qqqqqqqq"], "error: no scenario named 'qqqqqqqq'\n  available: asymmetric-3g, "),
        (["run", "nr-fdd-20"], "error: no scenario named 'nr-fdd-20'; that is a radio preset\n"),
        (["run", "3g-latency"], "error: no scenario named '3g-latency', but a study; its scenarios "
         "are: 3g-latency/main, 3g-latency/transfer\n  one of them: airpath run 3g-latency/main; "
         "the whole study: airpath reproduce 3g-latency"),
        (["run", "nr-bbr-cubic"], "error: no scenario named 'nr-bbr-cubic', but a study; its "
         "scenarios are: nr-bbr-cubic/mobile, nr-bbr-cubic/speedtest-epon, "
         "nr-bbr-cubic/speedtest-wifi, nr-bbr-cubic/unicom\n  one of them: airpath run "
         "nr-bbr-cubic/mobile; "),
        (["run", "wire", "nope"], "error: no scenario named 'nope'"),
        (["run", "wire", "codel", "--out", "x"], "error: --out is for one scenario; each of "
         "several gets its own directory in runs"),
        (["report"], "error: there is no run in runs; `airpath run SCENARIO` creates one"),
        (["reproduce", "q"], "error: no study named 'q'\n  available: 3g-latency, "),
        (["run", "lab/codel.toml"], "error: no scenario file lab/codel.toml; did you mean "
         "'codel'?"),
        (["run", "."], "error: cannot read scenario file .: it is a directory; name a file in it"),
        (["run", "wire", "--set", "x"], "error: --set x: expects KEY=VALUE"),
        (["rum"], "error: no such command 'rum'. Did you mean 'run'? See airpath --help."),
        (["run", "wire", "--sed", "1"], "error: no such option: --sed"),
        (["run", "wire", "--report", "no/where.html"], "error: cannot write no/where.html: "
         "there is no directory no"),
        (["report", "nothing"], "error: run directory nothing does not exist"),
        (["report", ".", "-o", "r.html"], "error: . is not a run directory: it has no "
         "summary.json"),
        (["report", ".", "--format", "gif"], "error: no figure format 'gif'; available: png, svg, "
         "pdf"),
        (["reproduce", "3g-latencies"], "error: no study named '3g-latencies'; did you mean "
         "'3g-latency'?"),
    ],
)  # fmt: skip
def test_bad_use_is_one_message_and_code_2(cli: Any, arguments: list[str], message: str) -> None:
    code, out, err = cli(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith(message)
    # What follows is indented: a hint.
    assert all(line.startswith("  ") for line in err.splitlines()[1:])
    assert list(Path().iterdir()) == []


def test_run_answers_on_stdout_and_narrates_on_stderr(cli: Any) -> None:
    code, out, err = cli("run", DOWNLINK, "--out", "here")
    assert code == 0
    assert out.splitlines()[0].startswith(
        "download: 1.19 Mb/s down (cubic, endpoints: linux-6.1), RTT "
    )
    assert err == "run directory: here\nreport: airpath report here -o report.html\n"


def test_json_is_one_document_with_the_documented_keys(cli: Any) -> None:
    code, out, _ = cli("run", DOWNLINK, "--json", "--out", "here")
    assert code == 0
    document = json.loads(out)
    assert list(document) == [
        "run", "flows", "groups", "pings", "links", "fairness", "proxies", "radio", "findings",
        "tried", "breakdowns", "explained",
    ]  # fmt: skip
    assert {"id", "version", "seed", "scenario_sha256", "wall_s", "duration_s", "events"} <= (
        document["run"].keys()
    )
    assert document == json.loads(Path("here/summary.json").read_text())
    for finding in document["findings"]:
        assert {"cause", "confidence", "evidence", "advice", "set", "gain"} <= finding.keys()


def test_run_with_report(cli: Any) -> None:
    code, _, err = cli("run", DOWNLINK, "--out", "here", "--report", "r.html")
    assert code == 0
    assert err.endswith("report: r.html\n")
    assert Path("r.html").stat().st_size > 500_000


def test_the_default_directory_is_in_runs(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airpath.drivers.simulate.default_name", lambda stem, _: stem)
    for _ in range(2):
        assert cli("run", DOWNLINK)[0] == 0
    names = sorted(path.name for path in Path("runs").iterdir())
    assert names[1] == f"{names[0]}-2"


def test_report_with_figures(cli: Any) -> None:
    cli("run", DOWNLINK, "--out", "here")
    code, out, _ = cli(
        "report", "here", "-o", "r.html", "--figures", "figures", "--format", "svg,png"
    )
    assert (code, out) == (0, "")
    assert len(list(Path("figures").iterdir())) == 8


def test_reproduce_prints_a_table(cli: Any) -> None:
    code, out, err = cli("reproduce", "3g-latency", "--repeat", "1", "--report", "s.html")
    assert code == 0
    assert out.startswith("3g-latency: TCP windows over an emulated 3G link\n")
    assert "350k-rtt0-win10k" in out
    assert err == "report: s.html\n"
    assert "What each assumption changes" in Path("s.html").read_text()


def test_reproduce_json(cli: Any) -> None:
    code, out, _ = cli("reproduce", "3g-latency", "--repeat", "2", "--json")
    assert code == 0
    (study,) = json.loads(out)["studies"]
    assert len(study["figures"]) == 8
    for figure in study["figures"]:
        assert {"id", "published", "obtained", "ci95", "verdict", "note"} <= figure.keys()
        assert figure["verdict"] in {"reproduced", "not-reproduced", "under-specified"}


def test_scenario_commands(cli: Any, core: Any) -> None:
    listed = cli("scenario", "list")[1].splitlines()
    presets = listed.index('[radio] preset = "…"')
    studies = listed.index("of studies")
    names = [line.split()[0] for line in listed[:studies] if line]
    assert names == sorted(name for name, _ in core.shipped())
    assert "5g-drx/external" in [line.split()[0] for line in listed[studies:presets] if line]
    wire = next(line for line in listed if line.startswith("wire "))
    assert wire.split(maxsplit=1)[1] == "A wire: 10 Mb/s, 40 ms there and back"
    assert [line.split()[0] for line in listed[presets + 1 :]] == [
        name for name, _ in core.radio_presets()
    ]
    assert cli("scenario", "show", "wire")[1] == dict(core.shipped())["wire"]
    resolved = cli("scenario", "show", "wire", "--set", "flow.0.window_bytes=9000")[1]
    assert "\nsend_buffer_bytes = 9000\n" in resolved
    assert "\nreceive_buffer_bytes = 9000\n" in resolved
    assert json.loads(cli("scenario", "schema")[1])["type"] == "object"
    assert cli("scenario", "reference")[1].strip() == core.reference().strip()
    code, out, err = cli("scenario", "check", "wire", "nope")
    assert (code, out) == (2, "wire: ok\n")
    assert err.startswith("error: no scenario named 'nope'")


def test_a_studys_scenario_runs_by_its_name(cli: Any) -> None:
    code, out, _ = cli("run", "5g-drx/no-nat", "--set", "run.duration_s=1", "--json")
    assert code == 0
    assert json.loads(out)["run"]["seed"] == 1
    Path("here.toml").write_text(cli("scenario", "show", "5g-drx/main")[1], encoding="utf-8")
    assert cli("scenario", "check", "here.toml", "5g-drx/main")[0] == 0
    code, _, err = cli("run", "5g-drx/nowhere")
    assert (code, "5g-drx/nowhere" in err) == (2, True)


def test_version(cli: Any, core: Any) -> None:
    assert cli("--version")[1] == f"airpath {core.__version__}\n"
    assert cli("-V")[1] == f"airpath {core.__version__}\n"


def test_a_directory_says_what_and_when(cli: Any) -> None:
    assert cli("run", DOWNLINK)[0] == 0
    (made,) = Path("runs").iterdir()
    today = datetime.datetime.now().astimezone()
    dates = {f"{today - datetime.timedelta(minutes=ago):%Y-%m-%d-%H%M}" for ago in range(3)}
    said = re.fullmatch(r"(.+?)-(\d{4}-\d\d-\d\d-\d{4})-(\w{6})", made.name)
    assert said is not None, made
    name, date, short = said.groups()
    assert (name, date in dates) == ("downlink", True)
    assert json.loads((made / "summary.json").read_text())["run"]["id"].startswith(short)


def test_the_bytes_of_a_result_do_not_depend_on_its_name(cli: Any) -> None:
    for out in ("one", "two"):
        assert cli("run", DOWNLINK, "--out", out)[0] == 0
    tables = sorted(Path("one").glob("*.parquet"))
    assert tables
    for path in (*tables, Path("one/scenario.toml")):
        assert path.read_bytes() == (Path("two") / path.name).read_bytes()


def test_several_scenarios_in_one_run(cli: Any) -> None:
    code, out, err = cli("run", DOWNLINK, "wire", "--set", "run.duration_s=2", "--report", "r.html")
    assert code == 0
    titles = [line for line in out.splitlines() if line in ("downlink:", "wire:")]
    assert titles == ["downlink:", "wire:"]
    assert err.count("run directory: runs/") == 2
    assert Path("r.html").is_file()
    assert len(list(Path("runs").iterdir())) == 2
    code, out, _ = cli("run", DOWNLINK, "wire", "--set", "run.duration_s=2", "--json")
    assert [len(run["flows"]) > 0 for run in json.loads(out)["runs"]] == [True, True]


def test_report_takes_the_newest_run(cli: Any) -> None:
    cli("run", DOWNLINK)
    cli("run", "wire", "--set", "run.duration_s=2")
    code, _, err = cli("report")
    assert code == 0
    assert err.startswith("newest run: runs/wire-")
    assert Path("report.html").is_file()


def test_a_file_does_not_take_a_shipped_scenarios_name(cli: Any, core: Any) -> None:
    Path("wire").write_text(dict(core.shipped())["codel"])
    code, _, err = cli("scenario", "show", "wire")
    assert (code, err) == (2, "error: 'wire' is both a shipped scenario and a file here; use "
                              "builtin:wire or ./wire\n")  # fmt: skip
    shipped = dict(core.shipped())
    assert cli("scenario", "show", "builtin:wire")[1] == shipped["wire"]
    assert cli("scenario", "show", "./wire")[1] == shipped["codel"]
    Path("mine").write_text(shipped["codel"])
    assert cli("scenario", "show", "mine")[1] == shipped["codel"]
    assert cli("scenario", "show", "builtin:mine")[0] == 2


def test_ctrl_c_is_code_130(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("airpath._core.simulate", interrupted)
    assert cli("run", DOWNLINK) == (130, "", "error: interrupted; nothing was kept\n")
    assert list(Path().iterdir()) == []
