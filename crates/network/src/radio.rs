//! The cells at the UEs' end of the path: the UE of each flow, and the rows in tables.

use std::collections::VecDeque;
use std::sync::Arc;

use airpath_base::{Direction, Drop, DropReason, Duration, Instant, Journeys, Packet, Site};
use airpath_metrics::mbps;
use airpath_queue::Load;
use airpath_radio::cell::{
    AccessCounters, CellDeparture, GrantCause, RadioCounters, RadioEvent, RadioEventKind, UeIndex,
    UeMeter,
};
use airpath_radio::mac::drx::DrxState;
use airpath_radio::ran::{MobilityEvent, MobilityEventKind, Ran};
use airpath_radio::rrc::RrcState;
use airpath_record::{
    EventRow, LinkSummary, Name, Names, Quantiles, RadioLogRow, RadioRow, RadioSummary, RunSummary,
    Tables,
};
use airpath_scenario::{RadioConfig, Scenario};

use crate::capacity::Capacity;
use crate::links::{self, LinkHistory, QueueCounters};
use crate::snapshot::{CellSnapshot, NetworkSnapshot, UeSnapshot};

/// The cells and their UEs' traffic.
pub(crate) struct Radio {
    ran: Ran,
    /// Names of the cells.
    cells: Vec<Name>,
    /// Names of all UEs.
    labels: Vec<String>,
    /// UE of each flow.
    ues: Vec<UeIndex>,
    /// Name in tables of each flow.
    flows: Vec<Name>,
    /// UEs with traffic, in order.
    used: Vec<UsedUe>,
    /// Number of events between cells, by name.
    mobility: Vec<(&'static str, u64)>,
    sampled_at: Instant,
}

/// A UE that has at least one flow.
struct UsedUe {
    index: UeIndex,
    label: String,
    name: Name,
    /// The cell where it is, or to which it changes.
    cell: Name,
    /// Downlink and uplink.
    directions: [UeDirection; 2],
}

/// One direction of a UE.
struct UeDirection {
    id: String,
    link: LinkHistory,
    before: Before,
    dropped: Vec<(DropReason, u64)>,
    /// Packets dropped since the last sample.
    dropped_now: u64,
}

/// Readings of a meter at the last sample.
#[derive(Clone, Copy, Default)]
struct Before {
    delivered: Load,
    sojourn: Duration,
    radio: RadioCounters,
    access: AccessCounters,
    rlc_retransmissions: u64,
    awake: Duration,
}

impl Radio {
    /// Builds the radio. UEs without a flow in the scenario do not appear in tables, unless they
    /// are added.
    pub(crate) fn new(
        config: &RadioConfig,
        scenario: &Scenario,
        seed: u64,
        names: &mut Names,
    ) -> Self {
        let cells: Vec<Name> = config.cells.iter().map(|cell| names.add(cell)).collect();
        let has_flow =
            |index: UeIndex| scenario.flows.iter().any(|flow| flow.ue == index.0 as usize);
        let used = (0..)
            .map(UeIndex)
            .zip(&config.ues)
            .filter(|(index, _)| has_flow(*index))
            .map(|(index, ue)| UsedUe::new(index, ue, cells[0], names, Instant::ZERO))
            .collect();
        let mut ran = Ran::new(&config.ran, seed);
        if scenario.run.radio_log {
            ran.keep_log();
        }
        let (ues, flows, labels) = (Vec::new(), Vec::new(), config.ues.clone());
        let mobility = Vec::new();
        Self { ran, cells, labels, ues, flows, used, mobility, sampled_at: Instant::ZERO }
    }

    /// Records the time of packets with a journey; the first UE has the first two places.
    pub(crate) fn account(&mut self, journeys: &Journeys, first: Site) {
        self.ran.account(journeys, first);
    }

    /// The name in tables of the `index`th place: a UE's downlink, its uplink, then those of the
    /// next UE.
    pub(crate) fn place(&self, index: usize) -> Option<Name> {
        let ue = UeIndex(u32::try_from(index / 2).ok()?);
        let place = self.used.binary_search_by_key(&ue, |ue| ue.index).ok()?;
        Some(self.used[place].directions[Direction::BOTH[index % 2]].link.name())
    }

