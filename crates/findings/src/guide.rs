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

`airpath run` names what holds a run back. It does not infer a cause from a symptom: it removes the
cause, runs the scenario again with the same seeds and measures the difference. A cause is named if removing it
improves a metric by more than 10 % over at least three seeds, each of which runs with the cause and without it.
If three seeds are inconclusive, five are run; if nothing in the scenario is random, one run stands for all seeds. The cause with the largest effect comes first.
`--explain full` tries more, and `--explain off` tries nothing. [ADR 31](../adr/0031-findings-by-experiment.md)
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
            "A firewall admits packets from outside only after the inside has sent some.",
            "The firewall is switched off in both directions (`path.up.N.enabled=false`).",
            "Pings or datagrams from the server get no answer, but those from the UE do.",
            "Open the firewall for packets from outside, or let the UE send first.",
        ),
        Cause::DoubleNat => of(
            "There are two NATs in a row, and a binding of one of them expires.",
            "One NAT is switched off in both directions.",
            "A stream from the server stops, for good or for a while, although the UE is connected.",
            "Remove one NAT: bridge or route instead.",
        ),
        Cause::NatBinding => of(
            "A NAT drops the binding of a flow that is still alive.",
            "The binding's lifetime becomes unlimited (`path.up.N.timeout_s`).",
            "Packets from outside are dropped after a silence of the UE.",
            "Raise the lifetime (nf_conntrack_udp_timeout), or have the UE send keep-alives.",
        ),
        Cause::Mtu => of(
            "A hop silently drops packets that are larger than its MTU.",
            "The stage is switched off, or the tunnel's MTU becomes 9,000 bytes.",
            "The connection is set up and small packets pass, but a transfer makes no progress.",
            "Clamp the MSS so that a segment with its TCP, IP and tunnel headers fits the smallest MTU of the path (nft … \
             tcp option maxseg size set), or raise the MTU.",
        ),
        Cause::Fragmentation => of(
            "Packets are fragmented, and one lost fragment loses the whole packet.",
            "The tunnel's MTU becomes 9,000 bytes.",
            "The effect of losses doubles, and so does the packet rate.",
            "Clamp the MSS, or raise the MTU of the transport network.",
        ),
        Cause::Vpn => of(
            "A VPN adds headers to each packet, and an MTU leaves no room for them: the VPN's device or a hop outside \
             the VPN drops or fragments packets. WireGuard adds 60 bytes over IPv4 and 80 over IPv6, and pads packets to a \
             multiple of 16 bytes.",
            "The MTUs become 9,000 bytes (`path.DIRECTION.N.mtu_bytes`, `outer_mtu_bytes`), or the `mtu` stage in the \
             VPN is switched off. Where everything fits, both ends of the VPN are switched off.",
            "Pings pass and a connection is set up, but a transfer makes no progress, or loses far more packets \
             through the VPN than without it.",
            "Set the MTU of the VPN's device to the path's MTU minus 80 bytes (ip link set mtu 1420 dev wg0), and clamp \
             the MSS to it on routers (nft add rule inet filter forward oifname \"wg0\" tcp flags syn tcp option maxseg \
             size set rt mtu). With an MTU of 1,400 bytes in the uplink of a cell, the device needs 1,320.",
        ),
        Cause::Offload => of(
            "The offload of a network card or a TUN device breaks packets: checksums of inner packets are wrong, or GRO \
             and LRO join segments that no later device segments again.",
            "The stage is switched off.",
            "The handshake passes and data do not, or only segments that arrive alone pass. nstat counts \
             TcpInCsumErrors; tcpdump -vv shows \"cksum … incorrect\", or segments larger than the MTU at a hop that \
             only forwards.",
            "Have the kernel compute checksums (ethtool -K uesimtun0 tx-checksum-ip-generic off), or do not join segments \
             where packets are forwarded (ethtool -K eth0 lro off gro off).",
        ),
        Cause::RandomLoss => of(
            "Packets are lost without being dropped by a queue.",
            "The stage that loses them is switched off.",
            "CUBIC and Reno stay far below the link's rate, and the link is idle much of the time.",
            "Use BBR at the sender (net.ipv4.tcp_congestion_control=bbr), or repair the link.",
        ),
        Cause::Policer => of(
            "A token bucket without a queue drops what exceeds its rate.",
            "The policer is switched off.",
            "Losses come in bursts, and the goodput is below the policed rate.",
            "Allow a larger burst at the same rate: rate × RTT, or twice that. Shape instead, or use BBR.",
        ),
        Cause::Shaper => of(
            "A token bucket with a queue limits the rate to less than the link's.",
            "The shaper is switched off, or UEs have no aggregate maximum bit rate (`radio.ambr`).",
            "The goodput is the shaped rate, and packets wait in the shaper.",
            "Raise the shaped rate.",
        ),
        Cause::Reordering => of(
            "Packets overtake each other, and the sender mistakes that for loss.",
            "The stage keeps the order (`keep_order=true`).",
            "The sender retransmits although no packet was lost (spurious retransmissions).",
            "Keep each flow on one path, or use a sender with RACK (Linux since 4.18).",
        ),
        Cause::StallingHost => of(
            "A forwarding host stalls now and then: a hypervisor takes its processor away.",
            "The stalls of all hosts become too short to matter (`path.DIRECTION.N.stall_ms=0.001`).",
            "Packets arrive in bursts after gaps, and a receive ring overflows.",
            "Give the host dedicated processors (pinning, no overcommitment).",
        ),
        Cause::ReceiveRing => of(
            "The receive ring of a forwarding host is shorter than the bursts that it has to hold. The queue of a TUN \
             device before a process in user space counts as such a ring.",
            "The ring becomes 16 times as long, or twice the BDP (bandwidth-delay product) if that is \
             longer (`path.DIRECTION.N.ring_packets`).",
            "Packets are dropped at the host (rx_missed_errors, or drops of the TUN device), and its processor is \
             idle some of the time.",
            "Lengthen the ring (ethtool -G DEVICE rx N; for a TUN device ip link set DEVICE txqueuelen N), or pace at \
             the sender.",
        ),
        Cause::HostProcessor => of(
            "A forwarding host has no processor time for more packets: a processor's limit is in packets per second, \
             whatever their size.",
            "The processor time of a packet becomes 0 (`path.DIRECTION.N.processing_ms=0`). If a longer ring helps as much, \
             `receive-ring` is named instead.",
            "The host forwards the same number of packets per second whether they are small or large, and its \
             ring is full most of the time.",
            "Spread flows over more processors: RSS, RPS (`echo f > /sys/class/net/DEVICE/queues/rx-0/rps_cpus`), or more \
             workers of the UPF. Spend less time on each packet (forward in the kernel, XDP or DPDK), or send fewer and \
             larger packets (a larger MTU, GRO).",
        ),
        Cause::InterruptModeration => of(
            "The network card of a forwarding host delays its interrupts, so that one interrupt serves several packets. \
             Virtual network cards often do.",
            "All hosts are set to raise an interrupt for each packet at once (`path.DIRECTION.N.coalescing_ms=0`).",
            "The idle RTT is longer than that of the path, by the same time for every packet, and packets leave in \
             batches.",
            "`ethtool -C DEVICE adaptive-rx off rx-usecs 0`. The host then takes more interrupts.",
        ),
        Cause::AggregationTimer => of(
            "The driver of a modem holds packets back to fill a block: an NTB of CDC NCM or MBIM, or a QMAP aggregate.",
            "Blocks are set to leave as soon as the bus is free (`path.DIRECTION.N.timer_ms=0`).",
            "The timer is added to the idle RTT. Under load the RTT is shorter, because blocks are full before the timer \
             expires.",
            "cdc_ncm and cdc_mbim: `echo 5 > /sys/class/net/DEVICE/cdc_ncm/tx_timer_usecs`; rmnet: `ethtool -C DEVICE \
             tx-aggr-max-frames 1`. Blocks then carry fewer packets.",
        ),
        Cause::ModemCeiling => of(
            "The bus of a modem, or the one processor that serves it, has no time for more transfers. A transfer takes \
             as long with one packet as with many.",
            "The time of a transfer becomes 0 (`path.DIRECTION.N.transfer_ms=0`). If a longer ring helps as much, \
             `receive-ring` is named instead.",
            "The throughput is the number of packets per block times transfers per second, far below the rates of the \
             bus and the radio, and one processor is busy with interrupts of the bus.",
            "Let each transfer carry more. cdc_ncm and cdc_mbim: `echo 16384 > /sys/class/net/DEVICE/cdc_ncm/tx_max` and \
             `rx_max`; rmnet: `ethtool -C DEVICE tx-aggr-max-bytes 16384 tx-aggr-max-frames 40`; qmi_wwan: `ip link set \
             DEVICE mtu 16384`, which sets rx_urb_size. Or use a faster bus (USB 3, PCIe).",
        ),
        Cause::Proxy => of(
            "A TCP proxy on the path terminates the connection and opens another one.",
            "The proxy is switched off.",
            "The sender's RTT is shorter than the path's.",
            "Bypass the proxy.",
        ),
        Cause::CrossTraffic => of(
            "Datagrams share the path and do not back off.",
            "Their flow is switched off (`flow.N.enabled=false`).",
            "The link is full, and the TCP flow gets only a part of it.",
            "Move the datagrams off this path, or shape them.",
        ),
        Cause::ReceiveWindow => of(
            "The receiver's buffer is smaller than the BDP.",
            "The receiver's buffer becomes larger than the BDP.",
            "The receive window limits the flow most of the time, and the link is not full.",
            "Raise net.ipv4.tcp_rmem (third value), SO_RCVBUF or iperf3 -w; for QUIC, the receive window of its \
             library.",
        ),
        Cause::SendBuffer => of(
            "The sender's buffer is smaller than the BDP.",
            "The sender's buffer becomes larger than the BDP.",
            "The send buffer limits the flow most of the time, and the link is not full.",
            "Raise net.ipv4.tcp_wmem (third value), SO_SNDBUF or iperf3 -w; for QUIC, the send window of its library.",
        ),
        Cause::ApplicationLimited => of(
            "The application reads or writes more slowly than the path can carry.",
            "The application is set to read at once (`flow.N.read_rate_mbps`), or to write everything at once (`write_times_s`).",
            "The receive window closes now and then.",
            "Make the application read and write faster.",
        ),
        Cause::KeptSsthresh => of(
            "The sender has kept an ssthresh of an earlier connection to the same host, and slow start ends there.",
            "The flow begins without it (`flow.N.route.metrics=\"none\"`).",
            "The second of two equal tests is slower, and `ip tcp_metrics show` has an ssthresh for the receiver.",
            "Set net.ipv4.tcp_no_ssthresh_metrics_save to 1 (before Linux 5.6: tcp_no_metrics_save), and run \
             `ip tcp_metrics flush` between tests.",
        ),
        Cause::ShortQueue => of(
            "A queue is shorter than the bursts that it has to hold.",
            "The queue becomes twice as long as the BDP.",
            "Packets are dropped at the queue, and the link is idle afterwards.",
            "Lengthen the queue, or use BBR.",
        ),
        Cause::Bufferbloat => of(
            "A queue is longer than it has to be to keep its link busy, and TCP fills it.",
            "The queue gets CoDel. Both directions are also tried at once, because acknowledgements of the data in one \
             direction wait in the queue of the other. A queue no longer than the BDP is not tried.",
            "The RTT under load is a multiple of the idle RTT, and pings are slow.",
            "Use AQM (fq_codel, `radio.rlc.aqm`), shorten the queue, or use BBR.",
        ),
        Cause::AckStarvation => of(
            "The return path is too slow for the acknowledgements.",
            "The return link gets ten times its rate.",
            "The return link is full of acknowledgements, and the forward link is not full.",
            "Acknowledge less often (ACK thinning), or raise the rate of the return link.",
        ),
        Cause::AckBatching => of(
            "Acknowledgements, or data, leave in batches.",
            "The stage that batches is switched off.",
            "The sender pauses and then sends bursts.",
            "Pace at the sender (BBR, qdisc fq), or do not batch.",
        ),
        Cause::Drx => of(
            "The UE sleeps (DRX, TS 38.321 5.7), and its downlink packets wait until it wakes.",
            "DRX is switched off (`radio.drx.enabled=false`).",
            "The first packet after a silence is late by up to one cycle.",
            "Shorten drx-LongCycle, lengthen drx-InactivityTimer, or release DRX for UEs that need short delays.",
        ),
        Cause::UplinkAccess => of(
            "The UE can rarely request uplink: its scheduling requests have a long period. Or it has more \
             to send than it reported, and the base station grants only what was reported.",
            "Requests become normal: every 10 ms (`radio.sr.period_ms`), without a prohibit timer, and never missed. \
             Or the base station grants again after a block that had no room for a report (`radio.grants.assume_more`).",
            "Pings take half the period longer, and a download's acknowledgements arrive in batches. Without reports, \
             acknowledgements sometimes pause for retxBSR-Timer, and nothing is lost.",
            "Use proactive or configured grants, shorten the period of requests, or have the scheduler grant \
             again; retxBSR-Timer can be as short as 10 ms in NR.",
        ),
        Cause::RadioLoss => of(
            "Transport blocks fail on the radio link; HARQ or RLC retransmits them, or gives up.",
            "At the same MCS, no more than a tenth of the blocks fail the first time, and none the second time.",
            "The BLER is far above its target of 0.1, and packets arrive late and in bursts.",
            "Improve the coverage, lower the BLER target, or use RLC AM; BBR helps against the remaining losses.",
        ),
        Cause::PdcpGap => of(
            "A PDCP PDU never arrives: HARQ gave it up and RLC UM did not recover it, a handover without forwarding lost it, or the buffer of \
             a split bearer's leg had no room. The receiver holds everything behind the gap until t-Reordering expires, then delivers it at once (TS 38.323 5.2.2). In \
             LTE, RLC does so (TS 36.322 5.1.2.2).",
            "t-Reordering becomes 20 ms in NR and 35 ms in LTE (`radio.rlc.t_reordering_ms`, `radio.split.t_reordering_ms`), \
             which still leaves HARQ time for its retransmissions.",
            "Transfers stall for the length of t-Reordering and continue with a burst; RTTs show a \
             plateau at that length.",
            "Use RLC AM for the bearer, or shorten t-Reordering (t-Reordering in PDCP-Config, TS 38.331).",
        ),
        Cause::SplitBearer => of(
            "A bearer is split over two cells (TS 37.340), and one leg is much slower than the other, or far away. PDCP \
             delivers in order: what the fast leg brings waits for what was sent before on the slow one.",
            "Legs are chosen by how long a packet will wait there, and are in one base station \
             (`radio.split.secondary_share=\"shortest-wait\"`, `radio.split.delay_ms=0`); if they already are, only the first \
             cell's leg is used (`radio.split.enabled=false`).",
            "RTTs of the two legs alternate; the receiver gets bursts; the share `reordering` of the time breakdown is \
             large.",
            "Keep the bearer on one leg, or have the base station split it by what each leg can take; see primaryPath \
             and ul-DataSplitThreshold (TS 38.331 PDCP-Config) for the uplink.",
        ),
        Cause::RrcPromotion => of(
            "The UE is idle and has to connect before it can send or receive.",
            "The UE is always connected (`radio.rrc.enabled=false`).",
            "The first packet after a silence takes 100 ms (LTE) to 2 s (UMTS).",
            "Lengthen the RRC inactivity timer; in NR, use RRC_INACTIVE.",
        ),
        Cause::Handover => of(
            "A handover interrupts a flow or loses its packets.",
            "The interruption becomes 0, everything is forwarded, and event A3 triggers at once.",
            "Each handover causes time-outs and losses, or the rate falls before it.",
            "Forward what the old base station has buffered, and shorten the interruption.",
        ),
        Cause::CellOutage => of(
            "A cell is out of service for a while: nothing that it or its UEs send arrives.",
            "The outage is left out (`radio.outage.N.enabled=false`).",
            "Nothing arrives until the cell is back or the UE has found another one, and TCP then waits for its \
             backed-off time-out.",
            "Keep the cell in service, or cover its area with another cell.",
        ),
        Cause::RadioLinkFailure => of(
            "The UE declares radio link failure and looks for another link.",
            "The UE never declares failure (`radio.mobility.link_failure=false`).",
            "The flow stalls for seconds at the edge of a cell.",
            "Hand over earlier, or lengthen T310.",
        ),
        Cause::CongestionMix => of(
            "Flows with different congestion control share a queue, and one starves the other.",
            "All flows use the same congestion control.",
            "Jain's index is far below 1.",
            "Use the same congestion control for all flows, or a queue for each flow (fq_codel).",
        ),
        Cause::Placement => of(
            "The server is far from the edge of the mobile network.",
            "The stages between UPF and server are switched off.",
            "Most of the idle RTT is beyond the UPF.",
            "Place the server next to the UPF, or next to the access network where there is no UPF.",
        ),
        Cause::EmulationHost => of(
            "The host of an emulation was too busy: packets left so late that the run is invalid.",
            "The recorded flows are simulated, so that every packet leaves on time.",
            "`airpath emulate` exits with status 3, and reports how late packets were.",
            "Emulate on an otherwise idle machine, as root and with real-time priority, or at a \
             lower rate.",
        ),
        Cause::SlowStartExit => of(
            "Slow start ends before the path is full: HyStart mistook a delay of the radio for a queue.",
            "Slow start continues until a loss (`flow.N.slow_start=\"none\"`).",
            "cwnd grows slowly from a small value, and the link is not full.",
            "Switch HyStart off (/sys/module/tcp_cubic/parameters/hystart), or use BBR.",
        ),
        Cause::SlowStart => of(
            "The transfer ends before slow start has opened the window.",
            "The initial window becomes the BDP, at most 1,000 segments.",
            "A small file takes many round trips, whatever the rate.",
            "Use a larger initial window (ip route … initcwnd), or shorten the RTT.",
        ),
        Cause::CongestionControl => of(
            "Another congestion control algorithm achieves more here.",
            "BBR replaces CUBIC or Reno, CUBIC replaces BBR, and a fixed window becomes the BDP.",
            "The link is not full, and no fault explains why.",
            "Change net.ipv4.tcp_congestion_control at the sender.",
        ),
        Cause::TestTooShort => of(
            "The test ends while the ramp-up still affects its average.",
            "The test lasts four times as long; one of less than 3 s, ten times.",
            "The second half of the test is faster than its average.",
            "Run a longer test (iperf3 -t 60), or report the second half (iperf3 -O).",
        ),
        Cause::LinkCapacity => {
            of("A link of the path carries at least 85 % of its capacity.", "", "", "")
        }
        Cause::RadioCapacity => of(
            "The radio carries at least 85 % of its capacity: throughput over capacity, not the share of resource blocks in use.",
            "",
            "",
            "",
        ),
    }
}
