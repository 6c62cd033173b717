//! Checks for configurations that cannot work.

use airpath_base::{Duration, Instant};
use thiserror::Error;

use super::{
    Access, CellConfig, LteCarrier, LteDuplex, NrDuplex, UeConfig, UmtsCarrier, UmtsDownlink,
};
use crate::cell::carrier::{Carrier, CarrierLink};
use crate::harq::HarqTiming;
use crate::nr::SYMBOLS_PER_SLOT;
use crate::umts;

/// Why a configuration was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum CellConfigError {
    /// A direction has no resource blocks, or more than its tables cover.
    #[error("a carrier has 1 to {most} resource blocks each way, not {prbs}")]
    Prbs {
        /// The configured number.
        prbs: u32,
        /// The largest possible number.
        most: u32,
    },
    /// No slot has downlink data.
    #[error(
        "no slot has room for downlink data: control takes {control_symbols} symbols, least_symbols is \
         {least_symbols}"
    )]
    NoDownlink {
        /// Symbols of PDCCH.
        control_symbols: u32,
        /// Fewest symbols of a slot with data.
        least_symbols: u32,
    },
    /// No slot has uplink data.
    #[error(
        "no slot has room for uplink data: feedback takes {feedback_symbols} symbols, least_symbols is \
         {least_symbols}"
    )]
    NoUplink {
        /// Symbols of PUCCH.
        feedback_symbols: u32,
        /// Fewest symbols of a slot with data.
        least_symbols: u32,
    },
    /// No slot with a PDCCH is K_2 slots before one with uplink data.
    #[error("no slot with a PDCCH is k2 = {0} slots before one with uplink data")]
    NoGrant(u32),
    /// The most robust block of the widest slot has no room for headers.
    #[error(
        "a transport block over all resource blocks at MCS 0 has {0} bytes, but its headers need 16"
    )]
    TooNarrow(u32),
    /// There is neither a resource for scheduling requests nor random access.
    #[error("a UE needs SR occasions or random access: without both it cannot ask for uplink")]
    NoRequest,
    /// The time alignment timer can expire, and nothing can restart it.
    #[error("time alignment needs random access, which starts it again")]
    NoRandomAccess,
    /// The bearer is not mapped to a logical channel.
    #[error("bsr.channels is empty: the bearer is its first channel")]
    NoChannel,
    /// A cell has too few HS-PDSCHs, or too many.
    #[error("a cell has 1 to {most} HS-PDSCHs, not {codes}", most = umts::HS_CODES)]
    HsCodes {
        /// The configured number.
        codes: u32,
    },
    /// UMTS: the UE may not send, or not even a block of one RLC PDU.
    #[error("a UE needs a configured grant of 16 bytes or more for its uplink channel")]
    NoServingGrant,
    /// A procedure that is never used if every UE has its own uplink channel.
    #[error("a UE with an uplink channel of its own has no {0}")]
    NotWithStandingGrants(&'static str),
    /// No block holds a PDU.
    #[error("an RLC PDU needs transport blocks of {least} bytes; the largest is {largest}")]
    NoRoomForPdu {
        /// Size of a PDU with the MAC header.
        least: u32,
        /// Size of the largest block, or the serving grant.
        largest: u32,
    },
    /// The downlink of LTE and NR is asynchronous (TS 36.321 5.3.2, TS 38.321 5.3.2).
    #[error("downlink.harq.timing is synchronous; only the LTE uplink can be")]
    SynchronousDownlink,
    /// The processes of a synchronous uplink take turns by slots whose length differs from the
    /// cell's.
    #[error("uplink.harq.timing has slots of {asked:?}; this cell's are {slot:?}")]
    SynchronousSlot {
        /// The configured length.
        asked: Duration,
        /// The cell's length.
        slot: Duration,
    },
    /// Every on-duration could fall between the slots in which the base station can send.
    #[error(
        "drx.on_duration is {on_duration:?}, but must be at least {least:?} to contain a downlink slot and a slot \
         that can grant uplink"
    )]
    OnDuration {
        /// The configured on-duration.
        on_duration: Duration,
        /// The shortest possible one.
        least: Duration,
    },
    /// Every SR occasion is in a slot without uplink.
    #[error("no SR occasion is in a slot with uplink")]
    NoRequestOccasion,
    /// There are more secondary carriers than a cell can have, or a UE has more than its cell.
    #[error("{there} secondary carriers; at most {most} are possible here")]
    Carriers {
        /// The configured number.
        there: usize,
        /// The largest possible number.
        most: usize,
    },
    /// Carriers of different technologies, or of one that aggregates none.
    #[error("carriers can be aggregated only if all are LTE or all are NR")]
    CarrierAccess,
    /// Feedback of carriers whose subframes differ has reference configurations, which are not
    /// modelled (TS 36.213 table 10.2-1).
    #[error(
        "if the primary carrier is LTE TDD, the secondary carriers must have its uplink-downlink configuration"
    )]
    CarrierSubframes,
    /// DRX numbers the HARQ processes of all carriers.
    #[error("the HARQ processes of all carriers are {0}; at most 255 are possible")]
    Processes(usize),
    /// A request would be answered by an empty grant.
    #[error("estimate.request_grant is {0} bytes: a grant needs 16 for a report and data")]
    RequestGrant(u32),
}

