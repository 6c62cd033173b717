//! An MCS that moves by single steps, as the measured block error rate asks.

use airpath_base::{Duration, Instant};

/// Bounds of the block error rate, and how it is measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StepsConfig {
    /// Time between two steps, above zero.
    pub window: Duration,
    /// Below this block error rate the MCS rises by one.
    pub lower_bler: f64,
    /// Above this one it falls by one.
    pub upper_bler: f64,
    /// How much the average of earlier windows counts beside the last window, from 0 to 1.
    pub memory: f64,
    /// MCS at the start.
    pub start: u8,
}

impl Default for StepsConfig {
    fn default() -> Self {
        Self {
            window: Duration::from_millis(100),
            lower_bler: 0.05,
            upper_bler: 0.15,
            memory: 0.9,
            start: 9,
        }
    }
}

/// Raises and lowers the MCS so that the share of failed first transmissions stays between two
/// bounds, without regard to what the UE reports or the base station measures. After a window with
/// few blocks the MCS falls to its start, one step per window: the channel may have changed.
#[derive(Clone, PartialEq, Debug)]
pub struct Steps {
    config: StepsConfig,
    mcs: u8,
    bler: f64,
    blocks: u32,
    failed: u32,
    since: Instant,
}

/// With fewer blocks in a window its error rate says nothing.
const LEAST_BLOCKS: u32 = 4;

impl Steps {
    /// Begins at the start of the run with an average in the middle between the bounds.
    pub fn new(config: StepsConfig) -> Self {
        let bler = (config.lower_bler + config.upper_bler) / 2.0;
        Self { config, mcs: config.start, bler, blocks: 0, failed: 0, since: Instant::ZERO }
    }

    /// The MCS of a new block at `now`, at most `highest`.
    pub fn mcs(&mut self, now: Instant, highest: u8) -> u8 {
        self.mcs = self.mcs.min(highest);
        if now.saturating_since(self.since) >= self.config.window {
            self.since = now;
            self.step(highest);
        }
        self.mcs
    }

    /// When the next step is due.
    pub fn next_step(&self) -> Instant {
        self.since + self.config.window
    }

    /// Takes the HARQ feedback of an initial transmission.
    pub fn on_feedback(&mut self, acknowledged: bool) {
        self.blocks += 1;
        self.failed += u32::from(!acknowledged);
    }

    fn step(&mut self, highest: u8) {
        let StepsConfig { lower_bler, upper_bler, memory, start, .. } = self.config;
        if self.blocks > 0 {
            let window = f64::from(self.failed) / f64::from(self.blocks);
            self.bler = memory * self.bler + (1.0 - memory) * window;
        }
        let few = self.blocks < LEAST_BLOCKS;
        if !few && self.bler < lower_bler {
            self.mcs = highest.min(self.mcs + 1);
        } else if self.bler > upper_bler || (few && self.mcs > start) {
            self.mcs = self.mcs.saturating_sub(1);
        }
        (self.blocks, self.failed) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The MCS after each of `windows` windows of 40 blocks that fail with the rate of their MCS.
    fn course(windows: u32, failed_of_40: impl Fn(u8) -> u32) -> Vec<u8> {
        let mut steps = Steps::new(StepsConfig::default());
        let mut now = Instant::ZERO;
        (0..windows)
            .map(|_| {
                let mcs = steps.mcs(now, 28);
                for block in 0..40 {
                    steps.on_feedback(block >= failed_of_40(mcs));
                }
                now += Duration::from_millis(100);
                mcs
            })
            .collect()
    }

    #[test]
    fn it_climbs_once_the_average_is_below_the_lower_bound() {
        // 0.1 × 0.9^n is below 0.05 from n = 7 on.
        assert_eq!(course(10, |_| 0), [9, 9, 9, 9, 9, 9, 9, 10, 11, 12]);
    }

    #[test]
    fn it_stays_where_the_error_rate_is_between_the_bounds() {
        let failed = |mcs: u8| match mcs {
            0..=17 => 0,
            18 => 4,
            _ => 20,
        };
        let mcs = course(400, failed);
        assert!(mcs[300..].iter().all(|&mcs| mcs == 18), "{:?}", &mcs[300..]);
    }

    #[test]
    fn without_traffic_it_returns_to_its_start() {
        let mut steps = Steps::new(StepsConfig::default());
        steps.mcs = 20;
        let at = |window: u64| Instant::ZERO + Duration::from_millis(100 * window);
        let course: Vec<u8> = (1..15).map(|window| steps.mcs(at(window), 28)).collect();
        assert_eq!((course[0], course[10], course[13]), (19, 9, 9));
        assert_eq!(steps.next_step(), at(15));
    }
}
