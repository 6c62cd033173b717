//! RACK-TLP (RFC 8985): loss detection by time, and probes for the tail.

use airpath_base::{Duration, Instant};
use airpath_tcp::{Endpoint, EndpointConfig, EventKind, LossDetection, RecoveryConfig};

use crate::script::*;

fn rack() -> EndpointConfig {
    let recovery = RecoveryConfig { detection: LossDetection::Rack, ..RecoveryConfig::default() };
    EndpointConfig { recovery, ..config() }
}

fn with_probes() -> EndpointConfig {
    let recovery = RecoveryConfig {
        detection: LossDetection::Rack,
        tail_loss_probe: true,
        ..RecoveryConfig::default()
    };
    EndpointConfig { recovery, ..config() }
}

/// Time 0 is this long after a tick, as in an emulation.
const AFTER_TICK: Duration = Duration::from_micros(250);

#[test]
fn one_sacked_segment_is_enough_after_the_reordering_window() {
    // RFC 8985 6.2 step 4: a quarter of the minimum RTT, 25 ms here; step 5: after it the segment
    // is lost.
    let mut end = Script::flight(&rack());
    end.send(sack(0, &[(1, 2)]));
    end.recv_segments([10]);
    end.tick_in_silence(ms(25));
    end.recv_segments([0]);
    assert_eq!(end.event_names(), ["slow_start_exit", "recovery_start"]);
}

#[test]
fn a_timer_with_ticks_runs_out_with_the_one_after_the_next_at_the_earliest() {
    // Seen with Linux 6.18 (CONFIG_HZ=250) behind a full queue, in captures at the server: with
    // half a millisecond left, recovery began 4.2 to 5.5 ms after the acknowledgement. With 3.2 ms
    // left, the segment was found lost by the acknowledgement 5.6 ms and two ticks later: the timer
    // is 2 ms longer, so 25 ms are six ticks of 5 ms.
    let waits = [(20, 0, 60), (20, 15, 45), (4, 1, 31), (4, 3, 29), (5, 1, 34), (50, 0, 100)];
    for (tick, late, waits) in waits {
        let mut config = rack();
        config.recovery.timer_tick = ms(tick);
        let mut end = Script::bulk(&config);
        end.recv_segments(0..10);
        end.tick(RTT + ms(late));
        end.send(sack(0, &[(1, 2)]));
        end.recv_segments([10]);
        end.tick_in_silence(ms(waits) - AFTER_TICK);
        end.recv_segments([0]);
    }
}

#[test]
fn three_sacked_segments_need_no_window_as_long_as_nothing_was_reordered() {
    // RFC 8985 6.2 step 4: DupThresh
    let mut end = Script::flight(&rack());
    end.send(sack(0, &[(1, 4)]));
    assert_eq!(end.recv().seq, at(0));
}

#[test]
fn the_acknowledgement_that_ends_a_recovery_judges_with_a_window_again() {
    // Seen with Linux 6.18 at 1.6 Mb/s: the next recovery began one acknowledgement later.
    let mut end = Script::flight(&rack());
    end.send(sack(0, &[(1, 10)]));
    assert_eq!(end.recv().seq, at(0));
    assert!(end.recv_count() >= 2, "new data follow");
    end.tick(RTT);
    end.events();
    end.send(sack(10, &[(11, 12)]));
    assert_eq!(end.event_names(), ["recovery_end"]);
    end.recv_count();
    end.tick_in_silence(ms(25));
    assert_eq!(end.recv().seq, at(10));
    assert_eq!(end.event_names(), ["recovery_start"]);
}

#[test]
fn after_reordering_the_window_holds_for_three_too() {
    // RFC 8985 6.2 step 3: a segment that was sent once arrives below what has arrived.
    let mut end = Script::flight(&rack());
    end.send(sack(0, &[(1, 2)]));
    end.send(ack(2));
    end.recv_count();
    end.send(sack(2, &[(3, 8)]));
    assert!(!end.event_names().contains(&"recovery_start"));
    end.recv_count();
    end.tick(ms(25));
    assert!(end.event_names().contains(&"recovery_start"));
    assert_eq!(end.recv().seq, at(2));
}

#[test]
fn a_lost_retransmission_is_found_by_what_was_sent_after_it() {
    // RFC 8985 3.3.2, 6.2 step 5: retransmissions are given their time too.
    let mut end = Script::flight(&rack());
    end.send(sack(0, &[(1, 10)]));
    let sent = end.recv();
    assert_eq!(sent.seq, at(0));
    let new = end.recv_len() as u64;
    end.recv_segments(10..10 + new);
    end.tick(RTT);
    // New data sent with the retransmission arrives, the retransmission does not.
    end.send(sack(0, &[(1, 10 + new)]));
    assert_eq!(end.recv().seq, at(0));
    assert_eq!(end.counters().timeouts, 0);
}

