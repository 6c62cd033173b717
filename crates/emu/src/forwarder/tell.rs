//! What is told: tables and snapshots while the forwarder runs, a report and a summary at its end.

use airpath_base::{Duration, Instant};
use airpath_network::{FROM_SERVER, FROM_UE};
use airpath_record::{RunSummary, Tables};

use super::Forwarder;
use super::enter::OTHERS;
use super::way::Way;
use crate::journal::Journal;
use crate::live::Snapshot;
use crate::log::Log;
use crate::meter::Metered;
use crate::report::{AckGaps, LinkReport, LogReport, Report};

const DIRECTIONS: [&str; 2] = ["down", "up"];

/// Nobody looks more often.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

impl Forwarder {
    /// Fills in rows of the tables, once in a sample interval.
    pub(super) fn sample_if_due(&mut self, now: Instant) {
        if now.saturating_since(self.sampled_at) >= self.sample_interval {
            self.sample(now);
        }
    }

    fn sample(&mut self, now: Instant) {
        self.publish(now);
        let seconds = now.saturating_since(self.sampled_at).as_secs_f64();
        self.sampled_at = now;
        self.network.sample(now, &mut self.tables);
        for (flow, window) in self.ledger.sample(now) {
            self.meters.sender(flow, window);
        }
        self.meters.sample(now, seconds);
    }

    fn publish(&mut self, now: Instant) {
        if now.saturating_since(self.published_at) < LOOK_INTERVAL {
            return;
        }
        let Some(live) = &self.live else { return };
        self.published_at = now;
        let Self { network, tables, meters, ways, .. } = self;
        live.publish(|snapshot| {
            let look = snapshot.get_or_insert_with(|| Snapshot {
                network: network.look(now, &tables.names),
                ..Snapshot::default()
            });
            look.time_s = now.as_secs_f64();
            network.update(now, &mut look.network);
            meters.update(&mut look.flows);
            look.other_flows = meters.others();
            for (way, look) in ways.iter().zip(&mut look.directions) {
                way.update(look);
            }
        });
    }

    /// What has happened so far.
    pub fn report(&mut self) -> Report {
        let now = self.clock.now();
        self.drain_drops();
        for (place, end) in self.ends.iter_mut().enumerate() {
            let way = &mut self.ways[usize::from(place > 0)];
            way.overrun += end.tun.take_dropped();
            let (packets, largest) = end.tun.take_cut();
            way.refuse(packets, largest);
            if end.gone.is_none() && end.tun.is_gone() {
                end.gone = end.down.or(Some(now));
            }
        }
        let mut links = Vec::new();
        for path in [FROM_SERVER, FROM_UE] {
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
            directions: DIRECTIONS.into_iter().zip(self.ways.iter().map(Way::report)).collect(),
            tunnel: self
                .tunnel
                .as_ref()
                .map(|tunnel| DIRECTIONS.into_iter().zip(tunnel.report()).collect()),
            inside: self.network.load().packets,
            flows: self.flows.given() as usize,
            other_flows: self.meters.others(),
            more_flows: self.flows.is_full(),
            missed_rtts: self.meters.missed_rtts(),
            gone: {
                let gone = self.ends.iter().filter_map(|end| Some((&end.name, end.gone?)));
                gone.map(|(name, at)| (name.clone(), at.as_secs_f64())).collect()
            },
            links,
            log: self.log.as_ref().map(|log| {
                let (records, lost) = log.counts();
                LogReport { records, lost }
            }),
            ack_gaps: {
                let gaps = self.ledger.ack_gaps().into_iter();
                gaps.map(|(id, gap_ms)| AckGaps { id, gap_ms }).collect()
            },
        }
    }

    /// The packet log, if one was ordered.
    pub fn log(&self) -> Option<&Log> {
        self.log.as_ref()
    }

    /// The journal, if one was ordered.
    pub fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    /// Ends the run: its tables and its summary.
    pub fn finish(self) -> (RunSummary, Tables) {
        let (summary, mut tables, metered) = self.end();
        metered.record(&summary, &mut tables);
        (summary, tables)
    }

    /// Ends the run; flows and samples are not in the tables yet.
    pub(crate) fn end(mut self) -> (RunSummary, Tables, Metered) {
        let now = self.clock.now();
        self.drain_drops();
        self.sample(now);
        let entered = self.ways.iter().map(|way| way.entered).sum();
        let mut summary = RunSummary {
            seed: self.seed,
            simulated_s: now.as_secs_f64(),
            events: entered,
            ..RunSummary::default()
        };
        self.network.summarise(now, &mut summary);
        let Self { meters, ledger, tables, flows, others, .. } = &mut self;
        let others =
            (meters.others() > 0).then(|| *others.get_or_insert_with(|| tables.names.add(OTHERS)));
        let complete = |flow, seen| ledger.complete(flow, now, seen);
        let metered = meters.summarise(&mut summary, others, flows.is_full(), &complete);
        ledger.finish_pings(now, &meters.names(), &mut summary, tables);
        (summary, self.tables, metered)
    }
}
