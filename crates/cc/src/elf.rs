//! Whether a file is a complete shared object of this machine's kind, before it is loaded.
//!
//! The dynamic linker maps what the program headers name; a file that was cut off ends the process
//! with SIGBUS. Layouts: System V ABI, chapters 4 and 5.

use crate::error::LoadError;

const MAGIC: &[u8] = b"\x7fELF";
/// Size of the file header and of a program header of 64-bit files.
const HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
const SHARED_OBJECT: u64 = 3;

/// EM_X86_64, EM_AARCH64; 0 for a machine that is not checked.
const MACHINE: u64 = if cfg!(target_arch = "x86_64") {
    62
} else if cfg!(target_arch = "aarch64") {
    183
} else {
    0
};

/// Checks the content of a file.
pub(crate) fn check(file: &[u8]) -> Result<(), LoadError> {
    if !file.starts_with(MAGIC) {
        return Err(LoadError::NotElf);
    }
    let header = file.get(..HEADER).ok_or(LoadError::CutOff)?;
    // EI_CLASS and EI_DATA: 64-bit, little endian.
    let native = header[4] == 2 && header[5] == 1;
    let machine = number(header, 18, 2);
    if !native || (MACHINE != 0 && machine != MACHINE) {
        return Err(LoadError::OtherMachine);
    }
    if number(header, 16, 2) != SHARED_OBJECT {
        return Err(LoadError::NotShared);
    }
    let (start, size, count) =
        (number(header, 32, 8), number(header, 54, 2), number(header, 56, 2));
    if size != PROGRAM_HEADER as u64 {
        return Err(LoadError::NotElf);
    }
    for index in 0..count {
        let at = usize::try_from(start.saturating_add(index * size)).unwrap_or(usize::MAX);
        let entry = file.get(at..at.saturating_add(PROGRAM_HEADER)).ok_or(LoadError::CutOff)?;
        let end = number(entry, 8, 8).saturating_add(number(entry, 32, 8));
        if end > file.len() as u64 {
            return Err(LoadError::CutOff);
        }
    }
    Ok(())
}

/// A little-endian number of `length` bytes.
fn number(bytes: &[u8], at: usize, length: usize) -> u64 {
    bytes[at..at + length].iter().rev().fold(0, |sum, &byte| (sum << 8) | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file header with one program header of `bytes` bytes.
    fn object(kind: u8, machine: u8, bytes: u8) -> Vec<u8> {
        let mut file = vec![0; HEADER + PROGRAM_HEADER];
        file[..4].copy_from_slice(MAGIC);
        (file[4], file[5], file[16], file[18]) = (2, 1, kind, machine);
        (file[32], file[54], file[56]) = (HEADER as u8, PROGRAM_HEADER as u8, 1);
        file[HEADER + 32] = bytes;
        file
    }

    #[test]
    fn only_a_complete_shared_object_of_this_machine_passes() {
        let here = MACHINE as u8;
        assert!(check(&object(3, here, 120)).is_ok());
        assert!(matches!(check(&object(3, here, 121)), Err(LoadError::CutOff)));
        assert!(matches!(check(&object(2, here, 120)), Err(LoadError::NotShared)));
        assert!(matches!(check(&object(3, here ^ 1, 120)), Err(LoadError::OtherMachine)));
        assert!(matches!(check(b"\x7fELF"), Err(LoadError::CutOff)));
        assert!(matches!(check(b"#!/bin/sh"), Err(LoadError::NotElf)));
        assert!(matches!(check(b""), Err(LoadError::NotElf)));
    }

    #[test]
    fn no_length_of_a_file_makes_it_panic() {
        let whole = object(3, MACHINE as u8, 120);
        for length in 0..whole.len() {
            assert!(check(&whole[..length]).is_err(), "{length}");
        }
    }
}
