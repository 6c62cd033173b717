//! Law 3: what the kernel's packets did on the real clock, they do again on the virtual one.
//!
//! `make test` runs these tests if it is root. On a busy machine iperf3 may give up, and then there
//! is nothing to judge; late packets change nothing.

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use airpath_emu::{Emulation, Entry, Journal, Live, Options};
use airpath_scenario::{Scenario, Source, parse, shipped};
use airpath_testing::{has, real_clock};

fn scenario(name: &str) -> Scenario {
    scenario_with(name, &[])
}

fn scenario_with(name: &str, sets: &[String]) -> Scenario {
    let text = shipped().iter().find(|(known, _)| *known == name).expect("a shipped scenario").1;
    let source = Source { name, text, directory: None };
    parse(&source, sets).unwrap_or_else(|error| panic!("{error}")).scenario
}

/// Runs shell commands at both ends; returns the journal.
fn run(scenario: &Scenario, server: &str, ue: &str) -> Journal {
    // An observer is attached all the time: that changes nothing either.
    let live = Live::default();
    let options = Options {
        command: ["/bin/sh", "-c", ue].map(str::to_owned).to_vec(),
        servers: vec![server.to_owned()],
        output: Some(std::io::stderr().as_raw_fd()),
        live: Some(live.clone()),
        journal: true,
        ..Options::default()
    };
    let emulation = Emulation::new(scenario, 7, options).unwrap_or_else(|error| panic!("{error}"));
    let over = Arc::new(AtomicBool::new(false));
    let reader = std::thread::spawn({
        let over = Arc::clone(&over);
        move || {
            let mut seen = 0;
            while !over.load(Ordering::Relaxed) {
                seen += usize::from(live.snapshot().is_some());
            }
            seen
        }
    });
    let ended = emulation.run(&mut |_| true);
    over.store(true, Ordering::Relaxed);
    let seen = reader.join().expect("it only looks");
    let ended = ended.unwrap_or_else(|error| panic!("{error}"));
    assert!(seen > 0);
    assert_eq!(ended.code, 0);
    ended.journal.expect("it was asked for")
}

#[test]
#[ignore = "needs root"]
fn the_kernels_packets_leave_again_at_the_same_logical_times() {
    const TEST: &str = "the_kernels_packets_leave_again_at_the_same_logical_times";
    if !has(TEST, &["/dev/net/tun", "ip", "iperf3", "ping"]) {
        return;
    }
    // A radio, a queue that drops, losses at random, a trace, jitter.
    for name in ["nr-n78", "lte-20", "bufferbloat", "random-loss", "trace-driven", "jitter-reorder"]
    {
        let scenario = scenario(name);
        let transfers = "iperf3 -c server -t 1 -P 2 && iperf3 -c server -p 5202 -t 1 -R -C reno && \
                         ping -q -c 5 -i 0.05 server";
        let Some(journal) =
            real_clock(TEST, || run(&scenario, "iperf3 -s -p 5202 & exec iperf3 -s", transfers))
        else {
            return;
        };
        let again = journal.replay(&scenario, 7);
        let ((left, dropped), (left_again, dropped_again)) = (journal.outcome(), again.outcome());
        assert!(left.len() > 100, "{name}: {} packets left", left.len());
        assert_eq!(left.len(), left_again.len(), "{name}");
        assert!(left == left_again, "{name}: other times");
        assert!(dropped == dropped_again, "{name}: other drops");
        if name == "random-loss" {
            let other = journal.replay(&scenario, 8).outcome().1;
            assert!(other != dropped, "another seed loses other packets");
        }
    }
}

/// The kernel's GSO packets are cut into segments at one instant, which a card would join again.
#[test]
#[ignore = "needs root"]
fn what_the_kernel_sends_as_one_is_joined_again() {
    const TEST: &str = "what_the_kernel_sends_as_one_is_joined_again";
    if !has(TEST, &["/dev/net/tun", "ip", "iperf3"]) {
        return;
    }
    let scenario = scenario("gro-forwarding");
    let Some(journal) =
        real_clock(TEST, || run(&scenario, "exec iperf3 -s", "iperf3 -c server -t 1 -R || true"))
    else {
        return;
    };
    let (left, dropped) = journal.outcome();
    // The initial window is one joined packet; after it the retransmission timer backs off.
    assert!(left.len() > 10 && dropped.len() > 1, "{} left, {dropped:?}", left.len());
    assert_eq!((left, dropped), journal.replay(&scenario, 7).outcome());
}

#[test]
#[ignore = "needs root"]
fn what_comes_out_of_a_tunnel_is_an_arrival_of_its_own() {
    const TEST: &str = "what_comes_out_of_a_tunnel_is_an_arrival_of_its_own";
    if !has(TEST, &["/dev/net/tun", "ip", "iperf3", "ping"]) {
        return;
    }
    for name in ["nr-n78", "lte-20"] {
        let scenario = scenario_with(name, &["emulation.gtpu=true".to_owned()]);
        let transfers = "iperf3 -c server -t 1 -P 2 && ping -q -c 5 -i 0.05 server";
        let Some(journal) = real_clock(TEST, || run(&scenario, "exec iperf3 -s", transfers)) else {
            return;
        };
        let again = journal.replay(&scenario, 7);
        let ((left, dropped), (left_again, dropped_again)) = (journal.outcome(), again.outcome());
        let handed = left.iter().filter(|entry| matches!(entry, Entry::Handed { .. })).count();
        let passed = journal.entries().iter();
        let passed = passed.filter(|entry| matches!(entry, Entry::Reentered { .. })).count();
        assert!(handed > 100, "{name}: {handed} packets went into the tunnel");
        assert_eq!(handed, passed, "{name}: packets in the tunnel and out of it");
        assert!(left == left_again, "{name}: other times");
        assert!(dropped == dropped_again, "{name}: other drops");
    }
}

#[test]
#[ignore = "needs root"]
fn behind_nats_the_model_is_what_is_left_of_it() {
    const TEST: &str = "behind_nats_the_model_is_what_is_left_of_it";
    if !has(TEST, &["/dev/net/tun", "ip", "iperf3", "nft"]) {
        return;
    }
    let scenario = scenario("double-nat");
    let Some(journal) =
        real_clock(TEST, || run(&scenario, "exec iperf3 -s", "iperf3 -c server -t 1"))
    else {
        return;
    };
    let mut model = scenario.clone();
    for stages in [&mut model.down, &mut model.up] {
        stages.retain(|stage| !stage.name.ends_with(".nat"));
    }
    let (left, dropped) = journal.outcome();
    assert!(left.len() > 100, "{} packets left", left.len());
    assert_eq!((left, dropped), journal.replay(&model, 7).outcome());
}
