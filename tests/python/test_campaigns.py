"""Campaigns on this machine: the same tables always, every run once, nothing lost."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import airpath
from airpath.base.choices import Explain
from airpath.campaign import definition as definitions
from airpath.campaign import work
from airpath.campaign.results import open_campaign
from airpath.campaign.sweep import estimate
from airpath.errors import AirpathError, InputError
from airpath_dev.cluster import tables
from campaigns import SHORT, toml
from conftest import Command, start_command


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The short campaign with one thread."""
    place = tmp_path_factory.mktemp("campaign") / "whole"
    airpath.sweep(SHORT, out=place, workers=1)
    return place


def test_tables_do_not_depend_on_the_number_of_threads(whole: Path, tmp_path: Path) -> None:
    airpath.sweep(SHORT, out=tmp_path / "two", workers=2)
    assert tables(tmp_path / "two") == tables(whole)
    assert {Path(name).parent.name for name in tables(whole)} == {"runs", "flows", "links"}


def test_rows_are_those_of_single_runs(whole: Path) -> None:
    flows = open_campaign(whole).table("flows")
    assert len(flows) == 40
    row = flows.filter(cc="cubic", queue=100, seed=4).row(0, named=True)
    sets = {"run.duration_s": 0.5, "flow.0.congestion": "cubic", "path.down.0.queue_packets": 100}
    alone = airpath.run("random-loss", set=sets, seed=4).flows.drop("seed")
    assert {name: row[name] for name in alone.columns} == alone.row(0, named=True)
    assert row["scenario"] == "random-loss"


def test_rows_are_in_the_campaigns_order_and_say_what_was_varied(whole: Path) -> None:
    campaign = open_campaign(whole)
    runs = campaign.table("runs")
    assert campaign.complete
    assert runs["run"].to_list() == list(range(40))
    assert runs["key"].n_unique() == 40
    assert runs["seed"].to_list() == [1, 2, 3, 4, 5] * 8
    assert set(runs["explained"]) == {"off"}
    assert runs.columns[:7] == ["run", "key", "cell", "scenario", "seed", "cc", "queue"]
    assert runs.schema["queue"] == pl.Int64


def test_a_folder_that_has_a_campaign_is_not_written_over(whole: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has 40 of 40 runs already\n  --resume continues it"):
        airpath.sweep(SHORT, out=whole)
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="exists and is not empty"):
        airpath.sweep(SHORT, out=tmp_path)


def damage(place: Path, how: str) -> None:
    """Harm a campaign as a power cut might."""
    flows, *_ = sorted(place.glob("flows/*"))
    parts = sorted(place.glob("parts/*"))
    if how == "truncated":
        flows.write_bytes(flows.read_bytes()[:1000])
    elif how == "zeros":
        data = flows.read_bytes()
        flows.write_bytes(data[:500] + bytes(500) + data[1000:])
    elif how == "gone":
        flows.unlink()
    elif how == "empty document":
        parts[-1].write_bytes(b"")
    elif how == "no manifest":
        (place / "manifest.json").unlink()


@pytest.mark.parametrize("how", ["truncated", "zeros", "gone", "empty document", "no manifest"])
def test_what_a_power_cut_harms_is_made_again(whole: Path, tmp_path: Path, how: str) -> None:
    place = tmp_path / "out"
    airpath.sweep(SHORT, out=place, workers=2)
    damage(place, how)
    again = airpath.sweep(SHORT, out=place, workers=2, resume=True)
    assert tables(place) == tables(whole)
    assert again.document["simulated"] == (0 if how == "no manifest" else 20)
    assert again.complete


def test_pieces_of_a_killed_campaign_are_used_if_they_are_whole(
    whole: Path, tmp_path: Path
) -> None:
    place = tmp_path / "out"
    # As long as a piece that is cut off, and one that is whole.
    stopped(place, after=3)
    pieces = sorted(place.glob("pieces/*"))
    assert len(pieces) >= 2
    pieces[0].write_bytes(pieces[0].read_bytes()[:-40])
    told: list[str] = []
    again = airpath.sweep(SHORT, out=place, workers=1, resume=True, tell=told.append)
    assert f"{place}/pieces/{pieces[0].name} is damaged" in told[0]
    assert again.document["recovered"] == len(pieces) - 1
    assert tables(place) == tables(whole)
    assert not list(place.glob("pieces/*"))


