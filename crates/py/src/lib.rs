//! The Python extension `airpath._core`: the whole surface is the list in [`core`]. The crates
//! below know no Python.

mod findings;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use airpath_base::{Duration, Instant, Rate};
use airpath_emu::{
    EmuError, Emulation, Ended, Identity, Live, Observers, Plan, Settings, UeSession,
};
use airpath_scenario::{Origin, Parsed, Problem, Source};
use arrow::record_batch::RecordBatch;
use pyo3::exceptions::{PyKeyError, PyKeyboardInterrupt, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use pyo3_arrow::PyTable;

use findings::explain;

/// The module.
#[pymodule]
#[pyo3(name = "_core")]
mod core {
    #[pymodule_export]
    use super::{
        PyEmulated, PyMonitor, PyResultTables, PyScenario, ScenarioError, emulate,
        enter_user_namespace, explain, parse, profiles, radio_presets, reference, schema,
        secret_hash, secret_keys, shipped, simulate,
    };

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // Programs inside the kernel are built in.
        module.add("__bpf__", cfg!(feature = "bpf"))?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

pyo3::create_exception!(
    airpath._core,
    ScenarioError,
    PyValueError,
    "A scenario that cannot be run; `problems` lists why."
);

/// A checked scenario: if it exists, it can be run.
#[pyclass(name = "Scenario", module = "airpath._core", frozen)]
struct PyScenario(Parsed);

#[pymethods]
impl PyScenario {
    #[getter]
    fn name(&self) -> &str {
        &self.0.scenario.name
    }

    #[getter]
    fn title(&self) -> &str {
        &self.0.scenario.title
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.0.scenario.run.seed
    }

    #[getter]
    fn duration_s(&self) -> f64 {
        self.0.scenario.run.duration.as_secs_f64()
    }

    #[getter]
    fn coalesce_bytes(&self) -> u32 {
        self.0.scenario.emulation.coalesce_bytes
    }

    #[getter]
    fn sha256(&self) -> &str {
        &self.0.sha256
    }

    #[getter]
    fn resolved_toml(&self) -> &str {
        &self.0.resolved_toml
    }

    #[getter]
    fn lateness_bound_s(&self) -> f64 {
        self.0.scenario.emulation.lateness_bound.as_secs_f64()
    }

    /// What `[core]` says, and who the UEs are; None without it.
    #[getter]
    fn core<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let scenario = &self.0.scenario;
        let (Some(core), Some(radio)) = (&scenario.core, &scenario.radio) else {
            return Ok(None);
        };
        let said = PyDict::new(py);
        said.set_item("subscribers", &core.subscribers)?;
        said.set_item("keys", &core.keys)?;
        said.set_item("pool", format!("{}/{}", core.network, core.prefix))?;
        said.set_item("apn", &core.apn)?;
        let steps = [
            ("rrc_setup_ms", core.rrc_setup),
            ("attach_ms", core.attach),
            ("session_ms", core.session),
        ];
        for (key, step) in steps {
            said.set_item(key, step.as_millis_f64())?;
        }
        said.set_item("access", core.access)?;
        let ues = PyList::empty(py);
        for (index, (name, usim)) in radio.ues.iter().zip(&core.usims).enumerate() {
            let ue = PyDict::new(py);
            ue.set_item("index", index)?;
            ue.set_item("name", name)?;
            ue.set_item("imsi", &usim.imsi)?;
            ue.set_item("key", &usim.key)?;
            ue.set_item("opc", &usim.opc)?;
            ue.set_item("apn", usim.apn.as_ref().unwrap_or(&core.apn))?;
            ues.append(ue)?;
        }
        said.set_item("ues", ues)?;
        Ok(Some(said))
    }

    /// Names, ends and command lines of the programs.
    #[getter]
    fn program_lines(&self) -> Vec<(&str, &str, &str)> {
        use airpath_scenario::ProgramPlace;
        let scenario = &self.0.scenario;
        let ue = |index: usize| {
            scenario.radio.as_ref().and_then(|radio| radio.ues.get(index)).map_or("ue", |ue| ue)
        };
        let line = |program: &'_ airpath_scenario::ProgramConfig| match program.place {
            ProgramPlace::Server => "server",
            ProgramPlace::Ue(index) => ue(index),
        };
        let programs = scenario.programs.iter();
        programs
            .map(|program| (program.name.as_str(), line(program), program.command.as_str()))
            .collect()
    }

    /// Names of the programs.
    #[getter]
    fn programs(&self) -> Vec<&str> {
        self.0.scenario.programs.iter().map(|program| program.name.as_str()).collect()
    }

    #[getter]
    fn flows<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        use airpath_scenario::{Direction, Traffic};
        let list = PyList::empty(py);
        for flow in &self.0.scenario.flows {
            let entry = PyDict::new(py);
            entry.set_item("index", flow.index)?;
            entry.set_item("id", &flow.id)?;
            entry.set_item("kind", flow.traffic.kind())?;
            let down = flow.direction == Direction::Down;
            entry.set_item("direction", if down { "down" } else { "up" })?;
            let tcp = match &flow.traffic {
                Traffic::Bulk { tcp, .. } | Traffic::File { tcp, .. } => Some(tcp),
                Traffic::Ping { .. } | Traffic::Udp { .. } => None,
            };
            entry.set_item("congestion", tcp.map(|tcp| tcp.sender.congestion.name()))?;
            entry.set_item("profile", tcp.map(|tcp| &tcp.profile))?;
            list.append(entry)?;
        }
        Ok(list)
    }
}

