//! Where the time goes: the parts add up to the total, and agree with values worked out by hand.

mod common;

use airpath_record::{Breakdown, DelayBreakdown, RunSummary};
use airpath_scenario::{Scenario, shipped};
use airpath_sim::{Options, Outcome, Passage, simulate_with};
use common::scenario;

fn recorded(scenario: &Scenario, options: Options<'_>) -> Outcome {
    simulate_with(scenario, 3, options, &mut |_, _| true).expect("not stopped")
}

fn accounted(scenario: &Scenario) -> RunSummary {
    recorded(scenario, Options { accounted: true, on_packet: None }).summary
}

fn part(times: &DelayBreakdown, name: &str) -> f64 {
    times.parts.iter().filter(|part| part.part == name).map(|part| part.ms).sum()
}

fn near(found: f64, expected: f64, within: f64, what: &str) {
    assert!((found - expected).abs() <= within, "{what}: {found} instead of {expected}");
}

/// Checks that the parts add up to the mean that the flow measured, and that almost nothing is
/// unaccounted for.
fn holds(name: &str, summary: &RunSummary) {
    assert!(!summary.breakdowns.is_empty(), "{name}");
    for Breakdown { id, rtt_ms, delay_ms, goodput_mbps } in &summary.breakdowns {
        let ping = summary.pings.iter().find(|ping| ping.id == *id);
        let flow = summary.flows.iter().find(|flow| flow.id == *id);
        let rtt = flow.map(|flow| &flow.rtt_ms).or(ping.map(|ping| &ping.rtt_ms));
        let proxy = summary.proxies.iter().find(|proxy| format!("{}@proxy", proxy.id) == *id);
        let rtt = rtt.or(proxy.map(|proxy| &proxy.rtt_ms)).and_then(Option::as_ref);
        let delay = flow.and_then(|flow| flow.delay_ms.as_ref());
        assert_eq!(rtt.is_some(), rtt_ms.is_some(), "{name}: RTT of {id}");
        assert_eq!(delay.is_some(), delay_ms.is_some(), "{name}: delay of {id}");
        for (times, measured) in [(rtt_ms, rtt), (delay_ms, delay)] {
            let (Some(times), Some(measured)) = (times, measured) else { continue };
            let what = format!("{name}, {id}");
            let sum: f64 = times.parts.iter().map(|part| part.ms).sum();
            near(sum, times.mean, 1e-3 * times.mean, &what);
            near(sum, measured.mean, 0.01 * measured.mean, &what);
            let left = part(times, "unattributed");
            assert!(left < 0.05 * times.mean, "{what}: {left} ms of {} ms", times.mean);
            let shares: f64 = times.parts.iter().map(|part| part.share).sum();
            near(shares, 1.0, 1e-3, &what);
        }
        let Some(rate) = goodput_mbps else { continue };
        let what = format!("{name}, goodput of {id}");
        let goodput = flow.and_then(|flow| flow.goodput_mbps).expect("it has a breakdown");
        let sum: f64 = rate.parts.iter().map(|part| part.mbps).sum();
        near(sum + goodput, rate.capacity, 1e-3 * rate.capacity, &what);
        for part in &rate.parts {
            let most = if part.part == "unattributed" { 0.05 } else { 1.0 };
            assert!((-0.01..most).contains(&part.share), "{what}: {part:?} of {}", rate.capacity);
        }
    }
}

/// Checks that accounting changes nothing else.
fn changes_nothing(name: &str, scenario: &Scenario) -> RunSummary {
    let plain = common::outcome(scenario, 3);
    let mut outcome = recorded(scenario, Options { accounted: true, on_packet: None });
    let breakdowns = std::mem::take(&mut outcome.summary.breakdowns);
    // The capacity of the links is asked for where a flow begins and ends: whatever is due then
    // needs no event of its own.
    let (before, after) = (plain.summary.events, outcome.summary.events);
    assert!(before - after <= 2 * scenario.flows.len() as u64, "{name}: {before}, {after}");
    outcome.summary.events = before;
    let text = |summary: &RunSummary| serde_json::to_string(summary).expect("plain data");
    assert_eq!(text(&plain.summary), text(&outcome.summary), "{name}");
    let acks = scenario.run.ack_table;
    assert_eq!(plain.tables.finish(acks), outcome.tables.finish(acks), "{name}");
    RunSummary { breakdowns, ..outcome.summary }
}

