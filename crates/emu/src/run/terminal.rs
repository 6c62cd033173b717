//! A separate terminal for the programs: what they write appears on airpath's, and what is typed
//! there goes to them. They never have airpath's terminal itself, where they could inject input for
//! the user who started airpath (TIOCSTI), read what is typed afterwards, or stop it.

use std::io::{self, IsTerminal, PipeReader, PipeWriter};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::fchown;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use airpath_base::Duration;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, ioctl_fionbio, read, write};
use rustix::process::getpgrp;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{LocalModes, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetwinsize};

use crate::EmuError;
use crate::clock::timespec;
use crate::sys::{Guard, Modes};

/// Most typed bytes that no program has read: beyond that nothing more is read from the keyboard.
const MOST_TYPED: usize = 4096;

/// Bytes per read.
const CHUNK_BYTES: usize = 1 << 14;

/// Reads at the end, more than the kernel buffers: an outside process may have obtained the
/// terminal, and continue to write.
const LAST_CHUNKS: usize = 64;

/// Interval at which a background process checks whether it has come to the foreground.
const BACKGROUND: Duration = Duration::from_millis(200);

/// The character that Ctrl-C types (ETX), which is the default of VINTR.
const INTERRUPT: u8 = 3;

/// Only one emulation per process reads from the keyboard.
static READS: AtomicBool = AtomicBool::new(false);

/// A pseudo-terminal that no program uses yet.
pub(crate) struct Terminal {
    ours: OwnedFd,
    programs: OwnedFd,
    /// airpath's terminal, to which output goes.
    screen: OwnedFd,
    /// airpath's terminal, if typed input is for a program.
    keyboard: Option<OwnedFd>,
    /// Which of the standard streams are terminals.
    replaces: [bool; 3],
}

/// A terminal in use. When it is dropped, everything written is on airpath's terminal, and that has
/// its previous modes again.
pub(crate) struct Relay {
    ours: Arc<OwnedFd>,
    screen: Arc<OwnedFd>,
    keyboard: Option<Arc<Keyboard>>,
    /// Whether the interrupt character (Ctrl-C) was typed while the programs' terminal turned it
    /// into SIGINT.
    interrupt: Arc<AtomicBool>,
    /// Dropping it tells the reader that no writer is left.
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<()>>,
}

struct Keyboard {
    terminal: OwnedFd,
    before: Modes,
    raw: Modes,
    _guard: Guard,
}

impl Terminal {
    /// A terminal for programs, if a standard stream of this process is a terminal. `reads`: one of
    /// the programs reads from it. `owner` is their user and group, if different from this
    /// process's.
    ///
    /// # Errors
    ///
    /// If no pseudo-terminal is available.
    pub(crate) fn of_programs(
        reads: bool,
        owner: Option<(u32, u32)>,
    ) -> Result<Option<Self>, EmuError> {
        let (input, output, error) = (io::stdin(), io::stdout(), io::stderr());
        let replaces = [input.is_terminal(), output.is_terminal(), error.is_terminal()];
        let screen = match replaces {
            [_, true, _] => output.as_fd(),
            [_, _, true] => error.as_fd(),
            [true, _, _] => input.as_fd(),
            _ => return Ok(None),
        };
        let keyboard = (reads && replaces[0]).then_some(input.as_fd());
        let open = || {
            let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
            let ours = openpt(flags)?;
            grantpt(&ours)?;
            unlockpt(&ours)?;
            ioctl_fionbio(&ours, true)?;
            let programs = ioctl_tiocgptpeer(&ours, flags)?;
            copy_size(screen, ours.as_fd());
            if let Some((user, group)) = owner {
                // The programs may open /dev/stdout.
                fchown(&programs, Some(user), Some(group))?;
            }
            let own = BorrowedFd::try_clone_to_owned;
            let keyboard = keyboard.as_ref().map(own).transpose()?;
            Ok(Self { ours, programs, screen: own(&screen)?, keyboard, replaces })
        };
        let failed = |source| EmuError::Start { step: "a terminal".to_owned(), source };
        open().map(Some).map_err(failed)
    }

    /// The given descriptor of this process, or the programs' terminal if it is a standard stream
    /// and a terminal.
    pub(crate) fn replaced(&self, own: RawFd) -> RawFd {
        let is_ours = usize::try_from(own).is_ok_and(|own| self.replaces.get(own) == Some(&true));
        if is_ours { self.programs.as_raw_fd() } else { own }
    }

