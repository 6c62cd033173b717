"""``airpath scenario from``: configuration files become scenarios, or are refused with a line."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import airpath
from airpath.deployed import libconfig, nr, yaml_file
from airpath.deployed.convert import Deployed, convert, convert_files
from airpath.deployed.settings import MOST_BYTES, MOST_SETTINGS, Setting
from airpath.errors import InputError
from airpath.scenario import parse
from deployed_files import (
    ENB_CONF,
    GNB_YML,
    NETWORKS,
    OAI_ENB,
    OAI_GNB,
    PCF_YAML,
    RB_CONF,
    RR_CONF,
    SECRETS,
    SIB_CONF,
    SMF_YAML,
)

KEYS: dict[str, dict[str, object]] = {
    "srsran-project": {
        "cell.duplex": "tdd",
        "cell.bandwidth_mhz": 40,
        "cell.scs_khz": 30,
        "cell.tdd_pattern": "DDDSU 10:2:2",
        "cell.layers_down": 2,
        "cell.layers_up": 1,  # a UE with one antenna
        "cell.mcs_table_down": "qam64",
        "cell.mcs_table_up": "qam256",
        "cell.k1_slots": 2,
        "cell.k2_slots": 2,
        "cell.control_symbols": 2,
        "cell.dmrs_down": 18,  # 3 symbols with 6 elements
        "cell.dmrs_up": 36,
        "harq.max_transmissions": 4,  # 3 retransmissions
        "harq_up.max_transmissions": 5,
        "sr.period_ms": 10,
        "bsr.periodic_timer_ms": 5,
        "link_adaptation.cqi_period_ms": 40,
        "drx.long_cycle_ms": 160,
        "drx.on_duration_ms": 8,
        "drx.inactivity_ms": 50,
        "rrc.inactivity_ms": 20_000,  # in seconds in the file
        "rlc.mode": "am",
        "rlc.sn_bits": 12,
        "rlc.t_poll_retransmit_ms": 60,
        "rlc.max_retx_threshold": 8,
        "rlc.poll_bytes": 125,  # srsRAN's own transmitter counts bytes,
        "rlc_up.poll_bytes": 125_000,  # and sends kB to the UE
        "rlc.t_reassembly_ms": 40,
        "rlc.t_status_prohibit_ms": 20,
        "rlc.discard_timer_ms": 300,
        "rlc.t_reordering_ms": 100,
    },
    "srsran-4g": {
        "cell.duplex": "fdd",
        "cell.bandwidth_mhz": 15,
        "cell.prbs_up": 71,  # 75 less 2 at both edges
        "cell.layers_down": 2,
        "cell.antenna_ports": 2,
        "cell.cfi": 3,
        "cell.scheduler": "round_robin",
        "link_adaptation_up.fixed_mcs": 10,
        "link_adaptation.bler_target": 0.05,
        "link_adaptation.cqi_period_ms": 80,
        "harq.max_transmissions": 5,
        "sr.period_ms": 40,
        "sr.offset_ms": 3,
        "sr.trans_max": 32,
        "bsr.periodic_timer_ms": 10,
        "bsr.retx_timer_ms": 640,
        "rrc.inactivity_ms": 60_000,
        "rrc.paging_cycle_ms": 640,
        "rach.preambles_max": 8,
        "rlc.mode": "am",
        "rlc.discard_timer_ms": "infinity",
        "rlc.poll_bytes": 250_000,
        "rlc.max_retx_threshold": 16,
        "rlc_up.max_retx_threshold": 8,
        "rlc.t_reordering_ms": 60,
        "rlc.buffer_packets": 256,
    },
    "oai-gnb": {
        "cell.bandwidth_mhz": 40,
        "cell.prbs_down": 106,
        "cell.tdd_pattern": "DDDDDDDSUU 6:4:4",
        "cell.k1_slots": 6,
        "cell.k2_slots": 6,
        "cell.layers_down": 2,
        "harq.max_transmissions": 5,
        "harq_up.max_transmissions": 4,
        "sr.period_ms": 5,  # 10 slots of 0.5 ms
        "sr.offset_ms": 3.5,  # the special slot has uplink symbols
        "link_adaptation.cqi_period_ms": 80,  # 160 slots
        "cell.exact_k2": True,
        "cell.processing_grant_ms": 3,  # 6 slots
        "harq_up.processing_ms": 3,
        "link_adaptation_up.step_upper_bler": 0.15,
        "cell.least_symbols_up": 1,
        "grants.least_prbs": 5,  # whatever min_grant_prb says
        "grants.request_mcs": 9,
        "grants.header_room": False,
        "grants.requests": "all",
        "grants.late_reports": True,
        "rach.preambles_max": 20,
        "rach.response_window_ms": 10,  # 20 slots
        "rlc.mode": "am",
        "rlc.poll_bytes": 500_000,
        "rlc.t_reordering_ms": 100,
        "rrc.enabled": False,
    },
    "oai-enb": {
        "cell.duplex": "tdd",
        "cell.tdd_configuration": 1,
        "cell.special_subframe_configuration": 7,
        "cell.bandwidth_mhz": 10,
        "cell.layers_down": 2,
        "sr.offset_ms": 2,
        "drx.on_duration_ms": 20,
        "drx.inactivity_ms": 100,
        "drx.long_cycle_ms": 320,
        "drx.short_cycle_ms": 32,
        "rrc.inactivity_ms": 30_000,
        "rrc.paging_cycle_ms": 640,
        "rlc.mode": "um",  # QCI 9
        "rlc.buffer_bytes": 1_000_000,
    },
    "open5gs": {
        "ambr.down_mbps": 200,
        "ambr.up_mbps": 50,
        "rlc.mode": "um",  # 5QI 7
        "rlc.sn_bits": 6,
        "rlc.t_reassembly_ms": 60,
    },
}


def key(made: Deployed, name: str) -> Any:
    """The entry of a key."""
    return next(entry for entry in made.entries if entry.key == name)


@pytest.mark.parametrize("program", NETWORKS)
def test_keys_are_those_of_the_files_in_airpaths_units(program: str) -> None:
    made = convert(NETWORKS[program])
    parse(made.scenario, "made")
    values = {entry.key.removeprefix("radio."): entry.value for entry in made.entries}
    assert {name: values.get(name) for name in KEYS[program]} == KEYS[program]


@pytest.mark.parametrize("program", NETWORKS)
def test_comments_name_the_line_that_a_value_is_from(program: str) -> None:
    files = dict(NETWORKS[program])
    made = convert(NETWORKS[program])
    lines = {entry.key: line for entry in made.entries for line in made.scenario.splitlines()
             if line.startswith(f"{entry.key.rsplit('.', 1)[1]} = ")}  # fmt: skip
    used = [setting for entry in made.entries for setting in entry.settings]
    assert len(used) > 5
    for setting in [*used, *(one.setting for one in made.not_modelled)]:
        name = next(part for part in reversed(setting.path) if not part.isdigit())
        assert name in files[setting.file].splitlines()[setting.line - 1]
    for entry in made.entries:
        assert entry.key in lines
        assert {"file": ":", "default": "default of", "assumed": "assumed: "}[
            entry.source
        ] in entry.comment
    head = " ".join(line.lstrip("# ") for line in made.scenario.splitlines()[:3])
    assert all(str(one) in head for one in made.programs)


@pytest.mark.parametrize("program", NETWORKS)
def test_what_is_not_modelled_is_listed_and_no_value_is_copied(program: str) -> None:
    made = convert(NETWORKS[program])
    document = json.dumps(made.document())
    for secret in SECRETS:
        assert secret not in made.scenario
        assert secret not in document
        assert secret not in "".join(made.summary())
    files = dict(NETWORKS[program])
    listed = {(one.setting.file, one.setting.line) for one in made.not_modelled}
    used = {(each.file, each.line) for entry in made.entries for each in entry.settings}
    for name, text in files.items():
        reader = yaml_file.read if name.endswith(("yml", "yaml")) else None
        for setting in reader(text, name) if reader else []:
            assert (name, setting.line) in listed | used | _consulted(text, name)
    matters = [one for one in made.not_modelled if one.why]
    assert len(matters) >= (1 if program != "srsran-4g" else 3)


def _consulted(text: str, name: str) -> set[tuple[str, int]]:
    """Lines that choose other settings, or become a comment: a 5QI, the ARFCN, a power."""
    words = ("five_qi", "index", "dl_arfcn", "ssb_block_power_dbm")
    return {
        (name, number)
        for number, line in enumerate(text.splitlines(), start=1)
        if any(word in line for word in words)
    }


def test_an_mtu_of_the_core_becomes_the_segment_size() -> None:
    made = convert(NETWORKS["open5gs"])
    entry = key(made, "flow.0.mss_bytes")
    assert entry.value == 1348  # 1400 less 20 of IPv4, 20 of TCP and 12 of timestamps
    assert "smf.yaml:9 mtu" in entry.comment
    assert airpath_flow(made)["mss_bytes"] == 1348


def airpath_flow(made: Deployed) -> dict[str, Any]:
    """The first flow, as airpath resolves it."""
    import tomllib

    flow: dict[str, Any] = tomllib.loads(parse(made.scenario, "made").resolved_toml)["flow"][0]
    return flow


def test_a_later_file_replaces_what_an_earlier_one_sets() -> None:
    later = "cell_cfg:\n  pucch:\n    sr_period_ms: 2\n"
    made = convert([("gnb.yml", GNB_YML), ("fast.yml", later)])
    entry = key(made, "radio.sr.period_ms")
    assert entry.value == 2
    assert entry.comment.startswith("fast.yml:3")
    assert any("fast.yml:3 sets it too" in one.why for one in made.not_modelled)


def test_openairinterface_reads_a_least_grant_that_it_does_not_use() -> None:
    """pf_ul of week 12 of 2024 has 5 PRBs, and the file's 10 are listed with that reason."""
    made = convert([("gnb.conf", OAI_GNB)])
    assert key(made, "radio.grants.least_prbs").source == "default"
    listed = {one.setting.path[-1]: one.why for one in made.not_modelled}
    assert "5 PRBs" in listed["min_grant_prb"]


