//! Edits of a document do what the same text does as an argument of `--set`.

use airpath_scenario::{Document, Edit, KeyPath, Literal, Parsed, Source, parse, shipped};
use proptest::prelude::*;

const TEXT: &str = "[[path.down]]\nstage = \"link\"\nrate_mbps = 10\nqueue_packets = 50\n\
                    [[flow]]\nkind = \"bulk\"\n[[flow]]\nkind = \"ping\"\n\
                    [radio]\npreset = \"lte-20\"\n[[radio.ue]]\n[[radio.ue]]\n";

fn document(text: &str) -> Document {
    let source = Source { name: "s.toml", text, directory: None };
    Document::read(&source).unwrap_or_else(|error| panic!("{error}"))
}

/// What matters of a scenario, or why it is refused.
fn told(parsed: Result<Parsed, airpath_scenario::ScenarioError>) -> String {
    parsed.map_or_else(|error| error.to_string(), |parsed| parsed.resolved_toml)
}

#[test]
fn edits_add_up_and_the_last_one_wins() {
    let flow = KeyPath::new("flow").at(0);
    let both = [flow.set("window_bytes", 65_536), flow.set("pacing.enabled", true)];
    let at_once = document(TEXT).with(&both).unwrap();
    let first = document(TEXT).with(&both[..1]).unwrap();
    assert_eq!(first.document.with(&both[1..]).unwrap().resolved_toml, at_once.resolved_toml);
    let source = Source { name: "s.toml", text: TEXT, directory: None };
    let sets = both.map(|edit| edit.to_string());
    assert_eq!(sets, ["flow.0.window_bytes=65536", "flow.0.pacing.enabled=true"]);
    assert_eq!(parse(&source, &sets).unwrap().resolved_toml, at_once.resolved_toml);
    let twice = [Edit::new("run.seed", 1), Edit::new("run.seed", 2)];
    assert_eq!(document(TEXT).with(&twice).unwrap().scenario.run.seed, 2);
}

#[test]
fn an_edit_that_is_refused_names_itself() {
    let error = document(TEXT).with(&[Edit::new("flow.0.windw_bytes", 1)]).unwrap_err();
    let said = error.to_string();
    assert!(
        said.starts_with("error: --set flow.0.windw_bytes=1: unknown key `windw_bytes`"),
        "{said}"
    );
}

#[test]
fn a_list_has_the_elements_of_the_file_and_its_settings() {
    let document = document(TEXT);
    let of = |list: &str| document.elements(&KeyPath::new(list));
    assert_eq!(["flow", "path.down", "radio.ue", "path.up", "radio"].map(of), [2, 1, 2, 0, 0]);
    let more = document.set(&["path.up=[{stage = \"delay\", delay_ms = 3}]".to_owned()]).unwrap();
    assert_eq!(more.document.elements(&KeyPath::new("path.up")), 1);
}

#[test]
fn what_is_in_a_table_is_not_the_table() {
    let flow = KeyPath::new("flow").at(1);
    assert!(flow.set("id", "a").key.is_in(&flow));
    assert!(!KeyPath::new("flow.10.id").is_in(&flow));
    assert!(!flow.is_in(&flow));
}

fn keys() -> impl Strategy<Value = KeyPath> {
    let part = prop::sample::select(vec![
        "flow",
        "path",
        "down",
        "radio",
        "ue",
        "run",
        "stage",
        "*",
        "0",
        "1",
        "7",
        "rlc",
        "aqm",
        "window_bytes",
        "seed",
        "duration_s",
        "queue_packets",
        "enabled",
        "odd key",
        "a=b",
        "é",
    ]);
    prop::collection::vec(part, 1..5).prop_map(|parts| KeyPath::new(&parts.join(".")))
}

fn literals() -> impl Strategy<Value = Literal> {
    prop_oneof![
        any::<bool>().prop_map(Literal::from),
        any::<i32>().prop_map(Literal::from),
        any::<u64>().prop_map(Literal::from),
        (-1e9..1e9_f64).prop_map(Literal::from),
        (0.0..1e3_f64, 0..6_usize).prop_map(|(number, places)| Literal::rounded(number, places)),
        "[a-z0-9 .=\"'\\\\é\\n-]{0,12}".prop_map(|text| Literal::from(text.as_str())),
        prop::sample::select(vec!["codel", "none", "true", "10"]).prop_map(Literal::from),
    ]
}

proptest! {
    #[test]
    fn an_edit_does_what_its_text_does(key in keys(), setting in literals(), which in any::<prop::sample::Index>()) {
        let (_, text) = which.get(shipped());
        let edit = Edit { key, setting };
        for text in [TEXT, text] {
            let document = document(text);
            let edited = told(document.with(std::slice::from_ref(&edit)));
            prop_assert_eq!(told(document.set(&[edit.to_string()])), edited, "{}", edit);
        }
    }
}