    /// What the radio could have carried, per UE.
    pub(crate) fn capacities(
        &mut self,
        now: Instant,
        first: Site,
        visit: &mut dyn FnMut(&Capacity),
    ) {
        for ue in &self.used {
            let busy = Direction::BOTH.map(|direction| self.ran.busy(now, ue.index, direction));
            self.ran.observe_ue(now, ue.index, &mut |meter| {
                visit(&Capacity {
                    place: Site(first.0 + 2 * ue.index.0 + meter.direction as u32),
                    direction: meter.direction,
                    ue: Some(ue.index.0 as usize),
                    bytes: meter.capacity_bytes,
                    busy: Some(busy[meter.direction]),
                })
            });
        }
    }

    /// Reserves room for this many flows.
    pub(crate) fn reserve_flows(&mut self, flows: usize) {
        self.ues.reserve(flows);
        self.flows.reserve(flows);
    }

    /// Adds the next flow, which belongs to that UE.
    pub(crate) fn add_flow(&mut self, name: Name, ue: usize) {
        self.ues.push(UeIndex(ue as u32));
        self.flows.push(name);
    }

    /// Adds a UE that has traffic although the scenario gives it none.
    pub(crate) fn add_ue(&mut self, ue: usize, names: &mut Names) {
        let index = UeIndex(ue as u32);
        if let Err(place) = self.used.binary_search_by_key(&index, |ue| ue.index) {
            let ue = UsedUe::new(index, &self.labels[ue], self.cells[0], names, self.sampled_at);
            self.used.insert(place, ue);
        }
    }

    /// What is inside.
    pub(crate) fn load(&self) -> Load {
        self.ran.load()
    }

    /// A packet reaches the base station (down) or the UE's radio (up).
    #[inline]
    pub(crate) fn enqueue(&mut self, now: Instant, direction: Direction, packet: &Packet) {
        let ue = self.ues[packet.flow.0 as usize];
        self.ran.enqueue(now, direction, ue, packet);
    }

    #[inline]
    pub(crate) fn poll(&mut self, now: Instant) -> Option<CellDeparture> {
        self.ran.poll(now)
    }

    #[inline]
    pub(crate) fn take_departed(&mut self, now: Instant, departed: &mut VecDeque<CellDeparture>) {
        self.ran.take_departed(now, departed);
    }

    #[inline]
    pub(crate) fn next_event(&self) -> Option<Instant> {
        self.ran.next_event()
    }

    /// Packets that are due by `now` enter the buffers, or are dropped.
    pub(crate) fn settle(&mut self, now: Instant) {
        for ue in &self.used {
            self.ran.settle(now, ue.index);
        }
    }

    /// The next drop, with the name of the buffer in tables.
    pub(crate) fn poll_drop(&mut self) -> Option<(Drop, Name)> {
        let drop = self.ran.poll_drop()?;
        let index = self.ues[drop.packet.flow.0 as usize];
        let place = self.used.binary_search_by_key(&index, |ue| ue.index);
        let ue = &mut self.used[place.expect("a flow's UE is in the list")];
        let side = &mut ue.directions[direction_of(&drop)];
        side.dropped_now += 1;
        match side.dropped.iter_mut().find(|(reason, _)| *reason == drop.reason) {
            Some((_, packets)) => *packets += 1,
            None => side.dropped.push((drop.reason, 1)),
        }
        Some((drop, side.link.name()))
    }

    /// Writes the events of UEs between cells.
    pub(crate) fn write_mobility(&mut self, tables: &mut Tables) {
        while let Some(event) = self.ran.poll_mobility() {
            let name = event.kind.name();
            match self.mobility.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += 1,
                None => self.mobility.push((name, 1)),
            }
            if let Some(ue) = self.used.iter().find(|ue| ue.index == event.ue) {
                let cell = self.cells[event.to.0 as usize];
                tables.event(mobility_event(
                    ue.directions[Direction::Downlink].link.name(),
                    cell,
                    &event,
                ));
            }
        }
    }

