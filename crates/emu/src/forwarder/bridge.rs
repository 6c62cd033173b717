//! A bridge between two interfaces of the host: unicast IP packets go through the model, all other
//! frames bypass it. The bridge learns at which interface each station is (IEEE 802.1Q 8.7).

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::process;
use std::str::FromStr;

use airpath_base::{Direction, Duration, FlowId, Instant};

use super::{Forwarder, direction_from};
use crate::clock::monotonic;
use crate::device::port::ReadFrame;
use crate::run::report::{BesideReport, GatewayReport, Station};
use crate::wire::flows::Key;
use crate::wire::frame::{Content, ETHERNET, Frame, Mac, addresses};
use crate::wire::packet::{Layout, OFFLOAD_BYTES, Offload, reopen_checksum, shift};
use crate::{EmuError, Port};

/// Most reads from one device before departures are handled again.
const BATCH: usize = 16;

/// Index of the device on the UEs' side; that of the servers' side is 0.
const INSIDE: usize = 1;

/// The UE of devices that nothing assigns to another one.
const FIRST_UE: usize = 1;

/// Most stations that are remembered. Frames to other stations pass, as all frames do at the beginning.
const MOST_STATIONS: usize = 4096;

/// Interval between the frames that show whether both interfaces reach the same network.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// EtherType for local experiments (IEEE 802, 9.2.4).
const PROBE_TYPE: u16 = 0x88b5;

/// Text with which a probe begins, after its header.
const PROBE: &[u8] = b"airpath gateway: do both interfaces reach one network?";

/// Bytes of a probe: at least the smallest frame.
const PROBE_BYTES: usize = ETHERNET + PROBE.len() + 16;

/// What identifies a device: the address of its station, or an IP address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Attached {
    Mac(Mac),
    Address(IpAddr),
}

impl FromStr for Attached {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let address = text.parse().map(Self::Address);
        let attached = address.or_else(|_| text.parse().map(Self::Mac))?;
        match attached {
            Self::Mac(mac) if mac.is_group() => Err(()),
            Self::Address(address) if address.is_multicast() || address.is_unspecified() => Err(()),
            attached => Ok(attached),
        }
    }
}

/// Decides where each frame goes.
pub(crate) struct Bridge {
    /// UEs' ends by device.
    assigned: BTreeMap<Attached, usize>,
    /// The device at which each station was last seen.
    stations: BTreeMap<Mac, usize>,
    beside: [BesideReport; 2],
    probe: [u8; PROBE_BYTES],
    probed_at: Option<Instant>,
}

/// Where a frame goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Destination {
    /// Through the model, with the UE's end and the length of the packet.
    Model(usize, usize),
    /// To the other interface, at once.
    Beside,
    Nowhere,
}

impl Bridge {
    /// A bridge that assigns devices to UEs' ends.
    pub(crate) fn new(assigned: BTreeMap<Attached, usize>) -> Self {
        let mut probe = [0; PROBE_BYTES];
        // From a locally administered address to all stations (IEEE 802, 8.4).
        probe[..6].fill(0xff);
        let id = (u128::from(monotonic()) << 64 | u128::from(process::id())).to_be_bytes();
        probe[6..12].copy_from_slice(&[2, b'a', b'i', b'r', id[6], id[7]]);
        probe[12..ETHERNET].copy_from_slice(&PROBE_TYPE.to_be_bytes());
        probe[ETHERNET..][..PROBE.len()].copy_from_slice(PROBE);
        probe[ETHERNET + PROBE.len()..].copy_from_slice(&id);
        let (stations, beside) = (BTreeMap::new(), [BesideReport::default(); 2]);
        Self { assigned, stations, beside, probe, probed_at: None }
    }

