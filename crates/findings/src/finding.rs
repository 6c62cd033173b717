//! What an explanation says, as it stands in `--json`.

use airpath_record::Breakdown;
use serde::Serialize;

use crate::compare::Effect;

/// One cause that was tried and confirmed, or a bound.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Stable name of the cause.
    pub cause: &'static str,
    /// Id of the flow or link, or dotted key.
    pub subject: String,
    /// Share of the paired seeds in which removal helped by more than noise.
    pub confidence: f64,
    /// What was seen, and what its removal changed.
    pub evidence: String,
    /// What to do, and why it has no settings if it has none; `None` for a bound.
    pub advice: Option<String>,
    /// The advice as settings of the scenario, which were tried.
    pub set: Option<Vec<String>>,
    /// What the advice obtained. What the removal did is in [`Explanation::tried`].
    pub gain: Option<Gain>,
    /// What got worse with the advice.
    pub costs: Vec<Gain>,
    /// Logarithm of the improvement's ratio, by which causes are ranked.
    #[serde(skip)]
    pub score: f64,
}

/// A figure before and after.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Gain {
    /// Its name in `--json`, with its unit.
    pub metric: &'static str,
    /// Id of the flow, or a direction.
    pub flow: String,
    /// Mean over the seeds without the change; null if it is a completion time, and in some seed the transfer did not
    /// complete within the run.
    pub before: Option<f64>,
    /// The same with it.
    pub after: Option<f64>,
    /// 95 % confidence interval of `after`.
    pub ci95: Option<[f64; 2]>,
    /// Number of paired seeds.
    pub seeds: usize,
}

/// Something that was tried, or could not be.
#[derive(Clone, Debug, Serialize)]
pub struct Tried {
    /// What it would have been the cause of, or the cure for.
    pub cause: &'static str,
    /// What it is about.
    pub subject: String,
    /// The settings.
    pub set: Vec<String>,
    /// What came of it, or why it was not tried.
    pub outcome: String,
    /// Best improvement, the logarithm of a ratio; `None` if it was not tried.
    pub score: Option<f64>,
    /// The figure that changed most; `None` if it was not tried.
    pub gain: Option<Gain>,
}

/// All that is known of what held a run back.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Explanation {
    /// Causes, the largest first; then the bound.
    pub findings: Vec<Finding>,
    /// What was tried, in order.
    pub tried: Vec<Tried>,
    /// Where the time of each flow went, with the first seed.
    pub breakdowns: Vec<Breakdown>,
    /// Paired seeds.
    pub seeds: usize,
    /// Simulations that it took.
    pub runs: usize,
    /// Events that they simulated.
    pub events: u64,
}

impl Gain {
    /// Of an effect.
    pub(crate) fn of(effect: &Effect) -> Self {
        Self {
            metric: effect.metric.name(),
            flow: effect.subject.clone(),
            before: effect.incomplete[0].is_none().then_some(effect.before),
            after: effect.incomplete[1].is_none().then_some(effect.after),
            ci95: effect.incomplete[1].is_none().then_some(effect.ci95),
            seeds: effect.improvements.len(),
        }
    }
}
