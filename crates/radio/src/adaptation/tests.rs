use airpath_base::{Duration, Instant, Stream};

use super::*;
use crate::channel::{
    AtEnd, Channel, ChannelConfig, ChannelTrace, FadingConfig, Heights, LinkBudget, Movement,
    PathLoss, ProcessConfig,
};

fn tables() -> LinkTables {
    // 29 MCS between CQI 1 and CQI 15.
    let mcs = (0..29).map(|index| 0.2344 + f64::from(index) * 0.19);
    LinkTables::new(BlerModel::default(), CQI_64QAM_EFFICIENCY, mcs)
}

#[test]
fn cqi_is_the_highest_with_10_percent() {
    // TS 36.213 7.2.3: the highest CQI whose block fails with a probability not exceeding 0.1.
    let tables = tables();
    assert_eq!(tables.cqi(-6.71), 0);
    assert_eq!(tables.cqi(-6.7), 1);
    assert_eq!(tables.cqi(8.0), 7);
    assert_eq!(tables.cqi(8.1), 8);
    assert_eq!(tables.cqi(50.0), 15);
    assert_eq!(tables.cqi(tables.sinr_db(Quality::Outage)), 0);
    for cqi in 1..16 {
        assert_eq!(tables.cqi(tables.sinr_db(Quality::Cqi(cqi))), cqi);
    }
    for mcs in 0..29 {
        assert_eq!(tables.mcs(tables.sinr_db(Quality::Mcs(mcs))), mcs);
    }
    assert_eq!(tables.mcs(-40.0), 0);
}

#[test]
fn the_mcs_before_a_dip_in_the_table_is_skipped() {
    // TS 38.214 Table 5.1.3.1-1, MCS 16 to 18: 2.5703, 2.5664, 2.7305.
    let tables = LinkTables::new(BlerModel::default(), [1.0], [2.5703, 2.5664, 2.7305]);
    let dip_db = BlerModel::default().threshold_db(2.5703);
    assert_eq!(tables.mcs(dip_db), 1);
}

#[test]
fn reports_are_periodic_late_and_quantised() {
    let ms = Duration::from_millis;
    let samples =
        (0..100).map(|index| (ms(index), Quality::Sinr(if index < 8 { 9.0 } else { 5.0 })));
    let trace = std::sync::Arc::new(ChannelTrace::new(samples).unwrap());
    let config = ChannelConfig::Trace { trace, at_end: AtEnd::Hold };
    let channel = Channel::new(&config, Stream::new(1, "channel"));
    let config = ReportConfig { period: ms(5), offset: ms(2), delay: ms(6) };
    let mut reporter = CqiReporter::new(config, channel);
    let tables = tables();
    for (now, next) in [(0, 8), (7, 8), (8, 13), (12, 13), (13, 18), (44, 48)] {
        assert_eq!(reporter.next_report(Instant::ZERO + ms(now)), Instant::ZERO + ms(next));
    }
    let mut at = |time| {
        let report = reporter.report(Instant::ZERO + ms(time), &tables);
        report.map(|report| (report.cqi, report.measured.as_nanos() / 1_000_000))
    };
    assert_eq!(at(7), None);
    assert_eq!(at(8), Some((8, 2)));
    assert_eq!(at(12), Some((8, 2)));
    assert_eq!(at(13), Some((8, 7)));
    assert_eq!(at(17), Some((8, 7)));
    assert_eq!(at(18), Some((6, 12)));
    assert_eq!(at(44), Some((6, 37)));
}

/// Fraction of initial transmissions that failed after the loop had settled.
fn settled_bler(target_bler: f64, cqi: u8, sinr_db: f64) -> f64 {
    let tables = tables();
    let config = OuterLoopConfig { target_bler, ..OuterLoopConfig::default() };
    let mut adaptation = LinkAdaptation::new(McsMode::Adaptive(config));
    let report = CqiReport { cqi, mcs: None, measured: Instant::ZERO };
    let mut stream = Stream::new(1, "errors");
    let mut failed = 0;
    for block in 0..120_000 {
        let mcs = adaptation.mcs(Instant::ZERO, &tables, report);
        let margin_db = sinr_db - tables.sinr_db(Quality::Mcs(mcs));
        let fails = stream.chance(tables.model().bler_at(margin_db));
        adaptation.on_feedback(!fails);
        failed += u32::from(fails && block >= 20_000);
    }
    f64::from(failed) / 100_000.0
}

