//! Where the round trips of a flow spend their time.

use std::collections::{BTreeMap, VecDeque};

use airpath_base::{Duration, Instant, Journey, Part, Segment, Site};
use airpath_record::{DelayBreakdown, DelayPart};

use crate::goodput::Activities;

/// Measured times, and what they were spent on.
#[derive(Debug, Default)]
pub(super) struct TimeSpent {
    samples: u64,
    whole: Duration,
    parts: BTreeMap<(Part, Site), Duration>,
}

impl TimeSpent {
    /// Adds a measured time of `whole`, of which these journeys are known, and the `pause` between
    /// them at the receiver.
    pub(super) fn add(&mut self, whole: Duration, journeys: &[&Journey], pause: Duration) {
        self.samples += 1;
        let mut known = pause;
        self.spend(Part::Acknowledgement, Site::default(), pause);
        for spent in journeys.iter().flat_map(|journey| &journey.spent) {
            self.spend(spent.part, spent.place, spent.time);
            known += spent.time;
        }
        self.spend(Part::Unattributed, Site::default(), whole.saturating_sub(known));
        // A clock of whole microseconds may have measured less than the true time.
        self.whole += whole.max(known);
    }

    fn spend(&mut self, part: Part, place: Site, time: Duration) {
        if time > Duration::ZERO {
            *self.parts.entry((part, place)).or_default() += time;
        }
    }

    /// Means over the samples; `None` without samples. `name` maps places to names.
    pub(super) fn breakdown(
        &self,
        name: &mut dyn FnMut(Site) -> Option<String>,
    ) -> Option<DelayBreakdown> {
        if self.samples == 0 {
            return None;
        }
        let mean = |time: Duration| time.as_millis_f64() / self.samples as f64;
        let whole = mean(self.whole);
        let mut parts: Vec<DelayPart> = Vec::new();
        for (&(part, place), &time) in &self.parts {
            let place = has_place(part).then(|| name(place)).flatten();
            let ms = mean(time);
            let share = if whole > 0.0 { ms / whole } else { 0.0 };
            let same = |one: &&mut DelayPart| one.part == part.name() && one.place == place;
            match parts.iter_mut().find(same) {
                Some(known) => {
                    known.ms += ms;
                    known.share += share;
                }
                None => parts.push(DelayPart { part: part.name(), place, ms, share }),
            }
        }
        Some(DelayBreakdown { mean: whole, samples: self.samples, parts })
    }
}

/// Propagation is one part, wherever it occurs, and so is what belongs to no place.
const fn has_place(part: Part) -> bool {
    !matches!(part, Part::Propagation | Part::Acknowledgement | Part::Unattributed)
}

/// How many segments are remembered after they were acknowledged.
const ACKNOWLEDGED: usize = 4_096;

/// The round trips of one TCP sender.
#[derive(Debug, Default)]
pub(super) struct RoundTrips {
    spent: TimeSpent,
    /// Segments that have arrived and are not known to be acknowledged.
    arrived: VecDeque<(u64, Journey)>,
    /// The segments acknowledged last: a timestamp may be echoed again.
    acknowledged: VecDeque<(u64, Journey)>,
    /// What the sender did.
    pub(super) activities: Activities,
}

impl RoundTrips {
    /// A segment from the sender has arrived.
    pub(super) fn on_arrival(&mut self, segment: &Segment, journey: Journey) {
        let transit = journey.ended.saturating_since(journey.began);
        let shortest = self.activities.transit.map_or(transit, |known| known.min(transit));
        self.activities.transit = Some(shortest);
        if segment.sequence_len() > 0 {
            self.arrived.push_back((segment.end(), journey));
        }
    }

    /// An acknowledgement has arrived, which may have given an RTT.
    pub(super) fn on_ack(&mut self, segment: &Segment, journey: &Journey, rtt: Option<Duration>) {
        if let Some(rtt) = rtt {
            let Self { spent, arrived, acknowledged, .. } = self;
            let find =
                |sent| find(arrived.iter(), sent).or_else(|| find(acknowledged.iter().rev(), sent));
            match journey.ended.checked_sub(rtt).and_then(find) {
                Some(data) => {
                    let pause = journey.began.saturating_since(data.ended);
                    spent.add(rtt, &[data, journey], pause);
                }
                None => spent.add(rtt, &[], Duration::ZERO),
            }
        }
        while self.arrived.front().is_some_and(|(end, _)| *end <= segment.ack) {
            if self.acknowledged.len() == ACKNOWLEDGED {
                self.acknowledged.pop_front();
            }
            self.acknowledged.extend(self.arrived.pop_front());
        }
    }

    pub(super) fn spent(&self) -> &TimeSpent {
        &self.spent
    }
}

/// The first of these segments that was sent at `sent`; timestamps count microseconds, in odd
/// numbers.
fn find<'a>(
    segments: impl Iterator<Item = &'a (u64, Journey)> + Clone,
    sent: Instant,
) -> Option<&'a Journey> {
    let journeys = segments.map(|(_, journey)| journey);
    let stamp = |at: Instant| (at.as_nanos() / 1_000) | 1;
    let mut exact = journeys.clone();
    exact
        .find(|journey| journey.began == sent)
        .or_else(|| journeys.clone().find(|it| stamp(it.began) == stamp(sent)))
}
