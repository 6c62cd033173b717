//! The UEs of a cell, and what their downlinks are known to need.

use std::ops::Index;

use airpath_base::{Instant, fast_paths};

use super::ue::Ue;

/// All UEs, and the time until which the downlink of each UE needs the same from the scheduler.
///
/// The list is a [`Memo`](airpath_base::Memo) of many states. UEs are read through `Index`. Code
/// that changes a UE calls [`touch`](Self::touch), which forgets what is known of the UE, or
/// [`aside`](Self::aside) if the change makes no difference to the downlink scheduler.
#[derive(Debug, Default)]
pub(super) struct Ues {
    ues: Vec<Ue>,
    /// The time until which the need of each UE is the same. The times are stored separately from
    /// the UEs, because each slot reads all of them.
    same_until: Vec<Instant>,
    /// The time until which the need of each UE is the same except for the MCS.
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

    /// Returns a UE for a change, and forgets what is known of it.
    #[inline]
    pub(super) fn touch(&mut self, ue: u32) -> &mut Ue {
        self.expect(ue, Instant::ZERO);
        self.aside(ue)
    }

    /// Returns a UE for a change that makes no difference to the downlink scheduler: to the uplink,
    /// to what the UE receives, or to packets that are being prepared.
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

    /// Remembers that the downlink of a UE needs the same until `unchanged`, and the same MCS until `mcs`,
    /// unless something happens to the UE before.
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

    /// How many UEs at the beginning of `ues` need at `now` what they needed before.
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
