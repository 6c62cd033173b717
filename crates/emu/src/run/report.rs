//! The report of a run, as a JSON document.

use std::collections::BTreeMap;

use airpath_base::Duration;
use airpath_record::Quantiles;
use serde::Serialize;

use crate::observation::lateness::Lateness;
use crate::offload::segments::MOST_SEGMENTS;
use crate::{LARGEST_PACKET, TunnelReport};

/// The report of a whole run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// Elapsed time on the clock in seconds.
    pub elapsed_s: f64,
    /// CLOCK_MONOTONIC at the start of the run, in nanoseconds.
    pub clock_origin_ns: u64,
    /// Counters by direction: `down`, `up`.
    pub directions: BTreeMap<&'static str, DirectionReport>,
    /// GTP-U between gateway and base station by direction, if there was any.
    pub tunnel: Option<BTreeMap<&'static str, TunnelReport>>,
    /// Packets inside when the run ended.
    pub inside: u64,
    /// Flows that were seen.
    pub flows: usize,
    /// Flows whose packets are counted in the row `others`, all or some.
    pub other_flows: u32,
    /// Whether there were more flows than could be distinguished.
    pub more_flows: bool,
    /// Ends whose devices disappeared, and when, in seconds.
    pub gone: Vec<(String, f64)>,
    /// Round trips that are in no flow's distribution, because too many flows had some at the same
    /// time.
    pub missed_rtts: u64,
    /// Links, in order of direction and stage.
    pub links: Vec<LinkReport>,
    /// Frames that bypassed the model, if the run had a gateway.
    pub gateway: Option<GatewayReport>,
    /// Acknowledgement gaps of the scenario's TCP flows, if they ran.
    pub ack_gaps: Vec<AckGaps>,
}

/// Times between acknowledgements that reached a sender.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AckGaps {
    /// The flow.
    pub id: String,
    /// Time from one to the next; null if there were fewer than two.
    pub gap_ms: Option<Quantiles>,
}

/// Counters of one direction. A packet that entered has left, was dropped, or is still inside the
/// network.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DirectionReport {
    /// Packets that entered.
    pub entered: u64,
    /// Bytes of these packets.
    pub entered_bytes: u64,
    /// Packets that left.
    pub left: u64,
    /// Writes to the kernel: fewer than packets if segments were joined.
    pub writes: u64,
    /// Packets that the kernel refused.
    pub refused: u64,
    /// Packets without a destination, which never entered: multicast, unknown addresses.
    pub ignored: u64,
    /// Packets that never entered because there was no room for them or for the segments that they
    /// represented: larger than [`LARGEST_PACKET`](crate::LARGEST_PACKET), or cut into thousands.
    pub oversized: u64,
    /// Size of the largest of these in bytes; 0 if there were none.
    pub largest_bytes: usize,
    /// Packets dropped, by reason.
    pub dropped: BTreeMap<&'static str, u64>,
    /// Packets marked CE.
    pub marked: u64,
    /// Packets dropped before they could be read, because the ring of a packet socket was full.
    pub overrun: u64,
    /// Slots of the cell whose packets were written after the slot's end.
    pub missed_slots: u64,
    /// Lateness of packets; null if none left.
    pub lateness_us: Option<Lateness>,
    /// How long the host that receives this direction's data took until its acknowledgement came
    /// back; null without TCP.
    pub host_us: Option<Lateness>,
}

/// Counters of a stage with a rate.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkReport {
    /// Name of the stage.
    pub id: String,
    /// Packets that left it.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
    /// Bytes that it could have carried.
    pub capacity_bytes: f64,
}

/// Frames of one direction that bypassed the model of a gateway or did not pass it.
#[derive(Clone, Copy, Default, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BesideReport {
    /// Frames of ARP, neighbour discovery, DHCP or a protocol other than IP, which passed at once.
    pub control: u64,
    /// Other multicast and broadcast frames, which passed at once.
    pub group: u64,
    /// Bytes of both, Ethernet headers included.
    pub bytes: u64,
    /// Frames of both that the kernel refused to send.
    pub refused: u64,
    /// Unicast frames for this host, which did not pass.
    pub for_host: u64,
    /// Frames with a VLAN tag, which did not pass.
    pub tagged: u64,
    /// Frames between two stations of one side, which did not pass.
    pub local: u64,
    /// Frames that were lost because the kernel had joined packets in a way that it cannot describe.
    pub joined: u64,
}

