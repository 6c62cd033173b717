//! The body of this crate's fuzz target (`fuzz/`): whatever bytes come in, nothing panics. Tests replay
//! its corpus. No part of the library.

use crate::Record;

/// A record out of the ring buffer.
pub fn record(bytes: &[u8]) {
    let Some(record) = Record::parse(bytes) else {
        assert!(bytes.len() < Record::BYTES || bytes[96] > 3, "a whole record is read");
        return;
    };
    assert!(record.congestion().len() <= record.congestion.len());
    assert!(!record.congestion().contains('\0'));
    assert_eq!(record.remote.is_ipv6(), record.v6);
    // What follows a record is none of it.
    assert_eq!(Record::parse(&bytes[..Record::BYTES]), Some(record));
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_corpus_is_survived() {
        airpath_testing::replay("record", super::record);
    }
}
