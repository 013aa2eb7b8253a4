//! What may differ, and why.

/// A value that may differ.
#[derive(Debug)]
pub struct Exception {
    /// The scenario's name, or its start.
    scenario: &'static str,
    /// The step's note, or its start.
    step: &'static str,
    /// The end of the path in the answer.
    path: &'static str,
    /// Why it may differ.
    reason: &'static str,
}

impl std::fmt::Display for Exception {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} \"{}\" {}: {}", self.scenario, self.step, self.path, self.reason)
    }
}

impl Exception {
    /// Whether a difference is meant.
    pub fn covers(&self, scenario: &str, step: &str, path: &str) -> bool {
        scenario.starts_with(self.scenario) && step.starts_with(self.step) && path.ends_with(self.path)
    }
}

/// All of them.
pub const EXCEPTIONS: &[Exception] = &[];
