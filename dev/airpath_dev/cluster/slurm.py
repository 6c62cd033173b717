"""Slurm on this machine alone, from Debian's packages, without systemd: begun and ended by hand."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "sinfo")
_PATIENCE_S = 60.0

_CONFIGURATION = """\
ClusterName=airpath
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={munge}
CredType=cred/munge
SlurmctldPort={control}
SlurmdPort={node}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmctldTimeout=30
SlurmdTimeout=30
SchedulerParameters=sched_interval=2,batch_sched_delay=0,sched_min_interval=100000
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory={memory} State=UNKNOWN
PartitionName=lab Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> list[str]:
    """What is not installed."""
    return [name for name in PROGRAMS if shutil.which(name) is None]


@contextmanager
def slurm(folder: Path) -> Iterator[dict[str, str]]:
    """Begin munged, slurmctld and slurmd; yield the environment of their commands."""
    for name in ("state", "spool"):
        (folder / name).mkdir()
    # munged wants a folder that nobody else can write to.
    folder.chmod(0o755)
    key = folder / "munge.key"
    key.write_bytes(secrets.token_bytes(1024))
    key.chmod(0o400)
    munge = folder / "munge.socket"
    configuration = folder / "slurm.conf"
    configuration.write_text(
        _CONFIGURATION.format(
            host=socket.gethostname().partition(".")[0], munge=munge, folder=folder,
            control=_free_port(), node=_free_port(), cpus=os.cpu_count(), memory=_memory_mib(),
        )
    )  # fmt: skip
    environment = {**os.environ, "SLURM_CONF": str(configuration)}
    began: list[subprocess.Popen[bytes]] = []
    try:
        for words in (
            ["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={munge}",
             f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log",
             f"--seed-file={folder}/munged.seed"],
            ["slurmctld", "-D", "-c", "-f", str(configuration)],
            ["slurmd", "-D", "-f", str(configuration)],
        ):  # fmt: skip
            if words[0] == "slurmctld":
                _wait(munge.exists, "munged", folder)
            with (folder / f"{words[0]}.out").open("wb") as log:
                began.append(
                    subprocess.Popen(words, env=environment, stdout=log, stderr=log, cwd=folder)
                )
        _wait(lambda: _idle(environment), "slurmd", folder)
        yield environment
    finally:
        subprocess.run(["scancel", "--me"], env=environment, check=False, timeout=30)
        time.sleep(1)
        for process in reversed(began):
            process.terminate()
        for process in reversed(began):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _idle(environment: dict[str, str]) -> bool:
    said = subprocess.run(
        ["sinfo", "--noheader", "--format=%t"], env=environment, capture_output=True, text=True,
        check=False, timeout=30,
    )  # fmt: skip
    return said.stdout.strip() == "idle"


def _wait(ready: Callable[[], bool], name: str, folder: Path) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not ready():
        if time.monotonic() > deadline:
            texts = (log.read_text(errors="replace") for log in folder.glob("*.log"))
            logs = "\n".join(text[-2000:] for text in texts)
            raise RuntimeError(f"{name} did not begin:\n{logs}")
        time.sleep(0.2)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def _memory_mib() -> int:
    # Somewhat less than there is: Slurm refuses a node that has less than it was told.
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 9 // 10 // (1 << 20)
