"""Input that nobody should give: one message, no traceback, no hang, no memory without end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import airpath
from airpath.base.numbers import LARGEST_SEED
from airpath.drivers.options import MOST_SEEDS
from airpath.errors import AirpathError, InputError
from airpath.scenario import shipped_scenarios
from conftest import DOWNLINK, Command, command_environment

TRACED = """
[run]
duration_s = 1
[[path.down]]
stage = "trace"
file = "{}"
queue_packets = 10
[[flow]]
kind = "bulk"
"""
LOGGED = """
[radio]
preset = "lte-20"
[radio.channel]
file = "{}"
[[flow]]
kind = "bulk"
"""
HUGE = str(1 << 64)
AIRPATH = f"{sys.executable} -m airpath"


def shell(line: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a line of bash; ``airpath`` is the command."""
    script = f'set -o pipefail; airpath() {{ {AIRPATH} "$@"; }}; {line}'
    return subprocess.run(
        ["bash", "-c", script], cwd=cwd, env=command_environment(), text=True,
        capture_output=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "command",
    [
        "scenario reference", "scenario schema", "scenario list", "--help", "run --help",
        f"run {DOWNLINK} --json", "doctor", "scenario show wire --resolved",
    ],
)  # fmt: skip
def test_a_reader_that_leaves_early_is_no_error(tmp_path: Path, command: str) -> None:
    done = shell(f"airpath {command} | true", tmp_path)
    assert done.returncode in (0, 1, 141)
    assert "Traceback" not in done.stderr
    assert "rror" not in done.stderr
    done = shell(f"airpath {command} | head -1", tmp_path)
    assert "Traceback" not in done.stderr
    assert done.stdout.count("\n") == 1


def test_a_closed_output_is_one_line(tmp_path: Path) -> None:
    for line in (f"airpath run {DOWNLINK} >&-", "airpath scenario list >&-"):
        done = shell(line, tmp_path)
        assert done.returncode == 1
        assert done.stderr.endswith("error: cannot write standard output: Bad file descriptor\n")
        assert "Traceback" not in done.stderr
    done = shell(f"airpath run {DOWNLINK} --out all 2>&- <&-", tmp_path)
    assert (done.returncode, done.stdout[:8]) == (0, "download")
    assert airpath.Run.open(tmp_path / "all").flows.height == 2
    done = shell(f"airpath run {DOWNLINK} --out none >&- 2>&- <&-", tmp_path)
    assert done.returncode == 1
    assert airpath.Run.open(tmp_path / "none").flows.height == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", DOWNLINK, "--out", ""), "'.' cannot become a run directory; choose another"),
        (("run", DOWNLINK, "--out", "/"), "'/' cannot become a run directory"),
        (("run", DOWNLINK, "--out", ".."), "'..' cannot become a run directory"),
        (("run", DOWNLINK, "--repeat", "1000000000000"), f"repeat must be from 1 to {MOST_SEEDS}"),
        (("run", "/dev/zero"), "/dev/zero is larger than 4 MiB"),
        (("sweep", "/dev/zero"), "/dev/zero is larger than 4 MiB"),
        (("diagnose", DOWNLINK, "--anonymise-key", "/dev/zero"), "/dev/zero is larger than 4 MiB"),
        (("run", "/dev/null"), "needs at least one [[flow]]"),
        (("run", b"\xff"), r"'\udcff' is not the name of a scenario: it is not UTF-8 text"),
        (("run", "wire", "--set", b"\xff=1"), r"'\udcff=1' is not UTF-8 text"),
        (("reproduce", "3g-latency", "--repeat", "1000000000000"), "repeat must be from 1 to"),
        (("run", "wire", "--workers", HUGE), "workers must be from 1 to 10000"),
        (("whatif", "wire", "--try", "run.seed=1", "--workers", HUGE), "workers must be from 1 to"),
        (("reproduce", "3g-latency", "--workers", HUGE), "workers must be from 1 to 10000"),
        (("run", "wire", "--seed", HUGE), f"must be a whole number from 0 to {LARGEST_SEED}"),
        (("whatif", "wire", "--try", "run.seed=1", "--seed", HUGE), "must be a whole number"),
        (("emulate", "wire", "--seed", HUGE, "--", "true"), "must be a whole number from 0 to"),
    ],
)  # fmt: skip
def test_it_is_one_message(
    airpath_command: Command, tmp_path: Path, words: tuple[Any, ...], message: str
) -> None:
    done = airpath_command(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "call",
    [
        lambda run: run(5),
        lambda run: run(None),
        lambda run: run(b"wire"),
        lambda run: run("wi\0re"),
        lambda run: run("wire", set=5),
        lambda run: run("wire", set=[5]),
        lambda run: run("wire", set={"run.seed": object()}),
        lambda run: run("wire", repeat="2"),
        lambda run: run("wire", seed=1.5),
        lambda run: run(airpath.load("wire"), set={"run.seed": 1}),
    ],
)
def test_python_says_it_too(call: Callable[[Any], object]) -> None:
    with pytest.raises(InputError) as caught:
        call(airpath.run)
    assert "\n" not in str(caught.value)


