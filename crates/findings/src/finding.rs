//! The results of an explanation, as they appear in `--json`.

use airpath_record::Breakdown;
use airpath_scenario::Edit;
use serde::Serialize;

use crate::compare::Effect;

/// One cause that was tried and confirmed, or a bound.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// Stable name of the cause.
    pub cause: &'static str,
    /// Id of the flow or link, or dotted key.
    pub subject: String,
    /// Fraction of the paired seeds in which the removal helped by more than noise.
    pub confidence: f64,
    /// What was observed, and what its removal changed.
    pub evidence: String,
    /// What to do, and if there are no settings for it, why; `None` for a bound.
    pub advice: Option<String>,
    /// The settings of the advice, which were tried.
    #[cfg_attr(feature = "schema", schemars(with = "Option<Vec<String>>"))]
    pub set: Option<Vec<Edit>>,
    /// What the advice gained. The effect of the removal is in [`Explanation::tried`].
    pub gain: Option<Gain>,
    /// What got worse with the advice.
    pub costs: Vec<Gain>,
    /// Logarithm of the improvement ratio, by which causes are ranked.
    #[serde(skip)]
    pub score: f64,
}

/// A figure before and after.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Gain {
    /// The figure's name in `--json`, with its unit.
    #[cfg_attr(feature = "schema", schemars(with = "crate::measure::Metric"))]
    pub metric: &'static str,
    /// Id of the flow, or a direction.
    pub flow: String,
    /// Mean over the seeds without the change; null for a completion time if in some seed the
    /// transfer did not complete within the run.
    pub before: Option<f64>,
    /// Mean over the seeds with the change; null likewise.
    pub after: Option<f64>,
    /// 95 % confidence interval of `after`.
    pub ci95: Option<[f64; 2]>,
    /// Number of paired seeds.
    pub seeds: usize,
}

/// Something that was tried, or could not be tried.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tried {
    /// The possible cause, or the cause to cure.
    pub cause: &'static str,
    /// The flow, stage or key concerned.
    pub subject: String,
    /// The settings.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<String>"))]
    pub set: Vec<Edit>,
    /// The result, or why it was not tried.
    pub outcome: String,
    /// Best improvement, the logarithm of a ratio; `None` if it was not tried.
    pub score: Option<f64>,
    /// The figure that changed most; `None` if it was not tried.
    pub gain: Option<Gain>,
}

/// Everything known about what held a run back.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explanation {
    /// Causes, the largest first; then the bound.
    pub findings: Vec<Finding>,
    /// All trials, in order.
    pub tried: Vec<Tried>,
    /// Where the time of each flow went, for the first seed.
    pub breakdowns: Vec<Breakdown>,
    /// Number of paired seeds.
    pub seeds: usize,
    /// Number of simulations needed.
    pub runs: usize,
    /// Number of events simulated.
    pub events: u64,
}

impl Gain {
    /// The gain of an effect.
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