#[test]
fn parts_of_every_shipped_scenario_sum_to_the_whole() {
    for (name, text) in shipped() {
        let whole = scenario(text, &[]);
        let length = whole.run.duration.as_secs_f64();
        let ends = |flow: &airpath_scenario::FlowConfig| flow.start.as_secs_f64() + 2.0;
        let first = whole.flows.iter().map(ends).fold(4.0, f64::max);
        let set = format!("run.duration_s={}", length.min(first));
        holds(name, &changes_nothing(name, &scenario(text, &[&set])));
    }
}

#[test]
#[ignore = "the whole of every scenario: make findings"]
fn parts_of_every_shipped_scenario_in_full_sum_to_the_whole() {
    for (name, text) in shipped() {
        holds(name, &changes_nothing(name, &scenario(text, &[])));
    }
}

#[test]
fn a_run_can_account_for_time_and_show_its_packets() {
    let text = shipped().iter().find(|(name, _)| *name == "lte-20").expect("it is shipped").1;
    let scenario = scenario(text, &["run.duration_s=1"]);
    let seen = |accounted| {
        let mut seen = Vec::new();
        let mut on_packet = |passage: &Passage| {
            let Passage { at, place, direction, packet } = *passage;
            seen.push((at, place, direction, packet.flow, packet.size));
        };
        let outcome = recorded(&scenario, Options { accounted, on_packet: Some(&mut on_packet) });
        (seen, outcome.summary)
    };
    let ((plain, _), (packets, both)) = (seen(false), seen(true));
    assert!(packets.len() > 1000);
    assert_eq!(packets, plain);
    assert!(!both.breakdowns.is_empty());
    assert_eq!(both.breakdowns, accounted(&scenario).breakdowns);
}

#[test]
fn a_ping_over_wires_spends_what_its_stages_say() {
    let text = "[[path.down]]\nstage = \"link\"\nrate_mbps = 1\n\
                [[path.down]]\nstage = \"delay\"\ndelay_ms = 7\n\
                [[path.up]]\nstage = \"delay\"\ndelay_ms = 5\n\
                [[flow]]\nkind = \"ping\"\nid = \"ping\"\npacket_bytes = 1000\ncount = 5\n";
    let summary = accounted(&scenario(text, &[]));
    let rtt = summary.breakdowns[0].rtt_ms.as_ref().expect("replies");
    assert_eq!((rtt.samples, rtt.parts.len()), (5, 2));
    near(part(rtt, "propagation"), 12.0, 1e-9, "propagation");
    near(part(rtt, "serialisation"), 8.0, 1e-9, "serialisation");
    let serialisation = rtt.parts.iter().find(|part| part.part == "serialisation");
    assert_eq!(serialisation.and_then(|part| part.place.as_deref()), Some("down.0.link"));
}

#[test]
fn a_window_that_the_path_does_not_hold_waits_in_the_queue() {
    // 100 segments of 1,500 bytes, 1.2 ms each on the link, and 40 ms without a queue: whatever
    // exceeds 40 ms at that rate waits.
    let text = "[[path.down]]\nstage = \"link\"\nrate_mbps = 10\n\
                [[path.down]]\nstage = \"delay\"\ndelay_ms = 20\n\
                [[path.up]]\nstage = \"delay\"\ndelay_ms = 20\n\
                [[flow]]\nkind = \"bulk\"\nid = \"bulk\"\nwindow_bytes = 144800\n";
    let summary = accounted(&scenario(text, &["run.duration_s=20"]));
    let rtt = summary.breakdowns[0].rtt_ms.as_ref().expect("acknowledgements");
    near(rtt.mean, 120.0, 1.5, "RTT");
    near(part(rtt, "propagation"), 40.0, 1e-6, "propagation");
    near(part(rtt, "serialisation"), 1.2, 0.01, "serialisation");
    let waits = part(rtt, "queue") + part(rtt, "acknowledgement");
    near(waits, 120.0 - 41.2, 1.5, "queue");
}

/// The idle pings of docs/concepts/uplink.md.
fn idle_ping(preset: &str, rest: &str, sets: &[&str]) -> DelayBreakdown {
    let text = format!(
        "[run]\nduration_s = 402\nsample_interval_ms = 1000\n\
         [radio]\npreset = \"{preset}\"\n\
         [radio.channel]\nsinr_db = 30\n[radio.channel_up]\nsinr_db = 30\n\
         {rest}\n\
         [[flow]]\nid = \"ping\"\nkind = \"ping\"\nstart_s = 1\ninterval_ms = 1000.618034\n\
         count = 400\n"
    );
    let summary = accounted(&scenario(&text, sets));
    holds(preset, &summary);
    let times = summary.breakdowns.into_iter().next().and_then(|flow| flow.rtt_ms);
    times.expect("replies")
}

