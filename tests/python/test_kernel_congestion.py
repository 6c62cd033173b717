"""A user's congestion control in the kernel: by name, or from a BPF object. Mostly root."""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import polars as pl
import pytest

from airpath import scenario as scenarios
from airpath.emulation import congestion
from airpath.errors import InputError
from airpath.runs.results import Run
from conftest import PATIENCE_S, UNEXPLAINED, Command, start_command, until
from emulated import busiest, printed, skip_without_bpf, stages

TEMPLATE = Path(__file__).parents[2] / "crates/bpf/template"
AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")

needs_bpf = skip_without_bpf()
needs_clang = pytest.mark.skipif(
    shutil.which("clang") is None, reason="clang is needed to compile an object"
)

WIRE = f"""
[run]
duration_s = 2
{stages(20, 20, rate_mbps=20, queue_packets=100)}\
[[flow]]
id = "download"
kind = "bulk"
profile = "linux-6.18"
[[flow]]
id = "upload"
kind = "bulk"
direction = "up"
profile = "linux-6.18"
"""


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory with the template's sources, where objects are compiled."""
    place = tmp_path_factory.mktemp("bpf") / "template"
    shutil.copytree(TEMPLATE, place, ignore=shutil.ignore_patterns("*.o"))
    return place


def compiled(objects: Path, name: str, source: str, *options: str) -> Path:
    """Compile a source of its own beside the template's header."""
    (objects / f"{name}.bpf.c").write_text(source)
    made = objects / f"{name}.bpf.o"
    words = ("clang", "-O2", *(options or ("-g",)), "-target", "bpf", "-mcpu=v3", "-c")
    subprocess.run([*words, f"{name}.bpf.c", "-o", made], cwd=objects, check=True)
    return made


def template(objects: Path, name: str) -> Path:
    subprocess.run(["make", "--quiet", f"{name}.bpf.o"], cwd=objects, check=True)
    return objects / f"{name}.bpf.o"


def changed(objects: Path, new: str, *pairs: tuple[str, str]) -> Path:
    """Compile the template's Reno, changed."""
    text = (TEMPLATE / "reno.bpf.c").read_text()
    for old, other in pairs:
        assert old in text
        text = text.replace(old, other)
    return compiled(objects, new, text)


@pytest.fixture
def wire(tmp_path: Path) -> Path:
    file = tmp_path / "wire.toml"
    file.write_text(WIRE)
    return file


class _Attributes(ctypes.Structure):
    """The parts of ``union bpf_attr`` that ask for maps (uapi/linux/bpf.h)."""

    _fields_ = (("a", ctypes.c_uint32), ("b", ctypes.c_uint32), ("info", ctypes.c_uint64))


def maps() -> set[tuple[int, str]]:
    """Every struct_ops map of the machine: its id and its name."""
    libc = ctypes.CDLL(None, use_errno=True)

    def bpf(command: int, attributes: _Attributes) -> int:
        size = ctypes.sizeof(attributes)
        return int(libc.syscall(321, command, ctypes.byref(attributes), size))

    found: set[tuple[int, str]] = set()
    number = 0
    while True:
        following = _Attributes(number)
        if bpf(12, following):  # BPF_MAP_GET_NEXT_ID
            assert ctypes.get_errno() == errno.ENOENT
            return found
        number = following.b
        descriptor = bpf(14, _Attributes(number))  # BPF_MAP_GET_FD_BY_ID
        if descriptor < 0:
            continue
        info = ctypes.create_string_buffer(80)
        # BPF_OBJ_GET_INFO_BY_FD: type, id, four sizes and flags, and 16 bytes of name.
        asked = _Attributes(descriptor, 80, ctypes.addressof(info))
        done = bpf(15, asked)
        os.close(descriptor)
        if not done and int.from_bytes(info.raw[:4], "little") == 26:
            found.add((number, info.raw[24:40].split(b"\0")[0].decode()))


def registered() -> set[str]:
    return set(AVAILABLE.read_text().split())


def said(done: subprocess.CompletedProcess[str]) -> str:
    assert "Traceback" not in done.stderr
    return done.stderr


