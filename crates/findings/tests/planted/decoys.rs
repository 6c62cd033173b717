//! Symptoms that limit nothing: the sign of a cause is present, and removing it changes nothing.

use crate::bases::{ALL, CELLULAR, Known, RADIO, WIRE, codel};
use crate::draft::{Draft, Random, number, quoted, stage};
use crate::plants::{
    Plant, at_sender, at_server, datagrams, insert, insert_in_either, into_vpn, middlebox,
    of_flows, two_cells,
};

/// Adds healthy hosts or modems to both directions of a path: they could forward ten times the
/// data and at least 10,000 packets per second, and let packets wait for at most a hundredth of the
/// RTT.
pub(crate) fn equip(random: &mut Random, draft: &mut Draft, known: &Known) {
    let each = number((1.2 / known.rate_mbps).min(0.1));
    let wait = number(random.log(0.01, 0.1).min(known.rtt_ms * 0.01));
    let mut host = stage("host").with("processing_ms", &each).with("coalescing_ms", &wait);
    if random.chance(0.5) {
        host.set("cpu", "\"host\"");
    }
    let modem = stage("modem")
        .with("timer_ms", number((0.01 * known.rtt_ms).min(0.4)))
        .with("transfer_ms", &each)
        .with("ring_packets", 1000);
    let equipment = match random.below(3) {
        0 => vec![host],
        1 => vec![modem],
        _ => vec![host, modem],
    };
    draft.back.extend(equipment.iter().rev().cloned());
    draft.there.splice(0..0, equipment);
}

