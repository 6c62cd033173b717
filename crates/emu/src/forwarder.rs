//! One thread between two TUN devices.

use std::collections::BTreeMap;
use std::os::fd::AsFd;

use airpath_base::{DropReason, Duration, Ecn, FlowId, Histogram, Packet, Payload, Tunnel};
use airpath_path::Path;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::clock::timespec;
use crate::header;
use crate::log::{Log, Point};
use crate::report::{DirectionReport, Lateness, LinkReport, LogReport, Report};
use crate::slab::Slab;
use crate::{Clock, EmuError, Tun};

/// Packets read from one device before departures have their turn again.
const BATCH: usize = 16;

const DIRECTIONS: [&str; 2] = ["down", "up"];

/// How a forwarder works.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Sleeps until this long before a departure, then asks again and again. Waking up took up to
    /// 50 us on the machines that were measured.
    pub spin: Duration,
    /// Packets for which there is room from the start.
    pub slots: u32,
    /// Records of the packet log; 0: none.
    pub log_records: usize,
}

/// Moves packets between two devices, each direction through its path, on the real clock.
///
/// The model decides about logical times: a packet enters when it was read, and is written as
/// soon as possible after its departure. What the forwarder does late does not change what the
/// model does next, but for what the endpoints make of it.
pub struct Forwarder {
    clock: Clock,
    ends: [Tun; 2],
    ways: [Way; 2],
    slab: Slab,
    log: Option<Log>,
    spin: Duration,
}

/// One direction: from the device of the same index to the other one.
struct Way {
    path: Box<dyn Path>,
    lateness: Histogram,
    entered: u64,
    entered_bytes: u64,
    left: u64,
    refused: u64,
    marked: u64,
    dropped: BTreeMap<DropReason, u64>,
}

/// Who wants something.
struct Ready {
    ends: [bool; 2],
    stop: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { spin: Duration::from_micros(60), slots: 8192, log_records: 0 }
    }
}

impl Forwarder {
    /// Between `ends`, the server's first; `paths` lead down from the server and up to it.
    pub fn new(ends: [Tun; 2], paths: [Box<dyn Path>; 2], settings: &Settings) -> Self {
        Self {
            clock: Clock::new(),
            ends,
            ways: paths.map(Way::new),
            slab: Slab::new(settings.slots),
            log: (settings.log_records > 0).then(|| Log::new(settings.log_records)),
            spin: settings.spin,
        }
    }

    /// Forwards for `duration`, or until `stop` can be read or is closed.
    ///
    /// # Errors
    ///
    /// When a device goes away.
    pub fn run(&mut self, stop: &impl AsFd, duration: Duration) -> Result<(), EmuError> {
        let end = self.clock.now() + duration;
        loop {
            self.deliver();
            let now = self.clock.now();
            if now >= end {
                return Ok(());
            }
            let due = self.ways.iter().filter_map(|way| way.path.next_event()).min();
            let pause = due.unwrap_or(end).min(end).saturating_since(now);
            let ready = self.wait(stop, pause.saturating_sub(self.spin))?;
            if ready.stop {
                return Ok(());
            }
            for (direction, _) in ready.ends.iter().enumerate().filter(|(_, ready)| **ready) {
                self.admit(direction)?;
            }
        }
    }

    /// What has happened so far.
    pub fn report(&mut self) -> Report {
        let now = self.clock.now();
        let mut links = Vec::new();
        for way in &mut self.ways {
            way.path.observe(now, &mut |meter| {
                links.push(LinkReport {
                    id: meter.name.clone(),
                    packets: meter.departed.packets,
                    bytes: meter.departed.bytes,
                    capacity_bytes: meter.capacity_bytes,
                });
            });
        }
        Report {
            elapsed_s: now.as_secs_f64(),
            clock_origin_ns: self.clock.origin_nanos(),
            directions: DIRECTIONS.into_iter().zip(self.ways.iter().map(Way::report)).collect(),
            links,
            log: self.log.as_ref().map(|log| {
                let (records, lost) = log.counts();
                LogReport { records, lost }
            }),
        }
    }

