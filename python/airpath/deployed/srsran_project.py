"""srsRAN Project's gNB: gnb.yml, also cu.yml and du.yml.

The defaults are those of release 25.10: ``du_high_config.h``, ``cu_cp_unit_config.h``,
``du_qos_config_helpers.h`` and ``cu_cp_configuration_helpers.h`` in its source.
"""

from __future__ import annotations

from dataclasses import replace

from airpath.deployed import nr
from airpath.deployed.draft import (
    Draft,
    Found,
    Program,
    Row,
    Station,
    choice,
    flag,
    kilobytes,
    number,
    one_more,
    or_infinite,
    times,
    whole,
    within,
    wrong,
)
from airpath.deployed.settings import Scalar, Settings

_PROGRAM = Program("srsRAN Project", "25.10")
_NAMES = frozenset(
    ("cell_cfg", "cells", "cu_cp", "cu_up", "du", "expert_phy", "f1u", "pcap", "qos", "ru_ofh",
     "ru_sdr", "srbs", "test_mode")
)  # fmt: skip
_CELL = ("cells.0", "cell_cfg")
_TABLES = choice(qam64="qam64", qam256="qam256", qam64lowse="qam64_low_se")

_ROWS = (
    Row("radio.cell.mcs_table_down", "pdsch.mcs_table", _TABLES, "qam256"),
    Row("radio.cell.mcs_table_up", "pusch.mcs_table", _TABLES, "qam256"),
    Row("radio.cell.k1_slots", "pucch.min_k1", within(1, 15), 4),
    Row("radio.cell.k2_slots", "pusch.min_k2", within(1, 32), 4),
    Row("radio.harq.processes", "pdsch.nof_harqs", whole, 16),
    Row("radio.harq.max_transmissions", "pdsch.max_nof_harq_retxs", one_more, 4),
    Row("radio.harq_up.processes", "pusch.nof_harqs", whole, 16),
    Row("radio.harq_up.max_transmissions", "pusch.max_nof_harq_retxs", one_more, 4),
    Row("radio.link_adaptation.cqi_period_ms", "csi.csi_rs_period", whole, 20),
    Row("radio.sr.period_ms", "pucch.sr_period_ms", number, 20),
    Row("radio.sr.trans_max", "mac_cell_group.sr_cfg.sr_trans_max", whole, 64),
    Row("radio.sr.prohibit_timer_ms", "mac_cell_group.sr_cfg.sr_prohibit_timer", whole),
    Row(
        "radio.bsr.periodic_timer_ms",
        "mac_cell_group.bsr_cfg.periodic_bsr_timer",
        lambda value: whole(value) or "infinity",
        10,
    ),
    Row("radio.bsr.retx_timer_ms", "mac_cell_group.bsr_cfg.retx_bsr_timer", whole, 80),
    Row("radio.bsr.sr_delay_timer_ms", "mac_cell_group.bsr_cfg.lc_sr_delay_timer", whole),
    Row("radio.rach.preambles_max", "prach.preamble_trans_max", whole, 7),
)
_DRX = (
    Row("radio.drx.long_cycle_ms", "drx.long_cycle", whole),
    Row("radio.drx.on_duration_ms", "drx.on_duration_timer", whole, 10),
    Row("radio.drx.inactivity_ms", "drx.inactivity_timer", whole, 0),
    Row("radio.drx.retransmission_down_slots", "drx.retx_timer_dl", whole, 0),
    Row("radio.drx.retransmission_up_slots", "drx.retx_timer_ul", whole, 0),
)
_PDCP = (
    Row("radio.rlc.discard_timer_ms", "pdcp.tx.discard_timer", or_infinite),
    Row("radio.rlc.status_report_required", "pdcp.tx.status_report_required", flag, False),
    Row("radio.rlc.t_reordering_ms", "pdcp.rx.t_reordering", or_infinite),
    Row("radio.rlc.out_of_order_delivery", "pdcp.rx.out_of_order_delivery", flag, False),
)
_AM = (
    Row("radio.rlc.sn_bits", "rlc.am.tx.sn", whole, 18),
    Row("radio.rlc.t_poll_retransmit_ms", "rlc.am.tx.t-poll-retransmit", whole),
    Row("radio.rlc.max_retx_threshold", "rlc.am.tx.max-retx-threshold", whole),
    Row("radio.rlc.poll_pdu", "rlc.am.tx.poll-pdu", or_infinite),
    Row("radio.rlc.poll_bytes", "rlc.am.tx.poll-byte", or_infinite),
    Row("radio.rlc_up.poll_bytes", "rlc.am.tx.poll-byte", kilobytes),
    Row("radio.rlc.t_reassembly_ms", "rlc.am.rx.t-reassembly", whole),
    Row("radio.rlc.t_status_prohibit_ms", "rlc.am.rx.t-status-prohibit", whole),
    Row("radio.rlc.buffer_packets", "rlc.am.tx.queue-size", whole, 16384),
    Row("radio.rlc.buffer_bytes", "rlc.am.tx.queue-bytes", whole, 6172672),
)
_UM = (
    Row("radio.rlc.sn_bits", "rlc.um-bidir.tx.sn", whole, 12),
    Row("radio.rlc.t_reassembly_ms", "rlc.um-bidir.rx.t-reassembly", whole),
    Row("radio.rlc.buffer_packets", "rlc.um-bidir.tx.queue-size", whole, 16384),
    Row("radio.rlc.buffer_bytes", "rlc.um-bidir.tx.queue-bytes", whole, 6172672),
)

