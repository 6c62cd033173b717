//! RLC and PDCP under random blocks, losses, reordering, timers and limits.

use std::collections::BTreeMap;

use airpath_base::{
    Direction, Drop, Duration, Ecn, FlowId, Instant, Packet, Payload, Stream, Tunnel,
};
use airpath_queue::Load;
use airpath_radio::bearer::*;
use airpath_radio::buffer::*;
use airpath_radio::pdcp::*;
use airpath_radio::rlc::*;
use proptest::prelude::*;

fn millis(range: core::ops::Range<u64>) -> impl Strategy<Value = Duration> {
    range.prop_map(Duration::from_millis)
}

fn arq() -> impl Strategy<Value = ArqConfig> {
    (
        millis(5..80),
        proptest::option::of(1u32..64),
        proptest::option::of(1_000u64..100_000),
        millis(0..40),
    )
        .prop_map(|(t_poll_retransmit, poll_pdu, poll_bytes, t_status_prohibit)| ArqConfig {
            t_poll_retransmit,
            poll_pdu,
            poll_bytes,
            t_status_prohibit,
            max_retx_threshold: u32::MAX,
        })
}

fn acknowledged() -> impl Strategy<Value = RlcConfig> {
    let nr = (any::<bool>(), millis(0..60), arq()).prop_map(|(long, t_reassembly, arq)| {
        let sn = if long { NrAmSn::Bits18 } else { NrAmSn::Bits12 };
        RlcConfig::Nr {
            mode: NrMode::Am { sn, t_reassembly, arq },
            release: Release::InOrder { t_reordering: None },
        }
    });
    let lte = (millis(0..60), arq())
        .prop_map(|(t_reordering, arq)| RlcConfig::Lte(LteMode::Am { t_reordering, arq }));
    let pdu = prop_oneof![
        // Small enough to fit the blocks of every radio.
        (16u32..28).prop_map(|bytes| UmtsPdu::Fixed { bytes }),
        (16u32..1_504).prop_map(|most| UmtsPdu::Flexible { most }),
    ];
    let umts =
        (pdu, 8u32..2_048, millis(0..60), arq()).prop_map(|(pdu, window, t_reordering, arq)| {
            RlcConfig::Umts(UmtsAm { pdu, mac_header_bytes: 3, window, t_reordering, arq })
        });
    prop_oneof![nr, lte, umts]
}

fn unacknowledged() -> impl Strategy<Value = RlcConfig> {
    let nr = (any::<bool>(), millis(0..60), proptest::option::of(millis(0..100))).prop_map(
        |(long, t_reassembly, t_reordering)| {
            let sn = if long { NrUmSn::Bits12 } else { NrUmSn::Bits6 };
            RlcConfig::Nr {
                mode: NrMode::Um { sn, t_reassembly },
                // Infinity would hold packets behind a lost one for ever.
                release: Release::InOrder {
                    t_reordering: Some(t_reordering.unwrap_or(Duration::from_secs(1))),
                },
            }
        },
    );
    let lte = (any::<bool>(), millis(0..60)).prop_map(|(long, t_reordering)| {
        let sn = if long { LteUmSn::Bits10 } else { LteUmSn::Bits5 };
        RlcConfig::Lte(LteMode::Um { sn, t_reordering })
    });
    prop_oneof![nr, lte]
}

fn unlimited() -> BufferConfig {
    BufferConfig {
        packets: None,
        bytes: None,
        discipline: Discipline::DropTail,
        ecn: EcnConfig::default(),
    }
}

fn limited() -> impl Strategy<Value = BufferConfig> {
    let codel = (1u64..10, 5u64..60).prop_map(|(target, interval)| CoDelConfig {
        target: Duration::from_millis(target),
        interval: Duration::from_millis(interval),
    });
    let isolation = prop_oneof![
        Just(Isolation::Perfect),
        (1u32..5).prop_map(|queues| Isolation::Hashed { queues })
    ];
    let discipline = prop_oneof![
        Just(Discipline::DropTail),
        codel.clone().prop_map(Discipline::CoDel),
        (codel, 100u32..3_000, isolation).prop_map(|(codel, quantum, isolation)| {
            Discipline::FqCoDel { codel, quantum, isolation }
        }),
    ];
    let codel_ecn = prop_oneof![Just(EcnCapable::Dropped), Just(EcnCapable::Marked)];
    let ecn = (codel_ecn, proptest::option::of(millis(0..5)))
        .prop_map(|(codel, l4s_step)| EcnConfig { codel, l4s_step });
    (proptest::option::of(1u32..60), proptest::option::of(1_500u64..60_000), discipline, ecn)
        .prop_map(|(packets, bytes, discipline, ecn)| BufferConfig {
            packets,
            bytes,
            discipline,
            ecn,
        })
}

