//! Long calls that Ctrl-C ends within a second.
//!
//! Python runs signal handlers in the main thread, between two of its own steps: while that thread
//! is in here, none of them runs. So the work is done in another thread, and the calling thread
//! asks Python at intervals. The work checks a flag. Work that does not check it in time is left
//! behind with what it uses, and ends with the process.

use std::cell::Cell;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use rustix::time::{ClockId, clock_gettime};

/// How often Python is asked whether to continue.
const INTERVAL: Duration = Duration::from_millis(50);

/// How long the work may take to stop.
const PATIENCE: Duration = Duration::from_millis(400);

/// Stack size, the same as the main thread's.
const STACK_BYTES: usize = 8 << 20;

thread_local! {
    static WORKED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Processor time of the work that the calling thread has had done so far, in seconds. The
/// thread's own clock does not contain it. Threads that the work starts are not counted.
#[pyfunction]
pub(crate) fn worked_s() -> f64 {
    WORKED.get().as_secs_f64()
}

/// State that the work and its caller share.
#[derive(Default)]
pub(crate) struct Control {
    stop: AtomicBool,
    done: AtomicU64,
}

impl Control {
    /// Reports the progress, and returns whether to continue. Call it often: it costs nothing.
    pub(crate) fn goes_on(&self, done: u64) -> bool {
        self.done.store(done, Ordering::Relaxed);
        !self.stop.load(Ordering::Relaxed)
    }
}

/// Does `work` without the GIL. `progress` receives its progress at intervals, and stops it by
/// returning false.
///
/// # Errors
///
/// What a signal handler or `progress` raised; `KeyboardInterrupt` if `progress` returned false.
pub(crate) fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    mut progress: impl FnMut(Python<'_>, u64) -> PyResult<bool> + Send,
    work: impl FnOnce(&Control) -> T + Send + 'static,
) -> PyResult<T> {
    let control = Arc::new(Control::default());
    let (working, ended) = channel::<()>();
    let theirs = Arc::clone(&control);
    let thread = thread::Builder::new().name("airpath".to_owned()).stack_size(STACK_BYTES);
    let thread = thread.spawn(move || {
        // Dropped at the end, even after a panic.
        let _working = working;
        let result = work(&theirs);
        // The thread is new, so its clock shows the work alone.
        (result, clock_gettime(ClockId::ThreadCPUTime).try_into().unwrap_or_default())
    })?;
    py.detach(move || {
        while !has_ended(&ended, INTERVAL) {
            let done = control.done.load(Ordering::Relaxed);
            let goes_on = Python::attach(|py| {
                py.check_signals()?;
                progress(py, done)
            });
            if let Ok(true) = goes_on {
                continue;
            }
            control.stop.store(true, Ordering::Relaxed);
            if has_ended(&ended, PATIENCE)
                && let Err(panic) = thread.join()
            {
                resume_unwind(panic);
            }
            goes_on?;
            return Err(PyKeyboardInterrupt::new_err("stopped"));
        }
        let (result, spent): (T, Duration) =
            thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        WORKED.set(WORKED.get() + spent);
        Ok(result)
    })
}

/// A `progress` that ignores its argument and never stops the work.
pub(crate) fn unasked(_py: Python<'_>, _done: u64) -> PyResult<bool> {
    Ok(true)
}

/// A Python callback as `progress`.
pub(crate) fn asking<Value: for<'py> IntoPyObject<'py>>(
    callback: Option<Py<PyAny>>,
    value: impl Fn(u64) -> Value + Send,
) -> impl FnMut(Python<'_>, u64) -> PyResult<bool> + Send {
    move |py, done| match &callback {
        Some(callback) => callback.call1(py, (value(done),))?.extract(py),
        None => Ok(true),
    }
}

fn has_ended(ended: &Receiver<()>, within: Duration) -> bool {
    !matches!(ended.recv_timeout(within), Err(RecvTimeoutError::Timeout))
}
