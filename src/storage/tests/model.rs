//! Random appends, rolls, reads, truncations and restarts against a plain model, by fixed seeds.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::path::Path;

use callboard_protocol::records::batches;
use callboard_storage::{Log, LogConfig, Origin};
use common::*;

/// A small generator of random numbers; the same seed gives the same row.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Known {
    offset: i64,
    timestamp_ms: i64,
    epoch: i32,
    value: String,
    /// Base offset of its batch.
    batch: i64,
}

/// What the log should hold.
#[derive(Default)]
struct Model {
    records: Vec<Known>,
    start: i64,
    end: i64,
    epoch: i32,
    /// Sequence that the producer sends next.
    sequence: i32,
}

struct Run<'a> {
    dir: &'a Path,
    config: LogConfig,
    random: Random,
    model: Model,
    log: Option<Log>,
}

impl Run<'_> {
    fn log(&mut self) -> &mut Log {
        self.log.as_mut().expect("the log is open")
    }

    fn step(&mut self) {
        match self.random.below(20) {
            0..10 => self.append(),
            10 => self.log().roll(NOW).unwrap(),
            11 => self.truncate(),
            12 => self.restart(),
            13 => self.raise_start(),
            14 => self.model.epoch += 1,
            15 => self.log().flush().unwrap(),
            16 => self.look_up(),
            _ => self.read(),
        }
        let (start, end) = (self.model.start, self.model.end);
        let log = self.log();
        assert_eq!((log.log_start_offset(), log.log_end_offset()), (start, end));
    }

    fn append(&mut self) {
        let count = 1 + self.random.below(3);
        let mut row = Vec::new();
        for _ in 0..count {
            let records = 1 + self.random.below(4) as usize;
            let batch = self.model.end;
            let timestamp_ms = 1_000 + self.random.below(500) as i64;
            let mut builder = callboard_protocol::records::BatchBuilder::new(0);
            if self.random.below(2) == 0 {
                builder = builder.producer(9, 0, self.model.sequence);
                self.model.sequence += records as i32;
            }
            for _ in 0..records {
                let value = format!("{}-{}", self.model.end, "x".repeat(self.random.below(90) as usize));
                builder.append(timestamp_ms, None, Some(value.as_bytes()), &[]);
                let (offset, epoch) = (self.model.end, self.model.epoch);
                self.model.records.push(Known { offset, timestamp_ms, epoch, value, batch });
                self.model.end += 1;
            }
            row.push(ready(builder));
        }
        let epoch = self.model.epoch;
        self.log().append_as_leader(&row, epoch, Origin::Client, NOW).unwrap();
    }

    fn truncate(&mut self) {
        let span = (self.model.end - self.model.start) as u64;
        let offset = self.model.end - self.random.below(span / 4 + 1) as i64;
        let holder = self.model.records.iter().find(|record| record.offset == offset);
        let end = holder.map_or(offset, |record| record.batch);
        if end < self.model.start {
            return;
        }
        self.log().truncate_to(offset, NOW).unwrap();
        self.model.end = end;
        self.model.records.retain(|record| record.offset < end);
        self.model.epoch = self.model.epoch.max(1);
        let sequence = self.log().producer(9).map_or(0, |producer| producer.last_sequence() + 1);
        self.model.sequence = sequence;
    }

    fn restart(&mut self) {
        let log = self.log.take().expect("the log is open");
        let (recovery_point, clean) = (log.recovery_point(), self.random.below(2) == 0);
        let producer = log.producer(9).map(|producer| producer.last_sequence());
        if clean {
            log.close().unwrap();
        } else {
            drop(log);
        }
        let options = callboard_storage::OpenOptions {
            config: self.config.clone(),
            recovery_point,
            log_start_offset: self.model.start,
            clean_shutdown: clean,
            now_ms: NOW,
        };
        let config = LogConfig { producer_id_expiration_ms: i64::MAX, ..self.config.clone() };
        let (log, report) =
            Log::open(self.dir, callboard_storage::OpenOptions { config, ..options }).unwrap();
        assert_eq!((report.truncated_bytes, report.removed_segments), (0, 0));
        assert_eq!(report.rebuilt_indexes, 0, "{report:?}");
        assert_eq!(log.producer(9).map(|producer| producer.last_sequence()), producer);
        self.log = Some(log);
    }

    fn raise_start(&mut self) {
        let offset =
            self.model.start + self.random.below(((self.model.end - self.model.start) / 3 + 1) as u64) as i64;
        self.log().set_log_start_offset(offset).unwrap();
        let paths = self.log().remove_segments_below_start().unwrap();
        callboard_storage::delete_files(&paths).unwrap();
        self.model.start = offset;
        self.model.records.retain(|record| record.offset >= offset);
    }

    fn read(&mut self) {
        let span = (self.model.end - self.model.start) as u64;
        let from = self.model.start + self.random.below(span + 1) as i64;
        let known: Vec<_> =
            self.model.records.iter().filter(|record| record.offset >= from).cloned().collect();
        let boundary = known.get(self.random.below(known.len() as u64 + 1) as usize);
        let limit = boundary.map_or(self.model.end, |record| record.batch);
        let max_bytes = self.random.below(3_000) as u32;
        let region = self.log().reader().read(from, max_bytes, limit, true).unwrap();
        let mut found = Vec::new();
        for batch in batches(region.to_bytes().unwrap()).map_while(Result::ok) {
            assert!(batch.header.last_offset() < limit, "nothing from the limit on");
            for record in batch.records().unwrap().map(Result::unwrap).filter(|record| record.offset >= from)
            {
                found.push(Known {
                    offset: record.offset,
                    timestamp_ms: record.timestamp,
                    epoch: batch.header.partition_leader_epoch,
                    value: String::from_utf8(record.value.unwrap().to_vec()).unwrap(),
                    batch: batch.header.base_offset,
                });
            }
        }
        assert_eq!(found, known[..found.len()]);
        assert_eq!(found.is_empty(), from >= limit, "something comes if there is anything");
    }

    fn look_up(&mut self) {
        let at = 1_000 + self.random.below(510) as i64;
        let known = self.model.records.iter().find(|record| record.timestamp_ms >= at);
        let known = known.map(|record| (record.offset, record.timestamp_ms, Some(record.epoch)));
        let reader = self.log().reader();
        let found = reader.offset_for_timestamp(at).unwrap();
        assert_eq!(found.map(|found| (found.offset, found.timestamp_ms, found.leader_epoch)), known);
        for record in self.model.records.iter().rev().take(20) {
            assert_eq!(reader.epoch_of(record.offset), Some(record.epoch));
            let (epoch, end) = reader.epoch_end_offset(record.epoch).unwrap();
            assert_eq!(epoch, record.epoch);
            let next = self.model.records.iter().find(|other| other.epoch > record.epoch);
            assert_eq!(end, next.map_or(self.model.end, |next| next.offset));
        }
    }
}

#[test]
fn against_a_model() {
    // More on demand: SEEDS=10000 cargo test -p callboard-storage --release --test model
    let seeds = std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(15);
    for seed in 0..seeds {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("t-0");
        let mut random = Random(seed);
        let config = LogConfig {
            segment_bytes: 1_500 + random.below(3_000),
            segment_index_bytes: 48 + random.below(400),
            index_interval_bytes: 1 + random.below(600),
            producer_id_expiration_ms: i64::MAX,
            ..LogConfig::default()
        };
        let log = open_with(&dir, config.clone(), 0, false).0;
        let model = Model { epoch: 1, ..Model::default() };
        let mut run = Run { dir: &dir, config, random, model, log: Some(log) };
        for step in 0..150 {
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| run.step()));
            assert!(outcome.is_ok(), "seed {seed}, step {step}");
        }
    }
}
