//! Congestion control that a Python class decides.
//!
//! Python builds one object per connection. The simulator calls its methods, with the GIL, in the
//! thread that simulates; a class that only decides per interval is called once per interval, and
//! what the acknowledgements in between say is added up without the GIL ([`crate::interval`]). A method that raises,
//! or that sets an impossible window, ends the run: the first such failure is its reason.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use airpath_base::{Duration, Instant};
use airpath_cc::{Limits, Loaded};
use airpath_tcp::{
    AckSample, Congestion, CongestionConfig, CongestionControl, CongestionFactory, EndpointConfig,
    ExternalCongestion, SlowStartExit, SlowStartExitReason, State, Window,
};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::interval::IntervalMeter;

pyo3::create_exception!(
    airpath._core,
    CongestionError,
    PyValueError,
    "A congestion control that cannot go on; its cause is what it raised, if it raised something."
);

/// The beginning of a connection.
#[pyclass(name = "Start", module = "airpath._core", frozen, get_all)]
pub(crate) struct PyStart {
    seed: u64,
    mss_bytes: u32,
    initial_window_segments: u32,
}

/// An acknowledgement.
#[pyclass(name = "Ack", module = "airpath._core", frozen, get_all)]
pub(crate) struct PyAck {
    now_ns: u64,
    snd_una_bytes: u64,
    snd_nxt_bytes: u64,
    mss_bytes: u32,
    acked_segments: u32,
    delivered_segments: u32,
    lost_segments: u32,
    ecn_echo: bool,
    rtt_ns: Option<u64>,
    srtt_ns: u64,
    min_rtt_ns: u64,
    in_flight_segments: u32,
    cwnd_limited: bool,
    paced: bool,
    pacing_wait_ns: u64,
    state: &'static str,
    delivery_rate_bps: Option<f64>,
    app_limited: bool,
}

/// A congestion event.
#[pyclass(name = "Loss", module = "airpath._core", frozen, get_all)]
pub(crate) struct PyLoss {
    now_ns: u64,
    flight_segments: u32,
    by_timeout: bool,
}

/// The window that a class controls.
#[pyclass(name = "Window", module = "airpath._core", get_all, set_all)]
#[derive(Debug)]
pub(crate) struct PyWindow {
    cwnd_segments: f64,
    ssthresh_segments: f64,
    pacing_bps: Option<f64>,
}

/// A shared library with a congestion control.
#[pyclass(name = "CongestionLibrary", module = "airpath._core", frozen)]
pub(crate) struct PyCongestionLibrary(Loaded);

#[pymethods]
impl PyCongestionLibrary {
    /// Loads it, which runs its code.
    #[new]
    fn new(path: PathBuf) -> PyResult<Self> {
        airpath_cc::load(&path)
            .map(Self)
            .map_err(|error| CongestionError::new_err(format!("{} {error}", path.display())))
    }

    /// Name of the algorithm in tables.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.factory.name()
    }

    /// Content of the file.
    #[getter]
    fn content<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.bytes)
    }
}

/// The interface of libraries, as a file of Rust.
#[pyfunction]
pub(crate) fn congestion_interface() -> &'static str {
    airpath_cc::INTERFACE
}

/// The first failure of a run, and what Python raised.
#[derive(Debug, Default)]
pub(crate) struct Failure(Mutex<Option<PyErr>>);

impl Failure {
    fn note(&self, raised: PyErr) {
        self.0.lock().expect("nothing panics with it").get_or_insert(raised);
    }

    /// The exception for a run that ended with this message.
    pub(crate) fn raise(&self, py: Python<'_>, message: String) -> PyErr {
        let error = CongestionError::new_err(message);
        error.set_cause(py, self.0.lock().expect("nothing panics with it").take());
        error
    }
}

/// Builds the objects of one flow.
#[derive(Debug)]
struct Factory {
    /// The flow in messages.
    flow: String,
    name: &'static str,
    /// Returns what is known of a new object.
    prepare: Py<PyAny>,
    failure: Arc<Failure>,
}

/// The congestion control of a flow: a library's, or a class's, of which `given` returns a new
/// `airpath.congestion.Prepared` for each connection.
pub(crate) fn external(
    py: Python<'_>,
    flow: String,
    name: &str,
    given: Py<PyAny>,
    failure: &Arc<Failure>,
) -> CongestionConfig {
    if let Ok(library) = given.bind(py).cast::<PyCongestionLibrary>() {
        let factory = library.get().0.factory.clone();
        return CongestionConfig::External(ExternalCongestion { factory, seed: 0 });
    }
    let prepare = given;
    let (name, failure) = (interned(name), failure.clone());
    let factory = Arc::new(Factory { flow, name, prepare, failure });
    CongestionConfig::External(ExternalCongestion { factory, seed: 0 })
}

