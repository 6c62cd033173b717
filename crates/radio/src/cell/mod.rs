//! The cell: one base station, many UEs, both directions.
//!
//! A slot engine joins the other modules: bearers (`rlc`), HARQ, link adaptation, schedulers, and
//! the UE's procedures (`mac`, `rrc`). Work is only done in slots in which something can happen; an
//! idle UE has no slots and no events.
//!
//! `engine` has the events and slots; the other modules have what happens in them. Memos hold four times:
//! when a cell next has work ([`Cell`]), until when a UE needs the same (`ues`, `fast_path`), when the next
//! timer of a bearer expires (`ue`), and until when the MCS of a link stays (`link`).
//!
//! Simplifications within a slot: PDCCH, PDSCH and PUSCH take a whole slot and are received at its
//! end; the part of a slot that TDD gives to one direction decides how much fits, not when it ends.
//! PDCCH never fails and has room for all. The downlink is scheduled in the slot of its PDSCH: K_0
//! adds to the base station's processing. In UMTS and EV-DO a block may take several slots.
//!
//! In UMTS and EV-DO every UE has its own uplink channel and a standing grant: it sends neither
//! requests nor reports.
//!
//! Where the specification leaves it open, this base station
//! - answers a scheduling request with a grant of a configured size, and ignores requests while a
//!   grant is pending;
//! - adds room for headers to the reported size;
//! - assumes that a block without a report and without room for one, or one that HARQ lost, hides
//!   more data: a UE whose grant was just too small would otherwise be silent until retxBSR-Timer.
//!
//! Not modelled: several bearers per UE, signalling bearers, PDCCH load and errors, PUCCH errors
//! except missed requests, semi-persistent downlink, radio link failure (RLC continues after
//! maxRetxThreshold, random access after preambleTransMax). A UE can leave and join: handover is up
//! to the RAN ([`ran`](super::ran)).
//!
//! With carrier aggregation ([`CellConfig::secondary`]) a UE's secondary carriers are always
//! activated while it is connected, each is scheduled by its own PDCCH, and each has its own
//! proportional fair average. Configured and proactive grants are on the primary carrier.

mod access;
mod asking;
mod carrier;
mod carrier_id;
mod component;
mod config;
mod departure;
mod direction_scheduler;
mod downlink;
mod engine;
mod event;
mod event_queue;
mod fast_path;
mod grant;
mod link;
mod mcs_choice;
mod meter;
mod moving;
mod output;
mod presence;
mod procedures;
mod pusch;
mod stalled;
mod ue;
mod ues;
mod uplink;
mod waits;

use std::collections::VecDeque;

use airpath_base::{Direction, Drop, Instant, Memo, Packet};

use airpath_queue::Load;
pub use config::{
    Access, AlignmentConfig, BaseStationConfig, CellConfig, CellConfigError, Granting, LteCarrier,
    LteDuplex, LteLayers, NrCarrier, NrDuplex, NrLink, UeCarrierConfig, UeConfig, UeLinkConfig,
    UeProcessing, UeRadioConfig, UmtsCarrier, UmtsDownlink, UmtsUplink,
};
pub use departure::{CellDeparture, UeIndex};
use engine::Engine;
pub use event::{BlockEvent, GrantCause, RadioEvent, RadioEventKind};
pub use meter::{AccessCounters, RadioCounters, UeMeter};
pub use moving::{UeContext, UeState};
pub use stalled::{Stalled, WaitsFor};

/// A base station and its UEs.
///
/// It is used like a `Path` of `airpath-path` with two directions: [`enqueue`](Cell::enqueue) with
/// times that never decrease, return at [`next_event`](Cell::next_event), [`poll`](Cell::poll)
/// until `None`. Nothing depends on when it is polled.
///
/// ```
/// use airpath_base::{Ecn, FlowId, Instant, Packet, Payload, Tunnel};
/// use airpath_base::Direction;
/// use airpath_radio::cell::{Cell, CellConfig, NrCarrier, UeConfig, UeIndex};
///
/// let config = CellConfig::nr(NrCarrier::n78_100_mhz());
/// let mut cell = Cell::new(&config, &[UeConfig::plain(&config.access)], 1);
/// let packet = Packet {
///     flow: FlowId(0),
///     size: 1500,
///     ecn: Ecn::NotEct,
///     tunnel: Tunnel::default(),
///     journey: None,
///     payload: Payload::Opaque(1),
/// };
/// cell.enqueue(Instant::ZERO, Direction::Downlink, UeIndex(0), &packet);
/// let departure = loop {
///     let at = cell.next_event().expect("it is on its way");
///     if let Some(departure) = cell.poll(at) {
///         break departure;
///     }
/// };
/// // 0.5 ms in the base station, but slot 1 begins then; slot 1; 0.5 ms in the UE.
/// assert_eq!(departure.at.as_nanos(), 1_500_000);
/// ```
#[derive(Debug)]
pub struct Cell {
    /// The memo holds the time of the engine's next work; [`Instant::MAX`]: it has none.
    engine: Memo<Engine, Instant>,
}

