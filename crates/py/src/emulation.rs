//! Emulation: its configuration in one object, and its results.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;

use airpath_base::{Duration, Instant, Rate};
use airpath_emu::{
    Choice, EmuError, Emulation, Ended, Environment, FailedFlow, FlowSockets, Gateway,
    GatewayOptions, Identity, Live, Options, Parity, ProgramReport, Report, Source,
    SubscriberChange, UeSession,
};
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::interruptible::{interruptible, unasked};
use crate::object::object;
use crate::scenario::PyScenario;
use crate::simulation::PyResultTables;

/// What one emulation left behind.
#[pyclass(name = "Emulated", module = "airpath._core", frozen)]
pub(crate) struct PyEmulated {
    code: i32,
    invalid: Option<String>,
    report: Report,
    environment: Environment,
    failed: Vec<FailedFlow>,
    partial: Vec<String>,
    sockets: Vec<FlowSockets>,
    parity: Option<Parity>,
    programs: Vec<ProgramReport>,
    interrupted: bool,
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
        object(py, &self.report)
    }

    #[getter]
    fn environment<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        object(py, &self.environment)
    }

    /// Flows of the scenario that failed: `id` and `because`.
    #[getter]
    fn failed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        object(py, &self.failed)
    }

    /// Why the result is partial, a sentence each; empty: it is whole.
    #[getter]
    fn partial(&self) -> Vec<String> {
        self.partial.clone()
    }

    /// What the kernel said of the scenario's TCP flows: `id`, `sender`, `receiver`.
    #[getter]
    fn sockets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        object(py, &self.sockets)
    }

    /// What the replay on the virtual clock came to; None if it was not asked for.
    #[getter]
    fn parity<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        object(py, &self.parity)
    }

    /// Whether Ctrl-C or a signal to this process asked the programs to end.
    #[getter]
    fn interrupted(&self) -> bool {
        self.interrupted
    }

    #[getter]
    fn programs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        object(py, &self.programs)
    }

    #[getter]
    fn result(&self, py: Python<'_>) -> Py<PyResultTables> {
        self.result.clone_ref(py)
    }
}

/// Makes this process root in a user namespace of its own.
#[pyfunction]
pub(crate) fn enter_user_namespace() -> PyResult<()> {
    Ok(airpath_emu::enter_user_namespace()?)
}

/// Sees what an emulation does, from another thread.
#[pyclass(name = "Monitor", module = "airpath._core", frozen)]
pub(crate) struct PyMonitor(Live);

#[pymethods]
impl PyMonitor {
    #[new]
    fn new() -> Self {
        Self(Live::default())
    }

    /// The newest snapshot; None before the first.
    fn snapshot<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(snapshot) = self.0.snapshot() else { return Ok(None) };
        object(py, &snapshot).map(Some)
    }
}

/// The fields of `airpath.drivers.options.EmulationOptions` that the extension uses.
#[derive(FromPyObject)]
pub(crate) struct PyEmulationOptions {
    command: Vec<String>,
    servers: Vec<String>,
    place: Option<String>,
    seed: Option<u64>,
    flows: bool,
    parity: bool,
    bare: bool,
    gateway: Option<PyGateway>,
    congestion: Vec<PyCongestion>,
    output: Option<i32>,
    error: Option<i32>,
    monitor: Option<Py<PyMonitor>>,
    edits: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
}

/// A change of a subscriber, as `airpath.emulation.oam.editing.Edit` has it.
#[derive(FromPyObject)]
pub(crate) struct PyEdit {
    clock_ns: i64,
    kind: String,
    imsi: String,
}

/// Records what `edits` returns.
fn record_edits(py: Python<'_>, edits: Option<Py<PyAny>>, ended: &mut Ended) -> PyResult<()> {
    let Some(edits) = edits else { return Ok(()) };
    for edit in edits.call0(py)?.extract::<Vec<PyEdit>>(py)? {
        let change = SubscriberChange::of_kind(&edit.kind).ok_or_else(|| {
            PyValueError::new_err(format!("`{}` is not a change of a subscriber", edit.kind))
        })?;
        ended.record(edit.clock_ns, change, &edit.imsi);
    }
    Ok(())
}

