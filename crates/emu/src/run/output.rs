//! The output of the scenario's programs: read as it arrives, and kept up to a limit.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{OpenOptionsExt, fchown};
use std::path::Path;
use std::thread::{self, JoinHandle};

use airpath_base::Duration;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde::Serialize;

use crate::EmuError;
use crate::clock::timespec;
use crate::sys::enlarge_pipe;

/// Most bytes kept of each stream.
const MOST_BYTES: u64 = 64 << 20;

/// Bytes per read, and most that wait in a pipe.
const CHUNK_BYTES: usize = 1 << 16;
const PIPE_BYTES: usize = 1 << 20;

/// The last line is looked for within this many bytes of the end.
const TAIL_BYTES: usize = 4096;

/// What happened to one stream of a program.
#[derive(Clone, Default, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Written {
    /// Bytes in its file.
    pub kept_bytes: u64,
    /// Bytes that the program wrote beyond that.
    pub dropped_bytes: u64,
    /// Why they were dropped.
    pub dropped_because: Option<String>,
    /// The last non-empty line, whether it was kept or not.
    #[serde(skip)]
    pub(crate) last_line: Option<String>,
}

/// Streams that are open, in the order in which they were opened.
#[derive(Default)]
pub(crate) struct Outputs {
    streams: Vec<Stream>,
    /// The programs' ends, until they have been passed on.
    writers: Vec<PipeWriter>,
}

/// Streams that are being read.
pub(crate) struct Reading {
    /// Dropping it tells the reader that no writer is left.
    stop: Option<PipeWriter>,
    thread: Option<JoinHandle<Vec<Written>>>,
}

struct Stream {
    pipe: PipeReader,
    file: File,
    written: Written,
    tail: VecDeque<u8>,
    open: bool,
}

impl Outputs {
    /// A descriptor for a program of that user, whose output goes to a file.
    pub(crate) fn open(
        &mut self,
        path: &Path,
        user: Option<(u32, u32)>,
    ) -> Result<RawFd, EmuError> {
        let mut open = || {
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            // The directory belongs to this run; what programs print is private.
            let file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
            let (pipe, writer) = io::pipe()?;
            // If a larger pipe is not permitted, it keeps its size.
            let _ = enlarge_pipe(&writer, PIPE_BYTES);
            if let Some((user, group)) = user {
                // The program may open /dev/stdout.
                fchown(&writer, Some(user), Some(group))?;
            }
            let (written, tail) = (Written::default(), VecDeque::with_capacity(2 * TAIL_BYTES));
            self.streams.push(Stream { pipe, file, written, tail, open: true });
            let descriptor = writer.as_raw_fd();
            self.writers.push(writer);
            io::Result::Ok(descriptor)
        };
        let failed = |source| EmuError::Output { file: path.display().to_string(), source };
        open().map_err(failed)
    }

    /// The programs have their ends: starts to read what they write.
    ///
    /// # Errors
    ///
    /// If no thread can be started.
    pub(crate) fn start(&mut self) -> Result<Reading, EmuError> {
        let streams = std::mem::take(&mut self.streams);
        self.writers.clear();
        let (stopped, stop) = io::pipe().map_err(EmuError::Wait)?;
        let work = move || read_all(streams, &stopped);
        let thread = thread::Builder::new().name("airpath-output".to_owned()).spawn(work);
        let thread = Some(thread.map_err(EmuError::Wait)?);
        Ok(Reading { stop: Some(stop), thread })
    }
}

