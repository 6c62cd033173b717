//! CPU time of RLC and PDCP per delivered packet, one JSON line per case.
//!
//! `cargo bench -p airpath-radio --bench rlc`: 1500-byte packets down, one of 40 bytes up for every
//! two of them, blocks in flight for eight slots.

#![allow(clippy::print_stdout, reason = "a command line program")]

use std::collections::VecDeque;

use airpath_base::{Direction, Duration, Ecn, FlowId, Instant, Packet, Payload, Stream, Tunnel};
use airpath_radio::bearer::*;
use airpath_radio::buffer::*;
use airpath_radio::pdcp::*;
use airpath_radio::rlc::*;

fn main() {
    let arq = ArqConfig {
        t_poll_retransmit: Duration::from_millis(45),
        poll_pdu: Some(64),
        poll_bytes: None,
        t_status_prohibit: Duration::from_millis(5),
        max_retx_threshold: 32,
    };
    let t_reassembly = Duration::from_millis(40);
    let release = Release::InOrder { t_reordering: Some(Duration::from_millis(100)) };
    let nr_am =
        RlcConfig::Nr { mode: NrMode::Am { sn: NrAmSn::Bits18, t_reassembly, arq }, release };
    let nr_um = RlcConfig::Nr { mode: NrMode::Um { sn: NrUmSn::Bits12, t_reassembly }, release };
    let lte_am = RlcConfig::Lte(LteMode::Am { t_reordering: t_reassembly, arq });
    let lte_um = RlcConfig::Lte(LteMode::Um { sn: LteUmSn::Bits10, t_reordering: t_reassembly });
    for (name, rlc, slot_us, block) in [
        ("nr-am", nr_am, 500, 37_500),
        ("nr-um", nr_um, 500, 37_500),
        ("nr-am-small-blocks", nr_am, 500, 1_000),
        ("lte-am", lte_am, 1_000, 9_422),
        ("lte-um", lte_um, 1_000, 9_422),
    ] {
        for loss in [0.0, 0.001, 0.1] {
            case(name, rlc, Duration::from_micros(slot_us), block, loss);
        }
    }
}

const PACKETS: u64 = 1_000_000;
const IN_FLIGHT: usize = 8;

fn case(name: &str, rlc: RlcConfig, slot: Duration, block_bytes: u32, loss: f64) {
    let buffer = BufferConfig {
        packets: None,
        bytes: None,
        discipline: Discipline::DropTail,
        ecn: EcnConfig::default(),
    };
    let pdcp = PdcpConfig { header_bytes: 3, discard: None, status_report: StatusReport::Required };
    let config = OneWayConfig { rlc, pdcp, buffer };
    let mut bearer = Bearer::new(&config, &config, 0);
    let mut stream = Stream::new(1, "loss");
    let mut free: Vec<TransportBlock> = Vec::new();
    let mut flights: VecDeque<[TransportBlock; 2]> = VecDeque::new();
    let (mut sent, mut delivered, mut acks) = (0, 0u64, 0);
    let mut now = Instant::ZERO;
    let before = cpu_seconds();
    while delivered < PACKETS {
        now += slot;
        if bearer.next_timer().is_some_and(|at| at <= now) {
            bearer.on_timer(now, &mut |direction, _, _| {
                delivered += u64::from(direction == Direction::Downlink);
            });
        }
        if flights.len() == IN_FLIGHT
            && let Some(blocks) = flights.pop_front()
        {
            for (direction, mut block) in
                [Direction::Downlink, Direction::Uplink].into_iter().zip(blocks)
            {
                if loss > 0.0 && stream.chance(loss) {
                    bearer.on_loss(direction, now, &block);
                } else {
                    bearer.on_block(direction, now, &block, &mut |_, _| {
                        delivered += u64::from(direction == Direction::Downlink);
                    });
                }
                block.clear();
                free.push(block);
            }
        }
        while bearer.down.buffered_bytes() < 3 * u64::from(block_bytes) + 3_000 {
            bearer.down.enqueue(now, &packet(1_500, sent));
            sent += 1;
        }
        while acks < delivered / 2 {
            bearer.up.enqueue(now, &packet(40, acks));
            acks += 1;
        }
        let mut down = free.pop().unwrap_or_default();
        let mut up = free.pop().unwrap_or_default();
        bearer.fill(Direction::Downlink, now, block_bytes, &mut down);
        bearer.fill(Direction::Uplink, now, block_bytes, &mut up);
        flights.push_back([down, up]);
    }
    let ns = (cpu_seconds() - before) * 1e9 / delivered as f64;
    println!(
        "{{\"case\":\"{name}\",\"loss\":{loss},\"packets\":{delivered},\"ns_per_packet\":{ns:.1},\
         \"retransmitted_pdus\":{}}}",
        bearer.down.counters().retransmitted_pdus,
    );
}

fn packet(size: u32, id: u64) -> Packet {
    Packet {
        flow: FlowId(0),
        size,
        ecn: Ecn::NotEct,
        tunnel: Tunnel::default(),
        journey: None,
        payload: Payload::Opaque(id),
    }
}

fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
