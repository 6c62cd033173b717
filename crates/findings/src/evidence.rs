//! What one run shows of a possible cause, as data; each kind has its sentence here.

use std::fmt;

use airpath_scenario::StageId;

use crate::subject::{Subject, named};
use crate::text::{Bytes, Count, Mbps, Ms, Percent, Seconds, listed};

macro_rules! evidence {
    ($($(#[$doc:meta])* $kind:ident { $($field:ident: $type:ty),* } = $sentence:literal;)*) => {
        /// What one run shows of a possible cause: a sentence's worth each.
        #[derive(Clone, PartialEq, Debug)]
        pub(crate) enum Evidence {
            $($(#[$doc])* $kind { $($field: $type),* },)*
        }

        impl fmt::Display for Evidence {
            fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Self::$kind { $($field),* } => write!(to, $sentence),)*
                }
            }
        }
    };
}

evidence! {
    // The path.
    Lost { stage: StageId, lost: Losses } = "{stage} lost {lost}.";
    Policed { stage: StageId, rate: Mbps, burst: Count, dropped: Losses }
        = "{stage} polices to {rate}, with bursts of at most {burst} bytes, and dropped {dropped}.";
    Batched { stage: StageId, interval: Ms } = "{stage} releases packets only every {interval}.";
    Reordered { stage: StageId } = "{stage} reorders packets.";
    Shaped { stage: StageId, rate: Mbps, busy: Percent }
        = "{stage} limits the rate to {rate}; it was {busy} busy.";
    QueueFull { stage: StageId, holds: Bytes, bdp: Bytes, packets: Count }
        = "The queue of {stage} holds {holds}, and the BDP is {bdp}; the full queue dropped {packets} packets.";
    BufferFull { buffer: Subject, packets: Count, bdp: Bytes }
        = "{buffer} was full and dropped {packets} packets; the BDP is {bdp}.";
    Waited { queue: Subject, p95: Ms } = "One packet in twenty waits {p95} or longer in {queue}.";
    CarriesAcknowledgements { stage: StageId, busy: Percent }
        = "{stage}, which carries acknowledgements, was {busy} busy.";
    Blocked { box_kind: &'static str, stage: StageId, lost: Losses, way: &'static str, why: &'static str }
        = "The {box_kind} {stage} dropped {lost}{way}{why}.";
    InARow { nats: usize } = "It is one of {nats} NATs in a row.";
    Expires { after_s: f64 } = "Its bindings expire after {after_s:.0} s.";
    FarServer { edge: &'static str, round_trip: Ms }
        = "The round trip between the {edge} and the server takes {round_trip}.";
    Proxied {} = "A proxy splits the TCP connection in two.";
    Datagrams { flow: String, rate: Mbps } = "{flow} sends {rate} and does not respond to congestion.";

    // Hosts that forward, and modems.
    Stalled { stage: StageId, rings: &'static str, dropped: Count }
        = "The host {stage} stalls now and then; {rings} dropped {dropped} packets.";
    RingFull { stage: StageId, holds: Count, dropped: Losses }
        = "The receive ring of {stage} holds {holds} packets; it was full and dropped {dropped}.";
    Processor { stage: StageId, each: Ms, per_s: Count }
        = "The processor of {stage} takes {each} per packet, so it forwards at most {per_s} packets per second.";
    SharedProcessor { stage: StageId, each: Ms, per_s: Count }
        = "The processor of {stage} takes {each} per packet, so it forwards at most {per_s} packets per second, \
           both directions combined.";
    Bus { stage: StageId, each: Ms, carries: Count, bytes: f64, per_s: Count }
        = "Each USB transfer at {stage} takes {each} and carries {carries} packets of {bytes} bytes, so the USB bus \
           passes at most {per_s} packets/s.";
    SentThere { per_s: Count }
        = "It received {per_s} packets per second, acknowledgements excluded.";
    RingDropped { dropped: Losses } = "Its ring dropped {dropped}.";
    Moderated { stage: StageId, delay: Ms, rx_usecs: Count }
        = "The network card of {stage} delays an interrupt by {delay} (rx-usecs {rx_usecs}).";
    PerInterrupt { per_s: Count, packets: f64 }
        = "At {per_s} packets per second that is {packets:.1} packets per interrupt.";
    Aggregated { stage: StageId, up_to: Ms }
        = "The driver of {stage} holds a packet back for up to {up_to} to fill a block.";
    PerBlock { per_s: Count, packets: f64 }
        = "At {per_s} packets per second that is {packets:.1} packets per block.";

    // Sizes and offload.
    OuterMtuOf { stage: StageId, mtu: Count } = "Outer packets of {stage} may be at most {mtu} bytes long.";
    OuterMtu { mtu: Count } = "The path outside the VPN carries packets of at most {mtu} bytes, the VPN's headers included.";
    DeviceMtu { mtu: Count } = "The VPN's device accepts packets of at most {mtu} bytes.";
    AddsHeaders { stage: StageId, bytes: u32, packet: Count }
        = "{stage} adds {bytes} bytes to a packet of {packet}.";
    VpnHeaders { bytes: u32, packet: Count } = "The VPN adds {bytes} bytes to a packet of {packet}.";
    VpnAdds { bytes: u32 } = "The VPN adds {bytes} bytes to a packet.";
    Fragmented {} = "Larger packets are fragmented, and a packet is lost if any of its fragments is.";
    Dropped { dropped: Losses } = "The VPN dropped {dropped}.";
    TooLarge { stage: StageId, dropped: Losses, mtu: u32 }
        = "{stage} dropped {dropped}, each larger than {mtu} bytes.";
    WrongChecksums { stage: StageId, lost: Losses, min_bytes: u32 }
        = "{stage} wrote wrong checksums into {lost}, which the receiver discarded (TcpInCsumErrors of nstat); \
           packets of less than {min_bytes} bytes pass.";
    Joined { stage: StageId, within: Ms, mtu: Count, lost: Losses }
        = "{stage} joined segments that arrived within {within} into packets larger than the next hop's MTU of {mtu} \
           bytes. That hop dropped {lost}.";

    // The ends.
    Limited { by: Window, flow: String, share: Percent, bdp: Bytes }
        = "The {by} limited {flow} for {share} of its time; the BDP is {bdp}.";
    ReadsAt { flow: String, rate: Mbps } = "The application of {flow} reads at {rate}.";
    ReadsLate { flow: String, by: Ms } = "The application of {flow} starts to read {by} after data arrives.";
    Writes { flow: String, after: Ms }
        = "The application of {flow} writes the last of its data {after} after it starts.";
    SlowStartEnded { flow: String, segments: u32, reason: &'static str }
        = "Slow start of {flow} ended at {segments} segments ({reason}).";
    SlowStartEndedAt { flow: String, segments: u32, bdp_share: Percent, reason: &'static str }
        = "Slow start of {flow} ended at {segments} segments, {bdp_share} of the BDP ({reason}).";
    KeptSsthresh { flow: String, segments: u32 }
        = "Slow start of {flow} ended at {segments} segments, at an ssthresh that was kept from earlier \
           connections.";
    StillGrowing { flow: String, rounds: f64 }
        = "{flow} completed in {rounds:.0} round trips, while its window was still growing.";
    Ramped { flow: String, second_half: Mbps, mean: Mbps }
        = "{flow} reached {second_half} in its second half and {mean} on average.";
    Short { flow: String, lasted: Seconds, rounds: f64 }
        = "{flow} lasted {lasted}, which is {rounds:.0} round trips.";
    FixedWindow { flow: String } = "{flow} has a fixed window and no congestion control.";
    Controls { controls: Controls } = "Flows that share the path use different congestion control algorithms: \
                                       {controls}.";
    Control { flow: String, control: &'static str } = "{flow} runs {control}.";
    AlsoOf { others: Others } = "The same holds for {others}.";

    // The radio.
    Drx { awake: Percent } = "The UE was awake for {awake} of the time.";
    Requests { sent: Count, usual_ms: u32 }
        = "UEs sent {sent} scheduling requests. These are slower or less reliable than with the usual SR \
           configuration (an SR opportunity every {usual_ms} ms).";
    Unreported { timer: Ms }
        = "The base station grants only what buffer status reports ask for: a UE with more to send than it reported \
           waits for retxBSR-Timer, {timer}.";
    RateCaps {} = "The base station limits UEs to their aggregate maximum bit rates.";
    FailedBlocks { side: String, bler: Percent, lost: u64, pdus: u64 }
        = "{bler} of the transport blocks of {side} failed their first transmission; HARQ gave up on {lost}, and RLC \
           retransmitted {pdus} PDUs.";
    HandoverGap { side: String, packets: u64 } = "In {side}, handovers lost {packets} packets.";
    HarqGap { side: String, blocks: u64 }
        = "In {side}, HARQ gave up on {blocks} transport blocks; RLC UM does not recover their PDUs.";
    LegGap { side: String, packets: u64 }
        = "In {side}, a leg of the split bearer lost {packets} packets that PDCP had numbered.";
    Legs { cells: String, delay: Ms }
        = "The bearer is split over {cells}, {delay} apart: packets that arrive over one leg wait in PDCP for \
           earlier packets on the other leg.";
    BehindAGap { timer: Ms }
        = "Packets behind each gap wait until t-Reordering ({timer}) expires, and are then delivered at once.";
    Idle {} = "An idle UE has to connect before it can send or receive.";
    Moved { cells: usize, interruption: Ms, lost: u64 }
        = "UEs move between {cells} cells; each handover interrupts traffic for {interruption}. Packets lost in \
           handovers: {lost}.";
    OutOfService { cell: String, times: String } = "The cell {cell} was out of service {times}.";
    LinkFailures {} = "UEs declare radio link failure and have to re-establish the connection.";
    LostToLinkFailures { packets: u64 } = "UEs declare radio link failure, which lost {packets} packets.";
    Busy { queue: Subject, busy: Percent, carried: Mbps, capacity: Mbps }
        = "{queue} was {busy} busy: {carried} of {capacity}.";
}

/// The evidence in sentences, each of them once.
pub(crate) fn told(evidence: &[Evidence]) -> String {
    let all: Vec<String> = evidence.iter().map(Evidence::to_string).collect();
    let is_last = |(at, one): &(usize, &String)| !all[at + 1..].contains(*one);
    let once: Vec<&str> =
        all.iter().enumerate().filter(is_last).map(|(_, one)| one.as_str()).collect();
    once.join(" ")
}

/// Packets lost, by flow, most first: `99 packets of download`.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Losses(pub(crate) Vec<(String, u64)>);

impl Losses {
    /// All packets together.
    pub(crate) fn packets(&self) -> u64 {
        self.0.iter().map(|(_, packets)| packets).sum()
    }
}

impl fmt::Display for Losses {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |(flow, packets): &(String, u64)| match packets {
            1 => format!("1 packet of {flow}"),
            _ => format!("{} packets of {flow}", Count(*packets as f64)),
        };
        let (most, rest) = self.0.split_at(self.0.len().min(3));
        let mut said: Vec<String> = most.iter().map(words).collect();
        if !rest.is_empty() {
            let others: u64 = rest.iter().map(|(_, packets)| packets).sum();
            said.push(format!("{} of other flows", Count(others as f64)));
        }
        match said.split_last() {
            Some((last, [])) => to.write_str(last),
            Some((last, others)) => write!(to, "{} and {last}", others.join(", ")),
            None => to.write_str("no packet"),
        }
    }
}

/// What bounds the data in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Window {
    Receiver,
    Sender,
    Both,
    QuicSender,
}

impl fmt::Display for Window {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Receiver => "receiver's window",
            Self::Sender => "send buffer",
            Self::Both => "buffers at both ends",
            Self::QuicSender => "send window",
        })
    }
}

/// Other things of which the same holds.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Others(pub(crate) Vec<Subject>);

impl fmt::Display for Others {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&named(&self.0))
    }
}

