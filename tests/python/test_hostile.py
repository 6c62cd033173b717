"""Hostile and unlucky programs inside an emulation; ``make hostile`` runs them in full length."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulated import needs_root
from hostile.cases import Case, cases, run


@needs_root
@pytest.mark.parametrize("case", cases(full=False), ids=lambda case: case.name)
def test_a_run_ends_whole_or_says_what_is_missing(case: Case, tmp_path: Path) -> None:
    run(case, tmp_path)
