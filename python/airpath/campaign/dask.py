"""The engine of a Dask cluster: the same batches, on workers of ``dask.distributed``.

A worker that dies takes its batches with it; the scheduler hands them to another one. The scheduler
sees a batch of some seconds, never a run.

Whoever can talk to a scheduler or a worker can make it run code. A cluster that is begun here
therefore speaks TLS alone, with a certificate that exists only for this campaign and that both ends
must show (docs/adr/0065-sparing-cluster.md).
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import resource_tracker
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, get_args

from airpath.base.choices import Cluster
from airpath.campaign import dask_worker, work
from airpath.campaign.local import Outcome
from airpath.campaign.sampling import missing
from airpath.campaign.work import Batch
from airpath.errors import AirpathError, InputError
from airpath.runs.directories import cannot_write

CLUSTERS = get_args(Cluster)
_GONE_AFTER_S = 10.0
_CONNECT_S = 10.0
_NO_WORKER_S = 60.0
_RESULT_S = 5.0
_COUNT_S = 1.0
"""How often workers are counted."""
_ANSWER_S = 10.0
_AGAIN_S = 0.1
_WAIT_FOR_WORKERS_S = 600.0

SPARING: dict[str, object] = {
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "1s",
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.scheduler.active-memory-manager.start": False,
}
"""What a cluster that is begun for a campaign does less of: Dask profiles its workers 100 times a
second and looks at its loops 50 times, which together takes 3 % of a core with a worker on it."""
_WARM = {"distributed.worker.preload": ["airpath.campaign.dask_worker"]}
NO_PAGES: dict[str, object] = {
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}
"""Dask's web servers, which have no authentication, serve nothing."""


class DaskEngine:
    """Runs batches on the workers of a scheduler."""

    def __init__(self, client: Any, closes: ExitStack, *, owns_cluster: bool = False) -> None:
        """``closes`` is closed with the engine."""
        self._client = client
        self._closes, self._owns_cluster = closes, owns_cluster
        self._ended: SimpleQueue[tuple[Batch, Any]] = SimpleQueue()
        self._futures: set[Any] = set()
        self._lost_at: float | None = None
        self._threads = self._slots = self._wait_for_workers()
        self._counted_at = time.monotonic()

    @property
    def slots(self) -> int:
        """Threads of all workers that there are now; of the last ones if all have gone."""
        return self._slots

    def submit(self, batch: Batch) -> None:
        """Hand a batch over."""
        # Not pure: a batch that is submitted twice runs twice.
        future = self._client.submit(work.simulate, batch, pure=False)
        self._futures.add(future)
        future.add_done_callback(lambda ended: self._ended.put((batch, ended)))

    def next(self) -> Outcome:
        """Wait for a batch to end. Raises ``AirpathError`` if the scheduler has gone."""
        while True:
            self.recount()
            try:
                batch, future = self._ended.get(timeout=0.2)
            except Empty:
                self._check()
            else:
                return self._outcome(batch, future)

    def ended(self) -> list[Outcome]:
        """Batches that have ended and were not asked for."""
        found = []
        while not self._ended.empty():
            batch, future = self._ended.get()
            if future.status == "finished":
                found.append(self._outcome(batch, future))
        return found

    def close(self) -> None:
        """Cancel what is at work, and end a cluster that this process began."""
        if self._client.status == "running":
            self._client.cancel(list(self._futures), force=True)
            if self._owns_cluster:
                # A worker that is slow to end has nothing left to lose, and is killed: no warning.
                logging.getLogger("distributed.nanny").setLevel(logging.ERROR)
                with suppress(OSError, TimeoutError):
                    self._client.run(
                        dask_worker.part, on_error="ignore", callback_timeout=_ANSWER_S
                    )
        self._closes.close()

    def _outcome(self, batch: Batch, future: Any) -> Outcome:
        from distributed.comm import CommClosedError

        self._futures.discard(future)
        deadline = time.monotonic() + _GONE_AFTER_S
        outcome: Any = None
        while outcome is None:
            try:
                outcome = future.result(timeout=_RESULT_S)
            except TimeoutError:
                # Its worker died before it handed the result over: another one makes it again.
                self._check()
            except (CancelledError, asyncio.CancelledError, CommClosedError) as error:
                # Either the scheduler has gone, or what lies between died at this moment.
                self._check()
                if time.monotonic() > deadline:
                    outcome = error
                time.sleep(_AGAIN_S)
            except Exception as error:
                outcome = error
        future.release()
        return batch, outcome

    def _check(self) -> None:
        if self._client.status == "closed":
            raise self._gone()
        running = self._client.status == "running"
        self.recount()
        if running and self._threads:
            self._lost_at = None
            return
        self._lost_at = self._lost_at or time.monotonic()
        waited = time.monotonic() - self._lost_at
        if running and waited > _NO_WORKER_S:
            raise AirpathError(f"no worker is left at {self._client.scheduler.address}")
        if not running and waited > _GONE_AFTER_S:
            raise self._gone()

    def recount(self) -> None:
        """Count the threads of the workers that there are now, once a second at most."""
        now = time.monotonic()
        if now - self._counted_at < _COUNT_S or self._client.status != "running":
            return
        self._counted_at = now
        # Without an answer the scheduler is busy or has gone, which its client finds out.
        with suppress(OSError, TimeoutError):
            self._threads = sum(self._client.nthreads(callback_timeout=_ANSWER_S).values())
        self._slots = self._threads or self._slots

    def _gone(self) -> AirpathError:
        return AirpathError(f"the scheduler at {self._client.scheduler.address} is gone")

    def _wait_for_workers(self) -> int:
        try:
            self._client.wait_for_workers(1, timeout=_WAIT_FOR_WORKERS_S)
        except TimeoutError:
            raise AirpathError(f"no worker connected within {_WAIT_FOR_WORKERS_S:.0f} s") from None
        threads: int = sum(self._client.nthreads().values())
        return max(1, threads)


