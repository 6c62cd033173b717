"""airpath: a laboratory for TCP over mobile radio.

>>> import airpath
>>> run = airpath.run("wire", set={"flow.0.window_bytes": 20_000})
>>> run.flows["flow"].to_list()
['download']

Everything is imported when first used, so that ``import airpath`` costs nothing.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airpath._core import __version__
    from airpath.errors import AirpathError, InputError
    from airpath.execute import run
    from airpath.explanation import explain
    from airpath.results import Run
    from airpath.scenario import load

__all__ = ["AirpathError", "InputError", "Run", "__version__", "explain", "load", "run"]

_HOMES = {
    "AirpathError": "airpath.errors",
    "InputError": "airpath.errors",
    "Run": "airpath.results",
    "__version__": "airpath._core",
    "explain": "airpath.explanation",
    "load": "airpath.scenario",
    "run": "airpath.execute",
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
