"""``airpath emulate --gateway``: the model between two interfaces of a host.

Each host is a network namespace, and each network card one end of a veth pair, so nothing of the
machine on which the tests run is touched.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from airpath.emulation import doctor, host_changes
from airpath.emulation.gateway import Gateway, check, sentences
from airpath.emulation.machine import Machine
from airpath.errors import AirpathError, InputError
from conftest import UNEXPLAINED, run_command, until
from emulated import DELAYS, busiest, iperf, needs, skip_without, stages
from hosts import INSIDE, OUTSIDE, Host, pair, set_offload, state, three
from real_clock import on_time

BETWEEN = ("--gateway", f"{INSIDE}:{OUTSIDE}")
JOINING = {"rx_gro_list": True, "rx_udp_gro_forwarding": True}
"""Offloads that veth has and that a gateway has to switch off."""

SEED = int(os.environ.get("PROPTEST_RNG_SEED", "43")) % 2**32
"""Draws the moments at which gateways are killed."""

Hosts = tuple[Host, Host, Host]


@pytest.fixture
def hosts() -> Iterator[Hosts]:
    """A device, the gateway's host and a server."""
    with three() as made:
        yield made


@pytest.fixture
def wire(tmp_path: Path) -> Path:
    """A scenario of delays: 15 ms down, 10 ms up."""
    file = tmp_path / "wire.toml"
    file.write_text(DELAYS)
    return file


