//! The MAC procedures together: what a UE with one packet goes through until it may send it.

use airpath_base::{Direction, Duration, Instant, Stream};
use airpath_radio::Generation;
use airpath_radio::mac::Occasions;
use airpath_radio::mac::bsr::{
    BsrConfig, BsrFormat, BsrTables, BufferStatus, LogicalChannel, Piggyback, RegularTrigger,
    UplinkResource,
};
use airpath_radio::mac::drx::{Drx, DrxConfig, Transmission, TransmissionKind, UplinkStart};
use airpath_radio::mac::sr::{SchedulingRequest, SrConfig, SrEvent};
use airpath_radio::scheduler::grants::{BufferEstimate, EstimateConfig};

const SLOT: Duration = Duration::from_micros(500);
/// Time from a request to the grant, and from a grant to its PUSCH.
const ANSWER: Duration = Duration::from_millis(2);
const K2: Duration = Duration::from_millis(1);
const CYCLE_MS: u64 = 320;
const PACKET: u64 = 900;

const FORMAT: BsrFormat = BsrFormat {
    generation: Generation::Nr,
    tables: BsrTables { short: &[0, 100, 500, 1000, 2000], long: &[0, 100, 500, 1000, 2000] },
};

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// A UE that is active for 10 ms in each cycle and can send a request every 20 ms.
struct Ue {
    drx: Drx,
    sr: SchedulingRequest,
    bsr: BufferStatus,
    estimate: BufferEstimate,
}

impl Ue {
    fn new(uplink_start: UplinkStart) -> Self {
        let drx = DrxConfig {
            on_duration: ms(10),
            slot_offset: Duration::ZERO,
            inactivity: ms(20),
            long_cycle: ms(CYCLE_MS),
            start_offset: ms(0),
            short_cycle: None,
            harq_rtt_downlink: ms(4),
            harq_rtt_uplink: ms(4),
            retransmission_downlink: ms(4),
            retransmission_uplink: ms(4),
            pdcch: Duration::from_micros(71),
            harq_processes: 16,
            uplink_start,
        };
        let sr = SrConfig {
            occasions: Some(Occasions::in_slots(SLOT, 40, 5)),
            prohibit: None,
            transmissions_max: 64,
            preparation: Duration::ZERO,
            miss_probability: 0.0,
        };
        let channel =
            LogicalChannel { group: 0, priority: 1, delays_request: false, masks_request: false };
        let bsr = BsrConfig {
            regular: RegularTrigger::NewData,
            format: FORMAT,
            channels: vec![channel],
            periodic: None,
            retransmission: ms(80),
            request_delay: Duration::ZERO,
            piggyback: Piggyback::Padding,
        };
        Self {
            drx: Drx::new(&drx),
            sr: SchedulingRequest::new(&sr, Stream::new(1, "sr")),
            bsr: BufferStatus::new(&bsr),
            estimate: BufferEstimate::new(
                EstimateConfig { request_grant: 102, ..EstimateConfig::default() },
                FORMAT,
            ),
        }
    }

    /// Handles a packet that arrives at `now`. Returns when its last byte is sent.
    fn send(&mut self, now: Instant) -> Instant {
        let now = self.drx.uplink_start(now);
        self.bsr.on_available(now, 0, PACKET);
        assert!(self.bsr.wants_request(now, UplinkResource::None));
        self.sr.trigger(now);
        let at = self.sr.next_event().unwrap();
        assert!(matches!(self.sr.poll(at), Some(SrEvent::Transmitted { received: true, .. })));
        self.drx.on_scheduling_request(at, self.sr.is_sent_and_pending());
        self.estimate.on_request(at);
        // Two grants: one for the request, which carries a report, and one for the data that the
        // report announces.
        let first = self.transmit(at + ANSWER);
        assert_eq!(self.bsr.available(), PACKET - 100);
        let last = self.transmit(first + ANSWER);
        assert_eq!(self.bsr.available(), 0);
        assert_eq!(self.estimate.bytes(), 0);
        last
    }

    /// Handles a grant at `now`; returns the time of its PUSCH.
    fn transmit(&mut self, now: Instant) -> Instant {
        assert!(self.drx.is_active(now), "nobody listens at {now:?}");
        let bytes = self.estimate.wanted(now) as u32;
        self.estimate.on_grant(now, bytes);
        let sent = now + K2;
        let transmission = Transmission {
            direction: Direction::Uplink,
            kind: TransmissionKind::New,
            process: 0,
            harq_rtt_starts: sent + SLOT,
        };
        self.drx.on_transmission(now, &transmission);
        self.bsr.on_grant(now);
        let waiting = self.bsr.available();
        let plan = self.bsr.plan(sent, bytes, waiting);
        let room = u64::from(bytes - plan.map_or(0, |plan| plan.bytes));
        self.bsr.on_available(sent, 0, waiting - room.min(waiting));
        match plan.map(|plan| self.bsr.assemble(sent, plan)) {
            Some(report) => {
                self.sr.on_pdu(sent);
                self.drx.on_scheduling_request(sent, self.sr.is_sent_and_pending());
                self.estimate.on_report(sent, bytes, sent, &report);
            }
            None => self.estimate.on_transport_block(sent, bytes),
        }
        sent
    }
}

/// Delays of packets that arrive at an idle UE in every half millisecond of a cycle.
fn delays(uplink_start: UplinkStart) -> Vec<Duration> {
    let arrivals = (0..2 * CYCLE_MS).map(|slot| Instant::ZERO + ms(CYCLE_MS) + SLOT * slot);
    arrivals.map(|now| Ue::new(uplink_start).send(now) - now).collect()
}

fn mean_ms(delays: &[Duration]) -> f64 {
    delays.iter().map(|delay| delay.as_millis_f64()).sum::<f64>() / delays.len() as f64
}

#[test]
fn a_sleeping_ue_waits_for_its_request_not_for_its_cycle() {
    // TS 38.321 5.4.4, 5.7: half an SR period (less half the grid), then two grants.
    let fixed = 2.0 * (2.0 + 1.0);
    let delays = delays(UplinkStart::AtOnce);
    assert!((mean_ms(&delays) - (10.0 - 0.25 + fixed)).abs() < 1e-9, "{}", mean_ms(&delays));
    assert_eq!(delays.iter().max(), Some(&(ms(20 + 6) - SLOT)));
}

#[test]
fn made_to_wait_for_the_on_duration_it_waits_half_a_cycle() {
    for uplink_start in [UplinkStart::InOnDuration, UplinkStart::InActiveTime] {
        let delays = delays(uplink_start);
        // The first SR occasion is 2.5 ms after the on-duration begins. A packet that arrives in
        // the 7.5 ms after that does not wait for the on-duration, and is requested at the next
        // occasion.
        let to_first = |t: f64| {
            if t <= 2.5 {
                2.5 - t
            } else if t < 10.0 {
                22.5 - t
            } else {
                322.5 - t
            }
        };
        let waits: f64 = (0..640).map(|slot| to_first(f64::from(slot) / 2.0)).sum();
        let expected = waits / 640.0 + 6.0;
        assert!((mean_ms(&delays) - expected).abs() < 1e-9, "{} {expected}", mean_ms(&delays));
    }
}