pub(crate) const DECOYS: &[Plant] = &[
    Plant::new("random-loss", ALL, 3, |random, _, _, known| {
        let window = known.bdp_bytes() / 1448.0;
        let share = (0.02 / (window * window)).min(2e-5) * random.log(0.2, 1.0);
        insert(random, true, stage("loss").with("probability", number(share)))
    }),
    Plant::new("random-loss", ALL, 2, |random, _, _, _| {
        // Loss of acknowledgements, where the next one says as much.
        insert(random, false, stage("loss").with("probability", "0.02"))
    }),
    Plant::new("policer", ALL, 3, |random, _, _, known| {
        let rate = known.rate_mbps * random.between(1.5, 4.0);
        insert(
            random,
            true,
            stage("policer")
                .with("rate_mbps", number(rate))
                .with("burst_bytes", number((2.0 * known.bdp_bytes()).max(100e3).round())),
        )
    }),
    Plant::new("shaper", ALL, 3, |random, _, _, known| {
        let mut shaper = stage("shaper")
            .with("rate_mbps", number(known.rate_mbps * random.between(1.3, 3.0)))
            .with("burst_bytes", "20000");
        codel(&mut shaper, "", (known.rtt_ms / 5.0).max(5.0));
        insert(random, true, shaper)
    }),
    Plant::new("receive-window", ALL, 1, |random, _, _, known| {
        let bytes = (known.bdp_bytes() * random.between(4.0, 8.0)).max(100e3).round();
        of_flows("receive_buffer_bytes", number(bytes))
    }),
    Plant::new("send-buffer", ALL, 1, |random, _, _, known| {
        let bytes = (known.bdp_bytes() * random.between(8.0, 12.0)).max(200e3).round();
        of_flows("send_buffer_bytes", number(bytes))
    }),
    Plant::new("application-limited", ALL, 1, |random, _, _, known| {
        of_flows("read_rate_mbps", number(known.rate_mbps * random.between(1.2, 2.0)))
    }),
    Plant::new("reordering", ALL, 2, |random, _, _, _| {
        insert(
            random,
            true,
            stage("delay").with("delay_ms", 0).with("jitter_ms", "0.02").with("keep_order", false),
        )
    }),
    Plant::new("mtu", ALL, 2, |random, _, _, _| {
        insert(random, true, stage("mtu").with("mtu_bytes", 1500))
    }),
    Plant::new("fragmentation", ALL, 2, |_, _, well, _| {
        well.there.insert(0, stage("gtpu").with("end", "\"enter\"").with("mtu_bytes", 9000));
        well.there.insert(1, stage("gtpu").with("end", "\"leave\""));
        Box::new(|draft| draft.there[0].set("mtu_bytes", 1500))
    }),
    // A VPN with an MTU that leaves room for its headers.
    Plant::new("vpn", ALL, 2, |_, _, well, _| {
        well.transfers().for_each(|flow| flow.set("mss_bytes", 1368));
        into_vpn(well, stage("vpn").with("outer_ip", "\"ipv6\""));
        Box::new(|draft| {
            draft.there[0].set("mtu_bytes", 1420);
            draft.there[0].set("outer_mtu_bytes", 1500);
        })
    }),
    // A card that joins segments, and the next hop segments them again.
    Plant::new("offload", ALL, 2, |random, _, _, _| {
        let joined = stage("offload").with("fault", "\"joined\"").with("mtu_bytes", 65_535);
        insert(random, true, joined)
    }),
    // HARQ fills every gap.
    Plant::new("pdcp-gap", CELLULAR, 2, |random, _, well, _| {
        let adaptation = well.radio_of_data("link_adaptation");
        adaptation.set("fixed_bler", "0.1");
        adaptation.set("fixed_bler_retransmission", "0");
        well.radio_of_data("rlc").set("mode", quoted(random.one_of(&["um", "am"])));
        Box::new(|draft| draft.radio_of_data("rlc").set("t_reordering_ms", 1500))
    }),
    Plant::new("nat-binding", ALL, 2, |random, _, well, _| {
        well.transfers().for_each(|flow| flow.set("opened_by", "\"receiver\""));
        middlebox("nat", random.between(30.0, 300.0), random.chance(0.5))
    })
    .up(false),
    Plant::new("one-way-path", ALL, 1, |_, _, _, _| {
        Box::new(|draft| {
            draft.there.push(stage("firewall"));
            draft.back.insert(0, stage("firewall"));
        })
    })
    .up(true),
    Plant::new("stalling-host", ALL, 2, |random, _, _, known| {
        insert(
            random,
            true,
            stage("host")
                .with("stalls", "\"at-random\"")
                .with("stall_ms", number((known.rtt_ms * 0.01).min(0.3)))
                .with("stall_mean_between_ms", "300"),
        )
    }),
    // A processor that is ten times as fast as necessary.
    Plant::new("host-processor", ALL, 2, |random, _, _, known| {
        let each = 1.2 / known.rate_mbps;
        insert(random, true, stage("host").with("processing_ms", number(each)))
    }),
    // One processor for both directions, with room for ten times the data.
    Plant::new("host-processor", ALL, 2, |_, _, _, known| {
        let each = number((1.2 / known.rate_mbps).min(0.1));
        at_sender(stage("host").with("processing_ms", each).with("cpu", "\"upf\""))
    }),
    // A network card that delays interrupts as briefly as cards do by default.
    Plant::new("interrupt-moderation", ALL, 2, |random, _, _, known| {
        let coalescing = random.log(0.01, 0.1).min(known.rtt_ms * 0.01);
        insert_in_either(random, stage("host").with("coalescing_ms", number(coalescing)))
    }),
    Plant::new("aggregation-timer", ALL, 2, |random, _, _, known| {
        let timer = random.log(0.1, 1.2).min(known.rtt_ms * 0.01);
        insert_in_either(random, stage("modem").with("timer_ms", number(timer)))
    }),
    // Blocks of ten packets, at ten times the link's rate.
    Plant::new("modem-ceiling", ALL, 2, |random, _, _, known| {
        let modem = stage("modem")
            .with("timer_ms", number((0.01 * known.rtt_ms).min(0.4)))
            .with("transfer_ms", number(12.0 / known.rate_mbps));
        insert(random, true, modem)
    }),
    Plant::new("cross-traffic", ALL, 2, |random, _, _, known| {
        let rate = known.rate_mbps * random.between(0.005, 0.02);
        Box::new(move |draft| draft.flows.push(datagrams(rate)))
    }),
    Plant::new("ack-starvation", WIRE, 2, |random, _, _, known| {
        let rate = known.rate_mbps / random.between(3.0, 8.0);
        insert(
            random,
            false,
            stage("link").with("rate_mbps", number(rate)).with("queue_packets", 100),
        )
    }),
    Plant::new("ack-batching", ALL, 2, |random, _, _, known| {
        let interval = number((known.rtt_ms * 0.01).max(0.1));
        insert(random, false, stage("batch").with("interval_ms", interval))
    }),
    Plant::new("placement", ALL, 2, |random, _, _, _| {
        let place = random.one_of(&["upf", "campus"]);
        at_server(stage("server").with("place", quoted(place)))
    }),
    Plant::new("drx", CELLULAR, 1, |random, _, _, _| {
        // During a transfer the UE stays awake.
        let inactivity = random.one_of(&[50, 100, 200]);
        Box::new(move |draft| {
            draft.radio("drx").set("enabled", true);
            draft.radio("drx").set("inactivity_ms", inactivity);
            draft.radio("drx").set("long_cycle_ms", 320);
        })
    })
    .up(false),
    Plant::new("uplink-access", CELLULAR, 2, |_, _, _, _| {
        Box::new(|draft| draft.radio("sr").set("period_ms", 20))
    })
    .up(true),
    Plant::new("radio-loss", CELLULAR, 2, |_, _, _, _| {
        Box::new(|draft| draft.radio_of_data("link_adaptation").set("fixed_bler", "0.02"))
    }),
    Plant::new("rrc-promotion", RADIO, 2, |random, _, _, _| {
        let setup = random.between(10.0, 80.0).round();
        Box::new(move |draft| {
            draft.radio("rrc").set("enabled", true);
            draft.radio("rrc").set("setup_ms", setup);
        })
    }),
    Plant::new("handover", CELLULAR, 1, |random, _, well, _| {
        two_cells(random, well);
        well.radio("mobility").set("interruption_ms", 5);
        well.radio("mobility").set("link_failure", false);
        Box::new(|draft| draft.radio("mobility").set("interruption_ms", 10))
    }),
    Plant::new("proxy", ALL, 1, |_, _, well, _| {
        // Next to the sender.
        let near = stage("delay").with("delay_ms", 1);
        well.there.insert(0, near.clone());
        well.back.push(near);
        Box::new(|draft| {
            draft.there.insert(1, stage("proxy").with("window_bytes", 20_000_000));
            draft.back.insert(draft.back.len() - 1, stage("proxy"));
        })
    }),
];
