"""Another user of the machine can do nothing with the cluster of a campaign."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import airpath
from airpath_dev.cluster import tables
from campaigns import SHORT
from conftest import until

pytest.importorskip("distributed")

STRANGER = 65534
"""nobody"""

CAMPAIGN = """
import json
import os
import subprocess
import sys

import psutil

import airpath

out, kind, stranger, campaign = sys.argv[1:]
told = None


def sockets():
    '''Where this process, its children and its jobs listen.'''
    family = {os.getpid(), *(one.pid for one in psutil.Process().children(recursive=True))}
    sessions = {int(name) for name in os.listdir(".") if name.isdigit()}
    for process in psutil.process_iter():
        try:
            if process.pid in family or os.getsid(process.pid) in sessions:
                for one in process.net_connections("tcp"):
                    if one.status == psutil.CONN_LISTEN:
                        yield list(one.laddr)
        except (psutil.Error, ProcessLookupError):
            pass


def once(_):
    global told
    if told is None:
        found = sorted(sockets())
        words = [sys.executable, stranger, *(str(port) for _, port in found)]
        said = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout
        modes = {name: os.stat(name).st_mode & 0o777 for name in private()}
        told = {"sockets": found, "answers": json.loads(said), "modes": modes}


def private():
    for place, _, files in os.walk("home"):
        yield place
        yield from (os.path.join(place, name) for name in files)


if __name__ == "__main__":
    done = airpath.sweep(json.loads(campaign), out=out, cluster=kind, workers=1, progress=once)
    assert done.complete and done.document["workers"] == 1
    print(json.dumps(told))
"""

ATTACK = f"""
import asyncio
import json
import os
import pickle
import sys

from distributed import Security
from distributed.core import rpc

own = Security.temporary().get_connection_args("client")


async def runs_code(operation, address, words):
    remote = rpc(address, timeout=1, connection_args=words)
    try:
        call = getattr(remote, operation)(
            function=pickle.dumps(os.getuid), args=pickle.dumps(()), kwargs=pickle.dumps({{}})
        )
        answer = await asyncio.wait_for(call, 2)
        return str(answer)
    except Exception as error:
        return "refused"
    finally:
        await remote.close_rpc()


async def page(port):
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /info/main/workers.html HTTP/1.0\\r\\n\\r\\n")
        return (await asyncio.wait_for(reader.read(20), 3)).decode("latin-1")
    except (OSError, asyncio.TimeoutError):
        return ""


async def attack(port):
    # The operations of a scheduler, and of a worker or a nanny.
    tries = [
        runs_code(operation, f"{{kind}}://127.0.0.1:{{port}}", words)
        for operation in ("run_function", "run")
        for kind, words in (("tcp", {{}}), ("tls", own))
    ]
    return await asyncio.gather(page(port), *tries)


async def attack_all(ports):
    return await asyncio.gather(*map(attack, ports))


# What Python imports on the way may be where a stranger cannot read.
asyncio.run(attack_all([1]))
os.setgid({STRANGER})
os.setuid({STRANGER})
print(json.dumps(asyncio.run(attack_all(sys.argv[1:]))))
"""

SBATCH = """\
#!/bin/sh
cp "$1" job.sh
setsid bash job.sh > job.log 2>&1 &
touch $!
echo "Submitted batch job $!"
"""
SCANCEL = """\
#!/bin/sh
kill -- -"$1"
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("kind", ["local", "slurm"])
def test_another_user_cannot_use_the_cluster(tmp_path: Path, kind: str) -> None:
    """With jobs that a stand-in for Slurm begins on this machine."""
    if kind == "slurm":
        pytest.importorskip("dask_jobqueue")
    for name, text in {"sbatch": SBATCH, "scancel": SCANCEL}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "home").mkdir()
    (tmp_path / "tmp").mkdir()
    for name, text in {"campaign.py": CAMPAIGN, "stranger.py": ATTACK}.items():
        (tmp_path / name).write_text(textwrap.dedent(text))
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "HOME": str(tmp_path / "home"),
        "TMPDIR": str(tmp_path / "tmp"),
        "DASK_JOBQUEUE__SLURM__INTERFACE": "lo",
    }
    done = subprocess.run(
        [sys.executable, "campaign.py", "out", kind, "stranger.py", json.dumps(SHORT)],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    # A scheduler, a worker, its nanny and what web servers they have.
    assert len(told["sockets"]) >= 3
    assert {host for host, _ in told["sockets"]} == {"127.0.0.1"}
    for page, *tries in told["answers"]:
        assert page[:12] in ("", "HTTP/1.1 404")
        # A nanny and a scheduler have one of the two operations each, if they let anybody ask.
        assert tries == ["refused"] * 4
    if kind == "slurm":
        keys = {name: mode for name, mode in told["modes"].items() if name.endswith(".pem")}
        assert len(keys) == 3
        assert set(keys.values()) == {0o600}
        assert {told["modes"][str(Path(name).parent)] for name in keys} == {0o700}
    assert not list((tmp_path / "home").rglob("*.pem"))
    # A cancelled job clears up after itself, which `scancel` does not wait for.
    assert until(lambda: not list((tmp_path / "tmp").iterdir()), 20)
    airpath.sweep(SHORT, out=tmp_path / "threads", workers=1)
    assert tables(tmp_path / "out") == tables(tmp_path / "threads")