/// Each congestion control with the flows that use it, in their order.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Controls(pub(crate) Vec<(&'static str, Vec<String>)>);

impl Controls {
    /// Groups flows by their congestion control.
    pub(crate) fn of(flows: impl Iterator<Item = (&'static str, String)>) -> Self {
        let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
        for (control, flow) in flows {
            match groups.iter_mut().find(|(known, _)| *known == control) {
                Some((_, users)) => users.push(flow),
                None => groups.push((control, vec![flow])),
            }
        }
        Self(groups)
    }
}

impl fmt::Display for Controls {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = self.0.iter().map(|(control, users)| {
            format!(
                "{control} ({} {})",
                if users.len() > 1 { "flows" } else { "flow" },
                listed(users)
            )
        });
        to.write_str(&listed(&said.collect::<Vec<_>>()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_named_once_with_who_runs_them() {
        let flows = [("cubic", "file-0"), ("bbr", "bulk-1"), ("cubic", "bulk-2")];
        let controls =
            Controls::of(flows.map(|(control, flow)| (control, flow.to_owned())).into_iter());
        assert_eq!(controls.to_string(), "cubic (flows file-0 and bulk-2) and bbr (flow bulk-1)");
    }

    #[test]
    fn losses_are_told_for_the_three_flows_that_lost_most() {
        let told = |lost: &[(&str, u64)]| {
            Losses(lost.iter().map(|&(flow, packets)| (flow.to_owned(), packets)).collect())
                .to_string()
        };
        assert_eq!(told(&[]), "no packet");
        assert_eq!(told(&[("a", 1)]), "1 packet of a");
        assert_eq!(told(&[("a", 1200), ("b", 2)]), "1,200 packets of a and 2 packets of b");
        assert_eq!(
            told(&[("a", 9), ("b", 8), ("c", 7), ("d", 3), ("e", 1)]),
            "9 packets of a, 8 packets of b, 7 packets of c and 4 of other flows"
        );
    }
}
