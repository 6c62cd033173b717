"""What holds back the flows of a capture: traits of what was seen, and rules on them."""

from airpath.causes.rank import Blame, blame
from airpath.causes.suspect import GROUPS, Suspect

__all__ = ["GROUPS", "Blame", "Suspect", "blame"]
