"""OpenAirInterface's eNB: the files that ``lte-softmodem -O`` reads.

The defaults are those of the branch develop in week 12 of 2024: ``enb_paramdef.h``,
``MACRLC_paramdef.h`` and ``rrc_eNB.c``.
"""

from __future__ import annotations

import re

from airpath.deployed import lte, nr
from airpath.deployed.draft import (
    Convert,
    Draft,
    Program,
    Row,
    Station,
    Value,
    choice,
    number,
    one_of,
    times,
    whole,
    within,
)
from airpath.deployed.settings import Scalar, Settings

_PROGRAM = Program("OpenAirInterface", "2024.w12")
_ENB = ("eNBs.0",)
_CELL = ("eNBs.0.component_carriers.0",)
_MAC = ("MACRLCs.0",)
_UM_QCIS = (1, 2, 3, 4, 7, 9, 65, 66)  # rrc_eNB.c; the others have AM

_ROWS = (
    Row("radio.rach.preambles_max", "rach_preambleTransMax", whole, 10),
    Row("radio.rach.response_window_ms", "rach_raResponseWindowSize", whole, 10),
    Row("radio.rach.contention_resolution_ms", "rach_macContentionResolutionTimer", whole, 48),
)
_AM: dict[str, Value] = {
    "t_poll_retransmit_ms": 50,
    "poll_pdu": 16,
    "poll_bytes": "infinity",
    "max_retx_threshold": 8,
    "t_status_prohibit_ms": 25,
}

_POWER = "airpath has no power control; the scenario sets the uplink's SINR"
REASONS = (
    ("eNBs.[1-9]*", "a further eNB; the scenario has the first one"),
    ("*.component_carriers.[1-9]*", "a further cell; the scenario has the first one"),
    ("*.pu?ch_p0_Nominal", _POWER),
    ("*.pusch_alpha", _POWER),
    ("*.pucch_deltaF*", _POWER),
    ("*.msg3_delta_Preamble", _POWER),
    ("*.rach_powerRampingStep", _POWER),
    ("*.rach_preambleInitialReceivedTargetPower", _POWER),
    ("*.puSch10xSnr", _POWER),
    ("*.puCch10xSnr", _POWER),
    ("*.pusch_enable64QAM", "airpath has one MCS table for LTE's uplink"),
    ("*.pucch_*", "airpath models PUCCH by its PRBs, not by its formats"),
    ("*.pusch_*", "airpath has neither hopping nor reference signals in LTE's uplink"),
    ("*.prach_*", "airpath models random access by its period, not by PRACH formats"),
    ("*.srs_*", "airpath has no SRS"),
    ("*.phich_*", "airpath's PHICH takes no resources"),
    ("*.rach_*", "airpath has random access without groups of preambles"),
    ("*.ue_TimersAndConstants_*", "airpath has no radio link failure by these timers"),
    ("*.nb_antennas_?x", "layers follow from ports and transmission mode"),
    ("*.tx_gain", "the power of the radio head"),
    ("*.rx_gain", "the power of the radio head"),
    ("*.prefix_type", "airpath has the normal cyclic prefix"),
    ("*.br_parameters.*", "airpath has no LTE-M"),
    ("*.srb1_parameters.*", "airpath has no signalling bearers"),
    ("*.mbms*", "airpath has no MBMS"),
    ("*.nr_scg_ssb_freq", "the NR leg of EN-DC is not read from this file"),
    ("RUs.*.nb_?x", "layers follow from ports and transmission mode"),
    ("RUs.*.att_?x", "the power of the radio head"),
    ("RUs.*.max_*", "the power of the radio head"),
)


def _draft(settings: Settings, five_qi: int) -> Draft:
    """The keys of the radio. Raises ``InputError`` with file and line of a wrong setting."""
    made = Draft(_PROGRAM, settings, REASONS)
    tdd = _carrier(made)
    mode = made.sure(_CELL, "ue_TransmissionMode", within(1, 8), 1)
    ports = made.sure(_CELL, "nb_antenna_ports", one_of({1: 1, 2: 2, 4: 4}), 1)
    lte.put_antennas(made, mode, ports)
    made.take(_ROWS, *_CELL)
    made.default("radio.harq_up.max_transmissions", 5, "maxHARQ-Tx n5")
    made.default("radio.sr.period_ms", 10, "sr-ConfigIndex from 5 (TS 36.213 table 10.1.5-1)")
    made.default("radio.sr.offset_ms", 2 if tdd else 0, "sr-ConfigIndex of the first UE")
    made.default("radio.sr.trans_max", 64, "dsr-TransMax n64")
    made.default("radio.bsr.periodic_timer_ms", 64, "periodicBSR-Timer sf64")
    made.default("radio.bsr.retx_timer_ms", 320, "retxBSR-Timer sf320")
    _scheduler(made)
    _drx(made)
    _states(made)
    _bearer(made, five_qi)
    return made


