//! What a run is like while it goes on, for whoever looks from another thread.
//!
//! The forwarder fills it in once in a while, and never waits: where a reader is at it, its turn is
//! left out.

use std::sync::{Arc, Mutex};

use airpath_network::NetworkLook;
use serde::Serialize;

/// One snapshot; clones are the same one.
#[derive(Clone, Debug, Default)]
pub struct Live(Arc<Mutex<Option<Snapshot>>>);

/// Counters since the start, and states of this instant.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Snapshot {
    /// Seconds since the start.
    pub time_s: f64,
    /// Down and up.
    pub directions: [DirectionLook; 2],
    /// What lies between the ends.
    #[serde(flatten)]
    pub network: NetworkLook,
    /// Flows in the order in which they were first seen.
    pub flows: Vec<FlowLook>,
}

/// One direction.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DirectionLook {
    /// Packets that entered.
    pub entered: u64,
    /// Packets that left.
    pub left: u64,
    /// Their bytes.
    pub left_bytes: u64,
    /// Packets that the kernel would not take.
    pub refused: u64,
    /// Packets dropped, by reason.
    pub dropped: Vec<(&'static str, u64)>,
    /// 99 % of the packets so far left within this of their time; null: none did.
    pub late_p99_us: Option<f64>,
    /// And all.
    pub late_max_us: Option<f64>,
}

/// One flow.
#[derive(Clone, Debug, Serialize)]
pub struct FlowLook {
    /// `tcp ue:40312 server:5201`.
    pub id: Arc<str>,
    /// down or up: the way of most of its data.
    pub direction: &'static str,
    /// Payload that arrived, of TCP in order.
    pub bytes: u64,
    /// Segments sent again.
    pub retransmissions: u64,
    /// Mean of the round trips since the last sample; null: none.
    pub rtt_ms: Option<f64>,
    /// The sender's window, where the kernel is watched.
    pub cwnd_segments: Option<u32>,
}

impl Live {
    /// The newest snapshot; `None` before the first.
    pub fn snapshot(&self) -> Option<Snapshot> {
        self.0.lock().ok()?.clone()
    }

    /// Shows `fill` the last snapshot, if nobody looks at it.
    pub(crate) fn publish(&self, fill: impl FnOnce(&mut Option<Snapshot>)) {
        if let Ok(mut snapshot) = self.0.try_lock() {
            fill(&mut snapshot);
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
        let reader = live.0.lock().unwrap();
        assert!(!shown(&live, 2.0), "its turn is left out");
        drop(reader);
        assert_eq!(live.snapshot().map(|snapshot| snapshot.time_s), Some(1.0));
        assert!(shown(&live, 3.0));
        assert_eq!(live.snapshot().map(|snapshot| snapshot.time_s), Some(3.0));
    }
}
