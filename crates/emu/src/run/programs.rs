//! The programs inside: the command, services before it, and the scenario's programs.

use std::env;
use std::ffi::{CString, OsString};
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use airpath_scenario::{ProgramConfig, ProgramPlace};
use serde::Serialize;

use crate::EmuError;
use crate::run::options::{Identity, Options};
use crate::run::output::{Outputs, Written};
use crate::run::terminal::Terminal;
use crate::sys::{Credentials, Program, ProgramEvent, ProgramEventKind, Streams};

impl Identity {
    fn credentials(&self) -> Result<Credentials, EmuError> {
        let variables = self.environment.clone().unwrap_or_else(|| env::vars_os().collect());
        let entry = |(mut name, value): (OsString, OsString)| {
            name.push("=");
            name.push(value);
            let said = name.to_string_lossy().replace('\0', "\\0");
            CString::new(name.into_vec()).map_err(|_| EmuError::Word(said))
        };
        let environment = variables.into_iter().map(entry).collect::<Result<_, _>>()?;
        Ok(Credentials { user: self.user.clone(), limited: self.limited, environment })
    }
}

/// A program, and what happened to it.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProgramReport {
    /// `command`, `server` (of [`Options::servers`]), or `program` of the scenario.
    pub kind: &'static str,
    /// `command`, `server-0`, or its name in the scenario.
    pub name: String,
    /// The end where it ran.
    pub at: String,
    /// The command as given.
    pub command: String,
    /// Start in seconds since the start of the run; null: the run was over before.
    pub started_s: Option<f64>,
    /// When it listened for connections; null: this was not waited for, or in vain.
    pub listening_s: Option<f64>,
    /// Whether it was waited for, but did not listen in time.
    pub silent: bool,
    /// When it ended; null: it was stopped with the run.
    pub ended_s: Option<f64>,
    /// Exit code, or 128 plus the number of a signal; null: it was stopped with the run.
    pub code: Option<i32>,
    /// Standard output and standard error, if they are written to files.
    pub written: Option<[Written; 2]>,
    /// The last line of standard error, otherwise of standard output; null: there is none.
    pub said: Option<String>,
}

/// All programs, in the order in which they start.
pub(crate) struct Session {
    pub(crate) programs: Vec<Program>,
    /// Index of the command.
    pub(crate) command: Option<usize>,
    pub(crate) credentials: Credentials,
    reports: Vec<ProgramReport>,
    /// Output of the programs, two streams each.
    pub(crate) outputs: Outputs,
    /// The programs to which that output belongs.
    writing: Vec<usize>,
}

/// An end, and its network namespace.
pub(crate) struct At {
    pub(crate) name: String,
    pub(crate) network: RawFd,
}

const STANDARD_INPUT: RawFd = 0;
const STANDARD_OUTPUT: RawFd = 1;
const STANDARD_ERROR: RawFd = 2;

impl Session {
    /// `terminal` replaces each of this process's standard streams that is a terminal. `at` finds
    /// the end of the command, the server's, or a UE's.
    ///
    /// # Errors
    ///
    /// If a word cannot be passed on, a file cannot be created, or the session would never end.
    pub(crate) fn new(
        options: &Options,
        configs: &[ProgramConfig],
        terminal: Option<&Terminal>,
        command_at: At,
        at: impl Fn(ProgramPlace) -> Result<At, EmuError>,
    ) -> Result<Self, EmuError> {
        let lasts = |config: &ProgramConfig| config.service && !config.ends_run;
        if options.command.is_empty() && configs.iter().all(lasts) {
            return Err(EmuError::Endless);
        }
        let mut session = Self {
            programs: Vec::new(),
            command: None,
            credentials: options.identity.credentials()?,
            reports: Vec::new(),
            outputs: Outputs::default(),
            writing: Vec::new(),
        };
        let replaced = |own: RawFd| terminal.map_or(own, |terminal| terminal.replaced(own));
        let error = Some(replaced(options.error.unwrap_or(STANDARD_ERROR)));
        for (index, line) in options.servers.iter().enumerate() {
            let streams = Streams { output: error, error, ..Streams::default() };
            let at = at(ProgramPlace::Server)?;
            let program = shell(line, at.network, streams)?;
            let program = Program { service: true, ..program };
            let name = format!("server-{index}");
            session.add(("server", name), at.name, line.clone(), program);
        }
        // Programs that start at the same time are in the order of the file, the command last.
        let (first, later): (Vec<_>, Vec<_>) =
            configs.iter().partition(|config| config.start.as_nanos() == 0);
        let to = (options.files.as_deref(), replaced(STANDARD_ERROR));
        for config in first {
            session.add_config(config, to, &at)?;
        }
        if !options.command.is_empty() {
            let input = replaced(STANDARD_INPUT);
            let streams = Streams {
                input: Some(input),
                output: Some(replaced(options.output.unwrap_or(STANDARD_OUTPUT))),
                error,
                controls: input != STANDARD_INPUT,
            };
            let program = Program {
                ends_run: true,
                ..plain(c_strings(&options.command)?, command_at.network, streams)
            };
            session.command = Some(session.programs.len());
            let name = ("command", "command".to_owned());
            session.add(name, command_at.name, options.command.join(" "), program);
        }
        let mut later = later;
        later.sort_by_key(|config| config.start);
        for config in later {
            session.add_config(config, to, &at)?;
        }
        Ok(session)
    }