def stopped(place: Path, after: int, campaign: Any = SHORT) -> None:
    """Run the campaign and press Ctrl-C after some batches."""
    seen = 0

    def interrupt(_: float) -> None:
        nonlocal seen
        seen += 1
        if seen == after:
            raise KeyboardInterrupt

    with pytest.raises(AirpathError, match=r"interrupted; \d+ of \d+ runs are kept in"):
        airpath.sweep(campaign, out=place, workers=1, progress=interrupt)


def test_ctrl_c_keeps_what_is_done(whole: Path, tmp_path: Path) -> None:
    place = tmp_path / "out"
    stopped(place, after=5)
    half = open_campaign(place)
    assert not half.complete
    again = airpath.sweep(SHORT, out=place, workers=1, resume=True)
    assert again.document["recovered"] >= 5
    assert again.document["recovered"] + again.document["simulated"] == 40
    assert tables(place) == tables(whole)


def test_equal_cells_have_a_run_each(tmp_path: Path) -> None:
    """They share their keys: one row on the disk is the result of both."""
    same = ["path.down.0.queue_packets=50"]
    choices = [{"label": "a", "set": same}, {"label": "b", "set": same}]
    made = {**SHORT, "vary": [{"name": "which", "choices": choices}]}
    place = tmp_path / "out"
    airpath.sweep(made, out=place, workers=1)
    whole = tables(place)
    (place / "parts/00000.json").unlink()
    airpath.sweep(made, out=place, workers=1, resume=True)
    assert tables(place) == whole
    stopped(place.with_name("half"), after=5, campaign=made)
    airpath.sweep(made, out=place.with_name("half"), workers=1, resume=True)
    assert tables(place.with_name("half")) == whole


def test_a_campaign_that_grows_keeps_its_runs(tmp_path: Path) -> None:
    place = tmp_path / "out"
    airpath.sweep(SHORT, out=place, workers=2)
    more = {**SHORT, "seeds": 7}
    grown = airpath.sweep(more, out=place, workers=2, resume=True)
    assert (grown.document["recovered"], grown.document["simulated"]) == (40, 16)
    airpath.sweep(more, out=tmp_path / "alone", workers=2)
    assert tables(place) == tables(tmp_path / "alone")


def test_runs_of_another_version_are_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "out"
    few = {**SHORT, "seeds": 1}
    airpath.sweep(few, out=place, workers=1)
    monkeypatch.setattr("airpath.runs.provenance.core_hash", lambda: "another core")
    again = airpath.sweep(few, out=place, workers=1, resume=True)
    assert (again.document["recovered"], again.document["simulated"]) == (0, 8)


