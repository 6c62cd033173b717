"""What limits the flows of a capture: traits that are measured, and rules on them."""

from airpath.causes.rank import Blame, blame
from airpath.causes.suspect import GROUPS, Suspect

__all__ = ["GROUPS", "Blame", "Suspect", "blame"]
