//! Builds stages that wrap each other from their configuration.

use airpath_base::{Duration, Stream, fast_paths};

use crate::batch::Batch;
use crate::delay::{Delay, RandomDelay};
use crate::fair_queue::FairQueue;
use crate::fifo::Fifo;
use crate::filter::{Filter, Filtered};
use crate::fixed_rate::FixedRate;
use crate::host::{Cpu, Host, Ring};
use crate::link::{Admission, Link, Server};
use crate::loss::Loss;
use crate::middlebox::{Inward, Outward};
use crate::modem::Modem;
use crate::offload::{Joined, WrongChecksums};
use crate::policer::Policer;
use crate::shared::SharedHost;
use crate::shift::{Shift, Shifted};
use crate::stack::FastPath;
use crate::tunnel::Wrapper;
use crate::{
    Accounts, Aqm, DelayConfig, HostConfig, LinkConfig, MiddleboxConfig, MiddleboxSide,
    OffloadConfig, OffloadFault, ServiceConfig, Stack, StageConfig, Wire,
};

/// Builds both directions, down and up: named stages in the order that packets meet them. The name
/// of a stage is also the name of its random stream.
///
/// The two directions of middleboxes are paired from the inside out: the last outward one of `up`
/// belongs to the first inward one of `down`. An outward direction without a partner lets
/// everything pass, an inward one without a partner nothing.
///
/// Hosts that name a CPU are paired by its name, in the order of `up`.
///
/// One clock must drive both: neither may be polled at a time before packets that still enter the
/// other.
pub fn build_pair<'a>(
    down: impl IntoIterator<Item = (&'a str, &'a StageConfig)>,
    up: impl IntoIterator<Item = (&'a str, &'a StageConfig)>,
    seed: u64,
) -> [Stack; 2] {
    build_pair_accounted(down, up, seed, [None, None])
}

/// Like [`build_pair`], and records in the accounts of down and up where packets with a journey
/// spend their time. Nothing else changes.
pub fn build_pair_accounted<'a>(
    down: impl IntoIterator<Item = (&'a str, &'a StageConfig)>,
    up: impl IntoIterator<Item = (&'a str, &'a StageConfig)>,
    seed: u64,
    [down_accounts, up_accounts]: [Option<&Accounts>; 2],
) -> [Stack; 2] {
    let mut partners = Partners::default();
    let up = direction((None, 0), up, seed, &mut partners, up_accounts);
    partners.join = true;
    let down = direction((None, 0), down, seed, &mut partners, down_accounts);
    [down, up]
}

/// Builds one direction that is independent of the other; see [`build_pair`].
pub fn build<'a>(stages: impl IntoIterator<Item = (&'a str, &'a StageConfig)>, seed: u64) -> Stack {
    append((None, 0), stages, seed, None)
}

/// Appends stages, none of them a middlebox, to a path, if there is one; the new stages are
/// numbered from the given number on.
pub fn append<'a>(
    before: (Option<Stack>, u32),
    stages: impl IntoIterator<Item = (&'a str, &'a StageConfig)>,
    seed: u64,
    accounts: Option<&Accounts>,
) -> Stack {
    direction(before, stages, seed, &mut Partners::default(), accounts)
}

/// Stages of the uplink that stages of the downlink share state with.
#[derive(Default)]
struct Partners {
    /// Outward directions built so far, the outermost last.
    middleboxes: Vec<Outward>,
    /// Hosts by the name of their CPU.
    hosts: Vec<(String, SharedHost)>,
    /// Whether the downlink is being built, whose stages join these.
    join: bool,
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
    (mut path, first): (Option<Stack>, u32),
    stages: impl IntoIterator<Item = (&'a str, &'a StageConfig)>,
    seed: u64,
    partners: &mut Partners,
    accounts: Option<&Accounts>,
) -> Stack {
    let mut stages = (first..).zip(stages).peekable();
    while let Some((index, (name, stage))) = stages.next() {
        let context = StageContext { index, name, seed };
        // A link and the delay after it are built as one type, which the compiler optimises
        // together.
        let delay = match stages.peek() {
            Some(&(_, (_, StageConfig::Delay(DelayConfig { base, jitter: None }))))
                if accounts.is_none() && matches!(stage, StageConfig::Link(_)) =>
            {
                stages.next();
                Some(*base)
            }
            _ => None,
        };
        let wrapped = match path {
            // The first stage is compiled together with the wire it wraps.
            None => wrap(Wire::new(), stage, delay, &context, partners),
            Some(upstream) => wrap(upstream, stage, delay, &context, partners),
        };
        path = Some(match accounts {
            None => wrapped,
            Some(accounts) => accounts.wrap(wrapped, stage, index),
        });
    }
    path.unwrap_or_default()
}

