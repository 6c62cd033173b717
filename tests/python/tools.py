"""Scripts of ``tools/`` as modules: they have no suffix."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def tool(name: str) -> Any:
    """Import a script."""
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "tools" / name))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look for their module.
    sys.modules[name] = module
    loader.exec_module(module)
    return module
