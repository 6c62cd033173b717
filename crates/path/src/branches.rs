//! Several parallel paths; a packet takes that of its flow.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::rc::Rc;

use airpath_base::{Drop, Instant, Packet};
use airpath_queue::Load;

use crate::{Departure, LinkMeter, Path, Stack};

/// The branch of each flow. Both directions of a path may share it.
pub type BranchOfFlow = Rc<RefCell<Vec<u32>>>;

/// Parallel paths: each packet takes the branch of its flow.
///
/// Only branches with something to do cost time. Packets that leave several branches at one instant
/// leave in the order of the branches.
pub struct Branches {
    pub(crate) paths: Vec<Stack>,
    /// The next event of each branch; [`Instant::MAX`] if there is none.
    armed: Vec<Instant>,
    /// Events of the branches. An entry that differs from `armed` is out of date; the first entry
    /// never is.
    due: BinaryHeap<Reverse<(Instant, u32)>>,
    /// Packets that had left when the last packet entered, and have not been polled yet.
    left: VecDeque<Departure>,
    flows: BranchOfFlow,
}

impl Branches {
    /// Joins these paths. `flows` has the branch of each flow before its first packet enters;
    /// unknown flows take the first branch.
    pub fn new(paths: Vec<Stack>, flows: BranchOfFlow) -> Self {
        let armed = vec![Instant::MAX; paths.len()];
        Self { paths, armed, due: BinaryHeap::new(), left: VecDeque::new(), flows }
    }

    /// Updates the time at which a branch is due next.
    pub(crate) fn arm(&mut self, branch: u32) {
        let next = self.paths[branch as usize].next_event().unwrap_or(Instant::MAX);
        if next != self.armed[branch as usize] {
            self.armed[branch as usize] = next;
            if next < Instant::MAX {
                self.due.push(Reverse((next, branch)));
            }
        }
        while let Some(&Reverse((at, branch))) = self.due.peek()
            && self.armed[branch as usize] != at
        {
            self.due.pop();
        }
    }

    /// Returns the branch of the next packet to enter. First takes everything that leaves any
    /// branch by `now`, because departures precede arrivals at the same instant.
    pub(crate) fn branch_for(&mut self, now: Instant, packet: &Packet) -> u32 {
        while let Some(departure) = self.poll_branches(now) {
            self.left.push_back(departure);
        }
        self.flows.borrow().get(packet.flow.0 as usize).copied().unwrap_or(0)
    }

    /// The next packet that has left a branch by `now`.
    fn poll_branches(&mut self, now: Instant) -> Option<Departure> {
        while let Some(&Reverse((at, branch))) = self.due.peek()
            && at <= now
        {
            // Only up to its own next event: another branch may be next after that.
            let departure = self.paths[branch as usize].poll(at);
            self.arm(branch);
            if departure.is_some() {
                return departure;
            }
        }
        None
    }
}

impl Path for Branches {
    fn enqueue(&mut self, now: Instant, packet: &Packet) {
        let branch = self.branch_for(now, packet);
        self.paths[branch as usize].enqueue(now, packet);
        self.arm(branch);
    }

    fn next_event(&self) -> Option<Instant> {
        let left = self.left.front().map(|departure| departure.at);
        left.or_else(|| self.due.peek().map(|&Reverse((at, _))| at))
    }

    fn poll(&mut self, now: Instant) -> Option<Departure> {
        match self.left.front() {
            Some(departure) if departure.at > now => None,
            Some(_) => self.left.pop_front(),
            None => self.poll_branches(now),
        }
    }

    fn poll_drop(&mut self) -> Option<Drop> {
        self.paths.iter_mut().find_map(|path| path.poll_drop())
    }

    fn load(&self) -> Load {
        let mut load = Load::default();
        self.left.iter().for_each(|departure| load.add(&departure.packet));
        self.paths.iter().fold(load, |sum, path| sum + path.load())
    }

    fn observe(&mut self, now: Instant, visit: &mut dyn FnMut(&LinkMeter)) {
        for branch in 0..self.paths.len() {
            self.paths[branch].observe(now, visit);
            // Observing a branch does everything that is due.
            self.arm(branch as u32);
        }
    }
}

impl From<Branches> for Stack {
    fn from(branches: Branches) -> Self {
        Self::new(branches)
    }
}
