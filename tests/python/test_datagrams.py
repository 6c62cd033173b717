"""Flows without TCP in sentences: what UDP, QUIC and ICMP allow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import airpath
from airpath import _core
from airpath.diagnose import datagrams
from airpath.diagnose.files import diagnose


def _flow(**parts: Any) -> dict[str, Any]:
    volume = {"packets": 10, "bytes": 1000}
    flow = {"id": 0, "same_as": [], "client": "10.0.0.1", "server": "10.0.0.2", "tcp": None}
    return {
        **flow,
        "from_client": volume,
        "from_server": volume,
        "udp": None,
        "icmp": None,
        "icmp_errors": None,
        **parts,
    }


def test_a_simulated_ping_and_udp_stream_are_told_of(tmp_path: Path, cli: Any) -> None:
    scenario = tmp_path / "two.toml"
    scenario.write_text(
        "[run]\nduration_s = 5\n"
        '[[path.down]]\nstage = "loss"\nperiod = 10\n'
        '[[path.down]]\nstage = "delay"\ndelay_ms = 15\n'
        '[[path.up]]\nstage = "delay"\ndelay_ms = 15\n'
        '[[flow]]\nkind = "udp"\nrate_mbps = 1\nduration_s = 4\n'
        '[[flow]]\nkind = "ping"\ninterval_ms = 100\ncount = 30\n'
    )
    run = airpath.run(scenario, out=tmp_path / "run", capture=True)
    file = str(tmp_path / "run/capture.pcapng")
    report: Any = _core.read_capture(Path(file))
    at_ue = [one for one in report["flows"] if one["interface"] == 1]
    (numbers,) = [one["udp"]["from_client"]["sequence"] for one in at_ue if one["udp"]]
    (icmp,) = [one["icmp"] for one in at_ue if one["icmp"]]
    (udp,) = run.summary["flows"]
    (ping,) = run.summary["pings"]
    # What is lost at the end shows to nobody.
    assert abs(numbers["lost"] - (udp["packets_lost"] or 0)) <= 1
    assert (icmp["requests"], icmp["unanswered"]) == (ping["sent"], ping["lost"])
    assert abs(icmp["rtt_ms"]["p50"] - 30) < 0.1
    code, out, _ = cli("diagnose", file)
    assert code == 0
    assert "were lost before the capture point, by the sequence numbers of iperf3" in out
    assert f"{ping['lost']} of 30 echo requests had no reply here" in out
    assert "the round trip between the capture point and the responder is at least 30 ms" in out
    kinds = [one["kind"] for one in diagnose(file)["statements"]]
    assert "datagrams" in kinds
    assert "echo" in kinds


def _report(flow: dict[str, Any]) -> Any:
    return {"flows": [flow]}


def test_quic_is_told_of_with_and_without_its_spin_bit() -> None:
    spin: dict[str, Any] = {"state": "constant", "rtt_ms": None}
    quic = {
        "versions": ["1"], "packets": {"initial": 2, "retry": 1}, "client_side_ms": 3.0,
        "server_side_ms": 20.0, "spin": spin,
    }  # fmt: skip
    none = {"sequence": None}
    udp = {"from_client": none, "from_server": none, "gtpu": {}, "quic": quic}
    (said,) = datagrams.statements(_report(_flow(udp=udp)))
    assert said.text == (
        "Flow 0: QUIC, version 1; in the handshake the round trip from the capture point was 3 ms "
        "to the client and 20 ms to the server; the spin bit does not spin, so the round trip is "
        "not known; the server required address validation (Retry)."
    )
    spin.update(state="spins", rtt_ms={"min": 20.0, "p50": 24.0, "count": 9})
    (said,) = datagrams.statements(_report(_flow(udp=udp)))
    assert "by the spin bit the round trip is at least 20 ms and 24 ms in the median" in said.text


def test_messages_of_icmp_say_what_they_mean() -> None:
    icmp: dict[str, Any] = {"requests": 0, "unasked": 0, "unanswered": 0, "rtt_ms": None}
    icmp |= {"messages": {"fragmentation-needed": 2}, "mtu_bytes": None}
    (said,) = datagrams.statements(_report(_flow(icmp=icmp)))
    assert said.kind == "icmp-fragmentation-needed"
    assert said.text.endswith("a packet was larger than the MTU of a hop.")
    assert "was sent 2 times between 10.0.0.1 and 10.0.0.2" in said.text
