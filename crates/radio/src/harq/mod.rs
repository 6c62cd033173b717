//! HARQ: parallel stop-and-wait processes, and whether what they carry is decoded.
//!
//! One entity is one direction of one UE, sender and receiver in one: the payload stays in its
//! process until it is overwritten. Slots, TDD patterns and K1 are up to the caller, which passes
//! the time at which a transmission's feedback is due.

mod decoding;

use airpath_base::{Duration, Instant, Stream};

pub use decoding::{Block, Combining, Decoding};
use decoding::{Curve, SoftBuffer};

use super::adaptation::BlerModel;

/// Configuration of an entity.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HarqConfig {
    /// Number of processes, 1 or more: 8 in LTE FDD (TS 36.213 7), up to 16 in NR, 32 from
    /// Release 17 on (TS 38.214 5.1).
    pub processes: u8,
    /// Most transmissions of a block, including the first; 0 counts as 1. 4 is usual.
    pub max_transmissions: u8,
    /// When a block may be retransmitted.
    pub timing: HarqTiming,
    /// When a block is decoded.
    pub decoding: Decoding,
    /// Probability that a NACK is taken for an ACK, so that the block is lost to HARQ. Receivers
    /// are required to achieve 0.001 or less.
    pub nack_to_ack: f64,
}

/// When a block may be retransmitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HarqTiming {
    /// Whenever the scheduler decides, this long after the feedback or later: LTE's downlink, NR
    /// (TS 38.321 5.3.2, 5.4.2).
    Asynchronous {
        /// Time from the feedback's arrival to the earliest slot that can answer it.
        processing: Duration,
    },
    /// Only in the process's own slots: LTE's uplink (TS 36.321 5.4.2.1). Process = slot number
    /// modulo number of processes; a block may be retransmitted a whole round later.
    Synchronous {
        /// Length of a slot: 1 ms in LTE; 1 ns if zero.
        slot: Duration,
    },
}

/// Number of a process, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ProcessId(pub u8);

/// One transmission of a block.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Attempt {
    /// When it is sent.
    pub now: Instant,
    /// When the sender receives its ACK or NACK.
    pub feedback: Instant,
    /// SINR in dB with which it is received.
    pub sinr_db: f64,
}

/// The receiver's result after a transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reception {
    /// The block was decoded.
    Decoded,
    /// There are only soft bits.
    Failed,
}

/// The feedback that the sender receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Feedback {
    /// The process of the block.
    pub process: ProcessId,
    /// When the feedback arrives.
    pub at: Instant,
    /// Transmissions so far; link adaptation counts only feedback with 1.
    pub transmissions: u8,
    /// What follows from the feedback.
    pub outcome: Outcome,
}

/// What follows from feedback.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// ACK: the process is free.
    Acknowledged,
    /// NACK: the process waits for its retransmission.
    Retransmit,
    /// NACK after the last transmission: the process is free, the block is lost.
    Lost,
    /// NACK taken for an ACK: the process is free, and the block is lost without the sender's
    /// knowledge.
    FalselyAcknowledged,
}

impl Outcome {
    /// Whether the sender sees an ACK.
    pub fn is_ack(self) -> bool {
        matches!(self, Self::Acknowledged | Self::FalselyAcknowledged)
    }
}

/// The HARQ entity of one UE in one direction, over blocks of content `T`.
///
/// ```
/// use airpath_base::{Duration, Instant, Stream};
/// use airpath_radio::adaptation::BlerModel;
/// use airpath_radio::harq::*;
///
/// let config = HarqConfig {
///     processes: 8,
///     max_transmissions: 4,
///     timing: HarqTiming::Asynchronous { processing: Duration::from_millis(3) },
///     decoding: Decoding::Fixed { initial: 0.0, retransmission: 0.0 },
///     nack_to_ack: 0.0,
/// };
/// let mut harq: Harq<Vec<u32>> =
///     Harq::new(config, BlerModel::default(), Stream::new(1, "ue.0.down.harq"));
/// let now = Instant::ZERO;
/// let process = harq.free(now).unwrap();
/// harq.payload_mut(process).push(17);
/// let feedback = now + Duration::from_millis(4);
/// let block = Block { efficiency: 1.0, modulation_bits: 2, transmissions: 0 };
/// let reception = harq.start(process, block, Attempt { now, feedback, sinr_db: 10.0 });
/// assert_eq!(reception, Reception::Decoded);
/// assert_eq!(harq.poll_feedback(feedback).unwrap().outcome, Outcome::Acknowledged);
/// ```
#[derive(Debug)]
pub struct Harq<T> {
    config: HarqConfig,
    curve: Curve,
    stream: Stream,
    /// State by process, separate from the payload: every slot looks for a free one.
    states: Vec<State>,
    processes: Vec<Process<T>>,
    next_feedback: Option<Instant>,
    /// How many processes hold a failed block.
    failed: usize,
}

