//! Congestion control behind one short trait. Each algorithm is one file.

mod bbr;
mod control;
mod cubic;
mod fixed;
mod linux_cubic;
mod reno;
mod slow_start;

pub use bbr::{Bbr1, Bbr3};
pub use control::{
    AckSample, Congestion, CongestionControl, HystartSnapshot, LostSegment, RateSample,
    SenderSnapshot, SlowStartExit, State, Window,
};
pub use cubic::Cubic;
pub use linux_cubic::LinuxCubic;
pub use reno::Reno;

use crate::{CongestionConfig, CubicArithmetic, EndpointConfig};
use fixed::Fixed;

/// Builds the algorithm and its initial window.
pub(crate) fn build(config: &EndpointConfig) -> (Box<dyn CongestionControl>, Window) {
    let slow_start = slow_start::SlowStart::new(config.slow_start);
    let mut window = Window::initial(config.initial_window);
    let algorithm: Box<dyn CongestionControl> = match &config.congestion {
        CongestionConfig::Reno(reno) => Box::new(Reno::new(slow_start, *reno)),
        CongestionConfig::Cubic(cubic) => match cubic.arithmetic {
            CubicArithmetic::Rfc9438 => Box::new(Cubic::new(slow_start, cubic)),
            CubicArithmetic::Linux => {
                Box::new(LinuxCubic::new(slow_start, cubic, config.recovery.timer_tick))
            }
        },
        CongestionConfig::Bbr1 { seed } => Box::new(Bbr1::new(config, *seed)),
        CongestionConfig::Bbr3 { seed } => Box::new(Bbr3::new(config, *seed)),
        CongestionConfig::Fixed { segments } => {
            window.cwnd = f64::from((*segments).max(1));
            window.ssthresh = window.cwnd;
            Box::new(Fixed { window: window.cwnd })
        }
        CongestionConfig::External(external) => external.factory.build(config, external.seed),
    };
    (algorithm, window)
}
