//! The retransmission timer (RFC 6298).

use std::sync::{Arc, Mutex};

use airpath_base::{Duration, Instant, Segment};
use airpath_tcp::{
    AckSample, Congestion, CongestionConfig, CongestionControl, Endpoint, EndpointConfig,
    EventKind, RtoEstimator, SlowStartExit, Window,
};

use crate::script::*;

#[test]
fn a_segment_is_sent_again_when_the_rto_runs_out_and_not_before() {
    // RFC 6298 (2.2), (5.1), (5.4)
    let mut end = Script::bulk(&config());
    end.recv_segments(0..10);
    end.tick_in_silence(RTO);
    // RFC 5681 3.1: the loss window is one segment.
    end.recv_segments([0]);
    assert_eq!((end.cwnd(), end.in_flight()), (1, 1));
    assert_eq!(end.window().ssthresh, 5.0);
    assert_eq!(end.counters().timeouts, 1);
    assert!(end.events().contains(&EventKind::RetransmissionTimeout { backoff: 1, rto: RTO }));
}

#[test]
fn the_rto_doubles_up_to_its_maximum() {
    // RFC 6298 (5.5), (2.5)
    let mut config = config();
    config.rto.max = ms(2000);
    let mut end = Script::bulk(&config);
    end.recv_segments(0..10);
    for rto in [300, 600, 1200, 2000, 2000].map(ms) {
        end.tick_in_silence(rto);
        end.recv_segments([0]);
    }
    // RFC 5681 3.1: ssthresh is kept while the same segment is retransmitted again.
    assert_eq!(end.window().ssthresh, 5.0);
}

#[test]
fn new_acknowledgements_restart_the_timer_and_the_last_stops_it() {
    // RFC 6298 (5.2), (5.3)
    let mut end = Script::file(&config(), 2);
    end.tick(RTT);
    end.send(ack(1));
    let timer = end.next_timer().unwrap();
    // SRTT 100 ms, RTTVAR 3/4 × 50 ms
    assert_eq!(timer - end.now, ms(100 + 4 * 37) + ms(2));
    end.send(ack(1));
    assert_eq!(end.next_timer(), Some(timer));
    end.tick(ms(10));
    end.send(ack(2));
    assert_eq!(end.next_timer(), None);
}

#[test]
fn new_data_does_not_restart_a_running_timer() {
    // RFC 6298 (5.1)
    let mut end = Script::open(&config());
    end.offer(u64::from(MSS));
    let timer = end.next_timer();
    end.tick(ms(200));
    end.offer(u64::from(MSS));
    end.recv_segments(0..2);
    assert_eq!(end.next_timer(), timer);
}

#[test]
fn a_fast_retransmission_does_not_restart_a_running_timer() {
    // RFC 6298 (5.1)
    let mut end = Script::bulk(&config());
    let timer = end.next_timer();
    end.tick(RTT);
    for received in 2..=10 {
        end.send(sack(0, &[(1, received)]));
    }
    assert_eq!(end.counters().retransmitted, 1);
    assert_eq!(end.next_timer(), timer);
}

#[test]
fn after_a_timeout_slow_start_sends_everything_again() {
    // RFC 5681 3.1, RFC 6675 5.1
    let mut end = Script::bulk(&config());
    end.recv_segments(0..10);
    end.tick(RTO);
    end.recv_segments([0]);
    end.tick(RTT);
    end.send(ack(1));
    end.recv_segments([1, 2]);
    end.tick(RTT);
    end.send(ack(2));
    end.send(ack(3));
    end.recv_segments([3, 4, 5, 6]);
    end.tick(RTT);
    end.send(ack(7));
    end.recv_segments([7, 8, 9, 10, 11]);
    end.send(ack(10));
    assert_eq!(end.event_names().last(), Some(&"recovery_end"));
}

#[test]
fn what_was_sacked_is_not_sent_again_after_a_timeout() {
    // RFC 6675 5.1
    let mut end = Script::flight(&config());
    end.send(sack(0, &[(1, 3)]));
    end.recv_segments([10, 11]);
    end.tick(RTO);
    end.recv_segments([0]);
    end.send(ack(3));
    assert_eq!(end.recv().seq, at(3));
}

#[test]
fn a_retransmitted_segment_gives_no_rtt() {
    // RFC 6298 (3), Karn's algorithm
    let mut end = Script::bulk(&config());
    end.tick(RTO);
    end.recv_count();
    end.tick(ms(1));
    end.send(ack(1));
    assert_eq!((end.srtt(), end.end.take_rtt_sample()), (Some(RTT), None));
}

