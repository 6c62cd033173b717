//! A candidate that changes the scenario, with its results.

use airpath_base::Direction;
use airpath_record::RunSummary;
use airpath_scenario::{Edit, FlowConfig, Scenario, Traffic};
use airpath_tcp::CongestionConfig;

use crate::by_name::ByName;
use crate::candidate::{Candidate, Change};
use crate::cause::{Cause, Class};
use crate::compare::{Effect, LEAST, MORE, best, effects, score, surely, vary};
use crate::finding::{Gain, Tried};
use crate::measure::{Measure, Metric};
use crate::observed::Observed;
use crate::price::Shares;
use crate::subject::named;
use crate::words;

/// A candidate being tried.
pub(crate) struct Trial {
    pub(crate) candidate: Candidate,
    pub(crate) change: Change,
    /// Index of the seed that showed the symptom.
    pub(crate) first: usize,
    /// The result of that seed without the candidate.
    pub(crate) run: Option<RunSummary>,
    /// Results by seed, for those that it ran with.
    pub(crate) runs: Vec<Option<Vec<Measure>>>,
    /// Number of seeds asked for; it has more if those left doubt.
    pub(crate) asked: usize,
    /// Whether they left doubt and the budget was exhausted.
    pub(crate) undecided: bool,
    /// Whether seeds differ, with the candidate or without it.
    pub(crate) is_random: bool,
    /// What it is compared with, if that is not the scenario as it is.
    pub(crate) beside: Option<Beside>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) score: f64,
}

/// The scenario without the causes that hide another one.
pub(crate) struct Beside {
    pub(crate) change: Change,
    /// Those causes, with the edits that remove each.
    pub(crate) others: Vec<(Candidate, Vec<Edit>)>,
    /// Edits that remove the hidden cause, without those of the others.
    pub(crate) own: Vec<Edit>,
    /// The result of the first seed.
    pub(crate) run: Option<RunSummary>,
    /// Results by seed, for those that it ran with.
    pub(crate) runs: Vec<Option<Vec<Measure>>>,
}

/// A recommendation that was found.
pub(crate) struct Advised {
    /// The cause that it is against.
    pub(crate) candidate: Candidate,
    /// The edits of the advice itself, without those of its basis.
    pub(crate) own: Vec<Edit>,
    /// The scenario with the advice.
    pub(crate) scenario: Scenario,
    /// The results, by seed.
    pub(crate) runs: Vec<Vec<Measure>>,
}

impl Beside {
    /// Those causes, in words.
    pub(crate) fn told(&self) -> String {
        let told: Vec<String> = self.others.iter().map(|(other, _)| other.told()).collect();
        told.join(", ")
    }

    /// The observations of its first seed.
    pub(crate) fn observed(&self) -> Option<Observed<'_>> {
        Some(Observed::new(&self.change.parsed, self.run.as_ref()?))
    }
}

impl Trial {
    pub(crate) fn new(candidate: Candidate, change: Change, first: usize, seeds: usize) -> Self {
        let runs = vec![None; seeds];
        let (run, beside, effects) = (None, None, Vec::new());
        let (asked, undecided, is_random, score) = (seeds, false, false, 0.0);
        Self {
            candidate,
            change,
            first,
            run,
            runs,
            asked,
            undecided,
            is_random,
            beside,
            effects,
            score,
        }
    }

    pub(crate) fn class(&self) -> Class {
        self.candidate.cause.class()
    }

    /// From here on it is worth naming.
    pub(crate) fn least(&self) -> f64 {
        match self.candidate.cause {
            // Some other control does a little better nearly everywhere; a fixed window is too
            // small.
            Cause::CongestionControl if !self.is_fixed() => 2.0 * LEAST,
            _ if self.class() == Class::Behaviour => 1.3 * LEAST,
            _ => LEAST,
        }
    }

    /// Whether it enlarges windows that no congestion control controls.
    fn is_fixed(&self) -> bool {
        let flows = &self.change.parsed.scenario.flows;
        let mut tcp = flows.iter().filter_map(|flow| flow.traffic.tcp());
        tcp.any(|tcp| matches!(tcp.sender.congestion, CongestionConfig::Fixed { .. }))
    }

