"""A drive log of a 5G phone as the channel of a cell, through the command.

Needs the UCC 5G logs (Raca et al., MMSys 2020); AIRPATH_UCC_5G names their folder.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from conftest import Command

LOG = "driving/B_2019.12.16_12.27.05.csv.gz"
# Both ways, of the scenario nr-n78.
CORE_MS = 10


@pytest.fixture
def drive_log() -> Path:
    folder = os.environ.get("AIRPATH_UCC_5G")
    if not folder:
        pytest.skip("AIRPATH_UCC_5G does not name the folder of the UCC 5G logs")
    return Path(folder) / LOG


def drive(airpath_command: Command, log: Path, congestion: str) -> dict[str, Any]:
    """The first minute."""
    settings = {
        "run.duration_s": "60",
        "flow.0.congestion": congestion,
        "radio.channel.file": str(log),
    }
    options = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    done = airpath_command("run", "nr-n78", *options, "--out", congestion, "--json")
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_cubic_and_bbr_download_over_a_drive_log(airpath_command: Command, drive_log: Path) -> None:
    results = {name: drive(airpath_command, drive_log, name) for name in ("cubic", "bbr")}
    for name, result in results.items():
        flow, link = result["flows"][0], result["links"][0]
        assert flow["congestion"] == name
        assert link["id"] == "radio.ue-0.down"
        # The log's SNR is -7 to 21 dB here; the scenario's 30 dB would be 1.5 Gb/s.
        assert 100 < link["capacity_mbps"] < 700
        assert 0.5 < flow["goodput_mbps"] / link["capacity_mbps"] < 1
        assert flow["rtt_ms"]["min"] > CORE_MS
        # MCS follows the log, so HARQ has work.
        assert result["radio"][0]["bler"] > 0.01
        assert result["pings"][0]["sent"] == 61
    # The same log, and the same channel, whatever is sent over it.
    capacity = [result["links"][0]["capacity_mbps"] for result in results.values()]
    assert capacity[0] == pytest.approx(capacity[1], rel=0.05)
