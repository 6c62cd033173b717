//! Tests what `[radio]` means: presets, layers of tables, and the resulting configuration.

use std::path::Path;

use airpath_base::{Duration, Rate};
use airpath_radio::adaptation::{McsMode, Threshold};
use airpath_radio::bearer::Forwarding;
use airpath_radio::buffer::{Discipline, EcnCapable, Isolation};
use airpath_radio::cell::{
    Access, CellConfig, LteCarrier, LteDuplex, NrCarrier, UeConfig, UeIndex, UmtsDownlink,
    UmtsUplink,
};
use airpath_radio::channel::{AtEnd, ChannelConfig, PathLoss, Quality};
use airpath_radio::harq::{Combining, Decoding, HarqTiming};
use airpath_radio::mac::Occasions;
use airpath_radio::mac::bsr::Piggyback;
use airpath_radio::mac::drx::{DrxConfig, ShortCycle, UplinkStart};
use airpath_radio::pdcp::Release;
use airpath_radio::ran::{CellIndex, Leg, PlannedHandover, SplitConfig, SplitPolicy};
use airpath_radio::rlc::{LteMode, LteUmSn, NrAmSn, NrMode, NrUmSn, RlcConfig, UmtsPdu};
use airpath_radio::rrc::umts::{PchConfig, SetupState};
use airpath_radio::rrc::{RrcConfig, RrcState};
use airpath_radio::scheduler::{Policy, RateCap};
use airpath_radio::umts::{EdchCategory, EdchTti, HsdpaCategory};
use airpath_scenario::{Parsed, RadioConfig, Source, parse, radio_presets};

const PING: &str = "[[flow]]\nkind = \"ping\"\n";

fn parsed_with(text: &str, sets: &[&str]) -> Parsed {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    let data = Some(Path::new("tests/data"));
    let parsed = match parse(&Source { name: "s.toml", text, directory: data }, &sets) {
        Ok(parsed) => parsed,
        Err(error) => panic!("{error}"),
    };
    // The resolved form of a file says the same as the file.
    let resolved = Source { name: "s.toml", text: &parsed.resolved_toml, directory: data };
    match parse(&resolved, &[]) {
        Ok(again) => {
            assert_eq!(again.scenario, parsed.scenario);
            assert_eq!(again.resolved_toml, parsed.resolved_toml);
        }
        Err(error) => panic!("{error}\n{}", parsed.resolved_toml),
    }
    parsed
}

fn radio_with(preset: &str, text: &str, sets: &[&str]) -> RadioConfig {
    let text = format!("[radio]\npreset = \"{preset}\"\n{text}\n{PING}");
    parsed_with(&text, sets).scenario.radio.expect("there is one")
}

fn radio(preset: &str, text: &str) -> RadioConfig {
    radio_with(preset, text, &[])
}

