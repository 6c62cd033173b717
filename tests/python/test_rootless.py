"""Packet sockets instead of TUN, and emulation by an ordinary user. Most of it needs root, to
become somebody else."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shlex
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import conftest
from airpath.emulation import rootless
from airpath.emulation.machine import Machine
from airpath.errors import AirpathError
from conftest import PATIENCE_S, UNEXPLAINED, Command, command_environment, until
from emulated import (
    DELAYS,
    iperf,
    needs_root,
    networks,
    ones_complement,
    pcapng,
    processes,
)

WIRE = DELAYS

NOBODY = 65534
TUN = Path("/dev/net/tun")
PACKET = ("--set", "emulation.io=packet")
SETPRIV = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")


def _missing() -> str | None:
    if shutil.which("setpriv") is None:
        return "apt-get install util-linux: setpriv is missing"
    done = subprocess.run(
        [*SETPRIV, "unshare", "-Urn", "true"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        return f"an ordinary user may not make user namespaces here: {done.stderr.strip()}"
    readable = [*SETPRIV, sys.executable, "-c", "import airpath"]
    if subprocess.run(readable, capture_output=True, check=False).returncode != 0:
        return f"{sys.executable} cannot be run by an ordinary user"
    return None


@needs_root
@pytest.mark.parametrize("version", ["-4", "-6"])
def test_a_ping_through_packet_sockets(airpath_command: Command, wire: Path, version: str) -> None:
    done = airpath_command(
        *("emulate", *UNEXPLAINED, str(wire), "--json", *PACKET, "--"),
        *("ping", version, "-c", "20", "-i", "0.02", "server"),
    )
    assert done.returncode in (0, 3), done.stderr
    assert 25.0 <= float(done.stderr.split(" = ")[1].split("/")[0]) < 26.0
    emulation = json.loads(done.stdout)["emulation"]
    assert emulation["io"] == "packet"
    for counts in emulation["directions"].values():
        # Each once: what the wire's side of the pair receives goes no other way.
        assert counts["entered"] == counts["left"] == 20
        assert (counts["ignored"], counts["overrun"]) == (0, 0)


@needs_root
def test_a_file_arrives_as_it_was_through_packet_sockets(
    airpath_command: Command, wire: Path, tmp_path: Path
) -> None:
    """Large segments in, cut, put together, out: and every packet of the capture has its sum."""
    data = random.Random(2).randbytes(10_000_000)
    (tmp_path / "data").write_bytes(data)
    server = f"exec {sys.executable} -m http.server --directory {tmp_path} 8000"
    out = tmp_path / "run"
    done = airpath_command(
        *("emulate", *UNEXPLAINED, str(wire), "--json", *PACKET, "--capture", "--out", str(out)),
        *("--server", server, "--"),
        *("curl", "-sS", "-o", str(tmp_path / "copy"), "http://server:8000/data"),
    )
    assert done.returncode in (0, 3), done.stderr
    copied = hashlib.sha256((tmp_path / "copy").read_bytes())
    assert copied.digest() == hashlib.sha256(data).digest()
    down = json.loads(done.stdout)["emulation"]["directions"]["down"]
    assert down["writes"] < down["left"] / 2, "segments that leave together are written together"
    _, packets = pcapng(out / "capture.pcapng")
    for _, _, packet in packets[:2000]:
        addresses = packet[12:20] if packet[0] >> 4 == 4 else packet[8:40]
        header = 20 if packet[0] >> 4 == 4 else 40
        pseudo = addresses + bytes([0, 6]) + (len(packet) - header).to_bytes(2, "big")
        assert len(packet) <= 1500
        assert ones_complement(pseudo + packet[header:]) == 0xFFFF


@needs_root
@pytest.mark.parametrize("io", ["tun", "packet"])
def test_datagrams_sent_as_one_arrive_one_by_one(
    airpath_command: Command, tmp_path: Path, io: str
) -> None:
    """UDP_SEGMENT (103, udp(7)): ten datagrams with one call, the last one shorter."""
    receive = (
        "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
        "s.bind(('', 4000)); s.settimeout(5); print(*(len(s.recv(9999)) for _ in range(10)))"
    )
    send = (
        "import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
        "s.setsockopt(socket.SOL_UDP, 103, 1000); time.sleep(0.5); "
        "s.sendto(bytes(9500), ('server', 4000)); time.sleep(0.5)"
    )
    text = WIRE
    for name, at, code in (("receive", "server", receive), ("send", "ue", send)):
        line = json.dumps(f"exec {sys.executable} -c {shlex.quote(code)}")
        text += f'[[program]]\nname = "{name}"\nat = "{at}"\ncommand = {line}\n'
    (tmp_path / "s.toml").write_text(text)
    out = str(tmp_path / "run")
    done = airpath_command(
        "emulate",
        *UNEXPLAINED,
        str(tmp_path / "s.toml"),
        "--set",
        f"emulation.io={io}",
        "--out",
        out,
    )
    assert done.returncode in (0, 3), done.stderr
    sizes = (tmp_path / "run/programs/receive.stdout").read_text().split()
    assert sizes == ["1000"] * 9 + ["500"]


@pytest.fixture
def nobody(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Run airpath as an ordinary user in a directory of its own."""
    if os.geteuid() != 0:
        pytest.skip("root is needed to become an ordinary user")
    if (reason := _missing()) is not None:
        pytest.skip(reason)
    place = tmp_path_factory.mktemp("nobody")
    for path in (place, *place.parents[:2]):
        path.chmod(0o755)
    os.chown(place, NOBODY, NOBODY)

    def start(
        *arguments: str, before: tuple[str, ...] = (), words: tuple[str, ...] = SETPRIV
    ) -> subprocess.Popen[str]:
        return conftest.start(
            [*before, *words, sys.executable, "-m", "airpath", *arguments],
            cwd=place,
            env={**command_environment(), "HOME": str(place)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


@pytest.mark.real_clock
@pytest.mark.parametrize("io", ["tun", "packet"])
def test_an_ordinary_user(nobody: Callable[..., Any], io: str) -> None:
    """Ping and iperf3; what was not allowed is said, and how late it was."""
    running = nobody(
        *("emulate", *UNEXPLAINED, "lte-20", "--json", "--set", f"emulation.io={io}", "--server"),
        *("exec iperf3 -s", "--", "sh", "-c"),
        "ping -q -c 3 -i 0.1 server && iperf3 -c server -t 1 -R -J && ip netns exec server id -u",
    )
    out, said = running.communicate(timeout=PATIENCE_S)
    assert said.startswith("without root: ")
    if io == "tun" and not TUN.stat().st_mode & stat.S_IWOTH:
        assert running.returncode == 1
        assert "Permission denied" in said
        assert 'emulation.io = "packet"' in said
        pytest.skip(f"an ordinary user may not open {TUN}: chmod 666 {TUN}; refused, as it should")
    assert running.returncode in (0, 3), said
    assert "3 received" in said
    assert iperf(said[said.index("rtt min") :])["end"]["sum_received"]["bits_per_second"] > 5e6
    emulation = json.loads(out)["emulation"]
    assert (emulation["io"], emulation["real_time"]) == (io, False)
    assert emulation["limits"][:2] == [rootless.LIMITS, rootless.NO_PRIORITY]
    assert any("/dev/cpu_dma_latency" in limit for limit in emulation["limits"])
    assert not emulation["processors_awake"]
    assert emulation["directions"]["down"]["lateness_us"]["p99"] > 0
    assert (running.returncode == 0) == emulation["valid"]


@pytest.mark.real_clock
def test_where_run_cannot_be_written(nobody: Callable[..., Any]) -> None:
    """Without /run/netns there is another /run inside, and names all the same."""
    hidden = ("unshare", "-m", "sh", "-c", 'mount -t tmpfs none /run; exec "$@"', "sh")
    running = nobody(
        *("emulate", "lte-20", "--", "ip", "netns", "exec", "server", "cat", "/etc/hosts"),
        before=hidden,
    )
    out, said = running.communicate(timeout=PATIENCE_S)
    assert running.returncode in (0, 3), said
    assert "10.77.0.1 server" in out


@pytest.mark.real_clock
def test_nothing_is_left_of_an_ordinary_users_run(nobody: Callable[..., Any]) -> None:
    mark = f"airpath-mark-{os.getpid()}-nobody"
    before = networks()
    for delay in (0.4, 1.2):
        running = nobody(
            *("emulate", "lte-20", *PACKET, "--server", f": {mark}; exec iperf3 -s"),
            *("--", "sh", "-c", f": {mark}; setsid sleep 1003 & wait"),
        )
        time.sleep(delay)
        running.kill()
        running.communicate(timeout=PATIENCE_S)
    assert until(lambda: not processes(mark)), processes(mark)
    assert until(lambda: networks() <= before)


def test_where_user_namespaces_are_forbidden(nobody: Callable[..., Any]) -> None:
    """The kernel's own limit, set to 0 inside a user namespace, for somebody without rights."""
    limit = "echo 0 > /proc/sys/user/max_user_namespaces"
    running = nobody(
        *("emulate", "lte-20", "--", "true"),
        before=("unshare", "-Ur", "sh", "-c", f'{limit}; exec "$@"', "sh"),
        words=("setpriv", "--bounding-set=-all", "--inh-caps=-all"),
    )
    _, said = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 1
    assert "user.max_user_namespaces is 0" in said
    assert "sudo sysctl user.max_user_namespaces=15000" in said


@pytest.mark.parametrize(
    ("sysctl", "value", "why", "remedy"),
    [
        ("user/max_user_namespaces", "0", "max_user_namespaces is 0", "=15000"),
        ("kernel/unprivileged_userns_clone", "0", "clone is 0", "unprivileged_userns_clone=1"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "AppArmor", "apparmor_parser -r"),
        ("kernel/other", "1", "Operation not permitted", "--privileged"),
    ],
)
def test_each_refusal_has_its_remedy(
    tmp_path: Path, sysctl: str, value: str, why: str, remedy: str
) -> None:
    file = tmp_path / "proc/sys" / sysctl
    file.parent.mkdir(parents=True)
    file.write_text(f"{value}\n")
    machine = Machine(tmp_path)
    said = rootless.refusal(machine, PermissionError(1, "Operation not permitted"))
    assert why in said[0]
    assert remedy in said[1]
    if "AppArmor" in why:
        assert f"profile airpath {Path(sys.executable).resolve()} flags=(unconfined)" in said[1]


def test_who_may_make_namespaces_goes_nowhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from airpath import _core

    def refuse() -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(_core, "enter_user_namespace", refuse)
    status = tmp_path / "proc/self/status"
    status.parent.mkdir(parents=True)
    status.write_text("Name:\tx\nCapEff:\t0000000000201000\n")
    assert not rootless.enter(Machine(tmp_path))
    status.write_text("Name:\tx\nCapEff:\t0000000000200000\n")
    with pytest.raises(AirpathError, match="emulation without root"):
        rootless.enter(Machine(tmp_path))