def test_a_scenario_may_come_through_a_pipe(tmp_path: Path) -> None:
    done = shell("airpath run <(airpath scenario show wire) --out here", tmp_path)
    assert done.returncode == 0, done.stderr


def bomb(size: int) -> bytes:
    """Return a gzip file of ``size`` zeros. Its checksum is wrong, but readers stop before it."""
    packer = zlib.compressobj(9, wbits=31)
    head = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    # After a full flush, a block does not depend on earlier ones, so it can be repeated.
    block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return head + block * (size >> 20) + packer.flush()


@pytest.mark.parametrize("log", [False, True], ids=["trace", "drive log"])
@pytest.mark.parametrize("what", ["bomb", "zero", "pipe", "socket", "directory"])
def test_a_trace_without_end_is_refused(tmp_path: Path, what: str, log: bool) -> None:
    name = {"zero": "/dev/zero", "socket": "/dev/log", "directory": "."}.get(what, "t.trace")
    if what == "bomb":
        (tmp_path / name).write_bytes(bomb(3 << 30))
    elif what == "pipe":
        os.mkfifo(tmp_path / name)
    text = TRACED.format(name)
    if log:
        text = LOGGED.format(name)
    (tmp_path / "s.toml").write_text(text)
    # 1 GB of address space beyond what the program itself takes is not needed.
    done = shell("ulimit -v 6000000; airpath scenario check s.toml", tmp_path)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("error: ") == 1
    assert name in done.stderr
    if what == "bomb":
        assert "unpacks to more than 128 MiB" in done.stderr


def test_what_is_hashed_is_what_is_used(tmp_path: Path) -> None:
    """A file that another process rewrites all the time: each hash belongs to its content."""
    trace, scenario = tmp_path / "t.trace", tmp_path / "s.toml"
    scenario.write_text(TRACED.format("t.trace"))
    texts = ["1\n2\n3\n4\n" * 1, "5\n"]
    known = {}
    for text in texts:
        trace.write_text(text)
        known[airpath.load(scenario).sha256] = airpath.run(scenario).links.to_dicts()
    code = (
        "import sys, os\nfile, texts = sys.argv[1], sys.argv[2:]\nwhile True:\n"
        " for text in texts:\n  open(file + '~', 'w').write(text); os.rename(file + '~', file)\n"
    )
    rewriting = subprocess.Popen([sys.executable, "-c", code, str(trace), *texts])
    try:
        for _ in range(100):
            loaded = airpath.load(scenario)
            assert airpath.run(loaded).links.to_dicts() == known[loaded.sha256]
    finally:
        rewriting.kill()
        rewriting.wait()


def test_a_thousand_faults_are_some_lines(tmp_path: Path) -> None:
    keys = "".join(f"key{number} = 1\n" for number in range(60_000))
    scenario = tmp_path / "s.toml"
    scenario.write_text(f'[[flow]]\nkind = "bulk"\n{keys}')
    began = time.process_time()
    with pytest.raises(InputError) as caught:
        airpath.load(scenario)
    assert time.process_time() - began < 5
    message = str(caught.value)
    assert message.count("unknown key") == 20
    assert message.count("allowed here") == 1
    assert message.endswith("error: 59980 more not shown")