# Mode, discard_timer, t_reordering and t-reassembly of each 5QI, in AM also t-poll-retransmit,
# max-retx-threshold, poll-pdu, poll-byte (kB) and t-status-prohibit.
_QOS: dict[int, tuple[str, tuple[int, ...]]] = {
    1: ("um-bidir", (100, 0, 50)),
    2: ("um-bidir", (150, 0, 50)),
    3: ("um-bidir", (50, 0, 35)),
    4: ("am", (300, 140, 80, 80, 4, 64, 125, 10)),
    5: ("am", (100, 500, 80, 80, 4, 64, 125, 10)),
    6: ("am", (300, 100, 80, 80, 4, 64, 125, 10)),
    7: ("um-bidir", (-1, 50, 100)),
    8: ("am", (300, 100, 80, 80, 4, 64, 125, 10)),
    9: ("am", (-1, 220, 20, 100, 32, 16, -1, 10)),
}
_QOS_NAMES: tuple[str, ...] = ("discard_timer", "t_reordering", "t-reassembly", "t-poll-retransmit")
_QOS_NAMES += ("max-retx-threshold", "poll-pdu", "poll-byte", "t-status-prohibit")

REASONS = (
    ("*repeated-*", "set twice in its group; srsRAN Project keeps the first"),
    ("*.p0_nominal*", "airpath has no power control; the scenario sets the uplink's SINR"),
    ("*.msg3_delta_p*", "airpath has no power control; the scenario sets the uplink's SINR"),
    (
        "*.enable_cl_loop_pw_control",
        "airpath has no power control; the scenario sets the uplink's SINR",
    ),
    ("*.p_max", "airpath has no power control; the scenario sets the uplink's SINR"),
    (
        "*.preamble_rx_target_pw",
        "airpath has no power control; the scenario sets the uplink's SINR",
    ),
    (
        "*.power_ramping_step_db",
        "airpath has no power control; the scenario sets the uplink's SINR",
    ),
    ("cells.[1-9]*", "a further cell; the scenario has the first one"),
    ("*.olla_*", "steps and limits of srsRAN's outer loop are in CQI, those of airpath in dB"),
    ("*.m??_ue_mcs", "airpath has no limits for the MCS"),
    ("*.pucch.*", "airpath gives PUCCH no PRBs of its own in NR; srsRAN takes what a slot needs"),
    ("*.min_pucch_pusch_prb_distance", "airpath gives PUCCH no PRBs of its own in NR"),
    ("*.m??_rb_size", "airpath has no limits for the PRBs of one UE"),
    ("*.start_rb", "airpath has no limits for the PRBs of one UE"),
    ("*.end_rb", "airpath has no limits for the PRBs of one UE"),
    ("*.rv_sequence", "airpath combines transmissions without redundancy versions"),
    ("*.harq_*", "airpath has neither a time limit for HARQ retransmissions nor HARQ mode B"),
    ("*.max_consecutive_kos", "airpath releases no connection after failed blocks"),
    ("*.max_p?sch*_per_slot", "airpath has one limit for both directions: ues_per_slot"),
    ("*.pdcch.*", "airpath counts PDCCHs, not their CCEs"),
    ("*.prach.*", "airpath models random access by its period, not by PRACH formats"),
    ("*.srs.*", "airpath has no SRS"),
    ("*.ntn.*", "airpath has no non-terrestrial networks"),
    ("*.phr_cfg.*", "airpath has no power headroom"),
    ("*.slicing.*", "airpath has one slice"),
    ("qos.*", "a bearer of another 5QI, or a setting of F1-U"),
    ("cu_cp.mobility.*", "the scenario has one cell"),
    ("cu_cp.rrc.*", "airpath has no reestablishment"),
    ("cell_cfg.sib.*", "airpath has no system information, and no radio link failure"),
    ("*.scheduler.policy.qos_sched.*", "airpath's scheduler does not know 5QIs"),
    ("*.csi.*", "airpath models CSI reports by their period, not by their resources"),
)


