"""As whom programs run, and with which rights. Needs root, to be somebody else."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from airpath.emulation import identity
from airpath.emulation.machine import Machine
from airpath.errors import InputError
from conftest import PATIENCE_S, Command, command_environment
from emulated import DELAYS, skip_without

WIRE = DELAYS

NOBODY = pwd.getpwnam("nobody")
NET_RAW = 1 << 13
GIVES_UP = NET_RAW | 1 << 6 | 1 << 7
"""CAP_NET_RAW, CAP_SETGID, CAP_SETUID."""


def _emulate(scenario: Path, *words: str, sudo: bool = False) -> subprocess.CompletedProcess[str]:
    environment = command_environment()
    environment.pop("SUDO_UID", None)
    if sudo:
        environment.update(SUDO_UID=str(NOBODY.pw_uid), SUDO_GID=str(NOBODY.pw_gid))
    return subprocess.run(
        [sys.executable, "-m", "airpath", "emulate", str(scenario), *words],
        cwd=scenario.parent,
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


CASES = {
    "root": ((), False, 0),
    "sudo": ((), True, NOBODY.pw_uid),
    "user": (("--user", "nobody"), False, NOBODY.pw_uid),
    "number": (("--user", str(NOBODY.pw_uid)), False, NOBODY.pw_uid),
    "all": (("--user", "root"), True, 0),
}


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> str:
    """A way to say as whom programs run."""
    name: str = request.param
    return name


@skip_without("ip")
def test_a_program_has_no_more_rights_than_it_needs(wire: Path, case: str) -> None:
    words, sudo, uid = CASES[case]
    script = "cat /proc/self/status; echo HOME=$HOME USER=$USER SHELL=$SHELL; id"
    done = _emulate(wire, *words, "--", "sh", "-c", script, sudo=sudo)
    assert done.returncode in (0, 3), done.stderr
    status = dict(line.split(":\t") for line in done.stdout.splitlines() if ":\t" in line)
    assert {int(number) for number in status["Uid"].split()} == {uid}
    sets = {name: int(status[name], 16) for name in ("CapPrm", "CapEff", "CapBnd", "CapAmb")}
    if case == "all":
        assert sets["CapEff"] & ~GIVES_UP
        assert sets["CapBnd"] & ~GIVES_UP
    elif uid == 0:
        assert sets == dict.fromkeys(sets, GIVES_UP) | {"CapAmb": NET_RAW}
    else:
        assert sets == dict.fromkeys(sets, NET_RAW)
        assert f"HOME={NOBODY.pw_dir} USER=nobody SHELL={NOBODY.pw_shell}" in done.stdout
        groups = os.getgrouplist("nobody", NOBODY.pw_gid)
        assert [int(number) for number in status["Groups"].split()] == groups
        assert {int(number) for number in status["Gid"].split()} == {NOBODY.pw_gid}


@skip_without("ip", "ping", "iperf3", "tcpdump")
def test_ping_iperf3_and_tcpdump_work(wire: Path, case: str) -> None:
    """Tcpdump as root becomes somebody else by itself, and insists on it."""
    words, sudo, _ = CASES[case]
    script = (
        "timeout 20 tcpdump -l -n -c 2 -i air0 icmp & sleep 1; "
        "ping -4 -q -c 3 -i 0.2 server; wait; iperf3 -c server -n 200K"
    )
    server = ("--server", "exec iperf3 -s")
    done = _emulate(wire, *words, *server, "--", "sh", "-c", script, sudo=sudo)
    assert done.returncode in (0, 3), done.stderr
    assert "3 received" in done.stdout
    assert done.stdout.count("ICMP echo re") == 2
    assert "iperf Done." in done.stdout


@skip_without("ip", "curl")
def test_a_server_of_an_ordinary_user_may_have_every_port(wire: Path) -> None:
    server = ("--server", f"cd /; exec {sys.executable} -m http.server 80")
    done = _emulate(
        wire, *server, "--", "curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "http://server/"
    )
    assert done.returncode in (0, 3), done.stderr
    assert done.stdout.endswith("200")


@skip_without("ip")
def test_what_needs_more_rights_is_refused_without_them(wire: Path) -> None:
    words = ("--", "ip", "netns", "exec", "server", "true")
    refused = _emulate(wire, *words)
    assert refused.returncode not in (0, 3)
    assert "Operation not permitted" in refused.stderr
    assert _emulate(wire, "--user", "root", *words).returncode in (0, 3)


@skip_without("ip")
def test_programs_that_run_as_root_are_named_before(wire: Path) -> None:
    wire.write_text(DELAYS + '\n[[program]]\nname = "first"\ncommand = "echo started >&2"\n')
    line = "program first runs at ue as root, {}: echo started >&2"
    words = ("--", "sh", "-c", "echo began >&2; sleep 0.2")
    limited = _emulate(wire, *words).stderr
    assert limited.index(line.format("without its capabilities")) < limited.index("began")
    assert line.format("with all its rights") in _emulate(wire, "--user", "root", *words).stderr
    other = _emulate(wire, "--json", *words, sudo=True)
    assert "program first runs" not in other.stderr
    user = {"name": "nobody", "uid": NOBODY.pw_uid, "all_capabilities": False}
    assert json.loads(other.stdout)["emulation"]["user"] == user


@skip_without("ip")
def test_a_users_program_may_open_what_it_writes_to(wire: Path) -> None:
    wire.write_text(DELAYS + '\n[[program]]\nname = "a"\ncommand = "id -un > /dev/stdout"\n')
    out = wire.parent / "run"
    done = _emulate(wire, "--user", "nobody", "--out", str(out))
    assert done.returncode in (0, 3), done.stderr
    assert (out / "programs/a.stdout").read_text() == "nobody\n"


@skip_without("ip")
def test_a_user_that_is_not_there(airpath_command: Command, wire: Path) -> None:
    done = airpath_command("emulate", str(wire), "--user", "no-such-user", "--", "true")
    assert done.returncode == 2
    assert "--user no-such-user: no such user" in done.stderr


def test_as_whom() -> None:
    sudo = {"SUDO_UID": str(NOBODY.pw_uid)}
    assert identity.of(None, environment=sudo, uid=0).become is not None
    assert identity.of("root", environment=sudo, uid=0).become is None
    for nobody_called in ({}, {"SUDO_UID": ""}, {"SUDO_UID": "0"}):
        root = identity.of(None, environment=nobody_called, uid=0)
        assert (root.uid, root.limited, root.become) == (0, True, None)
    with pytest.raises(InputError, match="SUDO_UID=4000000000: no such user"):
        identity.of(None, environment={"SUDO_UID": "4000000000"}, uid=0)


def test_in_a_user_namespace_of_one_user_everything_is_the_callers(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    uid_map = tmp_path / "proc/self/uid_map"
    for said, alone in (("0 1000 1", True), ("0 0 4294967295", False), ("0 100000 65536", False)):
        uid_map.write_text(f"  {said}\n")
        assert Machine(tmp_path).has_one_user() == alone
    assert not identity.of(None, uid=0, is_alone=True).limited
    with pytest.raises(InputError, match="run airpath as root"):
        identity.of("nobody", uid=0, is_alone=True)
