//! `[[program]]`: what an emulation runs, and where.

use crate::list::List;
use crate::model::ProgramPlace;
use crate::node::Node;
use crate::problem::Problems;
use crate::radio::Radio;
use crate::read::Fields;
use crate::spec::PROGRAM;
use crate::suggest::unknown_name;
use crate::value::Setting;

/// The name of the host at the server's end.
const SERVER: &str = "server";

/// The name that stands for the first UE, whatever its own name.
const FIRST: &str = "ue";

/// Most programs; with more there would be too many files and results.
const MOST: usize = 256;

/// Reads the list.
pub(crate) fn read(root: &Node, radio: Option<&Radio>, problems: &mut Problems) -> List<Fields> {
    let mut programs: List<Fields> = List::new();
    let tables = root.tables("program", PROGRAM.header, problems);
    if tables.len() > MOST {
        let message = format!("{} programs; at most {MOST} are allowed", tables.len());
        problems.add(tables[MOST].0, message);
    }
    for (index, (origin, entries)) in tables.into_iter().enumerate() {
        let mut program = Fields::read(&PROGRAM, PROGRAM.header, origin, entries, problems);
        program.complete(problems);
        if program.text("name").is_none() {
            program.fill("name", Setting::Text(format!("program-{index}")), None);
        }
        if program.text("command").is_some_and(|line| line.trim().is_empty()) {
            problems.add_with_help(
                program.origin_of("command"),
                "`command` is empty",
                "a line for /bin/sh, e.g. \"exec iperf3 -s\"",
            );
        }
        // A radio that cannot be read has already been reported.
        if radio.is_some() || root.get("radio").is_none() {
            check_place(&program, radio, problems);
        }
        let twin = programs.in_order().find(|other| {
            program.text("name").is_some() && other.text("name") == program.text("name")
        });
        if let Some(twin) = twin {
            problems.add_with_help(
                program.origin_of("name"),
                format!("two programs are called {:?}", program.text("name").unwrap_or_default()),
                format!("the other one is at {}", twin.origin_of("name")),
            );
        }
        let enabled = program.enabled();
        programs.push(program, enabled);
    }
    programs
}

/// The place of that name. A UE may itself be called `ue`.
pub(crate) fn place(name: &str, radio: Option<&Radio>) -> Option<ProgramPlace> {
    if name == SERVER {
        return Some(ProgramPlace::Server);
    }
    let named = radio.and_then(|radio| radio.index(name));
    named.or_else(|| (name == FIRST).then_some(0)).map(ProgramPlace::Ue)
}

fn check_place(program: &Fields, radio: Option<&Radio>, problems: &mut Problems) {
    let Some(at) = program.text("at") else { return };
    if place(at, radio).is_some() {
        return;
    }
    let mut names = vec![SERVER.to_owned(), FIRST.to_owned()];
    names.extend(radio.into_iter().flat_map(Radio::names).filter(|name| name != FIRST));
    let names = names.iter().map(String::as_str);
    unknown_name("at", "host", at, names, program.origin_of("at"), problems);
}
