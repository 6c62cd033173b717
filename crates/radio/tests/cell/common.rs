//! Helpers that drive a cell.

use airpath_base::{Direction, Duration, Ecn, FlowId, Instant, Packet, Payload, Tunnel};
use airpath_radio::cell::{
    Cell, CellConfig, CellDeparture, LteCarrier, UeConfig, UeIndex, UmtsCarrier,
};
use airpath_radio::harq::Decoding;
use airpath_radio::pdcp::Release;
use airpath_radio::rlc::{LteMode, LteUmSn, NrMode, NrUmSn, RlcConfig};

pub(crate) const DOWN: Direction = Direction::Downlink;
pub(crate) const UP: Direction = Direction::Uplink;

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) fn us(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

pub(crate) fn at(micros: u64) -> Instant {
    Instant::ZERO + us(micros)
}

pub(crate) fn packet(number: u64, size: u32) -> Packet {
    Packet {
        flow: FlowId(0),
        size,
        ecn: Ecn::NotEct,
        tunnel: Tunnel::default(),
        journey: None,
        payload: Payload::Opaque(number),
    }
}

/// The number of an opaque packet.
pub(crate) fn opaque(packet: &Packet) -> u64 {
    match packet.payload {
        Payload::Opaque(number) => number,
        _ => unreachable!("only opaque packets were sent"),
    }
}

/// LTE 20 MHz FDD with a UE whose HARQ never fails, in UM: one packet, one block.
pub(crate) fn lte() -> (CellConfig, UeConfig) {
    let cell = CellConfig::lte(LteCarrier::fdd_20_mhz());
    let mut ue = UeConfig::plain(&cell.access);
    bler(&mut ue, 0.0, 0.0);
    um(&mut ue);
    (cell, ue)
}

/// Sets fixed error rates of first transmissions and of retransmissions, in both directions.
pub(crate) fn bler(ue: &mut UeConfig, initial: f64, retransmission: f64) {
    for link in [&mut ue.downlink, &mut ue.uplink] {
        link.harq.decoding = Decoding::Fixed { initial, retransmission };
    }
}

/// Sets UM in both directions.
pub(crate) fn um(ue: &mut UeConfig) {
    for link in [&mut ue.downlink, &mut ue.uplink] {
        link.bearer.rlc = match link.bearer.rlc {
            RlcConfig::Lte(_) => {
                RlcConfig::Lte(LteMode::Um { sn: LteUmSn::Bits10, t_reordering: ms(50) })
            }
            RlcConfig::Nr { .. } => RlcConfig::Nr {
                mode: NrMode::Um { sn: NrUmSn::Bits12, t_reassembly: ms(50) },
                release: Release::InOrder { t_reordering: Some(ms(100)) },
            },
            // UMTS has no UM here.
            RlcConfig::Umts(am) => RlcConfig::Umts(am),
        };
    }
}

/// Everything that leaves the cell until `end`, polled at each event.
pub(crate) fn run(cell: &mut Cell, end: Instant) -> Vec<CellDeparture> {
    let mut departures = Vec::new();
    while let Some(next) = cell.next_event().filter(|&next| next <= end) {
        while let Some(departure) = cell.poll(next) {
            departures.push(departure);
        }
    }
    departures
}

/// Sends one packet at `at` and waits for it; returns how long it took.
pub(crate) fn one_way(cell: &mut Cell, at: Instant, direction: Direction, size: u32) -> Duration {
    cell.enqueue(at, direction, UeIndex(0), &packet(0, size));
    let end = at + Duration::from_secs(10);
    while let Some(next) = cell.next_event().filter(|&next| next <= end) {
        if let Some(departure) = cell.poll(next) {
            return departure.at - at;
        }
    }
    panic!("{direction:?} at {at:?}: {:?}", cell.stalled());
}

/// Mean of durations, in milliseconds.
pub(crate) fn mean_ms(times: impl IntoIterator<Item = Duration>) -> f64 {
    let (mut sum, mut count) = (0.0, 0.0);
    for time in times {
        sum += time.as_millis_f64();
        count += 1.0;
    }
    sum / count
}

/// A UMTS cell and a UE whose HARQ never fails.
pub(crate) fn umts(carrier: UmtsCarrier) -> (CellConfig, UeConfig) {
    let cell = CellConfig::umts(carrier);
    let mut ue = UeConfig::plain(&cell.access);
    bler(&mut ue, 0.0, 0.0);
    (cell, ue)
}
