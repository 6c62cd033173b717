//! Configurations that cannot work.

use airpath_base::Duration;
use thiserror::Error;

use super::{Access, CellConfig, NrDuplex, UeConfig};
use crate::radio::cell::air::Air;
use crate::radio::nr::SYMBOLS_PER_SLOT;

/// Why a configuration was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum CellConfigError {
    /// A direction has no resource blocks, or more than its tables know.
    #[error("a carrier has 1 to {most} resource blocks each way, not {prbs}")]
    Prbs {
        /// What was asked for.
        prbs: u32,
        /// The most there are.
        most: u32,
    },
    /// No slot has downlink data.
    #[error(
        "no slot has downlink data: control takes {control_symbols} symbols, least_symbols is \
         {least_symbols}"
    )]
    NoDownlink {
        /// Symbols of PDCCH.
        control_symbols: u32,
        /// Fewest symbols with data.
        least_symbols: u32,
    },
    /// No slot has uplink data.
    #[error(
        "no slot has uplink data: feedback takes {feedback_symbols} symbols, least_symbols is \
         {least_symbols}"
    )]
    NoUplink {
        /// Symbols of PUCCH.
        feedback_symbols: u32,
        /// Fewest symbols with data.
        least_symbols: u32,
    },
    /// The most robust block of the widest slot has no room for headers.
    #[error("a block of all resource blocks at MCS 0 is {0} bytes; it needs 16 for headers")]
    TooNarrow(u32),
    /// No resource for scheduling requests, and no random access.
    #[error("a UE needs SR occasions or random access: without both it cannot ask for uplink")]
    NoRequest,
    /// A time alignment timer can run out, and nothing can start it again.
    #[error("time alignment needs random access, which starts it again")]
    NoRandomAccess,
    /// The bearer is no logical channel.
    #[error("bsr.channels is empty: the bearer is its first channel")]
    NoChannel,
    /// Every on-duration could fall between the slots in which the base station can speak.
    #[error(
        "drx.on_duration is {on_duration:?}: in this cell it takes {least:?} to hold a slot \
         with downlink and one that grants uplink"
    )]
    OnDuration {
        /// What was asked for.
        on_duration: Duration,
        /// What it takes.
        least: Duration,
    },
    /// A request is answered by a grant of nothing.
    #[error("believed.request_grant is {0} bytes: a grant needs 16 for a report and data")]
    RequestGrant(u32),
}

impl CellConfig {
    /// Whether the cell can work.
    pub fn check(&self) -> Result<(), CellConfigError> {
        let prbs = |prbs, most| match prbs {
            1.. if prbs <= most => Ok(()),
            _ => Err(CellConfigError::Prbs { prbs, most }),
        };
        match &self.access {
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
        let air = Air::new(self);
        match air.downlink.most_bytes(0).min(air.uplink.most_bytes(0)) {
            bytes @ 0..16 => Err(CellConfigError::TooNarrow(bytes)),
            _ => Ok(()),
        }
    }
}

impl UeConfig {
    /// Whether the UE can work in `cell`, which has been checked.
    pub fn check(&self, cell: &CellConfig) -> Result<(), CellConfigError> {
        if self.sr.occasions.is_none() && self.random_access.is_none() {
            return Err(CellConfigError::NoRequest);
        }
        if self.alignment.is_some() && self.random_access.is_none() {
            return Err(CellConfigError::NoRandomAccess);
        }
        if self.bsr.channels.is_empty() {
            return Err(CellConfigError::NoChannel);
        }
        if let Some(drx) = &self.drx {
            let (on_duration, least) = (drx.on_duration, Air::new(cell).longest_silence());
            if on_duration < least {
                return Err(CellConfigError::OnDuration { on_duration, least });
            }
        }
        if self.believed.request_grant < 16 {
            return Err(CellConfigError::RequestGrant(self.believed.request_grant));
        }
        Ok(())
    }
}
