"""Open5GS's smf.yaml, upf.yaml and pcf.yaml: MTU, AMBR and QoS of the session.

Read against release 2.8.0: ``src/smf/context.c`` and ``lib/app/ogs-config.c`` in its source.
"""

from __future__ import annotations

from dataclasses import dataclass

from airpath.deployed.draft import Draft, Found, Program, number, within
from airpath.deployed.settings import Settings

PROGRAM = Program("Open5GS", "2.8.0")
NAMES = frozenset(
    ("amf", "ausf", "bsf", "hss", "mme", "nrf", "nssf", "pcf", "pcrf", "scp", "sepp", "sgwc",
     "sgwu", "smf", "udm", "udr", "upf")
)  # fmt: skip
"""Groups at the top of its files: the network functions."""
_HEADERS = 52  # IPv4 and TCP, with timestamps as all current systems have them

REASONS = (
    ("smf.session.*", "addresses are not modelled"),
    ("upf.session.*", "addresses are not modelled"),
    ("smf.subnet.*", "addresses are not modelled"),
    ("upf.subnet.*", "addresses are not modelled"),
    ("*.ambr.*", "the AMBR of another session"),
    ("*.pcc_rule.*", "airpath has one bearer for each UE"),
    ("*.qos.arp.*", "airpath has no admission control"),
    ("*.qos.*", "airpath has one bearer for each UE"),
    ("*.session.*", "another session, or its type and name"),
)


@dataclass(frozen=True)
class Session:
    """The session of a UE, as the core has it."""

    draft: Draft
    five_qi: Found[int] | None


def session(settings: Settings) -> Session:
    """The keys that the core determines. Raises ``InputError`` for a wrong setting."""
    made = Draft(PROGRAM, settings, REASONS)
    mtu = made.find(("smf",), "mtu", within(576, 65535))
    if mtu is not None:
        made.put(
            "flow.0.mss_bytes",
            mtu.value - _HEADERS,
            mtu,
            why=f"less {_HEADERS} bytes of headers",
        )
    scope = _policy(settings)
    if scope is None:
        return Session(made, None)
    for key, name in (("down_mbps", "downlink"), ("up_mbps", "uplink")):
        value = made.find((scope,), f"ambr.{name}.value", number)
        unit = made.sure((scope,), f"ambr.{name}.unit", within(0, 4), 0)
        if value is not None:
            mbps = round(value.value * 1000.0**unit.value / 1e6, 6)
            made.put(f"radio.ambr.{key}", mbps, value, unit)
    return Session(made, made.find((scope,), "qos.index", within(1, 255)))


def _policy(settings: Settings) -> str | None:
    """Where the first session of the first slice of the first policy is."""
    for function in ("pcf", "pcrf", "smf"):
        for prefix in (
            (function, "policy", "0", "slice", "0", "session", "0"),
            (function, "policy", "0", "session", "0"),
        ):
            if settings.has(*prefix):
                return ".".join(prefix)
    return None
