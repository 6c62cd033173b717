//! A connection over two paths with its own clock: the loop at the core of a driver.

use airpath_base::{Duration, FlowId, Instant, Payload, Rate};
use airpath_path::{
    Aqm, DelayConfig, LinkConfig, Path, QueueConfig, ServiceConfig, Stack, StageConfig, build,
};
use airpath_tcp::{CongestionControl, Endpoint, EndpointConfig};

/// The results of a download.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Download {
    /// Payload that arrived, averaged over the whole time.
    pub goodput_mbps: f64,
    /// The sender's smoothed RTT at the end.
    pub srtt: Option<Duration>,
    /// Retransmitted segments.
    pub retransmitted: u64,
}

/// One direction of a wire: a queue of `packets` in front of a link of `rate_mbps`, then `delay`.
pub fn link(rate_mbps: u64, delay: Duration, packets: u32) -> Stack {
    let rate = Rate::from_bps(rate_mbps * 1_000_000).expect("a rate above zero");
    let queue = QueueConfig { packets: Some(packets), bytes: None, aqm: Aqm::DropTail };
    let stages = [
        ("link", StageConfig::Link(LinkConfig { service: ServiceConfig::Rate(rate), queue })),
        ("delay", StageConfig::Delay(DelayConfig { base: delay, jitter: None })),
    ];
    build(stages.iter().map(|(name, stage)| (*name, stage)), 0)
}

/// Downloads for `time` over `down`; acknowledgements take 20 ms to return. `congestion` replaces
/// the congestion control that `config` names.
pub fn download(
    config: &EndpointConfig,
    congestion: Option<Box<dyn CongestionControl>>,
    mut down: impl Path,
    time: Duration,
) -> Download {
    let mut up = link(1000, Duration::from_millis(20), 100_000);
    let mut client = Endpoint::connect(Instant::ZERO, config);
    let mut server = Endpoint::listen(Instant::ZERO, config);
    if let Some(congestion) = congestion {
        server = server.with_congestion_control(congestion);
    }
    server.offer(u64::MAX);
    let end = Instant::ZERO + time;
    let mut now = Instant::ZERO;
    while now <= end {
        send(now, &mut client, &mut up);
        send(now, &mut server, &mut down);
        // The next event, at either end or between them.
        let times = [client.next_timer(), server.next_timer(), up.next_event(), down.next_event()];
        let Some(next) = Instant::earliest(times) else { break };
        now = next;
        receive(now, &mut up, &mut server);
        receive(now, &mut down, &mut client);
        client.on_timer(now);
        server.on_timer(now);
    }
    Download {
        goodput_mbps: client.delivered() as f64 * 8.0 / time.as_secs_f64() / 1e6,
        srtt: server.srtt(),
        retransmitted: server.counters().retransmitted,
    }
}

/// Puts what the endpoint sends into the path.
fn send(now: Instant, endpoint: &mut Endpoint, path: &mut impl Path) {
    endpoint.transmit(now, FlowId(0), |packet| {
        path.enqueue(now, packet);
    });
}

/// Hands what leaves the path to the endpoint.
fn receive(now: Instant, path: &mut impl Path, endpoint: &mut Endpoint) {
    while let Some(departure) = path.poll(now) {
        if let Payload::Tcp(segment) = departure.packet.payload {
            endpoint.on_segment(now, &segment, departure.packet.ecn);
        }
    }
}

#[cfg(test)]
mod tests {
    use airpath_tcp::CongestionConfig;

    use super::*;
    use crate::{Outage, Vegas};

    /// 20 Mb/s, a round trip of 40 ms, and a queue of 7 bandwidth-delay products.
    fn wire() -> Stack {
        link(20, Duration::from_millis(20), 480)
    }

    fn run(congestion: Option<Box<dyn CongestionControl>>, path: impl Path) -> Download {
        let config =
            EndpointConfig { congestion: CongestionConfig::RENO, ..EndpointConfig::default() };
        download(&config, congestion, path, Duration::from_secs(20))
    }

    #[test]
    fn vegas_fills_the_link_and_not_the_queue() {
        let (vegas, reno) = (run(Some(Box::new(Vegas::default())), wire()), run(None, wire()));
        let srtt = |download: &Download| download.srtt.expect("an RTT").as_millis_f64();
        assert!(vegas.goodput_mbps > 17.5, "{vegas:?}");
        // Two to four segments of 0.6 ms wait.
        assert!((40.0..46.0).contains(&srtt(&vegas)), "{vegas:?}");
        assert_eq!(vegas.retransmitted, 0);
        assert!(srtt(&reno) > 120.0 && reno.goodput_mbps > 17.5, "{reno:?}");
    }

    #[test]
    fn an_outage_takes_its_share_of_the_time() {
        let (period, length) = (Duration::from_secs(2), Duration::from_millis(400));
        let away = run(None, Outage::new(wire(), period, length));
        let (share, whole) = (0.8, run(None, wire()).goodput_mbps);
        // Queued packets leave at the end of the outage and are not lost.
        assert!(away.goodput_mbps > share * whole * 0.9, "{away:?} of {whole}");
        assert!(away.goodput_mbps < whole, "{away:?} of {whole}");
    }
}
