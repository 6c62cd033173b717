"""OpenAirInterface's gNB: the files that ``nr-softmodem -O`` reads, also of a CU and a DU.

The defaults are those of the branch develop in week 12 of 2024: ``gnb_paramdef.h``,
``MACRLC_nr_paramdef.h``, ``RRC_nr_paramsvalues.h``, ``nr_rrc_config.c``, ``gNB_scheduler_*.c`` and
``asn1_msg.c``. docs/measured/openair-uplink.md compares its grants with a measurement.
"""

from __future__ import annotations

from typing import Any

from airpath.deployed import nr
from airpath.deployed.draft import (
    Draft,
    Found,
    Program,
    Row,
    Station,
    flag,
    number,
    one_of,
    whole,
    within,
    wrong,
)
from airpath.deployed.settings import Settings

_PROGRAM = Program("OpenAirInterface", "2024.w12")
_GNB = ("gNBs.0",)
_CELL = ("gNBs.0.servingCellConfigCommon.0",)
_MAC = ("MACRLCs.0",)
_SCS = one_of({0: 15, 1: 30, 2: 60, 3: 120})
_PERIODS = one_of({0: 0.5, 1: 0.625, 2: 1, 3: 1.25, 4: 2, 5: 2.5, 6: 5, 7: 10, 8: 3, 9: 4})
_NONE = 321  # the period of a second pattern that is not there; -1 is another
_MOST_MOBILES = 16  # MAX_MOBILES_PER_GNB
_DMRS_UP = 18  # 3 symbols with 6 elements (get_ul_dmrs_params with DCI 0_1)
_CSI_PERIODS = (4, 5, 8, 10, 16, 20, 40, 80, 160, 320)  # slots

_ROWS = (
    Row(
        "radio.rach.preambles_max",
        "preambleTransMax",
        one_of(dict(enumerate((3, 4, 5, 6, 7, 8, 10, 20, 50, 100, 200)))),
        6,
    ),
    Row(
        "radio.rach.contention_resolution_ms",
        "ra_ContentionResolutionTimer",
        one_of({each: 8 * (each + 1) for each in range(8)}),
        7,
    ),
)
_HARQ = (
    Row("radio.harq.max_transmissions", "dl_harq_round_max", within(1, 8), 4),
    Row("radio.harq_up.max_transmissions", "ul_harq_round_max", within(1, 8), 4),
)
_AM = {
    "sn_bits": 18,
    "t_poll_retransmit_ms": 45,
    "poll_pdu": 64,
    "poll_bytes": 500_000,
    "max_retx_threshold": 32,
    "t_reassembly_ms": 15,
    "t_status_prohibit_ms": 15,
}
_UM = {"sn_bits": 12, "t_reassembly_ms": 15}

_POWER = "airpath has no power control; the scenario sets the uplink's SINR"
REASONS = (
    ("RUs.[1-9]*", "a further radio unit; the scenario has the first one"),
    ("gNBs.[1-9]*", "a further gNB; the scenario has the first one"),
    ("*.servingCellConfigCommon.[1-9]*", "a further cell; the scenario has the first one"),
    ("*.p0_*", _POWER),
    ("*.pMax", _POWER),
    ("*.msg3_DeltaPreamble", _POWER),
    ("*.preambleReceivedTargetPower", _POWER),
    ("*.powerRampingStep", _POWER),
    ("*.pu?ch_TargetSNRx10", _POWER),
    ("*_max_mcs", "airpath has no limits for the MCS"),
    ("*.pu?ch_FailureThres", "airpath releases no connection after failed blocks"),
    ("*.min_grant_prb", "OpenAirInterface reads it, but grants 5 PRBs"),
    ("*.ul_prbbla*", "airpath has no excluded PRBs"),
    ("*.ulsch_max_frame_inactivity", "airpath grants on request, and by `grants.proactive_…`"),
    ("*.initial?LBWP*", "airpath has one bandwidth part, the whole carrier"),
    ("*.servingCellConfigDedicated.*", "airpath has one bandwidth part, and no PT-RS"),
    ("*.prach_*", "airpath models random access by its period, not by PRACH formats"),
    (
        "*.zeroCorrelationZoneConfig",
        "airpath models random access by its period, not by PRACH formats",
    ),
    ("*.ssb_*", "airpath's SSB takes no resources"),
    ("*.do_SRS", "airpath has no SRS"),
    ("*.sib1_tda", "airpath has no system information"),
    ("*.enable_sdap", "airpath has an SDAP header in NR"),
    ("*.referenceSubcarrierSpacing", "OpenAirInterface counts slots of the carrier's spacing"),
    ("*.drbs", "airpath has one bearer for each UE"),
    ("RUs.*.nb_?x", "layers follow from the antenna ports of the gNB"),
    ("RUs.*.att_?x", "the power of the radio head"),
    ("RUs.*.max_*", "the power of the radio head"),
    ("rfsimulator.*", "a channel simulator; airpath's channel is `radio.channel`"),
    ("channelmod.*", "a channel simulator; airpath's channel is `radio.channel`"),
)