@pytest.mark.parametrize(
    ("name", "value", "entry", "expected"),
    [
        ("sl_ahead", "4", "cell.processing_grant_ms", 2),
        ("sl_ahead", "4", "harq_up.processing_ms", 2),
        ("min_grant_mcs", "16", "grants.request_mcs", 16),
        ("ul_bler_target_upper", "0.3", "link_adaptation_up.step_upper_bler", 0.3),
        ("dl_bler_target_lower", "0.01", "link_adaptation.step_lower_bler", 0.01),
    ],
)
def test_openairinterfaces_scheduler_is_the_files(
    name: str, value: str, entry: str, expected: float
) -> None:
    group = "RUs" if name == "sl_ahead" else "MACRLCs"
    text = f"{OAI_GNB[: OAI_GNB.index('MACRLCs')]}{group} = ( {{ {name} = {value}; }} );\n"
    made = convert([("gnb.conf", text)])
    found = key(made, f"radio.{entry}")
    assert (found.value, found.source) == (expected, "file")
    parse(made.scenario, "made")


def test_a_list_of_a_later_file_replaces_the_whole_list() -> None:
    later = "qos:\n  - five_qi: 9\n    rlc:\n      mode: um-bidir\n"
    made = convert([("gnb.yml", GNB_YML), ("qos.yml", later)])
    assert key(made, "radio.rlc.mode").value == "um"
    assert key(made, "radio.rlc.sn_bits").source == "default"


