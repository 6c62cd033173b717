//! The carriers of UMTS.

use airpath_base::Duration;

use crate::umts::{self, DchRate, EdchCategory, EdchTti, HsdpaCategory};

/// A UMTS FDD carrier of 5 MHz. All UEs of a cell have the same categories and rates.
///
/// Slots are subframes of 2 ms. SINR is that of all HS-PDSCHs (or of the E-DCH, or the DCH)
/// together relative to the noise and interference of a chip, before despreading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UmtsCarrier {
    /// What carries the downlink in CELL_DCH.
    pub downlink: UmtsDownlink,
    /// What carries the uplink in CELL_DCH.
    pub uplink: UmtsUplink,
}

/// What carries data to the UE: a dedicated channel, or HSDPA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UmtsDownlink {
    /// HSDPA: one UE has the TTI, with all codes and the whole power.
    HsDsch {
        /// Category of the UEs.
        category: HsdpaCategory,
        /// HS-PDSCHs of the cell, 1 to 15. A CQI whose row needs more counts as the last that does
        /// not.
        codes: u32,
    },
    /// A dedicated channel for each UE.
    Dch(DchRate),
}

/// A UMTS uplink. UEs do not share a channel, but the noise rise; each UE has its part of that, its
/// serving grant ([`UeConfig::configured`](super::UeConfig::configured)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UmtsUplink {
    /// HSUPA.
    EDch {
        /// Category of the UEs, which must support the TTI.
        category: EdchCategory,
        /// Transmission time interval.
        tti: EdchTti,
    },
    /// A dedicated channel for each UE.
    Dch(DchRate),
}

impl UmtsCarrier {
    /// HSDPA category 10 on 15 codes, HSUPA category 6 with a TTI of 2 ms.
    pub fn hspa() -> Self {
        let category = HsdpaCategory::new(10).expect("it listens in every TTI");
        let edch = EdchCategory::new(6).expect("there is one");
        Self {
            downlink: UmtsDownlink::HsDsch { category, codes: umts::HS_CODES },
            uplink: UmtsUplink::EDch { category: edch, tti: EdchTti::Ms2 },
        }
    }
}

impl UmtsDownlink {
    /// Transmission time interval.
    pub const fn tti(self) -> Duration {
        match self {
            Self::HsDsch { .. } => umts::SUBFRAME,
            Self::Dch(rate) => rate.tti(),
        }
    }
}

impl UmtsUplink {
    /// Transmission time interval.
    pub const fn tti(self) -> Duration {
        match self {
            Self::EDch { tti, .. } => tti.duration(),
            Self::Dch(rate) => rate.tti(),
        }
    }

    /// The largest block in bytes; 0 if the category does not support the TTI.
    pub const fn most_bytes(self) -> u32 {
        match self {
            Self::EDch { category, tti } => match category.most_bits(tti) {
                Some(bits) => bits / 8,
                None => 0,
            },
            Self::Dch(rate) => rate.bits() / 8,
        }
    }
}
