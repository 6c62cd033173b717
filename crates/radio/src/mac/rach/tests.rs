//! Scripts for TS 38.321 5.1, and the closed form of the delay.

use super::*;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn at(millis: u64) -> Instant {
    Instant::ZERO + ms(millis)
}

fn config() -> RachConfig {
    RachConfig {
        occasions: Occasions::new(ms(10), ms(1)),
        preparation: ms(1),
        preamble: ms(1),
        response_window_after: ms(2),
        response_window: ms(10),
        response_delay: ms(3),
        msg3_delay: ms(7),
        contention_resolution: ms(48),
        resolution_delay: ms(6),
        backoff: Duration::ZERO,
        preambles_max: 2,
        miss_probability: 0.0,
        contention_probability: 0.0,
    }
}

fn started(config: RachConfig, kind: Preamble) -> RandomAccess {
    let mut rach = RandomAccess::new(&config, Stream::new(1, "rach"));
    rach.start(at(5), kind);
    rach
}

/// All events.
fn events(rach: &mut RandomAccess) -> Vec<RachEvent> {
    core::iter::from_fn(|| rach.poll(Instant::MAX)).collect()
}

fn preamble(millis: u64, count: u32) -> RachEvent {
    RachEvent::Preamble { at: at(millis), count, window: (at(millis + 2), at(millis + 12)) }
}

#[test]
fn the_delay_is_the_sum_of_the_steps() {
    let mut rach = started(config(), Preamble::ContentionBased);
    assert_eq!(rach.next_event(), Some(at(12)));
    assert_eq!(rach.poll(at(11)), None);
    // Occasion 11, preamble 1, window after 2, response 3, Msg3 7, resolution 6.
    assert_eq!(
        events(&mut rach),
        [
            preamble(12, 1),
            RachEvent::Response { at: at(17) },
            RachEvent::Msg3 { at: at(24), until: at(72) },
            RachEvent::Complete { at: at(30) },
        ]
    );
    assert!(!rach.is_ongoing());
}

#[test]
fn contention_free_ends_with_the_response() {
    let mut rach = started(config(), Preamble::ContentionFree);
    let complete = RachEvent::Complete { at: at(17) };
    assert_eq!(events(&mut rach), [preamble(12, 1), RachEvent::Response { at: at(17) }, complete]);
}

#[test]
fn unanswered_preambles_are_repeated_up_to_the_maximum() {
    let mut rach =
        started(RachConfig { miss_probability: 1.0, ..config() }, Preamble::ContentionBased);
    assert_eq!(
        events(&mut rach),
        [
            preamble(12, 1),
            RachEvent::NoResponse { at: at(24) },
            preamble(32, 2),
            RachEvent::NoResponse { at: at(44) },
            RachEvent::Problem { at: at(44) },
        ]
    );
}

#[test]
fn a_response_after_its_window_is_none() {
    let late = RachConfig { response_delay: ms(11), ..config() };
    let mut rach = started(late, Preamble::ContentionFree);
    assert_eq!(events(&mut rach)[1], RachEvent::NoResponse { at: at(24) });
}

#[test]
fn lost_contention_costs_the_whole_timer() {
    let mut rach =
        started(RachConfig { contention_probability: 1.0, ..config() }, Preamble::ContentionBased);
    let events = events(&mut rach);
    assert_eq!(events[3..5], [RachEvent::ContentionLost { at: at(72) }, preamble(82, 2)]);
    assert_eq!(events.last(), Some(&RachEvent::Problem { at: at(142) }));
}

#[test]
fn a_stopped_procedure_can_start_again() {
    let mut rach = started(config(), Preamble::ContentionBased);
    rach.stop();
    assert_eq!(rach.next_event(), None);
    rach.start(at(15), Preamble::ContentionFree);
    // A second cause does not restart the procedure.
    rach.start(at(25), Preamble::ContentionBased);
    assert_eq!(rach.next_event(), Some(at(22)));
}

#[test]
fn the_mean_delay_is_that_of_a_geometric_number_of_attempts() {
    // Occasions everywhere, so that the mean is not rounded: 1 + 2 + 3 + 7 + 6 = 19 ms if it
    // succeeds, and with probability 1/4 each time 1 + 2 + 3 + 7 + 48 + 20/2 = 71 ms before that.
    let config = RachConfig {
        occasions: Occasions::new(Duration::from_nanos(1), Duration::ZERO),
        preparation: Duration::ZERO,
        backoff: ms(20),
        preambles_max: 1000,
        contention_probability: 0.25,
        ..config()
    };
    let mut rach = RandomAccess::new(&config, Stream::new(1, "rach"));
    let (mut total, runs) = (0.0, 20_000);
    for _ in 0..runs {
        rach.start(at(0), Preamble::ContentionBased);
        match events(&mut rach).last() {
            Some(RachEvent::Complete { at }) => total += (*at - Instant::ZERO).as_millis_f64(),
            other => panic!("{other:?}"),
        }
    }
    let mean = total / f64::from(runs);
    let expected = 19.0 + 71.0 / 3.0;
    assert!((mean - expected).abs() < 1.0, "{mean} ms, not {expected}");
}
