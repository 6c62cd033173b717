"""Campaigns on Dask and in an object store: the same tables, whoever is killed."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import airpath
from campaigns import SHORT, tables, toml
from conftest import start_command
from dask_processes import begun, processes

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


def test_a_cluster_of_this_machine_is_begun_and_ended(
    tmp_path: Path, expected: dict[str, str]
) -> None:
    process = start_command(
        "sweep", _file(tmp_path, {}), "--cluster", "local", "--workers", "2", "--out", "out",
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert b"2 workers" in out
    assert tables(tmp_path / "out") == expected


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

    url = "s3://lab/campaigns/short"
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