fn ue(preset: &str, text: &str) -> UeConfig {
    radio(preset, text).ran.ues[0].in_cell[0].clone()
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A UE with the model's defaults, except for the time to prepare a request.
fn plain(access: &Access) -> UeConfig {
    let mut plain = UeConfig::plain(access);
    plain.sr.preparation = Duration::ZERO;
    plain
}

#[test]
fn presets_without_further_keys_are_the_models_own() {
    for (preset, cell) in [
        ("nr-n78", CellConfig::nr(NrCarrier::n78_100_mhz())),
        ("nr-fdd-20", CellConfig::nr(NrCarrier::fdd_20_mhz())),
        ("lte-20", CellConfig::lte(LteCarrier::fdd_20_mhz())),
    ] {
        let found = radio(preset, "");
        assert_eq!(found.preset, preset);
        assert_eq!(found.ran.cells[0], cell, "{preset}");
        assert_eq!(found.ues.len(), 1);
        assert_eq!(found.ues[0], "ue-0");
        assert_eq!(found.ran.ues[0].in_cell[0], plain(&cell.access), "{preset}");
    }
}

/// `reference.md`, C-DRX and LTE users 2011-12.
#[test]
fn presets_have_the_published_timers() {
    let drx = ue("nr-private-drx", "").drx.expect("it has DRX");
    assert_eq!((drx.on_duration, drx.inactivity, drx.long_cycle), (ms(10), ms(100), ms(320)));
    assert_eq!((drx.short_cycle, drx.uplink_start), (None, UplinkStart::AtOnce));
    let phone = ue("lte-2012", "");
    let Some(RrcConfig::Connection(rrc)) = phone.rrc else { panic!("it has RRC") };
    assert_eq!(
        (rrc.initial, rrc.setup, rrc.inactivity),
        (RrcState::Idle, ms(260), Some(ms(11_600)))
    );
    let drx = phone.drx.expect("it has DRX");
    let short_cycle = Some(ShortCycle { cycle: ms(20), timer: 1 });
    assert_eq!((drx.inactivity, drx.short_cycle, drx.long_cycle), (ms(100), short_cycle, ms(40)));
    // TS 36.321 7.7, FDD
    assert_eq!((drx.harq_rtt_downlink, drx.harq_rtt_uplink), (ms(8), ms(3)));
    assert_eq!((drx.pdcch, drx.harq_processes), (ms(1), 8));
}

#[test]
fn presets_have_the_resource_blocks_of_their_bandwidth() {
    // TS 38.101-2 table 5.3.2-1
    let Access::Nr(mmwave) = radio("nr-mmwave", "").ran.cells[0].clone().access else {
        panic!("not NR")
    };
    assert_eq!((mmwave.downlink.prbs, mmwave.numerology.khz()), (66, 120));
    // TS 36.101 table 5.6-1
    for (preset, down, up) in [("lte-5", 25, 23), ("lte-10", 50, 48), ("lte-tdd-20", 100, 96)] {
        let Access::Lte(carrier) = radio(preset, "").ran.cells[0].clone().access else {
            panic!("not LTE")
        };
        assert_eq!((carrier.downlink_prbs, carrier.uplink_prbs), (down, up), "{preset}");
    }
    let Access::Lte(tdd) = radio("lte-tdd-20", "").ran.cells[0].clone().access else {
        panic!("not LTE")
    };
    let LteDuplex::Tdd { configuration, special } = tdd.duplex else { panic!("not TDD") };
    assert_eq!((configuration.number(), special), (2, 7));
    // TS 36.213 table 7-1: 10 processes
    assert_eq!(ue("lte-tdd-20", "").downlink.harq.processes, 10);
}

#[test]
fn umts_is_what_it_says() {
    let hspa = radio("umts-hspa", "");
    let Access::Umts(carrier) = hspa.ran.cells[0].access.clone() else { panic!("not UMTS") };
    let category = HsdpaCategory::new(8).unwrap();
    assert_eq!(carrier.downlink, UmtsDownlink::HsDsch { category, codes: 10 });
    let category = EdchCategory::new(5).unwrap();
    assert_eq!(carrier.uplink, UmtsUplink::EDch { category, tti: EdchTti::Ms10 });
    // RNC, Iub, Node B
    assert_eq!(
        (hspa.ran.cells[0].base_station.downlink, hspa.ran.cells[0].base_station.uplink),
        (ms(18), ms(18))
    );
    let phone = &hspa.ran.ues[0].in_cell[0];
    assert_eq!(phone.configured.unwrap().bytes, 1_000);
    assert_eq!(phone.uplink.harq.processes, 4);
    let RlcConfig::Umts(rlc) = phone.downlink.bearer.rlc else { panic!("not UMTS") };
    assert_eq!(
        (rlc.pdu, rlc.window, rlc.mac_header_bytes),
        (UmtsPdu::Fixed { bytes: 82 }, 2_047, 3)
    );
    let Some(RrcConfig::Umts(rrc)) = phone.rrc else { panic!("it has RRC") };
    assert_eq!(
        (rrc.setup, rrc.setup_state, rrc.initial),
        (ms(2_000), SetupState::Dch, RrcState::Idle)
    );
    assert_eq!((rrc.dch_inactivity, rrc.fach_inactivity), (ms(5_000), ms(12_000)));
    // 85 bytes at 32 kb/s are 21 ms: two frames.
    assert_eq!(
        (rrc.fach.bytes, rrc.fach.downlink_time, rrc.fach.uplink_time),
        (85, ms(20), ms(40))
    );
    // A value above the category's is reduced to the category's.
    let grant = |text: &str| ue("umts-hspa-plus", text).configured.unwrap().bytes;
    assert_eq!(grant("[radio.grants]\nserving_grant_bytes = 90000\n"), 11_484 / 8);
    let dch = ue("umts-r99", "[radio.harq]\nmax_transmissions = 3\n");
    assert_eq!(dch.downlink.harq.max_transmissions, 1);
    let RlcConfig::Umts(rlc) = dch.downlink.bearer.rlc else { panic!("not UMTS") };
    assert_eq!(rlc.mac_header_bytes, 0);
    let text = "[radio.rrc]\npch = true\npch_idle_after_ms = 60000\ninitial_state = \"cell_pch\"\n";
    let Some(RrcConfig::Umts(rrc)) = ue("umts-hspa", text).rrc else { panic!("it has RRC") };
    assert_eq!(rrc.pch, PchConfig::IdleAfter(Some(ms(60_000))));
    assert_eq!(rrc.initial, RrcState::CellPch);
}

#[test]
fn evdo_is_what_it_says() {
    let text = "[radio.cell]\naccess_network_ms = 12\n[radio.rrc]\nsetup_ms = 700\n";
    let evdo = radio("evdo-rev-a", text);
    assert_eq!(evdo.ran.cells[0].access, Access::Evdo);
    assert_eq!(evdo.ran.cells[0].base_station.uplink, ms(12));
    let phone = &evdo.ran.ues[0].in_cell[0];
    let processes = [&phone.downlink, &phone.uplink].map(|link| link.harq.processes);
    assert_eq!(processes, [4, 3]);
    assert_eq!(phone.configured.unwrap().bytes, 768);
    let decoding = Decoding::Fixed { initial: 1.0, retransmission: 0.05 };
    assert_eq!((phone.uplink.harq.decoding, phone.uplink.harq.max_transmissions), (decoding, 4));
    let Some(RrcConfig::Connection(rrc)) = phone.rrc else { panic!("it has RRC") };
    assert_eq!((rrc.setup, rrc.inactivity), (ms(700), Some(ms(10_000))));
}

#[test]
fn every_value_of_a_preset_has_a_source() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("presets");
    let mut files = 0;
    for file in std::fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("# "), "{}", path.display());
        for line in text.lines().filter(|line| line.contains(" = ")) {
            let sourced = line.contains("  # ") || line.starts_with("access = ");
            assert!(sourced, "{}: {line}", path.display());
        }
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert_eq!(radio(name, "").preset, name);
        files += 1;
    }
    assert_eq!(files, radio_presets().count());
    let (name, description) = radio_presets().next().unwrap();
    assert_eq!(name, "nr-n78");
    assert_eq!(description, "NR n78: 100 MHz TDD of 30 kHz, DDDSU, 4 layers down and 2 up");
}