    /// Whether other seeds may well show that it is worth too little.
    pub(crate) fn is_in_doubt(&self) -> bool {
        surely(&self.effects) <= self.least()
    }

    /// An early end of slow start explains the other behaviour: a test is too short for the ramp
    /// that this leaves, and another control has no such ramp.
    pub(crate) fn stands_for(&self, other: &Self) -> bool {
        let own = (self.candidate.cause, self.effects.clone());
        self.candidate.cause == Cause::SlowStartExit
            && self.score > LEAST
            && other.class() == Class::Behaviour
            && other.score > other.least()
            && other.runs.iter().all(Option::is_some)
            && !other.undecided
            && other.explained(&[own])
    }

    /// A processor or a bus that a longer ring relieves as much as more speed would is idle between bursts: the ring
    /// is the cause.
    pub(crate) fn relieves(&self, other: &Self) -> bool {
        self.candidate.cause == Cause::ReceiveRing
            && matches!(other.candidate.cause, Cause::HostProcessor | Cause::ModemCeiling)
            && self.candidate.subjects == other.candidate.subjects
            && self.score > LEAST
            && other.score - self.score < 2.0 * MORE
            && self.runs.iter().all(Option::is_some)
    }

    /// The edits that remove this cause, and no other.
    pub(crate) fn removal(&self) -> &[Edit] {
        self.beside.as_ref().map_or(&self.change.edits, |beside| &beside.own)
    }

    /// Compares all seeds that ran.
    pub(crate) fn judge(&mut self, before: &[Vec<Measure>]) {
        let without = |seed: usize| match &self.beside {
            Some(beside) => beside.runs[seed].clone(),
            None => before.get(seed).cloned(),
        };
        let ran = self.runs.iter().enumerate();
        let pairs = ran.filter_map(|(seed, after)| Some((without(seed)?, after.clone()?)));
        let (before, after): (Vec<_>, Vec<_>) = pairs.unzip();
        self.is_random = vary(&before) || vary(&after);
        self.effects = effects(&before, &after);
        // The behaviour of TCP is a cause if it carries too little. If it waits in its own queue,
        // the queue is the cause, and another behaviour is a cure. Among flows that share, one's
        // loss is another's gain.
        if self.class() == Class::Behaviour {
            let together = self.effects.iter().any(|effect| effect.metric == Metric::Total);
            let one_of_many = |metric| together && metric == Metric::Goodput;
            self.effects
                .retain(|effect| effect.metric.is_throughput() && !one_of_many(effect.metric));
        }
        // A window or an application that is too slow limits throughput, and delays nothing.
        if matches!(
            self.candidate.cause,
            Cause::ReceiveWindow | Cause::SendBuffer | Cause::ApplicationLimited
        ) {
            self.effects.retain(|effect| effect.metric.is_throughput());
        }
        // What flows with different controls share unevenly, one has to give to the other, down to
        // its share.
        if self.candidate.cause == Cause::CongestionMix {
            let all = self.effects.clone();
            let shares = Shares::new(&all, &self.change.parsed.scenario.flows);
            self.effects.retain(|effect| effect.mean() > 0.0 || !shares.is_fair(effect));
            let uneven = |one: &Effect| one.metric == Metric::Fairness && one.mean() < -MORE;
            if all.iter().any(uneven) {
                self.effects.clear();
            }
        }
        // For data in its direction, the rate of a link that carries acknowledgements is capacity.
        // If no data goes that way, pings there wait only for acknowledgements.
        if self.candidate.cause == Cause::AckStarvation {
            let back = self.candidate.subject().direction();
            let flows = &self.change.parsed.scenario.flows;
            let is_ping = |flow: &FlowConfig| matches!(flow.traffic, Traffic::Ping { .. });
            let goes_back = |flow: &FlowConfig| Some(flow.direction) == back;
            let alone = flows.iter().all(|flow| is_ping(flow) || !goes_back(flow));
            let by_name = ByName::flows(flows);
            let forth = |subject: &str| match by_name.get(subject) {
                Some(FlowConfig { traffic: Traffic::Udp { .. }, .. }) => false,
                Some(flow) if is_ping(flow) => alone,
                Some(flow) => !goes_back(flow),
                None => Some(subject) != back.map(Direction::name),
            };
            self.effects.retain(|effect| forth(&effect.subject));
        }
        // A queue that is too short loses throughput; how identical flows share it is chance.
        if self.candidate.cause == Cause::ShortQueue {
            self.effects.retain(|effect| effect.metric != Metric::Fairness);
        }
        // A queue shows in the longest waits; the median shows what every request waits for.
        if self.candidate.cause == Cause::Bufferbloat {
            self.effects.retain(|effect| effect.metric != Metric::MedianPingRtt);
        }
        self.score = score(&self.effects);
    }

