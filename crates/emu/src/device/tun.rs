//! TUN devices, including those of other network namespaces.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::wire::frame::ETHERNET;
use crate::wire::packet::{OFFLOAD_BYTES, Offload};
use crate::{EmuError, sys};

/// Directory in which `ip netns` keeps its namespaces.
const NAMESPACES: &str = "/run/netns";

/// A TUN device and its namespace, in text form `NAMESPACE:DEVICE`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Device {
    /// The namespace's name for `ip netns`.
    pub namespace: String,
    /// The interface's name.
    pub name: String,
}

/// Room for the result of one read: the largest IP packet, in a frame.
pub(crate) const READ_BYTES: usize = OFFLOAD_BYTES + ETHERNET + 65_535;

/// An attached TUN device. Each read and each write is one IP packet, or with offload several TCP
/// segments combined into one.
#[derive(Debug)]
pub struct Tun {
    name: String,
    file: Arc<File>,
}

impl Tun {
    /// Attaches to `device`, which is created if it does not exist. Packets arrive one by one, with
    /// their checksums.
    ///
    /// # Errors
    ///
    /// If the namespace cannot be entered, or the driver refuses.
    pub fn attach(device: &Device) -> Result<Self, EmuError> {
        within(&device.namespace, || Self::open(&device.name, false))
    }

    /// The device `name` in the calling thread's network namespace. An open descriptor belongs to
    /// the namespace in which it was opened.
    ///
    /// # Errors
    ///
    /// If the driver refuses.
    pub fn open(name: &str, offload: bool) -> Result<Self, EmuError> {
        let failed = |source| EmuError::Tun { device: name.to_owned(), source };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open("/dev/net/tun")
            .map_err(failed)?;
        sys::attach_tun(file.as_fd(), name, offload).map_err(failed)?;
        Ok(Self { name: name.to_owned(), file: Arc::new(file) })
    }

    /// The next packet: its offload information, and its bytes; `None` if there is none now.
    #[inline]
    pub(crate) fn read<'a>(
        &self,
        buffer: &'a mut [u8],
    ) -> Result<Option<(Offload, &'a [u8])>, EmuError> {
        match (&*self.file).read(buffer) {
            Ok(bytes) => {
                let read = &buffer[..bytes];
                Ok(read.split_first_chunk().map(|(said, packet)| (Offload::read(*said), packet)))
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                Ok(None)
            }
            Err(source) => Err(EmuError::Read { device: self.name.clone(), source }),
        }
    }

    /// Passes a packet to the kernel, which may refuse it: first its [`Offload::bytes`], then its
    /// own.
    #[inline]
    pub(crate) fn write(&self, parts: &[IoSlice<'_>]) -> io::Result<()> {
        (&*self.file).write_vectored(parts).map(|_| ())
    }

    /// Another handle, for waiting for packets.
    pub(crate) fn file(&self) -> Arc<File> {
        Arc::clone(&self.file)
    }
}

impl FromStr for Device {
    type Err = EmuError;

    fn from_str(text: &str) -> Result<Self, EmuError> {
        let valid = |part: &str| !part.is_empty() && !part.contains(['/', '\0']) && part != "..";
        match text.split_once(':') {
            Some((namespace, name))
                if valid(namespace) && valid(name) && name.len() < sys::NAME_BYTES =>
            {
                Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err(EmuError::Device(text.to_owned())),
        }
    }
}

/// Runs `work` with the calling thread in another network namespace.
fn within<T>(namespace: &str, work: impl FnOnce() -> Result<T, EmuError>) -> Result<T, EmuError> {
    let failed = |source| EmuError::Namespace { name: namespace.to_owned(), source };
    let home = File::open("/proc/thread-self/ns/net").map_err(failed)?;
    let there = File::open(Path::new(NAMESPACES).join(namespace)).map_err(failed)?;
    let enter = |file: &File| {
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
            .map_err(|error| failed(error.into()))
    };
    enter(&there)?;
    let result = work();
    enter(&home)?;
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_a_namespace_and_a_short_name() {
        let device: Device = "airpath-1:air0".parse().unwrap();
        assert_eq!((device.namespace.as_str(), device.name.as_str()), ("airpath-1", "air0"));
        for wrong in ["", "air0", ":air0", "ns:", "../etc:air0", "ns:a-name-of-16-byte", "..:a"] {
            assert!(wrong.parse::<Device>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_missing_namespace_is_named() {
        let device: Device = "no-such-namespace:air0".parse().unwrap();
        let error = Tun::attach(&device).unwrap_err().to_string();
        assert!(error.contains("no-such-namespace"), "{error}");
    }
}