def test_many_flows_are_read_in_time_that_grows_with_them(tmp_path: Path) -> None:
    scenario = tmp_path / "s.toml"
    path = '[[path.up]]\nstage = "delay"\ndelay_ms = 5\n'
    scenario.write_text(path + '[[flow]]\nkind = "bulk"\n' * 20_000)
    began = time.process_time()
    assert len(airpath.load(scenario).flows) == 20_000
    assert time.process_time() - began < 60


def test_a_long_argument_is_not_told_whole() -> None:
    with pytest.raises(InputError) as caught:
        airpath.load("wire", ["x=" + "[" * 60_000 + "]" * 60_000])
    assert "--set x=[[[" in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("option", ["--out", "--report"])
def test_a_name_that_is_no_utf_8_is_a_name(tmp_path: Path, option: str) -> None:
    name = "$'\\xff.html'"
    finished = shell(
        f"airpath run wire --set run.duration_s=1 --explain off {option} {name} --json", tmp_path
    )
    assert finished.returncode == 0, finished.stderr
    assert (tmp_path / os.fsdecode(b"\xff.html")).exists()


# What follows throws dice.
SEED = int(os.environ.get("AIRPATH_FUZZ_SEED", random.randrange(1 << 32)))
SECONDS = float(os.environ.get("AIRPATH_FUZZ_S", "15"))
AGAIN = f"AIRPATH_FUZZ_SEED={SEED} repeats it"
NUMBERS = (
    "0", "-1", "1", "1e999", "nan", "inf", "-inf", "18446744073709551616", "9" * 400, "0x10", "1_0",
    "1e-400", "-0.0", "true", "", "'", '"', "[]", "{}", "[[]]", "2020-01-01",
)  # fmt: skip
TEXTS = (
    "", " ", ".", "..", "/", "~", "-", "--", "-h", "x" * 300, "a/b", "/dev/null", "/dev/zero",
    "/dev/full", "/proc/self/mem", "\udcff", "é", "\u202e", "{}", "%s", "wire", "codel", "a.toml",
    "*", "nul\nline", "\x1b[31m", "=", "==", "a=b=c", "runs", "good", "s.toml",
)  # fmt: skip
KEYS = (
    "run.duration_s", "run.seed", "run", "flow", "flow.0", "flow.0.congestion", "flow.-1.id",
    "flow.99999999999999999999.id", "path.down.0.rate_mbps", "path.down", "path", "title", "a.b",
    "." * 50, "a." * 5000 + "a", "radio.preset", "core.pool", "flow.0.window_bytes", "",
)  # fmt: skip
OPTIONS: dict[str, tuple[str, ...]] = {
    "run": ("--set", "--seed", "--repeat", "--workers", "--out", "--report", "--json"),
    "emulate": (
        "--set",
        "--server",
        "--at",
        "--flows",
        "--seed",
        "--out",
        "--capture",
        "--metrics",
        "--page",
    ),
    "twin": ("--set", "--seeds", "--own-profiles", "--out", "--report", "--json"),
    "reproduce": ("--set", "--repeat", "--workers", "--report", "--json"),
    "whatif": ("--set", "--try", "--seed", "--seeds", "--workers", "--json"),
    "sweep": ("--out", "--workers", "--max-seeds", "--until", "--resume", "--json"),
    "fit": ("--flow", "--workers", "--json"),
    "report": ("--output", "-o", "--figures", "--format", "--title"),
    "scenario show": ("--resolved", "--set"),
    "scenario check": ("--set",),
    "scenario list": (),
    "scenario nonsense": (),
    "metrics dashboard": ("--x",),
    "subscriber add": ("--key", "--opc", "--db", "--qci", "--apn", "--ambr-down"),
    "subscriber change": ("--key", "--opc", "--db", "--qci", "--apn", "--ambr-down"),
    "subscriber list": ("--db", "--keys", "--json"),
    "subscriber remove": ("--db",),
    "nonsense": ("--set",),
    "": ("--version", "-V", "--help"),
}
FLAGS = ("--json", "--flows", "--capture", "--own-profiles", "--resolved", "--keys", "--version",
         "-V", "--help")  # fmt: skip
CODES = {0, 1, 2, 3, 130, 141}


