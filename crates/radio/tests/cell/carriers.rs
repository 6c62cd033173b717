//! Carrier aggregation: what several carriers carry, on which a block is sent again, and when its
//! feedback arrives.

use airpath_base::{Direction, Instant};
use airpath_radio::cell::*;
use airpath_radio::harq::Decoding;
use airpath_radio::lte::tdd;
use airpath_radio::scheduler::RateCap;

use crate::common::*;

const UE: UeIndex = UeIndex(0);

/// A cell with a secondary carrier, and a UE that uses both, where HARQ never fails.
fn two(primary: CellConfig, secondary: CellConfig) -> (CellConfig, UeConfig) {
    let mut ue = UeConfig::plain(&primary.access);
    bler(&mut ue, 0.0, 0.0);
    unlimited(&mut ue);
    let mut own = UeConfig::plain_carrier(&secondary.access);
    own.sends = true;
    for radio in [&mut own.downlink, &mut own.uplink] {
        radio.harq.decoding = Decoding::Fixed { initial: 0.0, retransmission: 0.0 };
    }
    ue.secondary.push(own);
    let mut cell = primary;
    cell.secondary.push(secondary);
    assert_eq!((cell.check(), ue.check(&cell)), (Ok(()), Ok(())));
    (cell, ue)
}

fn unlimited(ue: &mut UeConfig) {
    ue.downlink.bearer.buffer.bytes = None;
    ue.uplink.bearer.buffer.bytes = None;
}

fn lte(prbs: u32) -> CellConfig {
    CellConfig::lte(LteCarrier::new(LteDuplex::Fdd, prbs))
}

fn lte_tdd(number: u8) -> CellConfig {
    let configuration = tdd::Configuration::new(number).unwrap();
    CellConfig::lte(LteCarrier::new(LteDuplex::Tdd { configuration, special: 7 }, 100))
}

fn n78() -> CellConfig {
    CellConfig::nr(NrCarrier::n78_100_mhz())
}

fn nr_fdd() -> CellConfig {
    CellConfig::nr(NrCarrier::fdd_20_mhz())
}

/// What a cell did with `n` packets of 1,000 bytes that came at once: packets with their times in
/// ms, and the blocks.
struct Outcome {
    delivered: Vec<(u64, f64)>,
    blocks: Vec<(Instant, BlockEvent)>,
}

fn send((cell, ue): &(CellConfig, UeConfig), direction: Direction, n: u64) -> Outcome {
    let mut cell = Cell::new(cell, core::slice::from_ref(ue), 3);
    cell.keep_log();
    (0..n).for_each(|number| cell.enqueue(at(0), direction, UE, &packet(number, 1_000)));
    let departures = run(&mut cell, at(60_000_000));
    assert_eq!(cell.load().packets, 0, "{:?}", cell.stalled());
    let delivered = departures.iter().map(|left| {
        assert_eq!((left.direction, left.ue), (direction, UE));
        (opaque(&left.packet), left.at.as_secs_f64() * 1e3)
    });
    let delivered = delivered.collect();
    let events = std::iter::from_fn(|| cell.poll_event());
    let blocks = events.filter_map(|event| match event.kind {
        RadioEventKind::Block(block) if block.direction == direction => Some((event.at, block)),
        _ => None,
    });
    Outcome { delivered, blocks: blocks.collect() }
}

/// Rate in Mbit/s of the packets after the first tenth.
fn rate(outcome: &Outcome) -> f64 {
    let first = outcome.delivered.len() / 10;
    let (begin, end) = (outcome.delivered[first].1, outcome.delivered.last().unwrap().1);
    (outcome.delivered.len() - first) as f64 * 8e3 / (end - begin) / 1e3
}

/// The cell and its UE with the primary carrier alone.
fn alone((cell, ue): &(CellConfig, UeConfig)) -> (CellConfig, UeConfig) {
    let cell = CellConfig { secondary: Vec::new(), ..cell.clone() };
    (cell, UeConfig { secondary: Vec::new(), ..ue.clone() })
}

/// An NR cell with 40 resource blocks up. The short buffer status report of NR ends at 150 kB, as
/// LTE's do (TS 38.321 table 6.1.3.1-1): a UE with more than that per round trip is not granted all
/// of two wide carriers.
fn narrow(mut carrier: NrCarrier) -> CellConfig {
    carrier.uplink.prbs = 40;
    CellConfig::nr(carrier)
}

