//! How evenly the TCP and QUIC flows of a run share each direction.

use airpath_base::Direction;
use airpath_record::{FairnessSummary, FlowSummary};

/// Jain's index of the goodputs in each direction that has two or more flows with a congestion
/// control: TCP and QUIC.
pub fn fairness(flows: &[FlowSummary]) -> Vec<FairnessSummary> {
    let index = |direction| {
        let flows = flows.iter().filter(|flow| flow.direction == direction);
        let controlled = flows.filter(|flow| flow.congestion.is_some());
        let goodputs: Vec<f64> = controlled.filter_map(|flow| flow.goodput_mbps).collect();
        FairnessSummary::of(direction, &goodputs)
    };
    Direction::BOTH.map(Direction::name).into_iter().filter_map(index).collect()
}
