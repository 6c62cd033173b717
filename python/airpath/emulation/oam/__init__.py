"""Operation and maintenance of an emulated network (OAM): the interface for other packages.

A live table, a status page with alarms, Prometheus, and the subscribers of the core network.
Start reading at ``monitoring.py``.
"""

from typing import TYPE_CHECKING

from airpath.emulation.oam import subscribers
from airpath.emulation.oam.grafana import dashboard as grafana_dashboard
from airpath.emulation.oam.monitoring import is_shown, monitored, paged
from airpath.emulation.oam.subscribers import Subscriber

if TYPE_CHECKING:
    from airpath.emulation.oam.editing import Edit
    from airpath.emulation.oam.status import Status

__all__ = [
    "Edit",
    "Status",
    "Subscriber",
    "grafana_dashboard",
    "is_shown",
    "monitored",
    "paged",
    "subscribers",
]
