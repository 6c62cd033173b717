//! What limits a run at a hop: rings and processors of hosts, bursts of policers, MTUs. Also what
//! is reported for a transfer that does not complete.
#![allow(clippy::disallowed_methods)]

mod explained;

use airpath_findings::{Budget, Explanation, Finding};
use airpath_scenario::{Edit, Source, parse};
use airpath_sim::simulate;
use explained::explained;

const DELAYS: &str = "[[path.down]]\nstage = \"delay\"\ndelay_ms = 10\n\
                      [[path.up]]\nstage = \"delay\"\ndelay_ms = 10\n";

/// A 20 Mb/s link behind a stage that data reach first, in either direction, for 4 s.
fn behind(direction: &str, stage: &str, flows: &str) -> String {
    format!(
        "[run]\nduration_s = 4\n[[path.{direction}]]\n{stage}\n[[path.{direction}]]\nstage = \"link\"\n\
         rate_mbps = 20\nqueue_packets = 35\n{DELAYS}{flows}"
    )
}

fn transfer(direction: &str) -> String {
    format!(
        "[[flow]]\nid = \"bulk\"\nkind = \"bulk\"\ndirection = \"{direction}\"\nprofile = \"linux-6.1\"\n"
    )
}

fn quick(text: &str) -> Explanation {
    explained(text, Budget::QUICK)
}

/// The causes that were named, without the bounds.
fn causes(explanation: &Explanation) -> Vec<&str> {
    let named = explanation.findings.iter().map(|finding| finding.cause);
    named.filter(|cause| !cause.ends_with("-capacity")).collect()
}

fn named<'a>(explanation: &'a Explanation, cause: &str) -> &'a Finding {
    let is = |finding: &&Finding| finding.cause == cause;
    let told = || format!("{:?}, tried {:?}", causes(explanation), explanation.tried);
    explanation.findings.iter().find(is).unwrap_or_else(|| panic!("{cause} among {}", told()))
}

fn only_set(finding: &Finding) -> String {
    match finding.set.as_deref() {
        Some([only]) => only.to_string(),
        other => panic!("{other:?}: {:?}", finding.advice),
    }
}

/// A host three times as fast as the link, with room for a few packets.
const SHORT_RING: &str = "stage = \"host\"\nprocessing_ms = 0.2\nring_packets = 4";

#[test]
fn a_ring_that_is_too_short_is_named_for_what_it_is() {
    for direction in ["down", "up"] {
        let found = quick(&behind(direction, SHORT_RING, &transfer(direction)));
        assert_eq!(causes(&found)[0], "receive-ring", "{:?}", found.findings);
        let first = &found.findings[0];
        assert_eq!(first.subject, format!("{direction}.0.host"));
        assert!(only_set(first).starts_with(&format!("path.{direction}.0.ring_packets=")));
        // Nothing stalls, and a processor that is idle between bursts is fast enough.
        assert!(!causes(&found).contains(&"stalling-host"));
        assert!(!causes(&found).contains(&"host-processor"), "{:?}", found.findings);
        assert!(found.tried.iter().all(|tried| tried.cause != "stalling-host"));
    }
}

#[test]
fn packets_per_second_limit_a_processor() {
    // 800 packets per second, where the link can carry more than 1,600.
    let slow = "stage = \"host\"\nprocessing_ms = 1.25\nring_packets = 60";
    let datagrams = "[[flow]]\nid = \"bulk\"\nkind = \"udp\"\nrate_mbps = 16\n";
    for (direction, flows) in [
        ("down", transfer("down")),
        ("up", transfer("up")),
        ("down", datagrams.to_owned()),
        // Small packets, of which the link could carry many more.
        ("down", datagrams.replace("= 16", "= 3\npacket_bytes = 200")),
    ] {
        let found = quick(&behind(direction, slow, &flows));
        assert_eq!(causes(&found)[0], "host-processor", "{:?}", found.findings);
        let first = &found.findings[0];
        assert!(
            first
                .evidence
                .contains("1.25 ms per packet, so it forwards at most 800 packets per second")
        );
        assert!(only_set(first).starts_with(&format!("path.{direction}.0.processing_ms=0.")));
    }
}

