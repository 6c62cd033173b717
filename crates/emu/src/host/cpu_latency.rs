//! Idle processors that stay awake.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};

/// Where Linux takes the longest that a processor may need to wake up, for as long as the file is
/// open (Documentation/admin-guide/pm/cpuidle.rst, "Power Management Quality of Service").
const LATENCY: &str = "/dev/cpu_dma_latency";

/// While this lives, no processor of the machine sleeps when it is idle: it polls for work. Waking
/// one takes time that the packet which woke it waits, above all in a virtual machine, where the
/// hypervisor has to do it. The kernel forgets it with the process, however that ends.
#[derive(Debug)]
pub struct CpuLatency {
    _file: File,
}

impl CpuLatency {
    /// From now on.
    ///
    /// # Errors
    ///
    /// Who is not root may not; a container may lack the device. The error names it.
    pub fn keep() -> io::Result<Self> {
        let kept = OpenOptions::new().write(true).open(LATENCY).and_then(|mut file| {
            // Microseconds, a 32-bit number of the machine.
            file.write_all(&0_i32.to_ne_bytes())?;
            Ok(Self { _file: file })
        });
        kept.map_err(|error| io::Error::new(error.kind(), format!("{LATENCY}: {error}")))
    }
}
