//! What can be asked for.

use serde::Deserialize;

/// A request. Settings (`sets`) are `KEY=VALUE` arguments as those of the command line, on top of
/// the scenario's text.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(crate) enum Request {
    /// Name, title and text of each shipped scenario.
    Shipped,
    /// The JSON schema of a scenario file.
    Schema,
    /// The reference of every scenario key, as Markdown.
    Reference,
    /// What a scenario is, or everything that is wrong with it.
    Parse {
        #[serde(flatten)]
        scenario: Given,
    },
    /// A run: its summary and its tables.
    Simulate {
        #[serde(flatten)]
        scenario: Given,
        seed: Option<u64>,
        /// The summary also says where the time went.
        #[serde(default)]
        accounted: bool,
    },
    /// What holds the scenario back.
    Explain {
        #[serde(flatten)]
        scenario: Given,
        seed: Option<u64>,
        #[serde(default = "one")]
        repeat: usize,
        budget: BudgetName,
    },
    /// The scenario and variants of it on common seeds, one row a figure.
    Compare {
        #[serde(flatten)]
        scenario: Given,
        variants: Vec<Vec<String>>,
        seeds: Vec<u64>,
    },
    /// The packets of a stretch of a run, with what happened on the radio.
    Packets {
        #[serde(flatten)]
        scenario: Given,
        seed: Option<u64>,
        /// From this time on.
        from_s: f64,
        /// Up to this time.
        to_s: f64,
        /// Most packets; the rest is counted.
        most: usize,
    },
}

/// A scenario and what is set on top of it.
#[derive(Debug, Deserialize)]
pub(crate) struct Given {
    /// What messages call the file.
    pub(crate) name: String,
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) sets: Vec<String>,
}

/// How much an explanation may try.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BudgetName {
    Quick,
    Full,
}

/// Who asked: it is told how far the work is, and stops it by returning false.
pub type Host<'a> = &'a mut (dyn FnMut(Progress) -> bool + Send);

/// How far the work is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Progress {
    /// A run has come to this simulated time, with so many events.
    Run {
        /// On its virtual clock.
        time_s: f64,
        /// Handled so far.
        events: u64,
    },
    /// So many of several runs are done.
    Runs(usize),
}

const fn one() -> usize {
    1
}
