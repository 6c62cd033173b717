//! What a UE does on its own: timers, RRC, random access, scheduling requests.

use airpath_base::{Direction, Instant};

use super::access::UplinkAccess;
use super::asking::Asking;
use super::carrier::Carrier;
use super::component::Component;
use super::engine::Engine;
use super::event::RadioEventKind;
use super::event_queue::EventKind;
use super::grant::Grant;
use super::ue::Ue;
use crate::mac::bsr::UplinkResource;
use crate::mac::rach::{Preamble, RachEvent};
use crate::mac::sr::SrEvent;
use crate::rrc::RrcState;

impl Engine {
    /// Handles what is due in the UE.
    pub(super) fn wake(&mut self, index: u32, now: Instant) {
        self.settle(index, now);
        self.collect_drops(index);
        self.do_rrc(index, now);
        let access = &mut self.ues.aside(index).access;
        if access.alignment.as_mut().is_some_and(|alignment| alignment.timer.poll(now)) {
            // TS 38.321 5.2: flush all HARQ buffers, release PUCCH, clear configured grants
            access.sr.release(now);
            access.configured_next = None;
            self.flush_harq(index, now);
        }
        self.do_random_access(index, now);
        self.send_configured(index, now);
        self.update_uplink(index, now);
        self.do_requests(index, now);
        self.consider_downlink(index, now);
        self.consider_uplink(index, now);
    }

    /// The UE's waiting data may have changed: informs the buffer status procedure, and requests a
    /// connection and uplink if there is none.
    pub(super) fn update_uplink(&mut self, index: u32, now: Instant) {
        let ue = self.ues.aside(index);
        let bytes = ue.reportable(now);
        let access = &mut ue.access;
        if bytes == 0 && access.bsr.available() == 0 {
            return;
        }
        access.bsr.on_available(now, 0, bytes);
        if let Some(rrc) = &mut access.rrc
            && bytes > 0
            && rrc.request(now, Direction::Uplink, || bytes) > now
        {
            return;
        }
        let cleared = access.configured.is_none() || !access.is_aligned(now);
        if !cleared && access.configured_next.is_none() {
            let first = self.carriers.primary.carrier.at_or_after(now).max(access.configured_from);
            access.plan_configured(&self.carriers.primary.carrier, first);
        }
        if !self.carriers.primary.carrier.has_standing_grants() {
            access.request_uplink(now);
        }
    }

    /// The base station has processed a scheduling request.
    pub(super) fn on_request(&mut self, index: u32, now: Instant) {
        self.ues.aside(index).access.estimate.on_scheduling_request(now);
        self.consider_uplink(index, now);
    }

    fn do_rrc(&mut self, index: u32, now: Instant) {
        loop {
            let ue = self.ues.aside(index);
            let waits = ue.reportable(now) > 0;
            let access = &mut ue.access;
            let Some(change) = access.rrc.as_mut().and_then(|rrc| rrc.poll(now)) else { return };
            match (change.from, change.to) {
                (RrcState::CellFach, RrcState::CellDch) => access.configured_next = None,
                (RrcState::CellDch, RrcState::CellFach) => {
                    access.configured_next = None;
                    self.flush_harq(index, now);
                }
                (_, RrcState::Connected | RrcState::CellFach | RrcState::CellDch) => {
                    access.configured_next = None;
                    access.on_connected(now);
                    if waits {
                        // The last message of the setup contains a buffer status report.
                        access.estimate.on_request(now);
                    }
                }
                _ => {
                    access.forget(now);
                    self.flush_harq(index, now);
                }
            }
            self.out.log(change.at, index, || RadioEventKind::Rrc(change.to));
        }
    }

    /// Ends all HARQ processes: what was not decoded is lost, what was granted is void.
    fn flush_harq(&mut self, index: u32, now: Instant) {
        self.void_grants(index);
        let Ue { bearer, down, up, secondary, access, .. } = self.ues.touch(index);
        let bearer = bearer.touch();
        access.grants = 0;
        up.asking = Asking::Not;
        access.estimate.on_transport_block(now, u32::MAX);
        let links = secondary.iter_mut().map(|links| (&mut links.down, &mut links.up));
        for (down, up) in std::iter::once((down, up)).chain(links) {
            for (link, one_way) in [(down, &mut bearer.down), (up, &mut bearer.up)] {
                let lost_blocks = &mut link.counters.lost_blocks;
                link.harq.reset(|pdu| {
                    *lost_blocks += u64::from(!pdu.block.is_empty());
                    one_way.on_loss(now, &pdu.block);
                    pdu.block.clear();
                });
            }
        }
        self.collect_drops(index);
    }