def at(address: Any) -> DaskEngine:
    """Open a scheduler by its address; a cluster or a client of Dask will do too.

    Dask's own configuration (``distributed.comm.tls``) has the certificates for ``tls://``.
    """
    distributed = _distributed("--scheduler")
    if isinstance(address, distributed.Client):
        return DaskEngine(address, ExitStack())
    try:
        client = distributed.Client(address, timeout=_CONNECT_S, set_as_default=False)
    except (OSError, TimeoutError) as error:
        raise AirpathError(f"no scheduler at {address}: {error}") from None
    except ValueError as error:
        raise InputError(f"{address} is not a scheduler address: {error}") from None
    closes = ExitStack()
    closes.callback(client.close)
    return _engine(client, closes)


def cluster(kind: str, workers: int) -> DaskEngine:
    """Begin a cluster with workers of one thread each: processes of this machine, or Slurm jobs.

    What a Slurm job asks for is in Dask's own configuration (``jobqueue.slurm``).
    """
    distributed = _distributed(f"--cluster {kind}")
    begin = {"local": _local, "slurm": _slurm}.get(kind)
    if begin is None:
        raise InputError(f"no cluster '{kind}'; available: {', '.join(CLUSTERS)}")
    try:
        security = distributed.Security.temporary()
    except ImportError:
        raise missing("cryptography", f"--cluster {kind}") from None
    closes = ExitStack()
    try:
        made = begin(workers, security, closes)
        closes.callback(made.close)
        client = distributed.Client(made, set_as_default=False)
        closes.callback(client.close)
    except BaseException:
        closes.close()
        raise
    return _engine(client, closes, owns_cluster=True)


def _engine(client: Any, closes: ExitStack, *, owns_cluster: bool = False) -> DaskEngine:
    """Make an engine; if that fails, nothing of it stays."""
    try:
        return DaskEngine(client, closes, owns_cluster=owns_cluster)
    except BaseException:
        closes.close()
        raise


def _local(workers: int, security: Any, closes: ExitStack) -> Any:
    """Begin workers that are processes of this machine."""
    import dask
    import distributed

    folder = _own_folder(dask.config.get("temporary-directory"), closes)
    settings = {**_unless_chosen({**SPARING, **NO_PAGES, **_WARM}), "temporary-directory": folder}
    with dask.config.set(settings), _spared_interrupts():
        # A free port of loopback for Dask's pages, as another cluster may have 8787.
        return distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            protocol="tls://",
            security=security,
            dashboard_address="127.0.0.1:0",
            scheduler_kwargs={"dashboard": False},
        )


