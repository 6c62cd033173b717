"""Measures 5g-drx with a server next to the UPF and one behind a host that forwards (root).

The emulation has one server. Its namespace gets a second one behind it, whose host it forwards to
and translates addresses for, as a hypervisor does; ``nftables`` gives that host the study's faults.
`airpath measure` asks the far server, with the near one as ``--also``. Exit code 1: placement is
not named where there is a fault, or named where there is none; 3: packets of the model left late.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from airpath_dev import ROOT
from airpath_dev.harness import FINE, NOT_CHECKED, WRONG, emulated, need, say

FAULTS = {
    "none": ("", "placement"),
    "loss of 5 %": ("numgen random mod 100 < 5", "random-loss"),
    "a black hole at 1,499 bytes": ("meta length > 1499", "mtu"),
}
"""Packets that the host loses, and the cause that is to be named beside placement."""
_LATE = 3
_SERVERS = """
set -e
unshare -n sleep infinity &
far=$!
until [ "$(readlink /proc/$far/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do sleep 0.02; done
ip link add v0 type veth peer name v1 netns $far
ip address add 10.99.0.1/24 dev v0
ip link set v0 up gso_max_segs 1
ip link set air0 gso_max_segs 1
nsenter -t $far -n ip address add 10.99.0.2/24 dev v1
nsenter -t $far -n ip link set lo up
nsenter -t $far -n ip link set v1 up gso_max_segs 1
nsenter -t $far -n ip route add default via 10.99.0.1 congctl cubic
echo 1 > /proc/sys/net/ipv4/ip_forward
nft -f - <<END
table ip host {
  chain pre {
    type nat hook prerouting priority -100;
    iifname air0 tcp dport 5213 dnat to 10.99.0.2
    iifname air0 udp dport 5213 dnat to 10.99.0.2
  }
  chain through {
    type filter hook forward priority 0;
    FAULT
  }
}
END
nsenter -t $far -n SERVE --port 5213 &
exec SERVE --port 5212
"""


def main(
    keep: Annotated[Path, typer.Option(help="Folder of the results.")] = ROOT / "target/placed",
    time: Annotated[str, typer.Option(help="Duration of each measurement.")] = "120s",
) -> int:
    """Measure 5g-drx's path with a server next to the UPF and one behind a host that forwards."""
    need("ip", "nft", "nsenter", root=True)
    keep.mkdir(parents=True, exist_ok=True)
    codes = [_judged(keep, name, time) for name in FAULTS]
    return WRONG if WRONG in codes else max(codes)


def _judged(keep: Path, fault: str, time: str) -> int:
    drops, beside = FAULTS[fault]
    out = keep / f"{list(FAULTS).index(fault)}.run"
    code = _measure(out, drops, time)
    if not (out / "summary.json").exists():
        say(f"{fault}: no result, exit code {code}: see {out.with_suffix('.log')}")
        return WRONG
    summary = json.loads((out / "summary.json").read_text())
    named = [one["cause"] for one in summary["findings"]]
    (placed,) = summary["measured"]["also"]["placement"]
    late = ", packets left late" if code == _LATE else ""
    say(f"{fault}: {', '.join(named)}; placement: {placed['verdict']}{late}. {placed['said']}")
    wanted = placed["verdict"] == "none" if not drops else {"placement", beside} <= set(named)
    if not wanted:
        return WRONG
    return NOT_CHECKED if late else FINE


def _measure(out: Path, drops: str, time: str) -> int:
    """Run the emulation with the measurement inside; its exit code."""
    shutil.rmtree(out, ignore_errors=True)
    token, script = out.with_suffix(".token"), out.with_suffix(".sh")
    token.touch(0o600)
    token.write_text("0123456789abcdef" * 2)
    airpath = f"{sys.executable} -m airpath"
    serve = f"{airpath} serve --user root --host 0.0.0.0 --token-file {token}"
    rule = f"iifname v0 {drops} drop" if drops else ""
    script.write_text(_SERVERS.replace("SERVE", serve).replace("FAULT", rule))
    scenario = ROOT / "python/airpath/studies/5g-drx/scenario.toml"
    command = [
        *airpath.split(), "measure", "10.77.0.1", "--port", "5213", "--also", "10.77.0.1:5212",
        "--token-file", str(token), "--out", str(out), "--seed", "1", "--time", time,
        "--data", "3GB",
    ]  # fmt: skip
    return emulated(scenario, out, f"sh {script}", command).returncode