/// A congestion control, as `airpath.emulation.congestion.Congestion` has it.
#[derive(FromPyObject)]
pub(crate) struct PyCongestion {
    flow: Option<String>,
    name: Option<String>,
    file: Option<String>,
    sha256: Option<String>,
    elf: Option<Vec<u8>>,
}

impl From<PyCongestion> for Choice {
    fn from(congestion: PyCongestion) -> Self {
        let PyCongestion { flow, name, file, sha256, elf } = congestion;
        let source = match elf {
            None => Source::Host(name.unwrap_or_default()),
            Some(elf) => Source::Object {
                file: file.unwrap_or_default(),
                sha256: sha256.unwrap_or_default(),
                elf: Arc::from(elf),
                name,
            },
        };
        Self { flow, source }
    }
}

/// A UE's session, as `airpath.emulation.session.Session` has it.
#[derive(FromPyObject)]
pub(crate) struct PySession {
    index: usize,
    address: String,
    qfi: Option<u8>,
    ambr_down_mbps: Option<f64>,
    ambr_up_mbps: Option<f64>,
    attached_ms: f64,
    established_ms: f64,
}

/// As whom programs run, as `airpath.emulation.identity.Identity` has it.
#[derive(FromPyObject)]
pub(crate) struct PyIdentity {
    #[pyo3(attribute("become"))]
    user: Option<(u32, u32, Vec<u32>)>,
    limited: bool,
    environment: Option<BTreeMap<OsString, OsString>>,
}

/// The fields of `airpath.emulation.gateway.Gateway`: two interfaces of the host, and the devices
/// behind UEs.
#[derive(FromPyObject)]
pub(crate) struct PyGateway {
    inside: String,
    server: String,
    devices: Vec<(String, String)>,
    duration_s: Option<f64>,
}

impl From<PyGateway> for GatewayOptions {
    fn from(gateway: PyGateway) -> Self {
        let PyGateway { inside, server, devices, duration_s } = gateway;
        let duration = duration_s.map(|seconds| Duration::from_nanos((seconds * 1e9) as u64));
        Self { inside, server, devices, duration }
    }
}

/// The QFI if no subscription sets another, and in LTE.
const DEFAULT_QFI: u8 = 9;

impl PySession {
    fn session(&self) -> PyResult<UeSession> {
        let milliseconds = |ms: f64| Duration::from_nanos((ms * 1e6) as u64);
        // A rate of 0 means no limit.
        let rate = |mbps: Option<f64>| Rate::from_bps((mbps.unwrap_or(0.0) * 1e6).round() as u64);
        let address: Ipv4Addr = self.address.parse().map_err(|_| {
            PyValueError::new_err(format!("`{}` is not an IPv4 address of a UE", self.address))
        })?;
        Ok(UeSession {
            ue: self.index,
            address,
            qfi: self.qfi.filter(|&qfi| qfi > 0).unwrap_or(DEFAULT_QFI),
            attached: milliseconds(self.attached_ms),
            established: milliseconds(self.established_ms),
            ambr: [self.ambr_down_mbps, self.ambr_up_mbps].map(rate),
        })
    }
}

impl From<PyIdentity> for Identity {
    fn from(identity: PyIdentity) -> Self {
        let PyIdentity { user, limited, environment } = identity;
        let environment = environment.map(|variables| variables.into_iter().collect());
        Self { user, limited, environment }
    }
}

fn failed(py: Python<'_>, error: EmuError) -> PyErr {
    match error {
        EmuError::Stopped => PyKeyboardInterrupt::new_err("stopped"),
        EmuError::RefusedCongestion { ref log, .. } if !log.is_empty() => {
            let raised = PyOSError::new_err(error.to_string());
            // The driver writes it to a file.
            match raised.value(py).setattr("verifier_log", log) {
                Ok(()) => raised,
                Err(other) => other,
            }
        }
        error if error.is_bad_use() => PyValueError::new_err(error.to_string()),
        error => PyOSError::new_err(error.to_string()),
    }
}

