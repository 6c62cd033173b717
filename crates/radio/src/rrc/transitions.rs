//! The state, and its changes until they are polled.

use std::collections::VecDeque;

use airpath_base::Instant;

use super::{RrcState, Transition};

#[derive(Clone, Debug)]
pub(super) struct Transitions {
    state: RrcState,
    unread: VecDeque<Transition>,
}

impl Transitions {
    pub(super) fn new(state: RrcState) -> Self {
        // There are few changes of state between two polls.
        Self { state, unread: VecDeque::with_capacity(8) }
    }

    pub(super) fn state(&self) -> RrcState {
        self.state
    }

    pub(super) fn change(&mut self, at: Instant, to: RrcState) {
        self.unread.push_back(Transition { at, from: self.state, to });
        self.state = to;
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.unread.front().map(|transition| transition.at)
    }

    pub(super) fn poll(&mut self, now: Instant) -> Option<Transition> {
        if self.next()? > now {
            return None;
        }
        self.unread.pop_front()
    }
}
