//! The three verbs of a path, and the empty path that every other stage wraps.

use std::collections::VecDeque;

use airpath_base::{Drop, Instant, Packet};
use airpath_queue::Load;

use crate::LinkMeter;

/// One direction of a path, or one stage wrapped around the stages before it.
///
/// A caller
/// 1. calls [`enqueue`](Path::enqueue) when a packet enters, with times that never decrease;
/// 2. asks [`next_event`](Path::next_event) when to poll;
/// 3. calls [`poll`](Path::poll) at that time, or later, until it returns `None`.
///
/// Slicing: polling at t1 and then at t2 yields what polling at t2 alone yields, because every
/// departure carries the logical time at which it happened and nothing depends on when it was
/// polled. A stage therefore completes, inside `enqueue(now)`, everything due until `now` before it
/// admits the packet, and keeps departures until they are polled.
///
/// A path stays on its thread: the directions of a pair may share state
/// ([`build_pair`](crate::build_pair)).
///
/// `poll(now)` may lag behind the last `enqueue`: it then returns what had left by `now`.
///
/// ```
/// use airpath_base::{Duration, Ecn, FlowId, Instant, Packet, Payload, Tunnel};
/// use airpath_path::{Delay, Path, Wire};
///
/// let mut path = Delay::new(Wire::new(), Duration::from_millis(20));
/// let packet = Packet {
///     flow: FlowId(0),
///     size: 1500,
///     ecn: Ecn::NotEct,
///     tunnel: Tunnel::default(),
///     journey: None,
///     payload: Payload::Opaque(1),
/// };
/// path.enqueue(Instant::ZERO, &packet);
/// let due = path.next_event().unwrap();
/// assert_eq!(due.as_nanos(), 20_000_000);
/// assert_eq!(path.poll(due).unwrap().packet, packet);
/// ```
pub trait Path {
    /// A packet enters.
    fn enqueue(&mut self, now: Instant, packet: &Packet);

    /// Like [`enqueue`](Path::enqueue). Returns false if [`next_event`](Path::next_event) has not
    /// changed.
    #[inline]
    fn enter(&mut self, now: Instant, packet: &Packet) -> bool {
        self.enqueue(now, packet);
        true
    }

    /// Like [`enqueue`](Path::enqueue), for a stage that polls this one at once. Returns true if
    /// the packet would leave unchanged at `now` and nothing else is due; then it has not entered.
    #[inline]
    fn transit(&mut self, now: Instant, packet: &Packet) -> bool {
        self.enqueue(now, packet);
        false
    }

    /// When polling may next yield something or has internal work; `None`: not before an enqueue.
    fn next_event(&self) -> Option<Instant>;

    /// The next packet that has left by `now`, in order of departure.
    fn poll(&mut self, now: Instant) -> Option<Departure>;

    /// Like [`poll`](Path::poll), for a caller that polls when something is due and does not need
    /// the departure time. Writes into `next` what [`next_event`](Path::next_event) is afterwards,
    /// [`Instant::MAX`] for `None`.
    #[inline(always)]
    fn poll_next(&mut self, now: Instant, next: &mut Instant) -> Option<Packet> {
        let departure = self.poll(now);
        *next = self.next_event().unwrap_or(Instant::MAX);
        departure.map(|departure| departure.packet)
    }

    /// Calls `take` for everything that [`poll`](Path::poll) would return, without returning the
    /// packets: those that lie in the stage need not be copied. Returns false if none has left by
    /// `now`.
    #[inline]
    fn poll_all(&mut self, now: Instant, take: &mut dyn FnMut(&Packet)) -> bool {
        let mut any = false;
        while let Some(departure) = self.poll(now) {
            take(&departure.packet);
            any = true;
        }
        any
    }

    /// The next packet that was dropped, stage by stage, not in order of time.
    fn poll_drop(&mut self) -> Option<Drop>;

