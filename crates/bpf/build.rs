//! Compiles the BPF programs. Only with the feature `kernel`: it needs clang.

#![allow(clippy::print_stdout, reason = "how a build script talks")]

use std::path::{Path, PathBuf};
use std::process::Command;

const OBJECTS: [&str; 2] = ["observer", "cubic"];

fn main() {
    println!("cargo:rerun-if-changed=kernel");
    println!("cargo:rerun-if-env-changed=CLANG");
    if std::env::var_os("CARGO_FEATURE_KERNEL").is_none() {
        return;
    }
    let path = |name| PathBuf::from(std::env::var_os(name).expect("cargo and libbpf-sys set it"));
    // libbpf's own headers, from the library that is linked.
    let (out, headers) = (path("OUT_DIR"), path("DEP_BPF_INCLUDE"));
    for object in OBJECTS {
        compile(object, &out, &headers);
    }
}

fn compile(object: &str, out: &Path, headers: &Path) {
    let clang = std::env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let status = Command::new(&clang)
        .args(["-O2", "-g", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3", "-c"])
        // What is embedded does not depend on where it was built.
        .args(["-fdebug-compilation-dir=.", "-I"])
        .arg(headers)
        .arg(format!("kernel/{object}.bpf.c"))
        .arg("-o")
        .arg(out.join(format!("{object}.bpf.o")))
        .status();
    let status = status.unwrap_or_else(|error| {
        panic!("{clang}: {error} (the feature `kernel` needs clang: apt-get install clang)")
    });
    assert!(status.success(), "{clang} could not compile kernel/{object}.bpf.c: {status}");
}
