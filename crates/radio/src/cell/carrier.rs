//! The carrier as schedulers see it: what each slot is for, and how much it carries.

mod cdma;
mod link;
mod lte;
mod nr;

use airpath_base::{Direction, Duration, Instant};

use super::config::{Access, CellConfig, UmtsCarrier, UmtsDownlink};
use crate::mac::Occasions;
use crate::umts;
pub(super) use link::CarrierLink;

/// Slots and block sizes of a cell.
#[derive(Debug)]
pub(super) struct Carrier {
    slot: Duration,
    is_lte: bool,
    standing_grants: bool,
    ends_early: bool,
    /// Duration of a block, downlink and uplink.
    block: [Duration; 2],
    dci_lead: Duration,
    /// One period of the slot pattern.
    plans: Vec<SlotPlan>,
    /// Most slots from a grant to its PUSCH.
    longest_grant: u64,
    /// K_1 as a time.
    least_feedback: Duration,
    pub(super) downlink: CarrierLink,
    pub(super) uplink: CarrierLink,
}

impl Carrier {
    /// Resource blocks of a direction per second, counting slots that carry its data.
    pub(super) fn blocks_per_s(&self, direction: Direction) -> f64 {
        let (link, carries): (_, fn(&SlotPlan) -> bool) = match direction {
            Direction::Downlink => (&self.downlink, |plan| plan.downlink.is_some()),
            Direction::Uplink => (&self.uplink, |plan| plan.uplink.is_some()),
        };
        if link.is_dedicated() {
            return 0.0;
        }
        let slots = self.plans.iter().filter(|plan| carries(plan)).count() as f64;
        let period = self.slot.as_secs_f64() * self.plans.len() as f64;
        f64::from(link.prbs) * slots / period
    }
}

/// The slots of a period, the downlink, the uplink.
type Parts = (Vec<SlotPlan>, CarrierLink, CarrierLink);

/// The plan of one slot.
#[derive(Clone, Debug, Default)]
struct SlotPlan {
    /// Class of its data, which is determined by how much a PRB holds.
    downlink: Option<usize>,
    uplink: Option<usize>,
    /// Whether it has uplink, if only for PUCCH.
    uplink_control: bool,
    /// Slots until the feedback of its PDSCH.
    feedback: u64,
    /// Slots until the PUSCHs that are granted in it.
    grants: Vec<u64>,
    /// Slots until the first, this one included, with downlink data, and until the first that
    /// grants.
    to_downlink: u64,
    to_granting: u64,
    /// Slots until the UE is told whether its PUSCH was decoded; `None`: it is not told (NR).
    answer: Option<u64>,
}

impl Carrier {
    pub(super) fn new(config: &CellConfig) -> Self {
        let slot = config.access.slot();
        let (plans, downlink, uplink) = match &config.access {
            Access::Nr(carrier) => nr::parts(carrier, config),
            Access::Lte(carrier) => lte::parts(carrier, config),
            Access::Umts(carrier) => cdma::umts(carrier, config),
            Access::Evdo => cdma::evdo(config),
        };
        let longest_grant = plans.iter().flat_map(|plan| plan.grants.iter()).max().copied();
        let is_lte = matches!(config.access, Access::Lte(_));
        let longest_grant = longest_grant.unwrap_or(0);
        let dci_lead = match &config.access {
            Access::Nr(carrier) => slot * u64::from(carrier.offsets.k0),
            Access::Lte(_) => Duration::ZERO,
            Access::Umts(UmtsCarrier { downlink: UmtsDownlink::HsDsch { .. }, .. }) => {
                umts::HS_SCCH_LEAD
            }
            Access::Umts(_) | Access::Evdo => Duration::ZERO,
        };
        let block = match &config.access {
            Access::Umts(carrier) => [carrier.downlink.tti(), carrier.uplink.tti()],
            Access::Nr(_) | Access::Lte(_) => [slot, slot],
            Access::Evdo => [slot, config.access.uplink_turn()],
        };
        let mut carrier = Self {
            slot,
            is_lte,
            standing_grants: config.access.has_standing_grants(),
            ends_early: matches!(config.access, Access::Evdo),
            block,
            dci_lead,
            plans,
            longest_grant,
            least_feedback: match &config.access {
                Access::Nr(carrier) => slot * u64::from(carrier.offsets.k1),
                Access::Lte(_) | Access::Umts(_) | Access::Evdo => Duration::ZERO,
            },
            downlink,
            uplink,
        };
        for slot in 0..carrier.plans.len() {
            let at = slot as u64;
            carrier.plans[slot].to_downlink = carrier.find(at, |plan| plan.downlink.is_some()) - at;
            carrier.plans[slot].to_granting = carrier.find(at, |plan| !plan.grants.is_empty()) - at;
        }
        carrier
    }

