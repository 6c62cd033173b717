//! Which scenarios this build can run.

use airpath_scenario::{FlowConfig, Scenario, Traffic};

/// Why a build without the feature `quic` cannot run a scenario.
pub const WITHOUT_QUIC: &str = "this build has no QUIC stack: run it with `airpath run`";

/// Whether this build can run a scenario: without the feature `quic`, no QUIC flow.
///
/// # Errors
///
/// [`WITHOUT_QUIC`].
pub fn runs_here(scenario: &Scenario) -> Result<(), &'static str> {
    let quic = |flow: &FlowConfig| matches!(flow.traffic, Traffic::Quic { .. });
    match cfg!(feature = "quic") || !scenario.flows.iter().any(quic) {
        true => Ok(()),
        false => Err(WITHOUT_QUIC),
    }
}
