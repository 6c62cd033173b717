//! NAT and firewall: hosts that the inside has contacted may answer.
//!
//! A middlebox is one thing in two directions. Its outward half remembers when each flow's packets
//! passed; its inward half asks about the time at which a packet arrives. Before it answers, the
//! outward half lets through everything that passed until that time, whoever polls it later; so
//! nothing depends on when either direction is polled.
//!
//! The stages before the outward half may in turn ask the inward half what it admits, if a host
//! shares its CPU between the directions (`shared.rs`). They ask about an earlier time, until which
//! everything has passed; while they are polled they are not polled again.
//!
//! The inward half takes [`DECISION`] per packet: at the very instant of the arrival, a packet may
//! still leave that opens a pinhole.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use airpath_base::{Drop, DropReason, Duration, FlowId, Instant, Packet};
use airpath_queue::Load;

use crate::delay::Delay;
use crate::filter::{Filter, Filtered};
use crate::shift::Shifted;
use crate::{Departure, LinkMeter, MiddleboxKind, MiddleboxTimer, Path, Stack};

/// How long the inward half takes: the shortest possible time.
pub(crate) const DECISION: Duration = Duration::from_nanos(1);

/// The outward half: everything passes.
///
/// It is a handle; the inward half holds another one.
pub(crate) struct Outward(pub(crate) Rc<RefCell<Passage>>);

/// The inward half: drops packets of flows without an open pinhole. Packets that reach it have been
/// delayed by [`DECISION`].
pub(crate) struct Inward {
    /// The outward half; `None`: nothing ever leaves the inside.
    outward: Option<Rc<RefCell<Passage>>>,
    kind: MiddleboxKind,
    /// Until when inbound packets keep each flow's pinhole open, if they do.
    refreshed: Vec<Option<Instant>>,
}

/// What lies before the outward half, and what has passed it, with times.
pub(crate) struct Passage {
    /// The stages before the outward half; `None` while they are polled.
    upstream: Option<Stack>,
    timer: MiddleboxTimer,
    /// Packets that passed and have not been polled yet.
    passed: VecDeque<Departure>,
    /// The next event before the inward half asked: a driver that knows it need not ask again.
    announced: Option<Instant>,
    /// When the pinhole of each flow was open, newest last.
    open: Vec<VecDeque<Open>>,
}

/// A period during which a flow's pinhole was open, both ends included.
#[derive(Clone, Copy, Debug)]
struct Open {
    from: Instant,
    until: Instant,
}

impl Outward {
    /// A packet that leaves `upstream` opens a pinhole for its flow.
    pub(crate) fn new(upstream: Stack, timer: MiddleboxTimer) -> Self {
        let (upstream, passed, open) = (Some(upstream), VecDeque::new(), Vec::new());
        let announced = None;
        Self(Rc::new(RefCell::new(Passage { upstream, timer, passed, announced, open })))
    }

    /// Another handle, for the inward half.
    pub(crate) fn handle(&self) -> Self {
        Self(Rc::clone(&self.0))
    }

    /// Calls `what`, which may poll the stages before this one at `now`, after all packets that pass by
    /// then were let through.
    pub(crate) fn advance_upstream(&self, now: Instant, what: impl FnOnce(&mut Stack)) {
        pull(&self.0, now);
        let Some(mut upstream) = self.0.borrow_mut().upstream.take() else { return };
        what(&mut upstream);
        self.0.borrow_mut().upstream = Some(upstream);
    }
}

impl Inward {
    /// The `stage`-th stage of its direction: admits what leaves `upstream` if `outward` is open
    /// for it.
    pub(crate) fn after<P: Path>(
        upstream: P,
        outward: Option<Outward>,
        kind: MiddleboxKind,
        stage: u32,
    ) -> Filtered<Shifted<P, Delay>, Self> {
        let inward = Self { outward: outward.map(|handle| handle.0), kind, refreshed: Vec::new() };
        Filtered::new(Shifted { upstream, shift: Delay(DECISION) }, inward, stage)
    }

