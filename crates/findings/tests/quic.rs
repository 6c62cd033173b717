//! What limits a QUIC flow at its ends: flow control, and what its sender keeps.
#![allow(clippy::disallowed_methods)]

mod explained;

use airpath_findings::{Budget, Explanation};
use explained::explained;

/// 100 Mb/s and 100 ms: 250 kB per round trip are 20 Mb/s.
fn windowed(direction: &str, keys: &str) -> Explanation {
    let way = |way: &str| {
        format!(
            "[[path.{way}]]\nstage = \"link\"\nrate_mbps = 100\nqueue_packets = 1000\n\
             [[path.{way}]]\nstage = \"delay\"\ndelay_ms = 50\n"
        )
    };
    let text = format!(
        "[run]\nduration_s = 6\n{}{}[[flow]]\nid = \"q\"\nkind = \"quic\"\ndirection = \
         \"{direction}\"\n{keys}",
        way("down"),
        way("up")
    );
    explained(&text, Budget::QUICK)
}

#[test]
fn the_window_that_limits_a_flow_is_named_and_raised() {
    let planted = [
        ("receive_window_bytes", "receive-window", "The receiver's window limited q for "),
        ("send_window_bytes", "send-buffer", "The send window limited q for "),
    ];
    for direction in ["down", "up"] {
        for (key, cause, evidence) in planted {
            let found = windowed(direction, &format!("{key} = 250000\n")).findings;
            let first = &found[0];
            assert_eq!((first.cause, first.subject.as_str()), (cause, "q"), "{found:?}");
            assert!(first.evidence.starts_with(evidence), "{}", first.evidence);
            let advice = first.advice.as_deref().unwrap_or_default();
            assert!(advice.contains("QUIC"), "{advice}");
            let set = first.set.as_deref().unwrap_or_default();
            assert!(set.iter().all(|edit| edit.key.name() == key) && set.len() == 1, "{set:?}");
            let both = found.iter().filter(|one| planted.iter().any(|it| it.1 == one.cause));
            assert_eq!(both.count(), 1, "{found:?}");
        }
    }
}

#[test]
fn windows_that_do_not_limit_a_flow_are_not_named() {
    let found = windowed("down", "receive_window_bytes = 20000000\n").findings;
    let named = ["receive-window", "send-buffer"];
    assert!(found.iter().all(|one| !named.contains(&one.cause)), "{found:?}");
}
