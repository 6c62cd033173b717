//! Scripts for the states of TS 36.331 4.2.1 and TS 38.331 4.2.1.

use proptest::prelude::*;

use super::*;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + ms(millis)
}

/// LTE: pages at 50 modulo 1280 ms.
fn lte() -> ConnectionConfig {
    ConnectionConfig {
        initial: RrcState::Idle,
        setup: ms(80),
        inactivity: Some(ms(10_000)),
        inactive: None,
        paging: Occasions::new(ms(1_280), ms(50)),
        paging_delay: ms(20),
    }
}

fn nr() -> ConnectionConfig {
    let inactive = InactiveConfig {
        resume: ms(10),
        idle_after: Some(ms(60_000)),
        paging: Occasions::new(ms(320), ms(10)),
    };
    ConnectionConfig { inactive: Some(inactive), ..lte() }
}

fn transitions(rrc: &mut Connection, until: Instant) -> Vec<(u64, RrcState)> {
    core::iter::from_fn(|| rrc.poll(until))
        .map(|transition| (transition.at.as_nanos() / 1_000_000, transition.to))
        .collect()
}

#[test]
fn uplink_connects_at_once_downlink_at_the_paging_occasion() {
    let mut rrc = Connection::new(&lte());
    assert_eq!(rrc.next_event(), None);
    assert_eq!(rrc.request(at(100), Direction::Uplink), at(180));
    assert_eq!(rrc.state_at(at(179)), RrcState::Idle);
    assert_eq!(rrc.state_at(at(180)), RrcState::Connected);
    assert_eq!(rrc.request(at(200), Direction::Downlink), at(200));

    let mut rrc = Connection::new(&lte());
    // 20 ms to the base station: too late for the occasion at 50.
    assert_eq!(rrc.request(at(40), Direction::Downlink), at(1_330 + 80));
    // More downlink data waits for the same page; uplink data does not.
    assert_eq!(rrc.request(at(60), Direction::Downlink), at(1_410));
    assert_eq!(rrc.request(at(70), Direction::Uplink), at(150));
    assert_eq!(rrc.request(at(80), Direction::Downlink), at(150));
}

#[test]
fn released_after_inactivity() {
    let mut rrc = Connection::new(&lte());
    rrc.request(at(0), Direction::Uplink);
    assert_eq!(transitions(&mut rrc, at(100)), [(80, RrcState::Connected)]);
    assert_eq!(rrc.next_event(), Some(at(10_080)));
    rrc.on_activity(at(5_000));
    assert_eq!(rrc.next_event(), Some(at(15_000)));
    assert_eq!(rrc.state_at(at(14_999)), RrcState::Connected);
    assert_eq!(rrc.state_at(at(15_000)), RrcState::Idle);
    assert_eq!(rrc.next_event(), Some(at(15_000)));
    assert_eq!(transitions(&mut rrc, at(15_000)), [(15_000, RrcState::Idle)]);
    assert_eq!(rrc.next_event(), None);
}

#[test]
fn nr_goes_through_inactive() {
    let mut rrc = Connection::new(&ConnectionConfig { initial: RrcState::Connected, ..nr() });
    assert_eq!(
        transitions(&mut rrc.clone(), at(100_000)),
        [(10_000, RrcState::Inactive), (70_000, RrcState::Idle)]
    );
    // RAN paging at 10 modulo 320 ms (31 cycles after the SFN's wrap), and a resume.
    assert_eq!(rrc.request(at(20_000), Direction::Downlink), at(10_240 + 9_930 + 10));
    assert_eq!(rrc.request(at(20_001), Direction::Uplink), at(20_011));
    assert_eq!(rrc.state_at(at(20_011)), RrcState::Connected);
}

#[test]
fn a_promotion_is_not_overtaken_by_the_timer() {
    let mut rrc = Connection::new(&ConnectionConfig { initial: RrcState::Inactive, ..nr() });
    assert_eq!(rrc.request(at(59_995), Direction::Uplink), at(60_005));
    assert_eq!(transitions(&mut rrc, at(60_005)), [(60_005, RrcState::Connected)]);
}

#[test]
fn never_released_without_a_timer() {
    let initial = RrcState::Connected;
    let rrc = Connection::new(&ConnectionConfig { initial, inactivity: None, ..lte() });
    assert_eq!(rrc.next_event(), None);
}

proptest! {
    /// The result is the same whether it is polled every millisecond or not at all.
    #[test]
    fn nothing_depends_on_how_often_it_is_asked(
        script in proptest::collection::vec((1u64..4_000, 0u8..3), 1..20),
    ) {
        let config = ConnectionConfig { inactivity: Some(ms(700)), ..nr() };
        let mut often = Connection::new(&config);
        let mut rarely = often.clone();
        let (mut now, mut seen) = (0, Vec::new());
        for (gap, operation) in script {
            for passing in now..now + gap {
                seen.extend(transitions(&mut often, at(passing)));
            }
            now += gap;
            for rrc in [&mut often, &mut rarely] {
                match operation {
                    0 => drop(rrc.request(at(now), Direction::Uplink)),
                    1 => drop(rrc.request(at(now), Direction::Downlink)),
                    _ => rrc.on_activity(at(now)),
                }
            }
        }
        seen.extend(transitions(&mut often, at(now + 100_000)));
        prop_assert_eq!(seen, transitions(&mut rarely, at(now + 100_000)));
    }
}
