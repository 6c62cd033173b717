"""Campaigns on Dask and in an object store: the same tables, whoever is killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import airpath
from airpath_dev.cluster import tables
from airpath_dev.cluster.processes import begun, processes
from campaigns import SHORT, toml
from conftest import start_command

pytest.importorskip("distributed")

LONG = {**SHORT, "set": ["run.duration_s=20"]}
"""40 runs that take some seconds in all."""


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    place = tmp_path_factory.mktemp("campaign") / "local"
    airpath.sweep(SHORT, out=place, workers=1)
    return tables(place)


def test_tables_do_not_depend_on_the_engine(tmp_path: Path, expected: dict[str, str]) -> None:
    """Two workers begun by hand, one of which joins and one that is joined later."""
    with processes(tmp_path, workers=2) as made:
        airpath.sweep(SHORT, out=tmp_path / "dask", scheduler=made.address)
    assert tables(tmp_path / "dask") == expected


def _file(folder: Path, changes: dict[str, Any]) -> str:
    (folder / "c.toml").write_text(toml(**changes), encoding="utf-8")
    return "c.toml"


def test_a_killed_worker_loses_no_run(tmp_path: Path) -> None:
    """`make cluster` kills the scheduler and the client too."""
    out = tmp_path / "out"
    _file(tmp_path, {"set": LONG["set"]})
    with processes(tmp_path, workers=1) as made:
        second = made.worker()
        words = ("sweep", "c.toml", "--out", "out", "--scheduler", made.address)
        client = start_command(*words, cwd=tmp_path, stderr=subprocess.PIPE)
        begun(out, client)
        second.send_signal(signal.SIGKILL)
        _, err = client.communicate(timeout=120)
    assert client.returncode == 0, err
    airpath.sweep(LONG, out=tmp_path / "local", workers=2)
    assert tables(out) == tables(tmp_path / "local")


@pytest.fixture(scope="module")
def bucket() -> Iterator[dict[str, Any]]:
    """An S3 server on loopback, with a bucket."""
    server = pytest.importorskip("moto.server")
    boto3 = pytest.importorskip("boto3")
    began = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    began.start()
    host, port = began.get_host_and_port()
    url = f"http://{host}:{port}"
    secrets = {
        "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_ENDPOINT_URL": url,
        "AWS_DEFAULT_REGION": "us-east-1",
    }  # fmt: skip
    before = {name: os.environ.get(name) for name in secrets}
    os.environ.update(secrets)
    boto3.client("s3").create_bucket(Bucket="lab")
    yield secrets
    for name, value in before.items():
        if value is None:
            del os.environ[name]
        else:
            os.environ[name] = value
    began.stop()


@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.usefixtures("bucket")
def test_an_object_store_has_the_same_tables(tmp_path: Path, expected: dict[str, str]) -> None:
    import hashlib

    url = "s3://lab/campaigns/a[1]*?"
    done = airpath.sweep(SHORT, out=url, workers=2)
    found = {
        name: hashlib.sha256(done.store.read(name) or b"").hexdigest()
        for files in done.files.values()
        for name in files
    }
    assert found == expected
    assert done.complete
    count = airpath.query("select count(*) as n, avg(goodput_mbps) as mean from flows", url)
    assert count["n"].to_list() == [40]
    done.store.write(done.files["flows"][0], b"cut off")
    again = airpath.sweep(SHORT, out=url, workers=2, resume=True)
    assert again.document["simulated"] == 20
    assert again.store.names("pieces/") == []


def test_a_store_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(airpath.InputError, match="cannot open nonsense://x"):
        airpath.sweep(SHORT, out="nonsense://x")


def test_a_worker_that_comes_later_is_counted(tmp_path: Path) -> None:
    """And one that goes is no longer: the overhead is of the workers that there were."""
    from airpath.campaign import dask

    with processes(tmp_path, workers=1) as made:
        engine = dask.at(made.address)
        try:
            assert engine.slots == 1
            second = made.worker()
            _until(engine, 2)
            second.kill()
            _until(engine, 1)
        finally:
            engine.close()


def _until(engine: Any, slots: int) -> None:
    deadline = time.monotonic() + 60
    while engine.slots != slots:
        assert time.monotonic() < deadline, engine.slots
        # As `next` does while nothing ends.
        engine.recount()
        time.sleep(0.05)


def test_overhead_is_of_the_workers_that_there_were() -> None:
    from airpath.campaign.sweep import Tally

    spent = Tally(engine_s=27.0, simulated=1)
    spent.passed(10.0, 1)
    spent.passed(10.0, 2)
    assert spent.wall_s == 20
    assert spent.workers == 2
    assert spent.overhead == pytest.approx(0.1)


def test_ctrl_c_on_a_terminal_leaves_the_workers_to_the_client(tmp_path: Path) -> None:
    """It is sent to all processes of a terminal; the client ends the others when all is kept."""
    _file(tmp_path, {"set": LONG["set"]})
    words = ("sweep", "c.toml", "--out", "out", "--cluster", "local", "--workers", "2")
    client = start_command(
        *words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    begun(tmp_path / "out", client)
    os.killpg(client.pid, signal.SIGINT)
    _, err = client.communicate(timeout=60)
    assert client.returncode == 130, err
    assert re.fullmatch(
        # What a run takes is told first, if enough of them were over by then.
        rb"(40 runs \(8 combinations x 5 seeds\).*\n)?"
        rb"error: interrupted; \d+ of 40 runs are kept in out: continue with --resume\n",
        err,
    ), err
    again = airpath.sweep(LONG, out=tmp_path / "out", workers=2, resume=True)
    assert again.document["recovered"] >= 4
    assert len(again.table("runs")) == 40


LATE = """
import asyncio
import time
from distributed.scheduler import Scheduler
begin = Scheduler.__init__
def begun(self, *words, **more):
    begin(self, *words, **more)
    answer = self.handlers["heartbeat_worker"]
    async def late(*words, **more):
        # So that there is always one under way when the cluster ends.
        await asyncio.sleep(60)
        return answer(*words, **more)
    self.handlers["heartbeat_worker"] = late
