//! Finds what holds a run back, by experiment.

use airpath_findings::variants::{self, Comparison};
use airpath_findings::{Budget, Incomplete, Measure, Metric, Question};
use airpath_record::RunSummary;
use airpath_scenario::Parsed;
use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;

use crate::interruptible::{asking, interruptible};
use crate::object::object;
use crate::scenario::PyScenario;
use crate::simulation::PyRunFigures;

/// Explains a scenario from a first seed on, without the GIL. `known` has the figures of its first
/// seeds, where they ran already; `repeat` is how many seeds it is about. `progress` is told how many
/// simulations have ended, and stops by returning false.
#[pyfunction]
#[pyo3(signature = (scenario, seed, repeat, budget, threads, known, progress=None))]
#[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
pub(crate) fn explain<'py>(
    py: Python<'py>,
    scenario: Py<PyScenario>,
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
    let answer = interruptible(py, asking(progress, |ended| ended), move |control| {
        let question = Question {
            parsed: &scenario.get().0,
            seeds: &budget.seeds_of(seed, repeat),
            known: &known,
            budget,
            threads,
        };
        airpath_findings::explain(&question, &mut |ended| control.goes_on(ended as u64))
    })?;
    let answer = answer.map_err(|_| PyKeyboardInterrupt::new_err("stopped"))?;
    object(py, &answer)
}

/// Compares variants of a scenario on common seeds: a list of rows, one a figure.
#[pyfunction]
#[pyo3(signature = (scenario, variants, seeds, threads, progress=None))]
pub(crate) fn compare<'py>(
    py: Python<'py>,
    scenario: Py<PyScenario>,
    variants: Vec<Py<PyScenario>>,
    seeds: Vec<u64>,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let rows = interruptible(py, asking(progress, |ended| ended), move |control| {
        let parsed = &scenario.get().0;
        let variants: Vec<Parsed> =
            variants.iter().map(|variant| variant.get().0.clone()).collect();
        let comparison = Comparison { parsed, variants: &variants, seeds: &seeds, threads };
        variants::compare(&comparison, &mut |ended| control.goes_on(ended as u64))
            .map_err(|_| PyKeyboardInterrupt::new_err("stopped"))
    })??;
    object(py, &rows)
}

/// Flow, name and value of a figure, and whether it is a result.
type Figure = (String, String, f64, bool);

/// The rows of [`compare`] for figures that were measured elsewhere. `measured` has, by variant and
/// pair, each figure's flow, name and value, and whether it is a result: a transfer that did not
/// complete is compared by an estimate.
#[pyfunction]
pub(crate) fn variant_rows(
    py: Python<'_>,
    measured: Vec<Vec<Vec<Figure>>>,
) -> PyResult<Bound<'_, PyAny>> {
    let measure = |(subject, name, value, complete): Figure| {
        let metric = Metric::named(&name)
            .ok_or_else(|| PyValueError::new_err(format!("no figure is called {name}")))?;
        let incomplete = (!complete).then_some(Incomplete::default());
        Ok(Measure { subject, metric, value, incomplete })
    };
    let measured = measured
        .into_iter()
        .map(|pairs| {
            let run = |run: Vec<_>| run.into_iter().map(measure).collect::<PyResult<Vec<_>>>();
            pairs.into_iter().map(run).collect::<PyResult<Vec<_>>>()
        })
        .collect::<PyResult<Vec<_>>>()?;
    object(py, &variants::rows(&measured))
}
