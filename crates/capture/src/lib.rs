//! Captures: packets with the place and the time at which they were seen, as pcapng files.
//!
//! [`Writer`] writes one file with an interface for each place. Nothing here opens a socket or reads a
//! clock: the caller has the packets and says when they passed.
//!
//! It may use: `base`. Start reading at [`Writer`].
//!
//! ```
//! use airpath_base::{Duration, Instant};
//! use airpath_capture::Writer;
//!
//! let file = std::env::temp_dir().join(format!("airpath-example-{}.pcapng", std::process::id()));
//! let mut capture = Writer::create(&file, &["server".to_owned(), "ue".to_owned()])?;
//! capture.packet(1, Instant::ZERO + Duration::from_millis(20), &[0x45, 0, 0, 20]);
//! assert_eq!(capture.finish().written, 1);
//! # std::fs::remove_file(&file)?;
//! # Ok::<(), std::io::Error>(())
//! ```

mod pcapng;

pub use pcapng::{Captured, HEADER_BYTES, Writer};
