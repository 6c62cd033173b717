//! Why the kernel did not accept a program.

/// What failed, with libbpf's warnings.
#[derive(Debug)]
pub struct BpfError {
    /// The attempted step.
    pub(crate) step: &'static str,
    pub(crate) source: libbpf_rs::Error,
    /// The warnings of libbpf, one per line.
    pub(crate) warnings: String,
}

impl BpfError {
    /// Whether a name is already in use.
    pub(crate) fn is_taken(&self) -> bool {
        self.source.kind() == libbpf_rs::ErrorKind::AlreadyExists
    }

    /// The last warning, without libbpf's name, or its error.
    pub(crate) fn cause(&self) -> String {
        let last = self.warnings.lines().map(str::trim).rfind(|line| !line.is_empty());
        let last = last.map(|line| line.trim_start_matches("libbpf: ").to_owned());
        last.unwrap_or_else(|| format!("{:#}", self.source))
    }

    /// What the verifier refused, if it did.
    pub fn refusal(&self) -> Option<Refusal<'_>> {
        let (before, rest) = self.warnings.split_once(LOG_BEGIN)?;
        let log = rest.split_once(LOG_END).map_or(rest, |(log, _)| log).trim();
        // libbpf: prog 'NAME': -- BEGIN PROG LOAD LOG --
        let program = before.rsplit('\'').nth(1).unwrap_or_default();
        let told = |line: &&str| !line.is_empty() && !line.starts_with("processed ");
        let reason = log.lines().map(str::trim).rfind(told).unwrap_or_default();
        Some(Refusal { program, reason, log })
    }
}

/// How libbpf frames the verifier's log.
const LOG_BEGIN: &str = "-- BEGIN PROG LOAD LOG --";
const LOG_END: &str = "-- END PROG LOAD LOG --";

/// A program that the kernel's verifier refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal<'error> {
    /// The program's name in the object.
    pub program: &'error str,
    /// The line of the log that says why.
    pub reason: &'error str,
    /// The whole log.
    pub log: &'error str,
}

impl std::fmt::Display for BpfError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "BPF, {}: {:#}", self.step, self.source)?;
        if let Some(last) = self.warnings.lines().next_back() {
            write!(formatter, " ({last})")?;
        }
        Ok(())
    }
}

impl std::error::Error for BpfError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verifiers_reason_is_found_in_what_libbpf_prints() {
        // As printed by libbpf 1.7 on Linux 6.18.
        let warnings = "libbpf: prog 'mine_init': BPF program load failed: -EACCES\n\
                        libbpf: prog 'mine_init': -- BEGIN PROG LOAD LOG --\n\
                        0: R1=ctx() R10=fp0\n0: (b7) r0 = 0\n\
                        R2 invalid mem access 'scalar'\n\
                        processed 2 insns (limit 1000000) max_states_per_insn 0\n\
                        -- END PROG LOAD LOG --\n\
                        libbpf: prog 'mine_init': failed to load: -EACCES\n";
        let source = libbpf_rs::Error::from_raw_os_error(13);
        let error = BpfError { step: "loading", source, warnings: warnings.to_owned() };
        let refusal = error.refusal().unwrap();
        assert_eq!(refusal.program, "mine_init");
        assert_eq!(refusal.reason, "R2 invalid mem access 'scalar'");
        assert!(refusal.log.starts_with("0: R1=ctx()") && refusal.log.contains("processed 2"));
        assert_eq!(error.cause(), "prog 'mine_init': failed to load: -EACCES");
    }
}
