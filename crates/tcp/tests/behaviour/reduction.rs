//! Reduction of cwnd: PRR (RFC 9937), ECN (RFC 3168).

use airpath_base::{Flags, Segment};
use airpath_tcp::{EndpointConfig, EventKind, RecoveryConfig, Reduction};

use crate::script::*;

fn prr() -> EndpointConfig {
    let recovery = RecoveryConfig { reduction: Reduction::Prr, ..RecoveryConfig::default() };
    EndpointConfig { recovery, initial_window: 20, ..config() }
}

#[test]
fn one_loss_sends_one_for_every_second_that_arrives() {
    // RFC 9937 5: in proportion; ssthresh / RecoverFS = 10/20 with Reno.
    let mut end = Script::bulk(&prr());
    end.recv_segments(0..20);
    end.tick(RTT);
    end.send(sack(0, &[(1, 4)]));
    // 3 × 10 / 20, rounded up: the retransmission and one more.
    end.recv_segments([0, 20]);
    let mut sent = Vec::new();
    for received in 5..=20 {
        end.send(sack(0, &[(1, received)]));
        sent.push(end.recv_count());
    }
    // 16 more arrive: 19 × 10 / 20 in all, rounded up.
    assert_eq!(sent.iter().sum::<usize>() + 2, 10);
    assert!(sent.windows(2).all(|pair| pair[0] + pair[1] <= 2), "{sent:?}");
    // At the end cwnd is ssthresh, and the same amount is in flight.
    end.send(ack(20));
    assert_eq!(end.cwnd(), 10);
}

#[test]
fn a_burst_of_losses_is_repaired_by_conservation() {
    // RFC 9937 5, PRR-CRB and SSRB: the pipe is below ssthresh after 15 of 20 were lost.
    let mut end = Script::bulk(&prr());
    end.recv_segments(0..20);
    end.tick(RTT);
    end.send(sack(0, &[(15, 18)]));
    // Three arrived: three may be sent.
    assert_eq!(end.recv_count(), 3);
    end.send(sack(0, &[(15, 19)]));
    assert_eq!(end.recv_count(), 1);
    // SND.UNA advances without a further loss: one more (SafeACK), slow start.
    end.tick(RTT);
    end.send(sack(1, &[(15, 20)]));
    assert_eq!(end.recv_count(), 3);
}

#[test]
fn recovery_without_prr_goes_down_at_once() {
    // RFC 6675 5 (4.2)
    let mut end = Script::bulk(&EndpointConfig { initial_window: 20, ..config() });
    end.recv_segments(0..20);
    end.tick(RTT);
    end.send(sack(0, &[(1, 4)]));
    assert_eq!(end.cwnd(), 10);
}

/// An open connection with ECN agreed.
fn with_ecn(config: &EndpointConfig) -> Script {
    let mut end = Script::bulk(config);
    end.end.assume_ecn();
    end
}

fn marked(segment: u64) -> Segment {
    let acknowledgement = ack(segment);
    Segment { flags: acknowledgement.flags.with(Flags::ECE), ..acknowledgement }
}

#[test]
fn marks_reduce_cwnd_once_in_a_window_and_the_peer_is_told() {
    // RFC 3168 6.1.2: as after a loss, half of the 18 segments that are outstanding.
    let mut end = with_ecn(&EndpointConfig { initial_window: 20, ..config() });
    end.recv_segments(0..20);
    end.tick(RTT);
    end.send(marked(2));
    let events = end.events();
    assert!(matches!(
        events[..],
        [
            EventKind::SlowStartExit { .. },
            EventKind::Reduction { cwnd: 20, ssthresh: 9, ecn: true }
        ]
    ));
    end.send(marked(4));
    assert_eq!((end.cwnd(), end.counters().ecn_reductions), (9, 1));
    // 6.1.2: CWR on the first new segment, and on no other.
    end.send(marked(12));
    let first = end.recv();
    assert!(first.flags.has(Flags::CWR));
    end.send(ack(20));
    while end.recv_len() > 0 {
        assert!(!end.recv().flags.has(Flags::CWR));
    }
    assert_eq!(end.counters().retransmitted, 0);
    // The next window may be reduced again.
    end.send(marked(21));
    assert_eq!(end.counters().ecn_reductions, 2);
}

#[test]
fn marks_mean_nothing_that_was_not_agreed() {
    let mut end = Script::flight(&config());
    end.send(marked(2));
    assert_eq!(end.cwnd(), 12);
}

#[test]
fn growth_by_what_is_delivered_goes_on_with_the_acknowledgement_that_ends_recovery() {
    // As seen with Linux: growth in congestion avoidance from ssthresh, by what this
    // acknowledgement delivers. It counts towards the next segment.
    for (delivered_grows, counted) in [(false, 0), (true, 1)] {
        let mut config = prr();
        config.validation.delivered_grows = delivered_grows;
        let mut end = Script::bulk(&config);
        end.recv_segments(0..20);
        end.tick(RTT);
        end.send(sack(0, &[(1, 20)]));
        end.recv_count();
        end.send(ack(20));
        let ssthresh = end.cwnd();
        assert_eq!(end.window().ssthresh, f64::from(ssthresh));
        end.tick(RTT);
        let last = 20 + u64::from(ssthresh - counted);
        end.send(ack(last - 1));
        assert_eq!(end.cwnd(), ssthresh);
        end.send(ack(last));
        assert_eq!(end.cwnd(), ssthresh + 1);
    }
}
