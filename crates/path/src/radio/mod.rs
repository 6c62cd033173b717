//! The radio link. So far: the numbers that 3GPP fixes, as tables and exact integer formulas.
//!
//! Nothing here decides anything; schedulers, HARQ and link adaptation look values up. Every table
//! names its clause, and holds what the specification prints.

pub mod bsr;
pub mod enumerations;
pub mod lte;
pub mod nr;
pub mod scheme;
