//! Where the time of a flow went.

use serde::Serialize;

/// Where the time of a flow went: one of the runs that were accounted for.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Breakdown {
    /// The flow's name; with an `@proxy` behind it, that of the proxy's sender.
    pub id: String,
    /// RTT as the sender measured it, or as the pings did; null without a sample.
    pub rtt_ms: Option<DelayBreakdown>,
    /// One-way delay of UDP; null for others.
    pub delay_ms: Option<DelayBreakdown>,
    /// Bulk and file flows: what the path could have carried, and why the flow did not; null for
    /// others, and without a link.
    pub goodput_mbps: Option<GoodputBreakdown>,
}

/// A mean time, and what it was spent on.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DelayBreakdown {
    /// Mean over the samples.
    pub mean: f64,
    /// Number of samples.
    pub samples: u64,
    /// Parts that are not 0, in a fixed order. They sum to the mean.
    pub parts: Vec<DelayPart>,
}

/// One part of a mean time.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DelayPart {
    /// On what it was spent.
    pub part: &'static str,
    /// Stage or radio buffer: `down.0.link`, `radio.ue-0.up`; null for what has no place.
    pub place: Option<String>,
    /// Mean over all samples.
    pub ms: f64,
    /// Of the mean.
    pub share: f64,
}

/// What the path could have carried while a flow was measured, and what became of it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct GoodputBreakdown {
    /// What its slowest link, or the radio, could have carried, Mb/s.
    pub capacity: f64,
    /// Which one: `down.0.link`, `radio.ue-0.down`.
    pub place: Option<String>,
    /// What the flow got, Mb/s.
    pub goodput: f64,
    /// Parts that are not 0, in a fixed order. With the goodput they sum to the capacity.
    pub parts: Vec<GoodputPart>,
}

/// One part of the capacity that was no goodput.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct GoodputPart {
    /// What took it, or left it unused.
    pub part: &'static str,
    /// How much, Mb/s.
    pub mbps: f64,
    /// Of the capacity.
    pub share: f64,
}