#[test]
fn the_guides_example_is_a_scenario() {
    let guide = include_str!("../../../docs/guides/scenarios.md");
    let radio = guide.split("```toml\n").find(|block| block.starts_with("[radio]")).unwrap();
    let scenario = parsed_with(radio.split("```").next().unwrap(), &[]).scenario;
    let radio = scenario.radio.unwrap();
    assert_eq!((radio.ues.len(), radio.ues[20].as_str()), (21, "meter-19"));
}

#[test]
fn the_cell_is_what_it_says() {
    let text = "[radio.cell]\nmu = 0\nbandwidth_mhz = 20\ntdd_pattern = \"DSUUU 6:4:4\"\n\
                layers_down = 1\nlayers_up = 1\nmcs_table_down = \"qam64\"\n\
                mcs_table_up = \"qam64_low_se\"\noverhead_down = 6\nprbs_up = 100\nk2_slots = 4\n\
                scheduler = \"round_robin\"\nscheduler_up = \"proportional_fair\"\n\
                proportional_fair_ms = 250\nues_per_slot = 8\nprocessing_grant_ms = 2\n\
                bler_curve = \"shannon_gap\"\nshannon_gap_db = 1.5\n";
    let cell = radio("nr-n78", text).ran.cells[0].clone();
    let Access::Nr(carrier) = &cell.access else { panic!("not NR") };
    assert_eq!(
        (carrier.numerology.khz(), carrier.downlink.prbs, carrier.uplink.prbs),
        (15, 106, 100)
    );
    assert_eq!((carrier.downlink.layers, carrier.downlink.overhead_per_prb), (1, 6));
    // K_1 is still the smallest for 15 kHz: 8 symbols of decoding.
    let least = NrCarrier::least_offsets(carrier.numerology, 2);
    assert_eq!((carrier.offsets.k1, carrier.offsets.k2), (least.k1, 4));
    assert_eq!(cell.downlink_scheduler.policy, Policy::RoundRobin);
    let policy = Policy::ProportionalFair { time_constant: ms(250) };
    assert_eq!(cell.uplink_scheduler.policy, policy);
    assert_eq!(cell.uplink_scheduler.ues_per_slot, Some(8));
    assert_eq!(cell.base_station.grant, ms(2));
    assert_eq!(cell.base_station.downlink, Duration::from_micros(500));
    assert_eq!(cell.bler.threshold, Threshold::ShannonGap { gap_db: 1.5 });
}

