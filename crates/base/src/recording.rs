//! Recorded files: each is read once, within limits.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// Most bytes of a recording, both as stored and unpacked.
pub const MOST_BYTES: u64 = 128 << 20;

/// Reads a file as it is stored. Devices and pipes are refused: they have no end, or cannot be read
/// again to repeat a run.
pub fn read_stored(path: &Path) -> Result<Vec<u8>> {
    if cfg!(target_family = "wasm") {
        return Err(Error::new(ErrorKind::Unsupported, "a browser has no files"));
    }
    // Opening a pipe would wait for a writer.
    if std::fs::metadata(path)?.is_dir() {
        return Err(Error::from(ErrorKind::IsADirectory));
    }
    if !std::fs::metadata(path)?.is_file() {
        return Err(Error::new(ErrorKind::InvalidInput, "it is not a regular file"));
    }
    limited(File::open(path)?, "it is larger than")
}

/// The content of a stored file: gzip (recognised by its first bytes) is unpacked.
pub fn unpacked(stored: Vec<u8>) -> Result<Vec<u8>> {
    if !stored.starts_with(&[0x1f, 0x8b]) {
        return Ok(stored);
    }
    limited(flate2::read::MultiGzDecoder::new(&stored[..]), "it unpacks to more than")
}

/// What an error may quote from a file: a number, a date or a time of up to 20 characters. Anything
/// else becomes `this`, because whoever names a file need not be allowed to read it.
///
/// ```
/// use airpath_base::recording::quoted;
///
/// assert_eq!(quoted("-1.5e3"), "\"-1.5e3\"");
/// assert_eq!(quoted("root:$y$j9T"), "this");
/// ```
pub fn quoted(text: &str) -> String {
    const MOST: usize = 20;
    let of_a_date = |byte: u8| byte.is_ascii_digit() || b"-.:_".contains(&byte);
    let is_number = text.parse::<f64>().is_ok();
    if text.len() <= MOST && (is_number || text.bytes().all(of_a_date)) {
        format!("\"{text}\"")
    } else {
        "this".to_owned()
    }
}

fn limited(source: impl Read, too_large: &str) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        let message = format!("{too_large} {} MiB", MOST_BYTES >> 20);
        return Err(Error::new(ErrorKind::InvalidData, message));
    }
    Ok(bytes)
}