#[test]
fn the_outer_loop_reaches_its_target_whatever_the_report_says() {
    for target in [0.01, 0.1, 0.3] {
        // CQI 9 means 10.3 dB: right, 4 dB too high, 4 dB too low.
        for sinr_db in [10.5, 6.4, 14.2] {
            let bler = settled_bler(target, 9, sinr_db);
            assert!((bler / target - 1.0).abs() < 0.1, "{target} at {sinr_db} dB: {bler}");
        }
    }
}

#[test]
fn the_offset_stays_within_its_bounds_and_a_fixed_mcs_ignores_feedback() {
    let config = OuterLoopConfig { lowest_db: -2.0, highest_db: 1.0, ..OuterLoopConfig::default() };
    let mut outer = OuterLoop::new(config);
    // One NACK costs as much as nine ACKs gain.
    outer.on_feedback(false);
    (0..9).for_each(|_| outer.on_feedback(true));
    assert!(outer.offset_db().abs() < 1e-12);
    (0..100).for_each(|_| outer.on_feedback(true));
    assert_eq!(outer.offset_db(), 1.0);
    (0..100).for_each(|_| outer.on_feedback(false));
    assert_eq!(outer.offset_db(), -2.0);
    let mut fixed = LinkAdaptation::new(McsMode::Fixed(17));
    fixed.on_feedback(false);
    let report = CqiReport { cqi: 1, mcs: None, measured: Instant::ZERO };
    assert_eq!((fixed.mcs(Instant::ZERO, &tables(), report), fixed.offset_db()), (17, 0.0));
}

#[test]
fn a_recorded_mcs_is_used_as_it_is_and_fails_with_10_percent() {
    let config = ChannelConfig::Constant(Quality::Mcs(21));
    let mut channel = Channel::new(&config, Stream::new(1, "channel"));
    let ms = Duration::from_millis;
    let config = ReportConfig { period: ms(1), offset: ms(0), delay: ms(0) };
    let report = CqiReporter::new(config, channel.clone()).report(Instant::ZERO, &tables());
    let mut adaptation = LinkAdaptation::new(McsMode::Adaptive(OuterLoopConfig::default()));
    adaptation.on_feedback(false);
    assert_eq!(adaptation.mcs(Instant::ZERO, &tables(), report.unwrap()), 21);
    let margin_db = tables().sinr_db(channel.quality(Instant::ZERO))
        - tables().model().threshold_db(0.2344 + 21.0 * 0.19);
    assert!((tables().model().bler_at(margin_db) - 0.1).abs() < 1e-9);
}

/// Channel, late reports, outer loop and errors together: a UE at 3 km/h, whose fades are
/// reported, and one at 120 km/h, whose fades are not.
#[test]
fn the_outer_loop_reaches_its_target_over_a_fading_channel() {
    for speed_mps in [0.83, 33.3] {
        let config = ChannelConfig::Process(ProcessConfig {
            carrier_hz: 2.1e9,
            path_loss: PathLoss::Exponent { reference_db: 40.0, exponent: 3.0 },
            heights: Heights { base_station_m: 1.5, ue_m: 1.5 },
            budget: LinkBudget {
                transmit_dbm: 20.0,
                gain_db: 0.0,
                noise_dbm: -92.0,
                interference_db: 0.0,
            },
            // 20 + 92 - 100 dB: a mean of 12 dB.
            movement: Movement { beside_m: 100.0, start_m: 0.0, speed_mps: 0.0, turn_m: None },
            shadowing: None,
            fading: Some(FadingConfig { speed_mps, branches: 2, rician_k_db: None }),
            step: Duration::from_millis(1),
            sinr_ceiling_db: None,
        });
        let ms = Duration::from_millis;
        let mut channel = Channel::new(&config, Stream::new(1, "channel"));
        let config = ReportConfig { period: ms(5), offset: ms(1), delay: ms(4) };
        let mut reporter = CqiReporter::new(config, channel.clone());
        let tables = tables();
        let mut adaptation = LinkAdaptation::new(McsMode::Adaptive(OuterLoopConfig::default()));
        let mut stream = Stream::new(1, "errors");
        let (mut failed, mut sent) = (0, 0);
        for slot in 10..100_000 {
            let now = Instant::ZERO + ms(slot);
            let mcs = adaptation.mcs(now, &tables, reporter.report(now, &tables).unwrap());
            let quality = channel.quality(now);
            let margin_db = tables.sinr_db(quality) - tables.sinr_db(Quality::Mcs(mcs));
            let fails = stream.chance(tables.model().bler_at(margin_db));
            adaptation.on_feedback(!fails);
            failed += u32::from(fails);
            sent += 1;
        }
        let bler = f64::from(failed) / f64::from(sent);
        assert!((bler / 0.1 - 1.0).abs() < 0.1, "{bler} at {speed_mps} m/s");
    }
}