#[test]
fn timestamps_give_the_rtt_of_a_retransmission() {
    // RFC 7323 4.1
    let mut end = Script::bulk(&EndpointConfig { timestamps: true, ..config() });
    end.tick(RTO);
    end.recv_count();
    let echo = end.ts_val();
    end.tick(ms(100));
    end.send(Segment { timestamps: stamps(7, echo), ..ack(1) });
    assert_eq!(end.end.take_rtt_sample(), Some(ms(100)));
}

#[test]
fn timestamps_tell_whole_ticks() {
    // Linux 6.18, a SYN and data lost over 13.2 ms: BBR's smallest RTT was 16.000 ms after the handshake, then
    // 14.000 and 13.000.
    // Time 0 is a quarter of a millisecond after a tick.
    for (after, told) in [(99_748, 99), (99_751, 100), (400, 1)] {
        let config = EndpointConfig { timestamps: true, timestamp_tick: ms(1), ..config() };
        let mut end = Script::bulk(&config);
        end.tick(RTO);
        end.recv_count();
        let echo = end.ts_val();
        assert!((250..252).contains(&(echo % 1000)), "{echo}");
        end.tick(Duration::from_micros(after));
        end.send(Segment { timestamps: stamps(7, echo), ..ack(1) });
        assert_eq!(end.end.take_rtt_sample(), Some(ms(told)));
    }
}

#[test]
fn they_tell_the_congestion_control_as_well() {
    for (tick, rtt) in [(ms(1), Some(ms(100))), (Duration::ZERO, None)] {
        let mut config = config();
        (config.timestamps, config.timestamp_tick) = (true, tick);
        let noted = Arc::default();
        let noting = Box::new(Rtts(Arc::clone(&noted)));
        let end = Endpoint::connect(Instant::ZERO, &config).with_congestion_control(noting);
        let mut end = Script::opened(end, &config);
        end.offer(u64::from(MSS));
        end.recv_count();
        end.tick(RTO);
        end.recv_count();
        let echo = end.ts_val();
        end.tick(ms(100));
        end.send(Segment { timestamps: stamps(7, echo), ..ack(1) });
        assert_eq!(noted.lock().unwrap().last(), Some(&rtt));
    }
}

/// Records the RTTs that it receives.
#[derive(Debug)]
struct Rtts(Arc<Mutex<Vec<Option<Duration>>>>);

impl CongestionControl for Rtts {
    fn on_ack(&mut self, ack: &AckSample, _: &mut Window) -> Option<SlowStartExit> {
        self.0.lock().unwrap().push(ack.rtt);
        None
    }

    fn on_congestion(&mut self, _: &Congestion, _: &mut Window) {}

    fn is_model_based(&self) -> bool {
        true
    }
}

#[test]
fn of_several_acknowledged_segments_the_first_gives_the_rtt() {
    // RFC 6298 (3): the wait of a delayed acknowledgement is part of the RTT.
    let mut end = Script::open(&config());
    end.offer(u64::from(MSS));
    end.tick(ms(30));
    end.offer(u64::from(MSS));
    end.tick(ms(100));
    end.send(ack(2));
    assert_eq!(end.end.take_rtt_sample(), Some(ms(130)));
}

#[test]
fn what_is_sacked_alone_is_no_rtt_of_an_acknowledgement() {
    // docs/concepts/metrics.md: each acknowledgement of new data gives a sample. Linux's estimator
    // uses it.
    let mut config = config();
    config.rto.estimator = RtoEstimator::Linux;
    let mut end = Script::bulk(&config);
    let before = end.srtt();
    end.tick(RTT * 2);
    end.send(sack(0, &[(1, 2)]));
    assert!(end.srtt() > before);
    assert_eq!(end.end.take_rtt_sample(), None);
}

#[test]
fn slow_start_after_a_timeout_grows_although_there_is_nothing_new_to_send() {
    // RFC 5681 3.1: what waits to be retransmitted is limited by cwnd too.
    let mut end = Script::file(&EndpointConfig { initial_window: 20, ..config() }, 20);
    end.tick(RTO);
    end.recv_segments([0]);
    end.tick(RTT);
    end.send(ack(1));
    end.recv_segments([1, 2]);
    end.tick(RTT);
    end.send(ack(3));
    end.recv_segments([3, 4, 5, 6]);
}

#[test]
fn after_a_timeout_cwnd_does_not_grow_by_what_was_sacked_before() {
    // RFC 5681 3.1: growth by what an acknowledgement newly acknowledges.
    let mut end = Script::bulk(&config());
    end.recv_segments(0..10);
    end.send(sack(0, &[(7, 8), (9, 10)]));
    end.tick(RTO);
    end.recv_count();
    end.send(sack(0, &[(1, 6), (9, 10)]));
    end.recv_nothing();
    end.send(ack(6));
    // Segment 0, and growth by 1.
    assert_eq!(end.cwnd(), 2);
}

