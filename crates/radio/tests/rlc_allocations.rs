//! RLC allocates nothing per packet in steady state.

use airpath_base::{Direction, Duration, Ecn, FlowId, Instant, Packet, Payload, Stream, Tunnel};
use airpath_radio::bearer::*;
use airpath_radio::buffer::*;
use airpath_radio::pdcp::*;
use airpath_radio::rlc::*;
use airpath_testing::{CountingAllocator, allocations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn a_longer_run_allocates_no_more() {
    let t_reassembly = Duration::from_millis(20);
    let arq = ArqConfig {
        t_poll_retransmit: Duration::from_millis(45),
        poll_pdu: Some(32),
        poll_bytes: None,
        t_status_prohibit: Duration::from_millis(5),
        max_retx_threshold: 32,
    };
    let release = Release::InOrder { t_reordering: Some(Duration::from_millis(100)) };
    let rlcs = [
        RlcConfig::Nr { mode: NrMode::Am { sn: NrAmSn::Bits18, t_reassembly, arq }, release },
        RlcConfig::Nr { mode: NrMode::Um { sn: NrUmSn::Bits12, t_reassembly }, release },
        RlcConfig::Lte(LteMode::Am { t_reordering: t_reassembly, arq }),
        RlcConfig::Lte(LteMode::Um { sn: LteUmSn::Bits10, t_reordering: t_reassembly }),
    ];
    for rlc in rlcs {
        let mut run = Run::new(rlc);
        run.slots(20_000);
        let warm = allocations();
        run.slots(20_000);
        let more = allocations() - warm;
        assert!(run.delivered > 200_000, "{}", run.delivered);
        // Ring buffers may still grow at a record backlog, and blocks at a record number of
        // segments.
        assert!(more <= 16, "{more} allocations in {rlc:?}");
    }
}

struct Run {
    bearer: Bearer,
    stream: Stream,
    flights: [[TransportBlock; 2]; 8],
    slot: u64,
    delivered: u64,
}

impl Run {
    fn new(rlc: RlcConfig) -> Self {
        let codel =
            CoDelConfig { target: Duration::from_millis(5), interval: Duration::from_millis(100) };
        let discipline =
            Discipline::FqCoDel { codel, quantum: 1_514, isolation: Isolation::Perfect };
        let config = OneWayConfig {
            rlc,
            pdcp: PdcpConfig {
                header_bytes: 3,
                discard: Some(Duration::from_millis(300)),
                status_report: StatusReport::Required,
            },
            buffer: BufferConfig {
                packets: Some(50),
                bytes: None,
                discipline,
                ecn: EcnConfig::default(),
            },
        };
        let bearer = Bearer::new(&config, &config, 0);
        let stream = Stream::new(1, "test");
        Self { bearer, stream, flights: Default::default(), slot: 0, delivered: 0 }
    }

    fn slots(&mut self, slots: u64) {
        for _ in 0..slots {
            self.slot += 1;
            let now = Instant::ZERO + Duration::from_millis(1) * self.slot;
            let Self { bearer, stream, flights, delivered, .. } = self;
            bearer.on_timer(now, &mut |_, _, _| *delivered += 1);
            for direction in [Direction::Downlink, Direction::Uplink] {
                let block = &mut flights[(self.slot % 8) as usize][direction as usize];
                if stream.chance(0.05) {
                    bearer.on_loss(direction, now, block);
                } else {
                    bearer.on_block(direction, now, block, &mut |_, _| *delivered += 1);
                }
                block.clear();
                for index in 0..8 {
                    let size = 1_500 - 1_400 * (direction as u32);
                    let payload = Payload::Opaque(index);
                    let flow = FlowId(index as u32 % 4);
                    let packet = Packet {
                        flow,
                        size,
                        ecn: Ecn::Ect0,
                        tunnel: Tunnel::default(),
                        journey: None,
                        payload,
                    };
                    bearer.direction(direction).enqueue(now, &packet);
                }
                bearer.fill(direction, now, 7_000, block);
                while bearer.direction(direction).poll_drop().is_some() {}
            }
        }
    }
}
