//! The path model: everything between two TCP endpoints, one direction at a time.
//!
//! Pure: it knows neither clock nor operating system nor scenario file. [`Path`] has the verbs;
//! [`build`] wraps stages around each other as a list of [`StageConfig`] says.

mod batch;
mod codel;
mod config;
mod delay;
mod link;
mod loss;
pub mod radio;
mod service;
mod stage;
mod trace;

use airpath_base::Stream;

pub use batch::Batch;
pub use config::{
    Aqm, DelayConfig, Distribution, Jitter, LinkConfig, LossConfig, QueueConfig, ServiceConfig,
    StageConfig,
};
pub use delay::{Delay, RandomDelay};
pub use link::{Link, LinkMeter};
pub use loss::Loss;
pub use stage::{Departure, Load, Path, Wire};
pub use trace::{OPPORTUNITY_BYTES, Trace, TraceError};

/// Builds one direction: named stages in the order that packets meet them. A stage's name is its
/// random stream's name too.
pub fn build<'a>(
    stages: impl IntoIterator<Item = (&'a str, &'a StageConfig)>,
    seed: u64,
) -> Box<dyn Path> {
    let mut path: Option<Box<dyn Path>> = None;
    for (index, (name, stage)) in (0..).zip(stages) {
        let stream = Stream::new(seed, name);
        path = Some(match path {
            // The first stage is compiled together with the wire it wraps.
            None => wrap(Wire::new(), index, name, stage, stream),
            Some(upstream) => wrap(upstream, index, name, stage, stream),
        });
    }
    path.unwrap_or_else(|| Box::new(Wire::new()))
}

fn wrap<P: Path + 'static>(
    upstream: P,
    index: u32,
    name: &str,
    stage: &StageConfig,
    stream: Stream,
) -> Box<dyn Path> {
    match stage {
        StageConfig::Delay(DelayConfig { base, jitter: None }) => {
            Box::new(Delay::new(upstream, *base))
        }
        StageConfig::Delay(DelayConfig { base, jitter: Some(jitter) }) => {
            Box::new(RandomDelay::new(upstream, *base, jitter, stream))
        }
        StageConfig::Batch { interval } => Box::new(Batch::new(upstream, *interval)),
        StageConfig::Link(config) => Box::new(Link::new(upstream, config, name, index)),
        StageConfig::Loss(config) => Box::new(Loss::new(upstream, *config, stream, index)),
    }
}
