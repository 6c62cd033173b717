//! Builds the paths of a network from a scenario.

use airpath_base::{Journeys, Site};
use airpath_path::{Accounts, Stack, build_pair_accounted};
use airpath_scenario::{NamedStage, Scenario};

use crate::hop::Hop;

/// Paths by hop, in the order of [`Hop::ALL`]; some may be unused.
pub(crate) type Paths = [Stack; 6];

/// Most places of a hop; a place is one of its stages, or one direction of a UE.
pub(crate) const PLACES: u32 = 1 << 20;

/// The first place of the radio.
pub(crate) const RADIO_PLACES: Site = Site(Hop::Radio.index() as u32 * PLACES);

/// The stages of each of [`Paths`].
pub(crate) fn parts(scenario: &Scenario) -> [&[NamedStage]; 4] {
    let (before_down, before_up) = match &scenario.proxy {
        Some(proxy) => (proxy.down.stages_before, proxy.up.stages_before),
        None => (scenario.down.len(), scenario.up.len()),
    };
    let ((down, beyond_down), (up, beyond_up)) =
        (scenario.down.split_at(before_down), scenario.up.split_at(before_up));
    [down, up, beyond_down, beyond_up]
}

/// The accounts of a path, where packets have journeys.
pub(crate) fn accounts(journeys: Option<&Journeys>, hop: Hop) -> Option<Accounts> {
    let first = Site(hop.index() as u32 * PLACES);
    journeys.map(|journeys| Accounts { journeys: journeys.clone(), first, all: None })
}

/// Builds [`Paths`]. Except for those of the UEs' hosts, the two on each side of the proxy are
/// built as a pair: the first part of down and the last part of up are the server's side, the
/// others the UE's. Without a proxy all stages are on one side.
pub(crate) fn build_paths(
    parts: [&[NamedStage]; 4],
    behind: [Option<Stack>; 2],
    proxied: bool,
    seed: u64,
    journeys: Option<&Journeys>,
) -> Paths {
    let pair = |down: Hop, up: Hop| {
        let stages = |hop: Hop| NamedStage::named(parts[hop.index()]);
        let [down_accounts, up_accounts] = [down, up].map(|hop| accounts(journeys, hop));
        let accounts = [down_accounts.as_ref(), up_accounts.as_ref()];
        build_pair_accounted(stages(down), stages(up), seed, accounts)
    };
    let [to_host, from_host] = behind.map(Option::unwrap_or_default);
    if proxied {
        let [from_server, to_server] = pair(Hop::FromServer, Hop::ProxyToServer);
        let [to_ue, from_ue] = pair(Hop::ProxyToUe, Hop::FromUe);
        [from_server, from_ue, to_ue, to_server, to_host, from_host]
    } else {
        let [down, up] = pair(Hop::FromServer, Hop::FromUe);
        let [no_down, no_up] = pair(Hop::ProxyToUe, Hop::ProxyToServer);
        [down, up, no_down, no_up, to_host, from_host]
    }
}
