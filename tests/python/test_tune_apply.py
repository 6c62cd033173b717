"""``airpath tune --apply`` and ``--undo``, in namespaces with a copy of /etc: nothing else changes.

The host's state is compared byte for byte before and after.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from conftest import command_environment
from emulated import skip_without

PRELUDE = r"""
import os, signal, subprocess, sys
from pathlib import Path
from airpath.errors import AirpathError
from airpath.tune import apply as applied
from airpath.tune import changes
from airpath.tune.apply import apply, undo
from airpath.tune.settings import Cubic, Route, Shaper, Sysctl

def sh(text):
    return subprocess.run(text, shell=True, check=True, capture_output=True, text=True).stdout

def state():
    files = {}
    for top in ("/etc", "/var/lib"):
        for file in sorted(Path(top).rglob("*")):
            mode = file.lstat().st_mode
            files[str(file)] = (mode, file.read_bytes() if file.is_file() else b"")
    for file in sorted(Path("/proc/sys/net/ipv4").glob("tcp_*")):
        # Lists of the whole machine: emulations that run beside this test load congestion controls.
        if file.name in ("tcp_available_congestion_control", "tcp_allowed_congestion_control"):
            continue
        try:
            files[str(file)] = file.read_bytes()
        except OSError:
            pass
    files["cubic"] = Path("/sys/module/tcp_cubic/parameters/hystart").read_bytes()
    for command in ("ip route show", "ip -6 route show", "ip link", "tc qdisc show"):
        files[command] = sh(command)
    return files

def differs(one, other):
    return sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key))

