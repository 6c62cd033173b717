//! Loss detection and fast recovery: RFC 6675 with SACK, RFC 6582 without.

use airpath_base::Segment;

use crate::script::*;
use airpath_tcp::{EndpointConfig, EventKind};

#[test]
fn two_sacked_segments_are_not_a_loss() {
    // RFC 6675 4, IsLost(): more than (DupThresh - 1) segments.
    let mut end = Script::flight(&config());
    end.send(sack(0, &[(1, 2)]));
    end.send(sack(0, &[(1, 3)]));
    // RFC 3042: limited transmit, one new segment for each duplicate.
    end.recv_segments([10, 11]);
    assert_eq!(end.cwnd(), 10);
    assert_eq!(end.event_names(), [""; 0]);
}

#[test]
fn the_third_sacked_segment_is_a_loss_and_the_retransmission_goes_out_at_once() {
    // RFC 6675 5 (4.3): sent although the pipe, 10 - 1 + 2 - 3, is larger than the new cwnd.
    let mut end = Script::flight(&config());
    end.send(sack(0, &[(1, 3)]));
    end.recv_segments([10, 11]);
    end.send(sack(0, &[(1, 4)]));
    end.recv_segments([0]);
    assert_eq!(end.event_names(), ["slow_start_exit", "recovery_start"]);
    // 5 (C): then nothing is sent until the pipe is below cwnd.
    assert!(end.in_flight() > end.cwnd());
    end.send(sack(0, &[(1, 5)]));
    end.recv_nothing();
}

#[test]
fn without_sack_the_retransmission_goes_out_at_once() {
    // RFC 5681 3.2 (3)
    let mut end = Script::flight(&EndpointConfig { sack: false, ..config() });
    (0..3).for_each(|_| end.send(ack(0)));
    end.recv_segments([10, 11, 0]);
}

#[test]
fn recovery_ends_when_what_was_outstanding_at_its_start_is_acknowledged() {
    // RFC 6675 5 (A): RecoveryPoint is HighData, here segment 12.
    let mut end = Script::flight(&config());
    for received in 2..=10 {
        end.send(sack(0, &[(1, received)]));
    }
    let starts: Vec<_> = end.events();
    assert!(
        starts.iter().any(|event| matches!(event, EventKind::RecoveryStart { cwnd: 10, .. })),
        "{starts:?}"
    );
    end.recv_count();
    end.tick(RTT);
    end.send(ack(11));
    assert_eq!(end.event_names(), [""; 0]);
    end.send(ack(12));
    assert_eq!(end.event_names(), ["recovery_end"]);
}

#[test]
fn further_losses_of_the_same_window_do_not_reduce_it_again() {
    // RFC 6675 5: one reduction until RecoveryPoint.
    let mut end = Script::flight(&config());
    // Segments 0 and 5 are lost.
    for received in 2..=5 {
        end.send(sack(0, &[(1, received)]));
    }
    let window = end.window();
    for received in 7..=10 {
        end.send(sack(0, &[(6, received), (1, 5)]));
    }
    let started = end.events();
    let starts = started.iter().filter(|event| event.name() == "recovery_start").count();
    assert_eq!((starts, end.window()), (1, window));
}

#[test]
fn without_sack_the_third_duplicate_is_a_loss_and_the_second_is_not() {
    // RFC 5681 3.2 (2)
    let mut end = Script::flight(&EndpointConfig { sack: false, ..config() });
    end.send(ack(0));
    end.send(ack(0));
    // RFC 3042
    end.recv_segments([10, 11]);
    assert_eq!(end.event_names(), [""; 0]);
    end.send(ack(0));
    assert!(end.event_names().contains(&"recovery_start"));
}

#[test]
fn an_acknowledgement_with_another_window_or_with_data_is_no_duplicate() {
    // RFC 5681 2, "duplicate acknowledgment" (b), (e)
    let mut end = Script::bulk(&EndpointConfig { sack: false, ..config() });
    end.recv_segments(0..10);
    for segment in 0..3 {
        end.send(data(segment));
        end.send(Segment { window: PEER_WINDOW + 1 + segment as u16, ..ack(0) });
    }
    assert_eq!(end.event_names(), [""; 0]);
}

#[test]
fn without_sack_a_partial_acknowledgement_sends_the_next_hole_again_at_once() {
    // RFC 6582 3.2 (3): deflates by what was acknowledged, less one segment.
    let mut end = Script::flight(&EndpointConfig { sack: false, ..config() });
    // Segments 0 and 4 are lost.
    (0..8).for_each(|_| end.send(ack(0)));
    end.recv_segments([10, 11, 0, 12]);
    end.tick(RTT);
    // Segments 10 and 11 arrive.
    (0..2).for_each(|_| end.send(ack(0)));
    end.recv_segments([13, 14]);
    end.send(ack(4));
    end.recv_segments([4, 15]);
    assert_eq!(end.in_flight(), 5); // 4 and 12 to 15
    assert!(!end.event_names().contains(&"recovery_end"));
    end.send(ack(12));
    assert_eq!(end.event_names(), ["recovery_end"]);
    assert_eq!(end.counters().timeouts, 0);
}

#[test]
fn a_loss_of_data_sent_during_recovery_begins_another_one() {
    // RFC 6675 5: that data belongs to the next window, so there is a second reduction.
    let mut end = Script::flight(&config());
    for received in 2..=10 {
        end.send(sack(0, &[(1, received)]));
    }
    end.recv_segments([10, 11, 0, 12, 13]);
    end.tick(RTT);
    // Segment 12 is lost; RecoveryPoint is 12.
    end.send(sack(0, &[(1, 12)]));
    end.recv_segments([14, 15]);
    end.events();
    end.send(sack(0, &[(13, 16), (1, 12)]));
    assert_eq!((end.event_names(), end.window().ssthresh), (vec![], 5.0));
    end.send(sack(12, &[(13, 16)]));
    assert_eq!(end.event_names(), ["recovery_end", "recovery_start"]);
    assert_eq!(end.window().ssthresh, 2.5);
    // Segment 0 was lost twice; segment 12 is not retransmitted again.
    let sent: Vec<_> = (0..end.recv_len()).map(|_| end.recv().seq).collect();
    assert_eq!(sent.iter().filter(|&&seq| seq == at(12)).count(), 1);
}
