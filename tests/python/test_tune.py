"""``airpath tune``: what is derived from a path, and when it is advised."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import airpath
from airpath.errors import InputError
from airpath.measure.document import MtuDocument
from airpath.tune import prepared as prepared_module
from airpath.tune.candidates import Candidates, Load
from airpath.tune.judge import Effect, Judge, Verdict
from airpath.tune.mtu import largest_packet
from airpath.tune.prepared import prepared
from airpath.tune.sentences import sentences
from airpath.tune.settings import Shaper
from airpath.tune.tuning import tune
from conftest import run_command


def effect(
    metric: str, change: float, *, wide: float = 0.01, flow: str = "download", worth: float = 1.0
) -> Effect:
    """A figure that changes by this share, give or take ``wide``."""
    more = metric in ("goodput_mbps", "answered_share")
    interval = (change - wide, change + wide)
    return Effect(flow, metric, 10.0, 10.0 * (1 + change), change, interval, more, worth)


@pytest.mark.parametrize(
    ("effects", "good"),
    [
        ([effect("goodput_mbps", 0.2)], True),
        ([effect("goodput_mbps", -0.2)], False),
        ([effect("rtt_ms.p95", -0.2)], True),
        # Below a tenth, or not surely above.
        ([effect("goodput_mbps", 0.08)], False),
        ([effect("goodput_mbps", 0.12, wide=0.03)], False),
        ([effect("goodput_mbps", 0.2, wide=0.3)], False),
        # A gain is worth ten times the throughput that it costs, and no gain is worth a tenth.
        ([effect("rtt_ms.p95", -0.5, flow="ping"), effect("goodput_mbps", -0.05)], True),
        ([effect("rtt_ms.p95", -0.3, flow="ping"), effect("goodput_mbps", -0.05)], False),
        ([effect("rtt_ms.p95", -0.9, flow="ping"), effect("goodput_mbps", -0.12)], False),
        # A queue of its own counts half.
        ([effect("goodput_mbps", 0.5), effect("rtt_ms.p95", 0.9, worth=0.5)], True),
        ([effect("goodput_mbps", 0.5), effect("rtt_ms.p95", 0.9, flow="ping")], False),
        # Retransmissions are no gain.
        ([effect("retransmitted_share", -0.9, worth=0.0)], False),
    ],
)
def test_a_gain_must_be_sure_and_worth_its_harm(effects: list[Effect], good: bool) -> None:
    assert Verdict(effects).is_good == good


def test_more_retransmissions_are_a_harm() -> None:
    verdict = Verdict([effect("goodput_mbps", 0.3), effect("retransmitted_share", 0.8, worth=0.0)])
    assert verdict.is_good
    assert [one.metric for one in verdict.harms] == ["retransmitted_share"]
    few = Verdict([effect("retransmitted_share", 0.4, worth=0.0)])
    assert few.harms == []


def test_buffers_are_two_windows_of_what_the_path_holds() -> None:
    load = Load(rate_mbps=20, idle_ms=50, loaded_ms=200)
    # 125 kB and the same again, in pages of 4 KiB.
    assert load.window(load.idle_ms) == 253_952
    assert load.window(load.loaded_ms) == 1_003_520
    assert Load(0.01, 1, 1).window(1) == 4 * 4096


TUNNELS = [
    ([], None),
    ([{"stage": "mtu", "mtu_bytes": 1400}], 1400),
    ([{"stage": "mtu", "mtu_bytes": 1400, "enabled": False}], None),
    (
        [
            {"stage": "gtpu", "end": "enter", "outer_ip": "ipv4", "pdu_session_container": True},
            {"stage": "mtu", "mtu_bytes": 1500},
            {"stage": "gtpu", "end": "leave"},
            {"stage": "mtu", "mtu_bytes": 1470},
        ],
        1500 - 44,
    ),
    (
        [
            {
                "stage": "gtpu",
                "end": "enter",
                "outer_ip": "ipv6",
                "pdu_session_container": False,
                "mtu_bytes": 1500,
            }
        ],
        1500 - 56,
    ),
    # WireGuard pads what it carries to 16 bytes: 1440 bytes remain of 1500.
    ([{"stage": "vpn", "end": "enter", "outer_ip": "ipv4", "outer_mtu_bytes": 1500}], 1440),
    ([{"stage": "vpn", "end": "enter", "outer_ip": "ipv4", "outer_mtu_bytes": 1490}], 1424),
    (
        [
            {
                "stage": "vpn",
                "end": "enter",
                "outer_ip": "ipv4",
                "mtu_bytes": 1420,
                "outer_mtu_bytes": 1500,
            }
        ],
        1420,
    ),
]


@pytest.mark.parametrize(("stages", "packet"), TUNNELS)
def test_the_largest_packet_leaves_room_for_every_header(
    stages: list[dict[str, object]], packet: int | None
) -> None:
    assert largest_packet(stages) == packet


@pytest.mark.parametrize("name", ["vpn-mtu", "gtpu-fragmentation"])
def test_the_largest_packet_is_the_one_that_the_model_passes(name: str) -> None:
    """A byte more is lost or fragmented."""
    with prepared(name) as ready:
        packet = ready.largest_packets["down"]
    assert packet is not None
    sent = {
        size: airpath.run(
            name,
            set={f"flow.0.{key}": value for key, value in
                 {"mss_bytes": size - 52, "profile": "linux-6.18"}.items()} | {"run.duration_s": 4},
        ).summary["flows"][0]
        for size in (packet, packet + 1)
    }  # fmt: skip
    fits, exceeds = sent[packet], sent[packet + 1]
    assert (fits["goodput_mbps"] or 0) > 1.01 * (exceeds["goodput_mbps"] or 0)


def test_small_buffers_are_raised_at_both_ends() -> None:
    answer = tune("small-window", seeds=2, workers=2)
    first = answer["advised"][0]
    assert [line["end"] for line in first["lines"]] == ["ue", "server"]
    assert first["lines"][0]["text"][0].startswith("net.ipv4.tcp_rmem = 4096 131072 ")
    assert any("SO_RCVBUF" in need for need in first["needs"])
    (gain,) = first["gains"]
    assert gain["metric"] == "goodput_mbps"
    assert 3 < gain["change"] + 1 < 4
    together = answer["together"]
    assert together is not None
    assert first["name"] in together["names"]
    said = "\n".join(sentences(answer))
    assert "gain: goodput of download 5.07 Mb/s" in said
    assert "harm: RTT (p95) of download" in said


def test_one_host_is_tuned_alone() -> None:
    answer = tune("small-window", end="server", seeds=2)
    lines = [line for one in answer["advised"] for line in one["lines"]]
    assert {line["end"] for line in lines} <= {"server"}


def test_a_deep_queue_is_shaped_or_avoided_and_a_good_path_is_left_alone() -> None:
    answer = tune("bufferbloat", seeds=2)
    shapers = [one for one in answer["advised"] if one["lines"][0]["kind"] == "tc"]
    assert any("fq_codel" in line for line in shapers[0]["lines"][0]["text"])
    best = answer["advised"][0]
    assert best["harms"] == []
    assert best["gains"][0]["flow"] == "ping"
    kept = tune("codel", seeds=2)
    assert (kept["advised"], kept["together"]) == ([], None)
    assert "no setting helps this path" in sentences(kept)[0]


def test_segments_are_clamped_where_large_packets_are_lost() -> None:
    answer = tune("vpn-mtu", seeds=2)
    texts = [line["text"][0] for one in answer["advised"] for line in one["lines"]]
    assert any(text.startswith("ip route change default … advmss 1368") for text in texts)
    assert any("nft" in text and "maxseg size set 1368" in text for text in texts)


def test_a_run_is_tuned_as_its_scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sets = {"run.duration_s": 5, "flow.0.profile": "linux-5.4"}
    airpath.run("small-window", set=sets, out="runs/one")
    of_run = tune("runs/one", seeds=2)
    assert of_run["source"] == "runs/one"
    of_scenario = tune("small-window", set=sets, seeds=2)
    assert of_run["advised"] == of_scenario["advised"]
    assert tune(seeds=2)["source"] == "runs/one"


@pytest.mark.parametrize(("black_hole", "stages"), [(True, 2), (False, 1)])
def test_a_measured_hole_is_added_to_the_twin(black_hole: bool, stages: int) -> None:
    """Where ICMP errors arrive, senders adapt."""
    twin = {"path": {"down": [{"stage": "delay", "delay_ms": 5}]}}
    found: MtuDocument = {
        "direction": "down", "path_bytes": 1400, "too_large_bytes": 1401, "icmp": [],
        "black_hole": black_hole, "too_large_sent": 3,
    }  # fmt: skip
    prepared_module._add_hole(twin, found)
    assert len(twin["path"]["down"]) == stages
    assert largest_packet(twin["path"]["down"]) == (1400 if black_hole else None)


def test_a_run_that_needs_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.trace").write_text("1\n2\n3\n")
    scenario = tmp_path / "traced.toml"
    scenario.write_text(
        '[[path.down]]\nstage = "trace"\nfile = "a.trace"\n[[flow]]\nkind = "bulk"\n'
        "[run]\nduration_s = 2\n"
    )
    airpath.run(str(scenario), out=tmp_path / "run")
    assert tune(str(scenario), seeds=2)["seeds"] == 2
    with pytest.raises(InputError, match=r"needs the file .*a\.trace"):
        tune(str(tmp_path / "run"), seeds=2)


def test_what_cannot_be_tuned_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "ping.toml"
    file.write_text(
        '[[path.up]]\nstage = "delay"\ndelay_ms = 5\n[[flow]]\nkind = "ping"\ninterval_ms = 100\n'
    )
    with pytest.raises(InputError, match="no TCP flow"):
        tune(str(file))
    with pytest.raises(InputError, match="from 2 to"):
        tune("small-window", seeds=1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("tune", "small-window", "--apply"), "--end ue or --end server"),
        (("tune", "small-window", "--force"), "--undo"),
        (("tune", "small-window", "--device", "eth0"), "--apply"),
        (("tune", "small-window", "--undo"), "cannot be combined with RESULT"),
    ],
)
def test_options_that_do_not_belong_together_are_refused(
    words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    done = run_command(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_command_prints_one_document(tmp_path: Path) -> None:
    done = run_command("tune", "small-window", "--seeds", "2", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["seeds"] == 2
    assert {"advised", "together", "rejected"} <= document.keys()


def test_a_shaper_has_a_target_that_a_packet_meets() -> None:
    """At 350 kb/s a packet alone takes longer than CoDel's 5 ms."""
    with prepared("bufferbloat", ["path.down.0.rate_mbps=0.35", "run.duration_s=20"]) as ready:
        found = [one for one in Candidates(ready, Judge(ready, 2, 1)).all()
                 if one.kind == "downlink shaper"]  # fmt: skip
    shaper = found[0].settings[0]
    assert isinstance(shaper, Shaper)
    assert shaper.target_ms > 1.5 * 1514 * 8 / 350
    assert shaper.interval_ms >= 10 * shaper.target_ms
