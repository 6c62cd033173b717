//! What holds a run back, by experiment.

use airpath_findings::variants::{self, Comparison, NotCompared};
use airpath_findings::{Budget, Question};
use airpath_record::RunSummary;
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;

use crate::object::object;
use crate::scenario::PyScenario;
use crate::simulation::PyRunFigures;

/// Tells Python how many simulations have ended; false to stop, also where Python raised something.
fn told(progress: Option<&Py<PyAny>>, ended: usize, raised: &mut Option<PyErr>) -> bool {
    Python::attach(|py| -> PyResult<bool> {
        py.check_signals()?;
        match progress {
            Some(callback) => callback.call1(py, (ended,))?.extract(py),
            None => Ok(true),
        }
    })
    .unwrap_or_else(|error| {
        *raised = Some(error);
        false
    })
}

/// Explains a scenario from a first seed on, without the GIL. `known` has the figures of its first
/// seeds, where they ran already; `repeat` is how many seeds it is about. `progress` is told how many
/// simulations have ended, and stops by returning false.
#[pyfunction]
#[pyo3(signature = (scenario, seed, repeat, budget, threads, known, progress=None))]
#[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
pub(crate) fn explain<'py>(
    py: Python<'py>,
    scenario: &PyScenario,
    seed: u64,
    repeat: usize,
    budget: &str,
    threads: usize,
    known: Vec<PyRef<'py, PyRunFigures>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let budget = match budget {
        "quick" => Budget::QUICK,
        "full" => Budget::FULL,
        _ => return Err(PyValueError::new_err("the budget is quick or full")),
    };
    let known: Vec<RunSummary> = known.iter().map(|figures| figures.0.clone()).collect();
    let mut raised = None;
    let answer = {
        let raised = &mut raised;
        let PyScenario(parsed, given) = scenario;
        let question = Question {
            source: given.source(),
            sets: &given.sets,
            parsed,
            seeds: &budget.seeds_of(seed, repeat),
            known: &known,
            budget,
            threads,
        };
        py.detach(move || {
            let mut report = |ended| told(progress.as_ref(), ended, raised);
            airpath_findings::explain(&question, &mut report)
        })
    };
    if let Some(error) = raised {
        return Err(error);
    }
    let answer = answer.map_err(|_| PyKeyboardInterrupt::new_err("stopped"))?;
    object(py, &answer)
}

/// Compares variants of a scenario on common seeds: a list of rows, one a figure.
#[pyfunction]
#[pyo3(signature = (scenario, variants, seeds, threads, progress=None))]
pub(crate) fn compare<'py>(
    py: Python<'py>,
    scenario: &PyScenario,
    variants: Vec<Vec<String>>,
    seeds: Vec<u64>,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut raised = None;
    let rows = {
        let raised = &mut raised;
        let PyScenario(parsed, given) = scenario;
        let comparison = Comparison {
            source: given.source(),
            sets: &given.sets,
            parsed,
            variants: &variants,
            seeds: &seeds,
            threads,
        };
        py.detach(move || {
            let mut report = |ended| told(progress.as_ref(), ended, raised);
            variants::compare(&comparison, &mut report)
        })
    };
    if let Some(error) = raised {
        return Err(error);
    }
    let rows = rows.map_err(|error| match error {
        NotCompared::Invalid(message) => PyValueError::new_err(message),
        NotCompared::Stopped => PyKeyboardInterrupt::new_err("stopped"),
    })?;
    object(py, &rows)
}
