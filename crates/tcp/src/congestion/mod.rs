//! Congestion control behind one short trait. An algorithm is one file.

mod cubic;
mod reno;
mod slow_start;

use core::fmt::Debug;

use airpath_base::{Duration, Instant};

pub use cubic::Cubic;
pub use reno::Reno;

use crate::{CongestionConfig, EndpointConfig};

/// Decides how much may be in flight. The sender measures; an algorithm only computes.
pub trait CongestionControl: Debug + Send {
    /// New data was acknowledged outside of fast recovery.
    fn on_ack(&mut self, ack: &AckSample, window: &mut Window);

    /// A loss was inferred from acknowledgements: once per recovery.
    fn on_congestion(&mut self, congestion: &Congestion, window: &mut Window);

    /// The retransmission timer ran out for a segment for the first time: sets ssthresh. The
    /// sender sets cwnd to [`CongestionControl::loss_window`].
    fn on_timeout(&mut self, congestion: &Congestion, window: &mut Window) {
        self.on_congestion(congestion, window);
    }

    /// cwnd after a time-out (RFC 5681 3.1: one segment).
    fn loss_window(&self) -> f64 {
        1.0
    }
}

/// What one acknowledgement says.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// When it came.
    pub now: Instant,
    /// Segments that it acknowledges cumulatively; after a time-out, of these the ones not SACKed
    /// before.
    pub acked: u32,
    /// RTT of the newest of them; `None` if it was retransmitted.
    pub rtt: Option<Duration>,
    /// Smoothed RTT.
    pub srtt: Duration,
    /// Smallest RTT of the connection.
    pub min_rtt: Duration,
    /// Segments in flight after it.
    pub in_flight: u32,
    /// cwnd, and nothing else, held the sender back in the window that it acknowledges.
    pub cwnd_limited: bool,
}

/// What the sender knows when it infers congestion.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    /// When.
    pub now: Instant,
    /// Segments sent and not acknowledged (FlightSize, RFC 5681 2), those of limited transmit left
    /// out: at most cwnd.
    pub flight: u32,
}

/// The window that an algorithm steers, in segments; fractions accumulate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Window {
    /// Congestion window.
    pub cwnd: f64,
    /// Slow start threshold; infinite before the first congestion.
    pub ssthresh: f64,
}

impl Window {
    /// cwnd is below ssthresh (RFC 5681 3.1).
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Whole segments of cwnd.
    pub fn segments(&self) -> u32 {
        self.cwnd as u32
    }
}

/// Never changes its window.
#[derive(Debug)]
struct Fixed {
    window: f64,
}

impl CongestionControl for Fixed {
    fn on_ack(&mut self, _ack: &AckSample, _window: &mut Window) {}
    fn on_congestion(&mut self, _congestion: &Congestion, _window: &mut Window) {}

    fn loss_window(&self) -> f64 {
        self.window
    }
}

/// Builds the algorithm and the window it starts with.
pub(crate) fn build(config: &EndpointConfig) -> (Box<dyn CongestionControl>, Window) {
    let slow_start = slow_start::SlowStart::new(config.slow_start_limit);
    let mut window =
        Window { cwnd: f64::from(config.initial_window.max(1)), ssthresh: f64::INFINITY };
    let algorithm: Box<dyn CongestionControl> = match config.congestion {
        CongestionConfig::Reno => Box::new(Reno::new(slow_start)),
        CongestionConfig::Cubic { fast_convergence } => {
            Box::new(Cubic::new(slow_start, fast_convergence))
        }
        CongestionConfig::Fixed { segments } => {
            window.cwnd = f64::from(segments.max(1));
            window.ssthresh = window.cwnd;
            Box::new(Fixed { window: window.cwnd })
        }
    };
    (algorithm, window)
}
