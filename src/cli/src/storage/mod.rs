//! `callboard storage`: Kafka's storage tool.

pub mod checkpoint;
mod features;
pub mod format;
pub mod ids;
mod info;
mod scram;
mod versions;

use std::io::Write;

use callboard_actors::supervision::Exit;

use crate::args::StorageCommand;
use crate::settings;

/// Runs a storage command; what it finds goes to `out`, what is wrong comes back.
///
/// # Errors
/// What is wrong, in the words of Kafka's tool where it has any.
pub fn run(command: StorageCommand, out: &mut impl Write) -> anyhow::Result<Exit> {
    match command {
        StorageCommand::RandomUuid => writeln!(out, "{}", ids::random_uuid()?)?,
        StorageCommand::Info(args) => {
            let config = settings::load_file(&args.config, Vec::new())?.config;
            return info::run(&config, out);
        }
        StorageCommand::Format(args) => {
            let config = settings::load_file(&args.config, Vec::new())?.config;
            format::run(&config, &args, out)?;
        }
        StorageCommand::VersionMapping(args) => {
            versions::version_mapping(args.release_version.as_deref(), out)?;
        }
        StorageCommand::FeatureDependencies(args) => versions::feature_dependencies(&args.feature, out)?,
    }
    Ok(Exit::Clean)
}
