//! Loads an object, and keeps libbpf's warnings for the error.

use std::cell::RefCell;

use libbpf_rs::{Object, ObjectBuilder, OpenObject, PrintLevel, set_print};

use crate::BpfError;

/// An ELF file in memory, with the alignment that its words need.
#[repr(C, align(8))]
pub(crate) struct Elf<Bytes: ?Sized>(pub(crate) Bytes);

thread_local! {
    static WARNINGS: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Opens an object.
pub(crate) fn open(elf: &[u8]) -> Result<OpenObject, BpfError> {
    attempt("opening the programs", || ObjectBuilder::default().open_memory(elf))
}

/// Opens an object, lets `prepare` change it, and loads it.
pub(crate) fn load(
    elf: &[u8],
    prepare: impl FnOnce(&mut OpenObject) -> libbpf_rs::Result<()>,
) -> Result<Object, BpfError> {
    let mut open = open(elf)?;
    attempt("preparing the programs", || prepare(&mut open))?;
    attempt("loading the programs (root, and CONFIG_DEBUG_INFO_BTF)", || open.load())
}

/// Performs a step; if it fails, the error contains the warnings printed meanwhile.
pub(crate) fn attempt<T>(
    step: &'static str,
    work: impl FnOnce() -> libbpf_rs::Result<T>,
) -> Result<T, BpfError> {
    set_print(Some((PrintLevel::Warn, note)));
    WARNINGS.take();
    work().map_err(|source| BpfError { step, source, warnings: WARNINGS.take() })
}

fn note(_level: PrintLevel, text: String) {
    WARNINGS.with_borrow_mut(|warnings| warnings.push_str(&text));
}