/// Makes congestion controls available to the kernel for a moment.
#[pyfunction]
pub(crate) fn check_congestion(py: Python<'_>, choices: Vec<PyCongestion>) -> PyResult<()> {
    let choices: Vec<Choice> = choices.into_iter().map(Choice::from).collect();
    py.detach(|| airpath_emu::check_congestion(&choices)).map_err(|error| failed(py, error))
}

/// Runs a scenario on the real clock, without the GIL: a command inside its network, its flows, or
/// both; or between two interfaces of the host. `capture` is a pcapng file to create, `files` a
/// directory for the output of programs.
#[pyfunction]
#[pyo3(signature = (scenario, options, *, capture=None, files=None, sessions=Vec::new(), identity=None))]
pub(crate) fn emulate(
    py: Python<'_>,
    scenario: &PyScenario,
    options: PyEmulationOptions,
    capture: Option<PathBuf>,
    files: Option<PathBuf>,
    sessions: Vec<PySession>,
    identity: Option<PyIdentity>,
) -> PyResult<PyEmulated> {
    let scenario = &scenario.0.scenario;
    let PyEmulationOptions { seed, monitor, edits, progress, gateway, .. } = options;
    let seed = seed.unwrap_or(scenario.run.seed);
    let options = Options {
        command: options.command,
        place: options.place,
        servers: options.servers,
        flows: options.flows,
        congestion: options.congestion.into_iter().map(Choice::from).collect(),
        output: options.output,
        error: options.error,
        files,
        identity: identity.map(Identity::from).unwrap_or_default(),
        sessions: sessions.iter().map(PySession::session).collect::<PyResult<_>>()?,
        capture,
        live: monitor.map(|monitor| monitor.get().0.clone()),
        journal: options.parity,
        bare: options.bare,
    };
    let gateway = gateway.map(GatewayOptions::from);
    let length = gateway.as_ref().and_then(|gateway| gateway.duration);
    let length = length.unwrap_or(scenario.run.duration);
    let mut raised = None;
    let mut report = |now: Instant| {
        let share = (now.as_secs_f64() / length.as_secs_f64()).min(1.0);
        let tell = |py: Python<'_>| -> PyResult<()> {
            py.check_signals()?;
            progress.as_ref().map_or(Ok(()), |tell| tell.call1(py, (share,)).map(drop))
        };
        raised = Python::attach(tell).err();
        raised.is_none()
    };
    let run = || match gateway {
        Some(gateway) => Gateway::new(scenario, seed, options, gateway)?.run(&mut report),
        None => Emulation::new(scenario, seed, options)?.run(&mut report),
    };
    let ended = py.detach(run);
    if let Some(error) = raised {
        return Err(error);
    }
    let mut ended = ended.map_err(|error| failed(py, error))?;
    airpath_network::summarise_groups(scenario, &mut ended.summary, &mut ended.tables);
    let replayed = match ended.journal.take() {
        Some(journal) => {
            let model = ended.model.clone();
            Some(interruptible(py, unasked, move |_| journal.parity(&model, seed))?)
        }
        None => None,
    };
    record_edits(py, edits, &mut ended)?;
    let invalid = ended.invalid(&scenario.emulation);
    let observed = ended.environment.observer.by != "none";
    let tables = ended.tables.finish(scenario.run.ack_table && observed);
    Ok(PyEmulated {
        code: ended.code,
        invalid,
        report: ended.report,
        environment: ended.environment,
        failed: ended.failed,
        partial: ended.partial,
        sockets: ended.sockets,
        parity: replayed,
        programs: ended.programs,
        interrupted: ended.interrupted,
        result: Py::new(
            py,
            PyResultTables { figures: ended.summary, tables, capture_lacks: None },
        )?,
    })
}