    /// Decides about a frame from a device.
    ///
    /// # Errors
    ///
    /// If the bridge sent the frame itself.
    fn sort(&mut self, device: usize, read: &ReadFrame<'_>) -> Result<Destination, EmuError> {
        let Some(frame) = Frame::of(read.bytes) else { return Ok(Destination::Nowhere) };
        if read.bytes.get(..PROBE_BYTES) == Some(&self.probe) {
            return Err(EmuError::Loop);
        }
        if read.tagged || frame.content == Content::Tagged {
            self.beside[direction_from(device)].tagged += 1;
            return Ok(Destination::Nowhere);
        }
        if frame.content == Content::Link {
            return Ok(Destination::Nowhere);
        }
        self.learn(frame.source, device);
        let beside = &mut self.beside[direction_from(device)];
        if read.for_host {
            beside.for_host += 1;
            return Ok(Destination::Nowhere);
        }
        if self.stations.get(&frame.destination) == Some(&device) {
            beside.local += 1;
            return Ok(Destination::Nowhere);
        }
        match frame.content {
            Content::Packet(length) => {
                let packet = &read.bytes[ETHERNET..ETHERNET + length];
                let end = self.end(device, &frame, packet);
                return Ok(Destination::Model(end, length));
            }
            Content::Group => beside.group += 1,
            _ => beside.control += 1,
        }
        beside.bytes += read.bytes.len() as u64;
        Ok(Destination::Beside)
    }

    /// Counts frames that were lost because the kernel had joined packets.
    pub(super) fn note_joined(&mut self, direction: Direction, frames: u64) {
        self.beside[direction].joined += frames;
    }

    fn learn(&mut self, station: Mac, device: usize) {
        if station.is_group() {
            return;
        }
        if let Some(at) = self.stations.get_mut(&station) {
            *at = device;
        } else if self.stations.len() < MOST_STATIONS {
            self.stations.insert(station, device);
        }
    }

    /// The UE's end of a packet.
    fn end(&self, device: usize, frame: &Frame, packet: &[u8]) -> usize {
        if self.assigned.is_empty() {
            return FIRST_UE;
        }
        let up = device == INSIDE;
        let mac = if up { frame.source } else { frame.destination };
        let by_mac = || self.assigned.get(&Attached::Mac(mac));
        let by_address = || {
            let (source, destination) = addresses(packet, &Layout::of(packet)?);
            self.assigned.get(&Attached::Address(if up { source } else { destination }))
        };
        // An address is the narrower of the two: a router has one station and many addresses.
        by_address().or_else(by_mac).copied().unwrap_or(FIRST_UE)
    }

    /// The report of what the bridge did; `name` returns the name of an end.
    pub(crate) fn report(&self, name: impl Fn(usize) -> String) -> GatewayReport {
        let beside = Direction::BOTH.map(|it| (it.name(), self.beside[it])).into();
        let inside = self.stations.iter().filter(|&(_, &device)| device == INSIDE);
        let stations = inside.map(|(mac, _)| {
            let end = self.assigned.get(&Attached::Mac(*mac)).copied().unwrap_or(FIRST_UE);
            Station { mac: mac.to_string(), ue: name(end) }
        });
        GatewayReport { beside, stations: stations.collect() }
    }
}

impl Forwarder {
    /// Reads frames, and passes them to the model or to the other interface.
    ///
    /// # Errors
    ///
    /// If both interfaces reach the same network.
    pub(super) fn admit_frames(
        &mut self,
        device: usize,
        buffer: &mut [u8],
    ) -> Result<(), EmuError> {
        for _ in 0..BATCH {
            let Port::Frames(port) = &mut self.devices[device].port else { return Ok(()) };
            let read = match port.read(buffer) {
                Ok(Some(read)) => read,
                Ok(None) => return Ok(()),
                Err(_) => {
                    self.devices[device].gone = Some(self.clock.now());
                    return Ok(());
                }
            };
            let Some(bridge) = &mut self.bridge else { return Ok(()) };
            match bridge.sort(device, &read)? {
                Destination::Model(end, length) => {
                    let now = self.clock.now();
                    // Earlier departures come first, as in `admit`.
                    if self.network.next_event().is_some_and(|due| due <= now) {
                        self.deliver(now);
                    }
                    let from = OFFLOAD_BYTES + ETHERNET;
                    let said = read.said;
                    self.take_frame(now, (device, end), said, &mut buffer[..from + length]);
                }
                Destination::Beside => {
                    let other = &self.devices[usize::from(device == 0)].port;
                    let refused = matches!(other, Port::Frames(port) if port.relay(&read).is_err());
                    bridge.beside[direction_from(device)].refused += u64::from(refused);
                }
                Destination::Nowhere => {}
            }
        }
        Ok(())
    }

