//! What lies between the endpoints, for any clock: the path in both directions, the cell at the
//! UE's end, and their rows in the tables.
//!
//! [`Network`] joins them. A driver says what the endpoints send and asks what reaches them; the
//! virtual clock goes from hop to hop by its own agenda, the real clock asks for everything that
//! is due at once. Neither knows what a packet meets on its way.
//!
//! ```
//! use airpath_base::{Ecn, FlowId, Instant, Packet, Payload, Tunnel};
//! use airpath_network::{FROM_SERVER, Network};
//! use airpath_record::Tables;
//! use airpath_scenario::{Source, parse};
//!
//! let text = "[[path.down]]\nstage = \"delay\"\ndelay_ms = 20\n[[flow]]\nkind = \"ping\"\n";
//! let scenario = parse(&Source { name: "wire", text, directory: None }, &[])?.scenario;
//! let mut tables = Tables::default();
//! let flow = tables.names.add("ping-0");
//! let mut network = Network::new(&scenario, 1, &mut tables.names);
//! network.add_flow(flow, 0);
//! let packet = Packet {
//!     flow: FlowId(0),
//!     size: 84,
//!     ecn: Ecn::NotEct,
//!     tunnel: Tunnel::default(),
//!     payload: Payload::Opaque(0),
//! };
//! network.enter(Instant::ZERO, FROM_SERVER, packet);
//! let due = network.next_event().expect("it is on its way");
//! assert_eq!(network.poll(due).map(|arrival| arrival.at.as_nanos()), Some(20_000_000));
//! # Ok::<(), airpath_scenario::ScenarioError>(())
//! ```

mod hops;
mod links;
mod look;
mod network;
mod radio;
mod steady;

pub use hops::{FROM_SERVER, FROM_UE, Goes, HOPS, Hops, Leaving, RADIO, beyond_proxy};
pub use look::{CellLook, LinkLook, NetworkLook, RadioLook, UeLook};
pub use network::{Arrival, Network};
pub use steady::steady;

/// Rate in Mb/s; `None` over no time.
pub fn mbps(bytes: u64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| bytes as f64 * 8.0 / seconds / 1e6)
}
