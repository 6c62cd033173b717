//! What can go wrong between the model and the operating system.

use std::io;

/// Why an emulation could not begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum EmuError {
    /// A device argument that is none.
    #[error("`{0}` is no device: NAMESPACE:DEVICE is expected, the device at most 15 bytes")]
    Device(String),
    /// A namespace that is not there or may not be entered.
    #[error("network namespace `{name}`: {source} (`ip netns list` shows those there are)")]
    Namespace {
        /// Its name.
        name: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The TUN driver is missing or refuses.
    #[error("/dev/net/tun for `{device}`: {source} (root, or CAP_NET_ADMIN, and the tun module)")]
    Tun {
        /// The device.
        device: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Reading packets failed: the device is gone.
    #[error("reading from `{device}`: {source}")]
    Read {
        /// The device.
        device: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// A TCP proxy in the path.
    #[error(
        "`{stage}`: a TCP proxy can be simulated, not emulated; remove it from [[path.down]] and \
         [[path.up]]"
    )]
    Proxy {
        /// Its name.
        stage: String,
    },
    /// A cell at the UE's end of the path.
    #[error("radio `{preset}`: a cell can be simulated, not emulated; remove [radio]")]
    Radio {
        /// Name of its preset.
        preset: String,
    },
    /// Waiting failed.
    #[error("ppoll: {0}")]
    Wait(io::Error),
    /// The packet log could not be written.
    #[error("packet log {file}: {source}")]
    Log {
        /// The file.
        file: String,
        /// What the kernel said.
        source: io::Error,
    },
}