fn one_way(
    rlc: impl Strategy<Value = RlcConfig>,
    buffer: impl Strategy<Value = BufferConfig>,
    discard: impl Strategy<Value = Option<Duration>>,
) -> impl Strategy<Value = OneWayConfig> {
    (rlc, buffer, discard, 0u32..4, any::<bool>()).prop_map(
        |(rlc, buffer, discard, header_bytes, report)| OneWayConfig {
            rlc,
            pdcp: PdcpConfig {
                header_bytes,
                discard,
                status_report: if report {
                    StatusReport::Required
                } else {
                    StatusReport::NotRequired
                },
            },
            buffer,
        },
    )
}

/// The behaviour of MAC and radio.
#[derive(Clone, Debug)]
struct Radio {
    seed: u64,
    /// Probability that HARQ gives up on a block.
    loss: f64,
    /// Most slots that HARQ takes.
    delay: u64,
    /// Largest size of a block.
    room: u64,
    /// Probability that a slot has a block.
    busy: f64,
    /// Probability of a handover in a slot.
    handover: f64,
}

fn radio(loss: core::ops::Range<f64>, handover: f64) -> impl Strategy<Value = Radio> {
    let room = prop_oneof![20u64..200, 100u64..3_000, 2_000u64..20_000];
    (any::<u64>(), loss, 1u64..12, room, 0.2..1.0).prop_map(
        move |(seed, loss, delay, room, busy)| Radio { seed, loss, delay, room, busy, handover },
    )
}

struct Flight {
    arrives: u64,
    direction: Direction,
    lost: bool,
    block: TransportBlock,
}

#[derive(PartialEq, Debug, Default)]
struct Tally {
    entered: Load,
    delivered: Vec<Packet>,
    dropped: Vec<Drop>,
}

impl Tally {
    fn check(&self, one_way: &OneWay) {
        let gone = self.delivered.iter().chain(self.dropped.iter().map(|drop| &drop.packet));
        let total = gone.fold(one_way.load(), |sum, packet| Load {
            packets: sum.packets + 1,
            bytes: sum.bytes + u64::from(packet.size),
        });
        assert_eq!(total, self.entered, "conservation");
    }
}

const SLOT: Duration = Duration::from_millis(1);
const BUSY_SLOTS: u64 = 300;

/// Runs packets in both directions, and checks that the result is the same without fast paths.
fn run(down: &OneWayConfig, up: &OneWayConfig, radio: &Radio) -> [Tally; 2] {
    let tallies = run_once(down, up, radio);
    #[cfg(debug_assertions)]
    assert_eq!(airpath_base::reference(|| run_once(down, up, radio)), tallies);
    tallies
}

