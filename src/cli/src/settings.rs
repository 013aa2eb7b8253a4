//! Where a node's settings come from: the file, then the environment, then the command line; the last one wins.

use std::path::Path;

use callboard_metadata::config::{BrokerConfig, Remarks, from_environment};

use crate::properties;

/// A node's settings, and what the user should hear about them.
#[derive(Debug)]
pub struct Loaded {
    /// The settings.
    pub config: BrokerConfig,
    /// Names without a setting, settings without an effect.
    pub remarks: Remarks,
    /// Environment variables that name no setting.
    pub unknown_variables: Vec<String>,
}

/// Puts settings together and checks them. `base` is the weakest layer.
///
/// # Errors
/// What is wrong with a setting: its name, its value and what is allowed.
pub fn load(
    base: Vec<(String, String)>,
    environment: impl IntoIterator<Item = (String, String)>,
    overrides: Vec<(String, String)>,
) -> anyhow::Result<Loaded> {
    let (from_environment, unknown_variables) = from_environment(environment);
    let all = base.into_iter().chain(from_environment).chain(overrides);
    // Later ones win, and a value that lost is not judged.
    let winners: std::collections::BTreeMap<String, String> = all.collect();
    let (config, remarks) = BrokerConfig::from_properties(winners)?;
    Ok(Loaded { config, remarks, unknown_variables })
}

/// The same with a properties file as the base.
///
/// # Errors
/// The file cannot be read, or as [`load`].
pub fn load_file(path: &Path, overrides: Vec<(String, String)>) -> anyhow::Result<Loaded> {
    let base = properties::read_file(path)?;
    load(base, environment(), overrides)
}

/// The process's environment; variables that are not Unicode name no setting.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

impl Loaded {
    /// Logs each remark once.
    pub fn log_remarks(&self) {
        if !self.remarks.without_effect.is_empty() {
            let settings = self.remarks.without_effect.join(", ");
            tracing::warn!(settings, "these settings are accepted but have no effect yet");
        }
        if !self.remarks.unknown.is_empty() {
            let settings = self.remarks.unknown.join(", ");
            tracing::warn!(settings, "no setting has these names; they are ignored");
        }
        if !self.unknown_variables.is_empty() {
            let variables = self.unknown_variables.join(", ");
            tracing::warn!(variables, "these environment variables name no setting; they are ignored");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base() -> Vec<(String, String)> {
        let text = "process.roles=broker,controller\nnode.id=1\nlisteners=PLAINTEXT://:9092,CONTROLLER://:9093\n\
                    controller.listener.names=CONTROLLER\ncontroller.quorum.bootstrap.servers=h:9093\n\
                    log.dirs=/a\nnum.partitions=2\nlog.segment.bytes=5";
        properties::parse(text).unwrap()
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn the_command_line_wins_over_the_environment_and_that_over_the_file() {
        let good_size = pair("log.segment.bytes", "1048576");
        let environment =
            [pair("CALLBOARD_NUM_PARTITIONS", "3"), pair("CALLBOARD_LOG_DIRS", "/b"), pair("HOME", "/")];
        let overrides = vec![pair("num.partitions", "4"), good_size];
        let loaded = load(base(), environment, overrides).unwrap();
        assert_eq!(loaded.config.num_partitions, 4);
        assert_eq!(loaded.config.log_dirs, [Path::new("/b")]);
        assert!(loaded.unknown_variables.is_empty());
    }

    #[test]
    fn a_value_out_of_range_is_refused_with_what_is_allowed() {
        let error = load(base(), [], vec![]).unwrap_err().to_string();
        assert_eq!(
            error,
            "Invalid value 5 for configuration log.segment.bytes: Value must be at least 1048576"
        );
    }

    #[test]
    fn the_sample_files_are_accepted_without_a_remark() {
        for (name, broker, controller) in
            [("server", true, true), ("broker", true, false), ("controller", false, true)]
        {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../config/{name}.properties"));
            let base = properties::read_file(&path).unwrap();
            let loaded = load(base, [], vec![]).unwrap();
            assert_eq!(
                (loaded.config.roles.broker, loaded.config.roles.controller),
                (broker, controller),
                "{name}"
            );
            assert_eq!(loaded.remarks, Remarks::default(), "{name}");
        }
    }
}