def test_a_cell_of_the_list_takes_precedence_over_the_common_settings() -> None:
    made = convert([("gnb.yml", f"{GNB_YML}cells:\n  - channel_bandwidth_MHz: 20\n  - pci: 2\n")])
    assert key(made, "radio.cell.bandwidth_mhz").value == 20
    assert key(made, "radio.cell.scs_khz").value == 30
    assert any("a further cell" in one.why for one in made.not_modelled)


@pytest.mark.parametrize(
    ("program", "files"),
    [
        ("srsRAN Project 25.10", [("gnb.yml", "cell_cfg:\n  pci: 1\n")]),
        ("srsRAN 4G 23.04", [("enb.conf", "[enb]\nenb_id = 1\n")]),
        (
            "OpenAirInterface 2024.w12",
            [("gnb.conf", "gNBs = ({ servingCellConfigCommon = ({ physCellId = 0; }); });")],
        ),
        (
            "OpenAirInterface 2024.w12",
            [("enb.conf", "eNBs = ({ component_carriers = ({ Nid_cell = 0; }); });")],
        ),
    ],
)
def test_a_silent_file_has_the_programs_defaults(
    program: str, files: list[tuple[str, str]]
) -> None:
    made = convert(files)
    parse(made.scenario, "made")
    sources = {entry.source for entry in made.entries}
    assert sources == {"default", "assumed"}
    for entry in made.entries:
        if entry.source == "default":
            assert entry.comment.startswith(f"default of {program}: ")


