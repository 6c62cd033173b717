"""What the configurations of LTE base stations have in common."""

from __future__ import annotations

from airpath.deployed.draft import Draft, Found

BANDWIDTHS = {6: 1.4, 15: 3, 25: 5, 50: 10, 75: 15, 100: 20}
"""Bandwidth of each number of PRBs, in MHz (TS 36.101 table 5.6-1)."""


def put_antennas(draft: Draft, mode: Found[int], ports: Found[int]) -> None:
    """Layers and ports of a transmission mode (TS 36.213 7.1): 3 and 4 have two layers."""
    two = mode.value in (3, 4) and ports.value > 1
    why = f"transmission mode {mode.value}"
    draft.put("radio.cell.layers_down", 2 if two else 1, mode, ports, why=why)
    draft.put("radio.cell.antenna_ports", ports.value, ports)
    draft.assume("radio.cell.mcs_table_down", "qam64", "a UE without 256QAM")
