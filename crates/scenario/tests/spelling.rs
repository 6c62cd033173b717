//! Tests keys of subtables, their old spellings, and `--set` for every element of a list.

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

fn warnings(parsed: &Parsed) -> Vec<String> {
    parsed.warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn the_three_ways_to_write_a_key_of_a_table_say_the_same() {
    let dotted = parsed(&flow("recovery.frto = true\n"), &[]);
    for keys in ["recovery = { frto = true }\n", "[flow.recovery]\nfrto = true\n"] {
        let other = parsed(&flow(keys), &[]);
        assert_eq!(other.scenario, dotted.scenario, "{keys}");
        assert_eq!(other.resolved_toml, dotted.resolved_toml, "{keys}");
    }
    assert_eq!(warnings(&dotted), [""; 0]);
    let Traffic::Bulk { tcp, .. } = &dotted.scenario.flows[0].traffic else { panic!() };
    assert!(tcp.sender.recovery.frto);
}

#[test]
fn an_old_spelling_is_the_new_one_with_one_warning() {
    let old = format!(
        "{}[profile.mine]\nfrto = true\n",
        flow("profile = \"mine\"\nfrto = true\npacing = true\n")
    );
    let new = format!(
        "{}[profile.mine]\nrecovery.frto = true\n",
        flow("profile = \"mine\"\nrecovery.frto = true\npacing.enabled = true\n")
    );
    let (old, new) = (parsed(&old, &[]), parsed(&new, &[]));
    assert_eq!(old.scenario, new.scenario);
    assert_eq!(old.sha256, new.sha256);
    assert_eq!(warnings(&new), [""; 0]);
    let told = warnings(&old);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told.iter().any(|told| told.ends_with(
            "`frto` is now `recovery.frto`; the old spelling still works (1 more place)"
        )),
        "{told:?}"
    );
    assert!(told.contains(
        &"s.toml:8:1: `pacing` is now `pacing.enabled`; the old spelling still works".to_owned()
    ));
}

#[test]
fn a_key_of_a_table_that_there_is_once_has_its_old_spelling_too() {
    let text = |keys| format!("{}[emulation]\n{keys}", flow(""));
    let new = parsed(&text("observer = \"poll\"\nobserver_poll_ms = 7\n"), &[]);
    let old = parsed(&text("watch = \"poll\"\nwatch_poll_ms = 7\n"), &[]);
    assert_eq!((&old.scenario, &old.sha256), (&new.scenario, &new.sha256));
    let set = parsed(&text("observer = \"bpf\"\n"), &["emulation.watch=poll"]);
    assert_eq!(set.scenario.emulation.observer, new.scenario.emulation.observer);
    assert_eq!(
        warnings(&old),
        [
            "s.toml:7:1: `watch` is now `observer`; the old spelling still works",
            "s.toml:8:1: `watch_poll_ms` is now `observer_poll_ms`; the old spelling still works",
        ]
    );
    let twice = refused(&text("observer = \"poll\"\nwatch = \"poll\"\n"), &[]);
    assert!(twice.contains("`watch` and `observer` are two spellings of one key"), "{twice}");
}

#[test]
fn a_set_of_an_old_spelling_replaces_the_key_in_the_file() {
    for file in ["frto = true\n", "recovery.frto = true\n"] {
        for set in ["flow.0.frto=false", "flow.0.recovery.frto=false", "flow.*.frto=false"] {
            let parsed = parsed(&flow(file), &[set]);
            let Traffic::Bulk { tcp, .. } = &parsed.scenario.flows[0].traffic else { panic!() };
            assert!(!tcp.sender.recovery.frto, "{file}{set}");
        }
    }
    let parsed = parsed(&flow(""), &["flow.0.frto=false"]);
    assert_eq!(
        warnings(&parsed),
        ["--set flow.0.frto=false: `frto` is now `recovery.frto`; the old spelling still works"]
    );
}

#[test]
fn both_spellings_are_refused_with_both_places() {
    assert_eq!(
        refused(&flow("recovery.frto = true\nfrto = true\n"), &[]),
        "error: s.toml:7:1: `frto` and `recovery.frto` are two spellings of one key\n  \
         `recovery.frto` is at s.toml:6:10; remove `frto`"
    );
}

#[test]
fn every_shipped_file_has_the_new_spellings() {
    for (name, text) in airpath_scenario::shipped() {
        assert_eq!(warnings(&parsed(text, &[])), [""; 0], "{name}");
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