    /// Writes what the cells have logged.
    fn write_log(&mut self, tables: &mut Tables) {
        while let Some(event) = self.ran.poll_event() {
            if let Ok(place) = self.used.binary_search_by_key(&event.ue, |ue| ue.index) {
                tables.radio_log(log_row(self.used[place].name, &self.flows, &event));
            }
        }
    }

    /// Adds the names that snapshots need.
    pub(crate) fn name_all(&mut self, now: Instant, names: &Names, snapshot: &mut NetworkSnapshot) {
        let cells: Vec<Arc<str>> = self.cells.iter().map(|&cell| names.name(cell).into()).collect();
        let per_s = self
            .ran
            .cells(now)
            .iter()
            .map(|cell| Direction::BOTH.map(|direction| cell.blocks_per_s(direction)));
        snapshot.cells = cells
            .iter()
            .zip(per_s)
            .map(|(id, prbs_per_s)| CellSnapshot { id: Arc::clone(id), prbs: [0; 2], prbs_per_s })
            .collect();
        snapshot.ues = self
            .labels
            .iter()
            .map(|label| UeSnapshot {
                id: label.as_str().into(),
                cell: Arc::clone(&cells[0]),
                rrc: RrcState::Idle.name(),
                drx: None,
                radio: Default::default(),
            })
            .collect();
    }

    /// Updates a snapshot.
    pub(crate) fn update(&mut self, now: Instant, snapshot: &mut NetworkSnapshot) {
        let NetworkSnapshot { cells, ues, mobility, .. } = snapshot;
        for (cell, snapshot) in self.ran.cells(now).iter_mut().zip(cells.iter_mut()) {
            snapshot.prbs = [0; 2];
            cell.observe(now, &mut |meter| snapshot.prbs[meter.direction] += meter.radio.prbs);
        }
        for (index, snapshot) in (0..).map(UeIndex).zip(ues) {
            let state = self.ran.state(now, index);
            snapshot.rrc = state.map_or("handover", |state| state.rrc.name());
            snapshot.drx = state.and_then(|state| state.drx).map(DrxState::name);
            snapshot.cell = Arc::clone(&cells[self.ran.cell_of(index).0 as usize].id);
            self.ran.observe_ue(now, index, &mut |meter| {
                snapshot.radio[meter.direction].update(now, meter);
            });
        }
        for used in &self.used {
            let snapshot = &mut snapshot.ues[used.index.0 as usize];
            for (direction, snapshot) in used.directions.iter().zip(&mut snapshot.radio) {
                snapshot.set_dropped(&direction.dropped);
            }
        }
        mobility.clone_from(&self.mobility);
    }

    /// Writes the rows at the end of a sample interval.
    pub(crate) fn sample(&mut self, now: Instant, tables: &mut Tables) {
        let seconds = now.saturating_since(self.sampled_at).as_secs_f64();
        if seconds <= 0.0 {
            return;
        }
        self.sampled_at = now;
        for ue in &mut self.used {
            ue.cell = self.cells[self.ran.cell_of(ue.index).0 as usize];
            self.ran.observe_ue(now, ue.index, &mut |meter| {
                ue.directions[meter.direction].sample(
                    now,
                    seconds,
                    (ue.name, ue.cell),
                    meter,
                    tables,
                );
            });
        }
        self.write_log(tables);
    }

    /// Ends the run at `now`.
    pub(crate) fn summarise(&mut self, now: Instant, summary: &mut RunSummary) {
        let seconds = now.as_secs_f64();
        for ue in &self.used {
            self.ran.observe_ue(now, ue.index, &mut |meter| {
                summary.links.push(ue.directions[meter.direction].link_summary(seconds, meter));
                let id = format!("{}.{}", ue.label, meter.direction.name());
                summary.radio.push(radio_summary(id, seconds, meter));
            });
        }
    }
}

