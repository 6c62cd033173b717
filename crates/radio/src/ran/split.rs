//! A split bearer: one PDCP entity over an RLC entity in each of two cells (TS 37.340 4.2.2).
//!
//! Each leg is the UE's bearer in a cell, with its own buffer, RLC, HARQ and procedures. What passes
//! through it is a PDCP PDU, whose payload is the COUNT; the packet itself stays here. A packet that
//! a leg drops has a COUNT already, so the receiver waits for it until t-Reordering expires (TS
//! 38.323 5.2.2.2).

use std::collections::VecDeque;

use airpath_base::{
    Direction, Drop, DropReason, Duration, Instant, Journeys, Packet, Part, Payload, Site,
};
use airpath_queue::Load;

use super::config::{Leg, SplitConfig, SplitPolicy};
use crate::buffer::{BufferConfig, Sdus, Sojourn, Waiting};
use crate::cell::UeConfig;
use crate::pdcp::{Cause, PdcpOrder, PdcpReceiver};

/// The PDCP entities of one UE, downlink and uplink.
#[derive(Debug)]
pub(super) struct Split {
    pub(super) config: SplitConfig,
    directions: [OneWaySplit; 2],
}

/// One direction.
#[derive(Debug)]
struct OneWaySplit {
    /// Packets that have a COUNT and were neither delivered nor dropped.
    sdus: Sdus,
    receiver: PdcpReceiver,
    legs: [LegMeter; 2],
    /// Between the base stations: downlink on the way to the secondary leg, uplink from there.
    between: VecDeque<(Instant, Packet)>,
    /// What the legs' buffers hold at most, if there is flow control.
    limits: Option<[Limit; 2]>,
    journeys: Option<(Journeys, Site)>,
}

/// What a leg's buffer holds at most.
#[derive(Clone, Copy, Debug)]
struct Limit {
    packets: u64,
    bytes: u64,
}

impl Limit {
    fn of(buffer: &BufferConfig) -> Self {
        let (packets, bytes) = (buffer.packets.map(u64::from), buffer.bytes);
        Self { packets: packets.unwrap_or(u64::MAX), bytes: bytes.unwrap_or(u64::MAX) }
    }

    /// Whether a packet fits behind this load.
    fn admits(&self, mut load: Load, packet: &Packet) -> bool {
        load.add(packet);
        load.packets <= self.packets && load.bytes <= self.bytes
    }
}

/// What the transmitter knows about a leg.
#[derive(Clone, Copy, Debug, Default)]
struct LegMeter {
    /// Bytes given to the leg, and bytes that have left it.
    given: u64,
    left: u64,
    /// Bytes per nanosecond that leave it while something waits; `None`: not measured yet.
    rate: Option<f64>,
    /// The beginning of the current measurement, how much had left by then, and whether something
    /// has waited ever since.
    since: Instant,
    left_then: u64,
    busy: bool,
}

/// How long a leg is measured before its rate is updated: several transmissions and HARQ
/// retransmissions, but less than t-Reordering.
const MEASURED: Duration = Duration::from_millis(20);

impl LegMeter {
    /// Measures the leg, in which `queued` bytes wait.
    fn measure(&mut self, now: Instant, queued: u64) {
        self.busy &= queued > 0;
        let time = now.saturating_since(self.since);
        if time < MEASURED {
            return;
        }
        let rate = (self.left - self.left_then) as f64 / time.as_nanos() as f64;
        self.rate = match self.rate {
            // A leg that was idle for a while could have carried more.
            before if !self.busy => {
                before.map_or((rate > 0.0).then_some(rate), |it| Some(it.max(rate)))
            }
            Some(before) => Some((before + rate) / 2.0),
            None => Some(rate),
        };
        (self.since, self.left_then, self.busy) = (now, self.left, queued > 0);
    }
}

impl Split {
    /// The PDCP entities of a UE with these legs.
    pub(super) fn new(config: &SplitConfig, legs: [&UeConfig; 2]) -> Self {
        let limits = |direction| {
            legs.map(|leg| match direction {
                Direction::Downlink => Limit::of(&leg.downlink.bearer.buffer),
                Direction::Uplink => Limit::of(&leg.uplink.bearer.buffer),
            })
        };
        let directions = Direction::BOTH.map(|direction| OneWaySplit {
            limits: config.flow_control.then(|| limits(direction)),
            sdus: Sdus::new(direction as u32),
            receiver: PdcpReceiver::new(PdcpOrder::Restored(Some(config.t_reordering))),
            legs: [LegMeter::default(); 2],
            between: VecDeque::new(),
            journeys: None,
        });
        Self { config: *config, directions }
    }