/// The name for as long as the process lives; each name is kept once.
fn interned(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().expect("nothing panics with it");
    names.get(name).copied().unwrap_or_else(|| {
        let name: &'static str = Box::leak(Box::<str>::from(name));
        names.insert(name);
        name
    })
}

impl CongestionFactory for Factory {
    fn name(&self) -> &'static str {
        self.name
    }

    fn build(&self, config: &EndpointConfig, seed: u64) -> Box<dyn CongestionControl> {
        let start = PyStart {
            seed,
            mss_bytes: config.mss,
            initial_window_segments: config.initial_window.max(1),
        };
        Box::new(Control {
            flow: self.flow.clone(),
            failure: self.failure.clone(),
            failed: None,
            now: Instant::ZERO,
            limits: Limits::of(config, false),
            pacing_bps: None,
            python: None,
            interval: IntervalMeter::default(),
        })
        .started(&self.prepare, start, config)
    }
}

/// Methods of the class, in the order of [`Object::methods`].
#[derive(Clone, Copy)]
enum Method {
    Start,
    Established,
    Ack,
    Loss,
    Undo,
    Recovered,
    Restart,
    Interval,
}

impl Method {
    const NAMES: [&'static str; 8] = [
        "on_start",
        "on_established",
        "on_ack",
        "on_loss",
        "on_undo",
        "on_recovered",
        "on_restart",
        "on_interval",
    ];

    const fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// The object of a connection, and what is known of its class.
#[derive(Debug)]
struct Object {
    /// Name of the class in messages.
    class: String,
    is_model_based: bool,
    /// Length of an interval, if the class decides per interval; zero: a smoothed RTT.
    interval: Option<Duration>,
    /// The methods that the class has.
    methods: [Option<Py<PyAny>>; 8],
    window: Py<PyWindow>,
}

/// The congestion control of one connection.
#[derive(Debug)]
struct Control {
    flow: String,
    failure: Arc<Failure>,
    failed: Option<String>,
    now: Instant,
    limits: Limits,
    pacing_bps: Option<f64>,
    /// `None` if it could not be made.
    python: Option<Object>,
    /// What the acknowledgements say, if the class decides per interval.
    interval: IntervalMeter,
}

impl Control {
    /// Builds the object, and tells it of the connection.
    fn started(
        mut self: Box<Self>,
        prepare: &Py<PyAny>,
        start: PyStart,
        config: &EndpointConfig,
    ) -> Box<Self> {
        match Python::attach(|py| Object::new(py, prepare)) {
            Ok(object) => {
                self.limits = Limits::of(config, object.is_model_based);
                self.python = Some(object);
            }
            Err(raised) => {
                let said = Python::attach(|py| described(py, &raised));
                self.fail(format!("cannot be built: {said}"), Some(raised));
            }
        }
        let mut window = Window::initial(start.initial_window_segments);
        self.call(Method::Start, &mut window, |py, _| (start,).into_pyobject(py));
        self
    }

    /// Records the first failure.
    #[cold]
    fn fail(&mut self, message: String, raised: Option<PyErr>) {
        if let Some(raised) = raised {
            self.failure.note(raised);
        }
        let (flow, at) = (&self.flow, self.now.as_secs_f64());
        let message = format!("congestion control of {flow}: {message} (at {at:.6} s)");
        self.failed.get_or_insert(message);
    }

    fn has(&self, method: Method) -> bool {
        self.failed.is_none()
            && self.python.as_ref().is_some_and(|object| object.methods[method as usize].is_some())
    }

