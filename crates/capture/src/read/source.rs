//! Sources of bytes: a file or standard input, uncompressed or compressed with gzip or zstd.

use std::io::{self, BufReader, Chain, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;

/// Compression format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Compression {
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
}

/// Magic number of gzip (RFC 1952 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Magic number of zstd (RFC 8878 3.1.1), in byte order.
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// A window of 128 MiB, the limit of zstd itself.
const WINDOW_LOG: u32 = 27;

/// A compressed file may expand to this many bytes whatever its size, plus this many times its
/// size. A capture of one flow's headers shrinks to a twentieth.
const EXPANDED_FREELY: u64 = 1 << 28;
const EXPANDED_TIMES: u64 = 200;

/// Decompresses a source if its first bytes show a compression format.
pub(super) fn decompressed(
    mut source: Box<dyn Read + Send>,
) -> io::Result<(Box<dyn Read + Send>, Option<Compression>)> {
    let mut first = Vec::with_capacity(ZSTD.len());
    (&mut source).take(ZSTD.len() as u64).read_to_end(&mut first)?;
    let compression = if first.starts_with(&GZIP) {
        Some(Compression::Gzip)
    } else if first == ZSTD {
        Some(Compression::Zstd)
    } else {
        None
    };
    let taken = Arc::new(AtomicU64::new(0));
    let counted = Counted { source: Cursor::new(first).chain(source), taken: taken.clone() };
    let expanded: Box<dyn Read + Send> = match compression {
        None => return Ok((Box::new(counted.source), None)),
        Some(Compression::Gzip) => {
            Box::new(MultiGzDecoder::new(BufReader::with_capacity(1 << 16, counted)))
        }
        Some(Compression::Zstd) => {
            let mut decoder = zstd::stream::read::Decoder::new(counted)?;
            decoder.window_log_max(WINDOW_LOG)?;
            Box::new(decoder)
        }
    };
    Ok((Box::new(Expanded { source: expanded, given: 0, taken }), compression))
}

/// Counts the compressed bytes that are read.
struct Counted {
    source: Chain<Cursor<Vec<u8>>, Box<dyn Read + Send>>,
    taken: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.taken.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// Fails where decompressed data exceeds its limit.
struct Expanded {
    source: Box<dyn Read + Send>,
    given: u64,
    taken: Arc<AtomicU64>,
}

impl Read for Expanded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.given += read as u64;
        let most = EXPANDED_FREELY + EXPANDED_TIMES * self.taken.load(Ordering::Relaxed);
        if self.given > most {
            let what = format!("it expands to more than {EXPANDED_TIMES} times its size");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        Ok(read)
    }
}
