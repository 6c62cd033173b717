"""Choices that many commands and functions take."""

from __future__ import annotations

from typing import Literal, TypeAlias

Budget: TypeAlias = Literal["quick", "full"]
"""How hard to search for causes: ``quick`` tries at most 12 changes, ``full`` all known ones."""

Explain: TypeAlias = Literal["quick", "full", "off"]
"""How hard to search for causes, if at all."""

Cluster: TypeAlias = Literal["local", "slurm"]
"""Where the workers of a Dask cluster run: processes of this machine, or Slurm jobs."""

Software: TypeAlias = Literal["srsran-project", "srsran-4g", "oai-gnb", "oai-enb", "open5gs"]
"""Programs of a mobile network whose configuration files are read."""

Legend: TypeAlias = Literal["top", "bottom", "left", "right", "none"]
"""Where the legend of a chart is."""

Log: TypeAlias = Literal["x", "y", "xy"]
"""Axes of a chart with a logarithmic scale."""
