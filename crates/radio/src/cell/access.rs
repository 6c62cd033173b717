//! A UE's connection and uplink access: RRC, DRX, time alignment, random access, scheduling
//! request, buffer status, and the base station's estimate of it.

use std::collections::VecDeque;

use airpath_base::{Direction, Duration, Instant, Stream};

use super::carrier::Carrier;
use super::config::{AlignmentConfig, UeConfig};
use super::meter::AccessCounters;
use crate::mac::alignment::TimeAlignment;
use crate::mac::bsr::{BsrFormat, BsrReport, BufferStatus};
use crate::mac::drx::{Drx, DrxConfig, DrxState, Transmission, TransmissionKind};
use crate::mac::rach::{Preamble, RandomAccess};
use crate::mac::sr::SchedulingRequest;
use crate::rrc::Rrc;
use crate::rrc::RrcState;
use crate::rrc::umts::Fach;
use crate::scheduler::grants::{BufferEstimate, EstimateConfig, PeriodicGrant};

/// The procedures of one UE, and the base station's state for it.
#[derive(Debug)]
pub(super) struct UplinkAccess {
    pub(super) sr: SchedulingRequest,
    pub(super) bsr: BufferStatus,
    pub(super) estimate: BufferEstimate,
    estimate_config: (EstimateConfig, BsrFormat),
    pub(super) rach: Option<RandomAccess>,
    /// Why random access began.
    pub(super) rach_kind: Preamble,
    /// The report in Msg3.
    pub(super) msg3: Option<(Instant, BsrReport)>,
    pub(super) alignment: Option<Aligned>,
    pub(super) drx: Option<Drx>,
    /// The DRX state logged last.
    pub(super) drx_logged: Option<DrxState>,
    pub(super) rrc: Option<Rrc>,
    pub(super) proactive: Option<PeriodicGrant>,
    /// The next proactive grant: the slot in which it is granted, and the one in which it is used.
    pub(super) proactive_next: Option<(u64, u64)>,
    pub(super) configured: Option<PeriodicGrant>,
    /// The next slot of the configured grant, while there is something to send.
    pub(super) configured_next: Option<u64>,
    /// Slots before this one have had their chance.
    pub(super) configured_from: u64,
    /// When the UE last sent data.
    pub(super) last_data: Option<Instant>,
    /// The slot of the last PUSCH.
    pub(super) last_pusch: Option<u64>,
    /// Dynamic grants for new data that have not been used yet.
    pub(super) grants: u32,
    /// Blocks that the base station has not read yet.
    pub(super) received: VecDeque<ReceivedBlock>,
    /// A request must wait until this time (DRX).
    pub(super) request_wait: Option<Instant>,
    pub(super) counters: AccessCounters,
}

/// timeAlignmentTimer, and the commands that keep it running.
#[derive(Debug)]
pub(super) struct Aligned {
    pub(super) timer: TimeAlignment,
    every: Duration,
    last: Instant,
}

/// What the base station learns from a received block.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceivedBlock {
    /// When the base station has processed it.
    pub(super) at: Instant,
    /// Size of the block in bytes.
    pub(super) size: u32,
    pub(super) assembled: Instant,
    pub(super) report: Option<BsrReport>,
    /// Whether it was granted by a PDCCH, or in advance.
    pub(super) granted: bool,
    /// Whether it had no room left for a report.
    pub(super) full: bool,
}

impl UplinkAccess {
    pub(super) fn new(config: &UeConfig, stream: &impl Fn(&str) -> Stream) -> Self {
        // A UE was checked for 255 at most.
        let harq_processes = config.processes() as u8;
        let drx = |drx: &DrxConfig| Drx::new(&DrxConfig { harq_processes, ..drx.clone() });
        let estimate_config = (config.estimate, config.bsr.format);
        Self {
            sr: SchedulingRequest::new(&config.sr, stream("sr")),
            bsr: BufferStatus::new(&config.bsr),
            estimate: BufferEstimate::new(config.estimate, config.bsr.format),
            estimate_config,
            rach: config.random_access.as_ref().map(|rach| RandomAccess::new(rach, stream("rach"))),
            rach_kind: Preamble::ContentionBased,
            msg3: None,
            alignment: config.alignment.as_ref().map(Aligned::new),
            drx: config.drx.as_ref().map(drx),
            drx_logged: None,
            rrc: config.rrc.as_ref().map(Rrc::new),
            proactive: config.proactive,
            proactive_next: None,
            configured: config.configured,
            configured_next: None,
            configured_from: 0,
            last_data: None,
            last_pusch: None,
            grants: 0,
            received: VecDeque::new(),
            request_wait: None,
            counters: AccessCounters::default(),
        }
    }

