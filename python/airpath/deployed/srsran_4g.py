"""srsRAN 4G's eNB: enb.conf, rr.conf, rb.conf (drb.conf before 22.04) and sib.conf.

The defaults are those of release 23.04: ``main.cc`` and ``rlc_interface_types.h`` in its source,
and for rr.conf, rb.conf and sib.conf, which srsENB requires, the files that it installs.
"""

from __future__ import annotations

from airpath.deployed import lte, nr
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
    one_of,
    or_infinite,
    times,
    whole,
    within,
    wrong,
)
from airpath.deployed.settings import Settings

_PROGRAM = Program("srsRAN 4G", "23.04")

_ROWS = (
    Row("radio.sr.period_ms", "phy_cnfg.sched_request_cnfg.period", whole, 20),
    Row("radio.sr.offset_ms", "phy_cnfg.sched_request_cnfg.subframe.0", whole, 0),
    Row("radio.sr.trans_max", "phy_cnfg.sched_request_cnfg.dsr_trans_max", whole, 64),
    Row("radio.link_adaptation.cqi_period_ms", "phy_cnfg.cqi_report_cnfg.period", whole, 40),
    Row("radio.harq.max_transmissions", "mac_cnfg.ulsch_cnfg.max_harq_tx", within(1, 28), 4),
    Row("radio.bsr.periodic_timer_ms", "mac_cnfg.ulsch_cnfg.periodic_bsr_timer", or_infinite, 20),
    Row("radio.bsr.retx_timer_ms", "mac_cnfg.ulsch_cnfg.retx_bsr_timer", whole, 320),
    Row(
        "radio.cell.scheduler",
        "scheduler.policy",
        choice(time_pf="proportional_fair", time_rr="round_robin"),
        "time_pf",
    ),
    Row("radio.rach.preambles_max", "sib2.rr_config_common_sib.rach_cnfg.preamble_trans_max",
        whole, 10),
    Row("radio.rach.response_window_ms", "sib2.rr_config_common_sib.rach_cnfg.ra_resp_win_size",
        whole, 10),
    Row("radio.rach.contention_resolution_ms",
        "sib2.rr_config_common_sib.rach_cnfg.mac_con_res_timer", whole, 64),
)  # fmt: skip
_PDCP = (
    Row("radio.rlc.discard_timer_ms", "pdcp_config.discard_timer", or_infinite, 150),
    Row("radio.rlc.status_report_required", "pdcp_config.status_report_required", flag),
)
_AM = (
    Row("radio.rlc.t_poll_retransmit_ms", "rlc_config.ul_am.t_poll_retx", whole, 120),
    Row("radio.rlc.poll_pdu", "rlc_config.ul_am.poll_pdu", or_infinite, 64),
    Row("radio.rlc.poll_bytes", "rlc_config.ul_am.poll_byte", kilobytes, 750),
    Row("radio.rlc.max_retx_threshold", "enb_specific.dl_max_retx_thresh", whole, 32),
    Row("radio.rlc_up.max_retx_threshold", "rlc_config.ul_am.max_retx_thresh", whole, 16),
    Row("radio.rlc.t_reordering_ms", "rlc_config.dl_am.t_reordering", whole, 50),
    Row("radio.rlc.t_status_prohibit_ms", "rlc_config.dl_am.t_status_prohibit", whole, 50),
)
_UM = (
    Row("radio.rlc.sn_bits", "rlc_config.dl_um.sn_field_length", whole, 10),
    Row("radio.rlc.t_reordering_ms", "rlc_config.dl_um.t_reordering", whole, 45),
)

_POWER = "airpath has no power control; the scenario sets the uplink's SINR"
REASONS = (
    ("cell_list.[1-9]*", "a further cell; the scenario has the first one"),
    ("cell_list.0.scell_list.*", "carrier aggregation is not read from this file"),
    ("cell_list.0.meas_*", "the scenario has one cell"),
    ("cell_list.0.*_sinr", _POWER),
    ("cell_list.0.*phr*", _POWER),
    ("nr_cell_list.*", "the NR cells of srsENB are not read"),
    ("*.ul_pwr_ctrl.*", _POWER),
    ("*.rach_cnfg.*p*wr*", _POWER),
    ("*.phr_cnfg.*", _POWER),
    ("*.sched_request_cnfg.subframe.*", "subframes of further UEs"),
    ("*.cqi_report_cnfg.*", "airpath models only periodic wideband CQI"),
    ("*.phich_cnfg.*", "airpath's PHICH takes no resources"),
    ("*.pusch_cnfg*", "airpath has neither hopping nor reference signals in LTE's uplink"),
    ("*.prach_cnfg.*", "airpath models random access by its period, not by PRACH formats"),
    ("*.pucch_cnfg.*", "airpath models PUCCH by its PRBs, not by its formats"),
    ("*.ue_timers_and_constants.*", "airpath has no radio link failure by these timers"),
    ("scheduler.p?sch_max_mcs", "airpath has no limits for the MCS"),
    ("scheduler.*step_size", "steps of srsRAN's outer loop are in CQI, those of airpath in dB"),
    ("scheduler.max_delta_*", "limits of srsRAN's outer loop are in CQI, those of airpath in dB"),
    ("scheduler.*aggr_level", "airpath counts PDCCHs, not their CCEs"),
    ("scheduler.nr_*", "the NR cells of srsENB are not read"),
    ("rf.?x_gain*", "the power of the radio head"),
    ("channel.*", "a channel simulator; airpath's channel is `radio.channel`"),
    ("embms.*", "airpath has no MBMS"),
    ("srb?_config.*", "airpath has no signalling bearers"),
    ("srb?_5g_config.*", "airpath has no signalling bearers"),
    ("five_qi_config.*", "the NR cells of srsENB are not read"),
    ("qci_config.*.logical_channel_config.*", "airpath has one bearer for each UE"),
    ("qci_config.*", "a bearer of another QCI"),
    ("sib[13-9]*", "airpath has no cell selection"),
)


