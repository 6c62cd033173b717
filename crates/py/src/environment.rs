//! Runs that pause for an agent's decisions, for environments of reinforcement learning.
//!
//! An agent decides for one flow. Its congestion control adds acknowledgements up as that of a Python
//! class that decides per interval does, and decides at the same points of a run, so that a policy
//! gives the same results as an agent and as a class.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use airpath_base::{Duration, Instant};
use airpath_cc::Limits;
use airpath_scenario::{Scenario, Traffic};
use airpath_sim::{SteppedRun, Stopped};
use airpath_tcp::{
    AckSample, Congestion, CongestionConfig, CongestionControl, CongestionFactory, EndpointConfig,
    ExternalCongestion, SlowStartExit, Window,
};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::congestion::CongestionError;
use crate::interval::{IntervalMeter, PyInterval};
use crate::scenario::PyScenario;
use crate::simulation::PyResultTables;

/// Name of an agent's congestion control in tables.
const NAME: &str = "agent";

/// What an agent and the congestion control of its flow exchange.
#[derive(Debug, Default)]
struct Exchange {
    /// Whether an interval has ended, or the agent has decided.
    due: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    interval: IntervalMeter,
    /// cwnd in segments; `None` before the connection exists.
    cwnd: Option<f64>,
    /// What the agent decided.
    decided: Option<f64>,
    limits: Option<Limits>,
}

impl Exchange {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics with it")
    }
}

/// Builds the congestion control of an agent's flow.
#[derive(Debug)]
struct Factory {
    exchange: Arc<Exchange>,
    /// Length of an interval; zero: a smoothed RTT.
    length: Duration,
}

impl CongestionFactory for Factory {
    fn name(&self) -> &'static str {
        NAME
    }

    fn build(&self, config: &EndpointConfig, _seed: u64) -> Box<dyn CongestionControl> {
        let mut state = self.exchange.state();
        state.cwnd = Some(Window::initial(config.initial_window).cwnd);
        state.limits = Some(Limits::of(config, true));
        Box::new(Control { exchange: self.exchange.clone(), length: self.length })
    }
}

/// The congestion control of an agent's flow.
#[derive(Debug)]
struct Control {
    exchange: Arc<Exchange>,
    length: Duration,
}

impl CongestionControl for Control {
    fn on_ack(&mut self, ack: &AckSample, window: &mut Window) -> Option<SlowStartExit> {
        let mut state = self.exchange.state();
        state.interval.on_ack(ack, self.length);
        state.cwnd = Some(window.cwnd);
        if state.interval.has_ended() {
            self.exchange.due.store(true, Ordering::Relaxed);
        }
        None
    }

    fn on_congestion(&mut self, _congestion: &Congestion, _window: &mut Window) {}

    fn on_timeout(&mut self, _congestion: &Congestion, _window: &mut Window) {
        self.exchange.state().interval.on_timeout();
    }

    fn decision_due(&self) -> bool {
        self.exchange.due.load(Ordering::Relaxed)
    }

    fn on_decision(&mut self, window: &mut Window) {
        let mut state = self.exchange.state();
        self.exchange.due.store(false, Ordering::Relaxed);
        // What was not taken is lost on an agent that did not ask.
        state.interval.take_ended();
        if let Some(cwnd) = state.decided.take() {
            window.cwnd = cwnd;
            state.cwnd = Some(cwnd);
        }
    }

    fn is_model_based(&self) -> bool {
        true
    }
}

/// A run that pauses for its agents' decisions. It belongs to the thread that created it: the parts of
/// a path share state without locks.
#[pyclass(name = "SteppedRun", module = "airpath._core", unsendable)]
pub(crate) struct PySteppedRun {
    /// `None` once it is finished, or has failed.
    run: Option<SteppedRun>,
    /// Place of each agent's flow in the scenario.
    agents: Vec<(usize, Arc<Exchange>)>,
    ack_table: bool,
}

