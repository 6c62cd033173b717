"""What ``airpath tune`` promises, with the kernel's TCP over the emulation."""

from __future__ import annotations

from pathlib import Path

import pytest

from airpath_dev.tuned import Case, judge
from emulated import needs
from real_clock import TooLate

CASES = [
    Case("window", "small-window", ["run.duration_s=4"]),
    Case("queue", "bufferbloat", ["run.duration_s=4", "path.down.0.queue_packets=100",
                                  "path.down.0.rate_mbps=4"]),
]  # fmt: skip


@needs("ip")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_kernel_gains_what_was_promised(case: Case, tmp_path: Path) -> None:
    found = judge(case, tmp_path, blocks=1, most=1)
    if not found:
        raise TooLate("an emulated run does not count")
    assert [one.words for one in found if not one.holds or one.is_worse] == []
