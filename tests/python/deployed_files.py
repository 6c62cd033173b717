"""Configuration files of an invented network, one for each program; written for the tests."""

from __future__ import annotations

GNB_YML = """\
# A private 5G cell.
gnb_id: 411
cu_cp:
  amf:
    addr: 192.0.2.10
    bind_addr: 192.0.2.20
    supported_tracking_areas:
      - tac: 7
        plmn_list:
          - plmn: "99942"
            tai_slice_support_list:
              - sst: 1
  inactivity_timer: 20

ru_sdr:
  device_args: type=b200,serial=30AB12C
  tx_gain: 50

cell_cfg:
  dl_arfcn: 632628
  band: 78
  channel_bandwidth_MHz: 40
  common_scs: 30
  plmn: "99942"
  tac: 7
  nof_antennas_dl: 2
  nof_antennas_ul: 2
  tdd_ul_dl_cfg:
    dl_ul_tx_period: 5
    nof_dl_slots: 3
    nof_dl_symbols: 10
    nof_ul_slots: 1
    nof_ul_symbols: 2
  pdsch:
    mcs_table: qam64
    max_nof_harq_retxs: 3
    olla_cqi_inc_step: 0.002
  pusch:
    min_k2: 2
    p0_nominal_with_grant: -70
  pucch:
    sr_period_ms: 10
    min_k1: 2
  mac_cell_group:
    bsr_cfg:
      periodic_bsr_timer: 5
  csi:
    csi_rs_period: 40
  drx:
    long_cycle: 160
    on_duration_timer: 8
    inactivity_timer: 50
  ssb:
    ssb_block_power_dbm: -10

qos:
  - five_qi: 9
    rlc:
      mode: am
      am:
        tx:
          sn: 12
          t-poll-retransmit: 60
          max-retx-threshold: 8
          poll-pdu: 32
          poll-byte: 125
        rx:
          sn: 12
          t-reassembly: 40
          t-status-prohibit: 20
    pdcp:
      tx:
        discard_timer: 300
      rx:
        t_reordering: 100
  - five_qi: 7
    rlc:
      mode: um-bidir
      um-bidir:
        tx:
          sn: 6
        rx:
          t-reassembly: 60
"""

SMF_YAML = """\
smf:
  sbi:
    server:
      - address: 192.0.2.30
        port: 7777
  session:
    - subnet: 10.99.0.0/16
      gateway: 10.99.0.1
  mtu: 1400
"""

PCF_YAML = """\
db_uri: mongodb://core:Geheim77@192.0.2.40/open5gs
pcf:
  policy:
    - plmn_id:
        mcc: 999
        mnc: 42
      slice:
        - sst: 1
          session:
            - name: internet
              ambr:
                downlink:
                  value: 200
                  unit: 2
                uplink:
                  value: 50000
                  unit: 1
              qos:
                index: 7
"""

ENB_CONF = """\
# An LTE cell.
[enb]
enb_id = 0x19B
mcc = 999
mnc = 42
mme_addr = 192.0.2.10
n_prb = 75
tm = 4
nof_ports = 2

[rf]
tx_gain = 80
device_args = serial=30AB12C

[scheduler]
policy = time_rr
pusch_mcs = 10
min_nof_ctrl_symbols = 3
max_nof_ctrl_symbols = 3

[expert]
rrc_inactivity_timer = 60000
"""

RR_CONF = """\
mac_cnfg =
{
  ulsch_cnfg =
  {
    max_harq_tx = 5;
    periodic_bsr_timer = 10; // in ms
    retx_bsr_timer = 640;
  };
  time_alignment_timer = -1;
};

phy_cnfg =
{
  sched_request_cnfg =
  {
    dsr_trans_max = 32;
    period = 40;
    subframe = [3, 13];
    nof_prb = 2;
  };
  cqi_report_cnfg = { mode = "periodic"; period = 80; };
};

cell_list =
(
  { cell_id = 0x01; tac = 0x0007; pci = 1; dl_earfcn = 3350; }
);
"""