    /// The programs have the terminal: starts to relay what they write and what is typed.
    ///
    /// # Errors
    ///
    /// If no thread or process can be started.
    pub(crate) fn relay(self) -> Result<Relay, EmuError> {
        let Self { ours, screen, keyboard, .. } = self;
        let failed = |source| EmuError::Start { step: "a terminal".to_owned(), source };
        let keyboard = keyboard.map(Keyboard::take).transpose().map_err(failed)?.flatten();
        let (ours, screen, keyboard) = (Arc::new(ours), Arc::new(screen), keyboard.map(Arc::new));
        let (stopped, stop) = io::pipe().map_err(failed)?;
        let ends = (Arc::clone(&ours), Arc::clone(&screen), keyboard.clone());
        let interrupt = Arc::new(AtomicBool::new(false));
        let typed = Arc::clone(&interrupt);
        let mut relay = Relay { ours, screen, keyboard, interrupt, stop: Some(stop), thread: None };
        let work = move || exchange(&ends.0, &ends.1, ends.2.as_deref(), &stopped, &typed);
        let thread = thread::Builder::new().name("airpath-terminal".to_owned()).spawn(work);
        relay.thread = Some(thread.map_err(failed)?);
        relay.resume();
        Ok(relay)
    }
}

impl Relay {
    /// Whether somebody typed Ctrl-C, and the programs got SIGINT for it.
    pub(crate) fn interrupted(&self) -> bool {
        self.interrupt.load(Ordering::SeqCst)
    }

    /// The size of airpath's terminal changed.
    pub(crate) fn resize(&self) {
        copy_size(self.screen.as_fd(), self.ours.as_fd());
    }

    /// This process continues after it was stopped. A shell has set modes of its own.
    pub(crate) fn resume(&self) {
        if let Some(keyboard) = &self.keyboard {
            keyboard.make_raw();
        }
        self.resize();
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(Err(panic)) = self.thread.take().map(JoinHandle::join)
            && !thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Keyboard {
    /// Takes the keyboard; `None` if another emulation holds it.
    fn take(terminal: OwnedFd) -> io::Result<Option<Self>> {
        if READS.swap(true, Ordering::SeqCst) {
            return Ok(None);
        }
        let take = || {
            let before = Modes::of(terminal.as_raw_fd())?;
            let raw = before.raw();
            let guard = Guard::start(terminal.as_raw_fd(), before, raw)?;
            Ok(Some(Self { terminal, before, raw, _guard: guard }))
        };
        take().inspect_err(|_| READS.store(false, Ordering::SeqCst))
    }

    /// Whether typed input is for this process: in the background it is for others.
    fn is_ours(&self) -> bool {
        // An error means that it is not the terminal of this session, so there is no job control.
        tcgetpgrp(&self.terminal).map_or(true, |group| group == getpgrp())
    }

    fn make_raw(&self) {
        if self.is_ours() {
            // A process that has lost its terminal gets SIGHUP.
            let _ = self.raw.set(self.terminal.as_raw_fd());
        }
    }
}

impl Drop for Keyboard {
    fn drop(&mut self) {
        if self.is_ours() {
            let _ = self.before.set(self.terminal.as_raw_fd());
        }
        READS.store(false, Ordering::SeqCst);
    }
}

/// Relays until nobody has the programs' terminal any more, or `stopped` is closed and everything
/// is written.
fn exchange(
    ours: &OwnedFd,
    screen: &OwnedFd,
    mut keyboard: Option<&Keyboard>,
    stopped: &PipeReader,
    interrupt: &AtomicBool,
) {
    let (mut typed, mut was_ours) = (Vec::new(), true);
    loop {
        let is_ours = keyboard.is_some_and(Keyboard::is_ours);
        if let Some(keyboard) = keyboard.filter(|_| is_ours && !was_ours) {
            keyboard.make_raw();
        }
        was_ours = is_ours;
        let reads = keyboard.filter(|_| is_ours && typed.len() < MOST_TYPED);
        let wanted = if typed.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
        let mut polled = vec![PollFd::new(stopped, PollFlags::IN), PollFd::new(ours, wanted)];
        polled.extend(reads.map(|keyboard| PollFd::new(&keyboard.terminal, PollFlags::IN)));
        let pause = timespec(BACKGROUND);
        let pause = (keyboard.is_some() && !is_ours).then_some(&pause);
        match poll(&mut polled, pause) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return,
        }
        let is_over = !polled[0].revents().is_empty();
        let is_typed = polled.get(2).is_some_and(|polled| !polled.revents().is_empty());
        drop(polled);
        // Whether the keyboard is gone.
        if is_typed && keyboard.is_some_and(|one| !add_typed(&one.terminal, &mut typed)) {
            keyboard = None;
        }
        if !typed.is_empty()
            && let Ok(taken) = write(ours, &typed)
            && typed.drain(..taken).any(|byte| byte == INTERRUPT)
            && makes_signals(ours)
        {
            interrupt.store(true, Ordering::SeqCst);
        }
        // One chunk at a time, so that typed input gets through a flood of output.
        for _ in 0..if is_over { LAST_CHUNKS } else { 1 } {
            match show(ours, screen) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                // EIO: no program has it.
                Err(_) => return,
            }
        }
        if is_over {
            return;
        }
    }
}

