"""Packages that only environments need."""

from __future__ import annotations

import importlib.util


def needs(package: str) -> None:
    """Raise ``ImportError`` if a package of the extra ``gym`` is missing."""
    if importlib.util.find_spec(package) is None:
        raise ImportError(f"airpath.gym needs {package}: pip install 'airpath[gym]'", name=package)