impl CellConfig {
    /// Checks whether the cell can work.
    pub fn check(&self) -> Result<(), CellConfigError> {
        let prbs = |prbs, most| match prbs {
            1.. if prbs <= most => Ok(()),
            _ => Err(CellConfigError::Prbs { prbs, most }),
        };
        match &self.access {
            Access::Umts(carrier) => umts_carrier(carrier)?,
            Access::Evdo => {}
            Access::Lte(carrier) => {
                prbs(carrier.downlink_prbs, 110)?;
                prbs(carrier.uplink_prbs, 110)?;
            }
            Access::Nr(carrier) => {
                prbs(carrier.downlink.prbs, 275)?;
                prbs(carrier.uplink.prbs, 275)?;
                let formats = match &carrier.duplex {
                    NrDuplex::Fdd => vec![(SYMBOLS_PER_SLOT, SYMBOLS_PER_SLOT)],
                    NrDuplex::Tdd(pattern) => (0..pattern.slots() as u64)
                        .map(|slot| pattern.slot(slot))
                        .map(|format| (u32::from(format.downlink), u32::from(format.uplink)))
                        .collect(),
                };
                let (control_symbols, feedback_symbols) =
                    (carrier.control_symbols, carrier.feedback_symbols);
                let (down, up) = (carrier.downlink.least_symbols, carrier.uplink.least_symbols);
                let down = down.max(1);
                if !formats.iter().any(|format| format.0 >= control_symbols + down) {
                    let least_symbols = down;
                    return Err(CellConfigError::NoDownlink { control_symbols, least_symbols });
                }
                let up = up.max(1);
                if !formats.iter().any(|format| format.1 >= feedback_symbols + up) {
                    let least_symbols = up;
                    return Err(CellConfigError::NoUplink { feedback_symbols, least_symbols });
                }
            }
        }
        let carrier = Carrier::new(self);
        if let Access::Nr(nr) = &self.access
            && !carrier.grants_any()
        {
            return Err(CellConfigError::NoGrant(nr.offsets.k2));
        }
        match carrier.downlink.most_bytes(0).min(carrier.uplink.most_bytes(0)) {
            bytes @ 0..16 => Err(CellConfigError::TooNarrow(bytes)),
            _ => self.check_carriers(),
        }
    }

    fn check_carriers(&self) -> Result<(), CellConfigError> {
        let there = self.secondary.len();
        if there > MOST_SECONDARY {
            return Err(CellConfigError::Carriers { there, most: MOST_SECONDARY });
        }
        for other in &self.secondary {
            match (&self.access, &other.access) {
                (Access::Nr(_), Access::Nr(_)) => {}
                (Access::Lte(own), Access::Lte(other)) => check_subframes(own, other)?,
                _ => return Err(CellConfigError::CarrierAccess),
            }
            if !other.secondary.is_empty() {
                return Err(CellConfigError::Carriers { there: other.secondary.len(), most: 0 });
            }
            other.check()?;
        }
        Ok(())
    }
}

/// `SCellIndex` is 1 to 7 (TS 36.331 6.3.4, before release 13).
const MOST_SECONDARY: usize = 7;