    /// The packet log, if one was ordered.
    pub fn log(&self) -> Option<&Log> {
        self.log.as_ref()
    }

    /// Sleeps for `pause`, or until a device has a packet, or `stop` something.
    #[inline]
    fn wait(&self, stop: &impl AsFd, pause: Duration) -> Result<Ready, EmuError> {
        let mut wanted = [
            PollFd::new(&self.ends[0], PollFlags::IN),
            PollFd::new(&self.ends[1], PollFlags::IN),
            PollFd::new(stop, PollFlags::IN),
        ];
        match poll(&mut wanted, Some(&timespec(pause))) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(EmuError::Wait(error.into())),
        }
        let [down, up, stop] = wanted.map(|wanted| !wanted.revents().is_empty());
        Ok(Ready { ends: [down, up], stop })
    }

    /// Takes packets in.
    #[inline]
    fn admit(&mut self, direction: usize) -> Result<(), EmuError> {
        for _ in 0..BATCH {
            let slot = self.slab.vacant();
            let Some(length) = self.ends[direction].read(self.slab.slot(slot))? else {
                break;
            };
            let now = self.clock.now();
            let slot = self.slab.keep(length);
            let bytes = self.slab.packet(slot);
            let size = bytes.len() as u32;
            let packet = Packet {
                flow: FlowId(0),
                size,
                ecn: header::ecn(bytes),
                tunnel: Tunnel::default(),
                payload: Payload::Opaque(u64::from(slot)),
            };
            if let Some(log) = &mut self.log {
                log.push(now, now, direction, Point::In, bytes);
            }
            let way = &mut self.ways[direction];
            way.entered += 1;
            way.entered_bytes += u64::from(size);
            way.path.enqueue(now, packet);
        }
        Ok(())
    }

    /// Lets out what is due.
    #[inline]
    fn deliver(&mut self) {
        let Self { clock, ends, ways, slab, log, .. } = self;
        for (direction, way) in ways.iter_mut().enumerate() {
            while let Some(departure) = way.path.poll(clock.now()) {
                let Payload::Opaque(handle) = departure.packet.payload else {
                    continue;
                };
                let slot = handle as u32;
                let bytes = slab.packet(slot);
                if departure.packet.ecn == Ecn::Ce && header::ecn(bytes) != Ecn::Ce {
                    header::mark_congestion(bytes);
                    way.marked += 1;
                }
                let now = clock.now();
                way.lateness.record(now.saturating_since(departure.at));
                if let Some(log) = log {
                    log.push(now, departure.at, direction, Point::Out, bytes);
                }
                way.left += 1;
                way.refused += u64::from(ends[1 - direction].write(bytes).is_err());
                slab.release(slot);
            }
            while let Some(drop) = way.path.poll_drop() {
                let Payload::Opaque(handle) = drop.packet.payload else {
                    continue;
                };
                let slot = handle as u32;
                if let Some(log) = log {
                    let point = Point::Dropped(drop.reason);
                    log.push(clock.now(), drop.at, direction, point, slab.packet(slot));
                }
                *way.dropped.entry(drop.reason).or_default() += 1;
                slab.release(slot);
            }
        }
        debug_assert_eq!(
            slab.occupied() as u64,
            ways.iter().map(|way| way.path.load().packets).sum::<u64>(),
            "what is in the slab is inside the paths"
        );
    }
}

impl Way {
    fn new(path: Box<dyn Path>) -> Self {
        Self {
            path,
            lateness: Histogram::new(),
            entered: 0,
            entered_bytes: 0,
            left: 0,
            refused: 0,
            marked: 0,
            dropped: BTreeMap::new(),
        }
    }

    fn report(&self) -> DirectionReport {
        DirectionReport {
            entered: self.entered,
            entered_bytes: self.entered_bytes,
            left: self.left,
            refused: self.refused,
            inside: self.path.load().packets,
            dropped: self.dropped.iter().map(|(reason, &n)| (reason.name(), n)).collect(),
            marked: self.marked,
            lateness_us: Lateness::of(&self.lateness),
        }
    }
}
