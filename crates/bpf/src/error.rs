//! Why the kernel would not take a program.

/// What failed, and what libbpf said about it.
#[derive(Debug)]
pub struct BpfError {
    /// What was tried.
    pub(crate) step: &'static str,
    pub(crate) source: libbpf_rs::Error,
    /// Its warnings, one on each line.
    pub(crate) warnings: String,
}

impl BpfError {
    /// A name is in use already.
    pub(crate) fn is_taken(&self) -> bool {
        self.source.kind() == libbpf_rs::ErrorKind::AlreadyExists
    }
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
