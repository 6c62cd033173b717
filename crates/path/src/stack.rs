//! A stack of stages, and the sealed extension of [`Path`] that gives a driver the fast paths.

use airpath_base::{Drop, Instant, Packet, fast_paths};
use airpath_queue::Load;

use crate::{Departure, LinkMeter, Path, Wire};

/// A stack of stages, as [`build`](crate::build) makes it.
///
/// In addition to the methods of a [`Path`], a stack has three methods for a driver that polls at
/// every event. They take the fast paths of the stages (`fast_path.rs`), unless [`fast_paths`]
/// forbids it.
pub struct Stack(Box<dyn FastPath>);

/// Versions of a stage's verbs that do less work in a common case. The default methods call the
/// verbs. `fast_path.rs` has the stages that do better, each with the condition for it.
pub(crate) trait FastPath: Path {
    /// See [`Stack::enter`].
    #[inline]
    fn enter(&mut self, now: Instant, packet: &Packet) -> bool {
        self.enqueue(now, packet);
        true
    }

    /// Enters a packet as [`enter`](Self::enter) does, for a stage that polls this one at once.
    /// Returns true if the packet would leave unchanged at `now` and nothing else is due; the
    /// packet has then not entered.
    #[inline]
    fn transit(&mut self, now: Instant, packet: &Packet) -> bool {
        self.enter(now, packet);
        false
    }

    /// See [`Stack::poll_next`].
    #[inline(always)]
    fn poll_next(&mut self, now: Instant, next: &mut Instant) -> Option<Packet> {
        poll_next(self, now, next)
    }

    /// See [`Stack::poll_all`].
    #[inline]
    fn poll_all(&mut self, now: Instant, take: &mut dyn FnMut(&Packet)) -> bool {
        poll_all(self, now, take)
    }
}

#[inline(always)]
fn poll_next(path: &mut (impl Path + ?Sized), now: Instant, next: &mut Instant) -> Option<Packet> {
    let departure = path.poll(now);
    *next = path.next_event().unwrap_or(Instant::MAX);
    departure.map(|departure| departure.packet)
}

#[inline]
fn poll_all(path: &mut (impl Path + ?Sized), now: Instant, take: &mut dyn FnMut(&Packet)) -> bool {
    let departures = std::iter::from_fn(|| path.poll(now));
    departures.inspect(|departure| take(&departure.packet)).count() > 0
}

impl Stack {
    /// Creates a stack that ends with the stage `last`.
    pub(crate) fn new(last: impl FastPath + 'static) -> Self {
        Self(Box::new(last))
    }

    /// Enters a packet as [`enqueue`](Path::enqueue) does. Returns false if
    /// [`next_event`](Path::next_event) has not changed.
    #[inline]
    pub fn enter(&mut self, now: Instant, packet: &Packet) -> bool {
        if fast_paths() {
            return self.0.enter(now, packet);
        }
        self.enqueue(now, packet);
        true
    }

    /// Polls as [`poll`](Path::poll) does, without the departure time, for a driver that polls when
    /// something is due. Writes the [`next_event`](Path::next_event) afterwards into `next`, or
    /// [`Instant::MAX`] for `None`.
    #[inline]
    pub fn poll_next(&mut self, now: Instant, next: &mut Instant) -> Option<Packet> {
        if fast_paths() { self.0.poll_next(now, next) } else { poll_next(self, now, next) }
    }

    /// Calls `take` for each packet that [`poll`](Path::poll) would return. Packets in the last
    /// stage need not be copied. Returns false if none has left by `now`.
    #[inline]
    pub fn poll_all(&mut self, now: Instant, take: &mut dyn FnMut(&Packet)) -> bool {
        if fast_paths() { self.0.poll_all(now, take) } else { poll_all(self, now, take) }
    }
}

/// A stack without stages: a wire.
impl Default for Stack {
    fn default() -> Self {
        Self::new(Wire::new())
    }
}

impl Path for Stack {
    fn enqueue(&mut self, now: Instant, packet: &Packet) {
        self.0.enqueue(now, packet);
    }

    fn next_event(&self) -> Option<Instant> {
        self.0.next_event()
    }

    fn poll(&mut self, now: Instant) -> Option<Departure> {
        self.0.poll(now)
    }

    fn poll_drop(&mut self) -> Option<Drop> {
        self.0.poll_drop()
    }

    fn load(&self) -> Load {
        self.0.load()
    }

    fn observe(&mut self, now: Instant, visit: &mut dyn FnMut(&LinkMeter)) {
        self.0.observe(now, visit);
    }
}

impl FastPath for Stack {
    fn enter(&mut self, now: Instant, packet: &Packet) -> bool {
        self.0.enter(now, packet)
    }

    fn transit(&mut self, now: Instant, packet: &Packet) -> bool {
        self.0.transit(now, packet)
    }

    fn poll_next(&mut self, now: Instant, next: &mut Instant) -> Option<Packet> {
        self.0.poll_next(now, next)
    }

    fn poll_all(&mut self, now: Instant, take: &mut dyn FnMut(&Packet)) -> bool {
        self.0.poll_all(now, take)
    }
}
