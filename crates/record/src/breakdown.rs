//! Where the time of a flow went.

use serde::Serialize;

/// Where the time of a flow went, in a run that accounts for it.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Breakdown {
    /// The flow's name; with the suffix `@proxy`, that of the proxy's sender.
    pub id: String,
    /// RTT as measured by the sender or by the pings; null without a sample.
    pub rtt_ms: Option<DelayBreakdown>,
    /// One-way delay of UDP; null for other flows.
    pub delay_ms: Option<DelayBreakdown>,
    /// For bulk and file flows: what the path could have carried, and why the flow did not; null
    /// for other flows, and without a link.
    pub goodput_mbps: Option<GoodputBreakdown>,
}

/// A mean time, and what it was spent on.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DelayBreakdown {
    /// Mean over the samples.
    pub mean: f64,
    /// Number of samples.
    pub samples: u64,
    /// Parts that are not 0, in a fixed order. Their sum is the mean.
    pub parts: Vec<DelayPart>,
}

/// One part of a mean time.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DelayPart {
    /// What the time was spent on.
    pub part: &'static str,
    /// Stage or radio buffer: `down.0.link`, `radio.ue-0.up`; null for parts that have no place.
    pub place: Option<String>,
    /// Mean over all samples.
    pub ms: f64,
    /// Fraction of the mean.
    pub share: f64,
}

/// What the path could have carried while a flow was measured, and how it was used.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GoodputBreakdown {
    /// Capacity of the path's slowest link, or of the radio, in Mb/s.
    pub capacity: f64,
    /// That link or radio: `down.0.link`, `radio.ue-0.down`.
    pub place: Option<String>,
    /// Goodput of the flow in Mb/s.
    pub goodput: f64,
    /// Parts that are not 0, in a fixed order. Their sum plus the goodput is the capacity.
    pub parts: Vec<GoodputPart>,
}

/// One part of the capacity that did not become goodput.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GoodputPart {
    /// What used this part of the capacity, or why it was not used.
    pub part: &'static str,
    /// Size of the part in Mb/s.
    pub mbps: f64,
    /// Fraction of the capacity.
    pub share: f64,
}
