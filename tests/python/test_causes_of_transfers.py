"""Causes of transfers that look much like others: each was blamed wrongly before."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulated import stages
from test_causes import KNOWN_MISS, blamed

pytestmark = pytest.mark.unhurried

RADIO = """
[radio.rrc]
enabled = false
[radio.rlc]
aqm = "codel"
codel_target_ms = 25
codel_interval_ms = 125
[radio.rlc_up]
aqm = "codel"
codel_target_ms = 25
codel_interval_ms = 125
"""
SEND_BUFFER = """
[run]
duration_s = 8.3
[[path.down]]
stage = "link"
rate_mbps = 18.8
queue_bytes = 60_000
[[path.down]]
stage = "delay"
delay_ms = 13.2
[[path.up]]
stage = "delay"
delay_ms = 13.2
[[flow]]
kind = "bulk"
profile = "linux-6.18"
congestion = "cubic"
send_buffer_bytes = 18_506
buffer.send_factor = 0
"""
"""What the kernel's pieces let be under way is more than the queue holds, now and then."""
BATCHES = """
[run]
duration_s = 9
[[path.up]]
stage = "link"
rate_mbps = 8.3
aqm = "codel"
codel_target_ms = 21
codel_interval_ms = 105
[[path.up]]
stage = "delay"
delay_ms = 52
[[path.down]]
stage = "delay"
delay_ms = 52
[[path.down]]
stage = "batch"
interval_ms = 311
[[flow]]
kind = "bulk"
profile = "linux-6.18"
congestion = "bbr"
direction = "up"
"""
HANDOVERS = """
[run]
duration_s = 8.4
[[path.down]]
stage = "delay"
delay_ms = 17.5
[[path.up]]
stage = "delay"
delay_ms = 17.5
[radio]
preset = "nr-n78"
name = "one"
[radio.cell]
bandwidth_mhz = 20
layers_down = 2
layers_up = 1
[radio.channel]
sinr_db = 11.9
[radio.mobility]
interruption_ms = 1421
link_failure = false
t304_ms = 2000
forwarding = "none"
[[radio.neighbour]]
name = "two"
preset = "nr-n78"
cell.bandwidth_mhz = 20
cell.layers_down = 2
cell.layers_up = 1
[[radio.handover]]
at_s = 1.5
every_s = 3.27
to = "two"
[[radio.handover]]
at_s = 3.13
every_s = 3.27
to = "one"
[[flow]]
kind = "bulk"
profile = "linux-6.18"
congestion = "cubic"
"""
"""Nothing is forwarded, so that many packets are lost at a time."""
SHORT_QUEUE = """
[run]
duration_s = 10
[[path.down]]
stage = "delay"
delay_ms = 11
[[path.up]]
stage = "delay"
delay_ms = 11
[radio]
preset = "lte-tdd-20"
[radio.channel]
sinr_db = 8.9
[[flow]]
kind = "bulk"
profile = "linux-6.18"
congestion = "reno"
[radio.rrc]
enabled = false
[radio.rlc]
aqm = "drop-tail"
buffer_bytes = 5205
"""
"""Acknowledgements wait for grants, and data hardly at all."""
POLICED = """
[run]
duration_s = 10
[[path.up]]
stage = "policer"
rate_mbps = 1.47
burst_bytes = 8454
[[path.up]]
stage = "delay"
delay_ms = 13
[[path.down]]
stage = "delay"
delay_ms = 13
[radio]
preset = "nr-n78"
[radio.cell]
bandwidth_mhz = 10
layers_down = 2
layers_up = 1
[radio.channel]
sinr_db = 8.6
[[flow]]
kind = "bulk"
profile = "linux-6.18"
direction = "up"
[[flow]]
kind = "bulk"
profile = "linux-6.18"
direction = "up"
"""