/// Whether the programs' terminal turns the interrupt character into SIGINT (ISIG, termios(3)).
fn makes_signals(ours: &OwnedFd) -> bool {
    tcgetattr(ours).is_ok_and(|modes| modes.local_modes.contains(LocalModes::ISIG))
}

/// Returns whether there may be more.
fn add_typed(terminal: &OwnedFd, typed: &mut Vec<u8>) -> bool {
    let mut bytes = [0; 1024];
    match read(terminal, &mut bytes) {
        Ok(0) => false,
        Ok(count) => {
            typed.extend_from_slice(&bytes[..count]);
            true
        }
        Err(Errno::INTR | Errno::AGAIN) => true,
        Err(_) => false,
    }
}

/// Shows what a program wrote on the screen.
fn show(ours: &OwnedFd, screen: &OwnedFd) -> rustix::io::Result<()> {
    let mut bytes = [0; CHUNK_BYTES];
    let count = read(ours, &mut bytes)?;
    let mut rest = &bytes[..count];
    while !rest.is_empty() {
        match write(screen, rest) {
            Ok(written) => rest = &rest[written..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let _ = poll(&mut [PollFd::new(screen, PollFlags::OUT)], None);
            }
            // The screen is gone; the programs continue.
            Err(_) => break,
        }
    }
    Ok(())
}

fn copy_size(from: BorrowedFd<'_>, to: BorrowedFd<'_>) {
    if let Ok(size) = tcgetwinsize(from) {
        let _ = tcsetwinsize(to, size);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A terminal, its other end, and its modes.
    fn pair() -> (OwnedFd, OwnedFd) {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        let theirs = ioctl_tiocgptpeer(&ours, OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        (ours, theirs)
    }

    #[test]
    fn a_terminal_is_raw_while_it_is_relayed_and_then_as_before() {
        let (_screen, terminal) = pair();
        let has_echo = |terminal: &OwnedFd| {
            let modes = rustix::termios::tcgetattr(terminal).unwrap();
            modes.local_modes.contains(rustix::termios::LocalModes::ECHO)
        };
        let keyboard = Keyboard::take(terminal.try_clone().unwrap()).unwrap().unwrap();
        // Of two emulations in a process, one has the keyboard.
        assert!(Keyboard::take(terminal.try_clone().unwrap()).unwrap().is_none());
        keyboard.make_raw();
        assert!(!has_echo(&terminal));
        drop(keyboard);
        assert!(has_echo(&terminal));
    }

    #[test]
    fn what_was_written_is_shown_although_somebody_still_has_the_terminal() {
        let (screen, terminal) = pair();
        let (ours, programs) = pair();
        ioctl_fionbio(&ours, true).unwrap();
        let (stopped, stop) = io::pipe().unwrap();
        write(&programs, b"the last words").unwrap();
        drop(stop);
        exchange(&ours, &terminal, None, &stopped, &AtomicBool::new(false));
        let mut bytes = [0; 64];
        let count = read(&screen, &mut bytes).unwrap();
        assert_eq!(&bytes[..count], b"the last words");
        drop(programs);
    }
}