    /// Length of a slot.
    pub(super) const fn slot(&self) -> Duration {
        self.slot
    }

    /// K_0 as a time, or the lead of the HS-SCCH: the downlink is decided this long before it is
    /// sent.
    pub(super) const fn dci_lead(&self) -> Duration {
        self.dci_lead
    }

    /// When `slot` begins.
    pub(super) fn start(&self, slot: u64) -> Instant {
        Instant::ZERO + self.slot * slot
    }

    /// When a block sent in `slot` has been received.
    #[inline]
    pub(super) fn block_end(&self, direction: Direction, slot: u64) -> Instant {
        let block = match direction {
            Direction::Downlink => self.block[0],
            Direction::Uplink => self.block[1],
        };
        self.start(slot) + block
    }

    /// When `slot` ends.
    pub(super) fn end(&self, slot: u64) -> Instant {
        self.start(slot + 1)
    }

    /// The slot that contains `time`.
    pub(super) const fn containing(&self, time: Instant) -> u64 {
        time.as_nanos() / self.slot.as_nanos()
    }

    /// The first slot that begins at `time` or later.
    pub(super) const fn at_or_after(&self, time: Instant) -> u64 {
        time.as_nanos().div_ceil(self.slot.as_nanos())
    }

    /// Class of the data in `slot`; `None`: it carries none in this direction.
    pub(super) fn class(&self, direction: Direction, slot: u64) -> Option<usize> {
        match direction {
            Direction::Downlink => self.plan(slot).downlink,
            Direction::Uplink => self.plan(slot).uplink,
        }
    }

    /// The longest time from one slot with downlink data, or one that grants, to the next.
    pub(super) fn longest_silence(&self) -> Duration {
        let longest = self.plans.iter().map(|plan| plan.to_downlink.max(plan.to_granting)).max();
        self.slot * (longest.unwrap_or(0) + 1)
    }

    /// The first slot at or after `slot` with downlink data.
    pub(super) fn next_downlink(&self, slot: u64) -> u64 {
        slot + self.plan(slot).to_downlink
    }

    /// The first slot at or after `slot` in which uplink is granted.
    pub(super) fn next_granting(&self, slot: u64) -> u64 {
        slot + self.plan(slot).to_granting
    }

    /// Whether some slot grants uplink.
    pub(super) fn grants_any(&self) -> bool {
        self.plans.iter().any(|plan| !plan.grants.is_empty())
    }

    /// Offsets from `slot` of the PUSCHs granted in it, ascending, in slots.
    pub(super) fn grants(&self, slot: u64) -> &[u64] {
        &self.plan(slot).grants
    }

    /// The first PUSCH slot at or after `slot`, and the slot that grants it; `None`: that would be
    /// before the run began.
    pub(super) fn next_uplink(&self, slot: u64) -> (u64, Option<u64>) {
        let uplink = self.find(slot, |plan| plan.uplink.is_some());
        let grants = |&delay: &u64| {
            uplink.checked_sub(delay).is_some_and(|slot| self.grants(slot).contains(&delay))
        };
        let delay = (0..=self.longest_grant).find(grants);
        (uplink, delay.map(|delay| uplink - delay))
    }

