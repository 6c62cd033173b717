//! The connection's random numbers. rustls takes them from providers that live as long as the
//! program; so a stream is lent to this thread while the stack runs.

use std::cell::RefCell;

use airpath_base::Stream;

thread_local! {
    static LENT: RefCell<Option<Stream>> = const { RefCell::new(None) };
}

/// Runs `work`, whose random numbers come from `stream`.
pub(super) fn lend<T>(stream: &mut Stream, work: impl FnOnce() -> T) -> T {
    LENT.with_borrow_mut(|lent| *lent = Some(stream.clone()));
    let result = work();
    if let Some(after) = LENT.with_borrow_mut(Option::take) {
        *stream = after;
    }
    result
}

/// Fills `bytes` from the stream that is lent. Returns false if none is.
pub(super) fn fill(bytes: &mut [u8]) -> bool {
    LENT.with_borrow_mut(|lent| {
        let Some(stream) = lent else { return false };
        fill_from(stream, bytes);
        true
    })
}

/// Fills `bytes` from a stream.
pub(super) fn fill_from(stream: &mut Stream, bytes: &mut [u8]) {
    for part in bytes.chunks_mut(8) {
        part.copy_from_slice(&stream.bits().to_le_bytes()[..part.len()]);
    }
}

/// The next bytes of a stream.
pub(super) fn draw<const LENGTH: usize>(stream: &mut Stream) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    fill_from(stream, &mut bytes);
    bytes
}
