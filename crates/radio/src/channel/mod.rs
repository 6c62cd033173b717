//! The quality of one UE's radio channel at any time: pure, evaluated only on request.
//!
//! Times never decrease. The result at t2 does not depend on whether the channel was evaluated at
//! t1 before (slicing), and a clone evaluated at an earlier time gives what the original would have
//! given then: a CQI reporter holds a clone that lags.

mod fading;
mod log;
mod path_loss;
mod process;
mod shadowing;
mod trace;

use std::sync::Arc;

use airpath_base::{Instant, Stream};

pub use fading::FadingConfig;
pub use log::{ChannelTraceError, LogColumn, Missing};
pub use path_loss::{Heights, PathLoss};
pub use process::{LinkBudget, Movement, Process, ProcessConfig};
pub use shadowing::ShadowingConfig;
pub use trace::{AtEnd, ChannelTrace, TraceCursor};

/// Quality of the channel, in the unit of its source.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Quality {
    /// Signal to interference and noise ratio in dB.
    Sinr(f64),
    /// Channel quality indicator, 0 to 15 (TS 36.213 7.2.3, TS 38.214 5.2.2.1).
    Cqi(u8),
    /// Modulation and coding scheme that the network used.
    Mcs(u8),
    /// No channel: nothing that is sent arrives.
    Outage,
}

/// The source of a channel's quality.
#[derive(Clone, PartialEq, Debug)]
pub enum ChannelConfig {
    /// The same quality at all times.
    Constant(Quality),
    /// Recorded.
    Trace {
        /// The recording.
        trace: Arc<ChannelTrace>,
        /// What happens after its end.
        at_end: AtEnd,
    },
    /// Path loss, shadowing and fading of a moving UE.
    Process(ProcessConfig),
    /// Another source with outages, on which its quality at other times does not depend.
    Interrupted {
        /// The other source.
        source: Box<ChannelConfig>,
        /// When there is no channel.
        outages: Arc<[Outage]>,
    },
}

/// A time without a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outage {
    /// First instant without a channel.
    pub from: Instant,
    /// First instant with a channel again.
    pub until: Instant,
}

/// The channel of one UE in one direction.
///
/// ```
/// use airpath_base::{Instant, Stream};
/// use airpath_radio::channel::{Channel, ChannelConfig, Quality};
///
/// let config = ChannelConfig::Constant(Quality::Sinr(20.0));
/// let mut channel = Channel::new(&config, Stream::new(1, "ue.0.channel"));
/// assert_eq!(channel.quality(Instant::ZERO), Quality::Sinr(20.0));
/// ```
#[derive(Clone, Debug)]
pub struct Channel(Source);

#[derive(Clone, Debug)]
enum Source {
    Constant(Quality),
    Trace(TraceCursor),
    Process(Box<Process>),
    Interrupted(Box<Channel>, Arc<[Outage]>),
}

impl Channel {
    /// A channel; only the seeded process draws from `stream`.
    pub fn new(config: &ChannelConfig, stream: Stream) -> Self {
        Self(match config {
            ChannelConfig::Constant(quality) => Source::Constant(*quality),
            ChannelConfig::Trace { trace, at_end } => {
                Source::Trace(TraceCursor::new(Arc::clone(trace), *at_end))
            }
            ChannelConfig::Process(config) => {
                Source::Process(Box::new(Process::new(config, stream)))
            }
            ChannelConfig::Interrupted { source, outages } => {
                Source::Interrupted(Box::new(Self::new(source, stream)), Arc::clone(outages))
            }
        })
    }

    /// Whether its quality never changes.
    pub const fn is_constant(&self) -> bool {
        matches!(self.0, Source::Constant(_))
    }

    /// The quality at `now`, which must not decrease from one call to the next.
    pub fn quality(&mut self, now: Instant) -> Quality {
        match &mut self.0 {
            Source::Constant(quality) => *quality,
            Source::Trace(cursor) => cursor.quality(now),
            Source::Process(process) => Quality::Sinr(process.sinr_db(now)),
            Source::Interrupted(channel, outages) => {
                match outages.iter().any(|outage| outage.from <= now && now < outage.until) {
                    true => Quality::Outage,
                    false => channel.quality(now),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