fn is(times: &DelayBreakdown, expected: &[(&str, f64)]) {
    for &(name, ms) in expected {
        near(part(times, name), ms, 0.01 * ms.max(5.0), name);
    }
    let sum: f64 = expected.iter().map(|(_, ms)| ms).sum();
    near(times.mean, sum, 0.01 * sum, "the whole");
}

#[test]
fn an_idle_ping_waits_half_a_period_for_its_scheduling_request() {
    // LTE FDD: 1 (SR) + 3 + 4 to the PUSCH of the grant, 1 + 1 of blocks, 1.5 + 1 + 1.5 of
    // processing, 0.5 to the next subframe.
    for period in [10.0, 20.0, 40.0] {
        let period_ms = format!("radio.sr.period_ms={period}");
        let sr = "[radio.sr]\noffset_ms = 4";
        let times = idle_ping("lte-20", sr, &[&period_ms]);
        is(
            &times,
            &[
                ("sr", period / 2.0),
                ("grant", 8.0),
                ("serialisation", 2.0),
                ("radio_processing", 4.0),
                ("slot", 0.5),
            ],
        );
    }
}

#[test]
fn the_slot_pattern_decides_when_a_grant_can_be_used() {
    // NR DDDSU, SR in an S slot: 0.5 (SR) + 0.5 + 2 to the PUSCH, 0.5 + 0.5 of blocks, three times
    // 0.5 of processing.
    let cell =
        "[radio.cell]\ntdd_pattern = \"DDDSU 10:2:2\"\n[radio.sr]\nperiod_ms = 10\noffset_ms = 4";
    let times = idle_ping("nr-n78", cell, &[]);
    let expected = [("sr", 5.0), ("grant", 3.0), ("serialisation", 1.0), ("radio_processing", 1.5)];
    is(&times, &expected);
}

#[test]
fn a_larger_packet_waits_for_the_grant_that_its_report_asks_for() {
    let sr = "[radio.sr]\nperiod_ms = 10\noffset_ms = 4";
    let times = idle_ping("lte-20", sr, &["flow.0.packet_bytes=1400"]);
    near(part(&times, "bsr"), 8.0, 0.1, "bsr");
    near(part(&times, "sr"), 5.0, 0.1, "sr");
    let small = idle_ping("lte-20", sr, &[]);
    assert_eq!(part(&small, "bsr"), 0.0);
}

#[test]
fn a_grant_that_comes_unasked_is_waited_for_half_its_interval() {
    // The UE needs 0.5 ms to prepare the packet. A grant that arrives in that time carries a report
    // instead.
    let rest =
        "[radio.cell]\ntdd_pattern = \"DDDSU 10:2:2\"\n[radio.grants]\nproactive_period_ms = 2.5";
    let times = idle_ping("nr-n78", rest, &[]);
    near(part(&times, "grant") + part(&times, "bsr"), 1.25 + 0.5, 0.05, "grant");
    near(part(&times, "serialisation"), 1.0, 1e-6, "serialisation");
    near(part(&times, "radio_processing"), 1.5, 1e-6, "processing");
    near(times.mean, 4.25, 0.05, "the whole");
}

#[test]
fn a_reply_that_finds_the_ue_asleep_waits_for_the_on_duration() {
    // (T - D)^2 / 2T on average.
    let rest = "[[path.up]]\nstage = \"delay\"\ndelay_ms = 40\n\
                [radio.drx]\nlong_cycle_ms = 320\non_duration_ms = 10\ninactivity_ms = 10\n\
                [radio.sr]\nperiod_ms = 10\noffset_ms = 4";
    let times = idle_ping("nr-n78", rest, &["radio.cell.tdd_pattern=\"DDDSU 10:2:2\""]);
    near(part(&times, "drx"), 310.0 * 310.0 / 640.0, 8.0, "drx");
    near(part(&times, "propagation"), 40.0, 1e-6, "propagation");
    near(part(&times, "sr"), 5.0, 0.1, "sr");
}

