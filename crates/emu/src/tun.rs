//! TUN devices, also those of another network namespace.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::str::FromStr;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::{EmuError, sys};

/// Where `ip netns` keeps its namespaces.
const NAMESPACES: &str = "/run/netns";

/// A TUN device and the namespace that it is in: `NAMESPACE:DEVICE`, as text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Device {
    /// Its name for `ip netns`.
    pub namespace: String,
    /// The interface's name.
    pub name: String,
}

/// An attached TUN device. Each read and each write is one IP packet.
#[derive(Debug)]
pub struct Tun {
    device: Device,
    file: File,
}

impl Tun {
    /// Attaches to `device`, and makes it if it is not there yet.
    ///
    /// # Errors
    ///
    /// When the namespace cannot be entered, or the driver refuses.
    pub fn attach(device: Device) -> Result<Self, EmuError> {
        let file = within(&device.namespace, || {
            let failed = |source| EmuError::Tun { device: device.name.clone(), source };
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
                .open("/dev/net/tun")
                .map_err(failed)?;
            sys::attach_tun(file.as_fd(), &device.name).map_err(failed)?;
            Ok(file)
        })?;
        Ok(Self { device, file })
    }

    /// The next packet into `buffer`; `None` if there is none now.
    #[inline]
    pub(crate) fn read(&self, buffer: &mut [u8]) -> Result<Option<usize>, EmuError> {
        match (&self.file).read(buffer) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                Ok(None)
            }
            Err(source) => Err(EmuError::Read { device: self.device.name.clone(), source }),
        }
    }

    /// Hands `packet` to the kernel, which may refuse it.
    #[inline]
    pub(crate) fn write(&self, packet: &[u8]) -> io::Result<()> {
        (&self.file).write(packet).map(|_| ())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
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

/// Does `work` with the calling thread in another network namespace. An open TUN descriptor
/// belongs to the namespace in which it was opened.
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
        let device = "no-such-namespace:air0".parse().unwrap();
        let error = Tun::attach(device).unwrap_err().to_string();
        assert!(error.contains("no-such-namespace"), "{error}");
    }
}