#[test]
fn duplicates_after_a_timeout_do_not_let_more_out() {
    // RFC 5681 3.1: what duplicates report left the network before the loss window was set.
    let mut end = Script::bulk(&EndpointConfig { sack: false, ..config() });
    end.tick(RTO);
    end.recv_count();
    (0..5).for_each(|_| end.send(ack(0)));
    end.recv_nothing();
    assert_eq!(end.in_flight(), 1);
}

#[test]
fn the_backed_off_rto_stays_until_a_segment_sent_once_is_measured() {
    // RFC 6298 5, last note: back-off ends with a new RTT measurement.
    let mut end = Script::bulk(&config());
    end.tick(RTO);
    end.tick(RTO * 2);
    end.recv_count();
    // The RTO is 1.2 s now. The acknowledgement of a retransmission is progress, but not a
    // measurement.
    end.send(ack(1));
    assert_eq!(end.next_timer(), Some(end.now + RTO * 4));
    end.recv_segments([1, 2]);
    end.send(ack(10));
    end.recv_segments(10..16);
    assert_eq!(end.next_timer(), Some(end.now + RTO * 4));
    end.tick(RTT);
    end.send(ack(11));
    assert!(end.next_timer().unwrap() - end.now < RTO);
}

#[test]
fn timestamps_end_the_back_off_with_the_first_progress() {
    // RFC 7323 4.1: every acknowledgement of new data is a measurement.
    let mut end = Script::bulk(&EndpointConfig { timestamps: true, ..config() });
    end.tick(RTO);
    end.tick(RTO * 2);
    let echo = end.ts_val();
    end.tick(RTT);
    end.send(Segment { timestamps: stamps(7, echo), ..ack(1) });
    assert!(end.next_timer().unwrap() - end.now < RTO);
}

#[test]
fn the_timeout_of_another_segment_sets_ssthresh_again() {
    // RFC 5681 3.1: ssthresh is kept only while the same segment is retransmitted again.
    let mut end = Script::bulk(&config());
    end.tick(RTO);
    assert_eq!(end.window().ssthresh, 5.0);
    end.send(ack(1));
    end.tick(RTO * 2);
    assert_eq!((end.window().ssthresh, end.cwnd()), (2.0, 1));
}

#[test]
fn a_fixed_window_outlives_a_timeout() {
    let mut config = config();
    config.congestion = CongestionConfig::Fixed { segments: 30 };
    let mut end = Script::bulk(&config);
    end.recv_segments(0..30);
    end.tick(RTO);
    end.recv_segments(0..30);
    assert_eq!(end.cwnd(), 30);
    // There is no slow start either.
    end.send(ack(30));
    assert!(!end.event_names().contains(&"slow_start_exit"));
}

#[test]
fn the_first_segment_sent_again_restarts_the_timer_of_linux() {
    // RFC 6298 (5.1) starts the timer only if it is not running.
    for (estimator, restarts) in [(RtoEstimator::Rfc6298, false), (RtoEstimator::Linux, true)] {
        let mut config = config();
        config.rto.estimator = estimator;
        let mut end = Script::bulk(&config);
        end.recv_segments(0..10);
        let due = end.next_timer();
        end.tick(RTT);
        end.send(sack(0, &[(1, 10)]));
        assert_eq!(end.recv().seq, at(0));
        assert_eq!(end.next_timer() > due, restarts, "{estimator:?}");
        assert_eq!(end.next_timer() == due, !restarts, "{estimator:?}");
    }
}

#[test]
fn what_arrives_ahead_of_the_first_segment_sent_again_restarts_the_timer_of_linux() {
    // ADR 64: Linux 6.18 had no time-out behind a queue that other flows made longer. RFC 6298
    // (5.3) counts only what is acknowledged.
    for (estimator, restarts) in [(RtoEstimator::Rfc6298, false), (RtoEstimator::Linux, true)] {
        let mut config = config();
        config.rto.estimator = estimator;
        let mut end = Script::flight(&config);
        end.send(sack(0, &[(1, 5)]));
        assert_eq!(end.recv().seq, at(0));
        let due = end.next_timer();
        end.tick(ms(50));
        // Sent before segment 0 was retransmitted.
        end.send(sack(0, &[(1, 10)]));
        assert_eq!(end.next_timer() > due, restarts, "{estimator:?}");
        let due = end.next_timer();
        end.recv_segments(10..14);
        end.tick(ms(50));
        // Sent after segment 0 was retransmitted.
        end.send(sack(0, &[(1, 11)]));
        assert_eq!(end.next_timer(), due, "{estimator:?}");
    }
}