    /// The end of the last PUSCH slot before `slot`. Occasions from then on in slots without
    /// uplink move to the next PUSCH slot.
    pub(super) fn last_uplink_end(&self, slot: u64) -> Instant {
        let mut before = (1..=self.plans.len() as u64).filter_map(|back| slot.checked_sub(back));
        let last = before.find(|&slot| self.plan(slot).uplink.is_some());
        last.map_or(Instant::ZERO, |slot| self.end(slot))
    }

    /// When the base station has the feedback of a PDSCH in `slot`.
    pub(super) fn feedback(&self, slot: u64) -> Instant {
        self.end(slot + self.plan(slot).feedback)
    }

    /// When the base station has the feedback of a PDSCH in `slot` of another carrier, whose feedback
    /// is sent on this one.
    pub(super) fn feedback_of(&self, other: &Self, slot: u64) -> Instant {
        if self.is_lte {
            // TS 36.213 7.3, 10.1: as for a PDSCH on this carrier.
            return self.feedback(slot);
        }
        // TS 38.213 9.2.3, TS 38.214 5.3: the larger of the processing times
        let earliest = other.end(slot) + self.least_feedback.max(other.least_feedback);
        let first = self.at_or_after(earliest).saturating_sub(1);
        self.end(self.find(first, |plan| plan.uplink_control))
    }

    /// When the sender of a PUSCH in `slot` learns whether it was decoded; if it is not told, when
    /// the base station knows.
    pub(super) fn uplink_feedback(&self, slot: u64) -> Instant {
        self.plan(slot).answer.map_or_else(|| self.end(slot), |delay| self.start(slot + delay))
    }

    /// Whether the slot that contains `time` can carry a scheduling request.
    pub(super) fn can_request(&self, time: Instant) -> bool {
        self.plan(self.containing(time)).uplink_control
    }

    /// `time` if a scheduling request can be sent then; otherwise the start of the next slot in
    /// which it can.
    pub(super) fn next_request(&self, time: Instant) -> Instant {
        match self.can_request(time) {
            true => time,
            false => self.start(self.find(self.containing(time), |plan| plan.uplink_control)),
        }
    }

    /// The end of the slot of a scheduling request at `time`.
    pub(super) fn request_end(&self, time: Instant) -> Instant {
        self.end(self.containing(time))
    }

    /// Whether some of these occasions are in slots that can carry a request.
    pub(super) fn meets(&self, occasions: Occasions) -> bool {
        let mut at = occasions.at_or_after(Instant::ZERO);
        // After this many, pattern and occasions repeat.
        (0..self.plans.len()).any(|_| {
            let found = self.can_request(at);
            at = occasions.at_or_after(at + Duration::from_nanos(1));
            found
        })
    }

    /// Whether LTE's timing of DRX timers applies.
    pub(super) const fn is_lte(&self) -> bool {
        self.is_lte
    }

    /// Whether the UE is told if its PUSCH was decoded: LTE's PHICH.
    pub(super) const fn answers_uplink(&self) -> bool {
        self.is_lte
    }

    /// Whether every UE may send when it has data, without requests, reports or grants.
    pub(super) const fn has_standing_grants(&self) -> bool {
        self.standing_grants
    }

    /// Whether a block is planned for several transmissions, and ends once it is decoded (EV-DO):
    /// link adaptation then counts whether it was decoded at all.
    pub(super) const fn ends_early(&self) -> bool {
        self.ends_early
    }

    pub(super) fn link(&self, direction: Direction) -> &CarrierLink {
        match direction {
            Direction::Downlink => &self.downlink,
            Direction::Uplink => &self.uplink,
        }
    }

    fn plan(&self, slot: u64) -> &SlotPlan {
        // A division takes as long as many other instructions.
        match &self.plans[..] {
            [always] => always,
            plans => &plans[(slot % plans.len() as u64) as usize],
        }
    }

    /// The first slot at or after `slot` that `fits`; every pattern has one.
    fn find(&self, slot: u64, fits: impl Fn(&SlotPlan) -> bool) -> u64 {
        let period = self.plans.len() as u64;
        (slot..slot + period).find(|&slot| fits(self.plan(slot))).unwrap_or(slot)
    }
}

#[cfg(test)]
mod tests;
