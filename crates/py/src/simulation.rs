//! Simulation, and the result tables of either clock.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use airpath_base::Instant;
use airpath_capture::{Captured, ModelFlow, ModelWriter};
use airpath_record::RunSummary;
use airpath_scenario::{Scenario, Traffic};
use airpath_sim::{Options, Passage, SeenAt, Stopped, simulate_with};
use arrow::record_batch::RecordBatch;
use pyo3::exceptions::{PyKeyError, PyKeyboardInterrupt};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3_arrow::PyTable;

use crate::congestion::{Failure, external};
use crate::interruptible::{asking, interruptible, unasked};
use crate::object::object;
use crate::scenario::PyScenario;

/// The figures of one run; small, so that those of many runs can be kept.
#[pyclass(name = "RunFigures", module = "airpath._core", frozen)]
pub(crate) struct PyRunFigures(pub(crate) RunSummary);

/// What one simulation left behind.
#[pyclass(name = "Result", module = "airpath._core", frozen)]
pub(crate) struct PyResultTables {
    pub(crate) figures: RunSummary,
    /// Tables, each of one or more batches.
    pub(crate) tables: Vec<(&'static str, Vec<RecordBatch>)>,
    /// What the capture of the run lacks, and why.
    pub(crate) capture_lacks: Option<String>,
}

#[pymethods]
impl PyResultTables {
    #[getter]
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        object(py, &self.figures)
    }

    /// The figures without the tables.
    #[getter]
    fn figures(&self) -> PyRunFigures {
        PyRunFigures(self.figures.clone())
    }

    /// What its capture lacks, and why; `None`: nothing, or there is none.
    #[getter]
    fn capture_lacks(&self) -> Option<&str> {
        self.capture_lacks.as_deref()
    }

    /// A table by name; shares its memory through the Arrow C stream interface.
    fn table(&self, name: &str) -> PyResult<PyTable> {
        let table = self.tables.iter().find(|(known, _)| *known == name);
        let (batches, first) =
            table.and_then(|(_, batches)| Some((batches, batches.first()?))).ok_or_else(|| {
                let known: Vec<_> = self.tables.iter().map(|(known, _)| *known).collect();
                PyKeyError::new_err(format!("no table {name:?}; available: {}", known.join(", ")))
            })?;
        PyTable::try_new(batches.clone(), first.schema())
    }

    /// Names of the tables, in a fixed order.
    fn table_names(&self) -> Vec<&'static str> {
        self.tables.iter().map(|(name, _)| *name).collect()
    }

    /// Writes one Parquet file a table into an existing directory. Those that could not be written
    /// leave no file; their names, each with the reason.
    fn write_parquet(
        &self,
        py: Python<'_>,
        directory: PathBuf,
        metadata: &Bound<'_, PyDict>,
    ) -> PyResult<Vec<(&'static str, String)>> {
        let mut pairs = Vec::new();
        for (key, value) in metadata {
            pairs.push((key.extract::<String>()?, value.extract::<String>()?));
        }
        // The batches are shared, not copied.
        let tables = self.tables.clone();
        interruptible(py, unasked, move |_| {
            let mut failed = Vec::new();
            for (name, table) in &tables {
                let path = directory.join(format!("{name}.parquet"));
                if let Err(error) = airpath_record::write_parquet(&path, table, &pairs) {
                    // Half a file is useless, and its space may be needed for the others.
                    let _ = std::fs::remove_file(&path);
                    failed.push((*name, error.reason()));
                }
            }
            failed
        })
    }
}

/// Every table that a run can have, each with its columns: name, type, and whether it may be null.
#[pyfunction]
pub(crate) fn table_columns() -> BTreeMap<&'static str, Vec<(&'static str, &'static str, bool)>> {
    airpath_record::columns()
        .map(|(table, columns)| {
            let each = columns.iter().map(|column| (column.name, column.kind, column.nullable));
            (table, each.collect())
        })
        .collect()
}

