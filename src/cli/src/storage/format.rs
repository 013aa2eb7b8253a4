//! `storage format`: makes log directories a node's own, and leaves the first snapshot for the first controller.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, bail};
use callboard_metadata::config::{BrokerConfig, HostPort};
use callboard_protocol::Uuid;
use callboard_storage::MetaProperties;

use super::checkpoint::{self, FirstVoter, Quorum};
use super::features::{self, Chosen};
use super::scram::Credential;
use super::{ids, scram};
use crate::args::FormatArgs;

/// The directory of the metadata log inside its log directory.
const METADATA_LOG: &str = "__cluster_metadata-0";

/// Runs `storage format`.
///
/// # Errors
/// What is wrong, in the words of Kafka's tool.
pub fn run(config: &BrokerConfig, args: &FormatArgs, out: &mut impl Write) -> anyhow::Result<()> {
    check_quorum_options(config, args)?;
    let chosen = features::choose(args.release_version.as_deref(), &args.feature)?;
    let listener = config.controller_listener_names.first().map_or("CONTROLLER", String::as_str);
    let voters = match &args.initial_controllers {
        Some(text) => Some(ids::parse_initial_controllers(text, listener)?),
        None => None,
    };
    let own = voters.iter().flatten().find(|voter| voter.node_id == config.node_id);
    let metadata_directory_id = match own {
        Some(voter) => voter.directory_id,
        None => ids::random_uuid()?,
    };
    let is_dynamic = config.controller_quorum_voters.is_empty()
        && (args.standalone || voters.is_some() || args.no_initial_controllers);
    check_kraft_version(chosen.kraft_version, is_dynamic)?;
    let kind = match (&own, &voters) {
        _ if args.standalone => "dynamic metadata voter directory",
        (Some(_), _) => "dynamic metadata voter directory",
        (None, Some(_)) => "dynamic metadata directory",
        (None, None) => "metadata directory",
    };
    let quorum = match (is_dynamic, args.standalone) {
        (false, _) => Quorum::Static,
        (true, true) => Quorum::Dynamic(Some(vec![standalone_voter(config, metadata_directory_id)?])),
        (true, false) => Quorum::Dynamic(voters),
    };
    let credentials = credentials(args, &chosen)?;
    let plan = Plan {
        cluster_id: args.cluster_id.clone(),
        metadata_directory_id,
        kind,
        quorum,
        chosen,
        credentials,
        ignore_formatted: args.ignore_formatted,
    };
    format_directories(config, &plan, out)
}

/// Formats the directory of a node that is a cluster of its own, with a new cluster id.
///
/// # Errors
/// The directory cannot be written.
pub fn run_standalone(config: &BrokerConfig) -> anyhow::Result<()> {
    let metadata_directory_id = ids::random_uuid()?;
    let plan = Plan {
        cluster_id: ids::random_uuid()?.to_string(),
        metadata_directory_id,
        kind: "dynamic metadata voter directory",
        quorum: Quorum::Dynamic(Some(vec![standalone_voter(config, metadata_directory_id)?])),
        chosen: features::choose(None, &[])?,
        credentials: Vec::new(),
        ignore_formatted: false,
    };
    format_directories(config, &plan, &mut std::io::sink())
}

/// What to write.
struct Plan {
    cluster_id: String,
    metadata_directory_id: Uuid,
    kind: &'static str,
    quorum: Quorum,
    chosen: Chosen,
    credentials: Vec<Credential>,
    ignore_formatted: bool,
}

fn check_quorum_options(config: &BrokerConfig, args: &FormatArgs) -> anyhow::Result<()> {
    if !config.roles.controller {
        if args.standalone {
            bail!("You can only use --standalone on a controller.");
        }
        return Ok(());
    }
    let has_voters = !config.controller_quorum_voters.is_empty();
    if has_voters && (args.standalone || args.initial_controllers.is_some()) {
        bail!(
            "You cannot specify controller.quorum.voters and format the node with --initial-controllers or \
             --standalone. If you want to use dynamic quorum, please remove controller.quorum.voters and specify \
             controller.quorum.bootstrap.servers instead."
        );
    }
    if !has_voters && !args.standalone && !args.no_initial_controllers && args.initial_controllers.is_none() {
        bail!(
            "Because controller.quorum.voters is not set on this controller, you must specify one of the following: \
             --standalone, --initial-controllers, or --no-initial-controllers."
        );
    }
    Ok(())
}

fn check_kraft_version(wanted: Option<i16>, is_dynamic: bool) -> anyhow::Result<()> {
    match (wanted, is_dynamic) {
        (Some(0), true) => bail!(
            "Cannot set kraft.version to 0 if controller.quorum.voters is empty and one of the flags --standalone, \
             --initial-controllers, or --no-initial-controllers is used. For dynamic controllers support, try \
             removing the --feature flag for kraft.version."
        ),
        (Some(level), false) if level > 0 => bail!(
            "Cannot set kraft.version to {level} unless controller.quorum.voters is empty and one of the flags \
             --standalone, --initial-controllers, or --no-initial-controllers is used. For dynamic controllers \
             support, try using one of --standalone, --initial-controllers, or --no-initial-controllers and removing \
             controller.quorum.voters."
        ),
        _ => Ok(()),
    }
}

