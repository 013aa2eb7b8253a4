//! The command line.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand};

/// A message broker that speaks the Kafka protocol.
#[derive(Debug, Parser)]
#[command(name = "callboard", version, propagate_version = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Format log directories and look at them.
    Storage {
        /// What to do with them.
        #[command(subcommand)]
        command: StorageCommand,
    },
}

/// The storage tool.
#[derive(Debug, Subcommand)]
pub enum StorageCommand {
    /// Get information about the log directories on this node.
    Info(ConfigArg),
    /// Format the log directories on this node.
    Format(Box<FormatArgs>),
    /// Look up the features that come with a metadata version.
    VersionMapping(VersionMappingArgs),
    /// Look up what a feature's level depends on.
    FeatureDependencies(FeatureDependenciesArgs),
    /// Print a random UUID.
    RandomUuid,
}

/// The properties file.
#[derive(Debug, Args)]
pub struct ConfigArg {
    /// The properties file to use.
    #[arg(short, long, value_name = "CONFIG")]
    pub config: PathBuf,
}

/// Arguments of `storage format`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("voters"))]
pub struct FormatArgs {
    /// The properties file to use.
    #[arg(short, long, value_name = "CONFIG")]
    pub config: PathBuf,
    /// The cluster id to use.
    #[arg(short = 't', long, value_name = "CLUSTER_ID")]
    pub cluster_id: String,
    /// A SCRAM credential to start with, such as 'SCRAM-SHA-256=[name=alice,password=alice-secret]'; may be repeated.
    #[arg(short = 'S', long, value_name = "ADD_SCRAM")]
    pub add_scram: Vec<String>,
    /// Skip directories that are formatted already.
    #[arg(short = 'g', long)]
    pub ignore_formatted: bool,
    /// The release whose features to start with. The default is the latest.
    #[arg(short, long, value_name = "RELEASE_VERSION")]
    pub release_version: Option<String>,
    /// The level of one feature, as feature=level; may be repeated.
    #[arg(short, long, value_name = "FEATURE")]
    pub feature: Vec<String>,
    /// Make this controller a quorum of one that can grow.
    #[arg(short, long, group = "voters")]
    pub standalone: bool,
    /// Start without naming the quorum's voters.
    #[arg(short = 'N', long, group = "voters")]
    pub no_initial_controllers: bool,
    /// The quorum's voters: id@hostname:port:directory, separated by commas; the same on all nodes.
    #[arg(short = 'I', long, value_name = "INITIAL_CONTROLLERS", group = "voters")]
    pub initial_controllers: Option<String>,
}

/// Arguments of `storage version-mapping`.
#[derive(Debug, Args)]
pub struct VersionMappingArgs {
    /// The release; the default is the latest.
    #[arg(short, long, value_name = "RELEASE_VERSION")]
    pub release_version: Option<String>,
}

/// Arguments of `storage feature-dependencies`.
#[derive(Debug, Args)]
pub struct FeatureDependenciesArgs {
    /// A feature and its level, as feature=level; may be repeated.
    #[arg(short, long, value_name = "FEATURE", required = true)]
    pub feature: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn storage_options_are_kafkas() {
        let line = "callboard storage format -t id -c f -g -r 4.0 -f a=1 --feature b=2 -S x --standalone";
        let cli = Cli::try_parse_from(line.split(' ')).unwrap();
        let Command::Storage { command } = cli.command;
        let StorageCommand::Format(format) = command else { panic!("{command:?}") };
        assert!(format.ignore_formatted && format.standalone);
        assert_eq!(format.feature, ["a=1", "b=2"]);
        for both in ["--standalone -N", "-s --initial-controllers x", "-N -I x"] {
            let line = format!("callboard storage format -t id -c f {both}");
            assert!(Cli::try_parse_from(line.split(' ')).is_err(), "{both}");
        }
    }
}
