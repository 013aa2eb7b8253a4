//! AlterConfigs and IncrementalAlterConfigs as one kind of request: each resource is checked, changed and answered alike.

use callboard_protocol::messages::Request;
use callboard_protocol::{ByteString, ErrorCode};

use super::{Controller, Outcome, Refusal};
use crate::image::ConfigResource;
use crate::record::VersionedRecord;

/// What is asked of one config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub(super) name: ByteString,
    /// As on the wire; see [`Operation`](super::incremental_alter_configs::Operation).
    pub(super) operation: i8,
    pub(super) value: Option<ByteString>,
}

/// What is asked of one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    pub(super) kind: i8,
    pub(super) name: ByteString,
    pub(super) changes: Vec<Change>,
}

/// What is answered of one resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub(super) kind: i8,
    pub(super) name: ByteString,
    pub(super) code: i16,
    pub(super) message: Option<ByteString>,
}

impl Asked {
    pub(super) fn answer(&self, refusal: Refusal) -> Answer {
        let Refusal { code, message } = refusal;
        Answer { kind: self.kind, name: self.name.clone(), code: code as i16, message }
    }
}

/// A request that changes configs.
pub trait Alteration: Request {
    /// Whether what is not named goes.
    const REPLACES: bool;

    /// What is asked, resource by resource.
    fn asked(&self) -> Vec<Asked>;

    /// Keeps the resources for which the function, asked in their order, says so.
    fn retain(&mut self, keep: impl FnMut() -> bool);

    /// Whether the change is only checked.
    fn validate_only(&self) -> bool;

    /// The response of some answers.
    fn respond(answers: Vec<Answer>) -> Self::Response;

    /// The answers of a response.
    fn answers(response: Self::Response) -> Vec<Answer>;
}

impl Controller {
    /// Changes configs; each resource gets its own error. The request has passed
    /// [`check_alteration`](super::check_alteration).
    pub fn alter<Q: Alteration>(&self, request: &Q) -> Outcome<Q::Response> {
        let (mut records, mut answers) = (Vec::new(), Vec::new());
        for asked in request.asked() {
            let refusal = match self.alter_one(&asked, Q::REPLACES) {
                Ok(more) => {
                    records.extend(more);
                    Refusal::bare(ErrorCode::None)
                }
                Err(refusal) => refusal,
            };
            answers.push(asked.answer(refusal));
        }
        if request.validate_only() {
            records.clear();
        }
        Outcome::atomic(records, Q::respond(answers))
    }

    fn alter_one(&self, asked: &Asked, replaces: bool) -> Result<Vec<VersionedRecord>, Refusal> {
        let resource = self.check_resource(asked.kind, &asked.name)?;
        let mut values = Vec::with_capacity(asked.changes.len());
        for change in &asked.changes {
            values.push((change.name.clone(), self.new_value(&resource, change)?));
        }
        if replaces {
            values.extend(self.unnamed(&resource, asked));
        }
        self.config_records(&resource, &values)
    }

    /// The configs that a resource has and that are not named, to be taken away.
    fn unnamed(&self, resource: &ConfigResource, asked: &Asked) -> Vec<(ByteString, Option<ByteString>)> {
        let before = self.image().configs.of(resource);
        let unnamed = before.keys().filter(|name| !asked.changes.iter().any(|change| change.name == **name));
        unnamed.map(|name| (name.clone(), None)).collect()
    }
}

/// What the two kinds of requests have in common, for their own types of resources.
macro_rules! alteration {
    ($request:ident, $response:ident, $asked:path, $answer:path, replaces: $replaces:literal,
     config: $config_type:path, operation: |$config:ident| $operation:expr) => {
        impl $crate::controller::alteration::Alteration for $request {
            const REPLACES: bool = $replaces;

            fn asked(&self) -> Vec<Asked> {
                let change = |$config: &$config_type| {
                    let operation = $operation;
                    Change { name: $config.name.clone(), operation, value: $config.value.clone() }
                };
                let resource = |resource: &$asked| Asked {
                    kind: resource.resource_type,
                    name: resource.resource_name.clone(),
                    changes: resource.configs.iter().map(change).collect(),
                };
                self.resources.iter().map(resource).collect()
            }

            fn retain(&mut self, mut keep: impl FnMut() -> bool) {
                self.resources.retain(|_| keep());
            }

            fn validate_only(&self) -> bool {
                self.validate_only
            }

            fn respond(answers: Vec<Answer>) -> $response {
                let response = |answer: Answer| {
                    type Response = $answer;
                    Response {
                        error_code: answer.code,
                        error_message: answer.message,
                        resource_type: answer.kind,
                        resource_name: answer.name,
                        ..Default::default()
                    }
                };
                $response { responses: answers.into_iter().map(response).collect(), ..Default::default() }
            }

            fn answers(response: $response) -> Vec<Answer> {
                let answer = |response: $answer| Answer {
                    kind: response.resource_type,
                    name: response.resource_name,
                    code: response.error_code,
                    message: response.error_message,
                };
                response.responses.into_iter().map(answer).collect()
            }
        }
    };
}
pub(super) use alteration;
