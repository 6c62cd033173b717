//! The two directions of a host that share its CPU.
//!
//! The CPU processes the packets of both directions in the order in which they arrive, as from the
//! one backlog that Linux has for each CPU (`net.core.netdev_max_backlog`). Each direction has a
//! ring of its own.
//!
//! Whichever direction is polled first takes what arrives in both until that time, in order. A
//! packet takes [`DECISION`] to the ring: at the very instant of its arrival, a packet may still
//! arrive in the other direction. At equal times the uplink packet comes first.
//!
//! The stages before one direction may ask for what has left the other: a NAT, or another CPU that
//! is shared. They ask about an earlier time, until which everything has been admitted. While they
//! are polled they are therefore not polled again ([`Shared::upstreams`]).

use std::cell::RefCell;
use std::rc::Rc;

use airpath_base::{Drop, Instant, Packet};
use airpath_queue::Load;

use crate::delay::Delay;
use crate::host::{Cpu, Ring};
use crate::middlebox::DECISION;
use crate::shift::Shifted;
use crate::{Departure, LinkMeter, Path, Stack};

/// The stages before each direction of a host, with the time that a decision takes.
type Upstreams = [Option<Shifted<Stack, Delay>>; 2];

/// The uplink's and the downlink's place in [`Shared`].
const UP: usize = 0;
const DOWN: usize = 1;

/// A host whose directions share its CPU.
struct Shared {
    cpu: Cpu,
    /// The stages before each direction; `None` while they are polled.
    upstreams: Option<Upstreams>,
    rings: [Option<Ring>; 2],
    /// The next event of each direction, before the other one admitted its packets: a driver that asked
    /// need not ask again.
    announced: [Option<Instant>; 2],
}

/// One direction of a host; the other one has another handle.
pub(crate) struct SharedHost {
    host: Rc<RefCell<Shared>>,
    own: usize,
}

impl SharedHost {
    /// The uplink of a host, which the downlink may [join](Self::joined).
    pub(crate) fn new(cpu: Cpu, upstream: Stack, ring: Ring) -> Self {
        let upstreams = Some([Some(Self::decided(upstream)), None]);
        let host = Shared { cpu, upstreams, rings: [Some(ring), None], announced: [None; 2] };
        Self { host: Rc::new(RefCell::new(host)), own: UP }
    }

    /// Another handle of the uplink, for [`joined`](Self::joined).
    pub(crate) fn handle(&self) -> Self {
        Self { host: Rc::clone(&self.host), own: self.own }
    }

    /// The downlink of the host whose uplink this is.
    pub(crate) fn joined(self, upstream: Stack, ring: Ring) -> Self {
        let mut host = self.host.borrow_mut();
        if let Some(upstreams) = &mut host.upstreams {
            upstreams[DOWN] = Some(Self::decided(upstream));
        }
        host.rings[DOWN] = Some(ring);
        drop(host);
        Self { host: self.host, own: DOWN }
    }

    fn decided(upstream: Stack) -> Shifted<Stack, Delay> {
        Shifted { upstream, shift: Delay(DECISION) }
    }

    /// Admits the packets of both directions that arrive by `until`, in order.
    fn pull(&self, until: Instant) {
        let Some(mut upstreams) = self.host.borrow_mut().upstreams.take() else { return };
        self.host.borrow_mut().announce(1 - self.own, &upstreams);
        while let Some(at) = next(&upstreams).filter(|&at| at <= until) {
            for (direction, upstream) in upstreams.iter_mut().enumerate() {
                let Some(upstream) = upstream else { continue };
                while let Some(Departure { at, packet }) = upstream.poll(at) {
                    self.host.borrow_mut().admit(direction, at, packet);
                }
            }
        }
        self.host.borrow_mut().upstreams = Some(upstreams);
    }

    /// Calls `what`, which may poll the stages before this direction at `now`, after all packets that
    /// arrive by then were admitted.
    fn advance_upstream(&self, now: Instant, what: impl FnOnce(&mut Shifted<Stack, Delay>)) {
        self.pull(now);
        let Some(mut upstreams) = self.host.borrow_mut().upstreams.take() else { return };
        upstreams[self.own].as_mut().map(what);
        self.host.borrow_mut().upstreams = Some(upstreams);
    }

    /// Calls `what` with the stages before this direction; `None` while they are polled.
    fn with_upstream<T>(&self, what: impl FnOnce(&mut Shifted<Stack, Delay>) -> T) -> Option<T> {
        let mut host = self.host.borrow_mut();
        host.upstreams.as_mut()?[self.own].as_mut().map(what)
    }

    fn with_ring<T>(&self, what: impl FnOnce(&mut Ring) -> T) -> Option<T> {
        self.host.borrow_mut().rings[self.own].as_mut().map(what)
    }
}

/// When a packet next arrives in either direction.
fn next(upstreams: &Upstreams) -> Option<Instant> {
    upstreams.iter().flatten().filter_map(|upstream| upstream.next_event()).min()
}

impl Shared {
    fn announce(&mut self, direction: usize, upstreams: &Upstreams) {
        let Some(upstream) = &upstreams[direction] else { return };
        if self.announced[direction].is_none() {
            let departure = self.rings[direction].as_ref().and_then(Ring::next_departure);
            self.announced[direction] = departure.or_else(|| upstream.next_event());
        }
    }

    fn admit(&mut self, direction: usize, at: Instant, packet: Packet) {
        if let Some(ring) = &mut self.rings[direction] {
            ring.admit(&mut self.cpu, at, packet);
        }
    }
}

impl Path for SharedHost {
    fn enqueue(&mut self, now: Instant, packet: &Packet) {
        self.advance_upstream(now, |upstream| upstream.enqueue(now, packet));
    }

    fn next_event(&self) -> Option<Instant> {
        // Nothing overtakes: packets still upstream change nothing before that time.
        let departure = self.with_ring(|ring| ring.next_departure()).flatten();
        let arrival = || self.with_upstream(|upstream| upstream.next_event()).flatten();
        let announced = self.host.borrow().announced[self.own];
        departure.or_else(arrival).into_iter().chain(announced).min()
    }

    fn poll(&mut self, now: Instant) -> Option<Departure> {
        self.pull(now);
        self.host.borrow_mut().announced[self.own].take_if(|at| *at <= now);
        self.with_ring(|ring| ring.poll(now)).flatten()
    }

    fn poll_drop(&mut self) -> Option<Drop> {
        let upstream = self.with_upstream(|upstream| upstream.poll_drop()).flatten();
        upstream.or_else(|| self.with_ring(Ring::poll_drop).flatten())
    }

    fn load(&self) -> Load {
        let upstream = self.with_upstream(|upstream| upstream.load()).unwrap_or_default();
        upstream + self.with_ring(|ring| ring.load()).unwrap_or_default()
    }

    fn observe(&mut self, now: Instant, visit: &mut dyn FnMut(&LinkMeter)) {
        self.advance_upstream(now, |upstream| upstream.observe(now, visit));
    }
}
