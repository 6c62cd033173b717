//! What the packets of one direction of a bearer spend their time on.
//!
//! What they wait for is a state of the bearer, not of each packet: the account sums the time in
//! each state, and a packet takes the difference between two times. So a packet costs nothing while
//! it waits.

use std::collections::BTreeMap;

use airpath_base::{Duration, Instant, JourneyId, Journeys, Part, Site};

/// What prevents the packets of a direction from being sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wait {
    /// The scheduler's next slot, or other UEs' turns.
    Slot,
    /// Earlier packets that are being sent.
    Queue,
    /// The occasion of a scheduling request.
    Sr,
    /// A requested grant, or the granted block.
    Grant,
    /// The response to a buffer status report.
    Bsr,
    /// The UE to wake up.
    Drx,
    /// Random access.
    RandomAccess,
    /// An RRC connection.
    Rrc,
    /// The UE to arrive in another cell.
    Handover,
}

impl Wait {
    const PARTS: [Part; 9] = [
        Part::Slot,
        Part::Queue,
        Part::Sr,
        Part::Grant,
        Part::Bsr,
        Part::Drx,
        Part::RandomAccess,
        Part::Rrc,
        Part::Handover,
    ];
}

/// Nanoseconds in each state since the account was opened; their sum is the time since then.
type Waited = [i64; Wait::PARTS.len()];

/// When a block was sent and received.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BlockTimes {
    /// When it was filled and first sent.
    pub(crate) first: Instant,
    /// Start of the transmission that was decoded.
    pub(crate) from: Instant,
    pub(crate) until: Instant,
}

/// The account of one direction of a bearer.
#[derive(Debug)]
pub(crate) struct WaitMeter {
    journeys: Journeys,
    place: Site,
    /// What a packet that has arrived waits for.
    held: Part,
    state: Wait,
    since: Instant,
    /// The previous state.
    before: Wait,
    waited: Waited,
    /// Number of packets of which something has never been sent, and the time during which there
    /// were any.
    waiting: usize,
    busy: Duration,
    busy_since: Instant,
    inside: BTreeMap<JourneyId, Inside>,
}

/// A packet inside the bearer.
#[derive(Debug)]
struct Inside {
    /// When it arrived.
    came: Waited,
    /// When its first byte was sent, if not together with the last one.
    begun: Option<(Instant, Waited)>,
    /// When its last byte was first sent.
    sent: Option<(Instant, Waited)>,
    /// The last block that brought bytes of it, and when RLC received that.
    received: Option<(BlockTimes, Instant)>,
}

impl WaitMeter {
    pub(crate) fn new(journeys: Journeys, place: Site) -> Self {
        Self {
            journeys,
            place,
            held: Part::Rlc,
            state: Wait::Slot,
            since: Instant::ZERO,
            before: Wait::Slot,
            waited: Waited::default(),
            waiting: 0,
            busy: Duration::ZERO,
            busy_since: Instant::ZERO,
            inside: BTreeMap::new(),
        }
    }

    /// Whether a packet that has arrived may wait for what another carrier brings.
    pub(crate) const fn aggregate(&mut self, carriers: bool) {
        self.held = if carriers { Part::Reordering } else { Part::Rlc };
    }

    /// Notes what packets wait for from `now` on.
    pub(crate) fn wait(&mut self, now: Instant, state: Wait) {
        if state == self.state || now < self.since {
            return;
        }
        self.waited = self.waited_at(now);
        (self.before, self.state, self.since) = (self.state, state, now);
    }

    /// Packets are processed slightly late, but not across two changes of state.
    fn waited_at(&self, at: Instant) -> Waited {
        let mut waited = self.waited;
        let (since, at) = (self.since.as_nanos() as i64, at.as_nanos() as i64);
        let state = if at >= since { self.state } else { self.before };
        waited[state as usize] += at - since;
        waited
    }

    /// A packet reaches the cell: what it waits for counts from now on, or once it is prepared.
    pub(crate) fn arrive(&mut self, now: Instant, id: JourneyId, waits_at_once: bool) {
        if !self.inside.contains_key(&id) {
            // If anything, the time was spent between base stations.
            self.journeys.until(id, now, Part::Handover, self.place);
            if waits_at_once {
                self.insert(now, id);
            }
        }
    }

    /// A packet enters the buffer, after it was prepared.
    pub(crate) fn enter(&mut self, at: Instant, id: JourneyId) {
        if !self.inside.contains_key(&id) {
            self.journeys.until(id, at, Part::Processing, self.place);
            self.insert(at, id);
        }
    }

    /// How long something waited to be sent, until `now`.
    pub(crate) fn busy(&self, now: Instant) -> Duration {
        let open =
            if self.waiting > 0 { now.saturating_since(self.busy_since) } else { Duration::ZERO };
        self.busy + open
    }

    /// Updates the number of waiting packets.
    fn count(&mut self, at: Instant, waiting: usize) {
        if self.waiting == 0 {
            self.busy_since = at;
        } else if waiting == 0 {
            self.busy += at.saturating_since(self.busy_since);
        }
        self.waiting = waiting;
    }

    fn insert(&mut self, at: Instant, id: JourneyId) {
        self.count(at, self.waiting + 1);
        let came = self.waited_at(at);
        self.inside.insert(id, Inside { came, begun: None, sent: None, received: None });
    }

    /// The first bytes of a packet, but not the last, are sent.
    pub(crate) fn begun(&mut self, now: Instant, id: JourneyId) {
        let waited = self.waited_at(now);
        if let Some(inside) = self.inside.get_mut(&id) {
            inside.begun.get_or_insert((now, waited));
        }
    }

