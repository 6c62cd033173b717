//! What can be wrong with a capture.

use std::io;

/// Why a file is not read, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file cannot be opened or read, or is damaged where it is compressed.
    #[error("{name}: cannot be read after byte {at}: {source}")]
    Read {
        /// The file.
        name: String,
        /// Bytes that were read before, as they are without compression.
        at: u64,
        /// What the system or the decompressor says.
        source: io::Error,
    },
    /// It begins like no capture.
    #[error(
        "{name}: this is not a capture: it begins with {found}. A capture is a pcap or a pcapng \
         file, which may be compressed with gzip or zstd"
    )]
    NoCapture {
        /// The file.
        name: String,
        /// How it begins.
        found: String,
    },
    /// A header of the file's format says what cannot be.
    #[error("{name}: byte {at}: {what}")]
    Broken {
        /// The file.
        name: String,
        /// Where the header begins, in bytes as they are without compression.
        at: u64,
        /// What is wrong, and what is allowed.
        what: String,
    },
}