/// Runs a scenario on the virtual clock, without the GIL. `progress` is told the simulated seconds now and
/// then, and stops the run by returning false. `accounted`: its summary also says where the time of each
/// flow went. `capture`: writes what passes the ends to this pcapng file. `congestion`: positions of flows
/// in the file, each with a name and a library, or a function that returns a new
/// `airpath.congestion.Prepared`.
#[pyfunction]
#[pyo3(signature = (scenario, seed, progress=None, accounted=false, capture=None, congestion=Vec::new()))]
pub(crate) fn simulate(
    py: Python<'_>,
    scenario: Py<PyScenario>,
    seed: u64,
    progress: Option<Py<PyAny>>,
    accounted: bool,
    capture: Option<PathBuf>,
    congestion: Vec<(usize, String, Py<PyAny>)>,
) -> PyResult<PyResultTables> {
    let failure = Arc::new(Failure::default());
    let decided = decided(py, &scenario.get().0.scenario, congestion, &failure);
    let acks = scenario.get().0.scenario.run.ack_table;
    let writer = capture.map(|file| capture_of(&scenario.get().0.scenario, &file)).transpose()?;
    let seconds = |nanos| Instant::from_nanos(nanos).as_secs_f64();
    let (outcome, capture_lacks) = interruptible(py, asking(progress, seconds), move |control| {
        let is_decided = decided.is_some();
        let run = || {
            let mut report = |now: Instant, _: u64| control.goes_on(now.as_nanos());
            let mut writer = writer;
            let mut write = writer.as_mut().map(|writer| {
                move |seen: &Passage| {
                    if seen.place != SeenAt::BaseStation {
                        let at_server = seen.place == SeenAt::Server;
                        writer.packet(seen.at, at_server, seen.direction, &seen.packet);
                    }
                }
            });
            let on_packet = write.as_mut().map(|write| write as &mut dyn FnMut(&Passage));
            let options = Options { accounted, on_packet };
            let scenario = decided.as_ref().unwrap_or(&scenario.get().0.scenario);
            let outcome = simulate_with(scenario, seed, options, &mut report);
            (outcome, writer.and_then(|writer| lacks(&writer.finish())))
        };
        // Calls into Python are faster from a thread that Python knows.
        if is_decided { Python::attach(|py| py.detach(run)) } else { run() }
    })?;
    let outcome = outcome.map_err(|why| match why {
        Stopped::ByCaller => PyKeyboardInterrupt::new_err("stopped"),
        Stopped::ByCongestionControl(message) => failure.raise(py, message),
    })?;
    let figures = outcome.summary;
    Ok(PyResultTables { figures, tables: outcome.tables.finish(acks), capture_lacks })
}

/// The scenario with the congestion controls that a caller gives; `None` without any.
fn decided(
    py: Python<'_>,
    scenario: &Scenario,
    congestion: Vec<(usize, String, Py<PyAny>)>,
    failure: &Arc<Failure>,
) -> Option<Scenario> {
    if congestion.is_empty() {
        return None;
    }
    let mut scenario = scenario.clone();
    for (index, name, prepare) in congestion {
        let flow = format!("flow.{index}");
        let control = external(py, flow, &name, prepare, failure);
        for flow in scenario.flows.iter_mut().filter(|flow| flow.index == index) {
            if let Traffic::Bulk { tcp, .. } | Traffic::File { tcp, .. } = &mut flow.traffic {
                tcp.sender.congestion = control.clone();
            }
        }
    }
    Some(scenario)
}

/// A capture file for what passes the ends of a scenario.
fn capture_of(scenario: &Scenario, file: &Path) -> PyResult<ModelWriter> {
    let flows = scenario.flows.iter().map(|flow| ModelFlow {
        direction: flow.direction,
        ue: flow.ue,
        segments: (flow.traffic.tcp())
            .map(|tcp| [&tcp.sender, &tcp.receiver].map(|end| (end.mss, end.header))),
        is_echo: matches!(flow.traffic, Traffic::Ping { .. }),
    });
    let ue = vec!["ue".to_owned()];
    let ues = scenario.radio.as_ref().map_or(ue, |radio| radio.ues.clone());
    Ok(ModelWriter::create(file, &ues, flows.collect())?)
}

/// What a capture lacks.
fn lacks(captured: &Captured) -> Option<String> {
    let error = captured.failed.as_ref()?;
    let Captured { written, lost, .. } = captured;
    Some(format!("the capture ends after {written} packets: {error}; {lost} are missing"))
}
