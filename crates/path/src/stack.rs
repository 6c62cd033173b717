//! A stack of stages, and the sealed extension of [`Path`] by which its driver takes fast paths.

use airpath_base::{Drop, Instant, Packet, fast_paths};
use airpath_queue::Load;

use crate::{Departure, LinkMeter, Path, Wire};

/// A stack of stages, as [`build`](crate::build) makes it.
///
/// Beside those of a [`Path`] it has three calls for a driver that polls at every event. They take
/// the fast paths of its stages (`fast_path.rs`), unless [`fast_paths`] forbids that.
pub struct Stack(Box<dyn FastPath>);

/// What the verbs of a stage come to in a common case, for less work. The methods here use the
/// verbs; `fast_path.rs` has the stages that do better, each beside the condition for that.
pub(crate) trait FastPath: Path {
    /// See [`Stack::enter`].
    #[inline]
    fn enter(&mut self, now: Instant, packet: &Packet) -> bool {
        self.enqueue(now, packet);
        true
    }

    /// [`enter`](Self::enter) for a stage that polls this one at once. Returns true if the
    /// packet would leave unchanged at `now` and nothing else is due; then it has not entered.
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
    /// The stages that end with this one.
    pub(crate) fn new(last: impl FastPath + 'static) -> Self {
        Self(Box::new(last))
    }

    /// [`enqueue`](Path::enqueue). Returns false if [`next_event`](Path::next_event) has not
    /// changed.
    #[inline]
    pub fn enter(&mut self, now: Instant, packet: &Packet) -> bool {
        if fast_paths() {
            return self.0.enter(now, packet);
        }
        self.enqueue(now, packet);
        true
    }

    /// [`poll`](Path::poll) without the departure time, for a driver that polls when something is
    /// due. Writes into `next` what [`next_event`](Path::next_event) is afterwards,
    /// [`Instant::MAX`] for `None`.
    #[inline]
    pub fn poll_next(&mut self, now: Instant, next: &mut Instant) -> Option<Packet> {
        if fast_paths() { self.0.poll_next(now, next) } else { poll_next(self, now, next) }
    }

    /// Calls `take` for everything that [`poll`](Path::poll) would return, without returning the
    /// packets: those that lie in the last stage need not be copied. Returns false if none has left
    /// by `now`.
    #[inline]
    pub fn poll_all(&mut self, now: Instant, take: &mut dyn FnMut(&Packet)) -> bool {
        if fast_paths() { self.0.poll_all(now, take) } else { poll_all(self, now, take) }
    }
}

/// A wire.
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