impl UsedUe {
    fn new(index: UeIndex, label: &str, cell: Name, names: &mut Names, since: Instant) -> Self {
        let name = names.add(label);
        let directions = Direction::BOTH.map(|direction| {
            let id = format!("radio.{label}.{}", direction.name());
            let link = LinkHistory::since(names.add(&id), since);
            UeDirection { id, link, before: Before::default(), dropped: Vec::new(), dropped_now: 0 }
        });
        Self { index, label: label.to_owned(), name, cell, directions }
    }
}

impl UeDirection {
    fn sample(
        &mut self,
        now: Instant,
        seconds: f64,
        (ue, cell): (Name, Name),
        meter: &UeMeter<'_>,
        tables: &mut Tables,
    ) {
        let after = Before::of(meter);
        let before = std::mem::replace(&mut self.before, after);
        let (radio, access) = (after.radio, after.access);
        let packets = after.delivered.packets - before.delivered.packets;
        let bytes = after.delivered.bytes - before.delivered.bytes;
        let sojourn = after.sojourn.saturating_sub(before.sojourn);
        let queue_delay_ms = (packets > 0).then(|| (sojourn / packets).as_millis_f64());
        let throughput_mbps = mbps(bytes, seconds).unwrap_or_default();
        let time_ns = now.as_nanos() as i64;
        let dropped = std::mem::take(&mut self.dropped_now);
        self.link.sample(now, buffer_counters(meter), dropped, tables);
        let blocks = radio.blocks - before.radio.blocks;
        let share = |part: u64| (blocks > 0).then(|| part as f64 / blocks as f64);
        tables.radio(RadioRow {
            time_ns,
            ue,
            cell,
            direction: meter.direction.name(),
            throughput_mbps,
            prbs: radio.prbs - before.radio.prbs,
            blocks,
            block_bytes: radio.block_bytes - before.radio.block_bytes,
            used_bytes: radio.used_bytes - before.radio.used_bytes,
            mcs: share(radio.mcs_sum - before.radio.mcs_sum),
            bler: share(radio.first_errors - before.radio.first_errors),
            harq_retransmissions: radio.retransmissions - before.radio.retransmissions,
            lost_blocks: radio.lost_blocks - before.radio.lost_blocks,
            rlc_retransmissions: after.rlc_retransmissions - before.rlc_retransmissions,
            queue_packets: meter.queued.packets,
            queue_bytes: meter.queued.bytes,
            queue_delay_ms,
            grants: access.grants - before.access.grants,
            granted_bytes: access.granted_bytes - before.access.granted_bytes,
            wasted_bytes: access.wasted_bytes - before.access.wasted_bytes,
            scheduling_requests: access.requests - before.access.requests,
            buffer_status_reports: access.reports - before.access.reports,
            random_accesses: access.random_accesses - before.access.random_accesses,
            awake: after.awake.saturating_sub(before.awake).as_secs_f64() / seconds,
        });
    }

    fn link_summary(&self, seconds: f64, meter: &UeMeter<'_>) -> LinkSummary {
        let delay = meter.sojourn.histogram.as_ref().and_then(Quantiles::of);
        links::summary(
            &self.id,
            seconds,
            buffer_counters(meter),
            delay,
            self.dropped.iter().copied(),
        )
    }
}

/// Counters of the buffer, as if it were a link.
fn buffer_counters(meter: &UeMeter<'_>) -> QueueCounters {
    QueueCounters {
        departed: meter.sojourn.delivered,
        queued: meter.queued,
        sojourn_sum: meter.sojourn.sum,
        capacity_bytes: meter.capacity_bytes,
    }
}

impl Before {
    fn of(meter: &UeMeter<'_>) -> Self {
        Self {
            delivered: meter.sojourn.delivered,
            sojourn: meter.sojourn.sum,
            radio: meter.radio,
            access: meter.access,
            rlc_retransmissions: meter.rlc_retransmissions,
            awake: meter.awake,
        }
    }
}

