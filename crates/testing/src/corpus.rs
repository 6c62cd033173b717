//! Replays what the fuzzers found in ordinary tests: `fuzz/corpus/TARGET`.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::first_line;

/// Runs the body of a fuzz target over its corpus.
///
/// # Panics
/// If the body panics; the message names the file. If there is no corpus.
pub fn replay(target: &str, body: impl Fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    replay_files(&corpus, body);
}

fn replay_files(corpus: &Path, body: impl Fn(&[u8])) {
    let entries = std::fs::read_dir(corpus)
        .unwrap_or_else(|error| panic!("no corpus {}: {error}", corpus.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.expect("it can be listed").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "the corpus {} is empty", corpus.display());
    for file in files {
        let bytes = std::fs::read(&file).expect("a corpus can be read");
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| body(&bytes))) {
            panic!("{}: {}", file.display(), first_line(panic.as_ref()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_corpus_is_replayed_and_what_fails_is_named() {
        let place = std::env::temp_dir().join(format!("airpath-corpus-{}", std::process::id()));
        std::fs::create_dir_all(&place).unwrap();
        let failed = |body: &dyn Fn(&[u8])| {
            let panic = catch_unwind(AssertUnwindSafe(|| replay_files(&place, body))).err();
            panic.map(|panic| first_line(panic.as_ref()).to_owned())
        };
        assert!(failed(&|_| ()).unwrap().ends_with("is empty"));
        for name in ["a", "b"] {
            std::fs::write(place.join(name), name).unwrap();
        }
        let seen = Cell::new(0);
        assert_eq!(failed(&|_| seen.set(seen.get() + 1)), None);
        assert_eq!(seen.get(), 2);
        let said = failed(&|bytes| assert!(bytes != b"b", "odd")).unwrap();
        assert!(said.ends_with("/b: odd"), "{said}");
        std::fs::remove_dir_all(&place).unwrap();
        assert!(failed(&|_| ()).unwrap().starts_with("no corpus "));
    }
}
