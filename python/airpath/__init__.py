"""airpath: a laboratory for TCP over mobile radio.

>>> import airpath
>>> run = airpath.run("wire", set={"flow.0.window_bytes": 20_000})
>>> run.flows["flow"].to_list()
['download']

Everything is imported on first use, so ``import airpath`` costs nothing.
"""

from __future__ import annotations

# The same flag as in typing, which is slow to import: a command that is interrupted during the
# import shows a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from airpath._core import __version__
    from airpath.campaign.compare import compare
    from airpath.campaign.query import query
    from airpath.campaign.results import Campaign, open_campaign
    from airpath.campaign.sweep import sweep
    from airpath.diagnose.explain import explain
    from airpath.diagnose.whatif import whatif
    from airpath.drivers.simulate import run
    from airpath.errors import AirpathError, InputError
    from airpath.fitting.fit import fit
    from airpath.plots.plot import plot
    from airpath.runs.results import Run
    from airpath.scenario import load

__all__ = [
    "AirpathError", "Campaign", "InputError", "Run", "__version__", "compare", "explain", "fit",
    "load", "open_campaign", "plot", "query", "run", "sweep", "whatif",
]  # fmt: skip

_HOMES = {
    "AirpathError": "airpath.errors",
    "Campaign": "airpath.campaign.results",
    "InputError": "airpath.errors",
    "Run": "airpath.runs.results",
    "__version__": "airpath._core",
    "compare": "airpath.campaign.compare",
    "explain": "airpath.diagnose.explain",
    "fit": "airpath.fitting.fit",
    "open_campaign": "airpath.campaign.results",
    "plot": "airpath.plots.plot",
    "query": "airpath.campaign.query",
    "sweep": "airpath.campaign.sweep",
    "whatif": "airpath.diagnose.whatif",
    "load": "airpath.scenario",
    "run": "airpath.drivers.simulate",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'airpath' has no attribute '{name}'")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
