"""Whichever process of a campaign is killed, each run appears exactly once: `make cluster`."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

import airpath
from airpath_dev.cluster import tables
from airpath_dev.cluster.processes import begun, processes
from campaigns import SHORT, toml
from conftest import start_command

LONG = {**SHORT, "set": ["run.duration_s=20"]}
"""40 runs that take some seconds in all."""


@pytest.fixture(scope="module")
def expected_long(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    place = tmp_path_factory.mktemp("campaign") / "local"
    airpath.sweep(LONG, out=place, workers=2)
    return tables(place)


@pytest.mark.parametrize("victim", ["worker", "scheduler", "client"])
def test_whoever_is_killed_every_run_is_there_once(
    tmp_path: Path, expected_long: dict[str, str], victim: str
) -> None:
    out = tmp_path / "out"
    (tmp_path / "c.toml").write_text(toml(set=LONG["set"]), encoding="utf-8")
    with processes(tmp_path, workers=1) as made:
        second = made.worker()
        words = ("sweep", "c.toml", "--out", "out", "--scheduler", made.address)
        client = start_command(*words, cwd=tmp_path, stderr=subprocess.PIPE)
        begun(out, client)
        killed = {"worker": second, "scheduler": made.scheduler, "client": client}[victim]
        killed.send_signal(signal.SIGKILL)
        _, err = client.communicate(timeout=120)
        code = client.returncode
    if victim == "worker":
        assert code == 0, err
    else:
        assert code == (1 if victim == "scheduler" else -signal.SIGKILL)
        if victim == "scheduler":
            assert b"has gone; " in err
            assert b"are kept in out: continue with --resume" in err
        again = airpath.sweep(LONG, out=out, workers=2, resume=True)
        assert again.document["recovered"] >= 4
    runs = airpath.open_campaign(out).table("runs")
    assert runs["run"].to_list() == list(range(40))
    assert set(runs["status"]) == {"done"}
    assert tables(out) == expected_long


POISON = """
from airpath.campaign import work
# It may be loaded twice.
simulate = work.whole = getattr(work, "whole", work.simulate)
def poisoned(batch, keep_on=None):
    if 17 in batch.numbers:
        import os
        os._exit(1)
    return simulate(batch, keep_on)
work.simulate = poisoned
"""


def test_a_run_that_kills_its_workers_is_found_and_recorded(tmp_path: Path) -> None:
    """A worker looks the function up by its name, so that it finds the poisoned one."""
    import dask
    import distributed

    preload = tmp_path / "poison.py"
    preload.write_text(POISON)
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=None,
            security=True,
            preload=[str(preload)],
        ) as cluster,
    ):
        done = airpath.sweep(SHORT, out=tmp_path / "out", scheduler=cluster)
    failed = done.table("runs").filter(status="failed")
    assert failed["run"].to_list() == [17]
    assert "KilledWorker" in failed["error"][0]
    assert len(done.table("runs")) == 40
