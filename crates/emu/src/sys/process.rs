//! Programs in a PID namespace of their own: when its first process ends, for whatever reason,
//! the kernel ends all others and takes back mounts and network namespaces.
//!
//! That first process is a copy of the calling one that never returns. Between `clone` and `exec`
//! it does only what a signal handler may do: other threads may have held any lock.

use std::ffi::{CStr, CString};
use std::io::{self, PipeReader, PipeWriter, Read};
use std::mem::{MaybeUninit, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{null, null_mut};

use libc::{c_char, c_int, c_void, pid_t};

/// What runs inside.
pub(crate) struct Program {
    /// Program and arguments.
    pub(crate) words: Vec<CString>,
    /// The network namespace that it is in.
    pub(crate) network: RawFd,
}

/// Everything that the first process needs; nothing is allocated after `clone`.
pub(crate) struct Container<'a> {
    /// Decides how long the others live.
    pub(crate) command: &'a Program,
    /// Started before it. Each is waited for until it listens for TCP connections, or for so long.
    pub(crate) servers: &'a [Program],
    /// Network namespaces by the file under `/run/netns` that leads to them.
    pub(crate) names: &'a [(CString, RawFd)],
    /// What `/etc/hosts` says.
    pub(crate) hosts: &'a [u8],
    /// The command's standard output goes to standard error.
    pub(crate) quiet: bool,
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

/// Directory of `ip netns`.
const NAMES: &CStr = c"/run/netns";
const HOSTS: &CStr = c"/run/netns/.hosts";
/// How long a server may take to listen.
const PATIENCE_MS: u32 = 5_000;

/// What can fail in the first process, in order.
const STEPS: [&str; 9] = [
    "asking to die with airpath",
    "entering a network namespace",
    "a mount namespace of its own",
    "mounting /proc",
    "mounting /run/netns",
    "naming the network namespaces",
    "mounting /etc/hosts",
    "starting a process",
    "running the command",
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
    let command = Prepared::new(container.command);
    let servers: Vec<Prepared<'_>> = container.servers.iter().map(Prepared::new).collect();
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
                first_process(container, &command, &servers, pipes)
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

    /// Waits for its end. A command that a signal ended has the status 128 and its number, as in
    /// a shell.
    ///
    /// # Errors
    ///
    /// What failed before the command ran.
    pub(crate) fn wait(&mut self) -> Result<i32, (&'static str, io::Error)> {
        let mut status = 0;
        // SAFETY: waits for a child of ours, once.
        unsafe {
            while libc::waitpid(self.pid, &raw mut status, 0) < 0
                && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
            {}
        }
        self.ended = true;
        let mut said = [0; 8];
        if self.report.read(&mut said).is_ok_and(|bytes| bytes == said.len()) {
            let [step, error] = [&said[..4], &said[4..]]
                .map(|half| i32::from_ne_bytes(half.try_into().expect("four bytes")));
            let step = STEPS.get(step as usize).copied().unwrap_or("starting the command");
            return Err((step, io::Error::from_raw_os_error(error)));
        }
        Ok(exit_code(status))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.ended {
            self.signal(libc::SIGKILL);
            let _ = self.wait();
        }
    }
}

fn exit_code(status: c_int) -> i32 {
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 128 + libc::WTERMSIG(status) }
}

/// A program as `execvp` wants it.
struct Prepared<'a> {
    words: Vec<*const c_char>,
    program: &'a Program,
}

impl<'a> Prepared<'a> {
    fn new(program: &'a Program) -> Self {
        let mut words: Vec<*const c_char> =
            program.words.iter().map(|word| word.as_ptr()).collect();
        words.push(null());
        Self { words, program }
    }
}

#[derive(Clone, Copy)]
struct Pipes {
    tell: RawFd,
    alive: RawFd,
}

/// The system call behind `fork`: without CLONE_VM and with no stack of its own the child goes on
/// with a copy of everything. The library's `fork` takes locks, which in a copy of a process of
/// several threads may never be free.
unsafe fn copy(flags: c_int, pidfd: *mut c_int) -> pid_t {
    let (flags, none) = (libc::c_long::from(flags), null::<c_void>());
    // SAFETY: the caller sees to what the child does.
    unsafe { libc::syscall(libc::SYS_clone, flags, none, pidfd, none, none) as pid_t }
}

/// Says what failed, and ends.
unsafe fn fail(pipes: Pipes, step: i32) -> ! {
    // SAFETY: the caller is the first process or a child of it before `exec`.
    unsafe {
        let said = [step, *libc::__errno_location()];
        libc::write(pipes.tell, said.as_ptr().cast(), size_of_val(&said));
        libc::_exit(125);
    }
}

/// Lives until the command has ended, and passes signals on to it.
unsafe fn first_process(
    container: &Container<'_>,
    command: &Prepared<'_>,
    servers: &[Prepared<'_>],
    pipes: Pipes,
) -> ! {
    // SAFETY: only system calls, on memory that was prepared before.
    unsafe {
        let mut all: libc::sigset_t = zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, null_mut());
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) < 0 {
            fail(pipes, 0);
        }
        let mut parent = libc::pollfd { fd: pipes.alive, events: libc::POLLIN, revents: 0 };
        if libc::poll(&raw mut parent, 1, 0) != 0 {
            libc::_exit(125);
        }
        mount_all(container, pipes);
        for server in servers {
            start(server, pipes, true, false);
            wait_for_listener(server.program.network, pipes);
        }
        let pid = start(command, pipes, false, container.quiet);
        loop {
            let mut info: libc::siginfo_t = zeroed();
            let signal = libc::sigwaitinfo(&raw const all, &raw mut info);
            if signal == libc::SIGCHLD {
                reap(pid);
            } else if signal > 0 && info.si_code <= 0 {
                // What a terminal sends, it sends to the command too.
                libc::kill(pid, signal);
            }
        }
    }
}

