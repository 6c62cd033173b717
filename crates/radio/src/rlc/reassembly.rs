//! The reception buffer of an entity with numbered units: what has arrived of each.

use std::collections::VecDeque;

use airpath_base::fast_paths;

use super::block::Pdu;
use super::pieces::{Piece, Pieces};

/// Units from `base` on.
#[derive(Debug, Default)]
pub(crate) struct Reassembly {
    base: u64,
    units: VecDeque<Slot>,
    /// Received ranges of incomplete units.
    pieces: Pieces,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    unit: Unit,
    state: State,
}

/// A unit: bytes of one SDU or of several consecutive ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Unit {
    /// COUNT of the SDU that contains its first byte.
    pub(crate) sdu: u64,
    /// Offset in that SDU at which it begins.
    pub(crate) sdu_offset: u32,
    /// Size of that SDU.
    pub(crate) sdu_size: u32,
    /// Length of the unit; `None` if its end has not been seen.
    pub(crate) len: Option<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Missing,
    Partial,
    Complete,
}

/// The effect of a PDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Placed {
    /// It brought nothing new.
    Duplicate,
    /// The unit still lacks bytes.
    Partial,
    /// The unit is complete now.
    Complete,
}

impl Reassembly {
    /// The lowest SN held.
    pub(crate) const fn base(&self) -> u64 {
        self.base
    }

    /// Puts a PDU with `sn >= base` into the buffer.
    #[inline]
    pub(crate) fn place(&mut self, pdu: &Pdu) -> Placed {
        let index = (pdu.sn - self.base) as usize;
        while self.units.len() <= index {
            self.units.push_back(Slot { unit: Unit::default(), state: State::Missing });
        }
        let slot = &mut self.units[index];
        if slot.state == State::Complete {
            return Placed::Duplicate;
        }
        let Pdu { sdu, sdu_offset, sdu_size, .. } = *pdu;
        slot.unit = Unit { sdu, sdu_offset, sdu_size, len: slot.unit.len };
        if pdu.last {
            slot.unit.len = Some(pdu.end);
        }
        if !pdu.is_whole() {
            let new = self.pieces.add(Piece { sn: pdu.sn, start: pdu.start, end: pdu.end });
            if new == 0 {
                return Placed::Duplicate;
            }
            slot.state = State::Partial;
            let whole = Piece { sn: pdu.sn, start: 0, end: slot.unit.len.unwrap_or(0) };
            if self.pieces.of(pdu.sn).next() != Some(whole) {
                return Placed::Partial;
            }
        }
        if slot.state == State::Partial {
            self.pieces.remove(pdu.sn);
        }
        slot.state = State::Complete;
        Placed::Complete
    }

    /// Places the unit at the base and removes it at once, if it arrives whole and nothing else is
    /// held, which is the usual case.
    #[inline]
    pub(crate) fn take_in_order(&mut self, pdu: &Pdu) -> Option<Unit> {
        if pdu.sn != self.base || !pdu.is_whole() || !self.units.is_empty() || !fast_paths() {
            return None;
        }
        self.base += 1;
        let Pdu { sdu, sdu_offset, sdu_size, end, .. } = *pdu;
        Some(Unit { sdu, sdu_offset, sdu_size, len: Some(end) })
    }

    /// Everything below `sn` has arrived, and nothing else is held.
    #[inline]
    pub(crate) fn skip_to(&mut self, sn: u64) {
        debug_assert!(self.units.is_empty() && self.base <= sn, "units would be forgotten");
        self.base = sn;
    }

    fn state(&self, sn: u64) -> State {
        let index = sn.checked_sub(self.base).expect("units below the base are forgotten");
        self.units.get(index as usize).map_or(State::Missing, |slot| slot.state)
    }

    /// The unit with this SN, if it is complete.
    #[inline]
    pub(crate) fn complete(&self, sn: u64) -> Option<Unit> {
        let slot = self.units.get(sn.checked_sub(self.base)? as usize)?;
        (slot.state == State::Complete).then_some(slot.unit)
    }

    /// The first SN from `sn` on of which some bytes are missing.
    #[inline]
    pub(crate) fn first_incomplete(&self, mut sn: u64) -> u64 {
        while self.complete(sn).is_some() {
            sn += 1;
        }
        sn
    }

    /// Whether a byte of `sn` is missing before the last one that arrived.
    pub(crate) fn has_gap(&self, sn: u64) -> bool {
        if self.state(sn) != State::Partial {
            return false;
        }
        let mut pieces = self.pieces.of(sn);
        pieces.next().is_some_and(|first| first.start > 0) || pieces.next().is_some()
    }

    /// The missing part of `sn`: `None` if everything is missing, otherwise ranges; a range without
    /// an end extends to the unit's end, which has not been seen.
    pub(crate) fn missing(&self, sn: u64) -> Option<impl Iterator<Item = (u32, Option<u32>)> + '_> {
        if self.state(sn) == State::Missing {
            return None;
        }
        let len = self.units[(sn - self.base) as usize].unit.len;
        let mut pieces = self.pieces.of(sn).peekable();
        let mut at = 0;
        Some(core::iter::from_fn(move || {
            loop {
                let start = at;
                match pieces.next() {
                    Some(piece) => {
                        at = piece.end;
                        if piece.start > start {
                            return Some((start, Some(piece.start)));
                        }
                    }
                    None => {
                        at = u32::MAX;
                        let rest = start < len.unwrap_or(u32::MAX);
                        return rest.then_some((start, len));
                    }
                }
            }
        }))
    }

    /// The SDU of the unit at the base, if a part of that unit has arrived.
    pub(crate) fn partial_at_base(&self) -> Option<u64> {
        let slot = self.units.front()?;
        (slot.state == State::Partial).then_some(slot.unit.sdu)
    }

    /// Removes the unit at the base and returns it, if it is complete.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Unit> {
        let sn = self.base;
        self.base += 1;
        let slot = self.units.pop_front()?;
        match slot.state {
            State::Complete => Some(slot.unit),
            State::Missing => None,
            State::Partial => {
                self.pieces.remove(sn);
                None
            }
        }
    }

    /// Removes everything; the next unit is `sn`.
    pub(crate) fn reset(&mut self, sn: u64) {
        self.units.clear();
        self.pieces.clear();
        self.base = sn;
    }
}
