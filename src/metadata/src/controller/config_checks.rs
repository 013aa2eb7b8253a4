//! What the broker that gets a change of configs checks itself, before the controller sees it: the form of the
//! request, and what only this broker knows of itself.

use std::collections::BTreeSet;

use callboard_protocol::ErrorCode;

use super::Refusal;
use super::alteration::{Alteration, Answer, Asked, Change};
use super::incremental_alter_configs::Operation;
use crate::image::ResourceType;

/// A request after the checks: what the controller is to see of it, and the answers that are given at once.
#[derive(Debug, Clone)]
pub struct Checked<Q> {
    passed: Q,
    /// One a resource, in the order of the request; none where the controller answers.
    answers: Vec<Option<Answer>>,
}

/// Checks each resource of a request that `node_id` got.
pub fn check_alteration<Q: Alteration>(request: &Q, node_id: i32) -> Checked<Q> {
    let asked = request.asked();
    let refusals = check(&asked, node_id, !Q::REPLACES);
    let answers: Vec<_> =
        asked.iter().zip(refusals).map(|(asked, refusal)| Some(asked.answer(refusal?))).collect();
    let mut places = answers.iter();
    let mut passed = request.clone();
    passed.retain(|| matches!(places.next(), Some(None)));
    Checked { passed, answers }
}

impl<Q: Alteration> Checked<Q> {
    /// What the controller is to decide, if there is anything.
    pub fn passed(&self) -> Option<&Q> {
        self.answers.iter().any(Option::is_none).then_some(&self.passed)
    }

    /// The answer to the whole request, in its order, with what the controller decided.
    pub fn answered(self, decided: Q::Response) -> Q::Response {
        let mut decided = Q::answers(decided).into_iter();
        Q::respond(self.answers.into_iter().filter_map(|answer| answer.or_else(|| decided.next())).collect())
    }

    /// The answer to the whole request when the controller decided nothing.
    pub fn refused(self, code: ErrorCode) -> Q::Response {
        let refuse = |asked: &Asked| asked.answer(Refusal::bare(code));
        let decided = Q::respond(self.passed.asked().iter().map(refuse).collect());
        self.answered(decided)
    }
}

/// The refusal of each resource, `None` for those that pass.
fn check(asked: &[Asked], node_id: i32, loggers_known: bool) -> Vec<Option<Refusal>> {
    let mut seen = BTreeSet::new();
    let repeated: BTreeSet<_> = asked
        .iter()
        .map(|resource| (resource.kind, &resource.name))
        .filter(|key| !seen.insert(*key))
        .collect();
    asked
        .iter()
        .map(|resource| {
            if repeated.contains(&(resource.kind, &resource.name)) {
                let message = "Each resource must appear at most once.";
                return Some(Refusal::new(ErrorCode::InvalidRequest, message));
            }
            check_one(resource, node_id, loggers_known).err()
        })
        .collect()
}

fn check_one(resource: &Asked, node_id: i32, loggers_known: bool) -> Result<(), Refusal> {
    let refuse = |message: String| Err(Refusal::new(ErrorCode::InvalidRequest, message));
    let names: BTreeSet<_> = resource.changes.iter().map(|change| &change.name).collect();
    if names.len() != resource.changes.len() {
        return refuse("Error due to duplicate config keys".to_string());
    }
    let without_value = resource.changes.iter().filter(|change| {
        change.value.is_none() && Operation::from_value(change.operation) != Some(Operation::Delete)
    });
    let without_value: Vec<&str> = without_value.map(|change| &*change.name).collect();
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
fn check_loggers(resource: &Asked, node_id: i32) -> Result<(), Refusal> {
    let refuse = |code, message: String| Err(Refusal::new(code, message));
    match resource.name.parse::<i32>() {
        Ok(id) if id == node_id => match resource.changes.first() {
            Some(config) => Err(check_logger(config)),
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

fn check_logger(config: &Change) -> Refusal {
    let operation = match Operation::from_value(config.operation) {
        Some(Operation::Set | Operation::Delete) => {
            let message = format!("Logger {} does not exist!", config.name);
            return Refusal::new(ErrorCode::InvalidConfig, message);
        }
        Some(Operation::Append) => "APPEND operation".to_owned(),
        Some(Operation::Subtract) => "SUBTRACT operation".to_owned(),
        None => format!("Unknown operation type {}", config.operation),
    };
    let message = format!("{operation} is not allowed for the BROKER_LOGGER resource");
    Refusal::new(ErrorCode::InvalidRequest, message)
}
