//! A fast hash of a few bytes, the same on every machine. It does not resist deliberate collisions.

/// Hashes one more word.
#[inline]
pub(crate) fn word(hash: u64, word: u64) -> u64 {
    // Folds the two halves of the product: each bit of both inputs affects all of them.
    let product = u128::from(hash ^ word) * 0xe703_7ed1_a0b4_28db_u128;
    (product as u64) ^ (product >> 64) as u64
}

/// Hashes any number of further bytes.
#[inline]
pub(crate) fn bytes(mut hash: u64, mut bytes: &[u8]) -> u64 {
    hash ^= (bytes.len() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    while let Some((chunk, rest)) = bytes.split_first_chunk() {
        hash = word(hash, u64::from_le_bytes(*chunk));
        bytes = rest;
    }
    let mut last = [0; 8];
    last[..bytes.len()].copy_from_slice(bytes);
    word(hash, u64::from_le_bytes(last))
}
