//! Result tables: columnar, the same for every driver, written as Parquet.
//!
//! [`Tables`] holds all tables of a run, and [`RunSummary`] the figures of `summary.json`. Times are
//! nanoseconds since the start of the run; every other column has its unit in its name. The doc
//! comments of the columns are the reference in `docs/reference/tables.md`.
//!
//! It may use: `base`. Start reading at [`Tables`].

mod acks;
mod breakdown;
mod column;
#[cfg(feature = "parquet")]
mod file;
mod large_pages;
mod reference;
mod runs;
mod summary;
mod table;
mod tables;
mod values;

pub use acks::{AckRow, BareAckRow};
pub use breakdown::{Breakdown, DelayBreakdown, DelayPart, GoodputBreakdown, GoodputPart};
pub use column::{AboutColumn, Name, Names};
#[cfg(feature = "parquet")]
pub use file::{RecordError, write_parquet};
pub use reference::tables_markdown;
pub use runs::{LinksRow, PingsRow, RunRow, RunTables};
pub use summary::{
    DropSummary, Exit, FairnessSummary, FlowSummary, GroupSummary, LimitSeconds, LinkSummary,
    PingSummary, ProxySummary, Quantiles, RadioSummary, RunSummary,
};
pub use tables::{
    EventRow, FlowRow, GroupRow, HistogramRow, LinkRow, PingRow, ProxyRow, RadioLogRow, RadioRow,
    SampleRow, Tables, columns,
};
