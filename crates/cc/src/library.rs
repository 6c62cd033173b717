//! Loads a library once and keeps it for as long as the process lives.
#![allow(unsafe_code, reason = "loading and calling foreign code")]

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_void};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use airpath_tcp::CongestionFactory;

use crate::abi::{ABI, Library};
use crate::control::Factory;
use crate::elf;
use crate::error::{LoadError, MOST_BYTES, MOST_NAME};

/// The symbol that a library exports.
const SYMBOL: &CStr = c"airpath_congestion_control";

/// A library, and where it is from.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Builds its algorithm.
    pub factory: Arc<dyn CongestionFactory>,
    /// The content of the file.
    pub bytes: Arc<[u8]>,
}

/// Loads a library, which runs its code.
///
/// # Errors
///
/// [`LoadError`]; a file that is refused before it is loaded has run nothing.
pub fn load(path: &Path) -> Result<Loaded, LoadError> {
    /// By file: its content, and what was loaded.
    static LOADED: Mutex<BTreeMap<PathBuf, Loaded>> = Mutex::new(BTreeMap::new());
    let path = path.canonicalize().map_err(LoadError::Read)?;
    let bytes = read(&path)?;
    elf::check(&bytes)?;
    let mut loaded = LOADED.lock().expect("nothing panics with it");
    if let Some(known) = loaded.get(&path).filter(|known| *known.bytes == *bytes) {
        return Ok(known.clone());
    }
    let (library, name) = open(&path)?;
    let file = path.display().to_string();
    let new = Loaded { factory: Arc::new(Factory::new(library, name, file)), bytes: bytes.into() };
    loaded.insert(path, new.clone());
    Ok(new)
}

fn read(path: &Path) -> Result<Vec<u8>, LoadError> {
    // Opening a pipe would wait for whoever writes to it.
    if !std::fs::metadata(path).map_err(LoadError::Read)?.is_file() {
        return Err(LoadError::NotElf);
    }
    let file = std::fs::File::open(path).map_err(LoadError::Read)?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(LoadError::Read)?;
    if bytes.len() as u64 > MOST_BYTES { Err(LoadError::TooLarge) } else { Ok(bytes) }
}

/// Loads the file, and finds what it exports.
fn open(path: &Path) -> Result<(&'static Library, &'static str), LoadError> {
    let name = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| LoadError::Read(io::ErrorKind::InvalidInput.into()))?;
    // SAFETY: the name ends with a zero byte. What the library does when it is loaded is its own.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        return Err(LoadError::Refused(last_error()));
    }
    let found = exported(handle);
    if found.is_err() {
        // SAFETY: the handle is open, and nothing of the library is in use.
        unsafe { libc::dlclose(handle) };
    }
    found
}

fn exported(handle: *mut c_void) -> Result<(&'static Library, &'static str), LoadError> {
    // SAFETY: the handle is open, the name ends with a zero byte.
    let symbol: *const Library = unsafe { libc::dlsym(handle, SYMBOL.as_ptr()) }.cast();
    if symbol.is_null() || !symbol.is_aligned() {
        return Err(LoadError::NoSymbol);
    }
    // SAFETY: what has this name begins with these two numbers in every version of the interface.
    let (abi, size) =
        unsafe { ((&raw const (*symbol).abi).read(), (&raw const (*symbol).size).read()) };
    if abi != ABI {
        return Err(LoadError::OtherAbi(abi));
    }
    if size as usize != size_of::<Library>() {
        return Err(LoadError::OtherSize(size));
    }
    // SAFETY: its version and its size say that it is one; it is never unloaded.
    let library: &'static Library = unsafe { &*symbol };
    if library.name.is_null() {
        return Err(LoadError::BadName);
    }
    // SAFETY: a library of this version names a string that ends with a zero byte.
    let name = unsafe { CStr::from_ptr(library.name) }.to_str().map_err(|_| LoadError::BadName)?;
    let printable = name.bytes().all(|byte| byte.is_ascii_graphic());
    if name.is_empty() || name.len() > MOST_NAME || !printable {
        return Err(LoadError::BadName);
    }
    Ok((library, name))
}

/// What the dynamic linker said last, on one line.
fn last_error() -> String {
    // SAFETY: the pointer is null or a string that is valid until the next call.
    let said = unsafe {
        let said = libc::dlerror();
        (!said.is_null()).then(|| CStr::from_ptr(said).to_string_lossy().into_owned())
    };
    let said = said.unwrap_or_else(|| "the dynamic linker does not say why".to_owned());
    said.lines().next().unwrap_or_default().to_owned()
}