#[test]
fn a_tail_is_found_by_a_retransmission_that_was_sent_after_it() {
    // RFC 8985 6.2 step 5 uses the time of transmission, not sequence numbers. Segments 0 and 7 to
    // 9, the last of a file, are lost; nothing is SACKed above the tail.
    let mut end = Script::file(&rack(), 10);
    end.tick(RTT);
    end.send(sack(0, &[(1, 7)]));
    end.recv_segments([0]);
    end.tick(RTT);
    end.send(ack(7));
    // Proportional reduction is off: half of the window is sent, with nothing in flight.
    end.recv_segments([7, 8, 9]);
    end.tick(RTT);
    end.send(ack(10));
    assert_eq!(end.counters().timeouts, 0);
    assert_eq!(end.counters().retransmitted, 4);
}

#[test]
fn a_tail_sent_after_the_retransmission_is_not_judged_by_it() {
    let mut end = Script::file(&rack(), 10);
    end.tick(RTT);
    end.send(sack(0, &[(1, 10)]));
    end.recv_segments([0]);
    // Three new segments are sent a millisecond after the retransmission.
    end.tick(ms(1));
    end.offer(3 * u64::from(MSS));
    end.recv_segments(10..13);
    end.tick(RTT - ms(1));
    end.send(ack(10));
    end.recv_nothing();
    end.tick(ms(1));
    end.send(ack(13));
    assert_eq!(end.counters().retransmitted, 1);
}

#[test]
fn blocks_of_one_acknowledgement_are_no_reordering_whatever_their_order() {
    // RFC 2018 4: the newest block comes first. Both are newly covered by one acknowledgement, as
    // after an acknowledgement was lost or compressed; nothing was overtaken.
    for blocks in [[(5, 6), (2, 4)], [(2, 4), (5, 6)]] {
        let mut end = Script::flight(&rack());
        end.send(sack(0, &blocks));
        // RFC 8985 6.2 step 4: three are SACKed and nothing was reordered, so there is no window.
        assert_eq!(end.recv().seq, at(0), "{blocks:?}");
    }
}

#[test]
fn a_loss_without_anything_sacked_above_it_waits_for_the_timer() {
    let mut end = Script::bulk(&rack());
    end.recv_segments(0..10);
    end.tick_in_silence(RTO);
    // RFC 8985 6.3: the first segment, and those overdue.
    end.recv_segments([0]);
}

#[test]
fn a_time_out_spares_what_was_sent_lately() {
    // RFC 8985 6.3
    let mut end = Script::flight(&rack());
    end.send(ack(1));
    end.recv_segments([10, 11]);
    // RFC 6298 (5.3): the timer restarts; segment 1 is now an RTT older than 10 and 11.
    end.tick(end.next_timer().unwrap() - end.now);
    assert_eq!(end.counters().timeouts, 1);
    assert_eq!(end.recv().seq, at(1));
}

#[test]
fn after_a_time_out_a_model_has_as_much_as_is_under_way_and_one_more() {
    // draft-ietf-ccwg-bbr-06 5.6.4.4, BBROnEnterRTO()
    let config = EndpointConfig { initial_window: 20, ..rack() };
    let end = Endpoint::connect(Instant::ZERO, &config);
    let end = end.with_congestion_control(Box::new(Noting::default()));
    let mut end = Script::opened(end, &config);
    end.offer(10 * u64::from(MSS));
    end.tick(RTO - ms(20));
    end.offer(5 * u64::from(MSS));
    end.recv_segments(0..15);
    end.tick(ms(20));
    // The first ten are lost.
    end.recv_segments([0]);
    assert_eq!((end.cwnd(), end.in_flight()), (6, 6));
}

#[test]
fn a_probe_goes_out_after_two_round_trips_with_the_last_segment() {
    // RFC 8985 7.2, 7.3
    let mut end = Script::file(&with_probes(), 5);
    end.tick_in_silence(RTT * 2);
    end.recv_segments([4]);
    assert_eq!(end.event_names(), ["tail_loss_probe"]);
    assert_eq!((end.counters().probes, end.counters().timeouts), (1, 0));
    // 7.3: the retransmission timer restarts.
    assert_eq!(end.next_timer(), Some(end.now + RTO));
}

