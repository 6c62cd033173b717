"""The built explorer, for tests that need it: ``tools/setup explorer`` makes it."""

from __future__ import annotations

import pytest

from airpath_dev.chromium import missing

needs_explorer = pytest.mark.skipif(missing() is not None, reason=missing() or "")