#[test]
fn a_block_that_fails_costs_a_round_of_harq() {
    let rest = "[radio.sr]\nperiod_ms = 10\noffset_ms = 4";
    let sets = ["radio.channel.sinr_db=6", "radio.channel_up.sinr_db=6", "flow.0.packet_bytes=60"];
    let text = format!(
        "[run]\nduration_s = 402\n[radio]\npreset = \"lte-20\"\n{rest}\n\
         [[flow]]\nid = \"ping\"\nkind = \"ping\"\nstart_s = 1\ninterval_ms = 1000.618034\n"
    );
    let summary = accounted(&scenario(&text, &sets));
    let rtt = summary.breakdowns[0].rtt_ms.as_ref().expect("replies");
    let again: u64 = summary.radio.iter().map(|radio| radio.harq_retransmissions).sum();
    assert!(again > 20, "{again} of {}", rtt.samples);
    // Not every block carries a ping: RLC's STATUS has blocks of its own.
    let rounds = part(rtt, "harq") * rtt.samples as f64 / 8.0;
    near(rounds, rounds.round(), 1e-3, "whole rounds of 8 ms");
    let most = again as f64;
    assert!((0.3 * most..=most).contains(&rounds), "{rounds} rounds of {again}");
}

/// EN-DC: LTE with a given BLER, and NR, which has every second byte and travels 1 ms to PDCP.
fn en_dc(bler: f64, sets: &[&str]) -> RunSummary {
    let text = format!(
        "[run]\nduration_s = 20\n[radio]\npreset = \"lte-20\"\n[radio.link_adaptation]\n\
         fixed_bler = {bler}\nfixed_bler_retransmission = {bler}\nfixed_mcs = 20\n\
         [[radio.neighbour]]\npreset = \"nr-n78\"\n[radio.split]\nsecondary_share = 0.5\ndelay_ms = 1\n\
         [[flow]]\nid = \"stream\"\nkind = \"udp\"\nrate_mbps = 10\npacket_bytes = 1200\n"
    );
    accounted(&scenario(&text, sets))
}

#[test]
fn a_bad_leg_shows_as_reordering() {
    let reordering = |bler| {
        let summary = en_dc(bler, &[]);
        holds("en-dc", &summary);
        let delay = summary.breakdowns[0].delay_ms.as_ref().expect("packets arrive").clone();
        part(&delay, "reordering")
    };
    let (good, bad) = (reordering(0.0), reordering(0.4));
    // A block that fails costs LTE 8 ms: those behind it wait, at least half of the bytes.
    assert!(good > 0.0 && bad > good + 2.0, "{good} and {bad} ms");
    let alone = en_dc(0.4, &["radio.split.enabled=false"]);
    let delay = alone.breakdowns[0].delay_ms.as_ref().expect("packets arrive");
    near(part(delay, "reordering"), 0.0, 1e-9, "one leg");
}

/// LTE with a second carrier of the same width, and its BLER there.
fn two_carriers(bler: f64, sets: &[&str]) -> RunSummary {
    let text = format!(
        "[run]\nduration_s = 20\n[radio]\npreset = \"lte-20\"\n[[radio.ue]]\n[[radio.carrier]]\n\
         [radio.carrier.link_adaptation]\nfixed_bler = {bler}\n\
         fixed_bler_retransmission = {bler}\nfixed_mcs = 20\n\
         [[flow]]\nid = \"stream\"\nkind = \"udp\"\nrate_mbps = 200\npacket_bytes = 1200\n"
    );
    accounted(&scenario(&text, sets))
}

#[test]
fn a_bad_carrier_shows_as_reordering() {
    let delay = |bler, sets: &[&str]| {
        let summary = two_carriers(bler, sets);
        holds("two carriers", &summary);
        summary.breakdowns[0].delay_ms.clone().expect("packets arrive")
    };
    let (good, bad) = (delay(0.0, &[]), delay(0.2, &[]));
    near(part(&good, "reordering"), 0.0, 0.1, "nothing is repeated");
    assert!(part(&bad, "reordering") > 3.0, "{} ms", part(&bad, "reordering"));
    // What one carrier alone repeats is RLC's.
    let alone = delay(0.2, &["radio.ue.0.carriers=0", "flow.0.rate_mbps=50"]);
    near(part(&alone, "reordering"), 0.0, 1e-9, "one carrier");
}

#[test]
fn every_part_is_explained_in_the_docs() {
    let page = include_str!("../../../docs/concepts/breakdown.md");
    let times = airpath_base::Part::ALL.iter().map(|part| part.name());
    let rates = airpath_tcp::Activity::ALL.into_iter().map(airpath_tcp::Activity::name);
    for name in times.chain(rates) {
        assert!(page.contains(&format!("\n| `{name}` | ")), "{name}");
    }
}