def _draft(settings: Settings, five_qi: int) -> Draft:
    """The keys of the radio. Raises ``InputError`` with file and line of a wrong setting."""
    made = Draft(_PROGRAM, settings, REASONS)
    _cell(made)
    made.take(_ROWS, *_CELL)
    _link_adaptation(made)
    _antennas(made)
    _references(made)
    _drx(made)
    _states(made)
    _bearer(made, five_qi)
    return made


def _cell(made: Draft) -> None:
    scs = made.sure(_CELL, "common_scs", choice(**{"15": 15, "30": 30, "60": 60, "120": 120}), 15)
    band = made.find(_CELL, "band", _band)
    if band is None or not band.value:
        arfcn = made.sure(_CELL, "dl_arfcn", whole, 536020)
        number_ = nr.band_of(arfcn.value)
        if number_ is None and arfcn.setting is not None:
            raise arfcn.setting.wrong(f"is {arfcn.value}, which is in no band; set `band` too")
        band = Found(number_ or 0, arfcn.name, arfcn.setting)
    tdd = nr.is_tdd(band.value)
    range_ = nr.frequency_range(band.value)
    made.put("radio.cell.duplex", "tdd" if tdd else "fdd", band, why=f"band n{band.value}")
    made.put("radio.cell.frequency_range", range_, band, why=f"band n{band.value}")
    mhz = made.sure(_CELL, "channel_bandwidth_MHz", number, 20)
    made.put("radio.cell.bandwidth_mhz", mhz.value, mhz)
    made.put("radio.cell.scs_khz", scs.value, scs)
    _control(made, wide=mhz.value > 50 and range_ == "fr1")
    if tdd:
        _pattern(made)
        made.default(
            "radio.cell.least_symbols_up", 14, "PUSCH is scheduled in full uplink slots only"
        )
    power = made.sure(_CELL, "ssb.ssb_block_power_dbm", number, -16)
    prbs = nr.blocks(range_, scs.value, float(mhz.value))
    if prbs is not None:
        nr.remark_power(made, power, prbs)
    window = made.find(_CELL, "prach.ra_resp_window", whole)
    if window is not None:
        made.put("radio.rach.response_window_ms", window.value * 15 / scs.value, window)
    else:
        made.default("radio.rach.response_window_ms", 10, "ra_resp_window covers 10 ms")


def _band(value: Scalar) -> int:
    text = str(value).lower().removeprefix("n")
    if text == "auto":
        return 0  # it follows from the ARFCN
    if not text.isdigit():
        raise ValueError("the number of a band, such as 78")
    return within(1, 512)(int(text))


def _pattern(made: Draft) -> None:
    """The TDD pattern; the default is that of ``tdd_ul_dl_pattern_unit_config``."""
    parts: list[str] = []
    used: list[Found[int]] = []
    names = ("dl_ul_tx_period", "nof_dl_slots", "nof_dl_symbols", "nof_ul_slots", "nof_ul_symbols")
    for group in ("tdd_ul_dl_cfg", "tdd_ul_dl_cfg.pattern2"):
        if group.endswith("2") and not any(
            made.settings.has(*scope.split("."), *group.split(".")) for scope in _CELL
        ):
            continue
        defaults = zip(names, (10, 6, 8, 3, 0), strict=True)
        found = [made.sure(_CELL, f"{group}.{name}", within(0, 160), of) for name, of in defaults]
        try:
            parts.append(nr.pattern(*(each.value for each in found)))
        except ValueError as error:
            raise wrong(found, f"and related settings: {error}") from None
        used += found
    made.put("radio.cell.tdd_pattern", " + ".join(parts), *used)


def _link_adaptation(made: Draft) -> None:
    for key, channel in (("link_adaptation", "pdsch"), ("link_adaptation_up", "pusch")):
        least = made.sure(_CELL, f"{channel}.min_ue_mcs", within(0, 28), 0)
        most = made.sure(_CELL, f"{channel}.max_ue_mcs", within(0, 28), 28)
        if least.value == most.value:
            made.put(f"radio.{key}.fixed_mcs", least.value, least, most)
        else:
            target = made.sure(_CELL, f"{channel}.olla_target_bler", number, 0.01)
            made.put(f"radio.{key}.bler_target", target.value, target)
    robin = made.find(_CELL, "scheduler.policy.rr_sched", lambda _: "round_robin")
    if robin is not None:
        made.put("radio.cell.scheduler", robin.value, robin)
    else:
        made.default(
            "radio.cell.scheduler",
            "proportional_fair",
            "QoS-aware; with one 5QI it is proportional fair",
        )


