//! `[[program]]`.

use super::{Chosen, Default, ENABLED, Group, Key, Kind, S_FROM_0, Table};

/// `[[program]]`.
pub(crate) static PROGRAM: Table = Table {
    header: "[[program]]",
    path: "program.N",
    doc: "A program that `airpath emulate` runs inside the network. A simulation runs none.",
    selector: None,
    groups: &[Group::always(&[
        Key::new(
            "name",
            Kind::Name,
            Default::Derived("`program-0`, `program-1`, …"),
            "Unique name, used in results. The program's output is kept in \
                 `programs/NAME.stdout` and `programs/NAME.stderr` of the run directory.",
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
            "Command line for `/bin/sh`. With `exec` the shell does not stay as a process of \
                 its own.",
        ),
        Key::new(
            "start_s",
            S_FROM_0,
            Default::Value("0"),
            "When the program starts, counted from the start of the run. Programs with the \
                 same time start in the order of the file.",
        ),
        Key::new(
            WaitFor::KEY,
            Kind::Choice(WaitFor::CHOICES),
            Default::Value("\"nothing\""),
            "What must happen before the next program, or a COMMAND, starts.",
        ),
        Key::new(
            "ends_run",
            Kind::Flag,
            Default::Value("false"),
            "The run ends when this program ends. If no program has this, and there is no \
                 COMMAND, the run ends when all programs that are not services have ended.",
        ),
    ])],
};

choices! {
    /// Values of `wait_for`.
    WaitFor("wait_for") {
        Nothing = "nothing": "The next program starts at its own time.",
        Listen = "listen":
            "The next program starts when one more TCP port is open for connections at this \
             place, when this program has ended, or after 5 s, which is reported. This program is \
             then a service: the run does not wait for its end.",
    }
}
