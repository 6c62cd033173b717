"""PDUs of S1AP and NGAP by the names of their information elements, encoded by pycrate.

Identifiers, criticality and order are those of the ASN.1 object sets, which pycrate compiled from
TS 36.413 and TS 38.413.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any, Literal

Kind = Literal["initiatingMessage", "successfulOutcome"]


class Encoder:
    """Encodes messages of one protocol: pycrate's module ``S1AP`` or ``NGAP``."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self.name = module.__name__.rpartition(".")[2]

    def pdu(
        self, name: str, elements: Mapping[str, object], kind: Kind = "initiatingMessage"
    ) -> bytes:
        """Encode the message of that name; ``elements`` are pycrate's values by type name."""
        descriptions = self._part("PDU_Descriptions")
        field = kind[0].upper() + kind[1:]
        procedures = getattr(descriptions, f"{self.name}_ELEMENTARY_PROCEDURES")().root
        (procedure,) = (one for one in procedures if field in one and _type(one[field]) == name)
        message = {
            "procedureCode": procedure["procedureCode"],
            "criticality": procedure["criticality"],
            "value": (name, {"protocolIEs": self.fields(name, elements)}),
        }
        coder = getattr(descriptions, f"{self.name}_PDU")
        coder.set_val((kind, message))
        return bytes(coder.to_aper())

    def fields(self, name: str, elements: Mapping[str, object]) -> list[dict[str, object]]:
        """Protocol IEs of a type in the order of the standard; raises KeyError for unknown ones."""
        waiting, found = dict(elements), []
        for one in self._object_set(name):
            kind = _type(one["Value"])
            if kind in waiting:
                value = (kind, waiting.pop(kind))
                found.append({"id": one["id"], "criticality": one["criticality"], "value": value})
        if waiting:
            raise KeyError(f"{name} has no {', '.join(waiting)}")
        return found

    def _object_set(self, name: str) -> list[dict[str, object]]:
        """Both standards spell the names of their object sets in two ways."""
        plain = name.replace("-", "_")
        (found,) = (
            getattr(part, spelling)
            for part in (self._part("PDU_Contents"), self._part("IEs"))
            for spelling in (f"{plain}_IEs", f"{plain}IEs")
            if hasattr(part, spelling)
        )
        entries: list[dict[str, object]] = found().root
        return entries

    def _part(self, name: str) -> Any:
        return getattr(self._module, f"{self.name}_{name}")


def _type(value: Any) -> str:
    """Name of the type that an object refers to; some have none."""
    return str(value._typeref.called[1]) if value._typeref else ""
