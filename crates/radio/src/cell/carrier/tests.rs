use super::super::config::{LteCarrier, LteDuplex, NrCarrier, NrDuplex};
use super::*;
use crate::lte::tdd::Configuration;
use crate::nr::Numerology;

fn nr(pattern: &str, k1: u32, k2: u32) -> Carrier {
    let duplex = NrDuplex::Tdd(pattern.parse().unwrap());
    let mut carrier = NrCarrier::new(Numerology::Khz30, duplex, 51);
    carrier.offsets.k1 = k1;
    carrier.offsets.k2 = k2;
    Carrier::new(&CellConfig::nr(carrier))
}

fn tdd(number: u8) -> Carrier {
    let configuration = Configuration::new(number).unwrap();
    let carrier = LteCarrier::new(LteDuplex::Tdd { configuration, special: 7 }, 100);
    Carrier::new(&CellConfig::lte(carrier))
}

#[test]
fn nr_feedback_goes_out_in_the_next_slot_with_uplink() {
    // Two uplink symbols of the special slot hold PUCCH, but no PUSCH.
    let carrier = nr("DDDSU 10:2:2", 1, 1);
    let delays: Vec<_> =
        (0..4).map(|slot| (carrier.feedback(slot) - carrier.end(slot)).as_nanos()).collect();
    assert_eq!(delays, [1_500_000, 1_000_000, 500_000, 500_000]);
    assert_eq!(carrier.class(Direction::Uplink, 3), None);
    // K_1 = 2: slot 2 misses slot 3, slot 3 misses slot 4.
    let carrier = nr("DDDSU 10:2:2", 2, 1);
    assert_eq!((carrier.feedback(2), carrier.feedback(3)), (carrier.end(4), carrier.end(8)));
}

#[test]
fn nr_uplink_is_granted_in_the_last_slot_that_leaves_k2() {
    let grants =
        |carrier: &Carrier| (0..5).map(|slot| carrier.grants(slot).to_vec()).collect::<Vec<_>>();
    assert_eq!(grants(&nr("DDDSU 10:2:2", 1, 1)), [vec![], vec![], vec![], vec![1], vec![]]);
    assert_eq!(grants(&nr("DDDSU 10:2:2", 1, 3)), [vec![], vec![3], vec![], vec![], vec![]]);
    // Three uplink slots in a row: the special slot grants all of them.
    assert_eq!(grants(&nr("DSUUU 6:6:2", 1, 1)), [vec![], vec![1, 2, 3], vec![], vec![], vec![]]);
    assert_eq!(grants(&nr("DSUUU 6:6:2", 1, 2)), [vec![2], vec![2, 3], vec![], vec![], vec![]]);
}

#[test]
fn lte_tdd_follows_the_tables() {
    // TS 36.213 table 8-2, configuration 1: 1 -> 7, 4 -> 8, 6 -> 12, 9 -> 13
    let carrier = tdd(1);
    let granting: Vec<_> = (0..10).filter(|&slot| !carrier.grants(slot).is_empty()).collect();
    assert_eq!(granting, [1, 4, 6, 9]);
    assert_eq!(
        (carrier.grants(1), carrier.grants(4), carrier.grants(6)),
        (&[6][..], &[4][..], &[6][..])
    );
    assert_eq!(carrier.next_uplink(7), (7, Some(1)));
    // No subframe before the run grants subframe 2.
    assert_eq!(carrier.next_uplink(0), (2, None));
    // Configuration 0: every uplink subframe is granted once, by the last that can.
    let carrier = tdd(0);
    let granted: usize = (0..10).map(|slot| carrier.grants(slot).len()).sum();
    assert_eq!(granted, 6);
    // TS 36.213 table 9.1.2-1: the PHICH of subframe 3 is sent 7 later.
    assert_eq!(carrier.uplink_feedback(3), carrier.start(10));
}

#[test]
fn every_uplink_slot_of_every_pattern_is_granted_once() {
    let patterns = ["DDDSU 10:2:2", "DSUUU 6:4:4", "DDSUU 8:2:4 + DU", "DDDDDDDSUU 6:4:4"];
    let nr = patterns.into_iter().flat_map(|pattern| (0..6).map(move |k2| nr(pattern, 1, k2)));
    for carrier in nr.chain((0..7).map(tdd)) {
        let period = carrier.plans.len() as u64;
        for slot in (period..2 * period).filter(|&n| carrier.class(Direction::Uplink, n).is_some())
        {
            let by =
                (0..slot + 1).filter(|&from| carrier.grants(from).contains(&(slot - from))).count();
            assert_eq!(by, 1, "{carrier:?} {slot}");
            assert!(carrier.next_uplink(slot).1.is_some());
        }
    }
}

#[test]
fn prbs_are_the_fewest_that_hold_the_bytes() {
    let carrier = nr("DDDSU 10:2:2", 1, 1);
    let class = carrier.class(Direction::Downlink, 0).unwrap();
    for bytes in [1, 100, 1_000, 2_000] {
        let prbs = carrier.downlink.prbs_for(class, 10, bytes);
        assert!(u64::from(carrier.downlink.bytes(class, 10, prbs)) >= bytes);
        assert!(prbs == 1 || u64::from(carrier.downlink.bytes(class, 10, prbs - 1)) < bytes);
    }
    assert_eq!(carrier.downlink.prbs_for(class, 10, 1 << 30), 52);
    assert_eq!(carrier.downlink.bytes(class, 10, 0), 0);
}
