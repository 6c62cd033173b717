//! What the calling process and the first process inside both know: what is to run, and how one tells
//! the other about it.

use std::ffi::CString;
use std::os::fd::RawFd;
use std::ptr::null;

use libc::{c_char, c_int, c_void, pid_t};

/// What runs inside.
pub(crate) struct Program {
    /// Program and arguments.
    pub(crate) words: Vec<CString>,
    /// The network namespace that it is in.
    pub(crate) network: RawFd,
    /// When it starts, after [`Container::origin_ns`].
    pub(crate) start_ns: u64,
    /// Nothing starts after it until it listens for TCP connections, or for so long. Nobody waits
    /// for its end.
    pub(crate) service: bool,
    /// The first of these to end is the end of all.
    pub(crate) ends_run: bool,
    pub(crate) streams: Streams,
}

/// What a program has as its standard streams.
#[derive(Clone, Copy, Default)]
pub(crate) struct Streams {
    /// `None`: there is nothing to read.
    pub(crate) input: Option<RawFd>,
    /// `None`: the calling process's own.
    pub(crate) output: Option<RawFd>,
    /// `None`: the calling process's own.
    pub(crate) error: Option<RawFd>,
    /// `input` becomes the controlling terminal of the program's session.
    pub(crate) controls: bool,
}

/// As whom programs run.
#[derive(Debug)]
pub(crate) struct Credentials {
    /// User, group, other groups; `None`: as this process.
    pub(crate) user: Option<(u32, u32, Vec<u32>)>,
    /// They have no capabilities but those that ping, and whoever gives up root, need.
    pub(crate) limited: bool,
    /// `NAME=value`.
    pub(crate) environment: Vec<CString>,
}

/// Everything that the first process needs; nothing is allocated after `clone`.
pub(crate) struct Container<'a> {
    /// In order of their start.
    pub(crate) programs: &'a [Program],
    pub(crate) credentials: &'a Credentials,
    /// Of these, the one that has the terminal.
    pub(crate) command: Option<usize>,
    /// CLOCK_MONOTONIC at the start of the run.
    pub(crate) origin_ns: u64,
    /// Network namespaces by the file under `/run/netns` that leads to them.
    pub(crate) names: &'a [(CString, RawFd)],
    /// What `/etc/hosts` says.
    pub(crate) hosts: &'a [u8],
    /// What `/etc/gai.conf` says, if something else than the host's: it has to be there.
    pub(crate) address_order: Option<&'a [u8]>,
}

/// What is told to the parent: a kind, a program, a value, a time.
pub(super) type Record = [i64; 4];
pub(super) const FAILED: i64 = 0;
pub(super) const STARTED: i64 = 1;
pub(super) const LISTENS: i64 = 2;
pub(super) const SILENT: i64 = 3;
pub(super) const ENDED: i64 = 4;
pub(super) const STOPPED: i64 = 5;
/// The first process itself.
pub(super) const NOBODY: usize = 0;

pub(super) fn exit_code(status: c_int) -> i32 {
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 128 + libc::WTERMSIG(status) }
}

/// A program as `execvp` wants it, and how it is.
pub(super) struct Prepared<'a> {
    pub(super) words: Vec<*const c_char>,
    pub(super) program: &'a Program,
    /// 0: not started.
    pub(super) pid: pid_t,
    pub(super) ended: bool,
}

impl<'a> Prepared<'a> {
    pub(super) fn new(program: &'a Program) -> Self {
        let mut words: Vec<*const c_char> =
            program.words.iter().map(|word| word.as_ptr()).collect();
        words.push(null());
        Self { words, program, pid: 0, ended: false }
    }

    pub(super) fn runs(&self) -> bool {
        self.pid > 0 && !self.ended
    }
}

#[derive(Clone, Copy)]
pub(super) struct Pipes {
    pub(super) tell: RawFd,
    pub(super) alive: RawFd,
}

/// The system call behind `fork`: without CLONE_VM and with no stack of its own the child goes on
/// with a copy of everything. The library's `fork` takes locks, which in a copy of a process of
/// several threads may never be free.
///
/// # Safety
///
/// In the child, which has one thread, only async-signal-safe functions may be called until `exec` or `_exit`:
/// other threads of the parent may have held locks. `flags` have no CLONE_VM. `pidfd` has room for a descriptor if
/// they have CLONE_PIDFD.
pub(in crate::sys) unsafe fn copy(flags: c_int, pidfd: *mut c_int) -> pid_t {
    let (flags, none) = (libc::c_long::from(flags), null::<c_void>());
    // SAFETY: without CLONE_VM the child has its own memory, and a null pointer is its own stack; the caller has promised
    // the rest.
    unsafe { libc::syscall(libc::SYS_clone, flags, none, pidfd, none, none) as pid_t }
}
