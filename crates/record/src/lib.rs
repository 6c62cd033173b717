//! Result tables: columnar, the same for every driver, written as Parquet.
//!
//! Times are nanoseconds since the start of the run; every other column carries its unit in its
//! name. [`Tables`] holds them all.

mod column;
mod reference;
mod summary;
mod table;
mod tables;

pub use column::{Name, Names};
pub use reference::tables_markdown;
pub use summary::{
    DropSummary, Exit, FairnessSummary, FlowSummary, LimitSeconds, LinkSummary, PingSummary,
    ProxySummary, Quantiles, RadioSummary, RunSummary,
};
pub use table::{RecordError, write_parquet};
pub use tables::{
    AckRow, EventRow, FlowRow, HistogramRow, LinkRow, PingRow, ProxyRow, RadioLogRow, RadioRow,
    SampleRow, Tables,
};
