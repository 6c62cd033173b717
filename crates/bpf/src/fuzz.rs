//! The body of this crate's fuzz target (`fuzz/`): whatever bytes arrive, nothing panics. Tests
//! replay its corpus. This is not part of the library.

use crate::Record;

/// Takes a record from the ring buffer.
pub fn record(bytes: &[u8]) {
    let Some(record) = Record::parse(bytes) else {
        assert!(bytes.len() < Record::BYTES || bytes[Record::KIND] > 3, "a whole record is read");
        return;
    };
    assert!(record.congestion().len() <= record.congestion.len());
    assert!(!record.congestion().contains('\0'));
    assert_eq!(record.remote.is_ipv6(), record.v6);
    // Bytes after a record do not belong to it.
    assert_eq!(Record::parse(&bytes[..Record::BYTES]), Some(record));
}

#[cfg(test)]
mod tests {
    use super::Record;

    /// A corpus whose records are shorter than today's would test nothing.
    #[test]
    fn the_corpus_is_survived_and_has_records() {
        let read = std::cell::Cell::new(0);
        airpath_testing::replay("record", super::record);
        airpath_testing::replay("record", |bytes| {
            read.set(read.get() + usize::from(Record::parse(bytes).is_some()));
        });
        assert!(read.get() >= 4, "{} records in the corpus", read.get());
    }
}