#[test]
fn two_carriers_carry_the_sum() {
    let (wide, tdd) = (narrow(NrCarrier::fdd_20_mhz()), narrow(NrCarrier::n78_100_mhz()));
    let pairs = [
        (DOWN, lte(100), lte(50)),
        (DOWN, lte(50), lte_tdd(2)),
        (UP, lte(25), lte(15)),
        (UP, lte(25), lte_tdd(2)),
        (DOWN, lte_tdd(1), lte_tdd(1)),
        (UP, lte_tdd(1), lte_tdd(1)),
        (DOWN, n78(), n78()),
        (DOWN, nr_fdd(), n78()),
        (DOWN, n78(), nr_fdd()),
        (UP, tdd.clone(), tdd.clone()),
        (UP, wide.clone(), tdd.clone()),
        (UP, tdd, wide),
    ];
    for (direction, primary, secondary) in pairs {
        let both = two(primary, secondary.clone());
        let other = two(secondary.clone(), secondary);
        let first = rate(&send(&alone(&both), direction, 20_000));
        let second = rate(&send(&alone(&other), direction, 20_000));
        let outcome = send(&both, direction, 20_000);
        let sum = rate(&outcome);
        assert!(
            (sum / (first + second) - 1.0).abs() < 0.03,
            "{direction:?} {sum} of {first} and {second} Mbit/s: {:?}",
            both.0
        );
        assert!(outcome.delivered.iter().map(|it| it.0).eq(0..20_000), "in order");
    }
}

#[test]
fn a_block_is_sent_again_on_its_carrier() {
    for direction in [DOWN, UP] {
        let (cell, mut ue) = two(lte(50), lte(25));
        bler(&mut ue, 0.3, 0.3);
        let own = &mut ue.secondary[0];
        for radio in [&mut own.downlink, &mut own.uplink] {
            radio.harq.decoding = Decoding::Fixed { initial: 0.3, retransmission: 0.3 };
        }
        let outcome = send(&(cell, ue), direction, 2_000);
        let mut last = std::collections::BTreeMap::new();
        let mut again = [0, 0];
        for (sent, block) in outcome.blocks {
            let before = last.insert((block.carrier, block.process), (sent, block));
            if block.transmission > 1 {
                let (_, before) = before.expect("a block that failed");
                assert_eq!(
                    (before.bytes, before.mcs, before.transmission + 1, before.decoded),
                    (block.bytes, block.mcs, block.transmission, false)
                );
                again[usize::from(block.carrier)] += 1;
            }
        }
        assert!(again.iter().all(|&again| again > 20), "{again:?}");
    }
}

#[test]
fn a_carrier_without_uplink_carries_none() {
    let (cell, mut ue) = two(n78(), n78());
    ue.secondary[0].sends = false;
    let both = (cell, ue);
    let on_second = |direction| {
        let blocks = send(&both, direction, 1_000).blocks;
        blocks.iter().filter(|(_, block)| block.carrier == 1).count()
    };
    assert!(on_second(DOWN) > 0);
    assert_eq!(on_second(UP), 0);
}

#[test]
fn feedback_waits_for_uplink_of_the_primary_carrier() {
    // A block fails once. It is sent again after its feedback, in the next slot that can answer.
    let again = |primary: CellConfig, secondary: CellConfig| {
        let (cell, mut ue) = two(primary, secondary);
        bler(&mut ue, 1.0, 0.0);
        let harq = &mut ue.secondary[0].downlink.harq;
        harq.decoding = Decoding::Fixed { initial: 1.0, retransmission: 0.0 };
        let outcome = send(&(cell, ue), DOWN, 1_000);
        let mut second = outcome.blocks.into_iter().filter(|(_, block)| block.carrier == 1);
        let (first, block) = second.next().expect("a block");
        let retransmitted = |(_, other): &(Instant, BlockEvent)| {
            other.process == block.process && other.transmission == 2
        };
        let (again, _) = second.find(retransmitted).expect("it is sent again");
        (first, (again - first).as_millis_f64())
    };
    // LTE: n + 4, and 3 ms in the base station, whatever the secondary carrier's duplex.
    let (_, fdd) = again(lte(100), lte(50));
    assert!((fdd - 8.0).abs() < 1e-9, "{fdd}");
    // NR: DDDSU has uplink in slots 3 and 4 of 5; the FDD carrier alone could answer at once.
    let (first, tdd) = again(n78(), nr_fdd());
    let (_, alone) = again(nr_fdd(), nr_fdd());
    assert!(tdd >= alone, "{tdd} and {alone} from {first:?}");
}