    pub(super) fn is_connected(&mut self, now: Instant) -> bool {
        self.rrc.as_mut().is_none_or(|rrc| rrc.state_at(now).carries_data())
    }

    /// The RRC state; without RRC the UE is connected.
    pub(super) fn rrc_state(&mut self, now: Instant) -> RrcState {
        self.rrc.as_mut().map_or(RrcState::Connected, |rrc| rrc.state_at(now))
    }

    /// Whether RRC has to learn of each packet that enters a buffer.
    #[inline]
    pub(super) fn measures_volume(&self) -> bool {
        self.rrc.as_ref().is_some_and(Rrc::measures_volume)
    }

    /// The common channels while they are the only ones the UE has: UMTS's CELL_FACH.
    #[inline]
    pub(super) fn fach(&mut self, now: Instant) -> Option<Fach> {
        self.rrc.as_mut().and_then(|rrc| rrc.fach(now))
    }

    pub(super) fn bsr_format(&self) -> BsrFormat {
        self.estimate_config.1
    }

    /// Whether the UE is always connected, aligned and awake.
    #[inline]
    pub(super) const fn is_always_on(&self) -> bool {
        self.rrc.is_none() && self.drx.is_none() && self.alignment.is_none()
    }

    pub(super) fn is_aligned(&self, now: Instant) -> bool {
        self.alignment.as_ref().is_none_or(|alignment| alignment.timer.is_aligned(now))
    }

    /// Whether the UE monitors the PDCCH at `now`.
    pub(super) fn hears(&mut self, now: Instant) -> bool {
        self.drx.as_mut().is_none_or(|drx| drx.is_active(now))
    }

    /// When it next monitors the PDCCH.
    pub(super) fn next_hearing(&mut self, now: Instant) -> Instant {
        self.drx.as_mut().map_or(now, |drx| drx.next_active(now))
    }

    /// A PDCCH, or a configured grant, occurs at `now`.
    pub(super) fn on_transmission(&mut self, now: Instant, transmission: &Transmission) {
        if let Some(drx) = &mut self.drx {
            drx.on_transmission(now, transmission);
        }
    }

    /// Data is sent in either direction at `now`.
    pub(super) fn on_activity(&mut self, now: Instant) {
        if let Some(rrc) = &mut self.rrc {
            rrc.on_activity(now);
        }
    }

    /// A block is sent in either direction at `now`: the base station can send a Timing Advance
    /// Command, with it or in response.
    pub(super) fn align(&mut self, now: Instant) {
        if let Some(alignment) = &mut self.alignment
            && now.saturating_since(alignment.last) >= alignment.every
        {
            alignment.last = now;
            alignment.timer.on_command(now);
        }
    }

    /// The connection is set up, and the UE is aligned: the setup included random access.
    pub(super) fn on_connected(&mut self, now: Instant) {
        self.forget(now);
        if let Some(alignment) = &mut self.alignment {
            alignment.timer.on_response(now, Preamble::ContentionFree);
            alignment.last = now;
        }
        self.sr.restore(now);
        // The last message of the setup starts drx-InactivityTimer.
        self.on_message(now);
    }

    /// The UE arrives from another cell, in this RRC state.
    pub(super) fn arrive(&mut self, now: Instant, state: RrcState) {
        if let Some(rrc) = &mut self.rrc {
            rrc.restart(now, state);
        }
        match &mut self.alignment {
            _ if state.carries_data() => self.on_connected(now),
            Some(alignment) => _ = alignment.timer.poll(now),
            None => {}
        }
    }

    /// A PDCCH announces something new that none of the cell's HARQ processes carries.
    pub(super) fn on_message(&mut self, now: Instant) {
        if let Some(drx) = &mut self.drx {
            let message = Transmission {
                direction: Direction::Downlink,
                kind: TransmissionKind::New,
                process: 0,
                harq_rtt_starts: now,
            };
            drx.on_transmission(now, &message);
            drx.on_decoded(now, 0);
        }
    }

