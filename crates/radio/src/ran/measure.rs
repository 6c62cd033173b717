//! Evaluation of a UE's measurements: layer 3 filter, event A3, radio link monitoring.

use airpath_base::{Duration, Instant};

use super::config::{A3Config, FailureConfig, MeasurementConfig};

/// A UE's measurements of all cells.
#[derive(Clone, Debug)]
pub(super) struct Measurements {
    /// Weight of a new sample in the filtered value.
    weight: f64,
    a3: Option<A3Config>,
    failure: Option<FailureConfig>,
    /// Filtered SINR in dB, by cell; `None` before the first sample.
    filtered: Vec<Option<f64>>,
    /// Since when a cell has fulfilled A3's entering condition.
    entered: Vec<Option<Instant>>,
    sync: Sync,
}

/// Radio link monitoring.
#[derive(Clone, Copy, Debug, Default)]
struct Sync {
    /// Number of consecutive out-of-sync, or in-sync, samples.
    out: u32,
    inside: u32,
    /// When T310 expires.
    t310: Option<Instant>,
}

/// Out of range: the value measured, in dB, if there is no channel.
const NOTHING_DB: f64 = -30.0;

impl Measurements {
    pub(super) fn new(config: &MeasurementConfig, cells: usize) -> Self {
        let coefficient = config.a3.map_or(0, |a3| a3.filter_coefficient);
        let weight = libm::exp2(-f64::from(coefficient) / 4.0);
        let samples = config.period.as_secs_f64() / Duration::from_millis(200).as_secs_f64();
        Self {
            weight: 1.0 - libm::pow(1.0 - weight, samples),
            a3: config.a3,
            failure: config.failure,
            filtered: vec![None; cells],
            entered: vec![None; cells],
            sync: Sync::default(),
        }
    }

    /// Adds a sample of one cell.
    pub(super) fn add(&mut self, cell: usize, sinr_db: f64) {
        let sample = sinr_db.max(NOTHING_DB);
        let filtered = &mut self.filtered[cell];
        *filtered = Some(filtered.map_or(sample, |old| old + self.weight * (sample - old)));
    }

    /// The best cell so far; among equals the first.
    pub(super) fn best(&self) -> usize {
        let value = |cell: usize| self.filtered[cell].unwrap_or(NOTHING_DB);
        (1..self.filtered.len()).fold(0, |best, cell| match value(cell) > value(best) {
            true => cell,
            false => best,
        })
    }

    /// After all samples of `now`: the cell that event A3 reports, if any.
    pub(super) fn a3(&mut self, now: Instant, serving: usize) -> Option<usize> {
        let a3 = self.a3?;
        let here = self.filtered[serving]?;
        let mut reported: Option<usize> = None;
        for cell in (0..self.filtered.len()).filter(|&cell| cell != serving) {
            let Some(there) = self.filtered[cell] else { continue };
            // A3-1 and A3-2: enters above offset + hysteresis, leaves below offset - hysteresis
            if there - a3.hysteresis_db > here + a3.offset_db {
                let since = *self.entered[cell].get_or_insert(now);
                let better =
                    reported.is_none_or(|best| there > self.filtered[best].unwrap_or(here));
                if now.saturating_since(since) >= a3.time_to_trigger && better {
                    reported = Some(cell);
                }
            } else {
                // The condition must hold without interruption for timeToTrigger.
                self.entered[cell] = None;
            }
        }
        reported
    }

    /// Takes a sample of the serving cell; returns true if T310 expired.
    pub(super) fn monitor(&mut self, now: Instant, sinr_db: f64) -> bool {
        let Some(failure) = self.failure else { return false };
        let sync = &mut self.sync;
        sync.out = if sinr_db < failure.q_out_db { sync.out + 1 } else { 0 };
        sync.inside = if sinr_db > failure.q_in_db { sync.inside + 1 } else { 0 };
        if sync.inside >= failure.n311.max(1) {
            sync.t310 = None;
        } else if sync.t310.is_none() && sync.out >= failure.n310.max(1) {
            sync.t310 = Some(now + failure.t310);
        }
        sync.t310.is_some_and(|at| at <= now)
    }