def test_a_band_follows_from_the_arfcn_where_none_is_set() -> None:
    for band, duplex in (("  band: auto\n", "tdd"), ("", "tdd")):
        text = f"cell_cfg:\n  dl_arfcn: 632628\n{band}  common_scs: 30\n"
        assert key(convert([("gnb.yml", text)]), "radio.cell.duplex").value == duplex
    made = convert([("gnb.yml", "cell_cfg:\n  dl_arfcn: 368500\n")])  # 1842.5 MHz: n3
    assert key(made, "radio.cell.duplex").value == "fdd"


def test_a_timer_that_no_specification_lists_is_taken_and_said() -> None:
    text = GNB_YML.replace("t-poll-retransmit: 60", "t-poll-retransmit: 61")
    made = convert([("gnb.yml", text)])
    assert "any_timer_value = true" in made.scenario
    assert key(made, "radio.rlc.t_poll_retransmit_ms").value == 61
    assert any(
        line.startswith("used although the specification does not list it: ") and " 61" in line
        for line in made.summary()
    )
    parse(made.scenario, "made")


def test_a_powers_sum_is_said_beside_the_channel() -> None:
    """-10 dBm in each of 12 x 106 subcarriers are 21 dBm."""
    assert nr.total_dbm(-10, 106) == 21.0
    made = convert(NETWORKS["srsran-project"])
    assert "# transmit_dbm = 21.0" in made.scenario


@pytest.mark.parametrize(
    ("slots", "said"),
    [
        ((10, 7, 6, 2, 4), "DDDDDDDSUU 6:4:4"),
        ((4, 2, 0, 2, 0), "DDUU"),
        ((5, 2, 0, 1, 0), "DDSSU 0:14:0"),
        ((5, 4, 0, 2, 0), "do not fit into 5 slots"),
        ((4, 2, 6, 2, 4), "no slot of 4 is left"),
        ((5, 2, 6, 1, 4), "at most 1"),
        ((5, 3, 10, 1, 6), "more than 14"),
    ],
)
def test_tdd_patterns(slots: tuple[int, int, int, int, int], said: str) -> None:
    if said[0] == "D":
        assert nr.pattern(*slots) == said
    else:
        with pytest.raises(ValueError, match=said):
            nr.pattern(*slots)


# Readers.


def values(rows: list[Setting]) -> dict[str, object]:
    """Values by their dotted names."""
    return {row.name: row.value for row in rows}


def test_libconfig_has_all_kinds_of_values() -> None:
    text = """
    /* A comment
       of two lines */
    hex = 0x1F; long = 9000000000L; real = -1.5e3; yes : True   // a comment
    text = "a \\"b\\"" "c"; # joined
    list = ( 1, [2, 3], { in = 4; } ); array = [ 5, 6, ]; empty = {}; none = ( );
    PLACE = MCC
    """
    rows = libconfig.read(text, "a.conf")
    assert values(rows) == {
        "hex": 31, "long": 9_000_000_000, "real": -1500.0, "yes": True, "text": 'a "b"c',
        "list.0": 1, "list.1.0": 2, "list.1.1": 3, "list.2.in": 4, "array.0": 5, "array.1": 6,
        "PLACE": "MCC",
    }  # fmt: skip
    assert {row.name: row.line for row in rows}["text"] == 5