def _antennas(made: Draft) -> None:
    down = made.sure(_CELL, "nof_antennas_dl", within(1, 8), 1)
    rank = made.find(_CELL, "pdsch.max_rank", within(1, 8))
    used = [down, rank] if rank else [down]
    made.put("radio.cell.layers_down", min(each.value for each in used), *used)
    up = made.sure(_CELL, "nof_antennas_ul", within(1, 8), 1)
    most = made.sure(_CELL, "pusch.max_rank", within(1, 4), 4)
    if up.value == 1:
        made.put("radio.cell.layers_up", 1, up)
    else:
        layers = min(up.value, most.value)
        made.assume(
            "radio.cell.layers_up", 1, f"a UE with one antenna; the cell allows {layers}", up, most
        )


def _references(made: Draft) -> None:
    """DM-RS of type 1 in one symbol and the additional ones.

    In the uplink, and with more than two layers in the downlink, both CDM groups of a symbol carry
    no data: 12 elements instead of 6.
    """
    layers = made.entries["radio.cell.layers_down"].value
    down = made.sure(_CELL, "pdsch.dmrs_additional_position", within(0, 3), 2)
    each = 12 if layers in (3, 4) else 6
    made.put("radio.cell.dmrs_down", each * (1 + down.value), down)
    up = made.sure(_CELL, "pusch.dmrs_additional_position", within(0, 3), 2)
    made.put("radio.cell.dmrs_up", 12 * (1 + up.value), up)


def _control(made: Draft, wide: bool) -> None:
    """Symbols of PDCCH: CORESET#1 lasts as long as CORESET#0, unless it is set."""
    key = "radio.cell.control_symbols"
    names = ("pdcch.dedicated.coreset1_duration", "pdcch.common.max_coreset0_duration")
    for name in names:
        found = made.find(_CELL, name, within(1, 3))
        if found is not None:
            made.put(key, found.value, found)
            return
    made.default(key, 1 if wide else 2, "max_coreset0_duration, 1 above 50 MHz in FR1")


def _drx(made: Draft) -> None:
    cycle = made.sure(_CELL, "drx.long_cycle", whole, 0)
    if cycle.value:
        made.take(_DRX, *_CELL)
    else:
        made.put("radio.drx.enabled", False, cycle)


def _states(made: Draft) -> None:
    timer = made.sure(("cu_cp",), "inactivity_timer", whole, 120)
    made.put("radio.rrc.enabled", timer.value >= 0, timer)
    if timer.value >= 0:
        made.assume("radio.rrc.initial", "connected", "the UE has attached before")
        made.put("radio.rrc.inactivity_ms", 1000 * timer.value, timer)
        made.take(
            [Row("radio.rrc.paging_cycle_ms", "paging.default_pg_cycle_in_rf", times(10), 128)],
            *_CELL,
        )


def _bearer(made: Draft, five_qi: int) -> None:
    """RLC and PDCP of one 5QI; the group ``qos`` of the file need not have it."""
    scope = ""
    for each in made.settings.elements("qos"):
        found = made.settings.get(f"qos.{each}.five_qi")
        if found is not None and found.value == five_qi:
            scope = f"qos.{each}"
    mode, values = _QOS.get(five_qi, _QOS[9])
    defaults = dict(zip(_QOS_NAMES, values, strict=False))
    chosen = made.sure(
        (scope or "qos",), "rlc.mode", choice(**{"am": "am", "um-bidir": "um-bidir"}), mode
    )
    made.put("radio.rlc.mode", "am" if chosen.value == "am" else "um", chosen)
    for row in (*_PDCP, *(_AM if chosen.value == "am" else _UM)):
        default = defaults.get(row.setting.rsplit(".", 1)[1], row.default)
        made.take([replace(row, default=default)], scope or "qos")
    polled = made.entries.get("radio.rlc.poll_bytes")
    if polled is not None and polled.value != "infinity":
        # rlc_tx_am_entity.cpp compares bytes; asn1_rrc_config_helpers.cpp sends kB to the UE.
        comment = f"{polled.comment}; the gNB counts bytes, and the UE kilobytes"
        made.entries[polled.key] = replace(polled, comment=comment)


STATION = Station(
    program=_PROGRAM,
    cell=("cell_cfg", "cells"),
    names=_NAMES,
    draft=_draft,
)
"""How the files of this program become keys."""
