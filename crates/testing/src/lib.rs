//! Helpers that tests of several crates share and no crate ships, above all for tests that a busy
//! machine cannot judge.
//!
//! It may use: nothing of airpath. Start reading at [`real_clock`], and at docs/adr/0029.
//!
//! - [`real_clock`]: the test failed while the machine was busy with other work;
//! - [`has`], [`skip`]: a program or device that the test needs is missing;
//! - [`replay`] runs the inputs that the fuzzers found;
//! - [`in_parallel`] runs independent cases on all cores;
//! - [`allocations`] counts how often a thread allocates memory.
//!
//! Rust's harness knows passed, failed and ignored. A test that is not one of these writes a line of
//! JSON to the file that `AIRPATH_OUTCOMES` names, and `make test` prints these lines at the end.
//! Without the variable the line goes to standard error. `tests/python/real_clock.py` does the same
//! for pytest. Tests that need root are `#[ignore = "needs root"]`; `make test` runs them if it
//! runs as root.

mod allocations;
mod corpus;
mod machine;
mod parallel;

use std::fs::OpenOptions;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use serde_json::{Value, json};

pub use allocations::{CountingAllocator, allocations};
pub use corpus::replay;
pub use machine::{OtherWork, Usage};
pub use parallel::in_parallel;

/// How often a test that was late is repeated.
pub const RETRIES: usize = 3;

/// Runs `timed`, which has to be on time, until the machine allows a judgement, and returns its
/// result.
///
/// If it fails while the machine was on time, the test fails. If it fails four times while the
/// machine had other work, the test is not judged: the result is `None`, and the test must end.
///
/// # Panics
/// If `timed` panicked.
pub fn real_clock<T>(name: &str, timed: impl Fn() -> T) -> Option<T> {
    let (too_late, ended) = attempt(&timed, || {
        let before = Usage::now();
        move || OtherWork::since(&before).busy()
    });
    let mut line = json!({ "suite": "rust", "test": name, "outcome": "passed" });
    line["real_clock"] = json!({ "too_late": too_late });
    let judged = match ended {
        Ended::OnTime(result) => Some(result.unwrap_or_else(|panic| resume_unwind(panic))),
        Ended::TooLate(because) => {
            line["outcome"] = json!("not judged");
            line["reason"] = json!(because);
            None
        }
    };
    record(&line);
    judged
}

/// True if the machine has these programs (names) and files (absolute paths); otherwise the test is
/// skipped, and this is recorded.
pub fn has(name: &str, needed: &[&str]) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    let is_there = |program: &str| {
        program.starts_with('/') && Path::new(program).exists()
            || path.split(':').any(|place| Path::new(place).join(program).is_file())
    };
    let Some(missing) = needed.iter().find(|one| !is_there(one)) else { return true };
    skip(name, &format!("{missing} is missing"));
    false
}

/// Records that a test is skipped, and why; the test must then end.
pub fn skip(name: &str, reason: &str) {
    record(&json!({ "suite": "rust", "test": name, "outcome": "skipped", "reason": reason }));
}

enum Ended<T> {
    OnTime(std::thread::Result<T>),
    TooLate(String),
}

/// Why attempts did not count, and how the last one ended.
///
/// `begin` starts to measure the machine; the function that it returns says why the machine was
/// busy, if it was.
fn attempt<T, Busy: FnOnce() -> Option<String>>(
    timed: &impl Fn() -> T,
    begin: impl Fn() -> Busy,
) -> (Vec<String>, Ended<T>) {
    let mut too_late = Vec::new();
    loop {
        let is_busy = begin();
        let result = catch_unwind(AssertUnwindSafe(timed));
        let (Err(panic), Some(busy)) = (&result, is_busy()) else {
            return (too_late, Ended::OnTime(result));
        };
        let because = format!("{busy}: {}", first_line(panic.as_ref()));
        too_late.push(because.clone());
        if too_late.len() > RETRIES {
            return (too_late, Ended::TooLate(because));
        }
    }
}

/// The first line of a thread's panic message.
pub fn first_line(panic: &(dyn std::any::Any + Send)) -> &str {
    let said = panic.downcast_ref::<String>().map(String::as_str);
    let said = said.or_else(|| panic.downcast_ref::<&str>().copied());
    said.and_then(|said| said.lines().next()).unwrap_or("it failed")
}

#[allow(clippy::print_stderr, reason = "where nobody collects outcomes, they are said")]
fn record(line: &Value) {
    let Some(file) = std::env::var_os("AIRPATH_OUTCOMES") else {
        eprintln!("{line}");
        return;
    };
    // Each line is written at once, so that tests of one process do not mix theirs.
    let text = format!("{line}\n");
    let written = OpenOptions::new().append(true).create(true).open(&file);
    written
        .and_then(|mut open| open.write_all(text.as_bytes()))
        .unwrap_or_else(|error| panic!("cannot write {}: {error}", file.display()));
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// How often a test ran that passes at the n-th attempt, on a machine that is busy for some
    /// attempts; and how it ended.
    fn ran(right_at: usize, busy: usize) -> (usize, &'static str) {
        let (count, looked) = (Cell::new(0), Cell::new(0));
        let test = || {
            count.set(count.get() + 1);
            assert!(count.get() == right_at, "27.3 ms\nand more");
        };
        let (_, ended) = attempt(&test, || {
            || {
                looked.set(looked.get() + 1);
                (looked.get() <= busy).then(|| "other work took 90 %".to_owned())
            }
        });
        let ended = match ended {
            Ended::OnTime(Ok(())) => "passed",
            Ended::OnTime(Err(_)) => "failed",
            Ended::TooLate(because) => {
                assert_eq!(because, "other work took 90 %: 27.3 ms");
                "not judged"
            }
        };
        (count.get(), ended)
    }

    #[test]
    fn it_fails_only_when_it_was_on_time_and_wrong() {
        assert_eq!(ran(1, 9), (1, "passed"));
        assert_eq!(ran(3, 2), (3, "passed"));
        assert_eq!(ran(9, 0), (1, "failed"));
        assert_eq!(ran(9, 3), (4, "failed"));
        assert_eq!(ran(9, 4), (4, "not judged"));
    }
}
