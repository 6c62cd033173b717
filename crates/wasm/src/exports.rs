//! The interface to a page: numbers, and addresses in the memory that both share.
//!
//! The page reserves room (`request_room`), writes a request there, calls `run_request`, and reads
//! the document and the tables at their addresses before it asks again. It provides two functions:
//! `progress(kind, value, events)` returns 0 to stop, and `panicked(place, bytes)` receives the
//! reason why the instance can no longer be used.
#![allow(unsafe_code, reason = "an exported name has to be free; nothing else here is unsafe")]

use std::panic;
use std::sync::Mutex;

use crate::{Answer, Progress, answer};

/// The request, and the last answer.
static STATE: Mutex<State> = Mutex::new(State { request: Vec::new(), answer: None, hooked: false });

struct State {
    request: Vec<u8>,
    answer: Option<Answer>,
    hooked: bool,
}

#[link(wasm_import_module = "airpath")]
unsafe extern "C" {
    /// `kind` 0: simulated seconds and events; 1: number of runs done.
    safe fn progress(kind: u32, value: f64, events: f64) -> u32;
    safe fn panicked(place: *const u8, bytes: usize);
}

/// Where to write a request of `bytes` bytes.
#[unsafe(no_mangle)]
extern "C" fn request_room(bytes: usize) -> *mut u8 {
    let mut state = STATE.lock().expect("an instance that panicked is not used again");
    if !std::mem::replace(&mut state.hooked, true) {
        panic::set_hook(Box::new(|told| {
            let text = told.to_string();
            panicked(text.as_ptr(), text.len());
        }));
    }
    // The memory of the last answer is needed for this one.
    state.answer = None;
    state.request.clear();
    state.request.resize(bytes, 0);
    state.request.as_mut_ptr()
}

/// Answers the request written there.
#[unsafe(no_mangle)]
extern "C" fn run_request() {
    let mut state = STATE.lock().expect("as above");
    let request = std::mem::take(&mut state.request);
    let mut host = |told| {
        let goes_on = match told {
            Progress::Run { time_s, events } => progress(0, time_s, events as f64),
            Progress::Runs(done) => progress(1, done as f64, 0.0),
        };
        goes_on != 0
    };
    state.answer = Some(answer(&String::from_utf8_lossy(&request), &mut host));
}

/// Address of the document.
#[unsafe(no_mangle)]
extern "C" fn document_place() -> *const u8 {
    with_answer(|answer| answer.document.as_ptr(), std::ptr::null())
}

/// Length of the document in bytes.
#[unsafe(no_mangle)]
extern "C" fn document_bytes() -> usize {
    with_answer(|answer| answer.document.len(), 0)
}

/// Address of the tables.
#[unsafe(no_mangle)]
extern "C" fn tables_place() -> *const u8 {
    with_answer(|answer| answer.tables.as_ptr(), std::ptr::null())
}

/// Length of all tables in bytes.
#[unsafe(no_mangle)]
extern "C" fn tables_bytes() -> usize {
    with_answer(|answer| answer.tables.len(), 0)
}

fn with_answer<T>(read: impl Fn(&Answer) -> T, nothing: T) -> T {
    let state = STATE.lock().expect("as above");
    state.answer.as_ref().map_or(nothing, read)
}