def _carrier(made: Draft) -> bool:
    kind = made.sure(_CELL, "frame_type", choice(fdd="fdd", tdd="tdd"), "FDD")
    made.put("radio.cell.duplex", kind.value, kind)
    prbs = made.sure(_CELL, "N_RB_DL", one_of({each: each for each in lte.BANDWIDTHS}), 25)
    made.put("radio.cell.bandwidth_mhz", lte.BANDWIDTHS[prbs.value], prbs)
    made.put("radio.cell.prbs_down", prbs.value, prbs)
    made.assume(
        "radio.cell.prbs_up",
        prbs.value - 2,
        f"PUCCH has one PRB at both edges of {prbs.value} (TS 36.211 5.4.3)",
        prbs,
    )
    power = made.sure(_CELL, "pdsch_referenceSignalPower", number, -29)
    nr.remark_power(made, power, prbs.value, "before the radio head's attenuation")
    if kind.value != "tdd":
        return False
    rows = (
        Row("radio.cell.tdd_configuration", "tdd_config", within(0, 6), 3),
        Row("radio.cell.special_subframe_configuration", "tdd_config_s", within(0, 10), 0),
    )
    made.take(rows, *_CELL)
    return True


def _scheduler(made: Draft) -> None:
    mode = made.find(_MAC, "scheduler_mode", str)
    if mode is not None and mode.value in ("fairRR", "default"):
        made.put("radio.cell.scheduler", "round_robin", mode)
    elif mode is None:
        made.default("radio.cell.scheduler", "round_robin", "scheduler_mode fairRR")


def _counted(prefix: str) -> Convert:
    """A value of RRC's lists: ``psf10`` is 10."""

    def convert(value: Scalar) -> int:
        found = re.fullmatch(rf"{prefix}(\d{{1,5}})", str(value), re.IGNORECASE)
        if not found:
            raise ValueError(f"a word such as {prefix}10")
        return int(found[1])

    return convert


def _drx(made: Draft) -> None:
    present = made.sure(_CELL, "drx_Config_present", str, "prNothing")
    if str(present.value).lower() != "prsetup":
        made.put("radio.drx.enabled", False, present)
        return
    rows = (
        Row("radio.drx.on_duration_ms", "drx_onDurationTimer", _counted("psf"), "psf10"),
        Row("radio.drx.inactivity_ms", "drx_InactivityTimer", _counted("psf"), "psf10"),
        Row(
            "radio.drx.retransmission_down_subframes",
            "drx_RetransmissionTimer",
            _counted("psf"),
            "psf8",
        ),
        Row(
            "radio.drx.long_cycle_ms",
            "drx_longDrx_CycleStartOffset_present",
            _counted("prSf"),
            "prSf128",
        ),
        Row("radio.drx.start_offset_ms", "drx_longDrx_CycleStartOffset", whole, 0),
        Row("radio.drx.short_cycle_ms", "drx_shortDrx_Cycle", _counted("sf"), "sf32"),
        Row("radio.drx.short_cycle_timer", "drx_shortDrx_ShortCycleTimer", whole, 3),
    )
    made.take(rows, *_CELL)


def _states(made: Draft) -> None:
    timer = made.sure(_ENB, "rrc_inactivity_threshold", whole, 0)
    made.put("radio.rrc.enabled", timer.value > 0, timer)
    if timer.value > 0:
        made.assume("radio.rrc.initial", "connected", "the UE has attached before")
        made.put("radio.rrc.inactivity_ms", 1000 * timer.value, timer)
        made.take(
            [Row("radio.rrc.paging_cycle_ms", "pcch_default_PagingCycle", times(10), 128)], *_CELL
        )


def _bearer(made: Draft, qci: int) -> None:
    unacknowledged = qci in _UM_QCIS
    made.default(
        "radio.rlc.mode", "um" if unacknowledged else "am", f"a bearer of QCI {qci} (rrc_eNB.c)"
    )
    made.default("radio.rlc.sn_bits", 10, "rrc_eNB.c")
    made.default("radio.rlc.t_reordering_ms", 35, "t-Reordering ms35")
    if not unacknowledged:
        for key, value in _AM.items():
            made.default(f"radio.rlc.{key}", value, "rrc_eNB.c")
    made.default("radio.rlc.discard_timer_ms", "infinity", "discardTimer infinity")
    made.default("radio.rlc.buffer_bytes", 1_000_000, "rlc_oai_api.c")


STATION = Station(
    program=_PROGRAM,
    cell=("eNBs.0.component_carriers.0",),
    names=frozenset({"eNBs"}),
    draft=_draft,
)
"""How the files of this program become keys."""
