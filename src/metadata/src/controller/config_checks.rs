//! What the broker that gets a change of configs checks itself, before the controller sees it: the form of the
//! request, and what only this broker knows of itself.

use std::collections::BTreeSet;

use callboard_protocol::messages::{
    AlterConfigsRequest, IncrementalAlterConfigsRequest, alter_configs_response,
    incremental_alter_configs_response,
};
use callboard_protocol::{ByteString, ErrorCode};

use super::incremental_alter_configs::Operation;
use super::{Refusal, alter_configs, incremental_alter_configs};
use crate::image::ResourceType;

/// One resource of a request, as the checks see it.
struct Asked<'a> {
    kind: i8,
    name: &'a ByteString,
    /// Each config's name, and whether it lacks a value that it needs.
    configs: Vec<(&'a ByteString, bool)>,
}

/// Splits a request into what the controller is to see and answers given at once.
pub fn check_incremental_alter_configs(
    request: &IncrementalAlterConfigsRequest,
    node_id: i32,
) -> (IncrementalAlterConfigsRequest, Vec<incremental_alter_configs_response::AlterConfigsResourceResponse>) {
    let asked: Vec<Asked<'_>> = request
        .resources
        .iter()
        .map(|resource| Asked {
            kind: resource.resource_type,
            name: &resource.resource_name,
            configs: resource
                .configs
                .iter()
                .map(|config| {
                    let deletes = Operation::from_value(config.config_operation) == Some(Operation::Delete);
                    (&config.name, config.value.is_none() && !deletes)
                })
                .collect(),
        })
        .collect();
    let mut passed = request.clone();
    passed.resources.clear();
    let mut answers = Vec::new();
    for (resource, refusal) in request.resources.iter().zip(check(&asked, node_id, true)) {
        match refusal {
            Some(refusal) => answers.push(incremental_alter_configs::response(resource, refusal)),
            None => passed.resources.push(resource.clone()),
        }
    }
    (passed, answers)
}

/// Splits a request into what the controller is to see and answers given at once.
pub fn check_alter_configs(
    request: &AlterConfigsRequest,
    node_id: i32,
) -> (AlterConfigsRequest, Vec<alter_configs_response::AlterConfigsResourceResponse>) {
    let asked: Vec<Asked<'_>> = request
        .resources
        .iter()
        .map(|resource| Asked {
            kind: resource.resource_type,
            name: &resource.resource_name,
            configs: resource.configs.iter().map(|config| (&config.name, config.value.is_none())).collect(),
        })
        .collect();
    let mut passed = request.clone();
    passed.resources.clear();
    let mut answers = Vec::new();
    for (resource, refusal) in request.resources.iter().zip(check(&asked, node_id, false)) {
        match refusal {
            Some(refusal) => answers.push(alter_configs::response(resource, refusal)),
            None => passed.resources.push(resource.clone()),
        }
    }
    (passed, answers)
}

/// The refusal of each resource, `None` for those that pass.
fn check(asked: &[Asked<'_>], node_id: i32, loggers_known: bool) -> Vec<Option<Refusal>> {
    let mut seen = BTreeSet::new();
    let repeated: BTreeSet<_> = asked
        .iter()
        .map(|resource| (resource.kind, resource.name))
        .filter(|key| !seen.insert(*key))
        .collect();
    asked
        .iter()
        .map(|resource| {
            if repeated.contains(&(resource.kind, resource.name)) {
                let message = "Each resource must appear at most once.";
                return Some(Refusal::new(ErrorCode::InvalidRequest, message));
            }
            check_one(resource, node_id, loggers_known).err()
        })
        .collect()
}

fn check_one(resource: &Asked<'_>, node_id: i32, loggers_known: bool) -> Result<(), Refusal> {
    let refuse = |message: String| Err(Refusal::new(ErrorCode::InvalidRequest, message));
    let names: BTreeSet<_> = resource.configs.iter().map(|(name, _)| name).collect();
    if names.len() != resource.configs.len() {
        return refuse("Error due to duplicate config keys".to_string());
    }
    let without_value: Vec<&str> =
        resource.configs.iter().filter(|(_, lacks)| *lacks).map(|(name, _)| &***name).collect();
    if !without_value.is_empty() {
        return refuse(format!("Null value not supported for : {}", without_value.join(",")));
    }
    match ResourceType::from_value(resource.kind) {
        Some(ResourceType::Broker) if !resource.name.is_empty() => match resource.name.parse::<i32>() {
            Ok(id) if id == node_id => Ok(()),
            Ok(id) => refuse(format!("Unexpected broker id, expected {node_id}, but received {id}")),
            Err(_) => refuse(format!("Node id must be an integer, but it is: {}", resource.name)),
        },
        Some(ResourceType::BrokerLogger) if loggers_known => check_loggers(resource, node_id),
        Some(ResourceType::BrokerLogger) | None => refuse(format!("Unknown resource type {}", resource.kind)),
        Some(_) => Ok(()),
    }
}

/// This broker has no loggers of Kafka's names; an unknown one is refused by its name, as Kafka does.
fn check_loggers(resource: &Asked<'_>, node_id: i32) -> Result<(), Refusal> {
    let refuse = |code, message: String| Err(Refusal::new(code, message));
    match resource.name.parse::<i32>() {
        Ok(id) if id == node_id => match resource.configs.first() {
            Some((logger, _)) => refuse(ErrorCode::InvalidConfig, format!("Logger {logger} does not exist!")),
            None => Err(Refusal::bare(ErrorCode::None)),
        },
        Ok(id) => refuse(
            ErrorCode::InvalidRequest,
            format!("Unexpected node id. Expected {node_id}, but received {id}"),
        ),
        Err(_) => refuse(
            ErrorCode::InvalidRequest,
            format!("Node id must be an integer, but it is: {}", resource.name),
        ),
    }
}
