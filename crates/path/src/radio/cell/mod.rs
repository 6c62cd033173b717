//! The cell: one base station, many UEs, both directions.

mod config;

pub use config::{
    Access, AlignmentConfig, BaseStationConfig, CellConfig, LteCarrier, LteDuplex, LteLayers,
    NrCarrier, NrDuplex, NrLink, UeConfig, UeLinkConfig, UeProcessing,
};