fn check_subframes(primary: &LteCarrier, other: &LteCarrier) -> Result<(), CellConfigError> {
    match (primary.duplex, other.duplex) {
        (LteDuplex::Fdd, _) => Ok(()),
        (LteDuplex::Tdd { configuration, .. }, LteDuplex::Tdd { configuration: others, .. })
            if configuration == others =>
        {
            Ok(())
        }
        (LteDuplex::Tdd { .. }, _) => Err(CellConfigError::CarrierSubframes),
    }
}

impl CellConfig {
    /// `offset`, or the start of the first slot after it that can carry a scheduling request. The
    /// cell must have been checked.
    pub fn request_offset(&self, offset: Duration) -> Duration {
        Carrier::new(self).next_request(Instant::ZERO + offset) - Instant::ZERO
    }
}

fn umts_carrier(carrier: &UmtsCarrier) -> Result<(), CellConfigError> {
    match carrier.downlink {
        UmtsDownlink::HsDsch { codes, .. } if codes == 0 || codes > umts::HS_CODES => {
            Err(CellConfigError::HsCodes { codes })
        }
        _ => Ok(()),
    }
}

impl UeConfig {
    /// Checks whether the UE can work in `cell`, which must have been checked.
    pub fn check(&self, cell: &CellConfig) -> Result<(), CellConfigError> {
        if cell.access.has_standing_grants() {
            let others = [
                ("alignment", self.alignment.is_some()),
                ("random_access", self.random_access.is_some()),
                ("drx", self.drx.is_some()),
                ("proactive grants", self.proactive.is_some()),
            ];
            if let Some((name, _)) = others.into_iter().find(|(_, is_there)| *is_there) {
                return Err(CellConfigError::NotWithStandingGrants(name));
            }
            if self.configured.is_none_or(|grant| grant.bytes < 16) {
                return Err(CellConfigError::NoServingGrant);
            }
        } else if self.sr.occasions.is_none() && self.random_access.is_none() {
            return Err(CellConfigError::NoRequest);
        }
        if self.alignment.is_some() && self.random_access.is_none() {
            return Err(CellConfigError::NoRandomAccess);
        }
        if self.bsr.channels.is_empty() {
            return Err(CellConfigError::NoChannel);
        }
        if matches!(self.downlink.harq.timing, HarqTiming::Synchronous { .. }) {
            return Err(CellConfigError::SynchronousDownlink);
        }
        let carrier = Carrier::new(cell);
        if !self.sr.occasions.is_none_or(|occasions| carrier.meets(occasions)) {
            return Err(CellConfigError::NoRequestOccasion);
        }
        let slot = cell.access.uplink_turn();
        match self.uplink.harq.timing {
            HarqTiming::Synchronous { slot: asked } if asked != slot => {
                return Err(CellConfigError::SynchronousSlot { asked, slot });
            }
            _ => {}
        }
        if cell.access.has_standing_grants() {
            let most = |link: &CarrierLink| link.most_bytes(link.highest_mcs());
            let grant = self.configured.map_or(0, |grant| grant.bytes);
            for (link, largest) in [
                (&self.downlink, most(&carrier.downlink)),
                (&self.uplink, most(&carrier.uplink).min(grant)),
            ] {
                let least = link.bearer.rlc.least_block();
                if largest < least {
                    return Err(CellConfigError::NoRoomForPdu { least, largest });
                }
            }
        }
        if let Some(drx) = &self.drx {
            let (on_duration, least) = (drx.on_duration, carrier.longest_silence());
            if on_duration < least {
                return Err(CellConfigError::OnDuration { on_duration, least });
            }
        }
        self.check_carriers(cell)?;
        if self.estimate.request_grant < 16 {
            return Err(CellConfigError::RequestGrant(self.estimate.request_grant));
        }
        Ok(())
    }
}

