//! What was sent and acknowledged, and whether it is in the log: all of it, in order, once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use callboard_client::{
    Client, ClientError, Consumer, ConsumerOptions, OffsetSpec, Producer, ProducerRecord,
};

/// Numbered records of one partition, and the offset that each was acknowledged with.
#[derive(Debug, Default)]
pub struct Ledger {
    /// By number: the offset, or why it was not acknowledged.
    pub answers: Vec<Result<i64, ClientError>>,
}

impl Ledger {
    /// Sends records numbered from 0 to a partition, a few at a time, until told to stop.
    pub async fn fill(producer: Producer, topic: String, partition: i32, stop: Arc<AtomicBool>) -> Self {
        let mut sent = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            for _ in 0..20 {
                let number = u64::try_from(sent.len()).expect("a small number");
                let record = ProducerRecord {
                    topic: topic.clone(),
                    partition: Some(partition),
                    value: Some(Bytes::copy_from_slice(&number.to_be_bytes())),
                    ..ProducerRecord::default()
                };
                sent.push(producer.send(record).await.expect("a place in the buffer"));
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let mut answers = Vec::with_capacity(sent.len());
        for delivery in sent {
            answers.push(delivery.await.map(|metadata| metadata.offset));
        }
        Self { answers }
    }

    /// Number of acknowledged records.
    pub fn acknowledged(&self) -> usize {
        self.answers.iter().filter(|answer| answer.is_ok()).count()
    }
}

/// Reads a partition from start to end and holds it against the ledger.
///
/// # Errors
/// What is lost, doubled or out of order, in words.
pub async fn check_partition(
    client: &Client,
    topic: &str,
    partition: i32,
    ledger: &Ledger,
) -> Result<(), String> {
    let stored = read_numbers(client, topic, partition).await.map_err(|error| error.to_string())?;
    compare(&stored, &ledger.answers).map_err(|what| format!("{topic}-{partition}: {what}"))
}

/// Holds offsets and numbers, in the order stored, against what was acknowledged.
fn compare(stored: &[(i64, u64)], answers: &[Result<i64, ClientError>]) -> Result<(), String> {
    for pair in stored.windows(2) {
        if let [(first_offset, first), (offset, number)] = pair
            && number <= first
        {
            return Err(format!("{first} at {first_offset}, then {number} at {offset}"));
        }
    }
    let mut rest = stored.iter().peekable();
    for (number, answer) in (0_u64..).zip(answers) {
        let Ok(offset) = answer else { continue };
        while rest.next_if(|(_, found)| *found < number).is_some() {}
        match rest.next_if(|(_, found)| *found == number) {
            None => {
                let (sent, count) = (answers.len(), stored.len());
                return Err(format!(
                    "{number} of {sent}, acknowledged at {offset}, is not among the {count} stored"
                ));
            }
            Some((at, _)) if *offset >= 0 && at != offset => {
                return Err(format!("{number}, acknowledged at {offset}, is at {at}"));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Offsets and numbers of a whole partition.
async fn read_numbers(client: &Client, topic: &str, partition: i32) -> Result<Vec<(i64, u64)>, ClientError> {
    let mut consumer = Consumer::new(client.clone(), ConsumerOptions::default());
    consumer.assign(topic, partition, OffsetSpec::Earliest).await?;
    let end = consumer.offset(topic, partition, OffsetSpec::Latest).await?;
    let mut numbers = Vec::new();
    let limit = tokio::time::Instant::now() + Duration::from_secs(60);
    while consumer.position(topic, partition).is_some_and(|position| position < end) {
        if tokio::time::Instant::now() > limit {
            return Err(ClientError::Timeout(60_000));
        }
        for record in consumer.poll(Duration::from_secs(2)).await? {
            let number = record.value.as_deref().and_then(|value| value.first_chunk::<8>());
            numbers.push((record.offset, number.map_or(u64::MAX, |bytes| u64::from_be_bytes(*bytes))));
        }
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_doubled_misplaced_or_out_of_order_is_found() {
        let unknown = || Err(ClientError::Timeout(1));
        let answers = [Ok(0), Ok(1), unknown(), Ok(-1)];
        assert_eq!(compare(&[(0, 0), (1, 1), (2, 3)], &answers), Ok(()));
        assert_eq!(compare(&[(0, 0), (1, 1), (2, 2), (3, 3)], &answers), Ok(()));
        for bad in [
            &[(0, 0), (2, 3)][..],
            &[(0, 0), (1, 1)],
            &[(0, 0), (1, 1), (2, 1), (3, 3)],
            &[(0, 1), (1, 0), (2, 3)],
            &[(0, 0), (2, 1), (3, 3)],
            &[],
        ] {
            assert!(compare(bad, &answers).is_err(), "{bad:?}");
        }
    }
}
