//! How the process ends.

use std::process::ExitCode;

/// The codes the process ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done, or stopped by a signal and everything closed in order.
    Success,
    /// Refused: bad arguments or settings, a directory that is not formatted or in use, an address in use.
    Refused,
    /// The node gave up while running; the log says why.
    Failed,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(match exit {
            Exit::Success => 0,
            Exit::Refused => 1,
            Exit::Failed => 2,
        })
    }
}
