//! What lies between the endpoints, for both clocks: the path in both directions, the cell at the
//! UE's end, and their rows in the tables.
//!
//! [`Network`] joins them. A driver passes in what the endpoints send, and polls for what reaches
//! them. The driver of the virtual clock moves packets from hop to hop with its own event queue
//! ([`SteppedNetwork`]). The driver of the real clock polls for everything that is due at once
//! ([`PolledNetwork`]). Neither driver knows which stages a packet passes.
//!
//! It may use: `base`, `queue`, `path`, `radio`, `record`, `metrics`, `scenario`. Start reading at
//! [`Network`].
//!
//! ```
//! use airpath_base::{Ecn, FlowId, Instant, Packet, Payload, Tunnel};
//! use airpath_network::{Hop, PolledNetwork};
//! use airpath_record::Tables;
//! use airpath_scenario::{Source, parse};
//!
//! let text = "[[path.down]]\nstage = \"delay\"\ndelay_ms = 20\n[[flow]]\nkind = \"ping\"\n";
//! let scenario = parse(&Source { name: "wire", text, directory: None }, &[])?.scenario;
//! let mut tables = Tables::default();
//! let flow = tables.names.add("ping-0");
//! let mut network = PolledNetwork::new(&scenario, 1, &mut tables.names);
//! network.add_flow(flow, 0);
//! let packet = Packet {
//!     flow: FlowId(0),
//!     size: 84,
//!     ecn: Ecn::NotEct,
//!     tunnel: Tunnel::default(),
//!     journey: None,
//!     payload: Payload::Opaque(0),
//! };
//! network.enter(Instant::ZERO, Hop::FromServer, &packet);
//! let due = network.next_event().expect("it is on its way");
//! assert_eq!(network.poll(due).map(|arrival| arrival.at.as_nanos()), Some(20_000_000));
//! # Ok::<(), airpath_scenario::ScenarioError>(())
//! ```

mod capacity;
mod groups;
mod hop;
mod links;
mod network;
mod paths;
mod polled;
mod radio;
mod snapshot;
mod stepped;
mod ue_hosts;

pub use airpath_radio::cell::CellDeparture;
pub use capacity::Capacity;
pub use groups::summarise_groups;
pub use hop::{Destination, Hop, HopDeparture, HopSet};
pub use network::Network;
pub use polled::{Arrival, PolledNetwork};
pub use snapshot::{CellSnapshot, LinkSnapshot, NetworkSnapshot, RadioSnapshot, UeSnapshot};
pub use stepped::SteppedNetwork;
