"""Congestion control in Python: the tables of the built-in one, and one error for each fault."""

from __future__ import annotations

import math
import random
import threading
from pathlib import Path
from typing import Any, ClassVar

import pytest

import airpath
import own_congestion
from airpath.congestion import Ack, Congestion, Interval, Loss, Start, Window
from airpath.errors import InputError


@pytest.mark.parametrize("scenario", own_congestion.SCENARIOS)
def test_cubic_in_python_gives_the_tables_of_the_built_in_one(
    scenario: str, tmp_path: Path
) -> None:
    cubic = own_congestion.example().Cubic()
    built_in = own_congestion.tables(scenario, tmp_path / "built-in")
    own = own_congestion.tables(scenario, tmp_path / "own", congestion={"flow.*": cubic})
    assert own.keys() == built_in.keys()
    assert [name for name in own if own[name] != built_in[name]] == []


def test_another_parameter_changes_the_tables(tmp_path: Path) -> None:
    """The comparison above can fail."""
    cubic = own_congestion.example().Cubic(beta=0.5)
    built_in = own_congestion.tables("bursty-loss", tmp_path / "built-in")
    own = own_congestion.tables("bursty-loss", tmp_path / "own", congestion={"flow.*": cubic})
    assert own["samples.parquet"] != built_in["samples.parquet"]


class Halving(Congestion):
    """Reno."""

    def on_ack(self, ack: Ack, window: Window) -> None:
        grown = float(ack.acked_segments)
        if window.cwnd_segments >= window.ssthresh_segments:
            grown /= window.cwnd_segments
        window.cwnd_segments += grown


class Bold(Congestion):
    """Decides per interval, at random."""

    interval_ms = 50.0

    def __init__(self) -> None:
        self.intervals: list[Interval] = []

    def on_start(self, start: Start) -> None:
        self.drawn = random.Random(start.seed)

    def on_interval(self, interval: Interval, window: Window) -> None:
        self.intervals.append(interval)
        window.cwnd_segments = 20 + 20 * self.drawn.random()
        window.pacing_bps = 5e6


def run(control: Any, **options: Any) -> airpath.Run:
    return airpath.run("wire", set={"run.duration_s": 2}, congestion={"flow.0": control}, **options)


@pytest.mark.parametrize("kind", [Halving, Bold])
def test_the_same_seed_gives_the_same_tables(kind: type[Congestion]) -> None:
    control = kind()
    first, second = run(control), run(control)
    assert first.samples.equals(second.samples)
    assert first.events.equals(second.events)


def test_an_object_is_copied_for_each_seed_and_workers_change_nothing() -> None:
    control = Bold()
    alone, together = run(control, repeat=3, workers=1), run(control, repeat=3, workers=3)
    assert alone.samples.equals(together.samples)
    assert control.intervals == []
    assert alone.samples.filter(seed=1)["cwnd_segments"].to_list() != (
        alone.samples.filter(seed=2)["cwnd_segments"].to_list()
    )


def test_an_interval_adds_up_what_was_delivered() -> None:
    made: list[Bold] = []

    def make() -> Bold:
        made.append(Bold())
        return made[-1]

    result = run(make)
    intervals = made[-1].intervals
    assert all(one.end_ns - one.start_ns >= 50_000_000 for one in intervals)
    assert [one.start_ns for one in intervals[1:]] == [one.end_ns for one in intervals[:-1]]
    delivered = sum(one.delivered_segments * one.mss_bytes for one in intervals)
    assert delivered == pytest.approx(result.samples["delivered_bytes"][-1], rel=0.05)
    # Paced at 5 Mb/s over a link of 10.
    assert intervals[-1].delivered_bps == pytest.approx(5e6, rel=0.05)


def test_the_class_and_its_source_are_in_tables_and_provenance(tmp_path: Path) -> None:
    result = run(Halving(), out=tmp_path / "run")
    assert result.flows["congestion"].to_list() == ["halving"]
    assert result.provenance["congestion"]["flow.0"].startswith(f"{__name__}.Halving sha256 ")
    assert (
        result.provenance["id"] != airpath.run("wire", set={"run.duration_s": 2}).provenance["id"]
    )