SETTINGS = [
    Sysctl("ue", "net.ipv4.tcp_rmem", "4096 131072 782336"),
    Sysctl("ue", "net.ipv4.tcp_slow_start_after_idle", "0"),
    Sysctl("ue", "net.ipv4.tcp_congestion_control", "reno"),
    Cubic("ue", "hystart", "0"),
    Route("ue", "initcwnd", 20),
    Route("ue", "advmss", 1300),
]
"""

INSIDE = r"""
set -e
mount --bind "$1/etc" /etc
mount -t tmpfs none /var/lib
mount --bind "$1/hystart" /sys/module/tcp_cubic/parameters/hystart
echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6
echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6
ip link set lo up
ip link add modem type veth peer name far
ip address add 10.9.0.1/24 dev modem
ip link set modem up
ip link set far up
# The kernel reports changes of links once a second.
until [ "$(ip -o link | grep -c 'state UP')" = 2 ]; do sleep 0.05; done
ip route add default via 10.9.0.2 dev modem proto static metric 100
shift
exec "$@"
"""

pytestmark = skip_without("ip")


def inside(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a network of its own, with copies of what it may change."""
    for name in ("etc/sysctl.d", "etc/tmpfiles.d"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "etc/sysctl.d/10-own.conf").write_text("net.ipv4.tcp_ecn = 1\n")
    (folder / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (folder / "hystart").write_text("1\n")
    return subprocess.run(
        ["unshare", "--net", "--mount", "sh", "-c", INSIDE, "sh", str(folder), *words],
        capture_output=True, text=True, check=False, env=command_environment(), timeout=120,
        cwd=folder,
    )  # fmt: skip


def python(folder: Path, text: str) -> str:
    """Run a Python program there; return what it prints."""
    done = inside(folder, sys.executable, "-c", f"{PRELUDE}\n{text}")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_undo_restores_the_host_byte_for_byte(tmp_path: Path) -> None:
    said = python(
        tmp_path,
        """
before = state()
apply(SETTINGS)
for key in differs(before, state()):
    print(key)
print(Path("/etc/sysctl.d/90-airpath.conf").read_text())
print(sh("ip route show default"))
undo()
assert differs(before, state()) == [], differs(before, state())
assert undo() == []
""",
    )
    for changed in (
        "/etc/sysctl.d/90-airpath.conf", "/etc/tmpfiles.d/90-airpath.conf", "ip route show",
        "/proc/sys/net/ipv4/tcp_rmem", "/proc/sys/net/ipv4/tcp_slow_start_after_idle", "cubic",
        "/proc/sys/net/ipv4/tcp_congestion_control", "/var/lib/airpath/tune.json",
        "net.ipv4.tcp_rmem = 4096 131072 782336",
    ):  # fmt: skip
        assert f"{changed}\n" in said
    assert "metric 100 advmss 1300 initcwnd 20" in said


def test_whatever_moment_an_apply_is_killed_at_it_can_be_undone(tmp_path: Path) -> None:
    python(
        tmp_path,
        """
before = state()
for made in range(9):
    child = os.fork()
    if child == 0:
        left = [made]
        def kill_after(make):
            def inner(self, machine):
                if left[0] == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                left[0] -= 1
                make(self, machine)
            return inner
        for kind in (changes.Value, changes.NewFile, changes.DefaultRoute):
            kind.make = kill_after(kind.make)
        apply(SETTINGS)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) == (made < 7), (made, status)
    try:
        apply(SETTINGS)
    except AirpathError as error:
        assert "airpath tune --undo" in str(error), (made, error)
    else:
        raise AssertionError("a second apply was not refused")
    undo()
    assert differs(before, state()) == [], (made, differs(before, state()))
# Before it could write its record.
Path("/var/lib/airpath").mkdir()
Path("/var/lib/airpath/tune.json").write_text("")
undo()
assert differs(before, state()) == []
""",
    )


def test_what_somebody_else_changed_is_not_overwritten(tmp_path: Path) -> None:
    python(
        tmp_path,
        """
before = state()
apply(SETTINGS)
rmem = Path("/proc/sys/net/ipv4/tcp_rmem")
rmem.write_text("4096 65536 1048576")
changed = state()
try:
    undo()
except AirpathError as error:
    said = str(error)
assert "/proc/sys/net/ipv4/tcp_rmem was changed since: 4096 65536 1048576" in said, said
assert "--undo --force" in said
assert differs(changed, state()) == []
undo(force=True)
assert differs(before, state()) == []
Path("/etc/sysctl.d/90-airpath.conf").write_text("net.ipv4.tcp_sack = 0")
before = state()
try:
    apply(SETTINGS)
except AirpathError as error:
    said = str(error)
assert said.startswith("/etc/sysctl.d/90-airpath.conf"), said
assert differs(before, state()) == []
""",
    )


def test_a_change_that_fails_undoes_those_before_it(tmp_path: Path) -> None:
    python(
        tmp_path,
        """
before = state()
for bad in (
    [Sysctl("ue", "net.ipv4.tcp_congestion_control", "none-such")],
    [Sysctl("ue", "net.ipv4.tcp_none_such", "1")],
):
    try:
        apply([*SETTINGS[:2], *bad])
    except AirpathError as error:
        assert "none" in str(error), error
    else:
        raise AssertionError(bad)
    assert differs(before, state()) == []
""",
    )


def test_a_shaper_is_made_whole_or_not_at_all(tmp_path: Path) -> None:
    """Kernels without FQ-CoDel refuse a part of it."""
    python(
        tmp_path,
        """
before = state()
for direction in ("up", "down"):
    shaper = Shaper("ue", direction, 1.9, 3028, 9.6, 100)
    try:
        apply([*SETTINGS[:1], shaper])
    except AirpathError as error:
        assert "tc " in str(error), error
    else:
        assert "fq_codel 10:" in sh("tc qdisc show")
        undo()
    assert differs(before, state()) == [], differs(before, state())
sh("tc qdisc add dev modem root handle 5: pfifo limit 10")
before = state()
try:
    apply([Shaper("ue", "up", 1.9, 3028, 9.6, 100)])
except AirpathError as error:
    assert "pfifo 5:" in str(error), error
assert differs(before, state()) == [], differs(before, state())
""",
    )


def test_the_command_applies_and_restores(tmp_path: Path) -> None:
    airpath = f"{sys.executable} -m airpath"
    script = (
        f"{airpath} tune small-window --seeds 2 --end ue --apply --json; "
        f"cat /proc/sys/net/ipv4/tcp_rmem >&2; {airpath} tune --undo; {airpath} tune --undo"
    )
    done = inside(tmp_path, "sh", "-ec", script)
    assert done.returncode == 0, done.stderr
    document, _, rest = done.stdout.partition("\n}\n")
    (line,) = json.loads(f"{document}}}")["together"]["lines"]
    assert line["end"] == "ue"
    value = line["text"][0].partition(" = ")[2]
    assert value in done.stderr.replace("\t", " ")
    assert rest.splitlines()[0] == "restored: /proc/sys/net/ipv4/tcp_rmem"
    assert rest.splitlines()[-1] == "there is nothing to undo"


def test_settings_that_do_not_help_the_real_path_are_withdrawn(tmp_path: Path) -> None:
    python(
        tmp_path,
        """
from airpath.tune.verify import Seen, verify

idle = Path("/proc/sys/net/ipv4/tcp_slow_start_after_idle")
SETTINGS = [Sysctl("ue", "net.ipv4.tcp_slow_start_after_idle", "0")]
before = state()

def path(rate, trip, errors=()):
    measured = []
    def measure():
        on = idle.read_text() == "0\\n"
        measured.append(on)
        if len(measured) in errors:
            raise AirpathError("the server is gone")
        drift = 1 + 0.01 * len(measured)
        return Seen(drift * (rate if on else 10), drift * (trip if on else 100))
    return measure, measured

for rate, trip, kept in ((10, 100, False), (13, 100, True), (10, 50, True), (8, 50, False)):
    measure, measured = path(rate, trip)
    verified = verify(SETTINGS, None, measure)
    assert verified.kept == kept, (rate, trip, verified)
    assert len(measured) == 8 and sum(measured) == 4
    assert all(sum(measured[at : at + 2]) == 1 for at in range(0, 8, 2)), measured
    if kept:
        assert idle.read_text() == "0\\n"
        undo()
    assert differs(before, state()) == [], differs(before, state())
for at in range(1, 9):
    measure, _ = path(13, 100, errors=(at,))
    try:
        verify(SETTINGS, None, measure)
    except AirpathError as error:
        assert "gone" in str(error)
    assert differs(before, state()) == [], differs(before, state())
""",
    )