    /// Calls a method, if the class has it. Returns what it returned, unless that is None.
    fn call<'a>(
        &mut self,
        method: Method,
        window: &mut Window,
        arguments: impl for<'py> FnOnce(
            Python<'py>,
            Bound<'py, PyWindow>,
        ) -> PyResult<Bound<'py, PyTuple>>
        + 'a,
    ) -> Option<SlowStartExit> {
        if !self.has(method) {
            return None;
        }
        let object = self.python.as_ref()?;
        let bits = self.pacing_bps;
        let outcome = Python::attach(|py| {
            let called = || object.call(py, method, (*window, bits), arguments);
            called().map_err(|raised| (described(py, &raised), raised))
        });
        let (set, pacing_bps, exit) = match outcome {
            Ok(outcome) => outcome,
            Err((said, raised)) => {
                let class = &object.class;
                let message = format!("{class}.{} raised {said}", method.name());
                self.fail(message, Some(raised));
                return None;
            }
        };
        if let Some(wrong) = self.limits.refuse(&set, pacing_bps) {
            let class = self.python.as_ref().map_or("", |object| &object.class);
            self.fail(format!("{class}.{} set {wrong}", method.name()), None);
            return None;
        }
        (*window, self.pacing_bps) = (set, pacing_bps);
        exit
    }

    fn lose(&mut self, congestion: &Congestion, by_timeout: bool, window: &mut Window) {
        self.now = congestion.now;
        if by_timeout {
            self.interval.on_timeout();
        }
        if self.has(Method::Loss) {
            let loss = PyLoss {
                now_ns: congestion.now.as_nanos(),
                flight_segments: congestion.flight,
                by_timeout,
            };
            self.call(Method::Loss, window, |py, window| (loss, window).into_pyobject(py));
        } else if !self.is_model_based() {
            // RFC 5681 (4)
            window.ssthresh = (f64::from(congestion.flight) / 2.0).max(2.0);
        }
    }
}

impl CongestionControl for Control {
    fn on_ack(&mut self, ack: &AckSample, window: &mut Window) -> Option<SlowStartExit> {
        self.now = ack.now;
        let interval = self.python.as_ref().and_then(|object| object.interval);
        if let Some(length) = interval {
            self.interval.on_ack(ack, length);
        }
        if !self.has(Method::Ack) {
            return None;
        }
        self.call(Method::Ack, window, |py, window| (PyAck::from(ack), window).into_pyobject(py))
    }

    fn decision_due(&self) -> bool {
        self.interval.has_ended()
    }

    fn on_decision(&mut self, window: &mut Window) {
        if let Some(interval) = self.interval.take_ended() {
            self.call(Method::Interval, window, |py, window| (interval, window).into_pyobject(py));
        }
    }

    fn on_established(&mut self, rtt: Option<Duration>, window: &Window) {
        let rtt_ns = rtt.map(Duration::as_nanos);
        let mut unchanged = *window;
        self.call(Method::Established, &mut unchanged, |py, _| (rtt_ns,).into_pyobject(py));
    }

    fn on_congestion(&mut self, congestion: &Congestion, window: &mut Window) {
        self.lose(congestion, false, window);
    }

    fn on_timeout(&mut self, congestion: &Congestion, window: &mut Window) {
        self.lose(congestion, true, window);
    }

    fn on_undo(&mut self, window: &mut Window) {
        self.call(Method::Undo, window, |py, window| (window,).into_pyobject(py));
    }

    fn on_recovered(&mut self, now: Instant, window: &mut Window) {
        self.now = now;
        let now_ns = now.as_nanos();
        self.call(Method::Recovered, window, |py, window| (now_ns, window).into_pyobject(py));
    }

    fn on_restart(&mut self, now: Instant, since: Instant, window: &mut Window) {
        self.now = now;
        let times = (now.as_nanos(), since.as_nanos());
        self.call(Method::Restart, window, |py, window| {
            (times.0, times.1, window).into_pyobject(py)
        });
    }

    fn is_model_based(&self) -> bool {
        self.python.as_ref().is_some_and(|object| object.is_model_based)
    }

    fn pacing_rate(&self) -> Option<f64> {
        self.pacing_bps.map(|bps| bps / 8.0)
    }

    fn failure(&self) -> Option<&str> {
        self.failed.as_deref()
    }
}

impl Object {
    fn new(py: Python<'_>, prepare: &Py<PyAny>) -> PyResult<Self> {
        let prepared = prepare.bind(py).call0()?;
        let methods = prepared.getattr(intern!(py, "methods"))?;
        let methods = methods.cast::<PyDict>()?;
        let mut found = [const { None }; 8];
        for (slot, name) in found.iter_mut().zip(Method::NAMES) {
            *slot = methods.get_item(name)?.map(Bound::unbind);
        }
        let interval_ms: Option<f64> = prepared.getattr(intern!(py, "interval_ms"))?.extract()?;
        let interval = interval_ms.map(|ms| Duration::from_secs_f64(ms / 1e3)).unwrap_or_default();
        let decides = found[Method::Interval as usize].is_some();
        let window =
            PyWindow { cwnd_segments: 0.0, ssthresh_segments: f64::INFINITY, pacing_bps: None };
        Ok(Self {
            class: prepared.getattr(intern!(py, "class_name"))?.extract()?,
            is_model_based: prepared.getattr(intern!(py, "model_based"))?.extract()?,
            interval: decides.then_some(interval),
            methods: found,
            window: Py::new(py, window)?,
        })
    }