fn credentials(args: &FormatArgs, chosen: &Chosen) -> anyhow::Result<Vec<Credential>> {
    let parsed: anyhow::Result<Vec<_>> =
        args.add_scram.iter().map(|text| scram::parse(text, &ids::random_salt()?)).collect();
    let credentials = parsed?;
    if !credentials.is_empty() && chosen.release.level < features::FIRST_WITH_SCRAM {
        bail!("SCRAM is only supported in metadata.version 3.5-IV2 or later.");
    }
    Ok(credentials)
}

/// This node as the only voter, at its first controller listener.
fn standalone_voter(config: &BrokerConfig, directory_id: Uuid) -> anyhow::Result<FirstVoter> {
    let listener =
        config.advertised_controller_listeners.first().context("there is no controller listener")?;
    let host = match listener.address.host.as_str() {
        "" => "localhost",
        host => host,
    };
    Ok(FirstVoter {
        node_id: config.node_id,
        directory_id,
        listener: listener.name.clone(),
        address: HostPort { host: host.to_owned(), port: listener.address.port },
    })
}

/// The log directories with that of the metadata log, each once, in the order of their names.
pub fn all_directories(config: &BrokerConfig) -> Vec<PathBuf> {
    let mut all = config.log_dirs.clone();
    all.push(config.metadata_log_dir.clone());
    all.sort();
    all.dedup();
    all
}

fn format_directories(config: &BrokerConfig, plan: &Plan, out: &mut impl Write) -> anyhow::Result<()> {
    let mut available = 0;
    let mut empty = Vec::new();
    for dir in all_directories(config) {
        if dir.exists() && fs::read_dir(&dir).is_err() {
            writeln!(out, "I/O error trying to read log directory {}. Ignoring...", dir.display())?;
            continue;
        }
        available += 1;
        match MetaProperties::read(&dir)? {
            None => empty.push(dir),
            Some(meta) => {
                check_same_node(&meta, &dir, config, plan)?;
                if !plan.ignore_formatted {
                    bail!(
                        "Log directory {} is already formatted. Use --ignore-formatted to ignore this directory and \
                         format the others.",
                        dir.display()
                    );
                }
            }
        }
    }
    if available == 0 {
        bail!("No available log directories to format.");
    }
    if empty.is_empty() {
        writeln!(out, "All of the log directories are already formatted.")?;
        return Ok(());
    }
    let records = checkpoint::bootstrap_records(&plan.chosen.levels, &plan.credentials);
    let level = plan.chosen.release.level;
    writeln!(out, "Bootstrap metadata: {}", checkpoint::describe(&records, level))?;
    // The metadata log's directory comes last: a node without it is not formatted.
    empty.sort_by_key(|dir| *dir == config.metadata_log_dir);
    for dir in empty {
        let is_metadata = dir == config.metadata_log_dir;
        let kind = if is_metadata { plan.kind } else { "data directory" };
        writeln!(
            out,
            "Formatting {kind} {} with metadata.version {}.",
            dir.display(),
            plan.chosen.release.name
        )?;
        let directory_id = if is_metadata { plan.metadata_directory_id } else { ids::random_uuid()? };
        fs::create_dir_all(&dir).with_context(|| dir.display().to_string())?;
        if is_metadata && config.roles.controller {
            write_checkpoint(&dir, &checkpoint::encode(&plan.quorum, &records, now_ms())?)
                .with_context(|| dir.display().to_string())?;
        }
        // Only now: this file is what makes a directory formatted.
        let meta = MetaProperties {
            cluster_id: plan.cluster_id.clone(),
            node_id: config.node_id,
            directory_id: Some(directory_id),
        };
        meta.write(&dir)?;
    }
    Ok(())
}

fn check_same_node(
    meta: &MetaProperties,
    dir: &Path,
    config: &BrokerConfig,
    plan: &Plan,
) -> anyhow::Result<()> {
    let file = dir.join(MetaProperties::FILE);
    if meta.cluster_id != plan.cluster_id {
        bail!(
            "Invalid cluster.id in: {}. Expected {}, but read {}",
            file.display(),
            plan.cluster_id,
            meta.cluster_id
        );
    }
    if meta.node_id != config.node_id {
        bail!(
            "Stored node id {} doesn't match previous node id {} in {}. If you moved your data, make sure your \
             configured node id matches. If you intend to create a new node, you should remove all data in your data \
             directories.",
            meta.node_id,
            config.node_id,
            file.display()
        );
    }
    Ok(())
}

/// Writes the first snapshot, durable before its name appears, and read-only as Kafka leaves it.
fn write_checkpoint(log_dir: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let dir = log_dir.join(METADATA_LOG);
    fs::create_dir_all(&dir)?;
    let (path, part) = (dir.join(checkpoint::FILE), dir.join(format!("{}.part", checkpoint::FILE)));
    let _ = fs::remove_file(&part);
    let mut file = fs::File::create(&part)?;
    file.write_all(bytes)?;
    file.set_permissions(fs::Permissions::from_mode(0o400))?;
    file.sync_all()?;
    fs::rename(&part, &path)?;
    fs::File::open(&dir)?.sync_all()?;
    fs::File::open(log_dir)?.sync_all()
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
