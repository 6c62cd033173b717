//! `[[program]]`.

use super::{Default, ENABLED, Group, Key, Kind, Rule, S_FROM_0, Table, choice};

/// `[[program]]`.
pub(crate) static PROGRAM: Table = Table {
    header: "[[program]]",
    path: "program.N",
    doc: "A program that `airpath emulate` runs inside the network. A simulation runs none.",
    selector: None,
    groups: &[Group {
        variants: &[],
        rule: Rule::Each,
        keys: &[
            Key::new(
                "name",
                Kind::Name,
                Default::Derived("`program-0`, `program-1`, …"),
                "Unique name, used in results: what it writes is kept in `programs/NAME.stdout` and \
                 `programs/NAME.stderr` of the run directory.",
            ),
            ENABLED,
            Key::new(
                "at",
                Kind::Name,
                Default::Value("\"ue\""),
                "Where it runs: `server`, `ue` (the first UE), or a UE's name.",
            ),
            Key::new(
                "command",
                Kind::Text,
                Default::Required,
                "A line for `/bin/sh`. `exec` spares the shell's own process.",
            ),
            Key::new(
                "start_s",
                S_FROM_0,
                Default::Value("0"),
                "When it starts, counted from the start of the run. Those of the same time start in \
                 the order of the file.",
            ),
            Key::new(
                "wait_for",
                Kind::Choice(&[
                    choice("nothing", "The next one starts at its own time."),
                    choice(
                        "listen",
                        "The next one starts when one more TCP port is listened on at this place, \
                         when this program has ended, or after 5 s, which is reported. Such a \
                         program is a service: the run does not wait for its end.",
                    ),
                ]),
                Default::Value("\"nothing\""),
                "What has to happen before the next program, and a COMMAND, starts.",
            ),
            Key::new(
                "ends_run",
                Kind::Flag,
                Default::Value("false"),
                "The run ends when this program does. Without such a program, and without a \
                 COMMAND, it ends when all have ended that are not services.",
            ),
        ],
    }],
};