#[test]
fn a_host_that_stalls_behind_a_short_ring_has_both() {
    let stage = "stage = \"host\"\nring_packets = 20\nstalls = \"at-intervals\"\nstall_ms = 30\n\
                 stall_period_ms = 200";
    let found = quick(&behind("down", stage, &transfer("down")));
    assert_eq!(causes(&found)[0], "stalling-host", "{:?}", found.findings);
    assert!(only_set(named(&found, "receive-ring")).starts_with("path.down.0.ring_packets="));
    // With a ring that holds what arrives meanwhile, the stalls are all that is left.
    let roomy = quick(&behind("down", &stage.replace("= 20", "= 4000"), &transfer("down")));
    assert!(roomy.tried.iter().all(|tried| tried.cause != "receive-ring"), "{:?}", roomy.tried);
}

#[test]
fn advice_against_a_policer_is_a_burst_at_the_same_rate() {
    for (direction, burst) in [("down", 2_048), ("up", 2_048), ("down", 1_500)] {
        let stage = format!("stage = \"policer\"\nrate_mbps = 10\nburst_bytes = {burst}");
        let found = quick(&behind(direction, &stage, &transfer(direction)));
        assert_eq!(causes(&found)[0], "policer", "{:?}", found.findings);
        let first = &found.findings[0];
        let set = only_set(first);
        assert!(set.starts_with(&format!("path.{direction}.0.burst_bytes=")), "{set}");
        let advice = first.advice.as_deref().expect("advice");
        assert!(advice.contains("leave its rate at 10 Mb/s"), "{advice}");
        let after = first.gain.as_ref().and_then(|gain| gain.after).expect("a goodput");
        assert!((7.0..10.0).contains(&after), "{after}");
    }
}

#[test]
fn an_mss_is_advised_that_passes_with_all_headers() {
    let tunnel = |outer: &str| {
        format!(
            "stage = \"gtpu\"\nend = \"enter\"\nouter_ip = \"{outer}\"\n[[path.down]]\nstage = \"mtu\"\n\
             mtu_bytes = 1420\n[[path.down]]\nstage = \"gtpu\"\nend = \"leave\""
        )
    };
    let ipv6 = "mss_bytes = 1428\noptions.header_bytes = 72\n";
    let bare = "mss_bytes = 1460\noptions.header_bytes = 40\noptions.timestamps = false\n";
    for (stage, more, mss, option) in [
        // 1410 - 52; the option includes the 12 bytes of the timestamps.
        ("stage = \"mtu\"\nmtu_bytes = 1410".to_owned(), "", 1358, 1370),
        ("stage = \"mtu\"\nmtu_bytes = 1410".to_owned(), "mss_bytes = 1368\n", 1358, 1370),
        ("stage = \"mtu\"\nmtu_bytes = 1410".to_owned(), ipv6, 1338, 1350),
        ("stage = \"mtu\"\nmtu_bytes = 1410".to_owned(), bare, 1370, 1370),
        // 20 or 40 of IP, 8 of UDP, 8 of GTP-U and 8 of its extension.
        (tunnel("ipv4"), "", 1420 - 44 - 52, 1420 - 44 - 40),
        (tunnel("ipv6"), "", 1420 - 64 - 52, 1420 - 64 - 40),
    ] {
        let found = quick(&behind("down", &stage, &format!("{}{more}", transfer("down"))));
        let first = named(&found, "mtu");
        assert_eq!(only_set(first), format!("flow.0.mss_bytes={mss}"));
        let advice = first.advice.as_deref().expect("advice");
        assert!(advice.contains(&format!("maxseg size set {option})")), "{advice}");
        // This is the largest that passes: one byte more does not.
        let lost = |mss: u32| {
            let flow = format!("{}{more}", transfer("down"));
            let sets = [format!("flow.0.mss_bytes={mss}"), "run.duration_s=1".to_owned()];
            let text = behind("down", &stage, &flow);
            let source = Source { name: "here", text: &text, directory: None };
            let scenario = parse(&source, &sets).expect("it is valid").scenario;
            let outcome = simulate(&scenario, 1, &mut |_| true).expect("not stopped");
            outcome.summary.drops.iter().any(|drop| drop.reason == "too_big")
        };
        assert_eq!([mss, mss + 1].map(lost), [false, true]);
    }
}

