//! One script per rule.

use airpath_base::{Direction, Duration, Instant};

use crate::mac::drx::{
    Drx, DrxCommand, DrxConfig, DrxState, ShortCycle, Transmission, TransmissionKind, UplinkStart,
};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + ms(millis)
}

/// Awake for 10 ms in every 320 ms, from 20 ms on.
fn config() -> DrxConfig {
    DrxConfig {
        on_duration: ms(10),
        slot_offset: Duration::ZERO,
        inactivity: ms(100),
        long_cycle: ms(320),
        start_offset: ms(20),
        short_cycle: None,
        harq_rtt_downlink: ms(4),
        harq_rtt_uplink: ms(6),
        retransmission_downlink: ms(8),
        retransmission_uplink: ms(12),
        pdcch: Duration::ZERO,
        harq_processes: 8,
        uplink_start: UplinkStart::AtOnce,
    }
}

fn with_short_cycle() -> DrxConfig {
    DrxConfig { short_cycle: Some(ShortCycle { cycle: ms(40), timer: 2 }), ..config() }
}

fn transmission(direction: Direction, kind: TransmissionKind, rtt_starts: u64) -> Transmission {
    Transmission { direction, kind, process: 0, harq_rtt_starts: at(rtt_starts) }
}

/// New downlink data at `millis`, decoded at once.
fn new_data(drx: &mut Drx, millis: u64) {
    let new = transmission(Direction::Downlink, TransmissionKind::New, millis);
    drx.on_transmission(at(millis), &new);
    drx.on_decoded(at(millis), 0);
}

#[test]
fn on_duration_starts_where_the_formula_says_and_lasts() {
    let mut drx = Drx::new(&config());
    assert_eq!(drx.state(at(0)), DrxState::LongSleep);
    assert_eq!(drx.next_active(at(0)), at(20));
    assert_eq!(drx.next_change(at(0)), Some(at(20)));
    assert_eq!(drx.state(at(20)), DrxState::OnDuration);
    assert_eq!(drx.next_change(at(20)), Some(at(30)));
    assert!(drx.is_active(at(29)));
    assert!(!drx.is_active(at(30)));
    assert_eq!(drx.next_active(at(30)), at(340));
}

#[test]
fn slot_offset_delays_the_timer_within_the_subframe() {
    let half = Duration::from_micros(500);
    let mut drx = Drx::new(&DrxConfig { slot_offset: half, ..config() });
    assert_eq!(drx.next_active(at(0)), at(20) + half);
    assert!(!drx.is_active(at(20)));
    assert_eq!(drx.next_active(at(20)), at(20) + half);
    assert!(drx.is_active(at(30)));
    assert!(!drx.is_active(at(30) + half));
}

#[test]
fn the_next_on_duration_after_the_sfn_wraps() {
    let mut drx = Drx::new(&DrxConfig { long_cycle: ms(70), ..config() });
    assert_eq!(drx.next_active(at(10_160)), at(10_170));
    // 146 × 70 + 20 = 10240 is SFN 0 again: 70 ms do not divide 1024 frames.
    assert_eq!(drx.next_active(at(10_200)), at(10_260));
}

#[test]
fn a_new_transmission_keeps_the_ue_awake_from_the_end_of_its_pdcch() {
    let mut drx = Drx::new(&DrxConfig { pdcch: ms(1), ..config() });
    new_data(&mut drx, 25);
    assert_eq!(drx.state(at(50)), DrxState::Inactivity);
    assert_eq!(drx.next_change(at(50)), Some(at(126)));
    new_data(&mut drx, 120);
    assert_eq!(drx.next_change(at(130)), Some(at(221)));
    assert_eq!(drx.next_active(at(221)), at(340));
}

#[test]
fn a_retransmission_does_not_restart_the_inactivity_timer() {
    let mut drx = Drx::new(&config());
    new_data(&mut drx, 25);
    let again = transmission(Direction::Downlink, TransmissionKind::Retransmission, 100);
    drx.on_transmission(at(100), &again);
    drx.on_decoded(at(101), 0);
    assert_eq!(drx.next_change(at(101)), Some(at(125)));
}