def _draft(settings: Settings, five_qi: int) -> Draft:
    """The keys of the radio. Raises ``InputError`` with file and line of a wrong setting."""
    del five_qi  # RLC and PDCP are equal for all
    made = Draft(_PROGRAM, settings, REASONS)
    scs, tdd = _carrier(made)
    _timing(made, scs)
    _antennas(made)
    made.take(_ROWS, *_CELL)
    made.take(_HARQ, *_MAC)
    for key in ("harq", "harq_up"):
        made.default(f"radio.{key}.processes", 16, "nrofHARQ-ProcessesForPDSCH n16")
    _link_adaptation(made, scs)
    _requests(made, scs, tdd)
    _reports(made, scs, tdd)
    _bearer(made)
    made.default("radio.rrc.enabled", False, "it has no inactivity timer")
    return made


class _Tdd:
    """One period of the pattern, in slots."""

    def __init__(self, period: int, down: int, down_symbols: int, up: int, up_symbols: int) -> None:
        self.period, self.down, self.up = period, down, up
        self.down_symbols, self.up_symbols = down_symbols, up_symbols

    @property
    def first_uplink(self) -> int:
        """The first slot with uplink (``get_first_ul_slot``)."""
        return self.down + (self.down_symbols != 0 and self.up_symbols == 0)


def _carrier(made: Draft) -> tuple[int, _Tdd | None]:
    scs = made.sure(_CELL, "dl_subcarrierSpacing", _SCS, 1)
    band = made.sure(_CELL, "dl_frequencyBand", within(1, 512), 78)
    range_ = nr.frequency_range(band.value)
    made.put("radio.cell.frequency_range", range_, band, why=f"band n{band.value}")
    tdd = nr.is_tdd(band.value)
    made.put("radio.cell.duplex", "tdd" if tdd else "fdd", band, why=f"band n{band.value}")
    made.put("radio.cell.scs_khz", scs.value, scs)
    down = made.sure(_CELL, "dl_carrierBandwidth", within(1, 275), 217)
    up = made.sure(_CELL, "ul_carrierBandwidth", within(1, 275), 217)
    channel = nr.carrier(range_, scs.value, max(down.value, up.value))
    if channel is None:
        widest = max(down, up, key=lambda each: each.value)
        raise wrong([widest, scs], f"is more than a channel of {scs.value} kHz in {range_} has")
    why = "" if channel[1] == down.value else f"the smallest channel that has {down.value} PRBs"
    made.put("radio.cell.bandwidth_mhz", channel[0], down, scs, why=why)
    made.put("radio.cell.prbs_down", down.value, down)
    made.put("radio.cell.prbs_up", up.value, up)
    power = made.sure(_CELL, "ssPBCH_BlockPower", number, 20)
    nr.remark_power(made, power, down.value, "before the radio head's attenuation")
    window = one_of(dict(enumerate((1, 2, 4, 8, 10, 20, 40, 80))))
    slots = made.sure(_CELL, "ra_ResponseWindow", window, 5)
    made.put("radio.rach.response_window_ms", slots.value * 15 / scs.value, slots)
    return scs.value, _pattern(made, scs.value) if tdd else None


