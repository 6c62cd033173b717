//! Builds stages that wrap each other from their configuration.

use airpath_base::{Rate, Stream};

use crate::fair_link::FairLink;
use crate::fixed_link::FixedLink;
use crate::{
    Accounts, Aqm, Batch, Delay, DelayConfig, Host, Inward, Link, LinkConfig, Loss,
    MiddleboxConfig, MiddleboxSide, Outward, Path, Policer, RandomDelay, ServiceConfig,
    StageConfig, Wire, Wrapper,
};

/// Builds both directions, down and up: named stages in the order that packets meet them. The name
/// of a stage is also the name of its random stream.
///
/// The two directions of middleboxes are paired from the inside out: the last outward one of `up`
/// belongs to the first inward one of `down`. An outward direction without a partner lets
/// everything pass, an inward one without a partner nothing.
///
/// One clock must drive both: neither may be polled at a time before packets that still enter the
/// other.
pub fn build_pair<'a>(
    down: impl IntoIterator<Item = (&'a str, &'a StageConfig)>,
    up: impl IntoIterator<Item = (&'a str, &'a StageConfig)>,
    seed: u64,
) -> [Box<dyn Path>; 2] {
    build_pair_accounted(down, up, seed, [None, None])
}

/// Like [`build_pair`], and records in the accounts of down and up where packets with a journey
/// spend their time. Nothing else changes.
pub fn build_pair_accounted<'a>(
    down: impl IntoIterator<Item = (&'a str, &'a StageConfig)>,
    up: impl IntoIterator<Item = (&'a str, &'a StageConfig)>,
    seed: u64,
    [down_accounts, up_accounts]: [Option<&Accounts>; 2],
) -> [Box<dyn Path>; 2] {
    let mut middleboxes = Middleboxes { known: Vec::new() };
    let up = direction((None, 0), up, seed, &mut middleboxes, up_accounts);
    let down = direction((None, 0), down, seed, &mut middleboxes, down_accounts);
    [down, up]
}

/// Builds one direction that is independent of the other; see [`build_pair`].
pub fn build<'a>(
    stages: impl IntoIterator<Item = (&'a str, &'a StageConfig)>,
    seed: u64,
) -> Box<dyn Path> {
    append((None, 0), stages, seed, None)
}

/// Appends stages, none of them a middlebox, to a path, if there is one; the new stages are
/// numbered from the given number on.
pub fn append<'a>(
    before: (Option<Box<dyn Path>>, u32),
    stages: impl IntoIterator<Item = (&'a str, &'a StageConfig)>,
    seed: u64,
    accounts: Option<&Accounts>,
) -> Box<dyn Path> {
    direction(before, stages, seed, &mut Middleboxes { known: Vec::new() }, accounts)
}

/// Outward directions built so far, the outermost last.
struct Middleboxes {
    known: Vec<Outward<Box<dyn Path>>>,
}

/// The name of a stage, and the seed it draws from.
struct StageContext<'a> {
    index: u32,
    name: &'a str,
    seed: u64,
}

impl StageContext<'_> {
    fn stream(&self) -> Stream {
        Stream::new(self.seed, self.name)
    }
}

fn direction<'a>(
    (mut path, first): (Option<Box<dyn Path>>, u32),
    stages: impl IntoIterator<Item = (&'a str, &'a StageConfig)>,
    seed: u64,
    middleboxes: &mut Middleboxes,
    accounts: Option<&Accounts>,
) -> Box<dyn Path> {
    let mut stages = (first..).zip(stages).peekable();
    while let Some((index, (name, stage))) = stages.next() {
        let context = StageContext { index, name, seed };
        // The two stages of a wire, compiled together.
        if let (None, None, StageConfig::Link(link)) = (&path, accounts, stage)
            && let Some(&(_, (_, StageConfig::Delay(DelayConfig { base, jitter: None })))) =
                stages.peek()
            && !matches!(link.queue.aqm, Aqm::FqCoDel(_))
        {
            path = Some(match fixed(link) {
                Some(rate) => {
                    let link = FixedLink::new(Wire::new(), rate, &link.queue, name, index);
                    Box::new(Delay::new(link, *base))
                }
                None => Box::new(Delay::new(Link::new(Wire::new(), link, name, index), *base)),
            });
            stages.next();
            continue;
        }
        let wrapped = match path {
            // The first stage is compiled together with the wire it wraps.
            None => wrap(Wire::new(), stage, &context, middleboxes),
            Some(upstream) => wrap(upstream, stage, &context, middleboxes),
        };
        path = Some(match accounts {
            None => wrapped,
            Some(accounts) => accounts.wrap(wrapped, stage, index),
        });
    }
    path.unwrap_or_else(|| Box::new(Wire::new()))
}

/// The rate of a link whose departure times are known on arrival.
fn fixed(link: &LinkConfig) -> Option<Rate> {
    match (&link.service, link.queue.aqm) {
        (ServiceConfig::Rate(rate), Aqm::DropTail) => Some(*rate),
        _ => None,
    }
}

fn wrap<P: Path + 'static>(
    upstream: P,
    stage: &StageConfig,
    context: &StageContext<'_>,
    middleboxes: &mut Middleboxes,
) -> Box<dyn Path> {
    let index = context.index;
    match stage {
        StageConfig::Delay(DelayConfig { base, jitter: None }) => {
            Box::new(Delay::new(upstream, *base))
        }
        StageConfig::Delay(DelayConfig { base, jitter: Some(jitter) }) => {
            Box::new(RandomDelay::new(upstream, *base, jitter, context.stream()))
        }
        StageConfig::Batch { interval } => Box::new(Batch::new(upstream, *interval)),
        StageConfig::Link(config) => match (fixed(config), &config.queue.aqm) {
            (Some(rate), _) => {
                Box::new(FixedLink::new(upstream, rate, &config.queue, context.name, index))
            }
            (None, Aqm::FqCoDel(fair)) => {
                Box::new(FairLink::new(upstream, config, fair, context.name, index))
            }
            (None, _) => Box::new(Link::new(upstream, config, context.name, index)),
        },
        StageConfig::Loss(config) => {
            Box::new(Loss::new(upstream, config.clone(), context.stream(), index))
        }
        StageConfig::Policer(config) => Box::new(Policer::new(upstream, config, index)),
        StageConfig::Gtpu(end) => Box::new(Wrapper::tunnel(upstream, end, index)),
        StageConfig::Mtu { bytes } => Box::new(Wrapper::mtu(upstream, *bytes, index)),
        StageConfig::Host(config) => {
            let stream = match &config.cpu {
                Some(cpu) => Stream::new(context.seed, &format!("cpu.{cpu}")),
                None => context.stream(),
            };
            Box::new(Host::new(upstream, config, stream, index))
        }
        StageConfig::Middlebox(MiddleboxConfig { side: MiddleboxSide::Outward(timer), .. }) => {
            let outward = Outward::new(Box::new(upstream) as Box<dyn Path>, *timer);
            middleboxes.known.push(outward.handle());
            Box::new(outward)
        }
        StageConfig::Middlebox(MiddleboxConfig { side: MiddleboxSide::Inward, kind }) => {
            Box::new(Inward::new(upstream, middleboxes.known.pop(), *kind, index))
        }
    }
}
