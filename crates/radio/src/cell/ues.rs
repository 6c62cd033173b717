//! The UEs of a cell, and what their downlinks are known to need.

use std::ops::Index;

use airpath_base::{Instant, fast_paths};

use super::ue::Ue;

/// All UEs, and for each the time up to which its downlink needs the same of the scheduler.
///
/// It is a [`Memo`](airpath_base::Memo) of many states. UEs are read through `Index`. Whoever
/// changes one goes through [`touch`](Self::touch), which forgets what is known of it, or states by
/// [`aside`](Self::aside) that the scheduler of the downlink finds nothing else than before.
#[derive(Debug, Default)]
pub(super) struct Ues {
    ues: Vec<Ue>,
    /// For each UE, until when its need is the same. It is stored separately from the UEs, because
    /// each slot reads all of them.
    same_until: Vec<Instant>,
    /// Until when it is the same except for the MCS.
    unchanged_until: Vec<Instant>,
}

impl Ues {
    pub(super) fn with_capacity(ues: usize) -> Self {
        Self {
            ues: Vec::with_capacity(ues),
            same_until: Vec::with_capacity(ues),
            unchanged_until: Vec::with_capacity(ues),
        }
    }

    pub(super) fn push(&mut self, ue: Ue) {
        self.ues.push(ue);
        self.same_until.push(Instant::ZERO);
        self.unchanged_until.push(Instant::ZERO);
    }

    pub(super) fn len(&self) -> usize {
        self.ues.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Ue> {
        self.ues.iter()
    }

    /// Access to a UE for a change. Nothing is known of it afterwards.
    #[inline]
    pub(super) fn touch(&mut self, ue: u32) -> &mut Ue {
        self.expect(ue, Instant::ZERO);
        self.aside(ue)
    }

    /// Access to a UE for a change after which the scheduler of the downlink finds what it found
    /// before: of the uplink, of what the UE receives, or of packets that are being prepared.
    #[inline]
    pub(super) fn aside(&mut self, ue: u32) -> &mut Ue {
        &mut self.ues[ue as usize]
    }

    /// Something will happen to a UE at `at`.
    #[inline]
    pub(super) fn expect(&mut self, ue: u32, at: Instant) {
        for until in [&mut self.same_until, &mut self.unchanged_until] {
            let until = &mut until[ue as usize];
            *until = at.min(*until);
        }
    }

    /// Until something happens to a UE, and no longer than `unchanged`, its downlink needs the same,
    /// and the same MCS until `mcs`.
    pub(super) fn remember(&mut self, ue: u32, unchanged: Instant, mcs: Instant) {
        self.unchanged_until[ue as usize] = unchanged;
        self.same_until[ue as usize] = unchanged.min(mcs);
    }

    /// Until when a UE's downlink needs the same except for the MCS, if that is known at `now`.
    #[inline]
    pub(super) fn unchanged_until(&self, ue: u32, now: Instant) -> Option<Instant> {
        let until = self.unchanged_until[ue as usize];
        (fast_paths() && now < until).then_some(until)
    }

    /// How many of these UEs, in sequence, need at `now` what they needed before.
    #[inline]
    pub(super) fn count_same(&self, ues: &[u32], now: Instant) -> usize {
        let is_same = |&ue: &u32| {
            fast_paths() && self.same_until.get(ue as usize).is_some_and(|&until| now < until)
        };
        ues.iter().position(|ue| !is_same(ue)).unwrap_or(ues.len())
    }
}

impl Index<u32> for Ues {
    type Output = Ue;

    #[inline]
    fn index(&self, ue: u32) -> &Ue {
        &self.ues[ue as usize]
    }
}