#[derive(Debug)]
struct Process<T> {
    payload: T,
    block: Block,
    soft: SoftBuffer,
    transmissions: u8,
    decoded: bool,
    /// Whether a NACK of the last transmission would be taken for an ACK.
    mistaken: bool,
    /// When the last transmission was sent.
    sent: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Idle,
    /// The base station has reserved it for a new or a failed block.
    Reserved,
    /// A transmission is in progress.
    Sent {
        feedback: Instant,
    },
    /// It failed and may be retransmitted from this time on.
    Failed {
        from: Instant,
    },
}

impl<T: Default> Harq<T> {
    /// An entity with all processes free.
    pub fn new(config: HarqConfig, model: BlerModel, stream: Stream) -> Self {
        let process = |_| Process {
            payload: T::default(),
            block: Block { efficiency: 0.0, modulation_bits: 0, transmissions: 0 },
            soft: SoftBuffer::default(),
            transmissions: 0,
            decoded: false,
            mistaken: false,
            sent: Instant::ZERO,
        };
        let processes: Vec<_> = (0..config.processes.max(1)).map(process).collect();
        let states = vec![State::Idle; processes.len()];
        let curve = Curve::new(model);
        Self { config, curve, stream, states, processes, next_feedback: None, failed: 0 }
    }
}

impl<T> Harq<T> {
    /// A process that may start a block at `now`: the lowest free one or, with synchronous timing,
    /// the one of the slot if it is free.
    pub fn free(&self, now: Instant) -> Option<ProcessId> {
        let free = |id: &ProcessId| self.state(*id) == State::Idle;
        match self.turn(now) {
            Some(id) => Some(id).filter(free),
            None => self.ids().find(free),
        }
    }

    /// What a process carries, or carried last.
    pub fn payload(&self, process: ProcessId) -> &T {
        &self.process(process).payload
    }

    /// The payload of a process, to fill before [`start`](Harq::start) or to empty after the
    /// feedback.
    pub fn payload_mut(&mut self, process: ProcessId) -> &mut T {
        &mut self.processes[usize::from(process.0)].payload
    }

    /// Transmissions of a process's block so far.
    pub fn transmissions(&self, process: ProcessId) -> u8 {
        self.process(process).transmissions
    }

    /// The block that a process sends, as passed to [`start`](Harq::start).
    pub fn block(&self, process: ProcessId) -> Block {
        self.process(process).block
    }

    /// Reserves a process for a transmission that is decided but not sent yet, of a new or a failed
    /// block. Follow with [`start`](Harq::start), [`retransmit`](Harq::retransmit) or
    /// [`release`](Harq::release).
    pub fn reserve(&mut self, process: ProcessId) {
        let state = &mut self.states[usize::from(process.0)];
        debug_assert!(!matches!(state, State::Reserved | State::Sent { .. }));
        self.failed -= usize::from(matches!(state, State::Failed { .. }));
        *state = State::Reserved;
    }

    /// Frees a reserved process that was not used for a new block.
    pub fn release(&mut self, process: ProcessId) {
        let state = &mut self.states[usize::from(process.0)];
        debug_assert_eq!(*state, State::Reserved, "{process:?} is not reserved");
        *state = State::Idle;
    }

    /// Sends a new block on a free or reserved process.
    pub fn start(&mut self, process: ProcessId, block: Block, attempt: Attempt) -> Reception {
        let state = self.state(process);
        debug_assert!(matches!(state, State::Idle | State::Reserved), "{process:?} is busy");
        let place = &mut self.processes[usize::from(process.0)];
        place.block = block;
        place.transmissions = 0;
        place.soft = SoftBuffer::default();
        self.send(process, attempt)
    }

    /// Retransmits a failed block, reserved or not.
    pub fn retransmit(&mut self, process: ProcessId, attempt: Attempt) -> Reception {
        let state = self.state(process);
        debug_assert!(
            matches!(state, State::Failed { .. } | State::Reserved),
            "{process:?} is {state:?}"
        );
        self.failed -= usize::from(matches!(state, State::Failed { .. }));
        self.send(process, attempt)
    }

    /// The failed block to send at `now`: the one that has waited longest.
    pub fn retransmission(&self, now: Instant) -> Option<ProcessId> {
        if self.failed == 0 {
            return None;
        }
        let due = |id: ProcessId| match self.state(id) {
            State::Failed { from } if from <= now => Some((from, id)),
            _ => None,
        };
        let oldest = match self.turn(now) {
            Some(id) => due(id),
            None => self.ids().filter_map(due).min(),
        };
        oldest.map(|(_, id)| id)
    }

