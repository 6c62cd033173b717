//! The stack's settings, from a [`Config`] and the connection's stream of random numbers.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use airpath_base::Stream;
use quinn_proto::{
    AckFrequencyConfig, ClientConfig, ConnectionId, ConnectionIdGenerator, Endpoint,
    EndpointConfig, IdleTimeout, MtuDiscoveryConfig, ServerConfig, TransportConfig, VarInt,
};
use ring::{hkdf, hmac};

use super::controller::{Record, Recorded};
use super::random;
use super::tls::Identity;
use crate::Config;

/// Where the other end is; each end has one peer only.
pub(super) const PEER: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 443);

/// Bytes of a connection ID, as quinn makes them (`HashedConnectionIdGenerator`).
const CONNECTION_ID_BYTES: usize = 8;
/// Bytes of the connection ID that a client makes up for the server (RFC 9000 7.2: at least 8;
/// quinn: 20).
const FIRST_ID_BYTES: usize = 20;

/// A client of the server whose random numbers come from `server`.
pub(super) fn client(config: &Config, server: &mut Stream, record: Record) -> ClientConfig {
    let tls = Identity::draw(server, config.certificate_bytes.unwrap_or(0) as usize).client();
    let mut client = ClientConfig::new(Arc::new(tls));
    client.transport_config(Arc::new(transport(config, record)));
    client.initial_dst_cid_provider(Arc::new(random_id::<FIRST_ID_BYTES>));
    client
}

/// A server whose random numbers come from `stream`.
pub(super) fn server(config: &Config, stream: &mut Stream, record: Record) -> ServerConfig {
    let tls = Identity::draw(stream, config.certificate_bytes.unwrap_or(0) as usize).server();
    let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, &[]);
    let token_key = salt.extract(&random::draw::<64>(stream));
    let mut server = ServerConfig::new(Arc::new(tls), Arc::new(token_key));
    server.transport_config(Arc::new(transport(config, record)));
    server
}

/// A stack without a connection.
pub(super) fn stack(
    config: &Config,
    server: Option<ServerConfig>,
    stream: &mut Stream,
) -> Endpoint {
    let reset_key = hmac::Key::new(hmac::HMAC_SHA256, &random::draw::<64>(stream));
    let mut endpoint = EndpointConfig::new(Arc::new(reset_key));
    endpoint.rng_seed(Some(random::draw(stream)));
    endpoint.cid_generator(|| Box::new(SeededIds));
    let usual = endpoint.get_max_udp_payload_size();
    if u64::from(config.max_mtu) > usual {
        endpoint.max_udp_payload_size(config.max_mtu).expect("an MTU is within bounds");
    }
    Endpoint::new(Arc::new(endpoint), server.map(Arc::new), true, None)
}

fn transport(config: &Config, record: Record) -> TransportConfig {
    let limit = |bytes: u64| VarInt::from_u64(bytes).unwrap_or(VarInt::MAX);
    let mut transport = TransportConfig::default();
    transport
        .congestion_controller_factory(Arc::new(Recorded::new(config, record)))
        .initial_rtt(standard(config.initial_rtt))
        .initial_mtu(config.initial_mtu)
        .stream_receive_window(limit(config.receive_window))
        .send_window(config.send_window)
        .max_idle_timeout(IdleTimeout::try_from(standard(config.idle_timeout)).ok())
        .mtu_discovery_config((config.max_mtu > config.initial_mtu).then(|| {
            let mut discovery = MtuDiscoveryConfig::default();
            discovery.upper_bound(config.max_mtu);
            discovery
        }))
        .ack_frequency_config(config.ack_frequency.map(|wanted| {
            let mut frequency = AckFrequencyConfig::default();
            // The protocol counts the packets that do not yet make the receiver acknowledge.
            frequency
                .ack_eliciting_threshold(VarInt::from_u32(wanted.packets.saturating_sub(1)))
                .max_ack_delay(wanted.max_delay.map(standard));
            frequency
        }));
    transport
}

fn standard(duration: airpath_base::Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(duration.as_nanos())
}

/// Connection IDs from the stream that is lent.
struct SeededIds;

impl ConnectionIdGenerator for SeededIds {
    fn generate_cid(&mut self) -> ConnectionId {
        random_id::<CONNECTION_ID_BYTES>()
    }

    fn cid_len(&self) -> usize {
        CONNECTION_ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<std::time::Duration> {
        None
    }
}

fn random_id<const LENGTH: usize>() -> ConnectionId {
    let mut bytes = [0; LENGTH];
    let lent = random::fill(&mut bytes);
    // The stack draws until an ID is new, so the same one again and again would never end.
    assert!(lent, "a connection ID outside a call of the stack");
    ConnectionId::new(&bytes)
}
