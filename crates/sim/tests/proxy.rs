//! The TCP proxy (RFC 3135 2.4): what it forwards, what it delays, what it is good for.

mod common;

use airpath_record::{FlowSummary, ProxySummary, RunSummary};
use common::run;
use proptest::prelude::*;

/// The stages of both directions around a proxy, or without one.
struct Route<'a> {
    before: &'a str,
    after: &'a str,
    /// Keys of the proxy in the direction of the data; `None`: no proxy.
    proxy: Option<&'a str>,
    /// One-way delay of the return path, after and before the proxy.
    back_ms: [f64; 2],
}

impl Route<'_> {
    fn scenario(&self, flows: &str) -> String {
        let Route { before, after, proxy, back_ms: [far, near] } = self;
        let down = |keys: &str| format!("[[path.down]]\nstage = \"proxy\"\n{keys}\n");
        let down = proxy.map(down).unwrap_or_default();
        let up = if proxy.is_some() { "[[path.up]]\nstage = \"proxy\"\n" } else { "" };
        format!(
            "{before}{down}{after}[[path.up]]\nstage = \"delay\"\ndelay_ms = {far}\n{up}\
             [[path.up]]\nstage = \"delay\"\ndelay_ms = {near}\n{flows}"
        )
    }
}

fn link(mbps: f64, packets: u32) -> String {
    format!("[[path.down]]\nstage = \"link\"\nrate_mbps = {mbps}\nqueue_packets = {packets}\n")
}

fn delay(ms: f64) -> String {
    format!("[[path.down]]\nstage = \"delay\"\ndelay_ms = {ms}\n")
}

fn loss(probability: f64) -> String {
    format!("[[path.down]]\nstage = \"loss\"\nprobability = {probability}\n")
}

const BULK: &str = "[[flow]]\nkind = \"bulk\"\nprofile = \"linux-6.1\"\n";

fn split(summary: &RunSummary) -> (&FlowSummary, &ProxySummary) {
    (&summary.flows[0], &summary.proxies[0])
}

/// The shipped scenario without the proxy's tables and their keys.
fn without_proxy(text: &str) -> String {
    let tables: Vec<&str> = text.split_inclusive("\n\n").collect();
    let kept: String =
        tables.into_iter().filter(|table| !table.contains("stage = \"proxy\"")).collect();
    assert!(kept.len() < text.len());
    kept
}

#[test]
fn losses_on_a_short_hop_cost_little_where_a_proxy_repairs_them() {
    let text = common::shipped("proxy");
    let split = run(text, &[]);
    let end_to_end = run(&without_proxy(text), &[]);
    // The second hop alone, with the proxy's buffers.
    let alone = Route {
        before: "",
        after: &format!("{}{}{}", link(20.0, 100), loss(0.005), delay(5.0)),
        proxy: None,
        back_ms: [5.0, 0.0],
    };
    let alone = run(&alone.scenario(BULK), &[]);
    let goodput = |summary: &RunSummary| summary.flows[0].goodput_mbps.expect("it ran");
    let (split, end_to_end, alone) = (goodput(&split), goodput(&end_to_end), goodput(&alone));
    assert!(split > 4.0 * end_to_end, "{split} with the proxy, {end_to_end} without");
    assert!(split > 0.9 * alone, "{split} with the proxy, {alone} on the second hop alone");
    assert!(alone < 20.0 * 1448.0 / 1500.0);
}

#[test]
fn a_slow_second_hop_closes_the_window_of_the_first() {
    let (receive, send) = (200_000, 100_000);
    let keys = format!("receive_buffer_bytes = {receive}\nsend_buffer_bytes = {send}\n");
    let route = Route {
        before: &format!("{}{}", link(100.0, 1000), delay(10.0)),
        after: &format!("{}{}", link(2.0, 1000), delay(10.0)),
        proxy: Some(&keys),
        back_ms: [10.0, 10.0],
    };
    let summary = run(&route.scenario(BULK), &["run.duration_s=20"]);
    let (flow, proxy) = split(&summary);
    // Both buffers fill, and never exceed their size.
    let most = proxy.buffered_bytes_max;
    assert!(most <= receive + send, "{most} bytes are more than the buffers hold");
    assert!(most > (receive + send) * 9 / 10, "only {most} bytes were held");
    // The second hop is full, and the first waits for it.
    let full = 2.0 * 1448.0 / 1500.0;
    let goodput = flow.goodput_mbps.expect("it ran");
    assert!(goodput > 0.95 * full && goodput <= full, "{goodput}");
    let limited = flow.limited_s.as_ref().expect("a TCP flow");
    assert!(limited.receive_window > 18.0, "{limited:?}");
    assert_eq!(flow.retransmitted_segments, Some(0));
    // The sender on the second hop always has data: the first never lets it starve.
    assert!(proxy.limited_s.application < 0.5, "{:?}", proxy.limited_s);
}

