//! Meters of flows: goodput, steady rate, completion, round trips, one-way delay, jitter and loss,
//! as docs/concepts/metrics.md defines them.
//!
//! A driver feeds a meter with times and bytes, sequence numbers or round trips. A meter knows no
//! socket, no packet format and no simulator, so the virtual clock, the real clock and captures can
//! feed the same meters. Their reports then differ only by what was measured.
//!
//! It may use: `base`, `record`. Start reading at [`TransferMeter`] (bulk and file flows),
//! [`DatagramMeter`] (UDP) and [`EchoMeter`] (ping), which the endpoints feed; [`StreamMeter`]
//! measures the same from TCP headers that pass.
//!
//! ```
//! use airpath_base::{Duration, Instant};
//! use airpath_metrics::TransferMeter;
//! use airpath_record::FlowSummary;
//!
//! let mut meter = TransferMeter::file(Instant::ZERO, 250_000);
//! let end = Instant::ZERO + Duration::from_secs(1);
//! meter.on_delivered(end, 250_000);
//! let flow = meter.summarise(end, FlowSummary::default());
//! assert_eq!((flow.goodput_mbps, flow.completed_s), (Some(2.0), Some(1.0)));
//! ```

mod datagram;
mod distribution;
mod echo;
mod fairness;
mod jitter;
mod mean_rtt;
mod rate;
mod steady;
mod stream;
mod transfer;

pub use datagram::{DatagramMeter, SendTimes};
pub use distribution::write_histogram;
pub use echo::EchoMeter;
pub use fairness::fairness;
pub use jitter::InterarrivalJitter;
pub use mean_rtt::MeanRtt;
pub use rate::mbps;
pub use steady::{SteadyRate, steady_rate};
pub use stream::{SegmentHeader, SequenceSpace, StreamMeter};
pub use transfer::TransferMeter;