#[test]
fn a_probe_goes_out_with_a_tick_of_the_kernel() {
    // Linux 6.18 at 250 Hz: two round trips of 39.4 ms and two ticks of 4 ms are 22 ticks, and the
    // timer expires at the tick after them.
    let mut config = with_probes();
    config.recovery.timer_tick = ms(4);
    let mut end = Script::open(&config);
    end.tick(ms(1));
    end.offer(5 * u64::from(MSS));
    end.recv_segments(0..5);
    // From 101 ms: 208 ms are 52 ticks, and 100 ms were 25.
    end.tick_in_silence(ms(211) - AFTER_TICK);
    end.recv_segments([4]);
    assert_eq!(end.event_names(), ["tail_loss_probe"]);
}

#[test]
fn a_long_timer_runs_out_with_every_eighth_tick() {
    // Linux 6.18 at 250 Hz: time-outs of 260 ms occurred 267 to 295 ms after the acknowledgement.
    for (late, waits) in [(0, 316), (15, 301), (16, 332)] {
        let mut config = rack();
        config.recovery.timer_tick = ms(4);
        let mut end = Script::open(&config);
        end.tick(ms(late));
        end.offer(5 * u64::from(MSS));
        end.recv_segments(0..5);
        // 300 ms are 75 ticks, and 100 ms were 25.
        end.tick_in_silence(ms(waits) - AFTER_TICK);
        assert_eq!(end.counters().timeouts, 1, "{late}");
    }
}

#[test]
fn a_probe_prefers_new_data_whatever_cwnd_says() {
    // RFC 8985 7.3
    let mut end = Script::bulk(&with_probes());
    end.recv_segments(0..10);
    end.tick(RTT * 2);
    end.recv_segments([10]);
    assert_eq!(end.in_flight(), 11);
}

#[test]
fn a_single_segment_leaves_time_for_a_delayed_acknowledgement() {
    // RFC 8985 7.2: 2 SRTT + WCDelAckT, but the RTO of 300 ms comes first.
    let mut end = Script::open(&with_probes());
    end.offer(u64::from(MSS));
    end.recv_segments([0]);
    end.tick_in_silence(RTO);
    end.recv_segments([0]);
}

#[test]
fn the_probe_shows_the_lost_tail() {
    // RFC 8985 7: the SACK of the last segment starts recovery of the preceding ones.
    let mut end = Script::file(&with_probes(), 5);
    end.tick(RTT);
    end.send(ack(2));
    end.tick(RTT * 2);
    end.recv_segments([4]);
    end.tick(RTT);
    end.send(sack(2, &[(4, 5)]));
    assert_eq!(end.counters().timeouts, 0);
    end.recv_segments([2, 3]);
}

#[test]
fn a_loss_that_the_probe_repaired_is_congestion() {
    // RFC 8985 7.4.2: the acknowledgement exceeds the probe's end.
    let mut end = Script::file(&with_probes(), 5);
    end.tick(RTT * 2);
    end.recv_segments([4]);
    end.offer(u64::from(MSS));
    end.recv_segments([5]);
    end.tick(RTT);
    end.send(ack(6));
    assert!(end.event_names().contains(&"reduction"));
    assert!(end.cwnd() < 10);
}

#[test]
fn a_probe_that_was_not_needed_costs_nothing() {
    // RFC 8985 7.4.2: the duplicate is reported (RFC 2883).
    let mut end = Script::file(&with_probes(), 5);
    end.tick(RTT * 2);
    end.recv_segments([4]);
    end.send(ack(5));
    end.send(sack(5, &[(4, 5)]));
    end.offer(u64::from(MSS));
    end.recv_segments([5]);
    end.send(ack(6));
    assert!(!end.event_names().contains(&"reduction"));
    assert_eq!(end.cwnd(), 10);
}

#[test]
fn a_reported_duplicate_widens_the_reordering_window() {
    // RFC 8985 6.2 step 4: reo_wnd_mult grows with each round trip that has a D-SACK.
    let mut end = Script::flight(&rack());
    end.send(sack(0, &[(1, 2)]));
    end.tick(ms(25));
    end.send(ack(2)); // what was taken for lost arrives
    end.send(sack(2, &[(0, 1)])); // and so does its retransmission
    let ended = |events: Vec<EventKind>| {
        events.iter().any(|event| matches!(event, EventKind::RecoveryEnd { .. }))
    };
    assert!(!ended(end.events()));
    end.tick(ms(75));
    let top = 10 + end.recv_len() as u64 - 1;
    end.send(ack(top));
    end.recv_count();
    assert!(ended(end.events()));
    end.tick(RTT);
    end.send(sack(top, &[(top + 1, top + 2)]));
    end.recv_count();
    end.tick(ms(50) - NANO);
    assert!(!end.event_names().contains(&"recovery_start"));
    end.tick(NANO);
    assert!(end.event_names().contains(&"recovery_start"));
}