/// Runs packets in both directions for some slots, then until all is done; checks conservation and
/// progress in every slot.
fn run_once(down: &OneWayConfig, up: &OneWayConfig, radio: &Radio) -> [Tally; 2] {
    let mut bearer = Bearer::new(down, up, 3);
    let mut stream = Stream::new(radio.seed, "test");
    let mut tallies = [Tally::default(), Tally::default()];
    let mut flights: Vec<Flight> = Vec::new();
    let mut slot = 0;
    let mut id = 0;
    while slot < BUSY_SLOTS || bearer.down.load().packets + bearer.up.load().packets > 0 {
        slot += 1;
        // Blocks of a few bytes, half of them lost, take long to report every gap.
        assert!(slot < 4_000_000, "no end: {:?} {:?}", bearer.down.load(), bearer.up.load());
        let now = Instant::ZERO + SLOT * slot;
        let busy = slot < BUSY_SLOTS;
        bearer.on_timer(now, &mut |direction, at, packet| {
            assert!(at <= now);
            tallies[direction as usize].delivered.push(*packet);
        });
        assert!(bearer.next_timer().is_none_or(|at| at > now), "a timer that does not end");
        // In order of arrival: HARQ processes overtake each other.
        let (arrived, rest) = flights.into_iter().partition(|flight| flight.arrives <= slot);
        flights = rest;
        for Flight { direction, lost, block, .. } in arrived {
            if lost {
                bearer.on_loss(direction, now, &block);
            } else {
                let heap = &mut tallies[direction as usize].delivered;
                bearer.on_block(direction, now, &block, &mut |_, packet| heap.push(*packet));
            }
        }
        if busy && stream.chance(radio.handover) {
            flights.clear();
            let forwarding =
                if stream.chance(0.8) { Forwarding::Buffer } else { Forwarding::Nothing };
            bearer.reestablish(now, forwarding, &mut |direction, _, packet| {
                tallies[direction as usize].delivered.push(*packet);
            });
        }
        for direction in [Direction::Downlink, Direction::Uplink] {
            let tally = &mut tallies[direction as usize];
            let arrivals = if busy && stream.chance(0.3) { stream.bits() % 8 } else { 0 };
            for _ in 0..arrivals {
                let packet = random_packet(&mut stream, id);
                id += 1;
                tally.entered.add(&packet);
                bearer.direction(direction).enqueue(now, &packet);
            }
            if stream.chance(radio.busy) {
                let room = 12 + (stream.bits() % radio.room) as u32;
                let mut block = TransportBlock::new();
                let used = bearer.fill(direction, now, room, &mut block);
                assert!(used <= room && used == block.bytes());
                assert_eq!(used == 0, block.is_empty());
                if used > 0 {
                    let arrives = slot + 1 + stream.bits() % radio.delay;
                    let lost = stream.chance(radio.loss);
                    flights.push(Flight { arrives, direction, lost, block });
                }
            }
            let one_way = bearer.direction(direction);
            tally.dropped.extend(core::iter::from_fn(|| one_way.poll_drop()));
            tally.check(one_way);
            assert!(one_way.next_timer().is_none_or(|at| at >= now), "a timer in the past");
            // No stall: something will happen to the data inside.
            let waits = one_way.load().packets > 0;
            let moves = one_way.is_ready()
                || one_way.next_timer().is_some()
                || one_way.status_bytes(now).is_some()
                || flights.iter().any(|flight| flight.direction == direction)
                || flights.iter().any(|flight| flight.block.status() != &Status::default());
            assert!(!waits || moves, "slot {slot}: {direction:?} stalls: {one_way:?}");
        }
    }
    tallies
}

fn random_packet(stream: &mut Stream, id: u64) -> Packet {
    let ecn = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1][(stream.bits() % 3) as usize];
    let size = 40 + (stream.bits() % 1461) as u32;
    let flow = FlowId((stream.bits() % 5) as u32);
    let (tunnel, payload) = (Tunnel::default(), Payload::Opaque(id));
    Packet { flow, size, ecn, tunnel, journey: None, payload }
}

fn ids(packets: &[Packet]) -> Vec<u64> {
    let id = |packet: &Packet| match packet.payload {
        Payload::Opaque(id) => id,
        _ => unreachable!("only opaque packets are sent"),
    };
    packets.iter().map(id).collect()
}

fn is_increasing(ids: &[u64]) -> bool {
    ids.windows(2).all(|pair| pair[0] < pair[1])
}

