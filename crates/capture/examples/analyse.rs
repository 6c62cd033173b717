//! Reports what captures hold, as the library says it, with one line of JSON each: `cargo run -p
//! airpath-capture --example analyse FILE…`.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::Path;

use airpath_capture::{Reader, analyse};

fn main() -> Result<(), Box<dyn Error>> {
    for file in std::env::args().skip(1) {
        let report = analyse(Reader::open(Path::new(&file))?)?;
        println!("{}", serde_json::to_string(&report)?);
    }
    Ok(())
}
