//! The records of `__transaction_state`.

use bytes::Bytes;
use callboard_protocol::ByteString;
use callboard_protocol::messages::transaction_log_value::PartitionsSchema;
use callboard_protocol::messages::transaction_record::{TransactionRecordKey, TransactionRecordValue};
use callboard_protocol::messages::{TransactionLogKey, TransactionLogValue};
use callboard_protocol::wire::{DecodeError, EncodeError};

use super::state::{LAST_CLIENT_EPOCH, NO_EPOCH, State, TopicPartition, Transaction};
use crate::error::ReplayError;
use crate::runtime::{EncodedRecord, Producer};

/// The first version of transaction.version whose records have fields of their own for the next and the previous
/// producer.
const FIRST_WITH_NEXT_PRODUCER: i16 = 1;
/// The first version that raises the epoch at each end.
const FIRST_WITH_RAISED_EPOCH: i16 = 2;

/// All that is known of one transactional id, or that it is gone.
#[derive(Debug, Clone, PartialEq)]
pub struct TransactionRecord {
    /// The id.
    pub transactional_id: ByteString,
    /// What is known, and the version it is written in; `None` is a tombstone.
    pub value: Option<(TransactionLogValue, i16)>,
}

impl TransactionRecord {
    /// The record of a transaction, as the cluster's finalized `transaction.version` has it.
    pub fn of(transactional_id: &ByteString, transaction: &Transaction, transaction_version: i16) -> Self {
        let version = i16::from(transaction_version >= FIRST_WITH_NEXT_PRODUCER);
        let value = value(transaction, version);
        Self { transactional_id: transactional_id.clone(), value: Some((value, version)) }
    }

    /// The record that takes an id away.
    pub const fn tombstone(transactional_id: ByteString) -> Self {
        Self { transactional_id, value: None }
    }

    /// Reads a record of the log.
    ///
    /// # Errors
    /// Its bytes are not what its type says, or the type is of a later Kafka.
    pub fn decode(key: &Bytes, value: Option<&Bytes>) -> Result<Self, DecodeError> {
        let key = TransactionRecordKey::decode(key)?;
        let api_key = key.api_key();
        let TransactionRecordKey::TransactionLogKey(key) = key;
        let value = value.map(|value| TransactionRecordValue::decode(api_key, value)).transpose()?;
        let value =
            value.map(|(TransactionRecordValue::TransactionLogValue(value), version)| (value, version));
        Ok(Self { transactional_id: key.transactional_id, value })
    }

    /// The record as the log keeps it.
    ///
    /// # Errors
    /// A field is too long for its type.
    pub fn encode(&self) -> Result<EncodedRecord, EncodeError> {
        let key = TransactionLogKey { transactional_id: self.transactional_id.clone() };
        let value = self.value.as_ref().map(|(value, version)| {
            TransactionRecordValue::TransactionLogValue(value.clone()).encode(*version)
        });
        Ok(EncodedRecord { key: TransactionRecordKey::from(key).encode()?, value: value.transpose()? })
    }

    /// The transaction that the record tells of; `None` for a tombstone.
    ///
    /// # Errors
    /// The state's number has no meaning.
    pub fn transaction(&self) -> Result<Option<Transaction>, ReplayError> {
        self.value.as_ref().map(|(value, _)| transaction(value)).transpose()
    }
}

fn value(transaction: &Transaction, version: i16) -> TransactionLogValue {
    let mut topics: Vec<PartitionsSchema> = Vec::new();
    for TopicPartition { topic, partition } in &transaction.partitions {
        match topics.last_mut().filter(|last| last.topic == *topic) {
            Some(last) => last.partition_ids.push(*partition),
            None => topics.push(PartitionsSchema {
                topic: topic.clone(),
                partition_ids: vec![*partition],
                ..Default::default()
            }),
        }
    }
    let base = match version {
        0 => TransactionLogValue::default(),
        _ => TransactionLogValue {
            previous_producer_id: transaction.previous_producer_id,
            next_producer_id: transaction.next_producer_id,
            client_transaction_version: transaction.client_version,
            ..Default::default()
        },
    };
    TransactionLogValue {
        producer_id: transaction.producer.id,
        producer_epoch: transaction.producer.epoch,
        transaction_timeout_ms: transaction.timeout_ms,
        transaction_status: transaction.state.code(),
        transaction_partitions: (transaction.state != State::Empty).then_some(topics),
        transaction_last_update_timestamp_ms: transaction.updated_ms,
        transaction_start_timestamp_ms: transaction.started_ms,
        ..base
    }
}

fn transaction(value: &TransactionLogValue) -> Result<Transaction, ReplayError> {
    let state = State::from_code(value.transaction_status)
        .ok_or(ReplayError::UnknownTransactionState { code: value.transaction_status })?;
    let topics = value.transaction_partitions.iter().flatten();
    let partitions = topics.flat_map(|of| {
        of.partition_ids
            .iter()
            .map(|partition| TopicPartition { topic: of.topic.clone(), partition: *partition })
    });
    let producer = Producer { id: value.producer_id, epoch: value.producer_epoch };
    Ok(Transaction {
        producer,
        previous_producer_id: value.previous_producer_id,
        next_producer_id: value.next_producer_id,
        last_epoch: last_epoch(state, producer, value.client_transaction_version),
        timeout_ms: value.transaction_timeout_ms,
        state,
        partitions: partitions.collect(),
        started_ms: value.transaction_start_timestamp_ms,
        updated_ms: value.transaction_last_update_timestamp_ms,
        client_version: value.client_transaction_version,
        marking: 0,
    })
}

/// The epoch before the present one, where the record lets it be known: each end of a client of transaction.version 2
/// raises it by one, or gives a new id once the last is reached.
const fn last_epoch(state: State, producer: Producer, client_version: i16) -> i16 {
    let ended = !matches!(state, State::Empty | State::Ongoing);
    match producer.epoch {
        _ if !ended || client_version < FIRST_WITH_RAISED_EPOCH => NO_EPOCH,
        0 => LAST_CLIENT_EPOCH,
        epoch => epoch.saturating_sub(1),
    }
}