def _draft(settings: Settings, five_qi: int) -> Draft:
    """The keys of the radio. Raises ``InputError`` with file and line of a wrong setting."""
    made = Draft(_PROGRAM, settings, REASONS)
    _carrier(made)
    mode = made.sure(("enb",), "tm", within(1, 4), 1)
    ports = made.sure(("enb",), "nof_ports", one_of({1: 1, 2: 2, 4: 4}), 1)
    lte.put_antennas(made, mode, ports)
    made.take(_ROWS, "")
    _link_adaptation(made)
    _alignment(made)
    _states(made)
    _bearer(made, five_qi)
    return made


def _carrier(made: Draft) -> None:
    made.default("radio.cell.duplex", "fdd", "srsENB has FDD only")
    prbs = made.sure(("enb",), "n_prb", one_of({each: each for each in lte.BANDWIDTHS}), 25)
    made.put("radio.cell.bandwidth_mhz", lte.BANDWIDTHS[prbs.value], prbs)
    made.put("radio.cell.prbs_down", prbs.value, prbs)
    requests = made.sure(("phy_cnfg.sched_request_cnfg",), "nof_prb", within(0, 10), 1)
    reports = made.sure(("sib2.rr_config_common_sib.pucch_cnfg",), "n_rb_cqi", within(0, 10), 1)
    pucch = max(requests.value, reports.value)
    if prbs.value - 2 * pucch < 1:
        raise wrong(
            [requests, reports], f"leaves no PRB for data: PUCCH has {2 * pucch} of {prbs.value}"
        )
    made.put(
        "radio.cell.prbs_up",
        prbs.value - 2 * pucch,
        prbs,
        requests,
        reports,
        why=f"PUCCH has {pucch} at both edges",
    )
    power = made.sure(("sib2.rr_config_common_sib.pdsch_cnfg",), "rs_power", number, 0)
    nr.remark_power(made, power, prbs.value, "as SIB 2 says")
    least = made.sure(("scheduler",), "min_nof_ctrl_symbols", within(1, 3), 1)
    most = made.sure(("scheduler",), "max_nof_ctrl_symbols", within(1, 3), 3)
    if least.value == most.value:
        made.put("radio.cell.cfi", most.value, least, most)
    else:
        made.assume("radio.cell.cfi", 2, f"srsENB has {least.value} to {most.value}", least, most)


def _link_adaptation(made: Draft) -> None:
    target = made.sure(("scheduler",), "target_bler", number, 0.05)
    for key, name in (("link_adaptation", "pdsch_mcs"), ("link_adaptation_up", "pusch_mcs")):
        fixed = made.sure(("scheduler",), name, within(-1, 28), -1)
        if fixed.value >= 0:
            made.put(f"radio.{key}.fixed_mcs", fixed.value, fixed)
        else:
            made.put(f"radio.{key}.bler_target", target.value, target)


def _alignment(made: Draft) -> None:
    timer = made.sure(("mac_cnfg",), "time_alignment_timer", or_infinite, -1)
    if timer.value == "infinity":
        made.put("radio.time_alignment.enabled", False, timer)
    else:
        made.put("radio.time_alignment.timer_ms", timer.value, timer)


def _states(made: Draft) -> None:
    made.default("radio.drx.enabled", False, "srsENB has no DRX")
    timer = made.sure(("expert",), "rrc_inactivity_timer", whole, 30000)
    made.put("radio.rrc.inactivity_ms", timer.value, timer)
    made.assume("radio.rrc.initial", "connected", "the UE has attached before")
    made.take(
        [Row("radio.rrc.paging_cycle_ms", "pcch_cnfg.default_paging_cycle", times(10), 32)],
        "sib2.rr_config_common_sib",
    )


def _bearer(made: Draft, qci: int) -> None:
    """RLC and PDCP of one QCI; the default is the installed rb.conf's for QCI 9."""
    scope, chosen = "qci_config", None
    for each in made.settings.elements("qci_config"):
        found = made.settings.get(f"qci_config.{each}.qci")
        if found is not None and found.value == qci:
            scope, chosen = f"qci_config.{each}", found
    parts = scope.split(".")
    um = chosen is not None and not made.settings.has(*parts, "rlc_config", "ul_am")
    mode = Found("um" if um else "am", f"QCI {qci}", chosen)
    made.put("radio.rlc.mode", mode.value, mode)
    if not um:
        made.default("radio.rlc.sn_bits", 10, "AM has 10 bits (TS 36.322 6.2.2.3)")
    made.take((*_PDCP, *(_UM if um else _AM)), scope)
    made.default("radio.rlc.buffer_packets", 256, "RLC_TX_QUEUE_LEN")
    made.default("radio.rlc.buffer_bytes", "unlimited", "it counts packets")


STATION = Station(
    program=_PROGRAM,
    cell=("enb",),
    names=frozenset(
        ("enb", "enb_files", "mac_cnfg", "phy_cnfg", "cell_list", "qci_config", "sib1", "sib2")
    ),
    draft=_draft,
)
"""How the files of this program become keys."""
