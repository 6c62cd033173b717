//! Many runs on all cores. Results do not depend on the number of cores.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use airpath_base::Instant;
use airpath_record::RunSummary;
use airpath_scenario::Scenario;
use airpath_sim::{Options, Stopped, simulate_with};

/// One run.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// What to run.
    pub scenario: &'a Scenario,
    /// The seed: the same seed draws the same random streams in every scenario that has streams of
    /// the same names (common random numbers).
    pub seed: u64,
    /// Whether its summary also says where the time went.
    pub accounted: bool,
}

/// Simulates every job on `threads` threads and returns the summaries in the jobs' order; tables
/// are dropped as soon as a run ends. `progress` receives the number of runs done, and stops
/// everything by returning false; it is called from the worker threads, one at a time.
///
/// # Errors
///
/// [`Stopped`] if `progress` returned false or a congestion control cannot go on.
pub fn run(
    jobs: &[Job<'_>],
    threads: usize,
    progress: &mut (dyn FnMut(usize) -> bool + Send),
) -> Result<Vec<RunSummary>, Stopped> {
    each(jobs, threads, progress, summarised)
}

/// Runs as [`run`] does, but a panic in one, or a congestion control that cannot go on, does not affect
/// the others: the result of that run is the reason.
///
/// # Errors
///
/// [`Stopped`] if `progress` returned false.
pub fn outcomes(
    jobs: &[Job<'_>],
    threads: usize,
    progress: &mut (dyn FnMut(usize) -> bool + Send),
) -> Result<Vec<Result<RunSummary, String>>, Stopped> {
    each(jobs, threads, progress, |job, tick| caught(|| summarised(job, tick)))
}

fn summarised(job: &Job<'_>, tick: &mut dyn FnMut(Instant) -> bool) -> Result<RunSummary, Stopped> {
    let options = Options { accounted: job.accounted, on_packet: None };
    let outcome = simulate_with(job.scenario, job.seed, options, &mut |now, _| tick(now))?;
    Ok(outcome.summary)
}

/// The result of the work, or why there is none.
fn caught<T>(work: impl FnOnce() -> Result<T, Stopped>) -> Result<Result<T, String>, Stopped> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(ended)) => Ok(Ok(ended)),
        Ok(Err(Stopped::ByCongestionControl(why))) => Ok(Err(why)),
        Ok(Err(Stopped::ByCaller)) => Err(Stopped::ByCaller),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Ok(Err(format!("the simulator panicked: {}", text.unwrap_or("without a word"))))
        }
    }
}

/// Does `work` for every job, and returns the results in the jobs' order.
fn each<T: Send>(
    jobs: &[Job<'_>],
    threads: usize,
    progress: &mut (dyn FnMut(usize) -> bool + Send),
    work: impl Fn(&Job<'_>, &mut dyn FnMut(Instant) -> bool) -> Result<T, Stopped> + Sync,
) -> Result<Vec<T>, Stopped> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let failed = Mutex::new(None);
    let told = Mutex::new((progress, 0));
    let results: Vec<Mutex<Option<T>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let tell = |ended: usize| {
        let mut told = told.lock().expect("a thread that panics ends the program");
        told.1 += ended;
        let done = told.1;
        if !(told.0)(done) {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let worker = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(index) else { return };
            let mut calls = 0u64;
            let outcome = work(job, &mut |_| {
                calls += 1;
                if calls.is_multiple_of(64) {
                    tell(0);
                }
                !stop.load(Ordering::Relaxed)
            });
            let outcome = match outcome {
                Ok(outcome) => outcome,
                Err(why) => {
                    stop.store(true, Ordering::Relaxed);
                    let failed = &mut *failed.lock().expect("as above");
                    if why != Stopped::ByCaller {
                        failed.get_or_insert(why);
                    }
                    return;
                }
            };
            *results[index].lock().expect("as above") = Some(outcome);
            tell(1);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(jobs.len()) {
            scope.spawn(worker);
        }
        worker();
    });
    let ended = results.into_iter().map(|result| result.into_inner().expect("as above"));
    let failed = failed.into_inner().expect("as above").unwrap_or(Stopped::ByCaller);
    ended.collect::<Option<Vec<_>>>().filter(|_| !stop.load(Ordering::Relaxed)).ok_or(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_the_outcome_of_its_run() {
        let number = 3;
        let said = caught::<()>(|| panic!("queue {number} is lost"));
        assert_eq!(said, Ok(Err("the simulator panicked: queue 3 is lost".to_owned())));
        assert_eq!(caught(|| Ok(7)), Ok(Ok(7)));
        assert_eq!(caught::<()>(|| Err(Stopped::ByCaller)), Err(Stopped::ByCaller));
        let why = || Stopped::ByCongestionControl("it returned NaN".to_owned());
        assert_eq!(caught::<()>(|| Err(why())), Ok(Err("it returned NaN".to_owned())));
    }
}
