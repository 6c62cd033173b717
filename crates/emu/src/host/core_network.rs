//! What is between the forwarder and the server, and between the path and the cell: NATs, gateway
//! and base station, as the scenario defines them.

use airpath_path::{StageConfig, TunnelConfig, TunnelEnd, TunnelProtocol};
use airpath_radio::cell::Access;
use airpath_scenario::{GtpuLink, Scenario};

use crate::device::port::Io;
use crate::host::namespace::{Namespace, Pool, Role};
use crate::host::nat::{self, Chain, Nat};
use crate::host::profile::KernelProfile;
use crate::host::session::UeSession;
use crate::host::tunnel::{CORE, Nodes, RAN, Tunnel, TunnelSetup};
use crate::{EmuError, Port};

/// Name of the end opposite the UEs.
const SERVER: &str = "server";

/// Interface between the UPF and the base station (TS 23.501 4.2.7).
const N3: &str = "n3";

/// The QFI unless a subscription sets another.
const DEFAULT_QFI: u8 = 9;

/// Bytes of IPv4, UDP and GTP-U with a PDU session container.
const MOST_OUTER: u32 = 20 + 8 + 16;

/// The server, and the nodes on the way to it.
pub(crate) struct CoreNetwork {
    pub(crate) server: Namespace,
    /// The port of the server, or of the innermost NAT.
    pub(crate) server_port: Port,
    /// NATs between the forwarder and the server, innermost first.
    pub(crate) nats: Vec<(Namespace, Nat)>,
    /// Gateway and base station, if GTP-U goes between them.
    pub(crate) nodes: Vec<Namespace>,
    /// The tunnel between them, and the name of its interfaces.
    pub(crate) tunnel: Option<(Tunnel, &'static str)>,
    pub(crate) tunnel_setup: Option<TunnelSetup>,
}

impl CoreNetwork {
    /// Sets it up with a server of that profile, for UEs by position in the scenario and name;
    /// `mtu` is the largest of all ends.
    ///
    /// # Errors
    ///
    /// Those of namespaces, NATs and the tunnel.
    pub(crate) fn new(
        scenario: &Scenario,
        nats: Vec<Nat>,
        profile: &KernelProfile,
        (mtu, io): (u32, Io),
        ues: &[(usize, String)],
        sessions: &[UeSession],
    ) -> Result<Self, EmuError> {
        let pool = match &scenario.core {
            Some(core) if !sessions.is_empty() => {
                Pool { network: core.network, prefix: core.prefix }
            }
            _ => Pool::default(),
        };
        let (server, server_port, nats) = if nats.is_empty() {
            let (server, port) = Namespace::new(SERVER, Role::Server(pool), profile, io)?;
            (server, port, Vec::new())
        } else {
            let Chain { server, nats, port } = Chain::new(SERVER, nats, profile, (pool, mtu), io)?;
            (server, port, nats)
        };
        let (mut nodes, mut tunnel, mut tunnel_setup) = (Vec::new(), None, None);
        if let Some(link) = scenario.emulation.gtpu {
            let (made, said) = tunnel_nodes(scenario, link, mtu, ues, sessions)?;
            nodes.extend(made.namespaces);
            tunnel = Some((made.tunnel, said.interface));
            tunnel_setup = Some(said);
        }
        Ok(Self { server, server_port, nats, nodes, tunnel, tunnel_setup })
    }
}

/// Refuses names that belong to something other than a UE.
pub(crate) fn refuse_names(
    scenario: &Scenario,
    ues: &[(usize, String)],
    nats: usize,
) -> Result<(), EmuError> {
    let gtpu = scenario.emulation.gtpu.is_some();
    let taken = |name: &String| {
        name == SERVER
            || gtpu && (name == CORE || name == RAN)
            || (0..nats).any(|index| nat::name(index) == *name)
    };
    match ues.iter().find(|(_, name)| taken(name)) {
        Some((_, name)) => Err(EmuError::UeName { name: name.clone() }),
        None => Ok(()),
    }
}

/// Gateway and base station, for UEs' packets of up to `mtu` bytes.
fn tunnel_nodes(
    scenario: &Scenario,
    link: GtpuLink,
    mtu: u32,
    ues: &[(usize, String)],
    sessions: &[UeSession],
) -> Result<(Nodes, TunnelSetup), EmuError> {
    let mtu = link.mtu.or_else(|| path_mtu(scenario)).unwrap_or(mtu + MOST_OUTER);
    let interface = interface(scenario);
    let qfi = |ue: usize| {
        let session = sessions.iter().find(|session| session.ue == ue);
        session.map_or(DEFAULT_QFI, |session| session.qfi)
    };
    let qfi = ues.iter().map(|(ue, _)| (interface == N3).then(|| qfi(*ue))).collect();
    let nodes = Nodes::new(interface, mtu, qfi)?;
    let names: Vec<String> = ues.iter().map(|(_, name)| name.clone()).collect();
    let tunnel_setup = nodes.tunnel.setup(interface, mtu, &names);
    Ok((nodes, tunnel_setup))
}

/// Name of the link between gateway and base station; S1-U is LTE's.
fn interface(scenario: &Scenario) -> &'static str {
    let cells = scenario.radio.as_ref().map(|radio| &radio.ran.cells);
    match cells.and_then(|cells| cells.first()).map(|cell| &cell.access) {
        Some(Access::Nr(_)) => N3,
        _ => "s1u",
    }
}

/// MTU of the path's GTP-U tunnel.
fn path_mtu(scenario: &Scenario) -> Option<u32> {
    scenario.down.iter().find_map(|named| match &named.stage {
        StageConfig::Tunnel(TunnelEnd::Enter(TunnelConfig {
            protocol: TunnelProtocol::Gtpu { .. },
            mtu,
            ..
        })) => *mtu,
        _ => None,
    })
}
