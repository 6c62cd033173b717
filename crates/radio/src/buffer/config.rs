//! The configuration of a buffer, as plain data.

use airpath_base::Duration;
use airpath_queue::Isolation;

/// A bearer's buffer. `None` means no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferConfig {
    /// Most packets that may wait.
    pub packets: Option<u32>,
    /// Most bytes of packets that may wait, headers not counted.
    pub bytes: Option<u64>,
    /// The order in which packets leave, and active queue management.
    pub discipline: Discipline,
    /// Which packets are marked.
    pub ecn: EcnConfig,
}

/// Order and active queue management.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// First in, first out.
    DropTail,
    /// CoDel (RFC 8289).
    CoDel(CoDelConfig),
    /// Flow queues, each with CoDel, served by deficit round robin (RFC 8290).
    FqCoDel {
        /// CoDel of each queue.
        codel: CoDelConfig,
        /// Bytes that a queue may send per turn (RFC 8290 5.2.3); at least 1.
        quantum: u32,
        /// Which flows share a queue.
        isolation: Isolation,
    },
}

/// CoDel's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDelConfig {
    /// Acceptable standing queue delay.
    pub target: Duration,
    /// Time above target before the first drop.
    pub interval: Duration,
}

/// Which packets are marked instead of dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct EcnConfig {
    /// What CoDel does to an ECN-capable packet.
    pub codel: EcnCapable,
    /// Packets with ECT(1) that waited longer than this are marked, and CoDel ignores them. It is a
    /// step on the sojourn time, without the coupling between two queues of RFC 9332; TS 23.501
    /// 5.37.3 leaves the criterion to the base station. `None`: ECT(1) is treated like ECT(0).
    pub l4s_step: Option<Duration>,
}

/// How CoDel treats a packet of an ECN-capable transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum EcnCapable {
    /// Drops it like any other packet.
    #[default]
    Dropped,
    /// Marks it instead of dropping it (RFC 8290 4.2).
    Marked,
}
