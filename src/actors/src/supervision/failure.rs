//! Failures: what went wrong, which class it is, and how the process ends when nobody can help.

use std::fmt;

use super::recorder::Record;

/// What a failure means for the actor, decided before anything is restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureClass {
    /// Drop the state and build the actor again. A panic in a request is of this class.
    Restart,
    /// Building it again would fail the same way (a committed record that cannot be replayed): the parent
    /// fails at once.
    Escalate,
    /// What the actor stands on is gone (an I/O error): it stops and is never restarted.
    Offline,
    /// The actor holds an office (controller leadership): it gives it up, then is built again.
    Resign,
}

/// Why an actor failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What the supervisor does about it.
    pub class: FailureClass,
    /// What happened, for the log.
    pub reason: String,
    /// How the process ends if this failure reaches the root.
    pub exit: Exit,
}

impl Failure {
    /// A failure of the given class.
    pub fn new(class: FailureClass, reason: impl Into<String>) -> Self {
        Self { class, reason: reason.into(), exit: Exit::ActorFailed }
    }
    /// A failure that a restart may mend.
    pub fn restart(reason: impl Into<String>) -> Self {
        Self::new(FailureClass::Restart, reason)
    }
    /// A failure that a restart would only repeat.
    pub fn escalate(reason: impl Into<String>) -> Self {
        Self::new(FailureClass::Escalate, reason)
    }
    /// An I/O failure: the actor stays down.
    pub fn offline(reason: impl Into<String>) -> Self {
        Self::new(FailureClass::Offline, reason)
    }
    /// A fault in an office: resign, then start again.
    pub fn resign(reason: impl Into<String>) -> Self {
        Self::new(FailureClass::Resign, reason)
    }
    /// The failure as it is the parent's: a restart of the parent may mend it, unless it names its own exit
    /// code. Then it is for the root.
    pub(super) fn one_level_up(self) -> Self {
        let class =
            if self.exit == Exit::ActorFailed { FailureClass::Restart } else { FailureClass::Escalate };
        Self { class, ..self }
    }
    /// The same failure with another exit code at the root. Such a failure is no supervisor's to mend.
    pub fn with_exit(mut self, exit: Exit) -> Self {
        self.exit = exit;
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// How a node's process ends. The code is the process's exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Asked to stop, and everything stopped.
    Clean = 0,
    /// Start-up was refused: bad configuration or a data directory in use.
    Refused = 1,
    /// A failure reached the root of the tree.
    ActorFailed = 70,
    /// Metadata could not be replayed or written.
    MetadataFailed = 71,
    /// No log directory is left.
    LogDirectoriesFailed = 72,
    /// Shutdown passed its deadline; some actors did not stop.
    ShutdownTimedOut = 73,
}

impl Exit {
    /// The process's exit status.
    pub const fn code(self) -> u8 {
        self as u8
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Clean => "stopped as asked",
            Self::Refused => "start-up was refused",
            Self::ActorFailed => "an actor failed for good",
            Self::MetadataFailed => "the metadata could not be read or written",
            Self::LogDirectoriesFailed => "no log directory is left",
            Self::ShutdownTimedOut => "some actors did not stop in time",
        })
    }
}

/// What is known of one crash: given to the log, the tree and the spec's `on_failure`.
#[derive(Debug, Clone)]
pub struct CrashReport {
    /// The actor's path in the tree.
    pub path: String,
    /// The entry that failed: a message's kind, a timer's or an effect's name, or `started`.
    pub entry: &'static str,
    /// The class and the reason.
    pub failure: Failure,
    /// Where the panic was, when it was one.
    pub location: Option<String>,
    /// The last entries before it, oldest first.
    pub last_entries: Vec<Record>,
}

impl fmt::Display for CrashReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed in {}: {}", self.path, self.entry, self.failure)?;
        if let Some(location) = &self.location {
            write!(f, " at {location}")?;
        }
        Ok(())
    }
}
