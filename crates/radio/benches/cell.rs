//! CPU time of a cell: ns per delivered packet, and the cost of idle UEs.
//!
//! `cargo bench -p airpath-radio --bench cell -- [NR|LTE] [UES AT MOST [SECONDS]]`

// A benchmark may read a clock.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::print_stdout)]

use std::time::Instant as Clock;

use airpath_base::{Direction, Duration, Ecn, FlowId, Instant, Packet, Payload, Tunnel};
use airpath_radio::cell::{Cell, CellConfig, LteCarrier, NrCarrier, UeConfig, UeIndex};

fn main() {
    let nr = CellConfig::nr(NrCarrier::n78_100_mhz());
    let lte = CellConfig::lte(LteCarrier::fdd_20_mhz());
    let words: Vec<String> = std::env::args().skip(1).collect();
    let only = ["NR", "LTE"].into_iter().find(|&only| words.iter().any(|word| word == only));
    let mut arguments = words.iter().filter_map(|word| word.parse().ok());
    let most = arguments.next().unwrap_or(1_000);
    let given = arguments.next();
    for (name, config, seconds) in [("NR n78 100 MHz", &nr, 4), ("LTE 20 MHz", &lte, 20)] {
        if only.is_some_and(|only| !name.starts_with(only)) {
            continue;
        }
        let ue = UeConfig::plain(&config.access);
        let loads = [(1, 1), (1_000, 1), (10, 10), (100, 100)];
        for (ues, busy) in loads.into_iter().filter(|&(ues, _)| ues <= most) {
            run(name, config, &ue, (ues as usize, busy), given.unwrap_or(seconds));
        }
    }
}

/// Full downlink buffers for `busy` of `ues`; one uplink packet of 52 bytes for every two
/// delivered.
fn run(name: &str, config: &CellConfig, ue: &UeConfig, (ues, busy): (usize, u32), seconds: u64) {
    let mut cell = Cell::new(config, &vec![ue.clone(); ues], 1);
    let packet = |size| Packet {
        flow: FlowId(0),
        size,
        ecn: Ecn::NotEct,
        tunnel: Tunnel::default(),
        journey: None,
        payload: Payload::Opaque(0),
    };
    for ue in 0..busy {
        for _ in 0..1_000 {
            cell.enqueue(Instant::ZERO, Direction::Downlink, UeIndex(ue), &packet(1_500));
        }
    }
    let end = Instant::ZERO + Duration::from_secs(seconds);
    let (mut delivered, mut acknowledgements) = (0u64, 0u64);
    let began = Clock::now();
    while let Some(next) = cell.next_event().filter(|&next| next <= end) {
        while let Some(departure) = cell.poll(next) {
            if departure.direction == Direction::Uplink {
                acknowledgements += 1;
                continue;
            }
            delivered += 1;
            cell.enqueue(next, Direction::Downlink, departure.ue, &packet(1_500));
            if delivered.is_multiple_of(2) {
                cell.enqueue(next, Direction::Uplink, departure.ue, &packet(52));
            }
        }
        while cell.poll_drop().is_some() {}
    }
    let spent = began.elapsed();
    println!(
        "{name}: {ues} UEs, {busy} busy: {:.0} Mb/s, {acknowledgements} up, {} ns per packet down, {:.0} \
         simulated s per CPU s",
        delivered as f64 * 12e-3 / seconds as f64,
        spent.as_nanos() as u64 / delivered.max(1),
        seconds as f64 / spent.as_secs_f64(),
    );
}