def _own_folder(parent: str | None, closes: ExitStack) -> str:
    """Make a directory that is nobody else's, until the engine is closed.

    Dask imports modules from where its processes keep their files: by default that is a name in
    ``/tmp`` which anybody may have made before.
    """
    place = None if parent is None else os.path.expandvars(os.path.expanduser(parent))  # noqa: PTH111
    try:
        return closes.enter_context(
            tempfile.TemporaryDirectory(prefix=".airpath-", dir=place, ignore_cleanup_errors=True)
        )
    except OSError as error:
        raise cannot_write(Path(place or tempfile.gettempdir()), error) from None


@contextmanager
def _spared_interrupts() -> Iterator[None]:
    """Begin processes that Ctrl-C on a terminal does not reach, though it is sent to all of them.

    This process takes it, and ends them when what they have done is kept. Threads and processes
    inherit what is blocked here; Ctrl-C meanwhile comes at the end of the block.
    """
    # Otherwise it would be begun inside, and unblock the signal.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _unless_chosen(settings: dict[str, object]) -> dict[str, object]:
    """Those of some settings that are as Dask brings them: nobody has chosen others."""
    import dask

    brought = dask.config.merge(*dask.config.defaults)
    return {
        key: value for key, value in settings.items()
        if dask.config.get(key) == dask.config.get(key, config=brought)
    }  # fmt: skip


def _slurm(workers: int, security: Any, closes: ExitStack) -> Any:
    """Begin workers that are Slurm jobs; they find their certificate in files of the user."""
    import dask

    try:
        from dask_jobqueue import SLURMCluster
    except ModuleNotFoundError:
        raise missing("dask_jobqueue", "--cluster slurm") from None
    ours = {"cores": 1, "processes": 1, "memory": "1 GiB"}
    wanted = {
        key: value for key, value in ours.items()
        if dask.config.get(f"jobqueue.slurm.{key}", None) is None
    }  # fmt: skip
    shared = dask.config.get("jobqueue.slurm.shared-temp-directory", None)
    folder = _own_folder(shared or "~", closes)
    _keep_certificate(security, Path(folder))
    options = {
        "dashboard": False,
        "dashboard_address": "127.0.0.1:0",
        **(dask.config.get("jobqueue.slurm.scheduler-options", None) or {}),
    }
    words = dask.config.get("jobqueue.slurm.worker-extra-args", None) or []
    settings = {**_unless_chosen({**SPARING, **NO_PAGES}), "temporary-directory": folder}
    with dask.config.set(settings):
        try:
            made = SLURMCluster(
                **wanted,
                job_script_prologue=_prologue(),
                protocol="tls://",
                security=security,
                scheduler_options=options,
                worker_extra_args=["--dashboard-address", "127.0.0.1:0", *words],
            )
        except (OSError, RuntimeError, ValueError) as error:
            raise _no_slurm(error) from None
        try:
            made.scale(jobs=workers)
        except (OSError, RuntimeError, ValueError) as error:
            made.close()
            raise _no_slurm(error) from None
    return made


def _keep_certificate(security: Any, folder: Path) -> None:
    """Put what a worker shows and checks into files, whose names its command line has."""
    for field in ("tls_ca_file", "tls_worker_cert", "tls_worker_key"):
        file = folder / f"{field}.pem"
        file.touch(mode=0o600, exist_ok=False)
        file.write_text(getattr(security, field), encoding="ascii")
        setattr(security, field, str(file))


def _no_slurm(error: Exception) -> AirpathError:
    return AirpathError(f"cannot start workers with Slurm: {error}")


def _prologue() -> list[str]:
    """Lines of a job's script: a job reads Dask's own configuration; its environment says ours.

    What its environment has already stays, and what the user's own prologue says comes after.
    """
    import dask

    prologue = [
        f"export {name}=${{{name}:-{dask.config.get(key)}}}"
        for key in (*SPARING, *NO_PAGES)
        for name in [f"DASK_{key.replace('.', '__').replace('-', '_').upper()}"]
    ]
    # On the job's machine, and nobody else's there: see `_own_folder`.
    prologue += [
        "export DASK_TEMPORARY_DIRECTORY=$(mktemp -d) || exit 1",
        "trap 'rm -rf \"$DASK_TEMPORARY_DIRECTORY\"' EXIT",
        "trap 'exit 143' TERM",
    ]
    for key in ("job-script-prologue", "env-extra"):
        chosen = dask.config.get(f"jobqueue.slurm.{key}", None)
        if chosen:
            return [*prologue, *chosen]
    return prologue


def _distributed(what: str) -> Any:
    try:
        import distributed
    except ModuleNotFoundError:
        raise missing("distributed", what) from None
    return distributed