    /// An entry for the list of trials that names it as a cause.
    pub(crate) fn told(&self) -> Tried {
        let removed = best(&self.effects).map(|(effect, _)| effect);
        Tried {
            cause: self.candidate.cause.name(),
            subject: named(&self.candidate.subjects),
            set: self.change.edits.clone(),
            outcome: self.hidden()
                + &removed
                    .map_or_else(|| "It is a cause.".to_owned(), |effect| self.without(effect)),
            score: Some(self.score),
            gain: removed.map(Gain::of),
        }
    }

    /// What has to be removed before the cause shows, as a sentence; empty if nothing hides it.
    pub(crate) fn hidden(&self) -> String {
        let told = |beside: &Beside| {
            format!("This cause has an effect only once {} is removed. ", beside.told())
        };
        self.beside.as_ref().map_or_else(String::new, told)
    }

    /// The effect of the removal, as a sentence.
    pub(crate) fn without(&self, effect: &Effect) -> String {
        let seeds = effect.improvements.len();
        let is_one_run = seeds > 1 && !self.is_random;
        let basis = if is_one_run {
            "the scenario is deterministic, so one run is enough".to_owned()
        } else if seeds == 1 {
            "one seed".to_owned()
        } else {
            let better = (effect.confidence() * seeds as f64).round() as usize;
            let some = if better < seeds { format!("; better in {better}") } else { String::new() };
            let doubt = match self.asked {
                asked if asked < seeds => format!("; the first {asked} were inconclusive"),
                _ => String::new(),
            };
            format!("means over {seeds} seeds; single runs vary{some}{doubt}")
        };
        let [before, after] = effect.figures();
        format!(
            "{}, {} would {} from {before} to {after} ({basis}).",
            words::without(self.candidate.cause, self.candidate.subjects.len(), self.removal()),
            effect.name(),
            if effect.rises() { "rise" } else { "fall" },
        )
    }

    /// What it promises after one seed, half of which may be noise; its costs are left out.
    pub(crate) fn promise(&self) -> f64 {
        let gain = |effect: &Effect| effect.metric.worth(effect.mean());
        self.effects.iter().map(gain).fold(0.0, f64::max)
    }

    /// Whether something plainer gains at least half of what this change of behaviour gains, in the
    /// same figure.
    pub(crate) fn explained(&self, plainer: &[(Cause, Vec<Effect>)]) -> bool {
        let Some((wanted, _)) = best(&self.effects) else { return true };
        let plainer = plainer.iter().filter(|(cause, _)| match cause.class() {
            Class::Fault => true,
            Class::Behaviour => match self.candidate.cause {
                Cause::CongestionControl => *cause != Cause::CongestionControl,
                Cause::TestTooShort | Cause::SlowStart => *cause == Cause::SlowStartExit,
                _ => false,
            },
            Class::Bound => false,
        });
        plainer.flat_map(|(_, effects)| effects).any(|effect| {
            let same = effect.subject == wanted.subject && effect.metric == wanted.metric;
            same && effect.mean() > 0.5 * wanted.mean()
        })
    }
}
