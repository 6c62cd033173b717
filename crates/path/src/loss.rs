//! Loss that does not depend on load.

use std::sync::Arc;

use airpath_base::{DropReason, Instant, Packet, Stream};

use crate::filter::Filter;
use crate::{LossConfig, LossProcess};

/// Drops some packets. The fragments of a tunnelled packet are lost independently; losing one loses the
/// packet.
#[derive(Debug)]
pub(crate) struct Loss {
    process: Process,
    min_bytes: u32,
}

#[derive(Debug)]
enum Process {
    Random {
        probability: f64,
        stream: Stream,
    },
    Periodic {
        period: u64,
        passed: u64,
    },
    /// The remaining numbers, ascending, and how many packets have passed.
    Numbered {
        numbers: Arc<[u64]>,
        next: usize,
        passed: u64,
    },
    GilbertElliott {
        to_bad: f64,
        to_good: f64,
        good: f64,
        bad: f64,
        is_bad: bool,
        stream: Stream,
    },
}

impl Loss {
    /// Creates a loss process from `config`; random loss draws from `stream`.
    pub(crate) fn new(config: LossConfig, stream: Stream) -> Self {
        let LossConfig { process, min_bytes } = config;
        let process = match process {
            LossProcess::Random { probability } => Process::Random { probability, stream },
            LossProcess::Periodic { period } => {
                Process::Periodic { period: period.max(1), passed: 0 }
            }
            LossProcess::Numbered { numbers } => Process::Numbered { numbers, next: 0, passed: 0 },
            LossProcess::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad } => {
                Process::GilbertElliott {
                    to_bad: good_to_bad,
                    to_good: bad_to_good,
                    good: loss_good,
                    bad: loss_bad,
                    is_bad: false,
                    stream,
                }
            }
        };
        Self { process, min_bytes }
    }
}

impl Process {
    /// Decides the fate of the fragments of a packet one by one; true if any is lost.
    #[inline]
    fn loses_any(&mut self, fragments: u32) -> bool {
        (0..fragments).fold(false, |lost, _| self.loses() || lost)
    }

    /// Decides the fate of one packet and moves on.
    fn loses(&mut self) -> bool {
        match self {
            Self::Random { probability, stream } => stream.chance(*probability),
            Self::Periodic { period, passed } => {
                *passed = (*passed + 1) % *period;
                *passed == 0
            }
            Self::Numbered { numbers, next, passed } => {
                *passed += 1;
                let lost = numbers.get(*next) == Some(passed);
                *next += usize::from(lost);
                lost
            }
            Self::GilbertElliott { to_bad, to_good, good, bad, is_bad, stream } => {
                // Two draws per packet whatever the state, so that parameters can be compared with
                // the same random numbers.
                let lost = stream.chance(if *is_bad { *bad } else { *good });
                let leaves = stream.chance(if *is_bad { *to_good } else { *to_bad });
                *is_bad ^= leaves;
                lost
            }
        }
    }
}

impl Filter for Loss {
    fn apply(&mut self, _at: Instant, packet: &mut Packet) -> Result<(), DropReason> {
        let fragments = 1 + u32::from(packet.tunnel.further_fragments);
        if packet.size >= self.min_bytes && self.process.loses_any(fragments) {
            return Err(DropReason::Loss);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(process: LossProcess, packets: usize) -> Vec<bool> {
        let config = LossConfig { process, min_bytes: 0 };
        let mut loss = Loss::new(config, Stream::new(3, "loss"));
        (0..packets).map(|_| loss.process.loses()).collect()
    }

    #[test]
    fn periodic_loses_exactly_the_last_of_each_period() {
        let fates = lost(LossProcess::Periodic { period: 4 }, 12);
        assert_eq!(fates, [false, false, false, true].repeat(3));
    }

    #[test]
    fn numbered_loses_exactly_those() {
        let fates = lost(LossProcess::Numbered { numbers: [1, 3, 4].into() }, 6);
        assert_eq!(fates, [true, false, true, true, false, false]);
    }

    #[test]
    fn small_packets_are_neither_lost_nor_counted() {
        use airpath_base::{Ecn, FlowId, Payload, Tunnel};
        let process = LossProcess::Numbered { numbers: [2].into() };
        let config = LossConfig { process, min_bytes: 100 };
        let mut loss = Loss::new(config, Stream::new(3, "loss"));
        let passes = [1500, 52, 52, 1500, 1500].map(|size| {
            let (flow, ecn, tunnel) = (FlowId(0), Ecn::NotEct, Tunnel::default());
            let payload = Payload::Opaque(0);
            let mut packet = Packet { flow, size, ecn, tunnel, journey: None, payload };
            loss.apply(Instant::ZERO, &mut packet).is_ok()
        });
        assert_eq!(passes, [true, true, true, false, true]);
    }

    #[test]
    fn random_loses_its_share() {
        let fates = lost(LossProcess::Random { probability: 0.02 }, 100_000);
        let share = fates.iter().filter(|&&lost| lost).count() as f64 / 1e5;
        assert!((share - 0.02).abs() < 0.002, "{share}");
    }

    #[test]
    fn gilbert_elliott_has_its_stationary_rate_and_burst_length() {
        // Rate = p / (p + r); mean burst = 1 / r (Gilbert 1960).
        let config = LossProcess::GilbertElliott {
            good_to_bad: 0.01,
            bad_to_good: 0.25,
            loss_good: 0.0,
            loss_bad: 1.0,
        };
        let fates = lost(config, 200_000);
        let total = fates.iter().filter(|&&lost| lost).count() as f64;
        let bursts = fates.windows(2).filter(|pair| !pair[0] && pair[1]).count() as f64;
        assert!((total / 2e5 - 0.01 / 0.26).abs() < 0.003, "{}", total / 2e5);
        assert!((total / bursts - 4.0).abs() < 0.2, "{}", total / bursts);
    }
}