CODEL = """aqm = "codel"
codel_target_ms = 23.9
codel_interval_ms = 119"""
UP = """
[run]
duration_s = {seconds}
[[path.down]]
stage = "delay"
delay_ms = {delay}
[[path.up]]
stage = "link"
rate_mbps = {rate}
{link}
[[path.up]]
stage = "delay"
delay_ms = {delay}
[[flow]]
kind = "bulk"
profile = "linux-6.18"
congestion = "{control}"
direction = "up"
"""
PING = """
[[flow]]
kind = "ping"
interval_ms = 100
direction = "up"
"""
ON_RADIO = """
[run]
duration_s = {seconds}
[[path.down]]
stage = "delay"
delay_ms = {delay}
{stage}
[[path.up]]
stage = "delay"
delay_ms = {delay}
[[flow]]
kind = "bulk"
profile = "linux-6.18"
congestion = "{control}"
[radio]
any_timer_value = true
{radio}
"""
POLICER = """[[path.down]]
stage = "policer"
rate_mbps = 4.273
burst_bytes = 11_615
"""
"""BBR sends on, and packets hardly wait."""
LTE_10 = """preset = "lte-10"
[radio.channel]
sinr_db = 8.213
"""
BRIEF_HANDOVERS = """preset = "lte-5"
name = "one"
[radio.channel]
sinr_db = 8.212
[radio.mobility]
interruption_ms = 151
link_failure = false
t304_ms = 2000
forwarding = "none"
[[radio.neighbour]]
name = "two"
preset = "lte-5"
[[radio.handover]]
at_s = 1.5
every_s = 4.147
to = "two"
[[radio.handover]]
at_s = 3.573
every_s = 4.147
to = "one"
"""
HSPA = """
[run]
duration_s = 9
[[path.down]]
stage = "delay"
delay_ms = 13
[[path.up]]
stage = "delay"
delay_ms = 13
[radio]
preset = "umts-hspa"
[[flow]]
kind = "bulk"
profile = "linux-6.18"
congestion = "cubic"
[[flow]]
kind = "bulk"
profile = "linux-6.18"
congestion = "cubic"
"""
SHAPED = """
[run]
duration_s = 10
[[path.down]]
stage = "shaper"
rate_mbps = 12.3
burst_bytes = 8273
aqm = "codel"
codel_target_ms = 10.8
codel_interval_ms = 100
[[path.down]]
stage = "link"
rate_mbps = 16.8
aqm = "codel"
codel_target_ms = 10.7
codel_interval_ms = 100
[[path.down]]
stage = "delay"
delay_ms = 26.6
[[path.up]]
stage = "delay"
delay_ms = 26.6
[[flow]]
kind = "bulk"
profile = "linux-6.18"
[[flow]]
kind = "bulk"
profile = "linux-6.18"
"""
STALLS = """
[run]
duration_s = 8.6
[[path.down]]
stage = "host"
stalls = "at-random"
stall_ms = 42
stall_mean_between_ms = 338
ring_packets = 8
[[path.down]]
stage = "link"
rate_mbps = 4.9
aqm = "codel"
codel_target_ms = 5
codel_interval_ms = 100
[[path.down]]
stage = "delay"
delay_ms = 12.3
[[path.up]]
stage = "delay"
delay_ms = 12.3
[[flow]]
kind = "bulk"
profile = "linux-6.18"
[[flow]]
kind = "bulk"
profile = "linux-6.18"
"""

SMALL_BUFFER = """
[run]
duration_s = 9
[[flow]]
kind = "bulk"
profile = "linux-6.18"
congestion = "{control}"
send_buffer_bytes = {bytes}
buffer.send_factor = 0
[radio]
preset = "{radio}"
"""
"""Each time it is nearly empty the kernel fills it with a piece of many segments."""
BULK = """[[flow]]
kind = "bulk"
profile = "linux-6.18"
congestion = "cubic"
"""
LATE_OVERFLOW = f"""
[run]
duration_s = 5
[[path.down]]
stage = "link"
rate_mbps = 12.39
queue_bytes = 143_020
{stages(53.81, 53.81)}\
[[path.down]]
stage = "delay"
delay_ms = 0
jitter_ms = 48.19
{BULK}\
slow_start = "hystart-6.14"
"""
"""The queue overflows when the rate is reached at last, and not in slow start."""
UNACKNOWLEDGED = """preset = "nr-n78"
[radio.cell]
bandwidth_mhz = 10
layers_down = 2
layers_up = 1
[radio.channel]
sinr_db = 11.55
[radio.harq]
max_transmissions = 1
[radio.link_adaptation]
outer_loop_step_db = 0
fixed_bler = 0.09885
"""
"""Packets wait, but for those that are lost: the path is hardly used."""


@pytest.mark.parametrize(
    ("scenario", "cause"),
    [
        (LATE_OVERFLOW, "slow-start-exit"),
        (
            ON_RADIO.format(
                seconds=11.54, delay=12.5, stage="", control="cubic", radio=UNACKNOWLEDGED
            ).replace("[radio]", BULK + "[radio]", 1)
            + RADIO.replace("[radio.rlc]", '[radio.rlc]\nmode = "um"'),
            "random-loss",
        ),
        (SEND_BUFFER, "send-buffer"),
        (BATCHES, "ack-batching"),
        (SHORT_QUEUE, "policer"),
        (POLICED + RADIO, "policer"),
        (
            ON_RADIO.format(seconds=10.33, delay=17.14, stage=POLICER, control="bbr", radio=LTE_10)
            + RADIO,
            "policer",
        ),
        (
            ON_RADIO.format(
                seconds=9.33, delay=13.96, stage="", control="cubic", radio=BRIEF_HANDOVERS
            )
            + RADIO
            + PING,
            "handover",
        ),
        pytest.param(
            SMALL_BUFFER.format(control="reno", bytes=5000, radio="lte-20") + stages(5, 5),
            "send-buffer",
            marks=KNOWN_MISS,
        ),
        (
            SMALL_BUFFER.format(control="cubic", bytes=25_435, radio="nr-fdd-20") + stages(16, 16),
            "send-buffer",
        ),
        (
            SMALL_BUFFER.format(control="cubic", bytes=73_102, radio="lte-20") + stages(17, 17),
            "send-buffer",
        ),
        pytest.param(SHAPED, "shaper", marks=KNOWN_MISS),
        (STALLS, "stalling-host"),
        (
            UP.format(seconds=3, rate=9.67, delay=59.7, control="cubic", link=CODEL),
            "test-too-short",
        ),
        (
            UP.format(seconds=8, rate=4.5, delay=10.3, control="bbr", link="queue_bytes = 15_000")
            + "send_buffer_bytes = 5000\nbuffer.send_factor = 0\n",
            "send-buffer",
        ),
    ],
)
def test_the_first_cause_is_the_planted_one(tmp_path: Path, scenario: str, cause: str) -> None:
    (tmp_path / "one.toml").write_text(scenario)
    found = blamed(tmp_path, str(tmp_path / "one.toml"))
    assert cause in found.suspects[0].causes


