use callboard_protocol::wire::{DecodeError, EncodeError};

use super::*;

/// Keeps a row of words, and writes each.
#[derive(Debug, Clone, Default, PartialEq)]
struct Words(Vec<String>);

impl Machine for Words {
    type Record = String;
    type Reply = usize;
    type Effect = ();

    fn encode(record: &String) -> Result<EncodedRecord, EncodeError> {
        Ok(EncodedRecord { key: Bytes::from(record.clone()), value: None })
    }
    fn decode(key: &Bytes, _: Option<&Bytes>) -> Result<String, DecodeError> {
        Ok(String::from_utf8_lossy(key).into_owned())
    }
    fn replay(&mut self, entry: &Entry<String>) -> Result<(), ReplayError> {
        if let Entry::Record(word, _) = entry {
            self.0.push(word.clone());
        }
        Ok(())
    }
    fn next_deadline_ms(&self) -> Option<i64> {
        None
    }
}

fn say(runtime: &mut Runtime<Words>, word: &str) -> (Ticket, Settled<Words>) {
    runtime.request(|words, ticket| {
        words.0.push(word.to_owned());
        let replies = vec![(ticket, words.0.len())];
        Outcome { records: vec![word.to_owned()], replies, ..Outcome::default() }
    })
}

fn count(runtime: &mut Runtime<Words>) -> (Ticket, Settled<Words>) {
    runtime.request(|words, ticket| Outcome::reply(ticket, words.0.len()))
}

fn words_of(batch: Option<Batch>) -> Vec<String> {
    let records = batch.into_iter().flat_map(|batch| batch.records);
    records.map(|record| String::from_utf8_lossy(&record.key).into_owned()).collect()
}

#[test]
fn an_answer_waits_for_what_it_was_decided_on() {
    let mut runtime = Runtime::new(Words::default(), 0, 0);
    let (first, settled) = say(&mut runtime, "one");
    assert!(settled.replies.is_empty());
    // It has nothing of its own to write, but it has seen what is not committed yet.
    let (second, settled) = count(&mut runtime);
    assert!(settled.replies.is_empty());
    assert_eq!(words_of(runtime.next_batch(1000)), ["one"]);
    assert!(runtime.appended(1).replies.is_empty());
    assert_eq!(runtime.awaited_offset(), Some(1));
    assert_eq!(runtime.advance(1).replies, [(first, 1), (second, 1)]);
    assert_eq!(runtime.awaited_offset(), None);
    let (third, settled) = count(&mut runtime);
    assert_eq!(settled.replies, [(third, 1)], "nothing is on its way");
}

#[test]
fn one_batch_is_appended_at_a_time_and_others_are_collected() {
    let mut runtime = Runtime::new(Words::default(), 0, 0);
    say(&mut runtime, "one");
    assert_eq!(words_of(runtime.next_batch(1000)), ["one"]);
    say(&mut runtime, "two");
    say(&mut runtime, "three");
    assert_eq!(runtime.next_batch(1000), None);
    runtime.appended(1);
    assert_eq!(words_of(runtime.next_batch(1000)), ["two", "three"]);
    runtime.appended(3);
    say(&mut runtime, "four");
    say(&mut runtime, "five");
    assert_eq!(words_of(runtime.next_batch(1)), ["four"], "a write larger than a batch goes alone");
}

#[test]
fn a_failed_append_takes_everything_since_back() {
    let mut runtime = Runtime::new(Words::default(), 0, 0);
    let (one, _) = say(&mut runtime, "one");
    runtime.next_batch(1000);
    runtime.appended(1);
    let (two, _) = say(&mut runtime, "two");
    runtime.next_batch(1000);
    let (three, _) = say(&mut runtime, "three");
    // It waits for another, and leaves its mark in memory only: the mark goes, so it must be told.
    let (silent, _) = runtime.request(|words, _| {
        words.0.push("in memory".to_owned());
        Outcome::default()
    });
    let failed = runtime.append_failed();
    assert_eq!(failed.failed, [two, three, silent]);
    assert_eq!(runtime.machine().0, ["one"]);
    assert_eq!(runtime.next_batch(1000), None);
    assert_eq!(runtime.advance(1).replies, [(one, 1)], "what was appended before stands");
}

#[test]
fn one_who_waited_before_a_failed_append_is_told_if_its_answer_came_with_it() {
    let mut runtime = Runtime::new(Words::default(), 0, 0);
    let (waiting, _) = runtime.request(|_, _| Outcome::default());
    let (patient, _) = runtime.request(|_, _| Outcome::default());
    let settled = runtime.input(|words| {
        words.0.push("one".to_owned());
        let replies = vec![(waiting, 1)];
        Outcome { records: vec!["one".to_owned()], replies, ..Outcome::default() }
    });
    assert!(settled.replies.is_empty());
    runtime.next_batch(1000);
    assert_eq!(runtime.append_failed().failed, [waiting], "the other still waits, in memory too");
    let settled = runtime.input(|_| Outcome::reply(patient, 7));
    assert_eq!(settled.replies, [(patient, 7)]);
    let settled = runtime.input(|_| Outcome::reply(patient, 8));
    assert!(settled.replies.is_empty(), "nobody is answered twice");
    let (last, _) = runtime.request(|_, _| Outcome::default());
    assert_eq!(runtime.unload(), [last]);
}

#[test]
fn transactions_have_batches_of_their_own() {
    let mut runtime = Runtime::new(Words::default(), 0, 0);
    let producer = Some(Producer { id: 7, epoch: 0 });
    say(&mut runtime, "plain");
    let write = |word: &str| Outcome { records: vec![word.to_owned()], producer, ..Outcome::default() };
    runtime.input(|_| write("in"));
    runtime.input(|_| write("it"));
    say(&mut runtime, "out");
    assert_eq!(words_of(runtime.next_batch(1000)), ["plain"]);
    runtime.appended(1);
    let batch = runtime.next_batch(1000);
    assert_eq!(batch.as_ref().and_then(|batch| batch.producer), producer);
    assert_eq!(words_of(batch), ["in", "it"]);
}

#[test]
fn what_was_loaded_but_is_not_committed_is_waited_for_too() {
    let mut runtime = Runtime::new(Words(vec!["loaded".to_owned()]), 5, 3);
    let (ticket, settled) = count(&mut runtime);
    assert!(settled.replies.is_empty());
    assert!(runtime.advance(4).replies.is_empty());
    assert_eq!(runtime.advance(5).replies, [(ticket, 1)]);
}