    /// What is inside: entered, and neither returned by `poll` nor dropped. Bytes are those of the
    /// packets, without tunnel headers.
    fn load(&self) -> Load;

    /// Advances every link to `now` and visits its meter, first stage first.
    fn observe(&mut self, now: Instant, visit: &mut dyn FnMut(&LinkMeter));
}

/// A departing packet, and the logical time at which it left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Departure {
    /// When it left; not later than the `now` of the poll.
    pub at: Instant,
    /// The packet, with the marks that stages have set.
    pub packet: Packet,
}

impl Path for Box<dyn Path> {
    fn transit(&mut self, now: Instant, packet: &Packet) -> bool {
        (**self).transit(now, packet)
    }
    fn enter(&mut self, now: Instant, packet: &Packet) -> bool {
        (**self).enter(now, packet)
    }
    fn enqueue(&mut self, now: Instant, packet: &Packet) {
        (**self).enqueue(now, packet);
    }
    fn next_event(&self) -> Option<Instant> {
        (**self).next_event()
    }
    fn poll(&mut self, now: Instant) -> Option<Departure> {
        (**self).poll(now)
    }
    fn poll_next(&mut self, now: Instant, next: &mut Instant) -> Option<Packet> {
        (**self).poll_next(now, next)
    }
    fn poll_all(&mut self, now: Instant, take: &mut dyn FnMut(&Packet)) -> bool {
        (**self).poll_all(now, take)
    }
    fn poll_drop(&mut self) -> Option<Drop> {
        (**self).poll_drop()
    }
    fn load(&self) -> Load {
        (**self).load()
    }
    fn observe(&mut self, now: Instant, visit: &mut dyn FnMut(&LinkMeter)) {
        (**self).observe(now, visit);
    }
}

/// No delay, no limit, no loss: a packet leaves at the instant at which it enters.
#[derive(Debug, Default)]
pub struct Wire {
    inside: VecDeque<Departure>,
}

impl Wire {
    /// An empty wire.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Path for Wire {
    #[inline]
    fn transit(&mut self, now: Instant, packet: &Packet) -> bool {
        if self.inside.is_empty() {
            return true;
        }
        self.enqueue(now, packet);
        false
    }

    #[inline]
    fn enqueue(&mut self, now: Instant, packet: &Packet) {
        self.inside.push_back(Departure { at: now, packet: *packet });
    }

    #[inline]
    fn enter(&mut self, now: Instant, packet: &Packet) -> bool {
        self.enqueue(now, packet);
        self.inside.len() == 1
    }

    #[inline]
    fn next_event(&self) -> Option<Instant> {
        self.inside.front().map(|departure| departure.at)
    }

    #[inline]
    fn poll(&mut self, now: Instant) -> Option<Departure> {
        if self.inside.front()?.at > now {
            return None;
        }
        self.inside.pop_front()
    }

    #[inline(always)]
    fn poll_next(&mut self, now: Instant, next: &mut Instant) -> Option<Packet> {
        let first = self.inside.front().map_or(Instant::MAX, |departure| departure.at);
        if first > now {
            *next = first;
            return None;
        }
        let second = self.inside.get(1);
        *next = second.map_or(Instant::MAX, |departure| departure.at);
        self.inside.pop_front().map(|departure| departure.packet)
    }

    #[inline]
    fn poll_all(&mut self, now: Instant, take: &mut dyn FnMut(&Packet)) -> bool {
        let due = self.inside.iter().take_while(|departure| departure.at <= now).count();
        self.inside.range(..due).for_each(|departure| take(&departure.packet));
        self.inside.drain(..due);
        due > 0
    }

    fn poll_drop(&mut self) -> Option<Drop> {
        None
    }

    fn load(&self) -> Load {
        let mut load = Load::default();
        self.inside.iter().for_each(|departure| load.add(&departure.packet));
        load
    }

    fn observe(&mut self, _now: Instant, _visit: &mut dyn FnMut(&LinkMeter)) {}
}
