//! From configuration to stages that wrap each other.

use airpath_base::Stream;

use crate::{
    Batch, Delay, DelayConfig, GateConfig, GateSide, Host, Inward, Link, Loss, Outward, Path,
    Policer, RandomDelay, StageConfig, Wire, Wrapper,
};

/// Builds both directions, down and up: named stages in the order that packets meet them. A
/// stage's name is its random stream's name too.
///
/// The sides of gates find each other from the inside out: the last outward side of `up` belongs
/// to the first inward side of `down`. An outward side without a partner lets everything pass, an
/// inward side without one nothing.
///
/// Both must be driven by one clock: neither may be polled at a time before which the other still
/// gets packets.
pub fn build_pair<'a>(
    down: impl IntoIterator<Item = (&'a str, &'a StageConfig)>,
    up: impl IntoIterator<Item = (&'a str, &'a StageConfig)>,
    seed: u64,
) -> [Box<dyn Path>; 2] {
    let mut gates = Gates { known: Vec::new() };
    let up = direction(up, seed, &mut gates);
    let down = direction(down, seed, &mut gates);
    [down, up]
}

/// Builds one direction that has nothing to do with the other; see [`build_pair`].
pub fn build<'a>(
    stages: impl IntoIterator<Item = (&'a str, &'a StageConfig)>,
    seed: u64,
) -> Box<dyn Path> {
    direction(stages, seed, &mut Gates { known: Vec::new() })
}

/// Outward sides that were built, outermost last.
struct Gates {
    known: Vec<Outward<Box<dyn Path>>>,
}

/// What a stage is called and draws from.
struct Place<'a> {
    index: u32,
    name: &'a str,
    seed: u64,
}

impl Place<'_> {
    fn stream(&self) -> Stream {
        Stream::new(self.seed, self.name)
    }
}

fn direction<'a>(
    stages: impl IntoIterator<Item = (&'a str, &'a StageConfig)>,
    seed: u64,
    gates: &mut Gates,
) -> Box<dyn Path> {
    let mut path: Option<Box<dyn Path>> = None;
    for (index, (name, stage)) in (0..).zip(stages) {
        let place = Place { index, name, seed };
        path = Some(match path {
            // The first stage is compiled together with the wire it wraps.
            None => wrap(Wire::new(), stage, &place, gates),
            Some(upstream) => wrap(upstream, stage, &place, gates),
        });
    }
    path.unwrap_or_else(|| Box::new(Wire::new()))
}

fn wrap<P: Path + 'static>(
    upstream: P,
    stage: &StageConfig,
    place: &Place<'_>,
    gates: &mut Gates,
) -> Box<dyn Path> {
    let index = place.index;
    match stage {
        StageConfig::Delay(DelayConfig { base, jitter: None }) => {
            Box::new(Delay::new(upstream, *base))
        }
        StageConfig::Delay(DelayConfig { base, jitter: Some(jitter) }) => {
            Box::new(RandomDelay::new(upstream, *base, jitter, place.stream()))
        }
        StageConfig::Batch { interval } => Box::new(Batch::new(upstream, *interval)),
        StageConfig::Link(config) => Box::new(Link::new(upstream, config, place.name, index)),
        StageConfig::Loss(config) => Box::new(Loss::new(upstream, *config, place.stream(), index)),
        StageConfig::Policer(config) => Box::new(Policer::new(upstream, config, index)),
        StageConfig::Gtpu(end) => Box::new(Wrapper::tunnel(upstream, end, index)),
        StageConfig::Mtu { bytes } => Box::new(Wrapper::mtu(upstream, *bytes, index)),
        StageConfig::Host(config) => {
            let stream = match &config.cpu {
                Some(cpu) => Stream::new(place.seed, &format!("cpu.{cpu}")),
                None => place.stream(),
            };
            Box::new(Host::new(upstream, config, stream, index))
        }
        StageConfig::Gate(GateConfig { side: GateSide::Outward(timer), .. }) => {
            let outward = Outward::new(Box::new(upstream) as Box<dyn Path>, *timer);
            gates.known.push(outward.handle());
            Box::new(outward)
        }
        StageConfig::Gate(GateConfig { side: GateSide::Inward, kind }) => {
            Box::new(Inward::new(upstream, gates.known.pop(), *kind, index))
        }
    }
}
