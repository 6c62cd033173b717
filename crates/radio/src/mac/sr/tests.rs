//! Scripts for TS 38.321 5.4.4, its closed form, and a comparison of every slot with the clause.

use proptest::prelude::*;

use super::*;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + ms(millis)
}

fn config() -> SrConfig {
    SrConfig {
        occasions: Some(Occasions::new(ms(10), ms(2))),
        prohibit: Some(ms(25)),
        transmissions_max: 3,
        preparation: Duration::ZERO,
        miss_probability: 0.0,
    }
}

fn sr(config: SrConfig) -> SchedulingRequest {
    SchedulingRequest::new(&config, Stream::new(1, "sr"))
}

fn transmitted(millis: u64, count: u32) -> Option<SrEvent> {
    Some(SrEvent::Transmitted { at: at(millis), count, received: true })
}

#[test]
fn sent_at_occasions_outside_the_prohibit_timer_then_random_access() {
    let mut sr = sr(config());
    sr.trigger(at(5));
    assert_eq!(sr.poll(at(11)), None);
    assert!(!sr.is_sent_and_pending());
    assert_eq!(sr.poll(at(12)), transmitted(12, 1));
    assert!(sr.is_sent_and_pending());
    // Prohibited until 37, so neither at 22 nor at 32.
    assert_eq!(sr.next_event(), Some(at(42)));
    assert_eq!(sr.poll(at(42)), transmitted(42, 2));
    assert_eq!(sr.poll(at(72)), transmitted(72, 3));
    let cause = SrFailure::TransmissionsMax;
    assert_eq!(sr.poll(at(102)), Some(SrEvent::RandomAccess { at: at(102), cause }));
    assert_eq!(sr.next_event(), None);
    // PUCCH is released: the next request goes to random access at once.
    sr.trigger(at(110));
    let cause = SrFailure::NoResource;
    assert_eq!(sr.poll(at(110)), Some(SrEvent::RandomAccess { at: at(110), cause }));
    sr.restore(at(150));
    sr.trigger(at(151));
    assert_eq!(sr.poll(at(152)), transmitted(152, 1));
}

#[test]
fn an_occasion_at_the_end_of_the_prohibit_timer_can_be_used() {
    let mut sr = sr(SrConfig { prohibit: Some(ms(20)), ..config() });
    sr.trigger(at(2));
    assert_eq!(sr.poll(at(2)), transmitted(2, 1));
    assert_eq!(sr.next_event(), Some(at(22)));
}

#[test]
fn pending_until_a_report_covers_the_last_trigger() {
    let mut sr = sr(config());
    sr.trigger(at(5));
    sr.poll(at(12));
    sr.trigger(at(20));
    // Assembled before the second trigger: it does not cover that, and SR_COUNTER stays.
    sr.on_pdu(at(19));
    assert_eq!(sr.poll(at(42)), transmitted(42, 2));
    sr.on_pdu(at(20));
    assert_eq!(sr.next_event(), None);
    // sr-ProhibitTimer was stopped; SR_COUNTER restarts.
    sr.trigger(at(45));
    assert_eq!(sr.poll(at(52)), transmitted(52, 1));
}

#[test]
fn a_deferred_occasion_does_not_count() {
    let mut sr = sr(config());
    sr.trigger(at(5));
    sr.defer(at(13));
    assert_eq!(sr.poll(at(22)), transmitted(22, 1));
}

#[test]
fn preparation_and_release() {
    let mut sr = sr(SrConfig { preparation: ms(2), ..config() });
    sr.trigger(at(11));
    assert_eq!(sr.next_event(), Some(at(22)));
    sr.release(at(15));
    let cause = SrFailure::NoResource;
    assert_eq!(sr.poll(at(15)), Some(SrEvent::RandomAccess { at: at(15), cause }));
}

#[test]
fn the_mean_wait_is_half_a_period() {
    for period in [1, 2, 5, 10, 20, 40, 80] {
        let occasions = Some(Occasions::new(ms(period), ms(1)));
        let mut sr = sr(SrConfig { occasions, ..config() });
        // Arrivals in every quarter millisecond of several periods.
        let (mut total, arrivals) = (0, 4 * 10 * period);
        for quarter in 0..arrivals {
            let now = Instant::from_nanos(quarter * 250_000);
            sr.trigger(now);
            total += (sr.next_event().unwrap() - now).as_nanos();
            sr.cancel();
        }
        // On that grid the mean is half a period less half a step.
        assert_eq!(total / arrivals, period * 500_000 - 125_000, "{period} ms");
    }
}

#[test]
fn missed_requests_are_as_many_as_configured() {
    let config = SrConfig { miss_probability: 0.25, transmissions_max: u32::MAX, ..config() };
    let mut sr = sr(config);
    sr.trigger(at(0));
    let missed = (0..10_000)
        .filter(|_| {
            let at = sr.next_event().unwrap();
            matches!(sr.poll(at), Some(SrEvent::Transmitted { received: false, .. }))
        })
        .count();
    assert!((2_350..2_650).contains(&missed), "{missed}");
}

proptest! {
    /// Compares every slot with TS 38.321 5.4.4, across the wrap of the SFN.
    #[test]
    fn every_slot_is_as_the_clause_says(
        period in prop_oneof![Just(1u64), Just(4), Just(10), Just(40), Just(80)],
        offset in 0u64..80,
        prohibit in proptest::option::of(1u64..50),
        transmissions_max in 1u32..6,
        script in proptest::collection::vec((0u64..120, any::<bool>()), 1..20),
    ) {
        let mut sr = sr(SrConfig {
            occasions: Some(Occasions::new(ms(period), ms(offset % period))),
            prohibit: prohibit.map(ms),
            transmissions_max,
            ..config()
        });
        let (mut pending, mut counter, mut prohibit_timer) = (false, 0, 0u64);
        let mut released = false;
        let mut script = script.into_iter().scan(10_200, |slot, (gap, trigger)| {
            *slot += gap;
            Some((*slot, trigger))
        }).peekable();
        for slot in 10_200..11_500 {
            while let Some((_, trigger)) = script.next_if(|&(at, _)| at == slot) {
                if trigger {
                    sr.trigger(at(slot));
                    if !pending {
                        counter = 0;
                    }
                    pending = true;
                } else {
                    sr.on_pdu(at(slot));
                    pending = false;
                    prohibit_timer = 0;
                }
            }
            let (sfn, subframe) = (slot / 10 % 1024, slot % 10);
            let occasion = (sfn * 10 + subframe) % period == offset % period;
            let mut expected = None;
            if pending && released {
                let cause = SrFailure::NoResource;
                expected = Some(SrEvent::RandomAccess { at: at(slot), cause });
                pending = false;
            } else if pending && occasion && prohibit_timer == 0 {
                if counter < transmissions_max {
                    counter += 1;
                    prohibit_timer = prohibit.unwrap_or(0);
                    expected = transmitted(slot, counter);
                } else {
                    let cause = SrFailure::TransmissionsMax;
                    expected = Some(SrEvent::RandomAccess { at: at(slot), cause });
                    released = true;
                    pending = false;
                }
            }
            prop_assert_eq!(sr.poll(at(slot)), expected);
            prohibit_timer = prohibit_timer.saturating_sub(1);
        }
    }
}
