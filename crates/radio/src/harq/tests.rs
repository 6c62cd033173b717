use airpath_base::Duration;
use proptest::prelude::*;

use super::*;

const BLOCK: Block = Block { efficiency: 1.0, modulation_bits: 2, transmissions: 0 };

fn ms(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn attempt(now: Instant, feedback_ms: u64) -> Attempt {
    Attempt { now, feedback: now + Duration::from_millis(feedback_ms), sinr_db: 0.0 }
}

fn harq(processes: u8, timing: HarqTiming, initial: f64, retransmission: f64) -> Harq<u32> {
    let config = HarqConfig {
        processes,
        max_transmissions: 4,
        timing,
        decoding: Decoding::Fixed { initial, retransmission },
        nack_to_ack: 0.0,
    };
    Harq::new(config, BlerModel::default(), Stream::new(1, "harq"))
}

const ASYNCHRONOUS: HarqTiming = HarqTiming::Asynchronous { processing: Duration::from_millis(3) };
const SYNCHRONOUS: HarqTiming = HarqTiming::Synchronous { slot: Duration::from_millis(1) };

#[test]
fn an_asynchronous_block_returns_when_feedback_and_processing_are_over() {
    // LTE's downlink: feedback 4 ms after the block, retransmission at the earliest 8 ms after it,
    // here 7.
    let mut harq = harq(2, ASYNCHRONOUS, 1.0, 0.0);
    let first = harq.free(ms(0)).unwrap();
    *harq.payload_mut(first) = 42;
    assert_eq!(harq.start(first, BLOCK, attempt(ms(0), 4)), Reception::Failed);
    assert_eq!(harq.next_feedback(), Some(ms(4)));
    assert_eq!(harq.poll_feedback(ms(3)), None);
    let second = harq.free(ms(1)).unwrap();
    assert_ne!(first, second);
    assert_eq!(harq.start(second, BLOCK, attempt(ms(1), 4)), Reception::Failed);
    assert_eq!(harq.free(ms(2)), None, "both processes are busy");
    let nack =
        Feedback { process: first, at: ms(4), transmissions: 1, outcome: Outcome::Retransmit };
    assert_eq!(harq.poll_feedback(ms(4)), Some(nack));
    assert_eq!((harq.retransmission(ms(6)), harq.next_retransmission(ms(4))), (None, Some(ms(7))));
    assert!(harq.poll_feedback(ms(5)).is_some());
    // Both wait; the older goes first, at any time that the scheduler chooses.
    assert_eq!(
        (harq.retransmission(ms(20)), harq.next_retransmission(ms(20))),
        (Some(first), Some(ms(20)))
    );
    assert_eq!(harq.retransmit(first, attempt(ms(20), 4)), Reception::Decoded);
    assert_eq!(harq.retransmission(ms(20)), Some(second));
    let ack =
        Feedback { process: first, at: ms(24), transmissions: 2, outcome: Outcome::Acknowledged };
    assert_eq!(harq.poll_feedback(ms(30)), Some(ack));
    assert_eq!((*harq.payload(first), harq.free(ms(30)), harq.busy()), (42, Some(first), 1));
}

#[test]
fn a_synchronous_process_has_every_eighth_slot() {
    // TS 36.321 5.4.2.1, TS 36.213 8: LTE FDD's uplink, PHICH 4 ms later, retransmission 8 ms
    // later.
    let mut harq = harq(8, SYNCHRONOUS, 1.0, 0.0);
    let process = harq.free(ms(3)).unwrap();
    assert_eq!((process, harq.free(ms(4))), (ProcessId(3), Some(ProcessId(4))));
    harq.start(process, BLOCK, attempt(ms(3), 4));
    assert_eq!(harq.poll_feedback(ms(7)).unwrap().outcome, Outcome::Retransmit);
    assert_eq!(harq.next_retransmission(ms(7)), Some(ms(11)));
    let due: Vec<u64> = (7..30).filter(|&at| harq.retransmission(ms(at)).is_some()).collect();
    assert_eq!(due, [11, 19, 27]);
    assert_eq!((harq.free(ms(11)), harq.next_retransmission(ms(12))), (None, Some(ms(19))));
    assert_eq!(harq.retransmit(process, attempt(ms(19), 4)), Reception::Decoded);
    assert_eq!(harq.poll_feedback(ms(23)).unwrap().outcome, Outcome::Acknowledged);
    assert_eq!((harq.free(ms(27)), harq.free(ms(28))), (Some(ProcessId(3)), Some(ProcessId(4))));
}

#[test]
fn a_block_is_lost_after_its_last_transmission() {
    let mut harq = harq(1, ASYNCHRONOUS, 1.0, 1.0);
    let process = harq.free(ms(0)).unwrap();
    harq.start(process, BLOCK, attempt(ms(0), 4));
    let mut outcomes = Vec::new();
    while let Some(feedback) = harq.poll_feedback(harq.next_feedback().unwrap_or(ms(0))) {
        outcomes.push(feedback.outcome);
        let Some(at) = harq.next_retransmission(feedback.at) else { break };
        harq.retransmit(process, attempt(at, 4));
    }
    let again = Outcome::Retransmit;
    assert_eq!(outcomes, [again, again, again, Outcome::Lost]);
    assert_eq!((harq.busy(), harq.transmissions(process)), (0, 4));
}

/// Runs `blocks` one after another. Returns transmissions, blocks lost, and blocks lost without the
/// sender's knowledge.
fn run(config: HarqConfig, blocks: u32) -> (u32, u32, u32) {
    let mut harq: Harq<()> = Harq::new(config, BlerModel::default(), Stream::new(1, "harq"));
    let (mut sent, mut lost, mut hidden) = (0, 0, 0);
    let mut now = ms(0);
    for _ in 0..blocks {
        let process = harq.free(now).unwrap();
        harq.start(process, BLOCK, attempt(now, 4));
        sent += 1;
        loop {
            now = harq.next_feedback().unwrap();
            match harq.poll_feedback(now).unwrap().outcome {
                Outcome::Acknowledged => break,
                Outcome::Lost => break lost += 1,
                Outcome::FalselyAcknowledged => break hidden += 1,
                Outcome::Retransmit => {
                    now = harq.next_retransmission(now).unwrap();
                    harq.retransmit(process, attempt(now, 4));
                    sent += 1;
                }
            }
        }
    }
    (sent, lost, hidden)
}

#[test]
fn transmissions_and_residual_loss_are_the_closed_forms() {
    let p: f64 = 0.3;
    let config = HarqConfig {
        processes: 16,
        max_transmissions: 4,
        timing: ASYNCHRONOUS,
        decoding: Decoding::Fixed { initial: p, retransmission: p },
        nack_to_ack: 0.0,
    };
    let (sent, lost, _) = run(config, 200_000);
    // (1 - p^4) / (1 - p) = 1.417 transmissions; p^4 = 0.0081 lost.
    let mean = f64::from(sent) / 200_000.0;
    assert!((mean - (1.0 - p.powi(4)) / (1.0 - p)).abs() < 0.005, "{mean}");
    let residual = f64::from(lost) / 200_000.0;
    assert!((residual / p.powi(4) - 1.0).abs() < 0.1, "{residual}");
    // Each NACK may be mistaken for an ACK: e p (1 + (1 - e) p + …), here to the third power.
    let e = 0.01;
    let (_, _, hidden) = run(HarqConfig { nack_to_ack: e, ..config }, 200_000);
    let again = (1.0 - e) * p;
    let expected = e * p * (1.0 + again + again.powi(2) + again.powi(3));
    let share = f64::from(hidden) / 200_000.0;
    assert!((share / expected - 1.0).abs() < 0.15, "{share}, {expected}");
}

#[test]
fn a_reset_hands_back_what_was_not_decoded() {
    let mut harq = harq(3, ASYNCHRONOUS, 1.0, 0.0);
    for payload in 1..4 {
        let process = harq.free(ms(0)).unwrap();
        *harq.payload_mut(process) = payload;
        harq.start(process, BLOCK, attempt(ms(0), u64::from(payload)));
    }
    harq.poll_feedback(ms(1));
    harq.retransmit(ProcessId(0), attempt(ms(4), 4));
    let mut lost = Vec::new();
    harq.reset(|payload| lost.push(*payload));
    assert_eq!((lost, harq.busy(), harq.next_feedback()), (vec![2, 3], 0, None));
}

fn timing() -> impl Strategy<Value = HarqTiming> {
    prop_oneof![Just(ASYNCHRONOUS), Just(SYNCHRONOUS)]
}

proptest! {
    /// Every block ends once, in order of feedback, after 1 to 4 transmissions; it makes no
    /// difference whether feedback is collected in every slot or only when it is due.
    #[test]
    fn every_block_ends_once(
        timing in timing(), processes in 1u8..17, p in 0.0..1.0f64, seed in 0u64..1000,
        feedback_ms in 1u64..7, eager in any::<bool>(),
    ) {
        let config = HarqConfig {
            processes, max_transmissions: 4, timing,
            decoding: Decoding::Fixed { initial: p, retransmission: p }, nack_to_ack: 0.05,
        };
        // A synchronous process needs its feedback before its next slot.
        prop_assume!(timing == ASYNCHRONOUS || feedback_ms <= u64::from(processes));
        let history = |eager: bool| {
            let stream = Stream::new(seed, "harq");
            let mut harq: Harq<u32> = Harq::new(config, BlerModel::default(), stream);
            let (mut started, mut ended, mut log) = (0, 0, Vec::new());
            for slot in 0..200 {
                let now = ms(slot);
                if eager || harq.next_feedback().is_some_and(|at| at <= now) {
                    while let Some(feedback) = harq.poll_feedback(now) {
                        ended += u32::from(feedback.outcome != Outcome::Retransmit);
                        log.push(feedback);
                    }
                }
                if let Some(process) = harq.retransmission(now) {
                    harq.retransmit(process, attempt(now, feedback_ms));
                } else if let Some(process) = harq.free(now) {
                    harq.start(process, BLOCK, attempt(now, feedback_ms));
                    started += 1;
                }
                assert_eq!(started - ended, harq.busy() as u32);
            }
            log
        };
        let log = history(eager);
        prop_assert!(log.is_sorted_by_key(|feedback| feedback.at));
        prop_assert!(log.iter().all(|feedback| (1..=4).contains(&feedback.transmissions)));
        prop_assert_eq!(log, history(!eager));
    }
}

#[test]
fn a_reserved_process_is_neither_free_nor_sent_again_by_others() {
    let mut harq = harq(2, ASYNCHRONOUS, 1.0, 0.0);
    let first = harq.free(ms(0)).unwrap();
    harq.reserve(first);
    assert_ne!(harq.free(ms(0)), Some(first));
    harq.release(first);
    assert_eq!(harq.free(ms(0)), Some(first));
    harq.reserve(first);
    assert_eq!(harq.start(first, BLOCK, attempt(ms(2), 1)), Reception::Failed);
    assert_eq!(harq.poll_feedback(ms(3)).unwrap().outcome, Outcome::Retransmit);
    assert_eq!(harq.retransmission(ms(6)), Some(first));
    harq.reserve(first);
    assert_eq!((harq.retransmission(ms(6)), harq.next_retransmission(ms(6))), (None, None));
    assert_eq!(harq.retransmit(first, attempt(ms(8), 1)), Reception::Decoded);
    assert_eq!(harq.poll_feedback(ms(9)).unwrap().outcome, Outcome::Acknowledged);
    assert_eq!(harq.busy(), 0);
}