    /// What was granted to a UE is void.
    pub(super) fn void_grants(&mut self, index: u32) {
        for component in self.carriers.iter_mut() {
            component.grants.retain(|grant| grant.ue != index);
        }
    }

    fn do_requests(&mut self, index: u32, now: Instant) {
        let Component { carrier, grants, .. } = &self.carriers.primary;
        let Ue { access, up, .. } = self.ues.aside(index);
        loop {
            let next = access.sr.next_event().filter(|&next| next <= now);
            if let Some(next) = next.filter(|&next| !carrier.can_request(next))
                && access.sr.has_resource()
            {
                // TS 38.213 9.2.4, TS 36.213 10.1.5: there is no uplink there, so it is not an
                // occasion
                access.sr.defer(carrier.next_request(next));
                continue;
            }
            if let Some(next) = next.filter(|_| access.bsr.repeats_requests())
                && access.sr.has_resource()
            {
                // TS 38.321 5.4.4: an occasion that overlaps with a PUSCH cannot be used
                let slot = carrier.containing(next);
                let granted = |grant: &Grant| grant.slot == slot && grant.ue == index;
                if access.last_pusch == Some(slot) || grants.iter().any(granted) {
                    access.sr.defer(carrier.end(slot));
                    continue;
                }
            }
            let Some(event) = access.sr.poll(now) else { return };
            match event {
                SrEvent::Transmitted { at, count, received } => {
                    access.counters.requests += 1;
                    self.out.log(at, index, || RadioEventKind::Request { count, received });
                    if received {
                        if up.asking == Asking::Not {
                            up.asking = Asking::Requested;
                        }
                        access.on_activity(now);
                        let read = carrier.request_end(at) + self.config.base_station.grant;
                        self.events.add(read, index, EventKind::Request);
                    }
                }
                SrEvent::RandomAccess { .. } if access.rach.is_some() => {
                    access.order_random_access(now, Preamble::ContentionBased);
                }
                SrEvent::RandomAccess { .. } => {
                    // No random access in this cell: the request continues.
                    access.sr.restore(now);
                    access.sr.trigger(now);
                }
            }
            access.tell_drx_of_request(now);
        }
    }

    fn do_random_access(&mut self, index: u32, now: Instant) {
        let ue = self.ues.aside(index);
        let bytes = ue.reportable(now);
        let access = &mut ue.access;
        while let Some(event) = access.rach.as_mut().and_then(|rach| rach.poll(now)) {
            match event {
                RachEvent::Preamble { at, count, window } => {
                    self.out.log(at, index, || RadioEventKind::Preamble { count });
                    access.on_activity(now);
                    if let Some(drx) = &mut access.drx {
                        drx.on_random_access(now, window.0, window.1);
                    }
                }
                RachEvent::NoResponse { .. } => {}
                RachEvent::Response { .. } => {
                    if let Some(alignment) = &mut access.alignment {
                        alignment.timer.on_response(now, access.rach_kind);
                    }
                }
                RachEvent::Msg3 { until, .. } => {
                    access.report_in_msg3(now, bytes);
                    access.on_activity(now);
                    if let Some(drx) = &mut access.drx {
                        drx.on_random_access(now, now, until);
                    }
                }
                RachEvent::ContentionLost { .. } => {
                    if let Some(alignment) = &mut access.alignment {
                        alignment.timer.on_contention_lost();
                    }
                }
                RachEvent::Complete { at } => {
                    self.out.log(at, index, || RadioEventKind::RandomAccess);
                    access.on_random_access_complete(now);
                }
                RachEvent::Problem { .. } => {
                    // TS 38.331 5.3.10.3 makes it a radio link failure; here the UE stays, and
                    // tries again.
                    let kind = access.rach_kind;
                    access.order_random_access(now, kind);
                }
            }
        }
    }
}

impl UplinkAccess {
    /// Whether nothing is due except what [`next_wake`](Ue::next_wake) checks itself.
    #[inline]
    const fn is_plain(&self) -> bool {
        self.is_always_on() && self.rach.is_none() && self.configured.is_none()
    }

    /// When something other than buffer status and requests is due, if there may be anything.
    #[inline(never)]
    fn next_rare(&self, carrier: &Carrier) -> Option<Instant> {
        Instant::earliest([
            self.rach.as_ref().and_then(|rach| rach.next_event()),
            self.alignment.as_ref().and_then(|alignment| alignment.timer.next_event()),
            self.rrc.as_ref().and_then(|rrc| rrc.next_event()),
            self.request_wait,
            self.configured_next.map(|slot| carrier.start(slot)),
        ])
    }