RB_CONF = """\
qci_config = (
{
  qci = 7;
  pdcp_config = { discard_timer = 100; pdcp_sn_size = 12; }
  rlc_config = {
    ul_um = { sn_field_length = 10; };
    dl_um = { sn_field_length = 5; t_reordering = 45; };
  };
},
{
  qci = 9;
  pdcp_config = { discard_timer = -1; status_report_required = true; }
  rlc_config = {
    ul_am = { t_poll_retx = 80; poll_pdu = 32; poll_byte = 250; max_retx_thresh = 8; };
    dl_am = { t_reordering = 60; t_status_prohibit = 30; };
  };
  enb_specific = { dl_max_retx_thresh = 16; };
}
);
"""

SIB_CONF = """\
sib2 =
{
  rr_config_common_sib =
  {
    rach_cnfg = { preamble_trans_max = 8; ra_resp_win_size = 8; mac_con_res_timer = 40; };
    pcch_cnfg = { default_paging_cycle = 64; };
    pdsch_cnfg = { rs_power = 3; };
    pucch_cnfg = { n_rb_cqi = 1; };
    ul_pwr_ctrl = { p0_nominal_pusch = -85; };
  };
};
"""

OAI_GNB = """\
Active_gNBs = ( "gnb-lab");
gNBs =
(
 {
    gNB_ID    =  0xe00;
    gNB_name  =  "gnb-lab";
    plmn_list = ({ mcc = 999; mnc = 42; mnc_length = 2; snssaiList = ({ sst = 1; }) });
    nr_cellid = 12345678L;
    min_rxtxtime = 6;
    do_CSIRS = 1;
    pdsch_AntennaPorts_XP = 2;
    servingCellConfigCommon = (
    {
      dl_frequencyBand        = 78;
      dl_subcarrierSpacing    = 1;   # 30 kHz
      dl_carrierBandwidth     = 106;
      ul_subcarrierSpacing    = 1;
      ul_carrierBandwidth     = 106;
      p0_NominalWithGrant     = -90;
      preambleTransMax        = 7;
      ra_ResponseWindow       = 5;
      dl_UL_TransmissionPeriodicity = 6;
      nrofDownlinkSlots       = 7;
      nrofDownlinkSymbols     = 6;
      nrofUplinkSlots         = 2;
      nrofUplinkSymbols       = 4;
      ssPBCH_BlockPower       = -25;
    });
    amf_ip_address = ( { ipv4 = "192.0.2.10"; active = "yes"; } );
 }
);
MACRLCs = ( { dl_harq_round_max = 5; ul_max_mcs = 20; min_grant_prb = 10; } );
"""

OAI_ENB = """\
Active_eNBs = ( "enb-lab");
eNBs = (
 {
    eNB_ID = 0xe00;
    plmn_list = ( { mcc = 999; mnc = 42; mnc_length = 2; } );
    rrc_inactivity_threshold = 30;
    component_carriers = (
      {
        frame_type            = "TDD";
        tdd_config            = 1;
        tdd_config_s          = 7;
        N_RB_DL               = 50;
        nb_antenna_ports      = 2;
        ue_TransmissionMode   = 3;
        pdsch_referenceSignalPower = -27;
        rach_preambleTransMax = 6;
        pcch_default_PagingCycle = 64;
        drx_Config_present    = "prSetup";
        drx_onDurationTimer   = "psf20";
        drx_InactivityTimer   = "psf100";
        drx_longDrx_CycleStartOffset_present = "prSf320";
        drx_shortDrx_Cycle    = "sf32";
      });
    mme_ip_address = ( { ipv4 = "192.0.2.10"; } );
 }
);
MACRLCs = ( { scheduler_mode = "fairRR"; puSch10xSnr = 160; } );
"""

NETWORKS: dict[str, list[tuple[str, str]]] = {
    "srsran-project": [("gnb.yml", GNB_YML)],
    "srsran-4g": [
        ("enb.conf", ENB_CONF),
        ("rr.conf", RR_CONF),
        ("rb.conf", RB_CONF),
        ("sib.conf", SIB_CONF),
    ],
    "oai-gnb": [("gnb.conf", OAI_GNB)],
    "oai-enb": [("enb.conf", OAI_ENB)],
    "open5gs": [("gnb.yml", GNB_YML), ("smf.yaml", SMF_YAML), ("pcf.yaml", PCF_YAML)],
}
"""A network for each program."""

SECRETS = ("192.0.2.", "10.99.", "99942", "Geheim77", "30AB12C", "12345678", "gnb-lab", "enb-lab")
"""Addresses, identities and a password that are in these files."""