def test_handovers_are_named_where_three_silences_show(tmp_path: Path) -> None:
    """A time-out of three seconds hides some, and two may as well be failures of the radio link."""
    first = []
    for number in range(8):
        at_s = 1.4473 + 0.0073 * number
        text = (HANDOVERS + RADIO).replace("at_s = 1.5\n", f"at_s = {at_s:.4f}\n")
        text = text.replace("at_s = 3.13\n", f"at_s = {at_s + 1.63:.4f}\n")
        # After each handover PDCP waits for t-Reordering. If that took most of the 209 ms until the
        # next one, the second silence would not end.
        text = text.replace("[radio.rlc]\n", "[radio.rlc]\nt_reordering_ms = 10\n")
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "one.toml").write_text(text)
        first.append(blamed(folder, str(folder / "one.toml")).suspects[0].cause)
    assert set(first) <= {"handover", "radio-link-failure"}
    assert first.count("handover") >= 3


def test_a_managed_queue_that_stands_is_no_loss(tmp_path: Path) -> None:
    queue = RADIO.replace("target_ms = 25", "target_ms = 60").replace("= 125", "= 300")
    (tmp_path / "one.toml").write_text(HSPA + PING + queue)
    assert blamed(tmp_path, str(tmp_path / "one.toml")).suspects == []


MISSED = """
[run]
duration_s = 10
seed = {seed}
[radio]
preset = "lte-tdd-20"
[radio.sr]
miss_probability = 0.87
[[flow]]
kind = "ping"
direction = "up"
interval_ms = 210
"""


@pytest.mark.parametrize("seed", range(1, 5))
def test_pings_wait_for_scheduling_requests_that_are_missed(tmp_path: Path, seed: int) -> None:
    (tmp_path / "one.toml").write_text(MISSED.format(seed=seed) + stages(20, 20) + RADIO)
    found = blamed(tmp_path, str(tmp_path / "one.toml"))
    assert "uplink-access" in found.suspects[0].causes


CONNECTS = f"""
[run]
duration_s = 12
[radio]
preset = "nr-fdd-20"
any_timer_value = true
[radio.rrc]
enabled = true
setup_ms = 365
inactivity_ms = 500
{stages(20, 20)}\
[[flow]]
kind = "file"
profile = "linux-6.18"
size_bytes = 50_000
write_times_s = "0, 2.3, 4.1, 7.2, 9.9"
[[flow]]
kind = "ping"
direction = "up"
interval_ms = 599
"""


@pytest.mark.parametrize("point", ["server", "ue"])
def test_pings_that_connect_first_or_not_at_all_wait_for_no_cycle(
    tmp_path: Path, point: str
) -> None:
    (tmp_path / "one.toml").write_text(CONNECTS)
    found = blamed(tmp_path, str(tmp_path / "one.toml"), point)
    assert "drx" not in [one.cause for one in found.suspects]


DATAGRAMS = f"""
[run]
duration_s = 8
[[path.down]]
stage = "link"
rate_mbps = 4
queue_bytes = 20_000
{stages(15, 15)}\
[[flow]]
kind = "udp"
rate_mbps = 1.5
{BULK}"""


def test_datagrams_that_a_transfer_crowds_out_are_no_random_loss(tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(DATAGRAMS)
    found = blamed(tmp_path, str(tmp_path / "one.toml"), "ue")
    assert not [one for one in found.suspects if "datagrams are missing" in one.evidence]


PIECES = f"""
[run]
duration_s = 8.18
{stages(14.69, 14.69)}\
[[path.down]]
stage = "link"
rate_mbps = 14.1
queue_bytes = 51_184
[[flow]]
kind = "file"
profile = "linux-6.18"
size_bytes = 4_133_704
start_s = 0.5
write_times_s = "0, 1.628"
"""


def test_a_sender_that_waits_is_no_failure_of_the_radio_link(tmp_path: Path) -> None:
    """Its time-out, and nothing else, tells that nothing arrived for 0.3 s."""
    (tmp_path / "one.toml").write_text(PIECES)
    found = blamed(tmp_path, str(tmp_path / "one.toml"))
    assert "radio-link-failure" not in [one.cause for one in found.suspects]