    /// From now on accounts for packets with a journey, in two places from `first` on.
    pub(super) fn account(&mut self, journeys: &Journeys, first: Site) {
        for direction in Direction::BOTH {
            let place = Site(first.0 + direction as u32);
            self.directions[direction].journeys = Some((journeys.clone(), place));
        }
    }

    /// Gives a packet its COUNT and one of the legs, in which `queued` waits. Returns the PDU if it
    /// enters the leg at once.
    pub(super) fn send(
        &mut self,
        now: Instant,
        direction: Direction,
        packet: &Packet,
        mut queued: [Load; 2],
    ) -> (Leg, Option<Packet>) {
        let one_way = &mut self.directions[direction];
        if direction == Direction::Downlink {
            let secondary = &mut queued[Leg::Secondary as usize];
            one_way.between.iter().for_each(|(_, pdu)| secondary.add(pdu));
        }
        let leg = self.choose(now, direction, packet, queued.map(|load| load.bytes));
        let one_way = &mut self.directions[direction];
        let at = leg as usize;
        if one_way.limits.is_some_and(|limits| !limits[at].admits(queued[at], packet)) {
            one_way.sdus.drop(now, *packet, DropReason::QueueFull);
            return (leg, None);
        }
        one_way.legs[leg as usize].given += u64::from(packet.size);
        let waiting = Waiting { packet: *packet, arrived: now };
        let count = one_way.sdus.push(&waiting, packet.size);
        // Nothing is retransmitted by PDCP.
        one_way.sdus.confirm(count);
        let pdu = Packet { payload: Payload::Opaque(count), ..*packet };
        let travels = leg == Leg::Secondary && direction == Direction::Downlink;
        if travels && self.config.delay > Duration::ZERO {
            one_way.between.push_back((now + self.config.delay, pdu));
            return (leg, None);
        }
        (leg, Some(pdu))
    }

    /// The leg of a packet (TS 38.323 5.2.1).
    fn choose(
        &mut self,
        now: Instant,
        direction: Direction,
        packet: &Packet,
        queued: [u64; 2],
    ) -> Leg {
        let SplitConfig { primary, policy, threshold, delay, .. } = self.config;
        let OneWaySplit { legs, .. } = &mut self.directions[direction];
        for (leg, &queued) in legs.iter_mut().zip(&queued) {
            leg.measure(now, queued);
        }
        if direction == Direction::Uplink
            && threshold.is_none_or(|least| queued.iter().sum::<u64>() < least)
        {
            return primary;
        }
        match policy {
            SplitPolicy::ShortestWait => {
                let known = legs.iter().filter_map(|leg| leg.rate).reduce(f64::max);
                let wait = |leg: Leg| {
                    let waiting = queued[leg as usize];
                    let rate = legs[leg as usize].rate.or(known).unwrap_or(1.0);
                    let travels = if leg == Leg::Secondary { delay } else { Duration::ZERO };
                    // Nothing waits in an empty leg, however slow it was.
                    let bytes = if waiting > 0 { waiting + u64::from(packet.size) } else { 0 };
                    travels.as_nanos() as f64 + bytes as f64 / rate.max(f64::MIN_POSITIVE)
                };
                let other = primary.other();
                if wait(other) < wait(primary) { other } else { primary }
            }
            SplitPolicy::Fixed { secondary } => {
                let given = |leg: Leg| legs[leg as usize].given as f64;
                let all = given(Leg::Master) + given(Leg::Secondary) + f64::from(packet.size);
                match given(Leg::Secondary) + f64::from(packet.size) <= secondary * all {
                    true => Leg::Secondary,
                    false => Leg::Master,
                }
            }
        }
    }

    /// When something is due outside the legs.
    pub(super) fn due(&self) -> Option<Instant> {
        let of = |one_way: &OneWaySplit| {
            let travels = one_way.between.front().map(|&(at, _)| at);
            [travels, one_way.receiver.next_timer()].into_iter().flatten().min()
        };
        self.directions.iter().filter_map(of).min()
    }

    /// When the next PDU reaches the secondary leg.
    pub(super) fn next_arrival(&self) -> Option<Instant> {
        self.directions[Direction::Downlink].between.front().map(|&(at, _)| at)
    }