    /// Decides on a packet that arrives at `at`.
    fn admits(&mut self, flow: FlowId, at: Instant) -> bool {
        let Some(outward) = &self.outward else { return false };
        outward.borrow_mut().announce();
        pull(outward, at);
        let mut outward = outward.borrow_mut();
        let timer = outward.timer;
        let index = flow.0 as usize;
        let kept = self.refreshed.get(index).is_some_and(|until| until.is_some_and(|u| at <= u));
        // Ask in either case, so that it forgets what will not be asked about again.
        let open = outward.is_open(flow, at) || kept;
        if open && timer.inward_refreshes {
            if index >= self.refreshed.len() {
                self.refreshed.resize(index + 1, None);
            }
            self.refreshed[index] = Some(at + timer.timeout);
        }
        open
    }
}

/// Lets through what passes until `until`, step by step: a stage before it may ask for what passed
/// before a step.
fn pull(passage: &Rc<RefCell<Passage>>, until: Instant) {
    let Some(mut upstream) = passage.borrow_mut().upstream.take() else { return };
    while let Some(at) = upstream.next_event().filter(|&at| at <= until) {
        while let Some(departure) = upstream.poll(at) {
            let mut passage = passage.borrow_mut();
            passage.note(departure.packet.flow, departure.at);
            passage.passed.push_back(departure);
        }
    }
    passage.borrow_mut().upstream = Some(upstream);
}

impl Passage {
    /// Remembers the next event.
    fn announce(&mut self) {
        self.announced = self.announced.or_else(|| self.next_event());
    }

    fn next_event(&self) -> Option<Instant> {
        let first = self.passed.front().map(|first| first.at);
        let event = first.or_else(|| self.upstream.as_ref()?.next_event());
        event.into_iter().chain(self.announced).min()
    }

    /// Whether a packet of `flow` passed at `at`, or at most the timeout before it.
    fn is_open(&mut self, flow: FlowId, at: Instant) -> bool {
        let Some(open) = self.open.get_mut(flow.0 as usize) else { return false };
        while open.front().is_some_and(|open| open.until < at) {
            open.pop_front();
        }
        open.front().is_some_and(|open| open.from <= at)
    }

    /// Adds or extends an entry: there is one for each period without a pause longer than the
    /// timeout.
    fn note(&mut self, FlowId(flow): FlowId, at: Instant) {
        let index = flow as usize;
        if index >= self.open.len() {
            self.open.resize_with(index + 1, VecDeque::new);
        }
        let until = at + self.timer.timeout;
        match self.open[index].back_mut() {
            Some(open) if at <= open.until => open.until = until,
            _ => self.open[index].push_back(Open { from: at, until }),
        }
    }
}

impl MiddleboxKind {
    const fn refuses_as(self) -> DropReason {
        match self {
            Self::Nat => DropReason::NoBinding,
            Self::Firewall => DropReason::Blocked,
        }
    }
}

impl Path for Outward {
    fn enqueue(&mut self, now: Instant, packet: &Packet) {
        self.advance_upstream(now, |upstream| upstream.enqueue(now, packet));
    }

    fn next_event(&self) -> Option<Instant> {
        self.0.borrow().next_event()
    }

    fn poll(&mut self, now: Instant) -> Option<Departure> {
        pull(&self.0, now);
        let Passage { passed, announced, .. } = &mut *self.0.borrow_mut();
        announced.take_if(|at| *at <= now);
        if passed.front()?.at > now {
            return None;
        }
        passed.pop_front()
    }

    fn poll_drop(&mut self) -> Option<Drop> {
        self.0.borrow_mut().upstream.as_mut()?.poll_drop()
    }

    fn load(&self) -> Load {
        let passage = self.0.borrow();
        let mut load = passage.upstream.as_ref().map_or_else(Load::default, |path| path.load());
        passage.passed.iter().for_each(|departure| load.add(&departure.packet));
        load
    }

    fn observe(&mut self, now: Instant, visit: &mut dyn FnMut(&LinkMeter)) {
        self.advance_upstream(now, |upstream| upstream.observe(now, visit));
    }
}

impl Filter for Inward {
    fn apply(&mut self, at: Instant, packet: &mut Packet) -> Result<(), DropReason> {
        let arrived = at.checked_sub(DECISION).unwrap_or_default();
        if self.admits(packet.flow, arrived) { Ok(()) } else { Err(self.kind.refuses_as()) }
    }
}