    /// Passes the packet of a frame to the model. `read` is the frame behind its `virtio_net_hdr`.
    fn take_frame(
        &mut self,
        now: Instant,
        (device, end): (usize, usize),
        said: [u8; OFFLOAD_BYTES],
        read: &mut [u8],
    ) {
        let (link, packet) = read[OFFLOAD_BYTES..].split_at_mut(ETHERNET);
        let mut offload = Offload::read(shift(said, -(ETHERNET as i16)));
        if offload.checksum.is_none() && offload.segment_bytes.is_none() {
            // Segments of a card can be joined again when they leave.
            offload = Offload::single(reopen_checksum(packet));
        }
        match self.flow_of_device(device, end, packet) {
            Some(flow) => {
                let from = if device == INSIDE { end } else { 0 };
                self.take(now, from, flow, offload, packet, link);
            }
            None => self.counts[direction_from(device)].ignored += 1,
        }
    }

    fn flow_of_device(&mut self, device: usize, end: usize, packet: &[u8]) -> Option<FlowId> {
        let (layout, up) = (Layout::of(packet)?, device == INSIDE);
        let key = Key::of_device(packet, &layout, end, up);
        Some(self.number(key, |ue| key.name_of_device(ue, packet, &layout, up)))
    }

    /// Sends a probe from each interface at intervals. A probe that arrives at the other one shows a
    /// loop.
    pub(super) fn probe_if_due(&mut self, now: Instant) {
        let Some(bridge) = &mut self.bridge else { return };
        let waited = bridge.probed_at.map(|at| now.saturating_since(at));
        if waited.is_some_and(|waited| waited < PROBE_INTERVAL) {
            return;
        }
        bridge.probed_at = Some(now);
        let probe = ReadFrame::of(&bridge.probe);
        for device in &self.devices {
            if let Port::Frames(port) = &device.port {
                // An interface that is down reaches nothing.
                let _ = port.relay(&probe);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use etherparse::PacketBuilder;

    use super::*;

    const PHONE: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const CAMERA: [u8; 6] = [2, 0, 0, 0, 0, 2];
    const SERVER: [u8; 6] = [2, 0, 0, 0, 0, 9];
    const SERVERS: usize = 0;

    /// A datagram between stations; each has the address 10.0.0.N, where N is its last byte.
    fn datagram(from: [u8; 6], to: [u8; 6]) -> Vec<u8> {
        let (source, destination) = ([10, 0, 0, from[5]], [10, 0, 0, to[5]]);
        let builder = PacketBuilder::ethernet2(from, to).ipv4(source, destination, 64);
        let mut frame = Vec::new();
        builder.udp(4000, 5000).write(&mut frame, &[0; 100]).unwrap();
        frame
    }

    fn bridge(assigned: &[(&str, usize)]) -> Bridge {
        Bridge::new(assigned.iter().map(|(text, end)| (text.parse().unwrap(), *end)).collect())
    }

    fn sort(bridge: &mut Bridge, device: usize, frame: &[u8]) -> Destination {
        bridge.sort(device, &ReadFrame::of(frame)).unwrap()
    }

    #[test]
    fn a_device_has_the_ue_that_it_was_assigned() {
        let mut bridge = bridge(&[("02:00:00:00:00:02", 2), ("10.0.0.3", 3)]);
        let third = [2, 0, 0, 0, 0, 3];
        for (station, end) in [(PHONE, 1), (CAMERA, 2), (third, 3)] {
            let up = sort(&mut bridge, INSIDE, &datagram(station, SERVER));
            let down = sort(&mut bridge, SERVERS, &datagram(SERVER, station));
            assert_eq!([up, down], [Destination::Model(end, 128); 2]);
        }
        let report = bridge.report(|end| format!("ue{end}"));
        let stations: Vec<_> = report.stations.iter().map(|one| (&*one.mac, &*one.ue)).collect();
        let expected = [("02:00:00:00:00:01", "ue1"), ("02:00:00:00:00:02", "ue2")];
        assert_eq!(stations[..2], expected);
    }

    #[test]
    fn an_address_takes_precedence_over_the_station_of_its_router() {
        let mut bridge = bridge(&[("02:00:00:00:00:01", 2), ("10.0.0.1", 3)]);
        let frame = datagram(PHONE, SERVER);
        assert_eq!(sort(&mut bridge, INSIDE, &frame), Destination::Model(3, 128));
        let mut routed = frame;
        routed[29] = 77;
        assert_eq!(sort(&mut bridge, INSIDE, &routed), Destination::Model(2, 128));
    }

    #[test]
    fn traffic_of_one_side_and_of_the_host_stays_there() {
        let mut bridge = bridge(&[]);
        let between = datagram(PHONE, CAMERA);
        // The bridge does not know yet where the camera is.
        assert_eq!(sort(&mut bridge, INSIDE, &between), Destination::Model(1, 128));
        sort(&mut bridge, INSIDE, &datagram(CAMERA, SERVER));
        assert_eq!(sort(&mut bridge, INSIDE, &between), Destination::Nowhere);
        // The camera moves to the other side.
        sort(&mut bridge, SERVERS, &datagram(CAMERA, PHONE));
        assert_eq!(sort(&mut bridge, INSIDE, &between), Destination::Model(1, 128));
        let for_host = ReadFrame { for_host: true, ..ReadFrame::of(&between) };
        assert_eq!(bridge.sort(INSIDE, &for_host).unwrap(), Destination::Nowhere);
        let tagged = ReadFrame { tagged: true, ..ReadFrame::of(&between) };
        assert_eq!(bridge.sort(INSIDE, &tagged).unwrap(), Destination::Nowhere);
        let up = bridge.report(|_| String::new()).beside["up"];
        assert_eq!((up.local, up.for_host, up.tagged, up.control), (1, 1, 1, 0));
    }

    #[test]
    fn what_is_no_packet_passes_at_once() {
        let mut bridge = bridge(&[]);
        let mut arp = datagram(PHONE, SERVER);
        arp[12..14].copy_from_slice(&0x0806u16.to_be_bytes());
        assert_eq!(sort(&mut bridge, INSIDE, &arp), Destination::Beside);
        assert_eq!(sort(&mut bridge, INSIDE, &datagram(PHONE, [255; 6])), Destination::Beside);
        assert_eq!(sort(&mut bridge, INSIDE, &arp[..13]), Destination::Nowhere);
        let up = bridge.report(|_| String::new()).beside["up"];
        assert_eq!((up.control, up.group, up.bytes), (1, 1, 2 * 142));
    }

    #[test]
    fn its_own_frame_shows_a_loop() {
        let (mut one, mut other) = (bridge(&[]), bridge(&[]));
        other.probe[PROBE_BYTES - 1] ^= 1;
        let probe = one.probe;
        assert!(matches!(one.sort(SERVERS, &ReadFrame::of(&probe)), Err(EmuError::Loop)));
        // The probe of another gateway, in a row with this one, passes.
        assert_eq!(sort(&mut other, SERVERS, &probe), Destination::Beside);
    }

    #[test]
    fn a_device_is_a_station_or_an_address() {
        let camera = Attached::Mac(Mac(CAMERA));
        assert_eq!("02:00:00:00:00:02".parse(), Ok(camera));
        assert_eq!("192.0.2.7".parse(), Ok(Attached::Address(Ipv4Addr::new(192, 0, 2, 7).into())));
        assert!("2001:db8::7".parse::<Attached>().is_ok());
        for wrong in ["", "phone", "192.0.2.0/24", "01:00:00:00:00:02", "224.0.0.1", "0.0.0.0"] {
            assert!(wrong.parse::<Attached>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn more_stations_than_are_remembered_do_not_fill_the_memory() {
        let mut bridge = bridge(&[]);
        for number in 0..3 * MOST_STATIONS as u32 {
            let [a, b, c, d] = number.to_be_bytes();
            sort(&mut bridge, INSIDE, &datagram([2, 0, a, b, c, d], SERVER));
        }
        assert_eq!(bridge.stations.len(), MOST_STATIONS);
    }
}
