//! The first process of the PID namespace, from `clone` to its end: it does only what a signal
//! handler may do, on memory that was prepared before.

use std::ffi::CStr;
use std::mem::{MaybeUninit, zeroed};
use std::os::fd::RawFd;
use std::ptr::{null, null_mut};

use libc::{c_char, c_int, pid_t};

use super::rights::Rights;
use super::shared::{
    Container, ENDED, FAILED, LISTENS, NOBODY, Pipes, Prepared, Record, SILENT, STARTED, STOPPED,
    Streams, copy, exit_code,
};

/// Directory of `ip netns`.
const NAMES: &CStr = c"/run/netns";
const HOSTS: &CStr = c"/run/netns/.hosts";
const ORDER: &CStr = c"/run/netns/.gai.conf";
const MS: u64 = 1_000_000;
/// How long a service may take until it listens.
const PATIENCE: u64 = 5_000 * MS;
/// Interval at which this is checked.
const POLL_INTERVAL: u64 = 5 * MS;
/// How long the others may take to end when the run is over.
const FAREWELL: u64 = 1_000 * MS;
/// How long programs may continue after SIGTERM. SIGINT is only sent to them on their own account:
/// some take it for a key.
const GRACE: u64 = 500 * MS;

/// A service that following programs wait for.
#[derive(Clone, Copy)]
struct Wait {
    program: usize,
    /// Number of ports on which something listened before.
    before: u32,
    until: u64,
}

/// Starts the programs, forwards signals, and ends when the run is over.
///
/// # Safety
///
/// The caller must be the child that [`copy`] has just created: it has one thread, and never
/// returns from here. The descriptors of `pipes`, `programs` and `container` must be open.
pub(super) unsafe fn first_process(
    container: &Container<'_>,
    rights: &Rights<'_>,
    programs: &mut [Prepared<'_>],
    pipes: Pipes,
) -> ! {
    // SAFETY: this process has one thread, and what is called here is async-signal-safe and
    // allocates nothing, as required in the child of a multi-threaded process (fork(2)). Pointers
    // point to locals or to what the caller lent.
    unsafe {
        let mut all: libc::sigset_t = zeroed();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, null_mut());
        // Signals of the terminal go to airpath, which forwards them.
        libc::setsid();
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) < 0 {
            fail(pipes, NOBODY, 0);
        }
        let mut parent = libc::pollfd { fd: pipes.alive, events: libc::POLLIN, revents: 0 };
        if libc::poll(&raw mut parent, 1, 0) != 0 {
            libc::_exit(125);
        }
        mount_all(container, pipes);
        let (mut next, mut wait, mut stopping, mut deadline) = (0, None::<Wait>, false, u64::MAX);
        loop {
            while wait.is_none() && !stopping && next < programs.len() {
                let program = programs[next].program;
                if container.origin_ns + program.start_ns > now() {
                    break;
                }
                let before = if program.service { listeners(program.network, pipes) } else { 0 };
                programs[next].pid = start(&programs[next], rights, next, pipes);
                tell(pipes, STARTED, next, 0);
                wait = program.service.then(|| Wait {
                    program: next,
                    before,
                    until: now() + PATIENCE,
                });
                next += 1;
            }
            if is_over(programs, next, stopping) {
                finish(programs, pipes, 0);
            }
            if now() >= deadline {
                finish(programs, pipes, 128 + libc::SIGTERM);
            }
            let pause = match (wait, programs.get(next)) {
                (Some(_), _) => POLL_INTERVAL,
                (None, Some(due)) if !stopping => {
                    (container.origin_ns + due.program.start_ns).saturating_sub(now())
                }
                _ => u64::MAX,
            };
            let pause = match deadline {
                u64::MAX => pause,
                deadline => pause.min(deadline.saturating_sub(now())),
            };
            match next_signal(&raw const all, pause) {
                Some(libc::SIGCHLD) => reap(programs, pipes, ENDED),
                Some(signal) => {
                    stopping |= forward_signal(container, programs, signal);
                    if signal == libc::SIGTERM {
                        deadline = deadline.min(now() + GRACE);
                    }
                }
                None => {}
            }
            if let Some(Wait { program, before, until }) = wait {
                let listens = listeners(programs[program].program.network, pipes) > before;
                if listens || !programs[program].runs() || now() > until {
                    tell(pipes, if listens { LISTENS } else { SILENT }, program, 0);
                    wait = None;
                }
            }
        }
    }
}

