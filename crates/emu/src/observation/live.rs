//! The state of a run in progress, for readers in other threads.
//!
//! The forwarder updates it from time to time, and never waits: if a reader holds it, the update is
//! skipped.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use airpath_base::Direction;
use airpath_network::NetworkSnapshot;
use serde::Serialize;

use crate::wire::flows::Key;

/// A shared snapshot; clones refer to the same one.
#[derive(Clone, Debug, Default)]
pub struct Live {
    snapshot: Arc<Mutex<Option<Snapshot>>>,
    windows: Windows,
}

/// Congestion windows in segments as last observed, by flow and by whether the server sends. The
/// observer of the kernel's senders fills it in from its own thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Windows(Arc<Mutex<BTreeMap<(Key, bool), u32>>>);

/// Counters since the start, and current states.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Snapshot {
    /// Seconds since the start.
    pub time_s: f64,
    /// Downlink and uplink.
    pub directions: [DirectionSnapshot; 2],
    /// Everything between the ends.
    #[serde(flatten)]
    pub network: NetworkSnapshot,
    /// Flows that have a row of their own.
    pub flows: Vec<FlowSnapshot>,
    /// Number of other flows.
    pub other_flows: u32,
}

/// Counters of one direction since the start of the run.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DirectionSnapshot {
    /// Packets that entered.
    pub entered: u64,
    /// Packets that left.
    pub left: u64,
    /// Sum of the sizes of these packets.
    pub left_bytes: u64,
    /// Packets that the kernel refused.
    pub refused: u64,
    /// Packets dropped, by reason.
    pub dropped: Vec<(&'static str, u64)>,
    /// Lateness below which 99 % of the packets so far left; null if none left.
    pub late_p99_us: Option<f64>,
    /// Largest lateness so far; null if no packet left.
    pub late_max_us: Option<f64>,
}

/// What the packets of one flow show, since its first one.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlowSnapshot {
    /// The flow's key, for [`Windows`].
    #[serde(skip)]
    pub(crate) key: Key,
    /// Not in use: the flow that was here is one of the others.
    #[serde(skip)]
    pub(crate) free: bool,
    /// Name of the flow, e.g. `tcp ue:40312 server:5201`.
    pub id: Arc<str>,
    /// down or up: the direction of most of its data.
    pub direction: &'static str,
    /// Payload that arrived; for TCP, in order.
    pub bytes: u64,
    /// Segments retransmitted.
    pub retransmissions: u64,
    /// Mean of the round trips since the last sample; null if there are none.
    pub rtt_ms: Option<f64>,
    /// The sender's congestion window, if the kernel is observed.
    pub cwnd_segments: Option<u32>,
}

impl Live {
    /// The newest snapshot; `None` before the first.
    pub fn snapshot(&self) -> Option<Snapshot> {
        let mut snapshot = self.snapshot.lock().ok()?.clone()?;
        snapshot.flows.retain(|flow| !flow.free);
        self.windows.fill(&mut snapshot.flows);
        Some(snapshot)
    }

    /// The windows that the next snapshots will show.
    pub(crate) fn windows(&self) -> Windows {
        self.windows.clone()
    }

    /// Lets `fill` update the last snapshot, unless a reader holds it.
    pub(crate) fn publish(&self, fill: impl FnOnce(&mut Option<Snapshot>)) {
        if let Ok(mut snapshot) = self.snapshot.try_lock() {
            fill(&mut snapshot);
        }
    }
}

impl FlowSnapshot {
    /// The snapshot of a flow about which nothing is known yet.
    pub(crate) fn of(key: Key, id: &str) -> Self {
        Self {
            key,
            free: false,
            id: id.into(),
            direction: "down",
            bytes: 0,
            retransmissions: 0,
            rtt_ms: None,
            cwnd_segments: None,
        }
    }
}

impl Windows {
    /// Senders were observed.
    pub(crate) fn set(&self, seen: impl Iterator<Item = ((Key, bool), u32)>) {
        if let Ok(mut windows) = self.0.lock() {
            *windows = seen.collect();
        }
    }

    /// Fills in only what the flows' own senders have not reported.
    fn fill(&self, flows: &mut [FlowSnapshot]) {
        let Ok(windows) = self.0.lock() else { return };
        for flow in flows {
            let sender = (flow.key, flow.direction == Direction::Downlink.name());
            flow.cwnd_segments = flow.cwnd_segments.or_else(|| windows.get(&sender).copied());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_for_a_reader() {
        let live = Live::default();
        assert!(live.snapshot().is_none());
        let shown = |live: &Live, time_s: f64| {
            let mut filled = false;
            live.publish(|snapshot| {
                filled = true;
                snapshot.get_or_insert_default().time_s = time_s;
            });
            filled
        };
        assert!(shown(&live, 1.0));
        let reader = live.snapshot.lock().unwrap();
        assert!(!shown(&live, 2.0), "its turn is left out");
        drop(reader);
        assert_eq!(live.snapshot().map(|snapshot| snapshot.time_s), Some(1.0));
        assert!(shown(&live, 3.0));
        assert_eq!(live.snapshot().map(|snapshot| snapshot.time_s), Some(3.0));
    }

    #[test]
    fn a_flow_has_the_window_of_the_end_that_sends() {
        let live = Live::default();
        let key = |port| Key::tcp(1, false, port, 5201);
        live.publish(|snapshot| {
            let shown = |port, direction, cwnd_segments| FlowSnapshot {
                direction,
                cwnd_segments,
                ..FlowSnapshot::of(key(port), "flow")
            };
            let flows = vec![shown(1, "down", None), shown(1, "up", None), shown(2, "up", Some(7))];
            *snapshot = Some(Snapshot { flows, ..Snapshot::default() });
        });
        let seen = [((key(1), true), 20), ((key(1), false), 10), ((key(2), false), 9)];
        live.windows().set(seen.into_iter());
        let windows = |flow: FlowSnapshot| flow.cwnd_segments;
        let shown: Vec<_> = live.snapshot().unwrap().flows.into_iter().map(windows).collect();
        assert_eq!(shown, [Some(20), Some(10), Some(7)]);
    }
}
