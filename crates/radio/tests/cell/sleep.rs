//! DRX and RRC: what a sleeping UE costs, and that an idle one costs nothing.

use airpath_base::{Duration, Instant};
use airpath_radio::cell::*;
use airpath_radio::mac::Occasions;
use airpath_radio::mac::drx::{DrxConfig, UplinkStart};
use airpath_radio::rrc::RrcConfig;
use airpath_radio::rrc::RrcState;
use airpath_radio::rrc::connection::ConnectionConfig;

use crate::common::*;

/// An on-duration of 10 ms in 160 ms, inactivity timer 100 ms.
fn drx(uplink_start: UplinkStart) -> DrxConfig {
    DrxConfig {
        on_duration: ms(10),
        slot_offset: Duration::ZERO,
        inactivity: ms(100),
        long_cycle: ms(160),
        start_offset: ms(0),
        short_cycle: None,
        harq_rtt_downlink: ms(8),
        harq_rtt_uplink: ms(3),
        retransmission_downlink: ms(8),
        retransmission_uplink: ms(1),
        pdcch: ms(1),
        harq_processes: 8,
        uplink_start,
    }
}

fn delays(ue: &UeConfig, cell: &CellConfig, gap: Duration, up: bool) -> Vec<Duration> {
    let mut cell = Cell::new(cell, core::slice::from_ref(ue), 1);
    let direction = if up { UP } else { DOWN };
    (0..320).map(|n| one_way(&mut cell, at(482_020) + gap * n, direction, 100)).collect()
}

#[test]
fn a_downlink_packet_waits_for_the_on_duration() {
    let (cell, mut ue) = lte();
    ue.drx = Some(drx(UplinkStart::AtOnce));
    // 800.5 ms apart: 320 phases of the cycle, each 0.5 ms from the next
    let times = delays(&ue, &cell, us(800_500), false);
    let awake = times.iter().filter(|&&time| time < us(4_600)).count();
    // Active for 10 of 160 ms; the last subframe of them cannot be waited for
    assert!((17..=20).contains(&awake), "{awake}");
    // Uniform over the 150 ms of sleep
    let waits = times.iter().map(|&time| time.saturating_sub(us(4_000)));
    let mean = mean_ms(waits);
    assert!((mean - 150.0 * 150.0 / 2.0 / 160.0).abs() < 1.5, "{mean} ms");
    let longest = times.iter().max().unwrap().as_millis_f64();
    assert!((150.0..155.5).contains(&longest), "{longest} ms");
}

#[test]
fn the_inactivity_timer_spares_the_wait() {
    let (cell, mut ue) = lte();
    ue.drx = Some(drx(UplinkStart::AtOnce));
    let times = delays(&ue, &cell, us(90_070), false);
    assert!(times.iter().all(|&time| time < us(4_600)), "{times:?}");
}

#[test]
fn a_scheduling_request_wakes_the_ue_and_the_named_switch_holds_it_back() {
    let (cell, mut ue) = lte();
    let without = mean_ms(delays(&ue, &cell, us(800_500), true));
    ue.drx = Some(drx(UplinkStart::AtOnce));
    // TS 36.321 5.7: a pending SR is Active Time
    let with = mean_ms(delays(&ue, &cell, us(800_500), true));
    assert!((with - without).abs() < 0.01, "{with} {without}");
    ue.drx = Some(drx(UplinkStart::InOnDuration));
    let held = mean_ms(delays(&ue, &cell, us(800_500), true));
    assert!((held - without - 150.0 * 150.0 / 2.0 / 160.0).abs() < 3.0, "{held} {without}");
}

#[test]
fn an_idle_ue_is_paged_or_connects() {
    let (cell, mut ue) = lte();
    ue.rrc = Some(RrcConfig::Connection(ConnectionConfig {
        initial: RrcState::Idle,
        setup: ms(80),
        inactivity: Some(ms(10_000)),
        inactive: None,
        paging: Occasions::new(ms(1_280), ms(9)),
        paging_delay: ms(0),
    }));
    let fresh = || Cell::new(&cell, core::slice::from_ref(&ue), 1);
    // Base station 1 ms: 101 ms; page at 1,289 ms, connected at 1,369 ms, 1 ms, UE 1.5 ms
    assert_eq!(one_way(&mut fresh(), at(100_000), DOWN, 100), us(1_371_500 - 100_000));
    // Connected at 180 ms, and the setup has reported the data: grant at 180, sent from 184 to 185
    // ms, 1.5 ms
    assert_eq!(one_way(&mut fresh(), at(100_000), UP, 100), us(86_500));
    let mut cell = fresh();
    one_way(&mut cell, at(100_000), UP, 100);
    assert_eq!(one_way(&mut cell, at(1_000_000), DOWN, 100), us(3_500));
}

#[test]
fn idle_ues_have_no_events() {
    let (config, ue) = lte();
    let mut cell = Cell::new(&config, &vec![ue; 1_000], 1);
    assert_eq!(cell.next_event(), None);
    one_way(&mut cell, at(10_000), DOWN, 1_000);
    one_way(&mut cell, at(20_000), UP, 1_000);
    run(&mut cell, at(1_000_000));
    assert_eq!(cell.next_event(), None);
    assert_eq!(cell.poll(Instant::ZERO + Duration::from_secs(3_600)), None);
}

#[test]
fn an_on_duration_that_could_miss_all_downlink_is_refused() {
    let cell = CellConfig::nr(NrCarrier::n78_100_mhz());
    let mut ue = UeConfig::plain(&cell.access);
    // DDDSU: uplink is granted every 2.5 ms
    ue.drx = Some(DrxConfig { on_duration: ms(2), ..drx(UplinkStart::AtOnce) });
    let refused = CellConfigError::OnDuration { on_duration: ms(2), least: us(2_500) };
    assert_eq!(ue.check(&cell), Err(refused));
    ue.drx = Some(DrxConfig { on_duration: ms(3), ..drx(UplinkStart::AtOnce) });
    assert_eq!(ue.check(&cell), Ok(()));
}