/// The next signal; `None` after `pause`.
///
/// # Safety
///
/// `all` must point to a signal set.
unsafe fn next_signal(all: *const libc::sigset_t, pause: u64) -> Option<c_int> {
    // SAFETY: `all` is valid, as required; everything else that the calls access is this function's
    // own memory.
    let signal = unsafe {
        if pause == u64::MAX {
            libc::sigwaitinfo(all, null_mut())
        } else {
            let (seconds, nanos) = (pause / 1_000_000_000, pause % 1_000_000_000);
            let pause = libc::timespec { tv_sec: seconds as i64, tv_nsec: nanos as i64 };
            libc::sigtimedwait(all, null_mut(), &raw const pause)
        }
    };
    (signal > 0).then_some(signal)
}

/// Whether the run is over: nothing is waited for any longer.
fn is_over(programs: &[Prepared<'_>], started: usize, stopping: bool) -> bool {
    let decides = |each: &&Prepared<'_>| each.program.ends_run;
    let waited_for = |each: &&Prepared<'_>| !each.program.service || each.program.ends_run;
    if programs.iter().filter(decides).any(|each| each.ended) {
        return true;
    }
    let done = programs[..started].iter().filter(waited_for).all(|each| each.ended);
    done && (stopping || (started == programs.len() && !programs.iter().any(|each| decides(&each))))
}

/// Forwards a signal to the command, or to all programs if there is none. Returns true if no more
/// programs must start.
///
/// # Safety
///
/// `programs` must be children of this process, for which only [`reap`] waits.
unsafe fn forward_signal(
    container: &Container<'_>,
    programs: &[Prepared<'_>],
    signal: c_int,
) -> bool {
    let ends = matches!(signal, libc::SIGINT | libc::SIGTERM | libc::SIGHUP | libc::SIGQUIT);
    // A terminal sends these to every process of a job. A program leads its own group.
    let is_for_group = matches!(signal, libc::SIGINT | libc::SIGQUIT);
    // SAFETY: a child that was not waited for keeps its number, so no other process gets a signal.
    let send = |each: &Prepared<'_>| unsafe {
        // The group does not exist before the program's process has created it.
        if each.runs() && !(is_for_group && libc::kill(-each.pid, signal) == 0) {
            libc::kill(each.pid, signal);
        }
    };
    match container.command {
        Some(command) => send(&programs[command]),
        None => programs.iter().for_each(send),
    }
    ends && container.command.is_none_or(|command| programs[command].pid == 0)
}

/// Processes programs that have ended.
///
/// # Safety
///
/// The caller must be the first process, and `pipes` must be open.
unsafe fn reap(programs: &mut [Prepared<'_>], pipes: Pipes, kind: i64) {
    let mut status = 0;
    // SAFETY: the call waits for children of this process and writes `status`, a local; the
    // conditions of `tell` are met.
    unsafe {
        loop {
            let pid = libc::waitpid(-1, &raw mut status, libc::WNOHANG);
            if pid <= 0 {
                return;
            }
            let found = programs.iter_mut().enumerate().find(|(_, each)| each.pid == pid);
            if let Some((index, each)) = found {
                each.ended = true;
                tell(pipes, kind, index, exit_code(status).into());
            }
        }
    }
}

/// Asks all programs that still run to end, so that they can write their last output; the kernel
/// ends those that do not. `code`: of the run, if it is not that of a program.
///
/// # Safety
///
/// The caller must be the first process, and `pipes` must be open.
unsafe fn finish(programs: &mut [Prepared<'_>], pipes: Pipes, code: c_int) -> ! {
    // SAFETY: a child that was not waited for keeps its number; the calls on the set write a local.
    unsafe {
        let mut ended: libc::sigset_t = zeroed();
        libc::sigemptyset(&raw mut ended);
        libc::sigaddset(&raw mut ended, libc::SIGCHLD);
        for each in programs.iter().filter(|each| each.runs()) {
            libc::kill(each.pid, libc::SIGTERM);
            libc::kill(each.pid, libc::SIGCONT);
        }
        let until = now() + FAREWELL;
        while programs.iter().any(|each| each.runs()) && now() < until {
            next_signal(&raw const ended, until.saturating_sub(now()));
            reap(programs, pipes, STOPPED);
        }
        for (index, _) in programs.iter().enumerate().filter(|(_, each)| each.runs()) {
            tell(pipes, STOPPED, index, 0);
        }
        libc::_exit(code);
    }
}

/// Mounts `/proc` of this PID namespace, the names for `ip netns exec`, and the names of the ends.
///
/// # Safety
///
/// The caller must be the first process, in a mount namespace of its own, and `container` must have
/// open descriptors.
unsafe fn mount_all(container: &Container<'_>, pipes: Pipes) {
    let none = null::<c_char>();
    // SAFETY: every string ends with a zero and outlives the call; the mount namespace is this
    // process's own, so no other process sees these mounts. `errno` is this thread's.
    unsafe {
        let private = libc::MS_REC | libc::MS_PRIVATE;
        if libc::mount(none, c"/".as_ptr(), none, private, null()) < 0 {
            fail(pipes, NOBODY, 2);
        }
        let (proc, careful) =
            (c"proc".as_ptr(), libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC);
        if libc::mount(proc, c"/proc".as_ptr(), proc, careful, null()) < 0 {
            fail(pipes, NOBODY, 3);
        }
        let tmpfs = c"tmpfs".as_ptr();
        // `ip netns` creates this directory too. An ordinary user cannot, but may have another
        // /run.
        if libc::mkdir(NAMES.as_ptr(), 0o755) < 0 && *libc::__errno_location() != libc::EEXIST {
            let run = c"/run".as_ptr();
            libc::mount(tmpfs, run, tmpfs, careful, c"mode=755".as_ptr().cast());
            libc::mkdir(NAMES.as_ptr(), 0o755);
        }
        if libc::mount(tmpfs, NAMES.as_ptr(), tmpfs, careful, c"mode=755".as_ptr().cast()) < 0 {
            fail(pipes, NOBODY, 4);
        }
        for (path, network) in container.names {
            let file = libc::open(path.as_ptr(), libc::O_CREAT | libc::O_CLOEXEC, 0o444);
            let mut source = [0; 32];
            let bound = file >= 0
                && libc::close(file) == 0
                && descriptor_path(*network, &mut source)
                && libc::mount(source.as_ptr(), path.as_ptr(), none, libc::MS_BIND, null()) == 0;
            if !bound {
                fail(pipes, NOBODY, 5);
            }
        }
        if !bind(HOSTS, c"/etc/hosts", container.hosts) {
            fail(pipes, NOBODY, 6);
        }
        if let Some(order) = container.address_order
            && !bind(ORDER, c"/etc/gai.conf", order)
        {
            fail(pipes, NOBODY, 10);
        }
    }
}

/// Replaces the content of a file: mounts `new`, created for that, over it.
///
/// # Safety
///
/// The caller must be the first process, in a mount namespace of its own.
unsafe fn bind(new: &CStr, file: &CStr, text: &[u8]) -> bool {
    let create = libc::O_CREAT | libc::O_WRONLY | libc::O_CLOEXEC;
    let none = null::<c_char>();
    // SAFETY: both names end with a zero, and `text` has the given length; all outlive the calls.
    unsafe {
        let made = libc::open(new.as_ptr(), create, 0o644);
        made >= 0
            && libc::write(made, text.as_ptr().cast(), text.len()) == text.len() as isize
            && libc::close(made) == 0
            && libc::mount(new.as_ptr(), file.as_ptr(), none, libc::MS_BIND, null()) == 0
            && libc::unlink(new.as_ptr()) == 0
    }
}

/// The path `/proc/self/fd/N`, without allocation.
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

/// Starts a program; returns its process number.
///
/// # Safety
///
/// The caller must be the first process. `program` must have open descriptors, and its words must
/// end with a null pointer.
unsafe fn start(program: &Prepared<'_>, rights: &Rights<'_>, index: usize, pipes: Pipes) -> pid_t {
    let Streams { input, output, error, controls } = program.program.streams;
    // SAFETY: this process has one thread, and the child goes straight to `exec` with
    // async-signal-safe calls. The words and the environment end with null pointers.
    unsafe {
        match copy(libc::SIGCHLD, null_mut()) {
            -1 => fail(pipes, index, 7),
            0 => {}
            pid => return pid,
        }
        if libc::setns(program.program.network, libc::CLONE_NEWNET) < 0 {
            fail(pipes, index, 1);
        }
        // A session of its own: the program reaches neither airpath's terminal nor other groups of
        // processes.
        libc::setsid();
        let nothing = || libc::open(c"/dev/null".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        libc::dup2(input.unwrap_or_else(nothing), 0);
        for (from, to) in [(output, 1), (error, 2)] {
            if let Some(from) = from {
                libc::dup2(from, to);
            }
        }
        if controls {
            libc::ioctl(0, libc::TIOCSCTTY, 0);
        }
        close_others();
        // Others cannot write to files that it creates, as under sudo.
        libc::umask(libc::umask(0) | 0o022);
        for signal in 1..=libc::SIGRTMAX() {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, null_mut());
        if !rights.take() {
            fail(pipes, index, 9);
        }
        libc::execvpe(program.words[0], program.words.as_ptr(), rights.environment());
        fail(pipes, index, 8)
    }
}

/// Closes everything except the standard streams at `exec`.
///
/// # Safety
///
/// The caller must be a child that continues to `exec`, and must not rely on any other descriptor
/// after it.
unsafe fn close_others() {
    const FIRST: c_int = 3;
    // SAFETY: changes flags of descriptors, none of which this process uses after `exec`.
    unsafe {
        let close = libc::CLOSE_RANGE_CLOEXEC;
        if libc::syscall(libc::SYS_close_range, FIRST, c_int::MAX, close) == 0 {
            return;
        }
        // Before Linux 5.11.
        let mut limit: libc::rlimit = zeroed();
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        for descriptor in FIRST..c_int::try_from(limit.rlim_cur).unwrap_or(c_int::MAX) {
            libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
}

/// Number of ports on which something listens for TCP connections in a network namespace.
///
/// # Safety
///
/// The caller must be the first process, because its network namespace is changed. `network` must
/// be open.
unsafe fn listeners(network: RawFd, pipes: Pipes) -> u32 {
    // Column `st`: 0A is TCP_LISTEN.
    const LISTEN: &[u8; 4] = b" 0A ";
    let mut count = 0;
    // SAFETY: bytes may be zero, so the buffer is valid; it has the given length, and `read`
    // returns no more.
    unsafe {
        if libc::setns(network, libc::CLONE_NEWNET) < 0 {
            fail(pipes, NOBODY, 1);
        }
        for table in [c"/proc/self/net/tcp", c"/proc/self/net/tcp6"] {
            let mut buffer = MaybeUninit::<[u8; 4096]>::zeroed().assume_init();
            let file = libc::open(table.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
            let mut matched = 0;
            loop {
                let bytes = libc::read(file, buffer.as_mut_ptr().cast(), buffer.len());
                if bytes <= 0 {
                    break;
                }
                for &byte in &buffer[..bytes as usize] {
                    matched = match byte == LISTEN[matched] {
                        true => matched + 1,
                        false => usize::from(byte == LISTEN[0]),
                    };
                    if matched == LISTEN.len() {
                        count += 1;
                        // The last byte of a match may be the first byte of the next match.
                        matched = 1;
                    }
                }
            }
            libc::close(file);
        }
    }
    count
}

/// Reports an event to the parent.
///
/// # Safety
///
/// `pipes.tell` must be open.
unsafe fn tell(pipes: Pipes, kind: i64, program: usize, value: i64) {
    // SAFETY: the call reads `record`, a local, within its length.
    unsafe {
        let record: Record = [kind, program as i64, value, now() as i64];
        libc::write(pipes.tell, record.as_ptr().cast(), size_of_val(&record));
    }
}

/// Reports what failed, and exits.
///
/// # Safety
///
/// The caller must be the first process or a child of it before `exec`, and `pipes` must be open.
unsafe fn fail(pipes: Pipes, program: usize, step: i64) -> ! {
    // SAFETY: as required, exiting this process ends no code of the parent; `errno` is this
    // thread's.
    unsafe {
        tell(pipes, FAILED, program, step << 32 | i64::from(*libc::__errno_location()));
        libc::_exit(125);
    }
}

/// CLOCK_MONOTONIC in ns.
fn now() -> u64 {
    // SAFETY: the call writes a timespec, which is plain data.
    let time = unsafe {
        let mut time: libc::timespec = zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time);
        time
    };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
