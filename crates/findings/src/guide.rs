//! Generates `docs/reference/causes.md`, which describes each cause. `tests/guide.rs` compares it
//! with the file.

use crate::cause::{Cause, Class};

/// The description of a cause.
struct Entry {
    /// What the cause is.
    what: &'static str,
    /// How it is removed.
    tried: &'static str,
    /// How it becomes visible.
    looks: &'static str,
    /// What to do about it.
    cure: &'static str,
}

/// The page of all causes, as Markdown.
pub fn causes_markdown() -> String {
    let mut page = String::from(HEAD);
    for (class, title, about) in CLASSES {
        page.push_str(&format!("\n## {title}\n\n{about}\n"));
        let mut named = Vec::new();
        for cause in Cause::ALL.iter().filter(|cause| cause.class() == *class) {
            let Entry { what, tried, looks, cure } = entry(*cause);
            // Two causes may share a name: the second entry continues the first.
            if !named.contains(&cause.name()) {
                page.push_str(&format!("\n### {}\n\n", cause.name()));
                named.push(cause.name());
            } else {
                page.push('\n');
            }
            page.push_str(&format!("{what}\n"));
            for (label, text) in
                [("How it is tried", tried), ("What it looks like", looks), ("What to do", cure)]
            {
                if !text.is_empty() {
                    page.push_str(&format!("- **{label}.** {text}\n"));
                }
            }
        }
    }
    page
}

const HEAD: &str = "# Causes

<!-- Generated from crates/findings/src/guide.rs: AIRPATH_BLESS=1 cargo test -p airpath-findings --test guide -->

`airpath run` names what holds a run back. A cause is not read off a symptom: it is taken away, the
scenario runs again with the same seeds, and the difference is measured. A cause is named if its removal
improves a figure by more than 10 % in at least three paired seeds. Where three leave it in doubt, five
decide. The largest comes first.
`--explain full` tries more, and `--explain off` nothing. [ADR 31](../adr/0031-findings-by-experiment.md)
says how causes are ranked.
";

const CLASSES: &[(Class, &str, &str)] = &[
    (
        Class::Fault,
        "Faults",
        "These are properties of the path, the hosts or the traffic. They could be otherwise.",
    ),
    (
        Class::Behaviour,
        "Behaviour of TCP",
        "These are named only where the throughput suffers by more than 15 %, and no fault explains half \
         of it.",
    ),
    (
        Class::Bound,
        "Bounds",
        "These are stated last. They say what the path carries when nothing else holds a run back.",
    ),
];