/// Ends with the command's code, if it has ended.
unsafe fn reap(command: pid_t) {
    let mut status = 0;
    // SAFETY: waits for children of this process.
    unsafe {
        loop {
            match libc::waitpid(-1, &raw mut status, libc::WNOHANG) {
                pid if pid == command => libc::_exit(exit_code(status)),
                pid if pid > 0 => {}
                _ => return,
            }
        }
    }
}

/// `/proc` of this PID namespace; names for `ip netns exec`; names of the ends.
unsafe fn mount_all(container: &Container<'_>, pipes: Pipes) {
    let none = null::<c_char>();
    // SAFETY: system calls on constant strings; the mount namespace is this process's own.
    unsafe {
        let private = libc::MS_REC | libc::MS_PRIVATE;
        if libc::mount(none, c"/".as_ptr(), none, private, null()) < 0 {
            fail(pipes, 2);
        }
        let (proc, careful) =
            (c"proc".as_ptr(), libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC);
        if libc::mount(proc, c"/proc".as_ptr(), proc, careful, null()) < 0 {
            fail(pipes, 3);
        }
        // `ip netns` makes this directory too.
        libc::mkdir(NAMES.as_ptr(), 0o755);
        let tmpfs = c"tmpfs".as_ptr();
        if libc::mount(tmpfs, NAMES.as_ptr(), tmpfs, careful, c"mode=755".as_ptr().cast()) < 0 {
            fail(pipes, 4);
        }
        for (path, network) in container.names {
            let file = libc::open(path.as_ptr(), libc::O_CREAT | libc::O_CLOEXEC, 0o444);
            let mut source = [0; 32];
            let bound = file >= 0
                && libc::close(file) == 0
                && descriptor_path(*network, &mut source)
                && libc::mount(source.as_ptr(), path.as_ptr(), none, libc::MS_BIND, null()) == 0;
            if !bound {
                fail(pipes, 5);
            }
        }
        let create = libc::O_CREAT | libc::O_WRONLY | libc::O_CLOEXEC;
        let file = libc::open(HOSTS.as_ptr(), create, 0o644);
        let hosts = container.hosts;
        let bound = file >= 0
            && libc::write(file, hosts.as_ptr().cast(), hosts.len()) == hosts.len() as isize
            && libc::close(file) == 0
            && libc::mount(HOSTS.as_ptr(), c"/etc/hosts".as_ptr(), none, libc::MS_BIND, null())
                == 0
            && libc::unlink(HOSTS.as_ptr()) == 0;
        if !bound {
            fail(pipes, 6);
        }
    }
}

/// `/proc/self/fd/N`, without allocating.
fn descriptor_path(descriptor: RawFd, path: &mut [c_char; 32]) -> bool {
    let prefix = b"/proc/self/fd/";
    let mut digits = [0; 10];
    let mut left = descriptor;
    let mut length = 0;
    while length == 0 || left > 0 {
        digits[length] = b'0' + (left % 10) as u8;
        left /= 10;
        length += 1;
    }
    let bytes = prefix.iter().chain(digits[..length].iter().rev());
    for (to, from) in path.iter_mut().zip(bytes) {
        *to = *from as c_char;
    }
    descriptor >= 0
}

/// Starts a program; its number.
unsafe fn start(program: &Prepared<'_>, pipes: Pipes, background: bool, quiet: bool) -> pid_t {
    // SAFETY: this process has one thread, and the child goes straight to `exec`.
    unsafe {
        match copy(libc::SIGCHLD, null_mut()) {
            -1 => fail(pipes, 7),
            0 => {}
            pid => return pid,
        }
        if libc::setns(program.program.network, libc::CLONE_NEWNET) < 0 {
            fail(pipes, 1);
        }
        if background {
            let nothing = libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY);
            libc::dup2(nothing, 0);
        }
        if background || quiet {
            libc::dup2(2, 1);
        }
        for signal in 1..=libc::SIGRTMAX() {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, null_mut());
        libc::execvp(program.words[0], program.words.as_ptr());
        fail(pipes, 8)
    }
}

/// Waits until somebody listens for TCP connections in a network namespace.
unsafe fn wait_for_listener(network: RawFd, pipes: Pipes) {
    // SAFETY: system calls; the buffer is as long as is said.
    unsafe {
        if libc::setns(network, libc::CLONE_NEWNET) < 0 {
            fail(pipes, 1);
        }
        for _ in 0..PATIENCE_MS / 5 {
            for table in [c"/proc/self/net/tcp", c"/proc/self/net/tcp6"] {
                let mut buffer = MaybeUninit::<[u8; 4096]>::zeroed().assume_init();
                let file = libc::open(table.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
                let bytes = libc::read(file, buffer.as_mut_ptr().cast(), buffer.len()).max(0);
                libc::close(file);
                // Column `st`: 0A is TCP_LISTEN.
                if buffer[..bytes as usize].windows(4).any(|word| word == b" 0A ") {
                    return;
                }
            }
            let pause = libc::timespec { tv_sec: 0, tv_nsec: 5_000_000 };
            libc::nanosleep(&raw const pause, null_mut());
        }
    }
}
