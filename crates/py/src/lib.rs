//! The Python extension `airpath._core`.
//!
//! Its whole surface is the list in [`core`]. The functions here convert arguments and results and
//! release the GIL; the work is done by the other crates, which know no Python. The stub
//! `python/airpath/_core.pyi` describes the surface, and a test compares the two.
//!
//! It may use: every crate. Start reading at [`core`].

mod campaign;
mod capture;
mod congestion;
mod emulation;
mod environment;
mod findings;
mod interruptible;
mod interval;
mod object;
mod scenario;
mod simulation;

use pyo3::prelude::*;

use campaign::{PyBatch, check_variants, simulate_batch};
use capture::{read_capture, read_flows, read_segments, view_flows};
use congestion::{
    CongestionError, PyAck, PyCongestionLibrary, PyLoss, PyStart, PyWindow, congestion_interface,
};
use emulation::{PyEmulated, PyMonitor, check_congestion, emulate, enter_user_namespace};
use environment::PySteppedRun;
use findings::{compare, explain, variant_rows};
use interruptible::worked_s;
use interval::PyInterval;
use scenario::{
    PyScenario, ScenarioError, parse, profiles, radio_presets, redacted, reference, schema,
    secret_hash, shipped,
};
use simulation::{PyResultTables, PyRunFigures, simulate, table_columns};

/// The module.
#[pymodule]
#[pyo3(name = "_core")]
mod core {
    #[pymodule_export]
    use super::{
        CongestionError, PyAck, PyBatch, PyCongestionLibrary, PyEmulated, PyInterval, PyLoss,
        PyMonitor, PyResultTables, PyRunFigures, PyScenario, PyStart, PySteppedRun, PyWindow,
        ScenarioError, check_congestion, check_variants, compare, congestion_interface, emulate,
        enter_user_namespace, explain, parse, profiles, radio_presets, read_capture, read_flows,
        read_segments, redacted, reference, schema, secret_hash, shipped, simulate, simulate_batch,
        table_columns, variant_rows, view_flows, worked_s,
    };

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        // Programs for the kernel are built in.
        module.add("__bpf__", cfg!(feature = "bpf"))?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        // Set while a wheel is built.
        module.add("__commit__", option_env!("AIRPATH_COMMIT"))
    }
}
