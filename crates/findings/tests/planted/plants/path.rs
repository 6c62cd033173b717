//! Causes on the path.

use super::{
    Edit, Plant, at_sender, at_server, at_ue, file, insert, insert_in_either, managed_queue,
    middlebox, only, ping, plain_queue, rare_loss, ring_packets, scaled, stream, without_loss,
};
use crate::bases::{ALL, Known, WIRE, codel};
use crate::draft::{Draft, Random, Table, number, quoted, stage};

/// Transmission time of a 1,500-byte packet at the bottleneck, in ms.
fn packet_ms(known: &Known) -> f64 {
    12.0 / known.rate_mbps
}

/// Makes the path that of a campus, with pings or a small file, and plants a stage next to the UE
/// at which packets wait for up to the time in `key`.
fn waits_near(
    random: &mut Random,
    severity: f64,
    draft: &mut Draft,
    (stage, key): (Table, &str),
) -> Edit {
    let one_way = random.log(0.3, 5.0);
    for one in draft.there.iter_mut().chain(&mut draft.back) {
        if one.get("stage") == Some("\"delay\"") {
            one.set("delay_ms", number(one_way));
        }
    }
    match random.below(3) {
        0 => only(draft, ping("down", 150.0)),
        1 => only(draft, ping("up", 150.0)),
        _ => only(draft, file(random.log(20e3, 200e3))),
    }
    at_ue(stage.with(key, number(one_way * scaled(severity, 0.1, 5.0))))
}

