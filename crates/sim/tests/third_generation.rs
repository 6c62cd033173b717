//! TCP and pings over UMTS and EV-DO, as the shipped scenarios configure them.

mod common;

use airpath_record::RunSummary;

fn shipped(name: &str, sets: &[&str]) -> RunSummary {
    common::run(common::shipped(name), sets)
}

/// Mean RTT of the pings of `umts-hspa` with another preset, always connected, far apart from each
/// other.
fn ping_ms(preset: &str, states: &str) -> f64 {
    let preset = format!("radio.preset={preset}");
    let sets = [preset.as_str(), states, "flow.1.interval_ms=1013", "flow.1.start_s=10"];
    shipped("umts-hspa", &sets).pings[0].rtt_ms.as_ref().expect("answers").mean
}

#[test]
fn pings_take_the_sum_of_their_parts() {
    let connected = "radio.rrc.enabled=false";
    // 20 ms to the server and back. Up 2 + 15 + 18, 4 ms of HARQ; down 18 + 4.3 + 4
    let hspa = ping_ms("umts-hspa", connected);
    assert!((hspa - (20.0 + 39.0 + 26.3)).abs() < 3.0, "{hspa} ms");
    // Up 2 + 3 + 8, 1.6 ms of HARQ; down 8 + 4.3 + 4
    let hspa_plus = ping_ms("umts-hspa-plus", connected);
    assert!((hspa_plus - (20.0 + 14.6 + 16.3)).abs() < 3.0, "{hspa_plus} ms");
    // Up 2 + 10 + 20 + 25; down 25 + 10 + 4: 70 ms after the end of one TTI another one begins
    let r99 = ping_ms("umts-r99", connected);
    assert!((r99 - (20.0 + 57.0 + 39.0)).abs() < 3.0, "{r99} ms");
    // Up 2 + 3.3, a subpacket and 20 ms later the second of 6.7, 15; down 15 + 0.8, a slot and 6.7
    // ms later the second of 1.7, 5; 1 ms for third subpackets, and 1 in 100 packets that RLC
    // retransmits
    let evdo = ping_ms("evdo-rev-a", connected);
    assert!((evdo - (20.0 + 47.0 + 29.2 + 1.0)).abs() < 6.0, "{evdo} ms");
}

#[test]
fn a_download_from_idle_waits_for_the_connection_and_pings_find_fach() {
    let summary = shipped("umts-hspa", &[]);
    let flow = &summary.flows[0];
    let seconds = 0.8 / flow.goodput_mbps.expect("it ends");
    let connected = shipped("umts-hspa", &["radio.rrc.enabled=false"]);
    let without = 0.8 / connected.flows[0].goodput_mbps.expect("it ends");
    // Qian et al., IMC 2010: 2 s from idle to CELL_DCH
    assert!((seconds - without - 2.0).abs() < 0.1, "{seconds} {without} s");
    // A ping in CELL_FACH: three blocks of the PRACH, two of the S-CCPCH, 5 ms for those in between
    let fach = summary.pings[0].rtt_ms.as_ref().expect("answers");
    assert!((240.0..320.0).contains(&fach.mean), "{fach:?}");
    assert_eq!(summary.pings[0].lost, 0);
}

#[test]
fn bulk_fills_each_of_them() {
    let goodput = |preset: &str| {
        let preset = format!("radio.preset={preset}");
        shipped("evdo", &[&preset]).flows[0].steady_mbps.expect("30 s are long enough")
    };
    // 1,448 of 1,500 bytes, less RLC's headers; HSPA: CQI 24, 11,418 bits with PDUs of 656 bits
    // need 10 % now and then
    for (preset, lowest, highest) in [
        ("umts-r99", 0.34, 0.384 * 0.965),
        ("umts-hspa", 5.5, 7.2 * 0.965),
        ("umts-hspa-plus", 13.0, 19.3 * 0.965),
        ("evdo-rev-a", 0.85, 1.23 * 0.965),
    ] {
        let found = goodput(preset);
        assert!(found > lowest && found < highest, "{preset}: {found} Mb/s");
    }
}

/// Most of EV-DO's blocks end before all their slots were sent; with a flat curve even more do.
#[test]
fn nothing_carries_more_than_it_could() {
    for steepness in ["12", "0.5"] {
        let set = format!("radio.cell.bler_steepness_per_db={steepness}");
        let summary = shipped("evdo", &[&set, "run.duration_s=8"]);
        for link in &summary.links {
            assert!(link.utilisation <= 1.0, "{steepness}: {} {}", link.id, link.utilisation);
        }
        assert!(summary.links[0].utilisation > 0.3, "{:?}", summary.links);
    }
}

#[test]
fn blocks_of_hspa_can_be_combined_as_turbo_codes_can() {
    let run = |combining: &str| {
        let set = format!("radio.harq.combining={combining}");
        shipped("umts-hspa", &[&set, "run.duration_s=15"]).radio[0].harq_retransmissions
    };
    assert!(run("incremental_redundancy") <= run("chase"));
}