    /// Adds a program of the scenario. Its output goes to files in a directory, or to a descriptor
    /// if there is none.
    fn add_config(
        &mut self,
        config: &ProgramConfig,
        (files, otherwise): (Option<&Path>, RawFd),
        at: &impl Fn(ProgramPlace) -> Result<At, EmuError>,
    ) -> Result<(), EmuError> {
        let at = at(config.place)?;
        let otherwise = Some(otherwise);
        let mut streams = Streams { output: otherwise, error: otherwise, ..Streams::default() };
        if let Some(directory) = files {
            let [output, error] = self.open_outputs(directory, &config.name)?;
            streams.output = Some(output);
            streams.error = Some(error);
        }
        let program = Program {
            start_ns: config.start.as_nanos(),
            service: config.service,
            ends_run: config.ends_run,
            ..shell(&config.command, at.network, streams)?
        };
        let name = ("program", config.name.clone());
        self.add(name, at.name, config.command.clone(), program);
        Ok(())
    }

    fn open_outputs(&mut self, directory: &Path, name: &str) -> Result<[RawFd; 2], EmuError> {
        let user = self.credentials.user.as_ref().map(|(user, group, _)| (*user, *group));
        let mut open =
            |kind: &str| self.outputs.open(&directory.join(format!("{name}.{kind}")), user);
        let opened = [open("stdout")?, open("stderr")?];
        self.writing.push(self.programs.len());
        Ok(opened)
    }

    fn add(
        &mut self,
        (kind, name): (&'static str, String),
        at: String,
        command: String,
        program: Program,
    ) {
        self.programs.push(program);
        self.reports.push(ProgramReport {
            kind,
            name,
            at,
            command,
            started_s: None,
            listening_s: None,
            silent: false,
            ended_s: None,
            code: None,
            written: None,
            said: None,
        });
    }

    /// The command line of a program that could not be run.
    pub(crate) fn command_of(&self, program: usize) -> &str {
        self.reports.get(program).map_or("", |report| &report.command)
    }

    /// Ends the run: returns its exit code, which is the command's, otherwise that of the first
    /// program that failed; and the reports. `code`: of the first process. `written`: of each
    /// output.
    pub(crate) fn end(
        mut self,
        code: i32,
        told: &[ProgramEvent],
        origin_ns: u64,
        written: Vec<Written>,
    ) -> (i32, Vec<ProgramReport>) {
        let mut written = written.into_iter();
        for &program in &self.writing {
            let both = [written.next(), written.next()].map(Option::unwrap_or_default);
            let [output, error] = &both;
            let report = &mut self.reports[program];
            report.said = error.last_line.clone().or_else(|| output.last_line.clone());
            report.written = Some(both);
        }
        let mut failed = None;
        for ProgramEvent { program, at_ns, kind } in told {
            let Some(report) = self.reports.get_mut(*program) else { continue };
            let at = Some(at_ns.saturating_sub(origin_ns) as f64 / 1e9);
            match *kind {
                ProgramEventKind::Started => report.started_s = at,
                ProgramEventKind::Listens => report.listening_s = at,
                ProgramEventKind::Silent => report.silent = true,
                ProgramEventKind::Ended(code) => {
                    report.ended_s = at;
                    report.code = Some(code);
                    failed = failed.or(Some(code).filter(|&code| code != 0));
                }
                ProgramEventKind::Stopped => {}
            }
        }
        let own = |command: usize| self.reports[command].code;
        let code = match self.command {
            _ if code != 0 => code,
            // A signal arrived before it could start.
            Some(command) => own(command).unwrap_or(INTERRUPTED),
            None => failed.unwrap_or(0),
        };
        (code, self.reports)
    }
}

/// 128 plus SIGINT.
const INTERRUPTED: i32 = 130;

fn plain(words: Vec<CString>, network: RawFd, streams: Streams) -> Program {
    Program { words, network, start_ns: 0, service: false, ends_run: false, streams }
}

fn shell(line: &str, network: RawFd, streams: Streams) -> Result<Program, EmuError> {
    let words = ["/bin/sh", "-c", line].map(str::to_owned);
    Ok(plain(c_strings(&words)?, network, streams))
}

/// The words as C strings, for `exec`.
pub(crate) fn c_strings(words: &[String]) -> Result<Vec<CString>, EmuError> {
    let word = |word: &String| {
        CString::new(word.as_str()).map_err(|_| EmuError::Word(word.replace('\0', "\\0")))
    };
    words.iter().map(word).collect()
}
