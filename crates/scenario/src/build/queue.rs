//! Queues in front of servers and their management, as the keys of a stage or a bearer set them.

use airpath_path::{Aqm, FqCoDelConfig, Isolation, QueueConfig};

use crate::get::{Get, narrow};
use crate::spec::LinkAqm;

/// The configuration of the queue in front of a server.
pub(crate) fn config(get: &Get<'_>) -> QueueConfig {
    QueueConfig {
        packets: get.0.count("queue_packets").map(narrow),
        bytes: get.0.count("queue_bytes"),
        aqm: match get.chosen() {
            LinkAqm::Codel => Aqm::CoDel {
                target: get.time("codel_target_ms"),
                interval: get.time("codel_interval_ms"),
            },
            LinkAqm::FqCodel => Aqm::FqCoDel(FqCoDelConfig {
                target: get.time("codel_target_ms"),
                interval: get.time("codel_interval_ms"),
                quantum: get.narrow("fq_codel_quantum_bytes"),
                isolation: isolation(get),
            }),
            LinkAqm::DropTail => Aqm::DropTail,
        },
    }
}

/// Which flows share a queue of FQ-CoDel.
pub(crate) fn isolation(get: &Get<'_>) -> Isolation {
    match get.0.count("fq_codel_queues") {
        // The key's range ends at 2^20.
        Some(queues) => Isolation::Hashed { queues: queues as u32 },
        None => Isolation::Perfect,
    }
}