Scheduler.__init__ = begun
import airpath
if __name__ == "__main__":
    about = {"scenario": "wire", "set": ["run.duration_s=0.1"], "seeds": 20}
    wait = lambda _: time.sleep(0.5)
    airpath.sweep(about, out="out", cluster="local", workers=2, progress=wait)
"""


def test_a_cluster_ends_without_a_traceback(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text(LATE)
    ended = subprocess.run(
        [sys.executable, "late.py"], cwd=tmp_path, capture_output=True, text=True, check=False,
        timeout=120,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""


def test_what_the_user_chose_for_dask_stays() -> None:
    import dask

    from airpath.campaign.dask import SPARING, _prologue, _unless_chosen

    tick, profile = "distributed.admin.tick.interval", "distributed.worker.profile.enabled"
    assert _unless_chosen(SPARING) == SPARING
    with dask.config.set({tick: "7s", "jobqueue.slurm.job-script-prologue": ["module load x"]}):
        ours = _unless_chosen(SPARING)
        assert ours == {key: value for key, value in SPARING.items() if key != tick}
        with dask.config.set(ours):
            assert dask.config.get(profile) is False
            lines = _prologue()
    assert lines[-1] == "module load x"
    said = subprocess.run(
        ["sh", "-c", "\n".join([*lines[:-1], "env"])], capture_output=True, text=True, check=True,
        env={"DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "True"},
    ).stdout  # fmt: skip
    # As a Slurm job reads it; what its environment has already stays.
    read = dask.config.collect_env(dict(line.split("=", 1) for line in said.splitlines()))
    assert dask.config.get(profile, config=read) is True
    assert dask.config.get(tick, config=read) == "7s"
    assert (
        dask.config.get("distributed.scheduler.active-memory-manager.start", config=read) is False
    )
