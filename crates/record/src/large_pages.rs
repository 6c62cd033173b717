//! Memory in large pages, if the system has them.

use std::sync::{Arc, Mutex, PoisonError};

use arrow::buffer::Buffer;

use system::Mapping;

/// Adjacent pieces of memory in large pages. They can be written until the first of them becomes a
/// buffer.
#[derive(Clone, Debug, Default)]
pub(crate) struct LargePages(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    /// Mappings to write to; all except the last are full.
    mappings: Vec<Mapping>,
    /// The mappings once they are buffers.
    buffers: Vec<Buffer>,
}

/// A piece, and how many bytes of it are written.
#[derive(Debug)]
pub(crate) struct Piece {
    pages: LargePages,
    mapping: usize,
    start: usize,
    used: usize,
    room: usize,
}

impl LargePages {
    /// A piece of this many bytes, aligned to eight; `None` if the system has no large pages.
    pub(crate) fn piece(&self, bytes: usize) -> Option<Piece> {
        let room = bytes.next_multiple_of(8);
        let (mapping, start) = self.with(|State { mappings, buffers }| {
            if !buffers.is_empty() {
                return None;
            }
            if mappings.last().is_none_or(|last| last.left() < room) {
                mappings.push(Mapping::new()?);
            }
            Some((mappings.len() - 1, mappings.last_mut()?.take(room)?))
        })?;
        Some(Piece { pages: self.clone(), mapping, start, used: 0, room })
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        // A panic does not leave the state half changed.
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Piece {
    pub(crate) const fn len(&self) -> usize {
        self.used
    }

    /// Appends bytes. Returns false if they do not fit; then nothing was written.
    #[inline]
    pub(crate) fn append(&mut self, bytes: &[u8]) -> bool {
        let (place, end) = (self.start + self.used, self.used + bytes.len());
        let fits = end <= self.room
            && self.pages.with(|state| match state.mappings.get_mut(self.mapping) {
                Some(mapping) => mapping.write(place, bytes),
                None => false,
            });
        if fits {
            self.used = end;
        }
        fits
    }

    /// What was written, without a copy. Afterwards no piece can be written any more.
    pub(crate) fn into_buffer(self) -> Buffer {
        self.pages.with(|State { mappings, buffers }| {
            buffers.extend(mappings.drain(..).map(Mapping::into_buffer));
            buffers[self.mapping].slice_with_length(self.start, self.used)
        })
    }
}

#[cfg(target_os = "linux")]
mod system {
    use arrow::buffer::Buffer;
    use memmap2::{Advice, MmapMut};

    /// A mapping that requests large pages. Unwritten parts take no memory.
    #[derive(Debug)]
    pub(crate) struct Mapping {
        bytes: MmapMut,
        taken: usize,
    }

    const ROOM: usize = 64 << 20;

    impl Mapping {
        pub(crate) fn new() -> Option<Self> {
            let bytes = MmapMut::map_anon(ROOM).ok()?;
            bytes.advise(Advice::HugePage).ok()?;
            Some(Self { bytes, taken: 0 })
        }

        pub(crate) fn left(&self) -> usize {
            ROOM - self.taken
        }

        /// Reserves this many bytes and returns where they begin; `None` if there are not enough.
        pub(crate) fn take(&mut self, bytes: usize) -> Option<usize> {
            let start = self.taken;
            self.taken = start.checked_add(bytes).filter(|&end| end <= ROOM)?;
            Some(start)
        }

        /// Writes bytes. Returns false if the mapping is too small.
        #[inline]
        pub(crate) fn write(&mut self, place: usize, bytes: &[u8]) -> bool {
            let Some(to) = self.bytes.get_mut(place..place + bytes.len()) else { return false };
            to.copy_from_slice(bytes);
            true
        }

        pub(crate) fn into_buffer(self) -> Buffer {
            Buffer::from(bytes::Bytes::from_owner(self.bytes))
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use arrow::buffer::Buffer;

    /// There are no large pages here.
    #[derive(Debug)]
    pub(crate) enum Mapping {}

    impl Mapping {
        pub(crate) fn new() -> Option<Self> {
            None
        }

        pub(crate) fn left(&self) -> usize {
            match *self {}
        }

        pub(crate) fn take(&mut self, _bytes: usize) -> Option<usize> {
            match *self {}
        }

        pub(crate) fn write(&mut self, _place: usize, _bytes: &[u8]) -> bool {
            match *self {}
        }

        pub(crate) fn into_buffer(self) -> Buffer {
            match self {}
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn pieces_find_room_in_further_mappings() {
        let pages = LargePages::default();
        // 8 MiB each, more than a mapping; unwritten parts take no memory.
        let mut pieces: Vec<Piece> =
            (0..20).map(|_| pages.piece(8 << 20).expect("there is memory")).collect();
        for _ in 0..3 {
            for (number, piece) in (0_u8..).zip(&mut pieces) {
                assert!(piece.append(&[number; 5]));
            }
        }
        assert!(!pieces[0].append(&vec![0; 8 << 20]), "it would reach into the next one");
        let last = pieces.pop().expect("one of twenty").into_buffer();
        assert_eq!(&last[..], &[19; 15]);
        assert!(!pieces[0].append(&[1]), "others read what is there");
        for (number, piece) in (0_u8..).zip(pieces) {
            assert_eq!(&piece.into_buffer()[..], &[number; 15]);
        }
        assert!(pages.piece(8).is_none());
    }
}
