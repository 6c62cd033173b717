//! What lies between UEs' radios and their endpoints: the hosts' own links, and processing time.

use std::cell::RefCell;
use std::rc::Rc;

use airpath_base::{Direction, Duration, Part};
use airpath_path::{
    Accounts, BranchOfFlow, Branches, DelayConfig, Distribution, Jitter, Stack, StageConfig, append,
};
use airpath_scenario::{RadioConfig, UeHostConfig};

/// A stage behind a UE's radio.
pub(crate) struct UeStage {
    /// The stage's name in tables.
    pub(crate) name: String,
    /// The UE it belongs to, by its position in the scenario.
    pub(crate) ue: usize,
}

/// Paths between UEs' radios and endpoints.
pub(crate) struct UeHosts {
    /// Downlink and uplink; `None`: packets meet nothing there.
    pub(crate) paths: [Option<Stack>; 2],
    /// The stages of these paths.
    pub(crate) stages: [Vec<UeStage>; 2],
    /// Branches of each UE, downlink and uplink.
    branches: Vec<[u32; 2]>,
    /// Branch of each flow, for downlink and uplink.
    flows: [BranchOfFlow; 2],
}

impl UeHosts {
    /// Builds the hosts of `radio`; `accounts` are those of the two paths.
    pub(crate) fn new(radio: &RadioConfig, seed: u64, accounts: [Option<Accounts>; 2]) -> Self {
        let mut branches = vec![[0; 2]; radio.hosts.len()];
        let flows = [(); 2].map(|()| Rc::new(RefCell::new(Vec::new())));
        let mut stages = [Vec::new(), Vec::new()];
        let paths = Direction::BOTH.map(|direction| {
            let stages = &mut stages[direction];
            // UEs with nothing behind their radio share the first branch.
            let mut paths = vec![Stack::default()];
            for (ue, (label, host)) in radio.ues.iter().zip(&radio.hosts).enumerate() {
                let mut branch =
                    Branch { path: None, seed, accounts: accounts[direction].as_ref(), stages };
                branch.fill(ue, label, host, direction);
                if let Some(path) = branch.path {
                    branches[ue][direction] = paths.len() as u32;
                    paths.push(path);
                }
            }
            (paths.len() > 1).then(|| Branches::new(paths, flows[direction].clone()).into())
        });
        Self { paths, stages, branches, flows }
    }

    /// Adds the next flow, which belongs to that UE.
    pub(crate) fn add_flow(&mut self, ue: usize) {
        for (flows, branch) in self.flows.iter().zip(self.branches[ue]) {
            flows.borrow_mut().push(branch);
        }
    }

    /// Reserves room for this many flows.
    pub(crate) fn reserve_flows(&mut self, more: usize) {
        self.flows.iter().for_each(|flows| flows.borrow_mut().reserve(more));
    }
}

/// What is behind one UE's radio, in one direction.
struct Branch<'a> {
    /// The part of it built so far.
    path: Option<Stack>,
    seed: u64,
    accounts: Option<&'a Accounts>,
    /// Stages of all UEs.
    stages: &'a mut Vec<UeStage>,
}

impl Branch<'_> {
    /// Adds the stages of the host.
    fn fill(&mut self, ue: usize, label: &str, host: &UeHostConfig, direction: Direction) {
        let name = |kind| UeStage { name: format!("ue.{label}.{direction}.{kind}"), ue };
        let link = &host.link[direction];
        if let Some(limit) = &link.limit {
            self.add(name("link"), &StageConfig::Link(limit.clone()), None);
        }
        if link.delay > Duration::ZERO {
            let delay = DelayConfig { base: link.delay, jitter: None };
            self.add(name("delay"), &StageConfig::Delay(delay), None);
        }
        let time = time(host);
        if direction == Direction::Downlink && time != NO_TIME {
            self.add(name("host"), &StageConfig::Delay(time), Some(Part::Host));
        }
    }

    /// Adds a stage, whose time counts as that part, or otherwise as what its kind is for.
    fn add(&mut self, named: UeStage, stage: &StageConfig, part: Option<Part>) {
        let before = (self.path.take(), self.stages.len() as u32);
        let accounts = self.accounts.map(|accounts| Accounts { all: part, ..accounts.clone() });
        self.path = Some(append(before, [(&*named.name, stage)], self.seed, accounts.as_ref()));
        self.stages.push(named);
    }
}

const NO_TIME: DelayConfig = DelayConfig { base: Duration::ZERO, jitter: None };

/// The processing time of the host itself.
fn time(host: &UeHostConfig) -> DelayConfig {
    let mean = host.jitter;
    let distribution = Distribution::Exponential { mean };
    let jitter = Jitter { distribution, keep_order: true, together: true };
    DelayConfig { base: host.delay, jitter: (mean > Duration::ZERO).then_some(jitter) }
}
