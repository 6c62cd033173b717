//! Rings that take little more memory than what is in them.

use std::collections::VecDeque;

/// Appends to a ring that grows by a half where there is no room, instead of doubling.
///
/// A queue goes round in all of its memory, however little is in it, and many queues that are half empty
/// do not fit into the caches that all of them together would. One that grows by less is copied more often.
#[inline]
pub fn push_tightly<T>(ring: &mut VecDeque<T>, item: T) {
    if ring.len() == ring.capacity() {
        grow(ring);
    }
    ring.push_back(item);
}

#[cold]
#[inline(never)]
fn grow<T>(ring: &mut VecDeque<T>) {
    ring.reserve_exact((ring.len() / 2).max(4));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_has_half_of_it_to_spare_at_most() {
        let mut ring = VecDeque::new();
        for item in 0..10_000 {
            push_tightly(&mut ring, item);
            assert!(ring.capacity() <= ring.len() + (ring.len() / 2).max(4));
        }
        assert!(ring.iter().copied().eq(0..10_000));
    }
}