def _pattern(made: Draft, scs_khz: int) -> _Tdd:
    names = ("nrofDownlinkSlots", "nrofDownlinkSymbols", "nrofUplinkSlots", "nrofUplinkSymbols")
    texts: list[str] = []
    used: list[Found[Any]] = []
    patterns: list[_Tdd] = []
    for suffix, defaults in (("", (7, 6, 2, 4)), ("2", (0, 0, 0, 0))):
        name = f"dl_UL_TransmissionPeriodicity{suffix}"
        if suffix and not 0 <= made.sure(_CELL, name, whole, _NONE).value <= 9:
            break
        period = made.sure(_CELL, name, _PERIODS, 6)
        counts = [
            made.sure(_CELL, each + suffix, within(0, 80), default)
            for each, default in zip(names, defaults, strict=True)
        ]
        slots = period.value * scs_khz / 15
        one = _Tdd(round(slots), *(count.value for count in counts))
        used += [period, *counts]
        try:
            texts.append(nr.pattern(one.period, one.down, one.down_symbols, one.up, one.up_symbols))
        except ValueError as error:
            raise wrong([period, *counts], f"and related settings: {error}") from None
        patterns.append(one)
    made.put("radio.cell.tdd_pattern", " + ".join(texts), *used)
    return patterns[0]


def _timing(made: Draft, scs_khz: int) -> None:
    least = made.sure(_GNB, "min_rxtxtime", within(0, 15), 2)
    made.put("radio.cell.k1_slots", least.value, least)
    made.put("radio.cell.k2_slots", least.value, least)
    made.put("radio.cell.exact_k2", True, least, why="the only K_2 of all PUSCHs of data")
    ahead = made.sure(("RUs.0",), "sl_ahead", within(0, 20), 6)
    for key in ("cell.processing_grant_ms", "harq_up.processing_ms"):
        made.put(f"radio.{key}", ahead.value * 15 / scs_khz, ahead)
    made.default("radio.cell.feedback_symbols", 1, "PUSCH leaves the last symbol of a slot")
    made.default("radio.cell.least_symbols_up", 1, "a special slot's PUSCH has all the others")
    size = made.sure(_CELL, "dl_carrierBandwidth", whole, 217)
    symbols = 2 if size.value < 48 else 1
    made.put("radio.cell.control_symbols", symbols, size, why="a CORESET has 1 symbol from 48 PRBs")


def _antennas(made: Draft) -> None:
    ports = [
        made.sure(_GNB, f"pdsch_AntennaPorts_{name}", within(1, 8), 1)
        for name in ("N1", "N2", "XP")
    ]
    most = made.find(_GNB, "maxMIMO_layers", within(1, 8))
    layers = ports[0].value * ports[1].value * ports[2].value
    used = [*ports, most] if most else ports
    made.put("radio.cell.layers_down", min(layers, most.value if most else 4), *used)
    made.default(
        "radio.cell.dmrs_down", 12 if layers <= 2 else 24, "2 symbols (get_dl_dmrs_params)"
    )
    made.default("radio.cell.dmrs_up", _DMRS_UP, "3 symbols (get_ul_dmrs_params with DCI 0_1)")
    up = made.sure(_GNB, "pusch_AntennaPorts", within(1, 8), 1)
    if up.value == 1:
        made.put("radio.cell.layers_up", 1, up)
    else:
        made.assume("radio.cell.layers_up", 1, "a UE with one antenna", up)


def _link_adaptation(made: Draft, scs_khz: int) -> None:
    off = made.sure(_GNB, "force_256qam_off", flag, False)
    fr2 = scs_khz > 60
    made.put(
        "radio.cell.mcs_table_down",
        "qam64" if off.value or fr2 else "qam256",
        off,
        why="" if off.value else "if the UE has it, as all have in FR1",
    )
    made.assume("radio.cell.mcs_table_up", "qam64", "a UE without 256QAM in the uplink")
    for key, name in (("link_adaptation", "dl"), ("link_adaptation_up", "ul")):
        upper = made.sure(_MAC, f"{name}_bler_target_upper", number, 0.15)
        lower = made.sure(_MAC, f"{name}_bler_target_lower", number, 0.05)
        made.default(f"radio.{key}.step_window_ms", 100, "the MCS moves every 10 frames")
        made.put(f"radio.{key}.step_lower_bler", lower.value, lower)
        made.put(f"radio.{key}.step_upper_bler", upper.value, upper)
        made.default(f"radio.{key}.step_memory", 0.9, "the filter of the block error rate")
        made.default(f"radio.{key}.step_start_mcs", 9, "the MCS of a UE that has just come")