#[test]
fn the_nearest_table_counts() {
    let text = "[radio.rlc]\nbuffer_bytes = 100000\n\
                [radio.rlc_up]\nbuffer_packets = 50\n\
                [radio.channel]\nsinr_db = 10\n\
                [[radio.ue]]\n\
                [[radio.ue]]\nname = \"far\"\n\
                [radio.ue.channel_up]\nsinr_db = 3\n\
                [radio.ue.rlc]\nbuffer_bytes = \"unlimited\"\n";
    let radio = |text| radio("nr-mmwave", text);
    let RadioConfig { ues, ran, .. } = radio(text);
    assert_eq!(ues, ["ue-0", "far"]);
    let [first, far] = [&ran.ues[0].in_cell[0], &ran.ues[1].in_cell[0]];
    let sinr = |db| ChannelConfig::Constant(Quality::Sinr(db));
    // The file's table for both directions takes precedence over the preset's for the uplink.
    assert_eq!((&first.downlink.channel, &first.uplink.channel), (&sinr(10.0), &sinr(10.0)));
    assert_eq!((&far.downlink.channel, &far.uplink.channel), (&sinr(10.0), &sinr(3.0)));
    let buffer = |ue: &UeConfig| {
        [&ue.downlink, &ue.uplink]
            .map(|link| (link.bearer.buffer.bytes, link.bearer.buffer.packets))
    };
    assert_eq!(buffer(first), [(Some(100_000), None), (Some(100_000), Some(50))]);
    assert_eq!(buffer(far), [(None, None), (None, Some(50))]);
    // The preset's uplink table is used if the file has none.
    assert_eq!(ue("nr-mmwave", "").uplink.channel, sinr(14.0));
}

#[test]
fn a_count_makes_several_and_flows_name_theirs() {
    let text = "[radio]\npreset = \"lte-20\"\n[[radio.ue]]\nname = \"phone\"\n\
                [[radio.ue]]\nname = \"car\"\ncount = 3\n\
                [[flow]]\nkind = \"ping\"\n[[flow]]\nkind = \"ping\"\nue = \"car-1\"\n";
    let parsed = parsed_with(text, &["flow.0.interval_ms=5"]);
    let ues = parsed.scenario.radio.unwrap().ues;
    let names: Vec<_> = ues.iter().map(String::as_str).collect();
    assert_eq!(names, ["phone", "car-0", "car-1", "car-2"]);
    let flows: Vec<_> = parsed.scenario.flows.iter().map(|flow| flow.ue).collect();
    assert_eq!(flows, [0, 2]);
}

#[test]
fn a_table_that_is_there_is_enabled_unless_it_says_otherwise() {
    let drx = |text: &str, sets: &[&str]| {
        radio_with("nr-n78", text, sets).ran.ues[0].in_cell[0].drx.clone()
    };
    assert_eq!(drx("", &[]), None);
    assert!(drx("[radio.drx]\n", &[]).is_some());
    assert_eq!(drx("", &["radio.drx.long_cycle_ms=640"]).unwrap().long_cycle, ms(640));
    let text = "[radio.drx]\nlong_cycle_ms = 640\nshort_cycle_ms = 64\n";
    assert_eq!(drx(text, &["radio.drx.enabled=false"]), None);
    let one = "[radio.drx]\nlong_cycle_ms = 640\n[[radio.ue]]\n[radio.ue.drx]\nenabled = false\n";
    assert_eq!(drx(one, &[]), None);
    assert_eq!(drx(one, &["radio.ue.0.drx.enabled=true"]).unwrap().long_cycle, ms(640));
}

#[test]
fn drx_is_what_it_says() {
    let text = "[radio.drx]\non_duration_ms = 4\nslot_offset_ms = 0.25\ninactivity_ms = 200\n\
                long_cycle_ms = 320\nstart_offset_ms = 7\nshort_cycle_ms = 40\n\
                short_cycle_timer = 4\nharq_rtt_down_symbols = 28\nharq_rtt_up_symbols = 14\n\
                retransmission_down_slots = 8\nretransmission_up_slots = 4\n\
                uplink_waits_for_on_duration = true\n[radio.harq_up]\nprocesses = 20\n";
    let found = ue("nr-n78", text).drx.unwrap();
    // 30 kHz: 14 symbols and a slot are 0.5 ms.
    let expected = DrxConfig {
        on_duration: ms(4),
        slot_offset: Duration::from_micros(250),
        inactivity: ms(200),
        long_cycle: ms(320),
        start_offset: ms(7),
        short_cycle: Some(ShortCycle { cycle: ms(40), timer: 4 }),
        harq_rtt_downlink: ms(1),
        harq_rtt_uplink: Duration::from_micros(500),
        retransmission_downlink: ms(4),
        retransmission_uplink: ms(2),
        // Two control symbols.
        pdcch: Duration::from_nanos(500_000 * 2 / 14),
        harq_processes: 20,
        uplink_start: UplinkStart::InOnDuration,
    };
    assert_eq!(found, expected);
}