    /// The next PDU that reaches the secondary leg.
    pub(super) fn take_arrival(&mut self) -> Option<Packet> {
        let OneWaySplit { between, journeys, .. } = &mut self.directions[Direction::Downlink];
        let (at, pdu) = between.pop_front()?;
        if let (Some((journeys, place)), Some(id)) = (journeys, pdu.journey) {
            journeys.until(id, at, Part::Propagation, *place);
        }
        Some(pdu)
    }

    /// When the receivers have something to do.
    pub(super) fn receivers_due(&self) -> Option<Instant> {
        let timers = self.directions.iter().filter_map(|one_way| one_way.receiver.next_timer());
        let arrival = self.directions[Direction::Uplink].between.front().map(|&(at, _)| at);
        timers.chain(arrival).min()
    }

    /// Does what the receivers have to do at `now`: timers come before arrivals.
    pub(super) fn do_receivers(
        &mut self,
        now: Instant,
        deliver: &mut impl FnMut(Direction, Instant, &Packet),
    ) {
        for direction in Direction::BOTH {
            let one_way = &mut self.directions[direction];
            if one_way.receiver.next_timer().is_some_and(|at| at <= now) {
                one_way.expire(now, &mut |at, packet| deliver(direction, at, packet));
            }
        }
        let uplink = &mut self.directions[Direction::Uplink];
        while let Some(&(at, pdu)) = uplink.between.front().filter(|&&(at, _)| at <= now) {
            uplink.between.pop_front();
            if let (Some((journeys, place)), Some(id)) = (&uplink.journeys, pdu.journey) {
                journeys.until(id, at, Part::Propagation, *place);
            }
            uplink.receive(at, &pdu, &mut |at, packet| deliver(Direction::Uplink, at, packet));
        }
    }

    /// A PDU leaves a leg at `now`.
    pub(super) fn on_left(
        &mut self,
        now: Instant,
        direction: Direction,
        leg: Leg,
        pdu: &Packet,
        deliver: &mut impl FnMut(Direction, Instant, &Packet),
    ) {
        let one_way = &mut self.directions[direction];
        one_way.legs[leg as usize].left += u64::from(pdu.size);
        let travels = leg == Leg::Secondary && direction == Direction::Uplink;
        if travels && self.config.delay > Duration::ZERO {
            one_way.between.push_back((now + self.config.delay, *pdu));
            return;
        }
        one_way.receive(now, pdu, &mut |at, packet| deliver(direction, at, packet));
    }

    /// A leg dropped a PDU: the packet is lost.
    pub(super) fn on_drop(&mut self, drop: &Drop) {
        if let Payload::Opaque(count) = drop.packet.payload {
            self.directions[drop.stage as usize].sdus.lose(drop.at, count, drop.reason);
        }
    }

    /// The next packet that was dropped.
    pub(super) fn poll_drop(&mut self) -> Option<Drop> {
        self.directions.iter_mut().find_map(|one_way| one_way.sdus.poll_drop())
    }

    /// Packets outside the legs.
    pub(super) fn load(&self) -> Load {
        let mut load = Load::default();
        for one_way in &self.directions {
            load = load + one_way.sdus.held();
            one_way.between.iter().for_each(|(_, pdu)| load.add(pdu));
        }
        load
    }

    /// Time from arrival to delivery.
    pub(super) const fn sojourn(&self, direction: Direction) -> &Sojourn {
        &self.directions[direction as usize].sdus.sojourn
    }
}

impl OneWaySplit {
    fn receive(&mut self, now: Instant, pdu: &Packet, deliver: &mut impl FnMut(Instant, &Packet)) {
        let Payload::Opaque(count) = pdu.payload else { return };
        let Self { sdus, receiver, journeys, .. } = self;
        sdus.mark(count, pdu.ecn);
        let deliver = &mut reordered(journeys.as_ref(), deliver);
        receiver.receive(now, count, Cause::Reception, sdus, deliver);
    }

    fn expire(&mut self, now: Instant, deliver: &mut impl FnMut(Instant, &Packet)) {
        let Self { sdus, receiver, journeys, .. } = self;
        receiver.on_timer(now, sdus, &mut reordered(journeys.as_ref(), deliver));
    }
}

/// Delivers packets that have waited for others until then.
fn reordered(
    journeys: Option<&(Journeys, Site)>,
    deliver: &mut impl FnMut(Instant, &Packet),
) -> impl FnMut(Instant, &Packet) {
    move |at, packet| {
        if let (Some((journeys, place)), Some(id)) = (journeys, packet.journey) {
            journeys.until(id, at, Part::Reordering, *place);
        }
        deliver(at, packet);
    }
}
