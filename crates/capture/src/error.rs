//! What can be wrong with a capture.

use std::io;

/// Why a file cannot be read, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// The file cannot be opened or read, or its compressed data is damaged.
    #[error("{name}: cannot be read after byte {at}: {source}")]
    Read {
        /// The file.
        name: String,
        /// Bytes read before, counted without compression.
        at: u64,
        /// The error of the system or the decompressor.
        source: io::Error,
    },
    /// The file does not begin like a capture.
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
    /// A header of the file's format has an impossible value.
    #[error("{name}: byte {at}: {what}")]
    Broken {
        /// The file.
        name: String,
        /// Where the header begins, in bytes without compression.
        at: u64,
        /// What is wrong, and what is allowed.
        what: String,
    },
}