pub(crate) const PATH: &[Plant] = &[
    Plant::new("random-loss", ALL, 3, |random, severity, _, known| {
        // Rates fall as 1 / (RTT sqrt(p)).
        let window = known.bdp_bytes() / 1448.0;
        let worst = (40.0 / (window * window)).clamp(0.002, 0.1);
        insert(
            random,
            true,
            stage("loss").with("probability", number(scaled(severity, 1e-5, worst))),
        )
    }),
    Plant::new("random-loss", ALL, 3, |random, severity, _, known| {
        let window = known.bdp_bytes() / 1448.0;
        let enter = scaled(severity, 1e-5, (40.0 / (window * window)).clamp(0.002, 0.05));
        let lossy = stage("gilbert-elliott")
            .with("good_to_bad", number(enter))
            .with("bad_to_good", "0.3")
            .with("loss_bad", "0.6");
        insert(random, true, lossy)
    }),
    Plant::new("random-loss", ALL, 2, |random, severity, well, known| {
        stream(random, well, known, "sender");
        insert(random, true, stage("loss").with("probability", number(0.1 + 0.6 * severity)))
    }),
    Plant::new("policer", ALL, 3, |random, severity, _, known| {
        let rate = known.rate_mbps * (1.15 - 0.95 * severity);
        let burst = random.log(8e3, 60e3);
        insert(
            random,
            true,
            stage("policer")
                .with("rate_mbps", number(rate))
                .with("burst_bytes", number(burst.round())),
        )
    }),
    Plant::new("shaper", ALL, 3, |random, severity, _, known| {
        let mut shaper = stage("shaper")
            .with("rate_mbps", number(known.rate_mbps * (0.98 - 0.8 * severity)))
            .with("burst_bytes", number(random.log(5e3, 50e3).round()));
        codel(&mut shaper, "", (known.rtt_ms / 5.0).max(5.0));
        insert(random, true, shaper)
    }),
    Plant::new("short-queue", ALL, 2, |_, severity, well, known| {
        managed_queue(well, known);
        let bytes = known.bdp_bytes() * scaled(severity, 0.6, 0.01);
        Box::new(move |draft| plain_queue(draft, bytes))
    }),
    Plant::new("bufferbloat", ALL, 3, |_, severity, well, known| {
        managed_queue(well, known);
        let bytes = known.bdp_bytes().max(30_000.0) * scaled(severity, 1.3, 20.0);
        Box::new(move |draft| plain_queue(draft, bytes))
    }),
    Plant::new("reordering", ALL, 3, |random, severity, well, known| {
        let jitter = (known.rtt_ms * scaled(severity, 0.01, 0.5)).max(0.1);
        let at = if well.up { 0 } else { well.there.len() };
        well.there.insert(
            at,
            stage("delay").with("delay_ms", 0).with("jitter_ms", number(jitter)).with(
                "jitter_distribution",
                quoted(random.one_of(&["exponential", "half-normal"])),
            ),
        );
        Box::new(|draft| {
            let mut stages = draft.there.iter_mut();
            let jitter = stages.find(|one| one.get("jitter_ms").is_some());
            jitter.expect("just put there").set("keep_order", false);
        })
    }),
    Plant::new("mtu", ALL, 3, |random, _, _, _| {
        let bytes = random.between(1280.0, 1490.0).round();
        if random.chance(0.5) {
            return insert(random, true, stage("mtu").with("mtu_bytes", bytes));
        }
        Box::new(move |draft| {
            draft.there.insert(
                0,
                stage("gtpu")
                    .with("end", "\"enter\"")
                    .with("mtu_bytes", bytes)
                    .with("too_big", "\"drop\""),
            );
            draft.there.push(stage("gtpu").with("end", "\"leave\""));
        })
    }),
    Plant::new("mtu", ALL, 1, |random, _, well, known| {
        stream(random, well, known, "sender");
        let bytes = random.between(600.0, 1490.0).round();
        insert(random, true, stage("mtu").with("mtu_bytes", bytes))
    }),
    // A tunnel that loses so few packets that it hardly matters, but each packet has three
    // fragments.
    Plant::new("fragmentation", ALL, 1, |random, severity, well, known| {
        let loss = rare_loss(random, severity, well, known, (0.2, 1.2));
        let bytes = random.between(576.0, 700.0).round();
        well.there.insert(0, stage("gtpu").with("end", "\"enter\"").with("mtu_bytes", 9000));
        well.there.insert(1, loss);
        well.there.insert(2, stage("gtpu").with("end", "\"leave\""));
        Box::new(move |draft| draft.there[0].set("mtu_bytes", bytes))
    })
    .brings(without_loss),
    Plant::new("one-way-path", ALL, 1, |random, _, well, known| {
        match random.below(3) {
            0 => stream(random, well, known, "sender"),
            1 => only(well, ping("down", 200.0)),
            _ => {}
        }
        middlebox("firewall", 100.0, false)
    })
    .up(false),
    Plant::new("nat-binding", ALL, 1, |random, severity, well, known| {
        stream(random, well, known, "receiver");
        let timeout = well.seconds * (0.9 - 0.8 * severity);
        middlebox("nat", timeout, true)
    })
    .up(false),
    Plant::new("double-nat", ALL, 1, |random, severity, well, known| {
        stream(random, well, known, "receiver");
        middlebox("nat", 300.0, false)(well);
        middlebox("nat", well.seconds * (0.9 - 0.8 * severity), true)
    })
    .up(false),
    Plant::new("stalling-host", ALL, 3, |random, severity, _, known| {
        let stall = known.rtt_ms * scaled(severity, 0.05, 3.0);
        let ring = (known.bdp_bytes() / 1500.0 * random.log(0.1, 1.0)).max(8.0).round();
        insert(
            random,
            true,
            stage("host")
                .with("stalls", "\"at-random\"")
                .with("stall_ms", number(stall))
                .with("stall_mean_between_ms", number((8.0 * stall).max(50.0)))
                .with("ring_packets", ring),
        )
    }),
    // Bursts of a sender meet a processor that is three times as fast as the link, behind a ring of few packets.
    Plant::new("receive-ring", ALL, 3, |_, severity, well, known| {
        let packets = known.bdp_bytes() / 1500.0;
        well.there.insert(
            0,
            stage("host")
                .with("processing_ms", number(packet_ms(known) / 3.0))
                .with("ring_packets", (20.0 * packets).max(1000.0).round()),
        );
        let ring = (packets * scaled(severity, 0.5, 0.01)).max(1.0).round();
        Box::new(move |draft| draft.there[0].set("ring_packets", ring))
    }),
    // A processor that is slower than the link. Its ring has the length that a queue should have
    // there.
    Plant::new("host-processor", ALL, 3, |random, severity, _, known| {
        let each = packet_ms(known) / (1.0 - 0.8 * severity);
        let host = stage("host").with("processing_ms", number(each));
        insert(random, true, host.with("ring_packets", ring_packets(known)))
    }),
    // Both directions of an upload or a download on one processor, which is slower than the link.
    Plant::new("host-processor", ALL, 2, |_, severity, _, known| {
        let each = packet_ms(known) / (1.2 - 0.9 * severity);
        let host = stage("host").with("processing_ms", number(each)).with("cpu", "\"upf\"");
        at_sender(host.with("ring_packets", ring_packets(known)))
    }),
    // On a short path, a network card that waits before it raises an interrupt.
    Plant::new("interrupt-moderation", WIRE, 1, |random, severity, well, _| {
        waits_near(random, severity, well, (stage("host"), "coalescing_ms"))
    }),
    // A network card on the way of a transfer's data, or of its acknowledgements.
    Plant::new("interrupt-moderation", ALL, 3, |random, severity, _, known| {
        let coalescing = (known.rtt_ms * scaled(severity, 0.2, 3.0)).max(1.0);
        insert_in_either(random, stage("host").with("coalescing_ms", number(coalescing)))
    }),
    // A modem on a short path: pings and small files wait for its timer.
    Plant::new("aggregation-timer", WIRE, 1, |random, severity, well, _| {
        waits_near(random, severity, well, (stage("modem"), "timer_ms"))
    }),
    // A long timer in the direction of acknowledgements, which do not fill blocks.
    Plant::new("aggregation-timer", ALL, 3, |random, severity, _, known| {
        let timer = (known.rtt_ms * scaled(severity, 0.2, 3.0)).max(1.0);
        let modem = stage("modem").with("timer_ms", number(timer)).with("block_packets", 1000);
        insert(random, false, modem)
    }),
    // Transfers that carry too few packets for the link. The ring has the length that a queue should
    // have there.
    Plant::new("modem-ceiling", ALL, 3, |random, severity, _, known| {
        let packets = 1.0 + random.below(4) as f64;
        let transfer = packets * packet_ms(known) / (1.0 - 0.8 * severity);
        let modem = stage("modem")
            .with("timer_ms", number((0.05 * known.rtt_ms).min(1.2)))
            .with("block_bytes", 1500.0 * packets)
            .with("transfer_ms", number(transfer))
            .with("ring_packets", ring_packets(known));
        insert(random, true, modem)
    }),
    Plant::new("ack-starvation", WIRE, 3, |random, severity, _, known| {
        let rate = known.rate_mbps / scaled(severity, 30.0, 300.0);
        let packets = random.one_of(&[10, 30, 60]);
        insert(
            random,
            false,
            stage("link").with("rate_mbps", number(rate)).with("queue_packets", packets),
        )
    }),
    Plant::new("ack-batching", ALL, 3, |random, severity, _, known| {
        let interval = (known.rtt_ms * scaled(severity, 0.2, 5.0)).max(3.0);
        insert(random, false, stage("batch").with("interval_ms", number(interval)))
    }),
    Plant::new("placement", ALL, 1, |random, severity, well, _| {
        match random.below(3) {
            0 => only(well, ping("down", 150.0)),
            1 => only(well, file(random.log(20e3, 200e3))),
            _ => only(well, ping("up", 150.0)),
        }
        let place = if severity > 0.5 { "ocean" } else { "region" };
        for stages in [&mut well.there, &mut well.back] {
            for one in stages.iter_mut().filter(|one| one.get("stage") == Some("\"delay\"")) {
                one.set("delay_ms", number(5.0 + 15.0 * (1.0 - severity)));
            }
        }
        at_server(stage("server").with("place", quoted(place)))
    }),
    Plant::new("proxy", ALL, 1, |_, severity, _, known| {
        let bytes = (known.bdp_bytes() * scaled(severity, 0.8, 0.08)).max(3000.0).round();
        Box::new(move |draft| {
            draft.there.push(stage("proxy").with("window_bytes", bytes));
            draft.back.insert(0, stage("proxy"));
            // Half of the path is before the stage, half behind it.
            let half = |stage: &Table| stage.get("delay_ms").and_then(|ms| ms.parse::<f64>().ok());
            let there = draft.there.iter().find_map(half).unwrap_or(10.0) * 0.8;
            draft.there.push(stage("delay").with("delay_ms", number(there)));
            draft.back.insert(0, stage("delay").with("delay_ms", number(there)));
            for one in draft.there.iter_mut().chain(&mut draft.back) {
                if let Some(ms) = half(one).filter(|&ms| ms > there) {
                    one.set("delay_ms", number(ms - there));
                }
            }
        })
    }),
];
