//! Results: tables and snapshots while the forwarder runs, a report and a summary at its end.

use std::collections::BTreeMap;

use airpath_base::{Direction, Duration, Instant};
use airpath_metrics::fairness;
use airpath_network::Hop;
use airpath_record::{RunSummary, Tables};

use super::ingress::OTHERS;
use super::{Forwarder, direction_from};
use crate::host::session::write_detach;
use crate::observation::flow_meters::Metered;
use crate::observation::journal::Journal;
use crate::observation::live::Snapshot;
use crate::run::report::{AckGaps, LinkReport, Report};

/// Shortest time between snapshots: no viewer needs more.
pub(super) const SNAPSHOT_INTERVAL: Duration = Duration::from_millis(100);

/// Something that is done once per interval, as soon as the forwarder has time.
pub(super) struct Every {
    interval: Duration,
    last: Instant,
}

impl Every {
    pub(super) const fn new(interval: Duration) -> Self {
        Self { interval, last: Instant::ZERO }
    }

    /// When it is due next.
    pub(super) fn next(&self) -> Instant {
        self.last + self.interval
    }

    /// Notes that it is done now; returns when it was done before.
    fn done(&mut self, now: Instant) -> Instant {
        std::mem::replace(&mut self.last, now)
    }
}

impl Forwarder {
    /// Writes rows of the tables once per sample interval.
    pub(super) fn sample_if_due(&mut self, now: Instant) {
        if now >= self.samples.next() {
            self.sample(now);
        }
    }

    fn sample(&mut self, now: Instant) {
        self.publish(now);
        let since = self.samples.done(now);
        self.network.settle(now);
        self.drain_drops();
        self.network.sample(now, &mut self.tables);
        for (flow, window) in self.scheduled.sample(now) {
            self.meters.sender(flow, window);
        }
        for (flow, sample) in self.scheduled.sample_quic(now) {
            self.meters.quic(flow, sample);
        }
        self.meters.sample(now, since);
    }

    fn publish(&mut self, now: Instant) {
        let Self { live, network, tables, meters, counts, .. } = self;
        let Some((live, snapshots)) = live else { return };
        if now < snapshots.next() {
            return;
        }
        snapshots.done(now);
        live.publish(|snapshot| {
            let shown = snapshot.get_or_insert_with(|| Snapshot {
                network: network.snapshot(now, &tables.names),
                ..Snapshot::default()
            });
            shown.time_s = now.as_secs_f64();
            network.update(now, &mut shown.network);
            meters.update(&mut shown.flows);
            shown.other_flows = meters.others();
            for (counts, shown) in counts.iter().zip(&mut shown.directions) {
                counts.update(shown);
            }
        });
    }

    /// Everything counted so far.
    pub fn report(&mut self) -> Report {
        let now = self.clock.now();
        self.drain_drops();
        for (number, device) in self.devices.iter_mut().enumerate() {
            let counts = &mut self.counts[direction_from(number)];
            counts.overrun += device.port.take_dropped();
            let (packets, largest) = device.port.take_cut();
            counts.refuse(packets, largest);
            if let Some(bridge) = &mut self.bridge {
                bridge.note_joined(direction_from(number), device.port.take_joined());
            }
            if device.gone.is_none() && device.port.is_gone() {
                device.gone = device.down.or(Some(now));
            }
        }
        let mut links = Vec::new();
        for path in [Hop::FromServer, Hop::ToUeHost, Hop::FromUeHost, Hop::FromUe] {
            self.network.observe(path, now, &mut |meter| {
                links.push(LinkReport {
                    id: meter.name.clone(),
                    packets: meter.departed.packets,
                    bytes: meter.departed.bytes,
                    capacity_bytes: meter.capacity_bytes,
                });
            });
        }
        Report {
            elapsed_s: now.as_secs_f64(),
            clock_origin_ns: self.clock.origin_nanos(),
            directions: by_name(|direction| {
                self.counts[direction].report(&self.meters.host_shares()[direction])
            }),
            tunnel: self
                .tunnel
                .as_ref()
                .map(|tunnel| by_name(|direction| tunnel.report(direction))),
            inside: self.network.load().packets,
            flows: self.flows.given() as usize,
            other_flows: self.meters.others(),
            more_flows: self.flows.is_full(),
            missed_rtts: self.meters.missed_rtts(),
            gone: {
                let gone = self.devices.iter().filter_map(|one| Some((&one.name, one.gone?)));
                gone.map(|(name, at)| (name.clone(), at.as_secs_f64())).collect()
            },
            links,
            gateway: self
                .bridge
                .as_ref()
                .map(|bridge| bridge.report(|end| self.ends[end].name.clone())),
            ack_gaps: {
                let gaps = self.scheduled.ack_gaps().into_iter();
                gaps.map(|(id, gap_ms)| AckGaps { id, gap_ms }).collect()
            },
        }
    }

    /// The journal, if one was requested.
    pub fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    /// Ends the run: returns its summary and its tables.
    pub fn finish(self) -> (RunSummary, Tables) {
        let (summary, mut tables, metered) = self.end();
        metered.record(&summary, &mut tables);
        (summary, tables)
    }

    /// Ends the run; flows and samples have not been written to the tables yet.
    pub(crate) fn end(mut self) -> (RunSummary, Tables, Metered) {
        let now = self.clock.now();
        self.drain_drops();
        self.sample(now);
        // A session lasts as long as the run.
        for &session in &self.sessions {
            write_detach(session, now, &mut self.tables);
        }
        let entered = self.counts.iter().map(|counts| counts.entered).sum();
        let mut summary = RunSummary {
            seed: self.seed,
            duration_s: now.as_secs_f64(),
            events: entered,
            ..RunSummary::default()
        };
        self.network.summarise(now, &mut summary);
        let Self { meters, scheduled, tables, flows, others, .. } = &mut self;
        let others =
            (meters.others() > 0).then(|| *others.get_or_insert_with(|| tables.names.add(OTHERS)));
        let mut complete = |flow, seen| scheduled.complete(flow, now, seen);
        let metered =
            meters.summarise(&mut summary, others, flows.is_full(), tables, &mut complete);
        summary.fairness = fairness(&summary.flows);
        scheduled.finish(now, &meters.names(), &mut summary, tables);
        (summary, self.tables, metered)
    }
}

/// One value for each direction, by its name.
fn by_name<T>(of: impl Fn(Direction) -> T) -> BTreeMap<&'static str, T> {
    Direction::BOTH.into_iter().map(|direction| (direction.name(), of(direction))).collect()
}
