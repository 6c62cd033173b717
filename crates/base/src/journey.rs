//! Where packets spend their time: an account for each packet, written where the time is spent.

use core::num::NonZeroU32;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Duration, Instant};

/// Number of a packet's journey within a run, from 1.
pub type JourneyId = NonZeroU32;

macro_rules! parts {
    ($($(#[$doc:meta])* $variant:ident = $name:literal;)*) => {
        /// What time is spent on.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum Part {
            $($(#[$doc])* $variant,)*
        }

        impl Part {
            /// All parts, in the order of tables.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The part's stable name.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

parts! {
    /// Fixed delay of the path itself.
    Propagation = "propagation";
    /// Transmission by a link, or in blocks of the radio.
    Serialisation = "serialisation";
    /// Waiting behind other packets of the same queue.
    Queue = "queue";
    /// Random delay of a stage.
    Jitter = "jitter";
    /// Waiting for a batch to leave.
    Batching = "batching";
    /// Processing in a host that forwards in software, or in the UE's host.
    Host = "host";
    /// Preparation or decoding by base station and UE.
    Processing = "radio_processing";
    /// Waiting for the scheduler's next slot, with nothing ahead in its own queue.
    Slot = "slot";
    /// Waiting for the occasion of a scheduling request (TS 38.321 5.4.4).
    Sr = "sr";
    /// From the scheduling request, or from when the base station knows of the data, to the granted
    /// block.
    Grant = "grant";
    /// From a block with a buffer status report to the block granted for it (TS 38.321 5.4.5).
    Bsr = "bsr";
    /// Waiting for a sleeping UE to listen again (TS 38.321 5.7).
    Drx = "drx";
    /// Waiting for the end of random access (TS 38.321 5.1).
    RandomAccess = "random_access";
    /// Waiting for an RRC connection.
    Rrc = "rrc";
    /// Between two cells.
    Handover = "handover";
    /// Blocks that failed and were retransmitted by HARQ.
    Harq = "harq";
    /// RLC retransmissions, and waiting for what was sent before (in-order delivery).
    Rlc = "rlc";
    /// Waiting in PDCP for packets that the other leg of a split bearer carries (TS 38.323 5.2.2).
    Reordering = "reordering";
    /// From the arrival of a segment to its acknowledgement: delayed acknowledgements, offload,
    /// gaps.
    Acknowledgement = "acknowledgement";
    /// Time not accounted for.
    Unattributed = "unattributed";
}

/// A place where time is spent, numbered by the builder of the path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Site(pub u32);

/// Time spent on one part in one place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spent {
    /// The part on which it was spent.
    pub part: Part,
    /// The place where it was spent.
    pub place: Site,
    /// The time spent.
    pub time: Duration,
}

/// A journey that has ended. The times of `spent` sum to `ended - began`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Journey {
    /// When the packet was sent.
    pub began: Instant,
    /// When it arrived.
    pub ended: Instant,
    /// What the time in between was spent on; each pair of part and place occurs once.
    pub spent: Vec<Spent>,
}

/// The journeys of a run, shared by everything that writes into them.
///
/// Each journey has a time up to which it is accounted for, which only moves forward: whatever is
/// recorded, the parts sum to the whole.
///
/// ```
/// use airpath_base::{Duration, Instant, Journeys, Part, Site};
///
/// let journeys = Journeys::default();
/// let id = journeys.begin(Instant::ZERO).expect("numbers are left");
/// journeys.until(id, Instant::from_nanos(30), Part::Queue, Site(1));
/// journeys.spend(id, Duration::from_nanos(12), Part::Serialisation, Site(1));
/// let journey = journeys.end(id, Instant::from_nanos(50)).expect("it began");
/// let parts: Vec<_> = journey.spent.iter().map(|it| (it.part, it.time.as_nanos())).collect();
/// assert_eq!(parts, [(Part::Queue, 30), (Part::Serialisation, 12), (Part::Unattributed, 8)]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Journeys(Arc<Mutex<OpenJourneys>>);

#[derive(Debug, Default)]
struct OpenJourneys {
    /// Number of journeys that ended before the first of `open`.
    ended: u32,
    open: VecDeque<Option<Open>>,
}

#[derive(Debug)]
struct Open {
    began: Instant,
    /// Time up to which it is accounted for.
    until: Instant,
    spent: Vec<Spent>,
}

impl Journeys {
    /// A run is on one thread: there is no contention.
    fn open(&self) -> MutexGuard<'_, OpenJourneys> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A packet is sent. `None`: there are no numbers left.
    pub fn begin(&self, now: Instant) -> Option<JourneyId> {
        let mut journeys = self.open();
        let number = u32::try_from(journeys.open.len()).ok()?.checked_add(journeys.ended)?;
        let id = JourneyId::new(number.checked_add(1)?)?;
        journeys.open.push_back(Some(Open { began: now, until: now, spent: Vec::new() }));
        Some(id)
    }

    /// The time not accounted for until `at` was spent on `part`.
    pub fn until(&self, id: JourneyId, at: Instant, part: Part, place: Site) {
        self.open().edit(id, |journey| {
            let time = at.saturating_since(journey.until);
            journey.add(time, part, place);
        });
    }

    /// The next `time` was spent on `part`.
    pub fn spend(&self, id: JourneyId, time: Duration, part: Part, place: Site) {
        self.open().edit(id, |journey| journey.add(time, part, place));
    }

    /// Time up to which the journey is accounted for.
    pub fn accounted(&self, id: JourneyId) -> Option<Instant> {
        let mut until = None;
        self.open().edit(id, |journey| until = Some(journey.until));
        until
    }

    /// The packet has arrived: removes and returns its journey.
    pub fn end(&self, id: JourneyId, now: Instant) -> Option<Journey> {
        let mut open = self.open().take(id)?;
        let rest = now.saturating_since(open.until);
        open.add(rest, Part::Unattributed, Site::default());
        Some(Journey { began: open.began, ended: now, spent: open.spent })
    }

    /// The packet was lost: removes its journey.
    pub fn forget(&self, id: JourneyId) {
        self.open().take(id);
    }
}

impl OpenJourneys {
    fn slot(&mut self, id: JourneyId) -> Option<&mut Option<Open>> {
        let index = (id.get() - 1).checked_sub(self.ended)?;
        self.open.get_mut(index as usize)
    }

    fn edit(&mut self, id: JourneyId, edit: impl FnOnce(&mut Open)) {
        if let Some(Some(open)) = self.slot(id) {
            edit(open);
        }
    }

    fn take(&mut self, id: JourneyId) -> Option<Open> {
        let taken = self.slot(id)?.take();
        while let Some(None) = self.open.front() {
            self.open.pop_front();
            self.ended += 1;
        }
        taken
    }
}

impl Open {
    fn add(&mut self, time: Duration, part: Part, place: Site) {
        if time == Duration::ZERO {
            return;
        }
        self.until += time;
        match self.spent.iter_mut().find(|it| (it.part, it.place) == (part, place)) {
            Some(known) => known.time += time,
            None => self.spent.push(Spent { part, place, time }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    #[test]
    fn parts_sum_to_the_whole_whatever_is_said() {
        let journeys = Journeys::default();
        let id = journeys.begin(at(5)).unwrap();
        journeys.until(id, at(9), Part::Queue, Site(1));
        journeys.until(id, at(7), Part::Host, Site(1));
        journeys.until(id, at(20), Part::Queue, Site(1));
        let journey = journeys.end(id, at(26)).unwrap();
        let sum = journey.spent.iter().fold(Duration::ZERO, |sum, it| sum + it.time);
        assert_eq!(sum, journey.ended - journey.began);
        let queue = Spent { part: Part::Queue, place: Site(1), time: Duration::from_nanos(15) };
        assert_eq!(journey.spent[0], queue);
        assert_eq!(journey.spent.len(), 2, "what takes no time is no part");
    }

    #[test]
    fn journeys_end_in_any_order_and_once() {
        let journeys = Journeys::default();
        let ids: Vec<_> = (0..4).map(|ns| journeys.begin(at(ns)).unwrap()).collect();
        assert_eq!(journeys.end(ids[2], at(10)).unwrap().began, at(2));
        journeys.forget(ids[0]);
        assert_eq!(journeys.end(ids[1], at(10)).unwrap().began, at(1));
        assert_eq!(journeys.end(ids[0], at(10)), None);
        assert_eq!(journeys.end(ids[3], at(10)).unwrap().began, at(3));
        assert_eq!(journeys.begin(at(11)).unwrap().get(), 5);
        assert!(journeys.open().open.len() == 1, "what has ended is not kept");
    }

    #[test]
    fn parts_have_names_of_their_own() {
        let mut names: Vec<_> = Part::ALL.iter().map(|part| part.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Part::ALL.len());
    }
}