/// Parses and checks a scenario.
#[pyfunction]
fn parse(
    py: Python<'_>,
    text: &str,
    name: &str,
    directory: Option<&str>,
    sets: Vec<String>,
) -> PyResult<PyScenario> {
    let source = Source { name, text, directory: directory.map(Path::new) };
    match py.detach(|| airpath_scenario::parse(&source, &sets)) {
        Ok(parsed) => Ok(PyScenario(parsed)),
        Err(error) => {
            let raised = ScenarioError::new_err(error.to_string());
            let problems = PyList::empty(py);
            for problem in &error.problems {
                problems.append(describe(py, problem)?)?;
            }
            raised.value(py).setattr("problems", problems)?;
            Err(raised)
        }
    }
}

fn describe<'py>(py: Python<'py>, problem: &Problem) -> PyResult<Bound<'py, PyDict>> {
    let entry = PyDict::new(py);
    let (file, line, column, set) = match &problem.origin {
        Origin::File { name, line, column } => (Some(&**name), Some(*line), Some(*column), None),
        Origin::Set { text } => (None, None, None, Some(&**text)),
    };
    entry.set_item("file", file)?;
    entry.set_item("line", line)?;
    entry.set_item("column", column)?;
    entry.set_item("set", set)?;
    entry.set_item("message", &problem.message)?;
    entry.set_item("help", &problem.help)?;
    entry.set_item("allowed", &problem.allowed)?;
    Ok(entry)
}

/// Names and texts of the scenarios that come with airpath.
#[pyfunction]
fn shipped() -> Vec<(&'static str, &'static str)> {
    airpath_scenario::shipped().to_vec()
}

/// Names of the built-in TCP profiles.
#[pyfunction]
fn profiles() -> Vec<&'static str> {
    airpath_scenario::profiles().collect()
}

/// Names and descriptions of the radio presets.
#[pyfunction]
fn radio_presets() -> Vec<(&'static str, &'static str)> {
    airpath_scenario::radio_presets().collect()
}

/// Names of the keys of a UE that are secret.
#[pyfunction]
fn secret_keys() -> Vec<&'static str> {
    airpath_scenario::secret_keys().collect()
}

/// What stands for a secret in what a run writes.
#[pyfunction]
fn secret_hash(key: &str, imsi: &str, value: &str) -> String {
    airpath_scenario::secret_hash(key, imsi, value)
}

/// JSON schema of the scenario file.
#[pyfunction]
fn schema() -> String {
    format!("{:#}", airpath_scenario::json_schema())
}

/// Reference of every scenario key, as Markdown.
#[pyfunction]
fn reference() -> String {
    airpath_scenario::reference_markdown()
}

/// What one simulation left behind.
#[pyclass(name = "Result", module = "airpath._core", frozen)]
struct PyResultTables {
    summary: String,
    tables: Vec<(&'static str, RecordBatch)>,
}

#[pymethods]
impl PyResultTables {
    #[getter]
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (&self.summary,))
    }

    /// A table by name; shares its memory through the Arrow C stream interface.
    fn table(&self, name: &str) -> PyResult<PyTable> {
        let (_, batch) = self.tables.iter().find(|(known, _)| *known == name).ok_or_else(|| {
            let known: Vec<_> = self.tables.iter().map(|(known, _)| *known).collect();
            PyKeyError::new_err(format!("no table {name:?}; there are {}", known.join(", ")))
        })?;
        PyTable::try_new(vec![batch.clone()], batch.schema())
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
        directory: &str,
        metadata: &Bound<'_, PyDict>,
    ) -> PyResult<Vec<(&'static str, String)>> {
        let mut pairs = Vec::new();
        for (key, value) in metadata {
            pairs.push((key.extract::<String>()?, value.extract::<String>()?));
        }
        Ok(py.detach(|| {
            let mut failed = Vec::new();
            for (name, batch) in &self.tables {
                let path = Path::new(directory).join(format!("{name}.parquet"));
                if let Err(error) = airpath_record::write_parquet(&path, batch, &pairs) {
                    // A half of it helps nobody, and its space may help the others.
                    let _ = std::fs::remove_file(&path);
                    failed.push((*name, error.reason()));
                }
            }
            failed
        }))
    }
}

