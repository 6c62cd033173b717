//! Tests that operations on several SDUs at once have the same result as on one after the other.

use proptest::prelude::*;

use super::*;

/// An operation on a bearer.
#[derive(Clone, Copy, Debug)]
enum Step {
    Packets {
        count: usize,
        size: u32,
    },
    Block {
        room: u32,
    },
    /// One of the blocks in transit arrives, or is lost.
    Arrives {
        place: usize,
    },
    Lost {
        place: usize,
    },
    Status,
    Wait {
        ms: u64,
    },
    Reestablish,
}

fn step() -> impl Strategy<Value = Step> {
    let place = 0usize..4;
    prop_oneof![
        4 => (1usize..12, 40u32..1_500).prop_map(|(count, size)| Step::Packets { count, size }),
        6 => (20u32..9_000).prop_map(|room| Step::Block { room }),
        // Most arrive in order.
        8 => Just(Step::Arrives { place: 0 }),
        2 => place.clone().prop_map(|place| Step::Arrives { place }),
        1 => place.prop_map(|place| Step::Lost { place }),
        3 => Just(Step::Status),
        3 => (1u64..30).prop_map(|ms| Step::Wait { ms }),
        1 => Just(Step::Reestablish),
    ]
}

impl Script {
    /// Performs a step; packets enter and blocks arrive all at once, or one by one.
    fn step(&mut self, step: Step, whole: bool, under_way: &mut Vec<TransportBlock>) {
        match step {
            Step::Packets { count, size } if whole => {
                for _ in 0..count {
                    let packet = self.next_packet(FlowId(0), size, Ecn::NotEct);
                    self.one_way.prepare(self.now, &packet);
                }
                self.one_way.admit(|_| true);
            }
            Step::Packets { count, size } => self.packets(&vec![size; count]),
            Step::Block { room } => under_way.push(self.block(room)),
            Step::Arrives { place } if place < under_way.len() => {
                let block = under_way.remove(place);
                if whole {
                    return self.arrives(&block);
                }
                for pdu in &block.pdus {
                    let delivered = &mut self.delivered;
                    let deliver = &mut |at, packet: &Packet| delivered.push(arrival(at, *packet));
                    self.one_way.on_pdu(self.now, pdu, deliver);
                }
            }
            Step::Lost { place } if place < under_way.len() => {
                let block = under_way.remove(place);
                self.is_lost(&block);
            }
            Step::Status => {
                if let Some(status) = self.status() {
                    self.one_way.on_status(self.now, &status);
                }
            }
            Step::Wait { ms } => {
                let now = (self.now - Instant::ZERO).as_nanos() / 1_000_000;
                self.at(now + ms);
            }
            Step::Reestablish => {
                under_way.clear();
                self.reestablish(Forwarding::Buffer);
            }
            Step::Arrives { .. } | Step::Lost { .. } => {}
        }
    }

    /// Everything that is visible from outside.
    fn seen(&self) -> impl PartialEq + core::fmt::Debug {
        let one_way = &self.one_way;
        let sojourn = one_way.sojourn();
        let histogram = sojourn.histogram.as_ref().and_then(|all| all.quantile(0.5));
        (
            self.delivered.clone(),
            (one_way.load(), one_way.queued(), one_way.buffered_bytes(), one_way.is_ready()),
            (one_way.next_timer(), one_way.status_bytes(self.now)),
            (sojourn.delivered, sojourn.sum, histogram),
        )
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn runs_do_what_one_by_one_does(
        steps in proptest::collection::vec(step(), 0..120),
        poll_pdu in proptest::option::of(1u32..12),
        limit in proptest::option::of(1u32..40),
    ) {
        let arq = ArqConfig { poll_pdu, ..ARQ };
        let buffer = BufferConfig { packets: limit, ..UNLIMITED };
        let new = || {
            let rlc = nr_am(NrAmSn::Bits12, arq);
            (Script::with(OneWayConfig { rlc, pdcp: PDCP, buffer }), Vec::new())
        };
        let ((mut one, mut way), (mut other, mut other_way)) = (new(), new());
        for step in steps {
            one.step(step, true, &mut way);
            other.step(step, false, &mut other_way);
            prop_assert_eq!(one.seen(), other.seen(), "after {:?}", step);
            prop_assert_eq!(one.drops(), other.drops());
        }
    }
}
