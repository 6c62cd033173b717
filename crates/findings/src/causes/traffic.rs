//! Other traffic.

use airpath_scenario::Traffic;

use crate::candidate::Candidate;
use crate::cause::Cause;
use crate::evidence::Evidence;
use crate::observed::Observed;
use crate::subject::Subject;
use crate::text::Mbps;

/// Below this utilisation no link is too small for all. A radio that grants coarsely is full from
/// here on.
const BUSY: f64 = 0.4;

/// UDP does not give way, so with other traffic it is cross traffic. TCP that shares is not.
pub(super) fn add(observed: &Observed<'_>, all: &mut Vec<Candidate>) {
    let datagrams = |traffic: &Traffic| matches!(traffic, Traffic::Udp { .. });
    if observed.scenario.flows.iter().all(|flow| datagrams(&flow.traffic)) {
        return;
    }
    for flow in &observed.scenario.flows {
        let Traffic::Udp { rate, .. } = &flow.traffic else { continue };
        if observed.links(flow.direction).all(|link| link.utilisation < BUSY) {
            continue;
        }
        let rate = Mbps(rate.bps() as f64 / 1e6);
        let evidence = vec![Evidence::Datagrams { flow: flow.id.clone(), rate }];
        let (subject, off) = (Subject::Flow(flow.id.clone()), flow.key().set("enabled", false));
        all.push(Candidate::new(Cause::CrossTraffic, subject, evidence, vec![vec![off]]));
    }
}