impl UeConfig {
    fn check_carriers(&self, cell: &CellConfig) -> Result<(), CellConfigError> {
        let (there, most) = (self.secondary.len(), cell.secondary.len());
        if there > most {
            return Err(CellConfigError::Carriers { there, most });
        }
        for (own, carrier) in self.secondary.iter().zip(&cell.secondary) {
            if matches!(own.downlink.harq.timing, HarqTiming::Synchronous { .. }) {
                return Err(CellConfigError::SynchronousDownlink);
            }
            let slot = carrier.access.slot();
            match own.uplink.harq.timing {
                HarqTiming::Synchronous { slot: asked } if asked != slot => {
                    return Err(CellConfigError::SynchronousSlot { asked, slot });
                }
                _ => {}
            }
        }
        match self.processes() {
            processes if processes > usize::from(u8::MAX) => {
                Err(CellConfigError::Processes(processes))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::{AlignmentConfig, NrCarrier};
    use crate::mac::Occasions;

    /// Applies `change` to a UE that works in an LTE cell, and checks it.
    fn ue(change: impl Fn(&mut UeConfig)) -> Result<(), CellConfigError> {
        let cell = CellConfig::lte(LteCarrier::fdd_20_mhz());
        let mut ue = UeConfig::plain(&cell.access);
        assert_eq!(ue.check(&cell), Ok(()));
        change(&mut ue);
        ue.check(&cell)
    }

    /// Applies `change` to an n78 cell, and checks it.
    fn nr(change: impl Fn(&mut NrCarrier)) -> Result<(), CellConfigError> {
        let mut carrier = NrCarrier::n78_100_mhz();
        change(&mut carrier);
        CellConfig::nr(carrier).check()
    }

    #[test]
    fn a_request_needs_an_occasion_with_uplink() {
        // DDDSU of 0.5 ms: slots 3 and 4 of 5 have uplink.
        let cell = CellConfig::nr(NrCarrier::n78_100_mhz());
        let at = |period: u64, offset: u64| {
            let mut ue = UeConfig::plain(&cell.access);
            let slots = |count| cell.access.slot() * count;
            ue.sr.occasions = Some(Occasions::new(slots(period), slots(offset)));
            ue.check(&cell)
        };
        assert_eq!(at(5, 2), Err(CellConfigError::NoRequestOccasion));
        assert_eq!((at(5, 3), at(5, 4)), (Ok(()), Ok(())));
        // These occasions meet all slots in turn.
        assert_eq!((at(1, 0), at(2, 0), at(4, 1)), (Ok(()), Ok(()), Ok(())));
        let slot = cell.access.slot();
        assert_eq!(cell.request_offset(slot * 5), slot * 8);
        assert_eq!(cell.request_offset(slot * 9), slot * 9);
    }

    #[test]
    fn what_cannot_work_is_refused_by_name() {
        assert_eq!(nr(|_| {}), Ok(()));
        assert_eq!(
            nr(|carrier| carrier.uplink.prbs = 276),
            Err(CellConfigError::Prbs { prbs: 276, most: 275 })
        );
        assert_eq!(
            nr(|carrier| carrier.downlink.least_symbols = 13),
            Err(CellConfigError::NoDownlink { control_symbols: 2, least_symbols: 13 })
        );
        assert_eq!(
            nr(|carrier| carrier.feedback_symbols = 11),
            Err(CellConfigError::NoUplink { feedback_symbols: 11, least_symbols: 4 })
        );
        let narrow = LteCarrier::new(LteDuplex::Fdd, 1);
        assert_eq!(CellConfig::lte(narrow).check(), Err(CellConfigError::TooNarrow(2)));
        assert_eq!(ue(|ue| ue.sr.occasions = None), Err(CellConfigError::NoRequest));
        let command_every = Duration::from_millis(100);
        let alignment = Some(AlignmentConfig { timer: None, command_every });
        assert_eq!(ue(|ue| ue.alignment = alignment), Err(CellConfigError::NoRandomAccess));
        assert_eq!(ue(|ue| ue.bsr.channels.clear()), Err(CellConfigError::NoChannel));
        assert_eq!(ue(|ue| ue.estimate.request_grant = 15), Err(CellConfigError::RequestGrant(15)));
        assert_eq!(
            ue(|ue| ue.downlink.harq.timing = ue.uplink.harq.timing),
            Err(CellConfigError::SynchronousDownlink)
        );
        let (asked, slot) = (Duration::from_micros(500), Duration::from_millis(1));
        assert_eq!(
            ue(|ue| ue.uplink.harq.timing = HarqTiming::Synchronous { slot: asked }),
            Err(CellConfigError::SynchronousSlot { asked, slot })
        );
    }
}