/// Puts a stage behind `upstream`. `delay`: the delay of the next stage, which a link includes.
fn wrap<P: FastPath + 'static>(
    upstream: P,
    stage: &StageConfig,
    delay: Option<Duration>,
    context: &StageContext<'_>,
    partners: &mut Partners,
) -> Stack {
    let index = context.index;
    match stage {
        StageConfig::Delay(DelayConfig { base, jitter: None }) => shift(upstream, Delay(*base)),
        StageConfig::Delay(DelayConfig { base, jitter: Some(jitter) }) => {
            Stack::new(RandomDelay::new(upstream, *base, jitter, context.stream()))
        }
        StageConfig::Batch { interval } => shift(upstream, Batch::new(*interval)),
        StageConfig::Link(config) => link(upstream, config, delay, context),
        StageConfig::Loss(config) => {
            filter(upstream, Loss::new(config.clone(), context.stream()), index)
        }
        StageConfig::Policer(config) => filter(upstream, Policer::new(config), index),
        StageConfig::Tunnel(end) => filter(upstream, Wrapper::End(*end), index),
        StageConfig::Mtu { bytes } => filter(upstream, Wrapper::Mtu(*bytes), index),
        StageConfig::Host(config) => host(upstream, config, context, partners),
        StageConfig::Modem(config) => Stack::new(Modem::new(upstream, config, index)),
        StageConfig::Offload(OffloadConfig { fault, min_bytes }) => match *fault {
            OffloadFault::Checksum => filter(upstream, WrongChecksums(*min_bytes), index),
            OffloadFault::Joined { window, mtu } => {
                Stack::new(Joined::new(upstream, window, mtu, *min_bytes, index))
            }
        },
        StageConfig::Middlebox(MiddleboxConfig { side: MiddleboxSide::Outward(timer), .. }) => {
            let outward = Outward::new(Stack::new(upstream), *timer);
            partners.middleboxes.push(outward.handle());
            Stack::new(outward)
        }
        StageConfig::Middlebox(MiddleboxConfig { side: MiddleboxSide::Inward, kind }) => {
            Stack::new(Inward::after(upstream, partners.middleboxes.pop(), *kind, index))
        }
    }
}

/// Builds a host. A downlink host joins the uplink host whose CPU has the same name.
fn host<P: FastPath + 'static>(
    upstream: P,
    config: &HostConfig,
    context: &StageContext<'_>,
    partners: &mut Partners,
) -> Stack {
    let Some(name) = &config.cpu else {
        return Stack::new(Host::new(upstream, config, context.stream(), context.index));
    };
    let (upstream, ring) = (Stack::new(upstream), Ring::new(config, context.index));
    let known = partners.hosts.iter().position(|(known, _)| known == name);
    if partners.join
        && let Some(known) = known
    {
        let (_, up) = partners.hosts.remove(known);
        return Stack::new(up.joined(upstream, ring));
    }
    let stream = Stream::new(context.seed, &format!("cpu.{name}"));
    let host = SharedHost::new(Cpu::new(config.stalls, stream), upstream, ring);
    if !partners.join {
        partners.hosts.push((name.clone(), host.handle()));
    }
    Stack::new(host)
}

fn shift(upstream: impl FastPath + 'static, shift: impl Shift + 'static) -> Stack {
    Stack::new(Shifted { upstream, shift })
}

fn filter(upstream: impl FastPath + 'static, filter: impl Filter + 'static, index: u32) -> Stack {
    Stack::new(Filtered::new(upstream, filter, index))
}

/// Builds a link, and the delay after it if there is one.
fn link<P: FastPath + 'static>(
    upstream: P,
    config: &LinkConfig,
    delay: Option<Duration>,
    context: &StageContext<'_>,
) -> Stack {
    let admission = Admission::new(&config.queue, context.name, context.index);
    match (&config.service, &config.queue.aqm) {
        (ServiceConfig::Rate(rate), Aqm::DropTail) if fast_paths() => {
            delayed(Link { upstream, server: FixedRate::new(*rate, admission) }, delay)
        }
        (service, Aqm::FqCoDel(fair)) => {
            delayed(Link { upstream, server: FairQueue::new(service, fair, admission) }, delay)
        }
        _ => delayed(Link { upstream, server: Fifo::new(config, admission) }, delay),
    }
}

fn delayed<P, S>(link: Link<P, S>, delay: Option<Duration>) -> Stack
where
    P: FastPath + 'static,
    S: Server + 'static,
{
    match delay {
        Some(delay) => shift(link, Delay(delay)),
        None => Stack::new(link),
    }
}