    /// Whether there is a failed block.
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.failed > 0
    }

    /// When a failed block may be retransmitted, at `now` or later; `None` if there is none.
    #[inline]
    pub fn next_retransmission(&self, now: Instant) -> Option<Instant> {
        if self.failed == 0 { None } else { self.next_of_failed(now) }
    }

    #[inline(never)]
    fn next_of_failed(&self, now: Instant) -> Option<Instant> {
        let earliest = |state: &State| match *state {
            State::Failed { from } if from >= now => Some(from),
            State::Failed { from } => Some(match self.config.timing {
                HarqTiming::Asynchronous { .. } => now,
                HarqTiming::Synchronous { slot } => {
                    let round = self.round(slot);
                    from + round * (now - from).as_nanos().div_ceil(round.as_nanos())
                }
            }),
            _ => None,
        };
        self.states.iter().filter_map(earliest).min()
    }

    fn most_transmissions(&self, process: ProcessId) -> u8 {
        match self.process(process).block.transmissions {
            0 => self.config.max_transmissions,
            most => most.min(self.config.max_transmissions),
        }
    }

    /// When the next feedback arrives.
    pub fn next_feedback(&self) -> Option<Instant> {
        self.next_feedback
    }

    /// The next feedback that has arrived by `now`, in order of time.
    pub fn poll_feedback(&mut self, now: Instant) -> Option<Feedback> {
        let at = self.next_feedback.filter(|&at| at <= now)?;
        let id = self.ids().find(|&id| self.state(id) == State::Sent { feedback: at })?;
        let again = match self.config.timing {
            HarqTiming::Asynchronous { processing } => at + processing,
            HarqTiming::Synchronous { slot } => self.process(id).sent + self.round(slot),
        };
        let most = self.most_transmissions(id);
        let place = self.process(id);
        let transmissions = place.transmissions;
        let outcome = if place.decoded {
            Outcome::Acknowledged
        } else if place.mistaken {
            Outcome::FalselyAcknowledged
        } else if transmissions >= most {
            Outcome::Lost
        } else {
            Outcome::Retransmit
        };
        self.states[usize::from(id.0)] = match outcome {
            Outcome::Retransmit => State::Failed { from: again },
            _ => State::Idle,
        };
        self.failed += usize::from(outcome == Outcome::Retransmit);
        self.find_next_feedback();
        Some(Feedback { process: id, at, transmissions, outcome })
    }

    /// Number of processes that are not free.
    pub fn busy(&self) -> usize {
        self.states.iter().filter(|&&state| state != State::Idle).count()
    }

    /// Frees every process (TS 38.321 5.12); `lost` is called with the payload of each block that
    /// was not decoded.
    pub fn reset(&mut self, mut lost: impl FnMut(&mut T)) {
        for (state, process) in self.states.iter_mut().zip(&mut self.processes) {
            if *state != State::Idle && !process.decoded {
                lost(&mut process.payload);
            }
            *state = State::Idle;
        }
        self.next_feedback = None;
        self.failed = 0;
    }

    fn send(&mut self, process: ProcessId, attempt: Attempt) -> Reception {
        let place = &mut self.processes[usize::from(process.0)];
        place.transmissions += 1;
        place.decoded = place.soft.receive(
            &self.config.decoding,
            &mut self.curve,
            place.block,
            attempt.sinr_db,
            &mut self.stream,
        );
        // Drawn here, whatever the outcome, so that no draw depends on when feedback is polled.
        place.mistaken = self.stream.chance(self.config.nack_to_ack);
        place.sent = attempt.now;
        self.states[usize::from(process.0)] = State::Sent { feedback: attempt.feedback };
        let decoded = place.decoded;
        let next = self.next_feedback.unwrap_or(attempt.feedback);
        self.next_feedback = Some(next.min(attempt.feedback));
        if decoded { Reception::Decoded } else { Reception::Failed }
    }

    fn find_next_feedback(&mut self) {
        let feedback = |state: &State| match *state {
            State::Sent { feedback } => Some(feedback),
            _ => None,
        };
        self.next_feedback = self.states.iter().filter_map(feedback).min();
    }

    /// The only process that may send at `now`; `None` if any may.
    fn turn(&self, now: Instant) -> Option<ProcessId> {
        match self.config.timing {
            HarqTiming::Asynchronous { .. } => None,
            HarqTiming::Synchronous { slot } => {
                let number = now.as_nanos() / slot.as_nanos().max(1);
                // Fewer than 256 processes.
                Some(ProcessId((number % self.processes.len() as u64) as u8))
            }
        }
    }

    /// Synchronous timing: time from one slot of a process to its next.
    fn round(&self, slot: Duration) -> Duration {
        slot.max(Duration::from_nanos(1)) * self.processes.len() as u64
    }

    fn ids(&self) -> impl Iterator<Item = ProcessId> + use<T> {
        // There are at most 255 processes.
        (0..self.processes.len() as u8).map(ProcessId)
    }

    fn state(&self, id: ProcessId) -> State {
        self.states[usize::from(id.0)]
    }

    fn process(&self, id: ProcessId) -> &Process<T> {
        &self.processes[usize::from(id.0)]
    }
}

#[cfg(test)]
mod tests;
