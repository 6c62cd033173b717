//! Who else is there.

use airpath_scenario::Traffic;

use super::{mbps, set};
use crate::candidate::Candidate;
use crate::cause::Cause;
use crate::facts::Facts;

/// UDP does not give way: beside other traffic it is cross traffic. TCP that shares is not.
pub(super) fn add(facts: &Facts<'_>, all: &mut Vec<Candidate>) {
    let datagrams = |traffic: &Traffic| matches!(traffic, Traffic::Udp { .. });
    if facts.scenario.flows.iter().all(|flow| datagrams(&flow.traffic)) {
        return;
    }
    for flow in &facts.scenario.flows {
        let Traffic::Udp { rate, .. } = &flow.traffic else { continue };
        all.push(Candidate {
            cause: Cause::CrossTraffic,
            subject: flow.id.clone(),
            evidence: format!(
                "{} sends {} whatever else wants to.",
                flow.id,
                mbps(rate.bps() as f64 / 1e6)
            ),
            removals: vec![vec![set(format!("flow.{}.enabled", flow.index), false)]],
        });
    }
}
