//! Causes that break packets, by their size or by how they arrive.

use super::{Plant, insert, only, rare_loss, scaled, without_loss};
use crate::bases::{ALL, Known, WIRE};
use crate::draft::{Draft, Table, number, quoted, stage};

/// A device whose offload has this fault.
fn offload(fault: &str) -> Table {
    stage("offload").with("fault", quoted(fault))
}

/// Puts the path of the data into a VPN.
pub(crate) fn into_vpn(draft: &mut Draft, enter: Table) {
    draft.there.insert(0, enter.with("end", "\"enter\""));
    draft.there.push(stage("vpn").with("end", "\"leave\""));
}

pub(crate) const PACKETS: &[Plant] = &[
    Plant::new("offload", ALL, 3, |random, _, _, _| insert(random, true, offload("checksum"))),
    // Next to the sender, or in the uplink behind the slots of a radio: segments arrive there
    // together.
    Plant::new("offload", ALL, 3, |_, severity, _, _| {
        let window = number(scaled(severity, 0.01, 1.0));
        Box::new(move |draft| {
            draft.there.insert(0, offload("joined").with("join_ms", &window));
        })
    }),
    // ICMP is filtered, and no host is configured with the VPN's MTU.
    Plant::new("vpn", ALL, 3, |random, _, well, _| {
        let outer = quoted(random.one_of(&["ipv4", "ipv6"]));
        let bytes = random.one_of(&[1280, 1380, 1420, 1440]);
        into_vpn(well, stage("vpn").with("outer_ip", outer).with("mtu_bytes", 9000));
        Box::new(move |draft| draft.there[0].set("mtu_bytes", bytes))
    }),
    // A hop on the way has room for the packets, but not for the VPN's headers.
    Plant::new("vpn", ALL, 3, |random, _, well, _| {
        into_vpn(well, stage("vpn"));
        let bytes = random.between(1500.0, 1559.0).round();
        Box::new(move |draft| {
            draft.there.insert(1, stage("mtu").with("mtu_bytes", bytes));
        })
    }),
    // The path loses so few packets that it hardly matters, but each packet has two or three
    // fragments.
    Plant::new("vpn", ALL, 1, |random, severity, well, known| {
        let loss = rare_loss(random, severity, well, known, (0.3, 2.0));
        let bytes = random.between(576.0, 800.0).round();
        into_vpn(well, stage("vpn").with("outer_mtu_bytes", 9000));
        well.there.insert(1, loss);
        Box::new(move |draft| draft.there[0].set("outer_mtu_bytes", bytes))
    })
    .brings(without_loss),
    // Small datagrams that fill the link only with the VPN's headers.
    Plant::new("vpn", WIRE, 1, |random, severity, well, known| {
        let small = small_datagrams(known, severity, random.between(80.0, 160.0));
        only(well, small.with("direction", quoted(well.direction())));
        Box::new(|draft| into_vpn(draft, stage("vpn")))
    }),
];

/// A stream of packets with this many bytes that fills up to nine tenths of the link.
fn small_datagrams(known: &Known, severity: f64, bytes: f64) -> Table {
    let rate = known.rate_mbps * (0.6 + 0.3 * severity);
    Table::of(&[("kind", "\"udp\"")])
        .with("rate_mbps", number(rate))
        .with("packet_bytes", bytes.round())
}
