//! What a few seeds leave in doubt is tested on more before it is named.

use airpath_sim::Stopped;

use crate::explain::Lab;
use crate::measure::Measure;
use crate::trial::Trial;

impl Lab<'_, '_> {
    /// Ranks causes; a cause that would be named but is in doubt runs with more seeds, and is
    /// judged by all of them. If it is dropped, another may be named instead. Also returns the
    /// others.
    pub(crate) fn settled(
        &mut self,
        mut trials: Vec<Trial>,
        before: &mut Vec<Vec<Measure>>,
    ) -> Result<(Vec<Trial>, Vec<Trial>), Stopped> {
        let mut given_up = Vec::new();
        loop {
            let (mut kept, mut refuted) = self.rank(trials);
            let most = self.seeds.len();
            let in_doubt = |trial: &Trial| trial.runs.len() < most && trial.is_in_doubt();
            let mut settled = true;
            // A cause that replaces another one must also count without doubt.
            for other in refuted.iter_mut().filter(|other| in_doubt(other)) {
                let stands = |one: &Trial| one.score <= one.least() && one.stands_for(other);
                if kept.iter().any(stands) {
                    settled = false;
                    other.undecided = !self.more_seeds(other, before)?;
                }
            }
            let mut at = 0;
            while at < kept.len() {
                if in_doubt(&kept[at]) {
                    settled = false;
                    if !self.more_seeds(&mut kept[at], before)? {
                        kept[at].undecided = true;
                        given_up.push(kept.remove(at));
                        continue;
                    }
                }
                at += 1;
            }
            if settled {
                refuted.extend(given_up);
                return Ok((kept, refuted));
            }
            kept.append(&mut refuted);
            trials = kept;
        }
    }

    /// Runs all available seeds, with and without the cause. Returns false if the budget is
    /// exhausted.
    fn more_seeds(
        &mut self,
        trial: &mut Trial,
        before: &mut Vec<Vec<Measure>>,
    ) -> Result<bool, Stopped> {
        let parsed = self.question.parsed;
        let more = trial.runs.len()..self.seeds.len();
        let missing = before.len()..self.seeds.len();
        let beside = trial.beside.as_ref().map(|beside| beside.change.parsed.clone());
        let runs = more.len() * (1 + usize::from(beside.is_some())) + missing.len();
        if !self.affords_in_doubt(runs) {
            return Ok(false);
        }
        let without = trial.change.parsed.clone();
        let mut wanted = vec![(parsed, missing), (&without, more.clone())];
        wanted.extend(beside.as_ref().map(|beside| (beside, more)));
        let mut results = self.run_in_doubt(&wanted)?.into_iter();
        let mut measured = |parsed| self.measured(parsed, &results.next().unwrap_or_default());
        before.extend(measured(parsed));
        trial.runs.extend(measured(&without).into_iter().map(Some));
        if let (Some(beside), Some(parsed)) = (&mut trial.beside, &beside) {
            beside.runs.extend(measured(parsed).into_iter().map(Some));
        }
        trial.judge(before);
        Ok(true)
    }
}