/// A station that was seen on the UEs' side.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Station {
    /// MAC address of the station.
    pub mac: String,
    /// UE that the station is behind, unless one of its IP addresses is assigned to another UE.
    pub ue: String,
}

/// Frames that bypassed the model of a gateway, and the stations that it saw.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GatewayReport {
    /// By direction: `down`, `up`.
    pub beside: BTreeMap<&'static str, BesideReport>,
    /// The stations on the UEs' side, at most 4096.
    pub stations: Vec<Station>,
}

impl Report {
    /// What is missing from the run, a sentence each.
    pub(crate) fn partial(&self) -> Vec<String> {
        let oversized = self.directions.iter().filter(|(_, report)| report.oversized > 0);
        let say = |(direction, report): (&&str, &DirectionReport)| {
            let DirectionReport { oversized, largest_bytes, .. } = report;
            let packets = if *oversized == 1 { "packet was" } else { "packets were" };
            format!(
                "{direction}: {oversized} {packets} refused: the largest, or the largest segment, had \
                 {largest_bytes} bytes; emulation supports up to {LARGEST_PACKET}, and {MOST_SEGMENTS} \
                 segments at a time (was an MTU raised inside?)"
            )
        };
        let mut said: Vec<String> = oversized.map(say).collect();
        said.extend(self.gone.iter().map(|(end, at)| {
            format!(
                "the device of `{end}` was gone after {at:.1} s: after that nothing was sent or \
                 received there"
            )
        }));
        for (direction, beside) in self.gateway.iter().flat_map(|gateway| &gateway.beside) {
            if beside.joined > 0 {
                said.push(format!(
                    "{direction}: {} frames are missing: the kernel had joined tunnelled packets on \
                     arrival and could not say how (`ethtool -K` with `gro off` on the interface)",
                    beside.joined
                ));
            }
        }
        if self.missed_rtts > 0 {
            let missed_rtts = self.missed_rtts;
            said.push(format!(
                "{missed_rtts} round trips are missing from the flows' RTT \
                distributions: too many flows had some at the same time"
            ));
        }
        said
    }

    /// Why a run is invalid if its hosts may take at most `bound`; `None` if it is valid.
    pub fn too_slow_a_host(&self, bound: Duration) -> Option<String> {
        let bound = bound.as_nanos() as f64 / 1e3;
        self.directions.iter().find_map(|(direction, report)| {
            let p99 = report.host_us.as_ref()?.p99;
            (p99 > bound).then(|| {
                format!(
                    "{direction}: 99 % of the acknowledgements returned within {p99:.0} us of the \
                     data; the bound is {bound:.0} us"
                )
            })
        })
    }

    /// Why a run is invalid if its packets may be late by at most `bound`; `None` if it is valid.
    pub fn too_late(&self, bound: Duration) -> Option<String> {
        let bound = bound.as_nanos() as f64 / 1e3;
        let left = self.directions.iter().map(|(way, report)| (*way, "left", &report.lateness_us));
        let tunnel = self.tunnel.iter().flatten();
        let sent =
            tunnel.clone().map(|(way, report)| (*way, "left for GTP-U", &report.lateness_us));
        let late: Vec<String> = left
            .chain(sent)
            .filter_map(|(direction, left, lateness)| {
                let p99 = lateness.as_ref()?.p99;
                (p99 > bound).then(|| {
                    format!(
                        "{direction}: 99 % of the packets {left} within {p99:.0} us of their time"
                    )
                })
            })
            .collect();
        let lost: u64 =
            tunnel.map(|(_, one)| one.refused + one.sent.saturating_sub(one.received)).sum();
        if lost > 0 {
            return Some(format!("{lost} packets were lost between core and ran"));
        }
        let refused: u64 = self.directions.values().map(|report| report.refused).sum();
        if refused > 0 {
            return Some(format!("the kernel refused {refused} packets"));
        }
        let overrun: u64 = self.directions.values().map(|report| report.overrun).sum();
        if overrun > 0 {
            return Some(format!("{overrun} packets were dropped before they could be read"));
        }
        (!late.is_empty()).then(|| format!("{}; the bound is {bound:.0} us", late.join(", ")))
    }
}