#[test]
fn a_slow_first_hop_leaves_the_second_waiting_for_data() {
    let route = Route {
        before: &format!("{}{}", link(2.0, 50), delay(10.0)),
        after: &format!("{}{}", link(100.0, 50), delay(10.0)),
        proxy: Some(""),
        back_ms: [10.0, 10.0],
    };
    let summary = run(&route.scenario(BULK), &["run.duration_s=20"]);
    let (flow, proxy) = split(&summary);
    assert!(flow.goodput_mbps.expect("it ran") > 0.93 * 2.0 * 1448.0 / 1500.0);
    assert!(proxy.limited_s.application > 18.0, "{:?}", proxy.limited_s);
    // RTT and losses of a flow are those that its own sender sees: those of the first hop.
    let (first, second) = (flow.rtt_ms.as_ref(), proxy.rtt_ms.as_ref());
    assert!(first.expect("samples").p50 > 40.0);
    // 20 ms, plus at most a delayed acknowledgement.
    assert!(second.expect("samples").p50 < 70.0, "{second:?}");
    assert_eq!(proxy.retransmitted_segments, 0);
}

#[test]
fn the_proxy_answers_the_syn_and_opens_the_other_connection_at_once() {
    // One way: 50 ms to the proxy, 5 ms from it. There is no rate limit: only round trips count.
    let route =
        Route { before: &delay(50.0), after: &delay(5.0), proxy: Some(""), back_ms: [5.0, 50.0] };
    let completed = |opened_by: &str, proxy: bool| {
        let flow = format!(
            "[[flow]]\nkind = \"file\"\nsize_bytes = 1000\nprofile = \"linux-6.1\"\n\
             opened_by = \"{opened_by}\"\n"
        );
        let route = Route { proxy: proxy.then_some(""), ..route };
        let seconds = run(&route.scenario(&flow), &[]).flows[0].completed_s.expect("it ends");
        (seconds * 1e6).round() / 1e3
    };
    // End to end: SYN, SYN+ACK, ACK and data, 55 ms each; if the sender opens, only three of them.
    assert_eq!(completed("receiver", false), 4.0 * 55.0);
    assert_eq!(completed("sender", false), 3.0 * 55.0);
    // The receiver's SYN reaches the proxy after 5 ms; then SYN, SYN+ACK, ACK and data on the long
    // hop, and data on the short one, whose handshake took place meanwhile.
    assert_eq!(completed("receiver", true), 5.0 + 4.0 * 50.0 + 5.0);
    // SYN, SYN+ACK and data on the long hop; the short one is open by then.
    assert_eq!(completed("sender", true), 3.0 * 50.0 + 5.0);
}

#[test]
fn datagrams_pass_as_if_it_were_not_there() {
    let text = common::shipped("proxy");
    let quiet: String = text
        .split_inclusive("\n\n")
        .filter(|table| !table.contains("id = \"download\"") && !table.contains("\"loss\""))
        .collect();
    let udp = "\n[[flow]]\nkind = \"udp\"\nrate_mbps = 30\nduration_s = 2\n\
               [[flow]]\nkind = \"udp\"\ndirection = \"up\"\nrate_mbps = 3\nduration_s = 2\n";
    let text = format!("{quiet}{udp}");
    let (with, without) = (run(&text, &[]), run(&without_proxy(&text), &[]));
    assert!(with.proxies.is_empty(), "no TCP");
    assert_eq!(with.flows.len(), 2);
    assert_eq!(with.links.len(), 2);
    let flows = |summary: &RunSummary| serde_json::to_string(&summary.flows).expect("plain data");
    assert_eq!(flows(&with), flows(&without));
    let pings = |summary: &RunSummary| serde_json::to_string(&summary.pings).expect("plain data");
    assert_eq!(pings(&with), pings(&without));
    assert!(with.flows[0].packets_lost.expect("a udp flow") > 1000, "the second link is too slow");
    assert_eq!(
        with.links[1].dropped_packets.get("queue_full"),
        with.flows[0].packets_lost.as_ref()
    );
}