def test_yaml_keeps_quoted_words_as_they_are() -> None:
    rows = yaml_file.read("a: '007'\nb: 0x10\nc: [1, 2.5, off]\nd:\n  - e: ~\n", "a.yml")
    assert values(rows) == {"a": "007", "b": 16, "c.0": 1, "c.1": 2.5, "c.2": False, "d.0.e": None}


def test_yaml_keeps_the_first_of_two_values() -> None:
    """As the reader of srsRAN Project does; its own example qos.yml has such groups."""
    rows = yaml_file.read("a:\n  b: 1\n  b: 2\n  b: 3\n", "a.yml")
    assert values(rows) == {"a.b": 1, "a.b.repeated-1": 2, "a.b.repeated-2": 3}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("gnb.yml", GNB_YML.replace("common_scs: 30", "common_scs: 31"),
         "gnb.yml:23: `cell_cfg.common_scs` is 31, but must be one of 15, 30, 60, 120"),
        ("gnb.yml", GNB_YML.replace("sr_period_ms: 10", "sr_period_ms:"),
         "gnb.yml:42: `cell_cfg.pucch.sr_period_ms` is empty, but must be a number"),
        ("gnb.yml", GNB_YML.replace("band: 78", "band: n78x"),
         "gnb.yml:21: `cell_cfg.band` is 'n78x', but must be the number of a band, such as 78"),
        ("gnb.yml", GNB_YML.replace("nof_dl_slots: 3", "nof_dl_slots: 5"),
         "gnb.yml:29: `cell_cfg.tdd_ul_dl_cfg.dl_ul_tx_period` and related settings: 5 downlink "
         "and 1 uplink slots do not fit into 5 slots"),
        ("gnb.yml", GNB_YML.replace("mcs_table: qam64", "mcs_table: qam1024"),
         "gnb.yml:35: `cell_cfg.pdsch.mcs_table` is 'qam1024', but must be one of qam64, qam256, "
         "qam64lowse"),
        ("gnb.yml", GNB_YML.replace("channel_bandwidth_MHz: 40", "channel_bandwidth_MHz: 37"),
         "gnb.yml:22: `cell_cfg.channel_bandwidth_MHz` cannot be in a scenario: fr1 has no "
         "37 MHz channel with a subcarrier spacing of 30 kHz; channels with this subcarrier "
         "spacing: 5, 10, 15"),
        ("gnb.yml", GNB_YML[: GNB_YML.index("  drx:")] + "  drx: {long_cycle: 160",
         "gnb.yml:50: not valid YAML: did not find expected ',' or '}'"),
        ("gnb.yml", GNB_YML[: GNB_YML.index("tdd_ul_dl_cfg:")] + "tdd_ul_dl_cfg:",
         "gnb.yml:28: `cell_cfg.tdd_ul_dl_cfg` is empty at the end of the file: is the file "
         "truncated?"),
        ("gnb.yml", "cell_cfg:\n\tpci: 1\n", "gnb.yml:2: not valid YAML: "),
        ("gnb.yml", "cell_cfg: &a\n  pci: 1\n", "gnb.yml:1: anchors (&) and aliases (*) are not"),
        ("gnb.yml", "cell_cfg: !!python/name:os.system\n", "gnb.yml:1: tags (!) are not read"),
        ("gnb.yml", "cell_cfg:\n  pci: 1\n---\na: 1\n", "gnb.yml:3: a second document"),
        ("gnb.yml", "? [a]\n: 1\n", "gnb.yml:1: the name of a setting must be a word"),
        ("gnb.yml", "hello\n", "gnb.yml:1: the file is a single value, not settings"),
        ("gnb.yml", "# nothing\n", "gnb.yml: the file has no settings"),
        ("a.yml", "version: 3\nservices: {}\n",
         "a.yml:1: no configuration airpath knows starts with the key 'version'"),
        ("enb.conf", ENB_CONF.replace("n_prb = 75", "n_prb = 70"),
         "enb.conf:7: `enb.n_prb` is 70, but must be one of 6, 15, 25, 50, 75, "
         "100"),
        ("enb.conf", ENB_CONF.replace("tm = 4", "tm"),
         "enb.conf:8: 'tm' is neither a [section] nor a name = value line"),
        ("enb.conf", ENB_CONF.replace("tm = 4", "tm = 4\ntm = 2"),
         "enb.conf:9: `enb.tm` is set again; line 8 sets it too"),
        ("gnb.conf", OAI_GNB[: OAI_GNB.index("ra_ResponseWindow")],
         "gnb.conf:21: the file ends where the name of a setting is expected; '{' of line 13 is "
         "still open"),
        ("gnb.conf", OAI_GNB.replace("= 106;", "= ;", 1),
         "gnb.conf:16: `gNBs.0.servingCellConfigCommon.0.dl_carrierBandwidth` has no value: there "
         "is ';'; a value is a number, a string in double quotes, true, false, or a group, list "
         "or array"),
        ("gnb.conf", OAI_GNB.replace("= 106;", "= 300;", 1),
         "gnb.conf:16: `gNBs.0.servingCellConfigCommon.0.dl_carrierBandwidth` is 300, but must be "
         "a whole number from 1 to 275"),
        ("gnb.conf", OAI_GNB.replace("nrofUplinkSlots         =", "nrofUplinkSlots  "),
         "gnb.conf:25: '=' after `gNBs.0.servingCellConfigCommon.0.nrofUplinkSlots` is expected, "
         "not '2'"),
        ("gnb.conf", OAI_GNB + "/* no end", "gnb.conf:33: the comment that starts here has no end"),
        ("gnb.conf", '@include "other.conf"\n' + OAI_GNB,
         "gnb.conf:1: @include lines are not supported"),
        ("gnb.conf", OAI_GNB.replace("dl_subcarrierSpacing    = 1", "dl_subcarrierSpacing = 1.5"),
         "gnb.conf:15: `gNBs.0.servingCellConfigCommon.0.dl_subcarrierSpacing` is 1.5, but must be "
         "one of 0 (15), 1 (30), 2 (60), 3 (120)"),
        ("enb.conf", OAI_ENB.replace('"psf20"', '"sf20"'),
         "enb.conf:19: `eNBs.0.component_carriers.0.drx_onDurationTimer` is 'sf20', but must be a "
         "word such as psf10"),
        ("smf.yaml", SMF_YAML, "smf.yaml: none of the files configures a base station"),
        ("rr.conf", RR_CONF, "rr.conf: there is no `enb`, so the cell is unknown: add its file"),
    ],
)  # fmt: skip
def test_a_wrong_or_cut_file_is_refused_with_its_line(name: str, text: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        convert([(name, text)])
    assert str(refused.value).startswith(said)
    assert "\n" not in str(refused.value)


def test_files_of_two_base_stations_are_refused() -> None:
    with pytest.raises(
        InputError, match=r"files configure several base stations \(srsran-project, "
    ):
        convert([("gnb.yml", GNB_YML), ("gnb.conf", OAI_GNB)])


def test_a_wrong_value_of_the_core_is_refused_with_its_line() -> None:
    for text, said in (
        (SMF_YAML.replace("1400", "14000000"), "smf.yaml:9: `smf.mtu` is 14000000, but must be"),
        (PCF_YAML.replace("unit: 2", "unit: 9"), "pcf.yaml:14: `pcf.policy.0.slice.0.session.0."),
    ):
        name = "smf.yaml" if text.startswith("smf") else "pcf.yaml"
        with pytest.raises(InputError) as refused:
            convert([("gnb.yml", GNB_YML), (name, text)])
        assert str(refused.value).startswith(said)


# The command.


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for files in NETWORKS.values():
        for name, text in files:
            (tmp_path / name).write_text(text)
    return tmp_path


def test_the_command_prints_a_scenario_that_runs(place: Path, cli: Any) -> None:
    code, out, err = cli("scenario", "from", "gnb.yml", "smf.yaml")
    assert code == 0
    assert "read as srsRAN Project 25.10, Open5GS 2.8.0: " in err
    assert "not modelled: p0_nominal_with_grant (gnb.yml:40): " in err
    (place / "made.toml").write_text(out)
    run = airpath.run("made.toml", set={"run.duration_s": 0.5}, explain="off")
    assert run.flows["goodput_mbps"][0] > 10


def test_out_is_written_once(place: Path, cli: Any) -> None:
    assert cli("scenario", "from", "gnb.yml", "--out", "cell.toml")[:2] == (0, "")
    parse((place / "cell.toml").read_text(), "cell.toml")
    code, out, err = cli("scenario", "from", "gnb.yml", "--out", "cell.toml")
    assert (code, out) == (2, "")
    assert "cell.toml exists already: choose another name" in err
    code, out, err = cli("scenario", "from", "gnb.yml", "--out", "none/cell.toml")
    assert (code, out) == (2, "")


def test_json_has_the_scenario_and_where_each_key_is_from(place: Path, cli: Any) -> None:
    code, out, _ = cli("scenario", "from", "gnb.yml", "--json")
    assert code == 0
    document = json.loads(out)
    parse(document["scenario"], "json")
    found = {row["key"]: row for row in document["keys"]}["radio.sr.period_ms"]
    assert (found["value"], found["source"]) == (10, "file")
    assert found["settings"] == [
        {"setting": "cell_cfg.pucch.sr_period_ms", "file": "gnb.yml", "line": 42}
    ]
    assert document["software"] == [{"name": "srsRAN Project", "version": "25.10"}]
    assert any(row["setting"].endswith("olla_cqi_inc_step") for row in document["not_modelled"])


def test_what_cannot_be_read_is_one_line_and_code_2(place: Path, cli: Any) -> None:
    for words, said in (
        (["none.yml"], "cannot read none.yml: No such file or directory"),
        (["."], "cannot read .: it is a directory; name a file in it"),
        (["gnb.yml", "--software", "oai-gnb"], "gnb.yml:"),
        (["gnb.conf", "--software", "oai-enb"], "belongs to oai-gnb, not to oai-enb"),
    ):
        code, out, err = cli("scenario", "from", *words)
        assert (code, out) == (2, "")
        assert said in err
        assert len(err.splitlines()) == 1


def test_standard_input_is_a_file(place: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "airpath", "scenario", "from", "-"],
        input=GNB_YML, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "# stdin:42 sr_period_ms" in done.stdout


# Strangers' files.

HOSTILE = {
    "aliases": "a: &a [x, x]\n" + "".join(f"b{i}: &b{i} [*a, *a]\n" for i in range(50)),
    "yaml levels": "cell_cfg: " + "[" * 500_000,
    "yaml mappings": "".join(f"{' ' * i}a:\n" for i in range(1000)),
    "libconfig levels": "gNBs = " + "(" * 500_000,
    "libconfig groups": "gNBs = " + "{ a = " * 100_000,
    "open comments": "a = 1;\n" + "/*" * 400_000,
    "slashes": "gNBs = " + "/*/" * 300_000,
    "many settings": "cell_cfg:\n" + "".join(f"  a{i}: {i}\n" for i in range(60_000)),
    "the same setting": "cell_cfg:\n" + "  a: 1\n" * 100_000,
    "many elements": "qos:\n" + "  - five_qi: 9\n" * 60_000,
    "long word": "cell_cfg: " + "9" * 900_000,
    "long name": "a" * 900_000 + ": 1",
    "long number": "gNBs = " + "9" * 900_000 + ";",
    "long string": 'gNBs = "' + "\\" * 900_000,
    "binary": "\x01\x02\x03\x80" * 10_000,
    "sections": "[a]\n" * 200_000,
    "brackets": "[" * 900_000,
    "spaces": " " * 900_000 + "x",
    "quotes": "'" * 900_001,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_texts_are_refused_soon(kind: str) -> None:
    started = time.process_time()
    with pytest.raises(InputError) as refused:
        convert([("hostile", HOSTILE[kind])])
    assert len(str(refused.value)) < 500
    assert time.process_time() - started < 2


def test_a_file_of_100_mb_takes_neither_time_nor_memory(tmp_path: Path) -> None:
    big = tmp_path / "big.yml"
    with big.open("wb") as file:
        file.truncate(100 << 20)
    code = (
        "import resource, sys; from airpath.deployed.convert import convert_files\n"
        "from airpath.errors import InputError\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: convert_files([sys.argv[1]])\n"
        "except InputError as error: print(error)\n"
        "used = resource.getrusage(resource.RUSAGE_SELF)\n"
        "print(used.ru_maxrss - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, big], capture_output=True, text=True, check=True
    )
    said, kilobytes = done.stdout.splitlines()
    assert said == f"{big} is larger than {MOST_BYTES >> 20} MiB: not a configuration file"
    assert int(kilobytes) < 50_000


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "gnb.yml"
    for data, said in (
        (b"cell_cfg:\n  pci: 1\n\0", "gnb.yml:3: not a text file: it has a NUL byte"),
        (bytes(range(1, 256)), "is not text"),
    ):
        file.write_bytes(data)
        with pytest.raises(InputError, match=said):
            convert_files([str(file)])
    file.write_bytes("cell_cfg:\n  pci: 1  # größer\n".encode("latin-1"))
    convert_files([str(file)])


def test_a_file_has_a_number_of_settings() -> None:
    text = "cell_cfg:\n" + "".join(f"  a{i}: {i}\n" for i in range(MOST_SETTINGS))
    convert([("gnb.yml", text)])
    with pytest.raises(InputError, match=f"more than {MOST_SETTINGS} settings"):
        convert([("gnb.yml", f"{text}  b: 1\n")])


def damaged(text: str, draw: random.Random) -> str:
    """The text with one to three faults."""
    for _ in range(draw.randint(1, 3)):
        at, lines = draw.randrange(len(text) or 1), text.splitlines(keepends=True)
        kind = draw.randrange(6)
        if kind == 0:
            text = text[:at]
        elif kind == 1:
            text = text[:at] + text[at + draw.randint(1, 20) :]
        elif kind == 2:
            text = text[:at] + draw.choice("{}()[];:,=#'\"\\\n \t&*!-\0é9") + text[at:]
        elif kind == 3 and lines:
            lines.insert(draw.randrange(len(lines)), draw.choice(lines))
            text = "".join(lines)
        elif kind == 4 and lines:
            del lines[draw.randrange(len(lines))]
            text = "".join(lines)
        else:
            digits = [place for place, one in enumerate(text) if one.isdigit()]
            place = draw.choice(digits) if digits else 0
            text = text[:place] + draw.choice("-0123456789xe.") + text[place + 1 :]
    return text


@pytest.mark.parametrize("program", NETWORKS)
def test_damaged_files_become_scenarios_or_one_line(program: str) -> None:
    draw = random.Random(46)
    outcomes = {"made": 0, "refused": 0}
    for _ in range(150):
        files = list(NETWORKS[program])
        which = draw.randrange(len(files))
        files[which] = (files[which][0], damaged(files[which][1], draw))
        refused = ""
        try:
            made = convert(files)
        except InputError as error:
            refused = str(error)
        outcomes["refused" if refused else "made"] += 1
        if refused:
            assert "\n" not in refused, files[which][1]
            assert any(name in refused for name, _ in files)
        else:
            parse(made.scenario, "made")
            assert not any(secret in made.scenario for secret in SECRETS)
    assert min(outcomes.values()) > 20, outcomes


def test_each_public_network_is_run_or_refused() -> None:
    """Give AIRPATH_DEPLOYED a folder such as ``airpath-dev deployed`` takes."""
    folder = os.environ.get("AIRPATH_DEPLOYED")
    if not folder:
        pytest.skip("AIRPATH_DEPLOYED does not name a folder of public configuration files")
    from airpath_dev import deployed

    found = list(deployed.networks(Path(folder)))
    assert found, f"{folder} has no PROGRAM/NETWORK"
    for files in found:
        tried = deployed.try_network(Path(folder), files, seconds=0.2)
        assert not tried.leaks
        assert "\n" not in tried.refused


def test_the_program_is_not_checked_without_a_folder(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from airpath_dev.__main__ import main

    monkeypatch.delenv("AIRPATH_DEPLOYED", raising=False)
    assert main(["deployed"]) == 3
    assert "AIRPATH_DEPLOYED names no folder" in capsys.readouterr().err
    assert RB_CONF
    assert SIB_CONF
