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