#[test]
fn offload_is_cured_by_a_line_of_ethtool() {
    for (fault, evidence, cure) in [
        (
            "checksum",
            "which the receiver discarded (TcpInCsumErrors of nstat)",
            "ethtool -K uesimtun0 tx-checksum-ip-generic off",
        ),
        ("joined", "within 0.05 ms into packets", "ethtool -K eth0 lro off gro off"),
    ] {
        for direction in ["down", "up"] {
            let stage = format!("stage = \"offload\"\nfault = \"{fault}\"");
            let found = quick(&behind(direction, &stage, &transfer(direction)));
            assert_eq!(causes(&found), ["offload"], "{:?}", found.findings);
            let first = &found.findings[0];
            assert!(first.evidence.contains(evidence), "{}", first.evidence);
            assert!(first.advice.as_deref().is_some_and(|advice| advice.contains(cure)));
            assert_eq!(only_set(first), format!("path.{direction}.0.enabled=false"));
        }
    }
}

/// A VPN around a 20 Mb/s link.
fn vpn(keys: &str, hop: &str, mss: u32) -> String {
    let enter = format!("stage = \"vpn\"\nend = \"enter\"\n{keys}{hop}");
    let flow = format!("{}mss_bytes = {mss}\n", transfer("down"));
    let leave =
        "[[path.down]]\nstage = \"vpn\"\nend = \"leave\"\n[[path.down]]\nstage = \"delay\"\n";
    behind("down", &enter, &flow).replacen("[[path.down]]\nstage = \"delay\"\n", leave, 1)
}

#[test]
fn an_mtu_is_advised_that_has_room_for_the_headers_of_a_vpn() {
    let hop = "\n[[path.down]]\nstage = \"mtu\"\nmtu_bytes = 1500";
    for (keys, hop, mss, mtu, path) in [
        ("outer_ip = \"ipv6\"\nmtu_bytes = 1420", "", 1368, 1420, ""),
        ("outer_ip = \"ipv6\"\nmtu_bytes = 1500", hop, 1368, 1420, "0.mtu_bytes=1420"),
        (
            "mtu_bytes = 1500\nouter_mtu_bytes = 1492\ntoo_big = \"drop\"",
            "",
            1380,
            1432,
            "0.mtu_bytes=1432",
        ),
    ] {
        // 1,500 - 80 over IPv6, and 1,492 - 60 over IPv4.
        let found = quick(&vpn(keys, hop, 1448));
        assert_eq!(causes(&found), ["vpn"], "{:?}", found.findings);
        let first = &found.findings[0];
        let advice = first.advice.as_deref().expect("advice");
        assert!(advice.contains(&format!("ip link set mtu {mtu} dev wg0")), "{advice}");
        assert!(advice.contains("maxseg size set rt mtu"), "{advice}");
        let sets = first.set.iter().flatten().map(Edit::to_string).collect::<Vec<_>>();
        assert_eq!(sets[0], format!("flow.0.mss_bytes={mss}"));
        assert!(sets.iter().any(|set| set.contains(path)), "{sets:?}");
    }
}

#[test]
fn a_vpn_through_which_everything_fits_is_not_blamed() {
    let keys = "outer_ip = \"ipv6\"\nmtu_bytes = 1420\nouter_mtu_bytes = 1500";
    let found = quick(&vpn(keys, "", 1368));
    assert!(causes(&found).is_empty(), "{:?}", found.findings);
}

#[test]
fn the_headers_of_a_vpn_are_a_cause_where_packets_are_small() {
    let small = "[[flow]]\nid = \"bulk\"\nkind = \"udp\"\nrate_mbps = 17\npacket_bytes = 100\n";
    let text = vpn("", "", 1448);
    let text = &text[..text.find("[[flow]]").expect("a flow")];
    let found = quick(&format!("{text}{small}"));
    assert_eq!(causes(&found)[0], "vpn", "{:?}", found.findings);
    let first = &found.findings[0];
    // 100 is padded to 112, and 60 are added.
    assert!(first.evidence.contains("adds 72 bytes to a packet of 100"), "{}", first.evidence);
    assert!(first.evidence.contains("Without the VPN"), "{}", first.evidence);
}