class Faulty(Congestion):
    """Does what ``fault`` says after the tenth acknowledgement."""

    acks: ClassVar[int] = 0

    def __init__(self, fault: str) -> None:
        self.fault, self.seen = fault, 0

    def on_ack(self, ack: Ack, window: Window) -> Any:
        self.seen += 1
        if self.seen > 10:
            if self.fault == "raises":
                raise ZeroDivisionError("ten is enough")
            if self.fault == "returns":
                return "delay"
            window.cwnd_segments = eval(self.fault)
        return None


FAULTS = [
    ("raises", "Faulty.on_ack raised ZeroDivisionError: ten is enough, in .*test_congestion.py:"),
    ("math.nan", "Faulty.on_ack set cwnd_segments to NaN, which must be from 1 to 10000000"),
    ("math.inf", "Faulty.on_ack set cwnd_segments to inf"),
    ("-1", "Faulty.on_ack set cwnd_segments to -1"),
    ("0", "Faulty.on_ack set cwnd_segments to 0"),
    ("'many'", "Faulty.on_ack raised TypeError"),
    ("returns", "Faulty.on_ack raised AttributeError"),
]


@pytest.mark.parametrize(("fault", "message"), FAULTS)
def test_a_fault_is_one_error_and_leaves_nothing_behind(
    fault: str, message: str, tmp_path: Path
) -> None:
    assert math
    threads = threading.active_count()
    with pytest.raises(InputError, match=rf"^congestion control of flow.0: {message}") as raised:
        run(Faulty(fault), out=tmp_path / "run")
    assert str(raised.value).count("\n") == 0
    assert list(tmp_path.iterdir()) == []
    assert threading.active_count() == threads
    if fault == "raises":
        assert isinstance(raised.value.__cause__, ZeroDivisionError)


class Silent(Congestion):
    """Lets nothing out."""

    def on_interval(self, interval: Interval, window: Window) -> None:
        window.pacing_bps = 1.0


class Unpaced(Congestion):
    """Paces without being model-based."""

    def on_ack(self, ack: Ack, window: Window) -> None:
        window.pacing_bps = 1e6


class Empty(Congestion):
    """Decides nothing."""


class Locked(Halving):
    """Cannot be copied."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


class Hasty(Bold):
    """Has an impossible interval."""

    interval_ms = 0.0


class LossOfNothing(Halving):
    """Sets an impossible ssthresh."""

    def on_loss(self, loss: Loss, window: Window) -> None:
        window.ssthresh_segments = math.nan


@pytest.mark.parametrize(
    ("control", "message"),
    [
        (Silent(), "Silent.on_interval set pacing_bps to 1, which must be finite and at least"),
        (Unpaced(), "Unpaced.on_ack set pacing_bps to 1000000, but it is not model-based"),
        (Empty(), "Empty has neither on_ack nor on_interval"),
        (Locked(), "cannot be copied"),
        (Hasty(), "Hasty.interval_ms is 0.0, which must be above 0"),
        (LossOfNothing(), "LossOfNothing.on_loss set ssthresh_segments to NaN"),
        (object(), "derives from airpath.congestion.Congestion"),
        ("./nothing.so", "nothing.so cannot be read"),
    ],
)
def test_what_cannot_decide_is_refused(control: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(control)


@pytest.mark.parametrize(
    ("flow", "message"),
    [("flow.7", "there is no 'flow.7'; the flows are flow.0"), ("download", "there is no")],
)
def test_a_flow_that_is_not_there_is_refused(flow: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        airpath.run("wire", congestion={flow: Halving()})


def test_a_ping_has_no_congestion_control() -> None:
    with pytest.raises(InputError, match="is not TCP but ping"):
        airpath.run("ping-under-load", congestion={"flow.0": Halving()})


def test_explaining_needs_the_built_in_ones() -> None:
    with pytest.raises(
        InputError, match="explain needs airpath's own congestion control algorithms"
    ):
        run(Halving(), explain="quick")