# --- What is written -------------------------------------------------------------------------


def test_names_and_files_are_told_apart(tmp_path: Path) -> None:
    file = tmp_path / "mine.bpf.o"
    file.write_bytes(b"\x7fELF")
    one = congestion.parse(str(file))
    assert (one.flow, one.name, one.elf) == (None, None, b"\x7fELF")
    assert one.sha256 == hashlib.sha256(b"\x7fELF").hexdigest()
    two = congestion.parse(f"a=b={file}:mine")
    assert (two.flow, two.name, two.file) == ("a=b", "mine", str(file))
    assert congestion.parse("bbr") == congestion.Congestion(None, "bbr")
    assert one.identity != two.identity


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("=bbr", "no flow before"),
        ("a name", "not a name"),
        ("sixteen_letters_", "not a name"),
        ("none.o", "cannot read none.o: "),
        ("./none", "cannot read ./none: "),
        ("/:x", "cannot read /: "),
        ("mine.py", "run in simulations only"),
        ("./libmine.so", "run in simulations only"),
    ],
)
def test_what_is_neither_is_refused(text: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        congestion.parse(text)


def test_an_endless_file_is_not_read() -> None:
    with pytest.raises(InputError, match="larger than 4 MiB"):
        congestion.parse("/dev/zero")


def test_flows_are_those_of_the_scenario(wire: Path) -> None:
    loaded = scenarios.load(str(wire))
    assert [one.flow for one in congestion.parse_all(["upload=reno", "bbr"], loaded)] == [
        "upload",
        None,
    ]
    with pytest.raises(InputError, match="the TCP flows of the scenario are download, upload"):
        congestion.parse_all(["other=reno"], loaded)
    with pytest.raises(InputError, match="twice for all flows"):
        congestion.parse_all(["reno", "bbr"], loaded)


# --- In the kernel ---------------------------------------------------------------------------

# Of seed 7306 of `make twin-bpf`: 17.5 segments are reduced to 12.25, and 17 to 11.
SMALL = """
[run]
duration_s = 0.6
[[path.up]]
stage = "link"
rate_mbps = 2.08
queue_packets = 10
[[path.up]]
stage = "delay"
delay_ms = 4.16
[[path.down]]
stage = "delay"
delay_ms = 4.16
[[flow]]
id = "upload"
kind = "bulk"
direction = "up"
profile = "linux-6.18"
slow_start = "none"
cubic.arithmetic = "rfc"
"""


@pytest.mark.real_clock
@needs_bpf
@needs_clang
def test_the_template_keeps_the_fraction_of_a_small_window(
    airpath_command: Command, objects: Path, tmp_path: Path
) -> None:
    file = tmp_path / "small.toml"
    file.write_text(SMALL)
    chosen = ("--flows", "--congestion", str(template(objects, "cubic")))
    reductions = []
    for name, words in (("run", ()), ("emulate", (*UNEXPLAINED, *chosen))):
        out = tmp_path / name
        done = airpath_command(name, str(file), *words, "--out", str(out))
        assert done.returncode in (0, 3), done.stderr
        events = Run.open(out).table("events").filter(pl.col("kind") == "recovery_start")
        reductions.append(list(events.select("cwnd_segments", "value").iter_rows())[:3])
    assert reductions[0] == [(25, 17), (17, 12), (13, 9)]
    assert reductions[1] == reductions[0]


@pytest.mark.real_clock
@needs_bpf
@needs_clang
def test_an_objects_congestion_control_is_used_and_taken_away(
    airpath_command: Command, objects: Path, wire: Path, tmp_path: Path
) -> None:
    file, before, out = template(objects, "cubic"), maps(), tmp_path / "run"
    done = airpath_command(
        *("emulate", *UNEXPLAINED, str(wire), "--flows", "--json", "--out", str(out)),
        *("--congestion", str(file), "--congestion", "upload=reno"),
    )
    document = printed(done)
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    assert document["emulation"]["congestion"] == [
        {"flow": None, "name": "rfc9438_cubic", "file": str(file), "sha256": sha256},
        {"flow": "upload", "name": "reno", "file": None, "sha256": None},
    ]
    sockets = {flow["id"]: flow for flow in document["emulation"]["sockets"]}
    for flow, name in (("download", "rfc9438_cubic"), ("upload", "reno")):
        assert sockets[flow]["sender"]["congestion"] == name
        assert sockets[flow]["receiver"]["congestion"] == name
    flows = {flow["id"]: flow for flow in document["flows"]}
    assert flows["download"]["congestion"] == "rfc9438_cubic"
    assert flows["download"]["goodput_mbps"] > 10
    kept = json.loads((out / "provenance.json").read_text())["emulation"]
    assert kept["congestion"] == document["emulation"]["congestion"]
    assert "rfc9438_cubic" not in registered()
    assert until(lambda: maps() <= before), maps() - before


@pytest.mark.real_clock
@needs_bpf
@needs_clang
def test_programs_use_it_and_gain_nothing(
    airpath_command: Command, objects: Path, wire: Path
) -> None:
    """Those of another user have it by their routes, and no descriptor of it."""
    server, shown = "exec iperf3 -s", "ls -l /proc/self/fd >&2; exec iperf3 -c server -R -t 1 -J"
    done = airpath_command(
        *("emulate", *UNEXPLAINED, str(wire), "--json", "--user", "nobody", "--server", server),
        *("--congestion", str(template(objects, "reno")), "--", "sh", "-c", shown),
    )
    assert busiest(printed(done))["congestion"] == "rfc5681_reno"
    assert '"sender_tcp_congestion":\t"rfc5681_reno"' in done.stderr
    assert "bpf" not in "".join(line for line in done.stderr.splitlines() if "->" in line)


@needs_bpf
@needs_clang
def test_two_runs_have_names_of_their_own(objects: Path, wire: Path) -> None:
    file, before = template(objects, "reno"), maps()

    def start() -> subprocess.Popen[bytes]:
        words = ("emulate", str(wire), "--congestion", str(file), "--", "sleep", "60")
        return start_command(*words, cwd=wire.parent, stderr=subprocess.DEVNULL)

    runs = [start()]
    try:
        assert until(lambda: "rfc5681_reno" in registered())
        runs.append(start())
        assert until(lambda: "rfc5681_reno_2" in registered())
    finally:
        for run in runs:
            run.kill()
            run.wait(timeout=PATIENCE_S)
    assert until(lambda: not {"rfc5681_reno", "rfc5681_reno_2"} & registered())
    assert until(lambda: maps() <= before), maps() - before


@needs_bpf
@needs_clang
@pytest.mark.parametrize("section", [".struct_ops.link", ".struct_ops"])
def test_a_run_that_is_killed_leaves_no_map(objects: Path, wire: Path, section: str) -> None:
    """At any moment: before, while and after the object is registered, and while flows send.

    Without a link, the kernel would keep a congestion control for good (``.struct_ops``).
    """
    name = f"killed{section.count('.')}"
    file = changed(objects, name, ("rfc5681_reno", name), ('".struct_ops.link"', f'"{section}"'))
    before, pins = maps(), _pins()
    moments = random.Random(section)
    seen = 0
    words = ("emulate", *UNEXPLAINED, str(wire), "--flows", "--congestion", str(file))
    # After the map exists and before it is registered; in the set-up; while flows send.
    for after_s in (None, 0, moments.uniform(0, 0.3), moments.uniform(0.3, 1)):
        run = start_command(*words, cwd=wire.parent, stderr=subprocess.DEVNULL)
        if after_s is None:
            assert until(lambda: bool(maps() - before))
        else:
            assert until(lambda: name in registered())
            time.sleep(after_s)
            seen += name in registered()
        run.kill()
        assert run.wait(timeout=PATIENCE_S) == -signal.SIGKILL
        assert until(lambda: name not in registered(), 5)
    assert seen == 3
    assert until(lambda: maps() <= before, 30), maps() - before
    assert _pins() == pins


def _pins() -> list[str]:
    place = Path("/sys/fs/bpf")
    return sorted(str(file) for file in place.rglob("*")) if place.is_dir() else []


@needs_bpf
def test_a_name_that_the_host_lacks_is_told_what_there_is(
    airpath_command: Command, wire: Path
) -> None:
    done = airpath_command("emulate", str(wire), "--flows", "--congestion", "no_such_thing")
    assert done.returncode == 2
    assert "this host has no `no_such_thing`; it has " in said(done)
    assert "cubic" in done.stderr


OTHER_KIND = """
#include "tcp_congestion.h"
char LICENSE[] SEC("license") = "Dual MIT/GPL";
struct sched_ext_ops { int (*init)(__u64 *ctx); char name[128]; };
SEC("struct_ops") int other_init(__u64 *ctx) { return 0; }
SEC(".struct_ops.link") struct sched_ext_ops other = { .init = (void *)other_init, .name = "o" };
"""

NO_BTF = """
struct tcp_congestion_ops { char name[16]; void *init; };
__attribute__((section("license"), used)) char LICENSE[] = "Dual MIT/GPL";
__attribute__((section("struct_ops"), used)) int mine_init(void *ctx) { return 0; }
__attribute__((section(".struct_ops.link"), used))
struct tcp_congestion_ops mine = { .name = "mine", .init = (void *)mine_init };
"""

NO_STRUCT_OPS = """
#include "tcp_congestion.h"
char LICENSE[] SEC("license") = "Dual MIT/GPL";
SEC("tracepoint/syscalls/sys_enter_openat") int other(void *ctx) { return 0; }
"""

PINNED = """
struct {
	int (*type)[1]; /* BPF_MAP_TYPE_HASH */
	int (*max_entries)[8];
	__u32 *key;
	__u32 *value;
	int (*pinning)[1]; /* LIBBPF_PIN_BY_NAME */
} kept SEC(".maps");
char LICENSE[]"""


@needs_bpf
@needs_clang
@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("text", "not a BPF object that libbpf can read"),
        ("empty", "not a BPF object that libbpf can read"),
        ("program", "not a BPF object that libbpf can read"),
        ("truncated", "not a BPF object that libbpf can read"),
        ("no BTF", "the object has no BTF: compile it with clang -g -target bpf"),
        ("no struct_ops", "no congestion control: a struct tcp_congestion_ops"),
        ("another kind", "struct_ops of another kind: sched_ext_ops"),
        ("pinned", "the map `kept` of the object asks to be pinned"),
        ("no name", "the name `` of `reno` is not one"),
        ("bad name", "the name `two words` of `reno` is not one"),
        (
            "several",
            "several congestion control algorithms; name one as FILE:NAME: rfc5681_reno, second",
        ),
    ],
)
def test_a_file_that_is_no_congestion_control_is_refused(
    airpath_command: Command, objects: Path, wire: Path, kind: str, told: str
) -> None:
    before = maps()
    file = _wrong(objects, kind)
    done = airpath_command("emulate", str(wire), "--flows", "--congestion", str(file))
    assert done.returncode == 2, done.stderr
    assert told in said(done)
    assert str(file) in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert not (wire.parent / "runs").exists() or not any((wire.parent / "runs").iterdir())
    assert maps() <= before


