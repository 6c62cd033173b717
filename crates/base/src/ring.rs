//! Rings that take little more memory than their content.

use std::collections::VecDeque;

/// Appends to a ring; a full one grows by a half instead of doubling.
///
/// A queue cycles through all of its memory, however little it holds, and many half-empty queues
/// together do not fit into caches that would hold their content. A ring that grows by less is
/// copied more often.
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