#[test]
fn bearers_are_what_they_say() {
    let text = "[radio.rlc]\nmode = \"um\"\nsn_bits = 6\nt_reordering_ms = 20\n\
                aqm = \"fq_codel\"\ncodel_target_ms = 10\nfq_codel_queues = \"one_per_flow\"\n\
                ecn = true\nl4s_step_ms = 1\ndiscard_timer_ms = 100\n\
                [radio.rlc_up]\nmode = \"am\"\nsn_bits = 12\npoll_pdu = \"infinity\"\n\
                poll_bytes = 25000\nt_reordering_ms = \"infinity\"\naqm = \"drop_tail\"\n";
    let ue = ue("nr-n78", text);
    let down = ue.downlink.bearer;
    let mode = NrMode::Um { sn: NrUmSn::Bits6, t_reassembly: ms(40) };
    let release = Release::InOrder { t_reordering: Some(ms(20)) };
    assert_eq!(down.rlc, RlcConfig::Nr { mode, release });
    assert_eq!(down.pdcp.discard, Some(ms(100)));
    let Discipline::FqCoDel { codel, quantum, isolation } = down.buffer.discipline else {
        panic!("not FQ-CoDel")
    };
    assert_eq!((codel.target, codel.interval, quantum), (ms(10), ms(100), 1514));
    assert_eq!(isolation, Isolation::Perfect);
    assert_eq!(
        (down.buffer.ecn.codel, down.buffer.ecn.l4s_step),
        (EcnCapable::Marked, Some(ms(1)))
    );
    let up = ue.uplink.bearer;
    let RlcConfig::Nr { mode: NrMode::Am { sn, arq, .. }, release } = up.rlc else {
        panic!("not AM")
    };
    assert_eq!((sn, arq.poll_pdu, arq.poll_bytes), (NrAmSn::Bits12, None, Some(25_000)));
    assert_eq!(release, Release::InOrder { t_reordering: None });
    assert_eq!(up.buffer.discipline, Discipline::DropTail);
    assert_eq!((up.buffer.ecn.codel, up.buffer.ecn.l4s_step), (EcnCapable::Dropped, Some(ms(1))));
}

#[test]
fn an_lte_bearer_may_be_unacknowledged() {
    let um = ue("lte-20", "[radio.rlc]\nmode = \"um\"\nsn_bits = 5\nt_reordering_ms = 35\n");
    let mode = LteMode::Um { sn: LteUmSn::Bits5, t_reordering: ms(35) };
    assert_eq!(um.downlink.bearer.rlc, RlcConfig::Lte(mode));
}

#[test]
fn the_link_is_what_it_says() {
    let text = "[radio.link_adaptation]\nfixed_mcs = 10\nfixed_bler = 0.1\n\
                fixed_bler_retransmission = 0.01\ncqi_period_ms = 5\n\
                [radio.link_adaptation_up]\nfixed_mcs = \"adaptive\"\nbler_target = 0.01\n\
                fixed_bler = \"from_sinr\"\n\
                [radio.harq]\nmax_transmissions = 1\nprocessing_ms = 2\ncombining = \"chase\"\n\
                nack_to_ack = 0.001\n[radio.ambr]\nup_mbps = 50\nbucket_bytes = 20000\n";
    let ue = ue("nr-n78", text);
    assert_eq!(ue.downlink.mcs, McsMode::Fixed(10));
    assert_eq!(ue.downlink.report.period, ms(5));
    let fixed = Decoding::Fixed { initial: 0.1, retransmission: 0.01 };
    assert_eq!(ue.downlink.harq.decoding, fixed);
    assert_eq!(ue.downlink.harq.timing, HarqTiming::Asynchronous { processing: ms(2) });
    assert_eq!((ue.downlink.harq.max_transmissions, ue.downlink.harq.nack_to_ack), (1, 0.001));
    let McsMode::Adaptive(outer_loop) = ue.uplink.mcs else { panic!("not adaptive") };
    assert_eq!(outer_loop.target_bler, 0.01);
    assert_eq!(ue.uplink.harq.decoding, Decoding::Curve(Combining::Chase));
    let rate = Rate::from_bps(50_000_000).unwrap();
    assert_eq!(
        (ue.downlink.cap, ue.uplink.cap),
        (None, Some(RateCap { rate, bucket_bytes: 20_000 }))
    );
}