def _wrong(objects: Path, kind: str) -> Path:
    """Make a file of a kind that is no congestion control."""
    file = objects / f"{kind.replace(' ', '_')}.o"
    source = (TEMPLATE / "reno.bpf.c").read_text()
    if kind == "text":
        file.write_text("int main(void);")
    elif kind == "empty":
        file.write_bytes(b"")
    elif kind == "program":
        shutil.copy("/bin/true", file)
    elif kind == "truncated":
        whole = template(objects, "reno").read_bytes()
        file.write_bytes(whole[: len(whole) // 2])
    elif kind == "no BTF":
        return compiled(objects, "no_btf", NO_BTF, "-g0")
    elif kind == "no struct_ops":
        return compiled(objects, "no_struct_ops", NO_STRUCT_OPS)
    elif kind == "another kind":
        return compiled(objects, "another_kind", OTHER_KIND)
    elif kind == "pinned":
        return changed(objects, "pinned", ("char LICENSE[]", PINNED))
    elif kind == "no name":
        return changed(objects, "no_name", ('\t.name = "rfc5681_reno",\n', ""))
    elif kind == "bad name":
        return changed(objects, "bad_name", ("rfc5681_reno", "two words"))
    else:
        where = source.index('SEC(".struct_ops.link")')
        again = source[where:].replace("ops reno", "ops other").replace("rfc5681_reno", "second")
        return compiled(objects, "several", source + again)
    return file


def _refused(objects: Path) -> Path:
    """Compile a Reno that writes a member that a congestion control may not write."""
    written = "state_of(tp)->counted = 0;"
    return changed(objects, "refused", (written, f"tp->max_packets_out = 1;\n\t{written}"))


@needs_bpf
@needs_clang
def test_what_the_verifier_refuses_is_judged_by_no_run(
    airpath_command: Command, objects: Path, tmp_path: Path
) -> None:
    before = maps()
    file = _refused(objects)
    done = airpath_command("judge", "cubic", str(file), "--out", "judged")
    assert done.returncode == 1, done.stderr
    first, begin, *log = said(done).splitlines()
    assert first.startswith(f"error: congestion control: {file}: the verifier refused ")
    assert begin.startswith("the verifier's log ends with, of ")
    assert log
    assert list(tmp_path.iterdir()) == []
    assert maps() <= before


def test_what_the_host_lacks_is_judged_by_no_run(airpath_command: Command, tmp_path: Path) -> None:
    done = airpath_command("judge", "no_such_thing", "--out", "judged")
    assert done.returncode == 2, done.stderr
    assert "this host has no `no_such_thing`; it has " in said(done)
    assert list(tmp_path.iterdir()) == []


@needs_bpf
@needs_clang
def test_a_window_that_stays_shut_is_one_error(
    airpath_command: Command, objects: Path, wire: Path
) -> None:
    before = maps()
    limited = "\tif (!cwnd_limited(tp))\n"
    shut = f"\ttp->snd_cwnd = 0;\n\tif (tp)\n\t\treturn;\n{limited}"
    file = changed(objects, "shut", (limited, shut), ("rfc5681_reno", "shut"))
    words = ("--flows", "--congestion", f"download={file}", "--out", "run")
    done = airpath_command("emulate", str(wire), *words)
    assert done.returncode == 1, done.stderr
    told = "error: the congestion control of download set cwnd to 0, so that nothing could leave"
    assert said(done).splitlines()[0] == told
    assert not (wire.parent / "run").exists()
    assert maps() <= before


@needs_bpf
@needs_clang
def test_what_the_verifier_refuses_is_shown_as_it_is(
    airpath_command: Command, objects: Path, wire: Path
) -> None:
    before = maps()
    file = _refused(objects)
    done = airpath_command(
        "emulate", str(wire), "--flows", "--congestion", str(file), "--out", "failed"
    )
    assert done.returncode == 1, done.stderr
    first, *rest = said(done).splitlines()
    assert f"{file}: the verifier refused `reno_ssthresh`: " in first
    logs = list(wire.parent.rglob("verifier.log"))
    assert len(logs) == 1
    log = logs[0].read_text().rstrip("\n").splitlines()
    # The whole log is in the file, and its end on standard error.
    begin = next(index for index, line in enumerate(rest) if line.startswith("the verifier's log"))
    shown = [line.removeprefix("  ") for line in rest[begin + 1 :]]
    end = log[-12:]
    assert shown[: len(end)] == end
    reason = first.rpartition("`reno_ssthresh`: ")[2]
    assert reason in log
    assert maps() <= before
    assert "rfc5681_reno" not in registered()


@needs_bpf
def test_a_gateway_has_none(airpath_command: Command, wire: Path) -> None:
    done = airpath_command("emulate", str(wire), "--gateway", "a:b", "--congestion", "reno")
    assert done.returncode == 2
    assert "--congestion cannot be used with --gateway" in said(done)