def test_sigkill_loses_no_run_that_was_kept(whole: Path, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(toml(), encoding="utf-8")
    out = tmp_path / "out"
    process = start_command("sweep", "c.toml", "--out", "out", "--workers", "1", cwd=tmp_path)
    while not list(out.glob("pieces/*.zip")) and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    again = airpath.sweep(SHORT, out=out, workers=1, resume=True)
    assert again.document["recovered"] >= 1
    assert tables(out) == tables(whole)


def test_two_campaigns_do_not_write_to_one_folder(tmp_path: Path) -> None:
    from airpath.campaign.store import open_store

    store = open_store(tmp_path / "out")
    store.lock()
    with pytest.raises(AirpathError, match="another campaign is running in"):
        airpath.sweep({"scenario": "wire"}, out=tmp_path / "out", resume=True)
    store.unlock()


@pytest.fixture
def fragile(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that breaks with run 17, whatever batch that is in."""
    simulate = work.simulate

    def breaking(batch: work.Batch, keep_on: Any = None) -> work.Done:
        if 17 in batch.numbers:
            raise RuntimeError("the worker broke")
        return simulate(batch, keep_on)

    monkeypatch.setattr(work, "simulate", breaking)


@pytest.mark.usefixtures("fragile")
def test_a_run_that_breaks_its_worker_is_found_recorded_and_stops_no_other(
    tmp_path: Path, whole: Path
) -> None:
    done = airpath.sweep(SHORT, out=tmp_path / "out", workers=1)
    runs = done.table("runs")
    failed = runs.filter(status="failed")
    assert failed["run"].to_list() == [17]
    assert failed["error"].to_list() == ["RuntimeError: the worker broke"]
    assert done.document["failed"] == 1
    others = open_campaign(whole).table("flows").filter(pl.col("run") != 17)
    assert done.table("flows").equals(others)


@pytest.mark.usefixtures("fragile")
def test_a_failed_run_can_be_run_alone_and_again(
    tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    airpath.sweep(SHORT, out=out, workers=1)
    text = (out / "failed/run-17.toml").read_text()
    assert "failed, with seed 3" in text
    run = airpath.run(out / "failed/run-17.toml", set=_sets_of(text), seed=3)
    row = open_campaign(whole).table("flows").filter(run=17)
    assert run.flows["goodput_mbps"].to_list() == row["goodput_mbps"].to_list()
    kept = airpath.sweep(SHORT, out=out, workers=1, resume=True)
    assert kept.document["simulated"] == 0
    monkeypatch.undo()
    again = airpath.sweep(SHORT, out=out, workers=1, resume=True, retry_failed=True)
    assert again.document["simulated"] == 1
    assert tables(out) == tables(whole)


def _sets_of(text: str) -> list[str]:
    import re

    return re.findall(r"--set '([^']*)'", text)


def test_a_scenario_that_vanishes_is_a_failed_run(tmp_path: Path) -> None:
    """Its trace is there when the campaign is checked, and not when it is run."""
    batch = work.Batch(
        (("[run]\nduration_s = -1\n", "gone.toml", None),),
        (work.Job(0, (), "0", ((3, 1),)),), "off", *_core(),
    )  # fmt: skip
    rows = work.unpack(work.simulate(batch).packed)["runs"].to_dicts()
    assert [(row["run"], row["status"]) for row in rows] == [(3, "failed")]
    assert "gone.toml:2:14" in rows[0]["error"]


def _core() -> tuple[str, str]:
    from airpath import _core as core
    from airpath.runs.provenance import core_hash

    return core.__version__, core_hash() or ""


def test_a_worker_with_another_core_refuses(tmp_path: Path) -> None:
    with pytest.raises(work.OtherCoreError, match="install the same version everywhere"):
        work.simulate(work.Batch((), (), "off", "0.0", "x"))


def test_findings_are_rows_if_they_are_asked_for(tmp_path: Path) -> None:
    few = {"scenario": "small-window", "set": ["run.duration_s=5"], "explain": "quick"}
    done = airpath.sweep(few, out=tmp_path / "out", workers=1)
    assert set(done.table("runs")["explained"]) == {"quick"}
    found = done.table("findings")
    assert found["cause"][0] == "receive-window"
    assert {"scenario", "seed", "confidence", "gain_after"} <= set(found.columns)


def test_the_cost_of_a_batch_is_what_its_simulations_took() -> None:
    scenario = airpath.scenario.load("wire", {"run.duration_s": 1000})
    text, name, directory, sets = scenario.given
    job = work.Job(0, tuple(sets), scenario.sha256, ((0, 1),))

    def done(explain: Explain) -> work.Done:
        return work.simulate(work.Batch(((text, name, directory),), (job,), explain, *_core()))

    plain = done("off")
    # No processor handles an event in a nanosecond.
    assert plain.engine_s > 1e-9 * sum(plain.events) > 1e-3
    # An explanation simulates its run several times.
    assert done("quick").engine_s > 2 * plain.engine_s


def test_an_estimate_is_of_the_campaign_as_it_will_run(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def simulate(batch: work.Batch, _: Any) -> work.Done:
        asked.append(batch.explain)
        return work.Done(work.pack({}), 0.04, (1,))

    monkeypatch.setattr(work, "simulate", simulate)
    campaign = definitions.load(SHORT)
    about = estimate(campaign, 2)
    assert about.run_s == pytest.approx(0.04)
    assert about.sample == 8
    assert "about 1.6 s of CPU time (800 ms with 2 workers)" in about.sentence()
    estimate(campaign, 2, "quick")
    assert asked == ["off"] * 8 + ["quick"] * 8


def test_seeds_are_added_until_a_figure_is_known(tmp_path: Path) -> None:
    definition = {
        "scenario": "random-loss", "set": ["run.duration_s=1"], "seeds": 10,
        "vary": [{"key": "path.down.0.queue_packets", "name": "queue", "values": [20, 60]}],
        "until": {"ci": 0.04, "max_seeds": 80}, "partition_runs": 15,
    }  # fmt: skip
    done = airpath.sweep(definition, out=tmp_path / "one", workers=1)
    from airpath.campaign.summaries import summarise

    found = summarise(done, "flows.goodput_mbps").to_dicts()
    for row in found:
        assert row["n"] == 80 or (row["high"] - row["low"]) / 2 <= 0.04 * row["mean"]
    assert done.document["runs"] > 20, "no cell wanted more seeds: the test shows nothing"
    assert done.table("runs")["run"].to_list() == list(range(done.document["runs"]))
    airpath.sweep(definition, out=tmp_path / "two", workers=2)
    assert tables(tmp_path / "one") == tables(tmp_path / "two")
    (tmp_path / "two/parts/00001.json").unlink()
    airpath.sweep(definition, out=tmp_path / "two", workers=2, resume=True)
    assert tables(tmp_path / "one") == tables(tmp_path / "two")


def test_too_little_space_is_said_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from airpath.campaign import store

    monkeypatch.setattr(store._Folder, "free_bytes", lambda self: 1000)
    with pytest.raises(
        AirpathError, match=r"has 1\.00 kB of disk space left, but the campaign needs about"
    ):
        airpath.sweep(SHORT, out=tmp_path / "out", workers=1)


@pytest.mark.parametrize("figure", ["flows.nonsense", "flows.congestion", "flows.run"])
def test_until_of_no_figure_is_refused_before_the_first_run(tmp_path: Path, figure: str) -> None:
    from airpath.campaign.definition import Until

    message = r"table flows has no column `\w+`(; did you mean `\w+`\?)?\n  available: start"
    with pytest.raises(airpath.InputError, match=message):
        airpath.sweep(SHORT, out=tmp_path / "out", workers=1, until=Until(0.02, figure))
    assert not (tmp_path / "out").exists()


def test_the_command_runs_checks_and_resumes(airpath_command: Command, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(toml(), encoding="utf-8")
    checked = airpath_command("sweep", "c.toml", "--check")
    assert (checked.returncode, checked.stderr) == (0, "")
    assert checked.stdout.startswith("40 runs (8 combinations x 5 seeds), about ")
    assert not (tmp_path / "campaigns").exists()
    done = airpath_command("sweep", "c.toml", "--report", "c.html")
    assert done.returncode == 0, done.stderr
    assert "results: campaigns/c" in done.stdout
    assert "short runs" in (tmp_path / "c.html").read_text()
    again = airpath_command("sweep", "c.toml")
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr.startswith("error: campaigns/c has 40 of 40 runs already")
    resumed = airpath_command("sweep", "c.toml", "--resume", "--json")
    document = json.loads(resumed.stdout)
    assert (document["recovered"], document["simulated"], document["complete"]) == (40, 0, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["buffer"], "error: no campaign named 'buffer'; did you mean 'buffers'?"),
        (["no.toml"], "error: no campaign file no.toml"),
        (["buffers", "--until", "2"], "error: --until 2: must be ci=N%"),
        (["buffers", "--until", "ci=2%"], "error: --until needs seeds = 10 or more in buffers"),
        (["buffers", "--cluster", "slurm"], "error: a cluster needs a number of workers"),
        (["buffers", "--cluster", "k8s", "--workers", "2"], "error: no cluster 'k8s'; available:"),
        (["buffers", "--retry-failed"], "error: --retry-failed needs --resume"),
        (["buffers", "--scheduler", "tcp://127.0.0.1:1"], "error: no scheduler at tcp://127.0.0.1"),
    ],
)
def test_bad_use_is_said(
    cli: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("airpath.campaign.dask._CONNECT_S", 0.5)
    code, _, err = cli("sweep", *arguments)
    assert err.startswith(message)
    assert code == (1 if "--scheduler" in arguments else 2)


@pytest.mark.parametrize(
    ("scenarios", "name"),
    [
        ("wire", "wire"),
        (["wire", "codel"], "wire-codel"),
        (["wire", "codel", "policer", "proxy"], "wire-and-3-more"),
    ],
)
def test_a_campaign_without_a_file_is_named_after_its_scenarios(scenarios: Any, name: str) -> None:
    made = definitions.load({"scenario": scenarios, "set": ["run.duration_s=1"]})
    assert (made.name, made.title) == (name, name)