#[test]
fn links_and_losses_of_both_hops_have_the_places_of_the_file() {
    let route = Route {
        before: &format!("{}{}{}", delay(10.0), link(50.0, 20), loss(0.001)),
        after: &format!("{}{}{}", loss(0.02), delay(1.0), link(10.0, 20)),
        proxy: Some(""),
        back_ms: [1.0, 10.0],
    };
    let outcome = common::outcome(&common::scenario(&route.scenario(BULK), &[]), 3);
    let ids: Vec<_> = outcome.summary.links.iter().map(|link| link.id.as_str()).collect();
    assert_eq!(ids, ["down.1.link", "down.6.link"]);
    for link in &outcome.summary.links {
        assert!(link.throughput_mbps > 1.0, "{link:?}");
    }
    let tables = outcome.tables.finish(false);
    let events = format!("{:?}", tables.iter().find(|(name, _)| *name == "events").expect("it is"));
    for place in ["down.2.loss", "down.4.loss", "bulk-0@proxy"] {
        assert!(events.contains(place), "no event at {place}");
    }
    let rows = |wanted: &str| {
        let table = tables.iter().find(|(name, _)| *name == wanted);
        table.map_or(0, |(_, batches)| batches[0].num_rows())
    };
    assert_eq!(rows("proxies"), rows("samples"), "one row an interval");
}

