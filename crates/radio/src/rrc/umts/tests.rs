//! Scripts for the states of TS 25.331 7.

use super::*;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + ms(millis)
}

fn config() -> UmtsConfig {
    UmtsConfig {
        initial: RrcState::Idle,
        setup: ms(2_000),
        setup_state: SetupState::Dch,
        pch_to_fach: ms(200),
        fach_to_dch: ms(600),
        uplink_threshold: 256,
        downlink_threshold: 512,
        dch_inactivity: ms(5_000),
        fach_inactivity: ms(12_000),
        pch: PchConfig::IdleAfter(Some(ms(1_800_000))),
        paging: Occasions::new(ms(640), ms(30)),
        paging_delay: Duration::ZERO,
        fach: Fach {
            downlink: Occasions::new(ms(10), ms(0)),
            downlink_time: ms(10),
            uplink: Occasions::new(ms(40), ms(0)),
            uplink_time: ms(40),
            bytes: 42,
        },
    }
}

fn umts(config: UmtsConfig, initial: RrcState) -> Umts {
    Umts::new(&UmtsConfig { initial, ..config })
}

fn transitions(rrc: &mut Umts, until: u64) -> Vec<(u64, RrcState)> {
    core::iter::from_fn(|| rrc.poll(at(until)))
        .map(|transition| (transition.at.as_nanos() / 1_000_000, transition.to))
        .collect()
}

#[test]
fn all_the_way_up_and_down() {
    let mut rrc = umts(config(), RrcState::Idle);
    assert_eq!(rrc.request(at(0), Direction::Uplink, 40), at(2_000));
    rrc.on_activity(at(3_000));
    assert_eq!(
        transitions(&mut rrc, 10_000_000),
        [
            (2_000, RrcState::CellDch),
            (8_000, RrcState::CellFach),
            (20_000, RrcState::CellPch),
            (1_820_000, RrcState::Idle),
        ]
    );
    assert_eq!(rrc.next_event(), None);
}

#[test]
fn without_pch_fach_ends_in_idle() {
    let mut rrc = umts(UmtsConfig { pch: PchConfig::Unused, ..config() }, RrcState::CellFach);
    assert_eq!(transitions(&mut rrc, 10_000_000), [(12_000, RrcState::Idle)]);
}

#[test]
fn fach_carries_what_the_threshold_allows_and_is_left_above_it() {
    let mut rrc = umts(config(), RrcState::CellFach);
    assert_eq!(rrc.request(at(100), Direction::Uplink, 256), at(100));
    assert_eq!(rrc.request(at(100), Direction::Downlink, 512), at(100));
    assert_eq!(rrc.next_event(), Some(at(12_000)));
    // One byte more: CELL_DCH 600 ms later, CELL_FACH until then.
    assert_eq!(rrc.request(at(200), Direction::Uplink, 257), at(200));
    assert_eq!(rrc.request(at(300), Direction::Downlink, 10_000), at(300));
    assert_eq!(rrc.state_at(at(799)), RrcState::CellFach);
    assert_eq!(rrc.state_at(at(800)), RrcState::CellDch);
}

#[test]
fn activity_restarts_the_timer_of_the_state() {
    let mut rrc = umts(config(), RrcState::CellDch);
    rrc.on_activity(at(4_999));
    assert_eq!(rrc.state_at(at(9_998)), RrcState::CellDch);
    assert_eq!(rrc.state_at(at(9_999)), RrcState::CellFach);
    rrc.on_activity(at(20_000));
    assert_eq!(transitions(&mut rrc, 31_999).len(), 1);
    assert_eq!(transitions(&mut rrc, 32_000), [(32_000, RrcState::CellPch)]);
}

#[test]
fn pch_goes_to_fach_and_on_if_much_waits() {
    let mut rrc = umts(config(), RrcState::CellPch);
    // The page at 30; then a cell update, then the reconfiguration that 600 bytes require.
    assert_eq!(rrc.request(at(5), Direction::Downlink, 600), at(230));
    assert_eq!(transitions(&mut rrc, 1_000), [(230, RrcState::CellFach), (830, RrcState::CellDch)]);
    let mut rrc = umts(config(), RrcState::CellPch);
    assert_eq!(rrc.request(at(5), Direction::Downlink, 512), at(230));
    assert_eq!(transitions(&mut rrc, 1_000), [(230, RrcState::CellFach)]);
}

#[test]
fn uplink_does_not_wait_for_a_page_and_keeps_what_else_is_known() {
    let mut rrc = umts(config(), RrcState::CellPch);
    assert_eq!(rrc.request(at(100), Direction::Downlink, 600), at(670 + 200));
    assert_eq!(rrc.request(at(110), Direction::Uplink, 40), at(310));
    assert_eq!(transitions(&mut rrc, 910), [(310, RrcState::CellFach), (910, RrcState::CellDch)]);
}

#[test]
fn a_connection_may_begin_in_fach() {
    let mut rrc = umts(UmtsConfig { setup_state: SetupState::Fach, ..config() }, RrcState::Idle);
    assert_eq!(rrc.request(at(0), Direction::Uplink, 40), at(2_000));
    assert_eq!(rrc.request(at(50), Direction::Uplink, 400), at(2_000));
    assert_eq!(
        transitions(&mut rrc, 3_000),
        [(2_000, RrcState::CellFach), (2_600, RrcState::CellDch)]
    );
}
