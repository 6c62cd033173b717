//! Scenarios: parses and checks them, and describes what the file can hold.

use std::path::PathBuf;

use airpath_scenario::{Document, Origin, Parsed, Problem, Source};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::interruptible::{interruptible, unasked};

pyo3::create_exception!(
    airpath._core,
    ScenarioError,
    PyValueError,
    "A scenario that cannot be run; `problems` lists why."
);

/// A checked scenario: if it exists, it can be run.
#[pyclass(name = "Scenario", module = "airpath._core", frozen)]
pub(crate) struct PyScenario(pub(crate) Parsed, pub(crate) Given);

/// What a scenario was parsed from, so that it can be parsed with more settings.
#[derive(Clone)]
pub(crate) struct Given {
    pub(crate) text: String,
    pub(crate) name: String,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) sets: Vec<String>,
}

impl Given {
    /// The text as a source, to be parsed again.
    pub(crate) fn source(&self) -> Source<'_> {
        Source { name: &self.name, text: &self.text, directory: self.directory.as_deref() }
    }
}

#[pymethods]
impl PyScenario {
    #[getter]
    fn name(&self) -> &str {
        &self.0.scenario.name
    }

    /// The scenario with more settings, which `option` gave.
    fn with_sets(&self, py: Python<'_>, sets: Vec<String>, option: &str) -> PyResult<Self> {
        let parsed = self.0.document.set_by(option, &sets).map_err(|error| refused(py, &error))?;
        let mut given = self.1.clone();
        given.sets.extend(sets);
        Ok(Self(parsed, given))
    }

    /// Text, name, directory and sets: what it was parsed of.
    #[getter]
    fn given(&self) -> (String, String, Option<String>, Vec<String>) {
        let Given { text, name, directory, sets } = &self.1;
        let directory = directory.as_ref().map(|directory| directory.display().to_string());
        (text.clone(), name.clone(), directory, sets.clone())
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
        use airpath_base::Direction;
        let list = PyList::empty(py);
        for flow in &self.0.scenario.flows {
            let entry = PyDict::new(py);
            entry.set_item("index", flow.index)?;
            entry.set_item("id", &flow.id)?;
            entry.set_item("kind", flow.traffic.kind())?;
            let down = flow.direction == Direction::Downlink;
            entry.set_item("direction", if down { "down" } else { "up" })?;
            entry.set_item("congestion", flow.traffic.congestion())?;
            entry.set_item("profile", flow.traffic.tcp().map(|tcp| &tcp.profile))?;
            let only = self.0.simulated_only.iter().filter(|only| only.flow == flow.index);
            let only: Vec<_> =
                only.map(|only| (only.key, &only.value, &only.profile_value)).collect();
            entry.set_item("simulated_only", only)?;
            list.append(entry)?;
        }
        Ok(list)
    }
}

/// Parses and checks a scenario; `option` gave the settings.
#[pyfunction]
#[pyo3(signature = (text, name, directory, sets, option="--set"))]
pub(crate) fn parse(
    py: Python<'_>,
    text: String,
    name: String,
    directory: Option<PathBuf>,
    sets: Vec<String>,
    option: &str,
) -> PyResult<PyScenario> {
    let option = option.to_owned();
    let given = Given { text, name, directory, sets };
    let (parsed, given) = interruptible(py, unasked, move |_| {
        let read = Document::read(&given.source());
        (read.and_then(|document| document.set_by(&option, &given.sets)), given)
    })?;
    match parsed {
        Ok(parsed) => Ok(PyScenario(parsed, given)),
        Err(error) => Err(refused(py, &error)),
    }
}

/// The exception for a scenario that has errors; `problems` has them.
fn refused(py: Python<'_>, error: &airpath_scenario::ScenarioError) -> PyErr {
    let raised = ScenarioError::new_err(error.to_string());
    let problems = error.problems.iter().map(|problem| describe(py, problem));
    let listed = problems.collect::<PyResult<Vec<_>>>();
    match listed.and_then(|problems| raised.value(py).setattr("problems", problems)) {
        Ok(()) => raised,
        Err(other) => other,
    }
}

pub(crate) fn describe<'py>(py: Python<'py>, problem: &Problem) -> PyResult<Bound<'py, PyDict>> {
    let entry = PyDict::new(py);
    let (file, line, column, set) = match &problem.origin {
        Origin::File { name, line, column } => (Some(&**name), Some(*line), Some(*column), None),
        Origin::Set { text, .. } => (None, None, None, Some(&**text)),
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
pub(crate) fn shipped() -> Vec<(&'static str, &'static str)> {
    airpath_scenario::shipped().to_vec()
}

/// Names of the built-in TCP profiles.
#[pyfunction]
pub(crate) fn profiles() -> Vec<&'static str> {
    airpath_scenario::profiles().collect()
}

/// Names and descriptions of the radio presets.
#[pyfunction]
pub(crate) fn radio_presets() -> Vec<(&'static str, &'static str)> {
    airpath_scenario::radio_presets().collect()
}

/// A text with `…` for each secret.
#[pyfunction]
pub(crate) fn redacted(text: &str) -> String {
    airpath_scenario::redacted(text)
}

/// What stands for a secret in what a run writes.
#[pyfunction]
pub(crate) fn secret_hash(key: &str, imsi: &str, value: &str) -> String {
    airpath_scenario::secret_hash(key, imsi, value)
}

/// JSON schema of the scenario file.
#[pyfunction]
pub(crate) fn schema() -> String {
    format!("{:#}", airpath_scenario::json_schema())
}

/// Reference of every scenario key, as Markdown.
#[pyfunction]
pub(crate) fn reference() -> String {
    airpath_scenario::reference_markdown()
}
