//! What the calling process and the first process inside share: what to run, and the format of
//! reports.

use std::ffi::CString;
use std::os::fd::RawFd;
use std::ptr::null;

use libc::{c_char, c_int, c_void, pid_t};

/// A program to run inside.
pub(crate) struct Program {
    /// Program and arguments.
    pub(crate) words: Vec<CString>,
    /// The network namespace in which it runs.
    pub(crate) network: RawFd,
    /// Time from [`Container::origin_ns`] until it starts.
    pub(crate) start_ns: u64,
    /// Nothing starts after it until it listens for TCP connections, or a time limit has passed.
    /// The run does not wait for its end.
    pub(crate) service: bool,
    /// The first of these programs to end ends all others.
    pub(crate) ends_run: bool,
    pub(crate) streams: Streams,
}

/// The standard streams of a program.
#[derive(Clone, Copy, Default)]
pub(crate) struct Streams {
    /// Standard input; `None`: there is nothing to read.
    pub(crate) input: Option<RawFd>,
    /// Standard output; `None`: the calling process's own.
    pub(crate) output: Option<RawFd>,
    /// Standard error; `None`: the calling process's own.
    pub(crate) error: Option<RawFd>,
    /// Whether `input` becomes the controlling terminal of the program's session.
    pub(crate) controls: bool,
}

/// The identity of programs.
#[derive(Debug)]
pub(crate) struct Credentials {
    /// User, group, supplementary groups; `None`: those of this process.
    pub(crate) user: Option<(u32, u32, Vec<u32>)>,
    /// Whether they have no capabilities except those needed by ping, and by programs that give up
    /// root.
    pub(crate) limited: bool,
    /// Variables as `NAME=value`.
    pub(crate) environment: Vec<CString>,
}

/// Everything that the first process needs; nothing is allocated after `clone`.
pub(crate) struct Container<'a> {
    /// The programs, in order of their start.
    pub(crate) programs: &'a [Program],
    pub(crate) credentials: &'a Credentials,
    /// Index of the program that has the terminal.
    pub(crate) command: Option<usize>,
    /// CLOCK_MONOTONIC at the start of the run.
    pub(crate) origin_ns: u64,
    /// Network namespaces by the file under `/run/netns` that refers to them.
    pub(crate) names: &'a [(CString, RawFd)],
    /// The content of `/etc/hosts`.
    pub(crate) hosts: &'a [u8],
    /// The content of `/etc/gai.conf`, if different from the host's, which must exist.
    pub(crate) address_order: Option<&'a [u8]>,
}

impl Container<'_> {
    /// All descriptors that the first process uses, in ascending order.
    pub(super) fn descriptors(&self, pipes: Pipes) -> Vec<RawFd> {
        let of_program = |program: &Program| {
            let Streams { input, output, error, .. } = program.streams;
            [Some(program.network), input, output, error].into_iter().flatten()
        };
        let names = self.names.iter().map(|(_, network)| *network);
        let mut all = vec![0, 1, 2, pipes.tell, pipes.alive];
        all.extend(self.programs.iter().flat_map(of_program).chain(names));
        all.sort_unstable();
        all
    }
}

/// A report to the parent: a kind, a program, a value, a time.
pub(super) type Record = [i64; 4];
pub(super) const FAILED: i64 = 0;
pub(super) const STARTED: i64 = 1;
pub(super) const LISTENS: i64 = 2;
pub(super) const SILENT: i64 = 3;
pub(super) const ENDED: i64 = 4;
pub(super) const STOPPED: i64 = 5;
/// Stands for the first process itself.
pub(super) const NOBODY: usize = 0;

pub(super) fn exit_code(status: c_int) -> i32 {
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 128 + libc::WTERMSIG(status) }
}

/// A program in the form for `execvp`, and its state.
pub(super) struct Prepared<'a> {
    pub(super) words: Vec<*const c_char>,
    pub(super) program: &'a Program,
    /// Process number; 0 if it was not started.
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

/// The system call behind `fork`: without CLONE_VM and with no stack of its own, the child
/// continues with a copy of everything. The library's `fork` takes locks, which in a copy of a
/// multi-threaded process may never be released.
///
/// # Safety
///
/// In the child, which has one thread, only async-signal-safe functions may be called until `exec`
/// or `_exit`, because other threads of the parent may have held locks. `flags` must not contain
/// CLONE_VM. `pidfd` must have room for a descriptor if they contain CLONE_PIDFD.
pub(in crate::sys) unsafe fn copy(flags: c_int, pidfd: *mut c_int) -> pid_t {
    let (flags, none) = (libc::c_long::from(flags), null::<c_void>());
    // SAFETY: without CLONE_VM the child has its own memory, and a null pointer means its own
    // stack; the caller guarantees the rest.
    unsafe { libc::syscall(libc::SYS_clone, flags, none, pidfd, none, none) as pid_t }
}

/// Closes every descriptor that is not in `kept`, which is in ascending order. A copy of the process that
/// never reaches `exec` would otherwise hold pipes open, and their readers would not see the end.
///
/// # Safety
///
/// The caller must be a child created by [`copy`] that no longer uses any other descriptor.
pub(in crate::sys) unsafe fn close_except(kept: &[RawFd]) {
    let mut first = 0;
    for &end in kept.iter().chain(&[c_int::MAX]) {
        // SAFETY: the caller no longer uses these descriptors.
        unsafe {
            if first < end && libc::syscall(libc::SYS_close_range, first, end - 1, 0) != 0 {
                // Before Linux 5.9.
                for descriptor in first..end.min(1 << 16) {
                    libc::close(descriptor);
                }
            }
        }
        first = end.saturating_add(1);
    }
}