#[test]
fn uploads_are_split_too_with_the_keys_of_their_direction() {
    let text = "
path.down = [
  { stage = \"delay\", delay_ms = 40 },
  { stage = \"proxy\", congestion = \"reno\" },
  { stage = \"delay\", delay_ms = 5 },
]
path.up = [
  { stage = \"link\", rate_mbps = 5, queue_packets = 50 },
  { stage = \"loss\", period = 500 },
  { stage = \"proxy\", congestion = \"bbr\", window_bytes = 500000 },
  { stage = \"delay\", delay_ms = 40 },
]
[[flow]]
kind = \"file\"
direction = \"up\"
opened_by = \"sender\"
size_bytes = 3000000
";
    let summary = run(text, &[]);
    let (flow, proxy) = split(&summary);
    assert_eq!((flow.congestion, proxy.congestion), (Some("cubic"), "bbr"));
    assert_eq!((proxy.proxy.as_str(), proxy.direction), ("up.2.proxy", "up"));
    assert_eq!((flow.bytes_delivered, proxy.bytes_acked), (3_000_000, 3_000_000));
    assert!(flow.completed_s.expect("it ends") < 8.0);
    assert!(flow.retransmitted_segments.expect("a TCP flow") > 0);
    assert_eq!(proxy.retransmitted_segments, 0, "the loss is before the proxy");
}

/// A NAT between server and proxy, and a firewall between proxy and UE; the flow is appended to
/// this text.
const MIDDLEBOXES: &str = "
[[path.down]]
stage = \"nat\"
[[path.down]]
stage = \"delay\"
delay_ms = 10
[[path.down]]
stage = \"proxy\"
[[path.down]]
stage = \"firewall\"
[[path.down]]
stage = \"link\"
rate_mbps = 10
queue_packets = 50
[[path.up]]
stage = \"delay\"
delay_ms = 5
[[path.up]]
stage = \"firewall\"
[[path.up]]
stage = \"proxy\"
[[path.up]]
stage = \"delay\"
delay_ms = 10
[[path.up]]
stage = \"nat\"
";

#[test]
fn a_middlebox_on_either_side_wants_tcp_opened_by_the_ue() {
    let text = format!("{MIDDLEBOXES}[[flow]]\nkind = \"bulk\"\n");
    let delivered = |sets: &[&str]| run(&text, sets).flows[0].bytes_delivered;
    assert_eq!(delivered(&["run.duration_s=5"]), 0);
    let opened = delivered(&["run.duration_s=5", "flow.0.opened_by=receiver"]);
    assert!(opened > 9 * 5_000_000 / 8, "{opened}");
    // The firewall alone: the SYN of the proxy itself does not pass it.
    let (nat_down, nat_up) = ("[[path.down]]\nstage = \"nat\"\n", "[[path.up]]\nstage = \"nat\"\n");
    let text = text.replace(nat_down, "").replace(nat_up, "");
    assert_eq!(run(&text, &["run.duration_s=5"]).flows[0].bytes_delivered, 0);
}

#[test]
fn a_middlebox_asks_its_counterpart_on_its_side_of_the_proxy() {
    // Only the first datagram goes up. The middlebox that forgets it first drops all later ones,
    // with a drop reason of its own.
    let udp = "[[flow]]\nkind = \"udp\"\nrate_mbps = 1\nopened_by = \"receiver\"\n";
    let dropped = |nat_s: u32, firewall_s: u32| {
        let sets = [
            "run.duration_s=4".to_owned(),
            format!("path.up.1.timeout_s={firewall_s}"),
            format!("path.up.4.timeout_s={nat_s}"),
            "path.up.1.inward_refreshes=false".to_owned(),
            "path.up.4.inward_refreshes=false".to_owned(),
        ];
        let text = format!("{MIDDLEBOXES}{udp}");
        let scenario = common::scenario(&text, &sets.each_ref().map(String::as_str));
        let tables = common::outcome(&scenario, 1).tables.finish(false);
        let (_, events) = tables.iter().find(|(name, _)| *name == "events").expect("it is");
        let events = format!("{events:?}");
        ["no_binding", "blocked"].map(|reason| events.contains(reason))
    };
    assert_eq!(dropped(2, 300), [true, false]);
    assert_eq!(dropped(300, 2), [false, true]);
    assert_eq!(dropped(300, 300), [false, false]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Whatever happens on the two hops: every byte arrives once and in order, the proxy never
    /// holds more than its buffers, and the run ends when the file has arrived.
    #[test]
    fn a_file_arrives_once_and_whole(
        size in 1u64..3_000_000,
        rates in [0.5f64..50.0, 0.5f64..50.0],
        losses in [0.0f64..0.03, 0.0f64..0.03],
        delays in [0.1f64..40.0, 0.1f64..40.0],
        buffers in [3_000u64..300_000, 3_000u64..300_000],
        congestion in prop_oneof![Just("cubic"), Just("reno"), Just("bbr")],
        opened_by in prop_oneof![Just("sender"), Just("receiver")],
        seed in 0u32..1000,
    ) {
        let hop = |at: usize| {
            format!("{}{}{}", link(rates[at], 60), loss(losses[at]), delay(delays[at]))
        };
        let keys = format!(
            "congestion = \"{congestion}\"\nreceive_buffer_bytes = {}\nsend_buffer_bytes = {}\n\
             buffer.initial_receive_bytes = 0\n",
            buffers[0], buffers[1]
        );
        let route = Route {
            before: &hop(0),
            after: &hop(1),
            proxy: Some(&keys),
            back_ms: [delays[1], delays[0]],
        };
        let flow = format!(
            "[[flow]]\nkind = \"file\"\nsize_bytes = {size}\nopened_by = \"{opened_by}\"\n\
             profile = \"linux-6.1\"\n"
        );
        let text = route.scenario(&flow);
        let seed = format!("run.seed={seed}");
        let sets = ["run.duration_s=600", &seed];
        let summary = run(&text, &sets);
        let (flow, proxy) = split(&summary);
        prop_assert!(flow.completed_s.is_some(), "it did not end: {:?}", proxy);
        prop_assert_eq!(
            (flow.bytes_delivered, proxy.bytes_received, proxy.bytes_acked),
            (size, size, size)
        );
        prop_assert!(summary.duration_s < 600.0, "the connections were not closed");
        prop_assert!(proxy.buffered_bytes_max <= buffers[0] + buffers[1]);
        let again = run(&text, &sets);
        prop_assert_eq!(serde_json::to_string(&summary).ok(), serde_json::to_string(&again).ok());
    }
}
