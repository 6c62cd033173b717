//! The three verbs of a path, how it is inspected, and the empty path that every other stage wraps.

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
/// [`poll_drop`](Path::poll_drop), [`load`](Path::load) and [`observe`](Path::observe) inspect a path;
/// a stage passes them on to the stages before it.
///
/// A path stays on its thread: the directions of a pair may share state
/// ([`build_pair`](crate::build_pair)).
///
/// `poll(now)` may lag behind the last `enqueue`: it then returns what had left by `now`.
///
/// ```
/// use airpath_base::{Duration, Ecn, FlowId, Instant, Packet, Payload, Tunnel};
/// use airpath_path::{DelayConfig, Path, StageConfig, build};
///
/// let delay = DelayConfig { base: Duration::from_millis(20), jitter: None };
/// let mut path = build([("delay", &StageConfig::Delay(delay))], 1);
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

    /// When polling may next yield something or has internal work; `None`: not before an enqueue.
    fn next_event(&self) -> Option<Instant>;

    /// The next packet that has left by `now`, in order of departure.
    fn poll(&mut self, now: Instant) -> Option<Departure>;

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

impl<P: Path + ?Sized> Path for Box<P> {
    fn enqueue(&mut self, now: Instant, packet: &Packet) {
        (**self).enqueue(now, packet);
    }

    fn next_event(&self) -> Option<Instant> {
        (**self).next_event()
    }

    fn poll(&mut self, now: Instant) -> Option<Departure> {
        (**self).poll(now)
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
    pub(crate) inside: VecDeque<Departure>,
}

impl Wire {
    /// An empty wire.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Path for Wire {
    #[inline]
    fn enqueue(&mut self, now: Instant, packet: &Packet) {
        self.inside.push_back(Departure { at: now, packet: *packet });
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