/// Any way to release packets, for UM too.
fn any_release() -> impl Strategy<Value = RlcConfig> {
    let release = prop_oneof![
        Just(Release::OutOfOrder),
        millis(0..60)
            .prop_map(|t_reordering| Release::InOrder { t_reordering: Some(t_reordering) }),
    ];
    (prop_oneof![acknowledged(), unacknowledged()], release).prop_map(|(rlc, release)| match rlc {
        RlcConfig::Nr { mode, .. } => RlcConfig::Nr { mode, release },
        lte => lte,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn am_delivers_everything_once_and_in_order(
        down in one_way(acknowledged(), Just(unlimited()), Just(None)),
        up in one_way(acknowledged(), Just(unlimited()), Just(None)),
        radio in radio(0.0..0.6, 0.0),
    ) {
        for tally in run(&down, &up, &radio) {
            prop_assert!(tally.dropped.is_empty());
            prop_assert_eq!(tally.delivered.len() as u64, tally.entered.packets);
            prop_assert!(is_increasing(&ids(&tally.delivered)));
        }
    }

    #[test]
    fn um_delivers_at_most_once_and_in_order(
        down in one_way(unacknowledged(), Just(unlimited()), Just(None)),
        up in one_way(unacknowledged(), Just(unlimited()), Just(None)),
        radio in radio(0.0..0.9, 0.0),
    ) {
        for tally in run(&down, &up, &radio) {
            prop_assert!(is_increasing(&ids(&tally.delivered)));
        }
    }

    #[test]
    fn um_loses_nothing_that_harq_delivers_in_time(
        down in one_way(unacknowledged(), Just(unlimited()), Just(None)),
        up in one_way(unacknowledged(), Just(unlimited()), Just(None)),
        radio in radio(0.0..0.9, 0.0),
    ) {
        // Without loss, and with a delay that is the same for all, nothing is out of order.
        let radio = Radio { loss: 0.0, delay: 1, ..radio };
        for tally in run(&down, &up, &radio) {
            prop_assert_eq!(tally.delivered.len() as u64, tally.entered.packets);
        }
    }

    #[test]
    fn am_survives_handovers_that_forward(
        down in one_way(acknowledged(), Just(unlimited()), Just(None)),
        up in one_way(acknowledged(), Just(unlimited()), Just(None)),
        radio in radio(0.0..0.4, 0.01),
    ) {
        for tally in run(&down, &up, &radio) {
            // A handover that forwards nothing drops packets, and nothing else does.
            prop_assert!(is_increasing(&ids(&tally.delivered)));
        }
    }

    #[test]
    fn any_discipline_conserves_and_keeps_the_order_of_a_flow(
        down in one_way(
            prop_oneof![acknowledged(), unacknowledged()],
            limited(),
            proptest::option::of(millis(1..60)),
        ),
        up in one_way(
            prop_oneof![acknowledged(), unacknowledged()],
            limited(),
            proptest::option::of(millis(1..60)),
        ),
        radio in radio(0.0..0.5, 0.005),
    ) {
        for tally in run(&down, &up, &radio) {
            let mut flows: BTreeMap<FlowId, Vec<Packet>> = BTreeMap::new();
            for packet in &tally.delivered {
                flows.entry(packet.flow).or_default().push(*packet);
            }
            for packets in flows.values() {
                prop_assert!(is_increasing(&ids(packets)));
            }
        }
    }

    #[test]
    fn any_release_delivers_at_most_once(
        down in one_way(any_release(), limited(), proptest::option::of(millis(1..60))),
        up in one_way(any_release(), limited(), proptest::option::of(millis(1..60))),
        radio in radio(0.0..0.5, 0.005),
    ) {
        for tally in run(&down, &up, &radio) {
            let mut ids = ids(&tally.delivered);
            ids.sort_unstable();
            prop_assert!(is_increasing(&ids));
        }
    }
}

/// The reason for a timer may be gone before it expires; it must not then expire late for data that
/// came since.
#[test]
fn timers_that_passed_unused_do_not_end_for_what_comes_later() {
    let ms = |millis| Instant::ZERO + Duration::from_millis(millis);
    let packet = Packet {
        flow: FlowId(0),
        size: 1_000,
        ecn: Ecn::NotEct,
        tunnel: Tunnel::default(),
        journey: None,
        payload: Payload::Opaque(0),
    };
    let arq = ArqConfig {
        t_poll_retransmit: Duration::from_millis(45),
        poll_pdu: None,
        poll_bytes: None,
        t_status_prohibit: Duration::from_millis(10),
        max_retx_threshold: 32,
    };
    let one_way = OneWayConfig {
        rlc: RlcConfig::Lte(LteMode::Am { t_reordering: Duration::from_millis(50), arq }),
        pdcp: PdcpConfig {
            header_bytes: 2,
            discard: Some(Duration::from_millis(20)),
            status_report: StatusReport::Required,
        },
        buffer: BufferConfig {
            packets: None,
            bytes: None,
            discipline: Discipline::DropTail,
            ecn: EcnConfig::default(),
        },
    };
    let mut bearer = Bearer::new(&one_way, &one_way, 0);
    let carry = |bearer: &mut Bearer, now| {
        for direction in [Direction::Downlink, Direction::Uplink] {
            let mut block = TransportBlock::new();
            bearer.fill(direction, now, 4_000, &mut block);
            bearer.on_block(direction, now, &block, &mut |_, _| {});
        }
    };
    bearer.down.enqueue(ms(0), &packet);
    // Data with a poll, and its STATUS: discardTimer and t-StatusProhibit no longer matter.
    carry(&mut bearer, ms(1));
    assert_eq!(bearer.next_timer(), None);
    bearer.down.enqueue(ms(100), &packet);
    // TS 36.323 5.4
    assert_eq!(bearer.next_timer(), Some(ms(120)));
    let mut block = TransportBlock::new();
    bearer.fill(Direction::Downlink, ms(101), 4_000, &mut block);
    bearer.on_block(Direction::Downlink, ms(102), &block, &mut |_, _| {});
    // t-PollRetransmit
    assert_eq!(bearer.next_timer(), Some(ms(146)));
    assert_eq!(bearer.up.status_bytes(ms(102)), None);
    assert!(bearer.down.status_bytes(ms(102)).is_some());
}