#[test]
fn what_was_not_decoded_is_waited_for_after_the_round_trip() {
    let mut drx = Drx::new(&DrxConfig { inactivity: ms(5), ..config() });
    // Feedback ends at 32 ms; 4 ms later drx-RetransmissionTimerDL runs for 8 ms.
    let new = transmission(Direction::Downlink, TransmissionKind::New, 32);
    drx.on_transmission(at(28), &new);
    assert!(!drx.is_active(at(33)));
    assert_eq!(drx.next_active(at(33)), at(36));
    assert_eq!(drx.state(at(36)), DrxState::Retransmission);
    assert_eq!(drx.next_change(at(36)), Some(at(44)));
    // The retransmission stops the timer, and is decoded.
    let again = transmission(Direction::Downlink, TransmissionKind::Retransmission, 42);
    drx.on_transmission(at(38), &again);
    drx.on_decoded(at(39), 0);
    assert_eq!(drx.next_active(at(39)), at(340));
}

#[test]
fn lte_expects_retransmissions_eight_subframes_later() {
    // TS 36.321 5.7, FDD: the HARQ RTT Timer is 8 subframes from that of the assignment; an uplink
    // retransmission can be granted 8 subframes after its grant, 4 after its PUSCH.
    let mut drx = Drx::new(&DrxConfig {
        inactivity: ms(2),
        harq_rtt_downlink: ms(8),
        harq_rtt_uplink: ms(3),
        retransmission_uplink: ms(1),
        pdcch: ms(1),
        ..config()
    });
    let downlink = transmission(Direction::Downlink, TransmissionKind::New, 28);
    drx.on_transmission(at(28), &downlink);
    // Subframe 28 and two more.
    assert_eq!(drx.next_change(at(28)), Some(at(31)));
    assert_eq!(drx.next_active(at(31)), at(36));
    assert_eq!(drx.next_change(at(36)), Some(at(44)));
    drx.on_decoded(at(37), 0);
    let mut drx = Drx::new(&drx.config);
    let uplink = transmission(Direction::Uplink, TransmissionKind::New, 33);
    drx.on_transmission(at(28), &uplink);
    assert_eq!(drx.next_active(at(31)), at(36));
    assert_eq!(drx.next_change(at(36)), Some(at(37)));
}

#[test]
fn decoded_data_lets_the_ue_sleep() {
    let mut drx = Drx::new(&DrxConfig { inactivity: ms(5), ..config() });
    new_data(&mut drx, 28);
    assert_eq!(drx.next_active(at(33)), at(340));
}

#[test]
fn uplink_data_is_always_waited_for() {
    // TS 38.321 5.7 starts drx-RetransmissionTimerUL whether or not the data was decoded.
    let mut drx = Drx::new(&DrxConfig { inactivity: ms(5), ..config() });
    let new = transmission(Direction::Uplink, TransmissionKind::New, 30);
    drx.on_transmission(at(28), &new);
    assert_eq!(drx.next_active(at(33)), at(36));
    assert_eq!(drx.next_change(at(36)), Some(at(48)));
    drx.on_acknowledged(at(40), 0);
    assert!(!drx.is_active(at(40)));
}

#[test]
fn a_configured_grant_does_not_start_the_inactivity_timer() {
    let mut drx = Drx::new(&config());
    let configured = transmission(Direction::Uplink, TransmissionKind::Configured, 101);
    drx.on_transmission(at(100), &configured);
    assert!(!drx.is_active(at(100)));
    assert_eq!(drx.next_active(at(101)), at(107));
}

#[test]
fn a_pending_scheduling_request_is_active_time() {
    let mut drx = Drx::new(&config());
    assert!(!drx.is_active(at(50)));
    drx.on_scheduling_request(at(50), true);
    assert_eq!(drx.state(at(60)), DrxState::SchedulingRequest);
    assert_eq!(drx.next_change(at(60)), None);
    drx.on_scheduling_request(at(70), false);
    assert!(!drx.is_active(at(70)));
    assert_eq!(drx.awake(at(70)), ms(10 + 20));
}

