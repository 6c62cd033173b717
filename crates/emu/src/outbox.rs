//! What leaves for one end at the same time: segments of one connection that follow each other go
//! to the kernel as one, as a card with receive offload would hand them up.

use std::io::IoSlice;

use airpath_base::{FlowId, Histogram, Instant};

use crate::packet::Offload;
use crate::segments::Train;
use crate::slab::Slab;
use crate::{Clock, Port};

/// Connections of which segments are held together at a time.
const TRAINS: usize = 8;

/// Segments of a train at the most.
pub(crate) const CARS: usize = 64;

/// Packets that are to be written now.
#[derive(Debug)]
pub(crate) struct Outbox {
    /// Bytes of a train, IP header included; 0: every packet alone.
    limit: usize,
    held: Vec<Held>,
    /// Lists to be used again.
    spare: Vec<Vec<Car>>,
}

#[derive(Debug)]
struct Held {
    flow: FlowId,
    train: Train,
    cars: Vec<Car>,
}

/// A packet and its logical time of departure.
#[derive(Clone, Copy, Debug)]
struct Car {
    slot: u32,
    at: Instant,
}

/// Where packets are written to, and what is noted then.
pub(crate) struct Writing<'a> {
    pub(crate) tun: &'a Port,
    pub(crate) clock: &'a Clock,
    pub(crate) slab: &'a mut Slab,
    pub(crate) written: &'a mut Written,
}

/// What was written in one direction.
#[derive(Debug)]
pub(crate) struct Written {
    /// Time of writing less logical time.
    pub(crate) lateness: Histogram,
    pub(crate) packets: u64,
    /// Writes to the device.
    pub(crate) writes: u64,
    /// Packets that the kernel would not take.
    pub(crate) refused: u64,
}

impl Outbox {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit: limit.min(65_535), held: Vec::new(), spare: Vec::new() }
    }

    /// A packet leaves; it is written now or with [`flush`](Self::flush), and keeps its slot.
    #[inline]
    pub(crate) fn push(&mut self, flow: FlowId, slot: u32, at: Instant, to: &mut Writing<'_>) {
        let car = Car { slot, at };
        let offload = Offload::single(to.slab.checksum(slot));
        let place = self.held.iter().position(|held| held.flow == flow);
        if let Some(place) = place {
            let held = &mut self.held[place];
            let (first, packet) = (to.slab.bytes(held.cars[0].slot), to.slab.bytes(slot));
            if held.cars.len() < CARS && held.train.add(first, packet, offload, self.limit) {
                held.cars.push(car);
                return;
            }
            self.release(place, to);
        }
        let train = Train::begin(to.slab.bytes(slot), offload).filter(|_| self.limit > 0);
        let Some(train) = train else {
            to.write(&[car], offload);
            return;
        };
        if self.held.len() == TRAINS {
            self.release(0, to);
        }
        let mut cars = self.spare.pop().unwrap_or_default();
        cars.push(car);
        self.held.push(Held { flow, train, cars });
    }

    /// Writes what is held.
    #[inline]
    pub(crate) fn flush(&mut self, to: &mut Writing<'_>) {
        while !self.held.is_empty() {
            self.release(0, to);
        }
    }

    fn release(&mut self, place: usize, to: &mut Writing<'_>) {
        let Held { train, mut cars, .. } = self.held.remove(place);
        let last = cars[cars.len() - 1].slot;
        let last_flags = train.flags(to.slab.bytes(last));
        let offload = Offload::single(to.slab.checksum(cars[0].slot));
        let offload = train.finish(to.slab.packet(cars[0].slot), last_flags, offload);
        to.write_train(&cars, train.header_bytes(), offload);
        cars.clear();
        self.spare.push(cars);
    }
}

impl Writing<'_> {
    fn write(&mut self, cars: &[Car], offload: Offload) {
        self.write_train(cars, 0, offload);
    }

    /// Writes the first packet, and of the others what comes after their headers.
    fn write_train(&mut self, cars: &[Car], header_bytes: usize, offload: Offload) {
        let said = offload.bytes();
        let mut parts = [IoSlice::new(&[]); CARS + 1];
        parts[0] = IoSlice::new(&said);
        for (index, car) in cars.iter().enumerate() {
            let bytes = self.slab.bytes(car.slot);
            let from = if index == 0 { 0 } else { header_bytes };
            parts[index + 1] = IoSlice::new(&bytes[from..]);
        }
        let now = self.clock.now();
        let result = self.tun.write(&parts[..=cars.len()]);
        let written = &mut *self.written;
        written.writes += 1;
        written.packets += cars.len() as u64;
        written.refused += if result.is_err() { cars.len() as u64 } else { 0 };
        for car in cars {
            written.lateness.record(now.saturating_since(car.at));
        }
    }
}

impl Written {
    pub(crate) fn new() -> Self {
        Self { lateness: Histogram::new(), packets: 0, writes: 0, refused: 0 }
    }
}
