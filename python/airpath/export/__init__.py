"""Export of a run's cell or links, as traces and as a script of tc commands."""

from airpath.export.directory import Written, cellreplay, mahimahi, radio
from airpath.export.netem import netem

__all__ = ["Written", "cellreplay", "mahimahi", "netem", "radio"]
