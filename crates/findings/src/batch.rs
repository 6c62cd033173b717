//! Many runs on all cores. Results do not depend on how many there are.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use airpath_record::RunSummary;
use airpath_scenario::Scenario;
use airpath_sim::{Stopped, simulate, simulate_accounted};

/// One run.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// What to run.
    pub scenario: &'a Scenario,
    /// With which seed: the same seed draws the same random streams in every scenario that has
    /// them by the same names (common random numbers).
    pub seed: u64,
    /// Its summary also says where the time went.
    pub accounted: bool,
}

/// Simulates every job on `threads` threads and returns the summaries in the jobs' order; tables
/// are dropped as soon as a run ends. `progress` is told how many runs are done and stops all by
/// returning false; it is called from the working threads, one at a time.
///
/// # Errors
///
/// [`Stopped`] if `progress` returned false.
pub fn run(
    jobs: &[Job<'_>],
    threads: usize,
    progress: &mut (dyn FnMut(usize) -> bool + Send),
) -> Result<Vec<RunSummary>, Stopped> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let told = Mutex::new((progress, 0));
    let results: Vec<Mutex<Option<RunSummary>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let tell = |ended: usize| {
        let mut told = told.lock().expect("a thread that panics ends the program");
        told.1 += ended;
        let done = told.1;
        if !(told.0)(done) {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(index) else { return };
            let mut calls = 0u64;
            let simulate = if job.accounted { simulate_accounted } else { simulate };
            let outcome = simulate(job.scenario, job.seed, &mut |_| {
                calls += 1;
                if calls.is_multiple_of(64) {
                    tell(0);
                }
                !stop.load(Ordering::Relaxed)
            });
            let Ok(outcome) = outcome else { return };
            *results[index].lock().expect("as above") = Some(outcome.summary);
            tell(1);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(jobs.len()) {
            scope.spawn(work);
        }
        work();
    });
    let ended = results.into_iter().map(|result| result.into_inner().expect("as above"));
    ended.collect::<Option<Vec<_>>>().filter(|_| !stop.load(Ordering::Relaxed)).ok_or(Stopped)
}