fn radio_summary(id: String, seconds: f64, meter: &UeMeter<'_>) -> RadioSummary {
    let radio = &meter.radio;
    let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
    let per_second = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
    let access = &meter.access;
    RadioSummary {
        id,
        throughput_mbps: per_second(meter.sojourn.delivered.bytes as f64 * 8.0 / 1e6),
        prbs_per_s: per_second(radio.prbs as f64),
        mcs_mean: share(radio.mcs_sum, radio.blocks),
        bler: share(radio.first_errors, radio.blocks),
        harq_retransmissions: radio.retransmissions,
        lost_blocks: radio.lost_blocks,
        rlc_retransmissions: meter.rlc_retransmissions,
        padding: share(radio.block_bytes - radio.used_bytes, radio.block_bytes),
        grants: access.grants,
        scheduling_requests: access.requests,
        buffer_status_reports: access.reports,
        random_accesses: access.random_accesses,
        marked_packets: meter.marked,
        awake: per_second(meter.awake.as_secs_f64()),
    }
}

fn log_row(ue: Name, flows: &[Name], event: &RadioEvent) -> RadioLogRow {
    let mut row = RadioLogRow {
        time_ns: event.at.as_nanos() as i64,
        ue,
        event: event.kind.name(),
        direction: None,
        flow: None,
        until_ns: None,
        bytes: None,
        used_bytes: None,
        transmission: None,
        received: None,
        mcs: None,
        prbs: None,
        sinr_db: None,
        state: None,
    };
    match event.kind {
        RadioEventKind::Enters { direction, flow, bytes }
        | RadioEventKind::Leaves { direction, flow, bytes } => {
            row.direction = Some(direction.name());
            row.flow = flows.get(flow.0 as usize).copied();
            row.bytes = Some(u64::from(bytes));
        }
        RadioEventKind::Request { count, received } => {
            row.transmission = Some(count);
            row.received = Some(received);
        }
        RadioEventKind::BufferStatus { bytes } => row.bytes = Some(bytes),
        RadioEventKind::Grant { pusch, bytes, cause } => {
            row.until_ns = Some(pusch.as_nanos() as i64);
            row.bytes = Some(u64::from(bytes));
            row.state = Some(match cause {
                GrantCause::Buffer => "buffer",
                GrantCause::Proactive => "proactive",
                GrantCause::Retransmission => "retransmission",
            });
        }
        RadioEventKind::Block(block) => {
            row.direction = Some(block.direction.name());
            row.until_ns = Some(block.end.as_nanos() as i64);
            row.bytes = Some(u64::from(block.bytes));
            row.used_bytes = Some(u64::from(block.used));
            row.transmission = Some(u32::from(block.transmission));
            row.received = Some(block.decoded);
            row.mcs = Some(u32::from(block.mcs));
            row.prbs = Some(block.prbs);
            row.sinr_db = Some(block.sinr_db).filter(|sinr_db| sinr_db.is_finite());
        }
        RadioEventKind::Lost { direction, bytes } => {
            row.direction = Some(direction.name());
            row.bytes = Some(u64::from(bytes));
        }
        RadioEventKind::Preamble { count } => row.transmission = Some(count),
        RadioEventKind::RandomAccess => {}
        RadioEventKind::Drx(state) => row.state = Some(state.name()),
        RadioEventKind::Rrc(state) => row.state = Some(state.name()),
    }
    row
}

fn mobility_event(link: Name, cell: Name, event: &MobilityEvent) -> EventRow {
    EventRow {
        link: Some(link),
        value: match event.kind {
            MobilityEventKind::Complete { interruption } => Some(interruption.as_millis_f64()),
            _ => None,
        },
        cell: Some(cell),
        ..EventRow::new(event.at.as_nanos() as i64, event.kind.name())
    }
}

/// Direction of a drop: the cell's stages are the downlink and the uplink.
pub(crate) fn direction_of(drop: &Drop) -> Direction {
    Direction::BOTH[drop.stage as usize]
}