impl Reading {
    /// All programs have ended: returns what they wrote, in the order in which streams were opened.
    pub(crate) fn finish(&mut self) -> Vec<Written> {
        drop(self.stop.take());
        let done = self.thread.take().map(JoinHandle::join);
        done.map_or_else(Vec::new, |done| {
            done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Reads until no writer is left and everything has been read.
fn read_all(mut streams: Vec<Stream>, stopped: &PipeReader) -> Vec<Written> {
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut over = false;
    loop {
        let ready = {
            let mut wanted = vec![PollFd::new(stopped, PollFlags::IN)];
            let open = streams.iter().filter(|stream| stream.open);
            wanted.extend(open.map(|stream| PollFd::new(&stream.pipe, PollFlags::IN)));
            // What is in the pipes when all have ended also belongs to them; after that there is
            // nothing more.
            let now = timespec(Duration::ZERO);
            match poll(&mut wanted, over.then_some(&now)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => break,
            }
            let ready: Vec<bool> = wanted.iter().map(|one| !one.revents().is_empty()).collect();
            ready
        };
        let mut any = false;
        let open = streams.iter_mut().filter(|stream| stream.open);
        for (stream, _) in open.zip(&ready[1..]).filter(|(_, ready)| **ready) {
            any = true;
            match stream.pipe.read(&mut buffer) {
                Ok(0) => stream.open = false,
                Ok(bytes) => stream.take(&buffer[..bytes]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => stream.open = false,
            }
        }
        if over && !any {
            break;
        }
        over |= ready[0];
    }
    streams.into_iter().map(Stream::end).collect()
}

impl Stream {
    fn take(&mut self, bytes: &[u8]) {
        let Written { kept_bytes, dropped_bytes, dropped_because, .. } = &mut self.written;
        let room = if dropped_because.is_some() { 0 } else { MOST_BYTES - *kept_bytes };
        let kept = bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        match self.file.write_all(&bytes[..kept]) {
            Ok(()) => {
                *kept_bytes += kept as u64;
                *dropped_bytes += (bytes.len() - kept) as u64;
            }
            // A full disk ends the file, not the run; how much of this chunk is in it is not known.
            Err(error) => {
                *dropped_bytes += bytes.len() as u64;
                *dropped_because = Some(error.to_string());
            }
        }
        let tail = &bytes[bytes.len().saturating_sub(TAIL_BYTES)..];
        self.tail.extend(tail);
        self.tail.drain(..self.tail.len().saturating_sub(TAIL_BYTES));
    }

    fn end(mut self) -> Written {
        let text = String::from_utf8_lossy(self.tail.make_contiguous()).into_owned();
        let last = text.lines().rev().map(str::trim).find(|line| !line.is_empty());
        self.written.last_line = last.map(str::to_owned);
        if self.written.dropped_bytes > 0 && self.written.dropped_because.is_none() {
            let kept = format!("the first {} MiB of a stream are kept", MOST_BYTES >> 20);
            self.written.dropped_because = Some(kept);
        }
        self.written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_beyond_the_bound_is_counted_and_the_last_line_is_known() {
        let directory = std::env::temp_dir().join(format!("airpath-output-{}", std::process::id()));
        let file = directory.join("a.stdout");
        let mut outputs = Outputs::default();
        outputs.open(&file, None).unwrap();
        let mut writer = outputs.writers[0].try_clone().unwrap();
        let mut reading = outputs.start().unwrap();
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..65 {
            writer.write_all(&piece).unwrap();
        }
        writer.write_all(b"\nthe end \n\n").unwrap();
        drop(writer);
        let written = reading.finish().remove(0);
        let size = fs::metadata(&file).unwrap().len();
        fs::remove_dir_all(directory).unwrap();
        assert_eq!((written.kept_bytes, size), (MOST_BYTES, MOST_BYTES));
        assert_eq!(written.dropped_bytes, (1 << 20) + 11);
        assert_eq!(written.last_line.as_deref(), Some("the end"));
    }

    #[test]
    fn somebody_who_still_could_write_holds_nothing_up() {
        let directory = std::env::temp_dir().join(format!("airpath-held-{}", std::process::id()));
        let mut outputs = Outputs::default();
        outputs.open(&directory.join("a.stdout"), None).unwrap();
        let mut held = outputs.writers[0].try_clone().unwrap();
        let mut reading = outputs.start().unwrap();
        held.write_all(b"here\n").unwrap();
        let written = reading.finish().remove(0);
        fs::remove_dir_all(directory).unwrap();
        assert_eq!((written.kept_bytes, written.last_line.as_deref()), (5, Some("here")));
    }
}
