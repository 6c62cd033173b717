//! Keeps idle processors awake.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

/// The file in which Linux accepts a limit for the wake-up time of processors, in force while the
/// file is open (Documentation/admin-guide/pm/cpuidle.rst, "Power Management Quality of Service").
const LATENCY: &str = "/dev/cpu_dma_latency";

/// While this exists, no processor of the machine sleeps when idle: it polls for work. Waking a
/// processor delays the packet that woke it, above all in a virtual machine, where the hypervisor
/// has to do it. The kernel drops the request when the process ends, however that happens.
#[derive(Debug)]
pub struct CpuLatency {
    _file: File,
}

impl CpuLatency {
    /// Keeps processors awake from now on.
    ///
    /// # Errors
    ///
    /// Only root is permitted; a container may lack the device. The error names it.
    pub fn keep() -> io::Result<Self> {
        let kept = OpenOptions::new().write(true).open(LATENCY).and_then(|mut file| {
            // Microseconds, as a native 32-bit number.
            file.write_all(&0_i32.to_ne_bytes())?;
            Ok(Self { _file: file })
        });
        kept.map_err(|error| io::Error::new(error.kind(), format!("{LATENCY}: {error}")))
    }
}
