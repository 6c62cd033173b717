//! Memory in large pages, where the system has them.

pub(crate) use system::LargePages;

#[cfg(target_os = "linux")]
mod system {
    use arrow::buffer::Buffer;
    use memmap2::{Advice, MmapMut};

    /// Bytes in a mapping that asks for large pages. It has a fixed size, of which what is not written takes
    /// no memory.
    #[derive(Debug)]
    pub(crate) struct LargePages {
        mapping: MmapMut,
        used: usize,
    }

    /// Eight million values of eight bytes; a column with more of them goes on without large pages.
    const ROOM: usize = 64 << 20;

    impl LargePages {
        /// A mapping that begins with these bytes; `None`: the system has none, or they do not fit.
        pub(crate) fn with(bytes: &[u8]) -> Option<Self> {
            let mapping = MmapMut::map_anon(ROOM).ok()?;
            mapping.advise(Advice::HugePage).ok()?;
            let mut pages = Self { mapping, used: 0 };
            pages.append(bytes).then_some(pages)
        }

        pub(crate) const fn len(&self) -> usize {
            self.used
        }

        /// False: they do not fit, and nothing was written.
        #[inline]
        pub(crate) fn append(&mut self, bytes: &[u8]) -> bool {
            let end = self.used + bytes.len();
            let Some(place) = self.mapping.get_mut(self.used..end) else { return false };
            place.copy_from_slice(bytes);
            self.used = end;
            true
        }

        /// What was written, where it is.
        pub(crate) fn into_buffer(self) -> Buffer {
            let used = self.used;
            Buffer::from(bytes::Bytes::from_owner(self.mapping)).slice_with_length(0, used)
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use arrow::buffer::Buffer;

    /// There are none.
    #[derive(Debug)]
    pub(crate) enum LargePages {}

    impl LargePages {
        pub(crate) fn with(_bytes: &[u8]) -> Option<Self> {
            None
        }

        pub(crate) const fn len(&self) -> usize {
            match *self {}
        }

        pub(crate) fn append(&mut self, _bytes: &[u8]) -> bool {
            match *self {}
        }

        pub(crate) fn into_buffer(self) -> Buffer {
            match self {}
        }
    }
}
