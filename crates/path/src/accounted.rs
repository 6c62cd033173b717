//! A stage that accounts for its packets' time.

use airpath_base::{DropReason, Duration, Instant, JourneyId, Journeys, Packet, Part, Site};

use crate::filter::{Filter, Filtered};
use crate::{DelayConfig, OffloadConfig, OffloadFault, Stack, StageConfig};

/// Where the stages of a path record the time of their packets.
#[derive(Clone, Debug)]
pub struct Accounts {
    /// The journeys of the run.
    pub journeys: Journeys,
    /// Site of the first stage; the others count up from there.
    pub first: Site,
    /// The part that all stages count as, whatever they are; `None`: each counts as its own kind.
    pub all: Option<Part>,
}

/// Records what packets spent their time on in the stage before this one, and passes every packet.
#[derive(Debug)]
struct Accounted {
    spends: Spends,
    journeys: Journeys,
    place: Site,
    /// When the previous packet left.
    last: Instant,
}

/// What the time in a stage is spent on.
#[derive(Clone, Copy, Debug)]
enum Spends {
    /// One part.
    On(Part),
    /// This long on propagation; the rest is random delay.
    Random(Duration),
    /// A packet waits until the previous one has left, and is then served.
    Queue,
}

impl Spends {
    /// `None` for a stage that takes no time.
    const fn of(stage: &StageConfig) -> Option<Self> {
        Some(match stage {
            StageConfig::Delay(DelayConfig { jitter: None, .. }) => Self::On(Part::Propagation),
            StageConfig::Delay(DelayConfig { base, jitter: Some(_) }) => Self::Random(*base),
            StageConfig::Batch { .. } => Self::On(Part::Batching),
            StageConfig::Link(_) => Self::Queue,
            StageConfig::Host(_) | StageConfig::Modem(_) | StageConfig::Middlebox(_) => {
                Self::On(Part::Host)
            }
            StageConfig::Offload(OffloadConfig { fault: OffloadFault::Joined { .. }, .. }) => {
                Self::On(Part::Batching)
            }
            StageConfig::Loss(_)
            | StageConfig::Policer(_)
            | StageConfig::Tunnel(_)
            | StageConfig::Offload(_)
            | StageConfig::Mtu { .. } => return None,
        })
    }
}

impl Accounts {
    /// Wraps the `index`-th stage of a direction.
    pub(crate) fn wrap(&self, stage: Stack, config: &StageConfig, index: u32) -> Stack {
        let Some(spends) = self.all.map(Spends::On).or(Spends::of(config)) else { return stage };
        let (journeys, place) = (self.journeys.clone(), Site(self.first.0 + index));
        let accounted = Accounted { spends, journeys, place, last: Instant::ZERO };
        Stack::new(Filtered::new(stage, accounted, index))
    }
}

impl Accounted {
    fn account(&mut self, id: JourneyId, at: Instant) {
        let Self { ref journeys, place, last, .. } = *self;
        match self.spends {
            Spends::On(part) => journeys.until(id, at, part, place),
            Spends::Random(base) => {
                let entered = journeys.accounted(id).unwrap_or(at);
                journeys.until(id, at.min(entered + base), Part::Propagation, place);
                journeys.until(id, at, Part::Jitter, place);
            }
            Spends::Queue => {
                journeys.until(id, last, Part::Queue, place);
                journeys.until(id, at, Part::Serialisation, place);
            }
        }
    }
}

impl Filter for Accounted {
    fn apply(&mut self, at: Instant, packet: &mut Packet) -> Result<(), DropReason> {
        if let Some(id) = packet.journey {
            self.account(id, at);
        }
        self.last = at;
        Ok(())
    }
}