impl Cell {
    /// A cell at the beginning of SFN 0, with `ues` present. Random numbers come from streams named
    /// `ue.0.down.harq` and so on.
    ///
    /// Panics if [`UeConfig::check`] or [`CellConfig::check`] finds something wrong.
    pub fn new(config: &CellConfig, ues: &[UeConfig], seed: u64) -> Self {
        config.check().expect("a checked configuration of the cell");
        for ue in ues {
            ue.check(config).expect("a checked configuration of the UE");
        }
        Self { engine: Memo::new(Engine::new(config, ues, seed)) }
    }

    /// Resource blocks of a direction per second, of all carriers; 0 if there are none to share.
    pub fn blocks_per_s(&self, direction: Direction) -> f64 {
        let carriers = self.engine.carriers.iter();
        carriers.map(|component| component.carrier.blocks_per_s(direction)).sum()
    }

    /// Number of UEs.
    pub fn ues(&self) -> u32 {
        // The list was numbered in 32 bits.
        self.engine.ues.len() as u32
    }

    /// A packet reaches the base station, or the UE's radio. Everything until `now` is done first,
    /// so that it can use only slots that begin later.
    #[inline]
    pub fn enqueue(&mut self, now: Instant, direction: Direction, ue: UeIndex, packet: &Packet) {
        self.advance(now);
        let prepared = self.engine.aside().prepare(now, direction, ue.0, packet);
        if self.engine.ues[ue.0].heeds_prepared(direction) {
            let next_work = self.engine.known();
            self.engine.change(|engine| {
                let next = engine.expect_first(ue.0, direction, (now, prepared), next_work);
                ((), Some(next))
            });
        }
    }

    /// When polling may next yield something or has internal work; `None`: not before an enqueue.
    pub fn next_event(&self) -> Option<Instant> {
        let work = self.engine.known().unwrap_or_else(|| self.engine.next_work());
        let departure = self.engine.out.departures.front().map(|departure| departure.at);
        let next = departure.map_or(work, |departure| departure.min(work));
        (next < Instant::MAX).then_some(next)
    }

    /// The next packet that has left by `now`, in order of departure.
    pub fn poll(&mut self, now: Instant) -> Option<CellDeparture> {
        self.advance(now);
        if self.engine.out.departures.front()?.at > now {
            return None;
        }
        self.engine.aside().out.departures.pop_front()
    }

    /// Takes all packets that have left by `now`, as [`poll`](Self::poll) would return them one by
    /// one. `departed` must be empty.
    pub fn take_departed(&mut self, now: Instant, departed: &mut VecDeque<CellDeparture>) {
        debug_assert!(departed.is_empty(), "what was taken before has been handed on");
        self.advance(now);
        let waiting = &mut self.engine.aside().out.departures;
        let due = waiting.iter().take_while(|departure| departure.at <= now).count();
        match due == waiting.len() {
            // Two rings in turn: nothing is copied.
            true => std::mem::swap(waiting, departed),
            false => departed.extend(waiting.drain(..due)),
        }
    }

    /// The next packet that was dropped, UE by UE, not in order of time. Stage 0 is the downlink,
    /// 1 the uplink.
    pub fn poll_drop(&mut self) -> Option<Drop> {
        self.poll_drop_of_ue().map(|(_, drop)| drop)
    }

    /// The next packet that was dropped, and its UE.
    pub(crate) fn poll_drop_of_ue(&mut self) -> Option<(UeIndex, Drop)> {
        let (ue, drop) = self.engine.aside().out.drops.pop_front()?;
        Some((UeIndex(ue), drop))
    }

    /// What is inside: entered, and neither returned by `poll` nor dropped.
    pub fn load(&self) -> Load {
        let Engine { ues, out, .. } = &*self.engine;
        let mut load = ues.iter().fold(Load::default(), |sum, ue| sum + ue.load());
        out.departures.iter().for_each(|departure| load.add(&departure.packet));
        load
    }

    /// From now on keeps a log for [`poll_event`](Self::poll_event). Nothing else changes.
    pub fn keep_log(&mut self) {
        self.engine.aside().out.log.get_or_insert_with(VecDeque::new);
    }

    /// The next entry of the log, in the order in which the cell computed them: by time, except for
    /// what is decided in advance.
    pub fn poll_event(&mut self) -> Option<RadioEvent> {
        self.engine.aside().out.log.as_mut()?.pop_front()
    }

    /// Advances the cell to `now` and visits the meters, downlink before uplink, UE by UE.
    pub fn observe(&mut self, now: Instant, visit: &mut dyn FnMut(&UeMeter<'_>)) {
        for ue in 0..self.ues() {
            self.observe_ue(now, UeIndex(ue), visit);
        }
    }

    /// Advances the cell to `now` and visits the meters of one UE, which is faster than visiting
    /// all.
    pub fn observe_ue(&mut self, now: Instant, ue: UeIndex, visit: &mut dyn FnMut(&UeMeter<'_>)) {
        let ue = self.ue(now, ue);
        for direction in [Direction::Downlink, Direction::Uplink] {
            visit(&ue.meter(now, direction));
        }
    }

    /// Does everything until `now`.
    #[inline]
    fn advance(&mut self, now: Instant) {
        if self.engine.rests(now) {
            self.engine.aside().note_done(now);
        } else {
            self.work_until(now);
        }
    }

    #[inline(never)]
    fn work_until(&mut self, now: Instant) {
        self.engine.change(|engine| {
            engine.work_until(now);
            ((), Some(engine.next_work()))
        });
    }
}