#[test]
fn uplink_access_is_what_it_says() {
    let text = "[radio.sr]\nperiod_ms = 40\noffset_ms = 11\nprohibit_timer_periods = 2\n\
                trans_max = 4\nmiss_probability = 0.01\n\
                [radio.bsr]\nperiodic_timer_ms = \"infinity\"\nretx_timer_ms = 640\n\
                sr_delay_timer_ms = 20\npiggyback = \"always\"\n\
                [radio.grants]\nrequest_grant_bytes = 32\nproactive_period_ms = 10\n\
                proactive_offset_ms = 3\nproactive_bytes = 200\nproactive_keep_ms = 100\n\
                [radio.rach]\nbackoff_ms = 20\n[radio.time_alignment]\ntimer_ms = \"infinity\"\n";
    let ue = ue("lte-20", text);
    assert_eq!(ue.sr.occasions, Some(Occasions::new(ms(40), ms(11))));
    // Two SR periods.
    assert_eq!((ue.sr.prohibit, ue.sr.transmissions_max), (Some(ms(80)), 4));
    assert_eq!((ue.bsr.periodic, ue.bsr.retransmission), (None, ms(640)));
    assert_eq!((ue.bsr.request_delay, ue.bsr.channels[0].delays_request), (ms(20), true));
    assert_eq!(ue.bsr.piggyback, Piggyback::Always);
    assert_eq!(ue.estimate.request_grant, 32);
    let grant = ue.proactive.unwrap();
    assert_eq!(grant.occasions, Occasions::new(ms(10), ms(3)));
    assert_eq!((grant.bytes, grant.keep, ue.configured), (200, Some(ms(100)), None));
    // TS 36.321 5.1.4, TS 36.213 6.1.1: 3 subframes to the window, 6 and 1 to Msg3
    let rach = ue.random_access.unwrap();
    assert_eq!((rach.response_window_after, rach.msg3_delay, rach.backoff), (ms(3), ms(7), ms(20)));
    assert_eq!(ue.alignment.unwrap().timer, None);
}

#[test]
fn rrc_states_are_what_they_say() {
    let text = "[radio.rrc]\ninitial = \"connected\"\nsetup_ms = 50\ninactivity_ms = \"never\"\n\
                inactive = true\nresume_ms = 15\ninactive_idle_after_ms = 60000\n\
                paging_offset_ms = 30\n[radio.processing]\nup_ms = 1\n";
    let ue = ue("nr-n78", text);
    let Some(RrcConfig::Connection(rrc)) = ue.rrc else { panic!("it has RRC") };
    assert_eq!((rrc.initial, rrc.setup, rrc.inactivity), (RrcState::Connected, ms(50), None));
    assert_eq!(rrc.paging, Occasions::new(ms(1280), ms(30)));
    let inactive = rrc.inactive.unwrap();
    assert_eq!((inactive.resume, inactive.idle_after), (ms(15), Some(ms(60_000))));
    assert_eq!(inactive.paging, Occasions::new(ms(320), ms(30)));
    assert_eq!((ue.processing.uplink, ue.processing.downlink), (ms(1), Duration::from_micros(500)));
}

#[test]
fn a_channel_may_be_recorded() {
    let text = "[radio]\npreset = \"nr-n78\"\n[radio.channel]\nfile = \"channel.csv\"\n\
                at_end = \"hold\"\n[radio.channel_up]\nsinr_db = 5\n[[flow]]\nkind = \"ping\"\n";
    let parsed = parsed_with(text, &[]);
    let ue = &parsed.scenario.radio.as_ref().unwrap().ran.ues[0].in_cell[0];
    let ChannelConfig::Trace { trace, at_end } = &ue.downlink.channel else {
        panic!("not a trace")
    };
    assert_eq!((trace.samples(), trace.period(), *at_end), (3, ms(1_500), AtEnd::Hold));
    assert_eq!(ue.uplink.channel, ChannelConfig::Constant(Quality::Sinr(5.0)));
    // sha256sum tests/data/channel.csv
    assert_eq!(parsed.traces.len(), 1);
    assert_eq!(parsed.traces[0].file, "channel.csv");
    assert_eq!(
        parsed.traces[0].sha256,
        "8fdc201076064d208f181adafcdee3fcfa66d4309917c22357a3c4e968a2e6d8"
    );
}

#[test]
fn a_channel_may_be_a_process() {
    let text = "[radio.channel]\npath_loss = \"umi_nlos\"\ndistance_m = 150\nspeed_kmh = 36\n\
                turn_m = 20\nbase_station_height_m = 10\nshadowing_db = 7.82\n\
                shadowing_correlation_m = 13\nfading = \"rayleigh\"\nfading_kmh = 72\n\
                sinr_ceiling_db = 28\n[radio.channel_up]\ntransmit_dbm = 23\nfading = \"none\"\n";
    let ue = ue("nr-n78", text);
    let ChannelConfig::Process(down) = ue.downlink.channel else { panic!("not a process") };
    assert_eq!((down.carrier_hz, down.path_loss), (3.5e9, PathLoss::UrbanMicroNlos));
    let movement = down.movement;
    assert_eq!((movement.start_m, movement.speed_mps, movement.turn_m), (150.0, 10.0, Some(20.0)));
    // 273 PRBs of 12 × 30 kHz: -174 + 10 log10(98.28e6) + 7
    assert!((down.budget.noise_dbm - -87.0753).abs() < 1e-3, "{}", down.budget.noise_dbm);
    assert_eq!(down.shadowing.unwrap().deviation_db, 7.82);
    assert_eq!((down.fading.unwrap().speed_mps, down.sinr_ceiling_db), (20.0, Some(28.0)));
    let ChannelConfig::Process(up) = ue.uplink.channel else { panic!("not a process") };
    assert_eq!((up.budget.transmit_dbm, up.fading), (23.0, None));
    assert_eq!(up.movement, down.movement);
    // A preset's process gives way to a constant.
    let constant = self::ue("nr-indoor", "[radio.channel]\nsinr_db = 15\n");
    assert_eq!(constant.uplink.channel, ChannelConfig::Constant(Quality::Sinr(15.0)));
}

