"""The session of a UE that attached to a core network."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from airpath.emulation.document import SessionEntry


@dataclass(frozen=True)
class Session:
    """The session of a UE."""

    index: int
    ue: str
    imsi: str
    address: str
    apn: str
    qci: int
    qfi: int | None
    """None in LTE."""
    ambr_down_mbps: float | None
    ambr_up_mbps: float | None
    attached_ms: float
    """From the start until the UE is attached or registered."""
    established_ms: float
    """From the start until there is a default bearer or a PDU session."""

    def document(self) -> SessionEntry:
        """For the summary."""
        document = asdict(self)
        del document["index"]
        return cast("SessionEntry", document)
