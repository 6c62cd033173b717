//! Windowed maxima.

use std::collections::VecDeque;

/// The largest value of the last rounds, exactly; Linux keeps only the best three.
#[derive(Clone, Debug, Default)]
pub(super) struct WindowedMax {
    /// Values that fall from one round to the next; the first is the largest.
    best: VecDeque<(u64, f64)>,
}

impl WindowedMax {
    /// Takes a `value` of `round`, and forgets values from more than `window` rounds ago.
    pub(super) fn update(&mut self, round: u64, value: f64, window: u64) {
        while self.best.front().is_some_and(|&(at, _)| at + window < round) {
            self.best.pop_front();
        }
        while self.best.back().is_some_and(|&(_, known)| known <= value) {
            self.best.pop_back();
        }
        if self.best.back().is_none_or(|&(at, _)| at < round) {
            self.best.push_back((round, value));
        }
    }

    /// The largest value; 0 if there is none.
    pub(super) fn max(&self) -> f64 {
        self.best.front().map_or(0.0, |&(_, value)| value)
    }
}

/// The largest value of the last rounds by K. Nichols' filter. It keeps three values, so it forgets
/// most of a falling series. When the largest is too old, the next one is from a quarter of the
/// window later, or from half of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ThreeBest {
    /// Values that fall from one round to the next.
    best: [(u64, f64); 3],
}

impl ThreeBest {
    /// Takes a `value` of `round`, and forgets values from more than `window` rounds ago.
    pub(super) fn update(&mut self, round: u64, value: f64, window: u64) {
        let new = (round, value);
        let [first, second, third] = self.best;
        let age = |(at, _): (u64, f64)| round - at;
        if value >= first.1 || age(third) > window {
            self.best = [new; 3];
            return;
        }
        let second = if value >= second.1 { new } else { second };
        let third = if value >= third.1 { new } else { third };
        self.best = if age(first) > window && age(second) > window {
            [third, new, new]
        } else if age(first) > window {
            [second, third, new]
        } else if second.0 == first.0 && age(first) > window / 4 {
            [first, new, new]
        } else if third.0 == second.0 && age(first) > window / 2 {
            [first, second, new]
        } else {
            [first, second, third]
        };
    }

    /// The largest value; 0 if there is none.
    pub(super) const fn max(&self) -> f64 {
        self.best[0].1
    }
}

/// The largest value of this period and the previous one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TwoPeriods {
    last: f64,
    current: f64,
}

impl TwoPeriods {
    pub(super) fn update(&mut self, value: f64) {
        self.current = self.current.max(value);
    }

    /// Begins a new period.
    pub(super) fn advance(&mut self) {
        self.last = std::mem::take(&mut self.current);
    }

    /// Whether this period has a value yet.
    pub(super) fn has_current(&self) -> bool {
        self.current > 0.0
    }

    pub(super) fn max(&self) -> f64 {
        self.last.max(self.current)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn windowed_max_is_the_max_of_the_window(
            steps in proptest::collection::vec((0u64..3, 0u32..100), 1..200),
            window in 1u64..12,
        ) {
            let mut filter = WindowedMax::default();
            let mut history = Vec::new();
            let mut round = 0;
            for (pause, value) in steps {
                round += pause;
                let value = f64::from(value);
                filter.update(round, value, window);
                history.push((round, value));
                let recent = history.iter().filter(|&&(at, _)| at + window >= round);
                let expected = recent.map(|&(_, value)| value).fold(0.0, f64::max);
                prop_assert_eq!(filter.max(), expected);
                prop_assert!(filter.best.len() as u64 <= window + 1);
            }
        }
    }

    #[test]
    fn of_values_that_fall_three_are_kept() {
        // Linux 6.18, the filter of `bbr`: the largest value is that of round 0, then of round 3,
        // then of round 6.
        let mut filter = ThreeBest::default();
        let mut seen = Vec::new();
        for round in 0..20u32 {
            filter.update(round.into(), f64::from(100 - round), 10);
            seen.push(filter.max());
        }
        let expected = [(100.0, 11), (97.0, 3), (94.0, 3), (89.0, 3)];
        let expected = expected.iter().flat_map(|&(value, times)| vec![value; times]);
        assert_eq!(seen, expected.collect::<Vec<_>>());
        filter.update(20, 200.0, 10);
        assert_eq!(filter.max(), 200.0);
        filter.update(31, 50.0, 10);
        assert_eq!(filter.max(), 50.0, "all are too old");
    }

    #[test]
    fn two_periods_remember_the_last_one() {
        let mut filter = TwoPeriods::default();
        filter.update(5.0);
        filter.advance();
        filter.update(3.0);
        assert_eq!(filter.max(), 5.0);
        filter.advance();
        assert_eq!(filter.max(), 3.0);
    }
}
