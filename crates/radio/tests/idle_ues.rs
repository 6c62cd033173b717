//! An idle UE costs nothing, and a cell without traffic does no work: counted in wake-ups and
//! allocations, not in time.

use airpath_base::{Direction, Duration, Ecn, FlowId, Instant, Packet, Payload, Tunnel};
use airpath_radio::cell::*;
use airpath_radio::mac::Occasions;
use airpath_radio::mac::drx::{DrxConfig, UplinkStart};
use airpath_radio::rrc::connection::ConnectionConfig;
use airpath_radio::rrc::{RrcConfig, RrcState};
use airpath_testing::{CountingAllocator, allocations};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// The work that a run did.
#[derive(PartialEq, Debug, Default)]
struct Work {
    /// When the cell woke up.
    wake_ups: Vec<Instant>,
    departures: Vec<CellDeparture>,
    allocations: u64,
}

/// Sends packets in both directions for UE 0, one per `every`, beside `others` that have none.
fn work(config: &CellConfig, ue: &UeConfig, others: usize, every: Duration) -> Work {
    let mut cell = Cell::new(config, &vec![ue.clone(); 1 + others], 1);
    let mut work = Work {
        wake_ups: Vec::with_capacity(1 << 16),
        departures: Vec::with_capacity(1 << 10),
        allocations: 0,
    };
    let before = allocations();
    for number in 0..PACKETS {
        let at = Instant::ZERO + every * number;
        advance(&mut cell, at, &mut work);
        for direction in [Direction::Downlink, Direction::Uplink] {
            cell.enqueue(at, direction, UeIndex(0), &packet(number));
        }
    }
    advance(&mut cell, Instant::ZERO + every * PACKETS + Duration::from_secs(60), &mut work);
    work.allocations = allocations() - before;
    assert_eq!(work.departures.len() as u64, 2 * PACKETS, "all has left");
    assert_eq!(cell.next_event(), None, "the cell is at rest");
    work
}

const PACKETS: u64 = 20;

fn advance(cell: &mut Cell, until: Instant, work: &mut Work) {
    while let Some(next) = cell.next_event().filter(|&next| next <= until) {
        work.wake_ups.push(next);
        while let Some(departure) = cell.poll(next) {
            work.departures.push(departure);
        }
    }
}

fn packet(number: u64) -> Packet {
    Packet {
        flow: FlowId(0),
        size: 1_500,
        ecn: Ecn::NotEct,
        tunnel: Tunnel::default(),
        journey: None,
        payload: Payload::Opaque(number),
    }
}

/// Both technologies, with UEs that are always active and with UEs that sleep.
fn cells() -> Vec<(CellConfig, UeConfig)> {
    let ms = Duration::from_millis;
    let nr = CellConfig::nr(NrCarrier::n78_100_mhz());
    let lte = CellConfig::lte(LteCarrier::fdd_20_mhz());
    let mut cells = Vec::new();
    for config in [nr, lte] {
        let plain = UeConfig::plain(&config.access);
        let mut sleeper = plain.clone();
        sleeper.drx = Some(DrxConfig {
            on_duration: ms(10),
            slot_offset: Duration::ZERO,
            inactivity: ms(100),
            long_cycle: ms(320),
            start_offset: ms(0),
            short_cycle: None,
            harq_rtt_downlink: ms(8),
            harq_rtt_uplink: ms(4),
            retransmission_downlink: ms(8),
            retransmission_uplink: ms(8),
            pdcch: ms(1),
            harq_processes: 16,
            uplink_start: UplinkStart::AtOnce,
        });
        sleeper.rrc = Some(RrcConfig::Connection(ConnectionConfig {
            initial: RrcState::Idle,
            setup: ms(80),
            inactivity: Some(ms(10_000)),
            inactive: None,
            paging: Occasions::new(ms(1_280), ms(9)),
            paging_delay: ms(0),
        }));
        cells.push((config.clone(), plain));
        cells.push((config, sleeper));
    }
    cells
}

#[test]
fn idle_ues_change_no_wake_up_and_allocate_nothing() {
    for (config, ue) in cells() {
        let every = Duration::from_millis(30);
        let alone = work(&config, &ue, 0, every);
        assert!(alone.wake_ups.len() > 100 && alone.allocations > 0, "{}", alone.wake_ups.len());
        assert_eq!(work(&config, &ue, 999, every), alone);
    }
}

/// There is no periodic work: the same packets cost the same work, however long the silence between
/// them.
#[test]
fn silence_is_no_work() {
    for (config, ue) in cells().into_iter().filter(|(_, ue)| ue.drx.is_none()) {
        // A whole number of frames, so that all occasions stay where they were.
        let soon = work(&config, &ue, 99, Duration::from_secs(1));
        let late = work(&config, &ue, 99, Duration::from_secs(100));
        assert_eq!(late.wake_ups.len(), soon.wake_ups.len());
        assert_eq!(late.allocations, soon.allocations);
    }
}

#[test]
fn a_cell_at_rest_allocates_nothing() {
    for (config, ue) in cells() {
        let mut cell = Cell::new(&config, &vec![ue; 100], 1);
        let before = allocations();
        for hour in 0..24 {
            assert_eq!(cell.next_event(), None);
            assert_eq!(cell.poll(Instant::ZERO + Duration::from_secs(3_600) * hour), None);
        }
        assert_eq!(allocations(), before);
    }
}
