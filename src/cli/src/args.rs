//! The command line.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand};

/// A message broker that speaks the Kafka protocol.
#[derive(Debug, Parser)]
#[command(name = "callboard", version, propagate_version = true)]
pub struct Cli {
    /// What is logged: error, warn, info, debug, trace, or filters such as `info,callboard_actors=debug`.
    /// `RUST_LOG` does the same.
    #[arg(long, global = true, value_name = "FILTER")]
    pub log_level: Option<String>,
    /// Log one JSON object a line.
    #[arg(long, global = true)]
    pub log_json: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start one node, broker and controller in one, in a directory that is formatted when it is new.
    Dev(DevArgs),
    /// Start the node that a properties file describes.
    Server(ServerArgs),
    /// Print the files of a log as kafka-dump-log.sh does.
    DumpLog(DumpLogArgs),
    /// Check a partition's directory, or a log directory with all in it, that no node has open.
    VerifyLog(VerifyLogArgs),
    /// Format log directories and look at them.
    Storage {
        /// What to do with them.
        #[command(subcommand)]
        command: StorageCommand,
    },
}

/// Arguments of `dev`.
#[derive(Debug, Args)]
pub struct DevArgs {
    /// The port of the broker. The controller listens on the next one.
    #[arg(long, default_value_t = 9092, value_parser = clap::value_parser!(u16).range(1..=65534))]
    pub port: u16,
    /// Where the data is kept. A directory that is new or empty is formatted.
    #[arg(long, value_name = "DIR", default_value = "callboard-data")]
    pub data_dir: PathBuf,
    /// A setting as in server.properties; may be repeated.
    #[arg(long = "override", value_name = "NAME=VALUE", value_parser = parse_override)]
    pub overrides: Vec<(String, String)>,
}

/// Arguments of `dump-log`; the names are those of kafka-dump-log.sh.
#[derive(Debug, Args)]
pub struct DumpLogArgs {
    /// The files: .log, .index, .timeindex, .txnindex, .snapshot, .checkpoint; separated by commas.
    #[arg(long, required = true, value_delimiter = ',', value_name = "FILES")]
    pub files: Vec<PathBuf>,
    /// Print every record, not only batches.
    #[arg(long)]
    pub deep_iteration: bool,
    /// Print keys and values, thus every record.
    #[arg(long)]
    pub print_data_log: bool,
    /// Print nothing of a record but its key and value, and no control records.
    #[arg(long)]
    pub skip_record_metadata: bool,
    /// Check the indexes without printing them.
    #[arg(long)]
    pub verify_index_only: bool,
    /// Look at the indexes as a node does when it starts, without printing them.
    #[arg(long)]
    pub index_sanity_check: bool,
    /// Print a log's batches up to so many bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 2_147_483_647)]
    pub max_bytes: u64,
    /// The size of the largest message. It is accepted for the sake of scripts: any size is read.
    #[arg(long, value_name = "BYTES", default_value_t = 5_242_880)]
    pub max_message_size: u64,
}

/// Arguments of `verify-log`.
#[derive(Debug, Args)]
pub struct VerifyLogArgs {
    /// The directory.
    pub dir: PathBuf,
}

/// Arguments of `server`.
#[derive(Debug, Args)]
pub struct ServerArgs {
    /// The properties file.
    pub file: PathBuf,
    /// A setting that wins over the file; may be repeated.
    #[arg(long = "override", value_name = "NAME=VALUE", value_parser = parse_override)]
    pub overrides: Vec<(String, String)>,
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

fn parse_override(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    if name.trim().is_empty() {
        return Err("expected NAME=VALUE".to_owned());
    }
    Ok((name.trim().to_owned(), value.to_owned()))
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
        let Command::Storage { command } = cli.command else { panic!("{cli:?}") };
        let StorageCommand::Format(format) = command else { panic!("{command:?}") };
        assert!(format.ignore_formatted && format.standalone);
        assert_eq!(format.feature, ["a=1", "b=2"]);
        for both in ["--standalone -N", "-s --initial-controllers x", "-N -I x"] {
            let line = format!("callboard storage format -t id -c f {both}");
            assert!(Cli::try_parse_from(line.split(' ')).is_err(), "{both}");
        }
    }

    #[test]
    fn overrides_are_names_and_values() {
        assert_eq!(parse_override("a.b=c=d"), Ok(("a.b".to_owned(), "c=d".to_owned())));
        assert!(parse_override("a").is_err());
        assert!(parse_override("=b").is_err());
    }
}