    /// MAC reset at both ends (TS 38.321 5.12).
    pub(super) fn forget(&mut self, now: Instant) {
        self.sr.cancel();
        self.bsr.reset();
        self.bsr.on_available(now, 0, 0);
        self.estimate = BufferEstimate::new(self.estimate_config.0, self.estimate_config.1);
        self.request_wait = None;
        self.msg3 = None;
        if let Some(rach) = &mut self.rach {
            rach.stop();
        }
        self.tell_drx_of_request(now);
    }

    pub(super) fn tell_drx_of_request(&mut self, now: Instant) {
        if let Some(drx) = &mut self.drx {
            drx.on_scheduling_request(now, self.sr.is_sent_and_pending());
        }
    }

    /// The base station will process a block.
    pub(super) fn receive(&mut self, block: ReceivedBlock) {
        self.received.push_back(block);
        // The blocks of another carrier may be shorter.
        let mut place = self.received.len() - 1;
        while place > 0 && self.received[place - 1].at > block.at {
            self.received.swap(place - 1, place);
            place -= 1;
        }
    }

    /// Finds the next proactive grant that can be given in `slot` or later, for a PUSCH in `pusch`
    /// or later.
    pub(super) fn plan_proactive(&mut self, carrier: &Carrier, slot: u64, first: u64) {
        self.proactive_next = self.proactive.and_then(|grant| {
            let mut from = carrier.last_uplink_end(first);
            loop {
                let occasion = grant.next(from, self.last_data)?;
                let (pusch, granting) = carrier.next_uplink(carrier.containing(occasion));
                let granting = granting.filter(|&granting| granting >= slot && pusch >= first);
                if let Some(granting) = granting {
                    return Some((granting, pusch));
                }
                from = occasion + Duration::from_nanos(1);
            }
        });
    }

    /// The configured grant; in CELL_FACH random access replaces it.
    pub(super) fn standing_grant(&mut self, now: Instant) -> Option<PeriodicGrant> {
        let configured = self.configured?;
        Some(self.fach(now).map_or(configured, |fach| PeriodicGrant {
            occasions: fach.uplink,
            bytes: fach.bytes,
            keep: None,
        }))
    }

    /// Finds the next slot at or after `slot` of the configured grant.
    pub(super) fn plan_configured(&mut self, carrier: &Carrier, slot: u64) {
        let grant = self.standing_grant(carrier.start(slot));
        self.configured_next = grant.and_then(|grant| {
            let mut from = carrier.start(slot);
            loop {
                let occasion = grant.next(from, self.last_data)?;
                let (pusch, _) = carrier.next_uplink(carrier.containing(occasion));
                if pusch >= slot {
                    return Some(pusch);
                }
                from = occasion + Duration::from_nanos(1);
            }
        });
    }
}

impl Aligned {
    /// Alignment from the start of the run.
    fn new(config: &AlignmentConfig) -> Self {
        let mut timer = TimeAlignment::new(config.timer);
        timer.on_response(Instant::ZERO, Preamble::ContentionFree);
        Self { timer, every: config.command_every, last: Instant::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{CellConfig, NrCarrier};
    use crate::mac::Occasions;

    #[test]
    fn a_proactive_grant_is_the_same_whenever_it_is_planned() {
        // DDDSU: PUSCH in slots 4, 9, 14, granted in the slots before them.
        let cell = CellConfig::nr(NrCarrier::n78_100_mhz());
        let carrier = Carrier::new(&cell);
        let mut ue = UeConfig::plain(&cell.access);
        // The occasion is in slot 7, which has no uplink.
        let occasions = Occasions::new(Duration::from_millis(40), Duration::from_micros(3_600));
        ue.proactive = Some(PeriodicGrant { occasions, bytes: 100, keep: None });
        let mut access = UplinkAccess::new(&ue, &|name| Stream::new(1, name));
        for slot in 5..=8 {
            access.plan_proactive(&carrier, slot, slot);
            assert_eq!(access.proactive_next, Some((8, 9)), "planned in slot {slot}");
        }
        access.plan_proactive(&carrier, 9, 9);
        assert_eq!(access.proactive_next, Some((88, 89)));
    }
}