    /// Calls a method that exists, with a window that it may change.
    fn call<'py>(
        &self,
        py: Python<'py>,
        method: Method,
        (window, pacing_bps): (Window, Option<f64>),
        arguments: impl FnOnce(Python<'py>, Bound<'py, PyWindow>) -> PyResult<Bound<'py, PyTuple>>,
    ) -> PyResult<(Window, Option<f64>, Option<SlowStartExit>)> {
        let shown = self.window.bind(py);
        {
            let mut shown = shown.try_borrow_mut()?;
            (shown.cwnd_segments, shown.ssthresh_segments) = (window.cwnd, window.ssthresh);
            shown.pacing_bps = pacing_bps;
        }
        let Some(callable) = &self.methods[method as usize] else {
            return Ok((window, pacing_bps, None));
        };
        let returned = callable.bind(py).call1(arguments(py, shown.clone())?)?;
        let exit = match method {
            Method::Ack if !returned.is_none() => Some(exit_of(py, &returned)?),
            _ => None,
        };
        let shown = shown.try_borrow()?;
        let set = Window { cwnd: shown.cwnd_segments, ssthresh: shown.ssthresh_segments };
        Ok((set, shown.pacing_bps, exit))
    }
}

impl From<&AckSample> for PyAck {
    fn from(ack: &AckSample) -> Self {
        let per_second = ack.rate.and_then(|rate| rate.per_second());
        Self {
            now_ns: ack.now.as_nanos(),
            snd_una_bytes: ack.una,
            snd_nxt_bytes: ack.nxt,
            mss_bytes: ack.mss,
            acked_segments: ack.acked,
            delivered_segments: ack.delivered,
            lost_segments: ack.lost,
            ecn_echo: ack.ecn_echo,
            rtt_ns: ack.rtt.map(Duration::as_nanos),
            srtt_ns: ack.srtt.as_nanos(),
            min_rtt_ns: ack.min_rtt.as_nanos(),
            in_flight_segments: ack.in_flight,
            cwnd_limited: ack.cwnd_limited,
            paced: ack.paced,
            pacing_wait_ns: ack.pacing_wait.as_nanos(),
            state: match ack.state {
                State::Open => "open",
                State::Recovery => "recovery",
                State::Loss => "loss",
            },
            delivery_rate_bps: per_second.map(|rate| 8.0 * f64::from(ack.mss) * rate),
            app_limited: ack.rate.is_some_and(|rate| rate.app_limited),
        }
    }
}

/// The end of slow start that `on_ack` returned.
fn exit_of(py: Python<'_>, returned: &Bound<'_, PyAny>) -> PyResult<SlowStartExit> {
    let reason: String = returned.getattr(intern!(py, "reason"))?.extract()?;
    let reason = SlowStartExitReason::named(&reason).ok_or_else(|| {
        PyValueError::new_err(format!("{reason:?} is not a reason for the end of slow start"))
    })?;
    let time = |name: &str| -> PyResult<Option<Duration>> {
        let nanos: Option<u64> = returned.getattr(name)?.extract()?;
        Ok(nanos.map(Duration::from_nanos))
    };
    let (round_rtt, base_rtt) = (time("round_rtt_ns")?, time("base_rtt_ns")?);
    Ok(SlowStartExit { reason, round_rtt, base_rtt })
}

/// An exception on one line: type, text, and the line that raised it.
fn described(py: Python<'_>, raised: &PyErr) -> String {
    let text = raised.to_string();
    let text = text.lines().next().unwrap_or_default();
    let place = || -> PyResult<Option<String>> {
        let Some(mut last) = raised.traceback(py).map(Bound::into_any) else { return Ok(None) };
        loop {
            let next = last.getattr("tb_next")?;
            if next.is_none() {
                break;
            }
            last = next;
        }
        let line: u32 = last.getattr("tb_lineno")?.extract()?;
        let code = last.getattr("tb_frame")?.getattr("f_code")?;
        let file: String = code.getattr("co_filename")?.extract()?;
        Ok(Some(format!("{file}:{line}")))
    };
    match place().ok().flatten() {
        Some(place) => format!("{text}, in {place}"),
        None => text.to_owned(),
    }
}
