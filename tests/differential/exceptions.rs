//! What may differ, and why.

/// A value that may differ.
#[derive(Debug)]
pub struct Exception {
    /// The scenario's name.
    scenario: &'static str,
    /// The step's note, or its start.
    step: &'static str,
    /// The ends of the paths in the answer.
    paths: &'static [&'static str],
    /// Why it may differ.
    reason: &'static str,
}

impl std::fmt::Display for Exception {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} \"{}\": {}", self.scenario, self.step, self.reason)
    }
}

impl Exception {
    /// Whether a difference is meant.
    pub fn covers(&self, scenario: &str, step: &str, path: &str) -> bool {
        scenario == self.scenario
            && step.starts_with(self.step)
            && self.paths.iter().any(|end| path.ends_with(end))
    }
}

/// All of them.
pub const EXCEPTIONS: &[Exception] = &[
    Exception {
        scenario: "api-versions",
        step: "of the controller",
        paths: &[
            ".AllocateProducerIds",
            ".AlterPartition",
            ".AssignReplicasToDirs",
            ".BeginQuorumEpoch",
            ".BrokerHeartbeat",
            ".BrokerRegistration",
            ".ControllerRegistration",
            ".EndQuorumEpoch",
            ".Envelope",
            ".Fetch",
            ".FetchSnapshot",
            ".UpdateRaftVoter",
            ".Vote",
        ],
        reason: "what the nodes of a cluster ask each other is not served while there are no clusters",
    },
    Exception {
        scenario: "fetch",
        step: "-1 bytes",
        paths: &[".errorCode", ".highWatermark", ".lastStableOffset", ".logStartOffset", ".records.batches"],
        reason: "a negative size fails in Kafka with UNKNOWN_SERVER_ERROR; here it is the smallest size",
    },
    Exception {
        scenario: "fetch",
        step: "isolation",
        paths: &[".errorCode", ".responses"],
        reason: "an unknown isolation level is UNKNOWN_SERVER_ERROR in Kafka, and INVALID_REQUEST here",
    },
    Exception {
        scenario: "list-offsets",
        step: "isolation",
        paths: &[".errorCode"],
        reason: "an unknown isolation level is UNKNOWN_SERVER_ERROR in Kafka, and INVALID_REQUEST here",
    },
    Exception {
        scenario: "incremental-alter-configs-others",
        step: "broker \"1\" (0, \"log.cleaner.threads\", Some(\"0\"))",
        paths: &[".errorMessage"],
        reason: "Kafka divides by zero, and says so",
    },
    Exception {
        scenario: "incremental-alter-configs-others",
        step: "logger \"1\" (0, \"root\"",
        paths: &[".errorMessage"],
        reason: "there are no Java loggers here, not even their root",
    },
    Exception {
        scenario: "produce-stored",
        step: "append: append time claimed",
        paths: &[".batchIndexErrorMessage"],
        reason: "Kafka prints its record object",
    },
    Exception {
        scenario: "shape-metadata",
        step: "a first list of length [ff, ff, ff, ff, f]",
        paths: &[""],
        reason: "Kafka takes a length beyond all bounds for null; here it ends the connection",
    },
    Exception {
        scenario: "shape-describe-log-dirs",
        step: "a first list of length [ff, ff, ff, ff, f]",
        paths: &[""],
        reason: "Kafka takes a length beyond all bounds for null; here it ends the connection",
    },
];
