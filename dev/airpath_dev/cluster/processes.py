"""A scheduler and workers of Dask, each begun by hand, which nobody else can use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest


class Processes:
    """A Dask scheduler and workers, each started by hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.all: list[subprocess.Popen[Any]] = []
        self.scheduler = self._start(
            "scheduler", "--host", "127.0.0.1", "--port", "0", "--protocol", "tls",
            "--no-dashboard",
            "--scheduler-file", "scheduler.json",
        )  # fmt: skip
        file = folder / "scheduler.json"
        while not file.exists() or not file.read_text().strip().endswith("}"):
            assert self.scheduler.poll() is None, "the scheduler did not start"
            time.sleep(0.05)
        self.address = str(json.loads(file.read_text())["address"])

    def worker(self) -> subprocess.Popen[Any]:
        """Start one more worker."""
        return self._start(
            "worker", self.address, "--host", "127.0.0.1", "--nthreads", "1", "--no-dashboard",
            "--no-nanny", "--death-timeout", "60",
        )  # fmt: skip

    def _start(self, kind: str, *words: str) -> subprocess.Popen[Any]:
        with (self.folder / f"{kind}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "distributed.cli.dask_" + kind, *words],
                cwd=self.folder, stdout=log, stderr=log,
            )  # fmt: skip
        self.all.append(process)
        return process

    def end(self) -> None:
        """Kill all processes of the cluster."""
        for process in self.all:
            process.kill()
            process.wait()


@contextmanager
def processes(folder: Path, workers: int) -> Iterator[Processes]:
    """A scheduler with workers, ended again whatever happens."""
    import dask

    settings = certificate(folder)
    words = {
        f"DASK_{key.replace('.', '__').replace('-', '_').upper()}": str(value)
        for key, value in settings.items()
    }
    with dask.config.set(settings), pytest.MonkeyPatch.context() as patch:
        for name, text in words.items():
            patch.setitem(os.environ, name, text)
        made = Processes(folder)
        try:
            for _ in range(workers):
                made.worker()
            yield made
        finally:
            made.end()


def certificate(folder: Path) -> dict[str, Any]:
    """Settings of Dask for TLS with a certificate that is made for this."""
    from distributed import Security

    made = Security.temporary()
    file = folder / "cluster.pem"
    file.touch(mode=0o600)
    file.write_text(made.tls_worker_cert + made.tls_worker_key, encoding="ascii")
    roles = ("client", "scheduler", "worker")
    return {
        "distributed.comm.require-encryption": True,
        "distributed.comm.tls.ca-file": str(file),
        **{f"distributed.comm.tls.{role}.{what}": str(file)
           for role in roles for what in ("cert", "key")},
    }  # fmt: skip


def begun(place: Path, process: subprocess.Popen[Any]) -> None:
    """Wait until some of a campaign is kept, and some is not."""
    deadline = time.monotonic() + 100
    while len(list(place.glob("pieces/*.zip"))) < 4:
        assert time.monotonic() < deadline, "the campaign did not begin"
        assert process.poll() is None, "the campaign ended before"
        time.sleep(0.01)
