//! UMTS FDD: HS-DSCH and E-DCH transport block sizes, UE categories, dedicated channels.
//!
//! ```
//! use airpath_radio::umts::HsdpaCategory;
//!
//! let category = HsdpaCategory::new(10).expect("a category that listens in every TTI");
//! let best = category.formats().last().expect("30 of them");
//! assert_eq!((best.bits, best.codes), (25_558, 15));
//! ```

mod dch;
mod edch;
mod hsdpa;

pub use dch::DchRate;
pub use edch::{EdchCategory, EdchTti};
pub use hsdpa::{HsFormat, HsdpaCategory};

use airpath_base::Duration;

/// Subframe of HS-DSCH and of E-DCH with a TTI of 2 ms: three slots (TS 25.211 5.3.3.13).
pub const SUBFRAME: Duration = Duration::from_millis(2);
/// Radio frame (TS 25.211 5.1).
pub const FRAME: Duration = Duration::from_millis(10);
/// Chips per subframe at 3.84 Mchip/s (TS 25.213 4.1).
pub const SUBFRAME_CHIPS: u32 = 7_680;
/// Chips per second.
pub const CHIP_RATE: u32 = 3_840_000;
/// Most HS-PDSCHs of a cell: one of the 16 codes of spreading factor 16 carries the common
/// channels.
pub const HS_CODES: u32 = 15;
/// Time from the beginning of the HS-SCCH to that of its HS-PDSCH: two slots (TS 25.211 7.8).
pub const HS_SCCH_LEAD: Duration = Duration::from_nanos(1_333_333);
/// Shortest time from one transmission of an HS-DSCH block to the next, in subframes: HS-PDSCH, 7.5
/// slots until the HS-DPCCH (TS 25.211 7.7), one slot of that, the Node B, the HS-SCCH. This is 12
/// ms, which 6 processes fill.
pub const HS_ROUND_TRIP: u32 = 6;
