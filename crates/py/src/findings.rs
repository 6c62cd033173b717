//! What holds a run back, by experiment.

use std::path::Path;

use airpath_findings::{Budget, Question};
use airpath_scenario::Source;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::PyScenario;

/// Explains a scenario that `parse` has accepted with the same text, name, directory and sets;
/// without the GIL. `progress` is told how many simulations have ended, and stops by returning
/// false.
#[pyfunction]
#[pyo3(signature = (scenario, text, name, directory, sets, seed, full, threads, progress=None))]
#[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
pub(crate) fn explain<'py>(
    py: Python<'py>,
    scenario: &PyScenario,
    text: &str,
    name: &str,
    directory: Option<&str>,
    sets: Vec<String>,
    seed: u64,
    full: bool,
    threads: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut raised = None;
    let answer = {
        let raised = &mut raised;
        let question = Question {
            source: Source { name, text, directory: directory.map(Path::new) },
            sets: &sets,
            parsed: &scenario.0,
            seed,
            budget: if full { Budget::FULL } else { Budget::QUICK },
            threads,
        };
        py.detach(move || {
            let mut report = |ended: usize| {
                Python::attach(|py| -> PyResult<bool> {
                    py.check_signals()?;
                    match &progress {
                        Some(callback) => callback.call1(py, (ended,))?.extract(py),
                        None => Ok(true),
                    }
                })
                .unwrap_or_else(|error| {
                    *raised = Some(error);
                    false
                })
            };
            airpath_findings::explain(&question, &mut report)
        })
    };
    if let Some(error) = raised {
        return Err(error);
    }
    let answer = answer.map_err(|_| PyKeyboardInterrupt::new_err("stopped"))?;
    let document = serde_json::to_string(&answer).expect("only strings, numbers and lists");
    py.import("json")?.call_method1("loads", (document,))
}
