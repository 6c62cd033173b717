//! The forwarder's thread: it runs from the start of the clock until it is no longer needed.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use airpath_base::Duration;
use airpath_capture::Captured;
use airpath_record::{RunSummary, Tables};
use airpath_scenario::Scenario;
use rustix::mm::{MlockAllFlags, mlockall, munlockall};

use crate::observation::flow_meters::Metered;
use crate::{
    Clock, CpuLatency, EmuError, Forwarder, Journal, Report, Settings, real_time_priority,
};

/// Real-time priority: above that of desktop programs, below that of the kernel's threads.
const PRIORITY: i32 = 50;

/// The forwarder's thread.
pub(super) struct ForwarderThread {
    /// Dropping it stops the thread.
    stop: Option<PipeWriter>,
    /// Closed when the thread ends.
    pub(super) running: PipeReader,
    /// The clock of the run.
    pub(super) clock: Clock,
    thread: Option<JoinHandle<Result<Forwarded, EmuError>>>,
}

/// The results of a forwarder.
pub(super) struct Forwarded {
    pub(super) summary: RunSummary,
    pub(super) tables: Tables,
    pub(super) metered: Metered,
    pub(super) report: Report,
    /// Why they are incomplete, a sentence each.
    pub(super) partial: Vec<String>,
    pub(super) journal: Option<Journal>,
    pub(super) machine: Machine,
}

/// What the thread was granted.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) real_time: bool,
    /// Whether processors were kept awake; if they could not be, why.
    pub(super) awake: Result<bool, String>,
}

/// What a capture lacks.
fn missing(captured: &Captured) -> Option<String> {
    let Captured { written, dropped, lost, failed } = captured;
    if let Some(error) = failed {
        return Some(format!(
            "the capture ends after {written} packets: {error}; {} are missing",
            dropped + lost
        ));
    }
    let all = written + dropped + lost;
    (dropped + lost > 0).then(|| {
        format!("the capture lacks {} of {all} packets: the disk was too slow", dropped + lost)
    })
}

/// Number of emulations in this process that lock its memory.
static LOCKED: Mutex<usize> = Mutex::new(0);

/// Locks the memory of this process for as long as one of these exists.
struct LockedMemory;

/// Locks the memory; `None` if not permitted.
fn lock_memory() -> Option<LockedMemory> {
    let mut locked = LOCKED.lock().unwrap_or_else(PoisonError::into_inner);
    mlockall(MlockAllFlags::CURRENT).ok()?;
    *locked += 1;
    Some(LockedMemory)
}

impl Drop for LockedMemory {
    fn drop(&mut self) {
        let mut locked = LOCKED.lock().unwrap_or_else(PoisonError::into_inner);
        *locked -= 1;
        if *locked == 0 {
            let _ = munlockall();
        }
    }
}

impl ForwarderThread {
    /// Creates a forwarder in its own thread, and starts its clock: time 0 is `ahead` in the
    /// future.
    ///
    /// # Errors
    ///
    /// Those of `make`, or if no thread can be started.
    pub(super) fn start(
        scenario: &Scenario,
        settings: Settings,
        ahead: Duration,
        make: impl FnOnce(&Scenario, &Settings) -> Result<Forwarder, EmuError> + Send + 'static,
    ) -> Result<Self, EmuError> {
        let pipe = || io::pipe().map_err(EmuError::Wait);
        let ((stopped, stop), (mut running, mut ready)) = (pipe()?, pipe()?);
        let scenario = scenario.clone();
        let work = move || {
            let mut forwarder = make(&scenario, &settings)?;
            // Each if permitted; lateness shows the effect.
            let locked = lock_memory();
            let real_time = real_time_priority(PRIORITY).is_ok();
            let awake = settings.keep_awake.then(CpuLatency::keep).transpose();
            // The pipe is closed when this thread ends.
            let clock = forwarder.begin(ahead);
            ready.write_all(&clock.origin_nanos().to_ne_bytes()).map_err(EmuError::Wait)?;
            let done = forwarder.run(&stopped, Duration::MAX);
            drop(locked);
            done?;
            let captured = forwarder.end_capture();
            let report = forwarder.report();
            let mut partial = report.partial();
            partial.extend(captured.as_ref().and_then(missing));
            let journal = forwarder.journal().cloned();
            let (summary, tables, metered) = forwarder.end();
            let awake = awake.map(|kept| kept.is_some()).map_err(|error| error.to_string());
            let machine = Machine { real_time, awake };
            Ok(Forwarded { summary, tables, metered, report, partial, journal, machine })
        };
        let thread = thread::Builder::new().name("airpath-forward".to_owned()).spawn(work);
        let thread = Some(thread.map_err(EmuError::Wait)?);
        let mut origin = [0; 8];
        let is_running = running.read_exact(&mut origin).is_ok();
        let clock = Clock::since(u64::from_ne_bytes(origin));
        let mut forwarder = Self { stop: Some(stop), running, clock, thread };
        // If there is no forwarder, its thread knows why.
        if is_running { Ok(forwarder) } else { forwarder.finish().and(Err(EmuError::Forwarder)) }
    }

    /// Stops the forwarder.
    ///
    /// # Errors
    ///
    /// The error that ended it before.
    pub(super) fn finish(&mut self) -> Result<Forwarded, EmuError> {
        drop(self.stop.take());
        let thread = self.thread.take().ok_or(EmuError::Forwarder)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for ForwarderThread {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
