//! A UE's session: what the core network assigned when it attached.

use std::net::Ipv4Addr;

use airpath_base::{Duration, Instant, Rate};
use airpath_radio::cell::UeLinkConfig;
use airpath_radio::scheduler::RateCap;
use airpath_record::{EventRow, Name, Tables};
use airpath_scenario::Scenario;

/// What the core network assigned to a UE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UeSession {
    /// Position in the scenario.
    pub ue: usize,
    /// The UE's address, from the pool.
    pub address: Ipv4Addr,
    /// QoS flow identifier in NR, 1 to 63 (TS 23.501 5.7.1.1).
    pub qfi: u8,
    /// Time from the start until it is attached (LTE) or registered (NR).
    pub attached: Duration,
    /// Time from the start until the default bearer or the PDU session is established.
    pub established: Duration,
    /// UE-AMBR, downlink and uplink (TS 23.501 5.7.2.6), enforced by the cell; `None`: no limit.
    pub ambr: [Option<Rate>; 2],
}

impl UeSession {
    /// Caps the UE's rates in every cell. If the scenario has a cap too, the lower one applies.
    pub(crate) fn cap(&self, scenario: &mut Scenario) {
        let ues = scenario.radio.iter_mut().flat_map(|radio| radio.ran.ues.get_mut(self.ue));
        for config in ues.flat_map(|ue| &mut ue.in_cell) {
            let [down, up] = self.ambr;
            limit(&mut config.downlink, down);
            limit(&mut config.uplink, up);
        }
    }

    /// Writes the events of the UE with that name, which happened `zero` before time 0; returns the
    /// session's name in the tables.
    pub(crate) fn write(&self, ue: &str, zero: Duration, tables: &mut Tables) -> Name {
        let name = tables.names.add(ue);
        let session = tables.names.add(&format!("{ue} {}", self.address));
        let steps = [
            (Duration::ZERO, "attach_start", name),
            (self.attached, "attach_complete", name),
            (self.established, "session_established", session),
        ];
        for (after, kind, link) in steps {
            let time_ns = after.as_nanos() as i64 - zero.as_nanos() as i64;
            tables.event(step(time_ns, kind, link));
        }
        session
    }
}

/// Writes that a UE detached, which ended its session.
pub(crate) fn write_detach(session: Name, now: Instant, tables: &mut Tables) {
    tables.event(step(now.as_nanos() as i64, "detach", session));
}

/// What an operator did to a subscriber during a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SubscriberChange {
    /// Added to the core.
    Added,
    /// Given other values.
    Changed,
    /// Removed from the core.
    Removed,
}

impl SubscriberChange {
    const ALL: [Self; 3] = [Self::Added, Self::Changed, Self::Removed];

    /// The change whose event has that `kind`.
    pub fn of_kind(kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|change| change.kind() == kind)
    }

    /// The `kind` in the table of events.
    pub(crate) const fn kind(self) -> &'static str {
        match self {
            Self::Added => "subscriber_added",
            Self::Changed => "subscriber_changed",
            Self::Removed => "subscriber_removed",
        }
    }
}

fn step(time_ns: i64, kind: &'static str, link: Name) -> EventRow {
    EventRow { link: Some(link), ..EventRow::new(time_ns, kind) }
}

/// Bytes that may pass at once after a pause, unless the scenario sets them.
const BUCKET_BYTES: u64 = 100_000;

fn limit(link: &mut UeLinkConfig, ambr: Option<Rate>) {
    let Some(rate) = ambr else { return };
    let bucket_bytes = link.cap.as_ref().map_or(BUCKET_BYTES, |cap| cap.bucket_bytes);
    if link.cap.as_ref().is_none_or(|cap| rate < cap.rate) {
        link.cap = Some(RateCap { rate, bucket_bytes });
    }
}