#[test]
fn random_access_is_active_time() {
    let mut drx = Drx::new(&config());
    drx.on_random_access(at(50), at(53), at(60));
    assert!(!drx.is_active(at(52)));
    assert_eq!(drx.next_active(at(52)), at(53));
    assert_eq!(drx.state(at(59)), DrxState::RandomAccess);
    assert!(!drx.is_active(at(60)));
    drx.on_contention_free_response(at(70));
    assert!(drx.is_active(at(200)));
    new_data(&mut drx, 200);
    assert_eq!(drx.next_change(at(200)), Some(at(300)));
}

#[test]
fn the_short_cycle_follows_the_inactivity_timer_until_its_timer_expires() {
    let mut drx = Drx::new(&with_short_cycle());
    new_data(&mut drx, 25);
    // Inactivity ends at 125, two short cycles at 205; on-durations at 20 modulo 40.
    assert_eq!(drx.state(at(125)), DrxState::ShortSleep);
    assert_eq!(drx.next_active(at(125)), at(140));
    assert_eq!(drx.next_active(at(150)), at(180));
    assert_eq!(drx.state(at(205)), DrxState::LongSleep);
    assert_eq!(drx.next_active(at(190)), at(340));
}

#[test]
fn drx_commands_end_active_time() {
    let mut drx = Drx::new(&with_short_cycle());
    new_data(&mut drx, 25);
    drx.on_command(at(27), DrxCommand::Drx);
    assert_eq!(drx.state(at(27)), DrxState::ShortSleep);
    assert_eq!(drx.next_active(at(27)), at(60));
    drx.on_command(at(62), DrxCommand::LongDrx);
    assert_eq!(drx.state(at(62)), DrxState::LongSleep);
    assert_eq!(drx.next_active(at(62)), at(340));
}

#[test]
fn an_on_duration_as_long_as_its_cycle_never_ends() {
    let mut drx = Drx::new(&DrxConfig { on_duration: ms(320), ..config() });
    assert_eq!(drx.next_change(at(20)), None);
    assert_eq!(drx.awake(at(10_000)), ms(9_980));
}

#[test]
fn an_idle_ue_is_awake_for_its_duty_cycle() {
    let mut drx = Drx::new(&config());
    // Ten hours: 10 ms in each of 112,500 cycles.
    assert_eq!(drx.awake(at(36_000_000)), ms(10 * 112_500));
}

#[test]
fn downlink_waits_uniformly_over_the_sleep() {
    let mut drx = Drx::new(&config());
    let mut histogram = [0u32; 32];
    for arrival in 0..320 * 32 {
        let now = at(arrival);
        let wait = drx.next_active(now) - now;
        histogram[(wait.as_nanos() / 10_000_000) as usize] += 1;
    }
    // 32 cycles: 10 ms of arrivals do not wait, and 9 more wait less than 10 ms; every other 10 ms
    // of waits has 10 ms of arrivals, and 310 ms is reached by one arrival in each cycle.
    assert_eq!(histogram[0], 32 * 19);
    assert!(histogram[1..31].iter().all(|&count| count == 320));
    assert_eq!(histogram[31], 32);
}

#[test]
fn uplink_waits_only_where_the_switch_says() {
    let start = |uplink_start, data: Option<u64>, now| {
        let mut drx = Drx::new(&DrxConfig { uplink_start, ..config() });
        data.into_iter().for_each(|millis| new_data(&mut drx, millis));
        drx.uplink_start(at(now))
    };
    for (rule, asleep, inactivity_runs, on_duration_runs) in [
        (UplinkStart::AtOnce, 200, 50, 25),
        (UplinkStart::InActiveTime, 340, 50, 25),
        (UplinkStart::InOnDuration, 340, 340, 25),
    ] {
        assert_eq!(start(rule, None, 200), at(asleep), "{rule:?}");
        assert_eq!(start(rule, Some(25), 50), at(inactivity_runs), "{rule:?}");
        assert_eq!(start(rule, None, 25), at(on_duration_runs), "{rule:?}");
    }
}