/// Runs a scenario on the virtual clock, without the GIL.
#[pyfunction]
#[pyo3(signature = (scenario, seed, progress=None))]
fn simulate(
    py: Python<'_>,
    scenario: &PyScenario,
    seed: u64,
    progress: Option<Py<PyAny>>,
) -> PyResult<PyResultTables> {
    let mut raised = None;
    let outcome = {
        let raised = &mut raised;
        py.detach(move || {
            let (mut told, mut calls) = (Instant::ZERO, 0u64);
            let mut report = |now: Instant| match &progress {
                // Once per simulated second, and now and then where that is long: a call into
                // Python costs more than a second's work.
                Some(callback)
                    if {
                        calls += 1;
                        now.as_secs_f64() - told.as_secs_f64() >= 1.0 || calls.is_multiple_of(16)
                    } =>
                {
                    told = now;
                    Python::attach(|py| -> PyResult<bool> {
                        py.check_signals()?;
                        callback.call1(py, (now.as_secs_f64(),))?.extract(py)
                    })
                    .unwrap_or_else(|error| {
                        *raised = Some(error);
                        false
                    })
                }
                _ => true,
            };
            airpath_sim::simulate(&scenario.0.scenario, seed, &mut report)
        })
    };
    if let Some(error) = raised {
        return Err(error);
    }
    let outcome = outcome.map_err(|_| PyKeyboardInterrupt::new_err("stopped"))?;
    let summary = serde_json::to_string(&outcome.summary)
        .expect("the summary holds only strings, numbers and lists");
    let acks = scenario.0.scenario.run.ack_table;
    Ok(PyResultTables { summary, tables: outcome.tables.finish(acks) })
}

/// What one emulation left behind.
#[pyclass(name = "Emulated", module = "airpath._core", frozen)]
struct PyEmulated {
    code: i32,
    invalid: Option<String>,
    report: String,
    facts: String,
    failed: String,
    partial: Vec<String>,
    sockets: String,
    parity: String,
    programs: String,
    result: Py<PyResultTables>,
}

#[pymethods]
impl PyEmulated {
    /// The command's exit code.
    #[getter]
    fn code(&self) -> i32 {
        self.code
    }

    /// Why the run does not count.
    #[getter]
    fn invalid(&self) -> Option<&str> {
        self.invalid.as_deref()
    }

    #[getter]
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (&self.report,))
    }

    #[getter]
    fn facts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (&self.facts,))
    }

    /// Flows of the scenario that failed: `id` and `because`.
    #[getter]
    fn failed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (&self.failed,))
    }

    /// Why the result is partial, a sentence each; empty: it is whole.
    #[getter]
    fn partial(&self) -> Vec<String> {
        self.partial.clone()
    }

    /// What the kernel said of the scenario's TCP flows: `id`, `sender`, `receiver`.
    #[getter]
    fn sockets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (&self.sockets,))
    }

    /// What the replay on the virtual clock came to; None if it was not asked for.
    #[getter]
    fn parity<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (&self.parity,))
    }

    #[getter]
    fn programs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        py.import("json")?.call_method1("loads", (&self.programs,))
    }

    #[getter]
    fn result(&self, py: Python<'_>) -> Py<PyResultTables> {
        self.result.clone_ref(py)
    }
}

/// Makes this process root in a user namespace of its own.
#[pyfunction]
fn enter_user_namespace() -> PyResult<()> {
    Ok(airpath_emu::enter_user_namespace()?)
}

/// Sees what an emulation does, from another thread.
#[pyclass(name = "Monitor", module = "airpath._core", frozen)]
struct PyMonitor(Live);

#[pymethods]
impl PyMonitor {
    #[new]
    fn new() -> Self {
        Self(Live::default())
    }

    /// The newest snapshot; None before the first.
    fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(snapshot) = self.0.snapshot() else { return Ok(None) };
        let text = serde_json::to_string(&snapshot).expect("only strings, numbers and lists");
        py.import("json")?.call_method1("loads", (text,)).map(Some)
    }
}