#[pymethods]
impl PySteppedRun {
    /// A run at its beginning. `flows`: places in the scenario of the flows for which agents decide.
    #[new]
    #[pyo3(signature = (scenario, seed, flows, interval_ms=None))]
    fn new(
        scenario: &PyScenario,
        seed: u64,
        flows: Vec<usize>,
        interval_ms: Option<f64>,
    ) -> PyResult<Self> {
        let length = interval_ms.map(|ms| Duration::from_secs_f64(ms / 1e3)).unwrap_or_default();
        let mut scenario = scenario.0.scenario.clone();
        let ack_table = scenario.run.ack_table;
        let mut agents = Vec::new();
        for flow in flows {
            let exchange = Arc::new(Exchange::default());
            let factory = Arc::new(Factory { exchange: exchange.clone(), length });
            control(&mut scenario, flow, factory)?;
            agents.push((flow, exchange));
        }
        Ok(Self { run: Some(SteppedRun::new(scenario, seed)), agents, ack_table })
    }

    /// Runs until an agent is to decide; false at the end. It is a short time, and keeps the GIL.
    fn advance(&mut self, py: Python<'_>) -> PyResult<bool> {
        let mut raised = None;
        let run = self.run.as_mut().ok_or_else(finished)?;
        let outcome = run.advance(&mut |_: Instant, _: u64| {
            raised = py.check_signals().err();
            raised.is_none()
        });
        outcome.map_err(|why| {
            self.run = None;
            match why {
                Stopped::ByCaller => {
                    raised.unwrap_or_else(|| PyKeyboardInterrupt::new_err("stopped"))
                }
                Stopped::ByCongestionControl(why) => CongestionError::new_err(why),
            }
        })
    }

    /// What an agent's flow has seen since this was last asked.
    fn interval(&self, agent: usize) -> PyResult<PyInterval> {
        let (flow, exchange) = self.agent(agent)?;
        let run = self.run()?;
        // Of a flow that has ended, what followed it says nothing.
        let end = (!run.is_done(*flow)).then_some(run.now().as_nanos());
        Ok(exchange.state().interval.take(end))
    }

    /// cwnd of an agent's flow in segments; `None` before its connection exists.
    fn cwnd_segments(&self, agent: usize) -> PyResult<Option<f64>> {
        Ok(self.agent(agent)?.1.state().cwnd)
    }

    /// An agent decides. That takes effect at once, when the run goes on.
    fn decide(&self, agent: usize, cwnd_segments: f64) -> PyResult<()> {
        let exchange = &self.agent(agent)?.1;
        let mut state = exchange.state();
        let Some(limits) = &state.limits else { return Ok(()) };
        let window = Window { cwnd: cwnd_segments, ssthresh: f64::INFINITY };
        if let Some(wrong) = limits.refuse(&window, None) {
            return Err(CongestionError::new_err(format!("an agent set {wrong}")));
        }
        state.decided = Some(cwnd_segments);
        exchange.due.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Whether an agent's flow will not send anything more.
    fn is_done(&self, agent: usize) -> PyResult<bool> {
        Ok(self.run()?.is_done(self.agent(agent)?.0))
    }

    /// Simulated time so far, in nanoseconds.
    #[getter]
    fn now_ns(&self) -> PyResult<u64> {
        Ok(self.run()?.now().as_nanos())
    }

    /// Ends the run where it is.
    fn finish(&mut self) -> PyResult<PyResultTables> {
        let outcome = self.run.take().ok_or_else(finished)?.finish();
        let tables = outcome.tables.finish(self.ack_table);
        Ok(PyResultTables { figures: outcome.summary, tables, capture_lacks: None })
    }
}

impl PySteppedRun {
    fn agent(&self, agent: usize) -> PyResult<&(usize, Arc<Exchange>)> {
        self.agents.get(agent).ok_or_else(|| PyValueError::new_err(format!("no agent {agent}")))
    }

    fn run(&self) -> PyResult<&SteppedRun> {
        self.run.as_ref().ok_or_else(finished)
    }
}

fn finished() -> PyErr {
    PyRuntimeError::new_err("the run is finished")
}

/// Lets an agent decide for a flow.
fn control(scenario: &mut Scenario, flow: usize, factory: Arc<Factory>) -> PyResult<()> {
    match scenario.flows.get_mut(flow).map(|flow| &mut flow.traffic) {
        Some(Traffic::Bulk { tcp, .. } | Traffic::File { tcp, .. }) => {
            tcp.sender.congestion =
                CongestionConfig::External(ExternalCongestion { factory, seed: 0 });
            Ok(())
        }
        _ => Err(PyValueError::new_err(format!("flow {flow} is not TCP"))),
    }
}
