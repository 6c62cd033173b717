//! What a path is made of, as plain data. Scenario files are somebody else's business.

use std::sync::Arc;

use airpath_base::{Duration, Rate};

use crate::Trace;

/// One stage of one direction, in the order that packets meet it.
#[derive(Clone, Debug, PartialEq)]
pub enum StageConfig {
    /// Propagation and processing delay.
    Delay(DelayConfig),
    /// Departures at multiples of an interval only.
    Batch {
        /// The interval, counted from the run's start.
        interval: Duration,
    },
    /// Something that serves one packet after another from a queue.
    Link(LinkConfig),
    /// Random or periodic loss.
    Loss(LossConfig),
}

/// A delay that does not depend on load.
#[derive(Clone, Debug, PartialEq)]
pub struct DelayConfig {
    /// Every packet's delay.
    pub base: Duration,
    /// Random delay on top of it.
    pub jitter: Option<Jitter>,
}

/// Random delay, drawn anew for each packet.
#[derive(Clone, Debug, PartialEq)]
pub struct Jitter {
    /// How it is distributed; never negative.
    pub distribution: Distribution,
    /// True: a packet never overtakes (it waits for the one before it). False: it may.
    pub keep_order: bool,
}

/// A distribution of non-negative delays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Distribution {
    /// Uniform in [0, max].
    Uniform {
        /// Upper end.
        max: Duration,
    },
    /// Exponential.
    Exponential {
        /// Mean.
        mean: Duration,
    },
    /// |N(0, sd)|, half-normal.
    HalfNormal {
        /// Standard deviation of the underlying normal.
        sd: Duration,
    },
}

/// A server with a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// How fast it serves.
    pub service: ServiceConfig,
    /// Where packets wait. The packet being sent has left the queue.
    pub queue: QueueConfig,
}

/// How fast a link serves.
#[derive(Clone, Debug, PartialEq)]
pub enum ServiceConfig {
    /// A constant bit rate.
    Rate(Rate),
    /// Recorded delivery opportunities.
    Trace(Arc<Trace>),
}

/// A queue's limits and discipline. `None` is "no limit".
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueueConfig {
    /// Packets that may wait.
    pub packets: Option<u32>,
    /// Bytes that may wait.
    pub bytes: Option<u64>,
    /// Active queue management on top of the limits.
    pub aqm: Aqm,
}

/// Active queue management.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Aqm {
    /// None: the queue drops at its tail when it is full.
    DropTail,
    /// CoDel (RFC 8289), dropping at the head.
    CoDel {
        /// Acceptable standing queue delay.
        target: Duration,
        /// Time above target before the first drop.
        interval: Duration,
    },
}

/// Loss that does not depend on load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossConfig {
    /// Each packet independently.
    Random {
        /// In [0, 1].
        probability: f64,
    },
    /// Exactly one packet in `period`, the last of each `period`.
    Periodic {
        /// At least 1.
        period: u64,
    },
    /// Two-state Markov chain (Gilbert 1960, Elliott 1963), one step a packet, starting good.
    GilbertElliott {
        /// Probability to go from good to bad.
        good_to_bad: f64,
        /// Probability to go from bad to good.
        bad_to_good: f64,
        /// Loss probability while good.
        loss_good: f64,
        /// Loss probability while bad.
        loss_bad: f64,
    },
}
