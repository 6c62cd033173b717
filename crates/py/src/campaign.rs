//! Campaigns: checks many variants, simulates many runs.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use airpath_findings::batch::{self, Job};
use airpath_record::RunTables;
use airpath_scenario::{Source, parse};
use arrow::record_batch::RecordBatch;
use pyo3::exceptions::{PyKeyError, PyKeyboardInterrupt};
use pyo3::prelude::*;
use pyo3_arrow::PyTable;

use crate::interruptible::{interruptible, unasked};
use crate::scenario::PyScenario;

/// The rows of a batch of runs.
#[pyclass(name = "Batch", module = "airpath._core", frozen)]
pub(crate) struct PyBatch {
    tables: Vec<(&'static str, RecordBatch)>,
    events: Vec<u64>,
}

#[pymethods]
impl PyBatch {
    /// A table by name; shares its memory through the Arrow C stream interface.
    fn table(&self, name: &str) -> PyResult<PyTable> {
        let found = self.tables.iter().find(|(known, _)| *known == name);
        let (_, batch) = found.ok_or_else(|| PyKeyError::new_err(format!("no table {name:?}")))?;
        PyTable::try_new(vec![batch.clone()], batch.schema())
    }

    /// Names of the tables, in a fixed order.
    fn table_names(&self) -> Vec<&'static str> {
        self.tables.iter().map(|(name, _)| *name).collect()
    }

    /// Events of each run, in the order of the jobs; 0 for one that failed.
    #[getter]
    fn events(&self) -> Vec<u64> {
        self.events.clone()
    }
}

/// Simulates runs, each with its number in the campaign, without the GIL. `keep_on` is asked now
/// and then, and stops all by returning false.
#[pyfunction]
pub(crate) fn simulate_batch(
    py: Python<'_>,
    jobs: Vec<(u64, Py<PyScenario>, u64)>,
    threads: usize,
    keep_on: Option<Py<PyAny>>,
) -> PyResult<PyBatch> {
    let numbers: Vec<u64> = jobs.iter().map(|&(number, _, _)| number).collect();
    let asked = move |py: Python<'_>, _| match &keep_on {
        Some(keep_on) => keep_on.call0(py)?.extract(py),
        None => Ok(true),
    };
    let outcomes = interruptible(py, asked, move |control| {
        let jobs: Vec<Job<'_>> = jobs
            .iter()
            .map(|(_, scenario, seed)| {
                let scenario = &scenario.get().0.scenario;
                Job { scenario, seed: *seed, accounted: false }
            })
            .collect();
        batch::outcomes(&jobs, threads, &mut |ended| control.goes_on(ended as u64))
    })?;
    let outcomes = outcomes.map_err(|_| PyKeyboardInterrupt::new_err("stopped"))?;
    Ok(py.detach(|| {
        let (mut tables, mut events) = (RunTables::default(), Vec::with_capacity(outcomes.len()));
        for (number, outcome) in numbers.into_iter().zip(outcomes) {
            match outcome {
                Ok(summary) => {
                    events.push(summary.events);
                    tables.done(number, &summary);
                }
                Err(error) => {
                    events.push(0);
                    tables.failed(number, error);
                }
            }
        }
        PyBatch { tables: tables.finish(), events }
    }))
}

/// Parses and checks variants of a scenario, without the GIL: the hash of each, or else the message
/// of why it cannot be run; `(hash, message)`, one of both is None.
#[pyfunction]
pub(crate) fn check_variants(
    py: Python<'_>,
    text: String,
    name: String,
    directory: Option<PathBuf>,
    variants: Vec<Vec<String>>,
    threads: usize,
) -> PyResult<Vec<(Option<String>, Option<String>)>> {
    interruptible(py, unasked, move |control| {
        let source = Source { name: &name, text: &text, directory: directory.as_deref() };
        let next = AtomicUsize::new(0);
        let found: Mutex<Vec<_>> = Mutex::new(vec![(None, None); variants.len()]);
        let work = || {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(sets) = variants.get(index) else { return };
                if !control.goes_on(index as u64) {
                    return;
                }
                let checked = match parse(&source, sets) {
                    Ok(parsed) => (Some(parsed.sha256), None),
                    Err(error) => (None, Some(error.to_string())),
                };
                found.lock().expect("a thread that panics ends the program")[index] = checked;
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads.min(variants.len()) {
                scope.spawn(work);
            }
            work();
        });
        found.into_inner().expect("as above")
    })
}