class Running:
    """A running gateway."""

    def __init__(self, host: Host, directory: Path, *arguments: str) -> None:
        self._said: list[str] = []
        words = ("emulate", *UNEXPLAINED, "--json", *BETWEEN, *arguments)
        self._process = host.start_airpath(
            *words, cwd=directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self._out = ""
        streams = (self._process.stdout, self._process.stderr)
        self._readers = [threading.Thread(target=self._read, args=(stream,)) for stream in streams]
        for reader in self._readers:
            reader.start()

    def _read(self, stream: Any) -> None:
        for line in stream:
            if stream is self._process.stderr:
                self._said.append(line)
            else:
                self._out += line

    def said(self) -> str:
        """Return standard error so far."""
        return "".join(self._said)

    def end(self, number: int = signal.SIGINT) -> dict[str, Any]:
        """End the gateway; return its document."""
        self.send(number)
        code = self.wait()
        assert code in (0, 3), self.said()
        document: dict[str, Any] = json.loads(self._out)
        return document

    def wait(self) -> int:
        """Wait until the gateway ends; return its exit code."""
        code = self._process.wait(timeout=60)
        for reader in self._readers:
            reader.join()
        return code

    def poll(self) -> int | None:
        """Return the exit code; None while the gateway runs."""
        code: int | None = self._process.poll()
        return code

    def send(self, number: int) -> None:
        """Send a signal to the gateway."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """Kill the gateway, and wait until it is gone."""
        self.send(signal.SIGKILL)
        self.wait()


def forwards(hosts: Hosts, running: Running) -> None:
    """Wait until the gateway forwards: ARP is answered through it."""
    device, _, server = hosts
    for host, last in ((device, 2), (server, 1)):
        host.ip("address", "replace", f"192.168.50.{last}/24", "dev", "eth0")
        host.ip("-6", "address", "replace", f"fd50::{last}/64", "dev", "eth0", "nodad")

    def answered() -> bool:
        assert running.poll() is None, running.said()
        said = device.run("ping", "-c", "1", "-W", "1", "192.168.50.1", check=False)
        return ", 0% packet loss" in said

    assert until(answered), running.said()


@contextmanager
def gateway(hosts: Hosts, directory: Path, *arguments: str) -> Iterator[Running]:
    """Run a gateway between the device and the server."""
    running = Running(hosts[1], directory, *arguments)
    forwards(hosts, running)
    yield running
    assert running.poll() is not None, "the test ends it"


def round_trips(host: Host, *words: str) -> list[float]:
    """Return the round-trip times of pings, in milliseconds."""
    said = host.run("ping", "-i", "0.02", *words)
    return [float(match) for match in re.findall(r"time=([\d.]+)", said)]


@needs("ip", "ping", "nft")
@pytest.mark.parametrize("address", ["192.168.50.1", "fd50::1"])
def test_a_ping_takes_the_time_of_the_path(
    hosts: Hosts, wire: Path, tmp_path: Path, address: str
) -> None:
    before = state(hosts[1])
    with gateway(hosts, tmp_path, str(wire)) as running:
        trips = round_trips(hosts[0], "-c", "20", address)
        document = on_time(running.end())
    assert len(trips) == 20
    # 15 ms down, 10 ms up, and the time of the machine.
    assert all(25.0 <= trip < 26.5 for trip in sorted(trips)[1:-1]), trips
    emulation = document["emulation"]
    assert emulation["valid"]
    for counts in emulation["directions"].values():
        assert counts["entered"] == counts["left"] >= 20
        assert (counts["refused"], counts["overrun"], counts["oversized"]) == (0, 0, 0)
    # The device asks everybody who has the address; the server answers the device.
    beside = emulation["gateway"]["beside"]
    assert beside["up"]["group"] > 0
    assert beside["down"]["control"] > 0
    stations = {one["mac"]: one["ue"] for one in emulation["gateway"]["stations"]}
    assert stations == {hosts[0].mac("eth0"): "ue"}
    assert state(hosts[1]) == before


@needs("ip", "ping", "iperf3")
def test_it_ends_as_asked_and_keeps_its_results(hosts: Hosts, wire: Path, tmp_path: Path) -> None:
    for number, ending in enumerate([signal.SIGINT, signal.SIGTERM, signal.SIGHUP]):
        with gateway(hosts, tmp_path, str(wire), "--out", f"out{number}") as running:
            running.end(ending)
        assert (tmp_path / f"out{number}" / "summary.json").exists()
    done = hosts[1].airpath(
        "emulate", *UNEXPLAINED, str(wire), "--json", "--duration", "0.5", *BETWEEN, cwd=tmp_path
    )
    assert done.returncode in (0, 3), done.stderr
    assert 0.5 <= json.loads(done.stdout)["run"]["duration_s"] < 5.0


CLOSE = 0.1
"""Single transfers of some seconds differ by several per cent; a mean of many is another matter."""

DOWNLOAD = ("-c", "192.168.50.1", "-C", "cubic", "-R", "-J")


def goodput_mbps(said: str) -> float:
    """Return the goodput that iperf3's receiver reports."""
    return float(iperf(said)["end"]["sum_received"]["bits_per_second"]) / 1e6


def served(server: Host) -> None:
    """Start iperf3 for one test."""
    server.start("iperf3", "-s", "-1", stdout=subprocess.DEVNULL)
    assert until(lambda: ":5201" in server.run("ss", "-Hltn", "sport = :5201"))


def compared(hosts: Hosts, directory: Path, *scenario: str, seconds: int = 4) -> list[float]:
    """Return a download's goodput in an emulation and through a gateway, without slow start."""
    device, host, server = hosts
    length = ("-t", str(seconds), "-O", "2")
    words = ("emulate", *UNEXPLAINED, *scenario, "--json", "--out", "inside")
    client = ("iperf3", "-4", "-c", "server", *DOWNLOAD[2:], *length)
    done = host.airpath(
        *words, "--user", "root", "--server", "iperf3 -s", "--", *client, cwd=directory
    )
    assert done.returncode in (0, 3), done.stderr
    on_time(json.loads(done.stdout))
    rates = [goodput_mbps(done.stderr)]
    # Real hosts get the TCP settings of the emulated ends.
    provenance = json.loads((directory / "inside" / "provenance.json").read_text())
    for end, real in zip(provenance["emulation"]["ends"], (server, device), strict=True):
        for name, value in end["sysctls"].items():
            real.run("sh", "-c", f"echo '{value}' > /proc/sys/net/ipv4/{name}", check=False)
    with gateway(hosts, directory, *scenario) as running:
        served(server)
        rates.append(goodput_mbps(device.run("iperf3", *DOWNLOAD, *length)))
        on_time(running.end())
    return rates


@needs("ip", "ping", "iperf3", "ss")
def test_a_download_is_as_fast_as_inside_an_emulation(hosts: Hosts, tmp_path: Path) -> None:
    inside, through = compared(hosts, tmp_path, "nr-n78")
    assert through == pytest.approx(inside, rel=CLOSE)


@needs("ip", "ping", "iperf3", "ss")
def test_a_slow_cell_is_as_fast_as_inside_an_emulation(hosts: Hosts, tmp_path: Path) -> None:
    """A build without optimisation is in time for this one."""
    inside, through = compared(hosts, tmp_path, "nr-n78", "--set", "radio.channel.sinr_db=3")
    assert through == pytest.approx(inside, rel=CLOSE)


@needs("ip", "ping", "iperf3", "ss")
def test_a_file_arrives_as_it_was(hosts: Hosts, tmp_path: Path) -> None:
    """Large segments in, cut, through a queue that drops and marks, joined, and out again."""
    scenario = tmp_path / "path.toml"
    scenario.write_text(
        stages(5, 5, rate_mbps=100, queue_packets=200)
        + '[[flow]]\nkind = "bulk"\nprofile = "linux-6.18"\n'
    )
    device, _, server = hosts
    text = (
        "import hashlib, random, socket, sys\n"
        "data = random.Random(11).randbytes(20_000_000)\n"
        "sock = socket.create_server(('::', 8080), family=socket.AF_INET6, dualstack_ipv6=True)\n"
        "print('up', flush=True)\n"
        "for _ in range(2):\n"
        "    taken = sock.accept()[0]\n"
        "    taken.sendall(data)\n"
        "    taken.shutdown(socket.SHUT_WR)\n"
        "    taken.recv(1)\n"
    )
    fetch = (
        "import hashlib, socket, sys\n"
        "sock, hash = socket.create_connection((sys.argv[1], 8080)), hashlib.sha256()\n"
        "while data := sock.recv(1 << 20): hash.update(data)\n"
        "print(hash.hexdigest())\n"
    )
    expected = hashlib.sha256(random.Random(11).randbytes(20_000_000)).hexdigest()
    with gateway(hosts, tmp_path, str(scenario), "--capture", "--out", "out") as running:
        sending = server.start(sys.executable, "-c", text, stdout=subprocess.PIPE)
        assert sending.stdout is not None
        assert sending.stdout.readline() == b"up\n"
        for address in ("192.168.50.1", "fd50::1"):
            assert device.python(fetch, address).strip() == expected
        document = running.end()
    assert busiest(document)["bytes_delivered"] >= 20_000_000
    down = document["emulation"]["directions"]["down"]
    assert down["writes"] < down["left"], "segments that leave together are sent as one"
    assert (tmp_path / "out" / "capture.pcapng").stat().st_size > 40_000_000


DHCP = """
import random, socket, struct, sys
SERVES, NAME = sys.argv[1] == "server", b"eth0"
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
sock.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, NAME)
sock.bind(("", 67 if SERVES else 68))
sock.settimeout(20)

def message(op, xid, mac, kind, yours=b"\\0" * 4):
    # RFC 2131 2: header, magic cookie, option 53, end.
    head = struct.pack("!BBBBIHH4s4s4s4s", op, 1, 6, 0, xid, 0, 0x8000, b"", yours, b"", b"")
    head += mac.ljust(16, b"\\0") + bytes(192)
    return head + b"\\x63\\x82\\x53\\x63" + bytes([53, 1, kind, 255])

def read(data):
    return data[28:34], struct.unpack("!I", data[4:8])[0], data[16:20], data[242]

if SERVES:
    print("up", flush=True)
    for expected, answer in ((1, 2), (3, 5)):
        mac, xid, _, kind = read(sock.recv(2000))
        assert kind == expected, kind
        reply = message(2, xid, mac, answer, bytes([192, 168, 50, 77]))
        sock.sendto(reply, ("255.255.255.255", 68))
else:
    xid, mac = random.getrandbits(32), bytes.fromhex(open("/dev/stdin").read().replace(":", ""))
    for kind, expected in ((1, 2), (3, 5)):
        sock.sendto(message(1, xid, mac, kind), ("255.255.255.255", 67))
        data = sock.recv(2000)
        assert read(data)[1] == xid and read(data)[3] == expected
    print(socket.inet_ntoa(read(data)[2]))
"""
"""The part of DHCP that concerns a bridge: discover, offer, request, acknowledge, by broadcast."""

ADVERTISE = """
import socket, struct
sock = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
# RFC 4861 4.2, 4.6.2: a router for half an hour, and a prefix for addresses.
head = struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 1800, 0, 0)
prefix = struct.pack("!BBBBIII16s", 3, 4, 64, 0xC0, 3600, 3600, 0,
                     socket.inet_pton(socket.AF_INET6, "2001:db8:50::"))
sock.sendto(head + prefix, ("ff02::1", 0, 0, socket.if_nametoindex("eth0")))
"""


@needs("ip", "ping")
def test_dhcp_and_router_advertisements_pass(hosts: Hosts, tmp_path: Path) -> None:
    """They pass at once beside a path that takes a minute in each direction."""
    device, _, server = hosts
    scenario = tmp_path / "slow.toml"
    scenario.write_text(stages(60_000, 60_000) + '[[flow]]\nkind = "ping"\n')
    running = Running(hosts[1], tmp_path, str(scenario))
    assert until(lambda: "stay as they are" in running.said() or running.poll() is not None)
    server.ip("address", "add", "192.168.50.1/24", "dev", "eth0")
    answering = server.start(sys.executable, "-c", DHCP, "server", stdout=subprocess.PIPE)
    assert answering.stdout is not None
    assert answering.stdout.readline() == b"up\n"
    mac = device.mac("eth0")
    asking = device.words(sys.executable, "-c", DHCP, "device")

    def leased() -> bool:
        # Until the gateway forwards nobody answers.
        done = subprocess.run(
            asking, input=mac, capture_output=True, text=True, timeout=60, check=False
        )
        return done.stdout.strip() == "192.168.50.77"

    assert until(leased), running.said()

    def configured() -> bool:
        server.python(ADVERTISE)
        return any(address.startswith("2001:db8:50:") for address in device.addresses("eth0"))

    assert until(configured), running.said()
    beside = running.end()["emulation"]["gateway"]["beside"]
    assert beside["up"]["group"] >= 2
    assert beside["down"]["group"] >= 3
    assert not any(entry["refused"] for entry in beside.values())


TWO = """
[[path.down]]
stage = "delay"
delay_ms = 5
[[path.up]]
stage = "delay"
delay_ms = 5
[radio]
preset = "nr-n78"
[[radio.ue]]
name = "phone"
[[radio.ue]]
name = "camera"
[[flow]]
kind = "ping"
"""


TALK = """
import socket, time
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind(("", 4000))
for _ in range(10):
    sock.sendto(bytes(100), ("192.168.50.1", 4001))
    time.sleep(0.05)
"""


@needs("ip", "ping")
@pytest.mark.parametrize("by", ["mac", "address"])
def test_a_device_is_behind_its_own_ue(hosts: Hosts, tmp_path: Path, by: str) -> None:
    device, _, _ = hosts
    camera = Host()
    words = ("link", "add", "link", "eth0", "name", "eth1", "type", "macvlan", "mode", "bridge")
    device.ip(*words)
    device.ip("link", "set", "eth1", "netns", str(camera.process))
    camera.ip("address", "add", "192.168.50.3/24", "dev", "eth1")
    camera.ip("link", "set", "eth1", "up")
    scenario = tmp_path / "two.toml"
    scenario.write_text(TWO)
    its = camera.mac("eth1") if by == "mac" else "192.168.50.3"
    with gateway(hosts, tmp_path, str(scenario), "--gateway-ue", f"camera={its}") as running:
        for host in (device, camera):
            host.python(TALK)
        document = running.end()
    assert {flow["id"] for flow in document["flows"]} == {
        "udp phone/192.168.50.2:4000 192.168.50.1:4001",
        "udp camera/192.168.50.3:4000 192.168.50.1:4001",
    }
    assert document["emulation"]["gateway"]["devices"] == [{"ue": "camera", "device": its}]


@needs("ip", "ping")
def test_traffic_of_the_host_itself_goes_on(hosts: Hosts, wire: Path, tmp_path: Path) -> None:
    _, host, server = hosts
    host.ip("address", "add", "192.168.50.9/24", "dev", OUTSIDE)
    with gateway(hosts, tmp_path, str(wire)) as running:
        assert "has addresses of this host (192.168.50.9/24)" in running.said()
        assert max(round_trips(server, "-c", "5", "192.168.50.9")[1:]) < 10.0
        document = running.end()
    assert document["emulation"]["gateway"]["beside"]["down"]["for_host"] >= 5


TAGGED = """
import socket
sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
sock.bind(("eth0", 0))
# To a station that nobody knows; VLAN 10; an EtherType for experiments.
for _ in range(3):
    sock.send(bytes.fromhex("020000000099" "020000000077" "8100000a" "88b6") + bytes(60))
"""


@needs("ip", "ping")
def test_frames_with_a_vlan_tag_are_reported(hosts: Hosts, wire: Path, tmp_path: Path) -> None:
    with gateway(hosts, tmp_path, str(wire)) as running:
        hosts[0].python(TAGGED)
        document = running.end()
    assert document["emulation"]["gateway"]["beside"]["up"]["tagged"] == 3
    assert sentences(document["emulation"]["gateway"]) == [
        "up: 3 frames with a VLAN tag did not pass; name the interface of the VLAN, such as "
        f"{INSIDE}.10, instead of {INSIDE}"
    ]


@needs("ip")
def test_a_loop_ends_the_run(tmp_path: Path, wire: Path) -> None:
    """Both interfaces are connected to one bridge."""
    host, switch = Host(), Host()
    switch.ip("link", "add", "br0", "type", "bridge")
    switch.ip("link", "set", "br0", "up")
    for name in (INSIDE, OUTSIDE):
        pair(host, name, switch, name)
        switch.ip("link", "set", name, "master", "br0")
    set_offload(host, INSIDE, **JOINING)
    before = state(host)
    done = host.airpath("emulate", str(wire), *BETWEEN, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "both interfaces reach the same network" in done.stderr
    assert state(host) == before


def network_of(host: Host) -> int:
    """Return the inode of a host's network namespace."""
    return Path(f"/proc/{host.process}/ns/net").stat().st_ino


def records(host: Host) -> list[Path]:
    """Return the files that say what is changed at a host."""
    return list(Path("/run").glob(f"{host_changes.PREFIX}{network_of(host)}-*"))


def prepared(host: Host) -> dict[str, object]:
    """Give a host settings that a gateway could lose; return its state."""
    host.ip("address", "add", "10.9.8.7/24", "dev", OUTSIDE)
    host.ip("route", "add", "10.9.9.0/24", "via", "10.9.8.1")
    host.run("nft", "add table inet ours; add chain inet ours one")
    for interface in (INSIDE, OUTSIDE):
        set_offload(host, interface, **JOINING)
    return state(host)


def ended_at_random(
    directory: Path, turns: Sequence[Sequence[int]], undo: Callable[[], object]
) -> None:
    """End gateways at random moments; each turn ends one gateway per signal."""
    drawn = random.Random(SEED)
    with ExitStack() as stack:
        hosts = [stack.enter_context(three())[1] for _ in turns[0]]
        before = [prepared(host) for host in hosts]
        for turn, signals in enumerate(turns):
            running = [
                Running(host, directory, "nr-n78", "--out", f"{turn}-{number}")
                for number, host in enumerate(hosts)
            ]
            moments = [drawn.uniform(0.0, 1.5) for _ in hosts]
            passed = 0.0
            for moment, number in sorted(zip(moments, range(len(hosts)), strict=True)):
                time.sleep(moment - passed)
                passed = moment
                running[number].send(signals[number])
            for one in running:
                one.wait()
            undo()
            assert [state(host) for host in hosts] == before, (SEED, turn, moments)
            assert not any(records(host) for host in hosts)


@skip_without("ip", "nft")
def test_a_killed_gateway_is_undone(tmp_path: Path) -> None:
    """20 gateways are killed, four at a time; undoing twice is the same as undoing once."""
    ended_at_random(tmp_path, 5 * [4 * [signal.SIGKILL]], lambda: (doctor.undo(), doctor.undo()))


@skip_without("ip", "nft")
def test_a_gateway_that_is_asked_to_end_restores_the_host(tmp_path: Path) -> None:
    """Whatever it is doing at that moment."""
    ending = [signal.SIGINT, signal.SIGTERM, signal.SIGINT, signal.SIGTERM]
    ended_at_random(tmp_path, [ending], lambda: None)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_at_any_line_leaves_no_record(number: int, tmp_path: Path) -> None:
    """Of making the changes, of what happens meanwhile, and of undoing them."""
    (tmp_path / "run").mkdir()
    changes = [host_changes.Change(name, 1, ()) for name in (INSIDE, OUTSIDE)]
    ended, at = 1, 0
    while ended:
        at += 1
        ended = ended_at_line(at, number, changes, Machine(tmp_path))
        assert not list((tmp_path / "run").iterdir()), at
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, at
    assert at > 100, "signals were sent at all lines"


def ended_at_line(at: int, number: int, changes: Sequence[host_changes.Change], on: Machine) -> int:
    """Make and undo changes; send a signal before one of the lines. Return how often it ended."""
    lines, ended = 0, 0

    def trace(_frame: object, event: str, _argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        if event == "line" and lines == at:
            signal.raise_signal(number)
        return trace

    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    traced = sys.gettrace()
    try:
        sys.settrace(trace)
        with host_changes.made(changes, on):
            lines += 0
    except KeyboardInterrupt:
        ended += 1
    finally:
        sys.settrace(traced)
        assert signal.signal(signal.SIGTERM, before) is signal.default_int_handler, at
    return ended


@skip_without("ip", "nft")
def test_the_doctor_finds_what_was_left(hosts: Hosts, tmp_path: Path) -> None:
    host = hosts[1]
    before = prepared(host)
    running = Running(host, tmp_path, "nr-n78")
    assert until(lambda: state(host) != before), running.said()
    running.kill()
    after = state(host)
    assert {key for key in before if before[key] != after[key]} == {"offloads"}
    assert INSIDE in host.airpath("doctor", cwd=tmp_path).stdout
    # From wherever it is called.
    done = [run_command("doctor", "--undo", cwd=tmp_path) for _ in range(2)]
    assert [one.returncode for one in done] == [0, 0], done
    assert f"{INSIDE}: rx-gro-list, rx-udp-gro-forwarding on again" in done[0].stdout
    assert INSIDE not in done[1].stdout
    assert state(host) == before
    assert not records(host)


@skip_without("ip")
def test_the_next_run_undoes_a_killed_one(hosts: Hosts, wire: Path, tmp_path: Path) -> None:
    host = hosts[1]
    set_offload(host, INSIDE, **JOINING)
    before = state(host)
    running = Running(host, tmp_path, str(wire))
    assert until(lambda: state(host) != before), running.said()
    other = host.airpath("emulate", str(wire), *BETWEEN, "--duration", "1", cwd=tmp_path)
    assert other.returncode == 1
    assert f"{INSIDE} belongs to another gateway" in other.stderr
    assert "nothing to undo" in host.airpath("doctor", "--undo", cwd=tmp_path).stdout
    assert state(host) != before, "a gateway that runs is not undone"
    running.kill()
    words = ("emulate", *UNEXPLAINED, str(wire), *BETWEEN, "--duration", "0.2")
    done = host.airpath(*words, cwd=tmp_path)
    assert done.returncode in (0, 3), done.stderr
    assert f"undone: {INSIDE}: rx-gro-list, rx-udp-gro-forwarding on again" in done.stderr
    assert f"{INSIDE}: rx-gro-list is off during the run (now on)" in done.stderr
    assert state(host) == before


Prepare = Callable[[Host], object]


@skip_without("ip")
@pytest.mark.parametrize(
    ("arguments", "prepare", "said"),
    [
        (
            (f"{INSIDE}:nothing",),
            None,
            f"there is no interface `nothing`; the Ethernet interfaces of this host: {INSIDE}",
        ),
        ((f"{INSIDE}:{INSIDE}",), None, "these are the same interface"),
        ((INSIDE,), None, "write UE_IF:SERVER_IF"),
        (("a:b:c",), None, "write UE_IF:SERVER_IF"),
        ((f"lo:{OUTSIDE}",), None, "`lo` is not an Ethernet interface"),
        (
            (f"{INSIDE}:{OUTSIDE}",),
            lambda host: host.ip("link", "set", OUTSIDE, "down"),
            f"`{OUTSIDE}` is down: `ip link set {OUTSIDE} up`",
        ),
        (
            (f"{INSIDE}:{OUTSIDE}",),
            lambda host: host.ip("link", "set", OUTSIDE, "mtu", "1400"),
            f"`{INSIDE}` has an MTU of 1500 bytes and `{OUTSIDE}` one of 1400",
        ),
        (
            (f"{INSIDE}:{OUTSIDE}",),
            lambda host: [host.ip("link", "set", one, "mtu", "1400") for one in (INSIDE, OUTSIDE)],
            "has an MTU of 1400 bytes; the packets of this scenario have 1500 bytes",
        ),
        (
            (f"{INSIDE}:{OUTSIDE}",),
            lambda host: [host.ip("link", "set", one, "mtu", "9000") for one in (INSIDE, OUTSIDE)],
            "emulation supports MTUs of up to 2048",
        ),
        (
            (f"{INSIDE}:{OUTSIDE}",),
            lambda host: [
                host.ip("address", "add", "10.0.0.2/24", "dev", OUTSIDE),
                host.ip("route", "add", "default", "via", "10.0.0.1"),
            ],
            f"`{OUTSIDE}` carries the default route of this host",
        ),
        (
            (f"{INSIDE}:{OUTSIDE}",),
            lambda host: [
                host.ip("link", "add", "br0", "type", "bridge"),
                host.ip("link", "set", OUTSIDE, "master", "br0"),
            ],
            f"`{OUTSIDE}` is a port of `br0`",
        ),
        ((f"{INSIDE}:{OUTSIDE}", "--gateway-ue", "phone"), None, "write NAME=DEVICE"),
        (
            (f"{INSIDE}:{OUTSIDE}", "--gateway-ue", "phone=10.0.0.1"),
            None,
            "`phone` is not a UE of this scenario; its UEs are ue",
        ),
        (
            (f"{INSIDE}:{OUTSIDE}", "--gateway-ue", "ue=phone"),
            None,
            "a device is a MAC address such as",
        ),
        (
            (f"{INSIDE}:{OUTSIDE}", "--gateway-ue", "ue=10.0.0.1", "--gateway-ue", "ue=10.0.0.1"),
            None,
            "this device is given twice",
        ),
        ((f"{INSIDE}:{OUTSIDE}", "--duration", "0"), None, "--duration must be more than 0"),
        ((f"{INSIDE}:{OUTSIDE}", "--duration", "nan"), None, "--duration must be more than 0"),
        (
            (
                *(f"{INSIDE}:{OUTSIDE}", "--set", "radio.preset=nr-n78"),
                *("--set", "emulation.gtpu=true"),
            ),
            None,
            "emulation.gtpu needs namespaces",
        ),
        ((f"{INSIDE}:{OUTSIDE}", "--flows"), None, "--flows cannot be used with --gateway"),
        (
            (f"{INSIDE}:{OUTSIDE}", "--", "ping", "server"),
            None,
            "COMMAND cannot be used with --gateway",
        ),
    ],
)
def test_wrong_input_is_refused(
    wire: Path, tmp_path: Path, arguments: tuple[str, ...], prepare: Prepare | None, said: str
) -> None:
    with three() as (_, host, _):
        if prepare is not None:
            prepare(host)
        before = state(host)
        done = host.airpath("emulate", str(wire), "--gateway", *arguments, cwd=tmp_path)
        assert done.returncode == 2, done.stderr
        assert said in done.stderr.replace("\n", " ")
        assert state(host) == before
        assert not (tmp_path / "runs").exists() or not list((tmp_path / "runs").iterdir())


@skip_without("ip", "ping")
def test_the_default_route_can_be_used_nevertheless(
    hosts: Hosts, wire: Path, tmp_path: Path
) -> None:
    host = hosts[1]
    host.ip("address", "add", "10.0.0.2/24", "dev", OUTSIDE)
    host.ip("route", "add", "default", "via", "10.0.0.1")
    with gateway(hosts, tmp_path, str(wire), "--yes") as running:
        running.end()


def test_options_of_a_gateway_need_one(cli: Any, wire: Path) -> None:
    for options in (("--yes",), ("--duration", "3"), ("--gateway-ue", "ue=10.0.0.1")):
        code, _, said = cli("emulate", str(wire), *options)
        assert (code, "needs --gateway" in said) == (2, True), said


def test_root_is_needed(tmp_path: Path) -> None:
    status = tmp_path / "proc/self/status"
    status.parent.mkdir(parents=True)
    status.write_text("CapEff:\t0000000000000000\n")
    with pytest.raises(AirpathError, match="--gateway needs root"):
        check(Gateway(inside="a", server="b"), Machine(tmp_path))


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b'{"interface": "lo"}', b'{"interface":"lo","index":"x"}', b"\xff"],
)
def test_a_record_that_was_not_finished_is_removed(tmp_path: Path, content: bytes) -> None:
    """The file is complete before anything changes, so there is nothing to undo."""
    (tmp_path / "run").mkdir()
    machine = Machine(tmp_path)
    file = tmp_path / "run" / f"{host_changes.PREFIX}{host_changes.network()}-lo.json"
    file.write_bytes(content)
    others = [tmp_path / "run" / name for name in ("airpath-gateway-x-lo.json", "other.json")]
    for other in others:
        other.write_bytes(content)
    assert [left.interface for left in host_changes.left(machine)] == ["lo"]
    assert doctor.undo(machine) == []
    assert not file.exists()
    assert all(other.exists() for other in others), "files of others stay"
    assert host_changes.left(machine) == []


def test_a_network_namespace_may_be_gone(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    # No namespace has this number.
    file = tmp_path / "run" / f"{host_changes.PREFIX}1-eth0.json"
    file.write_text(json.dumps({"interface": "eth0", "index": 2, "offloads_on": ["rx-lro"]}))
    assert doctor.undo(Machine(tmp_path)) == ["eth0: gone with its network namespace"]
    assert not file.exists()


def test_an_interface_that_was_replaced_is_left_alone() -> None:
    """An interface with the same name but another index is another interface."""
    change = host_changes.Change("lo", 12345, ("rx-lro",))
    change.undo()
    assert host_changes.needed("lo").index == 1


def test_a_gateway_is_read_from_text() -> None:
    read = Gateway.parse("a:b", ["phone=02:00:00:00:00:01", "car=fd00::1"], 3.0, default_route=True)
    assert (read.inside, read.server, read.duration_s) == ("a", "b", 3.0)
    assert list(read.devices) == [("phone", "02:00:00:00:00:01"), ("car", "fd00::1")]
    for text in ("", ":", "a:", ":b", "a", "a:b:c"):
        with pytest.raises(InputError, match="UE_IF:SERVER_IF"):
            Gateway.parse(text, [], None, default_route=False)