    /// Triggers a scheduling request if one is needed and may be sent.
    pub(super) fn request_uplink(&mut self, now: Instant) {
        let resource = if self.grants > 0 {
            UplinkResource::Granted
        } else if self.configured_next.is_some() {
            UplinkResource::Configured
        } else {
            UplinkResource::None
        };
        let pending = self.sr.pending_since().is_some()
            || self.rach.as_ref().is_some_and(|rach| rach.is_ongoing());
        if pending || !self.bsr.wants_request(now, resource) {
            return;
        }
        let start = self.drx.as_mut().map_or(now, |drx| drx.uplink_start(now));
        if start > now {
            self.request_wait = Some(start);
        } else {
            self.sr.trigger(now);
        }
    }

    /// Begins random access, unless it is in progress.
    pub(super) fn order_random_access(&mut self, now: Instant, kind: Preamble) {
        if let Some(rach) = self.rach.as_mut().filter(|rach| !rach.is_ongoing()) {
            rach.start(now, kind);
            self.rach_kind = kind;
            self.counters.random_accesses += 1;
        }
    }

    /// Puts a C-RNTI into Msg3 and, if one is due, a buffer status report (TS 38.321 5.1.4, 5.4.5).
    fn report_in_msg3(&mut self, now: Instant, bytes: u64) {
        self.bsr.on_available(now, 0, bytes);
        let plan = self.bsr.plan(now, MSG3_BYTES, u64::MAX);
        self.msg3 = plan.map(|plan| (now, self.bsr.assemble(now, plan)));
    }

    fn on_random_access_complete(&mut self, now: Instant) {
        if let Some(alignment) = &mut self.alignment {
            alignment.timer.on_contention_resolved();
        }
        self.sr.restore(now);
        if self.rach_kind == Preamble::ContentionBased {
            // TS 38.321 5.1.5: a PDCCH to the C-RNTI for a new transmission resolves the contention
            self.on_message(now);
        }
        match (self.rach_kind, self.msg3.take()) {
            (Preamble::ContentionFree, _) => {
                if let Some(drx) = &mut self.drx {
                    drx.on_contention_free_response(now);
                }
            }
            (Preamble::ContentionBased, Some((assembled, report))) => {
                self.estimate.on_report(now, 0, assembled, &report);
            }
            (Preamble::ContentionBased, None) => self.estimate.on_request(now),
        }
    }
}

/// Room in Msg3 in addition to its C-RNTI: enough for a report on one group.
const MSG3_BYTES: u32 = 4;

impl Ue {
    /// When a packet that is being prepared for the uplink can be reported, or a grant be requested
    /// for it.
    #[inline]
    pub(super) fn next_uplink(&self, now: Instant) -> Option<Instant> {
        let idle = self.bearer.up.queued().packets == 0;
        let reported = self.access.bsr.available() > 0;
        let uplink = self.bearer.up.next_prepared().filter(|_| idle || !reported);
        // A request need not wait until the packet is prepared.
        uplink.map(|at| if reported { at } else { now })
    }

    /// When a scheduler other than that of the primary downlink can use the UE, if nothing happens
    /// before.
    #[inline(never)]
    fn other_waits(&self) -> Option<Instant> {
        self.links().skip(1).filter_map(|link| link.wait).min()
    }

    /// When the UE next has something to do on its own.
    pub(super) fn next_wake(&mut self, now: Instant, carrier: &Carrier) -> Option<Instant> {
        let timer = self.next_bearer_timer();
        let downlink = self.next_downlink();
        let uplink = self.next_uplink(now);
        let up = if self.secondary.is_empty() { self.up.wait } else { self.other_waits() };
        let access = &mut self.access;
        let connected = access.is_connected(now);
        let bsr = access.bsr.next_event().filter(|_| connected);
        let times = [
            downlink,
            uplink,
            timer,
            bsr,
            access.sr.next_event(),
            self.down.wait,
            up,
            if access.is_plain() { None } else { access.next_rare(carrier) },
        ];
        let next = Instant::earliest(times);
        debug_assert!(
            !self.access.is_plain() || self.access.next_rare(carrier).is_none(),
            "UE {} at {now:?} has nothing rare",
            self.index
        );
        debug_assert!(
            next.is_none_or(|next| next >= now),
            "UE {} at {now:?}: {times:?}",
            self.index
        );
        next
    }
}