#[test]
fn any_timer_value_is_possible_where_it_is_asked_for() {
    let text = "any_timer_value = true\n[radio.rlc]\nt_reassembly_ms = 37.5\npoll_pdu = 65\n\
                [radio.sr]\nperiod_ms = 7\n[radio.rrc]\npaging_cycle_ms = 1000\n";
    let ue = ue("nr-n78", text);
    let RlcConfig::Nr { mode: NrMode::Am { t_reassembly, arq, .. }, .. } = ue.uplink.bearer.rlc
    else {
        panic!("not AM")
    };
    assert_eq!((t_reassembly, arq.poll_pdu), (Duration::from_micros(37_500), Some(65)));
    // The preset's offset of 4 ms is less than 7.
    assert_eq!(ue.sr.occasions, Some(Occasions::new(ms(7), ms(4))));
}

/// A sweep over the period alone is possible: the offset is taken modulo the period.
#[test]
fn every_period_of_a_scheduling_request_can_be_set() {
    for period in [1, 2, 5, 10, 20, 40, 80] {
        let set = format!("radio.sr.period_ms={period}");
        let ue = &radio_with("lte-20", "", &[&set]).ran.ues[0].in_cell[0];
        assert_eq!(ue.sr.occasions, Some(Occasions::new(ms(period), ms(4 % period))));
    }
}

/// TCP works over a path without stages: the radio takes time.
#[test]
fn with_a_radio_the_path_may_be_empty() {
    let text = "[radio]\npreset = \"lte-20\"\n[[flow]]\nkind = \"bulk\"\n";
    let scenario = parsed_with(text, &[]).scenario;
    assert!(scenario.down.is_empty() && scenario.up.is_empty() && scenario.radio.is_some());
}

const NEIGHBOURS: &str = "
[radio.rlc]
buffer_bytes = 100000
[radio.drx]
on_duration_ms = 10
[[radio.neighbour]]
name = \"east\"
[radio.neighbour.channel]
sinr_db = 12
[[radio.neighbour]]
preset = \"nr-n78\"
[radio.neighbour.cell]
bandwidth_mhz = 40
";

#[test]
fn a_neighbour_has_the_tables_of_radio_if_it_has_the_same_access() {
    let radio = radio("lte-20", NEIGHBOURS);
    assert_eq!(radio.cells, ["cell-0", "east", "cell-2"]);
    let [here, east, nr] = &radio.ran.ues[0].in_cell[..] else { panic!("three cells") };
    assert_eq!(east.downlink.channel, ChannelConfig::Constant(Quality::Sinr(12.0)));
    assert_eq!(
        UeConfig { downlink: here.downlink.clone(), uplink: here.uplink.clone(), ..east.clone() },
        *here
    );
    assert_eq!(east.downlink.bearer, here.downlink.bearer);
    let Access::Nr(carrier) = &radio.ran.cells[2].access else { panic!("NR") };
    // TS 38.101-1 table 5.3.2-1: 40 MHz of 30 kHz
    assert_eq!((carrier.downlink.prbs, nr.drx.is_some()), (106, false));
    assert_ne!(nr.downlink.bearer.buffer.bytes, Some(100_000));
    // Without handovers UEs move by event A3.
    let measured = radio.ran.measurements.expect("they measure");
    assert!(measured.a3.is_some() && measured.failure.is_some());
}

#[test]
fn handovers_name_cells_and_ues() {
    let text = format!(
        "{NEIGHBOURS}[[radio.ue]]\n[[radio.ue]]\nname = \"bus\"\n\
         [[radio.handover]]\nat_s = 2\nto = \"cell-2\"\n\
         [[radio.handover]]\nat_s = 3\nevery_s = 5\nto = \"cell-0\"\nue = \"bus\"\n\
         [radio.mobility]\ninterruption_ms = 30\nforwarding = \"none\"\nlink_failure = false\n"
    );
    let ran = radio("lte-20", &text).ran;
    let seconds = airpath_base::Duration::from_secs;
    assert_eq!(
        ran.planned,
        [
            PlannedHandover { at: seconds(2), every: None, ue: None, to: CellIndex(2) },
            PlannedHandover {
                at: seconds(3),
                every: Some(seconds(5)),
                ue: Some(UeIndex(1)),
                to: CellIndex(0)
            },
        ]
    );
    assert_eq!(ran.handover.interruption, ms(30));
    assert_eq!(ran.handover.forwarding, Forwarding::Nothing);
    assert_eq!(ran.measurements, None);
    // A single cell measures nothing; with the table, a link can fail.
    assert_eq!(radio("lte-20", "").ran.measurements, None);
    let failing = radio("lte-20", "[radio.mobility]\n").ran.measurements.expect("it can fail");
    assert!(failing.a3.is_none() && failing.failure.is_some());
}

