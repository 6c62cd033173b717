//! Selects the congestion control, and settles what its specification leaves open.

use core::fmt::Debug;
use std::sync::Arc;

use crate::{CongestionControl, EndpointConfig};

/// The congestion control and its parameters.
#[derive(Clone, Debug, PartialEq)]
pub enum CongestionConfig {
    /// RFC 5681.
    Reno(RenoConfig),
    /// RFC 9438.
    Cubic(CubicConfig),
    /// BBR v1 as in Linux.
    Bbr1 {
        /// Seed of the random stream that draws the phase in which bandwidth probing begins.
        seed: u64,
    },
    /// BBR v3, draft-ietf-ccwg-bbr-06.
    Bbr3 {
        /// Seed of the random stream that draws the time between two bandwidth probes.
        seed: u64,
    },
    /// A constant window: no congestion control.
    Fixed {
        /// The window, in segments.
        segments: u32,
    },
    /// An algorithm from outside this crate.
    External(ExternalCongestion),
}

/// Builds an algorithm from outside this crate, once per connection.
pub trait CongestionFactory: Debug + Send + Sync {
    /// Name in tables.
    fn name(&self) -> &'static str;

    /// The algorithm of a new connection. cwnd begins at the initial window, without an ssthresh.
    /// `seed` is that of the connection's random stream.
    fn build(&self, config: &EndpointConfig, seed: u64) -> Box<dyn CongestionControl>;
}

/// A congestion control from outside this crate; two are equal if they have the same factory.
#[derive(Clone, Debug)]
pub struct ExternalCongestion {
    /// Builds the algorithm.
    pub factory: Arc<dyn CongestionFactory>,
    /// Seed of the connection's random stream.
    pub seed: u64,
}

impl PartialEq for ExternalCongestion {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.factory, &other.factory) && self.seed == other.seed
    }
}

/// Reno, where RFC 5681 leaves a choice or Linux differs from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RenoConfig {
    /// What ssthresh is half of after congestion.
    pub halves: Halved,
    /// What grows cwnd in congestion avoidance.
    pub grows_by: GrowthUnit,
}

/// What Reno halves when it infers congestion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Halved {
    /// FlightSize: data sent and not acknowledged, at most cwnd (RFC 5681 (4)).
    #[default]
    Flight,
    /// cwnd, in whole segments, as Linux does.
    Cwnd,
}

/// What Reno counts in congestion avoidance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GrowthUnit {
    /// Acknowledged segments: the bytes of RFC 5681 3.1 and RFC 3465 2.1.
    #[default]
    Segments,
    /// Each acknowledgement as one segment, however many it covers (RFC 5681 (3)).
    Acknowledgements,
}

/// The parameters of CUBIC (RFC 9438).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CubicConfig {
    /// After congestion below an earlier W_max, reduces W_max a little further (RFC 9438 4.7).
    pub fast_convergence: bool,
    /// Whether windows are fractions or whole segments.
    pub arithmetic: CubicArithmetic,
    /// How fast the window grows again, in segments per second cubed (RFC 9438 4.1, 5.1).
    pub c: f64,
    /// The fraction of cwnd that remains after congestion, from 0 to 1 (RFC 9438 4.6).
    pub beta: f64,
}

/// The arithmetic of CUBIC's window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CubicArithmetic {
    /// In fractions of segments, as in the formulas of RFC 9438.
    Rfc9438,
    /// In whole segments, as in Linux.
    Linux,
}

impl Default for CubicConfig {
    fn default() -> Self {
        let arithmetic = CubicArithmetic::Rfc9438;
        Self { fast_convergence: true, arithmetic, c: 0.4, beta: 0.7 }
    }
}

impl CongestionConfig {
    /// Reno as RFC 5681 describes it.
    pub const RENO: Self =
        Self::Reno(RenoConfig { halves: Halved::Flight, grows_by: GrowthUnit::Segments });

    /// A copy with this seed, if the algorithm has one.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        match self {
            Self::Bbr1 { .. } => Self::Bbr1 { seed },
            Self::Bbr3 { .. } => Self::Bbr3 { seed },
            Self::External(external) => Self::External(ExternalCongestion { seed, ..external }),
            _ => self,
        }
    }

    /// Name in scenarios and tables.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Reno(_) => "reno",
            Self::Cubic(_) => "cubic",
            Self::Bbr1 { .. } => "bbr",
            Self::Bbr3 { .. } => "bbr3",
            Self::Fixed { .. } => "fixed",
            Self::External(external) => external.factory.name(),
        }
    }
}
