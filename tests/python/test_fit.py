"""A capture becomes a scenario: what was drawn is found again, and what cannot be is said."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import airpath
import captures
from airpath import _core
from airpath.errors import InputError
from airpath.fitting import endpoints
from airpath.fitting.application import Write, parts
from airpath.fitting.fit import Fit
from airpath.fitting.observed import arrays, observe
from airpath.fitting.path import estimate
from airpath_dev.fitted.draw import draw
from airpath_dev.fitted.judge import capture, judge
from airpath_dev.planted.capture import at_point

pytestmark = pytest.mark.unhurried

SHORT = [2, 9]
"""Truths of seed 1: a receive window; an uplink whose queue overflows, seen at the sender."""


@pytest.mark.parametrize("number", SHORT)
def test_what_was_drawn_is_found_again(tmp_path: Path, number: int) -> None:
    """`make fit` does so with more, also emulated."""
    truth = draw(1, number)
    file, dropped = capture(truth, tmp_path, emulated=False)
    fitted, figures = judge(truth, file, dropped)
    assert {one.name: one.verdict for one in figures} == {one.name: "right" for one in figures}
    assert fitted.score.total > 0.9
    names = [one.name for one in figures]
    assert ("queue" in names) == (number == 9)
    # The scenario that was written does what its score says.
    written = tmp_path / "fitted.toml"
    fitted.write(written)
    again = airpath.run(written)
    rerun = fitted.score.figures["goodput_mbps"]["rerun"]
    assert again.summary["flows"][0]["goodput_mbps"] == pytest.approx(rerun, rel=0.05)


BATCHES = [(7, 3), (7, 5), (8, 4), (9, 8), (12, 0), (12, 5)]
BATCHES += [(90511, 2), (90511, 4), (90511, 8), (90512, 5), (90514, 7), (90514, 8)]
"""Truths of acknowledgements in batches at the sender and at the receiver, of windows that are
too small for a queue, and of delayed acknowledgements between losses: each was found wrong once."""


@pytest.mark.parametrize(("seed", "number"), BATCHES)
def test_batches_and_short_busy_times_do_not_mislead(
    tmp_path: Path, seed: int, number: int
) -> None:
    """What is known is right, and what a batch hides is a range around the truth."""
    truth = draw(seed, number)
    file, dropped = capture(truth, tmp_path, emulated=False)
    fitted, figures = judge(truth, file, dropped)
    assert "wrong" not in {one.verdict for one in figures}, figures
    base = next(one for one in fitted.parameters if one["name"] == "base_rtt")
    if base["value"] is None:
        least, most = map(float, re.findall(r"[\d.]+", base["from"])[:2])
        assert least * 0.99 <= truth.base_rtt_ms <= most * 1.01
    assert "base RTT" in {one.what for one in fitted.not_identifiable} or base["value"]


@pytest.mark.parametrize("direction", ["down", "up"])
def test_the_initial_window_is_told_next_to_the_receiver(tmp_path: Path, direction: str) -> None:
    """Also if the sender opens the connection."""
    scenario = tmp_path / "s.toml"
    scenario.write_text(
        "[run]\nduration_s = 3\n"
        f'[[path.{direction}]]\nstage = "link"\nrate_mbps = 20\n'
        '[[path.down]]\nstage = "delay"\ndelay_ms = 40\n'
        '[[path.up]]\nstage = "delay"\ndelay_ms = 40\n'
        f'[[flow]]\nkind = "bulk"\ndirection = "{direction}"\ninitial_window_segments = 7\n'
    )
    airpath.run(scenario, out=tmp_path / "run", capture=True)
    file = tmp_path / "run/capture.pcapng"
    report = _core.read_capture(file)
    names = [one["name"] for one in report["interfaces"]]
    receiver = {"down": "ue", "up": "server"}[direction]
    (flow,) = (one["id"] for one in report["flows"] if names[one["interface"]] == receiver)
    seen = observe(str(file), flow)
    assert endpoints.estimate(seen, 80.0).initial_window == 7


def _small(tmp_path: Path) -> Path:
    scenario = tmp_path / "small.toml"
    scenario.write_text(
        "[run]\nduration_s = 4\n"
        '[[path.down]]\nstage = "link"\nrate_mbps = 8\nqueue_bytes = 60000\n'
        '[[path.down]]\nstage = "delay"\ndelay_ms = 20\n'
        '[[path.up]]\nstage = "delay"\ndelay_ms = 20\n'
        '[[flow]]\nkind = "bulk"\nprofile = "linux-6.1"\nduration_s = 3\n'
    )
    airpath.run(scenario, out=tmp_path / "run", capture=True)
    return tmp_path / "run/capture.pcapng"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _small(tmp_path_factory.mktemp("small"))


def test_the_scenario_is_printed_or_written_and_nothing_is_overwritten(
    cli: Any, small: Path, tmp_path: Path
) -> None:
    code, out, err = cli("fit", str(small), "--explain", "off")
    assert code == 0, err
    printed = tmp_path / "printed.toml"
    printed.write_text(out)
    assert airpath.load(printed).title == "Fitted to capture.pcapng"
    assert "not identifiable" in err
    place = tmp_path / "fitted.toml"
    code, told, _ = cli("fit", str(small), "--explain", "off", "-o", str(place))
    assert (code, place.read_text()) == (0, out)
    assert "  capacity: 8" in told
    code, _, err = cli("fit", str(small), "-o", str(place))
    assert (code, err) == (2, f"error: {place} exists already: choose another name\n")
    assert place.read_text() == out


@pytest.mark.parametrize(
    ("keys", "held"),
    [
        ("window_bytes = 20000", "the receive window limited the sender"),
        ("send_buffer_bytes = 20000", "a send buffer or the application may have limited"),
    ],
)
def test_a_control_that_never_had_to_act_is_assumed_and_not_named(
    cli: Any, tmp_path: Path, keys: str, held: str
) -> None:
    scenario = tmp_path / "held.toml"
    scenario.write_text(
        "[run]\nduration_s = 4\n"
        '[[path.down]]\nstage = "link"\nrate_mbps = 20\nqueue_packets = 1000\n'
        '[[path.down]]\nstage = "delay"\ndelay_ms = 20\n'
        '[[path.up]]\nstage = "delay"\ndelay_ms = 20\n'
        f'[[flow]]\nkind = "bulk"\n{keys}\n'
    )
    airpath.run(scenario, out=tmp_path / "run", capture=True)
    place = tmp_path / "fitted.toml"
    capture = str(tmp_path / "run/capture.pcapng")
    code, told, err = cli("fit", capture, "--explain", "off", "-o", str(place))
    assert code == 0, err
    assert re.search(r"congestion: \w+, from an assumption: the capture cannot tell", told)
    unknown = next(one for one in told.splitlines() if "identifiable: congestion control" in one)
    assert "nothing was lost" in unknown
    assert held in unknown
    assert re.search(r"; the scenario assumes (cubic|reno|bbr); ", unknown)


def test_a_flow_without_timestamps_is_run_again_without_them(tmp_path: Path) -> None:
    scenario = tmp_path / "plain.toml"
    scenario.write_text(
        "[run]\nduration_s = 4\n"
        '[[path.down]]\nstage = "link"\nrate_mbps = 8\nqueue_bytes = 60000\n'
        '[[path.up]]\nstage = "delay"\ndelay_ms = 40\n'
        '[[flow]]\nkind = "bulk"\noptions.timestamps = false\noptions.header_bytes = 40\n'
    )
    airpath.run(scenario, out=tmp_path / "run", capture=True)
    fitted = airpath.fit(tmp_path / "run/capture.pcapng")
    assert "options.timestamps = false" in fitted.scenario
    assert fitted.score.total > 0.9


def test_the_gain_is_found_by_experiment(cli: Any, small: Path) -> None:
    code, out, err = cli("fit", str(small), "--json")
    assert code == 0, err
    (document,) = json.loads(out)["fits"]
    assert list(document)[:4] == ["file", "flow", "captured_at", "parameters"]
    finding = document["explanation"]["findings"][0]
    assert finding["cause"] == "bufferbloat"
    assert finding["gain"]["after"] < finding["gain"]["before"]
    what = [one["what"] for one in document["not_identifiable"]]
    assert "split" in what
    assert all(one["because"] and one["would_tell"] for one in document["not_identifiable"])


def test_losses_by_chance_behind_long_waits_are_no_queues(tmp_path: Path) -> None:
    """BBR keeps a standing queue, which never overflows; one of fifty packets is lost."""
    truth = draw(78032, 1)
    file, dropped = capture(truth, tmp_path, emulated=False)
    assert set(dropped) == {"loss"}
    report = _core.read_capture(file)
    point = [one["name"] for one in report["interfaces"]].index(truth.point)
    (flow,) = (one for one in report["flows"] if one["tcp"] and one["interface"] == point)
    (segments,) = _core.read_flows(file, [(flow["id"], True)], 1_000_000)
    found = estimate(arrays(str(file), report, flow, "client", segments))
    assert found.overflowed == 0
    assert found.loss == pytest.approx(dropped["loss"] / len(segments["sent_ns"]) * 8, rel=0.01)


def test_what_never_filled_the_path_tells_no_queue(tmp_path: Path) -> None:
    """The window is a fifth of the bandwidth-delay product."""
    scenario = tmp_path / "window.toml"
    scenario.write_text(
        "[run]\nduration_s = 4\n"
        '[[path.down]]\nstage = "link"\nrate_mbps = 20\nqueue_packets = 100\n'
        '[[path.down]]\nstage = "delay"\ndelay_ms = 25\n'
        '[[path.up]]\nstage = "delay"\ndelay_ms = 25\n'
        '[[flow]]\nkind = "bulk"\nreceive_buffer_bytes = 25000\n'
    )
    airpath.run(scenario, out=tmp_path / "run", capture=True)
    fitted = airpath.fit(tmp_path / "run/capture.pcapng")
    values = {row["name"]: row["value"] for row in fitted.parameters}
    assert values["queue"] is None
    assert values["receive_window"] == pytest.approx(25_000, rel=0.05)
    assert "queue" in [one.what for one in fitted.not_identifiable]
    assert fitted.score.figures["goodput_mbps"]["agreement"] > 0.97  # type: ignore[operator]


@pytest.mark.parametrize("end", ["server", "ue"])
def test_pauses_of_the_application_are_in_the_scenario(tmp_path: Path, end: str) -> None:
    """Three writes of 200 kB; at 50 Mb/s each takes 0.1 s."""
    scenario = tmp_path / "page.toml"
    scenario.write_text(
        "[run]\nduration_s = 4\n"
        '[[path.down]]\nstage = "link"\nrate_mbps = 50\n'
        '[[path.down]]\nstage = "delay"\ndelay_ms = 15\n'
        '[[path.up]]\nstage = "delay"\ndelay_ms = 15\n'
        '[[flow]]\nkind = "file"\nsize_bytes = 600000\nwrite_times_s = "0, 1, 2.5"\n'
    )
    airpath.run(scenario, out=tmp_path / "run", capture=True)
    file = tmp_path / "run/capture.pcapng"
    report = _core.read_capture(file)
    names = [one["name"] for one in report["interfaces"]]
    (flow,) = (one["id"] for one in report["flows"] if names[one["interface"]] == end)
    fitted = airpath.fit(file, flow=flow)
    values = {row["name"]: row["value"] for row in fitted.parameters}
    assert values["pauses"] == 2
    assert fitted.score.total > 0.95
    times = re.findall(r'write_times_s = "(.*)"', fitted.scenario)[0].split(", ")
    assert [float(at) for at in times] == pytest.approx([0, 1, 2.5], abs=0.1)


def test_what_is_not_like_the_capture_gives_no_advice(cli: Any, tmp_path: Path) -> None:
    """Before the proxy there is another connection, whose path the capture does not show."""
    airpath.run("proxy", {"run.duration_s": 6}, out=tmp_path / "run", capture=True)
    fitted = airpath.fit(tmp_path / "run/capture.pcapng", explain="quick")
    assert fitted.explanation is None
    assert fitted.unexplained is not None
    assert "differs too much from the capture (score 0." in fitted.unexplained
    code, _, err = cli("fit", str(tmp_path / "run/capture.pcapng"))
    assert (code, f"no advice: {fitted.unexplained}" in err) == (0, True)


def test_a_path_that_was_never_full_promises_no_more_than_was_seen(
    cli: Any, tmp_path: Path
) -> None:
    """The receive window leaves most of a cell unused, and the capture does not show how much."""
    scenario = tmp_path / "window.toml"
    scenario.write_text(
        "[run]\nduration_s = 6\n"
        '[[path.down]]\nstage = "delay"\ndelay_ms = 20\n'
        '[[path.up]]\nstage = "delay"\ndelay_ms = 20\n'
        '[radio]\npreset = "nr-n78"\n'
        '[[flow]]\nkind = "bulk"\nprofile = "linux-6.18"\nwindow_bytes = 200000\n'
    )
    airpath.run(scenario, out=tmp_path / "run", capture=True)
    at_point(tmp_path / "run/capture.pcapng", tmp_path / "server.pcapng", "server")
    code, out, err = cli("fit", str(tmp_path / "server.pcapng"), "--json")
    assert code == 0, err
    (document,) = json.loads(out)["fits"]
    assert "capacity" in [one["what"] for one in document["not_identifiable"]]
    seen = document["score"]["figures"]["goodput_mbps"]["capture"]
    for finding in (document["explanation"] or {"findings": []})["findings"]:
        if finding["gain"] and finding["gain"]["metric"] == "goodput_mbps":
            assert finding["gain"]["after"] < 1.2 * seen
    _, _, err = cli("fit", str(tmp_path / "server.pcapng"))
    assert "at least: the receive window limited the sender, and the path was never full" in err


def test_writes_are_told_by_equal_parts() -> None:
    """The last write is small, but is there."""
    times, size = parts([Write(0, 100_000), Write(1, 300_000), Write(4, 500)])
    assert size == 400_500
    assert (times[0], times[-1]) == (0, 4)
    assert times.count(1) / len(times) == pytest.approx(0.75, abs=0.03)


def test_too_little_is_refused(cli: Any, tmp_path: Path) -> None:
    few = captures.write(tmp_path / "few.pcap", captures.download())
    code, out, err = cli("fit", str(few))
    assert (code, out) == (2, "")
    assert "segments with data, but at least 50 are needed" in err
    text = tmp_path / "text"
    text.write_text("hello\n")
    assert cli("fit", str(text))[0] == 2
    assert cli("fit", "absent.pcap")[2].startswith("error: ")
    with pytest.raises(InputError, match="there is no TCP flow 7"):
        airpath.fit(few, flow=7)


def test_a_trace_stands_beside_its_scenario(tmp_path: Path) -> None:
    fitted = Fit("a", 0, "sender", 'file = "capacity.trace"\n', "1\n2\n", [], [], None, [])  # type: ignore[arg-type]
    written = fitted.write(tmp_path / "one.toml")
    assert [one.name for one in written] == ["one.toml", "one.capacity.trace"]
    assert written[0].read_text() == 'file = "one.capacity.trace"\n'


DOWNLOAD = """
[run]
duration_s = 3
[[path.down]]
stage = "link"
rate_mbps = 10
queue_packets = 40
[[path.down]]
stage = "delay"
delay_ms = 30
[[path.up]]
stage = "delay"
delay_ms = 30
[[path.up]]
stage = "loss"
packets = "{lost}"
[[flow]]
kind = "bulk"
profile = "linux-6.18"
"""


@pytest.mark.parametrize(("point", "place"), [("server", "sender"), ("ue", "receiver")])
@pytest.mark.parametrize(("lost", "from_packet"), [("1", 0), ("900", 400)])
def test_the_end_of_a_capture_shows_without_a_clean_handshake(
    tmp_path: Path, point: str, place: str, lost: str, from_packet: int
) -> None:
    """The first answer to the SYN is lost, or the capture begins later."""
    scenario = tmp_path / "one.toml"
    scenario.write_text(DOWNLOAD.format(lost=lost))
    airpath.run(scenario, out=tmp_path / "run", capture=True)
    file = tmp_path / "one.pcapng"
    at_point(tmp_path / "run" / "capture.pcapng", file, point, from_packet)
    seen = observe(str(file))
    assert seen.place == place
    assert (seen.handshake[0] is None) is (from_packet > 0)
    # Later, packets wait all the time.
    assert 55 < estimate(seen).base_rtt_ms < (85 if from_packet else 65)