    /// The serving cell changed: its timers restart, the filter continues.
    pub(super) fn moved(&mut self) {
        self.entered.fill(None);
        self.sync = Sync::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(40);

    fn measurements(a3: A3Config) -> Measurements {
        let config = MeasurementConfig { period: TICK, a3: Some(a3), failure: None };
        Measurements::new(&config, 2)
    }

    fn a3(filter_coefficient: u8) -> A3Config {
        A3Config {
            offset_db: 3.0,
            hysteresis_db: 1.0,
            time_to_trigger: Duration::from_millis(160),
            filter_coefficient,
        }
    }

    /// Number of ticks until A3 reports cell 1, which is better by `better_db`.
    fn ticks(mut measurements: Measurements, better_db: f64) -> Option<u64> {
        (0..100).find(|&tick| {
            measurements.add(0, 10.0);
            measurements.add(1, 10.0 + better_db);
            measurements.a3(Instant::ZERO + TICK * tick, 0) == Some(1)
        })
    }

    #[test]
    fn a3_waits_for_time_to_trigger_and_for_offset_and_hysteresis() {
        assert_eq!(ticks(measurements(a3(0)), 4.1), Some(4));
        assert_eq!(ticks(measurements(a3(0)), 4.0), None);
    }

    #[test]
    fn a_break_starts_time_to_trigger_again() {
        let mut measurements = measurements(a3(0));
        let mut report = |tick: u64, there: f64| {
            measurements.add(0, 10.0);
            measurements.add(1, there);
            measurements.a3(Instant::ZERO + TICK * tick, 0)
        };
        for tick in 0..3 {
            assert_eq!(report(tick, 20.0), None);
        }
        assert_eq!(report(3, 13.0), None);
        for tick in 4..8 {
            assert_eq!(report(tick, 20.0), None);
        }
        assert_eq!(report(8, 20.0), Some(1));
    }

    #[test]
    fn the_filter_keeps_its_time_constant_at_another_period() {
        // k = 4: halfway in 200 ms, five samples (TS 36.331 5.5.3.2).
        let mut measurements = measurements(a3(4));
        measurements.add(0, 0.0);
        for _ in 0..5 {
            measurements.add(0, 10.0);
        }
        assert!((measurements.filtered[0].unwrap() - 5.0).abs() < 1e-9);
    }

    #[test]
    fn t310_starts_with_n310_stops_with_n311_and_ends_in_failure() {
        let failure = FailureConfig {
            q_out_db: -8.0,
            q_in_db: -6.0,
            n310: 2,
            n311: 2,
            t310: Duration::from_millis(200),
            t304: Duration::from_millis(100),
            reestablishment: Duration::from_millis(100),
        };
        let config = MeasurementConfig { period: TICK, a3: None, failure: Some(failure) };
        let run = |samples: &[f64]| {
            let mut measurements = Measurements::new(&config, 1);
            (0..).zip(samples).find_map(|(tick, &sinr_db)| {
                measurements.monitor(Instant::ZERO + TICK * tick, sinr_db).then_some(tick)
            })
        };
        // T310 starts with the second, and expires 200 ms later.
        assert_eq!(run(&[-10.0; 10]), Some(6));
        // Values between the thresholds do not stop it.
        assert_eq!(run(&[-10.0, -10.0, -7.0, -7.0, -7.0, -7.0, -7.0]), Some(6));
        // One in-sync sample is too few, two are enough.
        assert_eq!(run(&[-10.0, -10.0, -5.0, -10.0, -10.0, -10.0, -10.0]), Some(6));
        assert_eq!(run(&[-10.0, -10.0, -5.0, -5.0, -10.0, -7.0, -10.0, -7.0]), None);
    }
}
