//! Blocks that fail: what HARQ costs, and what it leaves for RLC to repair.

use airpath_base::DropReason;
use airpath_radio::cell::*;
use airpath_radio::mac::Occasions;
use airpath_radio::scheduler::grants::PeriodicGrant;

use crate::common::*;

/// Sends 4,000 packets in one direction, 5 ms apart; returns the mean delay in ms, the number
/// delivered, and the drops.
fn stream(cell: &CellConfig, ue: &UeConfig, down: bool) -> (f64, usize, Vec<DropReason>) {
    let mut cell = Cell::new(cell, core::slice::from_ref(ue), 3);
    let direction = if down { DOWN } else { UP };
    let entered = |n: u64| at(50_000 + n * 5_070);
    for n in 0..4_000 {
        cell.enqueue(entered(n), direction, UeIndex(0), &packet(n, 100));
    }
    let departures = run(&mut cell, at(60_000_000));
    let delays = departures.iter().map(|departure| {
        let airpath_base::Payload::Opaque(n) = departure.packet.payload else { unreachable!() };
        departure.at - entered(n)
    });
    let mean = mean_ms(delays);
    let drops = core::iter::from_fn(|| cell.poll_drop()).map(|drop| drop.reason).collect();
    assert_eq!(cell.load().packets, 0);
    (mean, departures.len(), drops)
}

/// A UE with periodic uplink grants, so that no packet waits for a scheduling request.
fn granted() -> (CellConfig, UeConfig) {
    let (cell, mut ue) = lte();
    let occasions = Occasions::new(ms(1), ms(0));
    ue.proactive = Some(PeriodicGrant { occasions, bytes: 200, keep: None });
    (cell, ue)
}

#[test]
fn ten_percent_cost_a_tenth_of_a_round_trip_each_way() {
    for down in [true, false] {
        let (cell, mut ue) = granted();
        let (clean, ..) = stream(&cell, &ue, down);
        bler(&mut ue, 0.1, 0.1);
        let (lossy, delivered, _) = stream(&cell, &ue, down);
        // A round is 8 ms: 0.8 ms for the first failure, a tenth of that for the second. A packet
        // behind a failed one waits for it: it comes 5.07 ms later and t-Reordering holds it, so
        // that 2.93 of the 8 ms count once more.
        let expected = 0.8 * 1.11 + 0.1 * 2.93;
        assert!((lossy - clean - expected).abs() < 0.15, "{down}: {lossy} after {clean} ms");
        assert!(delivered > 3_990);
    }
}

#[test]
fn what_harq_loses_um_loses() {
    for down in [true, false] {
        let (cell, mut ue) = granted();
        bler(&mut ue, 0.4, 0.5);
        ue.downlink.harq.max_transmissions = 2;
        ue.uplink.harq.max_transmissions = 2;
        let (_, delivered, drops) = stream(&cell, &ue, down);
        // 0.4 × 0.5 of 4,000, standard deviation 25
        assert_eq!(delivered + drops.len(), 4_000);
        assert!((700..900).contains(&drops.len()), "{down}: {}", drops.len());
        assert!(drops.iter().all(|&reason| reason == DropReason::RadioLink));
    }
}

#[test]
fn what_harq_loses_am_sends_again() {
    for down in [true, false] {
        let (cell, ue) = granted();
        let mut am = UeConfig { proactive: ue.proactive, ..UeConfig::plain(&cell.access) };
        bler(&mut am, 0.4, 0.5);
        am.downlink.harq.max_transmissions = 2;
        am.uplink.harq.max_transmissions = 2;
        let (mean, delivered, drops) = stream(&cell, &am, down);
        assert_eq!((delivered, drops.len()), (4_000, 0), "{down}");
        assert!(mean > 10.0, "{down}: {mean} ms");
    }
}

#[test]
fn the_meters_count_what_failed() {
    let (cell, mut ue) = lte();
    bler(&mut ue, 0.25, 0.0);
    let mut cell = Cell::new(&cell, core::slice::from_ref(&ue), 3);
    for n in 0..2_000 {
        cell.enqueue(at(n * 10_000), DOWN, UeIndex(0), &packet(n, 500));
    }
    let delivered = run(&mut cell, at(30_000_000)).len() as u64;
    cell.observe(at(30_000_000), &mut |meter| {
        let radio = meter.radio;
        if meter.direction == DOWN {
            assert_eq!(
                (delivered, meter.sojourn.delivered.packets, radio.blocks),
                (2_000, 2_000, 2_000)
            );
            // Standard deviation 19
            assert!((420..580).contains(&radio.first_errors), "{}", radio.first_errors);
            assert_eq!((radio.retransmissions, radio.lost_blocks), (radio.first_errors, 0));
            assert_eq!(meter.queued.packets, 0);
        } else {
            assert_eq!(radio.blocks, 0);
        }
    });
}
