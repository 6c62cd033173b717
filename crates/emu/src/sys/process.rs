//! Programs in a PID namespace of their own: when its first process ends, for whatever reason, the
//! kernel ends all others and releases mounts and network namespaces.
//!
//! That first process is a copy of the calling one that never returns. Between `clone` and `exec`
//! it does only what a signal handler may do, because other threads may have held locks.

mod first;
mod rights;
mod shared;

use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libc::{c_int, pid_t};

use self::first::first_process;
use self::rights::Rights;
pub(crate) use self::shared::{Container, Credentials, Program, Streams};
use self::shared::{ENDED, LISTENS, Pipes, Prepared, Record, SILENT, STARTED, STOPPED, exit_code};
pub(super) use self::shared::{close_except, copy};

/// An event of a program: its index in the list, and CLOCK_MONOTONIC in ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ProgramEvent {
    pub(crate) program: usize,
    pub(crate) at_ns: u64,
    pub(crate) kind: ProgramEventKind,
}

/// What happened to a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ProgramEventKind {
    Started,
    /// A service listens.
    Listens,
    /// A service did not listen in time, and was not waited for any longer.
    Silent,
    /// The program ended by itself, with this exit code.
    Ended(i32),
    /// The program was asked to end, because the run was over.
    Stopped,
}

/// The first process.
#[derive(Debug)]
pub(crate) struct Child {
    pid: pid_t,
    /// Readable when the process has ended.
    pub(crate) pidfd: OwnedFd,
    /// Reports of errors and events.
    report: PipeReader,
    /// Open as long as this process lives; no child has it.
    _alive: PipeWriter,
    ended: bool,
}

/// Steps of the first process that can fail, in order.
const STEPS: [&str; 11] = [
    "asking to die with airpath",
    "entering a network namespace",
    "a mount namespace of its own",
    "mounting /proc",
    "mounting /run/netns",
    "naming the network namespaces",
    "mounting /etc/hosts",
    "starting a process",
    RUNNING,
    "becoming the user of the programs (--user)",
    "mounting /etc/gai.conf",
];

/// Starts the programs.
///
/// # Errors
///
/// Those of `pipe2` or `clone`.
pub(crate) fn spawn_contained(container: &Container<'_>) -> io::Result<Child> {
    let (report, tell) = io::pipe()?;
    // The kernel closes it when this process ends: PR_SET_PDEATHSIG may come too late.
    let (alive, hold) = io::pipe()?;
    let rights = Rights::new(container.credentials);
    let mut programs: Vec<Prepared<'_>> = container.programs.iter().map(Prepared::new).collect();
    let pipes = Pipes { tell: tell.as_raw_fd(), alive: alive.as_raw_fd() };
    let kept = container.descriptors(pipes);
    let flags = libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_PIDFD | libc::SIGCHLD;
    let mut pidfd: c_int = -1;
    // SAFETY: the child never leaves `first_process`, which uses only async-signal-safe calls.
    let pid = unsafe { copy(flags, &raw mut pidfd) };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // SAFETY: this is the child; it uses nothing of the parent but plain memory.
            unsafe {
                close_except(&kept);
                first_process(container, &rights, &mut programs, pipes)
            }
        }
        pid => {
            // SAFETY: CLONE_PIDFD created this descriptor, and nothing else owns it.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(Child { pid, pidfd, report, _alive: hold, ended: false })
        }
    }
}

impl Child {
    /// Sends the process a signal, which it forwards to the command.
    pub(crate) fn signal(&self, signal: c_int) {
        // SAFETY: the process is a child that was not waited for yet, so the number is still its
        // own.
        unsafe { libc::kill(self.pid, signal) };
    }

    /// Waits for the process to end: returns its exit code, and the events it reported. The code of
    /// a program that a signal ended is 128 plus its number, as in a shell.
    ///
    /// # Errors
    ///
    /// The step that failed before a program ran, and the program.
    pub(crate) fn wait(&mut self) -> Result<(i32, Vec<ProgramEvent>), Failed> {
        let mut status = 0;
        // SAFETY: waits for a child of this process, once.
        unsafe {
            while libc::waitpid(self.pid, &raw mut status, 0) < 0
                && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
            {}
        }
        self.ended = true;
        let mut all = Vec::new();
        let mut bytes = [0; size_of::<Record>()];
        while self.report.read_exact(&mut bytes).is_ok() {
            let mut words = bytes
                .chunks_exact(8)
                .map(|word| i64::from_ne_bytes(word.try_into().expect("chunks have eight bytes")));
            let [kind, program, value, at] = std::array::from_fn(|_| words.next().unwrap_or(0));
            let program = program as usize;
            let kind = match kind {
                STARTED => ProgramEventKind::Started,
                LISTENS => ProgramEventKind::Listens,
                SILENT => ProgramEventKind::Silent,
                ENDED => ProgramEventKind::Ended(value as i32),
                STOPPED => ProgramEventKind::Stopped,
                _ => {
                    let step = STEPS.get((value >> 32) as usize).copied();
                    return Err(Failed {
                        step: step.unwrap_or("starting the programs"),
                        program,
                        error: io::Error::from_raw_os_error(value as i32),
                    });
                }
            };
            all.push(ProgramEvent { program, at_ns: at as u64, kind });
        }
        Ok((exit_code(status), all))
    }
}

/// Why a program could not run.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) step: &'static str,
    /// The program, if the step concerns one.
    pub(crate) program: usize,
    pub(crate) error: io::Error,
}

/// The step that concerns one program.
pub(crate) const RUNNING: &str = "running the command";

impl Drop for Child {
    fn drop(&mut self) {
        if !self.ended {
            self.signal(libc::SIGKILL);
            let _ = self.wait();
        }
    }
}
