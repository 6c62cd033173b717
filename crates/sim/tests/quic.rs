//! QUIC flows over paths and cells.
#![cfg(feature = "quic")]

mod common;

const FILE: &str = "kind = \"quic\"\nsize_bytes = 2000000\n";

/// A flow over 20 Mb/s, 25 ms each way, and a queue of 100 packets; `more` are stages behind it.
fn wire(flow: &str, more: &str) -> String {
    let delay = |way: &str| format!("[[path.{way}]]\nstage = \"delay\"\ndelay_ms = 25\n");
    let link = |way: &str| {
        format!("[[path.{way}]]\nstage = \"link\"\nrate_mbps = 20\nqueue_packets = 100\n")
    };
    let ways = ["down", "up"].map(|way| link(way) + &delay(way)).concat();
    format!("[run]\nduration_s = 20\n{ways}{more}[[flow]]\n{flow}")
}

fn bytes_of(text: &str, seed: u64) -> (String, Vec<String>) {
    let scenario = common::scenario(text, &[]);
    let outcome = common::outcome(&scenario, seed);
    let summary = serde_json::to_string(&outcome.summary).expect("plain data");
    let tables = outcome.tables.finish(false);
    (summary, tables.iter().map(|table| format!("{table:?}")).collect())
}

#[test]
fn downloads_and_uploads_fill_the_link() {
    for direction in ["down", "up"] {
        let flow = format!("kind = \"quic\"\ndirection = \"{direction}\"\nduration_s = 10\n");
        let run = common::run(&wire(&flow, ""), &[]);
        let flow = &run.flows[0];
        // Of 1452 bytes of UDP payload in packets of 1480, headers and acknowledgements take a part.
        let goodput = flow.goodput_mbps.expect("it started");
        assert!((16.0..20.0 * 1452.0 / 1480.0).contains(&goodput), "{direction}: {goodput} Mb/s");
        let rtt = flow.rtt_ms.as_ref().expect("acknowledgements arrived");
        assert!(rtt.min >= 50.0 && rtt.max < 50.0 + 100.0 * 0.6 + 40.0, "{rtt:?}");
        let written = flow.written_mbps.expect("it started");
        assert!(written >= goodput && flow.congestion == Some("cubic"));
        assert_eq!((flow.profile.as_ref(), flow.retransmitted_segments), (None, None));
    }
}

/// What arrives is what was sent, without what was dropped.
#[test]
fn packets_are_conserved() {
    let loss = "[[path.down]]\nstage = \"loss\"\nprobability = 0.02\n";
    let run = common::run(&wire(FILE, loss), &[]);
    let flow = &run.flows[0];
    assert_eq!(flow.bytes_delivered, 2_000_000);
    assert!(flow.completed_s.is_some());
    let dropped: u64 = run.drops.iter().map(|drop| drop.packets).sum();
    assert!(dropped > 10 && run.drops.iter().all(|drop| drop.flow == "quic-0"));
    // The sender declares lost what was lost, but not probes of the MTU, and perhaps a few that
    // were only late.
    let lost = flow.packets_lost.expect("QUIC counts them");
    assert!((dropped - 5..=dropped + 5).contains(&lost), "{lost} of {dropped}");
}

#[test]
fn one_seed_gives_one_result() {
    let loss = "[[path.up]]\nstage = \"loss\"\nprobability = 0.01\n";
    let text = wire("kind = \"quic\"\ndirection = \"up\"\nsize_bytes = 300000\n", loss);
    let first = bytes_of(&text, 7);
    assert!((0..20).all(|_| bytes_of(&text, 7) == first));
    assert_ne!(bytes_of(&text, 8).0, first.0);
}

#[test]
#[ignore = "a hundred runs"]
fn a_hundred_runs_give_one_result() {
    let text = wire("kind = \"quic\"\nduration_s = 5\n", "");
    let first = bytes_of(&text, 7);
    assert!((1..100).all(|_| bytes_of(&text, 7) == first));
}

#[test]
fn a_flow_that_is_complete_ends_the_run() {
    let run = common::run(&wire(FILE, ""), &[]);
    let completed = run.flows[0].completed_s.expect("2 MB arrive in 20 s");
    // 2 MB at 20 Mb/s take 0.8 s; the handshake and the ramp come on top.
    assert!((0.8..2.5).contains(&completed), "{completed} s");
    assert!(run.duration_s < completed + 0.5, "{} s", run.duration_s);
}

#[test]
fn a_smaller_mtu_on_the_path_is_discovered() {
    let mtu = "[[path.down]]\nstage = \"mtu\"\nmtu_bytes = 1400\n";
    let run = common::run(&wire(FILE, mtu), &[]);
    assert_eq!(run.flows[0].bytes_delivered, 2_000_000);
    let dropped = run.drops.iter().filter(|drop| drop.reason == "too_big");
    let too_big: u64 = dropped.map(|drop| drop.packets).sum();
    assert!((1..=20).contains(&too_big), "only probes are too big: {:?}", run.drops);
}

#[test]
fn quic_crosses_a_cell_and_asking_for_fewer_acknowledgements_saves_grants() {
    let grants = |ack: &str| {
        let text = format!(
            "[run]\nduration_s = 5\n[radio]\npreset = \"lte-20\"\n[[path.down]]\nstage = \
             \"delay\"\ndelay_ms = 10\n[[flow]]\nkind = \"quic\"\n{ack}"
        );
        let run = common::run(&text, &[]);
        let up = run.radio.iter().find(|one| one.id.ends_with(".up")).expect("it acknowledges");
        (run.flows[0].goodput_mbps.expect("it started"), up.throughput_mbps)
    };
    let (usual, fewer) = (grants(""), grants("ack.packets = 20\n"));
    assert!(usual.0 > 10.0 && fewer.0 > 0.8 * usual.0, "{usual:?} and {fewer:?}");
    assert!(fewer.1 < 0.4 * usual.1, "{usual:?} and {fewer:?}");
}