#[test]
fn a_split_bearer_has_a_leg_in_a_neighbour_and_stays() {
    let neighbours = "[[radio.neighbour]]\npreset = \"nr-fdd-20\"\n[[radio.neighbour]]\n";
    let found = radio("lte-20", &format!("{neighbours}[radio.split]\n"));
    let expected = SplitConfig {
        ue: None,
        secondary: CellIndex(1),
        primary: Leg::Master,
        policy: SplitPolicy::ShortestWait,
        threshold: None,
        t_reordering: ms(100),
        delay: ms(0),
        flow_control: true,
    };
    assert_eq!(found.ran.split, Some(expected));
    assert!(found.ran.measurements.is_none() && found.ran.planned.is_empty());
    assert_eq!(found.ran.check(), Ok(()));
    let all = "secondary = \"cell-2\"\nue = \"ue-0\"\nprimary_path = \"secondary\"\n\
               secondary_share = 0.25\nt_reordering_ms = 60\n\
               ul_data_split_threshold_bytes = 6400\ndelay_ms = 5\n\
               flow_control = false\n";
    let found = radio("lte-20", &format!("{neighbours}[radio.split]\n{all}"));
    let expected = SplitConfig {
        ue: Some(UeIndex(0)),
        secondary: CellIndex(2),
        primary: Leg::Secondary,
        policy: SplitPolicy::Fixed { secondary: 0.25 },
        threshold: Some(6_400),
        t_reordering: ms(60),
        delay: ms(5),
        flow_control: false,
    };
    assert_eq!(found.ran.split, Some(expected));
    let off = radio("lte-20", &format!("{neighbours}[radio.split]\nenabled = false\n"));
    assert!(off.ran.split.is_none() && off.ran.measurements.is_none());
}

#[test]
fn secondary_carriers_start_from_their_presets_and_apply_to_all_ues() {
    let text = "[radio.channel]\nsinr_db = 12\n[[radio.ue]]\n[[radio.ue]]\ncarriers = 1\n\
                [radio.ue.channel]\nsinr_db = 3\n\
                [[radio.carrier]]\npreset = \"lte-10\"\n[radio.carrier.harq]\nmax_transmissions = 2\n\
                [[radio.carrier]]\nuplink = true\n[radio.carrier.channel]\nsinr_db = 20\n\
                [radio.carrier.cell]\nscheduler = \"round_robin\"\n";
    let ran = radio("lte-20", text).ran;
    let cell = &ran.cells[0];
    assert_eq!(cell.check(), Ok(()));
    let prbs: Vec<u32> = cell
        .secondary
        .iter()
        .map(|carrier| match &carrier.access {
            Access::Lte(carrier) => carrier.downlink_prbs,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(prbs, [50, 100]);
    assert_eq!(cell.secondary[1].downlink_scheduler.policy, Policy::RoundRobin);
    let secondary = |ue: usize| &ran.ues[ue].in_cell[0].secondary;
    let sinr = |channel: &ChannelConfig| match channel {
        ChannelConfig::Constant(Quality::Sinr(sinr_db)) => *sinr_db,
        other => panic!("{other:?}"),
    };
    let all: Vec<_> = secondary(0)
        .iter()
        .map(|own| (sinr(&own.downlink.channel), own.downlink.harq.max_transmissions, own.sends))
        .collect();
    // A UE's own tables are about the primary carrier.
    assert_eq!(all, [(12.0, 2, false), (20.0, 4, true)]);
    assert_eq!(secondary(1)[..], secondary(0)[..1]);
    assert_eq!(sinr(&ran.ues[1].in_cell[0].downlink.channel), 3.0);
    // A file's `[radio.cell]` is about the primary carrier, as for neighbours.
    let wide = radio("nr-n78", "[radio.cell]\nbandwidth_mhz = 40\n[[radio.carrier]]\n").ran;
    match (&wide.cells[0].access, &wide.cells[0].secondary[0].access) {
        (Access::Nr(primary), Access::Nr(secondary)) => {
            assert!(primary.downlink.prbs < secondary.downlink.prbs);
        }
        other => panic!("{other:?}"),
    }
    assert!(radio("lte-20", "").ran.cells[0].secondary.is_empty());
}