#[expect(clippy::too_many_lines, reason = "a table")]
fn entry(cause: Cause) -> Entry {
    let of = |what, tried, looks, cure| Entry { what, tried, looks, cure };
    match cause {
        Cause::OneWayPath => of(
            "A firewall lets packets from outside in only after the inside has sent some.",
            "The firewall is switched off in both directions (`path.up.N.enabled=false`).",
            "Pings or datagrams from the server get no answer, and those from the UE do.",
            "Let the firewall pass what comes from outside, or let the UE send first.",
        ),
        Cause::DoubleNat => of(
            "Two NATs stand in a row, and one of them forgets its binding.",
            "One NAT is switched off in both directions.",
            "A stream from the server stops for good or for a while, although the UE is connected.",
            "Take one NAT away: bridge or route instead.",
        ),
        Cause::NatBinding => of(
            "A NAT forgets a flow that still lives.",
            "The binding's lifetime becomes unlimited (`path.up.N.timeout_s`).",
            "Packets from outside are dropped after a silence of the UE.",
            "Raise the lifetime (nf_conntrack_udp_timeout), or let the UE send keep-alives.",
        ),
        Cause::Mtu => of(
            "A hop drops packets that are larger than its MTU, and says nothing.",
            "The stage is switched off, or the tunnel's MTU becomes 9,000 bytes.",
            "The connection is set up, small packets pass, and a transfer stands still.",
            "Clamp the MSS to what passes with the headers of TCP and of tunnels (nft … tcp option maxseg size set), \
             or raise the MTU.",
        ),
        Cause::Fragmentation => of(
            "Packets are cut in two, and one lost fragment loses both.",
            "The tunnel's MTU becomes 9,000 bytes.",
            "Losses weigh twice, and the rate of packets doubles.",
            "Clamp the MSS, or raise the MTU of the transport network.",
        ),
        Cause::RandomLoss => of(
            "Packets are lost that no queue drops.",
            "The stage that loses them is switched off.",
            "CUBIC and Reno stay far below the link's rate, and the link is idle for much of the time.",
            "Use BBR at the sender (net.ipv4.tcp_congestion_control=bbr), or repair the link.",
        ),
        Cause::Policer => of(
            "A token bucket without a queue drops what exceeds its rate.",
            "The policer is switched off.",
            "Losses come in bursts, and the goodput is below the policed rate.",
            "Allow a larger burst at the same rate: rate × RTT, or twice that. Shape instead, or use BBR.",
        ),
        Cause::Shaper => of(
            "A token bucket with a queue holds the rate below the link's.",
            "The shaper is switched off, or UEs have no aggregate maximum bit rate (`radio.ambr`).",
            "The goodput is the shaped rate, and packets wait in the shaper.",
            "Raise the shaped rate.",
        ),
        Cause::Reordering => of(
            "Packets overtake each other, and the sender takes that for loss.",
            "The stage keeps the order (`keep_order=true`).",
            "There are retransmissions, and the receiver has nothing missing.",
            "Keep a flow on one path, or use a sender with RACK (Linux since 4.18).",
        ),
        Cause::StallingHost => of(
            "A forwarding host stands still now and then: a hypervisor takes its processor away.",
            "The stalls of all hosts become too short to count (`path.DIRECTION.N.stall_ms=0.001`).",
            "Packets arrive in bursts after gaps, and a receive ring overflows.",
            "Give the host processors of its own (pinning, no overcommitment).",
        ),
        Cause::ReceiveRing => of(
            "The receive ring of a forwarding host is shorter than the bursts that it has to hold. The queue of a TUN \
             device before a process in user space is such a ring.",
            "The ring becomes 16 times as long, or as long as twice what the path holds (`path.DIRECTION.N.ring_packets`).",
            "Packets are dropped at the host (rx_missed_errors, or drops of the TUN device), and its processor is \
             idle for some of the time.",
            "Lengthen the ring (ethtool -G DEVICE rx N; of a TUN device ip link set DEVICE txqueuelen N), or pace at \
             the sender.",
        ),
        Cause::HostProcessor => of(
            "A forwarding host has no processor time for more packets: a processor is limited in packets per second, \
             whatever their size.",
            "A packet takes no processor time (`path.DIRECTION.N.processing_ms=0`). Where a longer ring does as much, \
             the ring is the cause.",
            "The rate at the host is the same number of packets per second for small and for large packets, and its \
             ring is full for most of the time.",
            "Spend less time on each packet (forward in the kernel, XDP or DPDK), spread flows over more processors \
             (RSS), or send fewer and larger packets (GRO).",
        ),
        Cause::Proxy => of(
            "A TCP proxy ends the connection on the way and begins another one.",
            "The proxy is switched off.",
            "The sender's RTT is shorter than the path's.",
            "Lead the flow around the proxy.",
        ),
        Cause::CrossTraffic => of(
            "Datagrams share the path and do not give way.",
            "Their flow is switched off (`flow.N.enabled=false`).",
            "The link is full, and the TCP flow has only a part of it.",
            "Take the datagrams off this path, or shape them.",
        ),
        Cause::ReceiveWindow => of(
            "The receiver's buffer is smaller than what the path holds.",
            "The receiver's buffer becomes larger than the path.",
            "The flow is limited by the receive window for most of its time, and the link is not full.",
            "Raise net.ipv4.tcp_rmem (third value), SO_RCVBUF or iperf3 -w.",
        ),
        Cause::SendBuffer => of(
            "The sender's buffer is smaller than what the path holds.",
            "The sender's buffer becomes larger than the path.",
            "The flow is limited by the send buffer for most of its time, and the link is not full.",
            "Raise net.ipv4.tcp_wmem (third value), SO_SNDBUF or iperf3 -w.",
        ),
        Cause::ApplicationLimited => of(
            "The application reads or writes more slowly than the path carries.",
            "The application reads at once (`flow.N.read_rate_mbps`), or writes all at once (`write_times_s`).",
            "The receive window closes now and then.",
            "Let the application read and write faster.",
        ),
        Cause::ShortQueue => of(
            "A queue is shorter than the bursts that it has to hold.",
            "The queue becomes as long as twice what the path holds.",
            "Packets are dropped at the queue, and the link is idle afterwards.",
            "Lengthen the queue, or use BBR.",
        ),
        Cause::Bufferbloat => of(
            "A queue is longer than the rate needs, and TCP fills it.",
            "The queue is managed by CoDel; queues of both directions also together, because each holds \
             the acknowledgements of the other one's data. A queue of what the path holds is not tried.",
            "The RTT under load is a multiple of the idle RTT, and pings wait.",
            "Manage the queue (fq_codel, `radio.rlc.aqm`), shorten it, or use BBR.",
        ),
        Cause::AckStarvation => of(
            "The way back is too slow for the acknowledgements.",
            "The link back gets ten times its rate.",
            "The link back is full of acknowledgements, and the link forth is not.",
            "Acknowledge less often (ACK thinning), or give the link back more rate.",
        ),
        Cause::AckBatching => of(
            "Acknowledgements, or data, leave in batches.",
            "The stage that batches is switched off.",
            "The sender is silent and then sends bursts.",
            "Pace at the sender (BBR, qdisc fq), or do not batch.",
        ),
        Cause::Drx => of(
            "The UE sleeps (DRX, TS 38.321 5.7), and what is for it waits until it wakes.",
            "DRX is switched off (`radio.drx.enabled=false`).",
            "The first packet after a silence is late by up to a cycle.",
            "Shorten drx-LongCycle, lengthen drx-InactivityTimer, or release DRX for such UEs.",
        ),
        Cause::UplinkAccess => of(
            "The UE may ask for uplink only now and then: its scheduling requests have a long period. Or it has more \
             to send than it reported, and the base station goes by reports alone.",
            "Requests become as usual: every 10 ms (`radio.sr.period_ms`), without a prohibit timer, and always heard. \
             Or the base station grants again after a block that had no room for a report (`radio.grants.assume_more`).",
            "Pings are late by half the period, and a download's acknowledgements come in batches. Without reports \
             acknowledgements stand still for retxBSR-Timer, now and then, and nothing is lost.",
            "Grant uplink unasked (proactive or configured grants), shorten the period, or let the scheduler grant \
             again; retxBSR-Timer can be as short as 10 ms in NR.",
        ),
        Cause::RadioLoss => of(
            "Blocks fail on the radio and are sent again by HARQ or RLC, or are given up.",
            "At the same MCS no more than a tenth of the blocks fails the first time, and none the second time.",
            "The BLER is far above its target of 0.1, and packets come late in bunches.",
            "Improve the coverage, lower the BLER target, or use RLC AM; BBR helps against what is lost.",
        ),
        Cause::RrcPromotion => of(
            "The UE is idle and has to be connected before anything is sent.",
            "The UE is always connected (`radio.rrc.enabled=false`).",
            "The first packet after a silence takes 100 ms (LTE) to 2 s (UMTS).",
            "Lengthen the inactivity timer, or use RRC_INACTIVE.",
        ),
        Cause::Handover => of(
            "A change of cell interrupts a flow or loses its packets.",
            "The interruption becomes 0, everything is forwarded, and event A3 waits for nothing.",
            "Time-outs and losses come with each change of cell, or the rate falls before it.",
            "Forward what waits in the old base station, and shorten the interruption.",
        ),
        Cause::RadioLinkFailure => of(
            "The UE gives its radio link up and looks for another one.",
            "The UE never gives up (`radio.mobility.link_failure=false`).",
            "The flow stands still for seconds at the edge of a cell.",
            "Hand over earlier, or lengthen T310.",
        ),
        Cause::CongestionMix => of(
            "Flows of different congestion controls share a queue, and one starves the other.",
            "All flows use the same one.",
            "Jain's index is far below 1.",
            "Use one congestion control, or a queue for each flow (fq_codel).",
        ),
        Cause::Placement => of(
            "The server stands far from where the mobile network ends.",
            "The stages between UPF and server are switched off.",
            "The idle RTT is mostly the way behind the UPF.",
            "Place the server beside the UPF.",
        ),
        Cause::EmulationHost => of(
            "The host of an emulation was too busy: packets left so late that the run does not count.",
            "The recorded flows are simulated, where every packet leaves in time.",
            "`airpath emulate` ends with code 3, and says how late packets were.",
            "Emulate on a machine with nothing else to do, as root and with real-time priority, or a \
             lower rate.",
        ),
        Cause::SlowStartExit => of(
            "Slow start ends before the path is full: HyStart took a delay of the radio for a queue.",
            "Slow start goes on until a loss (`flow.N.slow_start=\"none\"`).",
            "cwnd grows slowly from a small value on, and the link is not full.",
            "Switch HyStart off (/sys/module/tcp_cubic/parameters/hystart), or use BBR.",
        ),
        Cause::SlowStart => of(
            "The transfer ends before slow start has opened the window.",
            "The initial window becomes what the path holds, at most 1,000 segments.",
            "A small file takes many round trips, whatever the rate is.",
            "Begin with a larger window (ip route … initcwnd), or shorten the RTT.",
        ),
        Cause::CongestionControl => of(
            "Another congestion control carries more here.",
            "BBR replaces CUBIC or Reno, CUBIC replaces BBR, and a fixed window becomes what the path holds.",
            "The link is not full, and no fault explains why.",
            "Change net.ipv4.tcp_congestion_control at the sender.",
        ),
        Cause::TestTooShort => of(
            "The test ends while the ramp still counts in its average.",
            "The test lasts four times as long; one of less than 3 s, ten times.",
            "The second half of the test is faster than its average.",
            "Test for longer (iperf3 -t 60), or report the second half (iperf3 -O).",
        ),
        Cause::LinkCapacity => of("A link of the path is at least 85 % busy.", "", "", ""),
        Cause::RadioCapacity => of("The radio is at least 85 % busy.", "", "", ""),
    }
}