def _requests(made: Draft, scs_khz: int, tdd: _Tdd | None) -> None:
    """Scheduling requests, buffer reports and the grant for a request."""
    slot = tdd.first_uplink if tdd else 1
    least = {15: 10, 30: 10, 60: 20, 120: 40}[scs_khz]
    period = next(each for each in (10, 20, 40, 80, 160) if each >= least and slot < each)
    slot_ms = 15 / scs_khz
    made.default("radio.sr.period_ms", period * slot_ms, f"{period} slots (set_SR_periodandoffset)")
    made.default("radio.sr.offset_ms", slot * slot_ms, "the first slot with uplink")
    made.default("radio.sr.trans_max", 64, "sr-TransMax n64")
    made.default("radio.sr.prohibit_timer_ms", "none", "there is no sr-ProhibitTimer")
    made.default("radio.bsr.periodic_timer_ms", 10, "periodicBSR-Timer sf10")
    made.default("radio.bsr.retx_timer_ms", 80, "retxBSR-Timer sf80")
    _grants(made)


def _grants(made: Draft) -> None:
    """What ``pf_ul`` grants for a request or a report."""
    mcs = made.sure(_MAC, "min_grant_mcs", within(0, 27), 9)
    made.default("radio.grants.least_prbs", 5, "min_rb (pf_ul)")
    made.put("radio.grants.request_mcs", mcs.value, mcs)
    made.default("radio.grants.request_grant_bytes", 16, "as many bytes as 5 PRBs hold")
    made.default("radio.grants.header_room", False, "what was reported, less what is granted")
    # `assume_more` stays as it is. OpenAirInterface assumes nothing; that was measured only with
    # its own UE, which reports in every block. Others would be silent until retxBSR-Timer, 80 ms.
    made.default("radio.grants.requests", "all", "a request counts whatever is granted")
    made.default("radio.grants.late_reports", True, "the report that was decoded last counts")


def _reports(made: Draft, scs_khz: int, tdd: _Tdd | None) -> None:
    """The period of CSI reports (``set_csi_meas_periodicity``)."""
    csi = made.sure(_GNB, "do_CSIRS", flag, 0)
    if not csi.value:
        made.remarks.append(
            "the gNB has no CSI-RS, so it learns of the channel from HARQ alone; airpath has CQI "
            "reports in any case"
        )
        return
    slots = 10 * scs_khz // 15
    period, up = (tdd.period, tdd.up + (tdd.up_symbols > 0)) if tdd else (slots, slots)
    ideal = 2 * _MOST_MOBILES * period // max(up, 1)
    chosen = next((each for each in _CSI_PERIODS if ideal <= each), 320)
    made.put(
        "radio.link_adaptation.cqi_period_ms",
        chosen * 15 / scs_khz,
        csi,
        why=f"{chosen} slots, room for {_MOST_MOBILES} UEs",
    )


def _bearer(made: Draft) -> None:
    unacknowledged = made.sure(_GNB, "um_on_default_drb", flag, False)
    made.put("radio.rlc.mode", "um" if unacknowledged.value else "am", unacknowledged)
    for key, value in (_UM if unacknowledged.value else _AM).items():
        made.default(f"radio.rlc.{key}", value, "asn1_msg.c")
    made.default("radio.rlc.discard_timer_ms", "infinity", "discardTimer infinity")
    made.default("radio.rlc.t_reordering_ms", 100, "t-Reordering ms100")
    made.default("radio.rlc.buffer_bytes", 10_000_000, "RLC_TX_MAXSIZE")


STATION = Station(
    program=_PROGRAM,
    cell=("gNBs.0.servingCellConfigCommon.0",),
    names=frozenset({"gNBs"}),
    draft=_draft,
)
"""How the files of this program become keys."""