#[test]
fn a_rate_cap_holds_for_all_carriers_together() {
    // Alone a carrier has 73 Mbit/s down, and 18 up.
    for (direction, mbps, prbs) in [(DOWN, 100, 50), (UP, 25, 25)] {
        let (cell, mut ue) = two(lte(prbs), lte(prbs));
        let cap = RateCap {
            rate: airpath_base::Rate::from_bps(mbps * 1_000_000).unwrap(),
            bucket_bytes: 50_000,
        };
        (ue.downlink.cap, ue.uplink.cap) = (Some(cap), Some(cap));
        let outcome = send(&(cell, ue), direction, 5_000);
        let (got, cap) = (rate(&outcome), mbps as f64);
        assert!((0.93 * cap..=1.01 * cap).contains(&got), "{direction:?} {got}");
        let on = |carrier| outcome.blocks.iter().any(|(_, block)| block.carrier == carrier);
        assert!(on(0) && on(1));
    }
}

#[test]
fn what_one_carrier_repeats_delays_what_the_other_brought() {
    let wait = |bler: f64| {
        let (cell, mut ue) = two(lte(100), lte(100));
        um(&mut ue);
        unlimited(&mut ue);
        let harq = &mut ue.secondary[0].downlink.harq;
        harq.decoding = Decoding::Fixed { initial: bler, retransmission: 0.0 };
        let outcome = send(&(cell, ue), DOWN, 4_000);
        assert!(outcome.delivered.iter().map(|it| it.0).eq(0..4_000), "in order");
        let times = outcome.delivered.windows(2).map(|two| two[1].1 - two[0].1);
        times.fold(0.0, f64::max)
    };
    // A retransmission comes 8 ms later.
    let (good, bad) = (wait(0.0), wait(0.2));
    assert!(good < 3.0 && (7.0..20.0).contains(&bad), "{good} and {bad} ms");
}

#[test]
fn configurations_that_cannot_work_are_refused() {
    let with = |primary: CellConfig, secondary: Vec<CellConfig>| {
        CellConfig { secondary, ..primary }.check()
    };
    let most = CellConfigError::Carriers { there: 8, most: 7 };
    assert_eq!(with(lte(25), vec![lte(25); 7]), Ok(()));
    assert_eq!(with(lte(25), vec![lte(25); 8]), Err(most));
    assert_eq!(with(lte(25), vec![n78()]), Err(CellConfigError::CarrierAccess));
    let umts = || CellConfig::umts(UmtsCarrier::hspa());
    assert_eq!(with(umts(), vec![umts()]), Err(CellConfigError::CarrierAccess));
    assert_eq!(with(lte(25), vec![lte_tdd(2)]), Ok(()));
    assert_eq!(with(lte_tdd(2), vec![lte_tdd(2)]), Ok(()));
    assert_eq!(with(lte_tdd(2), vec![lte_tdd(1)]), Err(CellConfigError::CarrierSubframes));
    assert_eq!(with(lte_tdd(2), vec![lte(25)]), Err(CellConfigError::CarrierSubframes));
    let nested = CellConfig { secondary: vec![lte(25)], ..lte(25) };
    let most = CellConfigError::Carriers { there: 1, most: 0 };
    assert_eq!(with(lte(25), vec![nested]), Err(most));
    let (cell, mut ue) = two(n78(), n78());
    let mut many = ue.secondary[0].clone();
    many.downlink.harq.processes = 240;
    ue.secondary = vec![many];
    assert_eq!(ue.check(&cell), Err(CellConfigError::Processes(256)));
    ue.secondary = vec![ue.secondary[0].clone(); 2];
    assert_eq!(ue.check(&cell), Err(CellConfigError::Carriers { there: 2, most: 1 }));
}
