//! Tests every refusal of a scenario, with its exact message: `refusals.txt`.

use std::path::Path;

use airpath_scenario::{Origin, Source, parse};

const GOLDEN: &str = include_str!("refusals.txt");

/// One section of the file.
struct Case<'a> {
    name: &'a str,
    input: &'a str,
    messages: &'a str,
}

fn cases() -> Vec<Case<'static>> {
    let sections = GOLDEN.split("\n==== ").skip(1);
    sections
        .map(|section| {
            let (name, rest) = section.split_once('\n').expect("a section has a name");
            let (input, messages) = rest.split_once("----").expect("a section has messages");
            Case { name, input, messages: messages.trim_matches('\n') }
        })
        .collect()
}

fn messages(input: &str) -> String {
    let (sets, lines): (Vec<&str>, Vec<&str>) =
        input.split_inclusive('\n').partition(|line| line.starts_with("--set "));
    let sets: Vec<String> = sets
        .iter()
        .map(|line| line.trim_start_matches("--set ").trim_end_matches('\n').to_owned())
        .collect();
    let data = Path::new("tests/data");
    let source = Source { name: "s.toml", text: &lines.concat(), directory: Some(data) };
    parse(&source, &sets).map_or_else(|error| error.to_string(), |_| "accepted".to_owned())
}

#[test]
fn refusals_say_what_is_wrong_where_and_what_would_be_right() {
    if std::env::var_os("AIRPATH_BLESS").is_some() {
        let mut blessed = GOLDEN.split("\n==== ").next().unwrap().to_owned();
        for case in cases() {
            let messages = messages(case.input);
            blessed.push_str(&format!("\n==== {}\n{}----\n{messages}\n", case.name, case.input));
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/refusals.txt");
        std::fs::write(path, blessed).unwrap();
        return;
    }
    for case in cases() {
        assert_eq!(messages(case.input), case.messages, "{}", case.name);
        assert_ne!(case.messages, "accepted", "{}", case.name);
    }
}

#[test]
fn lines_and_columns_are_counted_from_1_in_characters() {
    let text = "title = \"x\"\r\n[[flow]]\r\n  kind = \"bulk\"\n  \"é\" = 1\n  id = \"é\"\n";
    let source = Source { name: "dir/s.toml", text, directory: None };
    let places: Vec<_> = parse(&source, &[])
        .unwrap_err()
        .problems
        .into_iter()
        .map(|problem| match problem.origin {
            Origin::File { name, line, column } => (name.to_string(), line, column),
            Origin::Set { text, option } => panic!("{option} {text}"),
        })
        .collect();
    assert_eq!(places, [("dir/s.toml".to_owned(), 4, 3), ("dir/s.toml".to_owned(), 5, 8)]);
}
