//! Spurious reductions are undone: Eifel (RFC 3522, RFC 4015), D-SACK (RFC 3708), F-RTO (RFC 5682).

use airpath_base::Segment;
use airpath_tcp::{
    EndpointConfig, EventKind, LossDetection, RecoveryConfig, Reduction, UndoReason,
};

use crate::script::*;

fn recovering(recovery: RecoveryConfig) -> EndpointConfig {
    let recovery =
        RecoveryConfig { detection: LossDetection::Rack, reduction: Reduction::Prr, ..recovery };
    EndpointConfig { recovery, ..config() }
}

fn undos(end: &mut Script) -> Vec<(u32, UndoReason)> {
    let undo = |event: EventKind| match event {
        EventKind::Undo { cwnd, by } => Some((cwnd, by)),
        _ => None,
    };
    end.events().into_iter().filter_map(undo).collect()
}

#[test]
fn an_old_timestamp_tells_that_the_original_arrived() {
    // RFC 3522 3.2 (5), RFC 4015 3.3: fast retransmit because of reordering.
    let mut config =
        recovering(RecoveryConfig { undo_by_timestamps: true, ..RecoveryConfig::default() });
    config.timestamps = true;
    let mut end = Script::bulk(&config);
    let first_sent = end.ts_val();
    end.recv_segments(0..10);
    end.tick(RTT);
    end.send(Segment { timestamps: stamps(1, first_sent), ..sack(0, &[(1, 5)]) });
    assert_eq!(end.recv().seq, at(0));
    assert!(end.cwnd() < 10);
    end.send(Segment { timestamps: stamps(1, first_sent), ..ack(10) });
    assert_eq!(undos(&mut end), [(10, UndoReason::Timestamp)]);
    assert!(end.window().ssthresh.is_infinite());
}

#[test]
fn a_new_timestamp_tells_that_it_did_not() {
    let mut config =
        recovering(RecoveryConfig { undo_by_timestamps: true, ..RecoveryConfig::default() });
    config.timestamps = true;
    let mut end = Script::bulk(&config);
    let first_sent = end.ts_val();
    end.recv_segments(0..10);
    end.tick(RTT);
    end.send(Segment { timestamps: stamps(1, first_sent), ..sack(0, &[(1, 5)]) });
    let again = end.recv();
    end.tick(RTT);
    end.send(Segment { timestamps: stamps(1, value_of(&again)), ..ack(10) });
    assert_eq!(undos(&mut end), []);
    assert_eq!(end.window().ssthresh, 5.0);
}

#[test]
fn reported_duplicates_take_a_reduction_back_after_recovery() {
    // RFC 3708 3: every retransmission of the window was reported by D-SACK (RFC 2883).
    let config = recovering(RecoveryConfig { undo_by_dsack: true, ..RecoveryConfig::default() });
    let mut end = Script::flight(&config);
    end.send(sack(0, &[(2, 6)]));
    end.send(sack(0, &[(2, 8)]));
    end.recv_count();
    assert_eq!(end.counters().retransmitted, 2);
    end.send(ack(10));
    assert_eq!(end.window().ssthresh, 5.0);
    end.tick(RTT);
    end.send(sack(10, &[(0, 1)]));
    assert_eq!(undos(&mut end), []);
    end.send(sack(10, &[(1, 2)]));
    assert_eq!(undos(&mut end), [(10, UndoReason::Dsack)]);
}

#[test]
fn a_spurious_time_out_is_found_by_new_data() {
    // RFC 5682 3.1: (1) the first segment again; (2b) new data after an advance; (3b) data that was
    // sent once is acknowledged.
    let config = recovering(RecoveryConfig { frto: true, ..RecoveryConfig::default() });
    let mut end = Script::bulk(&config);
    end.recv_segments(0..10);
    end.tick(RTO);
    end.recv_segments([0]);
    assert_eq!(end.cwnd(), 1);
    // The acknowledgement of the original arrives late; it covers nothing else.
    end.send(ack(1));
    end.recv_segments([10, 11]);
    end.send(ack(2));
    assert_eq!(undos(&mut end), [(10, UndoReason::Frto)]);
    assert_eq!(end.counters().retransmitted, 1);
}

#[test]
fn an_acknowledgement_of_more_than_the_retransmission_is_enough() {
    // RFC 5682 3.1, with SACK: data that was sent once arrives with the first acknowledgement.
    let config = recovering(RecoveryConfig { frto: true, ..RecoveryConfig::default() });
    let mut end = Script::bulk(&config);
    end.recv_segments(0..10);
    end.tick(RTO);
    end.recv_segments([0]);
    end.send(ack(4));
    assert_eq!(undos(&mut end), [(10, UndoReason::Frto)]);
}

#[test]
fn a_true_time_out_goes_on_with_slow_start() {
    // RFC 5682 3.1 (3a): a duplicate after the new data, so the rest was lost too.
    let config = recovering(RecoveryConfig { frto: true, ..RecoveryConfig::default() });
    let mut end = Script::bulk(&config);
    end.recv_segments(0..10);
    end.tick(RTO);
    end.recv_segments([0]);
    end.tick(RTT);
    end.send(ack(1));
    end.recv_segments([10, 11]);
    end.tick(RTT);
    end.send(sack(1, &[(10, 11)]));
    assert_eq!(undos(&mut end), []);
    assert!(end.recv_len() > 0);
    assert_eq!(end.recv().seq, at(1));
    assert_eq!(end.window().ssthresh, 5.0);
}
