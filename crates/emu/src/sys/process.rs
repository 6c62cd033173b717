//! Programs in a PID namespace of their own: when its first process ends, for whatever reason,
//! the kernel ends all others and takes back mounts and network namespaces.
//!
//! That first process is a copy of the calling one that never returns. Between `clone` and `exec`
//! it does only what a signal handler may do: other threads may have held any lock.

mod first;
mod rights;
mod shared;

use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use libc::{c_int, pid_t};

use self::first::first_process;
use self::rights::Rights;
pub(super) use self::shared::copy;
pub(crate) use self::shared::{Container, Credentials, Program, Streams};
use self::shared::{ENDED, LISTENS, Pipes, Prepared, Record, SILENT, STARTED, STOPPED, exit_code};

/// What happened to a program: its place in the list, and CLOCK_MONOTONIC in ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ProgramEvent {
    pub(crate) program: usize,
    pub(crate) at_ns: u64,
    pub(crate) kind: ProgramEventKind,
}

/// What happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ProgramEventKind {
    Started,
    /// A service does what it is for.
    Listens,
    /// It did not in time, and was not waited for any longer.
    Silent,
    /// By itself, with this exit code.
    Ended(i32),
    /// It was asked to, because the run was over.
    Stopped,
}

/// The first process.
#[derive(Debug)]
pub(crate) struct Child {
    pid: pid_t,
    /// Readable when it has ended.
    pub(crate) pidfd: OwnedFd,
    /// What went wrong.
    report: PipeReader,
    /// Open as long as this process lives; no child has it.
    _alive: PipeWriter,
    ended: bool,
}

/// What can fail in the first process, in order.
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
/// What `pipe2` or `clone` said.
pub(crate) fn spawn_contained(container: &Container<'_>) -> io::Result<Child> {
    let (report, tell) = io::pipe()?;
    // Closed by the kernel when this process ends: PR_SET_PDEATHSIG may come too late.
    let (alive, hold) = io::pipe()?;
    let rights = Rights::new(container.credentials);
    let mut programs: Vec<Prepared<'_>> = container.programs.iter().map(Prepared::new).collect();
    let flags = libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_PIDFD | libc::SIGCHLD;
    let mut pidfd: c_int = -1;
    // SAFETY: the child never leaves `first_process`, which uses only async-signal-safe calls.
    let pid = unsafe { copy(flags, &raw mut pidfd) };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let pipes = Pipes { tell: tell.as_raw_fd(), alive: alive.as_raw_fd() };
            // SAFETY: this is the child; nothing of the parent's is used but plain memory.
            unsafe {
                libc::close(hold.as_raw_fd());
                first_process(container, &rights, &mut programs, pipes)
            }
        }
        pid => {
            // SAFETY: CLONE_PIDFD has made this descriptor, and nobody else owns it.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(Child { pid, pidfd, report, _alive: hold, ended: false })
        }
    }
}

impl Child {
    /// Sends it a signal, which it passes on to the command.
    pub(crate) fn signal(&self, signal: c_int) {
        // SAFETY: the process is ours and not waited for yet, so the number is still its own.
        unsafe { libc::kill(self.pid, signal) };
    }

    /// Waits for its end: its exit code, and what it told. What a signal ended has the code 128 and
    /// its number, as in a shell.
    ///
    /// # Errors
    ///
    /// What failed before a program ran, and which one.
    pub(crate) fn wait(&mut self) -> Result<(i32, Vec<ProgramEvent>), Failed> {
        let mut status = 0;
        // SAFETY: waits for a child of ours, once.
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
    /// Which one, where the step is about one.
    pub(crate) program: usize,
    pub(crate) error: io::Error,
}

/// The step that is about one program.
pub(crate) const RUNNING: &str = "running the command";

impl Drop for Child {
    fn drop(&mut self) {
        if !self.ended {
            self.signal(libc::SIGKILL);
            let _ = self.wait();
        }
    }
}