@pytest.fixture
def harmless(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, core: Any) -> Iterator[None]:
    """Nothing is emulated, no study runs; 20 s of processor time a command, and 5 minutes."""

    def refused(*_: Any, **__: Any) -> Any:
        raise OSError(1, "Operation not permitted")

    def slow(*_: Any) -> Any:
        raise TimeoutError("a command took too long")

    monkeypatch.setattr("airpath._core.emulate", refused)
    monkeypatch.setattr("airpath.emulation.rootless.enter", lambda: False)
    monkeypatch.setattr("airpath.study.bench.in_threads", refused)
    monkeypatch.chdir(tmp_path)
    numbers = (signal.SIGALRM, signal.SIGPROF)
    before = {number: signal.signal(number, slow) for number in numbers}
    yield
    _limit(0, 0)
    for number, handler in before.items():
        signal.signal(number, handler)


def _limit(processor_s: float, wall_s: float) -> None:
    """How long it may go on; 0: for ever. A busy machine makes it no slower in processor time."""
    signal.setitimer(signal.ITIMER_PROF, processor_s)
    signal.setitimer(signal.ITIMER_REAL, wall_s)


def judged(cli: Any, words: list[str]) -> int:
    """Run a command; what is wrong with its answer fails the test and says the words."""
    _limit(20, 300)
    try:
        code, _, err = cli(*words)
    except SystemExit as stop:
        code, err = stop.code, ""
    except BaseException as error:
        pytest.fail(f"{AGAIN}: {words!a}: {type(error).__name__}: {error!a}")
    finally:
        _limit(0, 0)
    if code not in CODES or "Traceback" in err or len(err) > 100_000:
        pytest.fail(f"{AGAIN}: {words!a}: code {code}: {err[:2000]!a}")
    return int(code)


@pytest.mark.usefixtures("harmless")
def test_random_command_lines(cli: Any) -> None:
    draw, end = random.Random(SEED), time.monotonic() + SECONDS
    cli("run", DOWNLINK, "--out", "good")
    codes: list[int] = []
    while time.monotonic() < end:
        command = draw.choice(list(OPTIONS))
        words = command.split()
        for _ in range(draw.randrange(3)):
            words.append(draw.choice(TEXTS) if draw.random() < 0.5 else DOWNLINK)
        for _ in range(draw.randrange(4)):
            option = draw.choice(OPTIONS[command] or ("--x",))
            words.append(option)
            if option in FLAGS:
                continue
            if option in ("--set", "--try"):
                words.append(f"{draw.choice(KEYS)}={draw.choice(NUMBERS + TEXTS)}")
            elif option in ("--repeat", "--seeds"):
                words.append(draw.choice((*NUMBERS, "2")))
            else:
                words.append(draw.choice(NUMBERS + TEXTS))
        codes.append(judged(cli, words))
    assert codes.count(2) > len(codes) / 4
    assert 0 in codes


def mutated(text: str, draw: random.Random) -> str:
    """A scenario with some lines or tokens spoilt."""
    lines = text.splitlines()
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(lines))
        kind = draw.randrange(6)
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(at, lines[draw.randrange(len(lines))])
        elif kind == 2 and "=" in lines[at]:
            lines[at] = lines[at].split("=")[0] + "= " + draw.choice(NUMBERS)
        elif kind == 3 and "=" in lines[at]:
            lines[at] = lines[at].split("=")[0] + f"= {draw.choice(TEXTS)!r}"
        elif kind == 4:
            lines[at] = draw.choice(TEXTS) + lines[at]
        else:
            lines[at] = f"{draw.choice(KEYS)} = {draw.choice(NUMBERS)}"
        lines = lines or [""]
    return "\n".join(lines)


@pytest.mark.usefixtures("harmless")
def test_random_scenarios(cli: Any, tmp_path: Path) -> None:
    draw, end = random.Random(SEED), time.monotonic() + SECONDS
    shipped = list(shipped_scenarios().values())
    file, ran = tmp_path / "s.toml", 0
    while time.monotonic() < end:
        text = mutated(draw.choice(shipped), draw)
        file.write_bytes(text.encode(errors="surrogateescape"))
        try:
            if judged(cli, ["scenario", "check", "s.toml"]) == 0:
                short = ["--set", "run.duration_s=0.2", "--set", "run.sample_interval_ms=100"]
                ran += judged(cli, ["run", "s.toml", *short, "--json"]) == 0
        except pytest.fail.Exception as failed:
            raise AirpathError(f"{failed}\n{text!a}") from None
    assert ran > 0
