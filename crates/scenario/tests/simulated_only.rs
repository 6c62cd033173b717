//! Tests that keys of a flow which no kernel can follow are marked as such.

use airpath_scenario::{Source, parse, profiles};

fn said(flow: &str) -> Vec<(usize, &'static str, String, String)> {
    let text = format!(
        "[[path.up]]\nstage = \"delay\"\ndelay_ms = 1\n[[flow]]\nkind = \"ping\"\n\
         [[flow]]\nkind = \"bulk\"\n{flow}"
    );
    let parsed = parse(&Source { name: "t", text: &text, directory: None }, &[]).unwrap();
    let found = parsed.simulated_only.into_iter();
    found.map(|one| (one.flow, one.key, one.value, one.profile_value)).collect()
}

#[test]
fn a_flow_as_its_profile_is_the_kernels() {
    for congestion in ["cubic", "reno", "bbr"] {
        for profile in profiles() {
            let flow = format!("congestion = \"{congestion}\"\nprofile = \"{profile}\"\n");
            assert_eq!(said(&flow), [], "{flow}");
        }
    }
}

#[test]
fn what_the_kernel_can_be_told_is_not_in_the_way() {
    let told = "profile = \"linux-6.18\"\noptions.sack = false\nreceive_buffer_bytes = 100000\n";
    assert_eq!(said(told), []);
}

#[test]
fn what_it_cannot_be_told_is_named_with_both_values() {
    let told = "profile = \"linux-6.18\"\nack.delay_ms = 100\ncubic.beta = 0.5\n";
    let found = said(told);
    assert!(found.contains(&(1, "ack.delay_ms", "100".into(), "40".into())), "{found:?}");
    assert!(found.contains(&(1, "cubic.beta", "0.5".into(), "0.7".into())), "{found:?}");
    assert_eq!(found.len(), 2);
}

#[test]
fn a_test_of_hystart_is_as_in_the_version_unless_it_is_given() {
    let told = "profile = \"linux-6.18\"\nhystart.delay = false\n";
    assert_eq!(said(told), [(1, "hystart.delay", "false".into(), String::new())]);
}