    /// The last byte of a packet is sent for the first time.
    pub(crate) fn sent(&mut self, now: Instant, id: JourneyId) {
        let waited = self.waited_at(now);
        let Some(inside) = self.inside.get_mut(&id) else { return };
        if inside.sent.replace((now, waited)).is_none() {
            self.count(now, self.waiting - 1);
        }
    }

    /// A block that brings bytes of a packet has reached RLC.
    pub(crate) fn received(&mut self, now: Instant, id: JourneyId, block: BlockTimes) {
        if let Some(inside) = self.inside.get_mut(&id) {
            inside.received = Some((block, now));
        }
    }

    /// A packet is delivered: records where its time went.
    pub(crate) fn deliver(&mut self, at: Instant, id: JourneyId) {
        let Some(inside) = self.inside.remove(&id) else { return };
        if inside.sent.is_none() {
            self.count(at, self.waiting - 1);
        }
        let Self { journeys, place, held, .. } = self;
        let until = |at: Instant, part: Part| journeys.until(id, at, part, *place);
        if let Some((sent, waited)) = inside.sent {
            let wait = |from: Waited, to: Waited, until: Instant, own: bool| {
                for (part, (after, before)) in Wait::PARTS.into_iter().zip(to.iter().zip(from)) {
                    let left = until.saturating_since(journeys.accounted(id).unwrap_or(until));
                    let spent = u64::try_from(after - before).unwrap_or(0).min(left.as_nanos());
                    let part = match part {
                        Part::Queue | Part::Slot if own => Part::Serialisation,
                        part => part,
                    };
                    journeys.spend(id, Duration::from_nanos(spent), part, *place);
                }
            };
            // A segmented packet waits for its own first bytes.
            let (begun, at_begin) = inside.begun.filter(|it| it.0 < sent).unwrap_or((sent, waited));
            wait(inside.came, at_begin, begun, false);
            wait(at_begin, waited, sent, true);
            if let Some((block, reached)) = inside.received {
                if block.first > sent {
                    // RLC retransmitted it.
                    until(block.first, Part::Rlc);
                }
                until(block.from, Part::Harq);
                until(block.until, Part::Serialisation);
                until(reached, Part::Processing);
            }
        }
        until(at, *held);
    }

    /// A packet is dropped.
    pub(crate) fn forget(&mut self, at: Instant, id: JourneyId) {
        if self.inside.remove(&id).is_some_and(|inside| inside.sent.is_none()) {
            self.count(at, self.waiting - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use airpath_base::Journey;

    fn ms(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    fn parts(journey: &Journey) -> Vec<(Part, u64)> {
        journey.spent.iter().map(|it| (it.part, it.time.as_nanos() / 1_000_000)).collect()
    }

    #[test]
    fn a_packet_waits_for_what_its_bearer_waits_for() {
        let journeys = Journeys::default();
        let mut account = WaitMeter::new(journeys.clone(), Site(3));
        let id = journeys.begin(ms(0)).unwrap();
        account.arrive(ms(0), id, true);
        account.wait(ms(0), Wait::Sr);
        account.wait(ms(4), Wait::Grant);
        account.sent(ms(12), id);
        let block = BlockTimes { first: ms(12), from: ms(20), until: ms(21) };
        account.received(ms(23), id, block);
        assert_eq!(account.busy(ms(25)), Duration::from_millis(12));
        account.deliver(ms(30), id);
        let journey = journeys.end(id, ms(30)).unwrap();
        assert_eq!(
            parts(&journey),
            [
                (Part::Sr, 4),
                (Part::Grant, 8),
                (Part::Harq, 8),
                (Part::Serialisation, 1),
                (Part::Processing, 2),
                (Part::Rlc, 7)
            ]
        );
    }

    #[test]
    fn a_packet_that_is_taken_in_late_waits_from_its_own_time_on() {
        let journeys = Journeys::default();
        let mut account = WaitMeter::new(journeys.clone(), Site(0));
        let id = journeys.begin(ms(1)).unwrap();
        account.wait(ms(0), Wait::Queue);
        account.wait(ms(10), Wait::Slot);
        account.enter(ms(6), id);
        account.sent(ms(12), id);
        account.deliver(ms(12), id);
        let journey = journeys.end(id, ms(12)).unwrap();
        assert_eq!(parts(&journey), [(Part::Processing, 5), (Part::Slot, 2), (Part::Queue, 4)]);
    }

    #[test]
    fn a_packet_that_is_cut_is_being_sent_between_its_pieces() {
        let journeys = Journeys::default();
        let mut account = WaitMeter::new(journeys.clone(), Site(0));
        let id = journeys.begin(ms(0)).unwrap();
        account.enter(ms(0), id);
        account.begun(ms(3), id);
        account.wait(ms(3), Wait::Queue);
        account.wait(ms(5), Wait::Bsr);
        account.sent(ms(9), id);
        account.deliver(ms(9), id);
        let journey = journeys.end(id, ms(9)).unwrap();
        let expected = [(Part::Slot, 3), (Part::Serialisation, 2), (Part::Bsr, 4)];
        assert_eq!(parts(&journey), expected);
    }

    #[test]
    fn what_rlc_sends_again_is_rlcs() {
        let journeys = Journeys::default();
        let mut account = WaitMeter::new(journeys.clone(), Site(0));
        let id = journeys.begin(ms(0)).unwrap();
        account.enter(ms(0), id);
        account.sent(ms(2), id);
        account.received(ms(52), id, BlockTimes { first: ms(50), from: ms(50), until: ms(51) });
        account.deliver(ms(52), id);
        let journey = journeys.end(id, ms(52)).unwrap();
        let expected =
            [(Part::Slot, 2), (Part::Rlc, 48), (Part::Serialisation, 1), (Part::Processing, 1)];
        assert_eq!(parts(&journey), expected);
    }
}
