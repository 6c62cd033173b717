//! Keys in tables within a table, `--set` for every element of a list, and flows of several streams.

use airpath_scenario::{Parsed, Source, Traffic, parse};

const PATH: &str = "[[path.down]]\nstage = \"delay\"\ndelay_ms = 10\n";

fn parsed(text: &str, sets: &[&str]) -> Parsed {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    match parse(&Source { name: "s.toml", text, directory: None }, &sets) {
        Ok(parsed) => parsed,
        Err(error) => panic!("{error}\n{text}"),
    }
}

fn refused(text: &str, sets: &[&str]) -> String {
    let sets: Vec<String> = sets.iter().map(|&set| set.to_owned()).collect();
    parse(&Source { name: "s.toml", text, directory: None }, &sets).unwrap_err().to_string()
}

fn flow(keys: &str) -> String {
    format!("{PATH}[[flow]]\nkind = \"bulk\"\n{keys}")
}

#[test]
fn the_three_ways_to_write_a_key_of_a_table_say_the_same() {
    let dotted = parsed(&flow("recovery.frto = true\n"), &[]);
    for keys in ["recovery = { frto = true }\n", "[flow.recovery]\nfrto = true\n"] {
        let other = parsed(&flow(keys), &[]);
        assert_eq!(other.scenario, dotted.scenario, "{keys}");
        assert_eq!(other.resolved_toml, dotted.resolved_toml, "{keys}");
    }
    let Traffic::Bulk { tcp, .. } = &dotted.scenario.flows[0].traffic else { panic!() };
    assert!(tcp.sender.recovery.frto);
}

#[test]
fn a_key_without_its_table_is_refused_with_the_key_that_was_meant() {
    let said = refused(&flow("frto = true\n"), &[]);
    assert!(said.contains("did you mean `recovery.frto`?"), "{said}");
    let said = refused(&flow(""), &["flow.*.delayed_ack_segment=2"]);
    assert!(said.contains("did you mean `"), "{said}");
}

#[test]
fn a_set_of_a_key_in_a_table_replaces_the_one_in_the_file() {
    for set in ["flow.0.recovery.frto=false", "flow.*.recovery.frto=false"] {
        let parsed = parsed(&flow("recovery.frto = true\n"), &[set]);
        let Traffic::Bulk { tcp, .. } = &parsed.scenario.flows[0].traffic else { panic!() };
        assert!(!tcp.sender.recovery.frto, "{set}");
    }
}

#[test]
fn a_star_sets_every_element_that_has_the_key() {
    let text = format!(
        "{}[[flow]]\nkind = \"ping\"\n[[flow]]\nkind = \"file\"\nsize_bytes = 5000\n\
         [[path.up]]\nstage = \"link\"\nrate_mbps = 3\n[[path.up]]\nstage = \"delay\"\ndelay_ms = 3\n",
        flow("")
    );
    let congestion = |parsed: &Parsed| -> Vec<&'static str> {
        let tcp = parsed.scenario.flows.iter().filter_map(|flow| match &flow.traffic {
            Traffic::Bulk { tcp, .. } | Traffic::File { tcp, .. } => Some(tcp),
            _ => None,
        });
        tcp.map(|tcp| tcp.sender.congestion.name()).collect()
    };
    assert_eq!(congestion(&parsed(&text, &["flow.*.congestion=bbr"])), ["bbr", "bbr"]);
    let slow = parsed(&text, &["stage.*.delay_ms=7"]);
    assert_eq!(slow.resolved_toml.matches("delay_ms = 7\n").count(), 2);
    let up = parsed(&text, &["path.up.*.enabled=false"]);
    assert!(up.scenario.up.is_empty());
    assert_eq!(up.scenario.down.len(), 1);
    for (set, message) in [
        (
            "flow.*.rate_mbps=3",
            "`rate_mbps` does not apply to any `flow`\n  it is valid for kind \"udp\"",
        ),
        ("flow.*.windw=3", "unknown key `windw` in any `flow`"),
        ("stage.*.probability=0.5", "`probability` does not apply to any `stage`"),
        ("program.*.enabled=false", "the scenario has no `program`"),
        ("path.down.*.rate_mbps=3", "`rate_mbps` does not apply to any `path.down`"),
    ] {
        let said = refused(&text, &[set]);
        assert!(said.starts_with(&format!("error: --set {set}: {message}")), "{said}");
    }
}

#[test]
fn streams_are_flows_of_their_own() {
    let three = parsed(&flow("id = \"down\"\nstreams = 3\n"), &[]);
    let ids: Vec<_> = three.scenario.flows.iter().map(|flow| flow.id.as_str()).collect();
    assert_eq!(ids, ["down.1", "down.2", "down.3"]);
    assert!(three.scenario.flows.iter().all(|flow| flow.group.as_deref() == Some("down")));
    assert!(three.scenario.flows.iter().all(|flow| flow.index == 0));
    assert_eq!(
        refused(
            &format!(
                "{}[[flow]]\nkind = \"ping\"\nid = \"down.2\"\n",
                flow("id = \"down\"\nstreams = 3\n")
            ),
            &[]
        ),
        "error: s.toml:10:6: two flows have the id \"down.2\"\n  the other one is at s.toml:6:6"
    );
    let alone = parsed(&flow("id = \"down\"\n"), &[]);
    assert_eq!(alone.scenario.flows[0].group, None);
    assert!(refused(&flow("streams = 0\n"), &[]).contains("`streams` is 0, but must be from 1 to"));
}
