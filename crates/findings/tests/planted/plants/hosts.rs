//! Causes at the two ends, and in what they send.

use super::{Plant, datagrams, file, of_flows, only, plain_queue, scaled};
use crate::bases::{ALL, WIRE};
use crate::draft::{number, quoted, stage};

pub(crate) const ENDS: &[Plant] = &[
    Plant::new("receive-window", ALL, 1, |_, severity, _, known| {
        let bytes = (known.bdp_bytes() * scaled(severity, 1.0, 0.1)).max(3000.0).round();
        Box::new(move |draft| {
            draft.transfers().for_each(|flow| {
                flow.set("receive_buffer_bytes", bytes);
                flow.set("buffer.initial_receive_bytes", 0);
            })
        })
    }),
    Plant::new("receive-window", ALL, 1, |_, severity, _, known| {
        let bytes = (known.bdp_bytes() * scaled(severity, 1.0, 0.1)).max(3000.0).round();
        of_flows("window_bytes", number(bytes))
    }),
    Plant::new("send-buffer", ALL, 1, |_, severity, _, known| {
        let bytes = (known.bdp_bytes() * scaled(severity, 1.2, 0.1)).max(3000.0).round();
        of_flows("send_buffer_bytes", number(bytes))
    }),
    Plant::new("application-limited", ALL, 1, |_, severity, well, known| {
        let room = (3.0 * known.bdp_bytes()).max(60e3).round();
        well.transfers().for_each(|flow| flow.set("receive_buffer_bytes", room));
        of_flows("read_rate_mbps", number(known.rate_mbps * (0.95 - 0.8 * severity)))
    }),
    Plant::new("application-limited", ALL, 1, |random, severity, well, known| {
        let bytes = known.rate_mbps * 1e6 / 8.0 * well.seconds * 0.3;
        only(well, file(bytes));
        let gap = well.seconds * (0.04 + 0.16 * severity);
        let times: Vec<String> =
            (0..2 + random.below(2)).map(|at| number(at as f64 * gap)).collect();
        of_flows("write_times_s", quoted(&times.join(", ")))
    }),
    Plant::new("cross-traffic", ALL, 2, |_, severity, _, known| {
        let rate = known.rate_mbps * (0.1 + 0.8 * severity);
        Box::new(move |draft| draft.flows.push(datagrams(rate)))
    }),
    Plant::new("congestion-control", ALL, 1, |_, severity, _, known| {
        let segments = (known.bdp_bytes() / 1448.0 * scaled(severity, 0.95, 0.1)).max(1.0).round();
        Box::new(move |draft| {
            draft.transfers().for_each(|flow| {
                flow.set("congestion", "\"fixed\"");
                flow.set("fixed_window_segments", segments);
            })
        })
    }),
    // A flow that starves another, or is starved.
    Plant::new("congestion-control", WIRE, 1, |random, severity, well, known| {
        let factor = scaled(severity, 1.0, 0.3);
        plain_queue(well, (known.bdp_bytes() * factor).max(15_000.0));
        well.transfers().for_each(|flow| flow.set("congestion", "\"cubic\""));
        let other = well.flows[0].clone();
        well.flows.insert(1, other);
        well.seconds = 30.0;
        let control = random.one_of(&["\"bbr\"", "\"bbr\"", "\"reno\""]);
        Box::new(move |draft| draft.flows[1].set("congestion", control))
    }),
    Plant::new("slow-start-exit", ALL, 1, |random, severity, well, known| {
        let flow = &mut well.flows[0];
        flow.set("congestion", "\"cubic\"");
        flow.set("slow_start", "\"none\"");
        well.flows.truncate(1);
        well.seconds = random.between(3.0, 6.0);
        let jitter = known.rtt_ms * (0.1 + 0.6 * severity);
        let at = if well.up { 0 } else { well.there.len() };
        well.there.insert(at, stage("delay").with("delay_ms", 0).with("jitter_ms", number(jitter)));
        let version = random.one_of(&["hystart-4.19", "hystart-5.8", "hystart-6.14", "hystart++"]);
        of_flows("slow_start", quoted(version))
    }),
    Plant::new("test-too-short", ALL, 1, |random, severity, well, known| {
        well.flows[0].set("congestion", "\"cubic\"");
        well.flows[0].set("slow_start", "\"none\"");
        well.flows.truncate(1);
        let rounds = random.between(10.0, 20.0) + 40.0 * (1.0 - severity);
        let short = (known.rtt_ms / 1e3 * rounds).clamp(0.3, 3.0);
        well.seconds = 30.0;
        Box::new(move |draft| draft.seconds = short)
    }),
];
