//! Equal PRBs for all.

use super::slot::{BlockSizes, Candidate, Slot, Ue, UeId};

/// The state of the round.
#[derive(Debug, Default)]
pub(super) struct RoundRobin {
    /// The first UE of the next slot, if not all fit into one.
    next: Option<UeId>,
    /// Scratch: UEs that have new data and may send it.
    ready: Vec<Ready>,
    /// Scratch: UEs that could use another PRB, with what each is owed.
    hungry: Vec<(i64, usize)>,
}

/// A UE with new data.
#[derive(Clone, Copy, Debug)]
struct Ready {
    ue: UeId,
    /// Bytes to send.
    backlog: u64,
    /// Bytes that its rate cap allows.
    eligible: u64,
    /// PRBs that it needs for these bytes, and has so far.
    need: u32,
    given: u32,
}

/// One PRB in units of [`Ue::owed`].
const PRB: i64 = 1 << 32;

impl RoundRobin {
    /// Determines what each UE needs.
    pub(super) fn admit(&mut self, slot: &mut Slot, ues: &mut [Ue], candidates: &[Candidate]) {
        self.ready.clear();
        for candidate in candidates {
            let Candidate { ue, backlog, .. } = *candidate;
            let eligible = slot.admit(candidate, &mut ues[ue.0 as usize]);
            if eligible > 0 {
                self.ready.push(Ready { ue, backlog, eligible, need: 0, given: 0 });
            }
        }
    }

    /// Allocates what is left of the slot to the UEs that were [admitted](Self::admit).
    pub(super) fn allocate(&mut self, slot: &mut Slot, ues: &mut [Ue], sizes: &impl BlockSizes) {
        let mut ready = core::mem::take(&mut self.ready);
        // Each UE gets at least one PRB.
        let turns = ready.len().min(slot.prbs_left as usize).min(slot.ues_left as usize);
        if turns < ready.len() {
            self.rotate(&mut ready, turns);
        }
        let chosen = &mut ready[..turns];
        for ready in chosen.iter_mut() {
            ready.need = sizes.prbs_for(ready.ue, ready.eligible).max(1);
        }
        self.fill(slot.prbs_left, chosen, ues);
        for ready in chosen.iter().filter(|ready| ready.given > 0) {
            slot.prbs_left -= ready.given;
            let Ready { ue, backlog, given, .. } = *ready;
            slot.give((ue, backlog), given, &mut ues[ue.0 as usize], sizes);
        }
        self.ready = ready;
    }

    /// Moves the UEs whose turn it is to the front.
    fn rotate(&mut self, ready: &mut [Ready], turns: usize) {
        let first = self.next.map_or(0, |next| ready.partition_point(|ready| ready.ue < next));
        ready.rotate_left(first % ready.len());
        if turns > 0 {
            self.next = Some(UeId(ready[turns - 1].ue.0 + 1));
        }
    }

    /// Equal shares, in rounds: what a UE does not need goes to the others.
    fn fill(&mut self, mut left: u32, chosen: &mut [Ready], ues: &mut [Ue]) {
        self.hungry.clear();
        self.hungry.extend((0..chosen.len()).map(|index| (0, index)));
        // Every round except the last satisfies a UE or gives out all whole shares.
        while !self.hungry.is_empty() {
            // There are at most as many UEs as PRBs.
            let share = left / self.hungry.len() as u32;
            if share == 0 {
                break;
            }
            self.hungry.retain(|&(_, index)| {
                let ready = &mut chosen[index];
                let more = share.min(ready.need - ready.given);
                ready.given += more;
                left -= more;
                ready.given < ready.need
            });
        }
        if left > 0 && !self.hungry.is_empty() {
            self.remainder(left, chosen, ues);
        }
    }

    /// Fewer PRBs than UEs that need one: they go to those that are owed most. In the long run all
    /// get the same, whatever the number of PRBs.
    fn remainder(&mut self, left: u32, chosen: &mut [Ready], ues: &mut [Ue]) {
        let part = i64::from(left) * PRB / self.hungry.len() as i64;
        for (owed, index) in &mut self.hungry {
            let ue = &mut ues[chosen[*index].ue.0 as usize];
            ue.owed += part;
            *owed = -ue.owed;
        }
        self.hungry.select_nth_unstable(left as usize - 1);
        for &(_, index) in &self.hungry[..left as usize] {
            chosen[index].given += 1;
            ues[chosen[index].ue.0 as usize].owed -= PRB;
        }
    }
}
