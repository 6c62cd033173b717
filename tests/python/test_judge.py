"""``airpath judge``: what runs, and what its figures show."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import airpath
from airpath import scenario as scenarios
from airpath.emulation.congestion import Congestion
from airpath.errors import InputError
from airpath.judge import definition, trials, verdicts
from airpath.judge.trials import Candidate
from conftest import Command
from emulated import skip_without_bpf

BBR, CUBIC, TOY = (Candidate(name, Congestion(None, name)) for name in ("bbr", "cubic", "toy"))


def test_the_set_is_the_one_that_its_version_names() -> None:
    """Whoever changes a path, a case or a length gives the set another version."""
    parts = [
        repr(definition.CASES),
        *(
            definition.scenario(case.path, pair=pair)
            for case in definition.CASES
            for pair in (False, True)
        ),
    ]
    digits = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
    assert (definition.SET, digits) == ("2", "c35cc358882f")


@pytest.mark.parametrize("case", definition.CASES, ids=lambda case: case.path)
def test_each_path_is_a_scenario(case: definition.Case) -> None:
    loaded = scenarios.parse(definition.scenario(case.path, pair=True), case.path)
    assert [flow["id"] for flow in loaded.flows] == ["tested", "peer", "ping"]
    alone = scenarios.parse(definition.scenario(case.path, pair=False), case.path)
    assert [flow["id"] for flow in alone.flows] == ["tested", "ping"]


@pytest.mark.parametrize("case", definition.CASES, ids=lambda case: case.path)
def test_no_figure_has_an_rrc_promotion_in_it(case: definition.Case, tmp_path: Path) -> None:
    """The flow has begun half a second before its figures, and pings meet a connected UE."""
    file = tmp_path / "path.toml"
    file.write_text(definition.scenario(case.path, pair=False), encoding="utf-8")
    run = airpath.run(file, {"run.duration_s": definition.FROM_S + 0.1})
    samples = run.samples.filter(flow="tested")
    [began_ns, *_] = samples.filter(samples["delivered_bytes"] > 0)["time_ns"].to_list()
    assert began_ns / 1e9 < definition.FROM_S - 0.5


def test_a_block_runs_everything_once_in_an_order_of_its_own() -> None:
    found = list(trials._trials([BBR, TOY, CUBIC], [CUBIC, BBR], 2))
    first, second = found[: len(found) // 2], found[len(found) // 2 :]
    assert {trial._replace(block=1) for trial in first} == set(second)
    assert [trial._replace(block=1) for trial in first] != second
    alone = Counter(trial.tested.label for trial in first if trial.peer is None)
    assert alone == {"bbr": 7, "toy": 7, "cubic": 7}
    met = Counter(
        (trial.path, *sorted((trial.tested.label, trial.peer.label)))
        for trial in first
        if trial.peer is not None
    )
    # Two congestion controls meet once, whichever of them is judged.
    assert set(met.values()) == {1}
    assert sum(path == "wire" for path, _, _ in met) == 6
    assert {pair for path, *pair_ in met if path == "lte" for pair in [tuple(pair_)]} == {
        ("bbr", "cubic"),
        ("cubic", "toy"),
        ("cubic", "cubic"),
    }
    assert len({trial.place for trial in found}) == len(found)


def test_candidates_have_names_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.bpf.o"
    file.write_bytes(b"")
    labels = [one.label for one in trials._candidates([str(file), "bbr"])]
    assert labels == ["mine", "bbr", "cubic"]
    own = file.rename(tmp_path / "cubic.bpf.o")
    with pytest.raises(InputError, match="the host's own `cubic` has this name in the results"):
        trials._candidates([str(own)])
    with pytest.raises(InputError, match="another congestion control algorithm has the name `bbr`"):
        trials._candidates(["bbr", "bbr"])
    with pytest.raises(InputError, match="leave out FLOW="):
        trials._candidates(["tested=bbr"])


def row(congestion: str, path: str = "wire", **figures: Any) -> verdicts.Row:
    """Return a row with usual figures, except those given as (smallest, largest)."""
    usual = {
        "goodput_mbps": (18.0, 19.0),
        "rtt_ms": (60.0, 61.0),
        "rtt_p95_ms": (70.0, 71.0),
        "retransmitted": (0.01, 0.02),
        "ping_ms": (60.0, 61.0),
        "ping_p95_ms": (70.0, 75.0),
        "ping_lost": (0.0, 0.02),
    }
    ranges = {name: span(*figures.get(name, both)) for name, both in usual.items()}
    share = {peer: span(*both) for peer, both in figures.get("share", {}).items()}
    return {"path": path, "congestion": congestion, "share": share, **ranges}  # type: ignore[typeddict-item]


def span(low: float, high: float) -> verdicts.Range:
    return {"mean": (low + high) / 2, "min": low, "max": high, "values": [low, high]}


@pytest.mark.parametrize(
    ("figures", "fault"),
    [
        ({}, None),
        ({"retransmitted": (0.3, 0.4)}, "does not back off for losses"),
        # Not in every block.
        ({"retransmitted": (0.05, 0.4)}, None),
        ({"goodput_mbps": (2.0, 8.0)}, "is slow"),
        ({"ping_p95_ms": (200.0, 300.0)}, "delays others"),
        ({"ping_lost": (0.2, 0.3)}, "makes others lose packets"),
        ({"share": {"cubic": (0.7, 0.9)}}, "takes the rate of cubic"),
        ({"share": {"cubic": (0.6, 0.9)}}, None),
        ({"share": {"bbr": (0.1, 0.2)}}, "yields to bbr"),
        ({"share": {"itself": (0.8, 0.9)}}, "is unfair to itself"),
        ({"share": {"itself": (0.2, 0.9)}}, None),
    ],
)
def test_a_fault_is_what_every_block_shows(figures: dict[str, Any], fault: str | None) -> None:
    found = verdicts.faults([row("cubic"), row("mine", **figures)])
    assert [one.fault for one in found] == ([] if fault is None else [fault])


def test_what_the_path_does_is_not_blamed_on_the_sender() -> None:
    """CUBIC retransmits there as much, and pings wait as long."""
    lossy: dict[str, Any] = {
        "retransmitted": (0.2, 0.2),
        "ping_p95_ms": (300.0, 300.0),
        "ping_lost": (0.2, 0.2),
    }
    assert verdicts.faults([row("cubic", **lossy), row("mine", **lossy)]) == []


@skip_without_bpf()
def test_what_is_not_there_is_refused(airpath_command: Command) -> None:
    done = airpath_command("judge", "no_such_thing", "--repeat", "1")
    assert done.returncode == 2
    assert "this host has no `no_such_thing`" in done.stderr