/// A UE's place in the scenario, its address, its QFI; ms until it is attached and until it has its
/// session; AMBR down and up in b/s, 0 for none.
type SessionTuple = (usize, u32, u8, f64, f64, u64, u64);

/// Runs a command inside a scenario's network, on the real clock, without the GIL; with `flows` the
/// scenario's flows beside it, or alone where the command is empty. `parity` plays the packets again.
#[allow(clippy::too_many_arguments, reason = "keywords in Python")]
#[pyfunction]
#[pyo3(signature = (scenario, seed, command, servers, place=None, quiet=false, bare=false, capture=None, files=None, output=None, error=None, monitor=None, flows=false, parity=false, progress=None, sessions=None, user=None, limited=false, environment=None))]
fn emulate(
    py: Python<'_>,
    scenario: &PyScenario,
    seed: u64,
    command: Vec<String>,
    servers: Vec<String>,
    place: Option<String>,
    quiet: bool,
    bare: bool,
    capture: Option<PathBuf>,
    files: Option<PathBuf>,
    output: Option<i32>,
    error: Option<i32>,
    monitor: Option<&PyMonitor>,
    flows: bool,
    parity: bool,
    progress: Option<Py<PyAny>>,
    sessions: Option<Vec<SessionTuple>>,
    user: Option<(u32, u32, Vec<u32>)>,
    limited: bool,
    environment: Option<Vec<(String, String)>>,
) -> PyResult<PyEmulated> {
    let scenario = &scenario.0.scenario;
    let milliseconds = |ms: f64| Duration::from_nanos((ms * 1e6) as u64);
    let sessions: Vec<UeSession> = sessions
        .unwrap_or_default()
        .into_iter()
        .map(|(ue, address, qfi, attached_ms, established_ms, down, up)| UeSession {
            ue,
            address: Ipv4Addr::from(address),
            qfi,
            attached: milliseconds(attached_ms),
            established: milliseconds(established_ms),
            ambr: [down, up].map(Rate::from_bps),
        })
        .collect();
    let settings = Settings { bare, flows, journal: parity, ..Settings::of(&scenario.emulation) };
    let alone = flows && command.is_empty() && scenario.programs.is_empty();
    let identity = Identity { user, limited, environment: environment.unwrap_or_default() };
    let plan = Plan { command, place, servers, quiet, output, error, files, identity };
    let observers = Observers { capture, live: monitor.map(|monitor| monitor.0.clone()) };
    let mut raised = None;
    let mut report = |now: Instant| {
        let tell = |py: Python<'_>| -> PyResult<bool> {
            py.check_signals()?;
            progress
                .as_ref()
                .map_or(Ok(true), |tell| tell.call1(py, (now.as_secs_f64(),))?.extract(py))
        };
        Python::attach(tell).unwrap_or_else(|error| {
            raised = Some(error);
            false
        })
    };
    let run = || -> Result<Ended, EmuError> {
        let emulation = Emulation::attached(scenario, seed, &settings, observers, &sessions)?;
        if alone { emulation.run_flows(&mut report) } else { emulation.run(&plan) }
    };
    let ended = py.detach(run);
    if let Some(error) = raised {
        return Err(error);
    }
    let ended = ended.map_err(|error: EmuError| match error {
        EmuError::Stopped => PyKeyboardInterrupt::new_err("stopped"),
        error if error.is_bad_use() => PyValueError::new_err(error.to_string()),
        error => PyOSError::new_err(error.to_string()),
    })?;
    let replayed = ended.journal.as_ref();
    let replayed = py.detach(|| replayed.map(|journal| journal.parity(&ended.model, seed)));
    let json =
        |document: serde_json::Result<String>| document.expect("only strings, numbers and lists");
    let invalid = ended.invalid(scenario.emulation.lateness_bound);
    let summary = json(serde_json::to_string(&ended.summary));
    let watched = ended.facts.watch.by != "none";
    let tables = ended.tables.finish(scenario.run.ack_table && watched);
    Ok(PyEmulated {
        code: ended.code,
        invalid,
        report: json(serde_json::to_string(&ended.report)),
        facts: json(serde_json::to_string(&ended.facts)),
        failed: json(serde_json::to_string(&ended.failed)),
        partial: ended.partial,
        sockets: json(serde_json::to_string(&ended.sockets)),
        parity: json(serde_json::to_string(&replayed)),
        programs: json(serde_json::to_string(&ended.programs)),
        result: Py::new(py, PyResultTables { summary, tables })?,
    })
}
