//! The requests.

use serde::Deserialize;

/// A request. Settings (`sets`) are `KEY=VALUE` arguments as on the command line, applied to the
/// scenario's text.
#[derive(Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub(crate) enum Request {
    /// Name, title and text of each shipped scenario.
    Shipped,
    /// The JSON schema of a scenario file.
    Schema,
    /// The reference of every scenario key, as Markdown.
    Reference,
    /// The contents of a scenario, or everything that is wrong with it.
    Parse {
        #[serde(flatten)]
        scenario: Given,
    },
    /// A run: its summary and its tables.
    Simulate {
        #[serde(flatten)]
        scenario: Given,
        seed: Option<u64>,
        /// Whether the summary also says where the time went.
        #[serde(default)]
        accounted: bool,
    },
    /// What limits the flows of the scenario.
    Explain {
        #[serde(flatten)]
        scenario: Given,
        seed: Option<u64>,
        #[serde(default = "one")]
        repeat: usize,
        budget: BudgetName,
    },
    /// The scenario and variants of it on common seeds, one row per figure.
    Compare {
        #[serde(flatten)]
        scenario: Given,
        variants: Vec<Vec<String>>,
        seeds: Vec<u64>,
    },
    /// The packets in a time window of a run, with what happened on the radio.
    Packets {
        #[serde(flatten)]
        scenario: Given,
        seed: Option<u64>,
        /// Start of the window.
        from_s: f64,
        /// End of the window.
        to_s: f64,
        /// Most packets to return; the rest is counted.
        most: usize,
        /// With more packets than that, whether to return every second, fourth and so on of each flow
        /// and direction instead of the first ones. The radio's events are left out then.
        #[serde(default)]
        sampled: bool,
        /// Whether to include packets that are in flight during the whole window.
        #[serde(default)]
        in_flight: bool,
    },
}

/// A scenario, and settings on top of it.
#[derive(Debug, Deserialize)]
pub(crate) struct Given {
    /// The file's name in messages.
    pub(crate) name: String,
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) sets: Vec<String>,
}

/// How thorough an explanation is.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BudgetName {
    Quick,
    Full,
}

/// The caller's callback: it receives the progress, and stops the work by returning false.
pub type Host<'a> = &'a mut (dyn FnMut(Progress) -> bool + Send);

/// Progress of the work.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Progress {
    /// A run has reached this simulated time, with this many events.
    Run {
        /// Time on its virtual clock.
        time_s: f64,
        /// Events handled so far.
        events: u64,
    },
    /// Number of runs that are done.
    Runs(usize),
}

const fn one() -> usize {
    1
}