#[test]
fn a_gap_that_is_waited_for_comes_before_the_losses_that_make_it() {
    let text = airpath_scenario::shipped().iter().find(|(name, _)| *name == "pdcp-gap");
    let found = quick(text.expect("a shipped scenario").1);
    assert_eq!(causes(&found)[0], "pdcp-gap", "{:?}", found.findings);
    let first = &found.findings[0];
    assert!(first.evidence.contains("RLC UM does not recover"), "{}", first.evidence);
    assert_eq!(first.evidence.matches("Packets behind each gap").count(), 1, "{}", first.evidence);
    assert!(first.evidence.contains("wait until t-Reordering (500 ms)"), "{}", first.evidence);
    let advice = first.advice.as_deref().expect("advice");
    assert!(advice.contains("t-Reordering") || advice.contains("RLC AM"), "{advice}");
}

#[test]
fn a_transfer_that_does_not_complete_has_no_completion_time() {
    let file =
        "[[flow]]\nid = \"file\"\nkind = \"file\"\nsize_bytes = 3000000\nprofile = \"linux-6.1\"\n";
    let hole = "stage = \"mtu\"\nmtu_bytes = 1400";
    let found = quick(&behind("down", hole, file));
    let first = named(&found, "mtu");
    let said = "would fall from more than 4 s (it did not complete within the run of 4 s)";
    assert!(first.evidence.contains(said), "{}", first.evidence);
    let gain = first.gain.as_ref().expect("a gain");
    assert_eq!((gain.metric, gain.before), ("completed_s", None));
    assert!(gain.after.is_some() && gain.ci95.is_some());
    let texts = serde_json::to_string(&found).expect("strings and numbers");
    assert!(!texts.contains("4000"), "{texts}");
    // If the transfer completes neither way, the amount that arrived is what changes.
    let large = file.replace("3000000", "300000000");
    let lossy = quick(&behind("down", "stage = \"loss\"\nprobability = 0.02", &large));
    let first = named(&lossy, "random-loss");
    assert!(
        first.evidence.contains("the part of file that arrived within the run would rise from "),
        "{first:?}"
    );
    let gain = lossy
        .tried
        .iter()
        .find(|tried| tried.cause == "random-loss")
        .and_then(|one| one.gain.as_ref());
    assert_eq!(gain.map(|gain| (gain.before, gain.after, gain.ci95)), Some((None, None, None)));
}

/// EN-DC with half of the bytes on LTE; `split` has further keys.
fn split_bearer(split: &str) -> String {
    let (_, text) = airpath_scenario::shipped()
        .iter()
        .find(|(name, _)| *name == "split-bearer")
        .expect("a shipped scenario");
    text.replace("duration_s = 20", "duration_s = 10")
        .replace("delay_ms = 2 ", &format!("{split}\ndelay_ms = 2 "))
}

#[test]
fn a_slow_leg_that_delays_the_fast_one_is_a_cause() {
    let found = quick(&split_bearer(""));
    assert_eq!(causes(&found)[0], "split-bearer", "{:?}", found.findings);
    let first = &found.findings[0];
    assert!(first.evidence.contains("split over lte and nr, 2 ms apart"), "{}", first.evidence);
    let advice = first.advice.as_deref().expect("advice");
    assert!(advice.contains("the leg where it waits less"), "{advice}");
}

#[test]
fn a_leg_that_drops_what_pdcp_has_numbered_leaves_a_gap() {
    let found = quick(&split_bearer("flow_control = false\nt_reordering_ms = 1000"));
    let gap = named(&found, "pdcp-gap");
    assert!(gap.evidence.contains("a leg of the split bearer lost"), "{}", gap.evidence);
    assert!(gap.evidence.contains("wait until t-Reordering (1 s)"), "{}", gap.evidence);
}
